//! Durable runs: of workflows and of agents.
//!
//! A run is a row; each of its steps is an event, and the row changes in the same transaction as the event. So a
//! process may be killed at any moment: whoever looks next finds the run after its last step and goes on. One
//! process at a time works on a run ([`Runs::claim`]), and what is written for a step by another part of the
//! program is written at most once ([`Claim::effect`]). Every run that ends leaves a [`Trajectory`].
//!
//! What a step does is not known here.
//!
//! Reading order: [`run`] (the row), [`claim`] (who works on it), [`trajectory`] (what it leaves), [`Runs`].

mod alive;
mod claim;
mod find;
mod run;
mod trajectory;

pub use alive::{Dead, Presence};
pub use claim::{Before, Claim, Ending, StepDone};
pub use find::{RunFilter, RunStats};
pub use run::{Family, NewRun, Outcome, Question, Run, Status, Step, StepOutcome, Who};
pub use trajectory::{
    Advice, Pattern, STEPS_MAX, TRAJECTORIES_MAX, Trajectory, TrajectoryFilter, TrajectoryStats,
    record,
};

use alive::Alive;
use kenning_audit::Tx;
use kenning_core::{Error, Result, Space};
use kenning_kernel::{Bucket, Caller, Kernel, Mark, Principal, Scope};
use run::Decision;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// The runs that are not at their end, by family: what a worker looks at.
pub(crate) fn open_runs(family: Family) -> Bucket<Mark> {
    Bucket::named(format!("runs/open/{}", family.as_str()))
}

/// Every run that is kept, by family.
pub(crate) fn rows(family: Family) -> Bucket<Run> {
    Bucket::named(format!("runs/{}", family.as_str()))
}

/// For whom a run works. It decides what the run may do, so its rows are signed.
pub(crate) const CALLERS: Bucket<Who> = Bucket::new("runs/callers");

/// The steps whose effect is written, and which are not recorded yet.
pub(crate) const EFFECTS: Bucket<Mark> = Bucket::new("runs/effects");

/// How many were started, by family.
const STARTED: Bucket<u64> = Bucket::new("runs/counts");

/// After this many it is looked whether old ones are to go.
const LOOK_EVERY: u64 = 50;

/// Runs that are kept of each family; the oldest that ended go first.
const KEPT_MAX: usize = 1_000;

/// Runs of one space that are under way at once.
const OPEN_MAX: usize = 200;

/// The runs of a store.
pub struct Runs {
    kernel: Arc<Kernel>,
    alive: Alive,
    /// What this process works on now.
    busy: Mutex<HashSet<(Space, String)>>,
    /// Whether a worker of this process looks after runs.
    is_serving: AtomicBool,
}

impl Runs {
    /// Uses a kernel.
    pub fn new(kernel: Arc<Kernel>) -> Self {
        let alive = Alive::new(Arc::clone(&kernel));
        Self {
            kernel,
            alive,
            busy: Mutex::default(),
            is_serving: AtomicBool::default(),
        }
    }

