//! Durable runs: rows, events, who works on them, and what they leave.

use kenning_engine::runs::{
    Before, Ending, Family, NewRun, Outcome, RunFilter, Status, StepDone, StepOutcome,
    TrajectoryFilter,
};
use kenning_testing::Fixture;
use kenning_tools::Selection;
use serde_json::{Value, json};

const WORKFLOW: Family = Family::Workflow;

fn new_run(kind: &str) -> NewRun {
    NewRun {
        family: WORKFLOW,
        kind: kind.to_owned(),
        input: json!({ "docPath": "docs/spec.md" }),
        first_step: "look".to_owned(),
    }
}

/// A run with these steps, ended.
fn whole(fixture: &Fixture, kind: &str, steps: &[(&str, StepOutcome)], outcome: Outcome) -> String {
    let (runs, caller) = (fixture.board.engine().runs(), fixture.owner());
    let run = runs.start(&caller, new_run(kind)).unwrap();
    let space = &caller.principal.space;
    let claim = runs.claim(space, WORKFLOW, &run.id).unwrap().unwrap();
    for (action, outcome) in steps {
        let done = StepDone {
            outcome: *outcome,
            ..StepDone::of(action, "next", Value::Null)
        };
        claim.step(done).unwrap();
    }
    let ending = Ending {
        summary: "the walrus chapter lacks examples".to_owned(),
        ..Ending::of(outcome)
    };
    claim.finish(ending).unwrap();
    run.id
}

#[test]
fn a_run_is_continued_by_another_process_after_its_last_step() {
    let one = Fixture::new();
    let caller = one.owner();
    let space = caller.principal.space.clone();
    let runs = one.board.engine().runs();
    let run = runs.start(&caller, new_run("analysis")).unwrap();
    assert!(run.id.starts_with("analysis-"), "{}", run.id);
    let again = runs.start(&caller, new_run("analysis")).unwrap();
    assert_ne!(again.id, run.id);
    let two = one.again(Selection::default());
    let others = two.board.engine().runs();
    let claim = runs.claim(&space, WORKFLOW, &run.id).unwrap().unwrap();
    assert!(runs.claim(&space, WORKFLOW, &run.id).unwrap().is_none());
    assert!(others.claim(&space, WORKFLOW, &run.id).unwrap().is_none());
    let after = claim
        .step(StepDone::of("look", "think", json!({ "seen": 3 })))
        .unwrap();
    assert_eq!((after.n_steps, after.current_step.as_str()), (1, "think"));
    // The first process is gone.
    drop(claim);
    let claim = others.claim(&space, WORKFLOW, &run.id).unwrap().unwrap();
    let found = claim.run().unwrap();
    assert_eq!((found.n_steps, &found.state), (1, &json!({ "seen": 3 })));
    let done = claim.finish(Ending::of(Outcome::Completed)).unwrap();
    assert_eq!(done.status, Status::Completed);
    drop(claim);
    assert!(runs.claim(&space, WORKFLOW, &run.id).unwrap().is_none());
    let kinds = one.event_kinds();
    let count = |kind: &str| kinds.iter().filter(|it| *it == kind).count();
    assert_eq!(count("WorkflowStarted"), 2);
    assert_eq!(count("WorkflowStepCompleted"), 1);
    assert_eq!(count("WorkflowCompleted"), 1);
    let due = others.due(WORKFLOW).unwrap();
    assert_eq!(due.len(), 1);
    assert_eq!(due[0].1.id, again.id);
}

#[test]
fn what_a_step_writes_is_marked_with_it_and_a_process_that_lost_its_run_writes_nothing() {
    let one = Fixture::new();
    let caller = one.owner();
    let space = caller.principal.space.clone();
    let runs = one.board.engine().runs();
    let run = runs.start(&caller, new_run("custom")).unwrap();
    let store = |text: &str| {
        one.call(
            "memory_store",
            json!({ "content": text, "memory_type": "fact" }),
        )
    };
    let claim = runs.claim(&space, WORKFLOW, &run.id).unwrap().unwrap();
    assert_eq!(claim.begin().unwrap(), Before::Nothing);
    assert_eq!(claim.begin().unwrap(), Before::Begun);
    let reply = claim.effect(0, || store("the walrus sleeps"));
    assert!(!reply.is_error(), "{}", reply.text);
    // The process is killed before it can record the step.
    drop(claim);
    let two = one.again(Selection::default());
    let others = two.board.engine().runs();
    let claim = others.claim(&space, WORKFLOW, &run.id).unwrap().unwrap();
    assert_eq!(claim.begin().unwrap(), Before::Written);
    claim
        .step(StepDone::of("remember", "next", Value::Null))
        .unwrap();
    assert_eq!(claim.begin().unwrap(), Before::Nothing);
    // A process that was away for long still believes that the run is its own.
    let late = claim.effect(1, || {
        // Elsewhere: what this thread writes belongs to the step.
        std::thread::scope(|scope| {
            let stop = || drop(runs.stop(&caller, WORKFLOW, &run.id).unwrap());
            scope.spawn(stop).join().unwrap();
        });
        two.call(
            "memory_store",
            json!({ "content": "too late", "memory_type": "fact" }),
        )
    });
    assert!(late.is_error(), "{}", late.text);
    assert!(
        late.text.contains("another process works on"),
        "{}",
        late.text
    );
}

