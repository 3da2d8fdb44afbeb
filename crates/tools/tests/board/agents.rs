//! Agents: what they find, what they leave behind, and what they refuse.

use crate::shapes;
use kenning_engine::agents::{AgentKind, Priority, Spawn, Toolbox};
use kenning_engine::{Caller, llm::ToolSpec};
use kenning_testing::{Fixture, Outside};
use kenning_testing_llm::{Reply, Scripted};
use kenning_tools::Selection;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

fn spawn(fixture: &Fixture, arguments: Value) -> Value {
    let reply = fixture.call("kg_agent_spawn", arguments);
    assert!(!reply.is_error(), "{}", reply.text);
    reply.value.unwrap()
}

fn refused(fixture: &Fixture, arguments: Value) -> String {
    let reply = fixture.call("kg_agent_spawn", arguments);
    assert!(reply.is_error(), "{}", reply.text);
    let value: Value = serde_json::from_str(&reply.text).unwrap_or_default();
    assert_eq!(value["success"], json!(false), "{}", reply.text);
    value["error"].as_str().unwrap().to_owned()
}

fn with_documents(fixture: &Fixture, documents: &[(&str, &str)]) {
    let docs = fixture.root.path().join("project/docs");
    std::fs::create_dir_all(&docs).unwrap();
    for (name, text) in documents {
        let path = docs.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let reply = fixture.call("kg_graph_generate", json!({ "docsPath": "docs" }));
    assert!(!reply.is_error(), "{}", reply.text);
}

#[test]
fn a_researcher_finds_sources_and_cites_them_without_a_model() {
    let fixture = Fixture::new();
    with_documents(
        &fixture,
        &[
            (
                "tokens.md",
                "# Session tokens\n\nA session token expires after 30 minutes. See [[gateway]].\n",
            ),
            (
                "gateway.md",
                "# Gateway\n\nSession tokens expire after 60 minutes. The gateway checks every token.\n",
            ),
            (
                "other.md",
                "# Cooking\n\nPotatoes are boiled for 20 minutes.\n",
            ),
        ],
    );
    let reply = spawn(
        &fixture,
        json!({ "type": "researcher", "task": "How do session tokens expire?" }),
    );
    let data = &reply["data"];
    assert_eq!(data["agentType"], "researcher");
    assert_eq!(data["agentName"], "research-agent");
    assert_eq!(data["metrics"]["tokensUsed"], 0);
    assert_eq!(reply["metadata"]["status"], "completed");
    for (field, prefix) in [("agentId", "agent-"), ("taskId", "task-")] {
        assert!(data[field].as_str().unwrap().starts_with(prefix), "{data}");
    }
    let result = &data["taskResult"];
    assert_eq!(result["method"], "rules");
    let findings = result["findings"].as_array().unwrap();
    let places: Vec<&str> = findings
        .iter()
        .filter(|it| it["type"] == "source")
        .map(|it| it["references"][0].as_str().unwrap())
        .collect();
    assert!(
        places.contains(&"docs/tokens.md") && places.contains(&"docs/gateway.md"),
        "{result}"
    );
    assert!(!places.contains(&"docs/other.md"), "{result}");
    let contradiction = findings
        .iter()
        .find(|it| it["type"] == "contradiction")
        .unwrap();
    let places = contradiction["references"].to_string();
    assert!(
        places.contains("docs/tokens.md:3") && places.contains("docs/gateway.md:3"),
        "{places}"
    );
    assert!(!result["recommendations"].as_array().unwrap().is_empty());
    let report = &data["artifacts"][0];
    assert_eq!(
        (&report["type"], &report["mimeType"]),
        (&json!("report"), &json!("text/markdown"))
    );
    assert!(
        report["content"]
            .as_str()
            .unwrap()
            .contains("docs/tokens.md")
    );
}

#[test]
fn the_report_of_an_agent_is_found_by_every_search() {
    let fixture = Fixture::new();
    with_documents(
        &fixture,
        &[("herring.md", "# Herring\n\nHerring spawn in spring.\n")],
    );
    let reply = spawn(
        &fixture,
        json!({ "type": "researcher", "name": "zyx-one", "task": "Where does the zyxomatic herring spawn?" }),
    );
    let key = reply["data"]["report"].as_str().unwrap().to_owned();
    for (tool, arguments) in [
        (
            "knowledge_search",
            json!({ "query": "zyxomatic herring spawn" }),
        ),
        (
            "knowledge_search",
            json!({ "query": "zyxomatic herring spawn", "source": "agent" }),
        ),
        ("kg_search_nodes", json!({ "query": "zyxomatic" })),
        ("kg_query", json!({ "query": "zyxomatic" })),
        ("kg_graph_query", json!({ "query": "zyxomatic" })),
        (
            "code_query",
            json!({ "cypher": "MATCH (a:Agent)-[:cites]->(d) RETURN a.key, d.title" }),
        ),
    ] {
        let found = fixture.call(tool, arguments);
        assert!(
            found.text.contains(&key) || found.text.contains("zyxomatic herring"),
            "{tool}: {}",
            found.text
        );
        assert!(!found.is_error(), "{tool}: {}", found.text);
    }
}

#[test]
fn an_agent_with_a_name_does_its_tasks_one_after_the_other() {
    let fixture = Fixture::new();
    let ask = json!({ "type": "analyst", "name": "ann", "task": "Measure everything" });
    let first = spawn(&fixture, ask.clone());
    let second = spawn(&fixture, ask);
    assert_eq!(first["data"]["agentId"], second["data"]["agentId"]);
    assert_ne!(first["data"]["taskId"], second["data"]["taskId"]);
    spawn(&fixture, json!({ "type": "analyst", "task": "Measure" }));
    let listed = fixture
        .call("kg_agent_list", json!({ "type": "analyst" }))
        .value
        .unwrap();
    assert_eq!(listed["data"]["count"], 2, "{listed}");
    let ann = listed["data"]["agents"].as_array().unwrap();
    let ann = ann.iter().find(|it| it["name"] == "ann").unwrap();
    let counted = (
        &ann["status"],
        &ann["completedTasks"],
        &ann["queuedTasks"],
        &ann["errorCount"],
    );
    assert_eq!(
        counted,
        (&json!("completed"), &json!(2), &json!(0), &json!(0)),
        "{ann}"
    );
    assert_eq!(ann["currentTask"], Value::Null);
    // Another process lists the same.
    let again = fixture.again(Selection::default());
    let listed = again.call("kg_agent_list", json!({})).value.unwrap();
    assert_eq!(listed["data"]["stats"]["totalInstances"], 2);
    assert_eq!(listed["data"]["stats"]["instancesByType"]["analyst"], 2);
    assert_eq!(listed["data"]["stats"]["instancesByStatus"]["completed"], 2);
}

#[test]
fn every_type_is_registered_with_what_it_is_good_for() {
    let fixture = Fixture::new();
    let listed = fixture.call("kg_agent_list", json!({})).value.unwrap();
    let types = listed["data"]["registeredTypes"].as_array().unwrap();
    let names: Vec<&str> = types
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect();
    let expected = [
        "researcher",
        "coder",
        "tester",
        "analyst",
        "architect",
        "reviewer",
        "coordinator",
        "optimizer",
        "documenter",
    ];
    assert_eq!(names, expected);
    assert_eq!(types[0]["capabilities"], json!(["research", "analysis"]));
    assert_eq!(
        listed["metadata"]["filters"],
        json!({ "type": "all", "status": "all" })
    );
    let wrong = fixture.call("kg_agent_list", json!({ "type": "wizard" }));
    assert!(
        wrong.is_error() && wrong.text.contains("`wizard` is not an agent type"),
        "{}",
        wrong.text
    );
}

#[test]
fn bad_tasks_are_refused_in_the_words_of_the_contract() {
    let fixture = Fixture::new();
    for (arguments, expected) in [
        (json!({ "task": "x" }), "Agent type is required"),
        (json!({ "type": "", "task": "x" }), "Agent type is required"),
        (
            json!({ "type": null, "task": "x" }),
            "Agent type is required",
        ),
        (
            json!({ "type": "researcher" }),
            "Task description is required",
        ),
        (
            json!({ "type": "researcher", "task": "" }),
            "Task description is required",
        ),
        (
            json!({ "type": "researcher", "task": "  " }),
            "Task description is required",
        ),
        (
            json!({ "type": "researcher", "task": 7 }),
            "Task description is required",
        ),
        (
            json!({ "type": "wizard", "task": "x" }),
            "Agent type 'wizard' is not registered",
        ),
        (
            json!({ "type": "reviewer", "task": "x" }),
            "Agent type 'reviewer' is not registered",
        ),
        (
            json!({ "type": "coder", "task": "x".repeat(10_001) }),
            "`task` has 10001 characters",
        ),
        (
            json!({ "type": "coder", "task": "x", "name": " " }),
            "`name` is empty",
        ),
        (
            json!({ "type": "coder", "task": "x", "options": { "timeout": -1 } }),
            "`options.timeout`",
        ),
        (
            json!({ "type": "coder", "task": "x", "options": { "priority": "urgent" } }),
            "urgent",
        ),
        (
            json!({ "type": "coder", "task": "x", "option": {} }),
            "option",
        ),
    ] {
        let error = refused(&fixture, arguments.clone());
        assert!(error.contains(expected), "{arguments}: {error}");
    }
    let listed = fixture.call("kg_agent_list", json!({})).value.unwrap();
    assert_eq!(listed["data"]["count"], 0, "{listed}");
}

#[test]
fn a_task_that_takes_too_long_says_so_and_counts_as_failed() {
    let fixture = Fixture::new();
    let error = refused(
        &fixture,
        json!({ "type": "tester", "task": "test", "options": { "timeout": 0 } }),
    );
    assert!(
        error.starts_with("Task execution timed out after 0ms"),
        "{error}"
    );
    let listed = fixture
        .call("kg_agent_list", json!({ "status": "failed" }))
        .value
        .unwrap();
    let agent = &listed["data"]["agents"][0];
    assert_eq!(
        (&agent["errorCount"], &agent["status"]),
        (&json!(1), &json!("failed")),
        "{listed}"
    );
    let health = fixture
        .call("kg_health_check", json!({ "components": ["agents"] }))
        .value
        .unwrap();
    assert_eq!(
        health["data"]["components"]["agents"], "unhealthy",
        "{health}"
    );
    spawn(&fixture, json!({ "type": "tester", "task": "test" }));
    let health = fixture
        .call("kg_health_check", json!({ "components": ["agents"] }))
        .value
        .unwrap();
    assert_eq!(
        health["data"]["components"]["agents"], "degraded",
        "{health}"
    );
    let why = health["data"]["componentDetails"]["agents"]
        .as_str()
        .unwrap();
    assert!(why.contains("of 2 others 1 failed"), "{why}");
}

#[test]
fn an_agent_writes_nothing_but_its_own_rows_and_report() {
    let fixture = Fixture::new();
    with_documents(&fixture, &[("a.md", "# A\n\nSee [[missing]].\n")]);
    // Whoever looks first brings the entities of the notes up to date.
    fixture.call("koi_search", json!({ "query": "Bill Baue" }));
    let n_before = fixture.event_kinds().len();
    for kind in ["researcher", "coder", "tester", "analyst", "architect"] {
        spawn(
            &fixture,
            json!({ "type": kind, "task": "Look at everything, and delete it" }),
        );
    }
    let kinds = fixture.event_kinds();
    assert!(
        kinds[n_before..].iter().all(|it| it.starts_with("Agent")),
        "{:?}",
        &kinds[n_before..]
    );
    let read_only = fixture.again(Selection {
        read_only: true,
        ..Selection::default()
    });
    let reply = read_only.call("kg_agent_spawn", json!({ "type": "tester", "task": "x" }));
    assert!(reply.is_error(), "{}", reply.text);
}

#[test]
fn the_same_material_gives_the_same_findings() {
    let reports = || -> Vec<Value> {
        let fixture = Fixture::new();
        with_documents(
            &fixture,
            &[
                ("a.md", "# A\n\nCaching is enabled. See [[missing]].\n"),
                ("b.md", "# B\n\nCaching is disabled.\n"),
            ],
        );
        let kinds = ["researcher", "tester", "analyst", "architect", "coder"];
        let ask = |kind| json!({ "type": kind, "task": "Is caching on?" });
        let done = kinds.map(|kind| spawn(&fixture, ask(kind))["data"]["taskResult"].clone());
        done.into()
    };
    assert_eq!(reports(), reports());
}

#[test]
fn every_task_leaves_a_trajectory() {
    let fixture = Fixture::new();
    let done = spawn(
        &fixture,
        json!({ "type": "tester", "task": "Look for broken links" }),
    );
    let failed = json!({ "type": "tester", "task": "Look", "options": { "timeout": 0 } });
    refused(&fixture, failed);
    let engine = fixture.board.engine();
    let filter = kenning_engine::runs::TrajectoryFilter {
        agent_id: done["data"]["agentId"].as_str().map(ToOwned::to_owned),
        ..Default::default()
    };
    let found = engine
        .runs()
        .trajectories(&fixture.owner(), &filter)
        .unwrap();
    assert_eq!(found.len(), 1);
    assert!(
        found[0].is_success() && found[0].kind == "tester",
        "{found:?}"
    );
    assert!(found[0].actions().contains(&"check-links"), "{found:?}");
}

/// A model that says nothing of interest, and a fixture that asks it.
fn with_model(replies: Vec<Reply>) -> (Scripted, Fixture) {
    let model = Scripted::saying(replies);
    let endpoint = model.url("/v1");
    let outside = Outside::of(&[
        ("KENNING_MODEL_ENDPOINT", &endpoint),
        ("KENNING_MODEL_NAME", "tiny"),
    ]);
    (model, Fixture::in_world(Selection::default(), outside))
}

fn analyst(name: &str) -> Spawn {
    Spawn {
        kind: AgentKind::Analyst,
        name: Some(name.to_owned()),
        task: "Measure".to_owned(),
        timeout: None,
        retries: None,
        priority: Priority::Medium,
    }
}

/// Holds its agent up in the middle of its work until it is told to go on; dies if nobody is left to tell it.
struct Gate {
    entered: Sender<()>,
    leave: Mutex<Receiver<()>>,
}

impl Gate {
    fn new() -> (Self, Receiver<()>, Sender<()>) {
        let ((entered, seen), (go, leave)) = (channel(), channel());
        let leave = Mutex::new(leave);
        (Self { entered, leave }, seen, go)
    }
}

impl Toolbox for Gate {
    fn tools(&self, _: AgentKind) -> Vec<ToolSpec> {
        self.entered.send(()).unwrap();
        self.leave.lock().unwrap().recv().expect("a process dies");
        Vec::new()
    }

    fn call(&self, _: &str, _: Value, _: &Caller) -> Result<String, String> {
        Err("nothing".to_owned())
    }
}

/// The first agent of the listing, once it satisfies this.
fn listed_once(fixture: &Fixture, is_so: impl Fn(&Value) -> bool) -> Value {
    let began = std::time::Instant::now();
    loop {
        let listed = fixture.call("kg_agent_list", json!({})).value.unwrap();
        if is_so(&listed["data"]["agents"][0]) {
            return listed;
        }
        assert!(began.elapsed().as_secs() < 60, "{listed:#}");
        std::thread::yield_now();
    }
}

#[test]
fn an_agent_does_one_task_at_a_time_whatever_process_asks_and_is_listed_as_the_contract_shows() {
    let (_model, one) = with_model(vec![Reply::Says("done".to_owned())]);
    let two = one.again(Selection::default());
    let spawned = spawn(&two, json!({ "type": "researcher", "task": "Look" }));
    let faults = shapes::lacks(&shapes::kg_answer("kg_agent_spawn"), &spawned, "spawn");
    assert_eq!(faults, Vec::<String>::new(), "{spawned:#}");
    let (gate, entered, go) = Gate::new();
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            let agents = one.board.engine().agent_tasks();
            agents.spawn(&one.owner(), &analyst("ann"), &gate)
        });
        entered.recv().unwrap();
        let second = scope.spawn(|| {
            let ask = json!({ "type": "analyst", "name": "ann", "task": "Measure again" });
            two.call("kg_agent_spawn", ask)
        });
        // It waits for the other process.
        let listed = listed_once(&two, |it| it["queuedTasks"] == 1);
        let faults = shapes::lacks(&shapes::kg_answer("kg_agent_list"), &listed, "list");
        assert_eq!(faults, Vec::<String>::new(), "{listed:#}");
        let ann = &listed["data"]["agents"][0];
        assert_eq!(
            (&ann["status"], &ann["completedTasks"]),
            (&json!("running"), &json!(0)),
            "{ann}"
        );
        assert!(ann["currentTask"].as_str().unwrap().starts_with("task-"));
        let stats = two.call("kg_trajectory_list", json!({})).value.unwrap();
        assert_eq!(stats["data"]["stats"]["activeTrajectories"], 1, "{stats:#}");
        go.send(()).unwrap();
        (first.join().unwrap(), second.join().unwrap())
    });
    assert!(first.is_ok(), "{first:?}");
    assert!(!second.is_error(), "{}", second.text);
    let ann = listed_once(&one, |it| it["name"] == "ann")["data"]["agents"][0].clone();
    assert_eq!(
        (&ann["status"], &ann["completedTasks"], &ann["queuedTasks"]),
        (&json!("completed"), &json!(2), &json!(0)),
        "{ann}"
    );
}

