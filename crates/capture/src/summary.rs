//! What a session was about: sentences of its own, chosen and not written.

use crate::candidate::{Candidate, CandidateKind};
use crate::sentences::{self, words};
use crate::session::short;
use crate::{Session, Speaker, Turn};
use std::collections::{HashMap, HashSet};

/// A session in which people said less, and nothing was done, is not worth a summary.
const WORDS_MIN: usize = 20;

/// Sentences beside the first request.
const SENTENCES: usize = 3;

const REQUEST_CHARS: usize = 220;
const SENTENCE_CHARS: usize = 150;

/// The sentences that are compared.
const COMPARED_MAX: usize = 200;

/// Words that say nothing about the subject.
const COMMON: &[&str] = &[
    "the", "and", "that", "this", "with", "for", "you", "are", "was", "not", "but", "have", "has",
    "had", "will", "from", "can", "all", "now", "its", "it's", "one", "out", "into", "than",
    "then", "there", "what", "when", "der", "die", "das", "und", "ist", "ich", "wir", "ein",
    "eine", "nicht", "mit", "auf", "den", "dem",
];

/// The request that began it, and the sentences of the assistant that share most with the rest.
pub(crate) fn of(session: &Session, did_something: bool) -> Option<Candidate> {
    let mut requests = Vec::new();
    let (mut n_words, mut answers, mut at) = (0, Vec::new(), None);
    for turn in &session.turns {
        let Turn::Said { by, text, at: when } = turn else {
            continue;
        };
        match by {
            Speaker::User => {
                n_words += words(text).len();
                requests.push(text);
                at.clone_from(when);
            }
            Speaker::Assistant => {
                answers.extend(sentences::of(text));
                at.clone_from(when);
            }
            Speaker::Summary => {}
        }
    }
    if n_words < WORDS_MIN && !did_something {
        return None;
    }
    // A greeting is no request.
    let request = requests.iter().find(|it| words(it).len() >= 4)?;
    let request = sentences::of(request)
        .into_iter()
        .take(2)
        .collect::<Vec<_>>();
    let request = match request.is_empty() {
        true => return None,
        false => short(&request.join(" "), REQUEST_CHARS),
    };
    let mut text = format!("Session: {request}");
    for sentence in central(&answers) {
        text += &format!(" {}", short(&sentence, SENTENCE_CHARS));
    }
    Some(Candidate {
        kind: CandidateKind::Summary,
        text,
        at,
    })
}

/// The sentences that have most in common with all others, in their order; those at the end of a session count more.
fn central(all: &[String]) -> Vec<String> {
    let all = &all[all.len().saturating_sub(COMPARED_MAX)..];
    let sets: Vec<HashSet<String>> = all.iter().map(|it| subjects(it)).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for word in sets.iter().flatten() {
        *counts.entry(word).or_default() += 1;
    }
    let mut scored: Vec<(usize, usize)> = sets
        .iter()
        .enumerate()
        .filter(|(_, set)| set.len() >= 4)
        .map(|(n, set)| {
            let shared: usize = set
                .iter()
                .map(|it| counts.get(it.as_str()).map_or(0, |n| n - 1))
                .sum();
            let late = 100 + 50 * n / all.len().max(1);
            (n, late * shared / set.len().max(6))
        })
        .collect();
    scored.sort_by(|a, b| b.1.cmp(&a.1).then(b.0.cmp(&a.0)));
    let mut chosen: Vec<usize> = Vec::new();
    for (n, _) in scored {
        let is_new = chosen
            .iter()
            .all(|&it| sets[it].intersection(&sets[n]).count() * 2 < sets[n].len().max(1));
        if is_new && chosen.len() < SENTENCES {
            chosen.push(n);
        }
    }
    chosen.sort_unstable();
    chosen.into_iter().map(|n| all[n].clone()).collect()
}

fn subjects(sentence: &str) -> HashSet<String> {
    let words = words(sentence).into_iter();
    words
        .filter(|it| it.chars().count() > 2 && !COMMON.contains(&it.as_str()))
        .collect()
}
