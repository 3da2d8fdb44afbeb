//! Markdown documents as a graph: the project's and the vault's.
//!
//! `survey` compares files with the cards, `generate` makes nodes, cards and edges of them; `library`
//! has all cards of a project in memory, with every name and link; `documents`, `reports` and
//! `insight` answer from it. The meaning of files is decided in the `graph` crate, which knows no
//! store.

mod by_node;
mod cards;
mod documents;
mod folder;
mod following;
mod form;
mod generate;
mod insight;
mod library;
mod links;
mod narrow;
mod note;
mod pages;
mod places;
mod renaming;
mod reports;
mod rules;
mod survey;
mod watch;

pub use documents::{
    Document, DocumentContent, DocumentQuery, FoundDocuments, Incoming, Outgoing, TagCount, Tagged,
    snippet,
};
pub use generate::{FileError, Generate, Generated};
pub use insight::{
    Backlink, Backlinks, BrokenLink, Community, DocumentName, ExportFormat, Orphan, PathStep,
    Suggestion, SuggestionReason,
};
pub use kenning_graph::{DocType, Status};
pub(crate) use links::end_links;
pub use renaming::NoteMove;
pub use reports::{CacheStats, Connected, GraphHealth, GraphStats};
pub use watch::{GraphWatch, WatchOptions};

pub use cards::Card;
pub use form::VaultForm;
pub use library::{Doc, Library};
pub use note::passages_of;
pub use rules::NoteRules;
pub use survey::note_names;

use cards::VAULT_CARDS;

use crate::Kg;
use kenning_audit::{Draft, Passages, Tx};
use kenning_core::{Error, Hash, Result, Space};
use kenning_kernel::Caller;
use kenning_search::Recent;
use kenning_store::{Node, Passage, ReadTx};
use library::Scope;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// The event that ends a generation which changed something.
pub(crate) const GENERATED: &str = "GraphGenerated";

/// The event of edges between documents.
pub(crate) const LINKED: &str = "GraphLinked";

/// The field of that event which says that everything must be loaded again.
pub(crate) const PLACES: &str = "places";

/// The libraries in memory.
#[derive(Default)]
pub(crate) struct Libraries(Mutex<Recent<(Space, Scope), Slot>>);

/// A library, or none yet. Whoever updates it holds the lock, and nobody else waits.
type Slot = Arc<Mutex<Option<Arc<Library>>>>;

impl Kg {
    /// The documents that make up the graph.
    pub(crate) fn graph_scope(&self) -> Scope {
        let project = self.kernel.project().place();
        let vault = self.kernel.vault().place();
        let vault_in_project = match (&project, &vault) {
            (Some(project), Some(vault)) => vault.strip_prefix(project).ok(),
            _ => None,
        };
        Scope {
            vault_in_project: vault_in_project.map(|it| it.to_string_lossy().into_owned()),
            project: project
                .map(|it| it.to_string_lossy().into_owned())
                .unwrap_or_default(),
        }
    }

    /// The current documents.
    pub(crate) fn library(&self, space: &Space) -> Result<Arc<Library>> {
        self.kernel
            .log()
            .read(space, |tx| self.library_in(space, tx))
    }

    /// The documents in this snapshot.
    pub(crate) fn library_in(&self, space: &Space, tx: &dyn ReadTx) -> Result<Arc<Library>> {
        self.library_of(space, tx, self.graph_scope())
    }

    /// The notes of the vault in this snapshot, whatever project they may be in.
    pub fn vault_library(&self, space: &Space, tx: &dyn ReadTx) -> Result<Arc<Library>> {
        self.library_of(space, tx, Scope::vault())
    }

    fn library_of(&self, space: &Space, tx: &dyn ReadTx, scope: Scope) -> Result<Arc<Library>> {
        let head = tx.head()?;
        let generation = self
            .kernel
            .continuity()
            .generation(space, tx, head.as_ref())?;
        let head = head.map_or(0, |it| it.seq);
        let slot = self.library_slot(space, &scope);
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &mut *slot
            && known.generation >= generation
            && let Some(paths) = known.changed_paths(tx, &scope, head)?
        {
            if paths.is_empty() {
                known.seq.fetch_max(head, Ordering::Relaxed);
            } else {
                // Readers of the old state keep it.
                Arc::make_mut(known).take_in(tx, &scope, &paths, head)?;
            }
            return Ok(Arc::clone(known));
        }
        let mut library = Library::load(tx, &scope)?;
        library.generation = generation;
        let library = Arc::new(library);
        *slot = Some(Arc::clone(&library));
        Ok(library)
    }

