//! The edges that the graph should have, and those that the store does not have yet.

use super::incremental::Graph;
use super::index::{EDGES, NOTES, digest, lines, path_of};
use super::{BY_ENTITIES, DESCRIBES, MENTIONS, VAULT};
use kenning_audit::{EdgeDraft, Tx};
use kenning_core::{NodeId, Result};
use kenning_kernel::edges::{self, BY, Written};
use kenning_kg::{Doc, Library};
use kenning_store::When;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};

/// The prefix for documents that are not notes.
const SAID_DOCUMENT: &str = "said:";

/// The key of a document's links, if it is not a note.
pub(super) fn document_key(node: NodeId) -> String {
    format!("{SAID_DOCUMENT}{node}")
}

/// The document of a key, if it is not a note.
pub(super) fn document_of_key(key: &str) -> Option<NodeId> {
    key.strip_prefix(SAID_DOCUMENT)?.parse().ok()
}

/// Where links begin.
enum From {
    Node(NodeId),
    /// An entity, by its URI.
    Entity(String),
}

/// The edges that one node should have. Entities are named by their URIs: their nodes may not exist
/// yet.
pub(super) struct Links {
    bucket: &'static str,
    key: String,
    from: From,
    to: Vec<Link>,
    /// Whether anything still states links: otherwise nothing is stored for them.
    is_stated: bool,
}

struct Link {
    rel: String,
    to: String,
    props: Map<String, Value>,
}

/// The edges of one node, to be written, with their digest and its place.
pub(super) struct Drafts {
    bucket: &'static str,
    key: String,
    node: NodeId,
    wanted: Vec<EdgeDraft>,
    digest: Option<String>,
}

impl Links {
    /// The relationships of an entity.
    pub(super) fn of_thing(graph: &Graph, uri: &str) -> Self {
        let relations = graph.relations(uri).into_iter();
        let to = relations.map(|((predicate, to), origin)| {
            let mut props = said_by(&origin.source, &origin.source_rid);
            props.insert("predicate".to_owned(), predicate.as_str().into());
            props.insert("confidence".to_owned(), origin.confidence.into());
            Link {
                rel: predicate,
                to,
                props,
            }
        });
        Self {
            bucket: EDGES,
            key: uri.to_owned(),
            from: From::Entity(uri.to_owned()),
            to: to.collect(),
            is_stated: true,
        }
    }

    /// The entity of a note, and those that it mentions: by links in its text or fields, and by
    /// statements.
    pub(super) fn of_note(graph: &Graph, library: &Library, doc: &Doc) -> Self {
        let path = path_of(doc);
        let linked = library.linked_from(doc);
        let linked = linked.filter_map(|it| graph.of_note(path_of(it)));
        let mut to: BTreeMap<String, Map<String, Value>> = linked
            .map(|it| (it.to_owned(), said_by(VAULT, path)))
            .collect();
        let said = graph.mentions(doc.card.node).unwrap_or_default();
        for (uri, mention) in said {
            let props = to
                .entry(uri)
                .or_insert_with(|| said_by(&mention.source, &mention.source_rid));
            props.insert("count".to_owned(), mention.n.into());
        }
        let own = graph.of_note(path);
        to.retain(|uri, _| Some(uri.as_str()) != own);
        let about = own.map(|it| Link {
            rel: DESCRIBES.to_owned(),
            to: it.to_owned(),
            props: said_by(VAULT, path),
        });
        Self {
            bucket: NOTES,
            key: path.to_owned(),
            from: From::Node(doc.card.node),
            to: about
                .into_iter()
                .chain(to.into_iter().map(mention))
                .collect(),
            is_stated: true,
        }
    }

