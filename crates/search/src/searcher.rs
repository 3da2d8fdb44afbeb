//! The indexes of all spaces, following the log.

use crate::index::{Index, OtherModel};
use crate::recent::Recent;
use crate::scan::Vectors;
use crate::snapshot::{self, TakenAt};
use kenning_audit::{Change, Continuity};
use kenning_core::{Error, Hash, NodeId, Result, Space};
use kenning_embed::Model;
use kenning_store::{Passage, ReadTx, Row, Table, When};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Instant;

/// Events and vectors that are taken in at a time.
const PAGE: usize = 1_000;

/// Nodes that are taken in between two looks at the clock, where time is short. Nodes and not events: one
/// event of an import brings hundreds.
const STEP: usize = 250;

/// Events that are read at a time for a step.
const STEP_PAGE: usize = 25;

/// The kind of the event that says that passages were made anew.
pub const REINDEXED: &str = "Reindexed";

/// The indexes of all spaces. Each is made when it is first asked, and follows the log from then on,
/// whichever process wrote.
#[derive(Default)]
pub struct Searcher {
    /// By space and by the generation of its log: one that was taken back begins anew.
    spaces: Mutex<Recent<(Space, u64), Shared>>,
    continuity: Continuity,
    keeper: Option<Box<dyn Keeper>>,
}

type Shared = Arc<RwLock<Index>>;

/// Keeps snapshots of indexes between processes. They are derived: losing one costs only time.
pub trait Keeper: Send + Sync {
    /// What was last kept of a space.
    fn load(&self, space: &Space) -> Option<Vec<u8>>;

    /// Keeps this instead, some time. Must not wait.
    fn save(&self, space: &Space, snapshot: Vec<u8>);
}

/// So many passages must be new before a snapshot pays, and a quarter of all.
const KEPT_FROM: usize = 1_000;

/// After so many events, and a quarter as many as there are passages, a snapshot pays even if they
/// brought nothing to find: a process that starts reads them all.
const KEPT_EVENTS: u64 = 4_000;

/// How far an index has come that is not complete yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partial {
    /// Events that were taken in, the oldest ones.
    pub taken: u64,
    /// Events that there are.
    pub all: u64,
}

/// How an index stands to its log, for a caller who could not wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexState {
    /// How far it has come, if it is not complete.
    pub partial: Option<Partial>,
    /// Whether [`Searcher::renew`] should be called by somebody who has the time.
    pub is_far_behind: bool,
}

impl Searcher {
    /// With nothing made yet, and nobody to keep it.
    pub fn new() -> Self {
        Self::default()
    }

    /// With what this one kept.
    pub fn kept_by(keeper: impl Keeper + 'static) -> Self {
        Self {
            keeper: Some(Box::new(keeper)),
            ..Self::default()
        }
    }

    /// What was kept, if it fits this log.
    fn kept(&self, space: &Space, tx: &dyn ReadTx) -> Result<Option<Index>> {
        let Some(bytes) = self.keeper.as_ref().and_then(|it| it.load(space)) else {
            return Ok(None);
        };
        let Some(taken) = snapshot::taken_at(&bytes) else {
            return Ok(None);
        };
        if !is_in(tx, taken)? {
            return Ok(None);
        }
        Ok(Index::from_snapshot(&bytes).map(|mut index| {
            index.kept = index.entries.len();
            index.kept_seq = index.seq;
            index
        }))
    }

    /// Has the index kept.
    fn keep(&self, space: &Space, tx: &dyn ReadTx, index: &mut Index) -> Result<()> {
        if let Some(keeper) = &self.keeper
            && index.kept_seq < index.seq
            && let Some(event) = tx.events_after(index.seq - 1, 1)?.first()
        {
            keeper.save(space, index.to_snapshot(event.id));
            index.kept = index.entries.len();
            index.kept_seq = index.seq;
        }
        Ok(())
    }

    /// Brings what is kept of a space up to date, if much has changed since. Takes its time: it is for a
    /// process that nobody waits for. Answers whether there was anything to do.
    pub fn renew(&self, space: &Space, tx: &dyn ReadTx, model: Option<&Model>) -> Result<bool> {
        let Some(keeper) = &self.keeper else {
            return Ok(false);
        };
        let kept = keeper.load(space);
        let kept = kept.as_deref().and_then(snapshot::taken_at);
        let from = match kept {
            Some(kept) if is_in(tx, kept)? => kept.seq,
            _ => 0,
        };
        if !is_far_behind(tx, from)? {
            return Ok(false);
        }
        self.with(space, tx, model, |_| ())?;
        let (index, _) = self.index_of(space, tx)?;
        let mut index = anew_if_broken(&index, Index::new);
        self.keep(space, tx, &mut index)?;
        Ok(true)
    }

    /// The index of a space, and the head of its log.
    fn index_of(&self, space: &Space, tx: &dyn ReadTx) -> Result<(Shared, u64)> {
        let head = tx.head()?;
        let generation = self.continuity.generation(space, tx, head.as_ref())?;
        let mut spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        spaces.retain(|key| &key.0 != space || key.1 >= generation);
        let index = spaces.entry(&(space.clone(), generation), Arc::default);
        Ok((Arc::clone(index), head.map_or(0, |it| it.seq)))
    }

