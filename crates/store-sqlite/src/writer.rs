//! The writer thread commits the writes of many callers together.
//!
//! A sync of the disk costs more than many writes. So the writer takes whatever callers have queued,
//! runs each in its own savepoint, and commits them together; a call that fails or panics loses
//! its savepoint and nothing else.
//!
//! On a full disk, an I/O error or out of memory SQLite may roll back the whole transaction by itself.
//! From then on a savepoint would be a separate transaction, so the writer checks after every call
//! whether its transaction is still open, and fails the whole group if it is not.

use crate::{error, migrate, tx::Tx};
use kenning_core::{Code, Error, Result, Space};
use kenning_store::{Wake, WriteWork};
use rusqlite::Connection;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A group is committed when it has this many calls …
const GROUP_CALLS_MAX: usize = 512;
/// … or has kept other processes out for this long.
const GROUP_TIME_MAX: Duration = Duration::from_millis(20);

/// Functions to call after a commit.
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

/// A waiting caller, and its result.
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
            .map_err(|cause| {
                Error::unavailable("the writer thread could not be started").because(cause)
            })?;
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
            // A writer that panicked has already printed its message.
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
    if let Err(newer) = migrate::check_version(connection) {
        roll_back(connection);
        answer(vec![(first.reply, Err(newer))]);
        return;
    }
    let began = Instant::now();
    let mut replies = Vec::new();
    let mut next = Some(first);
    while let Some(job) = next.take() {
        match one(connection, &job.space, job.work) {
            Ok(result) => replies.push((job.reply, result)),
            Err(lost) => {
                replies.push((job.reply, Ok(())));
                roll_back(connection);
                answer_all(replies, &lost);
                return;
            }
        }
        if replies.len() < GROUP_CALLS_MAX && began.elapsed() < GROUP_TIME_MAX {
            next = next_job(jobs, &mut replies, began);
        }
    }
    // No caller is answered before the disk has confirmed the commit.
    match connection.execute_batch("COMMIT") {
        Ok(()) => {
            answer(replies);
            wakes.call();
        }
        Err(cause) if error::leaves_the_disk_unknown(&cause) => stop_the_process(&cause),
        Err(cause) => {
            // The disk is full, and the log holds no commit record: nothing of this group was stored.
            roll_back(connection);
            answer_all(replies, &error::from_sqlite(cause));
        }
    }
}

/// Ends the transaction without keeping anything, if SQLite has not done so already.
fn roll_back(connection: &Connection) {
    if !connection.is_autocommit()
        && let Err(cause) = connection.execute_batch("ROLLBACK")
    {
        stop_the_process(&cause);
    }
}

/// Nothing of this group was kept, so every caller of it gets this error. That includes a call that was
/// refused: it may have been refused because of what another call of the group wrote.
fn answer_all(replies: Vec<Reply>, reason: &Error) {
    let hint = reason.hint.as_deref().unwrap_or("call again");
    let again = || Err(Error::new(reason.code, reason.message.clone()).hint(hint));
    answer(
        replies
            .into_iter()
            .map(|(reply, _)| (reply, again()))
            .collect(),
    );
}

/// Runs one call in its savepoint. The outer error fails the whole group: its transaction cannot go on.
fn one(
    connection: &Connection,
    space: &Space,
    work: WriteWork,
) -> std::result::Result<Result<()>, Error> {
    run_cached(connection, "SAVEPOINT call").map_err(unusable_transaction)?;
    let mut tx = Tx::new(connection, space);
    let result = catch_unwind(AssertUnwindSafe(|| work(&mut tx)));
    let result = result.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        Err(Error::internal("a write panicked and was rolled back").because(text))
    });
    if connection.is_autocommit() {
        // SQLite rolled back the transaction: the savepoint and all calls before this one are gone.
        let reason = match result {
            Err(error) if error.code == Code::Unavailable => error,
            _ => Error::unavailable("SQLite rolled back the transaction"),
        };
        return Err(reason);
    }
    let ended = if result.is_ok() {
        run_cached(connection, "RELEASE call")
    } else {
        connection.execute_batch("ROLLBACK TO call; RELEASE call")
    };
    ended.map_err(unusable_transaction)?;
    Ok(result)
}

