//! What a careful user asks twice: the same evidence again, a type, a source or a name that is nearly right.

use kenning_testing::Fixture;
use serde_json::{Value, json};
use std::fs;

fn answer(fixture: &Fixture, tool: &str, arguments: Value) -> Value {
    let reply = fixture.call(tool, arguments);
    assert!(!reply.is_error(), "{tool}: {}", reply.text);
    reply.to_json()
}

#[test]
fn the_same_evidence_counts_once_and_another_strength_is_another_judgement() {
    let fixture = Fixture::new();
    for (id, kind) in [("b", "belief"), ("e", "experience")] {
        let memory =
            json!({ "content": format!("Memory {id}"), "memory_id": id, "memory_type": kind });
        answer(&fixture, "memory_store", memory);
    }
    let bring = |supports: bool, strength: f64| {
        let update = json!({
            "belief_id": "b", "evidence_memory_id": "e", "supports": supports, "strength": strength,
        });
        let reply = fixture.call("belief_update", update);
        let confidence = reply.to_json()["new_confidence"].as_f64().unwrap();
        (confidence, !reply.remarks.is_empty())
    };
    let (first, is_known) = bring(true, 0.9);
    assert!((first - 0.5675).abs() < 1e-9 && !is_known, "{first}");
    assert_eq!(bring(true, 0.9), (first, true), "the same call again");
    let (stronger, is_known) = bring(true, 1.0);
    assert!(stronger > first && !is_known);
    let (weaker, is_known) = bring(false, 0.9);
    assert!(weaker < stronger && !is_known);
    let updates = fixture.event_kinds();
    let n_updates = updates.iter().filter(|it| *it == "BeliefUpdatedEvent");
    assert_eq!(n_updates.count(), 3, "{updates:?}");
}

#[test]
fn a_type_or_a_source_that_does_not_exist_is_said_to_be_none() {
    let fixture = Fixture::new();
    let organizations = fixture.vault().join("Organizations");
    fs::create_dir_all(&organizations).unwrap();
    fs::write(organizations.join("Kelp Watch.md"), "# Kelp Watch\n").unwrap();
    let asked = |hint: &str| {
        let asked = json!({ "label": "Kelp Watch", "type_hint": hint });
        let reply = fixture.call("resolve_entity", asked);
        assert!(!reply.is_error(), "{}", reply.text);
        (reply.to_json()["is_new"] == true, reply.remarks.join("\n"))
    };
    let (is_new, said) = asked("Organisation of sorts");
    assert!(
        is_new && said.contains("`Organisation of sorts` is none of the types: "),
        "{said}"
    );
    assert!(
        said.contains("`Kelp Watch` is known as Organization: orn:"),
        "{said}"
    );
    let (is_new, said) = asked("Person");
    assert!(
        is_new && said.starts_with("`Kelp Watch` is known as Organization: "),
        "{said}"
    );
    assert_eq!(asked("Organization"), (false, String::new()));

    let found = answer(
        &fixture,
        "knowledge_search",
        json!({ "query": "kelp", "source": "wiki" }),
    );
    assert_eq!(
        found["warnings"],
        json!([
            "`source`: nothing is from `wiki`; sources are vault, github, email, web, memory, project"
        ])
    );
    let found = answer(
        &fixture,
        "knowledge_search",
        json!({ "query": "zzz", "source": "github-sensor" }),
    );
    assert_eq!(found.get("warnings"), None);
}

#[test]
fn a_note_is_read_by_the_name_that_links_have_for_it() {
    let fixture = Fixture::new();
    let people = fixture.vault().join("People");
    fs::create_dir_all(&people).unwrap();
    fs::write(people.join("Dr. Zed.md"), "# Zed\n").unwrap();
    for path in ["People/Dr. Zed", "People/Dr. Zed.md"] {
        assert_eq!(
            fixture
                .call("vault_read_note", json!({ "path": path }))
                .text,
            "# Zed\n"
        );
    }
    let missing = fixture.call("vault_read_note", json!({ "path": "People/Nobody" }));
    assert!(
        missing.text.starts_with("File not found: People/Nobody"),
        "{}",
        missing.text
    );
}
