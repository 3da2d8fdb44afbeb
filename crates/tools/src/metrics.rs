//! Counters in the Prometheus text format.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Counts of calls, errors and times.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<BTreeMap<&'static str, Count>>);

/// The upper bounds of the counters of a tool's calls, in milliseconds.
const BOUNDS_MS: [u64; 10] = [1, 5, 10, 25, 50, 100, 250, 1_000, 5_000, 30_000];

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    calls: u64,
    errors: u64,
    seconds: f64,
    /// Calls that took no longer than each bound and longer than the one before.
    within: [u64; BOUNDS_MS.len()],
}

impl Metrics {
    pub(crate) fn record(&self, tool: &'static str, took: Duration, failed: bool) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(tool).or_default();
        count.calls += 1;
        count.errors += u64::from(failed);
        count.seconds += took.as_secs_f64();
        let is_within = |bound: &u64| took <= Duration::from_millis(*bound);
        if let Some(at) = BOUNDS_MS.iter().position(is_within) {
            count.within[at] += 1;
        }
    }

    /// How often these were called, and how often they failed.
    pub(crate) fn calls(&self, tools: &[&str]) -> (u64, u64) {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let named = tools.iter().filter_map(|it| counts.get(it));
        named.fold((0, 0), |sum, it| (sum.0 + it.calls, sum.1 + it.errors))
    }

    /// The text that Prometheus reads.
    pub fn to_text(&self) -> String {
        let counts = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut out = String::new();
        let mut family = |name: &str, help: &str, value: &dyn Fn(&Count) -> String| {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter");
            for (tool, count) in &counts {
                let _ = writeln!(out, "{name}{{tool=\"{tool}\"}} {}", value(count));
            }
        };
        family("kenning_tool_calls_total", "Calls of a tool.", &|it| {
            it.calls.to_string()
        });
        family("kenning_tool_errors_total", "Failed calls.", &|it| {
            it.errors.to_string()
        });
        family(
            "kenning_tool_seconds_total",
            "Time spent in calls.",
            &|it| format!("{:.6}", it.seconds),
        );
        out + &durations(&counts)
    }
}

/// How long calls took, as a histogram of each tool.
fn durations(counts: &BTreeMap<&'static str, Count>) -> String {
    const NAME: &str = "kenning_tool_duration_seconds";
    let mut out = format!("# HELP {NAME} Duration of calls.\n# TYPE {NAME} histogram\n");
    for (tool, count) in counts {
        let mut n = 0;
        for (bound, within) in BOUNDS_MS.iter().zip(count.within) {
            n += within;
            let bound = *bound as f64 / 1_000.0;
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{NAME}_bucket{{tool=\"{tool}\",le=\"{bound}\"}} {n}");
        }
        let (calls, seconds) = (count.calls, count.seconds);
        let _ = writeln!(
            out,
            "{NAME}_bucket{{tool=\"{tool}\",le=\"+Inf\"}} {calls}\n\
             {NAME}_sum{{tool=\"{tool}\"}} {seconds:.6}\n\
             {NAME}_count{{tool=\"{tool}\"}} {calls}"
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_histogram_of_a_tool_counts_every_call_once() {
        let metrics = Metrics::default();
        for ms in [0, 3, 30, 40_000] {
            metrics.record("now_read", Duration::from_millis(ms), false);
        }
        let text = metrics.to_text();
        for line in [
            "kenning_tool_duration_seconds_bucket{tool=\"now_read\",le=\"0.001\"} 1\n",
            "kenning_tool_duration_seconds_bucket{tool=\"now_read\",le=\"0.005\"} 2\n",
            "kenning_tool_duration_seconds_bucket{tool=\"now_read\",le=\"30\"} 3\n",
            "kenning_tool_duration_seconds_bucket{tool=\"now_read\",le=\"+Inf\"} 4\n",
            "kenning_tool_duration_seconds_count{tool=\"now_read\"} 4\n",
            "kenning_tool_duration_seconds_sum{tool=\"now_read\"} 40.033000\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
