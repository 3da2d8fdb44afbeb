//! Runs targets in child processes, and reports what they find.
//!
//! A process that crashes, hangs or takes too much memory is ended; its last input is tried once more
//! alone, so that a busy machine is not mistaken for a hang, and the next process continues after it.

use crate::child::FOUND;
use crate::{Target, corpus};
use serde_json::Value;
use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How to start a [`crate::child`].
#[derive(Clone, Debug)]
pub struct Program {
    /// The file.
    pub path: PathBuf,
    /// The words before those of the child.
    pub words: Vec<String>,
}

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The seed of the inputs.
    pub seed: u64,
    /// The first case.
    pub from: u64,
    /// The number of cases, the kept ones among them.
    pub cases: u64,
    /// How long.
    pub time: Duration,
    /// How long one input may work.
    pub patience: Duration,
    /// How much memory the process may take.
    pub memory_bytes_max: u64,
    /// How long a finding is minimized.
    pub shortening: Duration,
}

impl Plan {
    /// This many cases from a seed, without a time limit.
    pub fn of(seed: u64, cases: u64) -> Self {
        Self {
            seed,
            from: 0,
            cases,
            time: Duration::from_secs(3_600),
            patience: Duration::from_secs(10),
            memory_bytes_max: 2 * 1024 * 1024 * 1024,
            shortening: Duration::from_secs(20),
        }
    }
}

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindKind {
    /// A panic, or an answer that is wrong.
    Wrong,
    /// The process ended, for instance because its stack overflowed.
    Died,
    /// It hung.
    Hung,
    /// It took too much memory.
    Memory,
}

/// An input at which something is wrong.
#[derive(Clone, Debug)]
pub struct Find {
    /// The number of the case.
    pub case: u64,
    /// What it is.
    pub kind: FindKind,
    /// A description.
    pub why: String,
    /// The input, minimized if it fails alone.
    pub input: Vec<u8>,
    /// Whether the input alone shows it; otherwise it takes the cases before it.
    pub is_alone: bool,
}

impl fmt::Display for Find {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            FindKind::Wrong => "wrong",
            FindKind::Died => "died",
            FindKind::Hung => "hung",
            FindKind::Memory => "memory",
        };
        let alone = if self.is_alone {
            ""
        } else {
            " (only after the cases before it)"
        };
        let input = corpus::write_literal(&self.input);
        let shown: String = input.chars().take(2_000).collect();
        write!(
            f,
            "case {}: {kind}: {}{alone}\n    {shown}",
            self.case, self.why
        )
    }
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many were tried.
    pub cases: u64,
    /// What was found, one of each kind.
    pub finds: Vec<Find>,
    /// The longest that one input took, and its case.
    pub slowest: (Duration, u64),
}

/// The most findings of a target.
const FINDS_MAX: usize = 8;
/// How many times the time limit an idle process may take.
const IDLE: u32 = 8;
/// How often a process is checked.
const LOOK: Duration = Duration::from_millis(20);

/// Runs a target.
///
/// # Errors
/// When the child cannot be started or prints something unexpected.
pub fn run(program: &Program, target: &Target, plan: &Plan) -> io::Result<Report> {
    let room = tempfile::tempdir()?;
    let pool = target.pool().map_err(io::Error::other)?;
    let began = Instant::now();
    let mut report = Report::default();
    let mut from = plan.from;
    let mut raw: Vec<(u64, FindKind, String)> = Vec::new();
    while from < plan.cases && raw.len() < FINDS_MAX {
        let left = plan.time.saturating_sub(began.elapsed());
        if left.is_zero() {
            break;
        }
        let ended = many(program, target, plan, from, left, room.path())?;
        report.cases += ended.next - from;
        if ended.slowest.0 > report.slowest.0 {
            report.slowest = ended.slowest;
        }
        raw.extend(ended.finds);
        if ended.is_done {
            break;
        }
        from = ended.next;
    }
    for (case, kind, why) in raw {
        let is_known = |find: &Find| find.kind == kind && same_reason(&find.why, &why);
        if report.finds.iter().any(is_known) {
            continue;
        }
        let input = target.input(&pool, plan.seed, case);
        let find = Find {
            case,
            kind,
            why,
            input,
            is_alone: false,
        };
        let find = shorten(program, target, plan, find, room.path())?;
        // A machine that was suspended for a while is not a finding.
        let is_real = find.is_alone || matches!(find.kind, FindKind::Wrong | FindKind::Died);
        if is_real {
            report.finds.push(find);
        }
    }
    Ok(report)
}

