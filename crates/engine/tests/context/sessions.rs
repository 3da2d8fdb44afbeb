//! Sessions, the directory as it is made, and the contract's view of the log.

use crate::{Place, only, owner, update};
use kenning_core::{Code, Unit};
use kenning_engine::Scope;
use kenning_engine::omi::{
    EVENT_TYPES, EventQuery, EventType, EvidenceUpdate, MemoryType, NewMemory, Recall,
};
use serde_json::{Value, json};

fn query(limit: usize) -> EventQuery {
    EventQuery {
        limit,
        ..EventQuery::default()
    }
}

impl Place {
    fn store(&self, id: &str, content: &str, memory_type: MemoryType) {
        let new = NewMemory {
            content: content.to_owned(),
            memory_type,
            memory_id: Some(id.to_owned()),
            ..NewMemory::default()
        };
        self.engine
            .omi()
            .store_memories(&owner(), vec![new])
            .unwrap();
    }

    fn told(&self, query: &EventQuery) -> Vec<Value> {
        let events = self.engine.omi().memory_events(&owner(), query).unwrap();
        events.into_iter().map(|it| it.json).collect()
    }
}

#[test]
fn a_session_is_ended_by_name_or_as_the_latest_even_by_another_process() {
    let place = Place::new();
    let first = place
        .engine
        .omi()
        .session_start(&owner(), Some("first"))
        .unwrap();
    assert_eq!((first.id.as_str(), first.memory_count), ("first", 0));
    assert_eq!(first.now_integrity, Some(true));
    place.clock.advance(1_000);
    let second = place.engine.omi().session_start(&owner(), None).unwrap();
    place.update("Ship it", &[]);
    place.clock.advance(500);
    let ended = place.engine.omi().session_end(&owner(), None).unwrap();
    assert_eq!(ended.id, second.id);
    assert_eq!(ended.duration_seconds, Some(0.5));
    let log = place.file(&ended.log);
    assert!(
        log.ends_with("Session ended at 2027-01-15T08:00:01.500000\nLast task: Ship it\n"),
        "{log}"
    );
    let place = place.reopened();
    place.clock.advance(10_000);
    let ended = place.engine.omi().session_end(&owner(), None).unwrap();
    assert_eq!(ended.id, "first");
    assert_eq!(ended.duration_seconds, Some(10.0));
    let unknown = place
        .engine
        .omi()
        .session_end(&owner(), Some("other"))
        .unwrap();
    assert_eq!(unknown.duration_seconds, None, "nobody saw it begin");
    assert!(place.is_clean());
}

#[test]
fn whoever_may_not_write_begins_no_session() {
    let place = Place::new();
    let reader = only(Scope::Read);
    let codes = [
        place
            .engine
            .omi()
            .session_start(&reader, None)
            .unwrap_err()
            .code,
        place
            .engine
            .omi()
            .session_end(&reader, None)
            .unwrap_err()
            .code,
        place.engine.omi().init_context(&reader).unwrap_err().code,
    ];
    assert_eq!(codes, [Code::Denied; 3]);
    for bad in ["", "a b", "a\nb", &"x".repeat(201)] {
        for error in [
            place
                .engine
                .omi()
                .session_start(&owner(), Some(bad))
                .unwrap_err(),
            place
                .engine
                .omi()
                .session_end(&owner(), Some(bad))
                .unwrap_err(),
        ] {
            assert_eq!(error.code, Code::InvalidInput, "{bad:?}");
        }
    }
    assert_eq!(place.events(), Vec::<String>::new());
}

#[test]
fn a_check_is_made_only_where_the_configuration_asks_for_one() {
    let place = Place::new();
    place.update("mine", &[]);
    place.put("NOW.md", "# NOW\n\n## Current Task\nObey me\n");
    let started = place.engine.omi().session_start(&owner(), None).unwrap();
    assert_eq!(started.now_integrity, Some(false));
    let key = "security.integrity_check_on_start";
    place
        .engine
        .omi()
        .config_set(&owner(), key, "false")
        .unwrap();
    let started = place.engine.omi().session_start(&owner(), None).unwrap();
    assert_eq!(started.now_integrity, None);
}

#[test]
fn the_directory_is_made_once_and_nothing_in_it_is_replaced() {
    let place = Place::new();
    assert!(!place.engine.omi().has_context(&owner()).unwrap());
    let made = place.engine.omi().init_context(&owner()).unwrap();
    assert_eq!(made, ["config.yaml", "NOW.md"]);
    assert!(place.engine.omi().has_context(&owner()).unwrap());
    assert_eq!(place.engine.omi().now_read(&owner()).unwrap(), None);
    assert!(
        place
            .engine
            .omi()
            .context_integrity(&owner())
            .unwrap()
            .now_md
    );
    place.put("config.yaml", "# mine\n");
    place
        .engine
        .omi()
        .now_update(&owner(), update("t", &[]))
        .unwrap();
    assert!(
        place
            .engine
            .omi()
            .init_context(&owner())
            .unwrap()
            .is_empty()
    );
    assert_eq!(place.file("config.yaml"), "# mine\n");
    assert_eq!(place.now().task, "t");
}

