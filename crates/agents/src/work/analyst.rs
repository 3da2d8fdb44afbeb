//! Measures documents and code, grades them, and names what is wrong with its place.

use super::{count, counted, tester};
use crate::material::{Contradiction, Material, NO_GRAPH};
use crate::report::{Finding, Report};
use crate::task::Task;
use kenning_core::{Kind, Result};
use serde_json::{Value, json};

const EACH_MAX: usize = 50;

pub(crate) fn work(task: &Task<'_>, material: &Material<'_>) -> Result<Report> {
    let mut report = Report::default();
    let stats = material.stats()?;
    let broken = material.broken_links()?;
    let has_graph = broken.is_some();
    let broken = broken.unwrap_or_default();
    let orphans = material.orphans()?.unwrap_or_default();
    let contradictions = material.contradictions()?;
    let code = material.code()?;
    if stats.is_none() {
        report.notes.push(NO_GRAPH.to_owned());
    }
    report.notes.extend(material.why_no_code()?);
    let (untested, undocumented, cycles) = task.step(
        "measure-code",
        || Ok((code.untested(), code.undocumented(), code.cycles())),
        |it| json!({ "untested": it.0.len(), "undocumented": it.1.len(), "cycles": it.2.len() }),
    )?;
    let long: Vec<_> = code
        .symbols
        .iter()
        .filter(|it| {
            it.is_function() && !it.is_of_tests() && it.line_end.saturating_sub(it.line) > 100
        })
        .collect();
    let n_functions = code.symbols.iter().filter(|it| it.is_function()).count();
    let has_tests = code.symbols.iter().any(|it| it.is_test);
    // Without any test nothing is known of single functions, and full marks would be wrong.
    let n_tested = if has_tests { n_functions } else { 0 };
    let texts = material.texts()?;
    let n_memories = texts.iter().filter(|it| it.kind == Kind::Memory).count();
    let n_words: usize = texts
        .iter()
        .map(|it| it.body.split_whitespace().count())
        .sum();

    // Each share is of what there is; a part that does not exist neither helps nor harms.
    let share = |bad: usize, of: usize| match of {
        0 => None,
        of => Some(1.0 - (bad as f64 / of as f64).min(1.0)),
    };
    let n_broken = broken.len();
    let (n_docs, n_links, n_orphans) = stats
        .as_ref()
        .map_or((0, 0, 0), |it| (it.nodes, it.edges, it.orphans));
    let measures = [
        ("links", share(n_broken * 5, n_links + n_broken), 3.0),
        ("connection", share(n_orphans, n_docs), 2.0),
        (
            "consistency",
            share(contradictions.len() * 10, texts.len()),
            3.0,
        ),
        ("tests", share(untested.len(), n_tested), 2.0),
        (
            "documentation",
            share(undocumented.len(), code.symbols.len()),
            1.0,
        ),
        ("structure", share(cycles.len() * 5, code.files.len()), 2.0),
    ];
    let weight: f64 = measures
        .iter()
        .filter(|it| it.1.is_some())
        .map(|it| it.2)
        .sum();
    let sum: f64 = measures.iter().filter_map(|it| Some(it.1? * it.2)).sum();
    let score = if weight > 0.0 {
        100.0 * sum / weight
    } else {
        0.0
    };
    let round = |it: f64| kenning_text::round::rounded(it, 1, kenning_text::round::Ties::Away);
    let grade = match score {
        _ if weight <= 0.0 => "none",
        it if it >= 90.0 => "A",
        it if it >= 80.0 => "B",
        it if it >= 70.0 => "C",
        it if it >= 60.0 => "D",
        _ => "F",
    };
    // Where nothing was looked at there is no number.
    let of_code = |n: usize| (!code.symbols.is_empty()).then_some(n);
    let n_untested = of_code(untested.len()).filter(|_| has_tests);
    let of_graph = |n: usize| has_graph.then_some(n);
    report.put("grade", grade);
    report.put("score", round(score));
    report.put(
        "metrics",
        json!({
            "documents": of_graph(n_docs), "links": of_graph(n_links), "orphans": of_graph(n_orphans), "brokenLinks": of_graph(n_broken),
            "averageLinks": stats.as_ref().map(kenning_kg::GraphStats::average_links),
            "texts": texts.len(), "words": n_words, "memories": n_memories,
            "contradictions": contradictions.len(),
            "files": code.files.len(), "symbols": code.symbols.len(), "functions": n_functions,
            "untestedFunctions": n_untested, "undocumentedSymbols": of_code(undocumented.len()),
            "longFunctions": of_code(long.len()), "dependencyCycles": of_code(cycles.len()),
        }),
    );
    let scores: serde_json::Map<String, Value> = measures
        .iter()
        .filter_map(|it| Some((it.0.to_owned(), round(100.0 * it.1?).into())))
        .collect();
    report.put("scores", scores);

    let mut issues: Vec<Finding> = broken
        .iter()
        .take(EACH_MAX)
        .map(tester::broken_link)
        .collect();
    issues.extend(
        contradictions
            .iter()
            .take(EACH_MAX)
            .map(Contradiction::finding),
    );
    issues.extend(
        cycles
            .iter()
            .take(EACH_MAX)
            .map(|it| super::architect::cycle(code, it)),
    );
    issues.extend(untested.iter().take(EACH_MAX).map(|it| {
        tester::of_symbol(
            it,
            "untested",
            "no test reaches it, and nothing that tests reach names it",
            "medium",
        )
    }));
    issues.extend(
        long.iter()
            .take(EACH_MAX)
            .map(|it| tester::of_symbol(it, "long", "it has more than 100 lines", "low")),
    );
    issues.extend(orphans.iter().take(EACH_MAX).map(|it| Finding {
        kind: "orphan",
        title: format!("nothing links to or from {}", it.document.path),
        description: match it.suggestions.first() {
            Some(other) => format!("it could be linked with `{}`", other.document.path),
            None => "no other document names it".to_owned(),
        },
        relevance: 0.5,
        source: "documentation",
        references: vec![it.document.path.clone()],
        severity: Some("low"),
        ..Finding::default()
    }));
    report.summary = format!(
        "Grade {grade} ({} of 100): {}, {}, {}, {}, {}.",
        round(score),
        counted(of_graph(n_broken), "broken link"),
        count(contradictions.len(), "contradiction"),
        counted(of_code(cycles.len()), "dependency cycle"),
        counted(n_untested, "untested function"),
        counted(of_graph(n_orphans), "orphan"),
    );
    let worst = measures.iter().filter_map(|it| Some((it.0, it.1?)));
    let worst = worst
        .filter(|it| it.1 < 0.9)
        .min_by(|a, b| a.1.total_cmp(&b.1));
    report.recommendations = worst
        .map(|(name, _)| format!("Begin with {name}: it costs the grade most"))
        .into_iter()
        .collect();
    let of_high = issues.iter().filter(|it| it.severity == Some("high"));
    report.recommendations.extend(
        of_high
            .take(5)
            .map(|it| format!("Mend: {} ({})", it.title, it.references.join(", "))),
    );
    let listed = issues.iter().take(200).map(|it| {
        json!({
            "type": it.kind, "severity": it.severity, "message": it.title,
            "place": it.references.first(),
        })
    });
    report.put("issues", listed.collect::<Vec<_>>());
    report.findings = issues;
    Ok(report)
}
