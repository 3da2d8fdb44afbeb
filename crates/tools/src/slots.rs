//! Which calls run now, and which wait in line.
//!
//! Calls block, so each takes a thread. All doors share these slots, and there are fewer of them than threads:
//! what must always answer (who is calling, whether all is well) needs no slot and finds a thread. One principal
//! has at most half of the slots.
//!
//! A slot is a thread, not a processor. Only so many calls compute at once ([`Slots::with_processors`]):
//! more would slow each other down, and with them the threads that accept, authenticate and refuse. A call that
//! waits for the disk, a database or the network does not compute meanwhile ([`kenning_core::idle`]), and the
//! next one in line begins. When it goes on, it does so at once, whoever computes: it may hold locks that
//! others wait for. While others call too, a principal computes on no more processors than there are; and a
//! principal that computes nothing is never kept waiting by those that do. A free slot goes to the principal
//! that has the fewest.
//!
//! A line is bounded as well (`backlog`), and so are all lines together: beyond that a call is refused at
//! once, as `limited`. It is the last of the longest line that has to leave, whoever came last. Bodies of requests are
//! bounded in bytes ([`bodies`]).

mod backlog;
pub mod bodies;

use backlog::Backlog;
use bodies::Bodies;
use kenning_core::{Error, Result, idle};
use kenning_engine::Principal;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Calls that have a slot, of all principals.
pub const CALLS_MAX: usize = 64;
/// Those of one principal.
pub const CALLS_OF_ONE_MAX: usize = 32;
/// Calls of one principal that wait in line, at most.
pub const WAITING_OF_ONE_MAX: usize = 512;
/// Calls of all principals that wait in line. Each may hold a connection, and of these must be left over for
/// what needs no slot.
pub const WAITING_MAX: usize = 640;
/// Streams at once: whoever follows the log, or listens for changes, holds a connection for as long as it likes.
pub const STREAMS_MAX: usize = 64;
/// Those of one principal.
pub const STREAMS_OF_ONE_MAX: usize = 32;
/// Calls that compute at once for each processor.
const COMPUTING_FOR_EACH_PROCESSOR: usize = 2;
/// So long after its last call a principal still counts as one who calls.
const RECENT: Duration = Duration::from_secs(2);
/// Principals that are remembered after they have called.
const ACCOUNTS_MAX: usize = 1_000;

/// Tools whose calls mostly wait: for a program, or for a server somewhere else.
const WAITING_TOOLS: &[&str] = &[
    "execute",
    "github_scan",
    "ingest_url",
    "monitor_url",
    "preview_url",
    "process_url",
];

/// What a call mostly does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// It computes, or reads and writes the store.
    Works,
    /// It waits for a program, or for a server somewhere else.
    Waits,
}

impl Load {
    /// Of a call of the tool of this name.
    pub fn of_tool(name: &str) -> Self {
        if WAITING_TOOLS.contains(&name) {
            Self::Waits
        } else {
            Self::Works
        }
    }
}

/// Called with the slot as soon as there is one.
pub type Admitted = Box<dyn FnOnce(Slot) + Send>;

/// The slots of a process.
pub struct Slots {
    state: Mutex<State>,
    n_processors: usize,
    waiting_max: AtomicUsize,
    streams: Mutex<HashMap<Key, usize>>,
    bodies: Bodies,
}

#[derive(Default)]
struct State {
    accounts: HashMap<Key, Account>,
    n_running: usize,
    n_computing: usize,
    n_waiting: usize,
    n_refused: u64,
}

/// What there is at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls that have a slot.
    pub running: usize,
    /// Those of them that compute.
    pub computing: usize,
    /// Calls in line.
    pub waiting: usize,
    /// Calls that were refused since the start, because too many waited.
    pub refused: u64,
    /// Streams that are open.
    pub streams: usize,
    /// Bytes of request bodies that are held, as far as they are counted.
    pub body_bytes: usize,
    /// Requests that were refused since the start, because too many bytes were held.
    pub bodies_refused: u64,
}

