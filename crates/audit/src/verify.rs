//! Re-derives everything from raw rows.
//!
//! Nothing in the store is trusted: ids are hashed again, signatures checked, the
//! Merkle tree and the state are built anew from the events, and every node and edge must be exactly
//! what the events say, no row more and no row less. The same holds for passages, names, vectors and
//! the signed rows of the key-value table, as far as they were written since version 2. The other rows of
//! the key-value table are only counted: no event holds their hashes.

mod checkpoints;

mod authors;
mod compare;
mod erasures;
mod events;
mod rows;

pub use authors::{Author, survey_authors};
pub use events::{EventSource, verify_events};

use crate::event::{self, Change, Event};
use crate::identity::{Identity, LogId, Origin};
use crate::log::Roots;
use crate::merkle::{Frontier, leaf_hash};
use crate::state::State;
use authors::Authors;
use compare::{check_edges, check_head, check_nodes, check_tiles};
use erasures::Erasures;
use kenning_core::{Did, Hash, Hlc, NodeId, Result, Space};
use kenning_store::{CheckpointRow, EventRow, ReadTx, Row, Table};
use rows::SignedRows;
use std::collections::{BTreeSet, HashMap};

/// The most faults that are listed.
const FAULTS_MAX: usize = 100;

/// Signatures are checked in such batches, on every core.
const BATCH: usize = 4_096;

/// What to verify, and what the verifier already knows.
#[derive(Clone, Copy, Debug)]
pub struct Verify<'a> {
    /// The space that the rows are of.
    pub space: &'a Space,
    /// The key of the node that verifies.
    pub me: Option<&'a Did>,
    /// Keys that are trusted, instead of the log's first author and the node's own.
    pub authors: &'a [Did],
    /// A checkpoint of this log that was kept elsewhere: the log must be a continuation of it.
    pub since: Option<&'a CheckpointRow>,
}

impl<'a> Verify<'a> {
    /// Verifies a space without further knowledge.
    pub fn of(space: &'a Space) -> Self {
        Self {
            space,
            me: None,
            authors: &[],
            since: None,
        }
    }

    /// As the node with this key sees it.
    #[must_use]
    pub fn by(self, me: &'a Did) -> Self {
        let me = Some(me);
        Self { me, ..self }
    }
}

/// What was found.
#[derive(Debug, Default)]
pub struct Report {
    /// Events read.
    pub n_events: u64,
    /// Nodes read.
    pub n_nodes: u64,
    /// Edges read, ended ones too.
    pub n_edges: u64,
    /// Superseded revisions read.
    pub n_history: u64,
    /// Checkpoints read.
    pub n_checkpoints: u64,
    /// Nodes whose passages were read.
    pub n_passages: u64,
    /// Nodes whose names were read.
    pub n_names: u64,
    /// Vectors read.
    pub n_vectors: u64,
    /// Signed rows of the key-value table read.
    pub n_pairs: u64,
    /// Rows of the key-value table that no event holds the hash of by design: caches, cursors, working
    /// state. They are not checked.
    pub n_unchecked: u64,
    /// Rows of those four that no event holds the hash of, because they are older than version 2.
    pub n_unsigned: u64,
    /// Events whose data was erased.
    pub n_erased: u64,
    /// Events that came from other logs.
    pub n_foreign: u64,
    /// Which log it is; none while all events are of version 1.
    pub origin: Option<Origin>,
    /// Who signed events.
    pub authors: Vec<Author>,
    /// Notices that are not faults.
    pub notices: Vec<String>,
    /// Roots as derived from the events.
    pub roots: Option<Roots>,
    /// What is wrong, one sentence each; empty when all is well.
    pub faults: Vec<String>,
    /// Faults beyond those listed.
    pub n_more_faults: u64,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }

    fn fault(&mut self, text: String) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(text);
        } else {
            self.n_more_faults += 1;
        }
    }
}

type EdgeKey = (NodeId, String, NodeId);

/// A row as the events describe it.
struct Told {
    hash: Hash,
    rev: u64,
    from: Hlc,
    created: Hlc,
}

/// The state according to the events.
#[derive(Default)]
struct Replay {
    frontier: Frontier,
    state: State,
    times: HashMap<Hash, Hlc>,
    tips: BTreeSet<Hash>,
    latest: Hlc,
    nodes: HashMap<NodeId, Told>,
    superseded: HashMap<(NodeId, u64), (Told, Hlc)>,
    edges: HashMap<EdgeKey, Told>,
    ended: HashMap<(EdgeKey, Hlc), (Hash, Hlc)>,
    tiles: HashMap<(u8, u64), Hash>,
    rows: SignedRows,
    authors: Authors,
    identity: Option<Identity>,
    /// Nodes that were removed, with their last revision and when they were made: an event of another
    /// log may bring one back.
    removed: HashMap<NodeId, (u64, Hlc)>,
    /// The newest event of each other log since the last event of this one.
    foreign: HashMap<LogId, Hash>,
    /// The event of another log that is being applied, and its time.
    applied: Option<Hlc>,
    erasures: Erasures,
}

