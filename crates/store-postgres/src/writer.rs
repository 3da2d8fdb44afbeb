//! The writer thread commits the writes of many callers together, as the SQLite backend does.
//!
//! A group belongs to one space and begins by taking that space's lock in the database, so that the log
//! has one order whichever server appends. A call that fails or panics loses its savepoint and
//! nothing else.

use crate::builder::Builder;
use crate::connect::Connection;
use crate::listen::CHANNEL;
use crate::migrate;
use crate::pool::{Pool, Taken};
use crate::tx::Tx;
use kenning_core::{Code, Error, Result, Space};
use kenning_store::{WriteWork, patience};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A group is committed when it has this many calls …
const GROUP_CALLS_MAX: usize = 256;
/// … or has kept other servers out for this long.
const GROUP_TIME_MAX: Duration = Duration::from_millis(50);

/// Set explicitly: with a stricter default the snapshot would be taken before the space's lock, and show
/// an outdated log.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// Waits for the space's lock, and reads the version of the store. The version cannot change before
/// this transaction ends: a migration needs an exclusive lock on its table.
const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0)),
    (SELECT version FROM kenning_version)";

struct Job {
    space: Space,
    work: WriteWork,
    reply: SyncSender<Result<()>>,
    /// Set by the writer when it begins the job, or by the caller when it gives up, whichever is first.
    is_decided: Arc<AtomicBool>,
}

impl Job {
    /// Whether it may begin. A caller that gave up was told that nothing was written, and may have
    /// released its locks.
    fn begin(&self) -> bool {
        !self.is_decided.swap(true, Ordering::SeqCst)
    }
}

type Replies = Vec<(SyncSender<Result<()>>, Result<()>)>;

pub(crate) struct Writer {
    jobs: Mutex<Option<Sender<Job>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(pool: Arc<Pool>, builder: Builder) -> Result<Self> {
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new()
            .name("kenning-writer".to_owned())
            .spawn(move || run(&pool, &builder, &receiver))
            .map_err(|cause| {
                Error::unavailable("the writer thread could not be started").because(cause)
            })?;
        Ok(Self {
            jobs: Mutex::new(Some(sender)),
            thread: Some(thread),
        })
    }

