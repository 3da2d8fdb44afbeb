//! Agents on a small repository with planted faults: they find those, and nothing else.

use kenning_engine::agents::{AgentKind, Priority, Spawn, Toolbox};
use kenning_engine::{Caller, llm::ToolSpec};
use kenning_testing::Fixture;
use kenning_tools::Selection;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const PLANTED: &str = include_str!("../../../../testing/agents/planted.txt");

fn git(dir: &Path, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=T", "-c", "user.email=t@example.com"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "git {args:?}: {err}");
}

fn call(fixture: &Fixture, tool: &str, arguments: Value) -> Value {
    let reply = fixture.call(tool, arguments);
    assert!(!reply.is_error(), "{tool}: {}", reply.text);
    reply.to_json()
}

fn scan(fixture: &Fixture, repository: &Path) {
    let scan = json!({ "action": "scan", "repo_name": repository.to_str().unwrap() });
    let found = call(fixture, "github_scan", scan);
    assert_eq!(found["status"], "completed", "{found}");
}

/// The planted repository, scanned, its documents in the graph; and what is expected.
fn planted() -> (Fixture, PathBuf, Vec<&'static str>) {
    let fixture = Fixture::new();
    let repository = fixture.repositories().join("shop");
    let project = fixture.root.path().join("project");
    let mut expected = Vec::new();
    for part in PLANTED.split("\n=== ").skip(1) {
        let (name, text) = part.split_once('\n').unwrap();
        match name {
            "memories" => {
                for it in text.lines() {
                    call(
                        &fixture,
                        "memory_store",
                        json!({ "content": it, "memory_type": "fact" }),
                    );
                }
            }
            "expected" => expected.extend(text.lines()),
            path => {
                for root in [&repository, &project] {
                    let path = root.join(path);
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(path, format!("{text}\n")).unwrap();
                }
            }
        }
    }
    git(&repository, &["init", "--quiet", "--initial-branch=main"]);
    git(&repository, &["add", "--all"]);
    git(&repository, &["commit", "--quiet", "--message", "first"]);
    scan(&fixture, &repository);
    call(&fixture, "kg_graph_generate", json!({ "docsPath": "docs" }));
    (fixture, repository, expected)
}

fn spawn(fixture: &Fixture, kind: &str, task: &str) -> Value {
    let ask = json!({ "type": kind, "task": task, "options": { "timeout": 300_000 } });
    call(fixture, "kg_agent_spawn", ask)["data"].clone()
}

fn finds(data: &Value, kind: &str) -> BTreeSet<String> {
    let own = if kind == "cycle" {
        "dependency-cycle"
    } else {
        kind
    };
    let findings = data["taskResult"]["findings"].as_array().unwrap().iter();
    findings
        .filter(|it| it["type"] == own)
        .map(|it| {
            let places = it["references"].as_array().unwrap().iter();
            let mut places: Vec<&str> = match kind {
                "untested" => vec![it["title"].as_str().unwrap().split('`').nth(1).unwrap()],
                _ => places
                    .map(|it| it.as_str().unwrap())
                    .map(|it| if it.contains('/') { it } else { "memory" })
                    .collect(),
            };
            places.sort_unstable();
            format!("{kind} {}", places.join(" "))
        })
        .collect()
}

#[test]
fn each_agent_finds_what_was_planted_and_nothing_else() {
    let (fixture, _, expected) = planted();
    for (agent, task, kinds) in [
        (
            "tester",
            "Find what is broken or untested",
            &["broken-link", "untested"][..],
        ),
        ("architect", "Show the dependency cycles", &["cycle"]),
        (
            "researcher",
            "Which statements contradict each other?",
            &["contradiction"],
        ),
        (
            "analyst",
            "Measure everything",
            &["broken-link", "untested", "cycle", "contradiction"],
        ),
    ] {
        let data = spawn(&fixture, agent, task);
        for kind in kinds {
            let of_kind = expected
                .iter()
                .filter(|it| it.starts_with(&format!("{kind} ")));
            let wanted: BTreeSet<String> = of_kind.map(|it| (*it).to_owned()).collect();
            assert!(!wanted.is_empty());
            assert_eq!(finds(&data, kind), wanted, "{agent}");
        }
    }
}