impl Counts {
    /// The text that Prometheus reads.
    pub fn to_text(self) -> String {
        let of = |name: &str, kind: &str, help: &str, value: u64| {
            format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n")
        };
        let gauge = |name: &str, help: &str, value: usize| of(name, "gauge", help, value as u64);
        [
            gauge(
                "kenning_calls_running",
                "Calls that have a thread.",
                self.running,
            ),
            gauge(
                "kenning_calls_computing",
                "Running calls that compute.",
                self.computing,
            ),
            gauge("kenning_calls_waiting", "Calls in line.", self.waiting),
            gauge(
                "kenning_streams_open",
                "Streams that are open.",
                self.streams,
            ),
            gauge(
                "kenning_body_bytes",
                "Bytes of large request bodies that are held.",
                self.body_bytes,
            ),
            of(
                "kenning_calls_limited_total",
                "counter",
                "Calls that were refused because too many waited.",
                self.refused,
            ),
            of(
                "kenning_bodies_limited_total",
                "counter",
                "Requests that were refused because too many bytes were held.",
                self.bodies_refused,
            ),
        ]
        .concat()
    }
}

/// One principal: space, name, and the token if it has one.
type Key = (String, String, Option<String>);

#[derive(Default)]
struct Account {
    /// Calls that compute now.
    n_computing: usize,
    /// All calls that have a slot.
    n_running: usize,
    line: VecDeque<(Load, Admitted)>,
    /// Calls that will be in line once their caller's token was looked up.
    n_expected: usize,
    /// While somebody is in line.
    backlog: Option<Backlog>,
    last: Option<Instant>,
}

impl Account {
    /// Whether one more finds no room in line, behind those who are in it and so many others.
    fn is_full_behind(&self, n_others: usize, now: Instant) -> bool {
        let backlog = self.backlog.as_ref();
        let line_max = backlog.map_or(WAITING_OF_ONE_MAX, |it| it.line_max(now));
        self.line.len() + n_others >= line_max
    }

    fn is_full(&self, now: Instant) -> bool {
        self.is_full_behind(0, now)
    }

    /// Notes whether somebody is in line.
    fn note_line(&mut self, now: Instant) {
        match (self.line.is_empty(), &self.backlog) {
            (true, _) => self.backlog = None,
            (false, None) => self.backlog = Some(Backlog::new(now)),
            (false, Some(_)) => {}
        }
    }

    fn is_calling(&self, now: Instant) -> bool {
        let was = |it: Instant| now.saturating_duration_since(it) < RECENT;
        let is_here = self.n_running > 0 || self.n_expected > 0 || !self.line.is_empty();
        is_here || self.last.is_some_and(was)
    }
}

fn key_of(who: &Principal) -> Key {
    (who.space.to_string(), who.name.clone(), who.token.clone())
}

/// A place among those who listen, free again when it is dropped.
pub struct Stream {
    slots: Arc<Slots>,
    key: Key,
}

impl Drop for Stream {
    fn drop(&mut self) {
        let streams = self.slots.streams.lock();
        let mut streams = streams.unwrap_or_else(PoisonError::into_inner);
        if let Some(n) = streams.get_mut(&self.key) {
            *n -= 1;
            if *n == 0 {
                streams.remove(&self.key);
            }
        }
    }
}

/// A call that is expected in line while its caller's token is looked up, until it is dropped.
pub struct Expected {
    slots: Arc<Slots>,
    key: Key,
}

impl Drop for Expected {
    fn drop(&mut self) {
        if let Some(account) = self.slots.lock().accounts.get_mut(&self.key) {
            account.n_expected = account.n_expected.saturating_sub(1);
        }
    }
}

/// A place among the calls that run, free again when it is dropped.
pub struct Slot(Arc<Held>);

struct Held {
    slots: Arc<Slots>,
    key: Key,
    load: Load,
}

impl Slot {
    /// Runs a call on this thread and gives the slot back. While the call waits, another one may compute.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        match self.0.load {
            Load::Works => idle::watched(Arc::clone(&self.0) as Arc<dyn idle::Watch>, work),
            Load::Waits => work(),
        }
    }
}

impl idle::Watch for Held {
    fn rest(&self) {
        let mut state = self.slots.lock();
        state.compute_less(&self.key);
        let granted = self.slots.grant(&mut state, Instant::now());
        drop(state);
        self.slots.let_in(granted);
    }

    fn resume(&self) {
        self.slots.lock().compute_more(&self.key);
    }
}