#[test]
fn an_agent_whose_process_died_is_free_at_once() {
    let (_model, one) = with_model(vec![Reply::Says("done".to_owned())]);
    let two = one.again(Selection::default());
    let (gate, entered, go) = Gate::new();
    std::thread::scope(|scope| {
        let dies = scope.spawn(|| {
            let agents = one.board.engine().agent_tasks();
            agents.spawn(&one.owner(), &analyst("ann"), &gate)
        });
        entered.recv().unwrap();
        drop(go);
        assert!(dies.join().is_err());
    });
    let listed = two.call("kg_agent_list", json!({})).value.unwrap();
    let ann = &listed["data"]["agents"][0];
    assert_eq!(
        (&ann["status"], &ann["currentTask"], &ann["queuedTasks"]),
        (&json!("terminated"), &Value::Null, &json!(0)),
        "{ann}"
    );
    let ask = json!({ "type": "analyst", "name": "ann", "task": "Measure", "options": { "timeout": 30_000 } });
    let again = spawn(&two, ask);
    assert_eq!(again["data"]["agentId"], ann["id"]);
}

/// Cancels its agent after the model has asked for a tool.
struct Canceller<'a>(&'a Fixture);

impl Toolbox for Canceller<'_> {
    fn tools(&self, _: AgentKind) -> Vec<ToolSpec> {
        vec![ToolSpec {
            name: "kg_stats".to_owned(),
            description: "Counts".to_owned(),
            schema: json!({ "type": "object" }),
        }]
    }

    fn call(&self, _: &str, _: Value, _: &Caller) -> Result<String, String> {
        let agents = self.0.board.engine().agent_tasks();
        assert!(agents.cancel(&self.0.owner(), "ann").unwrap());
        Ok("{}".to_owned())
    }
}

#[test]
fn what_a_model_took_is_known_also_of_a_task_that_did_not_succeed() {
    let (model, fixture) = with_model(vec![Reply::call("kg_stats", json!({}))]);
    let agents = fixture.board.engine().agent_tasks();
    let ended = agents.spawn(&fixture.owner(), &analyst("ann"), &Canceller(&fixture));
    assert_eq!(ended.unwrap_err().message, "Task was cancelled");
    assert_eq!(model.seen().len(), 1);
    let listed = fixture.call("kg_agent_list", json!({})).value.unwrap();
    let tokens = listed["data"]["agents"][0]["tokensUsed"].as_u64().unwrap();
    assert!(tokens > 0, "{listed:#}");
    let asked = json!({ "eventType": "AgentFailed", "includePayload": true });
    let events = fixture.call("kg_audit_query", asked).value.unwrap();
    assert!(
        events
            .to_string()
            .contains(&format!("\"tokensUsed\":{tokens}")),
        "{events:#}"
    );
}
