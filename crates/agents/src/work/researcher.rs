//! Asks in several ways, follows links, compares statements, and cites its sources.

use super::count;
use crate::material::{Contradiction, Material, Source, place_of, queries, source_of, subject};
use crate::report::{Finding, Report, short};
use crate::task::Task;
use kenning_core::Result;
use kenning_kernel::search::policy::{READABLE_MIN, RELEVANT_MIN};
use serde_json::json;
use std::collections::BTreeSet;

/// Sources of one report.
const SOURCES_MAX: usize = 20;
/// Of these the neighborhood is shown.
const NEIGHBORS_OF: usize = 5;
const NEIGHBORS_MAX: usize = 8;

pub(crate) fn work(task: &Task<'_>, material: &Material<'_>) -> Result<Report> {
    let queries = queries(task.text);
    let sources = task.step(
        "search",
        || material.search(&queries, SOURCES_MAX),
        |it| json!({ "queries": queries, "sources": it.len() }),
    )?;
    let mut findings = task.step(
        "read-neighborhood",
        || {
            let findings = sources.iter().enumerate().map(|(n, it)| {
                let related = match n < NEIGHBORS_OF {
                    true => material.neighbors(it.node.id, NEIGHBORS_MAX)?,
                    false => Vec::new(),
                };
                Ok(finding(it, related))
            });
            findings.collect::<Result<Vec<_>>>()
        },
        |it| json!({ "findings": it.len() }),
    )?;
    let subject = subject(task.text);
    let contradictions: Vec<Contradiction> = material
        .contradictions()?
        .into_iter()
        .filter(|it| concerns(it, &sources, &subject))
        .collect();
    let mut report = Report {
        recommendations: recommendations(&sources, &contradictions, &subject),
        ..Report::default()
    };
    let files: BTreeSet<String> = sources.iter().map(|it| place_of(&it.node)).collect();
    let n_relevant = sources
        .iter()
        .filter(|it| it.relevance >= RELEVANT_MIN)
        .count();
    report.summary = match sources.first() {
        None => format!(
            "Nothing is known about this: {} found no source.",
            count(queries.len(), "query")
        ),
        Some(best) => format!(
            "{} found {}, {n_relevant} of them relevant; the best is \"{}\" ({}). {} among them.",
            count(queries.len(), "query"),
            count(sources.len(), "source"),
            best.node.title,
            place_of(&best.node),
            count(contradictions.len(), "contradiction"),
        ),
    };
    report.put("query", task.text);
    report.put("queries", queries);
    report.put("filesAnalyzed", files.into_iter().collect::<Vec<_>>());
    report.put("patterns", patterns(&sources));
    let cited = findings.iter().map(|it| {
        json!({ "title": it.title, "place": it.references.first(), "relevance": it.relevance })
    });
    report.put("sources", cited.collect::<Vec<_>>());
    findings.extend(contradictions.iter().map(Contradiction::finding));
    report.findings = findings;
    Ok(report)
}

fn finding(it: &Source, related: Vec<String>) -> Finding {
    Finding {
        kind: "source",
        title: it.node.title.clone(),
        description: short(&it.passage, 400),
        relevance: it.relevance,
        source: source_of(&it.node),
        references: vec![place_of(&it.node)],
        related,
        severity: None,
        node: Some(it.node.id),
    }
}

/// Whether a contradiction is about what was asked: it is in a source, or has the words of the subject.
fn concerns(it: &Contradiction, sources: &[Source], subject: &[String]) -> bool {
    let text = format!("{} {}", it.one.2, it.other.2).to_lowercase();
    let n_words = subject
        .iter()
        .filter(|word| text.contains(word.as_str()))
        .count();
    let is_of_source = |node| {
        sources
            .iter()
            .any(|it| it.node.id == node && it.relevance >= READABLE_MIN)
    };
    n_words * 2 > subject.len().max(1)
        || (n_words > 0 && (is_of_source(it.one.0) || is_of_source(it.other.0)))
        || subject.iter().any(|it| it.starts_with("contradict"))
}

/// Where the sources are from, and which tags they share.
fn patterns(sources: &[Source]) -> Vec<serde_json::Value> {
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for it in sources {
        let source = source_of(&it.node);
        match counted.iter_mut().find(|known| known.0 == source) {
            Some(known) => known.1 += 1,
            None => counted.push((source, 1)),
        }
    }
    counted.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    counted
        .into_iter()
        .map(|(name, n)| json!({ "name": name, "count": n }))
        .collect()
}

fn recommendations(
    sources: &[Source],
    contradictions: &[Contradiction],
    subject: &[String],
) -> Vec<String> {
    let mut all = Vec::new();
    for it in contradictions.iter().take(5) {
        all.push(format!(
            "Decide which is right: {} or {}",
            it.one.1, it.other.1
        ));
    }
    let text: String = sources
        .iter()
        .map(|it| format!("{} {} ", it.node.title, it.node.body))
        .collect::<String>()
        .to_lowercase();
    let missing: Vec<&str> = subject
        .iter()
        .map(String::as_str)
        .filter(|it| !text.contains(it))
        .collect();
    if !missing.is_empty() && !sources.is_empty() {
        all.push(format!(
            "No source mentions {}: write it down where it is known",
            missing.join(", ")
        ));
    }
    if sources.is_empty() {
        all.push("Ingest documents about it, or ask in other words".to_owned());
    } else if let Some(best) = sources.iter().find(|it| it.relevance >= RELEVANT_MIN) {
        all.push(format!("Begin with {}", place_of(&best.node)));
    } else {
        all.push(
            "No source is certainly about it: read the findings before you rely on them".to_owned(),
        );
    }
    all
}
