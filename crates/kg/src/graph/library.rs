//! The documents of a project and of the vault in memory: their names and links.
//!
//! Everything here is derived from the cards. A library is built on first use and follows the log
//! from then on, whichever process wrote.

mod naming;

pub(super) use naming::{as_link, named, origin, path_for_id};

use super::cards::{self, Card, CardLink, VAULT_CARDS};
use super::following::Journal;
use super::places::Places;
use kenning_core::{NodeId, Result};
use kenning_graph::{Files, Link, Meaning, Names, Origin, Relation};
use kenning_kernel::Bucket;
use kenning_store::ReadTx;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// More changed documents than this are not loaded one by one.
const RELOAD_FROM: usize = 1_000;

/// Events that are read at a time.
const PAGE: usize = 1_000;

/// The kinds of events that change cards; each names the `path` and the `project`.
pub(crate) const NODE_CREATED: &str = "NodeCreated";
pub(crate) const NODE_UPDATED: &str = "NodeUpdated";
pub(crate) const NODE_DELETED: &str = "NodeDeleted";
/// Files of the vault that were written here or changed by others.
pub(crate) const NOTE_KINDS: [&str; 5] = [
    "NoteWritten",
    "NoteMoved",
    "NoteDeleted",
    "FileAdopted",
    "FileWriteUndone",
];

/// What is known of the graphs themselves, by the short names of their projects.
pub(super) const GRAPHS: Bucket<GraphFacts> = Bucket::new("graph/graphs");

/// What is known of a graph itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct GraphFacts {
    /// Folders that documents were generated from.
    pub(crate) roots: BTreeSet<String>,
    pub(crate) generated_ms: u64,
    pub(crate) updated_ms: u64,
    /// Files that need not be read because of the shadow cache, and files that were read.
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    /// The vault's names when the links were last written.
    #[serde(default)]
    pub(crate) vault_names: String,
}

/// An edge between documents, by their numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DocEdge {
    pub(crate) to: u32,
    /// The first link with this relation to that document, by its number in the card.
    pub(crate) link: u32,
}

/// A document.
#[derive(Clone, Debug)]
pub struct Doc {
    /// The project's path of the file, or `vault:` and its name there.
    pub path: String,
    pub(crate) id: String,
    /// Everything that is known of it but its text.
    pub card: Card,
    pub(crate) out: Vec<DocEdge>,
    /// The documents that link here, with the index of the edge.
    pub(crate) into: Vec<(u32, u32)>,
    /// Broken links, by their numbers in the card.
    pub(crate) broken: Vec<u32>,
    /// Links to missing files or headings: they are not edges, or lead to the page as a whole.
    pub(crate) lost: Vec<u32>,
    /// The parts of names by which its links can be affected, computed on first use.
    pub(super) stems: OnceLock<Box<[u64]>>,
}

/// The targets of one document's links, as fields of [`Doc`].
#[derive(Default)]
struct Linked {
    out: Vec<DocEdge>,
    broken: Vec<u32>,
    lost: Vec<u32>,
}

impl Doc {
    pub(crate) fn link(&self, arc: &DocEdge) -> &CardLink {
        &self.card.links[arc.link as usize]
    }

    pub(super) fn put_card(&mut self, card: Card) {
        self.card = card;
        self.stems = OnceLock::new();
    }

    fn put_links(&mut self, linked: Linked) {
        self.out = linked.out;
        self.broken = linked.broken;
        self.lost = linked.lost;
    }

    pub(crate) fn is_orphan(&self) -> bool {
        self.out.is_empty() && self.into.is_empty()
    }
}

/// The documents of a project and of the vault.
pub struct Library {
    pub(crate) seq: AtomicU64,
    /// The generation of the log that it follows: see [`kenning_audit::Continuity`].
    pub generation: u64,
    pub(crate) facts: Option<GraphFacts>,
    /// Those of the project in the order of their paths, then those of the vault.
    pub docs: Vec<Doc>,
    pub(super) by_path: HashMap<String, u32>,
    pub(super) by_id: HashMap<String, u32>,
    pub(super) by_node: HashMap<NodeId, u32>,
    pub(super) names: Arc<Names>,
    /// The names of the vault's notes alone, if there are other documents.
    pub(super) vault_only: Option<Arc<Names>>,
    /// Targets of links that are not documents.
    pub(crate) places: Arc<Places>,
    /// A new number for each state; the journal has the changes between two of them.
    pub version: u64,
    pub(super) journal: Journal,
}

