//! How often a request is retried, and how long the waits are.

use crate::Response;
use std::time::Duration;

/// When to ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How often a failed request is repeated.
    pub retries: u32,
    /// The wait before the first repetition; each further one is twice as long.
    pub first_wait: Duration,
    /// The longest wait. A provider that asks for a longer one is left alone until later.
    pub wait_max: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            retries: 3,
            first_wait: Duration::from_millis(500),
            wait_max: Duration::from_secs(30),
        }
    }
}

impl Patience {
    /// The wait before repetition `number`, counted from 0, or nothing if there is none.
    pub fn wait(&self, number: u32, asked: Option<Duration>) -> Option<Duration> {
        if number >= self.retries {
            return None;
        }
        match asked {
            Some(asked) => (asked <= self.wait_max).then_some(asked),
            None => {
                let doubled = self.first_wait.saturating_mul(2_u32.saturating_pow(number));
                Some(doubled.min(self.wait_max))
            }
        }
    }
}

impl Response {
    /// What `Retry-After` asks for, in seconds. Its other form, a date, is not read: no provider sends
    /// it, and the wait is then our own.
    pub fn asked_wait(&self) -> Option<Duration> {
        let seconds = self.header("retry-after")?.trim().parse().ok()?;
        Some(Duration::from_secs(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_end_with_the_retries() {
        let patience = Patience {
            retries: 4,
            first_wait: Duration::from_secs(1),
            wait_max: Duration::from_secs(5),
        };
        let waits: Vec<Option<u64>> = (0..5)
            .map(|n| patience.wait(n, None).map(|it| it.as_secs()))
            .collect();
        assert_eq!(waits, [Some(1), Some(2), Some(4), Some(5), None]);
    }

    #[test]
    fn a_wait_that_was_asked_for_is_kept_or_not_begun() {
        let patience = Patience::default();
        let asked = |seconds| patience.wait(0, Some(Duration::from_secs(seconds)));
        assert_eq!(asked(7), Some(Duration::from_secs(7)));
        assert_eq!(asked(0), Some(Duration::ZERO));
        assert_eq!(asked(3600), None);
    }
}
