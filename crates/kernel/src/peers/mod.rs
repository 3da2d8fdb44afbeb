//! Other nodes that share spaces with this one.
//!
//! Who they are and what they may do are rows of the system space, written with their events
//! ([`Kernel::add_peer`]). [`Kernel::sync_peer`] calls one and exchanges everything that is new;
//! [`Kernel::answer_peer`] answers one that calls. The messages and what they mean are in
//! `kenning_peers`; here are the network, the counters and the files that follow.

mod admit;
mod answer;
mod call;
mod conflicts;
mod files;
mod live;
mod status;
mod worker;

pub use answer::{PeerAnswer, PeerMessage};
pub use call::Carrier;
pub use conflicts::{Choice, OpenConflict};
pub use status::{ExchangeView, PeerView, SyncStatus};
pub use worker::PeerSync;

use crate::tokens::system_space;
use crate::{Bucket, Caller, Kernel, Raw, Scope};
use kenning_core::{Did, Error, Hash, Kind, Result, Space};
use kenning_peers::seal::Challenges;
use kenning_peers::{CURSORS, Peer, Policy, Rules, peer_id};
use kenning_search::of_collection_name;
use kenning_store::Row;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

/// The bucket of peers in the system space; a row's key is the peer's identifier.
const PEERS: Bucket<Raw> = Bucket::new("peers");

/// How far each peer has been read, in every space that is shared with it.
const CURSOR_ROWS: Bucket<Raw> = Bucket::new(CURSORS);

/// The most peers.
const PEERS_MAX: usize = 256;

/// What a process knows of exchanges that are under way.
pub(crate) struct Exchanges {
    challenges: Challenges,
    active: Mutex<BTreeSet<String>>,
    /// How many messages of each peer are being answered.
    answering: Mutex<BTreeMap<String, usize>>,
    /// The name of this process among those that call peers by themselves.
    holder: String,
    /// Whether it is one of them.
    is_running: AtomicBool,
}

impl Exchanges {
    pub(crate) fn new(random: &dyn kenning_core::Random) -> Self {
        let mut secret = [0; 32];
        random.fill(&mut secret);
        Self {
            challenges: Challenges::new(secret),
            active: Mutex::default(),
            answering: Mutex::default(),
            // Of the secret, and not drawn: nothing else that is drawn changes.
            holder: Hash::of(&[&secret[..], b"holder"].concat()).to_string(),
            is_running: AtomicBool::new(false),
        }
    }
}

/// So many messages of peers are answered at once.
const ANSWERS_MAX: usize = 4;

/// So many messages of one peer are answered at once.
const ANSWERS_TO_ONE_MAX: usize = 2;

impl Exchanges {
    fn is_active(&self, did: &str) -> bool {
        let active = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        let answering = self
            .answering
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        active.contains(did) || answering.contains_key(did)
    }

    /// A place among the messages that are being answered.
    fn begin_answer(&self, did: &str) -> Result<Answering<'_>> {
        let mut all = self
            .answering
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let n_all: usize = all.values().sum();
        let n_own = all.get(did).copied().unwrap_or_default();
        if n_all >= ANSWERS_MAX || n_own >= ANSWERS_TO_ONE_MAX {
            return Err(Error::limited(format!(
                "this node answers at most {ANSWERS_MAX} messages of peers at once, {ANSWERS_TO_ONE_MAX} of each"
            ))
            .hint("send it again in a second"));
        }
        *all.entry(did.to_owned()).or_default() += 1;
        let did = did.to_owned();
        Ok(Answering {
            exchanges: self,
            did,
        })
    }
}

/// A message that is being answered.
struct Answering<'a> {
    exchanges: &'a Exchanges,
    did: String,
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        let all = self.exchanges.answering.lock();
        let mut all = all.unwrap_or_else(PoisonError::into_inner);
        if let Some(n) = all.get_mut(&self.did) {
            *n -= 1;
            if *n == 0 {
                all.remove(&self.did);
            }
        }
    }
}

