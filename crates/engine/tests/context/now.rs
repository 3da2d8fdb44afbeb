//! What an agent is doing.

use super::*;
use kenning_core::Code;
use kenning_memory::capsule::Capsule;
use kenning_memory::now::DEFAULT;

#[test]
fn nothing_is_read_where_nothing_was_written() {
    let place = Place::new();
    assert_eq!(place.engine.omi().now_read(&owner()).unwrap(), None);
    assert!(!place.omi().exists(), "reading makes no directory");
    for text in ["", DEFAULT, &DEFAULT.replace('\n', "\r\n"), "  \n"] {
        place.put("NOW.md", text);
        assert_eq!(
            place.engine.omi().now_read(&owner()).unwrap(),
            None,
            "{text:?}"
        );
    }
}

#[test]
fn an_update_writes_the_file_of_the_contract_with_checksum_and_heartbeat() {
    let place = Place::new();
    let update = NowUpdate {
        task: Some("Implementing authentication middleware".to_owned()),
        completions: Some(vec!["Fixed migration scripts".to_owned()]),
        pending: Some(vec!["JWT or sessions".to_owned()]),
        files: Some(vec!["src/auth.py".to_owned()]),
    };
    place.engine.omi().now_update(&owner(), update).unwrap();
    let text = "\
# NOW - 2027-01-15T08:00:00

## Current Task
Implementing authentication middleware

## Recent Completions
- [x] Fixed migration scripts

## Pending Decisions
- [ ] JWT or sessions

## Key Files
- `src/auth.py`
";
    assert_eq!(place.file("NOW.md"), text);
    assert_eq!(
        place.file(".now.hash"),
        kenning_text::hex::sha256(text.as_bytes())
    );
    assert_eq!(
        place.file("heartbeat-state.json"),
        "{\n  \"last_now_update\": \"2027-01-15T08:00:00\"\n}"
    );
    assert_eq!(place.events(), ["NowUpdated"]);
    assert_eq!(
        place.found("authentication"),
        ["omi:NOW.md"],
        "it is found like a note"
    );
    assert!(place.is_clean());
}

#[test]
fn what_is_left_out_stays_and_completions_are_added() {
    let place = Place::new();
    // The default's own words are nobody's task.
    place.put("NOW.md", DEFAULT);
    place.update("one", &["a"]);
    place.clock.advance(1_500);
    let pending = NowUpdate {
        pending: Some(vec!["p".to_owned()]),
        ..NowUpdate::default()
    };
    place.engine.omi().now_update(&owner(), pending).unwrap();
    place.update("two\n## lines", &["b"]);
    let now = place.now();
    assert_eq!(now.task, "two\n## lines");
    assert_eq!(
        (now.completions, now.pending),
        (vec!["a".to_owned(), "b".to_owned()], vec!["p".to_owned()])
    );
    assert_eq!(now.timestamp, "2027-01-15T08:00:01.500000");
}

#[test]
fn the_configuration_bounds_the_file_and_a_mistake_in_it_costs_nothing() {
    let place = Place::new();
    place.put("config.yaml", "storage:\n  max_now_tokens: 60\n");
    for n in 0..20 {
        place.update("task", &[&format!("finished piece number {n}")]);
    }
    let now = place.now();
    assert!(now.tokens() <= 60, "{}", now.tokens());
    assert!(now.completions.len() > 1);
    assert_eq!(now.completions.last().unwrap(), "finished piece number 19");
    place.put("config.yaml", "storage: [");
    place.update("still written", &[]);
    assert_eq!(place.now().task, "still written");
    let faults = place.engine.doctor().unwrap().faults;
    assert!(faults[0].contains("config.yaml"), "{faults:?}");
}

