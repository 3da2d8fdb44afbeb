//! Events of other logs: appended as they are, and applied by one event of this log.
//!
//! A foreign event keeps its bytes, its id and its author's signature, and gets a place in this log.
//! What it changes is decided by rules that do not depend on the order in which events arrive, so that
//! all nodes with the same events have the same rows:
//!
//! - Of all writes of a row the one with the latest time holds, and of several at one moment the one
//!   whose author's identifier is the greatest. A removal is a write.
//! - Of all nodes that were ever put under one key, only the one with the latest write can be current:
//!   two nodes that both made a note of one name have one note, and the other is in the history.
//!
//! A revision that loses is kept in the history. [`Tx::merge`] records what it changed as one event
//! ([`Change::Apply`]), which [`crate::verify`] replays; the foreign events themselves change nothing.

mod erasures;
mod local;
mod nodes;
mod outcome;
mod restate;
mod rows;

pub use local::is_local_kind;
pub use outcome::{Conflict, Merged, Side, VectorsMerged};

use super::Tx;
use crate::checkpoint::CheckpointLabel;
use crate::event::{self, Change, Event, SignedRow};
use crate::identity::{LogId, Origin, is_shared_bucket};
use crate::merkle::leaf_hash;
use crate::tx::Passages;
use kenning_core::{Did, Error, Hash, Hlc, NodeId, Result};
use kenning_store::{Edge, EventRow, Node, Row, Table, TileRow, hash_of_names, hash_of_pair};
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

/// The event that applies events of other logs.
pub const SYNC_APPLIED: &str = "SyncApplied";

/// The event that settles a conflict.
pub const CONFLICT_RESOLVED: &str = "ConflictResolved";

/// When rows were last written, as far as the rows themselves do not say it.
const STAMPS: &str = "sync/rows";

/// The event that names shared rows from before they were shared, and the most rows of one.
const ROWS_SHARED: &str = "RowsShared";
const SHARED_AT_ONCE: usize = 100;

/// The most conflicts that one merge reports by name.
const CONFLICTS_MAX: usize = 256;

/// An event of another log with the rows that it put, as far as its sender still has them.
#[derive(Clone, Debug)]
pub struct Foreign {
    row: EventRow,
    event: Event,
    origin: Origin,
    rows: Vec<Row>,
}

impl Foreign {
    /// Checks an event and its rows by themselves: id, signature, data, and that every row is one that the
    /// event put.
    ///
    /// # Errors
    /// Corrupt if something does not match.
    pub fn check(row: EventRow, rows: Vec<Row>) -> Result<Self> {
        let event = event::check(&row)?;
        let bad = |what: &str| Error::corrupt(format!("event {}: {what}", row.id));
        let origin = Origin::from_bytes(&row.sealed.origin);
        let origin = origin.ok_or_else(|| bad("it does not say which log it belongs to"))?;
        let mut names: BTreeMap<NodeId, Vec<&str>> = BTreeMap::new();
        for it in &rows {
            let is_put = match it {
                Row::Node(node) => {
                    let (id, hash) = (node.id, node.hash);
                    node.canonical_hash() == hash
                        && event.changes.iter().any(|it| {
                            matches!(it, Change::PutNode { id: of, hash: put, .. } if (*of, *put) == (id, hash))
                        })
                }
                Row::Edge(edge) => {
                    edge.canonical_hash() == edge.hash
                        && event.changes.iter().any(|it| {
                            matches!(it, Change::PutEdge { src, rel, dst, hash }
                                if (src, rel, dst, hash) == (&edge.src, &edge.rel, &edge.dst, &edge.hash))
                        })
                }
                Row::Name(name) => {
                    names.entry(name.node).or_default().push(&name.name);
                    true
                }
                Row::Vector(it) => {
                    let row = SignedRow::Vector(it.collection.clone(), it.id.clone());
                    puts_row(&event, &row, Some(it.canonical_hash()))
                }
                Row::Kv(it) => {
                    let row = SignedRow::Pair(it.bucket.clone(), it.key.clone());
                    is_shared_bucket(&it.bucket)
                        && puts_row(&event, &row, Some(hash_of_pair(&it.bucket, &it.key, &it.value)))
                }
                _ => false,
            };
            if !is_put {
                return Err(bad("a row is not what the event put"));
            }
        }
        for (node, names) in names {
            if !puts_row(&event, &SignedRow::Names(node), hash_of_names(names)) {
                return Err(bad("the names of a node are not what the event put"));
            }
        }
        Ok(Self {
            row,
            event,
            origin,
            rows,
        })
    }

