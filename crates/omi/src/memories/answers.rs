//! Builds an answer: memories that a query names by id, and no two with the same words.

use super::recall::{Recall, RecalledMemory, Sees, related};
use super::{Memory, find_memory, node_id};
use crate::Omi;
use kenning_core::{Hlc, Kind, Result};
use kenning_kernel::Caller;
use kenning_memory::duplicates::bare;
use kenning_memory::score;
use kenning_memory::types::MemoryType;
use kenning_store::{Node, ReadTx, When};
use std::collections::HashMap;

/// At most this many ids in a query.
const NAMED_MAX: usize = 20;

/// The part of a long memory that is returned when it is asked for by its id.
const PART_CHARS: usize = 6_000;

/// The answers to a query, best first. Memories with the same words share one answer.
pub(super) struct Answers {
    pub(super) memories: Vec<RecalledMemory>,
    limit: usize,
    by_words: HashMap<(MemoryType, String), usize>,
}

impl Answers {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            memories: Vec::new(),
            limit,
            by_words: HashMap::new(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.memories.len() >= self.limit
    }

    /// Adds an answer, unless a better one says the same or there are enough.
    pub(super) fn add(&mut self, found: RecalledMemory) {
        if !self.add_same(&found.memory) && !self.is_full() {
            let words = (found.memory.memory_type, bare(&found.memory.content));
            self.by_words.insert(words, self.memories.len());
            self.memories.push(found);
        }
    }

    /// Adds a memory to the answer with the same words; false if there is none.
    pub(super) fn add_same(&mut self, memory: &Memory) -> bool {
        let words = (memory.memory_type, bare(&memory.content));
        let Some(&at) = self.by_words.get(&words) else {
            return false;
        };
        let first = &mut self.memories[at];
        if first.memory.id != memory.id && !first.near_identical.contains(&memory.id) {
            first.near_identical.push(memory.id.clone());
        }
        true
    }
}

impl Omi {
    /// The memories that a query names by their ids, in its order, and whether it contains nothing
    /// else. So `related_memories` of an answer can be used as a query.
    pub(super) fn named_memories(
        &self,
        caller: &Caller,
        recall: &Recall,
        now_ms: u64,
    ) -> Result<(Vec<RecalledMemory>, bool)> {
        let words: Vec<&str> = recall
            .query
            .split(|c: char| c.is_whitespace() || c == ',')
            .map(|it| it.trim_matches(['"', '\'', '`', '[', ']', '(', ')', '.', '?']))
            .filter(|it| !it.is_empty())
            .collect();
        let projects = self.kernel.projects_seen_by(caller)?;
        // A word that a caller chose as an id may also be a search term; a generated id is only an
        // id.
        let are_all_ids = words.len() <= NAMED_MAX
            && self.kernel.log().read(&caller.principal.space, |tx| {
                for word in &words {
                    if find_memory(tx, &projects, word)?.is_none() {
                        return Ok(false);
                    }
                }
                Ok(!words.is_empty())
            })?;
        let can_name = |word: &str| node_id(word).is_some() || words.len() == 1 || are_all_ids;
        let mut named: Vec<&str> = Vec::new();
        for word in words.iter().copied().filter(|it| can_name(it)) {
            if !named.contains(&word) && named.len() < NAMED_MAX {
                named.push(word);
            }
        }
        if named.is_empty() {
            return Ok((Vec::new(), false));
        }
        let is_all = words.iter().all(|it| node_id(it).is_some()) || are_all_ids && words.len() > 1;
        let when = recall
            .as_of_ms
            .map_or(When::Now, |ms| When::At(Hlc::end_of_ms(ms)));
        let days = self.kernel.memory_config().unwrap_or_default().recency_days;
        let sees = self.sees(caller, recall.scope)?;
        let found = self.kernel.log().read(&caller.principal.space, |tx| {
            let mut found = Vec::new();
            for id in named {
                if let Some(node) = find_memory(tx, &projects, id)?
                    && let Some(memory) = named_memory(tx, (&node, &sees), when)?
                    && is_asked_for(&memory.memory, recall, is_all)
                    && sees.has(&memory.memory.project)
                {
                    found.push(memory);
                }
            }
            Ok(found)
        })?;
        let mut found: Vec<RecalledMemory> = found;
        for it in &mut found {
            let recency = score::recency(score::days_between(it.memory.created_ms, now_ms), days);
            it.final_score = score::final_score(it.relevance, recency);
        }
        let is_all = is_all && !found.is_empty();
        Ok((found, is_all))
    }
}

/// Filters apply to named memories too. A superseded memory is found only by a generated id.
fn is_asked_for(memory: &Memory, recall: &Recall, is_id: bool) -> bool {
    recall.memory_type.is_none_or(|it| it == memory.memory_type)
        && recall.tags.iter().all(|it| memory.tags.contains(it))
        && (is_id || memory.superseded_by.is_none())
}

fn named_memory(
    tx: &dyn ReadTx,
    (node, sees): (&Node, &Sees),
    when: When,
) -> Result<Option<RecalledMemory>> {
    let Some(node) = tx.node(node.id, when)?.filter(|it| it.kind == Kind::Memory) else {
        return Ok(None);
    };
    let memory = Memory::of(&node);
    let end = memory.content.char_indices().nth(PART_CHARS);
    Ok(Some(RecalledMemory {
        part: 0..end.map_or(memory.content.len(), |it| it.0),
        related: related(tx, node.id, sees, when)?,
        memory,
        relevance: 1.0,
        final_score: 1.0,
        near_identical: Vec::new(),
        context: Vec::new(),
    }))
}
