//! How the federation stands, for the operator and for `federation_status`.

use super::records::{
    self, Dialect, EDGES, PEERS, PUBLISHED, Queued, STATUS, count_inbox, dead, queue, received,
    shared_with,
};
use crate::Koi;
use crate::entities::{SAME_AS, is_stated_here};
use kenning_core::Result;
use kenning_kernel::{Caller, Scope, timestamp};
use kenning_store::ReadTx;

/// Another node, and how it stands with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FederationPeer {
    /// Its RID.
    pub rid: String,
    /// Its name.
    pub name: String,
    /// Where it is called.
    pub base_url: Option<String>,
    /// `reference` or `octo`.
    pub dialect: &'static str,
    /// `active`, `waiting` for approval, `unreachable` or `cut off`.
    pub state: &'static str,
    /// Types that it provides.
    pub provides: Vec<String>,
    /// Types that it gets.
    pub shares: Vec<String>,
    /// Types that are taken from it; `None` for all.
    pub accepts: Option<Vec<String>>,
    /// When it was last heard of.
    pub last_seen: Option<String>,
    /// Events that wait for it.
    pub n_queued: usize,
    /// Milliseconds since the oldest of them happened.
    pub lag_ms: u64,
    /// Events that could not be delivered.
    pub n_dead: usize,
    /// Things that were taken from it.
    pub n_known: usize,
    /// Events that were delivered to it.
    pub n_sent: u64,
    /// Events of it that were taken.
    pub n_received: u64,
    /// Events of it that were refused.
    pub n_refused: u64,
    /// Events of it that were known already.
    pub n_duplicates: u64,
    /// Calls in a row that came to nothing.
    pub n_failures: u32,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// Why nothing is exchanged with it any more.
    pub cut_off: Option<String>,
    /// Who told of it, if it did not introduce itself.
    pub introduced_by: Option<String>,
    /// The key of its log, if it is a node of Kenning: with `kenning peer add` whole logs can be exchanged.
    pub kenning_did: Option<String>,
}

/// How the federation stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FederationStatus {
    /// The other nodes.
    pub peers: Vec<FederationPeer>,
    /// Events that wait to be delivered.
    pub n_queued: usize,
    /// Events that could not be.
    pub n_dead: usize,
    /// Messages that arrived and are not taken in yet.
    pub n_inbox: usize,
    /// Things that are provided.
    pub n_published: usize,
}

/// A subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeView {
    /// Its RID.
    pub rid: String,
    /// The provider.
    pub source: String,
    /// The subscriber.
    pub target: String,
    /// `WEBHOOK` or `POLL`.
    pub edge_type: &'static str,
    /// `PROPOSED` or `APPROVED`.
    pub status: &'static str,
    /// To what.
    pub rid_types: Vec<String>,
}

/// What a peer provides, and which entity of ours that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrossReferenceView {
    /// The peer.
    pub peer: String,
    /// The thing.
    pub remote_rid: String,
    /// Its name, as stated.
    pub name: String,
    /// Its type, as stated.
    pub kind: String,
    /// `same_as`, `related_to` or `unresolved`.
    pub relation: String,
    /// The entity.
    pub local_uri: Option<String>,
    /// How sure that is, in thousandths.
    pub confidence: u32,
    /// When it arrived.
    pub received: String,
    /// The signature of the message that it came in.
    pub signature: String,
}

/// Events that wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedView {
    /// For whom.
    pub peer: String,
    /// The thing.
    pub rid: String,
    /// What happened to it.
    pub event_type: String,
    /// Since when it waits.
    pub since: String,
}

/// An event that could not be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// To whom.
    pub peer: String,
    /// The thing.
    pub rid: String,
    /// What happened to it.
    pub event_type: String,
    /// Why not.
    pub why: String,
    /// When it was given up.
    pub at: String,
}

impl Koi {
    /// Whether this node federates.
    ///
    /// # Errors
    /// Those of the store.
    pub fn is_federated(&self) -> Result<bool> {
        let space = self.federated_space();
        self.kernel
            .log()
            .read(&space, |tx| Ok(records::node(tx)?.is_some()))
    }

    /// How it stands with every node.
    ///
    /// # Errors
    /// Denied without the scope `read`; those of the store.
    pub fn federation_status(&self, caller: &Caller) -> Result<FederationStatus> {
        self.require_federated(caller, Scope::Read)?;
        let (space, now) = (self.federated_space(), self.federation_now());
        self.kernel.log().read(&space, |tx| {
            let Some(node) = records::node(tx)? else {
                return Ok(FederationStatus::default());
            };
            let mut all = FederationStatus {
                n_inbox: count_inbox(tx)?,
                n_published: PUBLISHED.keys(tx)?.len(),
                ..FederationStatus::default()
            };
            for (rid, row) in PEERS.list_readable(tx)? {
                let status = STATUS.get_readable(tx, &rid)?.unwrap_or_default();
                let waiting = queue(&rid).list_readable(tx)?;
                let oldest = waiting.iter().map(|it| it.1.since_ms).min();
                let n_queued = waiting.iter().map(|it| it.1.events.len()).sum();
                let dead = dead(&rid).list_readable(tx)?;
                let n_dead = dead.iter().map(|it| it.1.row.events.len()).sum();
                all.n_queued += n_queued;
                all.n_dead += n_dead;
                all.peers.push(FederationPeer {
                    name: row.name(),
                    dialect: match row.dialect {
                        Dialect::Reference => "reference",
                        Dialect::Octo => "octo",
                    },
                    state: match () {
                        () if row.cut_off.is_some() => "cut off",
                        () if !row.is_approved => "waiting",
                        () if status.n_failures > 0 => "unreachable",
                        () => "active",
                    },
                    shares: shared_with(&node, &row).to_vec(),
                    last_seen: status.last_seen_ms.map(timestamp),
                    n_queued,
                    lag_ms: oldest.map_or(0, |it| now.saturating_sub(it)),
                    n_dead,
                    n_known: received(&rid).keys(tx)?.len(),
                    n_sent: status.n_sent,
                    n_received: status.n_received,
                    n_refused: status.n_refused,
                    n_duplicates: status.n_duplicates,
                    n_failures: status.n_failures,
                    last_error: status.last_error,
                    rid,
                    base_url: row.base_url,
                    provides: row.provides_event,
                    accepts: row.accepts,
                    cut_off: row.cut_off,
                    introduced_by: row.introduced_by,
                    kenning_did: row.kenning_did,
                });
            }
            Ok(all)
        })
    }

