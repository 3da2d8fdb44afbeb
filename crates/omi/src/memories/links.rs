//! Similar memories are joined by `similar` edges, never merged.
//!
//! This happens in the background. A cursor in the store says how far it has come, so that the next
//! process continues what a killed one left.

use crate::Omi;
use kenning_audit::{Change, Continuity, EdgeDraft, Log, event};
use kenning_core::{Kind, NodeId, Result, Space};
use kenning_kernel::Bucket;
use kenning_kernel::search::Alike as AlikeSearch;
use kenning_memory::duplicates::{Alike, SIMILARITY_MIN, alike};
use kenning_memory::types::relation;
use kenning_search::Filter;
use kenning_store::When;
use serde_json::{Map, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

const CURSORS: Bucket<u64> = Bucket::new("cursors");
const CURSOR: &str = "alike";

/// The number of events that are read in one step.
const PAGE: usize = 200;

/// At most this many of the nearest are compared word by word.
const NEAREST: usize = 8;

/// After a crash, at most this many events without a link are read again.
const CURSOR_EVERY: u64 = 256;

/// How far this process has come, in each space.
#[derive(Default)]
pub(crate) struct Linked(Mutex<HashMap<Space, Arc<Seen>>>);

/// A place in a log of one generation.
#[derive(Default)]
struct Seen {
    generation: AtomicU64,
    seq: AtomicU64,
}

impl Linked {
    fn of(&self, space: &Space) -> Arc<Seen> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(space.clone()).or_default())
    }
}

/// Two similar memories, the later one first, with their similarity.
type Pair = ((NodeId, NodeId), f64);

impl Omi {
    /// Joins similar memories in the background.
    pub(super) fn link_alike_later(&self, space: &Space) {
        let (space, search) = (space.clone(), self.kernel.alike());
        let seen = self.linked.of(&space);
        let continuity = Arc::clone(self.kernel.continuity());
        self.kernel.later().run(move |log| {
            while step(log, &search, &continuity, &space, &seen)? {}
            Ok(())
        });
    }

    /// Waits until the background work is done.
    pub fn settle(&self) {
        self.kernel.later().flush();
    }
}

/// Processes some more events; true if there may be more. `seen` is how far this process has come: it
/// is not written to the store after every memory.
fn step(
    log: &Log,
    search: &AlikeSearch,
    continuity: &Continuity,
    space: &Space,
    seen: &Seen,
) -> Result<bool> {
    let (stored, cursor, end, pairs) = log.read(space, |tx| {
        let stored = CURSORS.get_readable(tx, CURSOR)?.unwrap_or(0);
        let head = tx.head()?;
        let generation = continuity.generation(space, tx, head.as_ref())?;
        // The stored cursor went back with the log; the one in memory did not.
        if seen.generation.swap(generation, Ordering::Relaxed) != generation {
            seen.seq.store(0, Ordering::Relaxed);
        }
        let cursor = stored.max(seen.seq.load(Ordering::Relaxed));
        let page = tx.events_after(cursor, PAGE)?;
        // Each of two new memories finds the other.
        let mut pairs = BTreeMap::new();
        for row in page.iter().filter(|it| it.kind == "MemoryStoredEvent") {
            for change in event::parse(row).into_iter().flat_map(|it| it.changes) {
                if let Change::PutNode { id, rev: 1, .. } = change {
                    pairs.extend(pairs_of(tx, search, space, id)?);
                }
            }
        }
        let end = page.last().map_or(cursor, |it| it.seq);
        Ok((stored, cursor, end, pairs))
    })?;
    if end == cursor {
        return Ok(false);
    }
    if pairs.is_empty() && end - stored < CURSOR_EVERY {
        seen.seq.store(end, Ordering::Relaxed);
        return Ok(true);
    }
    log.write(space, move |tx| {
        for (&(one, other), &similarity) in &pairs {
            tx.put_edge(EdgeDraft {
                src: one,
                rel: relation::SIMILAR.to_owned(),
                dst: other,
                weight: similarity,
                props: Map::new(),
            })?;
        }
        if !pairs.is_empty() {
            tx.record("MemoriesLinked", json!({ "pairs": pairs.len() }))?;
        }
        CURSORS.set(tx, CURSOR, &end)
    })?;
    Ok(true)
}

fn pairs_of(
    tx: &dyn kenning_store::ReadTx,
    search: &AlikeSearch,
    space: &Space,
    id: NodeId,
) -> Result<Vec<Pair>> {
    let Some(node) = tx.node(id, When::Now)? else {
        return Ok(Vec::new());
    };
    // What is alike in another project is none of this one's business.
    let filter = Filter {
        kinds: vec![Kind::Memory],
        memories_of: vec![node.project.clone()],
        ..Filter::default()
    };
    let near = search.find(space, tx, id, (&filter, NEAREST), SIMILARITY_MIN)?;
    let mut pairs = Vec::new();
    for (other, similarity) in near {
        let Some(other) = tx.node(other, When::Now)? else {
            continue;
        };
        if alike(&node.body, &other.body, similarity) != Alike::Different {
            // The later one points to the earlier one, whichever is processed first.
            let ends = (node.id.max(other.id), node.id.min(other.id));
            // Rounding may give more than 1 for equal vectors; a strength is at most 1.
            pairs.push((ends, similarity.clamp(0.0, 1.0)));
        }
    }
    Ok(pairs)
}
