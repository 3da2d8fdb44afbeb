//! Which URI stands for which, kept in step with the statements.
//!
//! Two things make one URI stand for another. A merge does, as far as somebody states the one that it leads
//! to. And what pages and imports say of somebody by a URI of their own is said of the one note that has the
//! same name and type. Both are functions of the statements that name a URI, so a change looks again at the
//! URIs that it touches and at those that lead to them.

use super::texts::{Text, Texts};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A type and a name.
pub(super) type Key = (Text, Text);

/// How often each URI occurs.
type Counts = BTreeMap<Text, usize>;

/// A URI that stands for another one than before: the URI, the one before, the one now.
pub(super) type Moved = (Text, Text, Text);

#[derive(Debug, Default)]
pub(super) struct Sameness {
    /// Notes that have a name: their URIs.
    noted: HashMap<Key, Counts>,
    /// The URIs by which others name somebody.
    said: HashMap<Key, Counts>,
    /// The names by which others name a URI.
    names_of: HashMap<Text, BTreeMap<Key, usize>>,
    /// How many notes are about a URI, and how many statements name it.
    n_notes: HashMap<Text, usize>,
    n_stated: HashMap<Text, usize>,
    /// Which URI was merged into which.
    merged: BTreeMap<String, String>,
    /// Every URI of a merge.
    in_merges: HashSet<Text>,
    /// What a URI stands for because of its name, because of a merge, and for both reasons.
    by_name: HashMap<Text, Text>,
    by_merge: HashMap<Text, Text>,
    same: HashMap<Text, Text>,
    /// Where a URI leads in one step, who leads to it in one step, and whom it stands for.
    steps: HashMap<Text, Text>,
    leads_here: HashMap<Text, BTreeSet<Text>>,
    members: HashMap<Text, BTreeSet<Text>>,
    changed_keys: HashSet<Key>,
    changed_uris: HashSet<Text>,
    is_merge_changed: bool,
}

impl Sameness {
    /// The URI that stands for this one.
    pub(super) fn of(&self, uri: Text) -> Text {
        self.same.get(&uri).copied().unwrap_or(uri)
    }

    /// The URIs that an entity has: its own first, if that stands for itself, and those that lead to it.
    pub(super) fn uris_of(&self, entity: Text) -> impl Iterator<Item = Text> {
        let own = (self.of(entity) == entity).then_some(entity);
        let others = self.members.get(&entity).into_iter().flatten().copied();
        own.into_iter().chain(others)
    }

    /// Counts what a note says that somebody is called.
    pub(super) fn add_note(&mut self, uri: Text, names: &[Key]) {
        for key in names {
            count(self.noted.entry(*key).or_default(), uri);
            self.changed_keys.insert(*key);
        }
        if count(&mut self.n_notes, uri) {
            self.changed_uris.insert(uri);
        }
        self.add_stated(uri);
    }

    pub(super) fn remove_note(&mut self, uri: Text, names: &[Key]) {
        for key in names {
            discount_in(&mut self.noted, *key, uri);
            self.changed_keys.insert(*key);
        }
        if discount(&mut self.n_notes, uri) {
            self.changed_uris.insert(uri);
        }
        self.remove_stated(uri);
    }

    /// Counts what others say that somebody is called.
    pub(super) fn add_said(&mut self, uri: Text, key: Key) {
        count(self.said.entry(key).or_default(), uri);
        count(self.names_of.entry(uri).or_default(), key);
        self.changed_keys.insert(key);
        self.add_stated(uri);
    }

    pub(super) fn remove_said(&mut self, uri: Text, key: Key) {
        discount_in(&mut self.said, key, uri);
        discount_in(&mut self.names_of, uri, key);
        self.changed_keys.insert(key);
        // Nothing says its name any more, so nobody looks at it because of the name.
        self.changed_uris.insert(uri);
        self.remove_stated(uri);
    }

