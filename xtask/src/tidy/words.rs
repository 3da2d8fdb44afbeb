//! Words that must not be in a tracked file.
//!
//! What one machine, one package mirror or one drafting tool left behind means nothing to a reader,
//! and work that is not done belongs in an issue. The words are joined from pieces here, so that this
//! file passes its own rule.

use super::Faults;
use crate::repository::Tree;

struct Word {
    /// Looked for as it is.
    text: &'static str,
    /// Whether letters may not touch it.
    whole: bool,
    /// What to do instead.
    remedy: &'static str,
    /// Names that begin so are not looked at …
    except: &'static str,
    /// … and only those that end so are.
    only: &'static str,
}

const fn word(text: &'static str, remedy: &'static str) -> Word {
    Word {
        text,
        whole: false,
        remedy,
        except: NOWHERE,
        only: "",
    }
}

/// In code. A page may name what is not to be used.
const fn code(text: &'static str, remedy: &'static str) -> Word {
    Word {
        only: ".rs",
        ..word(text, remedy)
    }
}

const fn whole(text: &'static str, remedy: &'static str) -> Word {
    Word {
        whole: true,
        ..word(text, remedy)
    }
}

/// No file begins so.
const NOWHERE: &str = "\0";
/// Attacks are spelled out there.
const CORPORA: &str = "testing/corpora/";

const MACHINE: &str = "name no place of one machine";
const MIRROR: &str = "name no package mirror";
const UNFINISHED: &str = "finish it or open an issue";

const WORDS: &[Word] = &[
    Word {
        except: CORPORA,
        ..word(concat!("/ro", "ot/"), MACHINE)
    },
    whole(concat!("TO", "DO"), UNFINISHED),
    whole(concat!("FIX", "ME"), UNFINISHED),
    word(concat!("/wo", "rk/"), MACHINE),
    word(concat!("/tmp/", "wt-"), MACHINE),
    word(concat!("/tmp/", "target"), MACHINE),
    word(concat!("C:\\Us", "ers\\"), MACHINE),
    word(concat!("arti", "factory"), MIRROR),
    word(concat!("crates.io", ":443"), MIRROR),
    word(concat!("registry.npm", "mirror"), MIRROR),
    code(concat!("tod", "o!("), UNFINISHED),
    code(concat!("unimpl", "emented!("), UNFINISHED),
    code(concat!("db", "g!("), "remove it"),
    code(
        concat!("#[ign", "ore"),
        "make a long suite an xtask command with a count and a seed",
    ),
];

/// Lines that name an author …
const AUTHORSHIP: &[&str] = &[
    concat!("co-auth", "ored-by:"),
    concat!("gener", "ated with "),
    concat!("gener", "ated by "),
    concat!("auth", "ored by "),
];
/// … and the assistants that are clients of this server, not its authors.
const ASSISTANTS: &[&str] = &[
    "claude", "chatgpt", "gpt-", "copilot", "gemini", "codex", "cursor", "devin",
];

pub(super) fn check(tree: &Tree) -> Faults {
    let mut faults = Faults::new();
    for (name, text) in &tree.0 {
        for (n, line) in text.lines().enumerate() {
            let at = format!("{name}:{}", n + 1);
            for word in WORDS {
                if word.is_looked_for_in(name) && word.is_in(line) {
                    faults.push(format!("{at}: `{}`: {}", word.text, word.remedy));
                }
            }
            if names_an_assistant_as_author(line) {
                faults.push(format!("{at}: an assistant is no author: remove the line"));
            }
        }
    }
    faults
}

impl Word {
    fn is_looked_for_in(&self, name: &str) -> bool {
        !name.starts_with(self.except) && name.ends_with(self.only)
    }

    fn is_in(&self, line: &str) -> bool {
        let letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        line.match_indices(self.text).any(|(at, found)| {
            let before = line[..at].chars().next_back();
            let after = line[at + found.len()..].chars().next();
            !(self.whole && (letter(before) || letter(after)))
        })
    }
}

fn names_an_assistant_as_author(line: &str) -> bool {
    let line = line.to_lowercase();
    AUTHORSHIP.iter().any(|phrase| {
        line.split_once(phrase)
            .is_some_and(|(_, rest)| ASSISTANTS.iter().any(|name| rest.contains(name)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_seen_in_a_line() {
        for word in WORDS {
            let text = format!("fine\nbefore {} after\n", word.text);
            let faults = check(&Tree::of(&[("a.rs", &text)]));
            assert_eq!(faults.len(), 1, "{}: {faults:?}", word.text);
            assert!(faults[0].starts_with("a.rs:2: "), "{faults:?}");
            let on_a_page = check(&Tree::of(&[("a.md", &text)])).len();
            assert_eq!(
                on_a_page,
                usize::from(word.only.is_empty()),
                "{}",
                word.text
            );
        }
    }

    #[test]
    fn a_word_inside_another_is_another() {
        let text = format!("MAS{}N {}_list", WORDS[1].text, WORDS[1].text);
        assert!(check(&Tree::of(&[("a.txt", &text)])).is_empty());
    }

    #[test]
    fn attacks_in_a_corpus_may_name_any_place() {
        let text = format!("look {}.ssh", WORDS[0].text);
        assert!(check(&Tree::of(&[("testing/corpora/paths.txt", &text)])).is_empty());
        assert_eq!(check(&Tree::of(&[("docs/a.md", &text)])).len(), 1);
    }

    #[test]
    fn an_assistant_is_a_client_and_not_an_author() {
        for phrase in AUTHORSHIP {
            let text = format!("{phrase} Claude");
            assert_eq!(check(&Tree::of(&[("a.md", &text)])).len(), 1, "{text}");
        }
        let text = "Claude Code, Cursor and Codex start it over stdio.";
        assert!(check(&Tree::of(&[("a.md", text)])).is_empty());
    }
}
