//! Candidates: what of a session may become memories.

use crate::candidate::{Candidate, CandidateKind, in_project};
use crate::sentences::{self, words};
use crate::session::short;
use crate::statements::{explains, kind_of};
use crate::{Session, Speaker, Turn, secrets, summary, trouble};

/// The most candidates of a session.
pub const CANDIDATES_MAX: usize = 12;

/// The most statements, troubles and explanations among them.
const STATEMENTS_MAX: usize = 6;
const TROUBLES_MAX: usize = 3;
const EXPLANATIONS_MAX: usize = 1;

/// The most characters of a statement.
const STATEMENT_CHARS: usize = 400;

/// The most files that a memory names.
const FILES_MAX: usize = 12;

/// What of a session may become memories: statements in their order, then what failed and then worked, the files, and
/// the summary. Each is said once.
pub fn extract(session: &Session) -> Vec<Candidate> {
    let mut found = Vec::new();
    for candidate in statements(session) {
        add(&mut found, candidate, STATEMENTS_MAX);
    }
    let n = found.len();
    let troubles = trouble::find(session);
    let had_trouble = had_trouble(session);
    for (_, candidate) in troubles {
        add(&mut found, candidate, n + TROUBLES_MAX);
    }
    if had_trouble {
        let n = found.len();
        for candidate in explanations(session) {
            add(&mut found, candidate, n + EXPLANATIONS_MAX);
        }
    }
    let files = files(session);
    let did_something = files.is_some() || !found.is_empty();
    found.extend(files);
    found.extend(summary::of(session, did_something));
    for candidate in &mut found {
        candidate.text = secrets::redacted(&candidate.text);
    }
    // What is nothing but a secret says nothing without it.
    found.retain(|it| words(&it.text.replace(secrets::MARK, "")).len() >= 2);
    found.truncate(CANDIDATES_MAX);
    found
}

/// Adds a candidate unless one says the same or there are enough.
fn add(found: &mut Vec<Candidate>, candidate: Candidate, n_max: usize) {
    let new = words(&candidate.text);
    let is_same = |it: &Candidate| {
        let old = words(&it.text);
        let shared = new.iter().filter(|word| old.contains(word)).count();
        shared * 10 >= new.len().max(1) * 8
    };
    if found.len() < n_max && !found.iter().any(is_same) {
        found.push(candidate);
    }
}

/// What the person said, and what the client's own summary says was decided. The later ones count more: what was said
/// first may have been taken back.
fn statements(session: &Session) -> Vec<Candidate> {
    let mut found = Vec::new();
    for turn in &session.turns {
        let Turn::Said { by, text, at } = turn else {
            continue;
        };
        for sentence in sentences::of(text) {
            let kind = kind_of(&sentence);
            let kind = match by {
                Speaker::User => kind,
                Speaker::Summary => kind.filter(|it| *it == CandidateKind::Decision),
                Speaker::Assistant => None,
            };
            if let Some(kind) = kind {
                found.push(Candidate {
                    kind,
                    text: short(&sentence, STATEMENT_CHARS),
                    at: at.clone(),
                });
            }
        }
    }
    let n_over = found.len().saturating_sub(4 * STATEMENTS_MAX);
    found.drain(..n_over);
    // Of more than there is room for, decisions come first, then rules.
    if found.len() > STATEMENTS_MAX {
        found.sort_by_key(|it| it.kind);
    }
    found
}

/// Whether anything failed, or a person showed an error.
fn had_trouble(session: &Session) -> bool {
    session.turns.iter().any(|turn| match turn {
        Turn::Called(call) => call.failed == Some(true),
        Turn::Said { by, text, .. } => {
            let is_log = text.contains("```");
            let small = sentences::of(text).join(" ").to_lowercase();
            let words = [
                "error",
                "fail",
                "crash",
                "hang",
                "broken",
                "fehler",
                "panic",
                "exception",
                "flaky",
                "doppelt",
                "wrong",
            ];
            *by == Speaker::User && (is_log || words.iter().any(|it| small.contains(it)))
        }
    })
}

/// The assistant's last sentences that say why something failed: by then it knows.
fn explanations(session: &Session) -> Vec<Candidate> {
    let mut found = Vec::new();
    for turn in session.turns.iter().rev() {
        let Turn::Said {
            by: Speaker::Assistant,
            text,
            at,
        } = turn
        else {
            continue;
        };
        for sentence in sentences::of(text).into_iter().filter(|it| explains(it)) {
            found.push(Candidate {
                kind: CandidateKind::Trouble,
                text: short(&sentence, STATEMENT_CHARS),
                at: at.clone(),
            });
        }
    }
    found
}

fn files(session: &Session) -> Option<Candidate> {
    let (mut files, mut at) = (Vec::new(), None);
    for turn in &session.turns {
        if let Turn::Called(call) = turn
            && call.failed != Some(true)
        {
            for file in &call.files {
                let file = in_project(file, session.cwd.as_deref());
                if !files.contains(&file) {
                    files.push(file);
                    at.clone_from(&call.at);
                }
            }
        }
    }
    if files.is_empty() {
        return None;
    }
    let more = match files.len().saturating_sub(FILES_MAX) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    files.truncate(FILES_MAX);
    Some(Candidate {
        kind: CandidateKind::Files,
        text: format!("Changed files: {}{more}.", files.join(", ")),
        at,
    })
}
