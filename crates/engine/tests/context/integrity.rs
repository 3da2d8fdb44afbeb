//! Files against their checksums and their nodes.

use super::*;
use kenning_engine::omi::FilesIntegrity;

impl Place {
    /// NOW.md, MEMORY.md and two logs, all recorded.
    fn furnished() -> Self {
        let place = Self::new();
        place.update("the task", &["a"]);
        place.put("MEMORY.md", "# Curated\n\nby hand\n");
        place
            .engine
            .omi()
            .daily_append(&owner(), "yesterday")
            .unwrap();
        place.clock.advance(DAY_MS);
        place.engine.omi().daily_append(&owner(), "today").unwrap();
        assert_eq!(place.check(), FilesIntegrity::default());
        place
    }

    fn check(&self) -> FilesIntegrity {
        self.engine.omi().context_integrity(&owner()).unwrap()
    }

    /// Flips one bit in the middle of a file.
    fn flip(&self, name: &str) {
        let path = self.omi().join(name);
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(path, bytes).unwrap();
    }
}

#[test]
fn where_there_is_nothing_nothing_is_wrong() {
    let place = Place::new();
    assert_eq!(place.check(), FilesIntegrity::default());
    assert!(!place.omi().exists());
}

#[test]
fn the_first_check_takes_files_as_they_are_and_records_them() {
    let place = Place::new();
    place.put("NOW.md", "# NOW\n\n## Current Task\nby hand\n");
    place.put("MEMORY.md", "curated");
    place.put("memory/2026-12-01.md", "a log from before");
    assert_eq!(place.check(), FilesIntegrity::default());
    for name in [".now.hash", ".memory.hash", ".daily.hash"] {
        assert!(place.omi().join(name).exists(), "{name}");
    }
    assert_eq!(place.found("curated"), ["omi:MEMORY.md"]);
    assert_eq!(
        place.events(),
        ["FileAdopted", "FileAdopted", "FileAdopted"]
    );
    assert_eq!(place.check(), FilesIntegrity::default());
    assert_eq!(
        place.events().len(),
        3,
        "what is recorded is not recorded again"
    );
    place.put("MEMORY.md", "curated by somebody else");
    assert!(!place.check().memory_md);
}

#[test]
fn what_is_written_here_stays_good() {
    let place = Place::furnished();
    for n in 0..3 {
        place.clock.advance(1_000);
        place.update(&format!("task {n}"), &["done"]);
        place.engine.omi().daily_append(&owner(), "more").unwrap();
        place.engine.omi().now_checkpoint(&owner(), None).unwrap();
        assert_eq!(place.check(), FilesIntegrity::default());
    }
    let place = place.reopened();
    assert_eq!(place.check(), FilesIntegrity::default());
}

#[test]
fn one_flipped_bit_in_any_file_is_noticed() {
    for (name, now_md, memory_md) in [
        ("NOW.md", false, true),
        (".now.hash", false, true),
        ("MEMORY.md", true, false),
        (".memory.hash", true, false),
        ("memory/2027-01-15.md", true, false),
        ("memory/2027-01-16.md", true, false),
        (".daily.hash", true, false),
    ] {
        let place = Place::furnished();
        place.flip(name);
        for engine in [&place.engine, &place.reader()] {
            let found = engine.omi().context_integrity(&owner()).unwrap();
            assert_eq!(
                (found.now_md, found.memory_md),
                (now_md, memory_md),
                "{name}"
            );
            assert!(!found.faults.is_empty(), "{name}");
        }
        assert!(
            !place.check().faults.is_empty(),
            "{name}: a check repairs nothing"
        );
    }
}

#[test]
fn every_byte_of_a_checksum_counts() {
    let place = Place::furnished();
    let reader = place.reader();
    for name in [".now.hash", ".memory.hash", ".daily.hash"] {
        let whole = place.file(name);
        for at in 0..whole.len() {
            let mut bytes = whole.clone().into_bytes();
            bytes[at] ^= 1;
            std::fs::write(place.omi().join(name), bytes).unwrap();
            let found = reader.omi().context_integrity(&owner()).unwrap();
            assert!(!found.faults.is_empty(), "{name}: byte {at}");
        }
        place.put(name, &whole);
    }
    assert_eq!(place.check(), FilesIntegrity::default());
}

#[test]
fn what_a_person_has_looked_at_can_be_accepted() {
    let place = Place::furnished();
    place.put("MEMORY.md", "# Curated\n\nanew\n");
    place.put("NOW.md", "# NOW\n\n## Current Task\nby hand\n");
    std::fs::remove_file(place.omi().join("memory/2027-01-15.md")).unwrap();
    place.put(".daily.hash", "nonsense\n");
    let found = place.check().faults;
    assert_eq!(found.len(), 4, "{found:?}");
    let error = place
        .engine
        .omi()
        .context_accept(&only(Scope::Read))
        .unwrap_err();
    assert_eq!(error.code, kenning_core::Code::Denied);
    assert_eq!(
        place.engine.omi().context_accept(&owner()).unwrap().len(),
        4
    );
    assert_eq!(place.check(), FilesIntegrity::default());
    assert_eq!(place.file(".daily.hash").lines().count(), 1);
    assert_eq!(place.found("anew"), ["omi:MEMORY.md"]);
    assert_eq!(
        place.revisions("omi:MEMORY.md").len(),
        2,
        "what was before is kept"
    );
    let events = place.events();
    assert_eq!(
        events[events.len() - 3..],
        ["FileAdopted", "FileAdopted", "FileRemoved"]
    );
    assert!(
        place
            .engine
            .omi()
            .context_accept(&owner())
            .unwrap()
            .is_empty()
    );
    assert!(place.is_clean());
}

