//! What other nodes tell about themselves, and who subscribes to what.

use super::queue::{control, enqueue, forget};
use super::records::{
    Dialect, EDGES, EdgeRow, NodeRow, PEERS, PeerRow, STATUS, StoredBundle, count_newcomer,
    drop_node, forget_edges, note_status, rid_types, shared_with,
};
use kenning_audit::Tx;
use kenning_core::{Error, Result};
use kenning_federation::envelope::handover;
use kenning_federation::profile::is_own_type;
use kenning_federation::rid::{edge_rid, is_type_named};
use kenning_federation::{
    Bundle, EdgeProfile, EdgeStatus, EdgeType, EventType, Json, NodeProfile, NodeRid, NodeType,
    PublicKey, Rid, time,
};
use serde_json::json;

/// The longest profile of a node.
const PROFILE_BYTES_MAX: usize = 16 * 1024;

/// A profile is at most so many microseconds ahead of this clock: a later one could never be corrected.
const AHEAD_US_MAX: i64 = 86_400_000_000;

/// The most nodes that nobody approved: for one more, the one that was silent longest is forgotten.
const STRANGERS_MAX: usize = 256;

/// So long after it was last heard of, a node that nobody approved is forgotten.
const STRANGER_MS: u64 = 7 * 86_400_000;

/// What a peer asks for within so many milliseconds, it asks for together: coordinators of the reference
/// implementation propose the same edge once for each of their handlers, withdraw it in between, and the order is
/// that of a set.
const TOGETHER_MS: u64 = 10_000;

/// What the transaction needs to know of this node.
#[derive(Clone, Debug)]
pub(super) struct Own {
    pub(super) rid: String,
    pub(super) row: NodeRow,
    pub(super) now_ms: u64,
}

/// What is said of a node.
pub(super) struct Introduction<'a> {
    /// Its profile.
    pub(super) bundle: &'a Bundle,
    /// Who says so: the node itself, or another.
    pub(super) from: &'a str,
    /// Whether it speaks as Octo nodes do.
    pub(super) is_octo: bool,
}

/// A profile that is what it says: its key is the one in its name.
pub(super) fn checked_profile(bundle: &Bundle) -> Result<(NodeProfile, PublicKey)> {
    let rid = NodeRid::parse(bundle.manifest.rid.as_str())?;
    let n_bytes = bundle.contents.to_text().len();
    if n_bytes > PROFILE_BYTES_MAX {
        return Err(Error::invalid(format!(
            "the profile of `{rid}` has {n_bytes} bytes, more than {PROFILE_BYTES_MAX}"
        )));
    }
    let profile = NodeProfile::from_json(&bundle.contents)?;
    let key = PublicKey::parse(&profile.public_key)?;
    if !rid.is_of(&key) {
        return Err(Error::denied(format!(
            "the key of `{rid}` is not the one in its name"
        )));
    }
    if !bundle.manifest.is_of(&bundle.contents) {
        return Err(Error::denied(format!(
            "the hash of the profile of `{rid}` does not match"
        )));
    }
    Ok((profile, key))
}

