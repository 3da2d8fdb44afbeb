//! How often a wrong token may be tried.
//!
//! Each address has a few tries a minute, and all together have more; who has none left is told so, and the token
//! is not even looked up. The memory is the same however many addresses try: an address shares its tries with
//! those that fall into the same place of a small table, which nobody can choose, because the hash is keyed.
//! A token that was right before is always looked up, so that nobody can lock out those who are at work.
//! Whose it was is remembered too: it tells whose calls are in line before the token is looked up again.

use kenning_engine::Principal;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The default number of wrong tokens a minute from one address.
pub(crate) const OF_ONE_MAX: u32 = 30;
/// All addresses together may send this many times as many.
const ALL: u32 = 20;
/// Entries in the table of addresses.
const PLACES: usize = 1_024;
/// Tokens that were valid before.
const GOOD: usize = 1_024;

/// Counts wrong tokens, and remembers valid ones.
pub(crate) struct Failures {
    of_one_max: u32,
    hasher: RandomState,
    state: Mutex<State>,
}

struct State {
    all: Tries,
    of: Vec<Tries>,
    /// By the hash of the token.
    good: Vec<Option<Good>>,
}

/// A token that was valid.
#[derive(Clone)]
struct Good {
    hash: u64,
    whose: Arc<Principal>,
}

impl State {
    fn good(&mut self, hash: u64) -> Option<&Good> {
        let good = self.good.get(hash as usize % GOOD)?;
        good.as_ref().filter(|it| it.hash == hash)
    }
}

/// Used attempts, which recover with time.
#[derive(Clone, Copy)]
struct Tries {
    used: f64,
    at: Instant,
}

impl Tries {
    /// How many seconds until there is another attempt; `None` if there is one now.
    fn wait(&mut self, max: u32, now: Instant) -> Option<u64> {
        let max = f64::from(max);
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.used = (self.used - passed * max / 60.0).max(0.0);
        self.at = now;
        let over = self.used + 1.0 - max;
        (over > 0.0).then(|| (over * 60.0 / max).ceil().max(1.0) as u64)
    }
}

impl Failures {
    pub(crate) fn new(of_one_max: u32, now: Instant) -> Self {
        let tries = Tries { used: 0.0, at: now };
        Self {
            of_one_max,
            hasher: RandomState::new(),
            state: Mutex::new(State {
                all: tries,
                of: vec![tries; PLACES],
                good: vec![None; GOOD],
            }),
        }
    }

    /// For an IPv6 address the network counts, because one client usually has all of it.
    fn place(&self, address: IpAddr) -> usize {
        let hash = match address.to_canonical() {
            IpAddr::V4(it) => self.hasher.hash_one(it),
            IpAddr::V6(it) => self.hasher.hash_one(it.segments().first_chunk::<4>()),
        };
        hash as usize % PLACES
    }

    fn hash(&self, token: &str) -> u64 {
        self.hasher.hash_one(token)
    }

    /// Whether a token may be tried; if not, after how many seconds.
    pub(crate) fn may_try(&self, address: IpAddr, token: &str, now: Instant) -> Result<(), u64> {
        let (place, hash) = (self.place(address), self.hash(token));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.good(hash).is_some() {
            return Ok(());
        }
        let State { all, of, .. } = &mut *state;
        let of_one = of
            .get_mut(place)
            .and_then(|it| it.wait(self.of_one_max, now));
        match of_one.max(all.wait(self.of_one_max.saturating_mul(ALL), now)) {
            Some(seconds) => Err(seconds),
            None => Ok(()),
        }
    }

    /// The token was wrong.
    pub(crate) fn failed(&self, address: IpAddr, token: &str) {
        let (place, hash) = (self.place(address), self.hash(token));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.all.used += 1.0;
        if let Some(tries) = state.of.get_mut(place) {
            tries.used += 1.0;
        }
        // Revoked or expired: from now on it is like any other.
        if state.good(hash).is_some()
            && let Some(good) = state.good.get_mut(hash as usize % GOOD)
        {
            *good = None;
        }
    }

    /// The token was right.
    pub(crate) fn succeeded(&self, token: &str, whose: &Principal) {
        let hash = self.hash(token);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.good(hash).is_some_and(|it| *it.whose == *whose) {
            return;
        }
        if let Some(good) = state.good.get_mut(hash as usize % GOOD) {
            let whose = Arc::new(whose.clone());
            *good = Some(Good { hash, whose });
        }
    }

    /// Whose token it was when it was last looked up. It may have been revoked since: this permits nothing.
    pub(crate) fn whose(&self, token: &str) -> Option<Arc<Principal>> {
        let hash = self.hash(token);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.good(hash).map(|it| Arc::clone(&it.whose))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn address(n: u32) -> IpAddr {
        IpAddr::from(n.to_be_bytes())
    }

    fn fail(failures: &Failures, of: IpAddr, n: u32, now: Instant) -> u32 {
        let tried = |n: &u32| {
            let token = n.to_string();
            let may = failures.may_try(of, &token, now).is_ok();
            if may {
                failures.failed(of, &token);
            }
            may
        };
        u32::try_from((0..n).filter(tried).count()).unwrap()
    }

    #[test]
    fn an_address_has_its_tries_and_gets_them_back() {
        let start = Instant::now();
        let failures = Failures::new(OF_ONE_MAX, start);
        assert_eq!(fail(&failures, address(1), 1_000, start), OF_ONE_MAX);
        assert_eq!(failures.may_try(address(1), "x", start), Err(2));
        let later = start + Duration::from_secs(60);
        assert_eq!(fail(&failures, address(1), 1_000, later), OF_ONE_MAX);
    }

    #[test]
    fn all_addresses_together_have_a_limit_and_who_is_at_work_goes_on() {
        let start = Instant::now();
        let failures = Failures::new(OF_ONE_MAX, start);
        let who = Principal::owner(kenning_core::Space::default());
        failures.succeeded("right", &who);
        assert_eq!(failures.whose("right").as_deref(), Some(&who));
        assert_eq!(failures.whose("wrong"), None);
        let n: u32 = (0..10_000)
            .map(|it| fail(&failures, address(it), 1, start))
            .sum();
        assert_eq!(n, OF_ONE_MAX * ALL);
        assert!(failures.may_try(address(1), "unknown", start).is_err());
        assert_eq!(failures.may_try(address(1), "right", start), Ok(()));
        failures.failed(address(1), "right");
        assert_eq!(failures.whose("right"), None);
        assert!(failures.may_try(address(1), "right", start).is_err());
    }

    #[test]
    fn a_network_of_version_6_counts_as_one_address() {
        let start = Instant::now();
        let failures = Failures::new(OF_ONE_MAX, start);
        let of = |n: u16| IpAddr::from([0x2001, 0xdb8, 0, 7, n, n, n, n]);
        let n: u32 = (0..1_000).map(|it| fail(&failures, of(it), 1, start)).sum();
        assert_eq!(n, OF_ONE_MAX);
    }
}