#[test]
fn a_file_that_is_changed_with_its_checksum_is_noticed_by_its_node() {
    let place = Place::furnished();
    let forged = place.file("NOW.md").replace("the task", "a forged task");
    place.put("NOW.md", &forged);
    place.put(".now.hash", &kenning_text::hex::sha256(forged.as_bytes()));
    let found = place.check();
    assert_eq!(
        found.faults,
        ["`NOW.md` differs from what was last written"]
    );
    std::fs::remove_file(place.omi().join(".now.hash")).unwrap();
    assert!(
        !place.check().now_md,
        "nor does it help to remove the checksum"
    );
}

#[test]
fn a_file_that_is_gone_is_noticed_even_with_its_checksum() {
    for names in [
        &["NOW.md"][..],
        &["NOW.md", ".now.hash"],
        &["MEMORY.md", ".memory.hash"],
        &["memory/2027-01-15.md"],
        &["memory/2027-01-15.md", ".daily.hash"],
    ] {
        let place = Place::furnished();
        for name in names {
            std::fs::remove_file(place.omi().join(name)).unwrap();
        }
        assert_eq!(place.check().faults, [format!("`{}` is missing", names[0])]);
    }
    let place = Place::furnished();
    std::fs::remove_dir_all(place.omi()).unwrap();
    assert_eq!(place.check().faults.len(), 4);
}

#[test]
fn a_damaged_list_is_not_healed_by_the_next_entry() {
    let place = Place::furnished();
    let list = place.file(".daily.hash");
    place.put(".daily.hash", &format!("nonsense\n{list}"));
    place.engine.omi().daily_append(&owner(), "more").unwrap();
    let faults = place.check().faults;
    assert_eq!(faults.len(), 1);
    assert!(faults[0].contains("`.daily.hash`: line"), "{faults:?}");
}

#[test]
fn who_may_only_read_records_nothing() {
    let place = Place::new();
    place.put("NOW.md", "by hand");
    for (engine, caller) in [
        (&place.engine, only(Scope::Read)),
        (&place.reader(), owner()),
    ] {
        let found = engine.omi().context_integrity(&caller).unwrap();
        assert_eq!(found, FilesIntegrity::default());
    }
    let names: Vec<_> = std::fs::read_dir(place.omi()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(place.events(), [""; 0]);
}

#[test]
fn an_update_after_somebody_elses_change_makes_it_good_again() {
    let place = Place::furnished();
    place.put("NOW.md", "# NOW\n\n## Current Task\ntheirs\n");
    assert!(!place.check().now_md);
    place.update("ours again", &[]);
    assert_eq!(place.check(), FilesIntegrity::default());
}

#[test]
fn a_checksum_that_cannot_be_read_or_written_costs_no_entry() {
    for (sums, now_md, memory_md) in [(".now.hash", false, true), (".daily.hash", true, false)] {
        let place = Place::new();
        std::fs::create_dir_all(place.omi().join(sums)).unwrap();
        place.update("the task", &[]);
        place
            .engine
            .omi()
            .daily_append(&owner(), "an entry")
            .unwrap();
        assert_eq!(place.now().task, "the task");
        let found = place.check();
        assert_eq!(
            (found.now_md, found.memory_md),
            (now_md, memory_md),
            "{sums}"
        );
        std::fs::remove_dir(place.omi().join(sums)).unwrap();
        assert_eq!(place.check(), FilesIntegrity::default(), "{sums}");
        assert!(
            place.omi().join(sums).is_file(),
            "whoever comes next records it"
        );
    }
}

#[test]
fn a_log_that_was_changed_stays_suspect_when_it_is_appended_to() {
    let place = Place::new();
    let name = place
        .engine
        .omi()
        .daily_append(&owner(), "what happened")
        .unwrap();
    place.put(&name, &place.file(&name).replace("happened", "was forged"));
    place
        .engine
        .omi()
        .daily_append(&owner(), "and then")
        .unwrap();
    let found = place.check();
    assert!(!found.memory_md, "{found:?}");
    assert!(found.faults[0].contains(&name), "{found:?}");
    place.engine.omi().context_accept(&owner()).unwrap();
    assert_eq!(place.check(), FilesIntegrity::default());
}

#[test]
fn a_log_that_was_changed_stays_suspect_when_an_import_adds_to_it() {
    let place = Place::new();
    let omi = place.engine.omi();
    let name = omi.daily_append(&owner(), "what happened").unwrap();
    place.put(&name, &place.file(&name).replace("happened", "was forged"));
    let line = serde_json::json!({ "node": {
        "kind": "document", "key": format!("omi:{name}"),
        "body": "## [2027-01-15T07:00:00]\n\nearlier, elsewhere\n",
    }});
    let input = line.to_string();
    let imported = place.engine.import(&owner(), &mut input.as_bytes());
    assert_eq!(imported.unwrap().nodes(), 1);
    assert!(place.file(&name).starts_with("## [2027-01-15T07:00:00]"));
    let found = place.check();
    assert!(!found.memory_md, "{found:?}");
    assert!(found.faults[0].contains(&name), "{found:?}");
}
