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
use kenning_core::{Code, Error, Hash, Result};
use kenning_egress::{Egress, Grant, Limits, Method, Policy, Request};
use kenning_kernel::later::contained;
use kenning_kernel::timestamp;
use kenning_memory::config::Webhook;
use kenning_store::EventRow;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How far each hook is.
const CURSORS: &str = "webhook.cursor";

/// Who works for a hook, and until when.
const LEASES: &str = "webhook.lease";

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
pub struct Webhooks {
    signal: Arc<Signal>,
    supervisor: Option<JoinHandle<()>>,
}

impl Webhooks {
    /// Starts couriers for every hook of `config.yaml`, also for those that are added later.
    pub fn start(engine: &Arc<Omi>, pace: Pace) -> Self {
        let signal = Arc::new(Signal::default());
        if engine.kernel.is_read_only() {
            // A cursor could not be moved, so everything would be sent again by the next process.
            return Self {
                signal,
                supervisor: None,
            };
        }
        let woken = Arc::downgrade(&signal);
        let look = engine.kernel.on_append(Arc::new(move || {
            if let Some(signal) = Weak::upgrade(&woken) {
                signal.appended();
            }
        }));
        let office = Office {
            engine: Arc::clone(engine),
            signal: Arc::clone(&signal),
            pace,
            look,
        };
        let supervisor = std::thread::spawn(move || office.supervise());
        Self {
            signal,
            supervisor: Some(supervisor),
        }
    }

    /// Stops after the attempts that are under way, and waits for them no longer than this.
    pub fn stop(mut self, patience: Duration) {
        self.signal.stop();
        let until = Instant::now() + patience;
        let Some(supervisor) = self.supervisor.take() else {
            return;
        };
        while !supervisor.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        if supervisor.is_finished() {
            // A courier that panicked has said so itself.
            drop(supervisor.join());
        }
    }
}

impl Drop for Webhooks {
    fn drop(&mut self) {
        self.signal.stop();
    }
}

/// Wakes couriers.
#[derive(Default)]
struct Signal {
    state: Mutex<SignalState>,
    changed: Condvar,
}

#[derive(Default)]
struct SignalState {
    n_appends: u64,
    is_stopped: bool,
}

