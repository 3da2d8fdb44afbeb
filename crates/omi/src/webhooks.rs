//! Webhooks: addresses in `config.yaml` that are told of what happened.
//!
//! Each hook follows the log with a cursor in the store, so an event is not lost when a process ends
//! between its write and its delivery. One courier at a time works for a hook: whoever has something to
//! deliver takes a lease beside the cursor, whichever machine it is on, and moves the cursor only while
//! it holds it. A process that is killed between the answer of the receiver and the move of the cursor
//! has the event sent once more, by itself or by another: `event_id` tells the receiver.
//!
//! A hook that is new begins with what happens next, not with the past. One that is slow or gone holds
//! up no other: each has its own thread. Only a serving process has couriers.

use crate::{Omi, bus};
use kenning_audit::Log;
use kenning_core::{Code, Hash, Result, Space};
use kenning_egress::{Egress, Grant, Limits, Method, Policy, Request};
use kenning_kernel::later::contained;
use kenning_kernel::worker::{Complaint, Signal, Worker, back_off};
use kenning_kernel::{Bucket, Lease, lease, timestamp};
use kenning_memory::config::Webhook;
use kenning_store::EventRow;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// How far each hook is.
const CURSORS: Bucket<u64> = Bucket::new("webhook.cursor");

/// Who works for a hook, and until when.
const LEASES: Bucket<Lease> = Bucket::new("webhook.lease");

/// How often an event is sent again before it is given up.
const RETRIES_MAX: u32 = 3;

/// Events that are looked at together.
const PAGE: usize = 256;

/// What a lease lasts beyond one attempt: pauses, writes, and clocks that differ.
const LEASE_SLACK: Duration = Duration::from_secs(30);

/// How often the configuration is looked at, and a hook that another process works for.
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

/// The couriers of this process. Dropping it asks them to stop and does not wait.
pub struct Webhooks(Worker);

impl Webhooks {
    /// Starts couriers for every hook of `config.yaml`, also for those that are added later.
    pub fn start(engine: &Arc<Omi>, pace: Pace) -> Self {
        if engine.kernel.is_read_only() {
            // A cursor could not be moved, so everything would be sent again by the next process.
            return Self(Worker::idle());
        }
        let signal = Arc::new(Signal::default());
        let woken = Arc::downgrade(&signal);
        let look = engine.kernel.on_append(Arc::new(move || {
            if let Some(signal) = Weak::upgrade(&woken) {
                signal.wake();
            }
        }));
        let office = Office {
            engine: Arc::clone(engine),
            signal: Arc::clone(&signal),
            pace,
            look,
        };
        Self(Worker::start("webhooks", signal, move |_| {
            office.supervise();
        }))
    }

    /// Stops after the attempts that are under way, and waits for them no longer than this.
    pub fn stop(self, patience: Duration) {
        self.0.stop(patience);
    }
}

/// What couriers share.
#[derive(Clone)]
struct Office {
    engine: Arc<Omi>,
    signal: Arc<Signal>,
    pace: Pace,
    look: Duration,
}

impl Office {
    fn supervise(self) {
        let mut couriers: BTreeMap<String, JoinHandle<()>> = BTreeMap::new();
        let mut fault = Complaint::default();
        while !self.signal.is_stopped() {
            match contained(|| self.hooks()) {
                Ok(hooks) => {
                    fault.clear();
                    for name in hooks.into_keys() {
                        if couriers.get(&name).is_none_or(JoinHandle::is_finished) {
                            let courier = Courier::new(self.clone(), name.clone());
                            couriers.insert(name, std::thread::spawn(move || courier.run()));
                        }
                    }
                }
                Err(error) => drop(fault.say("webhooks", &error)),
            }
            self.signal.pause(LOOK);
        }
        for courier in couriers.into_values() {
            drop(courier.join());
        }
    }

    /// The hooks by the names of their cursors: the address as it stands in the file, so that a changed
    /// filter, header or variable goes on where the old one was.
    fn hooks(&self) -> Result<BTreeMap<String, Webhook>> {
        let mut hooks = BTreeMap::new();
        for hook in self.engine.kernel.memory_config()?.webhooks {
            let hash = Hash::of(hook.url.shown().as_bytes()).to_string();
            let hash = hash.get(..32).unwrap_or(&hash);
            let taken = |n: &usize| !hooks.contains_key(&format!("{hash}.{n}"));
            let n = (0..).find(taken).unwrap_or_default();
            hooks.insert(format!("{hash}.{n}"), hook);
        }
        Ok(hooks)
    }
}

