//! Tells when the installed tools are others than before.
//!
//! Any process may install one, so the log is followed: it wakes whoever waits where the store hears
//! of an append, and otherwise is looked at from time to time.

use kenning_engine::{Caller, Principal};
use kenning_tools::Board;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// Waits for changes of the installed tools.
pub(crate) struct ToolChanges {
    board: Board,
    principal: Principal,
    woken: Arc<Notify>,
    every: Duration,
    known: Option<Vec<String>>,
}

impl ToolChanges {
    pub(crate) fn new(board: Board, principal: Principal) -> Self {
        let woken = Arc::new(Notify::new());
        // Weak, because the store keeps what it was given, and connections come and go.
        let wake: Weak<Notify> = Arc::downgrade(&woken);
        let every = board.engine().on_append(Arc::new(move || {
            if let Some(wake) = wake.upgrade() {
                wake.notify_one();
            }
        }));
        Self {
            board,
            principal,
            woken,
            // Installing is rare: looking costs little, but not nothing.
            every: every.max(Duration::from_secs(1)),
            known: None,
        }
    }

    /// Waits until the tools are others than when it was last called. False when that can no longer
    /// be told.
    pub(crate) async fn changed(&mut self) -> bool {
        loop {
            let Some(now) = self.names().await else {
                return false;
            };
            match &self.known {
                None => self.known = Some(now),
                Some(known) if *known != now => {
                    self.known = Some(now);
                    return true;
                }
                Some(_) => {}
            }
            let waited = tokio::time::timeout(self.every, self.woken.notified()).await;
            // Woken or not, it is looked at.
            drop(waited);
        }
    }

    async fn names(&self) -> Option<Vec<String>> {
        let (board, principal) = (self.board.clone(), self.principal.clone());
        let names = tokio::task::spawn_blocking(move || {
            let tools = board.installed(&Caller::new(principal));
            let names = tools
                .into_iter()
                .map(|it| format!("{} {} {}", it.name, it.description, it.input_schema));
            names.collect()
        });
        names.await.ok()
    }
}
