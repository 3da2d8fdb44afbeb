//! The log of a day.

use super::*;
use kenning_core::Code;

#[test]
fn entries_of_a_day_stand_in_one_file() {
    let place = Place::new();
    let append = |text| place.engine.omi().daily_append(&owner(), text).unwrap();
    assert_eq!(place.engine.omi().daily_read(&owner(), 0).unwrap(), "");
    assert_eq!(append("Session started"), "memory/2027-01-15.md");
    place.clock.advance(1_000);
    append("Session ended");
    let text = "\n\n## [2027-01-15T08:00:00]\n\nSession started\n\
                \n\n## [2027-01-15T08:00:01]\n\nSession ended\n";
    assert_eq!(place.file("memory/2027-01-15.md"), text);
    assert_eq!(place.engine.omi().daily_read(&owner(), 0).unwrap(), text);
    assert_eq!(
        place.file(".daily.hash"),
        format!(
            "{}  memory/2027-01-15.md\n",
            kenning_text::hex::sha256(text.as_bytes())
        )
    );
    assert_eq!(place.events(), ["DailyAppended", "DailyAppended"]);
    assert_eq!(place.found("ended"), ["omi:memory/2027-01-15.md"]);
    assert!(place.is_clean());
}

#[test]
fn recent_logs_are_listed_newest_first_and_nothing_else_is() {
    let place = Place::new();
    assert!(
        place
            .engine
            .omi()
            .daily_list(&owner(), 7)
            .unwrap()
            .is_empty()
    );
    for _ in 0..4 {
        place.engine.omi().daily_append(&owner(), "x").unwrap();
        place.clock.advance(DAY_MS);
    }
    place.put("memory/notes.md", "not a day");
    place.put("memory/2026-12-01.md", "long ago");
    std::fs::create_dir(place.omi().join("memory/2027-01-10.md")).unwrap();
    let list = |days| place.engine.omi().daily_list(&owner(), days).unwrap();
    let all = [18, 17, 16, 15].map(|it| format!("memory/2027-01-{it}.md"));
    // Today is the 19th, and nothing was written yet.
    assert_eq!(list(7), all);
    assert_eq!(list(3), all[..2]);
    assert!(list(0).is_empty());
    assert_eq!(list(400).last().unwrap(), "memory/2026-12-01.md");
    assert_eq!(list(u32::MAX).len(), 5);
    let read = |days| place.engine.omi().daily_read(&owner(), days).unwrap();
    assert!(read(1).contains("[2027-01-18"), "{}", read(1));
    assert_eq!(read(49), "long ago");
    assert_eq!((read(0), read(u32::MAX)), (String::new(), String::new()));
}

#[test]
fn two_processes_that_append_lose_nothing() {
    let place = Place::new();
    let other = open(
        place.omi(),
        place.root.path().join("data"),
        &place.clock,
        false,
    );
    std::thread::scope(|threads| {
        for (engine, who) in [(&place.engine, "one"), (&other, "other")] {
            threads.spawn(move || {
                for n in 0..25 {
                    engine
                        .omi()
                        .daily_append(&owner(), &format!("{who} {n}."))
                        .unwrap();
                }
            });
        }
    });
    let text = place.engine.omi().daily_read(&owner(), 0).unwrap();
    for who in ["one", "other"] {
        for n in 0..25 {
            assert_eq!(
                text.matches(&format!("\n{who} {n}.")).count(),
                1,
                "{who} {n}"
            );
        }
    }
    assert!(
        place
            .engine
            .omi()
            .context_integrity(&owner())
            .unwrap()
            .faults
            .is_empty()
    );
}

#[test]
fn an_entry_that_says_nothing_or_too_much_is_refused() {
    let place = Place::new();
    let code = |text: &str| {
        place
            .engine
            .omi()
            .daily_append(&owner(), text)
            .unwrap_err()
            .code
    };
    assert_eq!(code(" \n"), Code::InvalidInput);
    assert_eq!(code(&"x".repeat(9 << 20)), Code::TooLarge);
    assert_eq!(place.events(), [""; 0]);
}
