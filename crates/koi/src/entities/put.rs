//! Entities as nodes, and the rows by which their names are found.

use super::incremental::Graph;
use super::index::{ALIAS, EDGES, EXACT, NODES, RID, SOUND, digest, lines};
use super::view::note_recent;
use super::wanted::Thing;
use super::{aliases, kind, passages_of_names};
use kenning_audit::{Draft, Passages, Tx};
use kenning_core::{Code, Kind, NodeId, Result};
use kenning_entities::names::{alias_key, network_rid, normalized};
use kenning_store::{Node, ReadTx, When};
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashMap};

/// The entities under a key: the bucket, the key, and a URI a line; `None` if there is none.
type Found = (&'static str, String, Option<String>);

/// An entity as it should be.
pub(super) struct ThingToPut {
    uri: String,
    digest: String,
    draft: Draft,
    /// Cut and hashed before the transaction that puts them.
    passages: Passages,
    names: Vec<String>,
    merged: Vec<String>,
    /// URIs that were merged into it and are not any more.
    unmerged: Vec<String>,
    found: Vec<Found>,
    is_new: bool,
}

/// An entity that nothing states any more.
pub(super) struct ThingToRemove {
    uri: String,
    node: Option<Node>,
    /// The entity that it was merged into, if any.
    into: Option<String>,
    found: Vec<Found>,
}

/// The digest of an entity as it should be, with the version of the parser.
pub(super) fn digest_of(thing: &Thing, version: &str) -> String {
    digest(format!("{version}\n{thing:?}").as_bytes())
}

impl ThingToPut {
    pub(super) fn of(
        tx: &dyn ReadTx,
        graph: &Graph,
        uri: &str,
        thing: Thing,
        digest: String,
    ) -> Result<Self> {
        let before = tx.node_by_key("", Kind::Entity, uri, When::Now)?;
        let sound = graph.sound(uri);
        let names = std::iter::once(&thing.name).chain(&thing.aliases);
        let mut keys = keys_of(&thing.name, thing.aliases.iter().map(String::as_str), sound);
        keys.extend(before.iter().flat_map(keys_of_node));
        let unmerged = before.iter().flat_map(merged);
        let unmerged = unmerged.filter(|it| !thing.merged.iter().any(|now| now == it));
        let draft = draft(uri, &thing, sound);
        let called: Vec<&str> = names.clone().map(String::as_str).collect();
        let passages = passages_of_names(&called, &draft.title, &draft.body);
        Ok(Self {
            passages: passages.into(),
            names: names.cloned().collect(),
            unmerged: unmerged.map(ToOwned::to_owned).collect(),
            found: found(graph, keys),
            is_new: before.is_none(),
            draft,
            merged: thing.merged,
            uri: uri.to_owned(),
            digest,
        })
    }
}

impl ThingToPut {
    /// Its URI, and every name that it has.
    pub(super) fn called(&self) -> (String, Vec<String>) {
        (self.uri.clone(), self.names.clone())
    }
}

impl ThingToRemove {
    pub(super) fn of(tx: &dyn ReadTx, graph: &Graph, uri: &str, id: NodeId) -> Result<Self> {
        let node = tx.node(id, When::Now)?;
        let keys = node.iter().flat_map(keys_of_node).collect();
        let into = graph.same(uri);
        Ok(Self {
            found: found(graph, keys),
            into: (into != uri).then(|| into.to_owned()),
            uri: uri.to_owned(),
            node,
        })
    }
}

/// Writes entities; returns their nodes.
pub(super) fn put_things(
    tx: &mut Tx<'_>,
    batch: Vec<ThingToPut>,
) -> Result<HashMap<String, NodeId>> {
    let (mut put, mut new) = (HashMap::new(), Vec::new());
    for it in batch {
        let node = tx.put_node(it.draft)?;
        if node.updated == tx.now() {
            tx.put_hashed_passages(node.id, &it.passages)?;
            tx.put_names(node.id, &it.names)?;
            let kind = if it.is_new {
                "EntityAdded"
            } else {
                "EntityChanged"
            };
            tx.record(kind, event_data(&node))?;
            if it.is_new {
                new.push(it.uri.clone());
            }
        }
        put_found(tx, &it.found)?;
        RID.set(tx, &rid(&node), &it.uri.as_str().into())?;
        // A URI that was merged into another leads there, like a name among federated nodes.
        for merged in &it.unmerged {
            unset_merged(tx, merged, &it.uri)?;
        }
        for merged in &it.merged {
            RID.set(tx, merged, &it.uri.as_str().into())?;
        }
        let row = format!("{} {}", it.digest, node.id);
        NODES.set(tx, &it.uri, &row.into())?;
        put.insert(it.uri, node.id);
    }
    note_recent(tx, &new)?;
    Ok(put)
}

pub(super) fn remove_things(tx: &mut Tx<'_>, batch: Vec<ThingToRemove>) -> Result<()> {
    for it in batch {
        let uri = &it.uri;
        NODES.unset(tx, uri)?;
        lines(EDGES).unset(tx, uri)?;
        let Some(node) = it.node else {
            continue;
        };
        put_found(tx, &it.found)?;
        match &it.into {
            // Who was merged leads on by every name.
            Some(into) => RID.set(tx, &rid(&node), &into.as_str().into())?,
            None => RID.unset(tx, &rid(&node))?,
        }
        for merged in merged(&node) {
            unset_merged(tx, merged, uri)?;
        }
        match tx.remove_node(node.id) {
            Ok(()) => {}
            Err(error) if error.code == Code::NotFound => continue,
            Err(error) => return Err(error),
        }
        tx.record("EntityRemoved", event_data(&node))?;
    }
    Ok(())
}

/// The URIs that were merged into an entity.
pub(super) fn merged(node: &Node) -> impl Iterator<Item = &str> {
    let merged = node.props.get("merged").and_then(Value::as_array);
    merged.into_iter().flatten().filter_map(Value::as_str)
}

fn unset_merged(tx: &mut Tx<'_>, merged: &str, into: &str) -> Result<()> {
    match RID.get_readable(&**tx, merged)? {
        Some(leads) if leads.0 == into => RID.unset(tx, merged),
        _ => Ok(()),
    }
}

fn rid(node: &Node) -> String {
    network_rid(&node.key, &node.title, kind(node))
}

fn draft(uri: &str, thing: &Thing, sound: Option<&str>) -> Draft {
    let mut props = Map::new();
    let mut put = |name: &str, value: Value| props.insert(name.to_owned(), value);
    put("type", thing.kind.as_str().into());
    put("source", thing.source.as_str().into());
    put("source_rid", thing.source_rid.as_str().into());
    put("rid", network_rid(uri, &thing.name, &thing.kind).into());
    if let Some(sound) = sound {
        put("sound", sound.into());
    }
    if !thing.aliases.is_empty() {
        put("aliases", thing.aliases.clone().into());
    }
    if let Some(first) = thing.paths.first() {
        put("path", first.as_str().into());
    }
    if thing.paths.len() > 1 {
        put("paths", thing.paths.clone().into());
    }
    if !thing.merged.is_empty() {
        put("merged", thing.merged.clone().into());
    }
    Draft {
        kind: Kind::Entity,
        project: String::new(),
        key: uri.to_owned(),
        title: thing.name.clone(),
        body: thing.description.clone(),
        props,
    }
}

fn event_data(node: &Node) -> Value {
    let path = node.props.get("path").cloned().unwrap_or_default();
    json!({
        "nodeId": node.id.to_string(), "uri": node.key, "name": node.title, "type": kind(node),
        "source": node.props.get("source"), "note": path,
    })
}

/// The keys of an entity, with the bucket of each.
fn keys_of<'a>(
    name: &str,
    aliases: impl Iterator<Item = &'a str>,
    sound: Option<&str>,
) -> BTreeSet<(&'static str, String)> {
    let mut keys = BTreeSet::from([(EXACT, normalized(name))]);
    for alias in aliases {
        keys.extend([(ALIAS, alias_key(alias)), (ALIAS, normalized(alias))]);
    }
    keys.extend(sound.map(|it| (SOUND, it.to_owned())));
    keys
}

fn keys_of_node(node: &Node) -> BTreeSet<(&'static str, String)> {
    let sound = node.props.get("sound").and_then(Value::as_str);
    keys_of(&node.title, aliases(node), sound)
}

/// The entities under these keys.
fn found(graph: &Graph, keys: BTreeSet<(&'static str, String)>) -> Vec<Found> {
    let found = keys.into_iter().map(|(bucket, key)| {
        let uris = match bucket {
            EXACT => graph.named(&key),
            ALIAS => graph.called(&key),
            _ => graph.sounding(&key),
        };
        let lines = (!uris.is_empty()).then(|| uris.join("\n"));
        (bucket, key, lines)
    });
    found.collect()
}

fn put_found(tx: &mut Tx<'_>, found: &[Found]) -> Result<()> {
    found.iter().try_for_each(|(bucket, key, uris)| match uris {
        Some(uris) => lines(bucket).set(tx, key, &uris.as_str().into()),
        None => lines(bucket).unset(tx, key),
    })
}
