//! Recalling memories.

use super::answers::Answers;
use super::{ACCESS, Memory, memory_id};
use crate::{Omi, context};
use kenning_core::{Error, Hash, Hlc, Kind, NodeId, Result};
use kenning_kernel::paging::{Page, ranked_until};
use kenning_kernel::search::{Question, Search, Wanted, policy};
use kenning_kernel::{Caller, RowCodec, Scope, roots};
use kenning_memory::score;
use kenning_memory::types::{MemoryType, relation};
use kenning_search::{Filter, Hit, IndexState, Mode, PASSAGE_BYTES};
use kenning_store::{EdgeFilter, Node, ReadTx, When};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Instant;

/// Related memories that an answer names.
const RELATED_MAX: usize = 20;

/// The context string for deriving the key that hashes queries.
const QUERY_HASH: &str = "kenning 2026 hash of a recalled query";

/// At most this many memories after the last answer are checked for the same words.
const SAME_LOOKED: usize = 10;

/// What to recall.
#[derive(Clone, Debug)]
pub struct Recall {
    /// The query, in any words.
    pub query: String,
    /// At most this many memories.
    pub limit: usize,
    /// This many of the best are skipped, because the caller has seen them.
    pub skip: usize,
    /// The least relevance.
    pub min_relevance: f64,
    /// Only memories of this type.
    pub memory_type: Option<MemoryType>,
    /// Only memories with all of these tags.
    pub tags: Vec<String>,
    /// How to search.
    pub mode: Mode,
    /// Searches the state at that time, in milliseconds since 1970.
    pub as_of_ms: Option<u64>,
    /// What decides the order.
    pub sort: RecallSort,
    /// This many memories before and after each answer in its session.
    pub context: usize,
    /// Whether entries of the daily logs are searched too; they count as experiences.
    pub daily_logs: bool,
    /// Whose memories are searched.
    pub scope: RecallScope,
    /// When to stop updating the index and search what there is; `None` to wait for all of it.
    pub until: Option<Instant>,
}

/// Whose memories are recalled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecallScope {
    /// Those of the caller's project, and what is global.
    #[default]
    Project,
    /// Only what is global.
    Global,
    /// Those of all projects.
    All,
}

/// The projects whose memories a recall may show; all of them if none are named.
pub(crate) struct Sees(Option<Vec<String>>);

impl Sees {
    pub(super) fn has(&self, project: &str) -> bool {
        let own = self.0.as_ref();
        own.is_none_or(|own| own.iter().any(|it| it == project))
    }
}

/// What decides the order of recalled memories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecallSort {
    /// The contract's formula: 0.7 × relevance + 0.3 × recency.
    #[default]
    FinalScore,
    /// Relevance alone.
    Relevance,
    /// Relevance, and among near-equals the newer one.
    RelevanceAndAge,
}

impl Default for Recall {
    fn default() -> Self {
        Self {
            query: String::new(),
            limit: 10,
            skip: 0,
            min_relevance: policy::MEMORIES.relevance_min,
            memory_type: None,
            tags: Vec::new(),
            mode: Mode::Hybrid,
            as_of_ms: None,
            sort: RecallSort::FinalScore,
            context: 0,
            daily_logs: true,
            scope: RecallScope::Project,
            until: None,
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
    /// The score that the contract ranks by: relevance and recency.
    pub final_score: f64,
    /// Memories that it has an edge with.
    pub related: Vec<String>,
    /// The bytes of its content that were found, with their neighbors.
    pub part: Range<usize>,
    /// What was stored before and after it in the same session, in order.
    pub context: Vec<Neighbor>,
    /// Memories with the same words, which were left out.
    pub near_identical: Vec<String>,
}

/// A memory before or after a recalled one in its session.
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
    /// Whether there are more behind them.
    pub has_more: bool,
    /// A remark for the caller about how it was found.
    pub remark: Option<String>,
    /// How much of the log was searched, if time was too short for all of it.
    pub index_state: IndexState,
}

/// A memory with its scores, before its content is read.
pub(super) struct Ranked {
    pub(super) node: NodeId,
    pub(super) passage: u32,
    pub(super) relevance: f64,
    pub(super) final_score: f64,
    /// Memories around it in its session, with their offsets.
    around: Vec<(NodeId, i32)>,
}

impl Omi {
    /// The memories that answer a query, best first. The recall is recorded as an event.
    pub fn recall(&self, caller: &Caller, recall: &Recall) -> Result<Recalled> {
        let found = self.look_up(caller, recall)?;
        self.note_recall(caller, recall, &found.memories);
        Ok(found)
    }

    /// As [`Omi::recall`], without recording an event.
    pub(crate) fn look_up(&self, caller: &Caller, recall: &Recall) -> Result<Recalled> {
        self.look_up_asked(caller, recall, &mut None)
    }