/// Delivers to one hook.
struct Courier {
    office: Office,
    /// Of the cursor and the lease.
    name: String,
    /// Who holds the lease.
    holder: String,
}

/// A hook with its variables put in.
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
    /// The process ends, or somebody else has the lease.
    Left,
}

impl Courier {
    fn new(office: Office, name: String) -> Self {
        let holder = lease::holder(office.engine.kernel.log().random());
        Self {
            office,
            name,
            holder,
        }
    }

    /// Until the process ends or the hook is no longer in the file.
    fn run(&self) {
        let signal = &self.office.signal;
        let mut fault = Complaint::default();
        while !signal.is_stopped() {
            let mut seen = signal.n_wakes();
            let worked = match self.office.hooks() {
                Ok(mut hooks) => match hooks.remove(&self.name) {
                    Some(hook) => self.receiver(&hook).and_then(|it| self.deliver_all(&it)),
                    None => return,
                },
                Err(error) => Err(error),
            };
            match worked {
                Ok(()) => {
                    fault.clear();
                    signal.next(&mut seen, self.office.look.min(LOOK));
                }
                Err(error) => {
                    fault.say("webhook", &error);
                    signal.pause(LOOK);
                }
            }
        }
    }

    fn receiver(&self, hook: &Webhook) -> Result<Receiver> {
        let lookup = self.office.engine.kernel.environment();
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
            // The operator named it, wherever it is. A redirect is not what the operator named.
            grants: vec![Grant::parse(&url)?],
            limits: Limits {
                total_timeout: self.office.pace.timeout,
                connect_timeout: defaults.connect_timeout.min(self.office.pace.timeout),
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

    /// Delivers what there is.
    fn deliver_all(&self, receiver: &Receiver) -> Result<()> {
        let (log, space) = (
            &self.office.engine.kernel.log(),
            self.office.engine.kernel.omi().space(),
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
                if self.office.signal.is_stopped() {
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
            if self.office.signal.is_stopped() {
                return Ok(());
            }
            let rest = rows.iter().filter(|it| it.seq > at);
            let is_done = !rest.clone().any(|it| receiver.wants(&it.kind));
            if !(is_done && self.skip(at, last)?) {
                return Ok(());
            }
        }
    }

    /// The event as the contract has it, and the id by which a receiver knows it again.
    fn body(&self, row: &EventRow) -> Result<Vec<u8>> {
        let engine = &self.office.engine;
        let known = engine
            .kernel
            .log()
            .read(engine.kernel.omi().space(), |tx| bus::event(tx, row))?;
        let mut json = known.map_or_else(|| other_event(row), |it| it.json);
        json["event_id"] = row.id.to_string().into();
        Ok(json.to_string().into_bytes())
    }

    /// Sends an event until it is received or given up. An error is one of the configuration: the event
    /// waits until it is repaired.
    fn send(&self, receiver: &Receiver, row: &EventRow, at: u64) -> Result<Outcome> {
        let (signal, pace) = (&self.office.signal, self.office.pace);
        let body = self.body(row)?;
        for n in 0..=RETRIES_MAX {
            if n > 0 {
                signal.pause(back_off(pace.first_pause, Duration::MAX, n));
                // The pauses together may be longer than what is left of the lease.
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

    /// Where it is kept how far this hook is, and who works for it.
    fn kernel(&self) -> (&Log, &Space) {
        let kernel = &self.office.engine.kernel;
        (kernel.log(), kernel.omi().space())
    }

    /// Up to which event everything is settled.
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

    /// Takes or prolongs the lease. False when somebody else has it, or was here meanwhile.
    fn take_lease(&self, at: u64) -> Result<bool> {
        let (log, space) = self.kernel();
        let (name, lease, now_ms) = (self.name.clone(), self.lease(), log.clock().now_ms());
        log.write(space, move |tx| {
            let is_there = CURSORS.get(&**tx, &name)? == Some(at);
            Ok(is_there && LEASES.take(tx, &name, &lease, now_ms)?)
        })
    }

    /// The lease that is taken now: no attempt outlasts it.
    fn lease(&self) -> Lease {
        let now_ms = self.kernel().0.clock().now_ms();
        Lease::of(&self.holder, now_ms, self.office.pace.timeout + LEASE_SLACK)
    }

    /// Moves the cursor and prolongs the lease, if that is still ours.
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

    /// Moves the cursor past events that nobody wants. False when somebody else moved it meanwhile.
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

/// An event that the contract does not know.
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
