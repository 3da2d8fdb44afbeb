//! Webhooks: URLs in `config.yaml` that receive events.
//!
//! Each hook follows the log with a cursor in the store, so an event is not lost when a process ends
//! between its write and its delivery. One process at a time delivers to a hook: it takes a lease
//! beside the cursor and moves the cursor only while it holds the lease. If a process is killed after
//! the receiver has answered and before the cursor moves, the event is sent again; the receiver
//! recognizes it by `event_id`.
//!
//! A new hook begins with the next event, not with the past. A slow or unreachable one does not delay
//! others: each has its own thread. Only a server delivers.

use crate::{Omi, bus};
use kenning_audit::Log;
use kenning_core::{Code, Hash, Result, Space};
use kenning_egress::{Egress, Grant, Limits, Method, Policy, Request};
use kenning_kernel::worker::contained;
use kenning_kernel::worker::{Complaint, Signal, Worker, back_off};
use kenning_kernel::{Bucket, Lease, lease, timestamp};
use kenning_memory::config::Webhook;
use kenning_store::EventRow;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// The cursor of each hook.
const CURSORS: Bucket<u64> = Bucket::new("webhook.cursor");

/// The lease of each hook.
const LEASES: Bucket<Lease> = Bucket::new("webhook.lease");

/// How often an event is sent again before it is given up.
const RETRIES_MAX: u32 = 3;

/// The number of events that are read together.
const PAGE: usize = 256;

/// How much longer a lease lasts than one attempt: pauses, writes, and clocks that differ.
const LEASE_SLACK: Duration = Duration::from_secs(30);

/// How often the configuration is read again, and hooks that another process serves are checked.
const LOOK: Duration = Duration::from_secs(2);

/// How long a receiver may take, and how long to wait before asking it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// For one attempt, from the connection to the last byte of the answer.
    pub timeout: Duration,
    /// Before the first retry; doubled before each further one.
    pub first_pause: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            first_pause: Duration::from_secs(1),
        }
    }
}

/// The deliveries of this process. Dropping it asks them to stop and does not wait.
pub struct Webhooks(Worker);

impl Webhooks {
    /// Starts deliveries for every hook of `config.yaml`, including those that are added later.
    pub fn start(engine: &Arc<Omi>, pace: Pace) -> Self {
        if engine.kernel.is_read_only() {
            // Cursors could not be moved, so the next process would send everything again.
            return Self(Worker::idle());
        }
        let signal = Arc::new(Signal::default());
        let woken = Arc::downgrade(&signal);
        let look = engine.kernel.on_append(Arc::new(move || {
            if let Some(signal) = Weak::upgrade(&woken) {
                signal.wake();
            }
        }));
        let shared = Shared {
            engine: Arc::clone(engine),
            signal: Arc::clone(&signal),
            pace,
            look,
        };
        Self(Worker::start("webhooks", signal, move |_| {
            shared.supervise();
        }))
    }

    /// Stops after the attempts in progress, and waits for them at most this long.
    pub fn stop(self, patience: Duration) {
        self.0.stop(patience);
    }
}

/// What the deliveries share.
#[derive(Clone)]
struct Shared {
    engine: Arc<Omi>,
    signal: Arc<Signal>,
    pace: Pace,
    look: Duration,
}

impl Shared {
    fn supervise(self) {
        let mut senders: BTreeMap<String, JoinHandle<()>> = BTreeMap::new();
        let mut fault = Complaint::default();
        while !self.signal.is_stopped() {
            match contained(|| self.hooks()) {
                Ok(hooks) => {
                    fault.clear();
                    for name in hooks.into_keys() {
                        if senders.get(&name).is_none_or(JoinHandle::is_finished) {
                            // Not a `Worker`: all senders share one signal, and a worker that is
                            // dropped stops its own.
                            let sender = Sender::new(self.clone(), name.clone());
                            let send = move || {
                                let sent = contained(|| {
                                    sender.run();
                                    Ok(())
                                });
                                if let Err(error) = sent {
                                    tracing::error!("webhooks: {error}");
                                }
                            };
                            senders.insert(name, std::thread::spawn(send));
                        }
                    }
                }
                Err(error) => drop(fault.say("webhooks", &error)),
            }
            self.signal.pause(LOOK);
        }
        for sender in senders.into_values() {
            drop(sender.join());
        }
    }

