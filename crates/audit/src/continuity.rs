//! Whether a log is still the one that was read before.
//!
//! A follower of a log remembers how far it has read. After a failover to a standby that lagged, or a
//! restore under a running server, the same numbers can belong to other events. So the ids of the last
//! events are compared, not only their number.

use kenning_core::{Hash, Result, Space};
use kenning_store::{HeadRow, ReadTx};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// How many of the last events are remembered, to distinguish a read that began earlier from a log that
/// lost events. A read that is older than these starts over, which costs only time.
const REMEMBERED: usize = 256;

/// Remembers the last events of each space's log. Each has a lock of its own: a store that is slow to answer
/// for one space keeps no other waiting.
#[derive(Debug, Default)]
pub struct Continuity(Mutex<HashMap<Space, Arc<Mutex<Trail>>>>);

/// The last events of a log, the newest last.
#[derive(Debug, Default)]
struct Trail {
    generation: u64,
    seq: u64,
    ids: VecDeque<Hash>,
}

impl Continuity {
    /// A number that changes when the log of a space does not continue what was seen before. Data that
    /// was derived under another number must be rebuilt. `head` is the head in `tx`.
    pub fn generation(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        head: Option<&HeadRow>,
    ) -> Result<u64> {
        let trail = {
            let mut trails = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(trails.entry(space.clone()).or_default())
        };
        let mut trail = trail.lock().unwrap_or_else(PoisonError::into_inner);
        if !trail.is_continued(tx, head)? {
            *trail = Trail {
                generation: trail.generation + 1,
                ..Trail::default()
            };
            trail.is_continued(tx, head)?;
        }
        Ok(trail.generation)
    }
}

impl Trail {
    /// Whether the log still has the events that were seen; adds the newer ones.
    fn is_continued(&mut self, tx: &dyn ReadTx, head: Option<&HeadRow>) -> Result<bool> {
        let (seq, tips) = head.map_or((0, &[][..]), |head| (head.seq, &head.tips[..]));
        if seq <= self.seq {
            let at = usize::try_from(self.seq - seq).unwrap_or(usize::MAX);
            let seen = self.ids.iter().rev().nth(at);
            let is_empty = self.seq == 0;
            // The newest event is always a tip.
            return Ok(is_empty || seen.is_some_and(|it| tips.contains(it)));
        }
        let first_new = seq.saturating_sub(REMEMBERED as u64).max(self.seq);
        if let Some(last) = self.ids.back() {
            let there = tx.events_after(self.seq - 1, 1)?;
            if there.first().map(|event| (event.seq, &event.id)) != Some((self.seq, last)) {
                return Ok(false);
            }
        }
        let new = tx.events_after(first_new, REMEMBERED)?;
        if first_new > self.seq {
            self.ids.clear();
        }
        self.ids.extend(new.iter().map(|it| it.id));
        let n_over = self.ids.len().saturating_sub(REMEMBERED);
        self.ids.drain(..n_over);
        self.seq = new.last().map_or(self.seq, |it| it.seq);
        Ok(true)
    }
}
