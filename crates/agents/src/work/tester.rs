//! What is broken, untested or undocumented, and what changed without its test.

use super::{count, counted};
use crate::code::{Code, Symbol, is_test_path};
use crate::material::{Material, NO_GRAPH};
use crate::report::{Finding, Report};
use crate::task::Task;
use kenning_core::Result;
use kenning_kg::BrokenLink;
use serde_json::json;
use std::collections::{BTreeMap, HashMap};

/// Of each kind so many are reported one by one.
const EACH_MAX: usize = 100;

pub(crate) fn work(task: &Task<'_>, material: &Material<'_>) -> Result<Report> {
    let mut report = Report::default();
    let broken = material.broken_links()?;
    if broken.is_none() {
        report.notes.push(NO_GRAPH.to_owned());
    }
    let n_broken = broken.as_ref().map(Vec::len);
    let broken = broken.unwrap_or_default();
    let code = material.code()?;
    report.notes.extend(material.why_no_code()?);
    let (untested, undocumented, changed) = task.step(
        "find-untested",
        || {
            Ok((
                code.untested(),
                code.undocumented(),
                changed_without_test(code),
            ))
        },
        |it| json!({ "untested": it.0.len(), "undocumented": it.1.len(), "changed": it.2.len() }),
    )?;
    let functions = code
        .symbols
        .iter()
        .filter(|it| it.is_function() && !it.is_of_tests());
    let n_functions = functions.count();
    let n_tests = code.symbols.iter().filter(|it| it.is_test).count();
    let (testable, tested) = (code.testable(), code.tested());
    let n_tested = testable.iter().filter(|it| tested.contains(&it.id)).count();
    let coverage = match (testable.len(), n_tests) {
        (0, _) | (_, 0) => None,
        (n, _) => Some(kenning_text::round::rounded(
            100.0 * n_tested as f64 / n as f64,
            1,
            kenning_text::round::Ties::Away,
        )),
    };
    if n_tests == 0 && n_functions > 0 {
        report
            .notes
            .push("there are no tests, so untested functions are not listed one by one".to_owned());
    }
    let mut findings: Vec<Finding> = broken.iter().take(EACH_MAX).map(broken_link).collect();
    findings.extend(changed.iter().take(EACH_MAX).map(|(file, tests)| Finding {
        kind: "changed-without-test",
        title: format!("{file} changed and its tests did not"),
        description: format!("it is tested in {}", tests.join(", ")),
        relevance: 0.8,
        source: "code",
        references: vec![file.clone()],
        severity: Some("medium"),
        ..Finding::default()
    }));
    findings.extend(untested.iter().take(EACH_MAX).map(|it| {
        of_symbol(
            it,
            "untested",
            "no test reaches it, and nothing that tests reach names it",
            "medium",
        )
    }));
    findings.extend(undocumented.iter().take(EACH_MAX).map(|it| {
        of_symbol(
            it,
            "undocumented",
            "others may call it and nothing explains it",
            "low",
        )
    }));
    // Where nothing was looked at there is no number.
    let of_code = |n: usize| (!code.symbols.is_empty()).then_some(n);
    let n_untested = of_code(untested.len()).filter(|_| n_tests > 0);
    let n_undocumented = of_code(undocumented.len());
    let n_changed = of_code(changed.len());
    let mut clauses = vec![counted(n_broken, "broken link")];
    clauses.push(match (n_functions, n_tests) {
        (1.., 0) => format!("no test of {}", count(n_functions, "function")),
        _ => counted(n_untested, "untested function"),
    });
    if let (Some(undocumented), Some(changed)) = (n_undocumented, n_changed) {
        clauses.push(count(undocumented, "undocumented symbol"));
        clauses.push(count(changed, "file") + " changed without its test");
    }
    report.summary = clauses.join(", ") + ".";
    report.recommendations = recommendations(&broken, &untested);
    report.put("brokenLinks", n_broken);
    report.put("untested", n_untested);
    report.put("undocumented", n_undocumented);
    report.put("changedWithoutTest", n_changed);
    report.put("tests", n_tests);
    report.put("functions", n_functions);
    report.put("coverage", coverage);
    report.findings = findings;
    Ok(report)
}

pub(super) fn broken_link(it: &BrokenLink) -> Finding {
    let hint = match &it.suggestion {
        Some((document, _)) => format!("; perhaps `{}` is meant", document.path),
        None => String::new(),
    };
    Finding {
        kind: "broken-link",
        title: format!(
            "{} links to `{}`, which is not there",
            it.source.path, it.target
        ),
        description: format!(
            "the {} of the link \"{}\" is missing{hint}",
            it.missing, it.text
        ),
        relevance: 1.0,
        source: "documentation",
        references: vec![format!("{}:{}", it.source.path, it.line)],
        severity: Some("high"),
        ..Finding::default()
    }
}

pub(super) fn of_symbol(
    it: &Symbol,
    kind: &'static str,
    why: &str,
    severity: &'static str,
) -> Finding {
    Finding {
        kind,
        title: format!("{} `{}` is {kind}", it.label.to_lowercase(), it.qualified),
        description: format!("{why}: `{}`", it.signature),
        relevance: 0.7,
        source: "code",
        references: vec![it.place()],
        severity: Some(severity),
        node: Some(it.id),
        related: Vec::new(),
    }
}

/// Files that a later scan found changed while none of the tests that reach them did, with those tests.
fn changed_without_test(code: &Code) -> Vec<(String, Vec<String>)> {
    let mut file_of: HashMap<(&str, &str), usize> = HashMap::new();
    for (n, it) in code.files.iter().enumerate() {
        file_of.insert((&it.repo, &it.path), n);
    }
    let of_node = |id| {
        let symbol = code.symbol(id)?;
        file_of
            .get(&(symbol.repo.as_str(), symbol.path.as_str()))
            .copied()
    };
    let by_id: HashMap<_, _> = code
        .files
        .iter()
        .enumerate()
        .map(|(n, it)| (it.id, n))
        .collect();
    let mut tests: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for it in &code.tests {
        let from = of_node(it.from).or_else(|| by_id.get(&it.from).copied());
        if let (Some(from), Some(to)) = (from, of_node(it.to))
            && from != to
        {
            let known = tests.entry(to).or_default();
            if !known.contains(&from) {
                known.push(from);
            }
        }
    }
    let mut found = Vec::new();
    for (file, tests) in tests {
        let Some(it) = code
            .files
            .get(file)
            .filter(|it| it.rev > 1 && !is_test_path(&it.path))
        else {
            continue;
        };
        let of: Vec<_> = tests.iter().filter_map(|it| code.files.get(*it)).collect();
        if of.iter().all(|test| test.commit != it.commit) {
            found.push((
                it.path.clone(),
                of.iter().map(|it| it.path.clone()).collect(),
            ));
        }
    }
    found
}

fn recommendations(broken: &[BrokenLink], untested: &[&Symbol]) -> Vec<String> {
    let mut all: Vec<String> = broken
        .iter()
        .take(5)
        .map(|it| match &it.suggestion {
            Some((document, _)) => format!(
                "In {}:{} link to `{}` instead of `{}`",
                it.source.path, it.line, document.path, it.target
            ),
            None => format!(
                "In {}:{} mend or remove the link to `{}`",
                it.source.path, it.line, it.target
            ),
        })
        .collect();
    all.extend(
        untested
            .iter()
            .take(5)
            .map(|it| format!("Test `{}` ({})", it.qualified, it.place())),
    );
    all
}
