//! Agents with a language model on loopback: they plan and look, within what they may.

use kenning_testing::{Fixture, Outside};
use kenning_testing_llm::{Reply, Scripted, TOKENS};
use kenning_tools::Selection;
use serde_json::{Value, json};

fn fixture(model: &Scripted, more: &[(&str, &str)]) -> Fixture {
    let endpoint = model.url("/v1");
    let mut variables = vec![
        ("KENNING_MODEL_ENDPOINT", endpoint.as_str()),
        ("KENNING_MODEL_NAME", "tiny"),
        ("KENNING_MODEL_RETRIES", "0"),
    ];
    variables.extend(more);
    Fixture::in_world(Selection::default(), Outside::of(&variables))
}

fn research(fixture: &Fixture) -> Value {
    let ask = json!({ "type": "researcher", "task": "Who is Bill Baue?" });
    let reply = fixture.call("kg_agent_spawn", ask);
    assert!(!reply.is_error(), "{}", reply.text);
    reply.value.unwrap()["data"].take()
}

fn says(text: &str) -> Reply {
    Reply::Says(text.to_owned())
}

fn notes(data: &Value) -> String {
    data["taskResult"]["notes"].to_string()
}

#[test]
fn a_model_looks_with_tools_and_its_tokens_are_counted() {
    let look = Reply::call("knowledge_search", json!({ "query": "Bill Baue" }));
    let model = Scripted::saying(vec![look, says("Bill Baue has a note of his own.")]);
    let fixture = fixture(&model, &[]);
    let data = research(&fixture);
    let result = &data["taskResult"];
    assert_eq!(result["answer"], "Bill Baue has a note of his own.");
    assert_eq!(
        (&result["method"], &result["model"]),
        (&json!("model"), &json!("tiny"))
    );
    assert_eq!(data["metrics"]["tokensUsed"], 2 * (TOKENS.0 + TOKENS.1));
    assert_eq!(data["metrics"].get("tokensEstimated"), None);
    let seen = model.seen();
    assert_eq!(seen.len(), 2);
    let offered = seen[0].body["tools"].to_string();
    assert!(offered.contains("knowledge_search"), "{offered}");
    for forbidden in [
        "vault_write_note",
        "memory_store",
        "kg_agent_spawn",
        "execute",
        "preview_url",
    ] {
        assert!(!offered.contains(&format!("\"{forbidden}\"")), "{offered}");
    }
    // What the tool answered was shown as data.
    let shown = seen[1].body["messages"].to_string();
    assert!(shown.contains("People/Bill Baue.md"), "{shown}");
    let fence = seen[1].body["messages"][0]["content"].as_str().unwrap();
    let fence = fence
        .split("say ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    assert!(
        seen[1].body["messages"][3]["content"]
            .as_str()
            .unwrap()
            .starts_with(fence),
        "{shown}"
    );
    let report = data["artifacts"][0]["content"].as_str().unwrap();
    assert!(
        report.contains("Bill Baue has a note of his own."),
        "{report}"
    );
}

#[test]
fn a_model_that_asks_for_a_forbidden_tool_is_refused() {
    let write = json!({ "path": "Evil.md", "content": "x" });
    let model = Scripted::saying(vec![
        Reply::call("vault_write_note", write),
        Reply::call("no_such_tool", json!({})),
        says("I could not."),
    ]);
    let fixture = fixture(&model, &[]);
    let data = research(&fixture);
    assert!(
        notes(&data).contains("`vault_write_note`, which an agent may not call"),
        "{data}"
    );
    assert_eq!(data["taskResult"]["answer"], "I could not.");
    let answered = model.seen()[1].body["messages"].to_string();
    assert!(
        answered.contains("`vault_write_note` is refused"),
        "{answered}"
    );
    let kinds = fixture.event_kinds();
    assert!(!kinds.iter().any(|it| it == "NoteWritten"), "{kinds:?}");
    assert!(!fixture.root.path().join("vault/Evil.md").exists());
}