#[test]
fn a_run_can_be_suspended_resumed_and_stopped_and_says_what_it_refuses() {
    let fixture = Fixture::new();
    let (runs, caller) = (fixture.board.engine().runs(), fixture.owner());
    let space = caller.principal.space.clone();
    let id = runs.start(&caller, new_run("sync")).unwrap().id;
    let waiting = runs.suspend(&caller, WORKFLOW, &id, "by hand").unwrap();
    assert_eq!(waiting.status, Status::Suspended);
    assert!(runs.claim(&space, WORKFLOW, &id).unwrap().is_none());
    let resumed = runs.resume(&caller, WORKFLOW, &id, false).unwrap();
    assert_eq!((resumed.status, resumed.error), (Status::Running, None));
    // A step that is under way while somebody stops the run is recorded, and nothing comes after it.
    let claim = runs.claim(&space, WORKFLOW, &id).unwrap().unwrap();
    let stopped = runs.stop(&caller, WORKFLOW, &id).unwrap();
    assert_eq!(stopped.outcome, Some(Outcome::Cancelled));
    assert!(
        claim
            .step(StepDone::of("late", "next", Value::Null))
            .is_err()
    );
    drop(claim);
    for refused in [
        runs.stop(&caller, WORKFLOW, &id),
        runs.suspend(&caller, WORKFLOW, &id, ""),
    ] {
        let error = refused.unwrap_err();
        assert!(error.message.contains("has ended: cancelled"), "{error}");
    }
    let error = runs.resume(&caller, WORKFLOW, &id, false).unwrap_err();
    assert!(
        error.message.contains("is cancelled and cannot go on"),
        "{error}"
    );
    let error = runs.stop(&caller, WORKFLOW, "sync-1").unwrap_err();
    assert_eq!(error.message, "no workflow `sync-1`");
}

#[test]
fn trajectories_survive_are_found_and_teach() {
    use StepOutcome::{Failure, Success};
    let fixture = Fixture::new();
    let ids: Vec<String> = (0..4)
        .map(|_| {
            let steps = [("look", Success), ("write", Success)];
            whole(&fixture, "analysis", &steps, Outcome::Completed)
        })
        .collect();
    whole(
        &fixture,
        "analysis",
        &[("look", Success), ("write", Failure)],
        Outcome::Failed,
    );
    whole(&fixture, "custom", &[("look", Success)], Outcome::Completed);
    let fixture = fixture.again(Selection::default());
    let (runs, caller) = (fixture.board.engine().runs(), fixture.owner());
    let stats = runs.trajectory_stats(&caller).unwrap();
    assert_eq!(
        (stats.n_trajectories, stats.n_succeeded, stats.n_active),
        (6, 5, 0)
    );
    // One sequence was learned; from the fourth success on, each is a learning record.
    assert_eq!((stats.n_patterns, stats.n_learned), (1, 1));
    let advice = runs.advice(&caller, Some("analysis")).unwrap();
    assert_eq!(advice.len(), 1);
    assert_eq!(advice[0].pattern.id, "look->write");
    assert!((advice[0].score - 0.4 * 0.8).abs() < 1e-9, "{advice:?}");
    assert_eq!(
        runs.experience(&caller, &["write", "look", "none"])
            .unwrap(),
        [(4, 1), (6, 0), (0, 0)]
    );
    let filter = TrajectoryFilter {
        workflow_id: Some(ids[0].clone()),
        success_only: true,
        ..TrajectoryFilter::default()
    };
    assert_eq!(runs.trajectories(&caller, &filter).unwrap().len(), 1);
    let other = TrajectoryFilter {
        agent_id: Some("workflow-custom".to_owned()),
        ..filter
    };
    assert_eq!(runs.trajectories(&caller, &other).unwrap(), []);
    assert_eq!(
        runs.list(&caller, WORKFLOW, &RunFilter::default())
            .unwrap()
            .len(),
        6
    );
    let found = fixture.call("kg_query", json!({ "query": "walrus chapter" }));
    let found = found.text
        + &fixture
            .call(
                "knowledge_search",
                json!({ "query": "walrus chapter examples" }),
            )
            .text;
    assert!(found.contains("walrus"), "{found}");
}

