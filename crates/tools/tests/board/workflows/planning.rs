//! Plans of actions that call tools.

use super::{ask, project, start, status};
use kenning_engine::{NewToken, Principal, Scope};
use kenning_testing::Fixture;
use serde_json::{Value, json};

fn remember(name: &str, cost: u32) -> Value {
    json!({
        "name": name, "cost": cost, "effects": { "remembered": true }, "tool": "memory_store",
        "arguments": { "content": format!("the walrus of {name}"), "memory_type": "fact" },
    })
}

#[test]
fn the_cheapest_plan_is_done_and_its_actions_call_tools() {
    let fixture = project();
    let input = json!({
        "goal": { "published": true },
        "facts": { "drafted": true },
        "actions": [
            remember("dear", 9),
            remember("cheap", 2),
            { "name": "publish", "needs": { "remembered": true, "drafted": true }, "effects": { "published": true },
              "tool": "vault_write_note", "arguments": { "path": "walrus.md", "content": "It sleeps." } },
        ],
    });
    let done = start(&fixture, "custom", input);
    assert_eq!(done["outcome"], "completed", "{done:#}");
    assert_eq!(done["artifacts"], json!(["cheap", "publish"]));
    assert!(fixture.vault().join("walrus.md").exists());
    let steps = status(&fixture, &done["workflowId"])["steps"].clone();
    assert_eq!(steps[0]["metadata"]["plan"], json!(["cheap", "publish"]));
    assert_eq!(steps[0]["metadata"]["cost"], 3.0);
    assert_eq!(steps[1]["outcome"], "success");
}

