//! The graph in memory, and how it follows the store.
//!
//! Notes are followed by the library of the vault, which knows which documents are others than before; what
//! else is stated, and merges, by the log. Whatever cannot be followed step by step is read anew: a log that
//! is no continuation of the one that was read, another ontology, too many changes.

use super::identity::{merged_into, merged_uris};
use super::incremental::{Changes, Graph};
use super::index::{STATED, path_of};
use super::proof;
use super::said::{all_said, said_by};
use super::stated::Stated;
use kenning_core::Result;
use kenning_entities::ontology::Ontology;
use kenning_kg::{Doc, Library};
use kenning_store::{ReadTx, When};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// More changes than this are not followed one by one.
const CHANGES_MAX: usize = 2_000;
/// The number of events that are read at once.
const PAGE: usize = 1_000;
/// If this many times more texts are in memory than when the graph was read, it is read again.
const GROWTH_MAX: usize = 3;
const TEXTS_MIN: usize = 100_000;

/// The graph in memory.
pub(super) struct Live {
    pub(super) graph: Graph,
    /// The fingerprint of the statements that it is made of.
    pub(super) of: String,
    /// The versions of the parser and of the types.
    version: String,
    /// The generation and place of the log that it follows.
    generation: u64,
    seq: u64,
    /// The state of the library.
    library: u64,
    n_texts: usize,
}

/// The result of following.
pub(super) struct Followed {
    pub(super) changes: Changes,
    /// Notes that changed, were added or removed, or whose links changed their targets.
    pub(super) paths: BTreeSet<String>,
    /// Notes whose statements differ from the stored ones.
    pub(super) stated: Vec<(String, Stated)>,
}

impl Live {
    /// Reads every statement; returns those of notes that differ from the stored ones.
    pub(super) fn read(
        tx: &dyn ReadTx,
        library: &Library,
        ontology: &Arc<Ontology>,
        version: &str,
        of: String,
    ) -> Result<(Self, Vec<(String, Stated)>)> {
        let mut graph = Graph::new(Arc::clone(ontology));
        // A row of another version is none: the note is read again.
        let known = STATED.list_readable(tx)?.into_iter();
        let mut known: HashMap<String, Stated> = known.collect();
        let mut stated = Vec::new();
        for doc in &library.docs {
            let path = path_of(doc);
            let before = known.remove(path);
            if let Some((now, is_new)) = stated_by(tx, ontology, version, doc, before)? {
                graph.set_note(path, Some(&now));
                if is_new {
                    stated.push((path.to_owned(), now));
                }
            }
        }
        for (key, settled) in all_said(tx)? {
            graph.set_said(&key, Some(&settled));
        }
        for (uri, into) in merged_uris(tx)? {
            graph.set_merge(&uri, Some(&into));
        }
        graph.settle();
        let live = Self {
            n_texts: graph.n_texts(),
            graph,
            of,
            version: version.to_owned(),
            generation: library.generation,
            seq: tx.head()?.map_or(0, |it| it.seq),
            library: library.version,
        };
        Ok((live, stated))
    }

    /// Applies changes. `None` if everything must be read again.
    pub(super) fn follow(
        &mut self,
        tx: &dyn ReadTx,
        library: &Library,
        ontology: &Arc<Ontology>,
        version: &str,
        of: &str,
    ) -> Result<Option<Followed>> {
        let head = tx.head()?.map_or(0, |it| it.seq);
        let n_texts_max = (self.n_texts * GROWTH_MAX).max(TEXTS_MIN);
        if self.version != version
            || self.generation != library.generation
            || self.seq > head
            || self.graph.n_texts() > n_texts_max
        {
            return Ok(None);
        }
        let Some(paths) = library.changed_since(self.library) else {
            return Ok(None);
        };
        let Some((said, merged)) = changed_statements(tx, self.seq)? else {
            return Ok(None);
        };
        if paths.len() + said.len() + merged.len() > CHANGES_MAX {
            return Ok(None);
        }
        let mut stated = Vec::new();
        for path in &paths {
            let now = match library.note(path) {
                Some(doc) => {
                    let before = STATED.get_readable(tx, path)?;
                    stated_by(tx, ontology, version, doc, before)?
                }
                None => None,
            };
            self.graph.set_note(path, now.as_ref().map(|it| &it.0));
            if let Some((now, true)) = now {
                stated.push((path.clone(), now));
            }
        }
        for key in &said {
            let now = said_by(tx, key)?;
            self.graph.set_said(key, now.as_ref());
        }
        for uri in &merged {
            let into = merged_into(tx, uri)?;
            self.graph.set_merge(uri, into.as_deref());
        }
        (self.seq, self.library) = (head, library.version);
        of.clone_into(&mut self.of);
        Ok(Some(Followed {
            changes: self.graph.settle(),
            paths,
            stated,
        }))
    }
}

/// The statements of a note, and whether they differ from the stored ones. `None` if the note was
/// removed meanwhile.
fn stated_by(
    tx: &dyn ReadTx,
    ontology: &Ontology,
    version: &str,
    doc: &Doc,
    before: Option<Stated>,
) -> Result<Option<(Stated, bool)>> {
    let of = format!("{version} {}", doc.card.content);
    if let Some(before) = before.filter(|it| it.of == of) {
        return Ok(Some((before, false)));
    }
    let note = tx.node(doc.card.node, When::Now)?;
    Ok(note.map(|note| (Stated::of(ontology, path_of(doc), &note, of), true)))
}

/// The keys of statements and the URIs of merges that the log has changed since; `None` if there are
/// too many, or one cannot be read.
fn changed_statements(
    tx: &dyn ReadTx,
    mut seq: u64,
) -> Result<Option<(BTreeSet<String>, BTreeSet<String>)>> {
    let (mut said, mut merged) = (BTreeSet::new(), BTreeSet::new());
    loop {
        let rows = tx.events_after(seq, PAGE)?;
        let Some(last) = rows.last() else {
            return Ok(Some((said, merged)));
        };
        seq = last.seq;
        for row in &rows {
            let (set, name) = match row.kind.as_str() {
                proof::KEPT | proof::DROPPED => (&mut said, "key"),
                proof::MERGED | proof::UNMERGED => (&mut merged, "uri"),
                _ => continue,
            };
            let event = kenning_audit::event::parse(row);
            let data = event.as_ref().and_then(|it| it.data.get(name));
            let Some(key) = data.and_then(Value::as_str) else {
                return Ok(None);
            };
            set.insert(key.to_owned());
        }
        if said.len() + merged.len() > CHANGES_MAX {
            return Ok(None);
        }
    }
}