#[test]
fn two_processes_that_add_completions_lose_none() {
    let place = Place::new();
    place.put("config.yaml", "storage:\n  max_now_tokens: 100000\n");
    let other = open(
        place.omi(),
        place.root.path().join("data"),
        &place.clock,
        false,
    );
    let add = |engine: &Engine, who: &str| {
        for n in 0..100 {
            let update = NowUpdate {
                completions: Some(vec![format!("{who} {n}")]),
                ..NowUpdate::default()
            };
            engine.omi().now_update(&owner(), update).unwrap();
        }
    };
    std::thread::scope(|threads| {
        threads.spawn(|| add(&place.engine, "one"));
        threads.spawn(|| add(&other, "other"));
    });
    let completions = place.now().completions;
    assert_eq!(completions.len(), 200);
    for who in ["one ", "other "] {
        let own: Vec<_> = completions
            .iter()
            .filter_map(|it| it.strip_prefix(who))
            .collect();
        assert_eq!(own, (0..100).map(|n| n.to_string()).collect::<Vec<_>>());
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
fn what_a_person_wrote_is_kept_in_the_history() {
    let place = Place::new();
    place.update("ours", &["a"]);
    let theirs = place.file("NOW.md").replace("ours", "theirs") + "\n## Notes\nmine\n";
    place.put("NOW.md", &theirs);
    assert_eq!(place.now().task, "theirs", "the file wins");
    place.clock.advance(1_000);
    let completions = NowUpdate {
        completions: Some(vec!["b".to_owned()]),
        ..NowUpdate::default()
    };
    place
        .engine
        .omi()
        .now_update(&owner(), completions)
        .unwrap();
    let now = place.now();
    assert_eq!((now.task.as_str(), now.completions.len()), ("theirs", 2));
    assert_eq!(
        now.other, "## Notes\nmine",
        "and what we know nothing of stays"
    );
    assert_eq!(place.revisions("omi:NOW.md")[1], theirs);
    assert_eq!(place.events(), ["NowUpdated", "FileAdopted", "NowUpdated"]);
    assert!(place.is_clean());
}

#[test]
fn a_file_without_a_time_has_the_time_it_was_changed() {
    let place = Place::new();
    place.put("NOW.md", "# NOW\n\n## Current Task\nby hand\n");
    let timestamp = place.now().timestamp;
    assert!(
        kenning_memory::stamp::parse(&timestamp).is_some(),
        "{timestamp}"
    );
}

#[test]
fn every_update_leaves_a_capsule_that_is_whole() {
    let place = Place::new();
    place.update("the intent", &["a"]);
    let node = place.kernel.log().read(&Space::default(), |tx| {
        tx.node_by_key("", Kind::Document, "omi:NOW.md", When::Now)
    });
    let node = node.unwrap().unwrap();
    assert_eq!(node.props["source"], "omi");
    let capsule = Capsule::from_json(&node.props["capsule"]).unwrap();
    assert!(capsule.is_whole() && capsule.is_of("the intent"));
    assert_eq!(capsule.partial_plan["recent_completions"][0], "a");
    let event = place.engine.events_after(&owner(), 0, 1).unwrap().remove(0);
    assert_eq!(event.json["data"]["capsule"]["checksum"], capsule.checksum);
}

#[test]
fn checkpoints_are_copies_with_a_reason_and_names_of_their_own() {
    let place = Place::new();
    place.update("the task", &[]);
    let copy = |reason| place.engine.omi().now_checkpoint(&owner(), reason).unwrap();
    assert_eq!(copy(None), "NOW-20270115-080000.md");
    assert_eq!(copy(Some("by hand")), "NOW-20270115-080000-2.md");
    let text = place.file("NOW-20270115-080000.md");
    let head = "<!-- Checkpoint: pre-compression at 2027-01-15T08:00:00 -->\n\n# NOW - ";
    assert!(text.starts_with(head), "{text}");
    assert!(text.ends_with(&place.file("NOW.md")));
    assert_eq!(
        place.found("task"),
        ["omi:NOW.md"],
        "copies are not found beside it"
    );
    assert_eq!(
        place.events(),
        ["NowUpdated", "NowCheckpointed", "NowCheckpointed"]
    );
    assert!(place.is_clean());
}

#[test]
fn who_may_not_is_told_so_and_nothing_is_made() {
    let place = Place::new();
    let error = place
        .engine
        .omi()
        .now_update(&only(Scope::Read), update("x", &[]));
    assert_eq!(error.unwrap_err().code, Code::Denied);
    let error = place
        .reader()
        .omi()
        .now_update(&owner(), update("x", &[]))
        .unwrap_err();
    assert!(error.to_string().contains("--read-only"), "{error}");
    let stranger = Caller::new(Principal::owner("team".parse().unwrap()));
    let error = place.engine.omi().now_read(&stranger).unwrap_err();
    assert_eq!(
        error.message,
        "the space `team` has no directory for NOW.md"
    );
    assert!(!place.omi().exists());
}

#[test]
fn a_directory_that_cannot_be_made_is_named_by_its_variable() {
    let place = Place::new();
    std::fs::write(place.omi(), "a file is in the way").unwrap();
    for error in [
        place
            .engine
            .omi()
            .now_update(&owner(), update("x", &[]))
            .unwrap_err(),
        place.engine.omi().daily_append(&owner(), "x").unwrap_err(),
        place.engine.omi().now_read(&owner()).unwrap_err(),
    ] {
        assert!(error.message.contains("OMI_BASE_PATH"), "{error}");
        assert_eq!(error.code, Code::Unavailable);
    }
    assert_eq!(place.events(), [""; 0]);
    let faults = place.engine.doctor().unwrap().faults;
    assert!(
        faults.iter().any(|it| it.contains("OMI_BASE_PATH")),
        "{faults:?}"
    );
}

#[test]
fn what_is_too_long_is_refused_before_anything_is_kept() {
    let place = Place::new();
    place.update("before", &[]);
    let error = place
        .engine
        .omi()
        .now_update(&owner(), update(&"x".repeat(2 << 20), &[]))
        .unwrap_err();
    assert_eq!(error.code, Code::TooLarge);
    assert_eq!(place.now().task, "before");
    assert_eq!(place.events(), ["NowUpdated"]);
}

#[test]
fn where_other_machines_write_too_locks_lie_beside_the_files() {
    let place = Place::new();
    let data = place.root.path().join("data-of-this-machine");
    let shared = Options {
        shared: true,
        ..options(place.omi(), data.clone(), &place.clock, false)
    };
    let engine = Engine::open(shared).unwrap();
    engine.omi().now_update(&owner(), update("x", &[])).unwrap();
    engine.omi().daily_append(&owner(), "y").unwrap();
    assert!(
        engine
            .omi()
            .context_integrity(&owner())
            .unwrap()
            .faults
            .is_empty()
    );
    let locks: Vec<_> = std::fs::read_dir(place.omi().join(".kenning/locks"))
        .unwrap()
        .collect();
    assert!(
        locks.is_empty(),
        "a lock that is free leaves no file: {locks:?}"
    );
    assert!(!data.join("locks").exists());
}

#[test]
fn files_have_the_time_of_the_place_and_a_day_ends_at_its_midnight() {
    let place = Place::new();
    let east = jiff::tz::TimeZone::fixed(jiff::tz::offset(14));
    let there = Options {
        zone: east,
        ..options(
            place.omi(),
            place.root.path().join("data-there"),
            &place.clock,
            false,
        )
    };
    let engine = Engine::open(there).unwrap();
    place.clock.advance(3 * 3_600_000);
    let name = engine
        .omi()
        .daily_append(&owner(), "after midnight there")
        .unwrap();
    assert_eq!(name, "memory/2027-01-16.md");
    engine.omi().now_update(&owner(), update("x", &[])).unwrap();
    assert!(
        place
            .file("NOW.md")
            .starts_with("# NOW - 2027-01-16T01:00:00\n")
    );
}
