//! Moves a store with its log from one backend to another.
//!
//! Rows are copied unchanged, in batches, each in its own transaction that also records the key of the
//! last row, so that an interrupted run can be resumed. Key-value pairs change without an event, so they
//! are compared one by one. The head is copied last, so that an incomplete space is not mistaken for a
//! log. At the end every table must have the same number of rows and the same hash on both sides, both
//! must have the same roots, and the whole is verified.

use crate::archive::to_json;
use crate::log::{Roots, roots};
use crate::{Verify, verify};
use kenning_core::{Error, Hash, Result, Space};
use kenning_store::{KeyPart, ReadTx, Row, RowKey, Store, Table};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Rows of one transaction.
const BATCH: usize = 500;
/// Where the target records the progress.
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

/// The progress of a space.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Progress {
    /// What was moved last: a table, and the key of a row in it.
    last: Option<(Table, RowKey)>,
    /// The root of the source at the beginning: if it changed, the copy must begin again.
    source: Hash,
}

impl Progress {
    fn to_bytes(&self) -> Vec<u8> {
        let last = self.last.as_ref().map(|(table, key)| {
            let parts: Vec<Value> = key.0.iter().map(part_to_json).collect();
            json!({ "table": table.as_str(), "key": parts })
        });
        json!({ "last": last, "source": self.source.to_string() })
            .to_string()
            .into_bytes()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let source = Hash::from_hex(value.get("source")?.as_str()?)?;
        let last = match value.get("last")? {
            Value::Null => None,
            last => {
                let name = last.get("table")?.as_str()?;
                let table = Table::ALL.into_iter().find(|it| it.as_str() == name)?;
                let key = last.get("key")?.as_array()?.iter().map(part_from_json);
                Some((table, RowKey(key.collect::<Option<_>>()?)))
            }
        };
        Some(Self { last, source })
    }
}

fn part_to_json(part: &KeyPart) -> Value {
    match part {
        KeyPart::Id(id) => json!({ "id": id.to_string() }),
        KeyPart::Text(text) => json!({ "text": text }),
        KeyPart::Number(n) => json!({ "number": n }),
    }
}

fn part_from_json(value: &Value) -> Option<KeyPart> {
    if let Some(id) = value.get("id") {
        return Some(KeyPart::Id(id.as_str()?.parse().ok()?));
    }
    if let Some(text) = value.get("text") {
        return Some(KeyPart::Text(text.as_str()?.to_owned()));
    }
    Some(KeyPart::Number(value.get("number")?.as_u64()?))
}

/// What a table holds: how many rows, and the hash of all of them in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digest {
    rows: u64,
    hash: Hash,
}

impl Digest {
    fn of(tx: &dyn ReadTx, table: Table) -> Result<Self> {
        let mut hasher = blake3::Hasher::new();
        let mut rows = 0;
        tx.scan(table, &mut |row| {
            if !is_note(&row) {
                rows += 1;
                hasher.update(to_json(&row).to_string().as_bytes());
                hasher.update(b"\n");
            }
            Ok(())
        })?;
        let hash = Hash(*hasher.finalize().as_bytes());
        Ok(Self { rows, hash })
    }

    /// Of every table but the head's, which goes last.
    fn of_all(tx: &dyn ReadTx) -> Result<Vec<(Table, Self)>> {
        tables()
            .map(|table| Ok((table, Self::of(tx, table)?)))
            .collect()
    }
}

/// Every table but the head's.
fn tables() -> impl Iterator<Item = Table> {
    Table::ALL.into_iter().filter(|&it| it != Table::Head)
}

/// Whether a row is the target's own note.
fn is_note(row: &Row) -> bool {
    matches!(row, Row::Kv(it) if it.bucket == BUCKET && it.key == KEY)
}

/// Moves every space. `progress` is called with the number of copied rows.
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
            last: None,
            source: source.event_root,
        },
        Some(bytes) => Progress::from_bytes(&bytes).ok_or_else(|| {
            Error::conflict(format!(
                "another version of this program began to move the space `{space}`"
            ))
            .hint("begin again with an empty target")
        })?,
    };
    if begun.source != source.event_root {
        return Err(
            Error::conflict(format!("the space `{space}` changed since the copy began"))
                .hint("begin again with an empty target, and stop all writers meanwhile"),
        );
    }
    let expected = copy_rows(from, to, space, begun, told)?;
    compare(to, space, &expected)?;
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