#[test]
fn a_model_that_never_comes_to_an_end_is_stopped_by_its_budget() {
    let model = Scripted::by(|_, _| Reply::call("kg_stats", json!({})));
    let fixture = fixture(&model, &[]);
    let data = research(&fixture);
    let n = model.seen().len();
    assert!(n <= 12, "{n} questions");
    // The last question offers no tools.
    assert!(model.seen().last().unwrap().body.get("tools").is_none());

    let model = Scripted::by(|_, _| Reply::call("kg_stats", json!({})));
    let fixture = self::fixture(&model, &[("KENNING_MODEL_TOKENS", "200")]);
    let poor = research(&fixture);
    assert!(
        poor["metrics"]["tokensUsed"].as_u64().unwrap() <= 200,
        "{poor}"
    );
    assert!(notes(&poor).contains("budget is spent"), "{poor}");
    assert_eq!(poor["taskResult"]["method"], "rules");
    assert_eq!(
        poor["taskResult"]["findings"],
        data["taskResult"]["findings"]
    );
}

#[test]
fn a_model_that_fails_costs_a_note_and_not_the_findings() {
    let nonsense = Reply::Status(200, "", "{}".to_owned());
    let busy = Reply::Status(500, "", "{}".to_owned());
    for (reply, why) in [
        (busy, "status 500"),
        (nonsense, "unusable answer"),
        (Reply::Endless, "was cut off"),
    ] {
        let model = Scripted::saying(vec![reply]);
        let fixture = fixture(&model, &[]);
        let data = research(&fixture);
        assert!(notes(&data).contains(why), "{data}");
        assert_eq!(data["metrics"]["tokensUsed"], 0);
        assert_eq!(data["taskResult"]["method"], "rules");
        assert!(
            !data["taskResult"]["findings"]
                .as_array()
                .unwrap()
                .is_empty(),
            "{data}"
        );
    }
}

#[test]
fn a_setting_that_cannot_be_read_is_said_and_the_work_is_done() {
    let fixture = Fixture::in_world(
        Selection::default(),
        Outside::of(&[
            ("KENNING_MODEL_PROVIDER", "wizard"),
            ("KENNING_MODEL_NAME", "x"),
        ]),
    );
    let data = research(&fixture);
    assert!(notes(&data).contains("KENNING_MODEL_PROVIDER"), "{data}");
}

#[test]
fn a_model_judges_beliefs_where_rules_find_nothing() {
    let said =
        json!({ "contradictions": [{ "n": 1, "why": "cats cannot both like and hate water" }] });
    let model = Scripted::saying(vec![
        says(&said.to_string()),
        Reply::Status(500, "", "{}".to_owned()),
    ]);
    let fixture = crate::everything(&fixture(&model, &[]));
    let store = |text: &str| {
        let reply = fixture.call(
            "memory_store",
            json!({ "content": text, "memory_type": "fact" }),
        );
        assert!(!reply.is_error(), "{}", reply.text);
        reply.value.unwrap()["memory_id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let (one, other) = (
        store("Cats adore water."),
        store("Water is what cats detest."),
    );
    let ask = json!({ "memory_id_1": one, "memory_id_2": other });
    let found = fixture
        .call("belief_check_contradiction", ask.clone())
        .value
        .unwrap();
    assert_eq!(
        (&found["contradicts"], &found["method"]),
        (&json!(true), &json!("tiny")),
        "{found}"
    );
    let why = found["contradictions"][0]["contradiction_pattern"]
        .as_str()
        .unwrap();
    assert!(why.contains("like and hate"), "{why}");
    // A model that is away leaves the rules.
    let reply = fixture.call("belief_check_contradiction", ask);
    let found = reply.value.unwrap();
    assert_eq!(
        (&found["contradicts"], &found["method"]),
        (&json!(false), &json!("rules")),
        "{found}"
    );
    let (one, other) = (store("The gate opens at 8."), store("The gate opens at 9."));
    let ask = json!({ "memory_id_1": one, "memory_id_2": other });
    let n_asked = model.seen().len();
    let found = fixture
        .call("belief_check_contradiction", ask)
        .value
        .unwrap();
    assert_eq!(
        found["contradictions"][0]["contradiction_pattern"], "8 vs 9",
        "{found}"
    );
    assert_eq!(
        model.seen().len(),
        n_asked,
        "what rules find needs no model"
    );
}
