//! The edges that the graph should have, and those of them that the store does not have yet.

use super::index::{EDGES, NOTES, digest, path_of};
use super::said::Settled;
use super::wanted::{Origin, Wanted};
use super::{BY_ENTITIES, DESCRIBES, MENTIONS, VAULT};
use kenning_audit::{EdgeDraft, Tx};
use kenning_core::{NodeId, Result};
use kenning_kernel::edges::{self, BY, Written};
use kenning_kg::{Doc, Library};
use kenning_store::When;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};

/// A document, and the entities that it mentions.
pub(super) struct Mentioning {
    /// A note's path, or [`SAID_DOCUMENT`] and the node.
    key: String,
    node: NodeId,
    /// The entity that it is about.
    own: Option<String>,
    /// By their URIs.
    to: BTreeMap<String, Mention>,
}

/// What says that a document mentions an entity.
struct Mention {
    source: String,
    source_rid: String,
    /// How often, if that was said.
    n: Option<u32>,
}

/// What a document is kept under that is no note.
pub(super) const SAID_DOCUMENT: &str = "said:";

/// Every document that mentions somebody, by what its text links to or by what was said of it.
pub(super) fn documents(
    library: &Library,
    wanted: &Wanted,
    said: &BTreeMap<String, Settled>,
    written: &HashMap<String, String>,
) -> Vec<Mentioning> {
    let notes = library
        .docs
        .iter()
        .map(|it| mentioning(library, wanted, it));
    let mut all: Vec<Mentioning> = notes.collect();
    let mut at: HashMap<NodeId, usize> =
        all.iter().enumerate().map(|(n, it)| (it.node, n)).collect();
    let mut place = |all: &mut Vec<Mentioning>, node: NodeId| {
        *at.entry(node).or_insert_with(|| {
            all.push(Mentioning {
                key: format!("{SAID_DOCUMENT}{node}"),
                node,
                own: None,
                to: BTreeMap::new(),
            });
            all.len() - 1
        })
    };
    for it in said.values() {
        let Some(node) = it.document() else { continue };
        let n = place(&mut all, node);
        let Some(document) = all.get_mut(n) else {
            continue;
        };
        for thing in &it.things {
            let uri = wanted.same(&thing.uri).to_owned();
            let mention = document.to.entry(uri).or_insert_with(|| Mention {
                source: it.source.clone(),
                source_rid: it.rid.clone(),
                n: None,
            });
            mention.n = Some(mention.n.unwrap_or(0) + thing.n_mentions);
        }
    }
    // What nothing is said of any more mentions nobody.
    for key in written.keys() {
        let node = key.strip_prefix(SAID_DOCUMENT).map(str::parse::<NodeId>);
        if let Some(Ok(node)) = node {
            place(&mut all, node);
        }
    }
    all
}

/// The entities whose notes a note links to, in its text or in its fields.
fn mentioning(library: &Library, wanted: &Wanted, doc: &Doc) -> Mentioning {
    let links = library.linked_from(doc);
    let path = path_of(doc);
    let of_note = |path: &str| wanted.of_note.get(path).cloned();
    let to = links.filter_map(|it| of_note(path_of(it)));
    let mention = || Mention {
        source: VAULT.to_owned(),
        source_rid: path.to_owned(),
        n: None,
    };
    Mentioning {
        key: path.to_owned(),
        node: doc.card.node,
        own: of_note(path),
        to: to.map(|it| (it, mention())).collect(),
    }
}

/// The edges of one node, to be written, with their digest and where that is kept.
pub(super) struct Links {
    bucket: &'static str,
    key: String,
    node: NodeId,
    wanted: Vec<EdgeDraft>,
    digest: String,
}

impl Links {
    fn of(bucket: &'static str, key: &str, node: NodeId, wanted: Vec<EdgeDraft>) -> Self {
        let mut bytes = node.0.to_vec();
        for it in &wanted {
            bytes.extend_from_slice(it.rel.as_bytes());
            bytes.extend_from_slice(&it.dst.0);
            bytes.extend_from_slice(Value::Object(it.props.clone()).to_string().as_bytes());
        }
        Self {
            bucket,
            key: key.to_owned(),
            node,
            wanted,
            digest: digest(&bytes),
        }
    }
}

/// The relationships that are others than those that were written.
pub(super) fn links_of_things(
    wanted: &Wanted,
    nodes: &HashMap<String, NodeId>,
    written: &HashMap<String, String>,
) -> Vec<Links> {
    let mut all = Vec::new();
    for uri in wanted.things.keys() {
        let Some(&node) = nodes.get(uri) else {
            continue;
        };
        let relations = wanted.relations.get(uri).into_iter().flatten();
        let drafts = relations.filter_map(|((predicate, to), origin)| {
            let Origin {
                source,
                source_rid,
                confidence,
            } = origin;
            let mut props = said_by(source, source_rid);
            props.insert("predicate".to_owned(), predicate.as_str().into());
            props.insert("confidence".to_owned(), (*confidence).into());
            edge(node, predicate, *nodes.get(to)?, props)
        });
        let links = Links::of(EDGES, uri, node, drafts.collect());
        if written.get(uri) != Some(&links.digest) {
            all.push(links);
        }
    }
    all
}

/// What documents are about and mention, where that is another than what was written.
pub(super) fn links_of_documents(
    nodes: &HashMap<String, NodeId>,
    docs: &[Mentioning],
    written: &HashMap<String, String>,
) -> Vec<Links> {
    let mut all = Vec::new();
    for doc in docs {
        let own = doc.own.as_ref().and_then(|it| nodes.get(it)).copied();
        let mentioned = doc.to.iter().filter_map(|(uri, mention)| {
            let to = nodes.get(uri).copied().filter(|it| Some(*it) != own)?;
            let mut props = said_by(&mention.source, &mention.source_rid);
            if let Some(n) = mention.n {
                props.insert("count".to_owned(), n.into());
            }
            edge(doc.node, MENTIONS, to, props)
        });
        let about = own.and_then(|it| edge(doc.node, DESCRIBES, it, said_by(VAULT, &doc.key)));
        let drafts = about.into_iter().chain(mentioned);
        let links = Links::of(NOTES, &doc.key, doc.node, drafts.collect());
        if written.get(&doc.key) != Some(&links.digest) {
            all.push(links);
        }
    }
    all
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

pub(super) fn put_links(tx: &mut Tx<'_>, batch: Vec<Links>) -> Result<()> {
    let mut written = Written::default();
    for it in batch {
        // A note that was removed meanwhile takes its links with it.
        if tx.node(it.node, When::Now)?.is_none() {
            continue;
        }
        edges::reconcile(tx, it.node, BY_ENTITIES, it.wanted, &mut written)?;
        tx.set(it.bucket, &it.key, it.digest.as_bytes())?;
    }
    if written.is_any() {
        let data = json!({ "added": written.added, "ended": written.ended });
        tx.record("EntitiesLinked", data)?;
    }
    Ok(())
}