    /// The subscriptions, in both directions.
    ///
    /// # Errors
    /// Denied without the scope `admin`; those of the store.
    pub fn federation_edges(&self, caller: &Caller) -> Result<Vec<EdgeView>> {
        self.require_federated(caller, Scope::Admin)?;
        let space = self.federated_space();
        let all = self
            .kernel
            .log()
            .read(&space, |tx| EDGES.list_readable(tx))?;
        let all = all.into_iter().filter(|it| !it.1.is_withdrawn);
        let shown = all.map(|(rid, it)| EdgeView {
            rid,
            source: it.source,
            target: it.target,
            edge_type: if it.is_poll { "POLL" } else { "WEBHOOK" },
            status: if it.is_approved {
                "APPROVED"
            } else {
                "PROPOSED"
            },
            rid_types: it.rid_types,
        });
        Ok(shown.collect())
    }

    /// What was taken from peers, and which entities of ours that is; of one peer, or of all.
    ///
    /// # Errors
    /// Denied without the scope `read`; not found; those of the store.
    pub fn cross_references(
        &self,
        caller: &Caller,
        name: Option<&str>,
        limit: usize,
    ) -> Result<Vec<CrossReferenceView>> {
        self.rows_of_peers(caller, name, limit, |tx, peer| {
            let each = received(peer).list_readable(tx)?.into_iter().take(limit);
            let each = each.map(|(rid, row)| {
                // Since it arrived, somebody here may have written about it.
                let is_same = match (&row.uri, row.relation.as_str()) {
                    (Some(uri), "unresolved") => is_stated_here(tx, uri)?,
                    _ => false,
                };
                Ok(CrossReferenceView {
                    peer: peer.to_owned(),
                    remote_rid: rid,
                    name: row.name,
                    kind: row.kind,
                    relation: if is_same {
                        SAME_AS.to_owned()
                    } else {
                        row.relation
                    },
                    local_uri: row.uri,
                    confidence: if is_same { 1_000 } else { row.confidence },
                    received: timestamp(row.at_ms),
                    signature: row.signature,
                })
            });
            each.collect()
        })
    }

    /// What waits to be delivered, to one peer or to all.
    ///
    /// # Errors
    /// Denied without the scope `admin`; not found; those of the store.
    pub fn federation_queue(&self, caller: &Caller, name: Option<&str>) -> Result<Vec<QueuedView>> {
        self.rows_of_peers(caller, name, usize::MAX, |tx, peer| {
            let rows = queue(peer).list_readable(tx)?.into_iter().map(|it| it.1);
            let each = rows.flat_map(|row| {
                let view = move |it: Queued| QueuedView {
                    peer: peer.to_owned(),
                    rid: it.rid,
                    event_type: it.event_type,
                    since: timestamp(row.since_ms),
                };
                row.events.into_iter().map(view)
            });
            Ok(each.collect())
        })
    }

    /// What could not be delivered, to one peer or to all.
    ///
    /// # Errors
    /// Denied without the scope `admin`; not found; those of the store.
    pub fn dead_letters(&self, caller: &Caller, name: Option<&str>) -> Result<Vec<DeadLetter>> {
        self.rows_of_peers(caller, name, usize::MAX, |tx, peer| {
            let letters = dead(peer).list_readable(tx)?.into_iter().map(|it| it.1);
            let each = letters.flat_map(|letter| {
                let view = move |it: Queued| DeadLetter {
                    peer: peer.to_owned(),
                    rid: it.rid,
                    event_type: it.event_type,
                    why: letter.why.clone(),
                    at: timestamp(letter.at_ms),
                };
                letter.row.events.into_iter().map(view)
            });
            Ok(each.collect())
        })
    }

    /// What is kept of one peer or of all, as `read` shows it; at most `limit` rows.
    fn rows_of_peers<T>(
        &self,
        caller: &Caller,
        name: Option<&str>,
        limit: usize,
        read: impl Fn(&dyn ReadTx, &str) -> Result<Vec<T>>,
    ) -> Result<Vec<T>> {
        self.require_federated(caller, Scope::Admin)?;
        let peers = self.named_peers(name)?;
        self.kernel.log().read(&self.federated_space(), |tx| {
            let mut all = Vec::new();
            for peer in &peers {
                if all.len() >= limit {
                    break;
                }
                all.extend(read(tx, peer)?);
            }
            all.truncate(limit);
            Ok(all)
        })
    }

    /// The peer that is meant by a name, or all.
    pub(super) fn named_peers(&self, name: Option<&str>) -> Result<Vec<String>> {
        match name {
            Some(name) => Ok(vec![self.find_federated(name)?.rid]),
            None => {
                let space = self.federated_space();
                self.kernel.log().read(&space, |tx| PEERS.keys(tx))
            }
        }
    }
}