/// A peer to be.
#[derive(Clone, Debug, Default)]
pub struct NewPeer {
    /// Where it is reached; empty for a node that only calls us.
    pub endpoint: String,
    /// Its key; if it is not given, the endpoint is asked for it.
    pub did: Option<Did>,
    /// What it may do.
    pub policy: Policy,
}

/// Which rows leave this machine: not those that follow from its own files, and no installed tools.
fn is_shared(row: &Row) -> bool {
    match row {
        Row::Node(node) => match node.kind {
            // Entities follow from statements, which are shared.
            Kind::Tool | Kind::Symbol | Kind::Entity => false,
            Kind::Item => node.props.get("source").is_some_and(|it| it == "registry"),
            // A checkpoint of NOW.md is what this machine goes back to.
            Kind::Document => node.project.is_empty() && !is_now_checkpoint(&node.key),
            _ => true,
        },
        Row::Vector(vector) => of_collection_name(&vector.collection).is_some(),
        _ => true,
    }
}

/// A copy of some NOW.md: `omi:NOW-…` or `omi:projects/ID/NOW-…`.
fn is_now_checkpoint(key: &str) -> bool {
    let last = key
        .strip_prefix("omi:")
        .and_then(|it| it.rsplit('/').next());
    last.is_some_and(|it| it.starts_with("NOW-"))
}

/// Whether this is its id, its key by any method, or its endpoint.
fn is_called(peer: &Peer, name: &str) -> bool {
    let name = name.trim_end_matches('/');
    let key = name.parse::<Did>().ok().map(|it| it.as_signed());
    peer.id == name || key.is_some_and(|it| it == peer.did) || peer.endpoint == name
}

impl Kernel {
    pub(crate) fn sync_rules(&self) -> Rules {
        Rules {
            passages_of: self.hooks.passages_of,
            is_shared,
        }
    }

    fn read_peers(&self) -> Result<Vec<Peer>> {
        let rows = self.log.read(&system_space(), |tx| PEERS.list(tx))?;
        let read = |(key, row): (String, Raw)| {
            let value = serde_json::from_slice::<Value>(&row.0).ok();
            value
                .and_then(|it| Peer::from_json(&it))
                .ok_or_else(|| Error::corrupt(format!("the row of the peer `{key}` is malformed")))
        };
        rows.into_iter().map(read).collect()
    }

    /// The nodes that are known, in the order of their keys.
    ///
    /// # Errors
    /// Denied without the scope `admin`, and those of the store.
    pub fn peers(&self, caller: &Caller) -> Result<Vec<Peer>> {
        caller.principal.require(Scope::Admin)?;
        self.read_peers()
    }

    /// A peer as other programs see it: its key by the method that is shown. Heads that were kept as evidence
    /// stay as they were signed.
    pub fn peer_json(&self, peer: &Peer) -> Result<Value> {
        let mut value = peer.to_json();
        value["did"] = self.show_did(&peer.did)?.as_str().into();
        Ok(value)
    }

    pub(crate) fn peer_by_did(&self, did: &Did) -> Result<Option<Peer>> {
        Ok(self.read_peers()?.into_iter().find(|it| it.did == *did))
    }

    /// A peer by its id, its key or its endpoint.
    pub(crate) fn find_peer(&self, name: &str) -> Result<Peer> {
        let peers = self.read_peers()?.into_iter();
        peers
            .into_iter()
            .find(|it| is_called(it, name))
            .ok_or_else(|| {
                Error::not_found("peer", name)
                    .hint("`kenning peer list` lists those that are known")
            })
    }