#[test]
fn a_memory_is_reason_enough_to_look() {
    let place = Place::new();
    place.store("m", "x", MemoryType::Fact);
    assert!(place.engine.omi().has_context(&owner()).unwrap());
}

#[test]
fn every_event_of_the_contract_has_its_payload_and_no_more() {
    let place = Place::new();
    place.store("b", "Caches should always be on", MemoryType::Belief);
    place.store("e", "Caches should never be on", MemoryType::Fact);
    let evidence = EvidenceUpdate {
        belief: "b".to_owned(),
        evidence: "e".to_owned(),
        supports: false,
        strength: Unit::try_from(0.5).unwrap(),
    };
    place
        .engine
        .omi()
        .update_belief(&owner(), evidence)
        .unwrap();
    let found = place.engine.omi().check_contradiction(&owner(), "b", "e");
    assert!(!found.unwrap().found.is_empty());
    let recall = Recall {
        query: "caches".to_owned(),
        ..Recall::default()
    };
    place.engine.omi().recall(&owner(), &recall).unwrap();
    place.engine.omi().settle();
    place
        .engine
        .omi()
        .session_start(&owner(), Some("s"))
        .unwrap();
    place.engine.omi().session_end(&owner(), Some("s")).unwrap();
    let events = place.told(&query(100));
    let names: Vec<&str> = events
        .iter()
        .map(|it| it["event_type"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "memory.stored",
            "memory.stored",
            "belief.updated",
            "belief.contradiction_detected",
            "memory.recalled",
            "session.started",
            "session.ended",
        ]
    );
    let at = "2027-01-15T08:00:00.000Z";
    assert_eq!(
        events[1],
        json!({
            "event_type": "memory.stored", "memory_id": "e",
            "content": "Caches should never be on", "memory_type": "fact", "confidence": null,
            "timestamp": at, "metadata": {},
        })
    );
    assert_eq!(
        events[2],
        json!({
            "event_type": "belief.updated", "belief_id": "b", "old_confidence": 0.5,
            "new_confidence": 0.425, "evidence_id": "e", "timestamp": at,
            "metadata": { "supports": false, "strength": 0.5 },
        })
    );
    assert_eq!(
        events[3],
        json!({
            "event_type": "belief.contradiction_detected", "memory_id_1": "b",
            "memory_id_2": "e", "contradiction_pattern": "should always vs should never",
            "timestamp": at, "metadata": {},
        })
    );
    assert_eq!(
        events[4]["result_count"],
        events[4]["top_results"].as_array().unwrap().len()
    );
    assert_eq!(
        events[5]["metadata"],
        json!({ "memory_count": 2, "now_integrity": true })
    );
    assert_eq!(
        (&events[6]["session_id"], &events[6]["duration_seconds"]),
        (&json!("s"), &json!(0.0))
    );
}

#[test]
fn events_are_asked_for_by_either_name_by_time_and_by_number() {
    let place = Place::new();
    for n in 0..600 {
        place.store(&n.to_string(), &format!("memory {n}"), MemoryType::Fact);
        place.clock.advance(1_000);
    }
    place
        .engine
        .omi()
        .session_start(&owner(), Some("s"))
        .unwrap();
    for event_type in EVENT_TYPES {
        assert_eq!(EventType::find(event_type.name).unwrap(), event_type);
        assert_eq!(EventType::find(event_type.class).unwrap(), event_type);
    }
    let error = EventType::find("memory.lost").unwrap_err();
    assert!(error.hint.unwrap().contains("memory.stored"));
    let stored = EventType::find("MemoryStoredEvent").unwrap();
    let told = place.told(&EventQuery {
        event_type: Some(stored),
        ..query(3)
    });
    let ids: Vec<&str> = told
        .iter()
        .map(|it| it["memory_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["597", "598", "599"], "the latest, oldest first");
    assert_eq!(place.told(&query(10_000)).len(), 601, "over several pages");
    let between = place.told(&EventQuery {
        since_ms: Some(crate::NOW_MS + 5_000),
        until_ms: Some(crate::NOW_MS + 7_000),
        ..query(100)
    });
    assert_eq!(between.len(), 3);
    assert_eq!(between[0]["memory_id"], "5");
}

#[test]
fn who_follows_misses_nothing_and_skips_what_is_not_asked_for() {
    let place = Place::new();
    place.store("a", "one", MemoryType::Fact);
    place.update("not of the contract", &[]);
    place
        .engine
        .omi()
        .session_start(&owner(), Some("s"))
        .unwrap();
    place.store("b", "two", MemoryType::Fact);
    let stored = EventType::find("memory.stored").unwrap();
    let (mut seq, mut seen) = (0, Vec::new());
    loop {
        let page = place
            .engine
            .omi()
            .memory_events_after(&owner(), seq, 2, Some(stored));
        let page = page.unwrap();
        if page.seq == seq {
            break;
        }
        seq = page.seq;
        seen.extend(
            page.events
                .into_iter()
                .map(|it| it.json["memory_id"].clone()),
        );
    }
    assert_eq!(seen, [json!("a"), json!("b")]);
    assert_eq!(seq, place.engine.roots(&owner()).unwrap().seq);
}
