//! How often one caller may call.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Callers that are remembered; the longest idle ones are forgotten first.
const CALLERS_MAX: usize = 10_000;

/// A bucket per caller that fills at a steady rate and is emptied by calls.
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

    /// Takes one call. False when there is none left.
    pub(crate) fn take(&self, caller: &str, now: Instant) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= CALLERS_MAX && !buckets.contains_key(caller) {
            let full = self.per_minute;
            let refilled = |it: &Bucket| {
                it.left + now.duration_since(it.at).as_secs_f64() * full / 60.0 >= full
            };
            buckets.retain(|_, bucket| !refilled(bucket));
            if buckets.len() >= CALLERS_MAX {
                return false;
            }
        }
        let full = Bucket {
            left: self.per_minute,
            at: now,
        };
        let bucket = buckets.entry(caller.to_owned()).or_insert(full);
        let passed = now.duration_since(bucket.at).as_secs_f64();
        bucket.left = (bucket.left + passed * self.per_minute / 60.0).min(self.per_minute);
        bucket.at = now;
        if bucket.left < 1.0 {
            return false;
        }
        bucket.left -= 1.0;
        true
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
        let taken = (0..100).filter(|_| rate.take("a", start)).count();
        assert_eq!(taken, 60);
        assert!(rate.take("b", start), "another caller has its own");
        assert!(!rate.take("a", start + Duration::from_millis(900)));
        assert!(rate.take("a", start + Duration::from_millis(1_900)));
    }
}
