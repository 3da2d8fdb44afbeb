//! What tools need of workflows: starting one, going on with a run within a call, and whether a call is an action of one.

use crate::near;
use kenning_core::{Error, Result};
use kenning_engine::runs::{Family, Run};
use kenning_engine::worker::contained;
use kenning_engine::workflow_steps::{ToolRunner, WorkflowKind, known_members, unknown_members};
use kenning_engine::{Caller, Engine};
use serde_json::{Map, Value};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// So much of a call's time is left for the answer.
const MARGIN: Duration = Duration::from_secs(5);

/// A call goes on with its run for at most this long; then the worker does.
const CALL_MAX: Duration = Duration::from_secs(20);

thread_local! {
    static IS_IN_ACTION: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, this thread calls a tool for an action of a workflow, by whatever way the call goes on.
pub(crate) struct InAction(bool);

impl InAction {
    pub(crate) fn begin() -> Self {
        Self(IS_IN_ACTION.replace(true))
    }
}

impl Drop for InAction {
    fn drop(&mut self) {
        IS_IN_ACTION.set(self.0);
    }
}

/// Refuses a workflow that an action of another one starts: one that starts others may never end, and multiplies.
pub(crate) fn check_not_in_action() -> Result<()> {
    match IS_IN_ACTION.get() {
        false => Ok(()),
        true => Err(
            Error::denied("an action of a workflow cannot start a workflow")
                .hint("give its actions to this workflow"),
        ),
    }
}

/// Starts a workflow. An input with members that nothing reads is refused: a misspelled one would be left out in
/// silence.
///
/// # Errors
/// The input is malformed, the caller may not write, and those of the store.
pub fn start_workflow(
    engine: &Engine,
    caller: &Caller,
    kind: WorkflowKind,
    input: Map<String, Value>,
) -> Result<Run> {
    if let Some(unknown) = unknown_members(kind, &input).first() {
        let known = known_members(kind);
        let last = |path: &str| path.rsplit('.').next().unwrap_or(path).to_owned();
        // The right word in the wrong place is the nearest.
        let near = near::names(&last(unknown), known.iter().map(|it| last(it)));
        let near: Vec<String> = near
            .iter()
            .filter_map(|name| known.iter().find(|it| last(it) == *name).cloned())
            .collect();
        let word = kind.as_str();
        return Err(Error::invalid(format!(
            "`{unknown}`: a workflow of type {word} has no such member.{}",
            near::sentence(&near)
        ))
        .hint(format!("it has {}", listed(&known))));
    }
    engine.workflows().start(caller, kind, input)
}

/// Members as they lie in each other: `docPath, options (threshold)`.
fn listed(known: &[String]) -> String {
    let of = |start: &str| {
        let names = known.iter().filter_map(|it| it.strip_prefix(start));
        let names: Vec<&str> = names.filter(|it| !it.contains('.')).collect();
        names.join(", ")
    };
    let inner = of("input.options.");
    of("input.").replace("options", &format!("options ({inner})"))
}

/// Goes on with a run within a call: until it has ended or waits, the client left, or the call's time is nearly over.
/// Whatever is left is done by a worker.
pub(crate) fn advance_in_call(
    engine: &Engine,
    tools: &dyn ToolRunner,
    caller: &Caller,
    run: Run,
) -> Result<Run> {
    let until = (caller.deadline.checked_sub(MARGIN))
        .unwrap_or(caller.deadline)
        .min(Instant::now() + CALL_MAX);
    let goes_on = |run: &Run| {
        caller.progress(run.n_steps as f64, None, &run.current_step);
        Instant::now() < until && caller.check().is_ok()
    };
    let space = &caller.principal.space;
    // The patience with the store is that of a short call, and belongs to the thread.
    let advanced = std::thread::scope(|scope| {
        let work = scope.spawn(|| {
            let workflows = engine.workflows();
            contained(|| workflows.advance(tools, space, &run.id, &goes_on))
        });
        work.join()
            .unwrap_or_else(|_| Err(Error::internal("a workflow panicked")))
    });
    match advanced {
        Ok(Some(run)) => Ok(run),
        Ok(None) => engine.runs().expect_run(caller, Family::Workflow, &run.id),
        Err(error) if error.retryable() => {
            tracing::warn!("workflow {}: {error}", run.id);
            Ok(run)
        }
        Err(error) => Err(error),
    }
}
