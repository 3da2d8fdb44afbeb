//! Follows the trees: after each burst of changes the graph is made what the files say.
//!
//! What changed is not taken from the events, which may be cut short or come while a folder is being
//! moved: a run looks at the whole tree, which costs little where nothing changed. After the last run
//! of a burst there is one more, a moment later, for what came while the first one looked.

use super::Generate;
use crate::{Caller, Engine, Principal};
use kenning_core::Result;
use kenning_vault::Watch;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How to watch.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// The folder of documents, relative to the project.
    pub docs_path: String,
    /// So long it must be quiet before a run …
    pub quiet: Duration,
    /// … but no longer than this after the first change.
    pub patience: Duration,
    /// How often the tree is looked at where the kernel cannot tell.
    pub poll: Duration,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            docs_path: "docs".to_owned(),
            quiet: Duration::from_millis(150),
            patience: Duration::from_secs(2),
            poll: Duration::from_secs(5),
        }
    }
}

/// What a watcher tells.
type Told = dyn Fn(&Result<super::Generated>) + Send;

enum Signal {
    Changed,
    Stop,
}

/// Follows the trees until it is dropped.
pub struct GraphWatch {
    sender: SyncSender<Signal>,
    thread: Option<JoinHandle<()>>,
}

impl GraphWatch {
    /// Generates once, then after each change. `told` hears of every run that did something.
    pub fn start(
        engine: &Arc<Engine>,
        principal: Principal,
        options: WatchOptions,
        told: impl Fn(&Result<super::Generated>) + Send + 'static,
    ) -> Result<Self> {
        let space = principal.space.clone();
        let project = engine.project.open(&space)?;
        let vault = (engine.vault.is_named() && *engine.vault.space() == space)
            .then(|| engine.vault.open(&space))
            .transpose()?;
        // One place is enough: a signal that is waiting stands for all that follow.
        let (sender, receiver) = sync_channel(1);
        let wake = sender.clone();
        let docs = if matches!(options.docs_path.as_str(), "" | ".") {
            project.clone()
        } else {
            project.subdir(&options.docs_path)?
        };
        let trees: Vec<_> = [Some(&docs), vault.as_ref()]
            .into_iter()
            .flatten()
            .collect();
        let watch = Watch::start(&trees, move || drop(wake.try_send(Signal::Changed)));
        if let Some(fault) = watch.fault() {
            tracing::warn!(
                "the tree is looked at every {:?}, because it cannot be watched: {fault}",
                options.poll
            );
        }
        let engine = Arc::downgrade(engine);
        let thread = std::thread::spawn(move || {
            follow(&engine, &principal, &options, &watch, &receiver, &told);
        });
        Ok(Self {
            sender,
            thread: Some(thread),
        })
    }
}

impl Drop for GraphWatch {
    fn drop(&mut self) {
        // A full channel means that the thread is about to look at it again.
        while let Err(std::sync::mpsc::TrySendError::Full(_)) = self.sender.try_send(Signal::Stop) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn follow(
    engine: &Weak<Engine>,
    principal: &Principal,
    options: &WatchOptions,
    watch: &Watch,
    receiver: &Receiver<Signal>,
    told: &Told,
) {
    let mut is_settled = false;
    let mut is_first = true;
    loop {
        let wait = match (is_first, is_settled, watch.is_live()) {
            (true, ..) => Duration::ZERO,
            (_, false, _) => options.patience,
            (_, true, false) => options.poll,
            (_, true, true) => Duration::from_secs(3_600),
        };
        match receiver.recv_timeout(wait) {
            Ok(Signal::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            Ok(Signal::Changed) => {
                is_settled = false;
                if !rest(receiver, options) {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => is_settled = !is_first,
        }
        let Some(engine) = engine.upgrade() else {
            return;
        };
        let mut caller = Caller::new(principal.clone());
        caller.deadline = Instant::now() + Duration::from_secs(24 * 3_600);
        let what = Generate {
            docs_path: options.docs_path.clone(),
            incremental: !is_first,
            force: false,
        };
        let done = engine.generate_graph(&caller, &what);
        is_first = false;
        match &done {
            Ok(it)
                if it.nodes_added + it.nodes_updated + it.nodes_removed + it.edges_created == 0 => {
            }
            Err(error) => {
                tracing::warn!("the graph does not follow its files: {error}");
                told(&done);
            }
            Ok(_) => told(&done),
        }
    }
}

/// Waits until it is quiet; false if there is nothing to wait for any more.
fn rest(receiver: &Receiver<Signal>, options: &WatchOptions) -> bool {
    let until = Instant::now() + options.patience;
    loop {
        match receiver.recv_timeout(options.quiet) {
            Ok(Signal::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
            Ok(Signal::Changed) if Instant::now() < until => {}
            Ok(Signal::Changed) | Err(RecvTimeoutError::Timeout) => return true,
        }
    }
}
