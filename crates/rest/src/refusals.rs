//! How long it takes to refuse a call: from the head of its request to the answer.
//!
//! Whoever overloads a server measures the machine as well; this is the server's own share.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the counters, in milliseconds.
const BOUNDS_MS: [u64; 9] = [1, 2, 5, 10, 20, 50, 100, 250, 1_000];

/// Counts of refusals by their durations.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// One for each bound, and one for what took longer.
    counts: [AtomicU64; BOUNDS_MS.len() + 1],
    sum_us: AtomicU64,
}

impl Refusals {
    /// A call was refused after so long.
    pub(crate) fn add(&self, took: Duration) {
        let at = BOUNDS_MS
            .iter()
            .position(|it| took <= Duration::from_millis(*it));
        let count = &self.counts[at.unwrap_or(BOUNDS_MS.len())];
        count.fetch_add(1, Ordering::Relaxed);
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// The text that Prometheus reads.
    pub(crate) fn to_text(&self) -> String {
        const NAME: &str = "kenning_limited_seconds";
        let mut text = format!(
            "# HELP {NAME} Time from the head of a request to the answer that it is limited.\n\
             # TYPE {NAME} histogram\n"
        );
        let mut n = 0;
        let bounds = BOUNDS_MS
            .iter()
            .map(|it| (*it as f64 / 1_000.0).to_string());
        for (count, bound) in self.counts.iter().zip(bounds.chain(["+Inf".to_owned()])) {
            n += count.load(Ordering::Relaxed);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{NAME}_bucket{{le=\"{bound}\"}} {n}");
        }
        let sum = self.sum_us.load(Ordering::Relaxed) as f64 / 1e6;
        let _ = writeln!(text, "{NAME}_sum {sum:.6}\n{NAME}_count {n}");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_counts_what_is_not_longer() {
        let refusals = Refusals::default();
        for ms in [0, 1, 3, 50, 51, 7_000] {
            refusals.add(Duration::from_millis(ms));
        }
        let text = refusals.to_text();
        for line in [
            "kenning_limited_seconds_bucket{le=\"0.001\"} 2\n",
            "kenning_limited_seconds_bucket{le=\"0.005\"} 3\n",
            "kenning_limited_seconds_bucket{le=\"0.05\"} 4\n",
            "kenning_limited_seconds_bucket{le=\"1\"} 5\n",
            "kenning_limited_seconds_bucket{le=\"+Inf\"} 6\n",
            "kenning_limited_seconds_sum 7.105000\n",
            "kenning_limited_seconds_count 6\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