    /// Runs the work and waits until it is durable, but not longer than `wait`.
    pub(crate) fn run(&self, space: Space, work: WriteWork, wait: Option<Duration>) -> Result<()> {
        let (reply, answer) = sync_channel(1);
        let is_decided = Arc::new(AtomicBool::new(false));
        let gone = || Error::unavailable("the store is closing");
        self.jobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .ok_or_else(gone)?
            .send(Job {
                space,
                work,
                reply,
                is_decided: is_decided.clone(),
            })
            .map_err(|_| gone())?;
        let Some(wait) = wait else {
            return answer.recv().map_err(|_| gone())?;
        };
        // A little longer than the database is given, so that its own answer comes first.
        let wait = patience::left(wait + Duration::from_millis(700));
        match answer.recv_timeout(wait) {
            Ok(result) => result,
            Err(RecvTimeoutError::Disconnected) => Err(gone()),
            Err(RecvTimeoutError::Timeout) if !is_decided.swap(true, Ordering::SeqCst) => {
                Err(Error::unavailable("the database did not answer in time")
                    .hint("nothing was written; call again"))
            }
            Err(RecvTimeoutError::Timeout) => {
                Err(Error::unavailable("the database did not answer in time")
                    .hint("check whether the write took effect, then call again"))
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
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

/// Updates the planner's statistics if this process has written more rows than they show. Plans for empty
/// tables read a whole space for one row. The database updates them by itself too, a minute later.
const ANALYZE: &str = "DO $$ BEGIN
    IF (SELECT reltuples FROM pg_class WHERE oid = 'nodes'::regclass) * 2 < $n THEN
        ANALYZE nodes, passages, names, edges, node_history;
    END IF;
END $$";

/// The number of written nodes after which statistics are first updated; then again after eight times as many.
const ANALYZE_FROM: u64 = 200;

fn run(pool: &Pool, builder: &Builder, jobs: &Receiver<Job>) {
    let mut waiting: VecDeque<Job> = VecDeque::new();
    let (mut n_nodes, mut count_at) = (0, ANALYZE_FROM);
    while let Some(first) = waiting.pop_front().or_else(|| jobs.recv().ok()) {
        if first.is_decided.load(Ordering::SeqCst) {
            continue;
        }
        waiting.extend(jobs.try_iter());
        let replies = match pool.take() {
            Err(error) => {
                // Callers that queued meanwhile waited for the same database, and fail together instead of one by one.
                waiting.extend(jobs.try_iter());
                let all = std::iter::once(first).chain(waiting.drain(..));
                all.map(|it| (it.reply, Err(same(&error)))).collect()
            }
            Ok(mut taken) => {
                let (replies, healthy) = group(&mut taken, first, &mut waiting, jobs);
                if let Ok(connection) = taken.get() {
                    builder.wrote(connection.n_vectors.swap(0, Ordering::Relaxed));
                    n_nodes += connection.n_nodes.swap(0, Ordering::Relaxed);
                    if healthy && n_nodes >= count_at {
                        count_at = n_nodes.saturating_mul(8);
                        // A role without the permission leaves it to the database.
                        drop(connection.batch(&ANALYZE.replace("$n", &n_nodes.to_string())));
                    }
                }
                if healthy {
                    taken.give_back();
                }
                replies
            }
        };
        for (reply, result) in replies {
            // A caller that no longer waits has lost its answer, not its write.
            drop(reply.send(result));
        }
    }
}

/// Runs one group. Returns the answers, and whether the connection can be used again.
fn group(
    taken: &mut Taken<'_>,
    first: Job,
    waiting: &mut VecDeque<Job>,
    jobs: &Receiver<Job>,
) -> (Replies, bool) {
    let space = first.space.clone();
    if let Err(error) = taken.get().and_then(|it| it.batch(BEGIN)) {
        return (vec![(first.reply, Err(error))], false);
    }
    taken.begun();
    let connection = match taken.get() {
        Ok(connection) => connection,
        Err(error) => return (vec![(first.reply, Err(error))], false),
    };
    let locked = connection
        .query(LOCK, &[&space.as_str()])
        .and_then(|rows| migrate::check_version(rows.first().and_then(|it| it.get(1))));
    if let Err(error) = locked {
        let healthy = connection.batch("ROLLBACK").is_ok();
        return (vec![(first.reply, Err(error))], healthy);
    }
    let began = Instant::now();
    let mut replies: Replies = Vec::new();
    let mut next = Some(first);
    while let Some(job) = next.take() {
        if job.begin() {
            let (result, healthy) = one(connection, &space, job.work);
            replies.push((job.reply, result));
            if !healthy {
                // The whole transaction is gone with its connection, the calls before this one too.
                return (
                    fail_all(replies, &Error::unavailable("the database is gone")),
                    false,
                );
            }
        }
        if replies.len() < GROUP_CALLS_MAX && began.elapsed() < GROUP_TIME_MAX {
            waiting.extend(jobs.try_iter());
            let same = waiting.iter().position(|it| it.space == space);
            next = same.and_then(|at| waiting.remove(at));
        }
    }
    // No caller is answered before the database has confirmed the commit.
    match connection.batch(&format!("SELECT pg_notify('{CHANNEL}', ''); COMMIT")) {
        Ok(()) => (replies, true),
        Err(error) => (fail_all(replies, &error), false),
    }
}

/// The same error for one more caller.
fn same(error: &Error) -> Error {
    let same = Error::new(error.code, error.message.clone());
    match &error.hint {
        Some(hint) => same.hint(hint.clone()),
        None => same,
    }
}

/// The answers after a transaction that did not commit. If the connection broke during the commit, the
/// outcome is unknown, and the caller is told to check.
fn fail_all(replies: Replies, reason: &Error) -> Replies {
    let error = |own: Result<()>| match own {
        // A call that was refused for its own reason is still refused for it.
        Err(own) if own.code != Code::Unavailable => Err(own),
        _ => Err(Error::unavailable(reason.message.clone())
            .hint("check whether the write took effect, then call again")),
    };
    replies
        .into_iter()
        .map(|(reply, own)| (reply, error(own)))
        .collect()
}

/// Runs one call in its savepoint. False when the connection can no longer be used.
fn one(connection: &Connection, space: &Space, work: WriteWork) -> (Result<()>, bool) {
    if let Err(error) = connection.batch("SAVEPOINT call") {
        return (Err(error), false);
    }
    let result = catch_unwind(AssertUnwindSafe(|| work(&mut Tx::new(connection, space))));
    let own = result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()));
        let error = Error::internal("a write panicked and was rolled back");
        Err(error.because(text.unwrap_or_default()))
    });
    // Deferred changes came before whatever the call failed with, so their error comes first.
    let result = connection.flush().and(own);
    connection.forget();
    let end = if result.is_ok() {
        "RELEASE call"
    } else {
        "ROLLBACK TO call; RELEASE call"
    };
    match connection.batch(end) {
        Ok(()) => (result, true),
        Err(error) => (result.and(Err(error)), false),
    }
}
