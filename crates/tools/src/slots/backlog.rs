//! How long a line may be.
//!
//! A burst waits as long as it takes. But where a line has not been empty for a while, more comes than can be
//! done, and a long line only makes everybody wait: then it is cut to what is done in about half a second. So
//! when the crowd goes away, whoever calls next soon has an answer.

use super::WAITING_OF_ONE_MAX;
use std::time::{Duration, Instant};

/// A line that was empty within this time is a burst.
const BURST: Duration = Duration::from_secs(2);
/// How long whoever is last in line waits, once it is none.
const WAIT: Duration = Duration::from_millis(500);
/// No line is cut to less, however slow its calls are.
const LINE_MIN: usize = 64;
/// How long calls are counted to tell how many are done.
const WINDOW: Duration = Duration::from_millis(500);

/// A line that is not empty.
#[derive(Debug)]
pub(super) struct Backlog {
    since: Instant,
    window: Instant,
    n_done: u32,
    /// As far as it was counted.
    per_second: Option<f64>,
}

impl Backlog {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            since: now,
            window: now,
            n_done: 0,
            per_second: None,
        }
    }

    /// A call of this principal has ended.
    pub(super) fn count(&mut self, now: Instant) {
        self.n_done += 1;
        let time = now.saturating_duration_since(self.window);
        if time >= WINDOW {
            self.per_second = Some(f64::from(self.n_done) / time.as_secs_f64());
            (self.window, self.n_done) = (now, 0);
        }
    }

    /// How many may wait.
    pub(super) fn line_max(&self, now: Instant) -> usize {
        let is_burst = now.saturating_duration_since(self.since) < BURST;
        match self.per_second {
            Some(n) if !is_burst => {
                let n = (n * WAIT.as_secs_f64()) as usize;
                n.clamp(LINE_MIN, WAITING_OF_ONE_MAX)
            }
            _ => WAITING_OF_ONE_MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_waits_and_a_line_that_stays_is_cut_to_what_is_done_in_half_a_second() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        for (per_second, expected) in [(400, 200), (10, LINE_MIN), (9_000, WAITING_OF_ONE_MAX)] {
            let mut backlog = Backlog::new(start);
            assert_eq!(
                backlog.line_max(at(60_000)),
                WAITING_OF_ONE_MAX,
                "not known"
            );
            for n in 0..per_second * 3 {
                backlog.count(start + Duration::from_secs(1) * n / per_second);
            }
            assert_eq!(backlog.line_max(at(1_900)), WAITING_OF_ONE_MAX, "a burst");
            let cut = backlog.line_max(at(3_000));
            assert!(cut.abs_diff(expected) <= 4, "{cut} at {per_second}");
        }
    }
}
