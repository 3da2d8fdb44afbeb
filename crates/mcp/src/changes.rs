//! Notifies clients when the installed tools change.
//!
//! Any process may install one, so the log is followed: by the store's notification of appends where
//! there is one, and by polling. One task serves all connections of a server, because connections come
//! and go and a subscription to the store cannot be cancelled.

use kenning_engine::kami::ToolsStamp;
use kenning_engine::{Caller, Principal};
use kenning_tools::Board;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// Installing is rare, and a check is cheap but not free.
const EVERY_MIN: Duration = Duration::from_secs(1);

/// So long appends gather before they are looked at: a busy server appends many times a second, and every run
/// of a tool is an event.
const GATHER: Duration = Duration::from_millis(200);

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
        let mut known = Known::default();
        while !sender.is_closed() {
            let before = known.names.clone();
            let Some(now) = self.look(known).await else {
                return;
            };
            known = now;
            if before.is_some() && before != known.names {
                sender.send_modify(|n_changes| *n_changes += 1);
            }
            // Checks in both cases: a notification may be lost.
            let waited = tokio::time::timeout(self.every, self.woken.notified()).await;
            if waited.is_ok() {
                tokio::time::sleep(GATHER).await;
            }
        }
    }

    /// The tools as they are now. As long as their stamp is the same, they are not even listed.
    async fn look(&self, known: Known) -> Option<Known> {
        let (board, caller) = (self.board.clone(), Caller::new(self.principal.clone()));
        let looked = tokio::task::spawn_blocking(move || {
            let stamp = board.engine().kami().tools_stamp(&caller).ok();
            if stamp.is_some() && stamp == known.stamp {
                return known;
            }
            let tools = board.installed(&caller).into_iter();
            let names =
                tools.map(|it| format!("{} {} {}", it.name, it.description, it.input_schema));
            Known {
                stamp,
                names: Some(names.collect()),
            }
        });
        looked.await.ok()
    }
}

/// The tools when they were last looked at.
#[derive(Default)]
struct Known {
    stamp: Option<ToolsStamp>,
    /// What a client reads of each.
    names: Option<Arc<[String]>>,
}
