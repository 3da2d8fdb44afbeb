//! What the operator does: connect, approve, disconnect, decide what is shared, look at queues, retract.

use super::carrier::{Carrier, Destination, check_url};
use super::digest::{forget_received, no_such_peer};
use super::node::Me;
use super::peers::{Own, settle_proposals};
use super::queue::enqueue;
use super::records::{
    Dialect, EDGES, PEERS, PUBLISHED, PeerRow, Queued, dead, drop_node, note_status, publish_anew,
    received, rid_type, shared_with, short,
};
use crate::Koi;
use kenning_audit::Tx;
use kenning_core::{Error, Result};
use kenning_federation::rid::is_type_named;
use kenning_federation::{Event, EventType, Json, Limits, NodeRid, Rid};
use kenning_kernel::{Caller, Principal, Scope};
use serde_json::json;

/// The most peers.
const PEERS_MAX: usize = 1_000;

/// A node to connect to.
#[derive(Clone, Debug, Default)]
pub struct Connect {
    /// Its base URL.
    pub url: String,
    /// Its RID; without it the address is asked, which Octo and Kenning nodes answer.
    pub rid: Option<String>,
    /// Types that it may get, if not those of the node.
    pub shares: Option<Vec<String>>,
    /// Types that are taken from it, if not all that it provides.
    pub accepts: Option<Vec<String>>,
}

/// What is changed of what a peer may get and what is taken from it.
#[derive(Clone, Debug, Default)]
pub struct PeerPolicyChange {
    /// Types that it may get; an empty list for none.
    pub shares: Option<Vec<String>>,
    /// Types that are taken from it; an empty list for none.
    pub accepts: Option<Vec<String>>,
    /// Whether the address that it names may be in a private network.
    pub grants_address: bool,
}

impl Koi {
    fn operator(&self, caller: &Caller) -> Result<Me> {
        self.require_federated(caller, Scope::Admin)?;
        self.kernel.writable()?;
        self.require_me()
    }

    /// A peer by its RID, its name, the beginning of its hash, or its address.
    pub(super) fn find_federated(&self, name: &str) -> Result<PeerRow> {
        let space = self.federated_space();
        let all = self
            .kernel
            .log()
            .read(&space, |tx| PEERS.list_readable(tx))?;
        let name = name.trim().trim_end_matches('/');
        let is_it = |it: &PeerRow| {
            let url = it.base_url.as_deref().map(|it| it.trim_end_matches('/'));
            it.rid == name
                || it.name() == name
                || url == Some(name)
                || (name.len() >= 6 && short(&it.rid).starts_with(name))
        };
        let mut found = all.into_iter().map(|it| it.1).filter(is_it);
        match (found.next(), found.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(no_such_peer(name)),
            (Some(one), Some(other)) => Err(Error::invalid(format!(
                "`{name}` is the name of several nodes"
            ))
            .hint(format!("give the RID: {} or {}", one.rid, other.rid))),
        }
    }