/// Checks the whole log and state of one space. `progress` is called with the number of checked events.
pub fn verify(tx: &dyn ReadTx, asked: &Verify<'_>, progress: &dyn Fn(u64)) -> Result<Report> {
    let mut report = Report::default();
    let mut checkpoints = Vec::new();
    collect(tx, Table::Checkpoints, &mut report, |row| {
        if let Row::Checkpoint(row) = row {
            checkpoints.push(row);
        }
    });
    let mut replay = Replay::default();
    replay_events(tx, asked, &mut replay, &checkpoints, &mut report, progress);
    if !replay.foreign.is_empty() {
        report.fault("the last events are of another log, and no event applies them".to_owned());
    }
    report.roots = Some(Roots {
        seq: replay.frontier.size,
        event_root: replay.frontier.root(),
        state_root: replay.state.root(),
    });
    replay.leave_out_erased();
    replay.erasures.check(&mut report);
    check_head(tx, &replay, &mut report);
    check_tiles(tx, &mut replay, &mut report);
    check_nodes(tx, &mut replay, &mut report);
    check_edges(tx, &mut replay, &mut report);
    report.origin = replay.identity.map(|it| Origin::new(it.id, asked.space));
    replay.rows.check(tx, &mut report);
    replay.authors.judge(asked, &mut report);
    Ok(report)
}

/// Visits a table; a row that cannot be read is a fault, not the end.
fn collect(tx: &dyn ReadTx, table: Table, report: &mut Report, mut visit: impl FnMut(Row)) {
    let read = tx.scan(table, &mut |row| {
        visit(row);
        Ok(())
    });
    if let Err(error) = read {
        report.fault(format!("{table:?}: {}", error.message));
    }
}

fn replay_events(
    tx: &dyn ReadTx,
    asked: &Verify<'_>,
    replay: &mut Replay,
    checkpoints: &[CheckpointRow],
    report: &mut Report,
    progress: &dyn Fn(u64),
) {
    let mut batch: Vec<EventRow> = Vec::with_capacity(BATCH);
    let stored = checkpoints;
    let mut checkpoints = stored.iter().peekable();
    let mut previous: Option<&CheckpointRow> = None;
    // Older programs kept checkpoints of an empty log.
    while let Some(checkpoint) = checkpoints.next_if(|it| it.seq == 0) {
        replay.check_checkpoint(checkpoint, previous, asked.space, report);
        previous = Some(checkpoint);
    }
    let mut since = asked.since;
    if let Some(kept) = since.take_if(|it| it.seq == 0) {
        replay.check_kept(kept, asked.space, report);
    }
    let is_stored = |kept: &CheckpointRow| stored.iter().any(|it| is_same(it, kept));
    let mut flush = |batch: &mut Vec<EventRow>, report: &mut Report| {
        for (row, checked) in batch.iter().zip(check_in_parallel(batch)) {
            match checked {
                Ok(event) => replay.apply(row, &event, asked.space, report),
                Err(fault) => {
                    report.fault(fault);
                    // The id as it is stored, so that one fault is not reported again for each later
                    // event.
                    replay.place(row);
                }
            }
            while let Some(checkpoint) = checkpoints.next_if(|it| it.seq <= row.seq) {
                replay.check_checkpoint(checkpoint, previous, asked.space, report);
                previous = Some(checkpoint);
            }
            if let Some(kept) = since.take_if(|it| it.seq <= row.seq)
                && replay.check_kept(kept, asked.space, report)
                && !is_stored(kept)
            {
                report.fault(format!(
                    "the checkpoint that was kept ({}) is not in the store: it was deleted there, or the store is an older copy",
                    kept.height
                ));
            }
        }
        progress(report.n_events);
        batch.clear();
    };
    let read = tx.scan(Table::Events, &mut |row| {
        if let Row::Event(row) = row {
            report.n_events += 1;
            batch.push(row);
            if batch.len() == BATCH {
                flush(&mut batch, report);
            }
        }
        Ok(())
    });
    flush(&mut batch, report);
    if let Err(error) = read {
        report.fault(format!("Events: {}", error.message));
    }
    for checkpoint in checkpoints {
        report.fault(format!(
            "checkpoint {} covers {} events, more than there are",
            checkpoint.height, checkpoint.seq
        ));
    }
    if let Some(kept) = since
        && !replay.is_of_another(kept, asked.space, report)
    {
        let n_events = report.n_events;
        let what = match n_events {
            0 => "it was removed",
            _ => "it was rolled back or is another log",
        };
        report.fault(format!(
            "the log has {n_events} events; when the checkpoint that was kept was signed it had {}: {what}",
            kept.seq
        ));
    }
}

