//! Stored indexes: one file for each space in the data directory, written by a thread of its own.
//!
//! A process that starts reads the file and adds what came after, instead of everything. The file is
//! derived and may be removed at any time. To copy and to write a large index takes a while, so nobody who
//! searches does it: an [`IndexWorker`] does.

use crate::worker::{Complaint, Signal, Worker, contained};
use kenning_audit::{Log, Tombstones};
use kenning_core::{Code, Space};
use kenning_search::{Keeper, Searcher, snapshot_seq};
use kenning_vault::Dir;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Larger than the index of some millions of passages.
const BYTES_MAX: u64 = 16 << 30;

/// The directory of the files.
const FOLDER: &str = "index";

/// So many times longer than it works the thread rests: whoever writes much gives it much to do.
const REST: u32 = 19;
const REST_MAX: Duration = Duration::from_secs(600);

/// What took longer than this is not done again when the process ends.
const LAST_MAX: Duration = Duration::from_millis(500);

/// How long the thread sleeps at most when nothing is asked for.
const SLEEP_MAX: Duration = Duration::from_secs(3_600);

pub(crate) struct IndexFiles {
    data: Dir,
    read_only: bool,
    asked: Arc<Asked>,
}

impl IndexFiles {
    pub(crate) fn new(data: Dir, read_only: bool, worker: &IndexWorker) -> Self {
        let asked = Arc::clone(&worker.0);
        Self {
            data,
            read_only,
            asked,
        }
    }
}

impl Keeper for IndexFiles {
    fn load(&self, space: &Space) -> Option<Vec<u8>> {
        self.data.read(&name(space), BYTES_MAX).ok()
    }

    fn save(&self, space: &Space, snapshot: Vec<u8>) {
        if self.read_only {
            return;
        }
        let written = self
            .data
            .private_subdir(FOLDER)
            .and_then(|_| self.data.write_private(&name(space), &snapshot));
        if let Err(error) = written {
            tracing::warn!("the index is not kept, and will be made again: {error}");
        }
        // Whoever erases removes the file after its commit. If that was before this was written, it is removed here.
        if self.is_older_than_erasure(space, &snapshot) {
            forget(&self.data, space);
        }
    }

    fn ask_to_tend(&self, space: &Space) {
        self.asked.ask(space);
    }
}

impl IndexFiles {
    fn is_older_than_erasure(&self, space: &Space, snapshot: &[u8]) -> bool {
        let Some((_, log)) = self.asked.whose.get() else {
            return false;
        };
        let last = log.read(space, |tx| Tombstones::of(tx).last());
        let taken = snapshot_seq(snapshot).unwrap_or(0);
        last.is_ok_and(|last| last > taken)
    }
}

/// Removes the stored index of a space: it may hold words of what was erased.
pub(crate) fn forget(data: &Dir, space: &Space) {
    match data.remove(&name(space)) {
        Err(error) if error.code != Code::NotFound => {
            tracing::warn!("the stored index of `{space}` could not be removed: {error}");
        }
        _ => {}
    }
}

fn name(space: &Space) -> String {
    format!("{FOLDER}/{space}.idx")
}

/// Tends indexes in the background. Dropping it waits for what is under way.
#[derive(Default)]
pub(crate) struct IndexWorker(Arc<Asked>);

impl IndexWorker {
    /// Whose indexes it tends.
    pub(crate) fn works_for(&self, searcher: &Arc<Searcher>, log: &Log) {
        let whose = (Arc::downgrade(searcher), log.clone());
        // There is one of each.
        drop(self.0.whose.set(whose));
    }
}

impl Drop for IndexWorker {
    fn drop(&mut self) {
        let worker = self.0.worker.lock();
        let worker = worker.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut worker) = worker {
            worker.end();
        }
    }
}

/// What the thread is asked for.
#[derive(Default)]
struct Asked {
    whose: OnceLock<(Weak<Searcher>, Log)>,
    queue: Arc<Queue>,
    signal: Arc<Signal>,
    /// Started by the first who asks: most processes end before there is anything to do.
    worker: Mutex<Option<Worker>>,
}

/// Spaces whose indexes are to be tended, each once.
#[derive(Default)]
struct Queue(Mutex<VecDeque<Space>>);

impl Queue {
    /// Whether it was not there yet.
    fn push(&self, space: &Space) -> bool {
        let mut spaces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !spaces.contains(space);
        if is_new {
            spaces.push_back(space.clone());
        }
        is_new
    }

    fn pop(&self) -> Option<Space> {
        let spaces = self.0.lock();
        spaces.unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Asked {
    fn ask(&self, space: &Space) {
        let Some((searcher, log)) = self.whose.get() else {
            return;
        };
        if !self.queue.push(space) {
            return;
        }
        let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        if !worker.as_ref().is_some_and(Worker::is_running) && !self.signal.is_stopped() {
            let (searcher, log) = (Weak::clone(searcher), log.clone());
            let queue = Arc::clone(&self.queue);
            let work = move |signal: &Signal| tend(&searcher, &log, &queue, signal);
            *worker = Some(Worker::start("index", Arc::clone(&self.signal), work));
        }
        drop(worker);
        self.signal.wake();
    }
}

fn tend(searcher: &Weak<Searcher>, log: &Log, queue: &Queue, signal: &Signal) {
    let mut seen = 0;
    let mut took = Duration::ZERO;
    let mut complaint = Complaint::default();
    loop {
        let is_stopped = signal.is_stopped();
        let Some(space) = queue.pop() else {
            if is_stopped {
                return;
            }
            signal.next(&mut seen, SLEEP_MAX);
            continue;
        };
        let Some(searcher) = searcher.upgrade() else {
            return;
        };
        if is_stopped && took > LAST_MAX {
            return;
        }
        let began = Instant::now();
        match contained(|| searcher.tend(&space, log, &|| signal.is_stopped())) {
            Ok(_) => complaint.clear(),
            Err(error) => drop(complaint.say("index", &error)),
        }
        took = began.elapsed();
        drop(searcher);
        signal.pause(took.saturating_mul(REST).min(REST_MAX));
    }
}
