//! Cypher over everything in the store.

use crate::everything;
use kenning_core::Code;
use kenning_engine::query::ROWS_MAX;
use kenning_testing::Fixture;
use kenning_testing::hostile::{Hostile, hostile_queries};
use kenning_tools::koi::code_query;
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, Instant};

fn rows(fixture: &Fixture, cypher: &str) -> Vec<Vec<Value>> {
    answered(fixture, json!({ "cypher": cypher }))
}

fn answered(fixture: &Fixture, arguments: Value) -> Vec<Vec<Value>> {
    let reply = fixture.call("code_query", arguments.clone());
    assert!(!reply.is_error(), "{arguments}: {}", reply.text);
    let answer = reply.to_json();
    let columns = answer["columns"].as_array().unwrap();
    let rows = answer["results"].as_array().unwrap().iter();
    let values = |row: &Value| {
        let columns = columns.iter();
        columns
            .map(|it| row[it.as_str().unwrap()].clone())
            .collect()
    };
    rows.map(values).collect()
}

fn stored() -> Fixture {
    let fixture = everything(&Fixture::new());
    let people = fixture.vault().join("People");
    fs::create_dir_all(&people).unwrap();
    let ann = "---\n'@type': Person\ntags: [parsers]\n---\n# Ann Lee\nWorks with [[Bob Ray]].\n";
    let bob = "---\n'@type': Person\n---\n# Bob Ray\n";
    fs::write(people.join("Ann Lee.md"), ann).unwrap();
    fs::write(people.join("Bob Ray.md"), bob).unwrap();
    let memory = json!({
        "content": "Ann Lee prefers tabs over spaces", "memory_type": "fact", "tags": ["parsers"]
    });
    let reply = fixture.call("memory_store", memory);
    assert!(!reply.is_error(), "{}", reply.text);
    fixture
}

#[test]
fn everything_in_the_store_is_one_graph() {
    let fixture = stored();
    let found = rows(
        &fixture,
        "MATCH (n) UNWIND labels(n) AS label RETURN label, count(*) ORDER BY label",
    );
    let expected = [
        ("Document", 3),
        ("Entity", 3),
        ("Memory", 1),
        ("Person", 3),
        ("Tag", 1),
    ];
    assert_eq!(
        found,
        expected.map(|(label, n)| vec![json!(label), json!(n)])
    );
    // From a memory over a tag to a note, and from there to the person whom it describes.
    let found = rows(
        &fixture,
        "MATCH (m:Memory)-[:HAS_TAG]->(t:Tag)<-[:HAS_TAG]-(d:Document)-[:DESCRIBES]-(p:Person) \
         RETURN m.text, t.name, d.name, p.name",
    );
    let text = "Ann Lee prefers tabs over spaces";
    assert_eq!(
        found,
        [[text, "parsers", "Ann Lee", "Ann Lee"].map(Value::from)]
    );
    // Meaning and structure in one query.
    let found = rows(
        &fixture,
        "CALL kenning.search('who likes tabs') YIELD node, score \
         WHERE score > 0.5 MATCH (node)-[:HAS_TAG]->(t) RETURN labels(node), t.name",
    );
    assert_eq!(found, [[json!(["Memory"]), json!("parsers")]]);
    let found = rows(
        &fixture,
        "CALL kenning.types() YIELD type, count RETURN type, count ORDER BY type",
    );
    assert!(
        found.contains(&vec![json!("HAS_TAG"), json!(2)]),
        "{found:?}"
    );
}

#[test]
fn answers_follow_what_any_process_writes_and_what_the_past_was() {
    let fixture = stored();
    let count = "MATCH (m:Memory) RETURN count(m)";
    assert_eq!(rows(&fixture, count), [[json!(1)]]);
    let other = everything(&fixture);
    let stored = other.call(
        "memory_store",
        json!({ "content": "Bob Ray writes Go", "memory_type": "fact" }),
    );
    assert!(!stored.is_error(), "{}", stored.text);
    assert_eq!(rows(&fixture, count), [[json!(2)]]);
    let created = rows(
        &fixture,
        "MATCH (m:Memory) WHERE m.text CONTAINS 'tabs' RETURN m.created_at",
    );
    let before = json!({ "cypher": count, "as_of": "2001-01-01T00:00:00Z" });
    assert_eq!(answered(&fixture, before), [[json!(0)]]);
    let then = json!({ "cypher": count, "as_of": created[0][0] });
    let then = answered(&fixture, then)[0][0].as_i64().unwrap();
    assert!((1..=2).contains(&then), "{then}");
    // A file that somebody edited is read first.
    fs::remove_file(fixture.vault().join("People/Bob Ray.md")).unwrap();
    let people = "MATCH (p:Person) RETURN p.name ORDER BY p.name";
    assert_eq!(
        rows(&fixture, people),
        [[json!("Ann Lee")], [json!("Bill Baue")]]
    );
}