fn is_same(a: &CheckpointRow, b: &CheckpointRow) -> bool {
    (a.height, &a.signature) == (b.height, &b.signature)
}

fn check_in_parallel(batch: &[EventRow]) -> Vec<Result<Event, String>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = batch.len().div_ceil(threads).max(64);
    let check = |rows: &[EventRow]| {
        rows.iter()
            .map(|row| event::check(row).map_err(|it| it.message))
            .collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let parts: Vec<_> = batch
            .chunks(share)
            .map(|rows| (rows, scope.spawn(move || check(rows))))
            .collect();
        parts
            .into_iter()
            // A thread that panicked checked nothing: check again here, where it can be seen.
            .flat_map(|(rows, part)| part.join().unwrap_or_else(|_| check(rows)))
            .collect()
    })
}

impl Replay {
    fn place(&mut self, row: &EventRow) {
        let tiles = &mut self.tiles;
        self.frontier
            .push(leaf_hash(&row.id.0), |height, index, hash| {
                if height % 8 == 0 {
                    tiles.insert((u8::try_from(height / 8).unwrap_or(u8::MAX), index), hash);
                }
            });
        self.times.insert(row.id, row.hlc);
        for parent in &row.parents {
            self.tips.remove(parent);
        }
        self.tips.insert(row.id);
        self.latest = self.latest.max(row.hlc);
    }

    fn apply(&mut self, row: &EventRow, event: &Event, space: &Space, report: &mut Report) {
        let seq = row.seq;
        let foreign = self.check_origin(row, event, space, report);
        if event::is_erased(row) {
            report.n_erased += 1;
            if foreign.is_none() {
                self.erasures.found(row);
            }
        }
        if seq != self.frontier.size + 1 {
            report.fault(format!(
                "event {seq} is in the place of event {}",
                self.frontier.size + 1
            ));
        }
        if let Some(log) = foreign {
            // Its parents may be events that its node does not share, and what it changed here is in
            // the event that applied it.
            self.place(row);
            if let Some(before) = self.foreign.insert(log, row.id) {
                self.tips.remove(&before);
            }
            self.authors.note_foreign(row);
            report.n_foreign += 1;
            return;
        }
        // The event that applies events of other logs has seen them.
        let unseen = |it: &&Hash| self.tips.contains(it) && !event.parents.contains(it);
        if self.foreign.values().any(|it| unseen(&it)) {
            report.fault(format!(
                "event {seq} has not seen the events of another log that stand before it"
            ));
        }
        self.foreign.clear();
        if seq > 1 && event.parents.is_empty() {
            report.fault(format!("event {seq} has no parents"));
        }
        let is_reset = event.changes.contains(&Change::ResetClock);
        for parent in &event.parents {
            match self.times.get(parent) {
                None => report.fault(format!("event {seq}: a parent is not in the log before it")),
                Some(&time) if time >= event.hlc && !is_reset => {
                    report.fault(format!("event {seq} is not later than its parent"));
                }
                Some(_) => {}
            }
        }
        self.place(row);
        if is_reset {
            self.latest = row.hlc;
        }
        self.authors.note(row, event);
        self.applied = None;
        for change in &event.changes {
            self.apply_change(row, change, report);
        }
    }

    /// From the first event of version 2 on, all are of that version and this space. Returns the log of
    /// an event that came from another one.
    fn check_origin(
        &mut self,
        row: &EventRow,
        event: &Event,
        space: &Space,
        report: &mut Report,
    ) -> Option<LogId> {
        let seq = row.seq;
        if row.version == 1 {
            if self.identity.is_some() {
                report.fault(format!(
                    "event {seq} has version 1, but earlier events have a newer version"
                ));
            }
            return None;
        }
        let Some(origin) = Origin::from_bytes(&row.sealed.origin) else {
            report.fault(format!("event {seq}: its origin is malformed"));
            return None;
        };
        if origin.space != space.as_str() {
            report.fault(format!(
                "event {seq} belongs to the space `{}`",
                origin.space
            ));
        }
        match &self.identity {
            None => {
                self.identity = Some(Identity::new(origin.log, &event.author));
                self.rows.begin(seq);
            }
            Some(identity) if identity.id != origin.log => return Some(origin.log),
            Some(_) => {}
        }
        None
    }

