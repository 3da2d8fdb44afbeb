//! The rate limit of one caller.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// At most this many callers are remembered. Those who have not called for longest are forgotten
/// first; if all called just now, a new one has to wait.
const CALLERS_MAX: usize = 10_000;

/// A token bucket for each caller.
pub(crate) struct Rate {
    per_minute: f64,
    buckets: Mutex<HashMap<String, Bucket>>,
}

struct Bucket {
    left: f64,
    at: Instant,
}

impl Rate {
    pub(crate) fn new(per_minute: u32) -> Self {
        Self {
            per_minute: f64::from(per_minute),
            buckets: Mutex::default(),
        }
    }

    /// How many calls a minute.
    pub(crate) fn per_minute(&self) -> f64 {
        self.per_minute
    }

    /// Takes one call; if none is left, returns after how many seconds there is one.
    pub(crate) fn take(&self, caller: &str, now: Instant) -> Result<(), u64> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= CALLERS_MAX && !buckets.contains_key(caller) {
            buckets.retain(|_, bucket| self.filled(bucket, now) < self.per_minute);
            if buckets.len() >= CALLERS_MAX {
                return Err(1);
            }
        }
        let full = Bucket {
            left: self.per_minute,
            at: now,
        };
        let bucket = buckets.entry(caller.to_owned()).or_insert(full);
        bucket.left = self.filled(bucket, now);
        bucket.at = now;
        if bucket.left < 1.0 {
            let seconds = (1.0 - bucket.left) * 60.0 / self.per_minute;
            // A rate of zero gives an infinite time; an hour is enough.
            return Err(seconds.ceil().clamp(1.0, 3_600.0) as u64);
        }
        bucket.left -= 1.0;
        Ok(())
    }

    fn filled(&self, bucket: &Bucket, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
        (bucket.left + passed * self.per_minute / 60.0).min(self.per_minute)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_caller_gets_its_share_and_gets_it_again_later() {
        let rate = Rate::new(60);
        let start = Instant::now();
        let taken = (0..100).filter(|_| rate.take("a", start).is_ok()).count();
        assert_eq!(taken, 60);
        assert_eq!(rate.take("b", start), Ok(()), "another caller has its own");
        assert_eq!(rate.take("a", start + Duration::from_millis(900)), Err(1));
        assert_eq!(rate.take("a", start + Duration::from_millis(1_900)), Ok(()));
    }

    #[test]
    fn a_refusal_says_when_there_is_a_call_again() {
        let start = Instant::now();
        let rate = Rate::new(2);
        assert_eq!((0..2).filter(|_| rate.take("a", start).is_ok()).count(), 2);
        assert_eq!(rate.take("a", start), Err(30));
        assert_eq!(rate.take("a", start + Duration::from_secs(30)), Ok(()));
        assert_eq!(Rate::new(0).take("a", start), Err(3_600));
    }

    #[test]
    fn many_callers_are_forgotten_when_they_have_rested() {
        let rate = Rate::new(60);
        let start = Instant::now();
        for n in 0..CALLERS_MAX {
            assert_eq!(rate.take(&n.to_string(), start), Ok(()));
        }
        assert_eq!(rate.take("new", start), Err(1));
        assert_eq!(rate.take("new", start + Duration::from_secs(2)), Ok(()));
    }
}