    /// The same for a call that looks several times: its question is made by the first look that needs it.
    pub(super) fn look_up_asked(
        &self,
        caller: &Caller,
        recall: &Recall,
        question: &mut Option<Question>,
    ) -> Result<Recalled> {
        caller.principal.require(Scope::Read)?;
        if recall.query.trim().is_empty() {
            return Err(
                Error::invalid("`query` is empty").hint("say in a few words what to recall")
            );
        }
        let page = Page {
            skip: recall.skip,
            limit: recall.limit,
        };
        page.check_ranked()?;
        let space = &caller.principal.space;
        let now_ms = self.kernel.log().clock().now_ms();
        let sees = self.sees(caller, recall.scope)?;
        let filters = [filter_of(recall, &sees)];
        let (named, is_all) = self.named_memories(caller, recall, now_ms)?;
        if is_all {
            let (memories, has_more) = page.of(named);
            return Ok(Recalled {
                memories,
                has_more,
                ..Recalled::default()
            });
        }
        let question = question.get_or_insert_with(|| self.kernel.question(&recall.query));
        if question.has_model() {
            // After a change of the model, a query starts embedding the old passages.
            self.kernel.embed_later(space);
        }
        let (memories, index_state) = self.kernel.log().read(space, |tx| {
            let moment_ms = recall.as_of_ms.unwrap_or(now_ms);
            let policy = policy::MEMORIES.from_relevance(recall.min_relevance);
            let work = |search: &Search<'_>| -> Result<Vec<Ranked>> {
                let as_deep_as = |limit: usize| {
                    let found = search.find(&Wanted {
                        mode: recall.mode,
                        ..Wanted::new(&policy, &filters, limit, moment_ms)
                    })?;
                    Ok(self.ranked(&found.hits, recall, moment_ms))
                };
                let mut ranked = ranked_until(page, |it| it.node, as_deep_as)?;
                for it in &mut ranked {
                    it.around = around(search, it, recall);
                }
                Ok(ranked)
            };
            let (ranked, index_state) =
                self.kernel
                    .search_until(space, tx, question, recall.until, work)?;
            let ranked = ranked?;
            let when = recall
                .as_of_ms
                .map_or(When::Now, |ms| When::At(Hlc::end_of_ms(ms)));
            let mut answers = Answers::new(page.with_one_more());
            for named in named {
                answers.add(named);
            }
            let mut after = 0;
            for ranked in &ranked {
                if answers.is_full() {
                    // The next ones may have the same words as an answer.
                    after += 1;
                    if after > SAME_LOOKED {
                        break;
                    }
                    if let Some(node) = tx.node(ranked.node, when)? {
                        answers.add_same(&Memory::of(&node));
                    }
                } else if let Some(memory) = recalled(tx, ranked, &sees, when)? {
                    answers.add(memory);
                }
            }
            Ok((answers.memories, index_state))
        })?;
        let (memories, has_more) = page.of_ranked(memories);
        Ok(Recalled {
            memories,
            has_more,
            remark: question.remark().map(ToOwned::to_owned),
            index_state,
        })
    }

    /// The projects that a scope means for a caller.
    pub(super) fn sees(&self, caller: &Caller, scope: RecallScope) -> Result<Sees> {
        Ok(Sees(match scope {
            RecallScope::Project => Some(self.kernel.projects_seen_by(caller)?),
            RecallScope::Global => Some(vec![String::new()]),
            RecallScope::All => None,
        }))
    }

    /// Applies the contract's formula to the candidates, unless the order is by relevance.
    fn ranked(&self, hits: &[Hit], recall: &Recall, now_ms: u64) -> Vec<Ranked> {
        // A mistake in the file must not cost an agent its memory; `doctor` and `status` report it.
        let days = self.kernel.memory_config().unwrap_or_default().recency_days;
        let mut ranked = Vec::new();
        for hit in hits {
            let recency = score::recency(score::days_between(hit.created_ms, now_ms), days);
            ranked.push(Ranked {
                node: hit.node,
                passage: hit.n,
                relevance: hit.relevance,
                final_score: score::final_score(hit.relevance, recency),
                around: Vec::new(),
            });
        }
        match recall.sort {
            RecallSort::FinalScore => {
                ranked.sort_by(|a, b| b.final_score.total_cmp(&a.final_score));
            }
            // By the displayed number; if that is equal, the newer first.
            RecallSort::Relevance => {
                let shown = |it: &Ranked| score::rounded(it.relevance);
                ranked.sort_by(|a, b| shown(b).total_cmp(&shown(a)));
            }
            RecallSort::RelevanceAndAge => {}
        }
        ranked
    }

    /// Records the event of the recall and the access counts, in the background.
    pub(super) fn note_recall(&self, caller: &Caller, recall: &Recall, found: &[RecalledMemory]) {
        if !self.kernel.records_read() {
            return;
        }
        let top: Vec<Value> = found
            .iter()
            .map(|hit| json!({ "memory_id": hit.memory.id, "relevance": score::rounded(hit.relevance), "final_score": score::rounded(hit.final_score) }))
            .collect();
        let ids: Vec<String> = found.iter().map(|it| it.memory.id.clone()).collect();
        let mut data = self.logged_query(&recall.query);
        data["result_count"] = found.len().into();
        data["top_results"] = top.into();
        self.kernel
            .later()
            .write(&caller.principal.space, move |tx| {
                let now = tx.now().ms();
                for id in &ids {
                    let count = access(&**tx, id)?.count + 1;
                    let last_ms = Some(now);
                    ACCESS.set(tx, id, &Access { count, last_ms })?;
                }
                tx.record("MemoryRecalledEvent", data)?;
                Ok(())
            });
    }