    fn apply_change(&mut self, row: &EventRow, change: &Change, report: &mut Report) {
        let (seq, at) = (row.seq, self.applied.unwrap_or(row.hlc));
        match change {
            Change::PutNode { id, rev, hash } => {
                let before = self.nodes.remove(id);
                let removed = self.removed.remove(id);
                let created = removed.map_or(at, |it| it.1);
                let created = before.as_ref().map_or(created, |it| it.created);
                let created = if id.is_of_name() { at } else { created };
                let last_rev = before.as_ref().map(|it| it.rev);
                let last_rev = last_rev.or(removed.map(|it| it.0)).unwrap_or(0);
                self.nodes.insert(
                    *id,
                    Told {
                        hash: *hash,
                        rev: *rev,
                        from: at,
                        created,
                    },
                );
                self.state.add_node(*id, hash);
                if row.version == 1 {
                    self.rows.put_unsigned_node(*id);
                }
                if *rev != last_rev + 1 {
                    report.fault(format!(
                        "event {seq}: node {id} has a revision out of order"
                    ));
                }
                if let Some(before) = before {
                    self.state.remove_node(*id, &before.hash);
                    self.superseded.insert((*id, before.rev), (before, at));
                }
            }
            Change::RemoveNode { id } => match self.nodes.remove(id) {
                Some(before) => {
                    self.rows.remove_node(*id);
                    self.state.remove_node(*id, &before.hash);
                    self.removed.insert(*id, (before.rev, before.created));
                    self.superseded.insert((*id, before.rev), (before, at));
                }
                None => report.fault(format!(
                    "event {seq} removes node {id}, which does not exist"
                )),
            },
            Change::PutEdge {
                src,
                rel,
                dst,
                hash,
            } => {
                let key = (*src, rel.clone(), *dst);
                self.state.add_edge(hash);
                let told = Told {
                    hash: *hash,
                    rev: 0,
                    from: at,
                    created: at,
                };
                if let Some(before) = self.edges.insert(key.clone(), told) {
                    self.state.remove_edge(&before.hash);
                    // One that began at this very moment was never valid: it was replaced.
                    if before.from != at {
                        self.ended.insert((key, before.from), (before.hash, at));
                    }
                }
            }
            Change::EndEdge { src, rel, dst } => {
                let key = (*src, rel.clone(), *dst);
                match self.edges.remove(&key) {
                    Some(before) => {
                        self.state.remove_edge(&before.hash);
                        self.ended.insert((key, before.from), (before.hash, at));
                    }
                    None => report.fault(format!("event {seq} ends an edge that is not current")),
                }
            }
            Change::PutRow { row, hash } => self.rows.put(row, *hash, seq),
            Change::RemoveRow { row } => self.rows.remove(row),
            Change::AddAuthor { author } => {
                if let Some(identity) = &mut self.identity {
                    if identity.revoked.contains(author.as_str()) {
                        report.fault(format!("event {seq} adds {author}, who was revoked before"));
                    }
                    identity.add(author);
                }
            }
            Change::RevokeAuthor { author } => {
                if let Some(identity) = &mut self.identity {
                    identity.revoke(author);
                }
            }
            Change::ResetClock => {}
            Change::Apply { event } => match self.times.get(event) {
                Some(&time) => self.applied = Some(time),
                None => report.fault(format!(
                    "event {seq} applies {event}, which is not in the log before it"
                )),
            },
            Change::KeepRevision {
                id,
                rev,
                hash,
                ended,
            } => {
                let before = self.nodes.get(id).map(|it| it.created);
                let created = before.unwrap_or_else(|| {
                    let removed = self.removed.entry(*id).or_insert((0, at));
                    removed.1
                });
                let created = if id.is_of_name() { at } else { created };
                let told = Told {
                    hash: *hash,
                    rev: *rev,
                    from: at,
                    created,
                };
                let kept = self.superseded.insert((*id, *rev), (told, *ended));
                if *rev < event::LOST_REVISION || kept.is_some() {
                    report.fault(format!(
                        "event {seq}: node {id} has a revision out of order"
                    ));
                }
            }
            Change::EraseNode { id } => {
                self.removed.remove(id);
                if self.nodes.contains_key(id) {
                    report.fault(format!(
                        "event {seq} erases node {id}, which is still there"
                    ));
                }
                self.erasures.node(*id, row.hlc);
            }
            Change::EraseRevision { id, hash } => self.erasures.revision(*id, *hash, row.hlc),
            Change::EraseEvent { event } => self.erasures.event(*event),
        }
    }
}