    /// Starts a run: it exists from now on, and nobody works on it yet.
    ///
    /// # Errors
    /// The caller may not write, or too many are under way.
    pub fn start(&self, caller: &Caller, new: NewRun) -> Result<Run> {
        self.kernel.may_write(caller)?;
        let who = Who::of(caller);
        let now_ms = self.kernel.log().clock().now_ms();
        let write = move |tx: &mut Tx<'_>| {
            let family = new.family;
            if open_runs(family).keys(&**tx)?.len() >= OPEN_MAX {
                let word = family.as_str();
                return Err(Error::limited(format!(
                    "{OPEN_MAX} {word} runs are under way in this space"
                ))
                .hint(format!("stop some of them: `kenning {word} stop ID`")));
            }
            let rows = rows(family);
            let mut id = format!("{}-{now_ms}", new.kind);
            let mut n = 1;
            while rows.has(&**tx, &id)? {
                n += 1;
                id = format!("{}-{now_ms}-{n}", new.kind);
            }
            let run = Run::new(id, new, now_ms);
            rows.set(tx, &run.id, &run)?;
            open_runs(family).set(tx, &run.id, &Mark)?;
            CALLERS.set(tx, &run.id, &who)?;
            let data = json!({
                "workflowId": run.id, "workflowType": run.kind, "trigger": who.name,
            });
            tx.record(&family.event("Started"), data)?;
            forget_old(tx, family)?;
            Ok(run)
        };
        let space = &caller.principal.space;
        self.kernel
            .with_wait_limit(caller.waited, || self.kernel.log().write(space, write))
    }

    /// A run by its id.
    ///
    /// # Errors
    /// The caller may not read, and those of the store.
    pub fn run(&self, caller: &Caller, family: Family, id: &str) -> Result<Option<Run>> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        self.kernel.log().read(space, |tx| rows(family).get(tx, id))
    }

    /// The same, where there must be one.
    ///
    /// # Errors
    /// Not found, and those of [`Runs::run`].
    pub fn expect_run(&self, caller: &Caller, family: Family, id: &str) -> Result<Run> {
        let found = self.run(caller, family, id)?;
        found.ok_or_else(|| missing(family, id))
    }

    /// The same, if it works for this caller: whoever has another token is told that there is none. Whoever started
    /// the process has no token and is shown all.
    ///
    /// # Errors
    /// Not found, and those of [`Runs::run`].
    pub fn expect_own_run(&self, caller: &Caller, family: Family, id: &str) -> Result<Run> {
        let Principal { space, token, .. } = &caller.principal;
        let who = self.kernel.log().read(space, |tx| CALLERS.get(tx, id))?;
        match token.is_none() || who.is_some_and(|it| it.token == *token) {
            true => self.expect_run(caller, family, id),
            false => {
                caller.principal.require(Scope::Read)?;
                Err(missing(family, id))
            }
        }
    }

    /// Lets a run wait until [`Runs::resume`]. A step that is under way ends first.
    ///
    /// # Errors
    /// There is no such run, or it has ended.
    pub fn suspend(&self, caller: &Caller, family: Family, id: &str, why: &str) -> Result<Run> {
        let why = why.to_owned();
        self.change(caller, family, id, move |tx, run| {
            run.must_be_open()?;
            run.status = Status::Suspended;
            run.n_suspended += 1;
            run.error = (!why.is_empty()).then(|| why.clone());
            let data = json!({ "workflowId": run.id, "reason": why });
            tx.record(&family.event("Suspended"), data)?;
            Ok(())
        })
    }

    /// Lets a suspended run go on. With `again`, a step of which nobody knows whether it was done is done once
    /// more; with `again` false it counts as done.
    ///
    /// # Errors
    /// There is no such run, it is not suspended, or it waits for answers.
    pub fn resume(&self, caller: &Caller, family: Family, id: &str, again: bool) -> Result<Run> {
        self.change(caller, family, id, move |tx, run| match run.status {
            Status::Running => Ok(()),
            Status::Suspended if run.questions.is_empty() => go_on(tx, run, again),
            Status::Suspended => Err(Error::conflict(format!(
                "`{}` waits for {} answers",
                run.id,
                run.questions.len()
            ))
            .hint("answer what its task asks, or stop it")),
            _ => Err(
                Error::conflict(format!("`{}` is {} and cannot go on", run.id, run.word()))
                    .hint("start another one"),
            ),
        })
    }

    /// Answers questions of a suspended run ([`Run::open_questions`]), each as the result of an elicitation. When all
    /// are answered it goes on. What nobody asked, or asked no longer, changes nothing.
    ///
    /// # Errors
    /// There is no such run, the caller may not write, and those of the store.
    pub fn answer(
        &self,
        caller: &Caller,
        family: Family,
        id: &str,
        answers: BTreeMap<String, Value>,
    ) -> Result<Run> {
        let run = self.expect_run(caller, family, id)?;
        let open = run.open_questions();
        if !answers.keys().any(|it| open.contains_key(it)) {
            return Ok(run);
        }
        self.change(caller, family, id, move |tx, run| {
            let open = run.open_questions();
            let given = answers.iter().filter(|it| open.contains_key(it.0));
            for (key, answer) in given {
                if run.questions.remove(key).is_some() {
                    let data = json!({ "workflowId": run.id, "question": key });
                    tx.record(&family.event("Answered"), data)?;
                    run.answers.insert(key.clone(), bounded(answer.clone()));
                    if run.questions.is_empty() {
                        go_on(tx, run, false)?;
                    }
                    continue;
                }
                // Somebody who declines leaves it suspended.
                match Decision::of(answer) {
                    None => {}
                    Some(Decision::Stop) => claim::end(tx, run, stopped())?,
                    Some(decision) => go_on(tx, run, decision == Decision::Again)?,
                }
            }
            Ok(())
        })
    }

    /// Ends a run. A step that is under way ends, and nothing comes after it.
    ///
    /// # Errors
    /// There is no such run, or it has ended.
    pub fn stop(&self, caller: &Caller, family: Family, id: &str) -> Result<Run> {
        self.change(caller, family, id, move |tx, run| {
            run.must_be_open()?;
            claim::end(tx, run, stopped())
        })
    }

    /// Changes the row of a run in a transaction with an event.
    fn change(
        &self,
        caller: &Caller,
        family: Family,
        id: &str,
        change: impl Fn(&mut Tx<'_>, &mut Run) -> Result<()> + Send + 'static,
    ) -> Result<Run> {
        self.kernel.may_write(caller)?;
        self.expect_run(caller, family, id)?;
        let id = id.to_owned();
        let now_ms = self.kernel.log().clock().now_ms();
        let write = move |tx: &mut Tx<'_>| {
            let rows = rows(family);
            let found = rows.get(&**tx, &id)?;
            let mut run = found.ok_or_else(|| Error::not_found(family.as_str(), &id))?;
            run.last_ms = now_ms.max(run.last_ms);
            change(tx, &mut run)?;
            rows.set(tx, &id, &run)?;
            Ok(run)
        };
        let space = &caller.principal.space;
        self.kernel
            .with_wait_limit(caller.waited, || self.kernel.log().write(space, write))
    }

    pub(crate) fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }
}

