//! How it stands with each peer.

use crate::tokens::system_space;
use crate::{Bucket, Caller, Kernel, Raw, Scope, timestamp};
use kenning_core::{Error, Result, Space};
use kenning_peers::{Cursor, Done, Peer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The bucket of counters in the system space.
pub(super) const STATUS: Bucket<Raw> = Bucket::new("sync/status");

/// After so long without an exchange a peer counts as disconnected.
const CONNECTED_MS: u64 = 15 * 60 * 1000;

/// What was counted of the exchanges with one peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    pub(super) received: u64,
    pub(super) sent: u64,
    pub(super) refused: u64,
    pub(super) conflicts: u64,
    pub(super) errors: u64,
    pub(super) failures: u64,
    pub(super) last_error: Option<String>,
    pub(super) last_sync_ms: Option<u64>,
    pub(super) last_try_ms: Option<u64>,
    pub(super) latency_ms: Option<u64>,
    /// For each space: how many entries its log has, and how many of ours it has.
    pub(super) sizes: BTreeMap<String, Sizes>,
    /// The last exchanges that brought something or failed, oldest first.
    pub(super) recent: Vec<Exchange>,
}

/// So many exchanges with a peer are kept.
const RECENT_MAX: usize = 10;

/// Messages of a peer that follow each other within this time are one exchange: a peer that calls does not
/// say where its exchange begins and ends.
const ONE_EXCHANGE_MS: u64 = 10_000;

/// One exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Exchange {
    pub(super) at_ms: u64,
    pub(super) took_ms: u64,
    pub(super) received: u64,
    pub(super) sent: u64,
    pub(super) error: Option<String>,
}

/// How far two logs are known to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    theirs: u64,
    they_have: u64,
}

impl Counters {
    fn to_bytes(&self) -> Vec<u8> {
        let value = json!({
            "received": self.received, "sent": self.sent, "refused": self.refused,
            "conflicts": self.conflicts, "errors": self.errors, "failures": self.failures,
            "lastError": self.last_error, "lastSync": self.last_sync_ms,
            "lastTry": self.last_try_ms, "latency": self.latency_ms,
            "sizes": self.sizes.iter().map(|(space, it)| (space.clone(), json!([it.theirs, it.they_have])))
                .collect::<serde_json::Map<_, _>>(),
            "recent": self.recent,
        });
        value.to_string().into_bytes()
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let number = |name: &str| value[name].as_u64();
        Self {
            received: number("received").unwrap_or_default(),
            sent: number("sent").unwrap_or_default(),
            refused: number("refused").unwrap_or_default(),
            conflicts: number("conflicts").unwrap_or_default(),
            errors: number("errors").unwrap_or_default(),
            failures: number("failures").unwrap_or_default(),
            last_error: value["lastError"].as_str().map(str::to_owned),
            last_sync_ms: number("lastSync"),
            last_try_ms: number("lastTry"),
            latency_ms: number("latency"),
            sizes: sizes(&value["sizes"]),
            // Rows of before have none.
            recent: serde_json::from_value(value["recent"].clone()).unwrap_or_default(),
        }
    }

    /// What a message said of both logs of a space.
    pub(super) fn note_sizes(&mut self, space: &Space, done: &Done) {
        let sizes = self.sizes.entry(space.to_string()).or_default();
        if done.their_size > 0 {
            sizes.theirs = done.their_size;
        }
        sizes.they_have = done.they_have.unwrap_or(sizes.they_have);
        self.latency_ms = done.latency_ms.or(self.latency_ms);
    }

    /// Keeps an exchange that brought something or failed. The same failure again is one entry.
    pub(super) fn keep(&mut self, exchange: Exchange) {
        if exchange.error.is_none() && exchange.received + exchange.sent == 0 {
            return;
        }
        match self.recent.last_mut() {
            Some(last) if last.error.is_some() && last.error == exchange.error => *last = exchange,
            _ => self.recent.push(exchange),
        }
        let n_old = self.recent.len().saturating_sub(RECENT_MAX);
        self.recent.drain(..n_old);
    }

