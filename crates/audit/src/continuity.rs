//! Whether a log is still the one that was read before.
//!
//! Whoever follows a log remembers how far it has come. A database that failed over to a standby that
//! lagged, or a store that was restored under a running server, can give the same numbers to other
//! events. Then a number alone says nothing: the ids of the last events that were seen do.

use kenning_core::{Hash, Result, Space};
use kenning_store::{HeadRow, ReadTx};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// So many of the last events are remembered, to tell a read that began before another one from a log
/// that lost events. A read that is older than these begins anew, which costs time and nothing else.
const REMEMBERED: usize = 256;

/// Remembers the last events of each space's log.
#[derive(Debug, Default)]
pub struct Continuity(Mutex<HashMap<Space, Trail>>);

/// The last events of a log, the newest last.
#[derive(Debug, Default)]
struct Trail {
    generation: u64,
    seq: u64,
    ids: VecDeque<Hash>,
}

impl Continuity {
    /// A number that changes when the log of a space is no continuation of what was seen before. What
    /// was derived under another number must be made anew. `head` is the head in `tx`.
    pub fn generation(
        &self,
        space: &Space,
        tx: &dyn ReadTx,
        head: Option<&HeadRow>,
    ) -> Result<u64> {
        let mut trails = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let trail = trails.entry(space.clone()).or_default();
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
    /// Whether the log has the events that were seen; takes in those that came after them.
    fn is_continued(&mut self, tx: &dyn ReadTx, head: Option<&HeadRow>) -> Result<bool> {
        let (seq, tips) = head.map_or((0, &[][..]), |it| (it.seq, &it.tips[..]));
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
            if there.first().map(|it| (it.seq, &it.id)) != Some((self.seq, last)) {
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