    /// The hooks by the names of their cursors: the URL as written in the file, so that a changed
    /// filter, header or variable continues at the same place.
    fn hooks(&self) -> Result<BTreeMap<String, Webhook>> {
        let mut hooks = BTreeMap::new();
        for hook in &self.engine.kernel.memory_config()?.webhooks {
            let hash = Hash::of(hook.url.shown().as_bytes()).to_string();
            let hash = hash.get(..32).unwrap_or(&hash);
            let taken = |n: &usize| !hooks.contains_key(&format!("{hash}.{n}"));
            let n = (0..).find(taken).unwrap_or_default();
            hooks.insert(format!("{hash}.{n}"), hook.clone());
        }
        Ok(hooks)
    }
}

/// Delivers to one hook.
struct Sender {
    shared: Shared,
    /// The name of its cursor and its lease.
    name: String,
    /// The holder's name in the lease.
    holder: String,
}

/// A hook with its variables replaced.
struct Receiver {
    egress: Egress,
    url: String,
    headers: Vec<(String, String)>,
    events: Vec<String>,
}

/// What became of an event.
enum Outcome {
    /// Delivered, or given up.
    Settled,
    /// The process ends, or another process has the lease.
    Left,
}

impl Sender {
    fn new(shared: Shared, name: String) -> Self {
        let holder = lease::holder(shared.engine.kernel.log().random());
        Self {
            shared,
            name,
            holder,
        }
    }

    /// Runs until the process ends or the hook is removed from the file.
    fn run(&self) {
        let signal = &self.shared.signal;
        let mut fault = Complaint::default();
        while !signal.is_stopped() {
            let mut seen = signal.n_wakes();
            let worked = match self.shared.hooks() {
                Ok(mut hooks) => match hooks.remove(&self.name) {
                    Some(hook) => self.receiver(&hook).and_then(|it| self.deliver_all(&it)),
                    None => return,
                },
                Err(error) => Err(error),
            };
            match worked {
                Ok(()) => {
                    fault.clear();
                    signal.next(&mut seen, self.shared.look.min(LOOK));
                }
                Err(error) => {
                    fault.say("webhook", &error);
                    signal.pause(LOOK);
                }
            }
        }
    }

    fn receiver(&self, hook: &Webhook) -> Result<Receiver> {
        let lookup = self.shared.engine.kernel.environment();
        let url = hook.url.expand(lookup)?;
        let mut headers = Vec::new();
        for (name, value) in &hook.headers {
            headers.push((name.clone(), value.expand(lookup)?));
        }
        let says_type = |(name, _): &(String, String)| name.eq_ignore_ascii_case("content-type");
        if !headers.iter().any(says_type) {
            headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        }
        let defaults = Limits::default();
        let policy = Policy {
            // The operator named this address. A redirect leads elsewhere, so it is not followed.
            grants: vec![Grant::parse(&url)?],
            limits: Limits {
                total_timeout: self.shared.pace.timeout,
                connect_timeout: defaults.connect_timeout.min(self.shared.pace.timeout),
                redirects_max: 0,
                ..defaults
            },
            ..Policy::default()
        };
        Ok(Receiver {
            egress: Egress::new(policy),
            url,
            headers,
            events: hook.events.clone(),
        })
    }

