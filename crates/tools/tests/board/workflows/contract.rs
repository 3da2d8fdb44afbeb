//! The contract of workflows and trajectories: shapes, texts, values.

use super::{ask, project, reopened, start, status};
use crate::shapes;
use kenning_testing::Fixture;
use serde_json::{Value, json};

fn refusal(fixture: &Fixture, tool: &str, arguments: Value) -> String {
    let reply = fixture.call(tool, arguments);
    assert!(reply.is_error(), "{tool}: {}", reply.text);
    reply.to_json()["error"].as_str().unwrap().to_owned()
}

#[test]
fn every_answer_about_workflows_has_the_shape_of_the_contract_s_example() {
    let fixture = project();
    let started = start(&fixture, "analysis", json!({ "docPath": "./docs" }));
    let id = &started["workflowId"];
    for (tool, arguments) in [
        (
            "kg_workflow_start",
            json!({ "workflowId": "analysis", "input": { "docPath": "./docs" } }),
        ),
        (
            "kg_workflow_start",
            json!({ "workflowId": "collaboration", "input": { "graphId": "main-graph", "docPath": "./docs/spec.md" } }),
        ),
        (
            "kg_workflow_status",
            json!({ "workflowId": id, "includeMetrics": true, "includeConfig": true }),
        ),
        ("kg_workflow_list", json!({})),
        (
            "kg_trajectory_list",
            json!({ "includeSteps": true, "workflowId": id }),
        ),
    ] {
        let answer = ask(&fixture, tool, arguments);
        let mut expected = shapes::kg_answer(tool);
        if tool == "kg_workflow_list" {
            expected["data"]["pagination"]["nextOffset"] = Value::Null;
        }
        let faults = shapes::lacks(&expected, &answer, tool);
        // Nothing is watched here.
        let faults: Vec<String> = faults
            .into_iter()
            .filter(|it| !it.contains("service.watchedPaths is empty"))
            .collect();
        assert_eq!(faults, Vec::<String>::new(), "{answer:#}");
    }
}

#[test]
fn the_contract_s_example_of_a_sync_watches_both_of_its_folders() {
    let fixture = project();
    fixture.put_document("specs/tide.md", "# Tide\n\nIt comes twice a day.\n");
    let example = json!({
        "workflowId": "sync",
        "input": { "options": { "watchPaths": ["./docs", "./specs"] } },
    });
    let answer = ask(&fixture, "kg_workflow_start", example);
    let mut expected = shapes::kg_answer("kg_workflow_start");
    // It goes on: it has not ended yet.
    expected["data"]["completedAt"] = Value::Null;
    let faults = shapes::lacks(&expected, &answer, "start");
    assert_eq!(faults, Vec::<String>::new(), "{answer:#}");
    assert_eq!(answer["data"]["currentStep"], "watching", "{answer:#}");
    let told = ask(&fixture, "kg_workflow_status", json!({}));
    let watched = &told["data"]["service"]["watchedPaths"];
    assert_eq!(*watched, json!(["./docs", "./specs"]), "{told:#}");
    let found = ask(&fixture, "kg_search_nodes", json!({ "query": "tide" }));
    assert!(found.to_string().contains("specs/tide.md"), "{found:#}");
}

#[test]
fn the_errors_about_workflows_are_those_of_the_contract() {
    let fixture = project();
    for (arguments, expected) in [
        (json!({}), "Workflow ID is required"),
        (json!({ "workflowId": "" }), "Workflow ID is required"),
        (json!({ "workflowId": 5 }), "Workflow ID is required"),
        (
            json!({ "workflowId": "deploy" }),
            "Invalid workflow type: deploy. Valid types: collaboration, analysis, sync, custom",
        ),
    ] {
        let said = refusal(&fixture, "kg_workflow_start", arguments.clone());
        assert_eq!(said, expected, "{arguments}");
    }
    for (kind, input, expected) in [
        (
            "collaboration",
            json!({}),
            "`input.docPath`: a collaboration needs a document",
        ),
        (
            "analysis",
            json!({ "docPath": 5 }),
            "`input.docPath`: 5 is not a text",
        ),
        (
            "analysis",
            json!({ "options": [] }),
            "`input.options`: [] is not an object",
        ),
        (
            "sync",
            json!({ "options": { "watchPaths": "docs" } }),
            "`input.options.watchPaths`",
        ),
        (
            "collaboration",
            json!({ "docPath": "a", "options": { "threshold": 7 } }),
            "`input.options.threshold`: 7",
        ),
        (
            "custom",
            json!({ "actions": [{ "name": "a", "tool": "kg_workflow_start" }] }),
            "which an action may not",
        ),
        (
            "custom",
            json!({ "actions": [{ "cost": 1 }] }),
            "`actions[0].name`",
        ),
        (
            "analysis",
            json!({ "docpath": "docs" }),
            "`input.docpath`: a workflow of type analysis has no such member. Did you mean `input.docPath`?",
        ),
        (
            "sync",
            json!({ "watchPaths": ["docs"] }),
            "Did you mean `input.options.watchPaths`?",
        ),
        (
            "analysis",
            json!({ "options": { "treshold": 0.5 } }),
            "`input.options.treshold`: a workflow of type analysis has no such member. Did you mean \
             `input.options.threshold`?",
        ),
        (
            "analysis",
            json!({ "actions": [] }),
            "`input.actions`: a workflow of type analysis has no such member",
        ),
        (
            "custom",
            json!({ "goal": { "a": true }, "action": [] }),
            "Did you mean `input.actions`?",
        ),
    ] {
        let arguments = json!({ "workflowId": kind, "input": input });
        let said = refusal(&fixture, "kg_workflow_start", arguments.clone());
        assert!(said.contains(expected), "{arguments}: {said}");
    }
    assert_eq!(
        ask(&fixture, "kg_workflow_list", json!({}))["data"]["summary"]["total"],
        0
    );
}

