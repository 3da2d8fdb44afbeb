//! Statistics and health.

use super::cards;
use super::documents::{TagCount, tag_counts};
use super::library::{GRAPHS, GraphFacts, Library};
use crate::Kg;
use kenning_core::Result;
use kenning_graph::{DocType, Status};
use kenning_kernel::{Caller, RowCodec, Scope};
use kenning_text::round::{Ties, rounded};

/// A card older than this is stale: its file was not checked for an hour.
const STALE_MS: u64 = 3_600_000;

/// At most this many connected documents and tags are named.
const MOST: usize = 10;

/// A document with many links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// Its id.
    pub id: String,
    /// The title for people.
    pub title: String,
    /// Links in both directions.
    pub connections: usize,
}

/// Statistics of the graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphStats {
    /// The number of documents.
    pub nodes: usize,
    /// Links between them.
    pub edges: usize,
    /// Documents without links.
    pub orphans: usize,
    /// Broken links.
    pub broken_links: usize,
    /// Each type, in the order of the contract.
    pub by_type: Vec<(&'static str, usize)>,
    /// Each status, in the order of the contract.
    pub by_status: Vec<(&'static str, usize)>,
    /// Documents with the most links.
    pub most_connected: Vec<Connected>,
    /// Tags of the most documents.
    pub top_tags: Vec<TagCount>,
    /// How many tags there are.
    pub tags: usize,
    /// When a generation last ended, in milliseconds since 1970.
    pub generated_ms: Option<u64>,
    /// When it last changed something.
    pub updated_ms: Option<u64>,
}

impl GraphStats {
    /// Links for each document, two decimals.
    pub fn average_links(&self) -> f64 {
        let average = self.edges as f64 / (self.nodes as f64).max(1.0);
        rounded(average, 2, Ties::Away)
    }
}

/// Statistics of the shadow cache.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CacheStats {
    /// Files that are known.
    pub entries: usize,
    /// Those that were not checked for an hour.
    pub stale: usize,
    /// Files that need not be read.
    pub hits: u64,
    /// Files that were.
    pub misses: u64,
    /// Its size in the store: keys and values.
    pub size_bytes: usize,
    /// When it was last used, in milliseconds since 1970.
    pub updated_ms: Option<u64>,
}

impl CacheStats {
    /// From 0 to 1; 0 before anything was asked.
    pub fn hit_rate(&self) -> f64 {
        self.hits as f64 / ((self.hits + self.misses) as f64).max(1.0)
    }
}

/// The health of the graph.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphHealth {
    /// Whether there is a graph.
    pub has_graph: bool,
    /// The shadow cache.
    pub cache: CacheStats,
    /// Where the project is.
    pub project_root: Option<String>,
}

impl Kg {
    /// Figures of the graph.
    pub fn graph_stats(&self, caller: &Caller) -> Result<GraphStats> {
        self.kernel.log().read(&caller.principal.space, |tx| {
            let library = self.graph(caller, tx)?;
            let facts = self.facts(tx)?;
            Ok(stats(&library, facts.as_ref()))
        })
    }

    fn facts(&self, tx: &dyn kenning_store::ReadTx) -> Result<Option<GraphFacts>> {
        GRAPHS.get_readable(tx, &cards::short(&self.graph_scope().project))
    }

    /// The health of the graph and its cache. There need not be a graph.
    pub fn graph_health(&self, caller: &Caller) -> Result<GraphHealth> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        let now_ms = self.kernel.log().clock().now_ms();
        self.kernel.log().read(space, |tx| {
            let library = self.library_in(space, tx)?;
            let facts = self.facts(tx)?;
            let entries = library.docs.iter();
            let mut size_bytes = 0;
            for it in entries.clone() {
                size_bytes += it.path.len() + RowCodec::to_bytes(&it.card)?.len();
            }
            let stale = entries
                .filter(|it| it.card.cached_ms + STALE_MS < now_ms)
                .count();
            Ok(GraphHealth {
                has_graph: library.exists(),
                cache: CacheStats {
                    entries: library.docs.len(),
                    stale,
                    hits: facts.as_ref().map_or(0, |it| it.hits),
                    misses: facts.as_ref().map_or(0, |it| it.misses),
                    size_bytes,
                    updated_ms: facts.as_ref().map(|it| it.generated_ms),
                },
                project_root: self
                    .kernel
                    .project()
                    .place()
                    .map(|it| it.display().to_string()),
            })
        })
    }
}

fn stats(library: &Library, facts: Option<&GraphFacts>) -> GraphStats {
    let docs = &library.docs;
    let count =
        |wanted: &dyn Fn(&super::library::Doc) -> bool| docs.iter().filter(|it| wanted(it)).count();
    let by_type = DocType::ALL
        .iter()
        .map(|&kind| (kind.as_str(), count(&|doc| doc.card.doc_type == kind)));
    let by_status = Status::ALL
        .iter()
        .map(|&status| (status.as_str(), count(&|doc| doc.card.status == status)));
    let mut connected: Vec<Connected> = docs
        .iter()
        .filter(|it| !it.is_orphan())
        .map(|doc| Connected {
            id: doc.id.clone(),
            title: doc.card.title.clone(),
            connections: doc.out.len() + doc.into.len(),
        })
        .collect();
    connected.sort_by(|a, b| b.connections.cmp(&a.connections).then(a.id.cmp(&b.id)));
    connected.truncate(MOST);
    let mut top_tags = tag_counts(library);
    let tags = top_tags.len();
    top_tags.truncate(MOST);
    GraphStats {
        nodes: docs.len(),
        edges: library.n_edges(),
        orphans: count(&|doc| doc.is_orphan()),
        broken_links: docs.iter().map(|it| it.broken.len()).sum(),
        by_type: by_type.collect(),
        by_status: by_status.collect(),
        most_connected: connected,
        top_tags,
        tags,
        generated_ms: facts.map(|it| it.generated_ms),
        updated_ms: facts.map(|it| it.updated_ms),
    }
}
