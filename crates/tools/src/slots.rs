//! Who may work now, and who waits in line.
//!
//! Calls block, so each takes a thread. All doors share these slots, and there are fewer of them than threads:
//! what must always answer (who is calling, whether all is well) needs no slot and finds a thread. One principal
//! has at most half of the slots. While others call too, it computes on no more processors than there are, so
//! that who asks little is not slower for who asks much; calls that mostly wait for a program or the network
//! are counted apart. Who leaves gives its slot to the principal that works least.
//!
//! A line is bounded as well, and so are all lines together: beyond that a call is refused at once, as
//! `limited`. It is the last of the longest line that has to leave, whoever came last.

use kenning_core::{Error, Result};
use kenning_engine::Principal;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Calls of all principals at once.
pub const CALLS_MAX: usize = 64;
/// Calls of one principal at once.
pub const CALLS_OF_ONE_MAX: usize = 32;
/// Calls of one principal that wait in line.
pub const WAITING_OF_ONE_MAX: usize = 512;
/// Calls of all principals that wait in line. Each may hold a connection, and of these must be left over for
/// what needs no slot.
pub const WAITING_MAX: usize = 640;
/// Streams at once: whoever follows the log, or listens for changes, holds a connection for as long as it likes.
pub const STREAMS_MAX: usize = 64;
/// Those of one principal.
pub const STREAMS_OF_ONE_MAX: usize = 32;
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
}

#[derive(Default)]
struct State {
    accounts: HashMap<Key, Account>,
    n_running: usize,
    n_waiting: usize,
}

/// One principal: space, name, and the token if it has one.
type Key = (String, String, Option<String>);

#[derive(Default)]
struct Account {
    /// Calls that compute.
    n_working: usize,
    /// All calls that have a slot.
    n_running: usize,
    line: VecDeque<(Load, Admitted)>,
    last: Option<Instant>,
}

impl Account {
    fn is_calling(&self, now: Instant) -> bool {
        let was = |it: Instant| now.saturating_duration_since(it) < RECENT;
        self.n_running > 0 || !self.line.is_empty() || self.last.is_some_and(was)
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

/// A place among those who work, free again when it is dropped.
pub struct Slot {
    slots: Arc<Slots>,
    key: Key,
    load: Load,
}

impl Default for Slots {
    fn default() -> Self {
        let processors = std::thread::available_parallelism();
        Self::with_processors(processors.map_or(2, std::num::NonZero::get))
    }
}

impl Slots {
    /// The same for a machine with so many processors.
    pub fn with_processors(n: usize) -> Self {
        Self {
            state: Mutex::default(),
            n_processors: n.max(2),
            waiting_max: AtomicUsize::new(WAITING_MAX),
            streams: Mutex::default(),
        }
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
        if account.line.len() >= WAITING_OF_ONE_MAX {
            return Err(Error::limited(format!(
                "{CALLS_OF_ONE_MAX} calls of this caller are being answered and {WAITING_OF_ONE_MAX} wait"
            ))
            .hint("wait for answers before you call again"));
        }
        account.line.push_back((load, admitted));
        account.last = Some(now);
        state.n_waiting += 1;
        let granted = self.grant(&mut state, now);
        let is_over = state.n_waiting > self.waiting_max.load(Ordering::Relaxed);
        let left = is_over.then(|| state.shorten(&key)).flatten();
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
        let n_calling = state.accounts.values().filter(|it| it.is_calling(now));
        let is_shared = n_calling.count() > 1;
        let mut granted = Vec::new();
        while state.n_running < CALLS_MAX {
            let next = |account: &Account| {
                if account.n_running >= CALLS_OF_ONE_MAX {
                    return None;
                }
                let may_work = !is_shared || account.n_working < self.n_processors;
                let fits = |it: &(Load, Admitted)| it.0 == Load::Waits || may_work;
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
            account.n_working += usize::from(load == Load::Works);
            granted.push((key.clone(), load, admitted));
            state.n_running += 1;
            state.n_waiting -= 1;
        }
        granted
    }

    /// Outside the lock: who does not want the slot any more drops it, and that gives it to the next.
    fn let_in(self: &Arc<Self>, granted: Vec<(Key, Load, Admitted)>) {
        for (key, load, admitted) in granted {
            let slots = Arc::clone(self);
            admitted(Slot { slots, key, load });
        }
    }
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

    fn forget_resting(&mut self, now: Instant) {
        if self.accounts.len() >= ACCOUNTS_MAX {
            self.accounts.retain(|_, it| it.is_calling(now));
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let now = Instant::now();
        let mut state = self.slots.lock();
        state.n_running = state.n_running.saturating_sub(1);
        if let Some(account) = state.accounts.get_mut(&self.key) {
            account.n_running = account.n_running.saturating_sub(1);
            let worked = usize::from(self.load == Load::Works);
            account.n_working = account.n_working.saturating_sub(worked);
            account.last = Some(now);
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
        let working = let_in(&slots, "a", Load::Works, CALLS_OF_ONE_MAX);
        assert_eq!(
            working.len(),
            CALLS_OF_ONE_MAX,
            "alone it may have them all"
        );
        let waiting: Vec<_> = (0..WAITING_OF_ONE_MAX)
            .map(|_| enter(&slots, "a", Load::Works).unwrap())
            .collect();
        let refused = enter(&slots, "a", Load::Works).map(drop).unwrap_err();
        assert_eq!(refused.code, kenning_core::Code::Limited);
        assert!(waiting.iter().all(|it| it.try_recv().is_err()));
        let other = enter(&slots, "b", Load::Works).unwrap();
        assert!(other.try_recv().is_ok(), "another is let in at once");
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
