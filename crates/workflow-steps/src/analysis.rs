//! Analysis: what documentation lacks.
//!
//! The same documents and memories give the same findings in the same order.

use super::documents::{self, DOCUMENTS_MAX};
use super::{Next, Work, count, gap_event, unknown};
use kenning_core::{Kind, Result};
use kenning_kernel::{memory_id, projects, timestamp};
use kenning_kg::Status as DocStatus;
use kenning_memory::belief;
use kenning_memory::claims::{self, Claim};
use kenning_runs::{Ending, Outcome, StepDone};
use kenning_store::{NodeFilter, When};
use kenning_workflow::gaps::{self, Gap, GapKind, Severity};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Gaps that a run keeps; what is beyond is counted.
const KEPT_MAX: usize = 400;

/// Memories that documents are compared with, the newest.
const MEMORIES_MAX: usize = 2_000;

/// Fields of frontmatter that say until when a text is true.
const UNTIL: [&str; 6] = [
    "expires",
    "expiry",
    "valid_until",
    "validUntil",
    "review_by",
    "reviewBy",
];

pub(super) fn step(work: &Work<'_>) -> Result<Next> {
    let path = work.text("docPath").unwrap_or_default();
    let name = work.run.current_step.as_str();
    let after = |next: &str, gaps: Vec<Gap>, more: (&str, Value)| -> Next {
        let found: Vec<Value> = gaps.iter().map(to_json).collect();
        let mut kept = match work.kept("gaps") {
            Value::Array(kept) => kept.clone(),
            _ => Vec::new(),
        };
        let n_before = work.kept("nGaps").as_u64().unwrap_or_default();
        kept.extend(found.iter().cloned());
        kept.truncate(KEPT_MAX);
        let mut keep = work.kept_with("gaps", kept.into());
        keep["nGaps"] = (n_before + found.len() as u64).into();
        keep[more.0] = more.1.clone();
        let mut done = StepDone::of(name, next, keep);
        done.metadata = json!({ "found": found.len(), more.0: more.1 });
        if !found.is_empty() {
            done.events.push(gap_event(work.run, &found));
        }
        done.into()
    };
    match name {
        "collect-documents" => {
            documents::follow_files(work, path)?;
            let all = documents::beneath(work, path)?;
            let n = all.len().min(DOCUMENTS_MAX);
            Ok(after("check-sections", Vec::new(), ("documents", n.into())))
        }
        "check-sections" => {
            let mut seen = Vec::new();
            each(work, path, |content| {
                seen.push(documents::look(content));
                Ok(())
            })?;
            let (completeness, gaps) = gaps::together(&seen);
            Ok(after(
                "check-links",
                gaps,
                ("completeness", completeness.into()),
            ))
        }
        "check-links" => {
            let meant = paths(work, path)?;
            let (links, _) = work.kg.graph_broken_links(work.caller, 0, usize::MAX)?;
            let found = links
                .into_iter()
                .filter(|it| meant.contains(&it.source.path));
            let found = found.map(|it| Gap {
                kind: GapKind::BrokenLink,
                severity: Severity::High,
                line: Some(it.line),
                message: match &it.suggestion {
                    Some((near, _)) => format!(
                        "Mend the link to `{}`: perhaps `{}` is meant",
                        it.target, near.path
                    ),
                    None => format!("Mend the link to `{}`, which leads nowhere", it.target),
                },
                path: it.source.path,
            });
            let found: Vec<Gap> = found.collect();
            let n = found.len();
            Ok(after("check-freshness", found, ("brokenLinks", n.into())))
        }
        "check-freshness" => {
            let found = stale(work, path)?;
            let n = found.len();
            Ok(after(
                "check-contradictions",
                found,
                ("staleFacts", n.into()),
            ))
        }
        "check-contradictions" => {
            let found = contradictions(work, path)?;
            let n = found.len();
            Ok(after("report", found, ("contradictions", n.into())))
        }
        "report" => Ok(Next::End(report(work))),
        _ => Err(unknown(work)),
    }
}

/// Calls `visit` with every document.
fn each(
    work: &Work<'_>,
    path: &str,
    mut visit: impl FnMut(&kenning_kg::DocumentContent) -> Result<()>,
) -> Result<()> {
    for (id, _) in documents::beneath(work, path)?.iter().take(DOCUMENTS_MAX) {
        work.caller.check()?;
        let content = work.kg.document(work.caller, Some(id), None)?;
        visit(&content)?;
    }
    Ok(())
}

