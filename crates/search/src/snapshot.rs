//! An index as bytes, so that a process that starts need not make it again.
//!
//! It is derived, like the index itself: whoever finds none, or one that does not fit, makes a new one.
//! It fits a log if the event that it was taken at is in that log, at that place; what came after is
//! taken in as always. The last bytes are the hash of all before them.

use crate::index::{Entry, Gate, Index, Posting};
use crate::index::{NO_THREAD, Threads};
use crate::scan::Vectors;
use kenning_core::{Hash, Hlc, Kind, NodeId};
use kenning_embed::DIMENSIONS;

/// Changes whenever bytes, tokens or the table do.
const FORMAT: &[u8; 16] = b"kenning-index-03";

const HASH_BYTES: usize = 32;

/// The event that an index was taken at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TakenAt {
    pub(crate) seq: u64,
    pub(crate) event: Hash,
}

/// Which event a snapshot was taken at; `None` if it is damaged or of another kind.
pub(crate) fn taken_at(bytes: &[u8]) -> Option<TakenAt> {
    let (content, hash) = bytes.split_at_checked(bytes.len().checked_sub(HASH_BYTES)?)?;
    if Hash::of(content).0 != hash {
        return None;
    }
    Reader(content).taken_at()
}

/// Up to which event a snapshot goes; `None` if it is damaged or of another kind.
pub fn snapshot_seq(bytes: &[u8]) -> Option<u64> {
    taken_at(bytes).map(|it| it.seq)
}

/// A snapshot that does not name its event yet and has no hash. It is made while the index is locked, so all
/// that needs no index is left out.
pub(crate) struct Unsealed {
    bytes: Vec<u8>,
    /// The event that it was taken at.
    pub(crate) seq: u64,
    /// How many entries it has.
    pub(crate) n_entries: usize,
}

impl Unsealed {
    /// The snapshot, taken at the event of this id.
    pub(crate) fn seal(mut self, event: Hash) -> Vec<u8> {
        let start = FORMAT.len() + size_of::<u64>();
        if let Some(place) = self.bytes.get_mut(start..start + HASH_BYTES) {
            place.copy_from_slice(&event.0);
        }
        let hash = Hash::of(&self.bytes);
        self.bytes.extend_from_slice(&hash.0);
        self.bytes
    }
}

impl Index {
    #[cfg(test)]
    pub(crate) fn to_snapshot(&self, event: Hash) -> Vec<u8> {
        self.unsealed().seal(event)
    }

    pub(crate) fn unsealed(&self) -> Unsealed {
        let mut out = Writer(Vec::new());
        out.0.extend_from_slice(FORMAT);
        out.u64(self.seq);
        out.0.extend_from_slice(&[0; HASH_BYTES]);
        let facets = in_order(self.facets.iter().map(|(name, &at)| (name.as_str(), at)));
        out.list(&facets, |out, it| out.text(it));
        let terms = in_order(self.terms.iter().map(|(name, &at)| (&**name, at)));
        out.list(&terms, |out, it| out.text(it));
        out.list(&self.threads.names(), |out, it| out.text(it));
        let mut names: Vec<_> = self.names.iter().collect();
        names.sort_unstable();
        out.list(&names, |out, (name, entries)| {
            out.u64(**name);
            out.list(entries, |out, it| out.u32(*it));
        });
        out.list(&self.postings, |out, postings| {
            out.numbers(postings, |posting| {
                let both = u64::from(posting.count) << 32 | u64::from(posting.entry);
                both.to_le_bytes()
            });
        });
        out.list(&self.entries, |out, it| {
            out.0.extend_from_slice(&it.node.0);
            out.0.extend_from_slice(&it.text);
            out.u64(it.created.0);
            let asks = u32::from(it.asks);
            for number in [it.n, it.terms, it.distinct, it.tokens, it.thread, asks] {
                out.u32(number);
            }
            out.list(&it.facets, |out, it| out.u32(*it));
        });
        out.list(&self.gates, |out, it| {
            out.u64(it.ended_ms);
            out.text(if it.alive { it.kind.as_str() } else { "" });
        });
        out.numbers(&self.distinct, |it| it.to_le_bytes());
        out.numbers(&self.tokens, |it| it.to_le_bytes());
        let (fine, scales) = self.vectors.fine();
        out.numbers(fine, |it| it.to_le_bytes());
        out.numbers(scales, |it| it.to_le_bytes());
        Unsealed {
            bytes: out.0,
            seq: self.seq,
            n_entries: self.entries.len(),
        }
    }