/// Takes what a node says of itself (`from` is its RID), or what another says of it. Others only introduce: what a
/// known node is changes by its own signature alone.
pub(super) fn know_node(tx: &mut Tx<'_>, own: &Own, introduction: &Introduction<'_>) -> Result<()> {
    let Introduction {
        bundle,
        from,
        is_octo,
    } = *introduction;
    let rid = bundle.manifest.rid.as_str();
    let (profile, key) = checked_profile(bundle)?;
    // Nobody else is this node, and nobody else is where it is.
    if rid == own.rid || (profile.base_url.is_some() && profile.base_url == own.row.base_url) {
        return Ok(());
    }
    let before = PEERS.get(&**tx, rid)?;
    let is_known = before.is_some();
    if is_known && from != rid {
        return Ok(());
    }
    let is_octo = is_octo
        || before
            .as_ref()
            .is_some_and(|it| it.dialect == Dialect::Octo);
    if NodeRid::parse(rid)?.has_short_hash() && !is_octo {
        return Err(Error::denied(format!(
            "the name `{rid}` has only a part of the hash of its key"
        ))
        .hint("only Octo nodes have such names, and introduce themselves in a handshake"));
    }
    if is_ahead(&bundle.manifest.timestamp, own.now_ms) {
        return Err(Error::invalid(format!(
            "the profile of `{rid}` is dated {}, which is to come",
            bundle.manifest.timestamp
        ))
        .hint("set the clock of that node"));
    }
    if !is_known && has_other_name(tx, rid, &key)? {
        return Err(Error::denied(format!(
            "the key of `{rid}` is that of a node with another name"
        )));
    }
    let mut row = before.clone().unwrap_or_else(|| PeerRow {
        rid: rid.to_owned(),
        introduced_by: (from != rid).then(|| from.to_owned()),
        known_ms: own.now_ms,
        ..PeerRow::default()
    });
    if !row.public_key.is_empty() && row.public_key != key.as_str() {
        return Err(
            Error::denied(format!("`{rid}` has another key than before")).hint(
                "`kenning federation disconnect` it, and connect again if that was on purpose",
            ),
        );
    }
    if let Some(stored) = &row.profile {
        let (old, new) = (
            time::read(&stored.timestamp),
            time::read(&bundle.manifest.timestamp),
        );
        let is_settled = !is_octo || row.dialect == Dialect::Octo || row.kenning_did.is_some();
        if is_settled && (new <= old || stored.sha256_hash == bundle.manifest.sha256_hash) {
            return Ok(());
        }
    }
    if !is_known {
        count_newcomer(tx, own.now_ms)?;
        let strangers = strangers(tx)?;
        if let Some((_, longest_silent)) = strangers.iter().min()
            && strangers.len() >= STRANGERS_MAX
        {
            forget_stranger(tx, longest_silent)?;
        }
    }
    if is_octo && row.kenning_did.is_none() {
        row.dialect = Dialect::Octo;
    }
    row.public_key = key.as_str().to_owned();
    row.is_partial = profile.node_type == NodeType::Partial;
    if !row.is_granted {
        row.base_url = profile.base_url.clone();
    }
    row.provides_event = profile.provides_event.clone();
    row.provides_state = profile.provides_state.clone();
    row.kenning_did = profile.kenning_did.clone();
    row.profile = Some(StoredBundle::of(bundle));
    if from == rid {
        row.introduced_by = None;
        take_handover(tx, &mut row, &profile)?;
    }
    PEERS.set(tx, rid, &row)?;
    let data = json!({
        "node": rid, "baseUrl": row.base_url, "provides": row.provides_event, "from": from,
        "dialect": row.dialect,
    });
    tx.record("FederationNodeKnown", data).map(drop)
}

fn is_ahead(timestamp: &str, now_ms: u64) -> bool {
    let now = i64::try_from(now_ms.saturating_mul(1_000)).unwrap_or(i64::MAX);
    time::read(timestamp).is_some_and(|it| it > now.saturating_add(AHEAD_US_MAX))
}

/// Whether another node has this key: what is kept of a node is found by its key.
fn has_other_name(tx: &Tx<'_>, rid: &str, key: &PublicKey) -> Result<bool> {
    let all = PEERS.list_readable(&**tx)?;
    Ok(all
        .iter()
        .any(|it| it.0 != rid && it.1.public_key == key.as_str()))
}

/// The nodes that nobody approved, with the time when each was last heard of.
fn strangers(tx: &Tx<'_>) -> Result<Vec<(u64, String)>> {
    let all = PEERS.list_readable(&**tx)?.into_iter();
    let waiting = all.filter(|it| !it.1.is_approved).map(|(rid, row)| {
        let status = STATUS.get_readable(&**tx, &rid)?.unwrap_or_default();
        let heard = status.last_seen_ms.unwrap_or_default().max(row.known_ms);
        Ok((heard, rid))
    });
    waiting.collect()
}