    /// Its id.
    pub fn id(&self) -> Hash {
        self.row.id
    }

    /// The hybrid time that its author gave it.
    pub fn at(&self) -> Hlc {
        self.row.hlc
    }

    /// The event.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The log and the space that it was written to.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The event as it is stored.
    pub fn row(&self) -> &EventRow {
        &self.row
    }

    /// The rows that it put, as far as its sender still has them.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The nodes that it put.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.rows.iter().filter_map(|it| match it {
            Row::Node(node) => Some(node),
            _ => None,
        })
    }

    fn node(&self, id: NodeId, hash: &Hash) -> Option<&Node> {
        self.nodes().find(|it| it.id == id && it.hash == *hash)
    }
}

fn puts_row(event: &Event, row: &SignedRow, hash: Option<Hash>) -> bool {
    event.changes.iter().any(
        |it| matches!(it, Change::PutRow { row: of, hash: put } if of == row && Some(*put) == hash),
    )
}

/// One entry of another node's log, in its order.
#[derive(Clone, Debug)]
pub enum Entry {
    /// An event that came without its content: it is here already, or is not shared.
    Id(Hash),
    /// An event with its content.
    Event(Box<Foreign>),
}

impl Entry {
    /// The event's id.
    pub fn id(&self) -> Hash {
        match self {
            Self::Id(id) => *id,
            Self::Event(event) => event.id(),
        }
    }
}

/// What to merge.
#[derive(Debug, Default)]
pub struct Batch {
    /// The entries, in the order of the log that they came from.
    pub entries: Vec<Entry>,
    /// The passages of nodes in it, by the node's hash.
    pub passages: HashMap<Hash, Passages>,
    /// For each log, the last event in this log's order that the sender was seen to have.
    pub seen: BTreeMap<String, u64>,
    /// Whether authors that this log does not name are added to it.
    pub accepts_authors: bool,
}

/// When a row was last written.
#[derive(Clone, Debug)]
struct Stamp {
    hlc: Hlc,
    author: String,
    is_removed: bool,
}

impl Stamp {
    fn to_bytes(&self) -> Vec<u8> {
        let removed = if self.is_removed { "-" } else { "+" };
        format!("{removed} {} {}", self.hlc.0, self.author).into_bytes()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut parts = std::str::from_utf8(bytes).ok()?.splitn(3, ' ');
        let is_removed = parts.next()? == "-";
        let hlc = Hlc(parts.next()?.parse().ok()?);
        let author = parts.next()?.to_owned();
        Some(Self {
            hlc,
            author,
            is_removed,
        })
    }
}

/// The key of a row that has no time of its own.
fn stamp_key(row: &SignedRow) -> String {
    match row {
        SignedRow::Vector(collection, id) => format!("v {} {collection} {id}", collection.len()),
        SignedRow::Pair(bucket, key) => format!("p {bucket} {key}"),
        SignedRow::Passages(id) | SignedRow::Names(id) => format!("r {id}"),
    }
}

