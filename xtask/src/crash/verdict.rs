//! Whether what is on disk is what was promised. Pure: facts in, sentences out.
//!
//! A write is **lost** when it was acknowledged and its event or its effect is gone. A state is
//! **unsound** when its parts disagree: file and node, node and event, event and history, or when the
//! program itself finds a fault.

use super::calls::{Called, Traces};
use kenning_core::Hash;
use std::collections::{BTreeMap, BTreeSet};

/// One call to write a note. Moments are places in one order of everything that clients saw.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) path: String,
    pub(super) content: Hash,
    pub(super) sent: u64,
    /// `None` when no answer came before the end.
    pub(super) acknowledged: Option<u64>,
}

/// An event of the log that is about a file.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) seq: u64,
    pub(super) kind: String,
    pub(super) path: String,
    /// `None` for events that name no content.
    pub(super) content: Option<Hash>,
}

/// What is on disk after the store was opened again.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// Files of the vault, by path.
    pub(super) files: BTreeMap<String, Hash>,
    /// Texts of current nodes, by path.
    pub(super) nodes: BTreeMap<String, Hash>,
    /// Every text that a node has or had.
    pub(super) revisions: BTreeSet<(String, Hash)>,
    pub(super) events: Vec<Event>,
    /// Who signed them.
    pub(super) authors: BTreeSet<String>,
    pub(super) n_intents: usize,
    /// Files whose events are left out.
    pub(super) undone: BTreeSet<String>,
    /// What `doctor` and `audit verify` say is wrong.
    pub(super) faults: Vec<String>,
    /// What is there of writes of other sorts.
    pub(super) traces: Traces,
}

impl Found {
    /// Leaves out of the log and of the history what is about files that could not be written, and whose
    /// nodes were put back. That file and node agree is judged all the same.
    pub(super) fn forget_undone(&mut self) {
        let undone: BTreeSet<String> = self
            .events
            .iter()
            .filter(|it| it.kind == UNDONE)
            .map(|it| it.path.clone())
            .collect();
        self.events.retain(|it| !undone.contains(&it.path));
        self.revisions.retain(|it| !undone.contains(&it.0));
        self.undone = undone;
    }
}

#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) lost: Vec<String>,
    pub(super) unsound: Vec<String>,
}

/// The event of a note that could not be written after all.
const UNDONE: &str = "FileWriteUndone";

/// The event of a written note.
const WRITTEN: &str = "NoteWritten";

/// Judges writes of all sorts; see [`judge`].
pub(super) fn judge_all(
    before: &BTreeMap<String, Hash>,
    calls: &[Called],
    found: &Found,
) -> Verdict {
    let notes: Vec<Attempt> = calls.iter().filter_map(Called::as_note).collect();
    let mut verdict = judge(before, &notes, found);
    verdict.lost.extend(found.traces.lost(calls));
    verdict
}

/// Judges one round. `before` is what the files were when it began.
pub(super) fn judge(
    before: &BTreeMap<String, Hash>,
    attempts: &[Attempt],
    found: &Found,
) -> Verdict {
    let mut verdict = Verdict::default();
    for (path, content) in before {
        if !attempts.iter().any(|it| it.path == *path) && found.files.get(path) != Some(content) {
            verdict
                .lost
                .push(format!("`{path}`, which nobody wrote, is not what it was"));
        }
    }
    let written: BTreeSet<(&str, Hash)> = found
        .events
        .iter()
        .filter(|it| it.kind == WRITTEN)
        .filter_map(|call| Some((call.path.as_str(), call.content?)))
        .collect();
    let mut by_path: BTreeMap<&str, Vec<&Attempt>> = BTreeMap::new();
    for attempt in attempts {
        by_path.entry(&attempt.path).or_default().push(attempt);
        let has_event = written.contains(&(attempt.path.as_str(), attempt.content));
        let is_told = has_event || found.undone.contains(&attempt.path);
        if attempt.acknowledged.is_some() && !is_told {
            let path = &attempt.path;
            verdict
                .lost
                .push(format!("`{path}`: an acknowledged write has no event"));
        }
    }
    for (path, attempts) in by_path {
        let now = found.files.get(path);
        if !may_be(before.get(path), &attempts, now) {
            verdict.lost.push(format!(
                "`{path}`: the file is older than an acknowledged write, or of nobody's making"
            ));
        }
    }
    verdict.unsound = disagreements(found);
    verdict
}

