//! The indexes of all spaces, following the log.

use crate::events::Events;
use crate::index::{Index, OtherModel};
use crate::prepared::Ready;
use crate::recent::Recent;
use crate::scan::Vectors;
use crate::slot::{Slot, Turn, broken};
use crate::snapshot::{self, TakenAt, Unsealed};
use kenning_audit::{Change, Continuity, Log};
use kenning_core::{Hash, Kind, NodeId, Result, Space};
use kenning_embed::Model;
use kenning_store::{Passage, ReadTx, Row, Table};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Vectors that are taken in at a time.
const PAGE: usize = 1_000;

/// Events that are read at a time where they are only counted.
const STEP_PAGE: usize = 25;

/// The indexes of all spaces. Each is made when it is first asked, and follows the log from then on,
/// whichever process wrote.
#[derive(Default)]
pub struct Searcher {
    /// By space and by the generation of its log: one that was taken back begins anew.
    spaces: Mutex<Recent<(Space, u64), Arc<Slot>>>,
    continuity: Continuity,
    keeper: Option<Box<dyn Keeper>>,
    ready: Ready,
}

/// Keeps snapshots of indexes between processes. They are derived: losing one costs only time.
pub trait Keeper: Send + Sync {
    /// What was last kept of a space.
    fn load(&self, space: &Space) -> Option<Vec<u8>>;

    /// Keeps this instead.
    fn save(&self, space: &Space, snapshot: Vec<u8>);

    /// Has [`Searcher::tend`] called, some time, by a thread that nobody waits for. Must not wait.
    fn ask_to_tend(&self, space: &Space);
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

    /// Has a snapshot kept, if its event is in this log.
    fn keep(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        slot: &Slot,
        snapshot: Unsealed,
    ) -> Result<bool> {
        let (seq, n_entries) = (snapshot.seq, snapshot.n_entries);
        let there = match seq.checked_sub(1) {
            Some(before) => tx.events_after(before, 1)?,
            None => Vec::new(),
        };
        let (Some(keeper), Some(event)) = (&self.keeper, there.first()) else {
            return Ok(false);
        };
        keeper.save(space, snapshot.seal(event.id));
        slot.change(|index| {
            index.kept = n_entries;
            index.kept_seq = seq;
        });
        Ok(true)
    }

    /// Does what searches leave undone because it takes long: copies an index without what is dead, and has it
    /// kept. For a thread that nobody waits for; ends early once `is_stopped`. Answers whether there was
    /// anything to do.
    pub fn tend(&self, space: &Space, log: &Log, is_stopped: &dyn Fn() -> bool) -> Result<bool> {
        let slot = log.read(space, |tx| self.slot_of(space, tx))?.0;
        let is_compacted = !is_stopped() && slot.compact(is_stopped)?;
        let is_worth_keeping = |index: &Index| index.is_worth_keeping().then(|| index.unsealed());
        let Some(snapshot) = slot.look(is_worth_keeping)? else {
            return Ok(is_compacted);
        };
        log.read(space, |tx| {
            let is_same = Arc::ptr_eq(&self.slot_of(space, tx)?.0, &slot);
            Ok(is_same && self.keep(space, tx, &slot, snapshot)? || is_compacted)
        })
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
        let (slot, seq) = self.slot_of(space, tx)?;
        if let Turn::Mine(_turn) = slot.turn(None, || false) {
            // Another call may have gone beyond this snapshot, whose events are not there to be read.
            let is_new = |it: &Index| it.seq <= seq && it.kept_seq < it.seq && it.n_erasures == 0;
            if let Some(snapshot) = slot.look(|it| is_new(it).then(|| it.unsealed()))? {
                self.keep(space, tx, &slot, snapshot)?;
            }
        }
        Ok(true)
    }

    /// The index of a space, and the head of its log.
    fn slot_of(&self, space: &Space, tx: &dyn ReadTx) -> Result<(Arc<Slot>, u64)> {
        let head = tx.head()?;
        let generation = self.continuity.generation(space, tx, head.as_ref())?;
        let mut spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        spaces.retain(|key| &key.0 != space || key.1 >= generation);
        let slot = spaces.entry(&(space.clone(), generation), Arc::default);
        Ok((Arc::clone(slot), head.map_or(0, |it| it.seq)))
    }

    fn is_in_memory(&self, space: &Space) -> bool {
        let spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        spaces.has(|key| &key.0 == space)
    }

    /// Prepares passages that are about to be stored, if the index of the space is in memory, and answers
    /// whether it is. For whoever writes something long: the next search has less to do to take it in.
    pub fn prepare(&self, space: &Space, kind: Kind, title: &str, passages: &[Passage]) -> bool {
        let is_in_memory = self.is_in_memory(space);
        if is_in_memory {
            self.ready.put(kind, title, passages);
        }
        is_in_memory
    }

