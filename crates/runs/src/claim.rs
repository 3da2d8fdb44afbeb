//! Who works on a run, and how a step is recorded.

use crate::run::{Outcome, Question, ROW_STEPS_MAX, Run, Status, Step, StepOutcome, Who};
use crate::trajectory::{self, Trajectory};
use crate::{CALLERS, EFFECTS, Family, Runs, bounded, open_runs, rows, short};
use kenning_audit::{Tx, accompanied};
use kenning_core::{Error, Result, Space};
use kenning_kernel::{Mark, Principal};
use serde_json::{Value, json};
use std::sync::{Arc, PoisonError};

/// Artifacts that are kept of a run.
const ARTIFACTS_MAX: usize = 500;

/// A step that was done, and what it leaves.
#[derive(Clone, Debug)]
pub struct StepDone {
    /// What was done, in a word.
    pub action: String,
    /// How it went.
    pub outcome: StepOutcome,
    /// How long it took.
    pub duration_ms: u64,
    /// What was known after it, for whoever looks at the steps.
    pub state: Value,
    /// What it found or made, for whoever looks at the steps.
    pub metadata: Value,
    /// What is kept for the next step, in place of what was kept.
    pub keep: Value,
    /// The name of the next step.
    pub next: String,
    /// What is added to what the run made.
    pub artifacts: Vec<Value>,
    /// The next step is not due before, in milliseconds since 1970.
    pub due_ms: u64,
    /// Further events of the same transaction.
    pub events: Vec<(String, Value)>,
}

impl StepDone {
    /// One that went well.
    pub fn of(action: &str, next: &str, keep: Value) -> Self {
        Self {
            action: action.to_owned(),
            outcome: StepOutcome::Success,
            duration_ms: 0,
            state: Value::Null,
            metadata: Value::Null,
            keep,
            next: next.to_owned(),
            artifacts: Vec::new(),
            due_ms: 0,
            events: Vec::new(),
        }
    }
}

/// How a run ends.
#[derive(Clone, Debug)]
pub struct Ending {
    /// Whether it went well.
    pub outcome: Outcome,
    /// Why, if it went badly.
    pub error: Option<String>,
    /// What is added to what the run made.
    pub artifacts: Vec<Value>,
    /// A sentence or more about what was found, for search.
    pub summary: String,
    /// How good the result is, between 0 and 1.
    pub quality: Option<f64>,
}

impl Ending {
    /// One without anything more.
    pub fn of(outcome: Outcome) -> Self {
        Self {
            outcome,
            error: None,
            artifacts: Vec::new(),
            summary: String::new(),
            quality: None,
        }
    }
}

/// The right to work on a run, until it is dropped.
pub struct Claim<'a> {
    runs: &'a Runs,
    space: Space,
    family: Family,
    id: String,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut busy = self
            .runs
            .busy
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        busy.remove(&(self.space.clone(), self.id.clone()));
        drop(busy);
        self.runs.alive.leave();
    }
}

impl Runs {
    /// Claims a run that is running. `None` if it is not, or somebody works on it who is alive.
    ///
    /// # Errors
    /// Those of the store.
    pub fn claim(&self, space: &Space, family: Family, id: &str) -> Result<Option<Claim<'_>>> {
        let key = (space.clone(), id.to_owned());
        let is_ours = {
            let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
            busy.insert(key.clone())
        };
        if !is_ours {
            return Ok(None);
        }
        let entered = self.alive.enter();
        let free = || {
            let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
            busy.remove(&key);
        };
        if let Err(error) = entered {
            free();
            return Err(error);
        }
        // From here on, dropping it undoes both.
        let claim = Claim {
            runs: self,
            space: space.clone(),
            family,
            id: id.to_owned(),
        };
        let Some(run) = claim.read()?.filter(|it| it.status == Status::Running) else {
            return Ok(None);
        };
        let me = self.alive.name().to_owned();
        let before = run.holder.filter(|it| *it != me);
        let _dead = match &before {
            None => None,
            Some(other) => match self.alive.try_lock(other)? {
                None => return Ok(None),
                held => held,
            },
        };
        let id = id.to_owned();
        let taken = self.kernel().log().write(space, move |tx| {
            let rows = rows(family);
            let Some(mut run) = rows.get(&**tx, &id)? else {
                return Ok(false);
            };
            let is_as_seen =
                run.holder.is_none() || run.holder == before || run.holder.as_ref() == Some(&me);
            if run.status != Status::Running || !is_as_seen {
                return Ok(false);
            }
            run.holder = Some(me);
            rows.set(tx, &id, &run)?;
            Ok(true)
        })?;
        Ok(taken.then_some(claim))
    }
}