#[test]
fn parameters_and_the_first_servers_form() {
    let fixture = stored();
    let found = answered(
        &fixture,
        json!({
            "cypher": "UNWIND $names AS name OPTIONAL MATCH (p:Person {name: name}) RETURN name, p.kind",
            "parameters": { "names": ["Ann Lee", "nobody"] },
        }),
    );
    let expected = json!([["Ann Lee", "entity"], ["nobody", null]]);
    assert_eq!(json!(found), expected);
    let found = fixture.call(
        "code_query",
        json!({
            "cypher": "MATCH (p:Person {name: 'Ann Lee'}) RETURN p.name, 3, 1.0, [1, 'x'], {a: null}, null, p",
            "format": "agtype",
        }),
    );
    let row = found.to_json()["results"][0].clone();
    let texts = ["c1", "c2", "c3", "c4", "c5", "c6"].map(|it| row[it].clone());
    let expected = json!([
        "\"Ann Lee\"",
        "3",
        "1.0",
        "[1, \"x\"]",
        "{\"a\": null}",
        null
    ]);
    assert_eq!(json!(texts), expected);
    let vertex = row["c7"].as_str().unwrap();
    assert!(vertex.ends_with("::vertex"), "{vertex}");
    assert!(vertex.contains("\"label\": \"Person\""), "{vertex}");
}

#[test]
fn a_refusal_says_what_to_do() {
    let fixture = stored();
    for (arguments, code, words) in [
        (
            json!({ "cypher": "MATCH (n) DETACH DELETE n" }),
            Code::InvalidInput,
            "vault_write_note",
        ),
        (
            json!({ "cypher": "MATCH (n RETURN n" }),
            Code::InvalidInput,
            "column",
        ),
        (
            json!({ "cypher": "RETURN $missing" }),
            Code::InvalidInput,
            "missing",
        ),
        (
            json!({ "cypher": "RETURN 1", "as_of": "yesterday-ish" }),
            Code::InvalidInput,
            "as_of",
        ),
        (
            json!({ "cypher": "CALL kenning.search(3) YIELD node RETURN node" }),
            Code::InvalidInput,
            "query",
        ),
        (
            json!({ "cypher": "UNWIND range(1, 100000) AS x RETURN x" }),
            Code::TooLarge,
            "LIMIT",
        ),
    ] {
        let reply = fixture.call("code_query", arguments.clone());
        let error = reply
            .error
            .as_ref()
            .unwrap_or_else(|| panic!("{arguments}"));
        assert_eq!(error.code, code, "{arguments}");
        assert!(reply.text.contains(words), "{arguments}: {}", reply.text);
    }
}

/// How long a call may work beyond its deadline: what ends it is only asked now and then. Where the machine has other
/// things to do, only the share of the time counts that the call had the processor.
const LATE_MAX: Duration = Duration::from_secs(1);

