//! What actions reach: directives, WASM tools, and tools that write more than once.

use super::{ask, project, reopened, start, status};
use crate::everything;
use kenning_engine::kami::InstallOptions;
use kenning_engine::runs::{Family, Run};
use kenning_engine::workflow_steps::WorkflowKind;
use kenning_testing::Fixture;
use kenning_testing_wasm::probes;
use serde_json::{Map, Value, json};

const DIRECTIVE: &str = "---\nname: count_walruses\nversion: 1.0.0\ncategory: beach\ndescription: Count walruses\n---\n\n# Count walruses\n\n1. Look at every beach.\n";

const MANIFEST: &str = "[tool]\nid = \"dev.example.echo\"\nname = \"echo\"\nversion = \"1.0.0\"\nwasm = \"tool.wasm\"\n\
    [mcp]\ndescription = \"Repeats\"\n[[mcp.arguments]]\nname = \"message\"\ntype = \"string\"\n\
    description = \"What to repeat\"\nrequired = true\n[security]\nmax_fuel = 100000\n";

#[test]
fn an_action_runs_a_directive_and_a_wasm_tool() {
    let fixture = everything(&project());
    fixture.put_document(".ai/directives/beach/count_walruses.md", DIRECTIVE);
    let signed = json!({ "item_type": "directive", "action": "sign", "item_id": "count_walruses" });
    ask(&fixture, "execute", signed);
    let package = tempfile::tempdir().unwrap();
    std::fs::write(package.path().join("tool.toml"), MANIFEST).unwrap();
    std::fs::write(package.path().join("tool.wasm"), probes::echo().unwrap()).unwrap();
    let source = package.path().display().to_string();
    let kami = fixture.board.engine().kami();
    kami.install_tool(&fixture.owner(), &source, &InstallOptions::default())
        .unwrap();
    let input = json!({
        "goal": { "told": true },
        "actions": [
            { "name": "read", "effects": { "read": true }, "tool": "execute",
              "arguments": { "item_type": "directive", "action": "run", "item_id": "count_walruses" } },
            { "name": "tell", "needs": { "read": true }, "effects": { "told": true },
              "tool": "dev.example.echo", "arguments": { "message": "two walruses" } },
        ],
    });
    let done = start(&fixture, "custom", input);
    assert_eq!(done["outcome"], "completed", "{done:#}");
    let steps = status(&fixture, &done["workflowId"])["steps"].clone();
    let answer = |n: usize| steps[n]["metadata"]["answer"].to_string();
    assert!(answer(1).contains("Look at every beach"), "{steps:#}");
    assert!(answer(2).contains("two walruses"), "{steps:#}");
}

fn input(value: Value) -> Map<String, Value> {
    let Value::Object(input) = value else {
        panic!("an object");
    };
    input
}

fn advance(fixture: &Fixture, id: &str, steps: u64) -> Run {
    let space = fixture.owner().principal.space;
    let engine = fixture.board.engine();
    let done = engine
        .workflows()
        .advance(&fixture.board, &space, id, &|it| it.n_steps < steps);
    done.unwrap().unwrap()
}

/// An agent writes that it was spawned long before it writes its report: a kill between them is no success.
#[test]
fn a_tool_that_was_cut_off_after_its_first_write_does_not_count_as_done() {
    let fixture = project();
    let (engine, caller) = (fixture.board.engine(), fixture.owner());
    let space = caller.principal.space.clone();
    let spawn = json!({ "type": "analyst", "name": "ann", "task": "Measure everything" });
    let goal = input(json!({
        "goal": { "measured": true },
        "actions": [{ "name": "measure", "effects": { "measured": true }, "tool": "kg_agent_spawn",
            "arguments": spawn }],
    }));
    let run = engine
        .workflows()
        .start(&caller, WorkflowKind::Custom, goal)
        .unwrap();
    advance(&fixture, &run.id, 1);
    let claim = engine.runs().claim(&space, Family::Workflow, &run.id);
    let claim = claim.unwrap().unwrap();
    claim.begin().unwrap();
    claim.effect(1, || {
        // As much as an agent writes before it works; then the process is killed.
        let log = fixture.log();
        log.write(&space, |tx| tx.record("AgentSpawned", json!({})).map(drop))
            .unwrap();
    });
    drop(claim);
    let other = reopened(&fixture);
    let waits = advance(&other, &run.id, 9);
    assert_eq!(waits.status.as_str(), "suspended", "{waits:?}");
    let runs = other.board.engine().runs();
    runs.resume(&caller, Family::Workflow, &run.id, true)
        .unwrap();
    let done = advance(&other, &run.id, 9);
    assert_eq!(done.status.as_str(), "completed", "{:?}", done.error);
    let answer = done.steps[1].metadata["answer"].to_string();
    assert!(answer.contains("taskResult"), "{answer}");
    let listed = ask(&other, "kg_agent_list", json!({}));
    assert_eq!(
        listed["data"]["agents"][0]["completedTasks"], 1,
        "{listed:#}"
    );
}

/// What a killed process left in the journal is cleared by a transaction of its own, which is not the tool's work.
#[test]
fn a_transaction_that_records_nothing_does_not_count_as_the_work_of_a_step() {
    let fixture = project();
    let (runs, caller) = (fixture.board.engine().runs(), fixture.owner());
    let space = caller.principal.space.clone();
    let new = kenning_engine::runs::NewRun {
        family: Family::Workflow,
        kind: "custom".to_owned(),
        input: json!({}),
        first_step: "a".to_owned(),
    };
    let run = runs.start(&caller, new).unwrap();
    let claim = runs.claim(&space, Family::Workflow, &run.id).unwrap();
    let claim = claim.unwrap();
    claim.begin().unwrap();
    claim.effect(0, || fixture.log().write(&space, |_| Ok(())).unwrap());
    assert_eq!(claim.begin().unwrap(), kenning_engine::runs::Before::Begun);
}
