//! What every process on the store can know of what another one is doing now.
//!
//! A process that calls peers by itself renews a row of its own while there are peers, and a process that
//! exchanges events with one holds a lease on that peer. Both end by themselves if the process dies.

use super::worker::interval;
use crate::tokens::system_space;
use crate::{Bucket, Kernel, Lease};
use kenning_core::Result;
use kenning_peers::Peer;
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Processes that call peers by themselves, by their holders' names, in the system space.
const SERVING: Bucket<Serving> = Bucket::new("sync/serving");

/// Exchanges under way, by the keys of the peers, in the system space.
pub(super) const ACTIVE: Bucket<Lease> = Bucket::new("sync/active");

/// How long a process counts as running after it last said so.
const SERVING_LASTS: Duration = Duration::from_secs(90);

/// How often it says so.
const SERVING_RENEWED: Duration = Duration::from_secs(30);

/// How long an exchange counts as under way after its last message.
const ACTIVE_LASTS: Duration = Duration::from_secs(60);

/// After so long a lease is renewed.
const ACTIVE_RENEWED: Duration = Duration::from_secs(20);

/// A process that calls peers by itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Serving {
    until_ms: u64,
    interval_ms: u64,
}

/// When this process last said that it is running.
#[derive(Default)]
pub(super) struct Heartbeat(Option<Instant>);

impl Heartbeat {
    /// Says so if it is time. A store without peers is not written to.
    pub(super) fn beat(&mut self, kernel: &Kernel, has_peers: bool) -> Result<()> {
        let is_due = self.0.is_none_or(|it| it.elapsed() >= SERVING_RENEWED);
        if !has_peers || !is_due {
            return Ok(());
        }
        let now_ms = kernel.log().clock().now_ms();
        let lasts_ms = u64::try_from(SERVING_LASTS.as_millis()).unwrap_or(u64::MAX);
        let row = Serving {
            until_ms: now_ms.saturating_add(lasts_ms),
            interval_ms: interval(kernel),
        };
        let holder = kernel.exchanges.holder.clone();
        kernel.log().write(&system_space(), move |tx| {
            // Those that died leave their rows to the next.
            for (key, it) in SERVING.list_readable(&**tx)? {
                if it.until_ms <= now_ms {
                    SERVING.unset(tx, &key)?;
                }
            }
            SERVING.set(tx, &holder, &row)
        })?;
        self.0 = Some(Instant::now());
        Ok(())
    }

    /// It ends.
    pub(super) fn end(&self, kernel: &Kernel) -> Result<()> {
        if self.0.is_none() {
            return Ok(());
        }
        let holder = kernel.exchanges.holder.clone();
        kernel
            .log()
            .write(&system_space(), move |tx| SERVING.unset(tx, &holder))
    }
}

/// An exchange of this process; whoever looks sees it from the first event on.
pub(super) struct Underway<'a> {
    kernel: &'a Kernel,
    peer: &'a Peer,
    renewed: Option<Instant>,
}

impl<'a> Underway<'a> {
    pub(super) fn new(kernel: &'a Kernel, peer: &'a Peer) -> Self {
        let renewed = None;
        Self {
            kernel,
            peer,
            renewed,
        }
    }

    pub(super) fn peer(&self) -> &Peer {
        self.peer
    }

    /// Events go over.
    pub(super) fn show(&mut self) -> Result<()> {
        if self.renewed.is_some_and(|it| it.elapsed() < ACTIVE_RENEWED) {
            return Ok(());
        }
        let now_ms = self.kernel.log().clock().now_ms();
        let lease = Lease::of(&self.kernel.exchanges.holder, now_ms, ACTIVE_LASTS);
        let key = self.peer.did.to_string();
        self.kernel
            .log()
            .write(&system_space(), move |tx| ACTIVE.set(tx, &key, &lease))?;
        self.renewed = Some(Instant::now());
        Ok(())
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        if self.renewed.is_none() {
            return;
        }
        let (key, holder) = (
            self.peer.did.to_string(),
            self.kernel.exchanges.holder.clone(),
        );
        let given = self.kernel.log().write(&system_space(), move |tx| {
            ACTIVE.give_back(tx, &key, &holder)
        });
        if let Err(error) = given {
            // It ends by itself.
            tracing::warn!("{}: {error}", self.peer.id);
        }
    }
}

impl Kernel {
    /// Whether a process on this store calls peers by itself, and how often in milliseconds: this one if it
    /// does, else the one that said so last.
    pub(super) fn serving(&self) -> Result<(bool, u64)> {
        if self.exchanges.is_running.load(Ordering::Relaxed) {
            return Ok((true, interval(self)));
        }
        let rows = self
            .log
            .read(&system_space(), |tx| SERVING.list_readable(tx))?;
        let now_ms = self.log.clock().now_ms();
        let live = rows.into_iter().map(|it| it.1);
        let live = live.filter(|it| it.until_ms > now_ms);
        match live.max_by_key(|it| it.until_ms) {
            Some(it) => Ok((true, it.interval_ms)),
            None => Ok((false, interval(self))),
        }
    }

    /// Whether a process on this store exchanges events with a peer now.
    pub(super) fn is_exchanging(&self, peer: &Peer) -> Result<bool> {
        let key = peer.did.as_str();
        if self.exchanges.is_active(key) {
            return Ok(true);
        }
        let lease = self
            .log
            .read(&system_space(), |tx| ACTIVE.get_readable(tx, key))?;
        let now_ms = self.log.clock().now_ms();
        Ok(lease.is_some_and(|it| it.is_running(now_ms)))
    }
}