    /// Brings the index of a space up to date if there is one in memory, and answers whether there was. For
    /// whoever wrote something long and has not answered yet: the next search need not take it in.
    pub fn catch_up(&self, space: &Space, tx: &dyn ReadTx, model: Option<&Model>) -> Result<bool> {
        let is_in_memory = self.is_in_memory(space);
        if is_in_memory {
            self.with(space, tx, model, |_| ())?;
        }
        Ok(is_in_memory)
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
        let (slot, seq) = self.slot_of(space, tx)?;
        loop {
            if let Ok(index) = slot.index.read()
                && index.has(seq, model)
            {
                if until.is_none() && index.vectors.lacks_sketches() {
                    slot.sketch_later();
                }
                return Ok((work(&index), IndexState::default()));
            }
            match slot.turn(until, || slot.has(seq, model)) {
                Turn::Reached => {}
                Turn::Mine(_turn) => {
                    self.follow(&slot, space, tx, seq, model, until)?;
                    break;
                }
                Turn::TooLate => break,
            }
        }
        let index = slot.index.read().map_err(|_| broken())?;
        let index_state = IndexState {
            partial: (index.seq < seq).then_some(Partial {
                taken: index.seq,
                all: seq,
            }),
            is_far_behind: until.is_some() && (index.seq < seq || index.is_worth_keeping()),
        };
        Ok((work(&index), index_state))
    }

    /// Takes in what the log has up to `seq`, or what can be taken in until then. Rows are read and texts
    /// are prepared while others search the index as it is; it is locked only to be changed. After each
    /// change it is the index of the log as it was at an event, so an error costs only what is missing.
    fn follow(
        &self,
        slot: &Slot,
        space: &Space,
        tx: &dyn ReadTx,
        seq: u64,
        model: Option<&Model>,
        until: Option<Instant>,
    ) -> Result<()> {
        let is_broken = slot.index.is_poisoned();
        if is_broken {
            slot.change(|_| ());
        }
        let mut at = slot.look(|index| index.seq)?;
        // What was kept may be what broke it: then only rows are read.
        if at == 0
            && seq > 0
            && !is_broken
            && let Some(kept) = self.kept(space, tx)?
        {
            at = kept.seq;
            slot.change(|index| *index = kept);
        }
        if until.is_none() && at == 0 && seq > 0 {
            slot.replace(Index::loaded(tx, seq)?);
            at = seq;
        }
        let mut events = Events::default();
        while at < seq {
            match events.next(tx, at, seq)? {
                Some(changes) => {
                    at = changes.at;
                    slot.apply(&changes, &self.ready);
                }
                None => {
                    slot.replace(Index::loaded(tx, seq)?);
                    at = seq;
                }
            }
            slot.tell();
            if until.is_some_and(|it| Instant::now() >= it) {
                break;
            }
        }
        if let Some(model) = model
            && at >= seq
        {
            take_in_vectors(slot, tx, seq, model)?;
        }
        let is_neglected = |it: &Index| it.is_to_be_copied() || it.is_worth_keeping();
        if until.is_none() && slot.look(is_neglected)? {
            match &self.keeper {
                Some(keeper) => keeper.ask_to_tend(space),
                None => drop(slot.compact(&|| false)?),
            }
        }
        Ok(())
    }
}

/// Whether a log has this event at this place.
fn is_in(tx: &dyn ReadTx, taken: TakenAt) -> Result<bool> {
    let Some(before) = taken.seq.checked_sub(1) else {
        return Ok(false);
    };
    let there = tx.events_after(before, 1)?;
    Ok(there
        .first()
        .is_some_and(|event| event.seq == taken.seq && event.id == taken.event))
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
        let is_clean = self.n_erasures == 0;
        is_clean
            && events > 0
            && (new >= KEPT_FROM.max(quarter) || events >= KEPT_EVENTS.max(quarter as u64))
    }

    /// Of a whole space as it is in this snapshot.
    fn loaded(tx: &dyn ReadTx, seq: u64) -> Result<Self> {
        let mut index = Self::new();
        index.load(tx)?;
        index.vectors.prepare();
        index.seq = seq;
        Ok(index)
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
}

/// Takes in the vectors of a model, a page at a time.
fn take_in_vectors(slot: &Slot, tx: &dyn ReadTx, seq: u64, model: &Model) -> Result<()> {
    let mut at = slot.change(|index| index.other_of(model).seq);
    let collection = collection_of(model);
    let mut limit = PAGE;
    loop {
        let mut page = tx.vectors_since(&collection, at, limit)?;
        let is_last = page.len() < limit;
        if !is_last {
            // The rest of the last event's vectors may be beyond the page.
            let last = page.last().map_or(0, |it| it.seq);
            page.retain(|it| it.seq < last);
            limit = if page.is_empty() { limit * 2 } else { PAGE };
        }
        at = page.last().map_or(at, |it| it.seq);
        slot.change(|index| {
            let other = index.other_of(model);
            page.iter().for_each(|it| other.put(it));
            other.seq = if is_last { seq.max(at) } else { at };
            if is_last {
                index.place_other_vectors();
            }
        });
        if is_last {
            return Ok(());
        }
    }
}

impl Index {
    /// The vectors of this model; those of another one go.
    fn other_of(&mut self, model: &Model) -> &mut OtherModel {
        let known = self.other.take().filter(|it| it.model == *model);
        self.other.insert(known.unwrap_or_else(|| OtherModel {
            model: model.clone(),
            seq: 0,
            by_text: HashMap::new(),
            vectors: Vectors::new(model.dimensions),
            places: Vec::new(),
            covered: 0,
        }))
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
    collection_of_model(&model.id)
}

/// The same, by the model's id.
pub fn collection_of_model(id: &str) -> String {
    format!("text/{id}")
}