#[test]
fn hostile_queries_end_in_time_keep_their_budgets_change_nothing_and_show_no_sql() {
    let fixture = stored();
    // The first look reads the files.
    rows(&fixture, "RETURN 1");
    let kinds = fixture.event_kinds();
    let all = hostile_queries();
    assert!(all.len() >= 230, "{}", all.len());
    let (n_queries, mut latest) = (all.len(), Duration::ZERO);
    let memory_before = memory_peak_bytes();
    for Hostile { cypher, parameters } in all {
        let mut caller = fixture.owner();
        let (began, worked) = (Instant::now(), worked());
        let deadline = began + Duration::from_secs(2);
        caller.deadline = deadline;
        let asked = json!({ "cypher": cypher, "parameters": parameters });
        let reply = fixture.call_as("code_query", asked, &caller);
        let share = (worked_for(worked).as_secs_f64() / began.elapsed().as_secs_f64()).min(1.0);
        let late = Instant::now().saturating_duration_since(deadline);
        let late = late.mul_f64(share);
        let start: String = cypher.chars().take(80).collect();
        latest = latest.max(late);
        assert!(late < LATE_MAX, "{start}: {late:?} after its deadline");
        match &reply.error {
            Some(error) => {
                let known = [Code::InvalidInput, Code::TooLarge, Code::Timeout];
                assert!(known.contains(&error.code), "{start}: {error}");
                assert!(reply.text.len() < 4_000, "{start}: {}", reply.text.len());
                let text = reply.text.to_lowercase();
                for word in ["sqlite", "sqlstate", "syntax error at or near", "panicked"] {
                    assert!(!text.contains(word), "{start}: {text}");
                }
            }
            None => {
                let n_rows = reply.to_json()["count"].as_u64().unwrap();
                assert!(n_rows <= ROWS_MAX, "{start}: {n_rows} rows");
            }
        }
    }
    // Each may hold 128 MiB, and its answer as JSON; none of it stays.
    let grown = memory_peak_bytes().saturating_sub(memory_before);
    assert!(grown < 1 << 30, "{} MiB", grown >> 20);
    assert_eq!(fixture.event_kinds(), kinds, "a query made an event");
    println!(
        "hostile queries: {n_queries} asked, the latest {} ms after its deadline, {} MiB held",
        latest.as_millis(),
        grown >> 20
    );
}

/// How long this thread has had the processor.
fn worked() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|it| it.parse().ok());
    Duration::from_nanos(ns.unwrap_or(0))
}

fn worked_for(before: Duration) -> Duration {
    worked().saturating_sub(before)
}

/// The most memory that this process has had resident.
fn memory_peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
    let words = line.and_then(|it| it.split_whitespace().next()?.parse::<u64>().ok());
    words.unwrap_or(0) * 1_024
}

/// Groups come in no order of their own.
fn in_order(mut answer: Value) -> Value {
    if let Some(rows) = answer["results"].as_array_mut() {
        rows.sort_by_key(Value::to_string);
    }
    answer
}

#[test]
fn koi_code_is_queried_with_named_columns() {
    let fixture = Fixture::new();
    let query = |cypher: &str| {
        let reply = fixture.call("code_query", json!({ "cypher": cypher }));
        in_order(reply.to_json())
    };
    // Deliberate difference: columns have names, not `c1`, unless the caller asks for those.
    let found = query("MATCH (n) RETURN labels(n), count(n)");
    let expected = json!({
        "results": [
            { "labels(n)": ["Document"], "count(n)": 1 },
            { "labels(n)": ["Entity", "Person"], "count(n)": 1 },
        ],
        "count": 2,
        "columns": ["labels(n)", "count(n)"],
    });
    assert_eq!(found, expected);
    let default = code_query::answer(
        fixture.board.engine(),
        &fixture.owner(),
        code_query::Request::default(),
    );
    assert_eq!(
        in_order(serde_json::to_value(default.unwrap()).unwrap()),
        expected
    );
    assert_eq!(
        query("MATCH (n:Function) RETURN count(n)")["results"],
        json!([{ "count(n)": 0 }])
    );
    for cypher in ["CREATE (n) RETURN n", "BAD CYPHER", ""] {
        let request = code_query::Request {
            cypher: Some(cypher.to_owned()),
            ..Default::default()
        };
        let refusal = code_query::answer(fixture.board.engine(), &fixture.owner(), request);
        assert_eq!(refusal.err().unwrap().status, 400, "{cypher}");
    }
}