    /// `None` if the bytes do not hold together.
    pub(crate) fn from_snapshot(bytes: &[u8]) -> Option<Self> {
        let mut index = Self::new();
        let mut from = Reader(bytes.get(..bytes.len().checked_sub(HASH_BYTES)?)?);
        index.seq = from.taken_at()?.seq;
        index.facets = numbered(from.list(Reader::text)?);
        index.terms = numbered(from.list(Reader::text)?);
        let threads = from.list(Reader::text)?;
        let n_threads = threads.len();
        index.threads = Threads::from_names(threads);
        let names = from.list(|from| Some((from.u64()?, from.numbers(u32::from_le_bytes)?)))?;
        index.names = names.into_iter().collect();
        index.postings = from.list(|from| {
            from.numbers(|bytes: [u8; 8]| {
                let [a, b, c, d, rest @ ..] = bytes;
                Posting {
                    entry: u32::from_le_bytes([a, b, c, d]),
                    count: u32::from_le_bytes(rest),
                }
            })
        })?;
        let (mut distinct_start, mut tokens_start) = (0, 0);
        index.entries = from.list(|from| {
            let node = NodeId(from.array()?);
            let text = from.array()?;
            let created = Hlc(from.u64()?);
            let [n, terms, distinct, tokens] = [from.u32()?, from.u32()?, from.u32()?, from.u32()?];
            let (thread, asks) = (from.u32()?, from.u32()? == 1);
            let facets = from.numbers(u32::from_le_bytes)?.into();
            let entry = Entry {
                node,
                n,
                created,
                thread,
                asks,
                facets,
                terms,
                distinct_start,
                distinct,
                tokens_start,
                tokens,
                text,
            };
            distinct_start += distinct as usize;
            tokens_start += tokens as usize;
            Some(entry)
        })?;
        let gates = from.list(|from| Some((from.u64()?, from.text()?)))?;
        index.distinct = from.numbers(u32::from_le_bytes)?;
        index.tokens = from.numbers(u16::from_le_bytes)?;
        let fine = from.numbers(i16::from_le_bytes)?;
        let scales = from.numbers(f32::from_le_bytes)?;
        index.vectors = Vectors::from_fine(DIMENSIONS, fine, scales)?;
        let n = index.entries.len();
        let fits = from.0.is_empty()
            && gates.len() == n
            && index.vectors.len() == n
            && index.distinct.len() == distinct_start
            && index.tokens.len() == tokens_start
            && index
                .distinct
                .iter()
                .all(|&it| (it as usize) < index.postings.len())
            && index
                .tokens
                .iter()
                .all(|&it| usize::from(it) < index.table.len())
            && index
                .postings
                .iter()
                .flatten()
                .all(|it| (it.entry as usize) < n)
            && index.postings.len() == index.terms.len()
            && (index.names.values().flatten()).all(|&it| (it as usize) < n)
            && (index.entries.iter())
                .all(|entry| entry.thread == NO_THREAD || (entry.thread as usize) < n_threads);
        if !fits {
            return None;
        }
        index.gates = gates
            .into_iter()
            .zip(&index.entries)
            .map(|((ended_ms, kind), entry)| Gate::of(entry, ended_ms, kind.parse::<Kind>().ok()))
            .collect();
        index.count_again();
        Some(index)
    }
}

fn in_order<'a>(names: impl Iterator<Item = (&'a str, u32)>) -> Vec<&'a str> {
    let mut names: Vec<(u32, &str)> = names.map(|(name, at)| (at, name)).collect();
    names.sort_unstable();
    names.into_iter().map(|it| it.1).collect()
}

fn numbered<T: Into<K>, K: std::hash::Hash + Eq>(
    names: Vec<T>,
) -> std::collections::HashMap<K, u32> {
    names.into_iter().map(Into::into).zip(0..).collect()
}

struct Writer(Vec<u8>);