    /// Keeps what a message of a peer that called brought.
    pub(super) fn keep_answer(&mut self, now_ms: u64, done: &Done) {
        if done.n_received + done.n_sent == 0 {
            return;
        }
        let is_same = |it: &&mut Exchange| {
            it.error.is_none() && now_ms.saturating_sub(it.at_ms) < ONE_EXCHANGE_MS
        };
        match self.recent.last_mut().filter(is_same) {
            Some(last) => {
                last.took_ms += now_ms.saturating_sub(last.at_ms);
                last.at_ms = now_ms;
                last.received += done.n_received;
                last.sent += done.n_sent;
            }
            None => self.keep(Exchange {
                at_ms: now_ms,
                received: done.n_received,
                sent: done.n_sent,
                ..Exchange::default()
            }),
        }
    }

    /// Adds what an exchange did.
    pub(super) fn add(&mut self, done: &Done) {
        self.received += done.n_received;
        self.sent += done.n_sent;
        self.refused += done.refused.len() as u64;
        self.conflicts += done.conflicts.len() as u64;
        if let Some((author, why)) = done.refused.first() {
            let n = done.refused.len();
            self.last_error = Some(format!(
                "{n} events were refused; the first is by {author}: {why}"
            ));
        }
        if let Some(first) = done.too_large.first() {
            let n = done.too_large.len();
            self.last_error = Some(format!(
                "{n} events were not sent, because they are larger than a message may be; the first is {first}"
            ));
        }
    }
}

fn sizes(value: &Value) -> BTreeMap<String, Sizes> {
    let rows = value.as_object().into_iter().flatten();
    let read = |it: &Value| {
        let (theirs, they_have) = (it.get(0)?.as_u64()?, it.get(1)?.as_u64()?);
        Some(Sizes { theirs, they_have })
    };
    rows.filter_map(|(space, it)| Some((space.clone(), read(it)?)))
        .collect()
}

/// An exchange that brought something or failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeView {
    /// When it ended.
    pub at: String,
    /// How long it took.
    pub took_ms: u64,
    /// Events that were taken.
    pub n_received: u64,
    /// Events that the peer took.
    pub n_sent: u64,
    /// Why it failed.
    pub error: Option<String>,
}

/// How it stands with one peer.
#[derive(Clone, Debug)]
pub struct PeerView {
    /// Who it is, and what it may do.
    pub peer: Peer,
    /// Its key, by the method that is shown.
    pub did: String,
    /// `connected`, `syncing`, `disconnected` or `error`.
    pub status: &'static str,
    /// When everything was last exchanged.
    pub last_sync: Option<String>,
    /// The same in milliseconds since 1970.
    pub last_sync_ms: Option<u64>,
    /// How many exchanges failed.
    pub n_errors: u64,
    /// Why the last one failed, or what was refused in it.
    pub last_error: Option<String>,
    /// Events that were taken from it.
    pub n_received: u64,
    /// Events that it took.
    pub n_sent: u64,
    /// Events of it that were refused.
    pub n_refused: u64,
    /// Conflicts with writes of it.
    pub n_conflicts: u64,
    /// How long its last answer took.
    pub latency_ms: Option<u64>,
    /// How many entries of its log were read, in all spaces together.
    pub n_read: u64,
    /// How many of its entries we know to be missing here.
    pub lag: u64,
    /// How many entries of our log it is not known to have.
    pub n_unsent: u64,
    /// The height of the last of its checkpoints that was checked here.
    pub checkpoint: Option<u64>,
    /// The last exchanges that brought something or failed, newest first.
    pub history: Vec<ExchangeView>,
}

impl PeerView {
    /// As JSON, for people and other programs.
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.peer.id, "endpoint": self.peer.endpoint, "did": self.did,
            "status": self.status, "lastSync": self.last_sync, "errors": self.n_errors,
            "lastError": self.last_error, "received": self.n_received, "sent": self.n_sent,
            "refused": self.n_refused, "conflicts": self.n_conflicts, "latencyMs": self.latency_ms,
            "read": self.n_read, "lag": self.lag, "unsent": self.n_unsent,
            "checkpoint": self.checkpoint,
        })
    }
}

/// How it stands with all of them.
#[derive(Clone, Debug)]
pub struct SyncStatus {
    /// The peers, in the order of their keys.
    pub peers: Vec<PeerView>,
    /// Whether a process on this store exchanges by itself.
    pub is_running: bool,
    /// How often, in milliseconds; 0 for never.
    pub interval_ms: u64,
    /// Whether a process on this store exchanges events now.
    pub is_syncing: bool,
}

