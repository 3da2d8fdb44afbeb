//! Checks that statements, merges and vetoes match the log: they are rows and not nodes, and the
//! graph is derived from them, so whoever could change one unseen could change the graph.

use super::identity::{VETOES, merged_uris};
use super::said::SAID_BYTES;
use kenning_core::{Hash, Result};
use kenning_store::ReadTx;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A statement was stored: its key, and the hash of its bytes.
pub(super) const KEPT: &str = "StatementKept";
/// A statement was removed.
pub(super) const DROPPED: &str = "StatementDropped";
pub(super) const MERGED: &str = "EntitiesMerged";
pub(super) const UNMERGED: &str = "EntitiesUnmerged";
pub(super) const VETOED: &str = "EntityVetoed";
pub(super) const VETO_UNDONE: &str = "EntityVetoUndone";

/// So many events are read at once.
const BATCH: usize = 4_096;

/// What the log says.
#[derive(Default)]
struct Told {
    statements: BTreeMap<String, String>,
    merged: BTreeMap<String, String>,
    vetoes: BTreeSet<String>,
}

/// What does not match the log, one sentence each.
pub fn faults(tx: &dyn ReadTx) -> Result<Vec<String>> {
    let told = told(tx)?;
    let mut faults = Vec::new();
    let rows = SAID_BYTES.list(tx)?.into_iter();
    let statements: BTreeMap<String, String> = rows
        .map(|(key, bytes)| (key, Hash::of(&bytes.0).to_string()))
        .collect();
    differences("statement", &told.statements, &statements, &mut faults);
    let merged = merged_uris(tx)?;
    differences("merge", &told.merged, &merged, &mut faults);
    let vetoes: BTreeSet<String> = VETOES.keys(tx)?.into_iter().collect();
    for it in told.vetoes.symmetric_difference(&vetoes) {
        let (uri, label) = it.split_once('\n').unwrap_or((it, ""));
        faults.push(format!(
            "the veto of \"{label}\" for `{uri}` does not match the log"
        ));
    }
    Ok(faults)
}

fn differences(
    what: &str,
    told: &BTreeMap<String, String>,
    there: &BTreeMap<String, String>,
    faults: &mut Vec<String>,
) {
    let keys: BTreeSet<&String> = told.keys().chain(there.keys()).collect();
    for key in keys {
        let how = match (told.get(key), there.get(key)) {
            (Some(told), Some(there)) if told == there => continue,
            (Some(_), Some(_)) => "does not match the log",
            (Some(_), None) => "is missing",
            _ => "is not in the log",
        };
        faults.push(format!("the {what} `{key}` {how}"));
    }
}

fn told(tx: &dyn ReadTx) -> Result<Told> {
    let mut told = Told::default();
    let mut seq = 0;
    loop {
        let rows = tx.events_after(seq, BATCH)?;
        let Some(last) = rows.last() else {
            return Ok(told);
        };
        seq = last.seq;
        for row in &rows {
            let is_ours =
                [KEPT, DROPPED, MERGED, UNMERGED, VETOED, VETO_UNDONE].contains(&row.kind.as_str());
            if !is_ours {
                continue;
            }
            let Some(event) = kenning_audit::event::parse(row) else {
                continue;
            };
            told.add(&row.kind, &event.data);
        }
    }
}

impl Told {
    fn add(&mut self, kind: &str, data: &Value) {
        let text = |name: &str| {
            let text = data.get(name).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        match kind {
            KEPT => {
                self.statements.insert(text("key"), text("hash"));
            }
            DROPPED => {
                self.statements.remove(&text("key"));
            }
            MERGED => {
                self.merged.insert(text("uri"), text("into"));
            }
            UNMERGED => {
                self.merged.remove(&text("uri"));
            }
            VETOED => {
                self.vetoes
                    .insert(format!("{}\n{}", text("uri"), text("label")));
            }
            _ => {
                let veto = format!("{}\n{}", text("uri"), text("label"));
                self.vetoes.remove(&veto);
            }
        }
    }
}
