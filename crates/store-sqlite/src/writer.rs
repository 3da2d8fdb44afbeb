//! The writer thread: many callers, one commit.
//!
//! A sync of the disk costs more than many writes. So the writer takes whatever callers have queued,
//! runs each in a savepoint of its own, and commits them together; a call that fails or panics loses
//! its savepoint and nothing else.

use crate::{error, tx::Tx};
use kenning_core::{Error, Result, Space};
use kenning_store::WriteWork;
use rusqlite::Connection;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A group is committed when it has so many calls …
const GROUP_CALLS_MAX: usize = 512;
/// … or has kept other processes out for so long.
const GROUP_TIME_MAX: Duration = Duration::from_millis(20);

struct Job {
    space: Space,
    work: WriteWork,
    reply: SyncSender<Result<()>>,
}

pub(crate) struct Writer {
    jobs: Mutex<Option<Sender<Job>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(connection: Connection) -> Result<Self> {
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new()
            .name("kenning-writer".to_owned())
            .spawn(move || run(&connection, &receiver))
            .map_err(|cause| Error::unavailable("no thread for the writer").because(cause))?;
        Ok(Self {
            jobs: Mutex::new(Some(sender)),
            thread: Some(thread),
        })
    }

    pub(crate) fn run(&self, space: Space, work: WriteWork) -> Result<()> {
        let (reply, answer) = sync_channel(1);
        let gone = || Error::unavailable("the store is closing");
        self.jobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .ok_or_else(gone)?
            .send(Job { space, work, reply })
            .map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Closing the channel ends the thread after the jobs that are already in it.
        self.jobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = self.thread.take() {
            // A writer that panicked has answered nobody; there is nothing to add here.
            drop(thread.join());
        }
    }
}

fn run(connection: &Connection, jobs: &Receiver<Job>) {
    while let Ok(first) = jobs.recv() {
        group(connection, first, jobs);
    }
}

/// Runs one group and answers its callers.
fn group(connection: &Connection, first: Job, jobs: &Receiver<Job>) {
    if let Err(cause) = connection.execute_batch("BEGIN IMMEDIATE") {
        answer(vec![(first.reply, Err(error::from_sqlite(cause)))]);
        return;
    }
    let began = Instant::now();
    let mut replies = Vec::new();
    let mut next = Some(first);
    while let Some(job) = next.take() {
        let result = one(connection, &job.space, job.work);
        replies.push((job.reply, result));
        if replies.len() < GROUP_CALLS_MAX && began.elapsed() < GROUP_TIME_MAX {
            next = jobs.try_recv().ok();
        }
    }
    #[cfg(feature = "sabotage")]
    let replies = acknowledge_before_commit(replies);
    // Nobody is answered before the disk has answered.
    match connection.execute_batch("COMMIT") {
        Ok(()) => answer(replies),
        Err(cause) if error::leaves_the_disk_unknown(&cause) => stop_the_process(&cause),
        Err(cause) => {
            // The disk is full, and the log holds no commit record: nothing of this group is there.
            if !connection.is_autocommit()
                && let Err(cause) = connection.execute_batch("ROLLBACK")
            {
                stop_the_process(&cause);
            }
            let reason = error::from_sqlite(cause);
            let again = || Err(Error::new(reason.code, reason.message.clone()).hint("call again"));
            answer(
                replies
                    .into_iter()
                    .map(|(reply, _)| (reply, again()))
                    .collect(),
            );
        }
    }
}

/// Runs one call in its savepoint.
fn one(connection: &Connection, space: &Space, work: WriteWork) -> Result<()> {
    connection
        .execute_batch("SAVEPOINT call")
        .map_err(error::from_sqlite)?;
    let result = catch_unwind(AssertUnwindSafe(|| work(&mut Tx::new(connection, space))));
    let result = result.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        Err(Error::internal("a write panicked and was rolled back").because(text))
    });
    let end = if result.is_ok() {
        "RELEASE call"
    } else {
        "ROLLBACK TO call; RELEASE call"
    };
    connection
        .execute_batch(end)
        .map_err(error::from_sqlite)
        .and(result)
}

fn answer(replies: Vec<(SyncSender<Result<()>>, Result<()>)>) {
    for (reply, result) in replies {
        // A caller that no longer waits has lost its answer, not its write.
        drop(reply.send(result));
    }
}

/// After a failed commit or sync the state on disk is unknown, and only a reopen can tell.
#[expect(
    clippy::exit,
    reason = "going on could acknowledge what is not on disk"
)]
fn stop_the_process(cause: &rusqlite::Error) -> ! {
    tracing::error!("commit failed, the state on disk is unknown: {cause}");
    std::process::exit(i32::from(kenning_core::Code::Corrupt.row().exit));
}

/// The saboteur of the crash test: with this in place, that test must fail.
#[cfg(feature = "sabotage")]
fn acknowledge_before_commit(
    replies: Vec<(SyncSender<Result<()>>, Result<()>)>,
) -> Vec<(SyncSender<Result<()>>, Result<()>)> {
    answer(replies);
    std::thread::sleep(Duration::from_millis(20));
    Vec::new()
}
