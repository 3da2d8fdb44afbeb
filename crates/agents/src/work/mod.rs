//! What each agent does: the same for the same material, whoever asks and however often.

mod analyst;
mod architect;
mod coder;
mod patch;
mod researcher;
mod tester;

use crate::kinds::{AgentKind, not_registered};
use crate::material::Material;
use crate::report::Report;
use crate::task::Task;
use kenning_core::Result;

/// Does the task by rules.
pub(crate) fn do_task(task: &Task<'_>, material: &Material<'_>) -> Result<Report> {
    let mut report = by_kind(task, material)?;
    if let Some(note) = &material.unread {
        report.notes.insert(0, note.clone());
    }
    Ok(report)
}

fn by_kind(task: &Task<'_>, material: &Material<'_>) -> Result<Report> {
    match task.kind {
        AgentKind::Researcher => researcher::work(task, material),
        AgentKind::Coder => coder::work(task, material),
        AgentKind::Tester => tester::work(task, material),
        AgentKind::Analyst => analyst::work(task, material),
        AgentKind::Architect => architect::work(task, material),
        other @ (AgentKind::Reviewer
        | AgentKind::Coordinator
        | AgentKind::Optimizer
        | AgentKind::Documenter) => Err(not_registered(other.as_str())),
    }
}

/// What was looked at, as a clause of a summary: a number that nobody counted is not 0.
fn counted(n: Option<usize>, one: &str) -> String {
    match n {
        Some(n) => count(n, one),
        None => format!("{}s not looked for", one.trim_end_matches('s')),
    }
}

/// `1 file`, `2 files`.
fn count(n: usize, one: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n if one.ends_with('y') => format!("{n} {}ies", &one[..one.len() - 1]),
        n => format!("{n} {one}s"),
    }
}