    fn add_stated(&mut self, uri: Text) {
        if count(&mut self.n_stated, uri) {
            self.changed_uris.insert(uri);
        }
    }

    fn remove_stated(&mut self, uri: Text) {
        if discount(&mut self.n_stated, uri) {
            self.changed_uris.insert(uri);
        }
    }

    /// Notes a merge, or that there is none any more.
    pub(super) fn set_merge(&mut self, uri: &str, into: Option<&str>) {
        let before = match into {
            Some(into) => self.merged.insert(uri.to_owned(), into.to_owned()),
            None => self.merged.remove(uri),
        };
        self.is_merge_changed |= before.as_deref() != into;
    }

    /// Finds out which URIs stand for others now.
    pub(super) fn settle(&mut self, texts: &mut Texts) -> Vec<Moved> {
        let mut keys = std::mem::take(&mut self.changed_keys);
        let uris = std::mem::take(&mut self.changed_uris);
        for uri in &uris {
            keys.extend(self.names_of.get(uri).into_iter().flatten().map(|it| it.0));
        }
        let named = keys.iter().filter_map(|it| self.said.get(it));
        let mut looked: HashSet<Text> = named.flat_map(|it| it.keys().copied()).collect();
        looked.extend(&uris);
        let mut touched: HashSet<Text> = HashSet::new();
        for uri in looked {
            let now = self.named_like(uri, texts);
            if put(&mut self.by_name, uri, now) {
                touched.insert(uri);
            }
        }
        let is_in_merges = |it: &Text| self.in_merges.contains(it);
        if self.is_merge_changed || uris.iter().chain(&touched).any(is_in_merges) {
            touched.extend(self.settle_merges(texts));
        }
        self.lead_on(&touched)
    }

    /// The note that a URI means by a name of its: the first by the order of names, if several do.
    fn named_like(&self, uri: Text, texts: &Texts) -> Option<Text> {
        if self.n_notes.contains_key(&uri) {
            return None;
        }
        let keys = self.names_of.get(&uri)?.keys();
        let found = keys.filter_map(|key| {
            let mut others = self.said.get(key)?.keys();
            if others.any(|it| *it != uri && !self.n_notes.contains_key(it)) {
                return None;
            }
            let noted = self.noted.get(key)?;
            let only = noted.keys().next().filter(|_| noted.len() == 1)?;
            Some((texts.get(key.0), texts.get(key.1), *only))
        });
        found.min().map(|it| it.2)
    }

    /// Follows all merges anew; gives the URIs that lead elsewhere than before.
    fn settle_merges(&mut self, texts: &mut Texts) -> Vec<Text> {
        self.is_merge_changed = false;
        let pairs = self.merged.iter();
        let pairs: Vec<(Text, Text)> = pairs
            .map(|(uri, into)| (texts.number(uri), texts.number(into)))
            .collect();
        self.in_merges = pairs.iter().flat_map(|it| [it.0, it.1]).collect();
        let merged: HashMap<Text, Text> = pairs.iter().copied().collect();
        let mut now: HashMap<Text, Text> = HashMap::new();
        for (uri, into) in &pairs {
            let chain = std::iter::successors(Some(*into), |it| merged.get(it).copied());
            // Nobody can make a circle; if somebody did, this ends all the same.
            let chain = chain.take(pairs.len()).filter(|it| it != uri);
            let stated = chain.filter(|it| self.n_stated.contains_key(it));
            if let Some(last) = stated.last() {
                let on = now.get(&last).or_else(|| self.by_name.get(&last));
                let on = on.copied().unwrap_or(last);
                now.insert(*uri, on);
            }
        }
        let both = now.keys().chain(self.by_merge.keys());
        let is_moved = |it: &&Text| now.get(*it) != self.by_merge.get(*it);
        let moved: HashSet<Text> = both.filter(is_moved).copied().collect();
        self.by_merge = now;
        moved.into_iter().collect()
    }

