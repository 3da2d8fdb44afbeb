//! The disk is full, or fails, at each call of the kernel that a write needs.
//!
//! The real program serves over HTTP and is watched ([`kenning_testing_disk`]). For each sort of write and
//! each k, the k-th call that needs room (or writes, reads, syncs) fails. Then:
//!
//! - a full disk is answered as done or as `unavailable`; reads go on meanwhile, and once there is room
//!   writes go on, in the same process;
//! - an error of the disk is answered the same way, or ends the process with 9;
//! - a failed sync always ends the process with 9;
//! - whatever happened, the next start is clean: nothing acknowledged is lost, nothing disagrees.
//!
//! What is on disk is looked at after each group of cases, and each group begins with the same small store, a
//! copy of the one that was prepared: so no case pays for those before it.

use super::binary::{Binary, Place};
use super::calls::{Called, Known, Maker, SORTS, Sort, Write};
use super::client::{Answer, Client, Server, Transport};
use super::verdict::Attempt;
use super::{TOLD_MAX, verdict};
use crate::options::Options;
use anyhow::{Context as _, Result, bail, ensure};
use kenning_testing_disk::{Disk, Fault, Happened, Kind, Settings, image, start};
use serde_json::json;
use std::collections::BTreeMap;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// No write needs more calls than this; one that does is a loop.
const CALLS_MAX: u64 = 2_000;
/// The exit code when the state on disk is unknown.
const UNKNOWN: i32 = 9;
/// Cases after which everything on disk is looked at, and the store is made what it was.
const GROUP: u64 = 16;
/// The time in which a process must have ended.
const END_MAX: Duration = Duration::from_secs(10);

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Full,
    Write,
    Read,
    Sync,
}

const TROUBLES: &[(&str, Trouble)] = &[
    ("full", Trouble::Full),
    ("write", Trouble::Write),
    ("read", Trouble::Read),
    ("sync", Trouble::Sync),
];

impl Trouble {
    fn at(self, k: u64) -> Fault {
        match self {
            Self::Full => Fault::full(k),
            Self::Write => Fault::broken(Kind::Write, k),
            Self::Read => Fault::broken(Kind::Read, k),
            Self::Sync => Fault::broken(Kind::Sync, k),
        }
    }
}

/// The results of all cases.
#[derive(Default)]
struct Tally {
    n_cases: u64,
    n_done: u64,
    n_unavailable: u64,
    n_ended: u64,
    failures: Vec<String>,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.n_cases += other.n_cases;
        self.n_done += other.n_done;
        self.n_unavailable += other.n_unavailable;
        self.n_ended += other.n_ended;
        self.failures.extend(other.failures.iter().cloned());
    }
}

/// What is tested in one place: how the program starts, or one sort of write.
#[derive(Clone, Copy, Debug)]
enum Task {
    Starts,
    Writes(Sort),
}

pub(super) fn run(options: &Options) -> Result<()> {
    options.only(&["seed", "binary", "trouble", "every", "jobs"])?;
    let seed = super::seed(options)?;
    let every: u64 = options.value("every", 1)?;
    ensure!(every > 0, "`--every 0` is none of them");
    let n_jobs: usize = options.value("jobs", 2)?;
    ensure!(n_jobs > 0, "`--jobs 0` does nothing");
    let asked = options.text("trouble");
    let troubles: Vec<_> = TROUBLES
        .iter()
        .filter(|it| asked.is_none_or(|asked| asked == it.0))
        .collect();
    if troubles.is_empty() {
        bail!("`--trouble`: full, write, read or sync");
    }
    let binary = Binary::find(options, false)?;
    let sorts = SORTS.iter().chain(&[Sort::Ingest]).copied();
    let tasks: Vec<Task> = [Task::Starts]
        .into_iter()
        .chain(sorts.map(Task::Writes))
        .collect();
    let all: Vec<(Trouble, Task)> = troubles
        .iter()
        .flat_map(|it| tasks.iter().map(|task| (it.1, *task)))
        .collect();
    let done = all_tasks(&binary, &all, seed, every, n_jobs)?;

    let (mut n_cases, mut n_failures) = (0, 0);
    for (name, trouble) in troubles {
        let of_it = done.iter().zip(&all).filter(|it| it.1.0 == *trouble);
        let mut tally = Tally::default();
        of_it.for_each(|it| tally.add(it.0));
        println!(
            "disk {name}: {} cases, {} failures, {} done all the same, {} unavailable, {} ended, \
             seed {seed}",
            tally.n_cases,
            tally.failures.len(),
            tally.n_done,
            tally.n_unavailable,
            tally.n_ended,
        );
        for sentence in tally.failures.iter().take(TOLD_MAX) {
            println!("{sentence}");
        }
        n_cases += tally.n_cases;
        n_failures += tally.failures.len();
    }
    println!("disk: {n_cases} cases, {n_failures} failures, --every {every}, seed {seed}");
    ensure!(n_cases > 0, "nothing was tested");
    ensure!(n_failures == 0, "promises were broken");
    Ok(())
}

