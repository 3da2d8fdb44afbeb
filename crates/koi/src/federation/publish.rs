//! What this node provides: entities and notes of the types that the policy names, as bundles that follow
//! the log.
//!
//! Only what somebody here states is provided, never what a peer stated, and of a relationship only if
//! whoever gets its subject may also get its object.

use super::queue::enqueue;
use super::records::{
    ABOUT, COUNTS, DOCUMENT, EDGES, NodeRow, PEERS, PUBLISHED, PUBLISHED_AS, PublishedRow, Queued,
    READ_LOG, StoredBundle, rid_type, shared_with,
};
use crate::Koi;
use crate::entities::{KOI_NET, is_ours, words_of_peers};
use kenning_audit::{Change, Tx};
use kenning_core::{Kind, NodeId, Result};
use kenning_federation::manifest::hash_of;
use kenning_federation::rid::is_type_named;
use kenning_federation::{EventType, Json, Manifest, Rid, time};
use kenning_kernel::{Caller, Principal};
use kenning_store::{EdgeFilter, Node, NodeFilter, ReadTx, When};
use kenning_text::hex::sha256;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Events of the log that are read together.
const PAGE: usize = 1_000;
/// Nodes that are compared together.
const BATCH: usize = 500;
/// So many earlier hashes are kept.
const EARLIER_MAX: usize = 8;
/// A note with more text is not provided.
const TEXT_BYTES_MAX: usize = 512 * 1024;

/// Who may get what, by types of the policy.
struct Sharing {
    /// Every type that anybody may get.
    kinds: BTreeSet<String>,
    /// The types that each peer may get; without peers, those that the node would share.
    peers: Vec<Vec<String>>,
}

impl Sharing {
    fn of(tx: &dyn ReadTx, node: &NodeRow) -> Result<Self> {
        let rows = PEERS.list_readable(tx)?;
        let active = rows.iter().filter(|it| it.1.is_active());
        let mut peers: Vec<Vec<String>> =
            active.map(|it| shared_with(node, &it.1).to_vec()).collect();
        peers.push(node.provides.clone());
        let kinds = peers.iter().flatten().cloned().collect();
        Ok(Self { kinds, peers })
    }

    /// Whether everybody who may get `kind` may also get `other`.
    fn goes_with(&self, kind: &str, other: &str) -> bool {
        let has = |types: &Vec<String>, kind: &str| types.iter().any(|it| it == kind);
        self.peers
            .iter()
            .filter(|it| has(it, kind))
            .all(|it| has(it, other))
    }
}

/// Something to provide.
struct Wanted {
    rid: String,
    kind: String,
    contents: Json,
}

impl Koi {
    /// Brings what is provided up to date with the graph; returns how many bundles are others than before.
    pub(super) fn publish_changes(&self) -> Result<usize> {
        let Some(me) = self.me()? else {
            return Ok(0);
        };
        let space = self.federated_space();
        self.follow_entities(&Caller::new(Principal::owner(space.clone())))?;
        let log = self.kernel.log();
        let (ids, until) = log.read(&space, |tx| {
            let until = tx.head()?.map_or(0, |it| it.seq);
            let from = COUNTS.get_readable(tx, READ_LOG)?;
            match from.filter(|it| *it <= until) {
                Some(from) => Ok((changed(tx, from, until)?, (from, until))),
                None => Ok((everything(tx)?, (u64::MAX, until))),
            }
        })?;
        let ids: Vec<NodeId> = ids.into_iter().collect();
        let mut n_changed = 0;
        for batch in ids.chunks(BATCH) {
            let wanted = log.read(&space, |tx| {
                let sharing = Sharing::of(tx, &me.row)?;
                let each = batch
                    .iter()
                    .map(|id| Ok((*id, self.wanted(tx, &sharing, *id)?)));
                each.collect::<Result<Vec<_>>>()
            })?;
            let (row, rid, now) = (me.row.clone(), me.rid.to_string(), self.federation_now());
            n_changed += log.write_long(&space, move |tx| {
                let events = put(tx, wanted, now)?;
                fan_out(tx, &row, &rid, &events, now)?;
                Ok(events.len())
            })?;
        }
        if until.0 != until.1 {
            // What was written meanwhile is looked at next time.
            log.write(&space, move |tx| COUNTS.set(tx, READ_LOG, &until.1))?;
        }
        Ok(n_changed)
    }

    /// What a node of the graph is provided as; `None` if it is not.
    fn wanted(&self, tx: &dyn ReadTx, sharing: &Sharing, id: NodeId) -> Result<Option<Wanted>> {
        let Some(node) = tx.node(id, When::Now)? else {
            return Ok(None);
        };
        match node.kind {
            Kind::Entity => entity(tx, sharing, &node),
            Kind::Document => Ok(self.document(sharing, &node)),
            _ => Ok(None),
        }
    }