impl Clone for Library {
    fn clone(&self) -> Self {
        Self {
            seq: self.seq.load(Ordering::Relaxed).into(),
            generation: self.generation,
            facts: self.facts.clone(),
            docs: self.docs.clone(),
            by_path: self.by_path.clone(),
            by_id: self.by_id.clone(),
            by_node: self.by_node.clone(),
            names: Arc::clone(&self.names),
            vault_only: self.vault_only.clone(),
            places: Arc::clone(&self.places),
            version: self.version,
            journal: self.journal.clone(),
        }
    }
}

/// Identifies a library.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Scope {
    /// The project, or empty if none is known.
    pub(crate) project: String,
    /// Where the vault is in the project, if it is: its files are not counted twice.
    pub(crate) vault_in_project: Option<String>,
}

impl Scope {
    /// Only the vault's notes, without the documents of a project.
    pub(crate) fn vault() -> Self {
        Self {
            project: String::new(),
            vault_in_project: None,
        }
    }
}

impl Library {
    /// From the store.
    pub(crate) fn load(tx: &dyn ReadTx, scope: &Scope) -> Result<Self> {
        let mut cards = Vec::new();
        for bucket in [cards::bucket(&scope.project), VAULT_CARDS] {
            // A card of another version is none: its file is read again.
            cards.extend(bucket.list_readable(tx)?);
        }
        let seq = tx.head()?.map_or(0, |it| it.seq);
        Ok(Self {
            seq: seq.into(),
            facts: facts(tx, scope)?,
            ..Self::of(cards, scope, Arc::new(Places::load(tx, &scope.project)?))
        })
    }

    /// From cards: every name, every edge.
    pub(crate) fn of(mut cards: Vec<(String, Card)>, scope: &Scope, places: Arc<Places>) -> Self {
        cards.sort_by(|a, b| (a.1.is_of_vault(), &a.0).cmp(&(b.1.is_of_vault(), &b.0)));
        hide_twins(&mut cards, scope);
        let in_docs: Vec<String> = cards
            .iter()
            .map(|(path, card)| path_for_id(path, card))
            .collect();
        let ids = kenning_graph::unique_ids(in_docs.iter().map(String::as_str));
        let docs = cards.into_iter().zip(ids).map(|((path, card), id)| Doc {
            path,
            id,
            card,
            out: Vec::new(),
            into: Vec::new(),
            broken: Vec::new(),
            lost: Vec::new(),
            stems: OnceLock::new(),
        });
        let mut library = Self {
            seq: AtomicU64::new(0),
            generation: 0,
            facts: None,
            docs: docs.collect(),
            by_path: HashMap::new(),
            by_id: HashMap::new(),
            by_node: HashMap::new(),
            names: Arc::default(),
            vault_only: None,
            places,
            version: 0,
            journal: Journal::default(),
        };
        library.name_all();
        library.link_all();
        library.begin_journal();
        library
    }

    fn name_all(&mut self) {
        let (mut names, mut vault_only) = (Names::new(), None);
        let is_mixed = self.docs.iter().any(|it| !it.card.is_of_vault());
        for (at, doc) in numbered(&self.docs) {
            self.by_path.insert(doc.path.clone(), at);
            self.by_id.insert(doc.id.clone(), at);
            self.by_node.insert(doc.card.node, at);
            names.insert(at, &named(doc));
            if is_mixed && doc.card.is_of_vault() {
                // A vault belongs to no project: the meaning of its notes must not depend on which
                // one asks.
                let own = vault_only.get_or_insert_with(Names::new);
                own.insert(at, &named(doc));
            }
        }
        (self.names, self.vault_only) = (Arc::new(names), vault_only.map(Arc::new));
    }

