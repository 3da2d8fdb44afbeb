//! Alike memories are joined by `similar` edges, never merged.
//!
//! It happens afterwards, in the background: a cursor in the store says up to which event it has been
//! done, so that whatever a killed process left is done by the next one.

use crate::Engine;
use kenning_audit::{Change, EdgeDraft, Log, event};
use kenning_core::{Kind, NodeId, Result, Space};
use kenning_memory::duplicates::{Alike, SIMILARITY_MIN, alike};
use kenning_memory::types::relation;
use kenning_search::{Filter, Searcher};
use kenning_store::When;
use serde_json::{Map, json};

const CURSORS: &str = "cursors";
const CURSOR: &str = "alike";

/// Events that are looked at in one step.
const PAGE: usize = 200;

/// How many of the nearest are compared word by word.
const NEAREST: usize = 8;

/// Two memories that are alike.
struct Pair {
    one: NodeId,
    other: NodeId,
    similarity: f64,
}

impl Engine {
    /// Joins alike memories, some time.
    pub(super) fn link_alike_later(&self, space: &Space) {
        let (space, searcher) = (space.clone(), self.searcher.clone());
        self.later.run(move |log| {
            while step(log, &searcher, &space)? {}
            Ok(())
        });
    }

    /// Waits until what is done in the background is done.
    pub fn settle(&self) {
        self.later.flush();
    }
}

/// Looks at some more events; whether there may be more.
fn step(log: &Log, searcher: &Searcher, space: &Space) -> Result<bool> {
    let (cursor, end, pairs) = log.read(space, |tx| {
        let cursor = tx.get(CURSORS, CURSOR)?;
        let cursor = cursor
            .and_then(|it| String::from_utf8(it).ok()?.parse().ok())
            .unwrap_or(0);
        let page = tx.events_after(cursor, PAGE)?;
        let mut pairs = Vec::new();
        for row in page.iter().filter(|it| it.kind == "MemoryStoredEvent") {
            for change in event::parse(row).into_iter().flat_map(|it| it.changes) {
                if let Change::PutNode { id, rev: 1, .. } = change {
                    pairs.extend(pairs_of(tx, searcher, space, id)?);
                }
            }
        }
        Ok((cursor, page.last().map_or(cursor, |it| it.seq), pairs))
    })?;
    if end == cursor {
        return Ok(false);
    }
    log.write(space, move |tx| {
        for pair in &pairs {
            tx.put_edge(EdgeDraft {
                src: pair.one,
                rel: relation::SIMILAR.to_owned(),
                dst: pair.other,
                weight: pair.similarity,
                props: Map::new(),
            })?;
        }
        if !pairs.is_empty() {
            tx.record("MemoriesLinked", json!({ "pairs": pairs.len() }))?;
        }
        tx.set(CURSORS, CURSOR, end.to_string().as_bytes())
    })?;
    Ok(true)
}

fn pairs_of(
    tx: &dyn kenning_store::ReadTx,
    searcher: &Searcher,
    space: &Space,
    id: NodeId,
) -> Result<Vec<Pair>> {
    let Some(node) = tx.node(id, When::Now)? else {
        return Ok(Vec::new());
    };
    let filter = Filter {
        kinds: vec![Kind::Memory],
        ..Filter::default()
    };
    let near = searcher.with(space, tx, None, |index| index.alike(id, &filter, NEAREST))?;
    let mut pairs = Vec::new();
    for (other, similarity) in near {
        if similarity < SIMILARITY_MIN {
            break;
        }
        let Some(other) = tx.node(other, When::Now)? else {
            continue;
        };
        if alike(&node.body, &other.body, similarity) != Alike::Different {
            // The later one points to the earlier one, whichever is looked at first.
            let (one, other) = if node.id > other.id {
                (node.id, other.id)
            } else {
                (other.id, node.id)
            };
            pairs.push(Pair {
                one,
                other,
                similarity,
            });
        }
    }
    Ok(pairs)
}