fn forget_stranger(tx: &mut Tx<'_>, rid: &str) -> Result<()> {
    drop_node(tx, rid)?;
    let data = json!({ "node": rid, "why": "nobody approved it" });
    tx.record("FederationNodeForgotten", data).map(drop)
}

/// Forgets the nodes that nobody approved for a week.
pub(super) fn expire_strangers(tx: &mut Tx<'_>, now_ms: u64) -> Result<()> {
    let is_old = |heard: u64| now_ms.saturating_sub(heard) > STRANGER_MS;
    let old = strangers(tx)?.into_iter().filter(|it| is_old(it.0));
    let old: Vec<_> = old.collect();
    old.iter().try_for_each(|it| forget_stranger(tx, &it.1))
}

/// A node with a new key is what the one with the old key was, if the old key signed so.
fn take_handover(tx: &mut Tx<'_>, row: &mut PeerRow, profile: &NodeProfile) -> Result<()> {
    let Some((old, signature)) = &profile.successor_of else {
        return Ok(());
    };
    let Some(mut before) = PEERS.get(&**tx, old)? else {
        return Ok(());
    };
    let (Ok(from), Ok(to)) = (NodeRid::parse(old), NodeRid::parse(&row.rid)) else {
        return Ok(());
    };
    let is_signed = before
        .key()
        .is_some_and(|key| key.is_signed(handover(&from, &to).as_bytes(), signature));
    if !is_signed || !before.is_active() {
        return Ok(());
    }
    row.is_approved = true;
    row.dialect = before.dialect;
    row.shares = before.shares.clone();
    row.accepts = before.accepts.clone();
    if before.is_granted {
        (row.base_url, row.is_granted) = (before.base_url.clone(), true);
    }
    before.cut_off = Some(format!("its key was handed over to {}", row.rid));
    PEERS.set(tx, old, &before)?;
    tx.record(
        "FederationKeyHandedOver",
        json!({ "from": old, "to": row.rid }),
    )
    .map(drop)
}

/// A node says that it is to be forgotten: what was agreed with it is over.
pub(super) fn forget_node(tx: &mut Tx<'_>, rid: &str) -> Result<()> {
    forget_edges(tx, |it| it.source == rid || it.target == rid)?;
    let Some(mut row) = PEERS.get(&**tx, rid)? else {
        return Ok(());
    };
    if row.is_approved {
        // It stays what the operator made it; it will introduce itself again, and may not know this node any more.
        row.profile = None;
        PEERS.set(tx, rid, &row)?;
        note_status(tx, rid, |it| it.greeted_profile_ms = 0)?;
    } else {
        drop_node(tx, rid)?;
    }
    tx.record("FederationNodeForgotten", json!({ "node": rid }))
        .map(drop)
}

/// The edge of a profile, as a row and as it is sent. It is dated later than `last_ms`.
pub(super) fn edge_of(
    profile: &EdgeProfile,
    now_ms: u64,
    last_ms: u64,
) -> Result<(String, EdgeRow, Bundle)> {
    let rid = profile.rid();
    let at_ms = now_ms.max(last_ms + 1);
    let bundle = Bundle::of(&Rid::parse(&rid)?, profile.to_json(), at_ms)?;
    let row = EdgeRow {
        source: profile.source.to_string(),
        target: profile.target.to_string(),
        is_poll: profile.edge_type == EdgeType::Poll,
        is_approved: profile.status == EdgeStatus::Approved,
        rid_types: profile.rid_types.clone(),
        bundle: StoredBundle::of(&bundle),
        is_withdrawn: false,
        noted_ms: now_ms,
    };
    Ok((rid, row, bundle))
}

