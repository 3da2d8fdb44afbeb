//! The log as agents ask it: `kg_audit_query` and `kg_audit_checkpoint`.

use crate::shapes;
use kenning_core::{Code, Did, SeededRandom};
use kenning_engine::{Caller, check_export, check_proof};
use kenning_testing::{Fixture, Outside};
use kenning_tools::Selection;
use serde_json::{Value, json};

fn ask(fixture: &Fixture, tool: &str, arguments: Value) -> Value {
    let reply = fixture.call(tool, arguments);
    assert!(!reply.is_error(), "{tool}: {}", reply.text);
    reply.to_json()
}

fn types(answer: &Value) -> Vec<&str> {
    let events = answer["data"]["events"].as_array().unwrap().iter();
    events.map(|it| it["type"].as_str().unwrap()).collect()
}

/// A graph of two documents, one of which changes and one of which goes, and a memory.
fn busy_fixture() -> Fixture {
    let fixture = Fixture::without_vault(Selection::default());
    fixture.put_document("docs/one.md", "# One\n\nSee [[two]].\n");
    fixture.put_document("docs/two.md", "# Two\n");
    ask(&fixture, "kg_graph_generate", json!({}));
    fixture.clock.advance(60_000);
    fixture.put_document("docs/one.md", "# One\n\nChanged.\n");
    std::fs::remove_file(fixture.project().join("docs/two.md")).unwrap();
    ask(&fixture, "kg_graph_generate", json!({ "force": true }));
    fixture.clock.advance(60_000);
    ask(
        &fixture,
        "memory_store",
        json!({ "content": "the cache is cold on Mondays" }),
    );
    fixture
}

#[test]
fn answers_have_the_shape_of_the_contract_s_examples() {
    let fixture = busy_fixture();
    ask(&fixture, "kg_audit_checkpoint", json!({}));
    let named = json!({ "name": "pre-migration", "tags": ["migration", "backup"] });
    for (tool, arguments) in [
        (
            "kg_audit_query",
            json!({ "eventType": "NodeCreated", "includePayload": true, "limit": 1, "startTime": "2020-01-01" }),
        ),
        ("kg_audit_checkpoint", named),
    ] {
        let answer = ask(&fixture, tool, arguments);
        let faults = shapes::lacks(&shapes::kg_answer(tool), &answer, tool);
        assert_eq!(faults, Vec::<String>::new(), "{answer:#}");
    }
}

