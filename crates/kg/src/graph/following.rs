//! Updates the documents in memory from the store, one at a time.
//!
//! A document that is added, removed or renamed changes the targets of links, but only of links that
//! share a part of a name with it (`kenning_graph::stems_of_link`). So the cost of a change grows
//! with the links that it can affect; the others only get a new number.

use super::cards::{self, Card};
use super::library::{self, Doc, Library, Scope, named, origin};
use kenning_core::{Hash, NodeId, Result};
use kenning_graph::{stems_of_link, stems_of_names};
use kenning_store::ReadTx;
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// At most this many paths are kept in the journal.
const REMEMBERED: usize = 4_000;
/// After this many removed documents all names are built again.
const GONE_MAX: usize = 2_000;

/// Counts the states of all libraries.
static VERSIONS: AtomicU64 = AtomicU64::new(1);

/// The notes of the vault that changed on the way to the newest state.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    /// The state before the oldest entry.
    since: u64,
    /// The state after each change, and the notes that it changed.
    entries: VecDeque<(u64, Vec<String>)>,
    n_paths: usize,
    /// The sum of the hashes of all notes.
    sum: [u64; 4],
}

impl Library {
    /// Starts a state that is not connected to earlier ones.
    pub(super) fn begin_journal(&mut self) {
        self.version = VERSIONS.fetch_add(1, Ordering::Relaxed);
        self.journal = Journal {
            since: self.version,
            ..Journal::default()
        };
        let docs = self.docs.iter().filter(|it| it.card.is_of_vault());
        self.journal.sum = docs.fold([0; 4], |sum, doc| joined(sum, doc, u64::wrapping_add));
    }

    /// The notes of the vault that were added, removed or changed since a state, and those whose
    /// links changed their targets; `None` if that state belongs to another library, or is too old.
    pub fn changed_since(&self, version: u64) -> Option<BTreeSet<String>> {
        let Journal { since, entries, .. } = &self.journal;
        let is_known = version == *since || entries.iter().any(|it| it.0 == version);
        let newer = entries.iter().filter(|it| it.0 > version);
        is_known.then(|| newer.flat_map(|it| it.1.iter().cloned()).collect())
    }

    /// A fingerprint of all notes of the vault: their paths, their contents and their nodes.
    pub fn fingerprint(&self) -> String {
        let [a, b, c, d] = self.journal.sum;
        format!("{a:016x}{b:016x}{c:016x}{d:016x}")
    }

    /// The note at a path of the vault.
    pub fn note(&self, path: &str) -> Option<&Doc> {
        let at = self.number_of(&format!("vault:{path}"))?;
        Some(self.doc(at))
    }

    /// Loads the documents at these paths from the store.
    pub(super) fn take_in(
        &mut self,
        tx: &dyn ReadTx,
        scope: &Scope,
        paths: &BTreeSet<String>,
        head: u64,
    ) -> Result<()> {
        let mut cards = Vec::with_capacity(paths.len());
        for path in paths {
            let bucket = cards::bucket_of(path, &scope.project);
            cards.push((path, bucket.get_readable(tx, path)?));
        }
        // A renamed document has the same node: it is removed before it is added.
        cards.sort_by_key(|it| it.1.is_some());
        self.facts = library::facts(tx, scope)?;
        let mut stems = HashSet::new();
        let mut relinked = BTreeSet::new();
        let mut changed: BTreeSet<String> = paths.iter().cloned().collect();
        for (path, card) in &cards {
            if !self.put(scope, path, card.clone(), &mut stems, &mut relinked) {
                self.rebuild(scope, paths, cards);
                self.seq = head.into();
                return Ok(());
            }
        }
        if !stems.is_empty() {
            let docs = self.docs.iter();
            let linking = docs.filter(|it| stems_of(it).iter().any(|stem| stems.contains(stem)));
            relinked.extend(linking.map(|it| it.path.clone()));
        }
        for path in relinked {
            if let Some(at) = self.number_of(&path)
                && self.link_one(at)
            {
                changed.insert(path);
            }
        }
        self.seq = head.into();
        self.note_changes(&changed);
        Ok(())
    }

    fn rebuild(
        &mut self,
        scope: &Scope,
        paths: &BTreeSet<String>,
        changed: Vec<(&String, Option<Card>)>,
    ) {
        let kept = self.docs.iter().filter(|it| !paths.contains(&it.path));
        let kept = kept.map(|doc| (doc.path.clone(), doc.card.clone()));
        let changed = changed.into_iter();
        let changed = changed.filter_map(|(path, card)| Some((path.clone(), card?)));
        *self = Self {
            generation: self.generation,
            facts: self.facts.clone(),
            ..Self::of(
                kept.chain(changed).collect(),
                scope,
                Arc::clone(&self.places),
            )
        };
    }

    /// Adds a document, or removes it. False if everything must be built again.
    fn put(
        &mut self,
        scope: &Scope,
        path: &str,
        card: Option<Card>,
        stems: &mut HashSet<u64>,
        relinked: &mut BTreeSet<String>,
    ) -> bool {
        let is_same_file = scope.vault_in_project.is_none() && self.vault_only.is_none();
        match (self.number_of(path), card) {
            (None, None) => true,
            (Some(at), Some(card)) if self.doc(at).card.is_called_like(&card) => {
                self.count(at, u64::wrapping_sub);
                // Headings that links lead to may have changed.
                let linking = self.doc(at).into.iter().map(|it| it.0);
                relinked.extend(linking.map(|it| self.doc(it).path.clone()));
                relinked.insert(path.to_owned());
                self.docs[at as usize].put_card(card);
                self.count(at, u64::wrapping_add);
                true
            }
            // A file that belongs to the project and the vault is one document, but its names are
            // kept twice.
            _ if !is_same_file => false,
            (Some(at), None) => self.remove(at, stems, relinked),
            (None, Some(card)) => self.insert(path, card, stems, relinked),
            (Some(at), Some(card)) => {
                self.remove(at, stems, relinked) && self.insert(path, card, stems, relinked)
            }
        }
    }

