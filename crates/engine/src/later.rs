//! What is written afterwards: events of reads, access counts, links between alike memories.
//!
//! Nobody waits for these, and a process that dies loses the last of them. They go to one thread,
//! which lets them gather for a moment and writes them in one transaction: a commit costs more than
//! what is in it. A process that only reads writes none.

use kenning_audit::{Log, Tx};
use kenning_core::{Result, Space};
use std::sync::mpsc::{Receiver, Sender, channel};
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
    /// Somebody waits: what has gathered is written now.
    Hurry,
}

/// How many jobs are not done.
#[derive(Default)]
struct Pending {
    count: Mutex<usize>,
    less: Condvar,
}

impl Pending {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn done(&self, n: usize) {
        *self.lock() -= n;
        self.less.notify_all();
    }
}

/// Writes afterwards. Dropping it waits until everything is written.
pub(crate) struct Later {
    thread: Mutex<Option<(Sender<Job>, JoinHandle<()>)>>,
    log: Log,
    read_only: bool,
    pending: Arc<Pending>,
}

impl Later {
    pub(crate) fn new(log: Log, read_only: bool) -> Self {
        Self {
            thread: Mutex::new(None),
            log,
            read_only,
            pending: Arc::default(),
        }
    }

    /// Does it some time, unless nothing may be written.
    pub(crate) fn write(
        &self,
        space: &Space,
        work: impl FnOnce(&mut Tx<'_>) -> Result<()> + Send + 'static,
    ) {
        self.send(Job::Write(space.clone(), Box::new(work)));
    }

    /// The same for work that is not one transaction.
    pub(crate) fn run(&self, work: impl FnOnce(&Log) -> Result<()> + Send + 'static) {
        self.send(Job::Run(Box::new(work)));
    }

    fn send(&self, job: Job) {
        if self.read_only {
            return;
        }
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        // A process that never reads needs no thread for it.
        let (sender, _) = thread.get_or_insert_with(|| {
            let (sender, receiver) = channel();
            let (log, pending) = (self.log.clone(), Arc::clone(&self.pending));
            let thread = std::thread::spawn(move || work_off(&log, &receiver, &pending));
            (sender, thread)
        });
        *self.pending.lock() += 1;
        // The thread ends only after the sender is gone.
        drop(sender.send(job));
    }

    /// Waits until everything so far is written.
    pub(crate) fn flush(&self) {
        if *self.pending.lock() == 0 {
            return;
        }
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((sender, _)) = &*thread {
            drop(sender.send(Job::Hurry));
        }
        drop(thread);
        let mut count = self.pending.lock();
        while *count > 0 {
            let less = self.pending.less.wait(count);
            count = less.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        let thread = self
            .thread
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((sender, thread)) = thread.take() {
            drop(sender);
            drop(thread.join());
        }
    }
}

fn work_off(log: &Log, receiver: &Receiver<Job>, pending: &Pending) {
    let mut next = receiver.recv().ok();
    while let Some(job) = next.take() {
        match job {
            Job::Hurry => {}
            Job::Run(work) => {
                if let Err(error) = work(log) {
                    tracing::warn!("background work was not done: {error}");
                }
                pending.done(1);
            }
            Job::Write(space, work) => {
                let mut group = vec![work];
                let until = Instant::now() + GATHER;
                while group.len() < GROUP_MAX && next.is_none() {
                    let left = until.saturating_duration_since(Instant::now());
                    match receiver.recv_timeout(left) {
                        Ok(Job::Write(same, work)) if same == space => group.push(work),
                        Ok(Job::Hurry) | Err(_) => break,
                        Ok(different) => next = Some(different),
                    }
                }
                let n = group.len();
                let written = log.write(&space, move |tx| {
                    group.into_iter().try_for_each(|it| it(tx))
                });
                if let Err(error) = written {
                    tracing::warn!("space {space}: {n} events of reads were not written: {error}");
                }
                pending.done(n);
            }
        }
        next = next.or_else(|| receiver.recv().ok());
    }
}