    /// Resolves the links of all documents.
    fn link_all(&mut self) {
        let linked: Vec<Linked> = numbered(&self.docs)
            .map(|(at, doc)| self.linked(at, doc))
            .collect();
        let mut into: Vec<Vec<(u32, u32)>> = vec![Vec::new(); self.docs.len()];
        for (at, it) in numbered(&linked) {
            for (arc, it) in numbered(&it.out) {
                into[it.to as usize].push((at, arc));
            }
        }
        for ((doc, linked), into) in self.docs.iter_mut().zip(linked).zip(into) {
            doc.into = into;
            doc.put_links(linked);
        }
    }

    /// Resolves the links of a document; true if a target changed.
    pub(super) fn link_one(&mut self, at: u32) -> bool {
        let linked = match self.docs.get(at as usize) {
            Some(doc) => self.linked(at, doc),
            None => return false,
        };
        let before = std::mem::take(&mut self.docs[at as usize].out);
        for arc in &before {
            self.docs[arc.to as usize].into.retain(|it| it.0 != at);
        }
        for (n, arc) in numbered(&linked.out) {
            let into = &mut self.docs[arc.to as usize].into;
            let place = into.partition_point(|it| *it < (at, n));
            into.insert(place, (at, n));
        }
        let is_other = before != linked.out;
        self.docs[at as usize].put_links(linked);
        is_other
    }

    fn linked(&self, at: u32, doc: &Doc) -> Linked {
        let (names, files) = self.around(doc);
        let from = origin(doc);
        let mut linked = Linked::default();
        for (link, card_link) in numbered(&doc.card.links) {
            if card_link.is_lost_within() {
                linked.lost.push(link);
                continue;
            }
            let meaning = names.resolve(&from, &as_link(card_link), files);
            if let (Meaning::Document(to), Some(fragment)) = (&meaning, &card_link.fragment) {
                let card = &self.docs[*to as usize].card;
                let is_there = kenning_graph::leads_to_anchor(fragment, &card.anchors);
                if card.is_read_as_now() && !is_there {
                    linked.lost.push(link);
                }
            }
            match meaning {
                Meaning::Document(to) if to == at => {}
                Meaning::Document(to) => {
                    let relation = card_link.relation();
                    let same = |it: &DocEdge| it.to == to && doc.link(it).relation() == relation;
                    if !linked.out.iter().any(same) {
                        linked.out.push(DocEdge { to, link });
                    }
                }
                Meaning::Missing if !card_link.is_other => linked.broken.push(link),
                // A card of an earlier version was made without checking whether such files exist.
                Meaning::Missing if doc.card.is_read_as_now() => linked.lost.push(link),
                Meaning::Missing | Meaning::File | Meaning::Outside => {}
            }
        }
        linked
    }

    /// The names that the links of a document can use, and the files that they can lead to.
    fn around(&self, doc: &Doc) -> (&Names, &Files) {
        if doc.card.is_of_vault() {
            let own = self.vault_only.as_ref();
            (own.unwrap_or(&self.names), &self.places.vault)
        } else {
            (&self.names, &self.places.project)
        }
    }

    /// The paths where links may find something that is not a document, of the project or of the
    /// vault.
    pub(crate) fn doubtful(&self, of_vault: bool) -> BTreeSet<String> {
        let docs = self.docs.iter();
        let docs = docs.filter(|it| it.card.is_of_vault() == of_vault);
        docs.flat_map(|it| self.doubtful_of(it)).collect()
    }

    /// The paths where the links of a document may find something that is not a document.
    pub(super) fn doubtful_of(&self, doc: &Doc) -> Vec<String> {
        let (names, _) = self.around(doc);
        let from = origin(doc);
        let links = doc.card.links.iter().filter(|it| !it.is_lost_within());
        links
            .flat_map(|it| names.doubtful(&from, &as_link(it)))
            .collect()
    }

    /// The same documents beside other files.
    pub(crate) fn with_places(mut self, places: Places) -> Self {
        self.places = Arc::new(places);
        self.link_all();
        self
    }

