//! What a killed process leaves.

use super::*;
use kenning_core::Hash;
use serde_json::json;

impl Place {
    /// Leaves what a process leaves that was killed after its commit.
    fn leave_intent(&self, name: &str, content: &str, before: Option<&str>) {
        let key = format!("omi:{name}");
        let intent = json!({
            "root": self.omi().to_str().unwrap(), "name": name, "key": key,
            "bytes_max": 1_000_000, "content": content,
            "before": before.map(|it| Hash::of(it.as_bytes()).to_string()),
        });
        let intent = intent.to_string();
        let left = self.kernel.log().write(&Space::default(), move |tx| {
            tx.set("intents", &key, intent.as_bytes())
        });
        left.unwrap();
    }

    fn intents(&self) -> usize {
        self.kernel.later().flush();
        let read = self
            .kernel
            .log()
            .read(&Space::default(), |tx| tx.list("intents"));
        read.unwrap().len()
    }
}

/// The text that an update makes, and the one before it.
fn two_texts() -> (String, String) {
    let place = Place::new();
    place.update("one", &[]);
    let before = place.file("NOW.md");
    place.update("two", &[]);
    (before, place.file("NOW.md"))
}

#[test]
fn a_write_that_was_committed_is_carried_out_on_the_next_open() {
    let (before, after) = two_texts();
    let place = Place::new();
    place.update("one", &[]);
    assert_eq!(place.file("NOW.md"), before);
    place.update("two", &[]);
    // The node has the new text, file and checksum the old one.
    place.put("NOW.md", &before);
    place.put(".now.hash", &kenning_text::hex::sha256(before.as_bytes()));
    place.leave_intent("NOW.md", &after, Some(&before));
    let place = place.reopened();
    assert_eq!(place.file("NOW.md"), after);
    assert_eq!(place.intents(), 0);
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
fn a_checksum_that_was_not_written_is_written_by_the_next_open() {
    let (before, after) = two_texts();
    let place = Place::new();
    place.update("one", &[]);
    let old_sum = place.file(".now.hash");
    place.update("two", &[]);
    place.put(".now.hash", &old_sum);
    place.leave_intent("NOW.md", &after, Some(&before));
    let place = place.reopened();
    assert_ne!(place.file(".now.hash"), old_sum);
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
fn a_living_process_carries_it_out_before_it_reads_checks_or_writes() {
    let (before, after) = two_texts();
    let leave = || {
        let place = Place::new();
        place.update("one", &[]);
        place.update("two", &[]);
        place.put("NOW.md", &before);
        place.leave_intent("NOW.md", &after, Some(&before));
        place
    };
    assert_eq!(leave().now().task, "two");
    assert!(
        leave()
            .engine
            .omi()
            .context_integrity(&owner())
            .unwrap()
            .now_md
    );
    let place = leave();
    place
        .engine
        .omi()
        .daily_append(&owner(), "an entry")
        .unwrap();
    assert_eq!(place.file("NOW.md"), after);
    assert_eq!(place.intents(), 0);
    let place = leave();
    place.update("three", &["c"]);
    assert_eq!(place.now().completions, ["c"]);
    assert_eq!(
        place.revisions("omi:NOW.md").len(),
        3,
        "nothing foreign was seen"
    );
}

#[test]
fn an_entry_that_was_committed_is_in_the_log_and_in_the_list() {
    let place = Place::new();
    place.engine.omi().daily_append(&owner(), "first").unwrap();
    let before = place.file("memory/2027-01-15.md");
    let after = format!("{before}\n\n## [2027-01-15T08:00:01]\n\nsecond\n");
    place.leave_intent("memory/2027-01-15.md", &after, Some(&before));
    place.clock.advance(DAY_MS);
    // The entry of another day must not bring back an older list.
    place
        .engine
        .omi()
        .daily_append(&owner(), "next day")
        .unwrap();
    assert_eq!(place.file("memory/2027-01-15.md"), after);
    assert_eq!(place.file(".daily.hash").lines().count(), 2);
    let sum = kenning_text::hex::sha256(after.as_bytes());
    assert!(place.file(".daily.hash").contains(&sum));
}

#[test]
fn somebody_elses_file_is_never_overwritten_by_an_old_intent() {
    let (before, after) = two_texts();
    let place = Place::new();
    place.update("one", &[]);
    place.put("NOW.md", "theirs");
    place.leave_intent("NOW.md", &after, Some(&before));
    let place = place.reopened();
    assert_eq!(place.file("NOW.md"), "theirs");
    assert_eq!(place.revisions("omi:NOW.md").last().unwrap(), "theirs");
    assert_eq!(place.intents(), 0);
}

#[test]
fn another_directory_is_none_of_our_business() {
    let place = Place::new();
    place.update("one", &[]);
    let elsewhere = place.root.path().join("elsewhere");
    let intent = json!({
        "root": elsewhere.to_str().unwrap(), "name": "memory/2027-01-15.md",
        "key": "omi:memory/2027-01-15.md", "bytes_max": 1_000, "content": "x", "before": null,
    });
    let intent = intent.to_string();
    let left = place.kernel.log().write(&Space::default(), move |tx| {
        tx.set("intents", "omi:memory/2027-01-15.md", intent.as_bytes())
    });
    left.unwrap();
    let place = place.reopened();
    assert_eq!(place.intents(), 1);
    assert!(!elsewhere.exists() && !place.omi().join("memory").exists());
}

#[test]
fn who_may_not_write_carries_out_nothing() {
    let (before, after) = two_texts();
    let place = Place::new();
    place.update("one", &[]);
    place.leave_intent("NOW.md", &after, Some(&before));
    let reader = place.reader();
    assert_eq!(
        reader.omi().now_read(&owner()).unwrap().unwrap().task,
        "one"
    );
    assert_eq!(place.intents(), 1);
}
