//! The writer thread: many callers, one commit.
//!
//! A sync of the disk costs more than many writes. So the writer takes whatever callers have queued,
//! runs each in a savepoint of its own, and commits them together; a call that fails or panics loses
//! its savepoint and nothing else.

use crate::pending::Pending;
use crate::{error, tx::Tx};
use kenning_core::{Error, Result, Space};
use kenning_store::{Wake, WriteWork};
use rusqlite::Connection;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A group is committed when it has so many calls …
const GROUP_CALLS_MAX: usize = 512;
/// … or has kept other processes out for so long.
const GROUP_TIME_MAX: Duration = Duration::from_millis(20);

/// Who wants to know of a commit.
#[derive(Clone, Default)]
pub(crate) struct Wakes(Arc<Mutex<Vec<Wake>>>);

impl Wakes {
    pub(crate) fn add(&self, wake: Wake) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(wake);
    }

    fn call(&self) {
        let wakes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        wakes.iter().for_each(|wake| wake());
    }
}

struct Job {
    space: Space,
    work: WriteWork,
    reply: SyncSender<Result<()>>,
}

/// Who waits, and for what.
type Reply = (SyncSender<Result<()>>, Result<()>);

pub(crate) struct Writer {
    jobs: Mutex<Option<Sender<Job>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(connection: Connection, wakes: Wakes) -> Result<Self> {
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new()
            .name("kenning-writer".to_owned())
            .spawn(move || run(&connection, &receiver, &wakes))
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

fn run(connection: &Connection, jobs: &Receiver<Job>, wakes: &Wakes) {
    while let Ok(first) = jobs.recv() {
        group(connection, first, jobs, wakes);
    }
}

/// Runs one group and answers its callers.
fn group(connection: &Connection, first: Job, jobs: &Receiver<Job>, wakes: &Wakes) {
    if let Err(cause) = connection.execute_batch("BEGIN IMMEDIATE") {
        answer(vec![(first.reply, Err(error::from_sqlite(cause)))]);
        return;
    }
    let began = Instant::now();
    let pending = Pending::default();
    let mut replies = Vec::new();
    let mut next = Some(first);
    while let Some(job) = next.take() {
        let result = one(connection, &pending, &job.space, job.work);
        replies.push((job.reply, result));
        if replies.len() < GROUP_CALLS_MAX && began.elapsed() < GROUP_TIME_MAX {
            next = next_job(jobs, &mut replies, began);
        }
    }
    // Nobody is answered before the disk has answered.
    let told = pending.tell(connection);
    let indexed = told.is_ok();
    match told.and_then(|()| connection.execute_batch("COMMIT")) {
        Ok(()) => {
            answer(replies);
            wakes.call();
        }
        Err(cause) if indexed && error::leaves_the_disk_unknown(&cause) => stop_the_process(&cause),
        Err(cause) => {
            // The disk is full or the index refused, and the log holds no commit record: nothing of
            // this group is there.
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
fn one(connection: &Connection, pending: &Pending, space: &Space, work: WriteWork) -> Result<()> {
    run_cached(connection, "SAVEPOINT call").map_err(error::from_sqlite)?;
    let mark = pending.mark();
    let mut tx = Tx::new(connection, space, pending);
    let result = catch_unwind(AssertUnwindSafe(|| work(&mut tx)));
    let result = result.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        Err(Error::internal("a write panicked and was rolled back").because(text))
    });
    let ended = if result.is_ok() {
        pending.keep();
        run_cached(connection, "RELEASE call")
    } else {
        pending.forget(&mark);
        connection.execute_batch("ROLLBACK TO call; RELEASE call")
    };
    ended.map_err(error::from_sqlite).and(result)
}

fn run_cached(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}

fn answer(replies: Vec<Reply>) {
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

/// A call that is waiting already joins the group.
#[cfg(not(feature = "sabotage"))]
fn next_job(jobs: &Receiver<Job>, _replies: &mut Vec<Reply>, _began: Instant) -> Option<Job> {
    jobs.try_recv().ok()
}

/// The saboteur of the crash test: callers are answered at once, and the commit comes later. A caller
/// that makes two writes for one answer has both in the same group. With this, that test must fail.
#[cfg(feature = "sabotage")]
fn next_job(jobs: &Receiver<Job>, replies: &mut Vec<Reply>, began: Instant) -> Option<Job> {
    answer(std::mem::take(replies));
    let rest = GROUP_TIME_MAX.saturating_sub(began.elapsed());
    jobs.recv_timeout(rest).ok()
}

#[cfg(test)]
#[cfg(not(feature = "sabotage"))]
mod tests {
    use super::*;
    use crate::{connection, migrate};
    use kenning_core::{Hash, Hlc, Kind, NodeId, SeededRandom};
    use kenning_store::{Node, NodeFilter, Passage, ReadTx, TextQuery, WriteTx};

    fn put(tx: &mut dyn WriteTx, n: u64, word: &str) -> Result<()> {
        let at = Hlc::from_ms(n);
        let id = NodeId::new(at, &SeededRandom::new(n));
        tx.put_node(&Node {
            id,
            kind: Kind::Document,
            project: String::new(),
            key: word.to_owned(),
            title: String::new(),
            body: word.to_owned(),
            props: serde_json::Map::new(),
            created: at,
            updated: at,
            hash: Hash::of(word.as_bytes()),
            rev: 1,
        })?;
        let passage = Passage {
            n: 0,
            text: word.to_owned(),
            start: 0,
            tokens: word.to_owned(),
            title_tokens: String::new(),
        };
        tx.put_passages(id, &[passage])
    }

    fn hits(tx: &dyn ReadTx, word: &str) -> usize {
        let query = TextQuery {
            tokens: vec![word.to_owned()],
            filter: NodeFilter::default(),
            limit: 10,
        };
        tx.find_text(&query).unwrap().len()
    }

    /// Runs these in one group; gives the connection to look at afterwards.
    fn in_one_group(directory: &std::path::Path, calls: Vec<WriteWork>) -> Connection {
        let mut connection = connection::open(&directory.join("test.db")).unwrap();
        migrate::run(&mut connection).unwrap();
        let (sender, jobs) = channel();
        let mut answers = Vec::new();
        for work in calls {
            let (reply, answer) = sync_channel(1);
            let space = Space::default();
            sender.send(Job { space, work, reply }).unwrap();
            answers.push(answer);
        }
        let first = jobs.recv().unwrap();
        group(&connection, first, &jobs, &Wakes::default());
        assert!(answers.iter().all(|it| it.try_recv().is_ok()));
        connection
    }

    #[test]
    fn a_call_that_fails_takes_nothing_of_its_group_out_of_the_index() {
        let directory = tempfile::tempdir().unwrap();
        let calls: Vec<WriteWork> = vec![
            Box::new(|tx| put(tx, 1, "kept")),
            Box::new(|tx| {
                put(tx, 2, "failed")?;
                // The search tells the index of both calls, inside the savepoint that is rolled back.
                assert_eq!((hits(tx, "kept"), hits(tx, "failed")), (1, 1));
                Err(Error::conflict("no"))
            }),
            Box::new(|tx| {
                assert_eq!((hits(tx, "kept"), hits(tx, "failed")), (1, 0));
                put(tx, 3, "later")
            }),
            Box::new(|tx| {
                put(tx, 4, "panicked")?;
                panic!("this is rolled back too");
            }),
        ];
        let connection = in_one_group(directory.path(), calls);
        let (space, pending) = (Space::default(), Pending::default());
        let tx = Tx::new(&connection, &space, &pending);
        for (word, expected) in [("kept", 1), ("later", 1), ("failed", 0), ("panicked", 0)] {
            assert_eq!(hits(&tx, word), expected, "{word}");
        }
    }

    #[test]
    fn passages_replaced_in_one_group_are_found_by_their_last_words() {
        let directory = tempfile::tempdir().unwrap();
        let replace = |word: &'static str| -> WriteWork {
            Box::new(move |tx| {
                let id = NodeId::new(Hlc::from_ms(1), &SeededRandom::new(1));
                let passage = Passage {
                    n: 0,
                    text: word.to_owned(),
                    start: 0,
                    tokens: word.to_owned(),
                    title_tokens: String::new(),
                };
                tx.put_passages(id, &[passage])
            })
        };
        let calls: Vec<WriteWork> = vec![
            Box::new(|tx| put(tx, 1, "first")),
            replace("second"),
            replace("third"),
        ];
        let connection = in_one_group(directory.path(), calls);
        let (space, pending) = (Space::default(), Pending::default());
        let tx = Tx::new(&connection, &space, &pending);
        for (word, expected) in [("first", 0), ("second", 0), ("third", 1)] {
            assert_eq!(hits(&tx, word), expected, "{word}");
        }
    }
}
