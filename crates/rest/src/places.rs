//! The places of a listener: which connections are open, and which one gives way to a new one.
//!
//! Whoever connects and sends nothing costs a client next to nothing and the server a place. So when all places
//! are taken, a connection that nothing is being done for is closed in favor of the new one:
//!
//! 1. one that has been waiting for a request for a while, or whose request was refused,
//! 2. one whose client has gone silent in the middle of a body, or leaves its answer unread,
//! 3. one that has only just begun to wait, or whose body is still on its way;
//!
//! among equals the one that has waited longest. An address with more than half of the places gives way before
//! all others; behind a proxy and on loopback everybody has one address, so this rule alone would not do.
//!
//! A request that has arrived and is being worked on, and an answer that is being read, are never cut off. There are fewer of
//! these than places, because the queue for calls is bounded ([`kenning_tools::slots`]).

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot};

/// A connection that has waited for less than this may have a request on its way.
const FRESH: Duration = Duration::from_secs(1);

/// The connection slots of one listener.
pub(crate) struct Places {
    n_max: usize,
    /// How long a client may be silent in the middle of a request or a response when slots are short.
    silence_max: Duration,
    state: Mutex<State>,
    /// Notified whenever a slot is free, or another connection may be closed.
    changed: Notify,
}

#[derive(Default)]
struct State {
    taken: HashMap<u64, Taken>,
    by_address: HashMap<IpAddr, usize>,
    /// Connections that are idle for the server.
    n_resting: usize,
    next: u64,
}

/// One connection.
struct Taken {
    address: IpAddr,
    phase: Phase,
    since: Instant,
    /// Whether the request was refused, so that no work is done for it.
    is_refused: bool,
    /// Since when the client has not read what is written to it.
    unread_since: Option<Instant>,
    /// Dropping it closes the connection.
    _open: oneshot::Sender<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// There is no complete request head.
    Waiting,
    /// The handler waits for more of the body.
    Receiving,
    /// The request is being handled.
    Working,
    /// The response is being written.
    Answering,
    /// The whole response was made, and is being sent.
    Sending,
}

/// The order in which connections are closed; the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Waiting,
    Silent,
    Fresh,
}

impl Taken {
    /// Whether the server has nothing to do for it.
    fn is_resting(&self) -> bool {
        matches!(self.phase, Phase::Waiting | Phase::Receiving) || self.is_refused
    }

    /// Whether it may be closed for another one, and since when it has been waiting.
    fn rank(&self, now: Instant, silence_max: Duration) -> Option<(Rank, Instant)> {
        let for_long = |since: Instant, time| now.saturating_duration_since(since) >= time;
        if self.is_resting() {
            let (rank, time) = match self.phase {
                Phase::Receiving => (Rank::Silent, silence_max),
                _ => (Rank::Waiting, FRESH),
            };
            let is_old = for_long(self.since, time);
            return Some((if is_old { rank } else { Rank::Fresh }, self.since));
        }
        let unread_since = self.unread_since;
        let unread_since = unread_since.filter(|it| for_long(*it, silence_max))?;
        Some((Rank::Silent, unread_since))
    }
}

/// The part of an address that identifies a client: for IPv6 the network.
fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(it) => IpAddr::V4(it),
        IpAddr::V6(it) => {
            let network = it.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
    }
}

