//! What ranking needs of one space, in memory.
//!
//! Everything here is derived from nodes and passages, and is made again when a process starts. One
//! entry a passage; an entry whose node changed is dead, and when half of them are, the others are copied to
//! a new index (`compact`).

mod all_words;

mod entry;

mod admission;
mod threads;

pub(crate) use admission::Admission;
pub use all_words::WithAllWords;
pub use entry::{Entry, Filter};
pub(crate) use entry::{Gate, Posting};
pub(crate) use threads::{NO_THREAD, Threads};

use crate::prepared::{Prepared, PreparedPassage};
use crate::scan::Vectors;
use crate::spread::Spread;
use crate::tokens::{name_key, term_of};
use kenning_core::{Hash, Hlc, Kind, NodeId};
use kenning_embed::{DIMENSIONS, Model, Table, TokenId};
use kenning_store::{Node, Passage};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// Vectors from which on it can be told what is unusual, and pairs that are looked at for it.
const UNRELATED_MIN: usize = 50;
const UNRELATED_PAIRS: usize = 200;

/// Properties that a gate has a bit for.
const FACET_BITS: u32 = 64;

/// Words by which alike passages are looked for, and passages that each may propose.
const RARE_TERMS: usize = 5;
const RARE_POSTINGS: usize = 200;

/// What ranking needs of one space.
#[derive(Debug)]
pub struct Index {
    pub(crate) table: &'static Table,
    /// No other index of this process has it.
    pub(crate) id: u64,
    /// The last event that was taken in.
    pub(crate) seq: u64,
    pub(crate) entries: Vec<Entry>,
    pub(crate) gates: Vec<Gate>,
    /// How many terms each passage has.
    pub(crate) lengths: Vec<f32>,
    pub(crate) by_node: HashMap<NodeId, Vec<u32>>,
    pub(crate) threads: Threads,
    /// First passages by what their nodes are called; those that are dead stay until it is compacted.
    pub(crate) names: HashMap<u64, Vec<u32>>,
    pub(crate) alive: usize,
    /// How many living passages are of each kind.
    pub(crate) kinds: HashMap<Kind, usize>,
    pub(crate) facets: HashMap<String, u32>,
    pub(crate) terms: HashMap<Box<str>, u32>,
    pub(crate) postings: Vec<Vec<Posting>>,
    /// How many living passages have each term.
    pub(crate) term_frequency: Vec<u32>,
    pub(crate) sum_terms: u64,
    /// The distinct terms of each passage, one passage after the other.
    pub(crate) distinct: Vec<u32>,
    pub(crate) tokens: Vec<TokenId>,
    /// How many living passages have each token of the table.
    pub(crate) token_frequency: Vec<u32>,
    pub(crate) sum_tokens: u64,
    pub(crate) vectors: Vectors,
    /// How many entries a snapshot has.
    pub(crate) kept: usize,
    /// The last event of that snapshot.
    pub(crate) kept_seq: u64,
    /// How often something was erased since it was made: its words are still here, and on no account in a
    /// snapshot.
    pub(crate) n_erasures: u32,
    /// Vectors of another model than the table, by the hash of the passage's text.
    pub(crate) other: Option<OtherModel>,
}

/// The vectors of a model that configuration chose.
#[derive(Debug)]
pub(crate) struct OtherModel {
    pub(crate) model: Model,
    pub(crate) seq: u64,
    pub(crate) by_text: HashMap<[u8; 16], u32>,
    pub(crate) vectors: Vectors,
    /// Which vector each passage has.
    pub(crate) places: Vec<u32>,
    /// How many living passages have one.
    pub(crate) covered: usize,
}

/// A passage without a vector.
pub(crate) const NO_PLACE: u32 = u32::MAX;

