//! A progress bar on long work, when somebody watches.

use indicatif::{ProgressBar, ProgressStyle};
use kenning_engine::Caller;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

/// A bar on standard error; invisible when that is no terminal.
pub(crate) fn bar(what: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_message(what);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}: {human_pos} ({per_sec})") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// The caller, telling the bar how far it is.
pub(crate) fn watched(mut caller: Caller, bar: &ProgressBar) -> Caller {
    let bar = bar.clone();
    caller.progress = Some(Arc::new(move |done, _, _| {
        #[expect(
            clippy::cast_sign_loss,
            clippy::cast_possible_truncation,
            reason = "a count"
        )]
        bar.set_position(done as u64);
    }));
    // A person who waits decides how long.
    caller.deadline += Duration::from_secs(365 * 24 * 60 * 60);
    caller
}