    /// Delivers everything that is due.
    fn deliver_all(&self, receiver: &Receiver) -> Result<()> {
        let (log, space) = (
            &self.shared.engine.kernel.log(),
            self.shared.engine.kernel.omi().space(),
        );
        loop {
            let mut at = self.cursor()?;
            let rows = log.read(space, |tx| tx.events_after(at, PAGE))?;
            let Some(last) = rows.last() else {
                return Ok(());
            };
            let last = last.seq;
            let mut is_held = false;
            for row in rows.iter().filter(|it| receiver.wants(&it.kind)) {
                if self.shared.signal.is_stopped() {
                    break;
                }
                if !is_held && !self.take_lease(at)? {
                    break;
                }
                is_held = true;
                match self.send(receiver, row, at) {
                    Ok(Outcome::Settled) if self.settle(row.seq)? => at = row.seq,
                    Ok(_) => break,
                    Err(error) => {
                        self.release()?;
                        return Err(error);
                    }
                }
            }
            if is_held {
                self.release()?;
            }
            if self.shared.signal.is_stopped() {
                return Ok(());
            }
            let rest = rows.iter().filter(|it| it.seq > at);
            let is_done = !rest.clone().any(|it| receiver.wants(&it.kind));
            if !(is_done && self.skip(at, last)?) {
                return Ok(());
            }
        }
    }

    /// The event in the contract's form, with an id by which a receiver recognizes it.
    fn body(&self, row: &EventRow) -> Result<Vec<u8>> {
        let engine = &self.shared.engine;
        let known = engine
            .kernel
            .log()
            .read(engine.kernel.omi().space(), |tx| bus::event(tx, row))?;
        let mut json = known.map_or_else(|| other_event(row), |it| it.json);
        json["event_id"] = row.id.to_string().into();
        Ok(json.to_string().into_bytes())
    }

    /// Sends an event until it is received or given up. Errors are about the configuration: the event
    /// waits until it is repaired.
    fn send(&self, receiver: &Receiver, row: &EventRow, at: u64) -> Result<Outcome> {
        let (signal, pace) = (&self.shared.signal, self.shared.pace);
        let body = self.body(row)?;
        for n in 0..=RETRIES_MAX {
            if n > 0 {
                signal.pause(back_off(pace.first_pause, Duration::MAX, n));
                // The pauses together may be longer than the rest of the lease.
                if signal.is_stopped() || !self.take_lease(at)? {
                    return Ok(Outcome::Left);
                }
            }
            let answer = receiver.egress.fetch(Request {
                method: Method::Post,
                url: receiver.url.clone(),
                headers: receiver.headers.clone(),
                body: body.clone(),
                ..Request::default()
            });
            let why = match answer {
                Ok(answer) if (200..300).contains(&answer.status) => return Ok(Outcome::Settled),
                Ok(answer) => format!("status {}", answer.status),
                Err(error) if error.code == Code::InvalidInput => return Err(error),
                Err(error) => error.message,
            };
            let grade = if n == RETRIES_MAX {
                "given up"
            } else {
                "will be sent again"
            };
            tracing::warn!(
                "webhook: event {} was not received ({why}); {grade}",
                row.seq
            );
        }
        Ok(Outcome::Settled)
    }

    /// Where the cursor and the lease are kept.
    fn kernel(&self) -> (&Log, &Space) {
        let kernel = &self.shared.engine.kernel;
        (kernel.log(), kernel.omi().space())
    }

    /// The event up to which everything is done.
    fn cursor(&self) -> Result<u64> {
        let (log, space) = self.kernel();
        let name = self.name.clone();
        if let Some(seq) = log.read(space, |tx| CURSORS.get(tx, &name))? {
            return Ok(seq);
        }
        log.write(space, move |tx| {
            if let Some(seq) = CURSORS.get(&**tx, &name)? {
                return Ok(seq);
            }
            let seq = tx.head()?.map_or(0, |it| it.seq);
            CURSORS.set(tx, &name, &seq)?;
            Ok(seq)
        })
    }