    /// The same documents, some of them with new cards and the same names: no name changes its
    /// meaning, so only their own links are resolved. `None` if a name differs.
    pub(crate) fn with_cards(&self, changed: HashMap<String, Card>) -> Option<Self> {
        let is_called_the_same = |(path, card): (&String, &Card)| {
            let doc = self.number_of(path).map(|it| self.doc(it));
            doc.is_some_and(|it| it.card.is_called_like(card))
        };
        if !changed.iter().all(is_called_the_same) {
            return None;
        }
        let mut library = self.clone();
        for (path, card) in changed {
            if let Some(at) = library.number_of(&path) {
                library.docs[at as usize].put_card(card);
                library.link_one(at);
            }
        }
        Some(library)
    }

    /// The documents that the log has changed since, by their paths. `None` if everything must be
    /// loaded again.
    pub(crate) fn changed_paths(
        &self,
        tx: &dyn ReadTx,
        scope: &Scope,
        head: u64,
    ) -> Result<Option<BTreeSet<String>>> {
        let mut paths = BTreeSet::new();
        let mut at = self.seq.load(Ordering::Relaxed);
        while at < head {
            let page = tx.events_after(at, PAGE)?;
            let Some(last) = page.last() else { break };
            at = last.seq;
            for row in &page {
                if !is_about_cards(&row.kind) {
                    continue;
                }
                let Some(event) = kenning_audit::event::parse(row) else {
                    return Ok(None);
                };
                let Some(changed) = changed_paths(&row.kind, &event.data, scope) else {
                    return Ok(None);
                };
                paths.extend(changed);
                if paths.len() > RELOAD_FROM {
                    return Ok(None);
                }
            }
        }
        Ok(Some(paths))
    }

    /// Records the stamp of a file in its card, if the content is the same.
    pub(super) fn note_stamp(&mut self, path: &str, card: &Card) {
        if let Some(at) = self.number_of(path)
            && let Some(doc) = self.docs.get_mut(at as usize)
            && doc.card.content == card.content
        {
            doc.card.put_stamp(card.stamp(), card.cached_ms);
        }
    }

    /// Whether a graph was generated.
    pub(crate) fn exists(&self) -> bool {
        self.facts.is_some() || !self.docs.is_empty()
    }

    pub(crate) fn by_id(&self, id: &str) -> Option<&Doc> {
        self.by_id.get(id).map(|&at| self.doc(at))
    }

    pub(crate) fn number_of(&self, path: &str) -> Option<u32> {
        self.by_path.get(path).copied()
    }

    /// The document of a node.
    pub fn by_node(&self, node: NodeId) -> Option<&Doc> {
        self.by_node.get(&node).map(|&at| self.doc(at))
    }

    /// The documents that link to a document.
    pub fn linking_to<'a>(&'a self, doc: &'a Doc) -> impl Iterator<Item = &'a Doc> {
        doc.into.iter().map(|it| self.doc(it.0))
    }

    /// The documents that a document links to.
    pub fn linked_from<'a>(&'a self, doc: &'a Doc) -> impl Iterator<Item = &'a Doc> {
        doc.out.iter().map(|it| self.doc(it.to))
    }

    pub(crate) fn doc(&self, at: u32) -> &Doc {
        &self.docs[at as usize]
    }

    /// By a path as people write it: from the project, from a folder of documents, or in the vault.
    pub(crate) fn by_path(&self, path: &str) -> Option<&Doc> {
        let path = path.trim_start_matches("./");
        let known = |path: &str| self.by_path.get(path).map(|&at| self.doc(at));
        let roots = self.facts.iter().flat_map(|it| &it.roots);
        let with_extension = (!path.ends_with(".md")).then(|| format!("{path}.md"));
        [Some(path.to_owned()), with_extension]
            .into_iter()
            .flatten()
            .find_map(|path| {
                known(&path)
                    .or_else(|| {
                        roots
                            .clone()
                            .find_map(|root| known(&format!("{root}/{path}")))
                    })
                    .or_else(|| known(&format!("vault:{path}")))
            })
    }

