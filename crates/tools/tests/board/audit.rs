//! The log as agents ask it: `kg_audit_query` and `kg_audit_checkpoint`.

use crate::shapes;
use kenning_core::Code;
use kenning_testing::{Fixture, Outside};
use kenning_tools::Selection;
use serde_json::{Value, json};

pub(crate) fn ask(fixture: &Fixture, tool: &str, arguments: Value) -> Value {
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
    // What is outside of the limits is brought inside, as everywhere in this contract, and that is said.
    ask(&fixture, "memory_store", json!({ "content": "one" }));
    ask(&fixture, "memory_store", json!({ "content": "two" }));
    for (limit, count, remark) in [
        (0, 1, "`limit` is from 1 to 1000: 1 is used"),
        (1001, 2, "`limit` is from 1 to 1000: 1000 is used"),
        (1000, 2, ""),
    ] {
        let reply = fixture.call("kg_audit_query", json!({ "limit": limit }));
        assert_eq!(reply.to_json()["data"]["count"], count);
        assert_eq!(reply.remarks.join(" "), remark);
    }
    let unknown = fixture.call("kg_audit_query", json!({ "eventType": "NodeMade" }));
    assert!(
        unknown.remarks.join(" ").contains("MemoryStoredEvent"),
        "{:?}",
        unknown.remarks
    );
}

#[test]
fn a_type_in_another_case_or_with_a_typing_error_is_understood() {
    let fixture = Fixture::without_vault(Selection::default());
    ask(&fixture, "memory_store", json!({ "content": "one" }));
    for (asked, count, remark) in [
        ("nodecreated", 1, "`nodecreated` is read as `NodeCreated`"),
        (
            "NODEDELETED, memorystoredevent",
            1,
            "`memorystoredevent` is read as `MemoryStoredEvent`",
        ),
        (
            "NodeCreated, memorystoredevent",
            1,
            "`memorystoredevent` is read as `MemoryStoredEvent`",
        ),
        (
            "NodeCraeted",
            0,
            "`NodeCraeted` is not a type of event in this log. Did you mean `NodeCreated`?",
        ),
        (
            "WorkflowFailed",
            0,
            "no event of type WorkflowFailed has happened",
        ),
    ] {
        let reply = fixture.call("kg_audit_query", json!({ "eventType": asked }));
        let remarks = reply.remarks.join("; ");
        assert_eq!(reply.to_json()["data"]["totalCount"], count, "{asked}");
        assert!(remarks.contains(remark), "{asked}: {remarks}");
    }
    let exact = fixture.call("kg_audit_query", json!({ "eventType": "NodeCreated" }));
    assert_eq!(exact.remarks, Vec::<String>::new());
}

#[test]
fn a_date_as_the_end_is_all_of_that_day() {
    let fixture = Fixture::without_vault(Selection::default());
    ask(&fixture, "memory_store", json!({ "content": "one" }));
    let all = ask(&fixture, "kg_audit_query", json!({}));
    let at = all["data"]["events"][0]["timestamp"].as_str().unwrap();
    let day = &at[..10];
    for (arguments, count) in [
        (json!({ "endTime": day }), 1),
        (json!({ "startTime": day, "endTime": day }), 1),
        (json!({ "endTime": format!("{day}T00:00:00Z") }), 0),
        (json!({ "endTime": format!("{day}T23:59:59.999Z") }), 1),
    ] {
        let found = ask(&fixture, "kg_audit_query", arguments.clone());
        assert_eq!(found["data"]["totalCount"], count, "{arguments}");
    }
}

/// What every event of the log did, by its signed changes, and what each type finds.
fn assert_types_are_complete(fixture: &Fixture) {
    let engine = fixture.board.engine();
    let events = engine.events_after(&fixture.owner(), 0, 10_000).unwrap();
    let does = |event: &Value, word: &str| {
        let changes = event["changes"].as_array().unwrap().iter();
        let is = |verb: &str, what: &str, it: &Value| it[verb] == what;
        changes.into_iter().any(|it| match word {
            "NodeCreated" => is("put", "node", it) && it["rev"] == 1,
            "NodeUpdated" => is("put", "node", it) && it["rev"] != 1,
            "NodeDeleted" => is("remove", "node", it),
            "EdgeCreated" => is("put", "edge", it),
            _ => is("remove", "edge", it),
        })
    };
    for word in [
        "NodeCreated",
        "NodeUpdated",
        "NodeDeleted",
        "EdgeCreated",
        "EdgeDeleted",
    ] {
        let expected: Vec<u64> = events
            .iter()
            .filter(|it| does(&it.json, word) || it.json["kind"] == word)
            .map(|it| it.seq)
            .collect();
        let found = ask(
            fixture,
            "kg_audit_query",
            json!({ "eventType": word, "limit": 1000 }),
        );
        let found = found["data"]["events"].as_array().unwrap().iter();
        let mut found: Vec<u64> = found.map(|it| it["seq"].as_u64().unwrap()).collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{word}");
        assert!(
            !expected.is_empty(),
            "nothing does {word}, so it proves nothing"
        );
    }
}