/// A savepoint that can be neither begun nor ended leaves the transaction in an unknown state.
fn unusable_transaction(cause: rusqlite::Error) -> Error {
    let error = error::from_sqlite(cause);
    match error.code {
        Code::Unavailable => error,
        _ => Error::unavailable("SQLite rolled back the transaction").because(error),
    }
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

/// After a failed commit or sync the state on disk is unknown until the file is opened again.
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

/// Deliberately broken, to prove that the crash test works: callers are answered at once, and the commit
/// comes later. A caller that makes two writes for one answer has both in the same group. With this, that
/// test must fail.
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
    use crate::connection;
    use kenning_core::{Hash, Hlc, Kind, NodeId, SeededRandom};
    use kenning_store::{Node, Passage, ReadTx, Row, Table, WriteTx};

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

    fn words(tx: &dyn ReadTx) -> Vec<String> {
        let mut words = Vec::new();
        tx.scan(Table::Passages, &mut |row| {
            if let Row::Passage(it) = row {
                words.push(it.passage.tokens);
            }
            Ok(())
        })
        .unwrap();
        words
    }

    fn create(directory: &std::path::Path) -> Connection {
        let mut connection = connection::open(&directory.join("test.db")).unwrap();
        migrate::run(&mut connection).unwrap();
        connection
    }

    /// Runs these in one group; gives the connection to look at afterwards.
    fn in_one_group(directory: &std::path::Path, calls: Vec<WriteWork>) -> Connection {
        let connection = create(directory);
        answers_of_groups(&connection, calls);
        connection
    }

    /// Runs these in as many groups as it takes; gives their answers.
    fn answers_of_groups(connection: &Connection, calls: Vec<WriteWork>) -> Vec<Result<()>> {
        let (sender, jobs) = channel();
        let mut answers = Vec::new();
        for work in calls {
            let (reply, answer) = sync_channel(1);
            let space = Space::default();
            sender.send(Job { space, work, reply }).unwrap();
            answers.push(answer);
        }
        drop(sender);
        run(connection, &jobs, &Wakes::default());
        answers.iter().map(|it| it.try_recv().unwrap()).collect()
    }

    fn set(key: &'static str, n_bytes: usize) -> WriteWork {
        Box::new(move |tx| tx.set("bucket", key, &vec![7; n_bytes]))
    }

    fn keys(connection: &Connection) -> Vec<String> {
        let rows = Tx::new(connection, &Space::default())
            .list("bucket")
            .unwrap();
        rows.into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn a_full_disk_in_the_middle_of_a_group_lets_no_call_of_it_commit_alone() {
        let directory = tempfile::tempdir().unwrap();
        let connection = create(directory.path());
        let n_pages: i64 = connection
            .pragma_query_value(None, "page_count", |row| row.get(0))
            .unwrap();
        let limit = |n: i64| {
            connection
                .pragma_update_and_check(None, "max_page_count", n, |row| row.get::<_, i64>(0))
                .unwrap()
        };
        limit(n_pages + 4);
        let calls: Vec<WriteWork> = vec![
            set("before", 10),
            Box::new(|tx| {
                tx.set("bucket", "refused", b"")?;
                Err(Error::conflict("no"))
            }),
            set("too large", 1_000_000),
        ];
        for answer in answers_of_groups(&connection, calls) {
            let error = answer.unwrap_err();
            assert_eq!(error.code, Code::Unavailable, "{error}");
            assert_eq!(error.message, "the disk is full");
        }
        assert_eq!(keys(&connection), [""; 0]);
        let after = answers_of_groups(&connection, vec![set("after", 10)]);
        assert!(after.iter().all(Result::is_ok), "{after:?}");
        limit(1_000_000);
        let after = answers_of_groups(&connection, vec![set("large", 1_000_000)]);
        assert!(after.iter().all(Result::is_ok), "{after:?}");
        assert_eq!(keys(&connection), ["after", "large"]);
    }

    #[test]
    fn a_call_that_hides_a_rollback_by_sqlite_fails_with_its_group() {
        let directory = tempfile::tempdir().unwrap();
        let connection = create(directory.path());
        connection
            .execute_batch(
                "CREATE TRIGGER faulty BEFORE INSERT ON kv WHEN NEW.key = 'rolls back'
                 BEGIN SELECT RAISE(ROLLBACK, 'on purpose'); END",
            )
            .unwrap();
        let calls: Vec<WriteWork> = vec![
            set("before", 10),
            Box::new(|tx| {
                assert!(tx.set("bucket", "rolls back", b"").is_err());
                Ok(())
            }),
            set("after", 10),
        ];
        let answers = answers_of_groups(&connection, calls);
        assert_eq!(
            answers
                .iter()
                .map(|answer| answer.as_ref().err().map(|it| it.code))
                .collect::<Vec<_>>(),
            [Some(Code::Unavailable), Some(Code::Unavailable), None],
            "the third call is in a group of its own"
        );
        assert_eq!(keys(&connection), ["after"]);
    }

    #[test]
    fn a_writer_stops_writing_once_a_newer_program_has_upgraded_the_store() {
        let directory = tempfile::tempdir().unwrap();
        let connection = create(directory.path());
        let newer = connection::open(&directory.path().join("test.db")).unwrap();
        newer.pragma_update(None, "user_version", 999).unwrap();
        let answers = answers_of_groups(&connection, vec![set("old", 10), set("old too", 10)]);
        for answer in answers {
            let error = answer.unwrap_err();
            assert_eq!(error.code, Code::Unavailable);
            assert!(error.message.contains("version 999"), "{error}");
        }
        assert_eq!(keys(&connection), [""; 0]);
        assert!(connection.is_autocommit());
    }

    #[test]
    fn a_call_that_fails_takes_nothing_of_its_group_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let calls: Vec<WriteWork> = vec![
            Box::new(|tx| put(tx, 1, "kept")),
            Box::new(|tx| {
                put(tx, 2, "failed")?;
                assert_eq!(words(tx), ["kept", "failed"]);
                Err(Error::conflict("no"))
            }),
            Box::new(|tx| {
                assert_eq!(words(tx), ["kept"]);
                put(tx, 3, "later")
            }),
            Box::new(|tx| {
                put(tx, 4, "panicked")?;
                panic!("this is rolled back too");
            }),
        ];
        let connection = in_one_group(directory.path(), calls);
        let space = Space::default();
        assert_eq!(words(&Tx::new(&connection, &space)), ["kept", "later"]);
    }
}