impl Writer {
    fn u32(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.u64(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    /// A list of numbers of one size, all at once.
    fn numbers<T: Copy, const N: usize>(&mut self, items: &[T], bytes: impl Fn(T) -> [u8; N]) {
        self.u64(items.len() as u64);
        let start = self.0.len();
        self.0.resize(start + items.len() * N, 0);
        let places = self.0[start..].chunks_exact_mut(N);
        for (place, item) in places.zip(items) {
            place.copy_from_slice(&bytes(*item));
        }
    }

    fn list<T>(&mut self, items: &[T], mut put: impl FnMut(&mut Self, &T)) {
        self.u64(items.len() as u64);
        items.iter().for_each(|it| put(self, it));
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.u64()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn list<T>(&mut self, mut get: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = usize::try_from(self.u64()?).ok()?;
        // No item is smaller than a byte: a length that cannot be is refused before it is believed.
        let mut items = Vec::with_capacity(length.min(self.0.len()));
        for _ in 0..length {
            items.push(get(self)?);
        }
        Some(items)
    }

    /// A list of items that all have `N` bytes.
    fn numbers<const N: usize, T>(&mut self, get: impl Fn([u8; N]) -> T) -> Option<Vec<T>> {
        let length = usize::try_from(self.u64()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length.checked_mul(N)?)?;
        self.0 = rest;
        let (items, _) = bytes.as_chunks::<N>();
        Some(items.iter().map(|it| get(*it)).collect())
    }

    fn taken_at(&mut self) -> Option<TakenAt> {
        let format: [u8; 16] = self.array()?;
        let (seq, event) = (self.u64()?, Hash(self.array()?));
        (format == *FORMAT).then_some(TakenAt { seq, event })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Filter, Mode, Query, passages};
    use kenning_core::Hlc;
    use kenning_store::Node;
    use serde_json::{Map, json};

    fn node(n: u8, text: &str) -> Node {
        let mut props = Map::new();
        props.insert("memory_type".to_owned(), json!("fact"));
        Node {
            id: NodeId([n; 16]),
            kind: Kind::Memory,
            project: String::new(),
            key: n.to_string(),
            title: String::new(),
            body: text.to_owned(),
            props,
            created: Hlc::from_ms(u64::from(n)),
            updated: Hlc::default(),
            hash: Hash::default(),
            rev: 1,
        }
    }

    fn index() -> Index {
        let mut index = Index::new();
        for (n, text) in (0..).zip([
            "the roof leaks",
            "trains were late",
            "a kitten was adopted",
            "gone",
        ]) {
            index.put(&node(n, text), &passages("", text));
        }
        index.put(
            &node(1, "trains were on time"),
            &passages("", "trains were on time"),
        );
        index.remove(NodeId([3; 16]));
        index.seq = 9;
        index
    }

    fn ask(index: &Index) -> Vec<crate::Hit> {
        let filter = Filter {
            kinds: vec![Kind::Memory],
            facets: vec!["memory_type=fact".to_owned()],
            as_of_ms: Some(50),
            ..Filter::default()
        };
        index.search(&Query {
            text: "punctual trains",
            mode: Mode::Hybrid,
            filter: &filter,
            limit: 10,
            vector: None,
        })
    }

    #[test]
    fn what_is_read_back_answers_the_same_and_can_be_changed() {
        let made = index();
        let bytes = made.to_snapshot(Hash::of(b"event"));
        let taken = TakenAt {
            seq: 9,
            event: Hash::of(b"event"),
        };
        assert_eq!(taken_at(&bytes), Some(taken));
        let mut read = Index::from_snapshot(&bytes).unwrap();
        assert_eq!(ask(&read), ask(&made));
        assert_eq!((read.len(), read.seq), (3, 9));
        read.put(
            &node(0, "the roof is new"),
            &passages("", "the roof is new"),
        );
        read.remove(NodeId([1; 16]));
        assert_eq!(read.len(), 2);
        assert_eq!(ask(&read).len(), 2);
    }

    #[test]
    fn a_damaged_snapshot_is_none() {
        let bytes = index().to_snapshot(Hash::of(b"event"));
        for at in (0..bytes.len()).step_by(97) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(taken_at(&damaged), None, "byte {at}");
            assert_eq!(taken_at(&bytes[..at]), None, "cut at {at}");
        }
    }

    #[test]
    fn bytes_that_do_not_hold_together_are_refused_and_never_a_panic() {
        let bytes = index().to_snapshot(Hash::of(b"event"));
        for at in 56..bytes.len() - HASH_BYTES {
            let mut other = bytes.clone();
            other[at] = other[at].wrapping_add(1);
            // It may still be an index, only of something else.
            if let Some(index) = Index::from_snapshot(&other) {
                ask(&index);
            }
        }
    }
}
