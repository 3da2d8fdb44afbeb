//! Custom: a goal, actions with prices, and the cheapest plan, done step by step.
//!
//! An action that names a tool calls it; one that names none is for people, and is planned. If an action fails, the
//! plan is made again without it. What failed before is dearer, so the planner prefers what worked.

use super::{CallEffect, Next, Work, documents, unknown};
use kenning_core::{Error, Result};
use kenning_runs::{Before, Ending, Outcome, StepDone, StepOutcome};
use kenning_workflow::given::{self, Given, ToolCall};
use kenning_workflow::plan::{all_hold, apply, experience};
use kenning_workflow::{Action, Facts, Goal, Limits, Unplanned, builtin, find_plan};
use serde_json::{Map, Value, json};

/// How often the plan is made again after an action failed.
const FAILURES_MAX: usize = 5;

/// Tools that an action may not call: a workflow that starts workflows may never end.
const FORBIDDEN: [&str; 1] = ["kg_workflow_start"];

/// Characters of a tool's answer that are kept.
const ANSWER_CHARS_MAX: usize = 4_000;

/// What was given, with the actions and goals that are always there.
pub(super) struct Problem {
    given: Given,
    actions: Vec<Action>,
    goals: Vec<Goal>,
}

/// Reads the problem from the input of a run.
pub(super) fn problem(input: &Value) -> Result<Problem> {
    let mut members = match input.get("options") {
        Some(Value::Object(options)) => options.clone(),
        _ => Map::new(),
    };
    if let Value::Object(input) = input {
        let own = input.iter().filter(|it| it.0 != "options");
        members.extend(own.map(|(name, value)| (name.clone(), value.clone())));
    }
    let given = given::read(&members)
        .map_err(|said| Error::invalid(said).hint("docs/guides/workflows.md shows the form"))?;
    if let Some((name, call)) = given
        .calls
        .iter()
        .find(|it| FORBIDDEN.contains(&it.1.tool.as_str()))
    {
        return Err(Error::invalid(format!(
            "the action `{name}` calls `{}`, which an action may not",
            call.tool
        ))
        .hint("give its actions to this workflow"));
    }
    let mut actions = given.actions.clone();
    for action in builtin::actions() {
        if !actions.iter().any(|it| it.name == action.name) {
            actions.push(action);
        }
    }
    let mut goals = given.goals.clone();
    for goal in builtin::goals() {
        if !goals.iter().any(|it| it.name == goal.name) {
            goals.push(goal);
        }
    }
    goals.sort_by(|a, b| b.priority.total_cmp(&a.priority));
    Ok(Problem {
        given,
        actions,
        goals,
    })
}

pub(super) fn step(work: &Work<'_>) -> Result<Next> {
    let problem = problem(&work.run.input)?;
    match work.run.current_step.as_str() {
        "plan" => plan(work, &problem),
        "report" => Ok(Next::End(Ending {
            summary: summary(work),
            quality: work.kept("confidence").as_f64(),
            ..Ending::of(Outcome::Completed)
        })),
        name => {
            let action = problem.actions.iter().find(|it| it.name == name);
            let action = action.ok_or_else(|| unknown(work))?;
            act(work, &problem, action)
        }
    }
}

/// What was done, and what people have to do before the goal is reached.
fn summary(work: &Work<'_>) -> String {
    let listed = |all: &[Value]| {
        let names: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
        names.join(", ")
    };
    let left = work.kept("forPeople").as_array();
    let left = left.map_or(&[][..], Vec::as_slice);
    match (listed(&work.run.artifacts), listed(left)) {
        (done, left) if left.is_empty() => format!("The goal was reached by: {done}"),
        (done, left) if done.is_empty() => {
            format!("The goal is reached once people have done: {left}")
        }
        (done, left) => {
            format!("Done: {done}. The goal is reached once people have done: {left}")
        }
    }
}

