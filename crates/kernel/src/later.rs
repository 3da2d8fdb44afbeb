//! What is written afterwards: events of reads, access counts, links between alike memories.
//!
//! Nobody waits for these, and a process that dies loses the last of them. They go to one thread,
//! which lets them gather for a moment and writes them in one transaction: a commit costs more than
//! what is in it. The thread is woken when the first arrives and not by every one. A process that only
//! reads writes none.
//!
//! Work that panics is lost, as work that fails is, and the thread goes on with the rest.

use kenning_audit::{Log, Tx};
use kenning_core::{Error, Result, Space};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A piece of work in a transaction of its space.
type Work = Box<dyn FnOnce(&mut Tx<'_>) -> Result<()> + Send>;

/// Work with transactions of its own.
type Errand = Box<dyn FnOnce(&Log) -> Result<()> + Send>;

/// So many pieces share a transaction.
const GROUP_MAX: usize = 64;

/// So long a piece waits for others.
const GATHER: Duration = Duration::from_millis(20);

enum Job {
    /// In a transaction, together with others.
    Write(Space, Work),
    /// By itself, with transactions of its own.
    Run(Errand),
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Jobs that are not done, those that are being done included.
    n_pending: usize,
    /// Somebody waits: nothing gathers any longer.
    is_urgent: bool,
    is_closed: bool,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    /// There is something to do, or reason to do it now.
    more: Condvar,
    /// Something was done.
    less: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn done(&self, n: usize) {
        let mut state = self.lock();
        state.n_pending -= n;
        if state.n_pending == 0 {
            state.is_urgent = false;
        }
        self.less.notify_all();
    }

    /// The next job, and those behind it that can share its transaction; none when no more come.
    fn next(&self) -> Option<(Job, Vec<Work>)> {
        let mut state = self.lock();
        while state.jobs.is_empty() {
            if state.is_closed {
                return None;
            }
            let woken = self.more.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        if matches!(state.jobs.front(), Some(Job::Write(..))) {
            state = self.gather(state);
        }
        let first = state.jobs.pop_front()?;
        let mut others = Vec::new();
        if let Job::Write(space, _) = &first {
            while others.len() + 1 < GROUP_MAX
                && matches!(state.jobs.front(), Some(Job::Write(it, _)) if it == space)
            {
                if let Some(Job::Write(_, work)) = state.jobs.pop_front() {
                    others.push(work);
                }
            }
        }
        Some((first, others))
    }

    /// Waits a moment for others, unless there are enough or somebody is in a hurry.
    fn gather<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let until = Instant::now() + GATHER;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let is_enough = state.jobs.len() >= GROUP_MAX || state.is_urgent || state.is_closed;
            if is_enough || left.is_zero() {
                return state;
            }
            let woken = self.more.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Writes afterwards. Dropping it waits until everything is written.
pub struct Later {
    thread: Mutex<Option<JoinHandle<()>>>,
    log: Log,
    read_only: bool,
    queue: Arc<Queue>,
}

impl Later {
    pub fn new(log: Log, read_only: bool) -> Self {
        Self {
            thread: Mutex::new(None),
            log,
            read_only,
            queue: Arc::default(),
        }
    }

    /// Does it some time, unless nothing may be written.
    pub fn write(
        &self,
        space: &Space,
        work: impl FnOnce(&mut Tx<'_>) -> Result<()> + Send + 'static,
    ) {
        self.send(Job::Write(space.clone(), Box::new(work)));
    }

    /// The same for work that is not one transaction.
    pub fn run(&self, work: impl FnOnce(&Log) -> Result<()> + Send + 'static) {
        self.send(Job::Run(Box::new(work)));
    }

    fn send(&self, job: Job) {
        if self.read_only {
            return;
        }
        // A process that never reads needs no thread for it.
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let (log, queue) = (self.log.clone(), Arc::clone(&self.queue));
            let named = std::thread::Builder::new().name("later".to_owned());
            match named.spawn(move || work_off(&log, &queue)) {
                Ok(started) => *thread = Some(started),
                // Nobody would do it: then it is lost, as in a process that dies, and the next may have a thread.
                Err(error) => {
                    tracing::warn!("background work was not done: no thread for it: {error}");
                    return;
                }
            }
        }
        drop(thread);
        let mut state = self.queue.lock();
        state.jobs.push_back(job);
        state.n_pending += 1;
        let n = state.jobs.len();
        drop(state);
        if n == 1 || n >= GROUP_MAX {
            self.queue.more.notify_one();
        }
    }

    /// Waits until everything so far is written.
    pub fn flush(&self) {
        let mut state = self.queue.lock();
        while state.n_pending > 0 {
            state.is_urgent = true;
            self.queue.more.notify_one();
            let less = self.queue.less.wait(state);
            state = less.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        self.queue.lock().is_closed = true;
        self.queue.more.notify_one();
        let thread = self.thread.get_mut();
        if let Some(thread) = thread.unwrap_or_else(PoisonError::into_inner).take() {
            drop(thread.join());
        }
    }
}

fn work_off(log: &Log, queue: &Queue) {
    while let Some((job, others)) = queue.next() {
        let n = 1 + others.len();
        match job {
            Job::Run(work) => {
                if let Err(error) = contained(|| work(log)) {
                    tracing::warn!("background work was not done: {error}");
                }
            }
            Job::Write(space, work) => {
                let written = contained(|| {
                    log.write(&space, move |tx| {
                        let all = std::iter::once(work).chain(others);
                        all.into_iter().try_for_each(|it| it(tx))
                    })
                });
                if let Err(error) = written {
                    tracing::warn!("space {space}: {n} events of reads were not written: {error}");
                }
            }
        }
        queue.done(n);
    }
}

/// A panic as an error. What the work had of the store is rolled back; it shares nothing else that is changed
/// halfway: what the engine keeps in memory is behind locks that begin anew after a panic.
pub fn contained<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().map(ToString::to_string);
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Error::internal("it panicked").because(said.unwrap_or_default()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_audit::Signer;
    use kenning_core::{FixedClock, SeededRandom};
    use kenning_store::Store;
    use kenning_store_sqlite::Sqlite;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn work_that_panics_ends_neither_the_thread_nor_who_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(Sqlite::open(folder.path()).unwrap());
        let random = Arc::new(SeededRandom::new(1));
        let signer = Signer::generate(&*random);
        let log = Log::new(store, signer, Arc::new(FixedClock::at(1)), random);
        let (later, space) = (Later::new(log.clone(), false), Space::default());
        let done = Arc::new(AtomicU32::new(0));
        for _ in 0..3 {
            later.run(|_| panic!("on purpose"));
            later.write(&space, |_| panic!("on purpose"));
            later.flush();
            let (run, written) = (Arc::clone(&done), Arc::clone(&done));
            later.run(move |_| {
                run.fetch_add(1, Ordering::Relaxed);
                Ok(())
            });
            later.write(&space, move |tx| {
                written.fetch_add(1, Ordering::Relaxed);
                tx.record("Recalled", serde_json::json!({})).map(drop)
            });
            later.flush();
        }
        assert_eq!(done.load(Ordering::Relaxed), 6);
        let head = log.read(&space, |tx| tx.head()).unwrap();
        assert_eq!(head.map(|it| it.seq), Some(3));
    }
}