#[test]
fn the_documented_kinds_are_emitted_where_the_thing_happens() {
    let fixture = busy_fixture();
    ask(&fixture, "kg_audit_checkpoint", json!({ "name": "here" }));
    for (kind, n) in [
        ("NodeUpdated", 1),
        ("NodeDeleted", 1),
        ("CheckpointCreated", 1),
        ("MemoryStoredEvent", 1),
        ("WorkflowFailed", 0),
    ] {
        let answer = ask(&fixture, "kg_audit_query", json!({ "eventType": kind }));
        assert_eq!(types(&answer), vec![kind; n]);
        assert_eq!(answer["data"]["totalCount"], n);
    }
    // A memory is a node too: it is found under the contract's word, and says what it is.
    let created = ask(
        &fixture,
        "kg_audit_query",
        json!({ "eventType": "NodeCreated" }),
    );
    assert_eq!(types(&created), ["NodeCreated"; 3]);
    let kinds: Vec<&Value> = created["data"]["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["kind"])
        .collect();
    assert_eq!(
        kinds,
        [&Value::Null, &Value::Null, &json!("MemoryStoredEvent")]
    );
    let several = json!({ "eventType": "NodeDeleted, NodeUpdated" });
    assert_eq!(ask(&fixture, "kg_audit_query", several)["data"]["count"], 2);
}

#[test]
fn both_ends_of_the_time_range_belong_to_it() {
    let fixture = busy_fixture();
    let all = ask(&fixture, "kg_audit_query", json!({ "limit": 1000 }));
    let total = all["data"]["totalCount"].as_u64().unwrap();
    let at = |n: usize| {
        all["data"]["events"][n]["timestamp"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let last = usize::try_from(total).unwrap() - 1;
    let whole = json!({ "startTime": at(0), "endTime": at(last) });
    assert_eq!(
        ask(&fixture, "kg_audit_query", whole)["data"]["totalCount"],
        total
    );
    // Time stands still in between, so the first moment has several events.
    let first = json!({ "startTime": at(0), "endTime": at(0) });
    let first = ask(&fixture, "kg_audit_query", first)["data"]["totalCount"]
        .as_u64()
        .unwrap();
    let memory = json!({ "startTime": at(last), "eventType": "MemoryStoredEvent" });
    assert!(first > 1 && first < total, "{first} of {total}");
    assert_eq!(ask(&fixture, "kg_audit_query", memory)["data"]["count"], 1);
    let none = json!({ "startTime": "2200-01-01" });
    assert_eq!(
        ask(&fixture, "kg_audit_query", none)["data"]["totalCount"],
        0
    );
    // Oldest first, unless somebody asks otherwise.
    let times: Vec<u64> = all["data"]["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["hlc"]["physicalMs"].as_u64().unwrap())
        .collect();
    assert!(times.is_sorted());
    let newest = ask(
        &fixture,
        "kg_audit_query",
        json!({ "newestFirst": true, "limit": 1 }),
    );
    assert_eq!(newest["data"]["events"][0], all["data"]["events"][last]);
}

#[test]
fn a_cursor_goes_on_where_the_page_ended() {
    let fixture = busy_fixture();
    let all = ask(&fixture, "kg_audit_query", json!({ "limit": 1000 }));
    let ids = |answer: &Value| -> Vec<String> {
        let events = answer["data"]["events"].as_array().unwrap().iter();
        events
            .map(|it| it["id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(all["data"]["hasMore"], false);
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    for _ in 0..100 {
        let mut arguments = json!({ "limit": 2 });
        if !cursor.is_null() {
            arguments["cursor"] = cursor;
        }
        let page = ask(&fixture, "kg_audit_query", arguments);
        seen.extend(ids(&page));
        cursor = page["metadata"]["truncated"][0]["cursor"].clone();
        assert_eq!(page["data"]["hasMore"], !cursor.is_null(), "{page:#}");
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(seen, ids(&all));
}

#[test]
fn authors_nodes_and_texts_are_filters_too() {
    let fixture = busy_fixture();
    let updated = ask(
        &fixture,
        "kg_audit_query",
        json!({ "eventType": "NodeUpdated", "includePayload": true }),
    );
    let event = &updated["data"]["events"][0];
    let (author, node) = (&event["author"], &event["payload"]["nodeId"]);
    assert_eq!(event["signature"].as_str().unwrap().len(), 128);
    assert_eq!(
        event["parents"].as_array().unwrap().len(),
        event["parentCount"].as_u64().unwrap() as usize
    );
    let total = ask(&fixture, "kg_audit_query", json!({}))["data"]["totalCount"].clone();
    assert_eq!(
        ask(&fixture, "kg_audit_query", json!({ "author": author }))["data"]["totalCount"],
        total
    );
    let stranger = "did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK";
    assert_eq!(
        ask(&fixture, "kg_audit_query", json!({ "author": stranger }))["data"]["totalCount"],
        0
    );
    for id in [node.as_str().unwrap(), "docs/one.md"] {
        let about = ask(&fixture, "kg_audit_query", json!({ "nodeId": id }));
        let found = types(&about);
        assert!(
            found.contains(&"NodeCreated") && found.contains(&"NodeUpdated"),
            "{about:#}"
        );
        assert!(!found.contains(&"MemoryStoredEvent"), "{about:#}");
    }
    let text = ask(&fixture, "kg_audit_query", json!({ "text": "DOCS/TWO.md" }));
    assert_eq!(types(&text), ["NodeCreated", "NodeDeleted"]);
}

#[test]
fn what_is_wrong_with_a_question_is_named() {
    let fixture = Fixture::without_vault(Selection::default());
    for (arguments, expected) in [
        (
            json!({ "endTime": "soon" }),
            "`endTime`: `soon` is not a time since 1970",
        ),
        (
            json!({ "startTime": "2025-01-02", "endTime": "2025-01-01" }),
            "is after `endTime`",
        ),
        (
            json!({ "author": "agent-1" }),
            "`author`: `agent-1` is not the identifier of a key",
        ),
        (
            json!({ "nodeId": "nothing" }),
            "`nodeId`: `nothing` is not a node",
        ),
        (json!({ "limit": "many" }), "limit"),
    ] {
        let reply = fixture.call("kg_audit_query", arguments.clone());
        assert_eq!(reply.error.as_ref().unwrap().code, Code::InvalidInput);
        let value = reply.to_json();
        assert!(
            value["error"].as_str().unwrap().contains(expected),
            "{arguments}: {value}"
        );
    }
    // What is outside of the limits is brought inside, as everywhere in this contract.
    ask(&fixture, "memory_store", json!({ "content": "one" }));
    ask(&fixture, "memory_store", json!({ "content": "two" }));
    assert_eq!(
        ask(&fixture, "kg_audit_query", json!({ "limit": 0 }))["data"]["count"],
        1
    );
    let unknown = fixture.call("kg_audit_query", json!({ "eventType": "NodeMade" }));
    assert!(
        unknown.remarks.join(" ").contains("MemoryStoredEvent"),
        "{:?}",
        unknown.remarks
    );
}

#[test]
fn a_checkpoint_says_what_it_covers_and_who_signed_it() {
    let fixture = busy_fixture();
    let before = ask(&fixture, "kg_audit_query", json!({}))["data"]["totalCount"]
        .as_u64()
        .unwrap();
    let first = ask(&fixture, "kg_audit_checkpoint", json!({}))["data"].clone();
    assert_eq!(first["height"], 0);
    assert_eq!(first["stats"]["totalEventsAtCheckpoint"], before);
    assert_eq!(first["stats"]["previousCheckpointHeight"], Value::Null);
    assert_eq!(first["metadata"], json!({ "name": null, "tags": [] }));
    ask(&fixture, "memory_store", json!({ "content": "one more" }));
    let second = ask(
        &fixture,
        "kg_audit_checkpoint",
        json!({ "name": "n", "tags": ["a"] }),
    )["data"]
        .clone();
    let since = second["stats"]["eventsSincePreviousCheckpoint"]
        .as_u64()
        .unwrap();
    assert_eq!(second["height"], 1);
    assert_eq!(
        since,
        second["stats"]["totalEventsAtCheckpoint"].as_u64().unwrap() - before
    );
    assert!(since >= 2, "the event about the first one, and the memory");
    for field in ["eventRoot", "stateRoot"] {
        let root = second[field].as_str().unwrap();
        assert!(
            root.len() == 64 && root.bytes().all(|it| it.is_ascii_hexdigit()),
            "{root}"
        );
    }
    assert_eq!(second["validatorCount"], 1);
    let event =
        json!({ "eventType": "CheckpointCreated", "includePayload": true, "newestFirst": true });
    let payload = ask(&fixture, "kg_audit_query", event)["data"]["events"][0]["payload"].clone();
    assert_eq!(
        payload,
        json!({
            "type": "CheckpointCreated", "height": 1, "size": second["stats"]["totalEventsAtCheckpoint"],
            "eventRoot": second["eventRoot"], "stateRoot": second["stateRoot"],
            "name": "n", "tags": ["a"],
        })
    );
    let long = fixture.call("kg_audit_checkpoint", json!({ "name": "x".repeat(201) }));
    assert!(
        long.text.contains("`name` has more than 200 characters"),
        "{}",
        long.text
    );
}

#[test]
fn identifiers_are_shown_by_the_method_that_is_set() {
    let outside = Outside::of(&[("KENNING_DID_METHOD", "exo")]);
    let fixture = Fixture::without_vault_in(Selection::default(), outside);
    ask(&fixture, "memory_store", json!({ "content": "one" }));
    let answer = ask(&fixture, "kg_audit_query", json!({}));
    let author = answer["data"]["events"][0]["author"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(author.starts_with("did:exo:z6Mk"), "{author}");
    for shown in [author.clone(), author.replace("did:exo:", "did:key:")] {
        let answer = ask(&fixture, "kg_audit_query", json!({ "author": shown }));
        assert_eq!(answer["data"]["totalCount"], 1);
    }
    let wrong = Fixture::without_vault_in(
        Selection::default(),
        Outside::of(&[("KENNING_DID_METHOD", "E X")]),
    );
    let reply = wrong.call("kg_audit_query", json!({}));
    assert!(
        reply.text.contains("`KENNING_DID_METHOD`"),
        "{}",
        reply.text
    );
}

#[test]
fn a_page_that_is_too_long_to_read_at_once_says_that_there_is_more() {
    let fixture = Fixture::without_vault(Selection::default());
    for n in 0..300 {
        ask(
            &fixture,
            "memory_store",
            json!({ "content": format!("number {n}") }),
        );
    }
    let arguments =
        json!({ "limit": 1000, "includePayload": true, "eventType": "MemoryStoredEvent" });
    let page = ask(&fixture, "kg_audit_query", arguments);
    let shown = page["data"]["events"].as_array().unwrap().len();
    assert!((20..300).contains(&shown), "{shown}");
    assert_eq!(page["data"]["count"], shown);
    assert_eq!(page["data"]["totalCount"], 300);
    assert_eq!(page["data"]["hasMore"], true);
    assert_eq!(
        page["metadata"]["truncated"][0]["cursor"],
        format!("data.events:{shown}")
    );
}

fn export(fixture: &Fixture, caller: &Caller) -> String {
    let engine = fixture.board.engine();
    let (end, seal) = engine.export_seal(caller).unwrap();
    let events = engine.events_after(caller, 0, usize::try_from(end).unwrap());
    let lines = events.unwrap().into_iter().map(|it| it.json.to_string());
    let lines: Vec<String> = lines.chain([seal.to_string()]).collect();
    lines.join("\n") + "\n"
}

fn is_accepted(bytes: &[u8], key: &Did) -> bool {
    let bytes = bytes.to_vec();
    let open = || Ok(Box::new(std::io::Cursor::new(bytes.clone())) as _);
    check_export(&open, std::slice::from_ref(key)).is_ok_and(|it| it.report.is_clean())
}

#[test]
fn no_bit_of_an_export_or_a_proof_can_be_another_one() {
    let fixture = Fixture::without_vault(Selection::default());
    ask(&fixture, "memory_store", json!({ "content": "one" }));
    ask(
        &fixture,
        "memory_store",
        json!({ "content": "two", "tags": ["x"] }),
    );
    let (caller, key) = (fixture.owner(), fixture.log().signer().did().clone());
    let exported = export(&fixture, &caller);
    assert!(is_accepted(exported.as_bytes(), &key), "{exported}");
    let proof = fixture
        .board
        .engine()
        .prove_event(&caller, "1")
        .unwrap()
        .to_string();
    check_proof(&proof, &key).unwrap();
    let random = SeededRandom::new(11);
    for n in 0..10_000 {
        let (text, is_proof) = if n % 4 == 0 {
            (&proof, true)
        } else {
            (&exported, false)
        };
        let mut changed = text.clone().into_bytes();
        let at = random.below(changed.len() as u64) as usize;
        changed[at] ^= 1 << random.below(8);
        let accepted = match is_proof {
            true => {
                String::from_utf8(changed.clone()).is_ok_and(|it| check_proof(&it, &key).is_ok())
            }
            false => is_accepted(&changed, &key),
        };
        let part =
            String::from_utf8_lossy(&changed[at.saturating_sub(60)..(at + 20).min(changed.len())]);
        assert!(!accepted, "change {n}, byte {at}: {part}");
    }
}
