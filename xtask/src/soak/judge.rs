//! Checks whether something grows that should not.

use super::samples::{HISTORY, Sample};

/// The first part of the time in which everything finds its size.
const WARM_UP: f64 = 0.25;
/// What may be more at the end than at the beginning, as a share …
const GROWTH_MAX: f64 = 0.05;

/// … and in numbers too small to tell: threads that come and go, a page of memory more or less.
fn slack(gauge: &str) -> f64 {
    match gauge {
        it if it.ends_with("memory KiB") => 1_024.0,
        it if it.ends_with("threads") => 4.0,
        it if it.ends_with("descriptors") => 6.0,
        // It is emptied when it has a thousand pages and nobody reads.
        "write-ahead log bytes" => 8.0 * 1024.0 * 1024.0,
        "files" => 4.0,
        "file bytes" => 65_536.0,
        _ => 10.0,
    }
}

/// Whether it grows with every write by design, and is judged by the call.
fn is_history(gauge: &str) -> bool {
    let table = gauge.strip_prefix("rows of ");
    gauge == "database bytes" || table.is_some_and(|it| HISTORY.contains(&it))
}

/// The samples after the warm-up.
fn warm(samples: &[Sample]) -> &[Sample] {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in the list"
    )]
    let from = (samples.len() as f64 * WARM_UP).ceil() as usize;
    samples.get(from..).unwrap_or_default()
}

/// The middle one.
fn median(samples: &[Sample], gauge: &str) -> f64 {
    let mut values: Vec<u64> = samples
        .iter()
        .filter_map(|it| it.gauges.get(gauge).copied())
        .collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0) as f64
}

/// What a gauge grows by with a call, between the first and the last of these.
fn by_call(samples: &[Sample], gauge: &str) -> f64 {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return 0.0;
    };
    let value = |it: &Sample| it.gauges.get(gauge).copied().unwrap_or(0) as f64;
    let calls = last.calls.saturating_sub(first.calls).max(1) as f64;
    (value(last) - value(first)) / calls
}

fn gauges(samples: &[Sample]) -> Vec<&str> {
    let last = samples.last();
    last.map_or_else(Vec::new, |sample| {
        sample.gauges.keys().map(String::as_str).collect()
    })
}

/// The beginning and the end that are compared.
fn compared(samples: &[Sample], gauge: &str) -> (f64, f64) {
    let warm = warm(samples);
    if is_history(gauge) {
        let (first, second) = warm.split_at(warm.len() / 2);
        return (by_call(first, gauge), by_call(second, gauge));
    }
    let third = warm.len() / 3;
    let (first, last) = (&warm[..third], &warm[warm.len() - third..]);
    (median(first, gauge), median(last, gauge))
}

/// A sentence for everything that grew.
pub(super) fn faults(samples: &[Sample]) -> Vec<String> {
    let mut faults = Vec::new();
    for gauge in gauges(samples) {
        let (first, last) = compared(samples, gauge);
        if is_history(gauge) {
            // Chance makes the mix of calls a little different, the more the fewer they are.
            let calls = warm(samples).last().map_or(0, |it| it.calls) as f64;
            let chance = 3.0 / (calls / 10.0).max(1.0).sqrt();
            if last > first * (1.0 + GROWTH_MAX + chance) + 0.001 {
                faults.push(format!("{gauge}: {first:.4} a call, then {last:.4}"));
            }
        } else if last > first * (1.0 + GROWTH_MAX) + slack(gauge) {
            faults.push(format!("{gauge}: from {first} to {last}"));
        }
    }
    faults
}

/// One line a gauge: the beginning and the end.
pub(super) fn lines(samples: &[Sample]) -> Vec<String> {
    let line = |gauge: &&str| {
        let (first, last) = compared(samples, gauge);
        let unit = if is_history(gauge) { " a call" } else { "" };
        match unit {
            "" => format!("  {gauge:<24} {first:>12} {last:>12}"),
            _ => format!("  {gauge:<24} {first:>12.4} {last:>12.4}{unit}"),
        }
    };
    gauges(samples).iter().map(line).collect()
}

/// The figures that people ask for first.
pub(super) fn summary(samples: &[Sample]) -> String {
    let shown = |gauge: &str| {
        let (first, last) = compared(samples, gauge);
        format!("{:.1} to {:.1} MiB", first / 1_024.0, last / 1_024.0)
    };
    format!(
        "server {}, stdio {}",
        shown("server memory KiB"),
        shown("stdio memory KiB")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred samples, ten calls apart, of one gauge.
    fn samples(gauge: &str, value: impl Fn(u64) -> u64) -> Vec<Sample> {
        let sample = |n: u64| Sample {
            calls: n * 1_000,
            gauges: [(gauge.to_owned(), value(n))].into(),
        };
        (0..100).map(sample).collect()
    }

    #[test]
    fn what_stays_or_swings_is_no_fault() {
        assert!(faults(&samples("server memory KiB", |_| 50_000)).is_empty());
        // It warms up, then swings.
        let swings = |n: u64| 40_000 + n.min(20) * 1_000 + n % 7 * 300;
        assert!(faults(&samples("server memory KiB", swings)).is_empty());
        assert!(faults(&samples("stdio descriptors", |n| 20 + n % 5)).is_empty());
        assert!(faults(&[]).is_empty());
    }

    #[test]
    fn what_grows_is_a_fault_and_is_named() {
        let leak = faults(&samples("server memory KiB", |n| 50_000 + n * 200));
        assert!(leak[0].starts_with("server memory KiB: from "), "{leak:?}");
        assert_eq!(faults(&samples("stdio descriptors", |n| 20 + n)).len(), 1);
        assert_eq!(faults(&samples("files", |n| 200 + n)).len(), 1);
        assert_eq!(faults(&samples("rows of kv", |n| 50 + n)).len(), 1);
    }

    #[test]
    fn history_is_judged_by_the_call() {
        assert!(faults(&samples("rows of events", |n| n * 300)).is_empty());
        assert_eq!(faults(&samples("rows of events", |n| n * n * 3)).len(), 1);
        assert!(faults(&samples("database bytes", |n| 1_000_000 + n * 90_000)).is_empty());
    }
}