#[test]
fn a_suspended_run_asks_how_to_go_on_and_goes_on_as_it_is_told() {
    let fixture = Fixture::new();
    let (runs, caller) = (fixture.board.engine().runs(), fixture.owner());
    let space = caller.principal.space.clone();
    let answer = |id: &str, key: &str, word: &str| {
        let filled = json!({ "action": "accept", "content": { "decision": word } });
        runs.answer(&caller, WORKFLOW, id, [(key.to_owned(), filled)].into())
            .unwrap()
    };
    let only = |run: &kenning_engine::runs::Run| {
        let asked = run.open_questions();
        assert_eq!(asked.len(), 1, "{asked:?}");
        asked.into_iter().next().unwrap()
    };
    // Suspended by hand.
    let id = runs.start(&caller, new_run("sync")).unwrap().id;
    let waits = runs.suspend(&caller, WORKFLOW, &id, "by hand").unwrap();
    let (key, question) = only(&waits);
    assert!(question.text.contains("by hand"), "{question:?}");
    let words = &question.form["properties"]["decision"]["enum"];
    assert_eq!(*words, json!(["go on", "stop"]));
    assert_eq!(answer(&id, "another", "stop").status, Status::Suspended);
    assert_eq!(answer(&id, &key, "perhaps").status, Status::Suspended);
    let declined = [(key.clone(), json!({ "action": "decline" }))].into();
    let declined = runs.answer(&caller, WORKFLOW, &id, declined).unwrap();
    assert_eq!(declined.status, Status::Suspended);
    assert_eq!(answer(&id, &key, "go on").status, Status::Running);
    assert_eq!(
        answer(&id, &key, "stop").status,
        Status::Running,
        "too late"
    );
    // In doubt: the step can be done once more.
    let claim = runs.claim(&space, WORKFLOW, &id).unwrap().unwrap();
    claim.begin().unwrap();
    let waits = claim.doubt("nobody knows").unwrap();
    drop(claim);
    let (other, question) = only(&waits);
    assert_ne!(other, key);
    let words = &question.form["properties"]["decision"]["enum"];
    assert_eq!(*words, json!(["go on", "again", "stop"]));
    let again = answer(&id, &other, "again");
    assert_eq!((again.status, again.begun), (Status::Running, None));
    // Stopped by its answer.
    runs.suspend(&caller, WORKFLOW, &id, "").unwrap();
    let (key, _) = only(&runs.expect_run(&caller, WORKFLOW, &id).unwrap());
    assert_eq!(answer(&id, &key, "stop").outcome, Some(Outcome::Cancelled));
}

#[test]
fn what_waited_in_vain_is_no_success_and_what_was_stopped_counts_for_nothing() {
    let fixture = Fixture::new();
    let steps = [("look", StepOutcome::Success)];
    for outcome in [
        Outcome::Completed,
        Outcome::Timeout,
        Outcome::Failed,
        Outcome::Cancelled,
    ] {
        whole(&fixture, "analysis", &steps, outcome);
    }
    let told = fixture.call("kg_workflow_status", json!({ "includeMetrics": true }));
    let stats = told.to_json()["data"]["stats"].clone();
    for (name, expected) in [
        ("totalExecutions", 3.0),
        ("successfulExecutions", 1.0),
        ("failedExecutions", 1.0),
        ("timedOutExecutions", 1.0),
        ("cancelledExecutions", 1.0),
        ("successRate", 33.33),
    ] {
        assert_eq!(stats[name].as_f64(), Some(expected), "{name}: {stats}");
    }
    let told = fixture.call("kg_trajectory_list", json!({}));
    let stats = told.to_json()["data"]["stats"].clone();
    assert_eq!(stats["totalTrajectories"], 4, "{stats}");
    assert_eq!(stats["successRate"], 33.33, "{stats}");
}
