//! Decides whether two memories are the same, similar or different.
//!
//! Texts that say opposite things, or the same thing with another number, have similar vectors:
//! similarity alone would merge "the timeout is 30 s" with "the timeout is not 300 s". So the
//! decisive words are compared first: negations with what they negate, opposites, and every number,
//! date, version and unit. When in doubt two memories are different: a missing link costs little, a
//! lost memory much.

mod figures;
mod words;

use kenning_text::line::one_line;
use unicode_normalization::UnicodeNormalization;

/// Texts with at least this cosine are similar.
pub const SIMILARITY_MIN: f64 = 0.9;

/// How two memories compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alike {
    /// The same text: one memory.
    Same,
    /// Two memories about the same thing: joined by an edge, never merged.
    Near,
    /// Two different memories.
    Different,
}

/// Compares two texts whose vectors have this cosine.
pub fn alike(one: &str, other: &str, similarity: f64) -> Alike {
    let (one, other) = (normalized(one), normalized(other));
    if one == other {
        return Alike::Same;
    }
    if similarity.is_nan() || similarity < SIMILARITY_MIN {
        return Alike::Different;
    }
    if figures::of(&one) != figures::of(&other)
        || words::negations(&one) != words::negations(&other)
        || words::has_opposites(&one, &other)
    {
        return Alike::Different;
    }
    Alike::Near
}

/// The text that counts: composed characters, and single spaces.
pub fn normalized(text: &str) -> String {
    let text: String = text.nfc().collect();
    one_line(&text)
}

