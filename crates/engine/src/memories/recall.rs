//! Recalling memories.

use super::{ACCESS, Memory, memory_id};
use crate::{Caller, Engine, Scope};
use kenning_core::{Error, Hlc, Kind, NodeId, Result};
use kenning_memory::score;
use kenning_memory::types::{MemoryType, relation};
use kenning_search::{Filter, Hit, Index, Mode, PASSAGE_BYTES, Query, order_by_relevance};
use kenning_store::{EdgeFilter, ReadTx, When};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

/// Related memories that an answer names.
const RELATED_MAX: usize = 20;

/// What to recall.
#[derive(Clone, Debug)]
pub struct Recall {
    /// In any words.
    pub query: String,
    /// At most so many.
    pub limit: usize,
    /// Only what is at least so relevant.
    pub min_relevance: f64,
    /// Only memories of this type.
    pub memory_type: Option<MemoryType>,
    /// Only memories with all of these tags.
    pub tags: Vec<String>,
    /// By which ways.
    pub mode: Mode,
    /// What was known at that moment, in milliseconds since 1970.
    pub as_of_ms: Option<u64>,
    /// What decides the order.
    pub sort: RecallSort,
    /// So many memories before and after each answer in its session.
    pub context: usize,
}

/// What decides the order of recalled memories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecallSort {
    /// The contract's formula: 0.7 × relevance + 0.3 × recency.
    #[default]
    FinalScore,
    /// Relevance, and among near-equals the newer one.
    Relevance,
}

impl Default for Recall {
    fn default() -> Self {
        Self {
            query: String::new(),
            limit: 10,
            min_relevance: 0.7,
            memory_type: None,
            tags: Vec::new(),
            mode: Mode::Hybrid,
            as_of_ms: None,
            sort: RecallSort::FinalScore,
            context: 0,
        }
    }
}

/// A memory that was recalled.
#[derive(Clone, Debug, PartialEq)]
pub struct RecalledMemory {
    /// The memory.
    pub memory: Memory,
    /// How well it answers, from 0 to 1.
    pub relevance: f64,
    /// What it is ranked by: relevance and recency.
    pub final_score: f64,
    /// Memories that it has an edge with.
    pub related: Vec<String>,
    /// Which bytes of its content were found, with what stands before and after them.
    pub part: Range<usize>,
    /// What was stored before and after it in the same session, in order.
    pub context: Vec<Neighbor>,
}

/// A memory that stands before or after a recalled one in its session.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbor {
    /// The memory.
    pub memory: Memory,
    /// How far before (negative) or after.
    pub offset: i32,
}

/// What was recalled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recalled {
    /// Best first.
    pub memories: Vec<RecalledMemory>,
    /// What the caller should know about how it was found, if anything.
    pub remark: Option<String>,
}

/// A memory with its scores, before its content is read.
struct Ranked {
    node: NodeId,
    passage: u32,
    relevance: f64,
    final_score: f64,
    /// Memories around it in its session, with how far they are.
    around: Vec<(NodeId, i32)>,
}

impl Engine {
    /// The memories that answer a query, best first. That they were recalled is an event.
    pub fn recall(&self, caller: &Caller, recall: &Recall) -> Result<Recalled> {
        let found = self.look_up(caller, recall)?;
        self.note_recall(caller, recall, &found.memories);
        Ok(found)
    }

    /// As [`Engine::recall`], where nobody is shown what was found.
    pub(super) fn look_up(&self, caller: &Caller, recall: &Recall) -> Result<Recalled> {
        caller.principal.require(Scope::Read)?;
        if recall.query.trim().is_empty() {
            return Err(
                Error::invalid("`query` is empty").hint("say in a few words what to recall")
            );
        }
        let space = &caller.principal.space;
        let now_ms = self.log.clock().now_ms();
        let (vector, remark) = self.query_vector(&recall.query);
        let filter = filter_of(recall);
        let query = Query {
            text: &recall.query,
            mode: recall.mode,
            filter: &filter,
            limit: recall.limit.saturating_mul(4).max(100),
            vector: vector.as_deref(),
        };
        let model = self.chosen_model();
        if model.is_some() {
            // Whoever changed the model finds the old passages embedded by asking.
            self.embed_later(space);
        }
        let memories = self.log.read(space, |tx| {
            let moment_ms = recall.as_of_ms.unwrap_or(now_ms);
            let ranked = self.searcher.with(space, tx, model.as_ref(), |index| {
                let mut ranked = self.ranked(index.search(&query), recall, moment_ms);
                for it in &mut ranked {
                    it.around = around(index, it, recall);
                }
                ranked
            })?;
            let when = recall
                .as_of_ms
                .map_or(When::Now, |ms| When::At(Hlc::end_of_ms(ms)));
            ranked
                .iter()
                .map(|it| recalled(tx, it, when))
                .collect::<Result<Vec<_>>>()
        })?;
        Ok(Recalled { memories, remark })
    }

    /// The contract's formula on top of the same candidates, unless the order is by relevance.
    fn ranked(&self, mut hits: Vec<Hit>, recall: &Recall, now_ms: u64) -> Vec<Ranked> {
        // A mistake in the file must not cost an agent its memory; `doctor` and `status` tell of it.
        let days = self.memory_config().unwrap_or_default().recency_days;
        let mut seen = HashSet::new();
        let mut ranked = Vec::new();
        order_by_relevance(&mut hits, now_ms);
        for hit in &hits {
            // Of the passages of one memory the best decides, and it comes first.
            if score::rounded(hit.relevance) < recall.min_relevance || !seen.insert(hit.node) {
                continue;
            }
            let recency = score::recency(score::days_between(hit.created_ms, now_ms), days);
            ranked.push(Ranked {
                node: hit.node,
                passage: hit.n,
                relevance: hit.relevance,
                final_score: score::final_score(hit.relevance, recency),
                around: Vec::new(),
            });
        }
        if recall.sort == RecallSort::FinalScore {
            ranked.sort_by(|a, b| b.final_score.total_cmp(&a.final_score));
        }
        ranked.truncate(recall.limit);
        ranked
    }