    /// Runs `work` on the index of a space as it is in this snapshot. `model` is what was chosen in
    /// place of the built-in table, if anything was.
    pub fn with<T>(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        model: Option<&Model>,
        work: impl FnOnce(&Index) -> T,
    ) -> Result<T> {
        let done = self.with_until(space, tx, model, None, work)?;
        Ok(done.0)
    }

    /// As [`Searcher::with`], for a caller who cannot wait: after `until` the work is done on what has
    /// been taken in so far, and the answer says how far that is. Nothing is kept, because writing the
    /// index takes longer than such a caller lives; [`Searcher::renew`] does that.
    pub fn with_until<T>(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        model: Option<&Model>,
        until: Option<Instant>,
        work: impl FnOnce(&Index) -> T,
    ) -> Result<(T, IndexState)> {
        let (index, seq) = self.index_of(space, tx)?;
        if let Ok(index) = index.read()
            && index.is_at(seq, model)
        {
            return Ok((work(&index), IndexState::default()));
        }
        {
            let is_broken = index.is_poisoned();
            let mut index = anew_if_broken(&index, Index::new);
            if index.seq > seq {
                // A snapshot from before what another call has taken in: nothing newer is hidden from
                // it, and nothing that it can see is lost.
                return Ok((work(&index), IndexState::default()));
            }
            // What was kept may be what broke it: then only rows are read.
            if index.seq == 0
                && seq > 0
                && !is_broken
                && let Some(kept) = self.kept(space, tx)?
            {
                *index = kept;
            }
            let followed = match until {
                None => index.follow(tx, seq, model),
                Some(until) => index.follow_until(tx, seq, model, until),
            };
            if let Err(error) = followed {
                // Half taken in is worse than not at all.
                *index = Index::new();
                return Err(error);
            }
            if until.is_none() && index.is_worth_keeping() {
                self.keep(space, tx, &mut index)?;
            }
        }
        let index = index.read().map_err(|_| broken())?;
        let index_state = IndexState {
            partial: (index.seq < seq).then_some(Partial {
                taken: index.seq,
                all: seq,
            }),
            is_far_behind: until.is_some() && (index.seq < seq || index.is_worth_keeping()),
        };
        Ok((work(&index), index_state))
    }
}

/// What is derived from rows, to be changed. If a panic left it half changed, it begins anew: everything is in
/// the rows.
pub(crate) fn anew_if_broken<T>(
    lock: &RwLock<T>,
    empty: impl FnOnce() -> T,
) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(|broken| {
        let mut derived = broken.into_inner();
        *derived = empty();
        lock.clear_poison();
        derived
    })
}

/// Another call broke what this one has just brought up to date.
pub(crate) fn broken() -> Error {
    Error::unavailable("the index of a space is being made anew").hint("call again")
}

/// Whether a log has this event at this place.
fn is_in(tx: &dyn ReadTx, taken: TakenAt) -> Result<bool> {
    let Some(before) = taken.seq.checked_sub(1) else {
        return Ok(false);
    };
    let there = tx.events_after(before, 1)?;
    Ok(there
        .first()
        .is_some_and(|it| it.seq == taken.seq && it.id == taken.event))
}