#[test]
fn an_analysis_finds_every_planted_contradiction_and_link_and_no_other() {
    let (fixture, _, expected) = planted();
    let ask = json!({ "workflowId": "analysis", "input": { "docPath": "docs" } });
    let data = call(&fixture, "kg_workflow_start", ask)["data"].clone();
    let artifacts = data["artifacts"].as_array().unwrap().iter();
    let artifacts: Vec<&str> = artifacts.map(|it| it.as_str().unwrap()).collect();
    let found: BTreeSet<String> = artifacts
        .iter()
        .filter(|it| it.contains(": Decide between this line and "))
        .map(|it| {
            let mut parts = it.split('`');
            let here = it.split(": ").next().unwrap();
            let (there, line) = (parts.nth(1).unwrap(), parts.next().unwrap());
            let line = line.trim_start_matches(" line ").split(':').next().unwrap();
            let there = match it.contains("the memory `") {
                true => "memory".to_owned(),
                false => format!("{there}:{line}"),
            };
            let mut places = [here.to_owned(), there];
            places.sort();
            format!("contradiction {}", places.join(" "))
        })
        .collect();
    let of = |kind: &str| -> BTreeSet<String> {
        let some = expected.iter().filter(|it| it.starts_with(kind));
        some.map(|it| (*it).to_owned()).collect()
    };
    assert_eq!(found, of("contradiction "), "{artifacts:#?}");
    let links: BTreeSet<String> = artifacts
        .iter()
        .filter(|it| it.contains(": Mend the link to "))
        .map(|it| format!("broken-link {}", it.split(": ").next().unwrap()))
        .collect();
    assert_eq!(links, of("broken-link "), "{artifacts:#?}");
}

#[test]
fn an_analyst_grades_and_an_architect_orders() {
    let (fixture, ..) = planted();
    let data = spawn(&fixture, "analyst", "Measure everything");
    let result = &data["taskResult"];
    let grade = result["grade"].as_str().unwrap();
    assert!(
        ["A", "B", "C", "D", "F"].contains(&grade) && grade != "A",
        "{result}"
    );
    assert_eq!(result["metrics"]["brokenLinks"], 10, "{result}");
    assert_eq!(result["metrics"]["dependencyCycles"], 3, "{result}");
    let issue = &result["issues"][0];
    assert!(
        issue["place"].is_string() && issue["severity"] == "high",
        "{issue}"
    );

    let data = spawn(&fixture, "architect", "Show the layers");
    let result = &data["taskResult"];
    let names: Vec<&str> = result["components"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"shop") && names.contains(&"web"),
        "{result}"
    );
    assert!(result["healthScore"].as_f64().unwrap() < 100.0, "{result}");
    assert!(!result["layers"].as_array().unwrap().is_empty());
}

#[test]
fn a_coder_proposes_a_patch_that_applies_and_writes_nothing() {
    let (fixture, repository, _) = planted();
    let data = spawn(&fixture, "coder", "Rename `to_cents` to `as_cents`");
    let patch = &data["artifacts"][1];
    assert_eq!(
        (&patch["type"], &patch["mimeType"]),
        (&json!("code"), &json!("text/x-diff")),
        "{data}"
    );
    let patch = patch["content"].as_str().unwrap();
    let file = fixture.root.path().join("proposal.patch");
    std::fs::write(&file, patch).unwrap();
    let money = repository.join("shop/money.py");
    assert!(
        std::fs::read_to_string(&money)
            .unwrap()
            .contains("def to_cents")
    );
    git(&repository, &["apply", file.to_str().unwrap()]);
    for path in [
        "shop/money.py",
        "shop/tax.py",
        "shop/orders.py",
        "tests/test_money.py",
    ] {
        let text = std::fs::read_to_string(repository.join(path)).unwrap();
        assert!(
            text.contains("as_cents") && !text.contains("to_cents"),
            "{path}:\n{text}\n{patch}"
        );
    }
    let located = &data["taskResult"]["locations"][0];
    assert_eq!(
        (&located["file"], &located["symbol"]),
        (&json!("shop/money.py"), &json!("to_cents"))
    );
    let explained = data["taskResult"]["explanation"].as_str().unwrap();
    assert!(explained.contains("tax_of"), "{explained}");

    let data = spawn(
        &fixture,
        "coder",
        "What does the shop do about opening hours?",
    );
    assert_eq!(data["taskResult"]["patch"], Value::Null);
    assert_eq!(data["artifacts"].as_array().unwrap().len(), 1, "{data}");
}

