//! What an index takes in, worked out before the index is locked.
//!
//! Counting words and adding up vectors takes most of the time and needs no index. Whoever follows the log
//! does it while others search, and then changes the index in a short time. Whoever writes a long text does it
//! even before the text is stored ([`Ready`]): then nobody who follows the log has to.

use crate::tokens::term_of;
use kenning_core::{Hash, Kind};
use kenning_embed::{TOKENS_MAX, Table, TableVector, TokenId};
use kenning_store::{Node, Passage};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// Passages that wait in [`Ready`], at most: about 64 MiB.
const READY_MAX: usize = 32_000;

/// The passages of a node.
pub(crate) struct Prepared {
    pub(crate) passages: Vec<PreparedPassage>,
}

pub(crate) struct PreparedPassage {
    /// Which passage of its node.
    pub(crate) n: u32,
    /// Whether it holds a question.
    pub(crate) asks: bool,
    words: String,
    /// Where each of its terms stands in `words`, and how often it occurs.
    counts: Vec<(u32, u32, u32)>,
    pub(crate) ids: Vec<TokenId>,
    pub(crate) vector: TableVector,
    pub(crate) text: [u8; 16],
}

impl Prepared {
    pub(crate) fn of(kind: Kind, title: &str, passages: &[Passage]) -> Self {
        let passages = passages.iter();
        let passages = passages.map(|it| PreparedPassage::of(kind, title, it));
        Self {
            passages: passages.collect(),
        }
    }

    /// How many passages it has.
    pub(crate) fn len(&self) -> usize {
        self.passages.len()
    }
}

impl PreparedPassage {
    fn of(kind: Kind, title: &str, passage: &Passage) -> Self {
        let table = Table::built_in();
        let words = format!("{} {}", passage.tokens, passage.title_tokens);
        let mut counts: HashMap<&str, (u32, u32)> = HashMap::new();
        let mut at = 0;
        for word in words.split(' ') {
            if !word.is_empty() {
                let start = u32::try_from(at).unwrap_or(u32::MAX);
                counts.entry(term_of(word)).or_insert((start, 0)).1 += 1;
            }
            at += word.len() + 1;
        }
        let length = |it: &str| u32::try_from(it.len()).unwrap_or(u32::MAX);
        let counts = counts.iter();
        let counts = counts.map(|(term, (start, n))| (*start, start + length(term), *n));
        let counts = counts.collect();
        // A title that is no part of the text, such as the date of a log, has no tokens.
        let is_titled =
            !title.is_empty() && (kind != Kind::Document || !passage.title_tokens.is_empty());
        let mut ids = if is_titled {
            table.ids(title)
        } else {
            Vec::new()
        };
        ids.extend(table.ids(&passage.text));
        ids.truncate(TOKENS_MAX);
        Self {
            n: passage.n,
            asks: passage.text.contains(['?', '\u{ff1f}']),
            counts,
            words,
            vector: table.passage(&ids),
            ids,
            text: text_hash(&passage.text),
        }
    }

    /// Its terms, and how often each occurs.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&str, u32)> {
        let term = |start: u32, end: u32| self.words.get(start as usize..end as usize);
        let counts = self.counts.iter();
        counts.filter_map(move |&(start, end, n)| Some((term(start, end)?, n)))
    }
}

/// What a text is found by among vectors that somebody else made.
pub(crate) fn text_hash(text: &str) -> [u8; 16] {
    let mut short = [0; 16];
    short.copy_from_slice(&Hash::of(text.as_bytes()).0[..16]);
    short
}

/// Texts that are being stored, prepared by those who store them. Each is used once; those that nobody came for
/// make room.
#[derive(Default)]
pub(crate) struct Ready(Mutex<VecDeque<(Hash, Arc<Prepared>)>>);

impl Ready {
    /// Prepares the passages of a node that is about to be stored.
    pub(crate) fn put(&self, kind: Kind, title: &str, passages: &[Passage]) {
        let prepared = Arc::new(Prepared::of(kind, title, passages));
        let key = key_of(kind, title, passages);
        let mut ready = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ready.push_back((key, prepared));
        while ready.iter().map(|it| it.1.len()).sum::<usize>() > READY_MAX && ready.len() > 1 {
            ready.pop_front();
        }
    }

    /// The passages of a node, prepared now unless they are ready.
    pub(crate) fn take(&self, node: &Node, passages: &[Passage]) -> Arc<Prepared> {
        let known = {
            let mut ready = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Most texts are short, and mostly nothing waits.
            let n = passages.len();
            let is_possible = ready.iter().any(|it| it.1.len() == n);
            is_possible.then(|| {
                let key = key_of(node.kind, &node.title, passages);
                let at = ready.iter().position(|it| it.0 == key)?;
                ready.remove(at)
            })
        };
        match known.flatten() {
            Some((_, prepared)) => prepared,
            None => Arc::new(Prepared::of(node.kind, &node.title, passages)),
        }
    }
}

/// Everything that [`Prepared::of`] depends on.
fn key_of(kind: Kind, title: &str, passages: &[Passage]) -> Hash {
    let texts = passages.iter().flat_map(|passage| {
        [&passage.text, &passage.tokens, &passage.title_tokens].map(String::as_str)
    });
    let mut bytes: Vec<u8> = Vec::new();
    for text in [kind.as_str(), title].into_iter().chain(texts) {
        bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    for passage in passages {
        bytes.extend_from_slice(&passage.n.to_le_bytes());
    }
    Hash::of(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_core::{Hlc, NodeId};

    fn node(title: &str) -> Node {
        Node {
            id: NodeId([1; 16]),
            kind: Kind::Document,
            project: String::new(),
            key: String::new(),
            title: title.to_owned(),
            body: String::new(),
            props: serde_json::Map::new(),
            created: Hlc::default(),
            updated: Hlc::default(),
            hash: Hash::default(),
            rev: 1,
        }
    }

    #[test]
    fn what_a_writer_prepared_is_used_once_and_only_for_the_same_text() {
        let ready = Ready::default();
        let n_ready = || ready.0.lock().unwrap().len();
        let text = "the lantern of the harbor\n\n".repeat(200);
        let pieces = crate::passages("Harbor", &text);
        ready.put(Kind::Document, "Harbor", &pieces);
        let mut other = pieces.clone();
        other[0].text.push('!');
        ready.take(&node("Harbor"), &other);
        ready.take(&node("Port"), &pieces);
        assert_eq!(n_ready(), 1, "not what was prepared");
        let taken = ready.take(&node("Harbor"), &pieces);
        assert_eq!((taken.len(), n_ready()), (pieces.len(), 0));
        for n in 0..3 * READY_MAX / pieces.len() {
            ready.put(Kind::Document, &n.to_string(), &pieces);
        }
        assert!(n_ready() * pieces.len() <= READY_MAX);
        ready.take(&node("0"), &pieces);
        assert!(n_ready() > 1, "the oldest made room");
    }
}