/// Takes what a peer says of a subscription between it and this node; `dated` is when it says so.
pub(super) fn take_edge(
    tx: &mut Tx<'_>,
    own: &Own,
    peer: &PeerRow,
    contents: &Json,
    dated: Option<&str>,
) -> Result<()> {
    let profile = EdgeProfile::from_json(contents)?;
    if dated.is_some_and(|it| is_ahead(it, own.now_ms)) {
        return Err(Error::invalid("the subscription is dated in the future")
            .hint("set the clock of that node"));
    }
    let dated = dated.and_then(time::read).unwrap_or_default() / 1_000;
    let dated_ms = u64::try_from(dated).unwrap_or_default();
    let (source, target) = (profile.source.as_str(), profile.target.as_str());
    if source == own.rid && target == peer.rid {
        match profile.status {
            EdgeStatus::Proposed => negotiate(tx, own, peer, profile, dated_ms),
            EdgeStatus::Approved => Ok(()),
        }
    } else if target == own.rid && source == peer.rid {
        // The next proposal must be later than this answer, whatever the two clocks say.
        let (rid, row, _) = edge_of(&profile, own.now_ms, dated_ms)?;
        // Only what was asked for can be agreed to.
        let Some(asked) = EDGES.get(&**tx, &rid)? else {
            return Ok(());
        };
        let row = EdgeRow {
            is_poll: asked.is_poll,
            ..row
        };
        if (row.is_approved, &row.rid_types) == (asked.is_approved, &asked.rid_types) {
            return Ok(());
        }
        EDGES.set(tx, &rid, &row)?;
        // What happened before is fetched.
        note_status(tx, &peer.rid, |it| it.caught_up_ms = 0)?;
        let data = json!({ "edge": rid, "provider": source, "approved": row.is_approved });
        tx.record("FederationEdgeChanged", data).map(drop)
    } else {
        Ok(())
    }
}

/// A peer wants to subscribe: it may have what the policy names for it, and nobody else anything.
fn negotiate(
    tx: &mut Tx<'_>,
    own: &Own,
    peer: &PeerRow,
    mut profile: EdgeProfile,
    dated_ms: u64,
) -> Result<()> {
    let rid = profile.rid();
    let before = EDGES.get(&**tx, &rid)?;
    if let Some(before) = before.as_ref().filter(|it| is_recent(it, own.now_ms)) {
        for name in &before.rid_types {
            if !profile.rid_types.contains(name) {
                profile.rid_types.push(name.clone());
            }
        }
    }
    let is_waiting = !peer.is_approved;
    let provided = rid_types(shared_with(&own.row, peer));
    let is_provided =
        |name: &String| is_own_type(name) || provided.iter().any(|it| is_type_named(it, name));
    let is_possible = !(profile.edge_type == EdgeType::Webhook && peer.is_partial);
    let may_have =
        profile.rid_types.iter().all(is_provided) && is_possible && peer.cut_off.is_none();
    if !is_waiting && !may_have {
        EDGES.unset(tx, &rid)?;
        enqueue(tx, &peer.rid, &[forget(&rid)], own.now_ms, true)?;
        let data = json!({ "edge": rid, "subscriber": peer.rid, "types": profile.rid_types });
        return tx.record("FederationEdgeRefused", data).map(drop);
    }
    if !is_waiting {
        profile.status = EdgeStatus::Approved;
    }
    // The subscriber ignores an answer that is not later than its question, or than the answer before.
    let last_ms = before.as_ref().map_or(0, EdgeRow::at_ms).max(dated_ms);
    let (rid, row, bundle) = edge_of(&profile, own.now_ms, last_ms)?;
    EDGES.set(tx, &rid, &row)?;
    if peer.base_url.is_none() && before.as_ref().is_some_and(|it| it.is_approved) {
        // It asks for what it has, so it lost what was agreed; what this node asked it for it cannot be asked about.
        EDGES.unset(tx, &edge_rid(&peer.rid, &own.rid))?;
    }
    if !is_waiting {
        enqueue(
            tx,
            &peer.rid,
            &[control(EventType::Update, &bundle)],
            own.now_ms,
            true,
        )?;
    }
    let is_same = before.is_some_and(|it| {
        (it.is_approved, it.is_poll, &it.rid_types)
            == (row.is_approved, row.is_poll, &row.rid_types)
    });
    if is_same {
        return Ok(());
    }
    let kind = if is_waiting {
        "FederationEdgeProposed"
    } else {
        "FederationEdgeApproved"
    };
    let data = json!({ "edge": rid, "subscriber": peer.rid, "types": profile.rid_types });
    tx.record(kind, data).map(drop)
}