#[test]
fn what_changed_without_its_test_is_found() {
    let (fixture, repository, _) = planted();
    let before = spawn(&fixture, "tester", "Look for changes");
    assert_eq!(before["taskResult"]["changedWithoutTest"], 0, "{before}");
    let change = |path: &str| {
        let path = repository.join(path);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, text + "\n\nEXTRA = 1\n").unwrap();
    };
    // One with its test, one without.
    for path in ["shop/tax.py", "tests/test_money.py", "shop/clock.py"] {
        change(path);
    }
    git(
        &repository,
        &["commit", "--quiet", "--all", "--message", "second"],
    );
    scan(&fixture, &repository);
    let after = spawn(&fixture, "tester", "Look for changes");
    let findings = after["taskResult"]["findings"].as_array().unwrap().iter();
    let changed: Vec<&str> = findings
        .filter(|it| it["type"] == "changed-without-test")
        .map(|it| it["references"][0].as_str().unwrap())
        .collect();
    assert_eq!(changed, ["shop/clock.py"], "{after}");
}

#[test]
fn what_a_trait_asks_for_needs_neither_words_nor_tests_of_its_own() {
    let fixture = Fixture::new();
    let repository = fixture.repositories().join("beach");
    std::fs::create_dir_all(repository.join("src")).unwrap();
    let source = "pub struct Walrus;\n\nimpl Drop for Walrus {\n    fn drop(&mut self) {}\n}\n\n\
        impl Walrus {\n    pub fn sleep(&self) {}\n}\n\n#[test]\nfn it_is() {}\n";
    std::fs::write(repository.join("src/lib.rs"), source).unwrap();
    git(&repository, &["init", "--quiet", "--initial-branch=main"]);
    git(&repository, &["add", "--all"]);
    git(&repository, &["commit", "--quiet", "--message", "first"]);
    scan(&fixture, &repository);
    let data = spawn(&fixture, "tester", "Find what is untested or undocumented");
    let findings = data["taskResult"]["findings"].to_string();
    assert!(findings.contains("Walrus.sleep"), "{findings}");
    assert!(!findings.contains("Walrus.drop"), "{findings}");
}

