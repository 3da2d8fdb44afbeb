//! Notifies clients when the installed tools change.
//!
//! Any process may install one, so the log is followed: by the store's notification of appends where
//! there is one, and by polling. One task serves all connections of a server, because connections come
//! and go and a subscription to the store cannot be cancelled.

use kenning_engine::{Caller, Principal};
use kenning_tools::Board;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// Installing is rare, and a check is cheap but not free.
const EVERY_MIN: Duration = Duration::from_secs(1);

/// How often a listener checks whether its client is still connected.
const LOOK: Duration = Duration::from_secs(5);

/// Changes of the installed tools, for every connection of a server. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct ToolChanges(Arc<OnceLock<watch::Receiver<u64>>>);

impl ToolChanges {
    /// Listens for changes from now on. The first call starts the task that follows the log; it ends with
    /// the server.
    pub(crate) fn listen(&self, board: &Board, principal: &Principal) -> Listener {
        let receiver = self.0.get_or_init(|| {
            let (sender, receiver) = watch::channel(0);
            let task = Follower::new(board.clone(), principal.clone());
            tokio::spawn(task.run(sender));
            receiver
        });
        let mut receiver = receiver.clone();
        receiver.mark_unchanged();
        Listener(receiver)
    }
}

/// Waits for changes.
pub(crate) struct Listener(watch::Receiver<u64>);

impl Listener {
    /// Waits until the tools have changed since the last call. False when the client is gone, or when
    /// changes can no longer be followed.
    pub(crate) async fn changed(&mut self, is_there: impl Fn() -> bool) -> bool {
        loop {
            match tokio::time::timeout(LOOK, self.0.changed()).await {
                Ok(told) => return told.is_ok() && is_there(),
                Err(_) if !is_there() => return false,
                Err(_) => {}
            }
        }
    }
}

struct Follower {
    board: Board,
    principal: Principal,
    woken: Arc<Notify>,
    every: Duration,
}

impl Follower {
    fn new(board: Board, principal: Principal) -> Self {
        let woken = Arc::new(Notify::new());
        // Weak, because the store never drops its subscribers.
        let wake = Arc::downgrade(&woken);
        let every = board.engine().on_append(Arc::new(move || {
            if let Some(wake) = wake.upgrade() {
                wake.notify_one();
            }
        }));
        Self {
            board,
            principal,
            woken,
            every: every.max(EVERY_MIN),
        }
    }

    async fn run(self, sender: watch::Sender<u64>) {
        let mut known = None;
        while !sender.is_closed() {
            let Some(now) = self.names().await else {
                return;
            };
            if known.as_ref().is_some_and(|it| *it != now) {
                sender.send_modify(|it| *it += 1);
            }
            known = Some(now);
            // Checks in both cases: a notification may be lost.
            let waited = tokio::time::timeout(self.every, self.woken.notified()).await;
            drop(waited);
        }
    }

    async fn names(&self) -> Option<Vec<String>> {
        let (board, principal) = (self.board.clone(), self.principal.clone());
        let names = tokio::task::spawn_blocking(move || {
            let tools = board.installed(&Caller::new(principal));
            let names = tools
                .into_iter()
                .map(|tool| format!("{} {} {}", tool.name, tool.description, tool.input_schema));
            names.collect()
        });
        names.await.ok()
    }
}
