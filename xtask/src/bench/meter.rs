//! What a process has used, and what many durations have in common.

use anyhow::{Context as _, Result};
use std::time::Duration;

/// The kernel counts in hundredths of a second, whatever its own tick is.
const TICK: Duration = Duration::from_millis(10);

/// Processor time of this process so far, all threads.
pub(crate) fn cpu() -> Result<Duration> {
    cpu_of("self")
}

/// Processor time of a process so far, all threads.
pub(super) fn cpu_of(process: &str) -> Result<Duration> {
    ticks(process, 11)
}

/// Processor time of all processes that this one started and waited for.
pub(super) fn cpu_of_children() -> Result<Duration> {
    ticks("self", 13)
}

/// Two fields that belong together: time in the program, and time in the kernel for it.
fn ticks(process: &str, first: usize) -> Result<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).context("no /proc here")?;
    // The program's name, in parentheses, may hold anything; the third field follows it.
    let (_, fields) = text.rsplit_once(')').context("/proc has no name")?;
    let ticks = fields.split_whitespace().skip(first).take(2);
    let ticks: u32 = ticks.filter_map(|it| it.parse::<u32>().ok()).sum();
    Ok(TICK * ticks)
}

/// Processor time of this process's living threads of that name so far.
pub(super) fn cpu_of_threads(name: &str) -> Result<Duration> {
    let mut all = Duration::ZERO;
    for task in std::fs::read_dir("/proc/self/task").context("no /proc here")? {
        let task = task?.path();
        // One that has ended meanwhile has no files any more.
        let Ok(found) = std::fs::read_to_string(task.join("comm")) else {
            continue;
        };
        if found.trim_end() != name {
            continue;
        }
        let text = std::fs::read_to_string(task.join("schedstat")).unwrap_or_default();
        let ran = text
            .split_whitespace()
            .next()
            .and_then(|it| it.parse().ok());
        all += Duration::from_nanos(ran.unwrap_or(0));
    }
    Ok(all)
}

/// Bytes that all write calls of this process have written so far, to files and elsewhere.
pub(super) fn bytes_written() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/io").context("no /proc/self/io here")?;
    let line = text.lines().find_map(|it| it.strip_prefix("wchar: "));
    let bytes = line.and_then(|it| it.trim().parse().ok());
    bytes.context("/proc/self/io has no wchar")
}

/// The most memory that this process ever had resident, in MiB.
pub(crate) fn memory_peak_mib() -> Result<u64> {
    Ok(memory_peak_kib()? / 1_024)
}

/// The same in KiB, since it was last forgotten.
pub(crate) fn memory_peak_kib() -> Result<u64> {
    status_kib("self", "VmHWM:")
}

/// From now on the peak is what the process has from now on.
pub(crate) fn forget_memory_peak() -> Result<()> {
    std::fs::write("/proc/self/clear_refs", "5").context("the peak cannot be forgotten here")
}

/// The memory that this process has resident, in MiB.
pub(super) fn memory_mib() -> Result<u64> {
    Ok(status_kib("self", "VmRSS:")? / 1_024)
}

/// The memory that a process has resident, in KiB: what is its own, and what of its files.
pub(super) fn memory_kib_of(process: &str) -> Result<(u64, u64)> {
    let own = status_kib(process, "RssAnon:")?;
    Ok((own, status_kib(process, "RssFile:")?))
}

fn status_kib(process: &str, name: &str) -> Result<u64> {
    let text =
        std::fs::read_to_string(format!("/proc/{process}/status")).context("no /proc here")?;
    let line = text.lines().find_map(|it| it.strip_prefix(name));
    let kib = line.and_then(|it| it.split_whitespace().next()?.parse::<u64>().ok());
    kib.with_context(|| format!("/proc has no {name}"))
}

/// The duration that `share` of them do not exceed. Zero when there are none.
pub(crate) fn percentile(durations: &mut [Duration], share: f64) -> Duration {
    durations.sort_unstable();
    let last = durations.len().saturating_sub(1);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in the list"
    )]
    let at = (last as f64 * share).round() as usize;
    durations.get(at).copied().unwrap_or_default()
}

/// In milliseconds.
pub(crate) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_places_in_the_sorted_list() {
        let mut list: Vec<Duration> = (1..=101).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile(&mut list, 0.5), Duration::from_millis(51));
        assert_eq!(percentile(&mut list, 0.99), Duration::from_millis(100));
        assert_eq!(percentile(&mut [], 0.5), Duration::ZERO);
    }

    #[test]
    fn a_process_that_works_uses_time_and_memory() {
        assert!(memory_peak_mib().unwrap() > 0);
        assert!(memory_kib_of("self").unwrap().0 > 0);
        assert!(cpu().is_ok());
        assert!(cpu_of_children().is_ok());
        assert!(cpu_of("0").is_err());
    }
}
