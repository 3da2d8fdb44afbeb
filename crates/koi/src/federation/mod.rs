//! KOI-net: this node among others.
//!
//! `records` has the rows; `node` is this node, its key and its policy; `peers` what others say of themselves and
//! who subscribes to what. `answer` answers messages (`admit` says whether their senders are who they say they
//! are, `take` keeps the events); `ask` asks others over a `carrier`. `publish` brings what is provided up to date
//! with the graph and fills the queues (`queue`); `digest` takes what arrived into the graph. `tend` does what is
//! due with one peer, `catch_up` compares everything, `worker` does so again and again. `operate` and `status` are
//! for the operator. The messages are in `kenning_federation`.

mod admit;
mod answer;
mod ask;
mod carrier;
mod catch_up;
mod deliver;
mod digest;
mod node;
mod operate;
mod peers;
mod publish;
mod queue;
mod records;
mod status;
mod take;
mod tend;
mod worker;

pub use answer::{FEDERATION_BYTES_MAX, FEDERATION_PATHS, FederationAnswer};
pub use carrier::{Carried, Carrier, Destination, Http as FederationHttp};
pub use node::{FederationIdentity, FederationSetup};
pub use operate::{Connect, PeerPolicyChange};
pub use status::{
    CrossReferenceView, DeadLetter, EdgeView, FederationPeer, FederationStatus, QueuedView,
};
pub use worker::FederationWorker;

use kenning_core::{Error, Random, Result};
use kenning_federation::SecretKey;
use kenning_kernel::worker::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// So many messages are answered at once.
const ANSWERS_MAX: usize = 8;

/// What a process knows of the federation.
#[derive(Default)]
pub(crate) struct Federation {
    key: Mutex<Option<Arc<SecretKey>>>,
    n_answering: AtomicUsize,
    /// Peers that were greeted since this process started.
    greeted: Mutex<BTreeSet<String>>,
    worker: Mutex<Weak<Signal>>,
    n_turns: AtomicUsize,
    floods: Mutex<BTreeMap<String, Flood>>,
    run: OnceLock<String>,
}

/// Messages of a peer for which there was no room.
#[derive(Clone, Copy, Default)]
struct Flood {
    n: u64,
    /// Those that the status does not count yet.
    n_new: u64,
    last_ms: u64,
    noted_ms: u64,
    is_too_much: bool,
}

/// Whoever sends so many messages for which there is no room, without a pause of [`CALM_MS`], is cut off.
const FLOOD_MAX: u64 = 1_000;
const CALM_MS: u64 = 600_000;
/// The status is brought up to date so often.
const NOTED_MS: u64 = 1_000;

impl Federation {
    fn key(&self) -> Option<Arc<SecretKey>> {
        self.key
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn keep_key(&self, key: SecretKey) -> Arc<SecretKey> {
        let mut kept = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(kept.get_or_insert_with(|| Arc::new(key)))
    }

    fn forget_key(&self) {
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.greeted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// Whether a peer is greeted for the first time; notes that it is.
    fn begin_greeting(&self, peer: &str) -> bool {
        let mut greeted = self.greeted.lock().unwrap_or_else(PoisonError::into_inner);
        greeted.insert(peer.to_owned())
    }

    fn forget_greeting(&self, peer: &str) {
        self.greeted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(peer);
    }

    /// The name of this run of the program.
    fn run(&self, random: &dyn Random) -> String {
        let name = || {
            let mut bytes = [0; 8];
            random.fill(&mut bytes);
            kenning_text::hex::encode(&bytes)
        };
        self.run.get_or_init(name).clone()
    }

    /// Counts a message for which there is no room; what is to be noted of it, if anything.
    fn count_flood(&self, peer: &str, now_ms: u64) -> Option<Flood> {
        let mut floods = self.floods.lock().unwrap_or_else(PoisonError::into_inner);
        let flood = floods.entry(peer.to_owned()).or_default();
        if now_ms.saturating_sub(flood.last_ms) > CALM_MS {
            *flood = Flood::default();
        }
        flood.last_ms = now_ms;
        flood.n += 1;
        flood.n_new += 1;
        let is_too_much = flood.n >= FLOOD_MAX;
        if !is_too_much && now_ms.saturating_sub(flood.noted_ms) < NOTED_MS {
            return None;
        }
        flood.noted_ms = now_ms;
        let noted = Flood {
            is_too_much,
            ..*flood
        };
        match is_too_much {
            // If the operator connects it again, counting begins anew.
            true => drop(floods.remove(peer)),
            false => flood.n_new = 0,
        }
        Some(noted)
    }

    fn count_turn(&self) -> usize {
        self.n_turns.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn wake(&self) {
        let signal = self
            .worker
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .upgrade();
        if let Some(signal) = signal {
            signal.wake();
        }
    }

    fn begin_answer(&self) -> Result<Answering<'_>> {
        if self.n_answering.fetch_add(1, Ordering::Relaxed) >= ANSWERS_MAX {
            self.n_answering.fetch_sub(1, Ordering::Relaxed);
            return Err(Error::limited(format!(
                "this node answers at most {ANSWERS_MAX} messages of other nodes at once"
            ))
            .hint("send it again in a second"));
        }
        Ok(Answering(&self.n_answering))
    }
}

/// A message that is being answered.
struct Answering<'a>(&'a AtomicUsize);

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