fn missing(family: Family, id: &str) -> Error {
    let word = family.as_str();
    Error::not_found(word, id).hint(format!("`kenning {word} list` lists them"))
}

/// The end of a run that somebody stops.
fn stopped() -> Ending {
    Ending {
        error: Some("it was cancelled".to_owned()),
        ..Ending::of(Outcome::Cancelled)
    }
}

/// Lets a suspended run go on.
fn go_on(tx: &mut Tx<'_>, run: &mut Run, again: bool) -> Result<()> {
    run.status = Status::Running;
    run.error = None;
    run.due_ms = 0;
    if run.doubt.take().is_some() {
        if again {
            run.begun = None;
            claim::forget_effect(tx, run)?;
        } else if let Value::Object(kept) = &mut run.state {
            kept.insert("decided".to_owned(), run.n_steps.into());
        }
    }
    let data = json!({ "workflowId": run.id });
    tx.record(&run.family.event("Resumed"), data)?;
    Ok(())
}

/// Removes the oldest runs that ended, beyond those that are kept.
fn forget_old(tx: &mut Tx<'_>, family: Family) -> Result<()> {
    let rows = rows(family);
    let n_started = STARTED
        .get_readable(&**tx, family.as_str())?
        .unwrap_or_default()
        + 1;
    STARTED.set(tx, family.as_str(), &n_started)?;
    if !n_started.is_multiple_of(LOOK_EVERY) {
        return Ok(());
    }
    let mut ended = rows.list_readable(&**tx)?;
    ended.retain(|it| it.1.ended_ms.is_some());
    ended.sort_by_key(|it| it.1.started_ms);
    let n_surplus = ended.len().saturating_sub(KEPT_MAX);
    for (id, _) in ended.into_iter().take(n_surplus) {
        rows.unset(tx, &id)?;
        CALLERS.unset(tx, &id)?;
    }
    Ok(())
}

/// A text that is kept in a row or an event, not longer than this.
pub(crate) fn short(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

/// Characters of a value that is kept in a row.
const VALUE_CHARS_MAX: usize = 16_000;

/// A value that is kept in a row: a longer one is replaced by the beginning of its text.
pub(crate) fn bounded(value: Value) -> Value {
    let text = value.to_string();
    match text.len() > VALUE_CHARS_MAX {
        true => Value::String(short(&text, VALUE_CHARS_MAX)),
        false => value,
    }
}