impl Signal {
    fn lock(&self) -> MutexGuard<'_, SignalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn appended(&self) {
        self.lock().n_appends += 1;
        self.changed.notify_all();
    }

    fn stop(&self) {
        self.lock().is_stopped = true;
        self.changed.notify_all();
    }

    fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    fn n_appends(&self) -> u64 {
        self.lock().n_appends
    }

    /// Until this much time has passed, or somebody says stop.
    fn pause(&self, time: Duration) {
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), time, |it| !it.is_stopped);
        drop(waited);
    }

    /// Until there is an append that was not seen; until this much time has passed, or the stop.
    fn wait_for_append(&self, n_seen: u64, time: Duration) {
        let waited = self.changed.wait_timeout_while(self.lock(), time, |it| {
            !it.is_stopped && it.n_appends == n_seen
        });
        drop(waited);
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
        let mut fault = Fault::default();
        while !self.signal.is_stopped() {
            match contained(|| self.hooks()) {
                Ok(hooks) => {
                    fault.is_gone();
                    for name in hooks.into_keys() {
                        if couriers.get(&name).is_none_or(JoinHandle::is_finished) {
                            let courier = Courier::new(self.clone(), name.clone());
                            couriers.insert(name, std::thread::spawn(move || courier.run()));
                        }
                    }
                }
                Err(error) => fault.say("webhooks", &error),
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

/// Says what is wrong once, not every time.
#[derive(Default)]
struct Fault(String);

impl Fault {
    fn say(&mut self, who: &str, error: &Error) {
        if self.0 != error.message {
            self.0.clone_from(&error.message);
            tracing::warn!("{who}: {error}");
        }
    }

    fn is_gone(&mut self) {
        self.0.clear();
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
        let mut bytes = [0; 16];
        office.engine.kernel.log().random().fill(&mut bytes);
        Self {
            office,
            name,
            holder: Hash::of(&bytes).to_string(),
        }
    }

    /// Until the process ends or the hook is no longer in the file.
    fn run(&self) {
        let signal = &self.office.signal;
        let mut fault = Fault::default();
        while !signal.is_stopped() {
            let n_seen = signal.n_appends();
            let worked = match self.office.hooks() {
                Ok(mut hooks) => match hooks.remove(&self.name) {
                    Some(hook) => self.receiver(&hook).and_then(|it| self.deliver_all(&it)),
                    None => return,
                },
                Err(error) => Err(error),
            };
            match worked {
                Ok(()) => {
                    fault.is_gone();
                    signal.wait_for_append(n_seen, self.office.look.min(LOOK));
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
                signal.pause(pace.first_pause * 2_u32.pow(n - 1));
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

    /// Up to which event everything is settled.
    fn cursor(&self) -> Result<u64> {
        let (log, space) = (
            &self.office.engine.kernel.log(),
            self.office.engine.kernel.omi().space(),
        );
        let name = self.name.clone();
        if let Some(bytes) = log.read(space, |tx| tx.get(CURSORS, &name))? {
            return number(&bytes);
        }
        log.write(space, move |tx| {
            if let Some(bytes) = tx.get(CURSORS, &name)? {
                return number(&bytes);
            }
            let seq = tx.head()?.map_or(0, |it| it.seq);
            tx.set(CURSORS, &name, seq.to_string().as_bytes())?;
            Ok(seq)
        })
    }

    /// Takes or prolongs the lease. False when somebody else has it, or was here meanwhile.
    fn take_lease(&self, at: u64) -> Result<bool> {
        let (now_ms, until_ms) = self.lease_time();
        let (name, holder) = (self.name.clone(), self.holder.clone());
        let space = self.office.engine.kernel.omi().space();
        self.office.engine.kernel.log().write(space, move |tx| {
            let is_others = match tx.get(LEASES, &name)? {
                None => false,
                Some(bytes) => {
                    let (who, until_ms) = lease(&bytes)?;
                    who != holder && until_ms > now_ms
                }
            };
            if is_others || tx.get(CURSORS, &name)? != Some(at.to_string().into_bytes()) {
                return Ok(false);
            }
            tx.set(LEASES, &name, format!("{holder} {until_ms}").as_bytes())?;
            Ok(true)
        })
    }

    /// The present moment, and the end of a lease that is taken now: no attempt outlasts it.
    fn lease_time(&self) -> (u64, u64) {
        let lasts = self.office.pace.timeout + LEASE_SLACK;
        let lasts_ms = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX);
        let now_ms = self.office.engine.kernel.log().clock().now_ms();
        (now_ms, now_ms.saturating_add(lasts_ms))
    }

    /// Moves the cursor and prolongs the lease, if that is still ours.
    fn settle(&self, seq: u64) -> Result<bool> {
        let (_, until_ms) = self.lease_time();
        let (name, holder) = (self.name.clone(), self.holder.clone());
        let space = self.office.engine.kernel.omi().space();
        self.office.engine.kernel.log().write(space, move |tx| {
            let held = tx.get(LEASES, &name)?;
            let is_ours = match &held {
                None => false,
                Some(bytes) => lease(bytes)?.0 == holder,
            };
            if is_ours {
                tx.set(CURSORS, &name, seq.to_string().as_bytes())?;
                tx.set(LEASES, &name, format!("{holder} {until_ms}").as_bytes())?;
            }
            Ok(is_ours)
        })
    }

    fn release(&self) -> Result<()> {
        let (name, holder) = (self.name.clone(), self.holder.clone());
        let space = self.office.engine.kernel.omi().space();
        self.office
            .engine
            .kernel
            .log()
            .write(space, move |tx| match tx.get(LEASES, &name)? {
                Some(bytes) if lease(&bytes)?.0 == holder => tx.unset(LEASES, &name),
                _ => Ok(()),
            })
    }

    /// Moves the cursor past events that nobody wants. False when somebody else moved it meanwhile.
    fn skip(&self, from: u64, to: u64) -> Result<bool> {
        if from == to {
            return Ok(true);
        }
        let name = self.name.clone();
        let space = self.office.engine.kernel.omi().space();
        self.office.engine.kernel.log().write(space, move |tx| {
            let is_there = tx.get(CURSORS, &name)? == Some(from.to_string().into_bytes());
            if is_there {
                tx.set(CURSORS, &name, to.to_string().as_bytes())?;
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

fn number(bytes: &[u8]) -> Result<u64> {
    let text = std::str::from_utf8(bytes).ok();
    text.and_then(|it| it.parse().ok())
        .ok_or_else(|| Error::corrupt("the cursor of a webhook is not a number"))
}

fn lease(bytes: &[u8]) -> Result<(&str, u64)> {
    let read = || {
        let (who, until_ms) = std::str::from_utf8(bytes).ok()?.split_once(' ')?;
        Some((who, until_ms.parse().ok()?))
    };
    read().ok_or_else(|| Error::corrupt("the lease of a webhook is not of its form"))
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