impl Places {
    pub(crate) fn new(n_max: usize, silence_max: Duration) -> Arc<Self> {
        Arc::new(Self {
            n_max: n_max.max(1),
            silence_max,
            state: Mutex::default(),
            changed: Notify::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a connection can be accepted: a slot is free, or a connection can be closed.
    pub(crate) async fn available(&self) {
        loop {
            let changed = self.changed.notified();
            {
                let state = self.lock();
                let is_free = state.taken.len() < self.n_max || state.n_resting > 0;
                if is_free || self.who_gives_way(&state).is_some() {
                    return;
                }
            }
            // Silence causes no notification: check again after a while.
            drop(tokio::time::timeout(self.silence_max / 4, changed).await);
        }
    }

    /// Gives a new connection its slot: a handle that reports what the connection does, and the
    /// place_guard.
    pub(crate) fn take(self: &Arc<Self>, address: IpAddr) -> (Place, PlaceGuard) {
        let (open, closed) = oneshot::channel();
        let address = client_of(address);
        let mut state = self.lock();
        while state.taken.len() >= self.n_max {
            // None only if the candidate has just begun to work: then there is one too many for a
            // moment.
            let Some(id) = self.who_gives_way(&state) else {
                break;
            };
            state.remove(id);
        }
        let id = state.next;
        state.next += 1;
        let taken = Taken {
            address,
            phase: Phase::Waiting,
            since: Instant::now(),
            is_refused: false,
            unread_since: None,
            _open: open,
        };
        state.taken.insert(id, taken);
        state.n_resting += 1;
        *state.by_address.entry(address).or_default() += 1;
        let place = Place {
            places: Arc::clone(self),
            id,
        };
        let place_guard = PlaceGuard {
            place: place.clone(),
            closed,
        };
        (place, place_guard)
    }

    fn who_gives_way(&self, state: &State) -> Option<u64> {
        let now = Instant::now();
        let ranked = state.taken.iter().filter_map(|(id, taken)| {
            let (rank, since) = taken.rank(now, self.silence_max)?;
            let n_same = state.by_address.get(&taken.address).copied().unwrap_or(0);
            let is_within_share = n_same <= self.n_max / 2;
            Some(((is_within_share, rank, since, *id), *id))
        });
        ranked.min_by_key(|it| it.0).map(|it| it.1)
    }
}

impl State {
    fn remove(&mut self, id: u64) {
        let Some(taken) = self.taken.remove(&id) else {
            return;
        };
        self.n_resting -= usize::from(taken.is_resting());
        if let Some(n) = self.by_address.get_mut(&taken.address) {
            *n -= 1;
            if *n == 0 {
                self.by_address.remove(&taken.address);
            }
        }
    }
}

/// Held by the task of the connection; the slot is free again when it is dropped.
pub(crate) struct PlaceGuard {
    place: Place,
    closed: oneshot::Receiver<()>,
}

impl PlaceGuard {
    /// Done when the slot was given to another connection.
    pub(crate) async fn given_away(&mut self) {
        // Nothing is ever sent: the other end is dropped with the entry.
        let _ = (&mut self.closed).await;
    }
}

impl Drop for PlaceGuard {
    fn drop(&mut self) {
        self.place.places.lock().remove(self.place.id);
        self.place.places.changed.notify_waiters();
    }
}

/// Reports what a connection does. Requests hold it, perhaps for longer than the connection lives.
#[derive(Clone)]
pub(crate) struct Place {
    places: Arc<Places>,
    id: u64,
}

impl Place {
    /// Changes the connection's entry; false if it was removed.
    fn change(&self, change: impl FnOnce(&mut Taken)) -> bool {
        let mut guard = self.places.lock();
        let state = &mut *guard;
        let Some(taken) = state.taken.get_mut(&self.id) else {
            return false;
        };
        let before = taken.is_resting();
        change(taken);
        let after = taken.is_resting();
        match (before, after) {
            (false, true) => state.n_resting += 1,
            (true, false) => state.n_resting -= 1,
            _ => {}
        }
        drop(guard);
        if after && !before {
            self.places.changed.notify_waiters();
        }
        true
    }

    /// Enters a phase. A body may be dropped long after its request was answered: that changes
    /// nothing.
    fn enter(&self, phase: Phase, from: &[Phase], since: Instant) {
        self.change(|it| {
            if !from.contains(&it.phase) {
                return;
            }
            it.phase = phase;
            // A refused request has been waiting since then, whatever is still read and written.
            if !it.is_refused {
                it.since = since;
            }
        });
    }

    /// A request begins; false if the connection has to be closed instead.
    pub(crate) fn begin(&self) -> bool {
        self.change(|it| {
            it.phase = Phase::Working;
            it.since = Instant::now();
            it.is_refused = false;
        })
    }

    /// No work is done for the request except sending the refusal.
    pub(crate) fn refuse(&self) {
        self.change(|it| {
            it.is_refused = true;
            it.since = Instant::now();
        });
    }

    /// The handler waits for the body, of which almost nothing has come since then.
    pub(crate) fn receive(&self, silent_since: Instant) {
        let from = [Phase::Working, Phase::Receiving];
        self.enter(Phase::Receiving, &from, silent_since);
    }

    /// The handler continues.
    pub(crate) fn work(&self) {
        self.enter(Phase::Working, &[Phase::Receiving], Instant::now());
    }

    /// The response begins.
    pub(crate) fn answer(&self) {
        let from = [Phase::Working, Phase::Receiving];
        self.enter(Phase::Answering, &from, Instant::now());
    }

    /// The whole response was made.
    pub(crate) fn send_rest(&self) {
        self.enter(Phase::Sending, &[Phase::Answering], Instant::now());
    }

    /// The kernel has taken everything that was written.
    pub(crate) fn flushed(&self) {
        self.change(|it| {
            it.unread_since = None;
            if it.phase == Phase::Sending {
                it.phase = Phase::Waiting;
                it.since = Instant::now();
                it.is_refused = false;
            }
        });
    }

    /// The client reads nothing of what is written, or reads again.
    pub(crate) fn stall(&self, is_stalled: bool) {
        self.change(|it| {
            it.unread_since = match is_stalled {
                true => it.unread_since.or_else(|| Some(Instant::now())),
                false => None,
            };
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn is_open(place_guard: &mut PlaceGuard) -> bool {
        place_guard.closed.try_recv() == Err(oneshot::error::TryRecvError::Empty)
    }

    /// How many of the connections are still open.
    fn n_open(taken: &mut [(Place, PlaceGuard)]) -> usize {
        taken
            .iter_mut()
            .map(|it| is_open(&mut it.1))
            .filter(|it| *it)
            .count()
    }

    #[test]
    fn who_has_waited_longest_gives_way_and_who_works_does_not() {
        let places = Places::new(3, Duration::from_secs(60));
        let (working, mut working_closed) = places.take(HERE);
        assert!(working.begin());
        let mut rest: Vec<_> = (0..5).map(|_| places.take(HERE)).collect();
        assert!(is_open(&mut working_closed));
        assert_eq!(n_open(&mut rest), 2);
        assert!(is_open(&mut rest[3].1) && is_open(&mut rest[4].1));
        assert!(!rest[0].0.begin(), "what was closed begins no request");
        // The whole response was made but is not sent: still not.
        working.answer();
        working.send_rest();
        let mut next = places.take(HERE);
        assert!(is_open(&mut working_closed));
        working.flushed();
        assert!(next.0.begin() && rest[4].0.begin());
        let _last = places.take(HERE);
        assert!(!is_open(&mut working_closed), "it waits now");
        assert!(is_open(&mut next.1));
    }

    #[test]
    fn an_address_with_more_than_half_gives_way_before_others() {
        let places = Places::new(10, Duration::from_secs(60));
        let there = |n: u8| IpAddr::from([203, 0, 113, n]);
        let mut early: Vec<_> = (0..3).map(|_| places.take(there(1))).collect();
        let mut many: Vec<_> = (0..40).map(|_| places.take(there(2))).collect();
        assert_eq!(n_open(&mut early), 3, "although they waited longer");
        assert_eq!(n_open(&mut many), 7);
        let mut newcomer = places.take(there(3));
        assert_eq!(n_open(&mut many), 6);
        assert!(is_open(&mut newcomer.1) && n_open(&mut early) == 3);
    }

    #[test]
    fn silence_in_a_body_or_an_unread_answer_gives_way_to_others() {
        for stalls in [false, true] {
            let places = Places::new(2, Duration::ZERO);
            let (slow, mut slow_closed) = places.take(HERE);
            let (working, mut working_closed) = places.take(HERE);
            assert!(slow.begin() && working.begin());
            match stalls {
                true => slow.stall(true),
                false => slow.receive(Instant::now()),
            }
            let _next = places.take(HERE);
            assert!(!is_open(&mut slow_closed), "{stalls}");
            assert!(is_open(&mut working_closed), "{stalls}");
        }
    }

    #[test]
    fn a_refused_request_is_not_one_that_is_worked_on() {
        let places = Places::new(1, Duration::from_secs(60));
        let (refused, mut closed) = places.take(HERE);
        assert!(refused.begin());
        refused.refuse();
        refused.receive(Instant::now());
        let _next = places.take(HERE);
        assert!(!is_open(&mut closed));
    }

    #[tokio::test]
    async fn a_place_is_available_as_soon_as_somebody_waits_or_leaves() {
        let places = Places::new(1, Duration::from_secs(3_600));
        let (working, place_guard) = places.take(HERE);
        assert!(working.begin());
        let available = tokio::spawn({
            let places = Arc::clone(&places);
            async move { places.available().await }
        });
        tokio::task::yield_now().await;
        assert!(!available.is_finished());
        working.answer();
        working.send_rest();
        working.flushed();
        available.await.unwrap();
        assert!(working.begin());
        drop(place_guard);
        places.available().await;
    }

    #[test]
    fn a_network_of_version_6_is_one_client() {
        let of = |text: &str| client_of(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:203.0.113.9"), of("203.0.113.9"));
    }
}