/// Findings at the same place count once.
fn same_reason(one: &str, other: &str) -> bool {
    let place = |it: &str| it.split(": ").next().unwrap_or_default().to_owned();
    place(one) == place(other)
}

/// How a process that tried many ended.
struct Ended {
    /// The case after the last one that was tried.
    next: u64,
    finds: Vec<(u64, FindKind, String)>,
    slowest: (Duration, u64),
    /// Whether it came to its end.
    is_done: bool,
}

fn many(
    program: &Program,
    target: &Target,
    plan: &Plan,
    from: u64,
    left: Duration,
    room: &Path,
) -> io::Result<Ended> {
    let progress = room.join("progress");
    std::fs::write(&progress, 0_u64.to_le_bytes())?;
    let seconds = left.as_secs().max(1).to_string();
    let mut child = Command::new(&program.path)
        .args(&program.words)
        .args([target.name, &plan.seed.to_string(), &from.to_string()])
        .args([&plan.cases.to_string(), &seconds])
        .arg(&progress)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let lines = child
        .stdout
        .take()
        .ok_or_else(|| io::Error::other("no output"))?;
    let lines = std::thread::spawn(move || -> Vec<Value> {
        let lines = BufReader::new(lines).lines().map_while(Result::ok);
        lines
            .filter_map(|it| serde_json::from_str(&it).ok())
            .collect()
    });
    let at = || -> io::Result<u64> {
        let mut bytes = [0; 8];
        std::fs::File::open(&progress)?.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    };
    let (status, stopped) = watch_child(&mut child, plan, &at)?;
    let lines = lines.join().map_err(|_| io::Error::other("no lines"))?;
    let mut ended = Ended {
        next: at()?.max(from),
        finds: Vec::new(),
        slowest: (Duration::ZERO, 0),
        is_done: false,
    };
    for line in &lines {
        if let Some(error) = line["error"].as_str() {
            return Err(io::Error::other(format!("{}: {error}", target.name)));
        }
        if let (Some(case), Some(why)) = (line["case"].as_u64(), line["why"].as_str()) {
            ended.finds.push((case, FindKind::Wrong, why.to_owned()));
        }
        if let Some(ms) = line["slowest_ms"].as_u64() {
            let case = line["slowest_case"].as_u64().unwrap_or(0);
            ended.slowest = (Duration::from_millis(ms), case);
            ended.is_done = true;
        }
    }
    if !ended.is_done {
        let case = ended.next.checked_sub(1);
        let case = case.filter(|_| at().is_ok_and(|it| it > 0));
        let case = case.ok_or_else(|| {
            io::Error::other(format!(
                "{}: it ended before its first case: {status}",
                target.name
            ))
        })?;
        let (kind, why) = stopped.unwrap_or_else(|| (FindKind::Died, ending(status)));
        ended.finds.push((case, kind, why));
    }
    Ok(ended)
}

fn ending(status: ExitStatus) -> String {
    match status.signal() {
        Some(6) => {
            "the process ended by itself (SIGABRT: a stack overflow, or no memory)".to_owned()
        }
        Some(11) => "the process ended (SIGSEGV)".to_owned(),
        Some(it) => format!("the process ended by signal {it}"),
        None => format!("the process ended: {status}"),
    }
}

