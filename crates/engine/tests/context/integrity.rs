//! Files against their checksums and their nodes.

use super::*;
use kenning_engine::FilesIntegrity;

impl Place {
    /// NOW.md, MEMORY.md and two logs, all recorded.
    fn furnished() -> Self {
        let place = Self::new();
        place.update("the task", &["a"]);
        place.put("MEMORY.md", "# Curated\n\nby hand\n");
        place.engine.daily_append(&owner(), "yesterday").unwrap();
        place.clock.advance(DAY_MS);
        place.engine.daily_append(&owner(), "today").unwrap();
        assert_eq!(place.check(), FilesIntegrity::default());
        place
    }

    fn check(&self) -> FilesIntegrity {
        self.engine.context_integrity(&owner()).unwrap()
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
        place.engine.daily_append(&owner(), "more").unwrap();
        place.engine.now_checkpoint(&owner(), None).unwrap();
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
            let found = engine.context_integrity(&owner()).unwrap();
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
fn a_file_that_is_changed_with_its_checksum_is_noticed_by_its_node() {
    let place = Place::furnished();
    let forged = place.file("NOW.md").replace("the task", "a forged task");
    place.put("NOW.md", &forged);
    place.put(
        ".now.hash",
        &kenning_memory::digest::sha256_hex(forged.as_bytes()),
    );
    let found = place.check();
    assert_eq!(found.faults, ["`NOW.md` is not what was last written here"]);
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
    place.engine.daily_append(&owner(), "more").unwrap();
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
        let found = engine.context_integrity(&caller).unwrap();
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
