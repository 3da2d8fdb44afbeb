//! The index of one space, and whose turn it is to bring it up to date.

use crate::compact::Compaction;
use crate::events::Changes;
use crate::index::Index;
use crate::prepared::{Prepared, Ready};
use kenning_core::{Error, Result, idle};
use kenning_embed::Model;
use kenning_store::Node;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Instant;

/// Passages after which an index that is being changed can be searched again.
const APPLIED_PASSAGES: usize = 200;

/// The index of a space. One call at a time follows the log, and the others search meanwhile.
#[derive(Default)]
pub(crate) struct Slot {
    pub(crate) index: RwLock<Index>,
    /// Whether a call follows the log. Whoever holds this lock may ask for the index, not the other way.
    is_followed: Mutex<bool>,
    moved_on: Condvar,
    /// Whether a thread makes sketches.
    is_sketching: AtomicBool,
}

/// What a call that needs more of the log than the index has got to do.
pub(crate) enum Turn<'a> {
    /// Follow the log.
    Mine(Following<'a>),
    /// Search: another call has followed it far enough.
    Reached,
    /// Search what there is: there is no time.
    TooLate,
}

/// Ends the turn, however the call ends.
pub(crate) struct Following<'a>(&'a Slot);

impl Drop for Following<'_> {
    fn drop(&mut self) {
        *self.0.lock_turn() = false;
        self.0.moved_on.notify_all();
    }
}

/// Ends when the sketches are made, their maker panicked, or there was no thread for it.
struct Sketching(Arc<Slot>);

impl Drop for Sketching {
    fn drop(&mut self) {
        self.0.is_sketching.store(false, Ordering::Relaxed);
    }
}

impl Slot {
    fn lock_turn(&self) -> MutexGuard<'_, bool> {
        self.is_followed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn turn(&self, until: Option<Instant>, is_reached: impl Fn() -> bool) -> Turn<'_> {
        let mut is_followed = self.lock_turn();
        while *is_followed {
            is_followed = match until {
                None => {
                    let woken = idle::waiting(|| self.moved_on.wait(is_followed));
                    woken.unwrap_or_else(PoisonError::into_inner)
                }
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Turn::TooLate;
                    }
                    let woken = idle::waiting(|| self.moved_on.wait_timeout(is_followed, left));
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            if is_reached() {
                return Turn::Reached;
            }
        }
        *is_followed = true;
        Turn::Mine(Following(self))
    }

    /// Wakes those who wait for the index.
    pub(crate) fn tell(&self) {
        drop(self.lock_turn());
        self.moved_on.notify_all();
    }

    /// Makes sketches of the vectors in the background, for a process that asks again and again. Searches go
    /// on meanwhile.
    pub(crate) fn sketch_later(self: &Arc<Self>) {
        if self.is_sketching.swap(true, Ordering::Relaxed) {
            return;
        }
        let (slot, ending) = (Arc::clone(self), Sketching(Arc::clone(self)));
        // The kernel's workers stand above this crate; a panic ends this thread only, and `Sketching` says so.
        let thread = std::thread::Builder::new().name("kenning-sketch".to_owned());
        // Without the thread searches only take longer; a later one tries again.
        drop(thread.spawn(move || {
            let _ending = ending;
            // An index that breaks meanwhile is made anew by whoever searches next.
            if let Ok(mut sketching) = slot.look(|index| index.vectors.begin_sketches()) {
                let mut some = |index: &Index| index.vectors.sketch_some(&mut sketching);
                while slot.look(&mut some).unwrap_or(false) {}
                slot.change(|index| index.vectors.adopt(sketching));
            }
        }));
    }

    pub(crate) fn has(&self, seq: u64, model: Option<&Model>) -> bool {
        self.index.read().is_ok_and(|index| index.has(seq, model))
    }

    pub(crate) fn look<T>(&self, work: impl FnOnce(&Index) -> T) -> Result<T> {
        let index = self.index.read().map_err(|_| broken())?;
        Ok(work(&index))
    }

    pub(crate) fn change<T>(&self, work: impl FnOnce(&mut Index) -> T) -> T {
        work(&mut anew_if_broken(&self.index, Index::new))
    }

    /// Puts an index that was made beside it in its place.
    pub(crate) fn replace(&self, mut new: Index) {
        self.change(|index| {
            new.other = index.other.take();
            new.place_other_vectors();
            // The old one is taken apart after the lock is given back.
            std::mem::swap(index, &mut new);
        });
    }

    /// Copies what lives to a new index if half is dead or something was erased, in short steps, until `is_stopped`. Says whether it did.
    pub(crate) fn compact(&self, is_stopped: &dyn Fn() -> bool) -> Result<bool> {
        let begin = |index: &Index| index.is_to_be_copied().then(|| Compaction::of(index));
        let Some(mut compaction) = self.look(begin)? else {
            return Ok(false);
        };
        loop {
            let step = |index: &Index| compaction.is_of(index).then(|| compaction.step(index));
            match self.look(step)? {
                // It was put aside: whatever is there now is new.
                None => return Ok(false),
                Some(true) if is_stopped() => return Ok(false),
                Some(true) => {}
                Some(false) => break,
            }
        }
        compaction.prepare();
        // The old one is taken apart after the lock is given back.
        let old = self.change(|index| {
            let is_same = compaction.is_of(index);
            is_same.then(|| compaction.finish(index))
        });
        Ok(old.is_some())
    }

    /// Changes the index in short steps, so that searches come in between. Each node is taken in at once.
    pub(crate) fn apply(&self, changes: &Changes, ready: &Ready) {
        let nodes = changes.nodes.iter();
        let mut prepared: Vec<(&Node, Arc<Prepared>)> = Vec::new();
        let mut n_passages = 0;
        for (node, passages) in nodes {
            let passages = ready.take(node, passages);
            n_passages += passages.len();
            prepared.push((node, passages));
            if n_passages >= APPLIED_PASSAGES {
                n_passages = 0;
                let nodes = std::mem::take(&mut prepared);
                self.change(|index| {
                    for (node, passages) in &nodes {
                        index.take_in(node, passages);
                    }
                });
            }
        }
        self.change(|index| {
            for (node, passages) in &prepared {
                index.take_in(node, passages);
            }
            changes.gone.iter().for_each(|it| index.remove(*it));
            index.vectors.prepare_further();
            index.n_erasures += u32::from(changes.has_erased);
            index.seq = changes.at;
        });
    }
}

impl Index {
    /// Whether it has everything that a snapshot at this event has. What came after it is there too, and is
    /// not hidden from a call that began before.
    pub(crate) fn has(&self, seq: u64, model: Option<&Model>) -> bool {
        let has_model = match (model, &self.other) {
            (None, _) => true,
            (Some(model), Some(other)) => other.model == *model && other.seq >= seq,
            (Some(_), None) => false,
        };
        self.seq >= seq && has_model
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
