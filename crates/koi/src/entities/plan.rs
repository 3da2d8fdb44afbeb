//! How the store differs from the graph that all statements make.

use super::incremental::Graph;
use super::index::{EDGES, NODES, NOTES, STATED, State, lines, path_of};
use super::links::{Links, document_key, document_of_key};
use super::live::Followed;
use super::put::digest_of;
use super::stated::Stated;
use super::view::Tally;
use kenning_core::{NodeId, Result};
use kenning_kernel::{Bucket, Text};
use kenning_kg::Library;
use kenning_store::ReadTx;
use std::collections::{BTreeSet, HashMap};

/// How the store differs from what all statements make.
#[derive(Default)]
pub(super) struct Plan {
    /// Notes that state something else than before.
    pub(super) stated: Vec<(String, Stated)>,
    /// Entities that are new or others, with their digests.
    pub(super) things: Vec<(String, String)>,
    /// Entities that nothing states any more.
    pub(super) removed: Vec<(String, NodeId)>,
    /// What may have other edges than those that were written.
    pub(super) links: Vec<Links>,
    /// The nodes of entities, as far as they are there and needed.
    pub(super) nodes: HashMap<String, NodeId>,
    /// The digests of edges that were written; `None` if they are asked for one by one.
    pub(super) written: Option<(HashMap<String, String>, HashMap<String, String>)>,
    pub(super) gone_notes: Vec<String>,
    pub(super) tally: Tally,
    pub(super) state: State,
}

impl Plan {
    /// By everything that was written.
    pub(super) fn of_all(
        tx: &dyn ReadTx,
        library: &Library,
        graph: &Graph,
        version: &str,
        state: State,
    ) -> Result<Self> {
        let mut plan = Self {
            state,
            ..Self::default()
        };
        let mut digests = HashMap::new();
        for (uri, row) in texts(tx, &NODES)? {
            let Some((digest, node)) = entity_row(&row) else {
                continue;
            };
            if graph.has(&uri) {
                digests.insert(uri.clone(), digest.to_owned());
                plan.nodes.insert(uri, node);
            } else {
                plan.removed.push((uri, node));
            }
        }
        plan.removed.sort_unstable();
        let mut uris: Vec<&str> = graph.uris().collect();
        uris.sort_unstable();
        for uri in uris {
            let Some(thing) = graph.thing(uri) else {
                continue;
            };
            let digest = digest_of(&thing, version);
            if digests.get(uri) != Some(&digest) {
                plan.things.push((uri.to_owned(), digest));
            }
            plan.links.push(Links::of_thing(graph, uri));
        }
        let notes = texts(tx, &lines(NOTES))?;
        for doc in &library.docs {
            plan.links.push(Links::of_note(graph, library, doc));
        }
        // What nothing is said of any more mentions nobody.
        let written = notes.keys().filter_map(|it| document_of_key(it));
        let documents: BTreeSet<NodeId> = graph.documents().chain(written).collect();
        let is_note = |it: &NodeId| library.by_node(*it).is_some();
        let others = documents.iter().filter(|it| !is_note(it));
        plan.links
            .extend(others.map(|it| Links::of_document(graph, *it)));
        let stated = STATED.keys(tx)?.into_iter();
        let gone: BTreeSet<String> = stated
            .chain(notes.keys().cloned())
            .filter(|key| match document_of_key(key) {
                Some(document) => is_note(&document),
                None => library.note(key).is_none(),
            })
            .collect();
        plan.gone_notes = gone.into_iter().collect();
        plan.written = Some((texts(tx, &lines(EDGES))?, notes));
        Ok(plan)
    }

    /// By what changed since everything was as it should be.
    pub(super) fn of_changes(
        tx: &dyn ReadTx,
        library: &Library,
        graph: &Graph,
        version: &str,
        followed: Followed,
        state: State,
    ) -> Result<Self> {
        let Followed {
            changes,
            paths,
            stated,
        } = followed;
        let mut plan = Self {
            stated,
            state,
            ..Self::default()
        };
        for uri in &changes.things {
            let row = text(tx, &NODES, uri)?;
            let row = row.as_deref().and_then(entity_row);
            match (graph.thing(uri), row) {
                (Some(thing), row) => {
                    let digest = digest_of(&thing, version);
                    if row.is_none_or(|it| it.0 != digest) {
                        plan.things.push((uri.clone(), digest));
                    }
                }
                (None, Some((_, node))) => plan.removed.push((uri.clone(), node)),
                (None, None) => {}
            }
        }
        let subjects = changes.subjects.iter().chain(&changes.things);
        let subjects: BTreeSet<&String> = subjects.filter(|it| graph.has(it)).collect();
        plan.links
            .extend(subjects.iter().map(|it| Links::of_thing(graph, it)));
        let mut notes: BTreeSet<&str> = BTreeSet::new();
        for path in changes.notes.iter().chain(&paths) {
            match library.note(path) {
                Some(doc) => {
                    notes.insert(path);
                    if graph.mentions(doc.card.node).is_some() {
                        plan.gone_notes.push(document_key(doc.card.node));
                    }
                    let linking = library.linking_to(doc).map(path_of);
                    notes.extend(linking);
                }
                None => plan.gone_notes.push(path.clone()),
            }
        }
        for document in changes.documents {
            match library.by_node(document) {
                Some(doc) => {
                    notes.insert(path_of(doc));
                    plan.gone_notes.push(document_key(document));
                }
                None => plan.links.push(Links::of_document(graph, document)),
            }
        }
        let docs = notes.into_iter().filter_map(|it| library.note(it));
        plan.links
            .extend(docs.map(|it| Links::of_note(graph, library, it)));
        let mut nodes = HashMap::new();
        for uri in plan.links.iter().flat_map(Links::uris) {
            if !nodes.contains_key(uri)
                && let Some(row) = text(tx, &NODES, uri)?
                && let Some((_, node)) = entity_row(&row)
            {
                nodes.insert(uri.to_owned(), node);
            }
        }
        plan.nodes = nodes;
        Ok(plan)
    }

    pub(super) fn len(&self) -> usize {
        self.stated.len() + self.things.len() + self.removed.len() + self.links.len()
    }
}

fn entity_row(row: &str) -> Option<(&str, NodeId)> {
    let (digest, node) = row.split_once(' ')?;
    Some((digest, node.parse().ok()?))
}

fn text(tx: &dyn ReadTx, bucket: &Bucket<Text>, key: &str) -> Result<Option<String>> {
    Ok(bucket.get_readable(tx, key)?.map(|it| it.0))
}

fn texts(tx: &dyn ReadTx, bucket: &Bucket<Text>) -> Result<HashMap<String, String>> {
    let rows = bucket.list_readable(tx)?.into_iter();
    Ok(rows.map(|(key, text)| (key, text.0)).collect())
}