/// What an answer says of a write that failed and may be there all the same.
const WARNINGS: [&str; 2] = ["will be completed", "did not confirm"];

/// Runs this many tasks at once, each with its own store: a small store is checked quickly.
fn all_tasks(
    binary: &Binary,
    all: &[(Trouble, Task)],
    seed: u64,
    every: u64,
    n_jobs: usize,
) -> Result<Vec<Tally>> {
    let next = AtomicUsize::new(0);
    let done: Mutex<BTreeMap<usize, Result<Tally>>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..n_jobs {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some((trouble, task)) = all.get(at) else {
                        return;
                    };
                    let tally = one_task(binary, *trouble, *task, seed, every);
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    done.insert(at, tally);
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.into_values().collect()
}

fn one_task(binary: &Binary, trouble: Trouble, task: Task, seed: u64, every: u64) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut case = Case::open(binary, trouble, seed)?;
    match task {
        Task::Starts => case.starts(every, &mut tally)?,
        Task::Writes(sort) => {
            case.prepare()?;
            case.every_call(sort, every, &mut tally)?;
        }
    }
    Ok(tally)
}

/// A data directory, the program that serves it, and the calls so far.
struct Case<'a> {
    binary: &'a Binary,
    trouble: Trouble,
    place: Place,
    maker: Maker,
    calls: Vec<Called>,
    /// Notes whose writes were answered as failed, without a word that they will be completed.
    refused: Vec<Attempt>,
    n_moments: u64,
    serving: Option<Serving>,
    prepared: Option<Prepared>,
}

/// What every group of cases begins with.
struct Prepared {
    /// The files, by their paths beneath the root of the place; `None` is a directory.
    files: image::Tree,
    known: Known,
    calls: Vec<Called>,
}

struct Serving {
    server: Server,
    client: Client,
    disk: Disk,
}

impl<'a> Case<'a> {
    fn open(binary: &'a Binary, trouble: Trouble, seed: u64) -> Result<Self> {
        let place = Place::fresh()?;
        let maker = Maker::new(format!("disk {trouble:?}"), seed, &place, true);
        Ok(Self {
            binary,
            trouble,
            place,
            maker,
            calls: Vec::new(),
            refused: Vec::new(),
            n_moments: 0,
            serving: None,
            prepared: None,
        })
    }

    /// The program, started if it is not running.
    fn serving(&mut self) -> Result<&mut Serving> {
        if self.serving.is_none() {
            self.serving = Some(self.start(None)?);
        }
        self.serving.as_mut().context("it was just started")
    }

    fn start(&self, fault: Option<Fault>) -> Result<Serving> {
        let mut disk = None;
        let root = self.place.root().to_owned();
        let spawn = |command: &mut Command| {
            let settings = Settings {
                fault,
                ..Settings::default()
            };
            let (child, watched) = start(command, &root, settings)?;
            disk = Some(watched);
            Ok(child)
        };
        let server = Server::start_as(self.binary, &self.place, Transport::Http, spawn)?;
        Ok(Serving {
            client: server.client(),
            server,
            disk: disk.context("the program was not started")?,
        })
    }

    /// The program is started while each call of its start fails once, and then without a fault.
    fn starts(&mut self, every: u64, tally: &mut Tally) -> Result<()> {
        for k in (1..).step_by(usize::try_from(every)?) {
            ensure!(k < CALLS_MAX, "a start never ends");
            self.place = Place::fresh()?;
            let what = format!("start, {:?} at call {k}", self.trouble);
            let began = Instant::now();
            // A program that cannot start says why and ends.
            let started = self.start(Some(self.trouble.at(k)));
            let failed = match started {
                Ok(mut serving) => {
                    let happened = serving.disk.clear();
                    serving.server.kill_now()?;
                    !happened.failed.is_empty()
                }
                Err(_) => true,
            };
            tally.n_cases += 1;
            if began.elapsed() > END_MAX {
                tally.failures.push(format!("{what}: it took too long"));
            }
            let again = self.start(None);
            match again {
                Ok(serving) => self.serving = Some(serving),
                Err(error) => tally
                    .failures
                    .push(format!("{what}: the next start failed: {error:#}")),
            }
            self.look(&what, tally)?;
            if !failed {
                break;
            }
            if let Some(mut serving) = self.serving.take() {
                serving.server.kill_now()?;
            }
        }
        Ok(())
    }