    /// What the log keeps of a query. A prompt may contain a password, and what is signed into the
    /// log cannot be removed: so it is a keyed hash, by which equal queries can be recognized, and
    /// the text only if the configuration asks for it. A mistake in the file does not ask for it.
    fn logged_query(&self, query: &str) -> Value {
        let secret = self.kernel.log().signer().secret();
        let hash = Hash::keyed(QUERY_HASH, &secret, query.trim().as_bytes());
        let mut data = json!({ "query_hash": hash.to_string() });
        if self.kernel.memory_config().is_ok_and(|it| it.logs_queries) {
            data["query"] = query.into();
        }
        data
    }
}

fn filter_of(recall: &Recall, sees: &Sees) -> Filter {
    let asked = match recall.memory_type {
        Some(memory_type) => vec![memory_type],
        None => MemoryType::ALL.to_vec(),
    };
    let mut any_facet: Vec<String> = asked.iter().map(|it| format!("memory_type={it}")).collect();
    let mut kinds = vec![Kind::Memory];
    if recall.daily_logs && asked.contains(&MemoryType::Experience) {
        kinds.push(Kind::Document);
        any_facet.push(format!("source={}", roots::OMI.name));
    }
    Filter {
        kinds,
        facets: recall.tags.iter().map(|it| format!("tag={it}")).collect(),
        any_facet,
        memories_of: sees.0.clone().unwrap_or_default(),
        as_of_ms: recall.as_of_ms,
        ..Filter::default()
    }
}

/// The memories around an answer in its session. For one of several passages there are none.
fn around(search: &Search<'_>, ranked: &Ranked, recall: &Recall) -> Vec<(NodeId, i32)> {
    if recall.context == 0 {
        return Vec::new();
    }
    let filter = Filter {
        kinds: vec![Kind::Memory],
        as_of_ms: recall.as_of_ms,
        ..Filter::default()
    };
    search.around(ranked.node, ranked.passage, recall.context, &filter)
}

/// `None` for other files beside the daily logs, which are not memories.
fn recalled(
    tx: &dyn ReadTx,
    ranked: &Ranked,
    sees: &Sees,
    when: When,
) -> Result<Option<RecalledMemory>> {
    let node = match tx.node(ranked.node, when)? {
        Some(node) => node,
        // Imported later: it is older than its row in this store.
        None => match tx.node(ranked.node, When::Now)? {
            Some(node) => node,
            None => return Ok(None),
        },
    };
    let mut memory = Memory::of(&node);
    let part = if node.kind == Kind::Memory {
        part(tx, ranked, node.body.len())?
    } else {
        let Some(entry) = daily_entry(tx, ranked, &node)? else {
            return Ok(None);
        };
        memory.content = entry;
        0..memory.content.len()
    };
    let mut context = Vec::new();
    for &(near, offset) in &ranked.around {
        let memory = tx.node(near, when)?.map(|node| Memory::of(&node));
        context.extend(memory.map(|memory| Neighbor { memory, offset }));
    }
    Ok(Some(RecalledMemory {
        part,
        context,
        memory,
        relevance: ranked.relevance,
        final_score: ranked.final_score,
        related: related(tx, ranked.node, sees, when)?,
        near_identical: Vec::new(),
    }))
}

/// The entry of a daily log that was found.
fn daily_entry(tx: &dyn ReadTx, ranked: &Ranked, node: &Node) -> Result<Option<String>> {
    if !context::is_daily_log(&node.key) {
        return Ok(None);
    }
    let passages = tx.passages(ranked.node)?;
    let found = passages.iter().find(|it| it.n == ranked.passage);
    let start = found.and_then(|it| usize::try_from(it.start).ok());
    Ok(context::entry_at(&node.body, start.unwrap_or(0)))
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
pub(super) fn related(tx: &dyn ReadTx, id: NodeId, sees: &Sees, when: When) -> Result<Vec<String>> {
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
    for end in ends {
        let node = tx.node(end, when)?;
        let node = node.filter(|it| it.kind != Kind::Memory || sees.has(&it.project));
        names.extend(node.map(|it| memory_id(&it)));
        if names.len() >= RELATED_MAX {
            break;
        }
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
    Ok(ACCESS.get_readable(tx, id)?.unwrap_or_default())
}

impl RowCodec for Access {
    fn to_bytes(&self) -> Result<Vec<u8>> {
        let row = json!({ "count": self.count, "last_ms": self.last_ms });
        Ok(row.to_string().into_bytes())
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        Some(Self {
            count: value["count"].as_u64().unwrap_or(0),
            last_ms: value["last_ms"].as_u64(),
        })
    }
}
