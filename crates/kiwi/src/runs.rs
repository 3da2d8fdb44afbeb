//! Runs: statistics, and the grants of directives' runs.

use super::ItemResult;
use crate::Kiwi;
use kenning_audit::Tx;
use kenning_core::{Code, Error, Result};
use kenning_items::grants::Grants;
use kenning_kernel::{Bucket, Caller, RowCodec};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The grants of directives' runs, by their ids.
pub const GRANTS: Bucket<Grant> = Bucket::new("items/grants");
/// How often a tool was run, and how often that went well.
pub(super) const RUNS: Bucket<Runs> = Bucket::new("items/runs");

/// How long the `run_id` of a directive is valid.
const RUN_MS_MAX: u64 = 60 * 60 * 1000;

/// What a run of a directive granted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Grant {
    #[serde(default)]
    pub(crate) directive: String,
    #[serde(default)]
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) grants: Value,
    #[serde(default)]
    pub(crate) at_ms: u64,
    #[serde(default)]
    pub(crate) parent: Option<String>,
    #[serde(default)]
    pub(crate) project: String,
}

/// Runs of a tool, and those that went well.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Runs {
    pub(super) n: u64,
    pub(super) n_successes: u64,
}

impl RowCodec for Runs {
    fn to_bytes(&self) -> Result<Vec<u8>> {
        Ok(format!("{} {}", self.n, self.n_successes).into_bytes())
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (n, n_successes) = std::str::from_utf8(bytes).ok()?.split_once(' ')?;
        Some(Self {
            n: n.parse().ok()?,
            n_successes: n_successes.parse().ok()?,
        })
    }
}

/// What a directive's run lets later calls do.
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
        let row = self.kernel.log().read(space, |tx| GRANTS.get(tx, run_id))?;
        let row = row.ok_or_else(|| {
            let shown: String = run_id.chars().take(64).collect();
            Error::new(Code::InvalidInput, format!("`run_id`: no run `{shown}`")).hint(remedy)
        })?;
        let now_ms = self.kernel.log().clock().now_ms();
        let age_ms = now_ms.saturating_sub(row.at_ms);
        if age_ms > RUN_MS_MAX {
            return Err(Error::invalid(format!(
                "`run_id`: `{run_id}` is older than an hour and has expired"
            ))
            .hint(remedy)
            .into());
        }
        Ok(RunGrants {
            id: run_id.to_owned(),
            directive: row.directive,
            grants: Grants::from_json(&row.grants)?,
            at_ms: row.at_ms,
            project: row.project,
        })
    }
}

/// At most this many grants are kept in a space; the oldest go first.
pub const GRANTS_MAX: usize = 1_000;

/// Removes expired grants, and the oldest if there are too many. It runs whenever one is added, so
/// there is never much to remove.
pub(super) fn forget_old_grants(tx: &mut Tx<'_>, now_ms: u64) -> Result<()> {
    let mut rows = Vec::new();
    for id in GRANTS.keys(&**tx)? {
        // One that cannot be read grants nothing, and goes first.
        let grant = GRANTS.get_readable(&**tx, &id)?;
        rows.push((grant.map_or(0, |it| it.at_ms), id));
    }
    rows.sort();
    let n_over = (rows.len() + 1).saturating_sub(GRANTS_MAX);
    for (n, (at_ms, id)) in rows.into_iter().enumerate() {
        if n < n_over || at_ms.saturating_add(RUN_MS_MAX) < now_ms {
            GRANTS.unset(tx, &id)?;
        }
    }
    Ok(())
}

/// Counts a run.
pub(super) fn note_run(tx: &mut Tx<'_>, key: &str, success: bool) -> Result<()> {
    let mut runs = RUNS.get_readable(&**tx, key)?.unwrap_or_default();
    runs.n += 1;
    runs.n_successes += u64::from(success);
    RUNS.set(tx, key, &runs)
}
