//! `find`: one search over everything, and the call that opens each result.

use crate::Fixture;
use kenning_tools::{Reply, Selection};
use serde_json::{Value, json};

fn done(reply: Reply) -> Value {
    assert!(!reply.is_error(), "{}", reply.text);
    reply.value.unwrap_or_default()
}

fn filled() -> Fixture {
    let fixture = Fixture::new();
    done(fixture.call(
        "memory_store",
        json!({ "content": "The tidal turbine in the estuary needs a new gearbox", "memory_type": "fact", "tags": ["turbine"] }),
    ));
    done(fixture.call(
        "note_write",
        json!({ "path": "Work/Estuary.md", "content": "---\ntags: [turbine]\n---\n# Estuary\n\nThe tidal turbine stands in the estuary.\n" }),
    ));
    fixture.put_document(
        "docs/turbine.md",
        "# Tidal turbines\n\nHow a tidal turbine in an estuary works.\n",
    );
    done(fixture.call("kg_graph_generate", json!({})));
    fixture
}

fn kinds(answer: &Value) -> Vec<&str> {
    let results = answer["results"].as_array().unwrap();
    results
        .iter()
        .map(|it| it["kind"].as_str().unwrap())
        .collect()
}

#[test]
fn everything_is_found_by_one_search_and_each_result_can_be_opened() {
    let fixture = filled();
    let found = done(fixture.call("find", json!({ "query": "tidal turbine estuary" })));
    let mut known = kinds(&found);
    known.sort_unstable();
    assert_eq!(known, ["document", "memory", "note"], "{found:#}");
    for result in found["results"].as_array().unwrap() {
        assert!(!result["title"].as_str().unwrap().is_empty());
        assert!(result["date"].as_str().unwrap().contains('T'));
        let open = &result["open"];
        let opened = fixture.call(open["tool"].as_str().unwrap(), open["arguments"].clone());
        assert!(
            !opened.is_error() && opened.text.contains("turbine"),
            "{open}: {}",
            opened.text
        );
    }
    // Where few tools are listed, others are called through one that is.
    let few = fixture.again(Selection::default().or_default_set());
    let found = done(few.call(
        "find",
        json!({ "query": "tidal turbine estuary", "kinds": ["document"] }),
    ));
    assert_eq!(kinds(&found), ["document"]);
    let open = &found["results"][0]["open"];
    assert_eq!(open["tool"], "execute_read");
    let opened = few.call("execute_read", open["arguments"].clone());
    assert!(opened.text.contains("works"), "{}", opened.text);
}

#[test]
fn results_are_narrowed_by_kind_tag_and_time_and_go_on_past_a_page() {
    let fixture = filled();
    let find = |more: Value| {
        let mut arguments = json!({ "query": "tidal turbine estuary" });
        for (name, value) in more.as_object().unwrap() {
            arguments[name] = value.clone();
        }
        fixture.call("find", arguments)
    };
    assert_eq!(
        kinds(&done(find(json!({ "kinds": ["memory"] })))),
        ["memory"]
    );
    assert_eq!(
        kinds(&done(find(json!({ "kinds": ["note", "memory"] })))).len(),
        2
    );
    assert_eq!(
        kinds(&done(find(
            json!({ "kinds": ["entity", "page", "code", "item"] })
        ))),
        Vec::<&str>::new()
    );
    assert_eq!(kinds(&done(find(json!({ "tags": ["#turbine"] })))).len(), 2);
    assert_eq!(
        kinds(&done(find(json!({ "until": "1999-12-31" })))),
        Vec::<&str>::new()
    );
    assert_eq!(
        kinds(&done(find(json!({ "since": "1999-12-31" })))).len(),
        3
    );
    assert!(find(json!({ "since": "2027-01-01", "until": "2026-01-01" })).is_error());
    assert!(find(json!({ "query": " " })).is_error());
    let mut seen = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let page = done(find(json!({ "limit": 1, "cursor": cursor })));
        let ids = page["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["id"].to_string());
        seen.extend(ids);
        match page.get("next_cursor") {
            Some(next) => cursor = next.clone(),
            None => break,
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 3);
}

#[test]
fn reading_through_another_tool_never_writes() {
    let fixture = Fixture::select(Selection::default().or_default_set());
    let read = |tool: &str, input: Value| {
        fixture.call("execute_read", json!({ "tool": tool, "input": input }))
    };
    done(read("koi_search", json!({ "query": "x" })));
    done(read("monitor_url", json!({ "action": "status" })));
    for (tool, input) in [
        ("memory_store", json!({ "content": "x" })),
        (
            "monitor_url",
            json!({ "action": "add", "url": "https://example.org" }),
        ),
        (
            "vault_write_note",
            json!({ "path": "x.md", "content": "x" }),
        ),
        ("execute", json!({})),
        ("execute_read", json!({})),
        ("nothing", json!({})),
    ] {
        assert!(read(tool, input).is_error(), "{tool}");
    }
    assert!(!fixture.vault().join("x.md").exists());
}