#[test]
fn a_name_that_nothing_has_is_told_with_the_one_that_was_meant() {
    let fixture = stored();
    let warnings = |cypher: &str| {
        let reply = fixture.call("code_query", json!({ "cypher": cypher }));
        assert!(!reply.is_error(), "{cypher}: {}", reply.text);
        reply.to_json()["warnings"].clone()
    };
    for (cypher, expected) in [
        (
            "MATCH (p:Persson) RETURN p",
            json!(["no node has the label `Persson`: did you mean `Person`?"]),
        ),
        (
            "MATCH (p:Person)-[:HAS_TAGS]->(t) RETURN t",
            json!(["no relationship has the type `HAS_TAGS`: did you mean `HAS_TAG`?"]),
        ),
        (
            "MATCH (p:Person) WHERE p.nmae = 'Ann Lee' RETURN p",
            json!(["nothing has a property `nmae`: did you mean `name`?"]),
        ),
        (
            "MATCH (p:Person {name: 'Ann Lee'}) RETURN p.name",
            Value::Null,
        ),
        ("WITH {zebra: 1} AS m RETURN m.zebra, m.other", Value::Null),
    ] {
        assert_eq!(warnings(cypher), expected, "{cypher}");
    }
    let far = warnings("MATCH (n:Zebra) RETURN n");
    let text = far[0].as_str().unwrap();
    assert!(
        text.starts_with("no node has the label `Zebra`: there are `"),
        "{text}"
    );
}

#[test]
fn a_missing_parameter_says_how_to_give_it() {
    let fixture = stored();
    let reply = fixture.call("code_query", json!({ "cypher": "RETURN $x" }));
    assert!(reply.is_error());
    for part in ["`$x` is not given", "`parameters`", "`--param name=1`"] {
        assert!(reply.text.contains(part), "{}", reply.text);
    }
}

#[test]
fn events_are_listed_with_the_nodes_that_they_changed() {
    let fixture = stored();
    let found = rows(
        &fixture,
        "CALL kenning.events() YIELD event, node MATCH (node:Memory) \
         RETURN event.kind, node.text, event.at IS NOT NULL, event.seq > 0",
    );
    let text = json!("Ann Lee prefers tabs over spaces");
    assert!(!found.is_empty());
    for row in &found {
        assert_eq!(row[1..], [text.clone(), json!(true), json!(true)]);
    }
    let kind = found[0][0].as_str().unwrap();
    let by_kind = |kind: &str| {
        let cypher = format!("CALL kenning.events('{kind}', 1000) YIELD event RETURN count(event)");
        rows(&fixture, &cypher)[0][0].as_u64().unwrap()
    };
    assert!(by_kind(kind) >= 1);
    assert_eq!(by_kind("NoSuchKind"), 0);
    let past = json!({
        "cypher": "CALL kenning.events() YIELD event RETURN count(event)",
        "as_of": "2001-01-01T00:00:00Z",
    });
    assert_eq!(answered(&fixture, past), [[json!(0)]]);
    let reply = fixture.call(
        "code_query",
        json!({ "cypher": "CALL kenning.events(null, 0) YIELD event RETURN event" }),
    );
    assert!(reply.text.contains("from 1 to 10000"), "{}", reply.text);
}

#[test]
fn events_are_nodes_where_a_query_names_their_label() {
    let fixture = stored();
    let found = rows(
        &fixture,
        "MATCH (e:Event)-[:CHANGED]->(m:Memory) RETURN DISTINCT e.kind, m.text, e.seq > 0",
    );
    let text = json!("Ann Lee prefers tabs over spaces");
    assert!(!found.is_empty());
    for row in &found {
        assert_eq!(row[1..], [text.clone(), json!(true)]);
    }
    // As many as the procedure lists, and the same ones.
    let nodes = rows(&fixture, "MATCH (e:event) RETURN e.id AS id ORDER BY id");
    let listed =
        "CALL kenning.events(null, 10000) YIELD event RETURN DISTINCT event.id AS id ORDER BY id";
    assert_eq!(nodes, rows(&fixture, listed));
    // Whoever does not name the label does not count them; a text that has the word names nothing.
    let all = rows(&fixture, "MATCH (n) RETURN count(n)");
    let with_word = "MATCH (n) WHERE ':Event' <> coalesce(n.id, '') RETURN count(n)";
    assert_eq!(rows(&fixture, with_word), all);
    let node = rows(&fixture, "MATCH (e:Event) RETURN e ORDER BY e.seq LIMIT 1")[0][0].clone();
    assert_eq!(node["labels"], json!(["Event"]), "{node}");
    assert_eq!(node["id"], node["properties"]["id"]);
    let past = json!({
        "cypher": "MATCH (e:Event) RETURN count(e)", "as_of": "2001-01-01T00:00:00Z",
    });
    assert_eq!(answered(&fixture, past), [[json!(0)]]);
}