fn paths(work: &Work<'_>, path: &str) -> Result<BTreeSet<String>> {
    let all = documents::beneath(work, path)?;
    Ok(all.into_iter().map(|it| it.1).collect())
}

fn to_json(gap: &Gap) -> Value {
    json!({
        "type": gap.kind.as_str(), "severity": gap.severity.as_str(), "path": gap.path,
        "line": gap.line, "message": gap.message,
    })
}

/// Texts whose time is over, and links of current documents to those that are not current any more.
fn stale(work: &Work<'_>, path: &str) -> Result<Vec<Gap>> {
    let today = timestamp(work.now_ms());
    let today = today.get(..10).unwrap_or_default().to_owned();
    let mut found = Vec::new();
    each(work, path, |content| {
        let document = &content.document;
        for name in UNTIL {
            let until = content.frontmatter.get(name).and_then(Value::as_str);
            let Some(until) = until.and_then(|it| it.get(..10)) else {
                continue;
            };
            let is_date = until.bytes().filter(|it| *it == b'-').count() == 2;
            if is_date && until < today.as_str() {
                found.push(Gap {
                    kind: GapKind::StaleFact,
                    severity: Severity::Medium,
                    path: document.path.clone(),
                    line: Some(1),
                    message: format!("Review it: `{name}` was {until}"),
                });
            }
        }
        if !matches!(document.status, None | Some(DocStatus::Active)) {
            return Ok(());
        }
        let links = document.links.as_ref().map(|it| it.0.as_slice());
        for link in links
            .unwrap_or_default()
            .iter()
            .filter(|it| it.broken.is_none())
        {
            let kg = work.kg;
            let Ok(target) = kg.document(work.caller, Some(&link.target), None) else {
                continue;
            };
            if let Some(status @ (DocStatus::Deprecated | DocStatus::Archived)) =
                target.document.status
            {
                found.push(Gap {
                    kind: GapKind::StaleFact,
                    severity: Severity::Medium,
                    path: document.path.clone(),
                    line: Some(link.line),
                    message: format!(
                        "Replace the link to `{}`, which is {}",
                        target.document.path,
                        status.as_str()
                    ),
                });
            }
        }
        Ok(())
    })?;
    gaps::sort(&mut found);
    Ok(found)
}

/// Words that carry meaning: those of a sentence and a memory that contradict each other must share two.
fn words(text: &str) -> BTreeSet<String> {
    const EMPTY: [&str; 12] = [
        "always", "never", "should", "must", "cannot", "that", "this", "with", "from", "have",
        "does", "will",
    ];
    text.split(|it: char| !it.is_alphanumeric())
        .map(str::to_lowercase)
        .filter(|it| it.chars().count() > 3 && !EMPTY.contains(&it.as_str()))
        .collect()
}