    /// Adds a node, or changes what a known one may do. What it has written is read again from the
    /// beginning, so that what was refused before is looked at anew.
    ///
    /// # Errors
    /// Denied without the scope `admin`; invalid for an endpoint that is no address; unavailable if
    /// the endpoint is asked for its key and does not answer.
    pub fn add_peer(&self, caller: &Caller, new: NewPeer) -> Result<Peer> {
        caller.principal.require(Scope::Admin)?;
        self.writable()?;
        let endpoint = new.endpoint.trim_end_matches('/').to_owned();
        if !endpoint.is_empty() {
            call::check_endpoint(&endpoint)?;
        }
        let did = match new.did {
            Some(did) => did.as_signed(),
            None if endpoint.is_empty() => {
                return Err(Error::invalid("a peer needs an endpoint or a key")
                    .hint("`kenning peer add URL`, or `kenning peer add --did DID` for a node that only calls this one"));
            }
            None => self.ask_for_key(&endpoint)?,
        };
        if did == *self.log.signer().did() {
            return Err(Error::invalid("this is the key of this node")
                .hint("give the address of another node, or move `node.key` of a copied data directory away"));
        }
        let known = self.read_peers()?;
        if known.len() >= PEERS_MAX && !known.iter().any(|it| it.did == did) {
            return Err(
                Error::limited(format!("{PEERS_MAX} peers are known already"))
                    .hint("`kenning peer remove` removes one"),
            );
        }
        let peer = Peer {
            id: peer_id(&endpoint, &did),
            did,
            endpoint,
            policy: new.policy,
            added_ms: self.log.clock().now_ms(),
            cut_off: None,
        };
        self.store_peer(&peer, "PeerAdded")?;
        for space in &peer.policy.spaces {
            self.begin_sharing(space, &peer)?;
        }
        Ok(peer)
    }

    fn store_peer(&self, peer: &Peer, event: &'static str) -> Result<()> {
        let (key, value) = (peer.did.to_string(), peer.to_json());
        self.log.write(&system_space(), move |tx| {
            PEERS.set(tx, &key, &Raw(value.to_string().into_bytes()))?;
            tx.record(event, value).map(drop)
        })
    }

    /// Lets the peer's key sign events of a space, if what it writes is applied here.
    fn begin_sharing(&self, space: &Space, peer: &Peer) -> Result<()> {
        let peer = peer.clone();
        self.log.write_long(space, move |tx| {
            CURSOR_ROWS.unset(tx, peer.did.as_str())?;
            if tx.revoked_authors().contains(&peer.did) {
                return Err(Error::conflict(format!("the key {} was revoked", peer.did))
                    .hint("a revoked key stays revoked: give that node a new one"));
            }
            let is_new = peer.policy.may_write && !tx.authors().contains(&peer.did);
            if is_new {
                tx.add_author(&peer.did);
            }
            let data = json!({ "peerId": peer.id, "did": peer.did.as_str() });
            tx.record("PeerAdded", data)?;
            tx.share_rows().map(drop)
        })
    }

    /// Forgets a node. What it wrote stays.
    ///
    /// # Errors
    /// Denied without the scope `admin`; not found.
    pub fn remove_peer(&self, caller: &Caller, name: &str) -> Result<Peer> {
        caller.principal.require(Scope::Admin)?;
        self.writable()?;
        let peer = self.find_peer(name)?;
        let (key, data) = (peer.did.to_string(), peer.to_json());
        self.log.write(&system_space(), move |tx| {
            PEERS.unset(tx, &key)?;
            status::STATUS.unset(tx, &key)?;
            live::ACTIVE.unset(tx, &key)?;
            tx.record("PeerRemoved", data).map(drop)
        })?;
        for space in &peer.policy.spaces {
            let key = peer.did.to_string();
            self.log
                .write(space, move |tx| CURSOR_ROWS.unset(tx, &key))?;
        }
        Ok(peer)
    }

    /// A node signed two histories: both are kept, and nothing is exchanged with it any more.
    pub(crate) fn cut_off(&self, peer: &Peer, evidence: kenning_peers::Evidence) -> Result<Error> {
        let error = Error::corrupt(format!(
            "`{}` showed two histories of its log: {}; nothing is exchanged with it any more",
            peer.id, evidence.what
        ))
        .hint("`kenning peer list --json` shows both signed heads; `kenning peer add` begins anew with it");
        let peer = Peer {
            cut_off: Some(evidence),
            ..peer.clone()
        };
        self.store_peer(&peer, "PeerCutOff")?;
        Ok(error)
    }
}