impl Default for Slots {
    fn default() -> Self {
        let processors = std::thread::available_parallelism();
        Self::with_processors(processors.map_or(2, std::num::NonZero::get))
    }
}

impl Slots {
    /// The same for a machine with so many processors: twice as many calls compute at once.
    pub fn with_processors(n: usize) -> Self {
        Self {
            state: Mutex::default(),
            n_processors: n.max(2),
            waiting_max: AtomicUsize::new(WAITING_MAX),
            streams: Mutex::default(),
            bodies: Bodies::default(),
        }
    }

    /// The bytes of request bodies.
    pub fn bodies(&self) -> &Bodies {
        &self.bodies
    }

    /// What there is now.
    pub fn counts(&self) -> Counts {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let streams = streams.values().sum();
        let (body_bytes, bodies_refused) = self.bodies.counts();
        let state = self.lock();
        Counts {
            running: state.n_running,
            computing: state.n_computing,
            waiting: state.n_waiting,
            refused: state.n_refused,
            streams,
            body_bytes,
            bodies_refused,
        }
    }

    /// Whether a call of this principal would find its line full. Asked before a body is read that would
    /// only be thrown away.
    ///
    /// # Errors
    /// `limited` if so.
    pub fn check_room(&self, who: &Principal) -> Result<()> {
        let mut state = self.lock();
        let now = Instant::now();
        let account = state.accounts.get(&key_of(who));
        let Some(account) = account.filter(|it| it.is_full(now)) else {
            return Ok(());
        };
        let error = line_full(account);
        state.n_refused += 1;
        Err(error)
    }

    /// Announces a call of a principal that is still to be looked up. Of many that come at once, those that will
    /// find the line full are told so now, and not when all have been looked up.
    ///
    /// # Errors
    /// `limited` when those in line and those that are expected there are too many.
    pub fn expect(self: &Arc<Self>, who: &Principal) -> Result<Expected> {
        let key = key_of(who);
        let now = Instant::now();
        let mut state = self.lock();
        state.forget_resting(now);
        let account = state.accounts.entry(key.clone()).or_default();
        if account.is_full_behind(account.n_expected, now) {
            let error = line_full(account);
            state.n_refused += 1;
            return Err(error);
        }
        account.n_expected += 1;
        let slots = Arc::clone(self);
        Ok(Expected { slots, key })
    }

    /// A place for an answer that goes on for as long as its client listens.
    ///
    /// # Errors
    /// `limited` when there are too many, of this principal or of all.
    pub fn stream(self: &Arc<Self>, who: &Principal) -> Result<Stream> {
        let key = key_of(who);
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if streams.values().sum::<usize>() >= STREAMS_MAX {
            let why = format!("{STREAMS_MAX} followers are connected already");
            return Err(Error::limited(why));
        }
        let n = streams.entry(key.clone()).or_default();
        if *n >= STREAMS_OF_ONE_MAX {
            let why =
                format!("{STREAMS_OF_ONE_MAX} followers of this caller are connected already");
            return Err(Error::limited(why).hint("close one of them first"));
        }
        *n += 1;
        let slots = Arc::clone(self);
        Ok(Stream { slots, key })
    }

