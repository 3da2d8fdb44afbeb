//! Whatever step a process is killed at, the run is completed once, and each step's effect happens once.
//!
//! A kill is a claim that is dropped without a word; `xtask crash workflows` kills real processes.

use super::{ask, project, reopened, status};
use kenning_engine::runs::{Family, Run};
use kenning_engine::workflow_steps::WorkflowKind;
use kenning_testing::Fixture;
use serde_json::{Map, Value, json};

const KINDS: [WorkflowKind; 4] = WorkflowKind::ALL;

fn input(kind: WorkflowKind) -> Map<String, Value> {
    let append = |name: &str, needs: Value| {
        json!({
            "name": name, "needs": needs, "effects": { (name): true }, "tool": "daily_append",
            "arguments": { "content": format!("entry of {name}") },
        })
    };
    let value = match kind {
        WorkflowKind::Collaboration => {
            json!({ "docPath": "docs/spec.md", "options": { "autoStart": true } })
        }
        WorkflowKind::Analysis => json!({ "docPath": "docs" }),
        WorkflowKind::Sync => json!({}),
        WorkflowKind::Custom => json!({
            "goal": { "three": true },
            "actions": [
                append("one", json!({})),
                append("two", json!({ "one": true })),
                append("three", json!({ "two": true })),
            ],
        }),
    };
    let Value::Object(input) = value else {
        panic!("an object");
    };
    input
}

fn advance(fixture: &Fixture, id: &str, goes_on: &dyn Fn(&Run) -> bool) -> Option<Run> {
    let space = fixture.owner().principal.space;
    let engine = fixture.board.engine();
    engine
        .workflows()
        .advance(&fixture.board, &space, id, goes_on)
        .unwrap()
}

#[test]
fn a_run_that_is_left_after_each_step_is_completed_once_by_others() {
    for kind in KINDS {
        let mut fixture = project();
        let caller = fixture.owner();
        let run = fixture
            .board
            .engine()
            .workflows()
            .start(&caller, kind, input(kind))
            .unwrap();
        let mut n_processes = 0;
        loop {
            let before = status(&fixture, &json!(run.id))["stepCount"]
                .as_u64()
                .unwrap();
            let after = advance(&fixture, &run.id, &|it| it.n_steps == before).unwrap();
            if after.ended_ms.is_some() {
                break;
            }
            n_processes += 1;
            assert!(n_processes < 50, "{kind:?}: {after:?}");
            fixture = reopened(&fixture);
        }
        assert!(n_processes >= 3, "{kind:?}");
        let done = status(&fixture, &json!(run.id));
        assert_eq!(done["outcome"], "completed", "{kind:?}: {done:#}");
        let count = |event: &str| {
            let found = ask(&fixture, "kg_audit_query", json!({ "eventType": event }));
            found["data"]["totalCount"].as_u64().unwrap()
        };
        assert_eq!(count("WorkflowCompleted"), 1, "{kind:?}");
        assert_eq!(
            count("WorkflowStepCompleted"),
            done["stepCount"].as_u64().unwrap(),
            "{kind:?}"
        );
        let trajectories = ask(&fixture, "kg_trajectory_list", json!({}));
        assert_eq!(trajectories["data"]["count"], 1, "{kind:?}");
        assert!(advance(&fixture, &run.id, &|_| true).is_none());
    }
}

#[test]
fn an_effect_that_was_written_before_the_kill_is_not_written_again() {
    let everything = |fixture: &Fixture| crate::everything(fixture);
    let fixture = everything(&project());
    let (engine, caller) = (fixture.board.engine(), fixture.owner());
    let space = caller.principal.space.clone();
    let kind = WorkflowKind::Custom;
    let run = engine
        .workflows()
        .start(&caller, kind, input(kind))
        .unwrap();
    advance(&fixture, &run.id, &|it| it.n_steps < 1).unwrap();
    // The second step is done, and the process is killed before it can say so.
    let claim = engine
        .runs()
        .claim(&space, Family::Workflow, &run.id)
        .unwrap()
        .unwrap();
    claim.begin().unwrap();
    let reply = claim.effect(1, || {
        fixture.call("daily_append", json!({ "content": "entry of one" }))
    });
    assert!(!reply.is_error(), "{}", reply.text);
    drop(claim);
    let other = everything(&reopened(&fixture));
    let done = advance(&other, &run.id, &|_| true).unwrap();
    assert_eq!(done.status.as_str(), "completed", "{:?}", done.error);
    let mut text = String::new();
    for entry in walk(&other.omi()) {
        text += &std::fs::read_to_string(entry).unwrap_or_default();
    }
    for name in ["one", "two", "three"] {
        let entry = format!("entry of {name}");
        assert_eq!(text.matches(&entry).count(), 1, "{entry}: {text}");
    }
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(walk(&path)),
            false => files.push(path),
        }
    }
    files
}
