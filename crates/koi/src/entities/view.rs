//! Single entities, lists of them, and counts.
//!
//! Counts are written with the graph, so that asking for them reads one row.

use super::incremental::Graph;
use super::index::{STATE, lines};
use super::neighborhood::EntityDocument;
use super::{aliases, kind};
use crate::Koi;
use kenning_audit::Tx;
use kenning_core::{Kind, Result};
use kenning_kernel::paging::Page;
use kenning_kernel::{Bucket, Caller, Scope, Text};
use kenning_store::{Node, NodeFilter, ReadTx, When};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// At most this many names without an entity are kept, the most frequent first.
const PENDING_KEPT: usize = 50;
/// The number of nodes that are read at once.
const PAGE: usize = 1_000;
/// At most this many of the newest entities are shown.
const RECENT: usize = 10;

/// An entity, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntityView {
    /// Its URI.
    pub uri: String,
    /// Its RID.
    pub rid: String,
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: String,
    /// Its other names.
    pub aliases: Vec<String>,
    /// Its description.
    pub description: String,
    /// Its source: `vault`, `web`, `import` …
    pub source: String,
    /// The RID of its source: a note's path, a page.
    pub source_rid: String,
    /// The note about it.
    pub path: Option<String>,
    /// All notes about it.
    pub paths: Vec<String>,
    /// The URIs that were merged into it.
    pub merged: Vec<String>,
    /// When it was first stated, in milliseconds since 1970.
    pub created_ms: u64,
}

/// How many entities there are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntityStats {
    /// The number of all.
    pub total: usize,
    /// By type.
    pub by_type: BTreeMap<String, usize>,
    /// The newest first.
    pub recent: Vec<EntityView>,
}

/// A relationship whose other end is not a known entity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRelationship {
    /// The name that no entity has.
    pub label: String,
    /// The predicate.
    pub predicate: String,
    /// Whether the unknown end is the subject.
    pub is_subject: bool,
    /// How often.
    pub count: usize,
}

/// How many relationships there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelationshipStats {
    /// The number of all.
    pub total: usize,
    /// By predicate.
    pub by_predicate: BTreeMap<String, usize>,
    /// Those whose other end is not a known entity.
    pub total_pending: usize,
    /// The most frequent of these.
    pub top_pending: Vec<PendingRelationship>,
}

const TALLY: Bucket<Tally> = Bucket::new(STATE);

/// What is counted when the graph is written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Tally {
    by_type: BTreeMap<String, usize>,
    by_predicate: BTreeMap<String, usize>,
    total_pending: usize,
    top_pending: Vec<PendingRelationship>,
}

impl Tally {
    pub(super) fn of(graph: &Graph) -> Self {
        let (total_pending, top_pending) = graph.pending(PENDING_KEPT);
        Self {
            by_type: graph.by_type().clone(),
            by_predicate: graph.by_predicate().clone(),
            total_pending,
            top_pending,
        }
    }

    pub(super) fn write(&self, tx: &mut Tx<'_>) -> Result<()> {
        TALLY.set(tx, "tally", self)
    }

    fn read(tx: &dyn ReadTx) -> Result<Self> {
        Ok(TALLY.get_readable(tx, "tally")?.unwrap_or_default())
    }
}

impl Koi {
    /// An entity by its URI, or by any other name of its; `None` for a URI that is not known.
    pub fn entity(&self, caller: &Caller, name: &str) -> Result<Option<EntityView>> {
        caller.principal.require(Scope::Read)?;
        self.follow_entities(caller)?;
        let space = &caller.principal.space;
        self.read_naming(space, |tx, meanings| {
            Ok(self
                .entity_in(space, tx, meanings, name)?
                .as_ref()
                .map(view))
        })
    }