/// Whether a file may have this content: that of an attempt, or what was before, that no acknowledged
/// attempt certainly followed.
fn may_be(before: Option<&Hash>, attempts: &[&Attempt], now: Option<&Hash>) -> bool {
    let replaced_after = |moment: u64| {
        let mut acknowledged = attempts.iter().filter(|it| it.acknowledged.is_some());
        acknowledged.any(|it| it.sent > moment)
    };
    let as_before = now == before && !attempts.iter().any(|it| it.acknowledged.is_some());
    let by_attempt = attempts
        .iter()
        .filter(|it| Some(&it.content) == now)
        .any(|it| !replaced_after(it.acknowledged.unwrap_or(u64::MAX)));
    as_before || by_attempt
}

fn disagreements(found: &Found) -> Vec<String> {
    let mut out = found.faults.clone();
    if found.n_intents > 0 {
        out.push(format!("{} writes are still unfinished", found.n_intents));
    }
    let paths: BTreeSet<&String> = found.files.keys().chain(found.nodes.keys()).collect();
    for path in paths {
        if found.files.get(path) != found.nodes.get(path) {
            out.push(format!("`{path}`: the node is not the file"));
        }
    }
    let mut last: BTreeMap<&str, &Event> = BTreeMap::new();
    for event in &found.events {
        if event.kind != WRITTEN {
            let (seq, kind) = (event.seq, &event.kind);
            out.push(format!("event {seq} is a `{kind}`, but nobody else wrote"));
        }
        let newer = last
            .get(event.path.as_str())
            .is_none_or(|it| it.seq < event.seq);
        if newer {
            last.insert(&event.path, event);
        }
        let Some(content) = event.content else {
            continue;
        };
        if !found.revisions.contains(&(event.path.clone(), content)) {
            out.push(format!(
                "event {}: its content is in no revision",
                event.seq
            ));
        }
    }
    for (path, content) in &found.nodes {
        let is_told = last.get(path.as_str()).and_then(|it| it.content) == Some(*content);
        if !is_told && !found.undone.contains(path) {
            out.push(format!(
                "`{path}`: the node is not what its last event says"
            ));
        }
    }
    for (path, event) in last {
        if !found.nodes.contains_key(path) {
            out.push(format!("event {}: `{path}` has no node", event.seq));
        }
    }
    let told: BTreeSet<(&str, Hash)> = found
        .events
        .iter()
        .filter_map(|call| Some((call.path.as_str(), call.content?)))
        .collect();
    for (path, content) in &found.revisions {
        if !told.contains(&(path.as_str(), *content)) {
            out.push(format!("`{path}`: a revision has no event"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(text: &str) -> Hash {
        Hash::of(text.as_bytes())
    }

    /// `path content sent acknowledged`, a dash when there was no answer.
    fn attempts(text: &str) -> Vec<Attempt> {
        let lines = text.lines().map(str::trim).filter(|it| !it.is_empty());
        let parse = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            Attempt {
                path: words[0].to_owned(),
                content: hash(words[1]),
                sent: words[2].parse().unwrap(),
                acknowledged: words[3].parse().ok(),
            }
        };
        lines.map(parse).collect()
    }

    /// A sound store in which these notes were written in this order.
    fn store(writes: &[(&str, &str)]) -> Found {
        let mut found = Found::default();
        for (n, (path, content)) in writes.iter().enumerate() {
            found.files.insert((*path).to_owned(), hash(content));
            found.nodes.insert((*path).to_owned(), hash(content));
            found.revisions.insert(((*path).to_owned(), hash(content)));
            found.events.push(Event {
                seq: n as u64 + 1,
                kind: WRITTEN.to_owned(),
                path: (*path).to_owned(),
                content: Some(hash(content)),
            });
        }
        found
    }

    fn check(attempted: &str, found: &Found, lost: usize, unsound: usize) {
        let verdict = judge(&BTreeMap::new(), &attempts(attempted), found);
        assert_eq!(verdict.lost.len(), lost, "{:?}", verdict.lost);
        assert_eq!(verdict.unsound.len(), unsound, "{:?}", verdict.unsound);
    }

    #[test]
    fn what_was_acknowledged_and_is_there_is_fine() {
        check(
            "a one 1 2\nb two 3 4",
            &store(&[("a", "one"), ("b", "two")]),
            0,
            0,
        );
    }

    #[test]
    fn an_acknowledged_write_that_is_gone_is_lost_twice_over() {
        // Neither its event nor its file.
        check("a one 1 2\nb two 3 4", &store(&[("a", "one")]), 2, 0);
    }

    #[test]
    fn an_unacknowledged_write_may_be_there_or_not() {
        check("a one 1 -", &store(&[("a", "one")]), 0, 0);
        check("a one 1 -", &store(&[]), 0, 0);
        check(
            "a one 1 2\na two 3 -",
            &store(&[("a", "one"), ("a", "two")]),
            0,
            0,
        );
        check("a one 1 2\na two 3 -", &store(&[("a", "one")]), 0, 0);
    }

    #[test]
    fn an_older_content_after_a_newer_acknowledgment_is_lost() {
        check(
            "a one 1 2\na two 3 4",
            &store(&[("a", "two"), ("a", "one")]),
            1,
            0,
        );
    }

    #[test]
    fn writes_at_the_same_time_may_end_in_either_order() {
        check(
            "a one 1 3\na two 2 4",
            &store(&[("a", "one"), ("a", "two")]),
            0,
            0,
        );
        check(
            "a one 1 3\na two 2 4",
            &store(&[("a", "two"), ("a", "one")]),
            0,
            0,
        );
    }

    #[test]
    fn a_content_that_nobody_wrote_is_seen() {
        check("a one 1 -", &store(&[("a", "other")]), 1, 0);
    }

    #[test]
    fn what_earlier_rounds_left_must_stay() {
        let before = BTreeMap::from([("a".to_owned(), hash("one"))]);
        assert!(judge(&before, &[], &store(&[("a", "one")])).lost.is_empty());
        assert_eq!(judge(&before, &[], &store(&[])).lost.len(), 1);
        let attempts = attempts("a two 1 -");
        assert!(
            judge(&before, &attempts, &store(&[("a", "one")]))
                .lost
                .is_empty()
        );
    }

    #[test]
    fn every_disagreement_is_seen() {
        let sound = store(&[("a", "one"), ("a", "two")]);
        let broken = |change: fn(&mut Found)| {
            let mut found = sound.clone();
            change(&mut found);
            disagreements(&found).len()
        };
        assert_eq!(broken(|_| ()), 0);
        assert!(broken(|it| it.n_intents = 1) > 0);
        assert!(broken(|it| it.faults.push("fault".to_owned())) > 0);
        assert!(broken(|it| it.files.extend([("a".to_owned(), Hash::default())])) > 0);
        assert!(broken(|it| it.files.extend([("new".to_owned(), Hash::default())])) > 0);
        assert!(broken(|it| it.nodes.clear()) > 0);
        assert!(broken(|it| drop(it.events.pop())) > 0);
        assert!(broken(|it| drop(it.events.remove(0))) > 0);
        assert!(broken(|it| drop(it.revisions.pop_first())) > 0);
        assert!(broken(|it| it.events[0].kind = "FileAdopted".to_owned()) > 0);
    }
}
