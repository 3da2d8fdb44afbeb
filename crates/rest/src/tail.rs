//! Waiting for the log to grow.

use kenning_tools::Board;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Says when it is worth reading the log again.
#[derive(Clone)]
pub(crate) struct Tail {
    appended: watch::Receiver<()>,
    /// How often to read anyway: the store does not notify about every append.
    poll: Duration,
}

impl Tail {
    pub(crate) fn of(board: &Board) -> Self {
        let (sender, appended) = watch::channel(());
        let poll = board.engine().on_append(Arc::new(move || {
            // Without followers there is nobody to tell.
            let _nobody = sender.send(());
        }));
        Self { appended, poll }
    }

    /// One that never notifies.
    #[cfg(test)]
    pub(crate) fn silent() -> Self {
        Self {
            appended: watch::channel(()).1,
            poll: Duration::from_secs(1),
        }
    }

    pub(crate) async fn wait(&mut self) {
        // Time is up, something was appended, or the store is closing: read in any case.
        drop(tokio::time::timeout(self.poll, self.appended.changed()).await);
    }
}
