//! Workflows over the tool table: what calls tools for them, and the worker that goes on with them.

use crate::workflow_calls::InAction;
use crate::{Board, Effect, OtherTools as _, TOOLS};
use kenning_core::{Error, Result};
use kenning_engine::runs::{Family, Run};
use kenning_engine::worker::{Complaint, Worker, contained};
use kenning_engine::workflow_steps::{CallEffect, ToolRunner};
use kenning_engine::{Caller, Scope};
use serde_json::Value;
use std::time::{Duration, Instant};

/// How often it is looked which runs are due.
const LOOK: Duration = Duration::from_secs(1);

/// After this long another run has its turn.
const TURN: Duration = Duration::from_secs(30);

/// The tools that do all of their work in one transaction: if it was committed, they are done. What they write to a
/// file is in the journal by then.
const ONE_WRITE: [&str; 4] = [
    "belief_update",
    "daily_append",
    "kg_audit_checkpoint",
    "now_update",
];

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