#[test]
fn whatever_creates_changes_or_removes_a_node_is_found_by_the_contract_s_words() {
    let fixture = Fixture::new();
    fixture.put_document("docs/one.md", "# One\n\nSee [[two]].\n");
    fixture.put_document("docs/two.md", "# Two\n");
    ask(&fixture, "kg_graph_generate", json!({}));
    std::fs::remove_file(fixture.project().join("docs/two.md")).unwrap();
    fixture.put_document("docs/one.md", "# One\n\nChanged.\n");
    ask(&fixture, "kg_graph_generate", json!({ "force": true }));
    for content in ["# Ada\n\nKnows [[Bob]].\n", "# Ada\n\nKnows nobody.\n"] {
        let note = json!({ "path": "People/Ada.md", "content": content });
        ask(&fixture, "vault_write_note", note);
    }
    ask(
        &fixture,
        "now_update",
        json!({ "current_task": "look at the log" }),
    );
    ask(
        &fixture,
        "now_update",
        json!({ "current_task": "look again" }),
    );
    let old = ask(&fixture, "memory_store", json!({ "content": "it is cold" }));
    ask(
        &fixture,
        "memory_store",
        json!({ "content": "it is warm", "supersedes": old["memory_id"] }),
    );
    ask(
        &fixture,
        "kg_vector_upsert",
        json!({ "id": "v", "vector": [1.0, 0.5], "metadata": { "a": 1 } }),
    );
    let line = json!({ "node": { "kind": "memory", "key": "k", "body": "imported" } });
    let engine = fixture.board.engine();
    let text = format!("{line}\n");
    let done = engine
        .import(&fixture.owner(), &mut text.as_bytes())
        .unwrap();
    assert_eq!((done.created, done.nodes()), (1, 1));
    assert_types_are_complete(&fixture);
    // The words of the contract and the names of the tools find the same event.
    let created = ask(
        &fixture,
        "kg_audit_query",
        json!({ "eventType": "NodeCreated", "limit": 1000 }),
    );
    let kinds: Vec<&str> = created["data"]["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["kind"].as_str())
        .collect();
    for kind in ["Imported", "NoteWritten", "MemoryStoredEvent"] {
        assert!(kinds.contains(&kind), "{kind} is not among {kinds:?}");
    }
}

#[test]
fn an_import_says_what_became_of_every_node() {
    let fixture = Fixture::without_vault(Selection::default());
    let line = |key: &str, body: &str| {
        json!({ "node": { "kind": "memory", "key": key, "body": body } }).to_string() + "\n"
    };
    let engine = fixture.board.engine();
    let text = line("a", "one") + &line("b", "two") + &line("a", "other") + &line("b", "two");
    let done = engine
        .import(&fixture.owner(), &mut text.as_bytes())
        .unwrap();
    assert_eq!((done.created, done.updated, done.unchanged), (2, 1, 1));
    assert_eq!((done.nodes(), done.waiting, done.pending), (4, 0, None));
}

#[test]
fn a_health_check_says_where_the_log_stands_and_when_it_was_verified() {
    let fixture = Fixture::without_vault(Selection::default());
    ask(&fixture, "memory_store", json!({ "content": "one" }));
    let health = || ask(&fixture, "kg_health_check", json!({ "detailed": true }))["data"].clone();
    let before = health();
    assert_eq!(before["auditLog"]["lastCheckpoint"], Value::Null);
    assert_eq!(before["auditLog"]["lastVerified"], Value::Null);
    ask(&fixture, "kg_audit_checkpoint", json!({}));
    fixture.clock.advance(60_000);
    let space = fixture.owner().principal.space;
    let report = fixture.board.engine().verify(&space, &|_| ()).unwrap();
    assert!(report.is_clean());
    let after = health()["auditLog"].clone();
    assert_eq!(after["lastCheckpoint"]["height"], 0);
    assert_eq!(after["lastVerified"]["clean"], true);
    assert_eq!(after["lastVerified"]["events"], after["events"]);
    assert_eq!(after["lastVerified"]["timestamp"], health()["timestamp"]);
    // A log that had faults is not healthy.
    fixture.kernel().note_verified(&space, 2, false);
    let after = health();
    assert_eq!(after["components"]["database"], "unhealthy");
    let why = after["componentDetails"]["database"].as_str().unwrap();
    assert!(why.contains("kenning audit verify"), "{why}");
}

#[test]
fn a_checkpoint_has_the_time_at_which_it_was_signed() {
    let fixture = Fixture::without_vault(Selection::default());
    ask(&fixture, "memory_store", json!({ "content": "one" }));
    let event =
        ask(&fixture, "kg_audit_query", json!({}))["data"]["events"][0]["timestamp"].clone();
    fixture.clock.advance(3_600_000);
    let engine = fixture.board.engine();
    let signed = engine.checkpoint(&fixture.owner()).unwrap();
    let hour = |it: &Value| it.as_str().unwrap()[11..13].parse::<u32>().unwrap();
    assert_eq!(
        hour(&signed["timestamp"]),
        (hour(&event) + 1) % 24,
        "{signed:#}"
    );
    // One that is there already keeps its time.
    fixture.clock.advance(3_600_000);
    assert_eq!(engine.checkpoint(&fixture.owner()).unwrap(), signed);
    let space = fixture.owner().principal.space;
    let report = engine.verify(&space, &|_| ()).unwrap();
    assert_eq!(report.faults, Vec::<String>::new());
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
