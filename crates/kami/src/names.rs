//! The names of tools, and the rule that a name never comes to mean something else.
//!
//! A component with several functions is called by names that begin with its id, and such a name can
//! be the id of another tool. Two tools that would share a name cannot both be installed, whatever
//! the order. The names of a removed tool stay bound to the hash of its component: a call to one of
//! them never reaches another component.

use super::PAGE;
use super::record::{Record, Stored, StoredVersion, function_names};
use kenning_audit::Tx;
use kenning_core::{Error, Kind, Result};
use kenning_kernel::Bucket;
use kenning_store::{NodeFilter, ReadTx, When};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// The bucket of names of removed tools.
const RETIRED: Bucket<Retired> = Bucket::new("tools/retired-names");

/// What a name meant before its tool was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Retired {
    id: String,
    sha256: String,
}

impl Retired {
    /// Whether the name meant another component than this tool's.
    pub(super) fn is_not(&self, record: &Record) -> bool {
        self.is_other(&record.id, &record.sha256.to_string())
    }

    fn is_other(&self, id: &str, sha256: &str) -> bool {
        self.id != id && self.sha256 != sha256
    }
}

/// All names of a version of a tool.
fn names(id: &str, version: &StoredVersion) -> Vec<String> {
    match version.functions.as_slice() {
        [] | [_] => vec![id.to_owned()],
        many => {
            let names = function_names(id, many).into_iter();
            let names = names.flat_map(|name| match name.main == name.long {
                true => vec![name.main],
                false => vec![name.main, name.long],
            });
            names.collect()
        }
    }
}

/// The names of removed tools.
pub(super) fn retired(tx: &dyn ReadTx) -> Result<HashMap<String, Retired>> {
    // A row that cannot be read does not prevent calls of others.
    Ok(RETIRED.list_readable(tx)?.into_iter().collect())
}

/// Refuses a version whose names could become ambiguous, now or after another one is pinned.
pub(super) fn require_clear(
    tx: &dyn ReadTx,
    id: &str,
    version: &StoredVersion,
    may_take_over: bool,
) -> Result<()> {
    let new = names(id, version);
    let mut own = HashSet::new();
    if let Some(twice) = new.iter().find(|it| !own.insert(it.as_str())) {
        return Err(
            Error::conflict(format!("two functions of `{id}` would be called `{twice}`"))
                .hint("give one of them another name"),
        );
    }
    let filter = NodeFilter {
        kinds: vec![Kind::Tool],
        ..NodeFilter::default()
    };
    let mut after = None;
    loop {
        let page = tx.nodes(&filter, When::Now, after, PAGE)?;
        after = page.last().map(|it| it.id);
        for node in page.iter().filter(|it| it.key != id) {
            let other = node.key.as_str();
            if own.contains(other) {
                return Err(clash(id, other, other));
            }
            let Ok(stored) = Stored::of(node) else {
                continue;
            };
            let taken = stored.versions.values().flat_map(|it| names(other, it));
            if let Some(name) = { taken }.find(|name| name == id || own.contains(name.as_str())) {
                return Err(clash(id, &name, other));
            }
        }
        if page.len() < PAGE {
            break;
        }
    }
    if may_take_over {
        return Ok(());
    }
    let retired = retired(tx)?;
    for name in new.iter().filter(|it| *it != id) {
        if retired
            .get(name)
            .is_some_and(|it| it.is_other(id, &version.sha256))
        {
            return Err(Error::conflict(format!(
                "a function of `{id}` would be called `{name}`, which was the name of another tool that was removed"
            ))
            .hint("give it another `tool.id`; `--allow` lets it take the name over"));
        }
    }
    Ok(())
}

fn clash(id: &str, name: &str, other: &str) -> Error {
    let what = if name == other {
        format!("a function of `{id}` would be called `{name}`, which is the name of another tool")
    } else if name == id {
        format!("`{id}` is the name of a function of `{other}` already")
    } else {
        format!("`{name}` would be a function of `{id}` and of `{other}`")
    };
    Error::conflict(what).hint(format!(
        "uninstall `{other}`, or give this tool another `tool.id`"
    ))
}

/// Keeps the names of a removed tool with what they meant.
pub(super) fn retire(tx: &mut Tx<'_>, record: &Record) -> Result<()> {
    let Some(version) = record.version() else {
        return Ok(());
    };
    let row = Retired {
        id: record.id.clone(),
        sha256: version.sha256.clone(),
    };
    for name in names(&record.id, version) {
        RETIRED.set(tx, &name, &row)?;
    }
    Ok(())
}

/// Gives names to an installed tool, whatever they meant before.
pub(super) fn take(tx: &mut Tx<'_>, id: &str, version: &StoredVersion) -> Result<()> {
    for name in names(id, version) {
        if RETIRED.has(&**tx, &name)? {
            RETIRED.unset(tx, &name)?;
        }
    }
    Ok(())
}
