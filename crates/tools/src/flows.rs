//! Workflows over the tool table: what calls tools for them, and the worker that goes on with them.

use crate::kg::{KgReply, Started};
use crate::{Board, Effect, Reply, TOOLS, Toolset, envelope, near};
use kenning_core::{Error, Result};
use kenning_engine::runs::{Family, Run};
use kenning_engine::worker::{Complaint, Worker, contained};
use kenning_engine::workflow_steps::{
    CallEffect, ToolRunner, WorkflowKind, known_members, unknown_members,
};
use kenning_engine::{Caller, Scope};
use serde_json::{Map, Value};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// How often it is looked which runs are due.
const LOOK: Duration = Duration::from_secs(1);

/// After this long another run has its turn.
const TURN: Duration = Duration::from_secs(30);

/// So much of a call's time is left for the answer.
const MARGIN: Duration = Duration::from_secs(5);

/// A call goes on with its run for at most this long; then the worker does.
const CALL_MAX: Duration = Duration::from_secs(20);

/// The tools that do all of their work in one transaction: if it was committed, they are done. What they write to a
/// file is in the journal by then.
const ONE_WRITE: [&str; 4] = [
    "belief_update",
    "daily_append",
    "kg_audit_checkpoint",
    "now_update",
];

thread_local! {
    static IS_IN_ACTION: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, this thread calls a tool for an action of a workflow, by whatever way the call goes on.
struct InAction(bool);

impl InAction {
    fn begin() -> Self {
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

impl ToolRunner for Board {
    fn effect_of(&self, caller: &Caller, name: &str, arguments: &Value) -> Result<CallEffect> {
        if let Some(tool) = TOOLS.iter().find(|it| it.name() == name) {
            if !self.reaches(*tool) {
                return Err(Error::denied(format!("`{name}` is not available here"))
                    .hint("it was excluded when the server was started"));
            }
            return Ok(match (tool.effect(), tool.scope(arguments)) {
                (_, Scope::Read | Scope::Fetch) => CallEffect::Repeatable,
                (Effect::Write { idempotent: true }, _) => CallEffect::Repeatable,
                (Effect::Write { .. }, Scope::Write) if ONE_WRITE.contains(&name) => {
                    CallEffect::InStore
                }
                // One that writes several times may have been cut off after the first.
                _ => CallEffect::Outside,
            });
        }
        let found = self.find_installed(name, caller)?;
        let function = found.as_ref().and_then(|it| it.function());
        match function.is_some_and(|it| self.reaches_installed(it)) {
            true => Ok(CallEffect::Outside),
            false => Err(Error::not_found("tool", name).hint("`kenning tools` lists them")),
        }
    }

    fn call(&self, caller: &Caller, name: &str, arguments: Value) -> Result<Value> {
        let _action = InAction::begin();
        let tool = TOOLS.iter().copied().find(|it| it.name() == name);
        let reply = match tool.filter(|it| self.reaches(*it)) {
            Some(tool) => Some(self.call_reachable(tool, arguments, caller)),
            None => Board::call(self, name, arguments, caller),
        };
        let reply = reply.ok_or_else(|| Error::not_found("tool", name))?;
        match &reply.error {
            None => Ok(reply.to_json()),
            Some(error) => {
                let told = Error::new(error.code, error.message.clone());
                Err(match &error.hint {
                    Some(hint) => told.hint(hint.clone()),
                    None => told,
                })
            }
        }
    }
}

/// Starts a workflow. An input with members that nothing reads is refused: a misspelled one would be left out in
/// silence.
///
/// # Errors
/// The input is malformed, the caller may not write, and those of the store.
pub fn start_workflow(
    board: &Board,
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
    board.engine().workflows().start(caller, kind, input)
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
pub(crate) fn advance_in_call(board: &Board, caller: &Caller, run: Run) -> Result<Run> {
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
            let workflows = board.engine().workflows();
            contained(|| workflows.advance(board, space, &run.id, &goes_on))
        });
        work.join()
            .unwrap_or_else(|_| Err(Error::internal("a workflow panicked")))
    });
    match advanced {
        Ok(Some(run)) => Ok(run),
        Ok(None) => board
            .engine()
            .runs()
            .expect_run(caller, Family::Workflow, &run.id),
        Err(error) if error.retryable() => {
            tracing::warn!("workflow {}: {error}", run.id);
            Ok(run)
        }
        Err(error) => Err(error),
    }
}

/// What `kg_workflow_start` answers of a run, as it is now.
pub fn workflow_reply(run: Run) -> Reply {
    let answer = envelope::to_value(&KgReply::new(Started::from(run)));
    envelope::wrap(Toolset::Kg, answer, Duration::ZERO)
}

/// Goes on with a run until it has ended or waits, however long it takes: for a person at the command line.
///
/// # Errors
/// There is no such run, and those of the store.
pub fn finish_workflow(board: &Board, caller: &Caller, id: &str) -> Result<Run> {
    let (engine, space) = (board.engine(), &caller.principal.space);
    let goes_on = |run: &Run| {
        caller.progress(run.n_steps as f64, None, &run.current_step);
        true
    };
    match engine.workflows().advance(board, space, id, &goes_on)? {
        Some(run) => Ok(run),
        None => engine.runs().expect_run(caller, Family::Workflow, id),
    }
}

/// The worker of a server: it goes on with the workflows of every space, also with those that another process left.
/// Dropping it asks it to stop and does not wait.
pub struct Flows {
    board: Board,
    worker: Worker,
}

impl Flows {
    /// Starts it; a process that only reads does nothing.
    pub fn start(board: &Board) -> Self {
        let worker = match board.engine().is_read_only() {
            true => Worker::idle(),
            false => {
                let board = board.clone();
                let mut complaint = Complaint::default();
                Worker::every("workflows", Duration::ZERO, LOOK, move |signal| {
                    for (space, run) in board.engine().runs().due(Family::Workflow)? {
                        let until = Instant::now() + TURN;
                        let goes_on = |_: &Run| !signal.is_stopped() && Instant::now() < until;
                        let workflows = board.engine().workflows();
                        let advanced =
                            contained(|| workflows.advance(&board, &space, &run.id, &goes_on));
                        match advanced {
                            Ok(_) => complaint.clear(),
                            Err(error) => drop(complaint.say("workflows", &error)),
                        }
                    }
                    Ok(())
                })
            }
        };
        board.engine().runs().serve(worker.is_running());
        Self {
            board: board.clone(),
            worker,
        }
    }

    /// Stops after the step that is under way, and waits for it no longer than this. The next process goes on.
    pub fn stop(self, patience: Duration) {
        self.board.engine().runs().serve(false);
        self.worker.stop(patience);
    }
}
