//! Proofs from a stored log.

use crate::merkle::{self, Frontier, Subtrees, leaf_hash};
use kenning_core::{Error, Hash, Result};
use kenning_store::ReadTx;

/// Proves that an event is in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inclusion {
    /// The event.
    pub event: Hash,
    /// Its leaf, from 0.
    pub index: u64,
    /// Number of events in the tree.
    pub size: u64,
    /// The tree's root.
    pub root: Hash,
    /// The path.
    pub path: Vec<Hash>,
}

impl Inclusion {
    /// Whether it proves what it says of a log that you trust to have this size and this root.
    ///
    /// Both come from a signed checkpoint, not from the proof: a root alone does not fix the size.
    pub fn holds(&self, size: u64, root: &Hash) -> bool {
        let leaf = leaf_hash(&self.event.0);
        (self.size, &self.root) == (size, root)
            && merkle::verify_inclusion(&leaf, self.index, size, &self.path, root)
    }
}

/// Proves that an earlier log is a prefix of a later one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consistency {
    /// Number of events then.
    pub old_size: u64,
    /// The root then.
    pub old_root: Hash,
    /// Number of events later.
    pub new_size: u64,
    /// The root later.
    pub new_root: Hash,
    /// The path.
    pub path: Vec<Hash>,
}

impl Consistency {
    /// Whether it proves that the log that you trusted then (size, root) is a prefix of the one you
    /// are shown now.
    pub fn holds(&self, old: (u64, &Hash), new: (u64, &Hash)) -> bool {
        (self.old_size, &self.old_root) == old
            && (self.new_size, &self.new_root) == new
            && merkle::verify_consistency(old.0, old.1, new.0, new.1, &self.path)
    }
}

/// The subtrees of a stored log: tiles where there are any, events below them.
pub(crate) struct Stored<'a>(pub(crate) &'a dyn ReadTx);

impl Subtrees for Stored<'_> {
    type Error = Error;

    fn root(&self, start: u64, size: u64) -> Result<Hash> {
        if size.is_power_of_two() && start.is_multiple_of(size) {
            let height = size.trailing_zeros();
            if height > 0 && height.is_multiple_of(8) {
                let level = u8::try_from(height / 8).unwrap_or(u8::MAX);
                let tile = self.0.tile(level, start >> height)?;
                return tile.ok_or_else(|| Error::corrupt("a subtree of the log is missing"));
            }
        }
        if size > 256 {
            let left = 1 << (63 - (size - 1).leading_zeros());
            return Ok(merkle::node_hash(
                &self.root(start, left)?,
                &self.root(start + left, size - left)?,
            ));
        }
        let limit = usize::try_from(size).unwrap_or(usize::MAX);
        let events = self.0.events_after(start, limit)?;
        if events.len() as u64 != size {
            return Err(Error::corrupt("an event of the log is missing"));
        }
        let mut frontier = Frontier::default();
        for event in events {
            frontier.push(leaf_hash(&event.id.0), |_, _, _| ());
        }
        Ok(frontier.root())
    }
}

/// Proves that the event at `seq` is in the log as it was with `size` events.
pub fn inclusion(tx: &dyn ReadTx, seq: u64, size: u64) -> Result<Inclusion> {
    let total = tx.head()?.map_or(0, |it| it.seq);
    if seq == 0 || seq > size || size > total {
        return Err(Error::invalid(format!(
            "`{seq}` is not the number of an event: the log has {}",
            size.min(total)
        ))
        .hint("events are numbered from 1"));
    }
    let event = tx.events_after(seq - 1, 1)?.pop();
    let event = event
        .ok_or_else(|| Error::corrupt(format!("event {seq} is missing")))?
        .id;
    let tree = Stored(tx);
    let path = merkle::inclusion_path(&tree, seq - 1, size)?;
    Ok(Inclusion {
        event,
        index: seq - 1,
        size,
        root: tree.root(0, size)?,
        path,
    })
}

/// Proves that the log with `old` events is a prefix of the log with `new` events.
pub fn consistency(tx: &dyn ReadTx, old: u64, new: u64) -> Result<Consistency> {
    let total = tx.head()?.map_or(0, |it| it.seq);
    if old == 0 || old > new || new > total {
        return Err(Error::invalid(format!(
            "`{old}` to `{new}` is not a part of a log of {total} events"
        )));
    }
    let tree = Stored(tx);
    Ok(Consistency {
        old_size: old,
        old_root: tree.root(0, old)?,
        new_size: new,
        new_root: tree.root(0, new)?,
        path: merkle::consistency_path(&tree, old, new)?,
    })
}