    fn insert(
        &mut self,
        path: &str,
        card: Card,
        stems: &mut HashSet<u64>,
        relinked: &mut BTreeSet<String>,
    ) -> bool {
        let id = kenning_graph::slug(&library::path_for_id(path, &card));
        // Of several documents with the same id, all but the first are numbered.
        if self.by_id.contains_key(&id) || self.by_node.contains_key(&card.node) {
            return false;
        }
        let order =
            |it: &Doc| (it.card.is_of_vault(), it.path.as_str()) < (card.is_of_vault(), path);
        let place = self.docs.partition_point(order);
        let Ok(at) = u32::try_from(place) else {
            return false;
        };
        self.renumber(|number| if number >= at { number + 1 } else { number });
        let node = card.node;
        let doc = Doc {
            path: path.to_owned(),
            id: id.clone(),
            card,
            out: Vec::new(),
            into: Vec::new(),
            broken: Vec::new(),
            lost: Vec::new(),
            stems: OnceLock::new(),
        };
        stems.extend(stems_of_names(&named(&doc)));
        Arc::make_mut(&mut self.names).insert(at, &named(&doc));
        self.docs.insert(place, doc);
        self.by_path.insert(path.to_owned(), at);
        self.by_id.insert(id, at);
        self.by_node.insert(node, at);
        self.count(at, u64::wrapping_add);
        relinked.insert(path.to_owned());
        true
    }

    fn remove(
        &mut self,
        at: u32,
        stems: &mut HashSet<u64>,
        relinked: &mut BTreeSet<String>,
    ) -> bool {
        let doc = self.doc(at);
        let id = doc.id.clone();
        let is_numbered = kenning_graph::slug(&library::path_for_id(&doc.path, &doc.card)) != id;
        let has_twin = self.by_id.contains_key(&format!("{id}-2"));
        let number = id.rsplit_once('-').filter(|it| it.1.parse::<u32>().is_ok());
        let is_number = number.is_some_and(|it| self.by_id.contains_key(it.0));
        if is_numbered || has_twin || is_number || self.names.n_removed() > GONE_MAX {
            return false;
        }
        let linking: BTreeSet<u32> = doc.into.iter().map(|it| it.0).collect();
        relinked.extend(linking.iter().map(|it| self.doc(*it).path.clone()));
        stems.extend(stems_of_names(&named(doc)));
        self.count(at, u64::wrapping_sub);
        for it in linking {
            self.docs[it as usize].out.retain(|arc| arc.to != at);
        }
        for to in self.doc(at).out.iter().map(|it| it.to).collect::<Vec<_>>() {
            self.docs[to as usize].into.retain(|it| it.0 != at);
        }
        let doc = self.docs.remove(at as usize);
        Arc::make_mut(&mut self.names).remove(at, &named(&doc));
        self.by_path.remove(&doc.path);
        self.by_id.remove(&doc.id);
        self.by_node.remove(&doc.card.node);
        self.renumber(|number| if number > at { number - 1 } else { number });
        true
    }

    /// Renumbers the documents everywhere.
    fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        for doc in &mut self.docs {
            doc.out
                .iter_mut()
                .for_each(|edge| edge.to = number(edge.to));
            doc.into.iter_mut().for_each(|link| link.0 = number(link.0));
        }
        let numbers = self.by_path.values_mut().chain(self.by_id.values_mut());
        let numbers = numbers.chain(self.by_node.values_mut());
        numbers.for_each(|it| *it = number(*it));
        Arc::make_mut(&mut self.names).renumber(number);
    }

    /// Adds a document to the fingerprint, or removes it.
    fn count(&mut self, at: u32, join: fn(u64, u64) -> u64) {
        let doc = self.doc(at);
        if doc.card.is_of_vault() {
            self.journal.sum = joined(self.journal.sum, doc, join);
        }
    }

    fn note_changes(&mut self, paths: &BTreeSet<String>) {
        let notes = paths.iter().filter_map(|it| it.strip_prefix("vault:"));
        let notes: Vec<String> = notes.map(ToOwned::to_owned).collect();
        if notes.is_empty() {
            return;
        }
        self.version = VERSIONS.fetch_add(1, Ordering::Relaxed);
        let journal = &mut self.journal;
        journal.n_paths += notes.len();
        journal.entries.push_back((self.version, notes));
        while journal.n_paths > REMEMBERED
            && let Some((version, notes)) = journal.entries.pop_front()
        {
            journal.n_paths -= notes.len();
            journal.since = version;
        }
    }
}

fn joined(sum: [u64; 4], doc: &Doc, join: fn(u64, u64) -> u64) -> [u64; 4] {
    let NodeId(node) = doc.card.node;
    let mut bytes = doc.path.as_bytes().to_vec();
    bytes.push(0);
    bytes.extend_from_slice(&doc.card.content.0);
    bytes.extend_from_slice(&node);
    let Hash(hash) = Hash::of(&bytes);
    let mut sum = sum;
    for (lane, part) in sum.iter_mut().zip(hash.chunks_exact(8)) {
        let part = part.iter().fold(0, |sum, it| sum << 8 | u64::from(*it));
        *lane = join(*lane, part);
    }
    sum
}

fn stems_of(doc: &Doc) -> &[u64] {
    doc.stems.get_or_init(|| {
        let from = origin(doc);
        let links = doc.card.links.iter();
        let stems = links.flat_map(|it| stems_of_link(&from, &library::as_link(it)));
        stems.collect()
    })
}
