//! How many bytes of request bodies are held at once.
//!
//! A body is kept from its first byte until its call is answered, and most of that time it may wait in line.
//! Hundreds of calls may wait, so without a bound one caller with large bodies could fill the memory. Bytes are
//! counted when they arrive, not when they are announced: who announces much and sends nothing holds nothing.
//! The first bytes of each body are free, so that small calls go on whatever large ones are held; there are as
//! many of these as connections.

use super::{Key, key_of};
use kenning_core::{Error, Result};
use kenning_engine::Principal;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of all bodies.
pub const BODIES_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Those of one principal: sixteen of the largest bodies.
pub const BODIES_OF_ONE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// So much of each body is not counted.
pub const FREE_BYTES: usize = 64 * 1024;

/// The bodies of a process.
#[derive(Default)]
pub struct Bodies(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    by_principal: HashMap<Key, usize>,
    n_bytes: usize,
    n_refused: u64,
}

impl State {
    /// What is wrong with so many bytes more.
    fn check(&mut self, key: &Key, n_more: usize) -> Result<()> {
        let of_one = self.by_principal.get(key).copied().unwrap_or(0);
        let (whose, max) = if of_one + n_more > BODIES_OF_ONE_BYTES_MAX {
            (" of this caller", BODIES_OF_ONE_BYTES_MAX)
        } else if self.n_bytes + n_more > BODIES_BYTES_MAX {
            ("", BODIES_BYTES_MAX)
        } else {
            return Ok(());
        };
        self.n_refused += 1;
        let mib = max / (1024 * 1024);
        Err(
            Error::limited(format!("{mib} MiB of requests{whose} wait to be answered"))
                .hint("wait for answers before you send more"),
        )
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bodies {
    /// The body of a request that begins. `announced` is its length, if the client said it.
    ///
    /// # Errors
    /// `limited` if so much more is not held now.
    pub fn begin(&self, who: &Principal, announced: Option<u64>) -> Result<Held> {
        let key = key_of(who);
        let announced = announced.and_then(|it| usize::try_from(it).ok());
        let counted = announced.map_or(0, |it| it.saturating_sub(FREE_BYTES));
        if counted > 0 {
            lock(&self.0).check(&key, counted)?;
        }
        Ok(Held {
            state: Arc::clone(&self.0),
            key,
            n_bytes: Mutex::default(),
        })
    }

    /// Bytes that are held, and requests that were refused.
    pub(super) fn counts(&self) -> (usize, u64) {
        let state = lock(&self.0);
        (state.n_bytes, state.n_refused)
    }
}

/// What is held of one body, until this is dropped.
pub struct Held {
    state: Arc<Mutex<State>>,
    key: Key,
    n_bytes: Mutex<usize>,
}

impl Held {
    /// So many bytes have arrived.
    ///
    /// # Errors
    /// `limited` if they are too many; then they are not held and must be thrown away.
    pub fn add(&self, n: usize) -> Result<()> {
        let mut n_bytes = self.n_bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = |it: usize| it.saturating_sub(FREE_BYTES);
        let n_more = counted(*n_bytes + n) - counted(*n_bytes);
        if n_more > 0 {
            let mut state = lock(&self.state);
            state.check(&self.key, n_more)?;
            state.n_bytes += n_more;
            *state.by_principal.entry(self.key.clone()).or_default() += n_more;
        }
        *n_bytes += n;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let n_bytes = self.n_bytes.get_mut();
        let n_bytes = *n_bytes.unwrap_or_else(PoisonError::into_inner);
        let counted = n_bytes.saturating_sub(FREE_BYTES);
        if counted == 0 {
            return;
        }
        let mut state = lock(&self.state);
        state.n_bytes = state.n_bytes.saturating_sub(counted);
        if let Some(of_one) = state.by_principal.get_mut(&self.key) {
            *of_one = of_one.saturating_sub(counted);
            if *of_one == 0 {
                state.by_principal.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_core::{Code, Space};

    const LARGE: usize = 4 * 1024 * 1024;

    fn who(name: &str) -> Principal {
        Principal {
            name: name.to_owned(),
            ..Principal::owner(Space::default())
        }
    }

    /// As many large bodies as are held, and how the next one is refused.
    fn fill(bodies: &Bodies, name: &str) -> (Vec<Held>, Error) {
        let mut held = Vec::new();
        loop {
            let body = bodies.begin(&who(name), None).unwrap();
            match body.add(LARGE) {
                Ok(()) => held.push(body),
                Err(error) => return (held, error),
            }
            assert!(held.len() < 1_000);
        }
    }

    #[test]
    fn the_bytes_of_one_principal_and_of_all_are_bounded_and_given_back() {
        let bodies = Bodies::default();
        let (a, error) = fill(&bodies, "a");
        assert_eq!(error.code, Code::Limited);
        assert!(error.message.contains("64 MiB of requests of this caller"));
        assert_eq!(a.len(), BODIES_OF_ONE_BYTES_MAX / (LARGE - FREE_BYTES));
        let announced = bodies.begin(&who("a"), Some(LARGE as u64));
        assert!(announced.is_err(), "told before anything is sent");
        let (b, error) = fill(&bodies, "b");
        assert!(error.message.contains("64 MiB"), "{error}");
        let (c, error) = fill(&bodies, "c");
        assert!(
            error.message.contains("128 MiB of requests wait"),
            "{error}"
        );
        let small = bodies.begin(&who("c"), Some(FREE_BYTES as u64)).unwrap();
        small.add(FREE_BYTES).unwrap();
        assert!(bodies.counts().0 <= BODIES_BYTES_MAX);
        drop((a, b, c, small));
        assert_eq!(bodies.counts().0, 0);
        assert!(lock(&bodies.0).by_principal.is_empty());
        assert_eq!(fill(&bodies, "c").0.len(), 16);
    }

    #[test]
    fn a_body_that_comes_in_pieces_counts_what_came() {
        let bodies = Bodies::default();
        let body = bodies.begin(&who("a"), Some(LARGE as u64)).unwrap();
        assert_eq!(bodies.counts().0, 0, "announced and not sent");
        for _ in 0..FREE_BYTES {
            body.add(1).unwrap();
        }
        assert_eq!(bodies.counts().0, 0);
        body.add(1_000).unwrap();
        assert_eq!(bodies.counts().0, 1_000);
        drop(body);
        assert_eq!(bodies.counts().0, 0);
    }
}