impl Index {
    /// Of an empty space.
    pub fn new() -> Self {
        let table = Table::built_in();
        Self {
            table,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            seq: 0,
            entries: Vec::new(),
            gates: Vec::new(),
            lengths: Vec::new(),
            by_node: HashMap::new(),
            threads: Threads::default(),
            names: HashMap::new(),
            alive: 0,
            kinds: HashMap::new(),
            facets: HashMap::new(),
            terms: HashMap::new(),
            postings: Vec::new(),
            term_frequency: Vec::new(),
            sum_terms: 0,
            distinct: Vec::new(),
            tokens: Vec::new(),
            token_frequency: vec![0; table.len()],
            sum_tokens: 0,
            vectors: Vectors::new(DIMENSIONS),
            kept: 0,
            kept_seq: 0,
            n_erasures: 0,
            other: None,
        }
    }

    /// How many passages can be found.
    pub fn len(&self) -> usize {
        self.alive
    }

    /// Whether nothing can be found.
    pub fn is_empty(&self) -> bool {
        self.alive == 0
    }

    /// Whether what lives should be copied: it would pay, or what is dead was erased.
    pub(crate) fn is_to_be_copied(&self) -> bool {
        let is_mostly_dead = self.entries.len() > 1_000 && self.alive * 2 < self.entries.len();
        is_mostly_dead || self.n_erasures > 0
    }

    /// Takes in a node with its passages, in place of what was known of it.
    pub fn put(&mut self, node: &Node, passages: &[Passage]) {
        self.take_in(node, &Prepared::of(node.kind, &node.title, passages));
    }

    /// Takes in what was prepared of a node, in place of what was known of it.
    pub(crate) fn take_in(&mut self, node: &Node, prepared: &Prepared) {
        self.remove(node.id);
        let facets: Box<[u32]> = facets(node).map(|it| self.facet_or_new(it)).collect();
        let thread = self.threads.number_of(node);
        let first = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        for passage in &prepared.passages {
            self.push(node, passage, thread, facets.clone());
        }
        if !prepared.passages.is_empty() {
            for name in names_of(node) {
                self.names.entry(name).or_default().push(first);
            }
        }
    }

    fn push(&mut self, node: &Node, prepared: &PreparedPassage, thread: u32, facets: Box<[u32]>) {
        let Ok(at) = u32::try_from(self.entries.len()) else {
            return;
        };
        let terms: u32 = prepared.counts().map(|it| it.1).sum();
        let distinct_start = self.distinct.len();
        for (word, count) in prepared.counts() {
            let term = self.term_or_new(word);
            self.postings[term as usize].push(Posting { entry: at, count });
            self.term_frequency[term as usize] += 1;
            self.distinct.push(term);
        }
        let distinct = u32::try_from(self.distinct.len() - distinct_start).unwrap_or(u32::MAX);
        self.vectors.push(&prepared.vector);
        let mut ids = prepared.ids.clone();
        let tokens_start = self.tokens.len();
        self.tokens.extend_from_slice(&ids);
        let tokens = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        for_each_distinct(&mut ids, |id| self.token_frequency[usize::from(id)] += 1);
        self.sum_terms += u64::from(terms);
        self.sum_tokens += u64::from(tokens);
        let ended_ms = node.props.get("superseded_at_ms").and_then(Value::as_u64);
        self.lengths.push(terms as f32);
        let entry = Entry {
            node: node.id,
            n: prepared.n,
            created: made(node),
            thread,
            asks: prepared.asks,
            facets,
            terms,
            distinct_start,
            distinct,
            tokens_start,
            tokens,
            text: prepared.text,
        };
        let ended_ms = ended_ms.unwrap_or(u64::MAX);
        self.gates.push(Gate::of(&entry, ended_ms, Some(node.kind)));
        *self.kinds.entry(node.kind).or_default() += 1;
        self.entries.push(entry);
        self.threads.insert(&self.entries, at);
        self.by_node.entry(node.id).or_default().push(at);
        self.alive += 1;
    }

