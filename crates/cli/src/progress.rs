//! A progress bar for long work.

use crate::output;
use indicatif::{ProgressBar, ProgressStyle};
use kenning_engine::Caller;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often progress is told where no bar can be shown.
const TELL: Duration = Duration::from_secs(10);

/// A progress bar on standard error; invisible if that is not a terminal.
pub(crate) fn bar(what: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_message(what);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}: {human_pos}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// The caller, with its progress shown by the bar.
pub(crate) fn watched(mut caller: Caller, bar: &ProgressBar) -> Caller {
    let bar = bar.clone();
    let told = Mutex::new(Instant::now());
    caller.progress = Some(Arc::new(move |done, total: Option<f64>, what: &str| {
        if bar.is_hidden() {
            // Where there is no terminal, a line now and then.
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.elapsed() >= TELL {
                *told = Instant::now();
                let of = total.map(|it| format!(" of {it}")).unwrap_or_default();
                output::remark(&format!("{what}: {done}{of}"));
            }
            return;
        }
        #[expect(
            clippy::cast_sign_loss,
            clippy::cast_possible_truncation,
            reason = "a count"
        )]
        let count = |it: f64| it as u64;
        if let Some(total) = total.map(count)
            && bar.length() != Some(total)
        {
            bar.set_length(total);
            if let Ok(style) = ProgressStyle::with_template("{spinner} {bar:40} {percent}% {msg}") {
                bar.set_style(style);
            }
        }
        bar.set_message(what.to_owned());
        bar.set_position(count(done));
    }));
    // A person who waits decides how long.
    caller.deadline += Duration::from_secs(365 * 24 * 60 * 60);
    caller
}
