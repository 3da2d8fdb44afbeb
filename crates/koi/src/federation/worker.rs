//! Does what is due, again and again: one process at a time, by a lease.

use super::carrier::{Carried, Carrier, Destination, Http};
use super::peers::{expire_edges, expire_strangers};
use super::records::{LEASES, PEERS, forget_old_messages};
use crate::Koi;
use kenning_core::Result;
use kenning_kernel::worker::{Complaint, Signal, Woken, Worker, contained};
use kenning_kernel::{Lease, lease};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

/// How often it is looked whether something is due.
const LOOK: Duration = Duration::from_secs(2);
/// What gathers in this time is done together.
const GATHER: Duration = Duration::from_millis(100);
/// It is renewed before each call. If a holder is killed, another process goes on after so long; if one call takes
/// longer, two may work for a moment, and peers know by their hashes what they get twice.
const LEASE: Duration = Duration::from_secs(15);
const LEASE_KEY: &str = "worker";
/// After so many turns, what is too old is dropped.
const SWEEP_TURNS: usize = 256;

/// The thread that sends, polls and takes in. Dropping it asks it to stop and does not wait.
pub struct FederationWorker(Worker);

impl FederationWorker {
    /// Starts it; a process that only reads does nothing of the kind.
    pub fn start(koi: &Arc<Koi>) -> Self {
        if koi.kernel.is_read_only() {
            return Self(Worker::idle());
        }
        let signal = Arc::new(Signal::default());
        *koi.federation
            .worker
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&signal);
        let woken = Arc::downgrade(&signal);
        koi.kernel.on_append(Arc::new(move || {
            if let Some(signal) = Weak::upgrade(&woken) {
                signal.wake();
            }
        }));
        let koi = Arc::clone(koi);
        Self(Worker::start("federation", signal, move |signal| {
            run(&koi, signal);
        }))
    }

    /// Stops after the peer that is being asked, and waits for it no longer than this.
    pub fn stop(self, patience: Duration) {
        self.0.stop(patience);
    }
}

/// Over HTTP, while the lease is held.
struct Held<'a> {
    koi: &'a Koi,
    holder: &'a str,
}

impl Carrier for Held<'_> {
    fn carry(&self, to: &Destination, path: &str, body: Option<&str>) -> Result<Carried> {
        self.koi.hold_federation(self.holder)?;
        Http.carry(to, path, body)
    }
}

fn run(koi: &Koi, signal: &Signal) {
    let holder = lease::holder(koi.kernel.log().random());
    let mut complaints: BTreeMap<String, Complaint> = BTreeMap::new();
    let mut seen = signal.n_wakes();
    let mut pause = Duration::ZERO;
    loop {
        match signal.next(&mut seen, std::mem::replace(&mut pause, LOOK)) {
            Woken::ToStop => break,
            Woken::ByOthers if !signal.pause(GATHER) => break,
            Woken::ByOthers | Woken::ByTime => {}
        }
        // What was called while this worked is looked at in the same turn.
        seen = signal.n_wakes();
        let mut faults = Vec::new();
        let done = contained(|| {
            let go_on = |koi: &Koi| Ok(!signal.is_stopped() && koi.hold_federation(&holder)?);
            let carrier = Held {
                koi,
                holder: &holder,
            };
            koi.federation_turn(&carrier, &go_on, &mut faults)
        });
        faults.extend(done.err().map(|it| ("federation".to_owned(), it)));
        complaints.retain(|who, _| faults.iter().any(|it| it.0 == *who));
        for (who, error) in faults {
            complaints.entry(who.clone()).or_default().say(&who, &error);
        }
    }
    let space = koi.federated_space();
    let released = koi
        .kernel
        .log()
        .write(&space, move |tx| LEASES.give_back(tx, LEASE_KEY, &holder));
    if let Err(error) = released {
        tracing::debug!("the lease of the federation ends by itself: {error}");
    }
}

impl Koi {
    /// Takes or renews the lease, if the federation is on.
    fn hold_federation(&self, holder: &str) -> Result<bool> {
        if self.me()?.is_none() {
            return Ok(false);
        }
        let space = self.federated_space();
        let now = self.federation_now();
        // While much of it is left, nothing is written.
        let held = self
            .kernel
            .log()
            .read(&space, |tx| LEASES.get_readable(tx, LEASE_KEY))?;
        let half = u64::try_from(LEASE.as_millis() / 2).unwrap_or(u64::MAX);
        if held.is_some_and(|it| it.is_of(holder) && it.is_running(now + half)) {
            return Ok(true);
        }
        let lease = Lease::of(holder, now, LEASE);
        self.kernel
            .log()
            .write(&space, move |tx| LEASES.take(tx, LEASE_KEY, &lease, now))
    }

    /// Does everything that is due once. What fails with one peer is told and keeps nothing else.
    ///
    /// # Errors
    /// Those of the store.
    pub fn federation_turn(
        &self,
        carrier: &dyn Carrier,
        go_on: &dyn Fn(&Self) -> Result<bool>,
        faults: &mut Vec<(String, kenning_core::Error)>,
    ) -> Result<()> {
        if !go_on(self)? {
            return Ok(());
        }
        let Some(me) = self.me()? else {
            return Ok(());
        };
        self.digest_inbox(&me, carrier)?;
        self.publish_changes()?;
        let space = self.federated_space();
        let peers = self
            .kernel
            .log()
            .read(&space, |tx| PEERS.list_readable(tx))?;
        for (rid, peer) in &peers {
            if !peer.is_active() {
                continue;
            }
            if !go_on(self)? {
                return Ok(());
            }
            if let Err(error) = self.tend(&me, carrier, rid, false) {
                faults.push((format!("node {}", peer.name()), error));
            }
        }
        if self.federation.count_turn().is_multiple_of(SWEEP_TURNS) {
            self.sweep_federation()?;
        }
        self.digest_inbox(&me, carrier)?;
        Ok(())
    }

    /// Drops what is too old: fingerprints of messages, nodes that nobody approved, subscriptions that were
    /// withdrawn.
    ///
    /// # Errors
    /// Those of the store.
    pub fn sweep_federation(&self) -> Result<()> {
        let now = self.federation_now();
        self.kernel
            .log()
            .write_long(&self.federated_space(), move |tx| {
                expire_strangers(tx, now)?;
                expire_edges(tx, now)?;
                let peers = PEERS.keys(&**tx)?;
                peers.iter().try_for_each(|it| forget_old_messages(tx, it))
            })
    }
}