    /// Counts everything that entries imply.
    pub(crate) fn count_again(&mut self) {
        self.lengths = self.entries.iter().map(|it| it.terms as f32).collect();
        self.term_frequency = self
            .postings
            .iter()
            .map(|it| u32::try_from(it.len()).unwrap_or(u32::MAX))
            .collect();
        for at in 0..self.entries.len() {
            if !self.gates[at].alive {
                continue;
            }
            let Ok(place) = u32::try_from(at) else { break };
            let entry = &self.entries[at];
            self.threads.insert(&self.entries, place);
            self.by_node.entry(entry.node).or_default().push(place);
            self.alive += 1;
            *self.kinds.entry(self.gates[at].kind).or_default() += 1;
            self.sum_terms += u64::from(entry.terms);
            self.sum_tokens += u64::from(entry.tokens);
            let mut ids = self.tokens(place).to_vec();
            for_each_distinct(&mut ids, |id| self.token_frequency[usize::from(id)] += 1);
        }
    }

    /// Forgets a node.
    pub fn remove(&mut self, node: NodeId) {
        let places = self.by_node.remove(&node).unwrap_or_default();
        let (Some(&first), Some(&last)) = (places.first(), places.last()) else {
            return;
        };
        // The passages of a node stand side by side, so each word's list loses them at once.
        let of_all = places.iter().flat_map(|&at| self.distinct_terms(at));
        let mut terms: Vec<u32> = of_all.copied().collect();
        terms.sort_unstable();
        terms.dedup();
        for term in terms {
            let postings = &mut self.postings[term as usize];
            let from = postings.partition_point(|it| it.entry < first);
            let to = postings.partition_point(|it| it.entry <= last);
            postings.drain(from..to);
            self.term_frequency[term as usize] = u32::try_from(postings.len()).unwrap_or(u32::MAX);
        }
        for at in places {
            let entry = &self.entries[at as usize];
            self.gates[at as usize].alive = false;
            if let Some(n) = self.kinds.get_mut(&self.gates[at as usize].kind) {
                *n -= 1;
            }
            self.threads.remove(&self.entries, at);
            let (terms, start, tokens) = (entry.terms, entry.tokens_start, entry.tokens);
            self.sum_terms -= u64::from(terms);
            self.sum_tokens -= u64::from(tokens);
            self.alive -= 1;
            let mut ids = self.tokens[start..start + tokens as usize].to_vec();
            for_each_distinct(&mut ids, |id| self.token_frequency[usize::from(id)] -= 1);
        }
    }

    pub(crate) fn distinct_terms(&self, at: u32) -> &[u32] {
        let entry = &self.entries[at as usize];
        &self.distinct[entry.distinct_start..][..entry.distinct as usize]
    }