/// Moves all rows but the head, from where the last run stopped. Gives what the tables of the source hold.
fn copy_rows(
    from: &Store,
    to: &Store,
    space: &Space,
    begun: Progress,
    told: &mut dyn FnMut(u64),
) -> Result<Vec<(Table, Digest)>> {
    // The target's key-value pairs, which a resumed run compares because they change without an event.
    let mut there = to.read(space, settings)?;
    from.read_long(space, |tx| {
        let mut batch = Batch {
            to,
            space,
            rows: Vec::with_capacity(BATCH),
            at: begun.clone(),
            told,
        };
        let mut resumed = begun.last.clone();
        for table in tables().filter(|&it| it != Table::Kv) {
            match &resumed {
                // This table is already copied.
                Some((last, _)) if *last != table => continue,
                Some((_, key)) => tx.scan_after(table, key, &mut |row| batch.add(table, row))?,
                None => tx.scan(table, &mut |row| batch.add(table, row))?,
            }
            resumed = None;
        }
        batch.flush()?;
        tx.scan(Table::Kv, &mut |row| {
            let Row::Kv(it) = &row else { return Ok(()) };
            let name = (it.bucket.clone(), it.key.clone());
            if is_note(&row) || there.remove(&name) == Some(Hash::of(&it.value)) {
                return Ok(());
            }
            batch.rows.push(row);
            batch.flush_if_full()
        })?;
        batch.flush()?;
        remove_settings(to, space, there.into_keys().collect())?;
        Digest::of_all(tx)
    })
}

/// Rows that are copied in one transaction.
struct Batch<'a> {
    to: &'a Store,
    space: &'a Space,
    rows: Vec<Row>,
    at: Progress,
    told: &'a mut dyn FnMut(u64),
}

impl Batch<'_> {
    fn add(&mut self, table: Table, row: Row) -> Result<()> {
        self.at.last = Some((table, row.key()));
        self.rows.push(row);
        self.flush_if_full()
    }

    fn flush_if_full(&mut self) -> Result<()> {
        if self.rows.len() < BATCH {
            return Ok(());
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        (self.told)(self.rows.len() as u64);
        put(
            self.to,
            self.space,
            std::mem::take(&mut self.rows),
            &self.at,
        )
    }
}

/// The key-value pairs that are there, by the hashes of their values.
fn settings(tx: &dyn ReadTx) -> Result<BTreeMap<(String, String), Hash>> {
    let mut all = BTreeMap::new();
    tx.scan(Table::Kv, &mut |row| {
        if let Row::Kv(it) = &row
            && !is_note(&row)
        {
            all.insert((it.bucket.clone(), it.key.clone()), Hash::of(&it.value));
        }
        Ok(())
    })?;
    Ok(all)
}

/// Removes pairs that an earlier run copied and the source no longer has.
#[expect(clippy::disallowed_methods, reason = "raw rows bring their own events")]
fn remove_settings(to: &Store, space: &Space, gone: Vec<(String, String)>) -> Result<()> {
    for some in gone.chunks(BATCH) {
        let some = some.to_vec();
        to.write_long(space, move |tx| {
            some.iter()
                .try_for_each(|(bucket, key)| tx.unset(bucket, key))
        })?;
    }
    Ok(())
}

/// Every table of the target must hold what the source's holds.
fn compare(to: &Store, space: &Space, expected: &[(Table, Digest)]) -> Result<()> {
    let found = to.read(space, Digest::of_all)?;
    for ((table, expected), (_, found)) in expected.iter().zip(&found) {
        if expected != found {
            return Err(Error::conflict(format!(
                "space `{space}`: the table `{}` has {} rows in the source and {} in the target, \
                 or other ones",
                table.as_str(),
                expected.rows,
                found.rows
            ))
            .hint("the source was changed meanwhile: begin again with an empty target"));
        }
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "raw rows bring their own events")]
fn put(to: &Store, space: &Space, rows: Vec<Row>, at: &Progress) -> Result<()> {
    let at = at.to_bytes();
    to.write_long(space, move |tx| {
        rows.iter().try_for_each(|row| tx.load(row))?;
        tx.set(BUCKET, KEY, &at)
    })
}

/// Copies the head last, and removes the progress record with it.
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