#[test]
fn an_analysis_finds_what_the_documents_lack_and_says_where() {
    let fixture = project();
    fixture.call(
        "memory_store",
        json!({ "content": "Counting should never be done at night, said the keeper", "memory_type": "fact" }),
    );
    let done = start(&fixture, "analysis", json!({ "docPath": "./docs" }));
    assert_eq!(done["outcome"], "completed", "{done:#}");
    let artifacts: Vec<&str> = done["artifacts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap())
        .collect();
    for (place, what) in [
        ("docs/draft.md:3: ", "Mend the link to `nowhere.md`"),
        (
            "docs/draft.md:3: ",
            "Replace the link to `docs/old.md`, which is deprecated",
        ),
        ("docs/old.md:1: ", "Review it: `expires` was 2001-01-01"),
        ("docs/draft.md:5: ", "Decide what `tbd` leaves open"),
        ("docs/draft.md:5: ", "should always vs should never"),
    ] {
        let found = artifacts
            .iter()
            .any(|it| it.starts_with(place) && it.contains(what));
        assert!(found, "{place}{what}: {artifacts:#?}");
    }
    assert_eq!(done["result"]["completeness"], 1.0);
    // The same documents give the same findings.
    let again = start(&fixture, "analysis", json!({ "docPath": "docs" }));
    assert_eq!(again["artifacts"], done["artifacts"]);
    let one = start(&fixture, "analysis", json!({ "docPath": "docs/draft.md" }));
    let said = one["artifacts"].to_string();
    assert!(said.contains("Add missing requirements section"), "{said}");
    assert!(!said.contains("docs/old.md:1"), "{said}");
    let none = start(&fixture, "analysis", json!({ "docPath": "docs/none.md" }));
    assert_eq!(none["outcome"], "failed");
    assert!(
        none["error"]
            .as_str()
            .unwrap()
            .contains("no document at `docs/none.md`"),
        "{none}"
    );
    let gaps = ask(
        &fixture,
        "kg_audit_query",
        json!({ "eventType": "GapDetected" }),
    );
    assert!(
        gaps["data"]["totalCount"].as_u64().unwrap() >= 4,
        "{gaps:#}"
    );
}

#[test]
fn a_collaboration_waits_until_the_document_is_ready_and_makes_a_task() {
    let fixture = project();
    let input = json!({ "docPath": "docs/draft.md", "options": { "autoStart": true } });
    let started = start(&fixture, "collaboration", input);
    assert_eq!(
        (&started["outcome"], &started["currentStep"]),
        (&json!("running"), &json!("watching")),
        "{started:#}"
    );
    let id = &started["workflowId"];
    let listed = ask(
        &fixture,
        "kg_workflow_list",
        json!({ "type": "realtime-collab", "status": "running" }),
    );
    assert_eq!(listed["data"]["workflows"][0]["id"], *id, "{listed:#}");
    // Nothing has changed: it goes on waiting, and nothing is recorded.
    let step = |fixture: &Fixture| {
        let space = fixture.owner().principal.space;
        let id = id.as_str().unwrap();
        let engine = fixture.board.engine();
        engine
            .workflows()
            .advance(&fixture.board, &space, id, &|_| true)
            .unwrap();
        status(fixture, &json!(id))
    };
    let waiting = step(&fixture);
    assert_eq!(
        (&waiting["status"], &waiting["stepCount"]),
        (&json!("running"), &json!(3))
    );
    // Somebody writes the rest; another process sees it.
    let two = reopened(&fixture);
    two.put_document("docs/draft.md", super::SPEC);
    let done = step(&two);
    assert_eq!(
        (&done["status"], &done["outcome"]),
        (&json!("completed"), &json!("completed")),
        "{done:#}"
    );
    let made = done["artifacts"].to_string();
    assert!(
        made.contains("create-task") && made.contains("start-development"),
        "{made}"
    );
    let tasks = ask(
        &two,
        "kg_audit_query",
        json!({ "eventType": "TaskSpecGenerated" }),
    );
    assert_eq!(tasks["data"]["totalCount"], 1);
    let ready = start(&two, "collaboration", json!({ "docPath": "docs/spec.md" }));
    assert_eq!(ready["outcome"], "completed", "{ready:#}");
    let folder = start(&two, "collaboration", json!({ "docPath": "docs" }));
    assert!(
        folder["error"].as_str().unwrap().contains("is a folder"),
        "{folder}"
    );
}

#[test]
fn a_sync_generates_and_watches_until_it_is_stopped() {
    let fixture = project();
    let once = start(&fixture, "sync", json!({}));
    assert_eq!(once["outcome"], "completed", "{once:#}");
    let said = once["artifacts"].to_string();
    assert!(said.contains("docs: 3 added"), "{said}");
    let input = json!({ "options": { "watchPaths": ["./docs"] } });
    let watching = start(&fixture, "sync", input);
    assert_eq!(watching["currentStep"], "watching", "{watching:#}");
    let service = ask(&fixture, "kg_workflow_status", json!({}))["data"]["service"].clone();
    assert_eq!(service["watchedPaths"], json!(["./docs"]));
    assert_eq!(service["activeWorkflowCount"], 1);
    fixture.put_document("docs/new.md", "A walrus was seen.");
    let id = watching["workflowId"].as_str().unwrap();
    let (engine, caller) = (fixture.board.engine(), fixture.owner());
    let space = &caller.principal.space;
    engine
        .workflows()
        .advance(&fixture.board, space, id, &|it| it.n_steps < 4)
        .unwrap();
    let found = ask(&fixture, "kg_query", json!({ "query": "walrus seen" }));
    assert!(found.to_string().contains("docs/new.md"), "{found}");
    let runs = engine.runs();
    runs.stop(&caller, kenning_engine::runs::Family::Workflow, id)
        .unwrap();
    let after = status(&fixture, &json!(id));
    assert_eq!(
        (&after["status"], &after["outcome"]),
        (&json!("failed"), &json!("cancelled"))
    );
    // The contract has four words for a status; everything else says what happened.
    let listed = ask(&fixture, "kg_workflow_list", json!({ "status": "failed" }));
    let listed = &listed["data"]["workflows"][0];
    assert_eq!(listed["outcome"], "cancelled", "{listed}");
    assert_eq!(after["error"], "it was cancelled", "{after}");
    let asked = json!({ "eventType": "WorkflowCancelled", "includePayload": true });
    let told = ask(&fixture, "kg_audit_query", asked);
    assert_eq!(
        told["data"]["events"].as_array().unwrap().len(),
        1,
        "{told}"
    );
    let service = ask(&fixture, "kg_workflow_status", json!({}))["data"]["service"].clone();
    assert_eq!(service["watchedPaths"], json!([]));
    let outside = start(
        &fixture,
        "sync",
        json!({ "options": { "watchPaths": ["../else"] } }),
    );
    assert_eq!(outside["outcome"], "failed", "{outside}");
}

#[test]
fn workflows_are_listed_by_status_and_type_sorted_and_by_pages() {
    let fixture = project();
    for kind in ["analysis", "sync", "analysis"] {
        start(&fixture, kind, json!({}));
    }
    let list = |arguments: Value| ask(&fixture, "kg_workflow_list", arguments);
    let all = list(json!({ "limit": 2 }));
    assert_eq!(all["data"]["summary"]["byType"]["analysis"], 2);
    assert_eq!(
        all["data"]["pagination"],
        json!({ "limit": 2, "offset": 0, "hasMore": true, "nextOffset": 2 })
    );
    let rest = list(json!({ "limit": 2, "offset": 2 }));
    assert_eq!(rest["data"]["pagination"]["nextOffset"], Value::Null);
    assert_eq!(rest["data"]["summary"]["returned"], 1);
    let sync = list(json!({ "type": "sync", "status": "completed" }));
    assert_eq!(sync["data"]["summary"]["filtered"], 1);
    assert_eq!(sync["metadata"]["filters"]["type"], "sync");
    let sorted = list(json!({ "sortBy": "type", "sortOrder": "asc" }));
    let types: Vec<&str> = sorted["data"]["workflows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["analysis", "analysis", "sync"]);
}

#[test]
fn health_tells_of_workflows() {
    let fixture = project();
    let health = |fixture: &Fixture| {
        let arguments = json!({ "components": ["workflows"] });
        ask(fixture, "kg_health_check", arguments)["data"].clone()
    };
    assert_eq!(health(&fixture)["components"]["workflows"], "healthy");
    for _ in 0..5 {
        start(&fixture, "analysis", json!({ "docPath": "none.md" }));
    }
    let bad = health(&fixture);
    assert_eq!(bad["components"]["workflows"], "unhealthy", "{bad}");
    assert_eq!(
        bad["componentDetails"]["workflows"],
        "5 of 5 workflows failed, 0 are under way"
    );
}

#[test]
fn a_project_without_a_folder_of_documents_is_looked_at_whole() {
    let fixture = Fixture::new();
    fixture.put_document("spec.md", super::SPEC);
    for input in [
        json!({}),
        json!({ "docPath": "." }),
        json!({ "docPath": "./" }),
    ] {
        let done = start(&fixture, "analysis", input.clone());
        assert_eq!(done["outcome"], "completed", "{input}: {done:#}");
    }
}