    /// Takes or renews the lease. False if another process has it or had it meanwhile.
    fn take_lease(&self, at: u64) -> Result<bool> {
        let (log, space) = self.kernel();
        let (name, lease, now_ms) = (self.name.clone(), self.lease(), log.clock().now_ms());
        log.write(space, move |tx| {
            let is_there = CURSORS.get(&**tx, &name)? == Some(at);
            Ok(is_there && LEASES.take(tx, &name, &lease, now_ms)?)
        })
    }

    /// A new lease, long enough for one attempt.
    fn lease(&self) -> Lease {
        let now_ms = self.kernel().0.clock().now_ms();
        Lease::of(&self.holder, now_ms, self.shared.pace.timeout + LEASE_SLACK)
    }

    /// Moves the cursor and renews the lease, if this process still holds it.
    fn settle(&self, seq: u64) -> Result<bool> {
        let (log, space) = self.kernel();
        let (name, lease) = (self.name.clone(), self.lease());
        log.write(space, move |tx| {
            let is_ours = LEASES.prolong(tx, &name, &lease)?;
            if is_ours {
                CURSORS.set(tx, &name, &seq)?;
            }
            Ok(is_ours)
        })
    }

    fn release(&self) -> Result<()> {
        let (log, space) = self.kernel();
        let (name, holder) = (self.name.clone(), self.holder.clone());
        log.write(space, move |tx| LEASES.give_back(tx, &name, &holder))
    }

    /// Moves the cursor past events that the hook does not want. False if another process moved it
    /// meanwhile.
    fn skip(&self, from: u64, to: u64) -> Result<bool> {
        if from == to {
            return Ok(true);
        }
        let (log, space) = self.kernel();
        let name = self.name.clone();
        log.write(space, move |tx| {
            let is_there = CURSORS.get(&**tx, &name)? == Some(from);
            if is_there {
                CURSORS.set(tx, &name, &to)?;
            }
            Ok(is_there)
        })
    }
}

impl Receiver {
    /// Whether the filter names this kind: as `memory.stored`, `MemoryStored` or `MemoryStoredEvent`.
    fn wants(&self, kind: &str) -> bool {
        let class = class_of(kind);
        let names = |it: &String| it == "*" || class_of(it) == class || *it == event_type(kind);
        self.events.is_empty() || self.events.iter().any(names)
    }
}

fn class_of(kind: &str) -> &str {
    kind.strip_suffix("Event").unwrap_or(kind)
}

/// An event that is not part of the contract.
fn other_event(row: &EventRow) -> Value {
    let mut fields = match kenning_audit::event::data(row) {
        Value::Object(data) => data,
        _ => Map::new(),
    };
    fields.insert("event_type".to_owned(), event_type(&row.kind).into());
    fields.insert("timestamp".to_owned(), timestamp(row.hlc.ms()).into());
    fields.entry("metadata").or_insert_with(|| json!({}));
    Value::Object(fields)
}

/// `MemoryStoredEvent` as `memory.stored`.
fn event_type(kind: &str) -> String {
    if class_of(kind) == "ContradictionDetected" {
        return "belief.contradiction_detected".to_owned();
    }
    let mut name = String::new();
    let mut n_words = 0;
    for c in class_of(kind).chars() {
        if c.is_uppercase() {
            n_words += 1;
            match n_words {
                1 => {}
                2 => name.push('.'),
                _ => name.push('_'),
            }
        }
        name.extend(c.to_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_names_of_the_contract() {
        for (kind, expected) in [
            ("MemoryStoredEvent", "memory.stored"),
            ("MemoryRecalledEvent", "memory.recalled"),
            ("BeliefUpdatedEvent", "belief.updated"),
            (
                "ContradictionDetectedEvent",
                "belief.contradiction_detected",
            ),
            ("SessionStartedEvent", "session.started"),
            ("VaultBackedUp", "vault.backed_up"),
        ] {
            assert_eq!(event_type(kind), expected);
        }
    }
}