    /// Something of every sort, so that there is something to read whatever fails.
    fn prepare(&mut self) -> Result<()> {
        for sort in SORTS {
            let mut write = self.prepared(*sort)?;
            let sent = self.moment();
            let (answer, value) = self.serving()?.client.write(&write);
            ensure!(
                answer == Answer::Acknowledged,
                "{sort:?} without a fault: {answer:?}"
            );
            self.maker.learn(&mut write, &value);
            let acknowledged = Some(self.moment());
            self.calls.push(write.called(sent, acknowledged));
        }
        self.stop()?;
        self.prepared = Some(Prepared {
            files: image::read(self.place.root())?,
            known: self.maker.known(),
            calls: self.calls.clone(),
        });
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        match self.serving.take() {
            Some(mut serving) => serving.server.kill_now(),
            None => Ok(()),
        }
    }

    /// Looks at everything that a group left, and makes the store what it was when it was prepared.
    fn end_group(&mut self, what: &str, tally: &mut Tally) -> Result<()> {
        self.stop()?;
        self.look(what, tally)?;
        let prepared = self.prepared.as_ref().context("nothing was prepared")?;
        for entry in std::fs::read_dir(self.place.root())? {
            let path = entry?.path();
            match path.is_dir() {
                true => std::fs::remove_dir_all(path)?,
                false => std::fs::remove_file(path)?,
            }
        }
        image::write(&prepared.files, self.place.root())?;
        self.maker.know_only(prepared.known.clone());
        self.calls = prepared.calls.clone();
        self.refused.clear();
        Ok(())
    }

    /// One sort of write, with each of its calls failing once.
    fn every_call(&mut self, sort: Sort, every: u64, tally: &mut Tally) -> Result<()> {
        let (mut n_in_group, mut first) = (0, 1);
        for k in (1..).step_by(usize::try_from(every)?) {
            ensure!(k < CALLS_MAX, "{sort:?} never ends");
            if n_in_group == GROUP {
                let what = format!("{sort:?}, {:?} at calls {first} to {}", self.trouble, k - 1);
                self.end_group(&what, tally)?;
                (n_in_group, first) = (0, k);
            }
            n_in_group += 1;
            let mut write = self.prepared(sort)?;
            let what = format!("{sort:?}, {:?} at call {k}", self.trouble);
            let fault = self.trouble.at(k);
            let sent = self.moment();
            let serving = self.serving()?;
            serving.disk.set(fault);
            let (answer, value) = serving.client.write(&write);
            let mut wrong = Vec::new();
            if fault.stays {
                wrong.extend(serving.reads());
            }
            let happened = serving.disk.clear();
            let ended = match answer {
                Answer::Gone => serving.ended()?,
                _ => None,
            };
            let acknowledged = (answer == Answer::Acknowledged).then(|| self.moment());
            if acknowledged.is_some() {
                self.maker.learn(&mut write, &value);
            }
            if let Answer::Refused(said) = &answer
                && !WARNINGS.iter().any(|it| said.contains(it))
            {
                self.refused.extend(write.called(sent, None).as_note());
            }
            self.calls.push(write.called(sent, acknowledged));
            if happened.failed.is_empty() {
                // There is no k-th call: all have been tried.
                if acknowledged.is_none() {
                    tally
                        .failures
                        .push(format!("{what}: {answer:?} without a fault"));
                }
                break;
            }
            tally.n_cases += 1;
            wrong.extend(self.judge(&answer, ended, &happened, tally));
            if matches!(answer, Answer::Gone) {
                self.serving = None;
            }
            // There is room again, or the program was started anew: the next write is done.
            let mut next = self.prepared(sort)?;
            let sent = self.moment();
            let (answer, value) = self.serving()?.client.write(&next);
            if answer == Answer::Acknowledged {
                self.maker.learn(&mut next, &value);
                let acknowledged = Some(self.moment());
                self.calls.push(next.called(sent, acknowledged));
            } else {
                self.calls.push(next.called(sent, None));
                wrong.push(format!("the next write: {answer:?}"));
                self.serving = None;
            }
            let failed = happened.failed.first();
            let failed = failed.map(String::as_str).unwrap_or_default();
            let told = wrong.iter().map(|it| format!("{what} ({failed}): {it}"));
            tally.failures.extend(told);
        }
        let what = format!("{sort:?}, {:?} from call {first} on", self.trouble);
        self.end_group(&what, tally)
    }