/// A workspace of Rust with what calls alone do not show: a program that a test runs, a call by way of a trait, an
/// attribute, a table, a macro, generated code, helpers of tests, and a comment in place of a doc comment.
#[test]
fn what_cannot_be_followed_by_calls_is_not_called_untested() {
    let fixture = Fixture::new();
    let repository = fixture.repositories().join("beach");
    for (path, text) in [
        (
            "app/src/main.rs",
            "mod swim;\n\nfn main() {\n    swim::start();\n}\n\npub fn for_nobody() {}\n",
        ),
        (
            "app/src/swim.rs",
            "pub fn start() {\n    let start = stroke();\n    drop(start);\n}\n\nfn stroke() -> u32 {\n    1\n}\n",
        ),
        (
            "app/tests/runs.rs",
            "#[test]\nfn it_swims() {\n    std::process::Command::new(env!(\"CARGO_BIN_EXE_app\")).status().unwrap();\n}\n",
        ),
        (
            "lib/src/lib.rs",
            "//! A beach.\n\nmod bindings;\n\n/// A table.\npub const ALL: [fn() -> u32; 1] = [in_table];\n\n\
             fn in_table() -> u32 {\n    1\n}\n\n/// A row.\n#[derive(Deserialize)]\npub struct Row {\n    \
             #[serde(default = \"in_attribute\")]\n    n: u32,\n}\n\nfn in_attribute() -> u32 {\n    1\n}\n\n\
             /// Sleeps.\npub trait Sleeps {\n    /// Sleeps.\n    fn sleep(&self) -> u32;\n}\n\n\
             impl Sleeps for Row {\n    fn sleep(&self) -> u32 {\n        below_trait()\n    }\n}\n\n\
             fn below_trait() -> u32 {\n    1\n}\n\n// It is counted.\npub fn commented() {}\n\n\
             pub(crate) fn within() {}\n\npub fn left_alone() -> u32 {\n    below_left_alone()\n}\n\n\
             fn below_left_alone() -> u32 {\n    1\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    \
             pub fn helper() {}\n\n    #[test]\n    fn it_is() {\n        ALL[0]();\n        commented();\n        \
             within();\n    }\n}\n",
        ),
        (
            "lib/src/bindings.rs",
            "// Generated by a program. DO NOT EDIT!\npub fn made() {}\n",
        ),
    ] {
        let path = repository.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    git(&repository, &["init", "--quiet", "--initial-branch=main"]);
    git(&repository, &["add", "--all"]);
    git(&repository, &["commit", "--quiet", "--message", "first"]);
    scan(&fixture, &repository);
    let data = spawn(&fixture, "tester", "Find what is untested or undocumented");
    let found = |kind: &str| -> Vec<String> {
        let findings = data["taskResult"]["findings"].as_array().unwrap().iter();
        let of_kind = findings.filter(|it| it["type"] == kind);
        let titles = of_kind.map(|it| it["title"].as_str().unwrap());
        let mut names: Vec<String> = titles
            .map(|it| it.split('`').nth(1).unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(
        found("untested"),
        ["below_left_alone", "for_nobody", "left_alone"],
        "{data:#}"
    );
    assert_eq!(found("undocumented"), ["left_alone"], "{data:#}");
}

/// Cancels its agent when the model's tools are asked for.
struct Meddler<'a>(&'a Fixture);

impl Toolbox for Meddler<'_> {
    fn tools(&self, _: AgentKind) -> Vec<ToolSpec> {
        let engine = self.0.board.engine();
        assert!(engine.agent_tasks().cancel(&self.0.owner(), "ann").unwrap());
        Vec::new()
    }

    fn call(&self, _: &str, _: Value, _: &Caller) -> Result<String, String> {
        Err("nothing".to_owned())
    }
}

#[test]
fn a_task_that_somebody_cancels_ends_at_its_next_step() {
    let model = kenning_testing_llm::Scripted::saying(vec![kenning_testing_llm::Reply::Says(
        "x".to_owned(),
    )]);
    let endpoint = model.url("/v1");
    let outside = kenning_testing::Outside::of(&[
        ("KENNING_MODEL_ENDPOINT", &endpoint),
        ("KENNING_MODEL_NAME", "tiny"),
    ]);
    let fixture = Fixture::in_world(Selection::default(), outside);
    let spawn = Spawn {
        kind: AgentKind::Analyst,
        name: Some("ann".to_owned()),
        task: "Measure".to_owned(),
        timeout: None,
        retries: None,
        priority: Priority::Medium,
    };
    let engine = fixture.board.engine();
    let ended = engine
        .agent_tasks()
        .spawn(&fixture.owner(), &spawn, &Meddler(&fixture));
    assert_eq!(ended.unwrap_err().message, "Task was cancelled");
    assert!(model.seen().is_empty(), "the model was not asked any more");
    let ann = engine
        .agent_tasks()
        .status(&fixture.owner(), "ann")
        .unwrap();
    assert_eq!((ann.status.as_str(), ann.errors), ("terminated", 1));
    assert!(
        !engine
            .agent_tasks()
            .cancel(&fixture.owner(), "ann")
            .unwrap(),
        "there is nothing to cancel"
    );
    let health = call(
        &fixture,
        "kg_health_check",
        json!({ "components": ["agents"] }),
    );
    assert_eq!(
        health["data"]["components"]["agents"], "healthy",
        "{health}"
    );
}