/// Whether an edge was proposed a moment ago.
fn is_recent(edge: &EdgeRow, now_ms: u64) -> bool {
    now_ms.saturating_sub(edge.noted_ms) < TOGETHER_MS
}

/// A peer says that a subscription is over; false if it has no say in it.
pub(super) fn forget_edge(tx: &mut Tx<'_>, own: &Own, from: &str, rid: &str) -> Result<bool> {
    let Some(mut edge) = EDGES.get(&**tx, rid)?.filter(|it| !it.is_withdrawn) else {
        return Ok(false);
    };
    if edge.source != from && edge.target != from {
        return Ok(false);
    }
    if edge.target == from && is_recent(&edge, own.now_ms) {
        (edge.is_approved, edge.is_withdrawn) = (false, true);
        EDGES.set(tx, rid, &edge)?;
    } else {
        EDGES.unset(tx, rid)?;
    }
    let data = json!({ "edge": rid, "by": from });
    tx.record("FederationEdgeForgotten", data)?;
    Ok(true)
}

/// Removes subscriptions that were withdrawn and not asked for anew.
pub(super) fn expire_edges(tx: &mut Tx<'_>, now_ms: u64) -> Result<()> {
    forget_edges(tx, |it| it.is_withdrawn && !is_recent(it, now_ms))
}

/// An Octo node proposes no edges: whoever asks, subscribes to what it may get. Returns whether that is new.
pub(super) fn subscribe_octo(tx: &mut Tx<'_>, own: &Own, peer: &PeerRow) -> Result<bool> {
    let types = rid_types(shared_with(&own.row, peer));
    let profile = EdgeProfile {
        source: NodeRid::parse(&own.rid)?,
        target: NodeRid::parse(&peer.rid)?,
        edge_type: EdgeType::Poll,
        status: EdgeStatus::Approved,
        rid_types: types,
    };
    let before = EDGES.get(&**tx, &profile.rid())?;
    let is_same = before.is_some_and(|it| it.is_approved && it.rid_types == profile.rid_types);
    if profile.rid_types.is_empty() || is_same {
        return Ok(false);
    }
    let (rid, row, _) = edge_of(&profile, own.now_ms, 0)?;
    EDGES.set(tx, &rid, &row)?;
    let data = json!({ "edge": rid, "subscriber": peer.rid, "types": row.rid_types });
    tx.record("FederationEdgeApproved", data)?;
    Ok(true)
}

/// Approves what a peer proposed while nobody had approved it.
pub(super) fn settle_proposals(tx: &mut Tx<'_>, own: &Own, peer: &PeerRow) -> Result<usize> {
    let mut n_settled = 0;
    for (_, edge) in EDGES.list(&**tx)? {
        let is_theirs = edge.source == own.rid && edge.target == peer.rid;
        if is_theirs && !edge.is_approved && !edge.is_withdrawn {
            let contents = Json::parse(edge.bundle.contents.as_bytes(), Default::default())?;
            negotiate(tx, own, peer, EdgeProfile::from_json(&contents)?, 0)?;
            n_settled += 1;
        }
    }
    Ok(n_settled)
}

/// Whether a peer says that something of these types is taken from it.
pub(super) fn is_accepted(peer: &PeerRow, rid_type: &str) -> bool {
    if is_own_type(rid_type) || !peer.is_active() {
        return false;
    }
    match &peer.accepts {
        Some(accepts) => accepts.iter().any(|it| is_type_named(rid_type, it)),
        None => true,
    }
}