impl Claim<'_> {
    fn read(&self) -> Result<Option<Run>> {
        let log = self.runs.kernel().log();
        log.read(&self.space, |tx| rows(self.family).get(tx, &self.id))
    }

    /// The run as it is.
    ///
    /// # Errors
    /// It is gone, and those of the store.
    pub fn run(&self) -> Result<Run> {
        self.read()?
            .ok_or_else(|| Error::not_found(self.family.as_str(), &self.id))
    }

    /// The space.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// For whom it works. One whose token was revoked may do nothing any more.
    ///
    /// # Errors
    /// Denied if the token was revoked, and those of the store.
    pub fn principal(&self) -> Result<Principal> {
        let log = self.runs.kernel().log();
        let who: Option<Who> = log.read(&self.space, |tx| CALLERS.get(tx, &self.id))?;
        let who = who.ok_or_else(|| Error::not_found("caller of", &self.id))?;
        let mut principal = who.principal(&self.space);
        if let Some(token) = &who.token {
            let now = self.runs.kernel().scopes_of_token(token)?;
            let now = now.ok_or_else(|| {
                Error::denied(format!("the token of `{}` is no longer valid", who.name))
                    .hint("start it again with a valid one")
            })?;
            principal.scopes.retain(|it| now.contains(it));
        }
        Ok(principal)
    }

    /// Changes the row while it is still ours.
    fn change(
        &self,
        change: impl FnOnce(&mut Tx<'_>, &mut Run) -> Result<()> + Send + 'static,
    ) -> Result<Run> {
        let (id, family) = (self.id.clone(), self.family);
        let me = self.runs.alive.name().to_owned();
        let now_ms = self.runs.kernel().log().clock().now_ms();
        self.runs.kernel().log().write(&self.space, move |tx| {
            let rows = rows(family);
            let found = rows.get(&**tx, &id)?;
            let mut run = found.ok_or_else(|| Error::not_found(family.as_str(), &id))?;
            must_hold(&run, &me)?;
            run.last_ms = now_ms.max(run.last_ms);
            change(tx, &mut run)?;
            rows.set(tx, &id, &run)?;
            Ok(run)
        })
    }

    /// Says which step is under way.
    ///
    /// # Errors
    /// Somebody else took over, and those of the store.
    pub fn enter_step(&self, name: &str) -> Result<Run> {
        let name = name.to_owned();
        self.change(move |_, run| {
            run.current_step = name;
            Ok(())
        })
    }

    /// Records a step: its event and what it leaves, at once.
    ///
    /// # Errors
    /// Somebody else took over, and those of the store.
    pub fn step(&self, done: StepDone) -> Result<Run> {
        let now_ms = self.runs.kernel().log().clock().now_ms();
        self.change(move |tx, run| {
            let number = run.n_steps;
            let data = json!({
                "workflowId": run.id, "step": done.action, "number": number,
                "outcome": done.outcome.as_str(), "duration": done.duration_ms,
            });
            tx.record(&run.family.event("StepCompleted"), data)?;
            for (kind, data) in &done.events {
                tx.record(kind, data.clone())?;
            }
            EFFECTS.unset(tx, &effect_key(&run.id, number))?;
            run.begun = None;
            run.n_steps += 1;
            run.steps.push(Step {
                action: done.action,
                outcome: done.outcome,
                duration_ms: done.duration_ms,
                at_ms: now_ms,
                state: bounded(done.state),
                metadata: bounded(done.metadata),
            });
            let n_surplus = run.steps.len().saturating_sub(ROW_STEPS_MAX);
            run.steps.drain(..n_surplus);
            if run.ended_ms.is_none() {
                run.state = done.keep;
                run.current_step = done.next;
                run.due_ms = done.due_ms;
            }
            run.artifacts
                .extend(done.artifacts.into_iter().map(bounded));
            run.artifacts.truncate(ARTIFACTS_MAX);
            Ok(())
        })
    }

    /// Begins a step whose work is done by another part of the program. Answers what is known of it from a process
    /// that was killed.
    ///
    /// # Errors
    /// Somebody else took over, and those of the store.
    pub fn begin(&self) -> Result<Before> {
        let run = self.run()?;
        let number = run.n_steps;
        if run.begun == Some(number) {
            let key = effect_key(&self.id, number);
            let log = self.runs.kernel().log();
            let is_written = log.read(&self.space, |tx| EFFECTS.has(tx, &key))?;
            return Ok(match is_written {
                true => Before::Written,
                false => Before::Begun,
            });
        }
        self.change(move |_, run| {
            run.begun = Some(number);
            Ok(())
        })?;
        Ok(Before::Nothing)
    }

    /// Does the work of a step that was begun. With the first event that it records, and in the same transaction, it
    /// is recorded that it was written; if somebody else took over meanwhile, it writes nothing. A transaction
    /// without an event is not the work: it clears what another write left.
    ///
    /// # Errors
    /// Those of the work.
    pub fn effect<T>(&self, number: u64, work: impl FnOnce() -> T) -> T {
        let (id, family) = (self.id.clone(), self.family);
        let me = self.runs.alive.name().to_owned();
        let space = self.space.clone();
        let last = move |tx: &mut Tx<'_>| {
            // Another space has its own rows: what belongs to nobody's run is not marked.
            if *tx.space() != space {
                return Ok(());
            }
            let Some(run) = rows(family).get(&**tx, &id)? else {
                return Err(Error::not_found(family.as_str(), &id));
            };
            must_hold(&run, &me)?;
            match tx.has_events() {
                true => EFFECTS.set(tx, &effect_key(&id, number), &Mark),
                false => Ok(()),
            }
        };
        accompanied(Arc::new(last), work)
    }

    /// Lets the run wait for somebody to decide, because nobody knows whether a step was done.
    ///
    /// # Errors
    /// Somebody else took over, and those of the store.
    pub fn doubt(&self, why: &str) -> Result<Run> {
        let why = why.to_owned();
        self.change(move |tx, run| {
            run.status = Status::Suspended;
            run.n_suspended += 1;
            run.error = Some(why.clone());
            run.doubt = Some(why.clone());
            let data = json!({ "workflowId": run.id, "reason": why });
            tx.record(&run.family.event("Suspended"), data)?;
            Ok(())
        })
    }

    /// Asks, and lets the run wait until every question is answered ([`Runs::answer`]); then it is at this step again,
    /// and has the answers.
    ///
    /// # Errors
    /// Somebody else took over, and those of the store.
    pub fn ask(&self, questions: Vec<(String, Question)>) -> Result<Run> {
        self.change(move |tx, run| {
            run.status = Status::Suspended;
            let keys: Vec<&str> = questions.iter().map(|it| it.0.as_str()).collect();
            let data = json!({ "workflowId": run.id, "reason": "it asks", "questions": keys });
            tx.record(&run.family.event("Suspended"), data)?;
            run.questions.extend(questions);
            Ok(())
        })
    }

    /// Leaves the run until then, in milliseconds since 1970, or until somebody resumes it.
    ///
    /// # Errors
    /// Somebody else took over, and those of the store.
    pub fn wait(&self, due_ms: u64) -> Result<Run> {
        let run = self.run()?;
        if run.status != Status::Running || run.due_ms == due_ms {
            return Ok(run);
        }
        let (id, family) = (self.id.clone(), self.family);
        let me = self.runs.alive.name().to_owned();
        self.runs.kernel().log().write(&self.space, move |tx| {
            let rows = rows(family);
            let found = rows.get(&**tx, &id)?;
            let mut run = found.ok_or_else(|| Error::not_found(family.as_str(), &id))?;
            must_hold(&run, &me)?;
            run.due_ms = due_ms;
            rows.set(tx, &id, &run)?;
            Ok(run)
        })
    }

    /// Whether the run is still ours.
    ///
    /// # Errors
    /// Conflict if it is not, and those of the store.
    pub fn still_ours(&self) -> Result<()> {
        must_hold(&self.run()?, self.runs.alive.name())
    }

    /// Ends the run: its event and its trajectory, at once. One that has ended stays as it is.
    ///
    /// # Errors
    /// Somebody else took over, and those of the store.
    pub fn finish(&self, ending: Ending) -> Result<Run> {
        self.change(move |tx, run| match run.ended_ms {
            Some(_) => Ok(()),
            None => end(tx, run, ending),
        })
    }
}