    /// What is wrong with an answer.
    fn judge(
        &self,
        answer: &Answer,
        ended: Option<ExitStatus>,
        happened: &Happened,
        tally: &mut Tally,
    ) -> Option<String> {
        let must_end = self.trouble == Trouble::Sync;
        match answer {
            Answer::Acknowledged if !must_end => tally.n_done += 1,
            Answer::Refused(said) if !must_end && said.starts_with("503:") => {
                tally.n_unavailable += 1;
            }
            // SQLite takes what cannot be read for damage.
            Answer::Refused(said)
                if self.trouble == Trouble::Read && said.contains("is damaged") =>
            {
                tally.n_unavailable += 1;
            }
            Answer::Gone
                if self.trouble != Trouble::Full
                    && ended.and_then(|it| it.code()) == Some(UNKNOWN) =>
            {
                tally.n_ended += 1;
            }
            answer => {
                return Some(format!(
                    "{answer:?}, ended {ended:?} after {:?}",
                    happened.failed
                ));
            }
        }
        None
    }

    /// A write of this sort. What must come before it is done first, without a fault.
    fn prepared(&mut self, sort: Sort) -> Result<Write> {
        if sort == Sort::Backup {
            // Each looks at those before it, so there would be more to do with each.
            let folder = self.place.omi().join("backups");
            if folder.exists() {
                std::fs::remove_dir_all(folder)?;
            }
            self.calls.retain(|it| !it.is_copy());
        }
        for _ in 0..10 {
            let mut write = self.maker.of(sort);
            if write.sort == sort {
                return Ok(write);
            }
            let sent = self.moment();
            let (answer, value) = self.serving()?.client.write(&write);
            ensure!(
                answer == Answer::Acknowledged,
                "{:?} before {sort:?}: {answer:?}",
                write.sort
            );
            self.maker.learn(&mut write, &value);
            let acknowledged = Some(self.moment());
            self.calls.push(write.called(sent, acknowledged));
        }
        bail!("{sort:?} cannot be made")
    }

    fn moment(&mut self) -> u64 {
        self.n_moments += 1;
        self.n_moments
    }

    /// Everything as after a crash. A file that could not be written is no fault if node and file agree.
    fn look(&self, what: &str, tally: &mut Tally) -> Result<()> {
        let mut found = self.binary.look(&self.place)?;
        found.forget_undone();
        let verdict = verdict::judge_all(&BTreeMap::new(), &self.calls, &found);
        let surprises = self.refused.iter().filter(|call| {
            let is_it = |there: &BTreeMap<_, _>| there.get(&call.path) == Some(&call.content);
            is_it(&found.files) || is_it(&found.nodes)
        });
        let surprises: Vec<String> = surprises
            .map(|call| {
                format!(
                    "`{}` was answered as failed, and was done all the same",
                    call.path
                )
            })
            .collect();
        let sentences = verdict
            .lost
            .iter()
            .chain(&verdict.unsound)
            .chain(&surprises);
        let told = sentences.map(|it| format!("{what}: {it}"));
        tally.failures.extend(told.take(4));
        Ok(())
    }
}

impl Serving {
    /// Reads that must go on whatever the disk has no room for.
    fn reads(&mut self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (tool, arguments) in [
            ("memory_recall", json!({ "query": "what was seen" })),
            ("now_read", json!({})),
            ("vault_list_notes", json!({ "folder": "." })),
            (
                "kg_vector_search",
                json!({ "vector": [1, 1, 1, 1, 1, 1, 1, 1], "namespace": "crash" }),
            ),
        ] {
            let (answer, _) = self.client.read(tool, &arguments);
            if answer != Answer::Acknowledged {
                wrong.push(format!("`{tool}` meanwhile: {answer:?}"));
            }
        }
        wrong
    }

    /// How it ended. It has ended, since it did not answer.
    fn ended(&mut self) -> Result<Option<ExitStatus>> {
        let until = Instant::now() + END_MAX;
        while Instant::now() < until {
            if let Some(status) = self.server.ended()? {
                return Ok(Some(status));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(None)
    }
}