    /// Connects to a node: from now on things are exchanged with it. Returns its RID, and what went wrong if it
    /// could not be reached yet; it is tried again.
    ///
    /// # Errors
    /// Denied without the scope `admin`; invalid for what is not the address or the RID of a node; unavailable
    /// if it must be asked for its RID and does not answer.
    pub fn connect_node(
        &self,
        caller: &Caller,
        carrier: &dyn Carrier,
        connect: Connect,
    ) -> Result<(String, Option<Error>)> {
        let me = self.operator(caller)?;
        let url = connect.url.trim().trim_end_matches('/').to_owned();
        check_url(&url)?;
        let shares = connect
            .shares
            .map(|it| self.checked_types(&it))
            .transpose()?;
        let there = self.ask_health(carrier, &url);
        let (asked, dialect) = match &there {
            Ok((rid, dialect)) => (Some(rid.clone()), *dialect),
            Err(_) => (None, Dialect::Reference),
        };
        let rid = match (connect.rid, asked) {
            (Some(rid), Some(asked)) if asked.as_str() != rid => {
                return Err(
                    Error::denied(format!("another node answers at `{url}`: {asked}"))
                        .hint("check the address, or leave the RID out"),
                );
            }
            (Some(rid), _) => NodeRid::parse(&rid)?,
            (None, Some(asked)) => asked,
            (None, None) => {
                let cause = there.err().map(|it| it.message).unwrap_or_default();
                return Err(Error::unavailable(format!("`{url}` does not tell its RID: {cause}"))
                    .hint("koi-net nodes do not: give it with `--rid`; it is in the node's `config.yaml`"));
            }
        };
        if rid == me.rid {
            return Err(Error::invalid("this is the RID of this node").hint("give another address"));
        }
        let (key, accepts) = (rid.to_string(), connect.accepts);
        let own = self.own(&me);
        let row_key = key.clone();
        self.kernel.log().write(&self.federated_space(), move |tx| {
            let all = PEERS.keys(&**tx)?;
            if all.len() >= PEERS_MAX && !all.contains(&row_key) {
                return Err(Error::limited(format!("{PEERS_MAX} nodes are known already")));
            }
            let mut row = PEERS.get(&**tx, &row_key)?.unwrap_or_default();
            row.rid.clone_from(&row_key);
            if row.known_ms == 0 {
                row.known_ms = own.now_ms;
            }
            (row.base_url, row.is_granted) = (Some(url), true);
            (row.is_approved, row.cut_off, row.dialect) = (true, None, dialect);
            row.shares = shares.or(row.shares);
            row.accepts = accepts.or(row.accepts);
            PEERS.set(tx, &row_key, &row)?;
            note_status(tx, &row_key, |it| {
                (it.greeted_ms, it.next_ms, it.n_failures, it.caught_up_ms) = (0, 0, 0, 0);
            })?;
            let data = json!({
                "node": row_key, "baseUrl": row.base_url, "shares": row.shares, "accepts": row.accepts,
            });
            tx.record("FederationConnected", data)?;
            settle_proposals(tx, &own, &row)?;
            publish_anew(tx)
        })?;
        self.federation.forget_greeting(&key);
        let tended = self.tend(&me, carrier, &key, true);
        self.federation.wake();
        Ok((key, tended.err()))
    }

    /// The RID of whoever answers at an address, and how it speaks.
    fn ask_health(&self, carrier: &dyn Carrier, url: &str) -> Result<(NodeRid, Dialect)> {
        let to = Destination {
            base_url: url.to_owned(),
            is_granted: true,
        };
        let carried = carrier.carry(&to, "/health", None)?;
        let value = Json::parse(&carried.body, Limits::default()).unwrap_or(Json::Null);
        let node = value.get("node");
        let rid = node.and_then(|it| it.get("node_rid")?.as_str());
        let rid = rid.filter(|_| carried.status == 200).ok_or_else(|| {
            Error::unavailable(format!("it answered with status {}", carried.status))
        })?;
        let is_kenning = node
            .and_then(|it| it.get("did"))
            .is_some_and(|it| it.as_str().is_some());
        let dialect = if is_kenning {
            Dialect::Reference
        } else {
            Dialect::Octo
        };
        Ok((NodeRid::parse(rid)?, dialect))
    }

    /// Approves a node that introduced itself: it gets what the policy names, and what it provides is taken.
    ///
    /// # Errors
    /// Denied without the scope `admin`; not found.
    pub fn approve_node(
        &self,
        caller: &Caller,
        name: &str,
        change: PeerPolicyChange,
    ) -> Result<String> {
        let grants_address = change.grants_address;
        self.change_peer(caller, name, change, move |tx, own, mut row| {
            (row.is_approved, row.cut_off) = (true, None);
            row.is_granted |= grants_address && row.base_url.is_some();
            PEERS.set(tx, &row.rid, &row)?;
            let data = json!({
                "node": row.rid, "baseUrl": row.base_url, "granted": row.is_granted,
                "shares": row.shares, "accepts": row.accepts,
            });
            tx.record("FederationApproved", data)?;
            settle_proposals(tx, own, &row)?;
            backlog(tx, own, &row, shared_with(&own.row, &row))
        })
    }

