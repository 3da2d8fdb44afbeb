//! Tells when something in a tree may have changed.
//!
//! It does not tell what: a burst of events can be cut short by the kernel, so whoever is told looks
//! at the whole tree. Where the kernel cannot watch so many folders, [`Watch::is_live`] says so, and
//! the owner looks from time to time.

use crate::dir::Dir;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Watches trees until it is dropped.
pub struct Watch {
    // Dropping it ends the watching.
    _watcher: Option<RecommendedWatcher>,
    live: Arc<AtomicBool>,
    fault: Option<String>,
}

impl Watch {
    /// Calls `changed`, from a thread of its own, after every event in these trees. It must not wait.
    pub fn start(trees: &[&Dir], changed: impl Fn() + Send + Sync + 'static) -> Self {
        let live = Arc::new(AtomicBool::new(true));
        let theirs = Arc::clone(&live);
        let watcher =
            notify::recommended_watcher(move |event: notify::Result<Event>| match event {
                Ok(event) if is_a_look(&event) => {}
                Ok(_) => changed(),
                Err(_) => {
                    // A folder that could not be added: from now on looking is the only way.
                    theirs.store(false, Ordering::Relaxed);
                    changed();
                }
            });
        let watched = watcher.and_then(|mut watcher| {
            for tree in trees {
                watcher.watch(tree.path(), RecursiveMode::Recursive)?;
            }
            Ok(watcher)
        });
        match watched {
            Ok(watcher) => Self {
                _watcher: Some(watcher),
                live,
                fault: None,
            },
            Err(error) => Self {
                _watcher: None,
                live: Arc::new(AtomicBool::new(false)),
                fault: Some(error.to_string()),
            },
        }
    }

    /// Whether every event will be told.
    pub fn is_live(&self) -> bool {
        self.live.load(Ordering::Relaxed)
    }

    /// Why not.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
}

/// Reading a file is an event too.
fn is_a_look(event: &Event) -> bool {
    matches!(event.kind, EventKind::Access(_)) && !event.need_rescan()
}