    /// Whether the current documents are in memory, so that a call need not load them.
    pub fn graph_is_in_memory(&self, caller: &Caller) -> Result<bool> {
        caller.principal.require(kenning_kernel::Scope::Read)?;
        let (space, scope) = (&caller.principal.space, self.graph_scope());
        let slot = self.library_slot(space, &scope);
        let known = slot.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(library) = known else {
            return Ok(false);
        };
        self.kernel.log().read(space, |tx| {
            let head = tx.head()?;
            let generation = self
                .kernel
                .continuity()
                .generation(space, tx, head.as_ref())?;
            let head = head.map_or(0, |it| it.seq);
            let changed = library.changed_paths(tx, &scope, head)?;
            let is_same = changed.is_some_and(|it| it.is_empty());
            Ok(is_same && library.generation >= generation)
        })
    }

    /// Records stamps of files in memory: there are no events for them.
    fn note_stamps(&self, space: &Space, cards: &[(String, Card)]) {
        for scope in [self.graph_scope(), Scope::vault()] {
            let slot = self.library_slot(space, &scope);
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = &mut *slot {
                let library = Arc::make_mut(known);
                for (path, card) in cards {
                    library.note_stamp(path, card);
                }
            }
        }
    }

    fn library_slot(&self, space: &Space, scope: &Scope) -> Slot {
        let all = self.libraries.0.lock();
        let mut all = all.unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(&(space.clone(), scope.clone()), Slot::default))
    }
}

/// A note's path in the vault.
pub fn path_in_vault(doc: &Doc) -> &str {
    doc.path.strip_prefix("vault:").unwrap_or(&doc.path)
}

/// Whether the vault's file of this name is a document.
pub(crate) fn is_note(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".md")
}

/// A note of the vault, ready to be stored. Parsing a long text takes a while, so it is done before
/// the transaction, which keeps every other writer waiting.
pub(crate) struct ReadNote {
    key: String,
    card: Card,
    draft: Draft,
    passages: Passages,
}

impl ReadNote {
    pub(crate) fn of(key: &str, text: &str) -> Self {
        let document = kenning_graph::parse(text);
        let frontmatter = document.frontmatter.clone();
        let has_title = document.title.is_some();
        let mut card = Card::of(
            document,
            kenning_kernel::roots::VAULT.name,
            key,
            Hash::of(text.as_bytes()),
        );
        let is_named_by_heading = card.heading.is_some() && kenning_graph::is_generic(key);
        if !has_title && !is_named_by_heading {
            // A note has the name of its file: `iPhone.md` is about the iPhone.
            let last = key.rsplit(['/', ':']).next().unwrap_or(key);
            card.title = last.strip_suffix(".md").unwrap_or(last).to_owned();
        }
        Self {
            key: key.to_owned(),
            draft: note::draft(&card, frontmatter, key, "", text.to_owned()),
            passages: note::passages_of_card(&card, text).into(),
            card,
        }
    }

    /// Everything that is known of it but its text.
    fn into_card(self) -> Card {
        self.card
    }

    /// What search finds of it.
    pub(crate) fn title_and_passages(&self) -> (&str, &[Passage]) {
        (&self.draft.title, &self.passages)
    }

    /// Stores its card alone, beside a node that is there.
    pub(crate) fn put_card(mut self, tx: &mut Tx<'_>, node: &Node) -> Result<()> {
        self.card.node = node.id;
        VAULT_CARDS.set(tx, &self.key, &self.card)
    }

    /// Stores it, with its card, in place of the old one.
    pub(crate) fn put(mut self, tx: &mut Tx<'_>) -> Result<Node> {
        let node = tx.put_node(self.draft)?;
        tx.put_hashed_passages(node.id, &self.passages)?;
        self.card.node = node.id;
        VAULT_CARDS.set(tx, &self.key, &self.card)?;
        Ok(node)
    }
}

/// The error before there is a graph.
fn not_generated() -> Error {
    Error::unavailable("Database not initialized").hint("run `kg_graph_generate` first")
}
