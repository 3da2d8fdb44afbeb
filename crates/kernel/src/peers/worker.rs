//! Exchanges by itself: soon after something was written here, and now and then.

use super::call::pause;
use super::live::Heartbeat;
use crate::Kernel;
use crate::worker::{Complaint, Signal, Woken, Worker};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How often a serving process calls its peers, in milliseconds.
const INTERVAL_VARIABLE: &str = "KENNING_SYNC_INTERVAL_MS";

/// The same by the name of the graph contract.
const INTERVAL_EXOCHAIN: &str = "EXOCHAIN_SYNDICATION_INTERVAL";

const INTERVAL_DEFAULT_MS: u64 = 300_000;

/// What gathers in this time goes over together.
const GATHER: Duration = Duration::from_secs(1);

/// How often it is looked whether somebody's time has come.
const LOOK: Duration = Duration::from_secs(5);

/// Before a peer that failed is called again.
const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// How often peers are called, in milliseconds: at least every second, at most once a day, or never (0).
pub(super) fn interval(kernel: &Kernel) -> u64 {
    let lookup = kernel.environment();
    let value = lookup(INTERVAL_VARIABLE).or_else(|| lookup(INTERVAL_EXOCHAIN));
    let value = value.and_then(|it| it.trim().parse().ok());
    match value.unwrap_or(INTERVAL_DEFAULT_MS) {
        0 => 0,
        given => given.clamp(1_000, 86_400_000),
    }
}

/// The thread that calls. Dropping it asks it to stop and does not wait.
pub struct PeerSync {
    kernel: Arc<Kernel>,
    worker: Worker,
}

impl PeerSync {
    /// Starts it; a process that only reads exchanges nothing.
    pub fn start(kernel: &Arc<Kernel>) -> Self {
        let worker = if kernel.is_read_only() {
            Worker::idle()
        } else {
            let signal = Arc::new(Signal::default());
            let woken = Arc::downgrade(&signal);
            kernel.on_append(Arc::new(move || {
                if let Some(signal) = Weak::upgrade(&woken) {
                    signal.wake();
                }
            }));
            kernel.exchanges.is_running.store(true, Ordering::Relaxed);
            let kernel = Arc::clone(kernel);
            Worker::start("peers", signal, move |signal| {
                let mut heartbeat = Heartbeat::default();
                run(&kernel, signal, &mut heartbeat);
                if let Err(error) = heartbeat.end(&kernel) {
                    tracing::warn!("peers: {error}");
                }
            })
        };
        let kernel = Arc::clone(kernel);
        Self { kernel, worker }
    }

    /// Stops after the exchange that is under way, and waits for it no longer than this.
    pub fn stop(self, patience: Duration) {
        self.kernel
            .exchanges
            .is_running
            .store(false, Ordering::Relaxed);
        self.worker.stop(patience);
    }
}

/// When a peer is called next.
#[derive(Default)]
struct Turn {
    due: Option<Instant>,
    n_failures: u32,
    complaint: Complaint,
    /// The end of our logs when everything was exchanged.
    sizes: Vec<u64>,
}

fn run(kernel: &Kernel, signal: &Signal, heartbeat: &mut Heartbeat) {
    let mut turns: BTreeMap<String, Turn> = BTreeMap::new();
    let mut silent = Complaint::default();
    let mut seen = signal.n_wakes();
    loop {
        match signal.next(&mut seen, LOOK) {
            Woken::ToStop => return,
            Woken::ByOthers if !signal.pause(GATHER) => return,
            Woken::ByOthers | Woken::ByTime => {}
        }
        if let Err(error) = kernel.finish_deferred() {
            tracing::warn!("files stay behind what peers wrote: {error}");
        }
        let Ok(peers) = kernel.read_peers() else {
            continue;
        };
        match heartbeat.beat(kernel, !peers.is_empty()) {
            Ok(()) => silent.clear(),
            Err(error) => drop(silent.say("peers", &error)),
        }
        let interval_ms = interval(kernel);
        if interval_ms == 0 {
            continue;
        }
        let callable = peers
            .iter()
            .filter(|peer| !peer.endpoint.is_empty() && peer.cut_off.is_none());
        for peer in callable {
            if signal.is_stopped() {
                return;
            }
            let sizes = |kernel: &Kernel| -> Vec<u64> {
                let spaces = peer.policy.spaces.iter();
                spaces
                    .map(|it| kernel.log().roots(it).map_or(0, |it| it.seq))
                    .collect()
            };
            let turn = turns.entry(peer.did.to_string()).or_default();
            let is_due = turn.due.is_none_or(|it| it <= Instant::now());
            let has_news = turn.n_failures == 0 && turn.sizes != sizes(kernel);
            if !is_due && !has_news {
                continue;
            }
            match crate::worker::contained(|| kernel.sync_with(peer)) {
                Ok(_) => {
                    turn.n_failures = 0;
                    turn.complaint.clear();
                    turn.sizes = sizes(kernel);
                    turn.due = Some(Instant::now() + Duration::from_millis(interval_ms));
                }
                Err(error) => {
                    turn.n_failures = turn.n_failures.saturating_add(1);
                    turn.complaint.say(&peer.id, &error);
                    turn.due = Some(Instant::now() + pause(kernel, FIRST_PAUSE, turn.n_failures));
                }
            }
        }
    }
}