impl Kernel {
    pub(super) fn counters(&self, peer: &Peer) -> Result<Counters> {
        let key = peer.did.as_str();
        let row = self.log.read(&system_space(), |tx| STATUS.get(tx, key))?;
        Ok(row.map_or_else(Counters::default, |it| Counters::from_bytes(&it.0)))
    }

    pub(super) fn count(
        &self,
        peer: &Peer,
        change: impl FnOnce(&mut Counters) + Send + 'static,
    ) -> Result<()> {
        let key = peer.did.to_string();
        self.log.write(&system_space(), move |tx| {
            let row = STATUS.get(&**tx, &key)?;
            let before = row.map_or_else(Counters::default, |it| Counters::from_bytes(&it.0));
            let mut counters = before.clone();
            change(&mut counters);
            if counters == before {
                return Ok(());
            }
            STATUS.set(tx, &key, &Raw(counters.to_bytes()))
        })
    }

    /// How it stands with one peer or with all.
    ///
    /// # Errors
    /// Not found, with the words of the graph contract; denied without the scope `read`.
    pub fn sync_status(&self, caller: &Caller, name: Option<&str>) -> Result<SyncStatus> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        let mut views = Vec::new();
        for peer in self.read_peers()? {
            // Whoever sees one space is told of its peers only.
            if !peer.has_space(space) && caller.principal.require(Scope::Admin).is_err() {
                continue;
            }
            if name.is_some_and(|it| !super::is_called(&peer, it)) {
                continue;
            }
            views.push(self.peer_view(peer)?);
        }
        if let (Some(name), true) = (name, views.is_empty()) {
            return Err(Error::new(
                kenning_core::Code::NotFound,
                format!("Peer not found: {name}"),
            )
            .hint("call it without `peerId`, or `kenning peer list`"));
        }
        let is_syncing = views.iter().any(|it| it.status == "syncing");
        let (is_running, interval_ms) = self.serving()?;
        Ok(SyncStatus {
            peers: views,
            is_running,
            interval_ms,
            is_syncing,
        })
    }

    fn peer_view(&self, peer: Peer) -> Result<PeerView> {
        let counters = self.counters(&peer)?;
        let (mut n_read, mut lag, mut n_unsent, mut checkpoint) = (0, 0, 0, None);
        for space in &peer.policy.spaces {
            let key = peer.did.as_str();
            let row = self.log.read(space, |tx| super::CURSOR_ROWS.get(tx, key))?;
            let cursor = row
                .and_then(|it| Cursor::from_bytes(&it.0))
                .unwrap_or_default();
            n_read += cursor.frontier.size;
            let sizes = counters.sizes.get(space.as_str()).copied();
            let sizes = sizes.unwrap_or_default();
            if peer.policy.may_write {
                lag += sizes.theirs.saturating_sub(cursor.frontier.size);
            }
            if peer.policy.may_read {
                n_unsent += self.log.roots(space)?.seq.saturating_sub(sizes.they_have);
            }
            checkpoint = checkpoint.max(cursor.checkpoint);
        }
        let now = self.log.clock().now_ms();
        let is_active = self.is_exchanging(&peer)?;
        let is_recent = |it: u64| now.saturating_sub(it) < CONNECTED_MS;
        let status = if peer.cut_off.is_some() {
            "error"
        } else if is_active {
            "syncing"
        } else if counters.failures > 0 {
            "error"
        } else if counters.last_sync_ms.is_some_and(is_recent) {
            "connected"
        } else {
            "disconnected"
        };
        let last_error = match &peer.cut_off {
            Some(evidence) => Some(format!("it showed two histories: {}", evidence.what)),
            None => counters.last_error,
        };
        let history = counters.recent.into_iter().rev().map(|it| ExchangeView {
            at: timestamp(it.at_ms),
            took_ms: it.took_ms,
            n_received: it.received,
            n_sent: it.sent,
            error: it.error,
        });
        Ok(PeerView {
            status,
            did: self.show_did(&peer.did)?.to_string(),
            history: history.collect(),
            last_sync: counters.last_sync_ms.map(timestamp),
            last_sync_ms: counters.last_sync_ms,
            n_errors: counters.errors,
            last_error,
            n_received: counters.received,
            n_sent: counters.sent,
            n_refused: counters.refused,
            n_conflicts: counters.conflicts,
            latency_ms: counters.latency_ms,
            n_read,
            lag,
            n_unsent,
            checkpoint,
            peer,
        })
    }
}