    /// By its id, its path, or any name that a link could use.
    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        let known = self.by_id(text).or_else(|| self.by_path(text));
        if let Some(doc) = known {
            return self.number_of(&doc.path);
        }
        let link = Link {
            target: text.to_owned(),
            fragment: None,
            text: String::new(),
            relation: Relation::LINK,
            is_wiki: true,
            context: String::new(),
            line: 0,
        };
        let from = Origin {
            path: "",
            docs_root: "",
            is_note: true,
        };
        match self.names.resolve(&from, &link, &Files::new()) {
            Meaning::Document(at) => Some(at),
            Meaning::File | Meaning::Outside | Meaning::Missing => None,
        }
    }

    /// The document that a broken link probably meant, with the similarity.
    pub(crate) fn nearest_to(&self, doc: &Doc, link: &CardLink) -> Option<(&Doc, f64)> {
        let (names, _) = self.around(doc);
        let (at, likeness) = names.nearest_to(&origin(doc), &as_link(link))?;
        Some((self.doc(at), likeness))
    }

    /// The document whose name is most similar to a text.
    pub(crate) fn nearest(&self, target: &str) -> Option<(&Doc, f64)> {
        self.names
            .nearest(target)
            .map(|(at, likeness)| (self.doc(at), likeness))
    }

    pub(crate) fn n_edges(&self) -> usize {
        self.docs.iter().map(|it| it.out.len()).sum()
    }

    /// A fingerprint of the vault's names: if it changes, links into the vault may change their
    /// targets.
    pub(crate) fn vault_names(&self) -> String {
        let mut text = String::new();
        for doc in self.docs.iter().filter(|it| it.card.is_of_vault()) {
            let Card {
                node,
                title,
                heading,
                aliases,
                ..
            } = &doc.card;
            text += &format!("{}\0{node}\0{title}\0{heading:?}\0{aliases:?}\n", doc.path);
        }
        kenning_core::Hash::of(text.as_bytes()).to_string()
    }
}

pub(super) fn facts(tx: &dyn ReadTx, scope: &Scope) -> Result<Option<GraphFacts>> {
    GRAPHS.get_readable(tx, &cards::short(&scope.project))
}

fn is_about_cards(kind: &str) -> bool {
    [NODE_CREATED, NODE_UPDATED, NODE_DELETED].contains(&kind)
        || NOTE_KINDS.contains(&kind)
        || [super::GENERATED, super::LINKED].contains(&kind)
}

/// The paths whose cards an event changed; `None` if that is unknown.
fn changed_paths(kind: &str, data: &Value, scope: &Scope) -> Option<Vec<String>> {
    if kind == super::GENERATED {
        return Some(Vec::new());
    }
    if kind == super::LINKED {
        // Other files than documents changed, or the parser did.
        return data.get(super::PLACES).is_none().then(Vec::new);
    }
    let text = |name: &str| {
        data.get(name)
            .and_then(Value::as_str)
            .map(ToOwned::to_owned)
    };
    let path = text("path")?;
    if NOTE_KINDS.contains(&kind) {
        // Files of the context have no cards, and looking for one finds none.
        return Some(vec![format!("vault:{path}")]);
    }
    let project = text("project")?;
    if project != scope.project && !project.is_empty() {
        return Some(Vec::new());
    }
    Some(
        [Some(path), text("renamedFrom")]
            .into_iter()
            .flatten()
            .collect(),
    )
}

/// The vault may be inside the project: a file is one document, the project's.
fn hide_twins(cards: &mut Vec<(String, Card)>, scope: &Scope) {
    let Some(folder) = &scope.vault_in_project else {
        return;
    };
    let own: HashSet<String> = cards
        .iter()
        .filter(|it| !it.1.is_of_vault())
        .map(|it| it.0.clone())
        .collect();
    cards.retain(|(path, card)| {
        let name = path.strip_prefix("vault:").unwrap_or(path);
        let twin = if folder.is_empty() {
            name.to_owned()
        } else {
            format!("{folder}/{name}")
        };
        !card.is_of_vault() || !own.contains(&twin)
    });
}

pub(super) fn numbered<T>(all: &[T]) -> impl Iterator<Item = (u32, &T)> {
    (0_u32..).zip(all)
}
