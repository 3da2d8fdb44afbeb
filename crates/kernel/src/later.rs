//! What is written afterwards: events of reads, access counts, links between alike memories.
//!
//! Nobody waits for these, and a process that dies loses the last of them. They go to one thread,
//! which lets them gather for a moment and writes them in one transaction: a commit costs more than
//! what is in it. The thread is woken when the first arrives and not by every one. A process that only
//! reads writes none.
//!
//! Work that panics is lost, as work that fails is, and the thread goes on with the rest.

use crate::worker::{Signal, Worker, contained};
use kenning_audit::{Log, Tx};
use kenning_core::{Result, Space};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A piece of work in a transaction of its space.
type Work = Box<dyn FnOnce(&mut Tx<'_>) -> Result<()> + Send>;

/// Work with transactions of its own.
type Errand = Box<dyn FnOnce(&Log) -> Result<()> + Send>;

/// So many pieces share a transaction.
const GROUP_MAX: usize = 64;

/// So long a piece waits for others.
const GATHER: Duration = Duration::from_millis(20);

/// How long the thread sleeps at most when nothing is due.
const SLEEP_MAX: Duration = Duration::from_secs(3_600);

enum Job {
    /// In a transaction, together with others.
    Write(Space, Work),
    /// By itself, with transactions of its own.
    Run(Errand),
}

#[derive(Default)]
struct State {
    /// In the order in which they came, each with the moment from which it need not wait for others.
    jobs: VecDeque<(Instant, Job)>,
    /// What is not to be done before its moment.
    delayed: Vec<(Instant, Errand)>,
    /// Jobs that are not done, those that are being done included.
    n_pending: usize,
    /// Somebody waits: nothing gathers any longer.
    is_urgent: bool,
}

impl State {
    /// The next job that is due, and those behind it that can share its transaction.
    fn next(&mut self, now: Instant, is_urgent: bool) -> Option<(Job, Vec<Work>)> {
        let is_due = |at: Instant| is_urgent || at <= now;
        let is_full = self.jobs.len() >= GROUP_MAX;
        if !self.jobs.front().is_some_and(|it| is_full || is_due(it.0)) {
            let n = self.delayed.iter().position(|it| is_due(it.0))?;
            return Some((Job::Run(self.delayed.remove(n).1), Vec::new()));
        }
        let (_, first) = self.jobs.pop_front()?;
        let mut others = Vec::new();
        if let Job::Write(space, _) = &first {
            while others.len() + 1 < GROUP_MAX
                && matches!(self.jobs.front(), Some((_, Job::Write(it, _))) if it == space)
            {
                if let Some((_, Job::Write(_, work))) = self.jobs.pop_front() {
                    others.push(work);
                }
            }
        }
        Some((first, others))
    }

    /// How long nothing is due.
    fn pause(&self, now: Instant) -> Duration {
        let delayed = self.delayed.iter().map(|it| it.0);
        let first = self.jobs.front().map(|it| it.0).into_iter().chain(delayed);
        let left = first.min().map(|it| it.saturating_duration_since(now));
        left.unwrap_or(SLEEP_MAX)
    }
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
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

    /// Waits for the next job that is due. None when it is to stop and everything is done.
    fn next(&self, signal: &Signal, seen: &mut u64) -> Option<(Job, Vec<Work>)> {
        loop {
            let is_stopped = signal.is_stopped();
            let mut state = self.lock();
            let (now, is_urgent) = (Instant::now(), state.is_urgent || is_stopped);
            if let Some(next) = state.next(now, is_urgent) {
                return Some(next);
            }
            if is_stopped {
                return None;
            }
            let pause = state.pause(now);
            drop(state);
            signal.next(seen, pause);
        }
    }
}

/// Writes afterwards. Dropping it waits until everything is written.
pub struct Later {
    worker: Mutex<Option<Worker>>,
    signal: Arc<Signal>,
    log: Log,
    read_only: bool,
    queue: Arc<Queue>,
}

impl Later {
    pub fn new(log: Log, read_only: bool) -> Self {
        Self {
            worker: Mutex::new(None),
            signal: Arc::default(),
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
        let job = Job::Write(space.clone(), Box::new(work));
        self.send(|state| state.jobs.push_back((Instant::now() + GATHER, job)));
    }

    /// The same for work that is not one transaction.
    pub fn run(&self, work: impl FnOnce(&Log) -> Result<()> + Send + 'static) {
        let job = Job::Run(Box::new(work));
        self.send(|state| state.jobs.push_back((Instant::now(), job)));
    }

    /// The same after so long, or when somebody waits for everything, or at the end.
    pub fn run_after(
        &self,
        delay: Duration,
        work: impl FnOnce(&Log) -> Result<()> + Send + 'static,
    ) {
        let due = Instant::now() + delay;
        self.send(|state| state.delayed.push((due, Box::new(work))));
    }

    fn send(&self, push: impl FnOnce(&mut State)) {
        if self.read_only {
            return;
        }
        // A process that never reads needs no thread for it.
        let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        let started = worker.get_or_insert_with(|| {
            let (log, queue) = (self.log.clone(), Arc::clone(&self.queue));
            let signal = Arc::clone(&self.signal);
            Worker::start("later", signal, move |signal| {
                work_off(&log, &queue, signal);
            })
        });
        if !started.is_running() {
            // Without a thread the work is lost, as if the process had died here. The next work may get a thread.
            tracing::warn!("background work was not done: no thread for it");
            *worker = None;
            return;
        }
        drop(worker);
        let mut state = self.queue.lock();
        push(&mut state);
        state.n_pending += 1;
        let n = state.jobs.len();
        let is_first = n + state.delayed.len() == 1;
        drop(state);
        // Whoever is awake, or sleeps until the first is due, need not be told of each.
        if is_first || n <= 1 || n >= GROUP_MAX {
            self.signal.wake();
        }
    }

    /// Waits until everything so far is written.
    pub fn flush(&self) {
        let mut state = self.queue.lock();
        while state.n_pending > 0 {
            state.is_urgent = true;
            self.signal.wake();
            let less = self.queue.less.wait(state);
            state = less.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        let worker = self.worker.get_mut();
        if let Some(worker) = worker.unwrap_or_else(PoisonError::into_inner) {
            worker.end();
        }
    }
}

fn work_off(log: &Log, queue: &Queue, signal: &Signal) {
    let mut seen = 0;
    while let Some((job, others)) = queue.next(signal, &mut seen) {
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

    #[test]
    fn what_is_delayed_is_done_when_it_is_due_when_somebody_waits_and_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(Sqlite::open(folder.path()).unwrap());
        let random = Arc::new(SeededRandom::new(1));
        let signer = Signer::generate(&*random);
        let log = Log::new(store, signer, Arc::new(FixedClock::at(1)), random);
        let later = Later::new(log, false);
        let (said, heard) = std::sync::mpsc::channel();
        let say = |word: &'static str| {
            let said = said.clone();
            move |_: &Log| {
                said.send(word).unwrap();
                Ok(())
            }
        };
        let long = Duration::from_secs(600);
        later.run_after(long, say("waited for"));
        later.run(say("at once"));
        assert_eq!(heard.recv().unwrap(), "at once");
        assert!(heard.try_recv().is_err());
        later.flush();
        assert_eq!(heard.try_recv().unwrap(), "waited for");
        later.run_after(Duration::from_millis(1), say("due"));
        assert_eq!(heard.recv().unwrap(), "due");
        later.run_after(long, say("at the end"));
        drop(later);
        assert_eq!(heard.try_recv().unwrap(), "at the end");
    }
}
