//! Counters in the Prometheus text format.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Counts of calls, errors and times.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<BTreeMap<&'static str, Count>>);

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    calls: u64,
    errors: u64,
    seconds: f64,
}

impl Metrics {
    pub(crate) fn record(&self, tool: &'static str, took: Duration, failed: bool) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(tool).or_default();
        count.calls += 1;
        count.errors += u64::from(failed);
        count.seconds += took.as_secs_f64();
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
        out
    }
}