#[test]
fn what_failed_is_planned_around_and_remembered() {
    let fixture = project();
    let input = json!({
        "goal": { "remembered": true },
        "actions": [
            { "name": "broken", "cost": 1, "effects": { "remembered": true }, "tool": "vault_read_note",
              "arguments": { "path": "none.md" } },
            remember("safe", 2),
        ],
    });
    let first = start(&fixture, "custom", input.clone());
    assert_eq!(first["outcome"], "completed", "{first:#}");
    let actions = |started: &Value| -> Vec<String> {
        let steps = status(&fixture, &started["workflowId"])["steps"].clone();
        let steps = steps.as_array().unwrap().iter();
        steps
            .map(|it| it["action"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(actions(&first), ["plan", "broken", "plan", "safe"]);
    // It failed each time that it was tried: after some times it costs more than the other.
    let mut tried = Vec::new();
    for _ in 0..3 {
        tried = actions(&start(&fixture, "custom", input.clone()));
    }
    assert_eq!(tried, ["plan", "broken", "plan", "safe"]);
    let mut equal = input;
    equal["actions"][0]["cost"] = 2.into();
    assert_eq!(actions(&start(&fixture, "custom", equal)), ["plan", "safe"]);
    let stats = ask(&fixture, "kg_trajectory_list", json!({}))["data"]["stats"].clone();
    assert_eq!(
        stats["recommendations"][0]["pattern"], "plan->broken->plan->safe",
        "{stats:#}"
    );
    assert_eq!(stats["learningRecords"], 1);
    assert_eq!(stats["successRate"], 100.0);
}

#[test]
fn a_goal_that_cannot_be_reached_or_is_unknown_fails_with_the_reason() {
    let fixture = project();
    let unknown = start(&fixture, "custom", json!({ "goal": "fame" }));
    assert_eq!(unknown["error"].as_str().unwrap(), "Unknown goal: fame");
    let input = json!({ "goal": { "online": true }, "actions": [remember("a", 1)] });
    let out_of_reach = start(&fixture, "custom", input);
    let said = out_of_reach["error"].as_str().unwrap();
    assert!(
        said.contains("no sequence of the actions reaches it"),
        "{said}"
    );
    let holds = start(
        &fixture,
        "custom",
        json!({ "goal": { "a": 1 }, "facts": { "a": 2 } }),
    );
    assert_eq!(
        (&holds["outcome"], &holds["artifacts"]),
        (&json!("completed"), &json!([]))
    );
    // The goals and actions that are always there, from what a document says.
    let input = json!({ "goal": "start-development", "docPath": "docs/spec.md" });
    let builtin = start(&fixture, "custom", input);
    // They name no tool, so people have to do them, and nothing was made.
    assert_eq!(
        builtin["result"]["forPeople"],
        json!(["create-task", "start-development"]),
        "{builtin:#}"
    );
    assert_eq!(builtin["artifacts"], json!([]), "{builtin:#}");
    let shown = status(&fixture, &builtin["workflowId"]);
    assert_eq!(shown["forPeople"], builtin["result"]["forPeople"]);
}

#[test]
fn what_was_done_is_an_artifact_and_what_is_left_to_people_is_not() {
    let fixture = project();
    let input = json!({
        "goal": { "approved": true },
        "actions": [
            remember("draft", 1),
            { "name": "approve", "needs": { "remembered": true }, "effects": { "approved": true } },
        ],
    });
    let done = start(&fixture, "custom", input);
    assert_eq!(done["artifacts"], json!(["draft"]), "{done:#}");
    assert_eq!(done["result"]["forPeople"], json!(["approve"]), "{done:#}");
    let found = ask(
        &fixture,
        "kg_trajectory_list",
        json!({ "includeSteps": true }),
    );
    let steps = &found["data"]["trajectories"][0]["steps"];
    assert_eq!(steps[2]["outcome"], "pending", "{found:#}");
}

#[test]
fn an_action_may_do_what_its_caller_may_and_no_more() {
    let fixture = project();
    let engine = fixture.board.engine();
    let space = fixture.owner().principal.space;
    let token = engine.create_token(
        &fixture.owner(),
        NewToken {
            name: "writer".to_owned(),
            scopes: vec![Scope::Read, Scope::Write],
            space,
            expires_ms: None,
        },
    );
    let principal: Principal = engine.authenticate(&token.unwrap()).unwrap();
    let id = principal.token.clone().unwrap();
    let caller = kenning_engine::Caller::new(principal);
    let run = json!({
        "goal": { "ran": true },
        "actions": [{ "name": "run", "effects": { "ran": true }, "tool": "execute",
            "arguments": { "item_type": "tool", "action": "run", "item_id": "now_read" } }],
    });
    let ask_as = |input: Value| {
        let arguments = json!({ "workflowId": "custom", "input": input });
        fixture
            .call_as("kg_workflow_start", arguments, &caller)
            .to_json()
    };
    let denied = ask_as(run.clone());
    let said = denied["data"]["error"].as_str().unwrap().to_owned();
    assert!(said.contains("lacks the scope `run`"), "{said}");
    let owner = start(&fixture, "custom", run);
    assert_eq!(owner["outcome"], "completed", "{owner:#}");
    // Once the token is revoked, its runs do nothing more.
    let waiting = ask_as(json!({ "goal": "fame" }));
    assert_eq!(waiting["data"]["outcome"], "failed");
    let started = engine.workflows().start(
        &caller,
        kenning_engine::workflow_steps::WorkflowKind::Analysis,
        serde_json::Map::new(),
    );
    let started = started.unwrap();
    engine.revoke_token(&fixture.owner(), &id).unwrap();
    let space = &caller.principal.space;
    let ended = engine
        .workflows()
        .advance(&fixture.board, space, &started.id, &|_| true);
    let ended = ended.unwrap().unwrap();
    assert!(ended.error.unwrap().contains("is no longer valid"));
}

#[test]
fn a_program_that_perhaps_ran_is_not_run_again_until_somebody_says_so() {
    let fixture = project();
    let (engine, caller) = (fixture.board.engine(), fixture.owner());
    let space = &caller.principal.space;
    let input = json!({
        "goal": { "ran": true },
        "actions": [{ "name": "run", "effects": { "ran": true }, "tool": "execute",
            "arguments": { "item_type": "tool", "action": "run", "item_id": "now_read" } }],
    });
    let Value::Object(input) = input else {
        panic!("an object");
    };
    let kind = kenning_engine::workflow_steps::WorkflowKind::Custom;
    for again in [false, true] {
        let run = engine
            .workflows()
            .start(&caller, kind, input.clone())
            .unwrap();
        let advance = |fixture: &Fixture, steps: u64| {
            let engine = fixture.board.engine();
            let done = engine
                .workflows()
                .advance(&fixture.board, space, &run.id, &|it| it.n_steps < steps);
            done.unwrap().unwrap()
        };
        assert_eq!(advance(&fixture, 1).current_step, "run");
        // A process begins the step and is killed.
        let runs = engine.runs();
        let claim = runs.claim(space, kenning_engine::runs::Family::Workflow, &run.id);
        claim.unwrap().unwrap().begin().unwrap();
        let other = super::reopened(&fixture);
        let waits = advance(&other, 9);
        assert_eq!(waits.status.as_str(), "suspended");
        assert!(
            waits
                .error
                .unwrap()
                .contains("nobody knows whether it was done")
        );
        let health = ask(
            &other,
            "kg_health_check",
            json!({ "components": ["workflows"] }),
        );
        assert_eq!(health["data"]["components"]["workflows"], "degraded");
        let runs = other.board.engine().runs();
        runs.resume(
            &caller,
            kenning_engine::runs::Family::Workflow,
            &run.id,
            again,
        )
        .unwrap();
        let done = advance(&other, 9);
        assert_eq!(done.status.as_str(), "completed", "{:?}", done.error);
        let answer = &done.steps[1].metadata["answer"];
        assert_eq!(answer.is_null(), !again, "{answer}");
    }
}

#[test]
fn an_action_cannot_start_a_workflow_by_way_of_another_tool() {
    let fixture = Fixture::new();
    let inner = json!({
        "workflowId": "custom",
        "input": { "goal": { "b": true }, "actions": [{ "name": "b", "effects": { "b": true } }] },
    });
    let done = start(
        &fixture,
        "custom",
        json!({
            "goal": { "a": true },
            "actions": [{
                "name": "nest", "effects": { "a": true }, "tool": "execute",
                "arguments": {
                    "item_type": "tool", "action": "run", "item_id": "kg_workflow_start", "parameters": inner,
                },
            }],
        }),
    );
    assert_eq!(done["outcome"], "failed", "{done:#}");
    let error = done["error"].as_str().unwrap();
    assert!(error.contains("cannot start a workflow"), "{error}");
    let all = ask(&fixture, "kg_workflow_list", json!({}));
    assert_eq!(all["data"]["summary"]["total"], 1);
}

#[test]
fn what_is_left_to_people_is_not_called_done() {
    let fixture = Fixture::new();
    let done = start(
        &fixture,
        "custom",
        json!({
            "goal": { "told": true },
            "actions": [
                { "name": "count", "effects": { "counted": true }, "tool": "kg_health" },
                { "name": "phone", "needs": { "counted": true }, "effects": { "told": true } },
            ],
        }),
    );
    assert_eq!(done["outcome"], "completed", "{done:#}");
    assert_eq!(done["result"]["forPeople"], json!(["phone"]), "{done:#}");
}