/// What is known of a step that may have been begun before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// It was not begun.
    Nothing,
    /// It was begun, and wrote nothing to the store.
    Begun,
    /// It was begun and wrote; what it answered is lost.
    Written,
}

fn must_hold(run: &Run, me: &str) -> Result<()> {
    match run.holder.as_deref() == Some(me) {
        true => Ok(()),
        false => Err(Error::conflict(format!(
            "another process works on `{}`",
            run.id
        ))),
    }
}

fn effect_key(id: &str, number: u64) -> String {
    format!("{id}/{number}")
}

/// Forgets that the step which comes next has written: it is done once more.
pub(crate) fn forget_effect(tx: &mut Tx<'_>, run: &Run) -> Result<()> {
    EFFECTS.unset(tx, &effect_key(&run.id, run.n_steps))
}

/// Ends a run in a transaction.
pub(crate) fn end(tx: &mut Tx<'_>, run: &mut Run, ending: Ending) -> Result<()> {
    let Ending {
        outcome,
        error,
        artifacts,
        summary,
        quality,
    } = ending;
    run.status = outcome.status();
    run.outcome = Some(outcome);
    run.error = error.map(|it| short(&it, 2_000));
    run.artifacts.extend(artifacts.into_iter().map(bounded));
    run.artifacts.truncate(ARTIFACTS_MAX);
    run.ended_ms = Some(run.last_ms);
    run.holder = None;
    run.questions.clear();
    if run.begun.take().is_some() {
        EFFECTS.unset(tx, &effect_key(&run.id, run.n_steps))?;
    }
    open_runs(run.family).unset(tx, &run.id)?;
    let trajectory = Trajectory::of_run(run, summary, quality);
    run.trajectory = Some(trajectory.id.clone());
    let (word, event) = match outcome {
        Outcome::Completed => ("Completed", "success"),
        Outcome::Timeout => ("Completed", "timeout"),
        Outcome::Failed => ("Failed", "failure"),
        Outcome::Cancelled => ("Cancelled", "cancelled"),
    };
    let data = json!({
        "workflowId": run.id, "workflowType": run.kind, "outcome": event,
        "duration": run.duration_ms(), "error": run.error, "trajectoryId": trajectory.id,
    });
    trajectory::record(tx, trajectory)?;
    tx.record(&run.family.event(word), data)?;
    Ok(())
}