/// Waits for a process, or ends it when it hangs or takes too much memory.
fn watch_child(
    child: &mut Child,
    plan: &Plan,
    at: &dyn Fn() -> io::Result<u64>,
) -> io::Result<(ExitStatus, Option<(FindKind, String)>)> {
    let mut last = (u64::MAX, Instant::now(), Duration::ZERO);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status, None));
        }
        let now = at().unwrap_or(last.0);
        let worked = processor_time(child.id());
        if now != last.0 {
            last = (now, Instant::now(), worked);
        }
        // Before the first case it makes ready, which may take longer. On a busy machine everything takes
        // longer; so processor time counts, and wall time only if none is used.
        let patience = match now {
            0 => Duration::from_secs(60),
            _ => plan.patience,
        };
        let is_busy = worked.saturating_sub(last.2) > patience;
        let is_still = last.1.elapsed() > patience * IDLE;
        let memory = memory_bytes(child.id());
        let stopped = if is_busy || is_still {
            let seconds = patience.as_secs_f64();
            Some((FindKind::Hung, format!("no answer after {seconds} s")))
        } else if memory > plan.memory_bytes_max {
            let mib = plan.memory_bytes_max / 1024 / 1024;
            Some((FindKind::Memory, format!("more than {mib} MiB")))
        } else {
            None
        };
        if stopped.is_some() {
            // It may have come to its end in this very moment.
            child.kill().ok();
            return Ok((child.wait()?, stopped));
        }
        std::thread::sleep(LOOK);
    }
}

/// How long a process has worked, all threads; `None` where that is unknown.
fn processor_time(pid: u32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The program's name, in parentheses, may hold anything; the third field follows it.
    let fields = text.rsplit_once(')').map_or("", |it| it.1);
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|it| it.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// What a process holds in memory; `None` where that is unknown.
pub fn memory_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
    let kib = line.and_then(|it| it.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Tries one input in a process of its own: what is wrong, and how.
fn one(
    program: &Program,
    target: &Target,
    plan: &Plan,
    input: &[u8],
    room: &Path,
) -> io::Result<Option<(FindKind, String)>> {
    let file = room.join("input");
    std::fs::write(&file, input)?;
    let mut child = Command::new(&program.path)
        .args(&program.words)
        .args([target.name, "one"])
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (status, stopped) = watch_child(&mut child, plan, &|| Ok(1))?;
    if let Some(stopped) = stopped {
        return Ok(Some(stopped));
    }
    if status.success() {
        return Ok(None);
    }
    if status.code() == Some(i32::from(FOUND)) {
        let mut said = String::new();
        if let Some(mut out) = child.stdout.take() {
            out.read_to_string(&mut said)?;
        }
        let said = said
            .lines()
            .find_map(|it| serde_json::from_str::<Value>(it).ok());
        let why = said.and_then(|it| it["why"].as_str().map(str::to_owned));
        return Ok(Some((FindKind::Wrong, why.unwrap_or_default())));
    }
    Ok(Some((FindKind::Died, ending(status))))
}

/// Removes parts of the input as long as the same kind of finding remains.
fn shorten(
    program: &Program,
    target: &Target,
    plan: &Plan,
    mut find: Find,
    room: &Path,
) -> io::Result<Find> {
    let until = Instant::now() + plan.shortening;
    let (kind, reason) = (find.kind, find.why.clone());
    let again = |input: &[u8]| -> io::Result<Option<String>> {
        let seen = one(program, target, plan, input, room)?;
        let same = |(found, why): &(FindKind, String)| *found == kind && same_reason(why, &reason);
        Ok(seen.filter(same).map(|it| it.1))
    };
    let Some(why) = again(&find.input)? else {
        return Ok(find);
    };
    find.is_alone = true;
    find.why = why;
    let mut size = find.input.len() / 2;
    while size > 0 && Instant::now() < until {
        let mut at = 0;
        let mut is_shorter = false;
        while at < find.input.len() && Instant::now() < until {
            let end = (at + size).min(find.input.len());
            let mut shorter = find.input.clone();
            shorter.drain(at..end);
            if let Some(why) = again(&shorter)? {
                find.input = shorter;
                find.why = why;
                is_shorter = true;
            } else {
                at = end;
            }
        }
        if !is_shorter || size > find.input.len() {
            size = (size / 2).min(find.input.len());
        }
    }
    Ok(find)
}
