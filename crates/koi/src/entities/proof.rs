//! Checks that statements, merges and vetoes match the log: they are rows and not nodes, and the
//! graph is derived from them, so whoever could change one unseen could change the graph.

use super::identity::{MERGED_ROWS, VETOES, merged_uris};
use super::said::SAID_BYTES;
use kenning_audit::foreign::SYNC_APPLIED;
use kenning_audit::{Change, Origin, SignedRow};
use kenning_core::{Hash, Result};
use kenning_store::ReadTx;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};

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

/// What the log says of rows whose hashes are in no event: those from before statements were shared. All
/// others are checked with the rest of the log.
#[derive(Default)]
struct Told {
    statements: BTreeMap<String, String>,
    merged: BTreeMap<String, String>,
    vetoes: BTreeSet<String>,
    /// Rows whose hashes are in events, by bucket and key.
    signed: HashSet<(String, String)>,
}

/// What does not match the log, one sentence each.
pub fn faults(tx: &dyn ReadTx) -> Result<Vec<String>> {
    let told = told(tx)?;
    let mut faults = Vec::new();
    let rows = SAID_BYTES.list(tx)?.into_iter();
    let statements: BTreeMap<String, String> = rows
        .filter(|(key, _)| !told.is_signed(SAID_BYTES.name(), key))
        .map(|(key, bytes)| (key, Hash::of(&bytes.0).to_string()))
        .collect();
    differences("statement", &told.statements, &statements, &mut faults);
    let mut merged = merged_uris(tx)?;
    merged.retain(|uri, _| !told.is_signed(MERGED_ROWS, uri));
    differences("merge", &told.merged, &merged, &mut faults);
    let vetoes = VETOES.keys(tx)?.into_iter();
    let vetoes: BTreeSet<String> = vetoes
        .filter(|key| !told.is_signed(VETOES.name(), key))
        .collect();
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
    let own = kenning_audit::log_id(tx)?;
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
            let is_about =
                is_ours || [SYNC_APPLIED, "RowsChanged", "RowsShared"].contains(&row.kind.as_str());
            let origin = Origin::from_bytes(&row.sealed.origin);
            // What an event of another log changed here is in the event that applied it.
            let is_foreign = origin.is_some_and(|it| Some(it.log) != own);
            if !is_about || is_foreign {
                continue;
            }
            let Some(event) = kenning_audit::event::parse(row) else {
                continue;
            };
            for change in event.changes {
                if let Change::PutRow { row, .. } | Change::RemoveRow { row } = change
                    && let SignedRow::Pair(bucket, key) = row
                {
                    told.forget(&bucket, &key);
                    told.signed.insert((bucket, key));
                }
            }
            if is_ours && !told.names(&row.kind, &event.data) {
                told.add(&row.kind, &event.data);
            }
        }
    }
}

impl Told {
    fn is_signed(&self, bucket: &str, key: &str) -> bool {
        self.signed.contains(&(bucket.to_owned(), key.to_owned()))
    }

    /// From here on the hashes in events say it.
    fn forget(&mut self, bucket: &str, key: &str) {
        if bucket == SAID_BYTES.name() {
            self.statements.remove(key);
        } else if bucket == MERGED_ROWS {
            self.merged.remove(key);
        } else if bucket == VETOES.name() {
            self.vetoes.remove(key);
        }
    }

    /// Whether the hash of the row that an event names is in an event.
    fn names(&self, kind: &str, data: &Value) -> bool {
        let text = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default();
        match kind {
            KEPT | DROPPED => self.is_signed(SAID_BYTES.name(), text("key")),
            MERGED | UNMERGED => self.is_signed(MERGED_ROWS, text("uri")),
            _ => {
                let key = format!("{}\n{}", text("uri"), text("label"));
                self.is_signed(VETOES.name(), &key)
            }
        }
    }

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
