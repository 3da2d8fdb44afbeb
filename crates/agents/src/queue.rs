//! Whose turn it is in this process: so many tasks at once, one a time for each agent, the most urgent first.

use crate::kinds::Priority;
use kenning_core::Result;
use std::cmp::Reverse;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Tasks that one process works on at once.
pub(crate) const RUNNING_MAX: usize = 4;

/// How often somebody who waits looks whether to go on waiting.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug)]
struct Waiting {
    agent: String,
    priority: Priority,
    number: u64,
}

#[derive(Debug, Default)]
struct State {
    running: Vec<String>,
    waiting: Vec<Waiting>,
    n_seen: u64,
}

impl State {
    /// The number of whoever may begin.
    fn next(&self) -> Option<u64> {
        if self.running.len() >= RUNNING_MAX {
            return None;
        }
        let free = self.waiting.iter();
        let free = free.filter(|it| !self.running.contains(&it.agent));
        let next = free.max_by_key(|it| (it.priority, Reverse(it.number)));
        next.map(|it| it.number)
    }
}

/// The tasks of this process.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

/// A turn, which ends when it is dropped.
pub(crate) struct Turn<'a> {
    queue: &'a Queue,
    agent: String,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn of this agent. `check` ends the wait by an error.
    pub(crate) fn turn(
        &self,
        agent: &str,
        priority: Priority,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Turn<'_>> {
        let mut state = self.lock();
        state.n_seen += 1;
        let number = state.n_seen;
        state.waiting.push(Waiting {
            agent: agent.to_owned(),
            priority,
            number,
        });
        loop {
            if state.next() == Some(number) {
                state.waiting.retain(|it| it.number != number);
                state.running.push(agent.to_owned());
                self.changed.notify_all();
                return Ok(Turn {
                    queue: self,
                    agent: agent.to_owned(),
                });
            }
            drop(state);
            if let Err(error) = check() {
                self.lock().waiting.retain(|it| it.number != number);
                self.changed.notify_all();
                return Err(error);
            }
            state = self.lock();
            if state.next() != Some(number) {
                let wait = || self.changed.wait_timeout(state, LOOK);
                let woken = kenning_core::idle::waiting(wait);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    /// How many tasks wait for this agent.
    #[cfg(test)]
    fn n_waiting(&self, agent: &str) -> usize {
        let state = self.lock();
        state.waiting.iter().filter(|it| it.agent == agent).count()
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        if let Some(at) = state.running.iter().position(|it| *it == self.agent) {
            state.running.swap_remove(at);
        }
        self.queue.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_core::Error;

    fn waiting(agent: &str, priority: Priority, number: u64) -> Waiting {
        Waiting {
            agent: agent.to_owned(),
            priority,
            number,
        }
    }

    #[test]
    fn the_most_urgent_comes_first_then_who_came_first() {
        let mut state = State {
            waiting: vec![
                waiting("a", Priority::Medium, 1),
                waiting("b", Priority::High, 2),
                waiting("c", Priority::High, 3),
            ],
            ..State::default()
        };
        assert_eq!(state.next(), Some(2));
        state.running.push("b".to_owned());
        assert_eq!(state.next(), Some(3), "an agent does one task at a time");
        state.running = vec!["x".to_owned(); RUNNING_MAX];
        assert_eq!(state.next(), None);
    }

    #[test]
    fn who_no_longer_wants_to_wait_leaves_nothing_behind() {
        let queue = Queue::default();
        let first = queue.turn("a", Priority::Low, &|| Ok(())).unwrap();
        let refused = queue.turn("a", Priority::Low, &|| Err(Error::timeout("enough")));
        assert!(refused.is_err());
        assert_eq!(queue.n_waiting("a"), 0);
        drop(first);
        assert!(queue.turn("a", Priority::Low, &|| Ok(())).is_ok());
    }
}
