//! Documents as workflows see them.

use super::Work;
use kenning_core::{Code, Error, Result};
use kenning_kernel::LogQuery;
use kenning_kg::{DocumentContent, DocumentQuery, Generate};
use kenning_workflow::gaps::{self, Seen};
use kenning_workflow::{Fact, Facts};
use serde_json::Value;

/// Documents that one run looks at.
pub(super) const DOCUMENTS_MAX: usize = 5_000;

/// Words without which a text is no specification.
const SPEC_WORDS_MIN: usize = 20;

/// A path as documents have it: `./docs/` is `docs`, `.` is everything.
pub(super) fn plain(path: &str) -> &str {
    let path = path.trim().trim_start_matches("./").trim_end_matches('/');
    if path == "." { "" } else { path }
}

/// Brings the graph up to date with the files that a path is about.
pub(super) fn follow_files(work: &Work<'_>, path: &str) -> Result<()> {
    let (kernel, kg, caller) = (work.kernel, work.kg, work.caller);
    let space = &caller.principal.space;
    let has_vault = kernel.vault().is_named() && kernel.vault().space() == space;
    let has_project = kernel.project().is_named() && kernel.project().space() == space;
    if has_project && !path.starts_with("vault:") {
        let folder = match plain(path) {
            "" if path.trim().is_empty() => "docs",
            "" => ".",
            path if is_document(path) => match path.rsplit_once('/') {
                Some((folder, _)) => folder.split('/').next().unwrap_or(folder),
                None => ".",
            },
            path => path,
        };
        let generate = |folder: &str| {
            let what = Generate {
                docs_path: folder.to_owned(),
                incremental: true,
                ..Generate::default()
            };
            kg.generate_graph(caller, &what).map(drop)
        };
        let is_missing =
            |done: &Result<()>| matches!(done, Err(error) if error.code == Code::NotFound);
        let mut done = generate(folder);
        let is_unnamed = path.trim().is_empty();
        if is_unnamed && is_missing(&done) && !has_vault {
            // Without a folder of documents the whole project is looked at.
            done = generate(".");
        }
        // Somebody with nothing but a vault has no folder of documents.
        if !(is_unnamed && is_missing(&done) && has_vault) {
            return done;
        }
    }
    if has_vault {
        kg.generate_vault(caller)?;
        return Ok(());
    }
    match has_project {
        true => Ok(()),
        false => Err(Error::unavailable("there is no project and no vault")
            .hint("start with `--project DIR` or `--vault DIR`")),
    }
}

fn is_document(path: &str) -> bool {
    path.to_ascii_lowercase().ends_with(".md")
}

/// The ids and paths of the documents at or beneath a path, in the order of paths.
pub(super) fn beneath(work: &Work<'_>, path: &str) -> Result<Vec<(String, String)>> {
    let query = DocumentQuery {
        limit: usize::MAX,
        ..DocumentQuery::default()
    };
    let found = work.kg.find_documents(work.caller, &query)?;
    let wanted = match path.trim() {
        "vault" | "vault:" => "vault:",
        other => plain(other),
    };
    let is_meant = |path: &str| {
        wanted.is_empty()
            || path == wanted
            || wanted.ends_with(':') && path.starts_with(wanted)
            || path
                .strip_prefix(wanted)
                .is_some_and(|it| it.starts_with('/'))
            || path == format!("docs/{wanted}")
            || path.strip_prefix("vault:") == Some(wanted)
    };
    let mut all: Vec<(String, String)> = found
        .documents
        .into_iter()
        .filter(|it| is_meant(&it.path))
        .map(|it| (it.id, it.path))
        .collect();
    if all.is_empty() {
        let shown = if path.is_empty() { "." } else { path };
        return Err(Error::not_found("document at", shown)
            .hint("`docPath` is a file or a folder, relative to the project"));
    }
    all.sort_by(|a, b| a.1.cmp(&b.1));
    Ok(all)
}

/// What a document has and lacks.
pub(super) fn look(content: &DocumentContent) -> Seen {
    let document = &content.document;
    let text = document.content.as_deref().unwrap_or_default();
    gaps::look(&document.path, &document.title, text)
}

/// What is true of a document, in the words of planning.
pub(super) fn facts(work: &Work<'_>, content: &DocumentContent, collaborators: usize) -> Facts {
    let seen = look(content);
    let (completeness, gaps) = gaps::together(std::slice::from_ref(&seen));
    let document = &content.document;
    let matter = |name: &str| content.frontmatter.get(name);
    let is_blocked = matter("blocked") == Some(&Value::Bool(true))
        || matter("status").and_then(Value::as_str) == Some("blocked")
        || matter("blocked_by").is_some_and(|it| !it.is_null())
        || seen.n_blockers > 0;
    let has_task = matter("task").is_some_and(|it| !it.is_null() && *it != Value::Bool(false));
    let age_ms = work.now_ms().saturating_sub(document.modified_ms);
    [
        (
            "hasSpecification",
            Fact::Bool(seen.n_words >= SPEC_WORDS_MIN),
        ),
        ("specCompleteness", Fact::Number(completeness)),
        (
            "hasAcceptanceCriteria",
            Fact::Bool(seen.n_criteria > 0 || seen.sections.contains("acceptance-criteria")),
        ),
        ("taskDefined", Fact::Bool(has_task)),
        ("blockersFree", Fact::Bool(!is_blocked)),
        (
            "developmentStarted",
            Fact::Bool(matter("started") == Some(&Value::Bool(true))),
        ),
        ("timeSinceLastChange", Fact::Number(age_ms as f64)),
        (
            "lastChangeTimestamp",
            Fact::Number(document.modified_ms as f64),
        ),
        ("activeCollaborators", Fact::Number(collaborators as f64)),
        ("pendingGaps", Fact::Number(gaps.len() as f64)),
    ]
    .map(|(name, fact)| (name.to_owned(), fact))
    .into()
}

/// Facts as JSON.
pub(super) fn facts_json(facts: &Facts) -> Value {
    let shown = facts.iter().map(|(name, fact)| {
        let value = match fact {
            Fact::Bool(it) => Value::from(*it),
            Fact::Number(it) => Value::from(*it),
            Fact::Text(it) => Value::from(it.as_str()),
        };
        (name.clone(), value)
    });
    Value::Object(shown.collect())
}

/// Who wrote to a document: an agent or a key, and when last, newest first.
pub(super) fn collaborators(
    work: &Work<'_>,
    content: &DocumentContent,
) -> Result<Vec<(String, u64)>> {
    const EVENTS_MAX: usize = 100;
    let query = LogQuery {
        node: Some(content.document.node),
        limit: EVENTS_MAX,
        newest_first: true,
        ..LogQuery::default()
    };
    let found = work.kernel.query_log(work.caller, &query)?;
    let mut who: Vec<(String, u64)> = Vec::new();
    for event in found.events {
        let name = event.agent.unwrap_or(event.author);
        if !who.iter().any(|it| it.0 == name) {
            who.push((name, event.hlc.ms()));
        }
    }
    Ok(who)
}
