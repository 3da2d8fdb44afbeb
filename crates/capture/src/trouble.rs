//! What failed and then worked.

use crate::candidate::{Candidate, CandidateKind};
use crate::sentences;
use crate::session::short;
use crate::statements::explains;
use crate::{Call, Session, Speaker, Turn};

/// A command that works later than so many turns after it failed is another matter.
const TURNS_MAX: usize = 60;

/// Of two commands that are the same attempt, so much of the words must be the same.
const SAME_WORDS: f64 = 0.6;

const COMMAND_CHARS: usize = 160;
const ERROR_CHARS: usize = 160;
const WHY_CHARS: usize = 240;

/// Commands that failed and then worked, each with its error, the way to the success, and the reason if the assistant
/// said one.
pub(crate) fn find(session: &Session) -> Vec<(usize, Candidate)> {
    let mut found: Vec<(usize, Candidate)> = Vec::new();
    let mut done: Vec<String> = Vec::new();
    for (at, turn) in session.turns.iter().enumerate() {
        let Turn::Called(failed) = turn else { continue };
        let Some(command) = failed.command.as_deref() else {
            continue;
        };
        if failed.failed != Some(true) || done.iter().any(|it| is_same(it, command)) {
            continue;
        }
        let Some((end, worked)) = success(session, at, command) else {
            continue;
        };
        done.push(command.to_owned());
        found.push((at, told(session, (at, failed), (end, worked))));
    }
    found
}

/// The first call after one that is the same attempt and did not fail.
fn success<'a>(session: &'a Session, at: usize, command: &str) -> Option<(usize, &'a Call)> {
    let later = session
        .turns
        .iter()
        .enumerate()
        .skip(at + 1)
        .take(TURNS_MAX);
    let mut later = later.filter_map(|(n, turn)| match turn {
        Turn::Called(call) => Some((n, call)),
        Turn::Said { .. } => None,
    });
    later.find(|(_, call)| {
        call.failed == Some(false)
            && call
                .command
                .as_deref()
                .is_some_and(|it| is_same(it, command))
    })
}

/// Whether two commands are attempts at the same.
fn is_same(one: &str, other: &str) -> bool {
    if one == other || one.contains(other) || other.contains(one) {
        return true;
    }
    let set = |text: &str| -> Vec<String> {
        let mut words: Vec<String> = text.split_whitespace().map(ToOwned::to_owned).collect();
        words.sort_unstable();
        words.dedup();
        words
    };
    let (one, other) = (set(one), set(other));
    let shared = one.iter().filter(|it| other.contains(it)).count();
    #[expect(clippy::cast_precision_loss, reason = "a share of few words")]
    let share = shared as f64 / one.len().max(other.len()).max(1) as f64;
    shared >= 3 && share >= SAME_WORDS
}

fn told(
    session: &Session,
    (start, failed): (usize, &Call),
    (end, worked): (usize, &Call),
) -> Candidate {
    let command = |call: &Call| {
        let line = call.command.as_deref().unwrap_or_default();
        short(line.lines().next().unwrap_or_default(), COMMAND_CHARS)
    };
    let (before, after) = (command(failed), command(worked));
    let mut text = format!(
        "`{before}` failed: {}.",
        error_line(&failed.result).trim_end_matches('.')
    );
    let files = files_between(session, start, end);
    if before != after {
        text += &format!(" `{after}` worked.");
    }
    if !files.is_empty() {
        text += &format!(" It worked after a change in {}.", files.join(", "));
    }
    if let Some(why) = reason(session, start, end) {
        text += &format!(" {}", short(&why, WHY_CHARS));
    }
    Candidate {
        kind: CandidateKind::Trouble,
        text,
        at: worked.at.clone(),
    }
}

fn files_between(session: &Session, start: usize, end: usize) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for turn in &session.turns[start..end] {
        if let Turn::Called(call) = turn {
            for file in &call.files {
                let file = crate::candidate::in_project(file, session.cwd.as_deref());
                if !files.contains(&file) && files.len() < 3 {
                    files.push(file);
                }
            }
        }
    }
    files
}

/// The last sentence of the assistant that says why.
fn reason(session: &Session, start: usize, end: usize) -> Option<String> {
    let said = session.turns[start..end].iter().rev();
    let said = said.filter_map(|turn| match turn {
        Turn::Said {
            by: Speaker::Assistant,
            text,
            ..
        } => Some(text),
        _ => None,
    });
    said.flat_map(|text| sentences::of(text).into_iter().rev())
        .find(|it| explains(it))
}

/// The line of an output that says what is wrong.
pub(crate) fn error_line(output: &str) -> String {
    const WORDS: [&str; 14] = [
        "error",
        "panic",
        "exception",
        "fatal",
        "failed",
        "fail:",
        "assert",
        "cannot",
        "could not",
        "denied",
        "refused",
        "unknown",
        "no such",
        "not found",
    ];
    let lines = output.lines().map(str::trim);
    let mut lines =
        lines.filter(|it| !it.is_empty() && !it.to_lowercase().starts_with("exit code"));
    let all: Vec<&str> = lines.by_ref().take(400).collect();
    let score = |line: &str| {
        let small = line.to_lowercase();
        let said = WORDS.iter().filter(|it| small.contains(*it)).count();
        // A line that only says that something failed says less than one with a reason.
        let has_reason = line.contains(": ") && line.len() > 20;
        said * 2 + usize::from(has_reason)
    };
    let mut best: Option<(&str, usize)> = None;
    for line in &all {
        let points = score(line);
        if best.is_none_or(|it| points > it.1) {
            best = Some((line, points));
        }
    }
    short(best.map_or("no reason given", |it| it.0), ERROR_CHARS)
}
