//! The graph of documents, and vectors that callers bring.
//!
//! `graph` makes nodes and edges of Markdown files and answers from them; `vectors` stores and finds
//! vectors in collections. The meaning of a file is decided in the `graph` crate, which knows no
//! store. Entities belong to `koi`: if a query asks for them, `koi` updates them first
//! ([`Entities`]).

mod graph;
mod vectors;

pub use graph::{
    Backlink, Backlinks, BrokenLink, CacheStats, Card, Community, Connected, Doc, DocType,
    Document, DocumentContent, DocumentName, DocumentQuery, ExportFormat, FileError,
    FoundDocuments, Generate, Generated, GraphHealth, GraphStats, GraphWatch, Incoming, Library,
    NoteMove, NoteRules, Orphan, Outgoing, PathStep, Status, Suggestion, SuggestionReason,
    TagCount, Tagged, VaultForm, WatchOptions, note_names, passages_of, path_in_vault, snippet,
};
pub use vectors::{
    FoundVectors, Keywords, NAMESPACE_DEFAULT, NewVector, UpsertedVector, VECTOR_DIMENSIONS_MAX,
    VECTOR_RESULTS_MAX, VectorHit, VectorNamespace, VectorQuery,
};

use kenning_audit::Tx;
use kenning_audit::foreign::Merged;
use kenning_core::Result;
use kenning_kernel::{Caller, Kernel};
use std::sync::{Arc, OnceLock, Weak};

/// Brings what is derived from documents and vectors up to date with what came from a peer.
///
/// # Errors
/// Those of the store.
pub fn merged(tx: &mut Tx<'_>, merged: &Merged) -> Result<()> {
    graph::end_links(tx, merged)?;
    vectors::count_merged(tx, merged)
}

/// Makes the nodes of entities, which a query may ask for beside documents.
pub trait Entities: Send + Sync {
    /// Brings them up to date.
    ///
    /// # Errors
    /// Those of the store and of the vault.
    fn follow(&self, caller: &Caller) -> Result<()>;
}

/// Documents, their links, and vectors.
pub struct Kg {
    kernel: Arc<Kernel>,
    libraries: graph::Libraries,
    entities: OnceLock<Weak<dyn Entities>>,
}

impl Kg {
    /// Uses a kernel.
    pub fn new(kernel: Arc<Kernel>) -> Self {
        Self {
            kernel,
            libraries: graph::Libraries::default(),
            entities: OnceLock::new(),
        }
    }

    /// Sets what makes the nodes of entities. Only the first call counts.
    pub fn ask_for_entities(&self, who: Weak<dyn Entities>) {
        drop(self.entities.set(who));
    }

    fn follow_entities(&self, caller: &Caller) -> Result<()> {
        match self.entities.get().and_then(Weak::upgrade) {
            Some(entities) => entities.follow(caller),
            None => Ok(()),
        }
    }
}