    fn document(&self, sharing: &Sharing, node: &Node) -> Option<Wanted> {
        let path = node.key.strip_prefix("vault:")?;
        let is_own = node.project.is_empty() && !node.props.contains_key("stated");
        if !is_own || !sharing.kinds.contains(DOCUMENT) || node.body.len() > TEXT_BYTES_MAX {
            return None;
        }
        // Two nodes may have notes with one path.
        let owner = sha256(self.kernel.log().signer().did().as_str().as_bytes());
        let owner = owner.get(..16).unwrap_or_default();
        Some(Wanted {
            rid: format!("{}:{owner}/{path}", rid_type(DOCUMENT)),
            kind: DOCUMENT.to_owned(),
            contents: Json::object([
                ("@type", Json::text(DOCUMENT)),
                ("title", Json::text(&node.title)),
                ("path", Json::text(path)),
                ("text", Json::text(&node.body)),
            ]),
        })
    }
}

/// The nodes that changed, or whose relations did.
fn changed(tx: &dyn ReadTx, from: u64, until: u64) -> Result<BTreeSet<NodeId>> {
    let (mut ids, mut at) = (BTreeSet::new(), from);
    while at < until {
        let page = tx.events_after(at, PAGE)?;
        let Some(last) = page.last() else { break };
        at = last.seq;
        for event in page.iter().filter_map(kenning_audit::event::parse) {
            for change in event.changes {
                match change {
                    Change::PutNode { id, .. } | Change::RemoveNode { id } => {
                        ids.insert(id);
                    }
                    Change::PutEdge { src, .. } | Change::EndEdge { src, .. } => {
                        ids.insert(src);
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(ids)
}

/// All entities and notes, and what is provided of nodes that are gone.
fn everything(tx: &dyn ReadTx) -> Result<BTreeSet<NodeId>> {
    let filter = NodeFilter {
        kinds: vec![Kind::Entity, Kind::Document],
        project: Some(String::new()),
        key_prefix: None,
    };
    let mut ids = BTreeSet::new();
    let mut after = None;
    loop {
        let page = tx.nodes(&filter, When::Now, after, PAGE)?;
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        ids.extend(page.iter().map(|it| it.id));
    }
    let provided = PUBLISHED_AS.keys(tx)?;
    ids.extend(provided.iter().filter_map(|it| it.parse::<NodeId>().ok()));
    Ok(ids)
}

fn text<'a>(node: &'a Node, name: &str) -> &'a str {
    node.props
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn entity(tx: &dyn ReadTx, sharing: &Sharing, node: &Node) -> Result<Option<Wanted>> {
    let kind = text(node, "type");
    if !sharing.kinds.contains(kind) || !is_ours(node) {
        return Ok(None);
    }
    let about = ABOUT.get_readable(tx, &node.key)?.unwrap_or_default();
    let rids: Vec<&str> = about.0.lines().collect();
    let foreign = words_of_peers(tx, &rids, &node.key)?;
    let aliases = node.props.get("aliases").and_then(Value::as_array);
    let aliases = aliases.into_iter().flatten().filter_map(Value::as_str);
    let aliases: Vec<&str> = aliases.filter(|it| !foreign.contains(*it)).collect();
    let description = Some(node.body.as_str()).filter(|it| !foreign.contains(*it));
    let edges = EdgeFilter {
        src: Some(node.id),
        ..EdgeFilter::default()
    };
    let mut relations = BTreeMap::new();
    for edge in tx.edges(&edges, When::Now, usize::MAX)? {
        let source = edge.props.get("source").and_then(Value::as_str);
        if !edge.props.contains_key("predicate") || source == Some(KOI_NET) {
            continue;
        }
        let Some(object) = tx.node(edge.dst, When::Now)? else {
            continue;
        };
        if is_ours(&object) && sharing.goes_with(kind, text(&object, "type")) {
            let described = Json::object([
                ("name", Json::text(&object.title)),
                ("entity_type", Json::text(text(&object, "type"))),
                ("rid", Json::text(text(&object, "rid"))),
            ]);
            relations.insert((edge.rel, object.key), described);
        }
    }
    let relations = relations.into_iter().map(|((predicate, _), object)| {
        Json::object([("predicate", Json::Text(predicate)), ("object", object)])
    });
    Ok(Some(Wanted {
        rid: text(node, "rid").to_owned(),
        kind: kind.to_owned(),
        contents: Json::object([
            ("name", Json::text(&node.title)),
            ("entity_type", Json::text(kind)),
            ("uri", Json::text(&node.key)),
            ("aliases", Json::texts(aliases)),
            ("description", Json::text(description.unwrap_or_default())),
            ("relationships", Json::List(relations.collect())),
        ]),
    }))
}

/// What happened to something that is provided.
struct Happened {
    kind: String,
    queued: Queued,
}

/// Stores what is provided of these nodes; returns what is other than before.
fn put(
    tx: &mut Tx<'_>,
    wanted: Vec<(NodeId, Option<Wanted>)>,
    now_ms: u64,
) -> Result<Vec<Happened>> {
    let mut happened = Vec::new();
    for (id, wanted) in wanted {
        let id = id.to_string();
        let before = PUBLISHED_AS.get_readable(&**tx, &id)?.map(|it| it.0);
        let same = wanted
            .as_ref()
            .is_some_and(|it| before.as_ref() == Some(&it.rid));
        if let Some(rid) = before.filter(|_| !same) {
            PUBLISHED_AS.unset(tx, &id)?;
            // Another node may be provided under this name by now.
            if let Some(row) = PUBLISHED
                .get_readable(&**tx, &rid)?
                .filter(|it| it.node == id)
            {
                PUBLISHED.unset(tx, &rid)?;
                let queued = super::queue::forget(&rid);
                happened.push(Happened {
                    kind: row.kind,
                    queued,
                });
            }
        }
        let Some(wanted) = wanted else { continue };
        let Ok(rid) = Rid::parse(&wanted.rid) else {
            continue;
        };
        let before = PUBLISHED.get_readable(&**tx, &wanted.rid)?;
        let hash = hash_of(&wanted.contents)?;
        if before
            .as_ref()
            .is_some_and(|it| it.bundle.sha256_hash == hash && it.node == id)
        {
            continue;
        }
        let mut earlier = before
            .as_ref()
            .map(|it| it.earlier.clone())
            .unwrap_or_default();
        earlier.extend(before.as_ref().map(|it| it.bundle.sha256_hash.clone()));
        let n_old = earlier.len().saturating_sub(EARLIER_MAX);
        earlier.drain(..n_old);
        // Two contents with one time would be two histories.
        let last = before
            .as_ref()
            .and_then(|it| time::read(&it.bundle.timestamp))
            .and_then(|it| u64::try_from(it / 1_000).ok());
        let now_ms = last.map_or(now_ms, |it| now_ms.max(it + 1));
        let manifest = Manifest::of(&rid, &wanted.contents, now_ms)?;
        let row = PublishedRow {
            kind: wanted.kind.clone(),
            node: id.clone(),
            bundle: StoredBundle {
                timestamp: manifest.timestamp,
                sha256_hash: hash,
                contents: wanted.contents.to_text(),
            },
            earlier,
        };
        PUBLISHED.set(tx, &wanted.rid, &row)?;
        PUBLISHED_AS.set(tx, &id, &wanted.rid.as_str().into())?;
        let event_type = if before.is_some() {
            EventType::Update
        } else {
            EventType::New
        };
        let queued = Queued {
            rid: wanted.rid,
            event_type: event_type.as_str().to_owned(),
            bundle: None,
        };
        happened.push(Happened {
            kind: wanted.kind,
            queued,
        });
    }
    Ok(happened)
}

/// Queues what happened for those who subscribe to it and may get it.
fn fan_out(
    tx: &mut Tx<'_>,
    node: &NodeRow,
    own: &str,
    happened: &[Happened],
    now_ms: u64,
) -> Result<()> {
    if happened.is_empty() {
        return Ok(());
    }
    let mut n_queued = 0;
    for (_, edge) in EDGES.list_readable(&**tx)? {
        if edge.source != own || !edge.is_approved {
            continue;
        }
        let Some(peer) = PEERS.get_readable(&**tx, &edge.target)? else {
            continue;
        };
        let shared = shared_with(node, &peer);
        let is_meant = |it: &&Happened| {
            let rid_type = rid_type(&it.kind);
            let is_asked = edge.rid_types.iter().any(|it| is_type_named(&rid_type, it));
            is_asked && shared.contains(&it.kind)
        };
        let events: Vec<Queued> = happened
            .iter()
            .filter(is_meant)
            .map(|it| it.queued.clone())
            .collect();
        n_queued += events.len();
        enqueue(tx, &peer.rid, &events, now_ms, false)?;
    }
    let data = json!({ "changed": happened.len(), "queued": n_queued });
    tx.record("FederationProvided", data).map(drop)
}