    /// The entities that a document is said to mention.
    pub(super) fn of_document(graph: &Graph, document: NodeId) -> Self {
        let said = graph.mentions(document);
        let is_stated = said.is_some();
        let to = said.unwrap_or_default().into_iter().map(|(uri, it)| {
            let mut props = said_by(&it.source, &it.source_rid);
            props.insert("count".to_owned(), it.n.into());
            mention((uri, props))
        });
        Self {
            bucket: NOTES,
            key: document_key(document),
            from: From::Node(document),
            to: to.collect(),
            is_stated,
        }
    }

    /// The URIs of the entities that are named.
    pub(super) fn uris(&self) -> impl Iterator<Item = &str> {
        let own = match &self.from {
            From::Node(_) => None,
            From::Entity(uri) => Some(uri.as_str()),
        };
        own.into_iter()
            .chain(self.to.iter().map(|it| it.to.as_str()))
    }

    /// With the nodes of entities; `None` if the start does not exist.
    pub(super) fn drafts(self, nodes: &HashMap<String, NodeId>) -> Option<Drafts> {
        let node = match &self.from {
            From::Node(node) => *node,
            From::Entity(uri) => *nodes.get(uri)?,
        };
        let to = self.to.into_iter();
        let wanted: Vec<EdgeDraft> = to
            .filter_map(|it| edge(node, &it.rel, *nodes.get(&it.to)?, it.props))
            .collect();
        let mut bytes = node.0.to_vec();
        for it in &wanted {
            bytes.extend_from_slice(it.rel.as_bytes());
            bytes.extend_from_slice(&it.dst.0);
            bytes.extend_from_slice(Value::Object(it.props.clone()).to_string().as_bytes());
        }
        Some(Drafts {
            bucket: self.bucket,
            key: self.key,
            node,
            wanted,
            digest: self.is_stated.then(|| digest(&bytes)),
        })
    }
}

impl Drafts {
    /// Whether these differ from what was written, by the digests of entities and of documents.
    pub(super) fn differ_from(
        &self,
        edges: &HashMap<String, String>,
        notes: &HashMap<String, String>,
    ) -> bool {
        let written = if self.bucket == EDGES { edges } else { notes };
        self.differ(written.get(&self.key).map(String::as_str))
    }

    fn differ(&self, written: Option<&str>) -> bool {
        written != self.digest.as_deref()
    }
}

fn mention((to, props): (String, Map<String, Value>)) -> Link {
    Link {
        rel: MENTIONS.to_owned(),
        to,
        props,
    }
}

fn said_by(source: &str, source_rid: &str) -> Map<String, Value> {
    let mut props = Map::new();
    props.insert(BY.to_owned(), BY_ENTITIES.into());
    props.insert("source".to_owned(), source.into());
    props.insert("source_rid".to_owned(), source_rid.into());
    props
}

fn edge(src: NodeId, rel: &str, dst: NodeId, props: Map<String, Value>) -> Option<EdgeDraft> {
    let draft = EdgeDraft {
        src,
        rel: rel.to_owned(),
        dst,
        weight: 1.0,
        props,
    };
    (src != dst).then_some(draft)
}

/// Corrects the edges where the digests differ.
pub(super) fn put_links(tx: &mut Tx<'_>, batch: Vec<Drafts>) -> Result<()> {
    let mut written = Written::default();
    for it in batch {
        let digests = lines(it.bucket);
        let before = digests.get_readable(&**tx, &it.key)?;
        if !it.differ(before.as_ref().map(|it| it.0.as_str())) {
            continue;
        }
        // A note that was removed meanwhile takes its links with it.
        let is_there = tx.node(it.node, When::Now)?.is_some();
        if is_there {
            edges::reconcile(tx, it.node, BY_ENTITIES, it.wanted, &mut written)?;
        }
        match it.digest {
            Some(digest) if is_there => digests.set(tx, &it.key, &digest.into())?,
            Some(_) => {}
            None => digests.unset(tx, &it.key)?,
        }
    }
    if written.is_any() {
        let data = json!({ "added": written.added, "ended": written.ended });
        tx.record("EntitiesLinked", data)?;
    }
    Ok(())
}