/// A text without what readers ignore: case, spaces, quotation marks, and punctuation. Texts that
/// agree in this are the same to a reader.
pub fn bare(text: &str) -> String {
    const QUOTES: [char; 7] = [
        '"', '`', '\u{201c}', '\u{201d}', '\u{201e}', '\u{ab}', '\u{bb}',
    ];
    const ENDS: [char; 9] = [
        '.', ',', ';', ':', '!', '\u{2026}', '\u{3002}', '\u{ff0c}', '\u{ff01}',
    ];
    let text = normalized(text).to_lowercase();
    let words = text.split(' ').map(|word| {
        let word = word.trim_start_matches(QUOTES);
        word.trim_end_matches(|c| QUOTES.contains(&c) || ENDS.contains(&c))
    });
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_makes_no_other_memory_and_a_sign_with_a_meaning_does() {
        for (one, other) in [
            ("The cache is cold", "the cache is cold."),
            ("Deploy  on Tuesdays!", "Deploy, on Tuesdays"),
            ("Use \u{201c}strict\u{201d} mode", "use \"strict\" mode."),
            (
                "\u{7f13}\u{5b58}\u{5df2}\u{6ee1}\u{3002}",
                "\u{7f13}\u{5b58}\u{5df2}\u{6ee1}",
            ),
        ] {
            assert_eq!(bare(one), bare(other), "{one:?} / {other:?}");
        }
        for (one, other) in [
            ("Read .env first", "Read env first"),
            ("We use C++", "We use C"),
            ("The offset is -5", "The offset is 5"),
            ("Is it done?", "It is done"),
            ("Is it done?", "Is it done."),
            ("Version 1.2", "Version 12"),
            ("x < y", "x > y"),
        ] {
            assert_ne!(bare(one), bare(other), "{one:?} / {other:?}");
        }
    }

    #[test]
    fn the_same_text_is_the_same_whatever_its_spaces_and_composition() {
        for (one, other) in [
            ("the cache is cold", "the cache is cold"),
            (" the  cache\r\nis\tcold\n", "the cache is cold"),
            ("caf\u{e9}", "cafe\u{301}"),
            ("", " \n"),
        ] {
            assert_eq!(alike(one, other, 0.0), Alike::Same, "{one:?} / {other:?}");
        }
    }

    #[test]
    fn another_way_to_say_it_is_alike() {
        for (one, other) in [
            ("The cache is cold", "the cache is cold"),
            (
                "We use PostgreSQL for storage",
                "PostgreSQL is what we use for storage",
            ),
            ("The timeout is 30 s", "Timeout: 30s"),
            ("The timeout is 30 seconds", "timeout is 30 s"),
            ("We keep 1,000 events", "we keep 1000 events"),
            ("Upgraded to v2.1", "upgraded to 2.1"),
            ("Two servers run it", "2 servers run it"),
            ("Do not use tabs", "Never use tabs"),
            ("It doesn't work on Windows", "It does not work on Windows"),
            (
                "It doesn\u{2019}t work on Windows",
                "It doesn't work on Windows.",
            ),
            ("Released on Monday", "It was released on Monday"),
            ("CPU stays below 80%", "CPU stays below 80 percent"),
        ] {
            for (one, other) in [(one, other), (other, one)] {
                assert_eq!(alike(one, other, 0.97), Alike::Near, "{one:?} / {other:?}");
                assert_eq!(
                    alike(one, other, 0.5),
                    Alike::Different,
                    "{one:?} / {other:?}"
                );
            }
        }
    }

    #[test]
    fn what_says_something_else_is_never_alike_however_similar() {
        for (one, other) in [
            // Negations, and what they negate.
            ("The API is stable", "The API is not stable"),
            ("Tests run in CI", "Tests don't run in CI"),
            ("Tests run in CI", "Tests dont run in CI"),
            ("Use mocks", "Never use mocks"),
            ("There is a fallback", "There is no fallback"),
            ("Deploy with approval", "Deploy without approval"),
            ("We can roll back", "We cannot roll back"),
            ("Nobody owns the cron job", "Somebody owns the cron job"),
            (
                "Reads are not cached, writes are logged",
                "Reads are cached, writes are not logged",
            ),
            ("Restart unless it is idle", "Restart if it is idle"),
            ("Das Backup ist aktuell", "Das Backup ist nicht aktuell"),
            ("这个缓存可用", "这个缓存不可用"),
            // Opposites of one another.
            ("The flag is enabled", "The flag is disabled"),
            ("The input is valid", "The input is invalid"),
            ("This path is safe", "This path is unsafe"),
            ("Caching increases latency", "Caching decreases latency"),
            ("Always pin versions", "Sometimes pin versions"),
            ("The build passed", "The build failed"),
            ("Run it before the migration", "Run it after the migration"),
            ("Latency < 5 ms", "Latency > 5 ms"),
            // Different numbers.
            ("The timeout is 30 s", "The timeout is 300 s"),
            ("The timeout is 30 s", "The timeout is 30 ms"),
            ("The timeout is 30 s", "The timeout is 30"),
            ("It takes five minutes", "It takes 5 hours"),
            ("Two servers run it", "Three servers run it"),
            ("The offset is 5", "The offset is -5"),
            ("The offset is 5", "The offset is \u{2212}5"),
            ("Scale from 5 to 10", "Scale from 10 to 5"),
            ("The disk has 10 GB", "The disk has 10 Gb"),
            ("It costs 10 $", "It costs 10 €"),
            ("It costs $10", "It costs €10"),
            ("It is 20 °C", "It is 20 °F"),
            ("The first attempt worked", "The second attempt worked"),
            ("Ratio is 0.5", "Ratio is 0.05"),
            ("Port 8080 is open", "Port 8081 is open"),
            // Versions and dates.
            ("We run Python 3.11", "We run Python 3.12"),
            ("Upgraded to v2", "Upgraded to v3"),
            ("Pinned to 1.2.3", "Pinned to 1.2.4"),
            ("Pinned to 2.0", "Pinned to 2.0-rc1"),
            ("Released on 2024-01-15", "Released on 2024-01-16"),
            ("Released in January", "Released in February"),
            ("Released on Jan 5", "Released on Feb 5"),
            ("The call is on Monday", "The call is on Tuesday"),
            ("The call is today", "The call is tomorrow"),
            ("Standup is at 10:30", "Standup is at 10:45"),
            ("Fixed in commit a1b2c3", "Fixed in commit a1b2c4"),
            ("Fixes issue #12", "Fixes issue #13"),
        ] {
            for (one, other) in [(one, other), (other, one)] {
                assert_eq!(
                    alike(one, other, 0.999),
                    Alike::Different,
                    "{one:?} / {other:?}"
                );
            }
        }
    }

    #[test]
    fn a_similarity_that_is_no_number_makes_nothing_alike() {
        assert_eq!(alike("a", "b", f64::NAN), Alike::Different);
    }
}
