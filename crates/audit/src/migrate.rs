//! Moves a store with its log from one floor to another.
//!
//! Rows go over as they are, in batches, each in a transaction of its own that also notes how far it
//! came; whoever runs it again goes on from there. The head goes last, so that a space that is only
//! half there is not taken for a log. At the end both sides must have the same roots, and the whole
//! is verified.

use crate::log::{Roots, roots};
use crate::{Verify, verify};
use kenning_core::{Error, Hash, Result, Space};
use kenning_store::{Row, Store, Table};
use serde_json::{Value, json};

/// Rows of one transaction.
const BATCH: usize = 500;
/// Where the target notes how far it is.
const BUCKET: &str = "migration";
const KEY: &str = "progress";

/// What was moved.
#[derive(Clone, Debug)]
pub struct Migrated {
    /// Which space.
    pub space: Space,
    /// Where its log stands, on both sides.
    pub roots: Roots,
    /// Rows that this run moved; 0 when the space was there already.
    pub rows: u64,
}

/// How far a space is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Progress {
    /// Rows that are over.
    done: u64,
    /// What the source was when it began: if that changed, nothing fits any more.
    source: Hash,
}

impl Progress {
    fn to_bytes(&self) -> Vec<u8> {
        json!({ "done": self.done, "source": self.source.to_string() })
            .to_string()
            .into_bytes()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let source = Hash::from_hex(value.get("source")?.as_str()?)?;
        Some(Self {
            done: value.get("done")?.as_u64()?,
            source,
        })
    }
}

/// Moves every space. `progress` is told how many rows are over.
pub fn migrate(from: &Store, to: &Store, progress: &dyn Fn(u64)) -> Result<Vec<Migrated>> {
    let mut moved = Vec::new();
    let mut total = 0;
    for space in from.spaces()? {
        let before = total;
        let roots = migrate_space(from, to, &space, &mut |rows| {
            total += rows;
            progress(total);
        })?;
        moved.push(Migrated {
            space,
            roots,
            rows: total - before,
        });
    }
    Ok(moved)
}

fn migrate_space(
    from: &Store,
    to: &Store,
    space: &Space,
    told: &mut dyn FnMut(u64),
) -> Result<Roots> {
    let (source, target) = (from.read(space, roots)?, to.read(space, roots)?);
    let begun = to.read(space, |tx| tx.get(BUCKET, KEY))?;
    if begun.is_none() && target.seq > 0 {
        if source == target {
            return Ok(source);
        }
        return Err(
            Error::conflict(format!("the space `{space}` is in the target already"))
                .hint("move into an empty store"),
        );
    }
    let begun = match begun {
        None => Progress {
            done: 0,
            source: source.event_root,
        },
        Some(bytes) => Progress::from_bytes(&bytes)
            .ok_or_else(|| Error::corrupt("the target's note of an earlier run"))?,
    };
    if begun.source != source.event_root {
        return Err(
            Error::conflict(format!("the space `{space}` changed since it was begun"))
                .hint("begin again with an empty target, and let nobody write meanwhile"),
        );
    }
    copy_rows(from, to, space, begun, told)?;
    finish(from, to, space)?;
    let target = to.read(space, roots)?;
    if source != target {
        return Err(Error::corrupt(format!(
            "the roots of the space `{space}` differ"
        )));
    }
    let report = to.read(space, |tx| verify(tx, &Verify::of(space), &|_| ()))?;
    match report.faults.first() {
        None => Ok(target),
        Some(fault) => Err(Error::corrupt(format!("space {space}: {fault}"))),
    }
}

/// Moves all rows but the head, from where the last run stopped.
fn copy_rows(
    from: &Store,
    to: &Store,
    space: &Space,
    begun: Progress,
    told: &mut dyn FnMut(u64),
) -> Result<()> {
    from.read(space, |tx| {
        let (mut seen, mut at) = (0, begun.clone());
        let mut batch = Vec::with_capacity(BATCH);
        for table in Table::ALL.into_iter().filter(|&it| it != Table::Head) {
            tx.scan(table, &mut |row| {
                seen += 1;
                if seen <= begun.done {
                    return Ok(());
                }
                batch.push(row);
                if batch.len() == BATCH {
                    at.done = seen;
                    told(BATCH as u64);
                    return put(to, space, std::mem::take(&mut batch), &at);
                }
                Ok(())
            })?;
        }
        at.done = seen;
        told(batch.len() as u64);
        put(to, space, batch, &at)
    })
}

#[expect(clippy::disallowed_methods, reason = "raw rows bring their own events")]
fn put(to: &Store, space: &Space, rows: Vec<Row>, at: &Progress) -> Result<()> {
    let at = at.to_bytes();
    to.write_long(space, move |tx| {
        rows.iter().try_for_each(|row| tx.load(row))?;
        tx.set(BUCKET, KEY, &at)
    })
}

/// The head goes last, and the note goes with it.
#[expect(clippy::disallowed_methods, reason = "raw rows bring their own events")]
fn finish(from: &Store, to: &Store, space: &Space) -> Result<()> {
    let head = from.read(space, |tx| tx.head())?;
    to.write_long(space, move |tx| {
        if let Some(head) = &head {
            tx.put_head(head)?;
        }
        tx.unset(BUCKET, KEY)
    })
}
