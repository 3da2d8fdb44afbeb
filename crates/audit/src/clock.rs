//! The clock of a log, and whether it can be right.

use kenning_core::{Error, Hlc, HlcClock, Implausible, Result};
use std::sync::Arc;

/// The clock of the log.
pub type Clock = HlcClock<Arc<dyn kenning_core::Clock>>;

/// The time of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// Later than everything in the log.
    Onward,
    /// The time of this machine's clock, whatever the log says.
    Reset,
}

/// Whether a log whose latest event has this time may be written to with the clock of this machine.
pub(crate) fn check(clock: &Clock, latest: Hlc) -> Result<()> {
    let days = |ms: u64| ms / (24 * 60 * 60 * 1000);
    let (what, hint) = match clock.check(latest) {
        Ok(()) => return Ok(()),
        Err(Implausible::SeenAhead(ms)) => (
            format!(
                "the latest event is dated {} days after what this machine's clock says",
                days(ms)
            ),
            "set the clock of this machine; if it is right, the event came from a wrong clock: \
             `kenning audit reset-clock` lets the log go on at the right time",
        ),
        Err(Implausible::WallAhead(ms)) => (
            format!(
                "this machine's clock is {} days after the latest event",
                days(ms)
            ),
            "set the clock of this machine; if it is right, `kenning audit reset-clock` says so",
        ),
        Err(Implausible::WallBeyond) => (
            "this machine's clock is after the year 2100".to_owned(),
            "set the clock of this machine",
        ),
    };
    Err(Error::unavailable(format!("nothing is written: {what}")).hint(hint))
}
