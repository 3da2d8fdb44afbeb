//! Runs: statistics, and the grants of directives' runs.

use super::ItemResult;
use crate::Kiwi;
use kenning_audit::Tx;
use kenning_core::{Code, Error, Result};
use kenning_items::grants::Grants;
use kenning_kernel::Caller;
use serde_json::Value;

/// The grants of directives' runs, by their ids.
pub const GRANTS: &str = "items/grants";
/// How often a tool was run, and how often it succeeded.
pub(super) const RUNS: &str = "items/runs";

/// How long the `run_id` of a directive is valid.
const RUN_MS_MAX: u64 = 60 * 60 * 1000;

/// The grants of a directive's run for later calls.
#[derive(Clone, Debug)]
pub(crate) struct RunGrants {
    pub(crate) id: String,
    pub(crate) directive: String,
    pub(crate) grants: Grants,
    /// When the run began, or the first of the runs that it is part of.
    pub(crate) at_ms: u64,
    pub(crate) project: String,
}

impl Kiwi {
    /// The grants of a directive's run; an unknown or expired one is refused.
    pub(crate) fn run_grants(&self, caller: &Caller, run_id: &str) -> ItemResult<RunGrants> {
        let remedy = "run the directive again and use the `run_id` of that answer";
        let space = &caller.principal.space;
        let bytes = self.kernel.log().read(space, |tx| tx.get(GRANTS, run_id))?;
        let bytes = bytes.ok_or_else(|| {
            let shown: String = run_id.chars().take(64).collect();
            Error::new(Code::InvalidInput, format!("`run_id`: no run `{shown}`")).hint(remedy)
        })?;
        let row: Value = serde_json::from_slice(&bytes)
            .map_err(|it| Error::corrupt("the grants of a run cannot be read").because(it))?;
        let at_ms = row["at_ms"].as_u64().unwrap_or(0);
        let age_ms = self.kernel.log().clock().now_ms().saturating_sub(at_ms);
        if age_ms > RUN_MS_MAX {
            return Err(Error::invalid(format!(
                "`run_id`: `{run_id}` is older than an hour and has expired"
            ))
            .hint(remedy)
            .into());
        }
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        Ok(RunGrants {
            id: run_id.to_owned(),
            directive: text("directive"),
            grants: Grants::from_json(&row["grants"])?,
            at_ms,
            project: text("project"),
        })
    }
}

/// At most this many grants are kept in a space; the oldest go first.
pub const GRANTS_MAX: usize = 1_000;

/// Removes expired grants, and the oldest if there are too many. It runs whenever one is added, so
/// there is never much to remove.
pub(super) fn forget_old_grants(tx: &mut Tx<'_>, now_ms: u64) -> Result<()> {
    let at_ms = |row: &[u8]| {
        let row: Value = serde_json::from_slice(row).unwrap_or_default();
        row["at_ms"].as_u64().unwrap_or(0)
    };
    let rows = tx.list(GRANTS)?;
    let mut rows: Vec<(u64, String)> = rows.into_iter().map(|it| (at_ms(&it.1), it.0)).collect();
    rows.sort();
    let n_over = (rows.len() + 1).saturating_sub(GRANTS_MAX);
    for (n, (at_ms, id)) in rows.into_iter().enumerate() {
        if n < n_over || at_ms.saturating_add(RUN_MS_MAX) < now_ms {
            tx.unset(GRANTS, &id)?;
        }
    }
    Ok(())
}

/// Counts a run.
pub(super) fn note_run(tx: &mut Tx<'_>, key: &str, success: bool) -> Result<()> {
    let (runs, successes) = counted(tx.get(RUNS, key)?.as_deref());
    let next = format!("{} {}", runs + 1, successes + u64::from(success));
    tx.set(RUNS, key, next.as_bytes())
}

/// The number of runs, and of successful ones.
pub(super) fn counted(bytes: Option<&[u8]>) -> (u64, u64) {
    let text = bytes
        .and_then(|it| std::str::from_utf8(it).ok())
        .unwrap_or_default();
    let mut numbers = text.split(' ').map(|it| it.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}
