//! What the processes and the directories hold at one moment.

use crate::crash::binary::Place;
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// One moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    /// Calls answered so far.
    pub(super) calls: u64,
    /// By name.
    pub(super) gauges: BTreeMap<String, u64>,
}

/// Tables that grow with every write, by design.
pub(super) const HISTORY: &[&str] = &["events", "node_history", "tiles", "checkpoints"];

impl Sample {
    /// Looks at these processes and this place.
    pub(super) fn take(processes: &[u32], place: &Place, calls: u64) -> Result<Self> {
        let mut gauges = BTreeMap::new();
        for (name, pid) in ["server", "stdio"].iter().zip(processes) {
            gauges.insert(format!("{name} memory KiB"), status(*pid, "RssAnon:")?);
            gauges.insert(format!("{name} threads"), status(*pid, "Threads:")?);
            let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd"))?.count() as u64;
            gauges.insert(format!("{name} descriptors"), descriptors);
        }
        let root = place.data();
        let root = root.parent().context("a place has a root")?;
        let (mut n_files, mut n_bytes) = (0, 0);
        walk(root, &mut |path, size| {
            let name = path
                .file_name()
                .and_then(|it| it.to_str())
                .unwrap_or_default();
            match name {
                "kenning.db" => {
                    gauges.insert("database bytes".to_owned(), size);
                }
                "kenning.db-wal" => {
                    gauges.insert("write-ahead log bytes".to_owned(), size);
                }
                _ => {
                    n_files += 1;
                    n_bytes += size;
                }
            }
        });
        gauges.insert("files".to_owned(), n_files);
        gauges.insert("file bytes".to_owned(), n_bytes);
        for (table, n) in rows(&place.data())? {
            gauges.insert(format!("rows of {table}"), n);
        }
        Ok(Self { calls, gauges })
    }
}

fn status(pid: u32, name: &str) -> Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|it| it.strip_prefix(name));
    let number = line.and_then(|it| it.split_whitespace().next()?.parse().ok());
    number.with_context(|| format!("/proc has no {name}"))
}

/// Every file beneath a folder, as far as it is still there when it is looked at.
fn walk(folder: &Path, visit: &mut dyn FnMut(&Path, u64)) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if metadata.is_dir() {
            walk(&entry.path(), visit);
        } else {
            visit(&entry.path(), metadata.len());
        }
    }
}

/// The rows of every table that is ours.
fn rows(data: &Path) -> Result<BTreeMap<String, u64>> {
    use rusqlite::{Connection, OpenFlags};
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let store = Connection::open_with_flags(data.join("kenning.db"), flags)?;
    store.busy_timeout(std::time::Duration::from_secs(5))?;
    let mut names = store.prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'",
    )?;
    let names = names.query_map([], |row| row.get::<_, String>(0))?;
    let names: Vec<String> = names.collect::<Result<_, _>>()?;
    let mut rows = BTreeMap::new();
    for name in names {
        let n: i64 = store.query_row(&format!("SELECT count(*) FROM \"{name}\""), [], |row| {
            row.get(0)
        })?;
        rows.insert(name, u64::try_from(n)?);
    }
    Ok(rows)
}
