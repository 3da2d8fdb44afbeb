//! Which runs there are, and which are due.

use crate::run::{Family, Outcome, Run, Status};
use crate::{Runs, open_runs, rows};
use kenning_core::{Result, Space};
use kenning_kernel::{Caller, Scope};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// Which runs. What is left out admits all.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// With this status.
    pub status: Option<Status>,
    /// Of this kind.
    pub kind: Option<String>,
}

/// Figures of the runs of a family. One that somebody stopped is neither a success nor a failure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunStats {
    /// How many ended by themselves.
    pub n_ended: u64,
    /// How many did what they were to do.
    pub n_completed: u64,
    /// How many failed.
    pub n_failed: u64,
    /// How many waited in vain.
    pub n_timed_out: u64,
    /// How many somebody stopped.
    pub n_cancelled: u64,
    /// How long those that ended by themselves took on average.
    pub mean_ms: u64,
}

impl RunStats {
    /// The figures of these runs.
    pub fn of(runs: &[Run]) -> Self {
        let count = |outcome| runs.iter().filter(|it| it.outcome == Some(outcome)).count() as u64;
        let is_counted = |it: &&Run| it.outcome.is_some_and(|it| it != Outcome::Cancelled);
        let total_ms: u64 = runs.iter().filter(is_counted).map(Run::duration_ms).sum();
        let n_ended = runs.iter().filter(is_counted).count() as u64;
        Self {
            n_ended,
            n_completed: count(Outcome::Completed),
            n_failed: count(Outcome::Failed),
            n_timed_out: count(Outcome::Timeout),
            n_cancelled: count(Outcome::Cancelled),
            mean_ms: total_ms.checked_div(n_ended).unwrap_or_default(),
        }
    }
}

impl Runs {
    /// The runs of a family that are kept, newest first.
    ///
    /// # Errors
    /// The caller may not read, and those of the store.
    pub fn list(&self, caller: &Caller, family: Family, filter: &RunFilter) -> Result<Vec<Run>> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        let all = self
            .kernel()
            .log()
            .read(space, |tx| rows(family).list_readable(tx))?;
        let mut found: Vec<Run> = all
            .into_iter()
            .map(|it| it.1)
            .filter(|it| filter.status.is_none_or(|status| it.status == status))
            .filter(|it| filter.kind.as_ref().is_none_or(|kind| it.kind == *kind))
            .collect();
        found.sort_by(|a, b| (b.started_ms, &b.id).cmp(&(a.started_ms, &a.id)));
        Ok(found)
    }

    /// The runs that a worker has to look at now, in all spaces: those that run and whose time has come. Whether
    /// another process works on one is seen when it is claimed.
    ///
    /// # Errors
    /// Those of the store.
    pub fn due(&self, family: Family) -> Result<Vec<(Space, Run)>> {
        let log = self.kernel().log();
        let now_ms = log.clock().now_ms();
        let mut found = Vec::new();
        for space in log.store().spaces()? {
            let runs = log.read(&space, |tx| {
                let mut runs = Vec::new();
                for id in open_runs(family).keys(tx)? {
                    runs.extend(rows(family).get_readable(tx, &id)?);
                }
                Ok(runs)
            })?;
            let is_due = |it: &Run| it.status == Status::Running && it.due_ms <= now_ms;
            let due = runs.into_iter().filter(is_due);
            found.extend(due.map(|it| (space.clone(), it)));
        }
        found.sort_by_key(|it| it.1.started_ms);
        Ok(found)
    }

    /// Whether this process works on a run at this moment.
    pub fn works_on(&self, space: &Space, id: &str) -> bool {
        let busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        busy.contains(&(space.clone(), id.to_owned()))
    }

    /// Whether a worker of this process looks after runs.
    pub fn is_serving(&self) -> bool {
        self.is_serving.load(Ordering::Relaxed)
    }

    /// Says whether one does.
    pub fn serve(&self, is_serving: bool) {
        self.is_serving.store(is_serving, Ordering::Relaxed);
    }

    /// The clock of the log, in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        self.kernel().log().clock().now_ms()
    }
}