    /// Passages that share one of the rarest words of this one, which others have at all.
    pub(crate) fn sharing_rare_terms(&self, at: u32) -> Vec<u32> {
        let frequency = |term: u32| self.term_frequency[term as usize];
        let mut terms = self.distinct_terms(at).to_vec();
        terms.retain(|&term| frequency(term) > 1);
        terms.sort_unstable_by_key(|&term| frequency(term));
        terms.truncate(RARE_TERMS);
        let mut found = Vec::new();
        for term in terms {
            // The latest: what is alike was mostly written at about the same time.
            let postings = self.postings[term as usize]
                .iter()
                .rev()
                .take(RARE_POSTINGS);
            found.extend(postings.map(|it| it.entry));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn facet_or_new(&mut self, facet: String) -> u32 {
        let next = u32::try_from(self.facets.len()).unwrap_or(u32::MAX);
        *self.facets.entry(facet).or_insert(next)
    }

    fn term_or_new(&mut self, word: &str) -> u32 {
        if let Some(&term) = self.terms.get(word) {
            return term;
        }
        let term = u32::try_from(self.postings.len()).unwrap_or(u32::MAX);
        self.terms.insert(word.into(), term);
        self.postings.push(Vec::new());
        self.term_frequency.push(0);
        term
    }

    /// Whether a passage of a node has a word of a text.
    pub fn shares_a_word(&self, text: &str, node: NodeId) -> bool {
        let passages = self.passages_of(node);
        let words = crate::tokens(text);
        let terms = words.iter().filter_map(|word| self.term(word));
        terms.map(|(term, _)| &self.postings[term]).any(|postings| {
            let has = |at: &u32| postings.binary_search_by_key(at, |it| it.entry).is_ok();
            passages.iter().any(has)
        })
    }

    /// The number of a term and how many passages have it.
    pub(crate) fn term(&self, word: &str) -> Option<(usize, u32)> {
        let term = *self.terms.get(term_of(word))? as usize;
        Some((term, self.term_frequency[term])).filter(|it| it.1 > 0)
    }

    pub(crate) fn mean_terms(&self) -> f64 {
        self.sum_terms as f64 / (self.alive as f64).max(1.0)
    }

    pub(crate) fn mean_tokens(&self) -> f64 {
        self.sum_tokens as f64 / (self.alive as f64).max(1.0)
    }

    /// How rare something is that this many passages have.
    pub(crate) fn rarity(&self, frequency: u32) -> f64 {
        let (n, df) = (self.alive as f64, f64::from(frequency));
        (1.0 + (n - df + 0.5) / (df + 0.5)).ln()
    }

    pub(crate) fn token_rarity(&self, id: TokenId) -> f64 {
        self.rarity(self.token_frequency[usize::from(id)])
    }

    /// The tokens of a passage.
    pub(crate) fn tokens(&self, at: u32) -> &[TokenId] {
        let entry = &self.entries[at as usize];
        &self.tokens[entry.tokens_start..][..entry.tokens as usize]
    }

    /// First passages of living nodes that are called exactly so, or have it as an alias.
    pub(crate) fn named(&self, name: &str) -> impl Iterator<Item = u32> + '_ {
        let known = self.names.get(&name_hash(name));
        let known = known.map_or(&[][..], Vec::as_slice).iter().copied();
        known.filter(|&at| self.gates[at as usize].alive)
    }

    pub(crate) fn passages_of(&self, node: NodeId) -> &[u32] {
        self.by_node.get(&node).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn first_passage(&self, node: NodeId) -> Option<u32> {
        let all = self.by_node.get(&node)?;
        all.iter()
            .copied()
            .find(|&it| self.entries[it as usize].n == 0)
    }

    /// The beginning of a node's text as a vector of the built-in table.
    pub fn table_vector(&self, node: NodeId) -> Option<Vec<f32>> {
        let at = self.first_passage(node)?;
        Some(self.vectors.get(at as usize))
    }

    /// Whether sketches choose which vectors are looked at.
    pub fn is_sketched(&self) -> bool {
        self.vectors.is_sketched()
    }

    pub(crate) fn is_alive(&self, at: usize) -> bool {
        self.gates[at].alive
    }

    fn alive(&self) -> impl Iterator<Item = &Entry> {
        let both = self.entries.iter().zip(&self.gates);
        both.filter(|(_, gate)| gate.alive).map(|(entry, _)| entry)
    }

    /// Whether the chosen model has seen nine passages in ten.
    pub(crate) fn is_mostly_embedded(&self) -> bool {
        self.other
            .as_ref()
            .is_some_and(|it| it.covered * 10 >= self.alive * 9)
    }

    /// Notes which vector of the chosen model each passage has.
    pub(crate) fn place_other_vectors(&mut self) {
        let Some(other) = &mut self.other else { return };
        let place = |entry: &Entry| other.by_text.get(&entry.text).copied().unwrap_or(NO_PLACE);
        other.places = self.entries.iter().map(place).collect();
        let both = other.places.iter().zip(&self.gates);
        other.covered = both
            .filter(|(place, gate)| **place != NO_PLACE && gate.alive)
            .count();
    }

    /// How many passages wait for a vector by the chosen model, of how many.
    pub fn waiting(&self) -> (usize, usize) {
        let Some(other) = &self.other else {
            return (0, self.alive);
        };
        let waiting = self
            .alive()
            .filter(|it| !other.by_text.contains_key(&it.text));
        (waiting.count(), self.alive)
    }

    /// Passages that wait for a vector by the chosen model, at most so many.
    pub fn lacking(&self, limit: usize) -> Vec<(NodeId, u32)> {
        let Some(other) = &self.other else {
            return Vec::new();
        };
        let lacking = self
            .alive()
            .filter(|it| !other.by_text.contains_key(&it.text));
        lacking
            .take(limit)
            .map(|entry| (entry.node, entry.n))
            .collect()
    }

    /// How the chosen model's cosines spread between passages that have nothing to do with each other.
    /// `None` while there are too few to tell.
    pub(crate) fn unrelated(&self) -> Option<Spread> {
        let other = self.other.as_ref()?;
        let n = other.vectors.len();
        if n < UNRELATED_MIN {
            return None;
        }
        // Far apart in the order of writing, so rarely about the same.
        let step = (n / UNRELATED_PAIRS).max(1);
        let pairs = (0..n / 2).step_by(step);
        let cosines = pairs.map(|at| {
            let vector = other.vectors.get(at);
            f64::from(other.vectors.cosine(at + n / 2, &vector))
        });
        Some(Spread::of(&cosines.collect::<Vec<_>>()))
    }

    /// The place of the chosen model's vector for a passage, if it has one.
    pub(crate) fn other_vector(&self, at: usize) -> Option<(&OtherModel, usize)> {
        let other = self.other.as_ref()?;
        let place = other.places.get(at).copied().filter(|&it| it != NO_PLACE)?;
        Some((other, place as usize))
    }
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

/// The bit of a property in a [`Gate`], for the first ones.
fn facet_bit(facet: u32) -> Option<u64> {
    (facet < FACET_BITS).then(|| 1 << facet)
}

fn bits(facets: &[u32]) -> u64 {
    let bits = facets.iter().filter_map(|&it| facet_bit(it));
    bits.fold(0, |all, bit| all | bit)
}

/// When a node was made: an imported one where it came from.
fn made(node: &Node) -> Hlc {
    let ms = node.created_ms();
    if ms < node.created.ms() {
        Hlc::from_ms(ms)
    } else {
        node.created
    }
}

pub(crate) fn for_each_distinct(ids: &mut Vec<TokenId>, mut work: impl FnMut(TokenId)) {
    ids.sort_unstable();
    ids.dedup();
    ids.iter().for_each(|&id| work(id));
}

/// Title and aliases of a node, as they are looked up.
fn names_of(node: &Node) -> Vec<u64> {
    let aliases = node.props.get("aliases").and_then(Value::as_array);
    let aliases = aliases.into_iter().flatten().filter_map(Value::as_str);
    let names = std::iter::once(node.title.as_str()).chain(aliases);
    let mut hashes: Vec<u64> = names
        .filter(|name| !name.trim().is_empty())
        .map(name_hash)
        .collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

fn name_hash(name: &str) -> u64 {
    let mut short = [0; 8];
    short.copy_from_slice(&Hash::of(name_key(name).as_bytes()).0[..8]);
    u64::from_le_bytes(short)
}

/// The properties of a node that a filter may name.
fn facets(node: &Node) -> impl Iterator<Item = String> {
    let text = |name: &'static str| {
        let value = node.props.get(name).and_then(Value::as_str);
        value.map(|value| format!("{name}={value}"))
    };
    let tags = node.props.get("tags").and_then(Value::as_array);
    let tags: Vec<String> = tags
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|it| format!("tag={it}"))
        .collect();
    // What belongs to no project says so, so that it can be asked for.
    let project = Some(format!("project={}", node.project));
    let words = ["memory_type", "type", "status", "source", "namespace"].map(text);
    let named = |name: &str| node.props.get(name).and_then(Value::as_str);
    let memory = match node.kind {
        Kind::Memory => memory_of(&node.project),
        // A file of the context says in its properties whose it is.
        _ if named("source") == Some(CONTEXT_SOURCE) => memory_of(named("project").unwrap_or("")),
        _ => NO_MEMORY.to_owned(),
    };
    let words = words.into_iter().chain([project]).flatten();
    words.chain([memory]).chain(tags)
}

/// The source of NOW.md and the daily logs.
const CONTEXT_SOURCE: &str = "omi";

/// The property of everything that is neither a memory nor a file of the context.
const NO_MEMORY: &str = "memory_of=*";

/// The property of a memory of a project. No project is called `*`.
fn memory_of(project: &str) -> String {
    format!("memory_of={project}")
}