    /// Changes a peer as the operator says: `apply` gets it with the types that it may get and give from now on.
    fn change_peer(
        &self,
        caller: &Caller,
        name: &str,
        change: PeerPolicyChange,
        apply: impl FnOnce(&mut Tx<'_>, &Own, PeerRow) -> Result<()> + Send + 'static,
    ) -> Result<String> {
        let me = self.operator(caller)?;
        let rid = self.find_federated(name)?.rid;
        let shares = change
            .shares
            .map(|it| self.checked_types(&it))
            .transpose()?;
        let (own, key) = (self.own(&me), rid.clone());
        self.kernel
            .log()
            .write(&self.federated_space(), move |tx| {
                let mut row = PEERS.get(&**tx, &key)?.ok_or_else(|| no_such_peer(&key))?;
                row.shares = shares.or(row.shares);
                row.accepts = change.accepts.or(row.accepts);
                apply(tx, &own, row)?;
                publish_anew(tx)
            })?;
        self.federation.wake();
        Ok(rid)
    }

    /// The RID of the node that a person means by its name, its address or the beginning of its hash.
    ///
    /// # Errors
    /// Denied without the scope `admin`; not found.
    pub fn find_federated_rid(&self, caller: &Caller, name: &str) -> Result<String> {
        self.operator(caller)?;
        self.find_federated(name).map(|it| it.rid)
    }

    /// Changes what a peer may get, or what is taken from it.
    ///
    /// # Errors
    /// Denied without the scope `admin`; not found; invalid for an unknown type.
    pub fn change_peer_policy(
        &self,
        caller: &Caller,
        name: &str,
        change: PeerPolicyChange,
    ) -> Result<String> {
        self.change_peer(caller, name, change, |tx, own, row| {
            let before = PEERS.get(&**tx, &row.rid)?.unwrap_or_default();
            PEERS.set(tx, &row.rid, &row)?;
            let data = json!({ "node": row.rid, "shares": row.shares, "accepts": row.accepts });
            tx.record("FederationPolicyChanged", data)?;
            let (before, now) = (shared_with(&own.row, &before), shared_with(&own.row, &row));
            let without = |all: &[String], less: &[String]| -> Vec<String> {
                let left = all.iter().filter(|it| !less.contains(it));
                left.cloned().collect()
            };
            backlog(tx, own, &row, &without(now, before))?;
            take_back(tx, own, &row, &without(before, now))?;
            note_status(tx, &row.rid, |it| it.caught_up_ms = 0)
        })
    }

    /// Ends the exchange with a node and forgets it. What it stated stays until it is retracted.
    ///
    /// # Errors
    /// Denied without the scope `admin`; not found.
    pub fn disconnect_node(
        &self,
        caller: &Caller,
        carrier: &dyn Carrier,
        name: &str,
    ) -> Result<String> {
        let me = self.operator(caller)?;
        let peer = self.find_federated(name)?;
        if peer.is_active() && peer.base_url.is_some() {
            // A courtesy: it need not be reached.
            let farewell = vec![Event::forget(Rid::parse(me.rid.as_str())?)];
            if let Err(trouble) = self.send_events(&me, carrier, &peer, farewell) {
                tracing::debug!("{} was not told: {}", peer.rid, Error::from(trouble));
            }
        }
        let rid = peer.rid;
        self.federation.forget_greeting(&rid);
        let gone = rid.clone();
        self.kernel
            .log()
            .write_long(&self.federated_space(), move |tx| {
                drop_node(tx, &gone)?;
                tx.record("FederationDisconnected", json!({ "node": gone }))
                    .map(drop)
            })?;
        Ok(rid)
    }

    /// Removes everything that a node stated; returns how much that was. The node need not be known any more.
    ///
    /// # Errors
    /// Denied without the scope `admin`; not found if it is neither known nor stated anything.
    pub fn retract_node(&self, caller: &Caller, name: &str) -> Result<usize> {
        self.operator(caller)?;
        let rid = match self.find_federated(name) {
            Ok(peer) => peer.rid,
            Err(error) => NodeRid::parse(name).map_err(|_| error)?.to_string(),
        };
        let space = self.federated_space();
        let n_retracted = self.kernel.log().write_long(&space, move |tx| {
            let all = received(&rid).keys(&**tx)?;
            for it in &all {
                forget_received(tx, &rid, it)?;
            }
            if let Some(mut row) = PEERS.get(&**tx, &rid)? {
                // Otherwise the next comparison would bring all of it back.
                row.accepts = Some(Vec::new());
                PEERS.set(tx, &rid, &row)?;
            }
            tx.record(
                "FederationRetracted",
                json!({ "node": rid, "statements": all.len() }),
            )?;
            Ok(all.len())
        })?;
        self.follow_entities(&Caller::new(Principal::owner(space)))?;
        Ok(n_retracted)
    }

    /// Puts what could not be delivered back into the queues, of one peer or of all; returns how many messages.
    ///
    /// # Errors
    /// Denied without the scope `admin`; not found.
    pub fn resend_dead_letters(&self, caller: &Caller, name: Option<&str>) -> Result<usize> {
        self.operator(caller)?;
        let peers = self.named_peers(name)?;
        let now = self.federation_now();
        let n_sent = self
            .kernel
            .log()
            .write(&self.federated_space(), move |tx| {
                let mut n_sent = 0;
                for peer in &peers {
                    for (number, letter) in dead(peer).list(&**tx)? {
                        dead(peer).unset(tx, &number)?;
                        enqueue(tx, peer, &letter.row.events, now, letter.row.is_control)?;
                        n_sent += 1;
                    }
                    note_status(tx, peer, |it| it.next_ms = 0)?;
                }
                if n_sent > 0 {
                    tx.record("FederationResent", json!({ "messages": n_sent }))?;
                }
                Ok(n_sent)
            })?;
        self.federation.wake();
        Ok(n_sent)
    }

    /// Does everything with every peer now, due or not: polls, compares, and sends what waits.
    ///
    /// # Errors
    /// Denied without the scope `admin`; those of the store.
    pub fn federate_now(
        &self,
        caller: &Caller,
        carrier: &dyn Carrier,
    ) -> Result<Vec<(String, Error)>> {
        self.operator(caller)?;
        self.kernel.log().write(&self.federated_space(), |tx| {
            for peer in PEERS.keys(&**tx)? {
                note_status(tx, &peer, |it| {
                    (it.next_ms, it.polled_ms, it.caught_up_ms) = (0, 0, 0);
                })?;
            }
            Ok(())
        })?;
        let mut faults = Vec::new();
        self.federation_turn(carrier, &|_| Ok(true), &mut faults)?;
        Ok(faults)
    }
}

/// Whether a peer subscribes to things of a type of the policy.
fn is_subscribed(tx: &Tx<'_>, own: &Own, peer: &PeerRow, kind: &str) -> Result<bool> {
    let rid_type = rid_type(kind);
    let edges = EDGES.list_readable(&**tx)?;
    Ok(edges.iter().any(|(_, edge)| {
        let is_theirs = edge.source == own.rid && edge.target == peer.rid && edge.is_approved;
        is_theirs && edge.rid_types.iter().any(|it| is_type_named(&rid_type, it))
    }))
}

/// Sends a subscriber what is provided already of types that it may get from now on.
pub(super) fn backlog(tx: &mut Tx<'_>, own: &Own, peer: &PeerRow, kinds: &[String]) -> Result<()> {
    queue_all(tx, own, peer, kinds, EventType::New)
}

/// Asks a subscriber to forget what it may not have any more.
fn take_back(tx: &mut Tx<'_>, own: &Own, peer: &PeerRow, kinds: &[String]) -> Result<()> {
    queue_all(tx, own, peer, kinds, EventType::Forget)
}

fn queue_all(
    tx: &mut Tx<'_>,
    own: &Own,
    peer: &PeerRow,
    kinds: &[String],
    event_type: EventType,
) -> Result<()> {
    let mut events = Vec::new();
    for kind in kinds {
        if !is_subscribed(tx, own, peer, kind)? {
            continue;
        }
        let all = PUBLISHED.list_readable(&**tx)?.into_iter();
        events.extend(all.filter(|it| it.1.kind == *kind).map(|it| Queued {
            rid: it.0,
            event_type: event_type.as_str().to_owned(),
            bundle: None,
        }));
    }
    enqueue(tx, &peer.rid, &events, own.now_ms, false)
}