/// Makes the plan from what is true now.
fn plan(work: &Work<'_>, problem: &Problem) -> Result<Next> {
    let facts = facts_now(work, problem)?;
    let goal = match &problem.given.goal {
        Some(name) => {
            let goal = problem.goals.iter().find(|it| it.name == *name);
            goal.ok_or_else(|| Error::invalid(format!("Unknown goal: {name}")))?
        }
        // The most important one that does not hold.
        None => {
            let mut open = problem
                .goals
                .iter()
                .filter(|it| !all_hold(&it.wants, &facts));
            open.next()
                .or(problem.goals.first())
                .ok_or_else(|| Error::invalid("`goal`: name one"))?
        }
    };
    let failed: Vec<&str> = work
        .kept("failed")
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut actions: Vec<Action> = problem
        .actions
        .iter()
        .filter(|it| !failed.contains(&it.name.as_str()))
        .cloned()
        .collect();
    let names: Vec<&str> = actions.iter().map(|it| it.name.as_str()).collect();
    let known = work.runs.experience(work.caller, &names)?;
    for (action, (succeeded, failed)) in actions.iter_mut().zip(known) {
        action.surcharge = experience(action.cost, succeeded, failed);
    }
    let found = find_plan(&facts, &goal.wants, &actions, Limits::default()).map_err(|why| {
        let said = match why {
            Unplanned::Unreachable if failed.is_empty() => "no sequence of the actions reaches it",
            Unplanned::Unreachable => "without what failed, no sequence of the actions reaches it",
            Unplanned::TooManyStates => "there are too many states to look at",
            Unplanned::TooLong => "the cheapest plan is too long",
        };
        let last = work.kept("lastError").as_str().unwrap_or_default();
        let last = match last {
            "" => String::new(),
            last => format!("; {last}"),
        };
        Error::invalid(format!("the goal `{}`: {said}{last}", goal.name))
            .hint("give more actions, or facts that hold")
    })?;
    let plan: Vec<&str> = found
        .actions
        .iter()
        .filter_map(|&at| Some(actions.get(at)?.name.as_str()))
        .collect();
    let next = plan.first().copied().unwrap_or("report");
    let keep = json!({
        "goal": goal.name, "facts": documents::facts_json(&facts), "plan": plan, "at": 0,
        "failed": failed, "confidence": found.confidence(),
    });
    let mut done = StepDone::of("plan", next, keep);
    done.state = documents::facts_json(&facts);
    done.metadata = json!({
        "goal": goal.name, "plan": plan, "cost": found.cost, "confidence": found.confidence(),
        "states": found.n_states,
    });
    Ok(done.into())
}

/// What is true: what earlier steps left, or the document, and what was given.
fn facts_now(work: &Work<'_>, problem: &Problem) -> Result<Facts> {
    if let Value::Object(kept) = work.kept("facts") {
        let members: Map<String, Value> = [("facts".to_owned(), Value::Object(kept.clone()))]
            .into_iter()
            .collect();
        return given::read(&members)
            .map(|it| it.facts)
            .map_err(Error::internal);
    }
    let mut facts = Facts::new();
    if let Some(path) = work.text("docPath") {
        documents::follow_files(work, path)?;
        let all = documents::beneath(work, path)?;
        if let [(id, _)] = all.as_slice() {
            let content = work.kg.document(work.caller, Some(id), None)?;
            facts = documents::facts(work, &content, 0);
        }
    }
    facts.extend(problem.given.facts.clone());
    Ok(facts)
}