    /// Lets fewer calls wait than [`WAITING_MAX`], where there is no room for so many.
    pub fn lower_waiting_max(&self, n: usize) {
        self.waiting_max.fetch_min(n.max(1), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls that have a slot.
    pub fn n_running(&self) -> usize {
        self.lock().n_running
    }

    /// Gets in line, or is let in at once.
    ///
    /// # Errors
    /// `limited` when too many calls of this principal are in line already. Who is sent away later is not called,
    /// but dropped; [`sent_away`] is what to tell then.
    pub fn enter(self: &Arc<Self>, who: &Principal, load: Load, admitted: Admitted) -> Result<()> {
        let key = key_of(who);
        let now = Instant::now();
        let mut state = self.lock();
        state.forget_resting(now);
        let account = state.accounts.entry(key.clone()).or_default();
        if account.is_full(now) {
            let error = line_full(account);
            state.n_refused += 1;
            return Err(error);
        }
        account.line.push_back((load, admitted));
        account.note_line(now);
        account.last = Some(now);
        state.n_waiting += 1;
        let granted = self.grant(&mut state, now);
        let is_over = state.n_waiting > self.waiting_max.load(Ordering::Relaxed);
        let left = is_over.then(|| state.shorten(&key)).flatten();
        state.n_refused += u64::from(left.is_some());
        drop(state);
        self.let_in(granted);
        match left {
            Some((whose, _)) if whose == key => Err(sent_away()),
            // Dropped outside the lock, as it tells its caller.
            _ => Ok(()),
        }
    }

    /// Gives slots to whom it is due.
    fn grant(&self, state: &mut State, now: Instant) -> Vec<(Key, Load, Admitted)> {
        let mut granted = Vec::new();
        if state.n_waiting == 0 {
            return granted;
        }
        let n_calling = state.accounts.values().filter(|it| it.is_calling(now));
        let computing_max = COMPUTING_FOR_EACH_PROCESSOR * self.n_processors;
        let computing_of_one_max = match n_calling.count() > 1 {
            true => self.n_processors,
            false => computing_max,
        };
        while state.n_running < CALLS_MAX {
            let is_room = state.n_computing < computing_max;
            let next = |account: &Account| {
                if account.n_running >= CALLS_OF_ONE_MAX {
                    return None;
                }
                let may_compute = account.n_computing == 0
                    || is_room && account.n_computing < computing_of_one_max;
                let fits = |it: &(Load, Admitted)| it.0 == Load::Waits || may_compute;
                account.line.iter().position(fits)
            };
            let due = state.accounts.iter_mut();
            let due = due.filter_map(|(key, it)| Some((next(it)?, key, it)));
            let Some((at, key, account)) = due.min_by_key(|it| it.2.n_running) else {
                break;
            };
            let Some((load, admitted)) = account.line.remove(at) else {
                break;
            };
            account.n_running += 1;
            account.note_line(now);
            let key = key.clone();
            if load == Load::Works {
                state.compute_more(&key);
            }
            granted.push((key, load, admitted));
            state.n_running += 1;
            state.n_waiting -= 1;
        }
        granted
    }

    /// Outside the lock: who does not want the slot any more drops it, and that gives it to the next.
    fn let_in(self: &Arc<Self>, granted: Vec<(Key, Load, Admitted)>) {
        for (key, load, admitted) in granted {
            let slots = Arc::clone(self);
            admitted(Slot(Arc::new(Held { slots, key, load })));
        }
    }
}

/// What a call is told whose line is full.
fn line_full(account: &Account) -> Error {
    let n_running = account.n_running;
    let n_waiting = account.line.len() + account.n_expected;
    Error::limited(format!(
        "{n_running} calls of this caller are being answered and {n_waiting} wait"
    ))
    .hint("wait for answers before you call again")
}

/// What a call is told that had to leave the line.
pub fn sent_away() -> Error {
    Error::limited("more calls wait than can be answered").hint("call again in a moment")
}

impl State {
    /// Sends the last of the longest line away; of equal ones that of who came last.
    fn shorten(&mut self, newest: &Key) -> Option<(Key, Admitted)> {
        let longest = self.accounts.iter_mut();
        let (key, account) = longest.max_by_key(|(key, it)| (it.line.len(), *key == newest))?;
        let (_, admitted) = account.line.pop_back()?;
        self.n_waiting -= 1;
        Some((key.clone(), admitted))
    }

    fn compute_more(&mut self, key: &Key) {
        self.n_computing += 1;
        if let Some(account) = self.accounts.get_mut(key) {
            account.n_computing += 1;
        }
    }

    fn compute_less(&mut self, key: &Key) {
        self.n_computing = self.n_computing.saturating_sub(1);
        if let Some(account) = self.accounts.get_mut(key) {
            account.n_computing = account.n_computing.saturating_sub(1);
        }
    }

    fn forget_resting(&mut self, now: Instant) {
        if self.accounts.len() >= ACCOUNTS_MAX {
            self.accounts.retain(|_, it| it.is_calling(now));
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let now = Instant::now();
        let mut state = self.slots.lock();
        state.n_running = state.n_running.saturating_sub(1);
        if self.load == Load::Works {
            state.compute_less(&self.key);
        }
        if let Some(account) = state.accounts.get_mut(&self.key) {
            account.n_running = account.n_running.saturating_sub(1);
            account.last = Some(now);
            if let Some(backlog) = &mut account.backlog {
                backlog.count(now);
            }
        }
        let granted = self.slots.grant(&mut state, now);
        drop(state);
        self.slots.let_in(granted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_core::Space;
    use std::sync::mpsc::{Receiver, TryRecvError, channel};

    fn who(name: &str) -> Principal {
        Principal {
            name: name.to_owned(),
            ..Principal::owner(Space::default())
        }
    }

    fn enter(slots: &Arc<Slots>, name: &str, load: Load) -> Result<Receiver<Slot>> {
        let (tell, told) = channel();
        let admitted = move |slot| {
            // Who no longer listens gets the slot back, and drops it.
            let _ = tell.send(slot);
        };
        slots.enter(&who(name), load, Box::new(admitted))?;
        Ok(told)
    }

    /// Those of `n` calls that are let in at once.
    fn let_in(slots: &Arc<Slots>, name: &str, load: Load, n: usize) -> Vec<Slot> {
        let asked: Vec<_> = (0..n).map(|_| enter(slots, name, load).unwrap()).collect();
        asked.iter().filter_map(|it| it.try_recv().ok()).collect()
    }

    #[test]
    fn one_principal_has_half_of_the_slots_and_a_bounded_line() {
        let slots = Arc::new(Slots::with_processors(2));
        let working = let_in(&slots, "a", Load::Waits, CALLS_OF_ONE_MAX);
        assert_eq!(working.len(), CALLS_OF_ONE_MAX);
        let mut waiting = Vec::new();
        for _ in 0..WAITING_OF_ONE_MAX {
            assert!(slots.check_room(&who("a")).is_ok());
            waiting.push(enter(&slots, "a", Load::Works).unwrap());
        }
        let refused = enter(&slots, "a", Load::Works).map(drop).unwrap_err();
        assert_eq!(refused.code, kenning_core::Code::Limited);
        let early = slots.check_room(&who("a")).unwrap_err();
        assert_eq!(early.message, refused.message);
        assert_eq!(slots.counts().refused, 2);
        assert!(waiting.iter().all(|it| it.try_recv().is_err()));
        let other = enter(&slots, "b", Load::Works).unwrap();
        assert!(other.try_recv().is_ok(), "another is let in at once");
    }

    #[test]
    fn who_is_expected_counts_as_in_line_and_takes_nobodys_place() {
        let slots = Arc::new(Slots::with_processors(2));
        let _working = let_in(&slots, "a", Load::Waits, CALLS_OF_ONE_MAX);
        let expect = |name: &str| slots.expect(&who(name));
        let mut expected: Vec<_> = (0..WAITING_OF_ONE_MAX)
            .map(|_| expect("a").unwrap())
            .collect();
        let refused = expect("a").map(drop).unwrap_err();
        assert_eq!(refused.code, kenning_core::Code::Limited);
        assert!(expect("b").is_ok());
        // Those that were expected come: each finds the place that was kept for it.
        let mut waiting = Vec::new();
        while let Some(one) = expected.pop() {
            assert!(slots.check_room(&who("a")).is_ok());
            drop(one);
            waiting.push(enter(&slots, "a", Load::Works).unwrap());
            assert!(expect("a").is_err());
        }
        assert!(enter(&slots, "a", Load::Works).is_err());
        assert_eq!(waiting.len(), WAITING_OF_ONE_MAX);
    }

    #[test]
    fn who_shares_computes_on_no_more_than_the_processors() {
        let slots = Arc::new(Slots::with_processors(3));
        let other = let_in(&slots, "b", Load::Works, 1);
        let working = let_in(&slots, "a", Load::Works, 10);
        assert_eq!(working.len(), 3);
        let waits = let_in(&slots, "a", Load::Waits, 40);
        assert_eq!(waits.len(), CALLS_OF_ONE_MAX - 3, "what waits is apart");
        drop((other, working, waits));
        assert_eq!(slots.n_running(), 0);
    }

    #[test]
    fn only_so_many_compute_and_a_call_that_waits_lets_another_begin() {
        let slots = Arc::new(Slots::with_processors(2));
        let asked: Vec<_> = (0..10)
            .map(|_| enter(&slots, "a", Load::Works).unwrap())
            .collect();
        let mut began = Vec::new();
        let begin = |began: &mut Vec<Slot>| {
            began.extend(asked.iter().filter_map(|it| it.try_recv().ok()));
            began.len()
        };
        assert_eq!(begin(&mut began), 4, "twice the processors");
        let first = began.remove(0);
        first.run(|| {
            idle::waiting(|| {
                assert_eq!(slots.counts().computing, 4, "another took its turn");
                assert_eq!(begin(&mut began), 4);
            });
            // It goes on although all processors are taken: others may wait for what it holds.
            assert_eq!(slots.counts().computing, 5);
            assert_eq!(begin(&mut began), 4);
        });
        assert_eq!(slots.counts().computing, 4);
        assert_eq!(begin(&mut began), 4, "one too many has left");
        let other = enter(&slots, "b", Load::Works).unwrap();
        assert!(other.try_recv().is_ok(), "who computes nothing is let in");
        drop((began, asked));
        assert_eq!((slots.counts().computing, slots.n_running()), (0, 0));
    }

    #[test]
    fn a_slot_goes_to_who_works_least_and_past_those_who_left() {
        let slots = Arc::new(Slots::with_processors(100));
        let mut held: Vec<Slot> = Vec::new();
        for name in ["a", "b"] {
            held.extend(let_in(&slots, name, Load::Works, CALLS_OF_ONE_MAX));
        }
        assert_eq!(slots.n_running(), CALLS_MAX);
        drop(enter(&slots, "a", Load::Works));
        drop(enter(&slots, "c", Load::Works));
        let second = enter(&slots, "c", Load::Works).unwrap();
        let first = enter(&slots, "a", Load::Works).unwrap();
        assert!(second.try_recv().is_err());
        held.pop();
        let slot = second.try_recv().unwrap();
        assert!(first.try_recv().is_err(), "has 32 already");
        drop(held);
        assert!(first.try_recv().is_ok());
        drop(slot);
        assert_eq!(slots.n_running(), 0);
    }

    #[test]
    fn all_lines_together_are_bounded_and_the_longest_is_shortened() {
        let slots = Arc::new(Slots::with_processors(2));
        slots.lower_waiting_max(20);
        let held: Vec<Slot> = ["a", "b"]
            .iter()
            .flat_map(|name| let_in(&slots, name, Load::Waits, CALLS_OF_ONE_MAX))
            .collect();
        assert_eq!(held.len(), CALLS_MAX);
        let many: Vec<_> = (0..20)
            .map(|_| enter(&slots, "a", Load::Waits).unwrap())
            .collect();
        let refused = enter(&slots, "a", Load::Waits).map(drop).unwrap_err();
        assert_eq!(refused.code, kenning_core::Code::Limited);
        let few: Vec<_> = (0..10)
            .map(|_| enter(&slots, "c", Load::Waits).unwrap())
            .collect();
        let is_in_line = |it: &Receiver<Slot>| matches!(it.try_recv(), Err(TryRecvError::Empty));
        assert_eq!(many.iter().filter(|it| is_in_line(it)).count(), 10);
        assert!(many[..10].iter().all(is_in_line), "the last ones left");
        assert!(few.iter().all(is_in_line));
        assert!(enter(&slots, "c", Load::Waits).is_err(), "as many as a has");
        drop(held);
        assert!(few.iter().all(|it| it.try_recv().is_ok()));
    }

    #[test]
    fn one_principal_has_half_of_the_streams() {
        let slots = Arc::new(Slots::with_processors(2));
        let many = |name: &str| -> Vec<Stream> {
            (0..STREAMS_MAX)
                .map_while(|_| slots.stream(&who(name)).ok())
                .collect()
        };
        let a = many("a");
        assert_eq!(a.len(), STREAMS_OF_ONE_MAX);
        assert_eq!(many("b").len(), STREAMS_OF_ONE_MAX);
        let b = many("b");
        assert!(slots.stream(&who("c")).is_err(), "all are taken");
        drop((a, b));
        assert_eq!(many("c").len(), STREAMS_OF_ONE_MAX);
    }
}