/// Whether so much came after an event that a process that starts has long to take it in.
fn is_far_behind(tx: &dyn ReadTx, from: u64) -> Result<bool> {
    let head = tx.head()?.map_or(0, |it| it.seq);
    if head.saturating_sub(from) >= KEPT_EVENTS {
        return Ok(true);
    }
    let (mut at, mut changes) = (from, 0);
    while at < head {
        let page = tx.events_after(at, STEP_PAGE)?;
        let Some(last) = page.last() else { break };
        at = last.seq;
        let events = page.iter().filter_map(kenning_audit::event::parse);
        let is_node =
            |it: &Change| matches!(it, Change::PutNode { .. } | Change::RemoveNode { .. });
        changes += events.flat_map(|it| it.changes).filter(is_node).count();
        if changes >= KEPT_FROM {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Index {
    /// Whether enough of it is new.
    fn is_worth_keeping(&self) -> bool {
        let new = self.entries.len().saturating_sub(self.kept);
        let events = self.seq.saturating_sub(self.kept_seq);
        let quarter = self.entries.len() / 4;
        events > 0 && (new >= KEPT_FROM.max(quarter) || events >= KEPT_EVENTS.max(quarter as u64))
    }

    fn is_at(&self, seq: u64, model: Option<&Model>) -> bool {
        let model_is_there = match (model, &self.other) {
            (None, _) => true,
            (Some(model), Some(other)) => other.model == *model && other.seq == seq,
            (Some(_), None) => false,
        };
        self.seq == seq && model_is_there
    }

    /// Takes in everything up to the event `seq`.
    fn follow(&mut self, tx: &dyn ReadTx, seq: u64, model: Option<&Model>) -> Result<()> {
        if self.seq == 0 || self.is_mostly_dead() {
            let other = self.other.take();
            *self = Self::new();
            self.other = other;
            self.load(tx)?;
            self.seq = seq;
        }
        if self.seq < seq {
            self.take_in_events(tx, seq, usize::MAX)?;
        }
        self.vectors.prepare();
        if let Some(model) = model {
            self.take_in_vectors(tx, seq, model)?;
            self.place_other_vectors();
        }
        Ok(())
    }

    /// Takes in events up to `seq`, a step at a time, and stops after `until`. Events and not tables, so
    /// that what has been taken in is an index of the log as it was at that event.
    fn follow_until(
        &mut self,
        tx: &dyn ReadTx,
        seq: u64,
        model: Option<&Model>,
        until: Instant,
    ) -> Result<()> {
        while self.seq < seq {
            self.take_in_events(tx, seq, STEP)?;
            if Instant::now() >= until {
                break;
            }
        }
        self.vectors.prepare();
        if let Some(model) = model
            && self.seq == seq
        {
            self.take_in_vectors(tx, seq, model)?;
            self.place_other_vectors();
        }
        Ok(())
    }

    /// Takes in the whole space.
    fn load(&mut self, tx: &dyn ReadTx) -> Result<()> {
        let mut passages: HashMap<NodeId, Vec<Passage>> = HashMap::new();
        tx.scan(Table::Passages, &mut |row| {
            if let Row::Passage(row) = row {
                passages.entry(row.node).or_default().push(row.passage);
            }
            Ok(())
        })?;
        tx.scan(Table::Nodes, &mut |row| {
            if let Row::Node(node) = row
                && let Some(passages) = passages.remove(&node.id)
            {
                self.put(&node, &passages);
            }
            Ok(())
        })
    }

    /// Takes in events up to `seq`, or up to the one with which `nodes_max` nodes have changed.
    fn take_in_events(&mut self, tx: &dyn ReadTx, seq: u64, nodes_max: usize) -> Result<()> {
        // The revision that the latest of these events made; none for one that is gone.
        let mut changed: HashMap<NodeId, u64> = HashMap::new();
        let mut at = self.seq;
        let page_max = if nodes_max == usize::MAX {
            PAGE
        } else {
            STEP_PAGE
        };
        while at < seq && changed.len() < nodes_max {
            let left = usize::try_from(seq - at).unwrap_or(page_max);
            let page = tx.events_after(at, page_max.min(left))?;
            if page.is_empty() {
                at = seq;
            }
            for row in &page {
                if changed.len() >= nodes_max {
                    break;
                }
                at = row.seq;
                if row.kind == REINDEXED {
                    let other = self.other.take();
                    *self = Self::new();
                    self.other = other;
                    self.load(tx)?;
                    self.seq = seq;
                    return Ok(());
                }
                let event = kenning_audit::event::parse(row);
                for change in event.into_iter().flat_map(|it| it.changes) {
                    match change {
                        Change::PutNode { id, rev, .. } => changed.insert(id, rev),
                        Change::RemoveNode { id } => changed.insert(id, u64::MAX),
                        _ => None,
                    };
                }
            }
        }
        for (id, rev) in changed {
            match tx.node(id, When::Now)? {
                // A later event made what it is now, and brings it.
                Some(node) if node.rev > rev => {}
                Some(node) => self.put(&node, &tx.passages(id)?),
                None => self.remove(id),
            }
        }
        self.seq = at;
        Ok(())
    }

    fn take_in_vectors(&mut self, tx: &dyn ReadTx, seq: u64, model: &Model) -> Result<()> {
        if self.other.as_ref().is_none_or(|it| it.model != *model) {
            self.other = Some(OtherModel {
                model: model.clone(),
                seq: 0,
                by_text: HashMap::new(),
                vectors: Vectors::new(model.dimensions),
                places: Vec::new(),
                covered: 0,
            });
        }
        let Some(other) = &mut self.other else {
            return Ok(());
        };
        let collection = collection_of(model);
        let (mut at, mut limit) = (other.seq, PAGE);
        loop {
            let mut page = tx.vectors_since(&collection, at, limit)?;
            let is_last = page.len() < limit;
            if !is_last {
                // The rest of the last event's vectors may be beyond the page.
                let last = page.last().map_or(0, |it| it.seq);
                page.retain(|it| it.seq < last);
                limit = if page.is_empty() { limit * 2 } else { PAGE };
            }
            for vector in &page {
                other.put(vector);
                at = vector.seq;
            }
            if is_last {
                break;
            }
        }
        other.seq = seq;
        Ok(())
    }
}

impl OtherModel {
    fn put(&mut self, vector: &kenning_store::Vector) {
        let Some(hash) = Hash::from_hex(&vector.id) else {
            return;
        };
        if vector.numbers.len() != self.model.dimensions {
            return;
        }
        let mut short = [0; 16];
        short.copy_from_slice(&hash.0[..16]);
        let place = u32::try_from(self.vectors.len()).unwrap_or(u32::MAX);
        self.vectors.push(&vector.numbers);
        self.by_text.insert(short, place);
    }
}

/// The collection of vectors of passages' texts by a model; a vector's name is the hash of its text.
pub fn collection_of(model: &Model) -> String {
    format!("text/{}", model.id)
}