    /// Entities, of one type if it is given, the oldest first.
    pub fn entities(
        &self,
        caller: &Caller,
        type_filter: Option<&str>,
        limit: usize,
        offset: usize,
    ) -> Result<Vec<EntityView>> {
        caller.principal.require(Scope::Read)?;
        self.follow_entities(caller)?;
        let space = &caller.principal.space;
        self.kernel.log().read(space, |tx| {
            let wanted = type_filter.map(str::trim).filter(|it| !it.is_empty());
            let ontology = self.ontology(space, tx)?;
            let wanted = wanted.map(|it| ontology.kind(it).map_or(it, |it| &it.key).to_owned());
            let filter = NodeFilter {
                kinds: vec![Kind::Entity],
                ..NodeFilter::default()
            };
            let (mut found, mut skipped, mut after) = (Vec::new(), 0, None);
            loop {
                let page = tx.nodes(&filter, When::Now, after, PAGE)?;
                let Some(last) = page.last() else { break };
                after = Some(last.id);
                for node in &page {
                    if wanted.as_deref().is_some_and(|it| kind(node) != it) {
                        continue;
                    }
                    if skipped < offset {
                        skipped += 1;
                    } else if found.len() < limit {
                        found.push(view(node));
                    }
                }
                if found.len() == limit {
                    break;
                }
            }
            Ok(found)
        })
    }

    /// How many entities there are, and the newest.
    pub fn entity_stats(&self, caller: &Caller) -> Result<EntityStats> {
        caller.principal.require(Scope::Read)?;
        self.follow_entities(caller)?;
        self.kernel.log().read(&caller.principal.space, |tx| {
            let by_type = Tally::read(tx)?.by_type;
            Ok(EntityStats {
                total: by_type.values().sum(),
                by_type,
                recent: recent(tx)?,
            })
        })
    }

    /// How many relationships there are, and which lead to names that no entity has.
    pub fn relationship_stats(&self, caller: &Caller) -> Result<RelationshipStats> {
        caller.principal.require(Scope::Read)?;
        self.follow_entities(caller)?;
        self.kernel.log().read(&caller.principal.space, |tx| {
            let tally = Tally::read(tx)?;
            Ok(RelationshipStats {
                total: tally.by_predicate.values().sum(),
                by_predicate: tally.by_predicate,
                total_pending: tally.total_pending,
                top_pending: tally.top_pending,
            })
        })
    }

    /// The notes and documents in which an entity is named, with when each was first seen.
    pub fn entity_with_documents(
        &self,
        caller: &Caller,
        name: &str,
        limit: usize,
    ) -> Result<Option<(EntityView, Vec<EntityDocument>)>> {
        let Some(view) = self.entity(caller, name)? else {
            return Ok(None);
        };
        let documents = self.entity_documents(caller, &view.uri, Page::first(limit))?;
        let documents = documents.documents;
        Ok(Some((view, documents)))
    }
}

/// The newest entities that still exist.
fn recent(tx: &dyn ReadTx) -> Result<Vec<EntityView>> {
    let mut found = Vec::new();
    for uri in recent_uris(tx)? {
        let node = tx.node_by_key("", Kind::Entity, &uri, When::Now)?;
        found.extend(node.as_ref().map(view));
    }
    Ok(found)
}

fn recent_uris(tx: &dyn ReadTx) -> Result<Vec<String>> {
    let Text(text) = lines(STATE).get_readable(tx, "recent")?.unwrap_or_default();
    Ok(text.lines().map(ToOwned::to_owned).collect())
}

/// Records new entities, the newest first.
pub(super) fn note_recent(tx: &mut Tx<'_>, new: &[String]) -> Result<()> {
    if new.is_empty() {
        return Ok(());
    }
    let mut all = recent_uris(&**tx)?;
    all.retain(|it| !new.contains(it));
    let all: Vec<&str> = new
        .iter()
        .rev()
        .chain(&all)
        .map(String::as_str)
        .take(RECENT)
        .collect();
    lines(STATE).set(tx, "recent", &all.join("\n").into())
}

pub(super) fn view(node: &Node) -> EntityView {
    let text = |name: &str| {
        let text = node.props.get(name).and_then(Value::as_str);
        text.map(ToOwned::to_owned)
    };
    EntityView {
        uri: node.key.clone(),
        rid: text("rid").unwrap_or_default(),
        name: node.title.clone(),
        kind: kind(node).to_owned(),
        aliases: aliases(node).map(ToOwned::to_owned).collect(),
        description: node.body.clone(),
        source: text("source").unwrap_or_default(),
        source_rid: text("source_rid").unwrap_or_default(),
        paths: match node.props.get("paths").and_then(Value::as_array) {
            Some(all) => {
                let all = all.iter().filter_map(Value::as_str);
                all.map(ToOwned::to_owned).collect()
            }
            None => text("path").into_iter().collect(),
        },
        path: text("path"),
        merged: super::put::merged(node).map(ToOwned::to_owned).collect(),
        created_ms: node.created.ms(),
    }
}