impl Tx<'_> {
    /// Appends events of another log and applies them. Events that are here already are skipped;
    /// those of authors that this log does not name, or has revoked, are refused.
    ///
    /// # Errors
    /// Those of the store.
    pub fn merge(&mut self, batch: Batch) -> Result<Merged> {
        let mut merged = Merged {
            seen: batch.seen,
            ..Merged::default()
        };
        let is_new = self.append_all(&batch.entries, batch.accepts_authors, &mut merged)?;
        for (entry, is_new) in batch.entries.iter().zip(is_new) {
            if let Some(row) = self.raw.event_by_id(&entry.id())?
                && let Some(origin) = Origin::from_bytes(&row.sealed.origin)
            {
                let seen = merged.seen.entry(origin.log.to_string()).or_default();
                *seen = (*seen).max(row.seq);
            }
            if let (true, Entry::Event(foreign)) = (is_new, entry) {
                self.apply(foreign, &batch.passages, &mut merged)?;
                if foreign.row.kind == CONFLICT_RESOLVED {
                    let loser = foreign.event.data.get("loser").and_then(Value::as_str);
                    merged.resolved.extend(loser.map(str::to_owned));
                }
            }
        }
        if merged.n_events == 0 {
            return Ok(merged);
        }
        let before = self.head.seq - merged.n_events;
        self.at = self.clock.tick(self.head.hlc);
        let data = json!({
            "eventsApplied": merged.n_events, "rowsChanged": merged.n_rows,
            "conflicts": merged.conflicts.len(),
        });
        self.record(SYNC_APPLIED, data)?;
        self.erase_for_peers(&batch.entries, &mut merged)?;
        for conflict in &merged.conflicts {
            self.record("ConflictDetected", conflict.to_json())?;
        }
        if before / self.checkpoint_every != self.head.seq / self.checkpoint_every {
            self.record_checkpoint(&CheckpointLabel::automatic())?;
        }
        Ok(merged)
    }

    /// Appends what is new and permitted, and says which entries that was.
    fn append_all(
        &mut self,
        entries: &[Entry],
        accepts_authors: bool,
        merged: &mut Merged,
    ) -> Result<Vec<bool>> {
        let mut newest: HashMap<LogId, Hash> = HashMap::new();
        let mut is_new = Vec::with_capacity(entries.len());
        for entry in entries {
            let Entry::Event(foreign) = entry else {
                is_new.push(false);
                continue;
            };
            if self.raw.event_by_id(&foreign.row.id)?.is_some() {
                is_new.push(false);
                continue;
            }
            if let Some(why) = self.why_refused(foreign, accepts_authors)? {
                let author = foreign.row.author.clone();
                merged.refused.push((foreign.row.id, author, why));
                is_new.push(false);
                continue;
            }
            // A log begins with an event of its own.
            if self.head.seq == 0 {
                self.record("SyncStarted", Value::Null)?;
            }
            self.append_foreign(&foreign.row, foreign.origin.log, &mut newest)?;
            merged.n_events += 1;
            is_new.push(true);
        }
        Ok(is_new)
    }

    fn why_refused(&mut self, foreign: &Foreign, accepts_authors: bool) -> Result<Option<String>> {
        let author = &foreign.event.author;
        if foreign.origin.space != self.space.as_str() {
            return Ok(Some(format!(
                "it belongs to the space `{}`",
                foreign.origin.space
            )));
        }
        if foreign.origin.log == self.identity.id && self.head.seq > 0 {
            return Ok(Some("it claims to be of this log".to_owned()));
        }
        if self.identity.revoked.contains(author.as_str()) {
            return Ok(Some("its author was revoked".to_owned()));
        }
        if !self.identity.authors.contains(author.as_str()) {
            if !accepts_authors {
                return Ok(Some("its author is not known here".to_owned()));
            }
            self.add_author(author);
        }
        let wall = self.clock.now_ms();
        if foreign.row.hlc.ms() > wall.saturating_add(crate::clock::Clock::DRIFT_MAX_MS) {
            return Ok(Some(
                "it is dated more than a day after the clock of this machine".to_owned(),
            ));
        }
        Ok(None)
    }

    fn append_foreign(
        &mut self,
        row: &EventRow,
        log: LogId,
        newest: &mut HashMap<LogId, Hash>,
    ) -> Result<()> {
        let mut row = EventRow {
            seq: self.head.seq + 1,
            ..row.clone()
        };
        if self.tombstones().has_event(&row.id)? {
            event::erase(&mut row);
        }
        self.raw.append_event(&row)?;
        let mut tiles = Vec::new();
        self.frontier
            .push(leaf_hash(&row.id.0), |height, index, hash| {
                if height % 8 == 0 {
                    let level = u8::try_from(height / 8).unwrap_or(u8::MAX);
                    tiles.push(TileRow { level, index, hash });
                }
            });
        tiles.iter().try_for_each(|tile| self.raw.put_tile(tile))?;
        self.head.seq = row.seq;
        self.head.hlc = self.head.hlc.max(row.hlc);
        let before = newest.insert(log, row.id);
        let is_followed = |it: &Hash| row.parents.contains(it) || Some(*it) == before;
        self.head.tips.retain(|it| !is_followed(it));
        self.head.tips.push(row.id);
        self.n_events += 1;
        Ok(())
    }

    /// Applies one event.
    fn apply(
        &mut self,
        foreign: &Foreign,
        passages: &HashMap<Hash, Passages>,
        merged: &mut Merged,
    ) -> Result<()> {
        let mark = self.changes.len();
        let event = foreign.row.id;
        self.changes.push(Change::Apply { event });
        for (n, change) in foreign.event.changes.iter().enumerate() {
            if self.is_about_erased(foreign, change)? {
                continue;
            }
            match change {
                Change::PutNode { id, hash, .. } => {
                    if let Some(node) = foreign.node(*id, hash) {
                        self.merge_node(foreign, node.clone(), passages, merged)?;
                    }
                }
                Change::RemoveNode { id } => self.merge_removal(foreign, *id, merged)?,
                Change::PutEdge {
                    src,
                    rel,
                    dst,
                    hash,
                } => {
                    let is_it =
                        |it: &&Edge| (&it.src, &it.rel, &it.dst, &it.hash) == (src, rel, dst, hash);
                    let edges = foreign.rows.iter().filter_map(|it| match it {
                        Row::Edge(edge) => Some(edge),
                        _ => None,
                    });
                    if let Some(edge) = edges.into_iter().find(is_it) {
                        self.merge_edge(foreign, edge.clone())?;
                    }
                }
                Change::EndEdge { src, rel, dst } => {
                    self.merge_edge_end(foreign, *src, rel, *dst)?;
                }
                Change::PutRow { row, .. } | Change::RemoveRow { row } => {
                    // Of several changes of one row in one event only the last ever held.
                    let later = foreign.event.changes.iter().skip(n + 1);
                    if later.into_iter().any(|it| is_about_row(it, row)) {
                        continue;
                    }
                    let is_removed = matches!(change, Change::RemoveRow { .. });
                    self.merge_row(foreign, row, is_removed, merged)?;
                }
                Change::AddAuthor { .. } | Change::RevokeAuthor { .. } => {}
                Change::ResetClock | Change::Apply { .. } | Change::KeepRevision { .. } => {}
                // An event of this log erases what is here: see `erase_for_peers`.
                Change::EraseNode { .. }
                | Change::EraseRevision { .. }
                | Change::EraseEvent { .. } => {}
            }
        }
        if foreign.row.kind == "AuthorRotated" {
            self.follow_rotation(&foreign.event);
        }
        let n_rows = self.changes.len() - mark - 1;
        if n_rows == 0 {
            self.changes.truncate(mark);
        }
        merged.n_rows += n_rows as u64;
        Ok(())
    }

    /// A node has a new key: the old one says so itself.
    fn follow_rotation(&mut self, event: &Event) {
        let added: Vec<Did> = event
            .changes
            .iter()
            .filter_map(|it| match it {
                Change::AddAuthor { author } => Some(author.clone()),
                _ => None,
            })
            .collect();
        for author in added {
            if !self.identity.revoked.contains(author.as_str()) {
                self.add_author(&author);
            }
        }
        let is_itself =
            |it: &Change| matches!(it, Change::RevokeAuthor { author } if *author == event.author);
        if event.changes.iter().any(is_itself) {
            self.revoke_author(&event.author);
        }
    }

    /// The event of this log that made a row what it is, by the moment of the row.
    fn writer_of(&self, at: Hlc, is_about: impl Fn(&Change) -> bool) -> Result<Option<EventRow>> {
        let events = self.raw.events_at(at)?;
        Ok(events.into_iter().find(|row| {
            event::parse(row).is_some_and(|it| {
                it.changes.iter().any(&is_about)
                    && !it
                        .changes
                        .iter()
                        .any(|it| matches!(it, Change::Apply { .. }))
            })
        }))
    }

    /// Whether a foreign event is later than a write at that moment.
    fn is_later(
        &self,
        foreign: &Foreign,
        than: Hlc,
        is_about: impl Fn(&Change) -> bool,
    ) -> Result<bool> {
        Ok(match foreign.row.hlc.cmp(&than) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal => {
                // Changes of one event come one after the other.
                let is_later =
                    |it: EventRow| it.id == foreign.row.id || foreign.row.author > it.author;
                self.writer_of(than, is_about)?.is_none_or(is_later)
            }
        })
    }

    /// Records the hashes of shared rows that no event names yet, so that they go to peers too. Returns how
    /// many there were.
    ///
    /// # Errors
    /// Those of the store.
    pub fn share_rows(&mut self) -> Result<usize> {
        let mut found = Vec::new();
        self.raw.scan(Table::Kv, &mut |row| {
            if let Row::Kv(row) = row
                && is_shared_bucket(&row.bucket)
            {
                let hash = hash_of_pair(&row.bucket, &row.key, &row.value);
                found.push((SignedRow::Pair(row.bucket, row.key), hash));
            }
            Ok(())
        })?;
        let mut n = 0;
        for (row, hash) in found {
            if self.raw.get(STAMPS, &stamp_key(&row))?.is_some() {
                continue;
            }
            self.stamp_row(&row, false)?;
            self.note_row(row, Some(hash));
            n += 1;
            if n % SHARED_AT_ONCE == 0 {
                self.record(ROWS_SHARED, json!({ "rows": SHARED_AT_ONCE }))?;
            }
        }
        if n % SHARED_AT_ONCE > 0 {
            self.record(ROWS_SHARED, json!({ "rows": n % SHARED_AT_ONCE }))?;
        }
        Ok(n)
    }

    /// Who wrote a row of a shared bucket last.
    pub fn author_of_pair(&self, bucket: &str, key: &str) -> Result<Option<String>> {
        let row = SignedRow::Pair(bucket.to_owned(), key.to_owned());
        let stamp = self.raw.get(STAMPS, &stamp_key(&row))?;
        Ok(stamp
            .and_then(|it| Stamp::from_bytes(&it))
            .map(|it| it.author))
    }

    /// Notes when a node was removed here.
    pub(super) fn stamp_removal(&mut self, id: NodeId) -> Result<()> {
        let stamp = Stamp {
            hlc: self.at,
            author: self.signer.did().to_string(),
            is_removed: true,
        };
        self.raw.set(STAMPS, &gone(id), &stamp.to_bytes())
    }

    /// Notes when a row without a time of its own was written here.
    pub(super) fn stamp_row(&mut self, row: &SignedRow, is_removed: bool) -> Result<()> {
        let stamp = Stamp {
            hlc: self.at,
            author: self.signer.did().to_string(),
            is_removed,
        };
        self.raw.set(STAMPS, &stamp_key(row), &stamp.to_bytes())
    }
}

fn displaced(id: NodeId) -> String {
    format!("d {id}")
}

fn gone(id: NodeId) -> String {
    format!("n {id}")
}

fn edge_key(src: NodeId, rel: &str, dst: NodeId) -> String {
    format!("e {src} {dst} {rel}")
}

fn touches_node(change: &Change, of: NodeId) -> bool {
    match change {
        Change::PutNode { id, .. } | Change::RemoveNode { id } => *id == of,
        _ => false,
    }
}

fn is_about_row(change: &Change, of: &SignedRow) -> bool {
    matches!(change, Change::PutRow { row, .. } | Change::RemoveRow { row } if row == of)
}

fn puts_node(change: &Change, of: NodeId, with: &Hash) -> bool {
    matches!(change, Change::PutNode { id, hash, .. } if *id == of && hash == with)
}