    fn one_step(&self, uri: Text) -> Option<Text> {
        let next = self.by_merge.get(&uri).or_else(|| self.by_name.get(&uri));
        next.copied()
    }

    /// Whoever a URI leads to may itself lead on.
    fn lead_on(&mut self, touched: &HashSet<Text>) -> Vec<Moved> {
        let mut looked: BTreeSet<Text> = touched.iter().copied().collect();
        for uri in touched {
            looked.extend(self.leads_here.get(uri).into_iter().flatten());
        }
        let mut moved = Vec::new();
        for &uri in &looked {
            let next = self.one_step(uri);
            let now = next.map(|to| self.one_step(to).filter(|it| *it != uri).unwrap_or(to));
            let (before, now) = (self.of(uri), now.unwrap_or(uri));
            if before != now {
                moved.push((uri, before, now));
            }
        }
        // The steps are noted last: they are what the next change looks at.
        self.note_steps(touched);
        for &(uri, before, now) in &moved {
            put(&mut self.same, uri, (now != uri).then_some(now));
            drop_from(&mut self.members, before, uri);
            if now != uri {
                self.members.entry(now).or_default().insert(uri);
            }
        }
        moved
    }

    fn note_steps(&mut self, touched: &HashSet<Text>) {
        for &uri in touched {
            let (before, next) = (self.steps.get(&uri).copied(), self.one_step(uri));
            if !put(&mut self.steps, uri, next) {
                continue;
            }
            if let Some(before) = before {
                drop_from(&mut self.leads_here, before, uri);
            }
            if let Some(next) = next {
                self.leads_here.entry(next).or_default().insert(uri);
            }
        }
    }
}

/// Maps whose values are counts.
trait Counting<K> {
    fn counter(&mut self, key: K) -> &mut usize;
    /// Takes one away; true if none is left.
    fn take_one(&mut self, key: &K) -> bool;
}

impl<K: std::hash::Hash + Eq> Counting<K> for HashMap<K, usize> {
    fn counter(&mut self, key: K) -> &mut usize {
        self.entry(key).or_default()
    }

    fn take_one(&mut self, key: &K) -> bool {
        let Some(n) = self.get_mut(key) else {
            return false;
        };
        *n -= 1;
        let is_last = *n == 0;
        if is_last {
            self.remove(key);
        }
        is_last
    }
}

impl<K: Ord> Counting<K> for BTreeMap<K, usize> {
    fn counter(&mut self, key: K) -> &mut usize {
        self.entry(key).or_default()
    }

    fn take_one(&mut self, key: &K) -> bool {
        let Some(n) = self.get_mut(key) else {
            return false;
        };
        *n -= 1;
        let is_last = *n == 0;
        if is_last {
            self.remove(key);
        }
        is_last
    }
}

/// Counts one more; true if it is the first.
fn count<K>(counts: &mut impl Counting<K>, key: K) -> bool {
    let n = counts.counter(key);
    *n += 1;
    *n == 1
}

/// Counts one less; true if it was the last.
fn discount<K>(counts: &mut impl Counting<K>, key: K) -> bool {
    counts.take_one(&key)
}

/// Counts one less in one of many counts, which goes when it is empty.
fn discount_in<A: std::hash::Hash + Eq, B: Ord>(
    all: &mut HashMap<A, BTreeMap<B, usize>>,
    of: A,
    key: B,
) {
    if let Some(counts) = all.get_mut(&of) {
        counts.take_one(&key);
        if counts.is_empty() {
            all.remove(&of);
        }
    }
}

/// Puts or removes a value; true if it is another than before.
fn put(map: &mut HashMap<Text, Text>, key: Text, value: Option<Text>) -> bool {
    let before = match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    };
    before != value
}

fn drop_from(sets: &mut HashMap<Text, BTreeSet<Text>>, key: Text, value: Text) {
    if let Some(set) = sets.get_mut(&key) {
        set.remove(&value);
        if set.is_empty() {
            sets.remove(&key);
        }
    }
}