/// Lines of documents that say the opposite of a memory, or of another line: by rules for beliefs, which compare any
/// two texts that share words, and by claims, which compare numbers too, of sentences with the same words.
fn contradictions(work: &Work<'_>, path: &str) -> Result<Vec<Gap>> {
    let space = &work.caller.principal.space;
    let filter = NodeFilter {
        kinds: vec![Kind::Memory],
        ..NodeFilter::default()
    };
    let seen = work.kernel.projects_seen_by(work.caller)?;
    let memories = work.kernel.log().read(space, |tx| {
        let mut all = tx.nodes(&filter, When::Now, None, usize::MAX)?;
        all.retain(|it| projects::is_seen(it, &seen));
        all.sort_by_key(|it| std::cmp::Reverse(it.updated));
        all.truncate(MEMORIES_MAX);
        Ok(all)
    })?;
    let mut said: Vec<(String, String)> = memories
        .iter()
        .map(|it| (format!("the memory `{}`", memory_id(it)), it.body.clone()))
        .collect();
    let mut by_word: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let note = |at: usize, text: &str, by_word: &mut BTreeMap<String, Vec<usize>>| {
        for word in words(text) {
            by_word.entry(word).or_default().push(at);
        }
    };
    for (at, (_, text)) in said.iter().enumerate() {
        note(at, text, &mut by_word);
    }
    // Claims with their place, and the path if it is a document.
    let mut stated: Vec<(String, Option<String>, Claim)> = Vec::new();
    for (place, text) in &said {
        let claims = claims::claims(text).into_iter();
        stated.extend(claims.map(|it| (place.clone(), None, it)));
    }
    let mut found = Vec::new();
    each(work, path, |content| {
        let document = &content.document;
        let text = document.content.as_deref().unwrap_or_default();
        for claim in claims::claims(text) {
            let place = format!("`{}` line {}", document.path, claim.line);
            stated.push((place, Some(document.path.clone()), claim));
        }
        let mut own = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            // Only such lines can be one side of a contradiction.
            if !belief::is_one_sided(line) || line.len() > 2_000 {
                continue;
            }
            let mut shared: BTreeMap<usize, usize> = BTreeMap::new();
            for at in words(line)
                .iter()
                .filter_map(|it| by_word.get(it))
                .flatten()
            {
                *shared.entry(*at).or_default() += 1;
            }
            for (at, _) in shared.into_iter().filter(|it| it.1 >= 2) {
                let Some((place, other)) = said.get(at) else {
                    continue;
                };
                if let Some(pattern) = belief::contradiction(line, other) {
                    found.push(Gap {
                        kind: GapKind::Contradiction,
                        severity: Severity::High,
                        path: document.path.clone(),
                        line: Some(number),
                        message: format!("Decide between this line and {place}: {pattern}"),
                    });
                }
            }
            own.push((number, line.to_owned()));
        }
        for (number, line) in own {
            note(said.len(), &line, &mut by_word);
            said.push((format!("`{}` line {number}", document.path), line));
        }
        Ok(())
    })?;
    let only: Vec<&Claim> = stated.iter().map(|it| &it.2).collect();
    for pair in claims::opposed(&only) {
        // The later one is a line of a document, unless both are memories.
        let (one, other) = (pair.one.min(pair.other), pair.one.max(pair.other));
        let (Some((place, ..)), Some((_, Some(path), claim))) =
            (stated.get(one), stated.get(other))
        else {
            continue;
        };
        let message = format!("Decide between this line and {place}: ");
        let line = Some(claim.line);
        let is_known =
            |it: &Gap| it.path == *path && it.line == line && it.message.starts_with(&message);
        if !found.iter().any(is_known) {
            found.push(Gap {
                kind: GapKind::Contradiction,
                severity: Severity::High,
                path: path.clone(),
                line,
                message: message + &pair.why,
            });
        }
    }
    gaps::sort(&mut found);
    Ok(found)
}

/// What was found, as the end of the run.
fn report(work: &Work<'_>) -> Ending {
    let gaps = work.kept("gaps").as_array().cloned().unwrap_or_default();
    let n_gaps = work.kept("nGaps").as_u64().unwrap_or_default();
    let n_documents = work.kept("documents").as_u64().unwrap_or_default();
    let completeness = work.kept("completeness").as_f64().unwrap_or_default();
    let mut lines: Vec<(u8, String)> = gaps
        .iter()
        .map(|gap| {
            let text = |name: &str| gap[name].as_str().unwrap_or_default();
            let rank = match text("severity") {
                "high" => 0,
                "medium" => 1,
                _ => 2,
            };
            let line = match (text("path"), gap["line"].as_u64()) {
                ("", _) => text("message").to_owned(),
                (path, Some(line)) => format!("{path}:{line}: {}", text("message")),
                (path, None) => format!("{path}: {}", text("message")),
            };
            (rank, line)
        })
        .collect();
    lines.sort_by_key(|it| it.0);
    let artifacts: Vec<Value> = lines.iter().map(|it| it.1.as_str().into()).collect();
    let first: Vec<&str> = lines.iter().take(20).map(|it| it.1.as_str()).collect();
    let n_documents = usize::try_from(n_documents).unwrap_or_default();
    let n_found = usize::try_from(n_gaps).unwrap_or_default();
    Ending {
        summary: format!(
            "{} looked at, completeness {completeness:.2}, {} found.\n{}",
            count(n_documents, "document", "documents"),
            count(n_found, "gap", "gaps"),
            first.join("\n")
        ),
        quality: Some(completeness),
        artifacts,
        ..Ending::of(Outcome::Completed)
    }
}