    /// The event of the recall and the access counts, afterwards.
    fn note_recall(&self, caller: &Caller, recall: &Recall, found: &[RecalledMemory]) {
        let top: Vec<Value> = found
            .iter()
            .map(|it| json!({ "memory_id": it.memory.id, "relevance": score::rounded(it.relevance), "final_score": score::rounded(it.final_score) }))
            .collect();
        let ids: Vec<String> = found.iter().map(|it| it.memory.id.clone()).collect();
        let (query, count) = (recall.query.clone(), found.len());
        self.later.write(&caller.principal.space, move |tx| {
            let now = tx.now().ms();
            for id in &ids {
                let access = access(&**tx, id)?;
                let value = json!({ "count": access.count + 1, "last_ms": now });
                tx.set(ACCESS, id, value.to_string().as_bytes())?;
            }
            tx.record(
                "MemoryRecalledEvent",
                json!({ "query": query, "result_count": count, "top_results": top }),
            )?;
            Ok(())
        });
    }
}

fn filter_of(recall: &Recall) -> Filter {
    let memory_type = recall.memory_type.map(|it| format!("memory_type={it}"));
    let tags = recall.tags.iter().map(|it| format!("tag={it}"));
    Filter {
        kinds: vec![Kind::Memory],
        facets: memory_type.into_iter().chain(tags).collect(),
        as_of_ms: recall.as_of_ms,
        ..Filter::default()
    }
}

/// The memories around an answer in its session. One of several passages stands for itself.
fn around(index: &Index, ranked: &Ranked, recall: &Recall) -> Vec<(NodeId, i32)> {
    if recall.context == 0 {
        return Vec::new();
    }
    let filter = Filter {
        kinds: vec![Kind::Memory],
        as_of_ms: recall.as_of_ms,
        ..Filter::default()
    };
    let near = index.around(ranked.node, ranked.passage, recall.context, &filter);
    let mut seen = HashSet::from([ranked.node]);
    let others = near.into_iter().filter(|it| seen.insert(it.0));
    others.map(|(node, _, step)| (node, step)).collect()
}

fn recalled(tx: &dyn ReadTx, ranked: &Ranked, when: When) -> Result<RecalledMemory> {
    let node = tx
        .node(ranked.node, when)?
        .ok_or_else(|| Error::not_found("memory", ranked.node))?;
    let part = part(tx, ranked, node.body.len())?;
    let mut context = Vec::new();
    for &(near, offset) in &ranked.around {
        let memory = tx.node(near, when)?.map(|node| Memory::of(&node));
        context.extend(memory.map(|memory| Neighbor { memory, offset }));
    }
    Ok(RecalledMemory {
        part,
        context,
        memory: Memory::of(&node),
        relevance: ranked.relevance,
        final_score: ranked.final_score,
        related: related(tx, ranked.node, when)?,
    })
}

/// The passage that was found and its neighbors, as a range of the content.
fn part(tx: &dyn ReadTx, ranked: &Ranked, whole: usize) -> Result<Range<usize>> {
    if whole <= PASSAGE_BYTES {
        return Ok(0..whole);
    }
    let near = ranked.passage.saturating_sub(1)..=ranked.passage + 1;
    let passages = tx.passages(ranked.node)?;
    let mut near = passages.iter().filter(|it| near.contains(&it.n));
    let (Some(first), last) = (near.next(), near.next_back()) else {
        return Ok(0..whole);
    };
    let last = last.unwrap_or(first);
    let start = usize::try_from(first.start).unwrap_or(0);
    let end = usize::try_from(last.start).unwrap_or(0) + last.text.len();
    Ok(start.min(whole)..end.min(whole))
}

/// What a memory has an edge with, in either direction.
pub(super) fn related(tx: &dyn ReadTx, id: NodeId, when: When) -> Result<Vec<String>> {
    let out = EdgeFilter {
        src: Some(id),
        ..EdgeFilter::default()
    };
    let into = EdgeFilter {
        dst: Some(id),
        ..EdgeFilter::default()
    };
    let mut ends = BTreeSet::new();
    for filter in [out, into] {
        for edge in tx.edges(&filter, when, 4 * RELATED_MAX)? {
            if relation::counts(&edge.rel) {
                ends.insert(if edge.src == id { edge.dst } else { edge.src });
            }
        }
    }
    let mut names = Vec::new();
    for end in ends.into_iter().take(RELATED_MAX) {
        names.extend(tx.node(end, when)?.map(|it| memory_id(&it)));
    }
    Ok(names)
}

/// How often and when a memory was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// How often.
    pub count: u64,
    /// When last, in milliseconds since 1970.
    pub last_ms: Option<u64>,
}

pub(super) fn access(tx: &dyn ReadTx, id: &str) -> Result<Access> {
    Ok(tx
        .get(ACCESS, id)?
        .map(|it| access_of(&it))
        .unwrap_or_default())
}

pub(super) fn access_of(bytes: &[u8]) -> Access {
    let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
    Access {
        count: value["count"].as_u64().unwrap_or(0),
        last_ms: value["last_ms"].as_u64(),
    }
}