/// Does one action of the plan.
fn act(work: &Work<'_>, problem: &Problem, action: &Action) -> Result<Next> {
    let called = match problem.given.calls.get(&action.name) {
        None => Called::Planned,
        Some(call) => call_tool(work, call)?,
    };
    let mut facts = facts_now(work, problem)?;
    let at = work.kept("at").as_u64().unwrap_or_default() + 1;
    let plan = work.kept("plan").as_array().cloned().unwrap_or_default();
    let (outcome, metadata) = match called {
        Called::Doubt => return Ok(Next::Wait(0)),
        Called::Failed(error) => {
            let mut failed = work.kept("failed").as_array().cloned().unwrap_or_default();
            failed.push(action.name.as_str().into());
            if failed.len() > FAILURES_MAX {
                return Err(Error::new(
                    error.code,
                    format!("`{}` failed: {}", action.name, error.message),
                ));
            }
            let mut keep = work.kept_with("failed", failed.into());
            keep["lastError"] = format!("`{}` failed: {error}", action.name).into();
            let mut done = StepDone::of(&action.name, "plan", keep);
            done.outcome = StepOutcome::Failure;
            done.metadata = json!({ "error": error.to_string() });
            return Ok(done.into());
        }
        Called::Planned => (
            StepOutcome::Pending,
            json!({ "for": "people: it names no tool" }),
        ),
        Called::Answered(answer) => (StepOutcome::Success, json!({ "answer": answer })),
        Called::DoneBefore => (
            StepOutcome::Success,
            json!({ "answer": null, "note": "it was done before the process ended, and its answer is lost" }),
        ),
    };
    apply(&mut facts, action);
    let mut keep = work.kept_with("facts", documents::facts_json(&facts));
    let is_left = outcome == StepOutcome::Pending;
    if is_left {
        let mut left = work.kept("forPeople").as_array().cloned();
        let left = left.get_or_insert_default();
        left.push(action.name.as_str().into());
        keep["forPeople"] = left.clone().into();
    }
    keep["at"] = at.into();
    let place = usize::try_from(at).unwrap_or(usize::MAX);
    let next = plan.get(place).and_then(Value::as_str).unwrap_or("report");
    let mut done = StepDone::of(&action.name, next, keep);
    done.outcome = outcome;
    done.state = documents::facts_json(&facts);
    done.metadata = metadata;
    // What nobody has done yet is no artifact.
    if !is_left {
        done.artifacts = vec![action.name.as_str().into()];
    }
    Ok(done.into())
}

enum Called {
    /// It names no tool.
    Planned,
    /// The tool answered.
    Answered(Value),
    /// It was called by a process that died after it wrote.
    DoneBefore,
    /// The tool refused or failed.
    Failed(Error),
    /// Nobody knows whether it was done; the run is suspended.
    Doubt,
}

/// Calls a tool at most once, whatever happens to processes.
fn call_tool(work: &Work<'_>, call: &ToolCall) -> Result<Called> {
    let effect = match work
        .tools
        .effect_of(work.caller, &call.tool, &call.arguments)
    {
        Ok(effect) => effect,
        Err(error) => return Ok(Called::Failed(error)),
    };
    let before = work.claim.begin()?;
    match (effect, before) {
        (_, Before::Nothing)
        | (CallEffect::Repeatable, _)
        | (CallEffect::InStore, Before::Begun) => {}
        (CallEffect::InStore, Before::Written) => return Ok(Called::DoneBefore),
        (CallEffect::Outside, _) if call.is_repeatable => {}
        (CallEffect::Outside, _) => {
            let decided = work.run.state.get("decided").and_then(Value::as_u64);
            if decided == Some(work.run.n_steps) {
                return Ok(Called::DoneBefore);
            }
            work.claim.doubt(&format!(
                "the process ended while `{}` ran, and nobody knows whether it was done: `kenning workflow resume \
                 {id}` goes on after it, with `--again` it is done once more",
                call.tool,
                id = work.run.id,
            ))?;
            return Ok(Called::Doubt);
        }
    }
    let answered = work.claim.effect(work.run.n_steps, || {
        work.tools
            .call(work.caller, &call.tool, call.arguments.clone())
    });
    match answered {
        Ok(answer) => {
            let text = answer.to_string();
            Ok(Called::Answered(match text.len() > ANSWER_CHARS_MAX {
                true => text
                    .chars()
                    .take(ANSWER_CHARS_MAX)
                    .collect::<String>()
                    .into(),
                false => answer,
            }))
        }
        // Somebody else took over: that is not the tool's fault.
        Err(error) => {
            work.claim.still_ours()?;
            Ok(Called::Failed(error))
        }
    }
}
