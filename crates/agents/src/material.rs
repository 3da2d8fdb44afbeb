//! What agents look at: documents with their links, code, memories, and what search finds.

use crate::code::Code;
use crate::report::{Finding, short};
use crate::task::Task;
use kenning_core::{Code as ErrorCode, Kind, NodeId, Result};
use kenning_kernel::projects;
use kenning_kernel::search::{Wanted, policy};
use kenning_kg::{BrokenLink, GraphStats, Orphan};
use kenning_memory::claims::{self, Claim};
use kenning_search::Filter;
use kenning_store::{EdgeFilter, Node, NodeFilter, When};
use serde_json::Value;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

/// Documents and memories that are compared with each other.
const TEXTS_MAX: usize = 20_000;
/// Links that are shown.
const LINKS_MAX: usize = 1_000;
/// Nodes that are read together.
const PAGE: usize = 500;

/// The words of a task that stand for nothing to look for.
const IDLE: &[&str] = &[
    "a",
    "an",
    "the",
    "and",
    "or",
    "of",
    "to",
    "in",
    "on",
    "at",
    "for",
    "by",
    "with",
    "from",
    "about",
    "into",
    "is",
    "are",
    "be",
    "do",
    "does",
    "how",
    "what",
    "which",
    "who",
    "where",
    "when",
    "why",
    "that",
    "this",
    "it",
    "its",
    "our",
    "my",
    "we",
    "you",
    "all",
    "any",
    "please",
    "find",
    "look",
    "analyze",
    "analyse",
    "research",
    "explain",
    "describe",
    "show",
    "list",
    "tell",
    "me",
    "us",
    "can",
    "could",
    "should",
    "would",
    "codebase",
    "code",
    "project",
    "repository",
    "design",
    "report",
    "summarize",
    "there",
    "has",
    "have",
    "was",
    "were",
    "will",
];

/// A text that states something.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) node: NodeId,
    pub(crate) kind: Kind,
    pub(crate) place: String,
    pub(crate) body: String,
}

/// Two places that contradict each other.
#[derive(Clone, Debug)]
pub(crate) struct Contradiction {
    pub(crate) one: (NodeId, String, String),
    pub(crate) other: (NodeId, String, String),
    pub(crate) why: String,
}

impl Contradiction {
    pub(crate) fn finding(&self) -> Finding {
        Finding {
            kind: "contradiction",
            title: format!("{} and {} contradict each other", self.one.1, self.other.1),
            description: format!(
                "\"{}\" against \"{}\" ({})",
                short(&self.one.2, 200),
                short(&self.other.2, 200),
                self.why
            ),
            relevance: 0.9,
            source: "documentation",
            references: vec![self.one.1.clone(), self.other.1.clone()],
            severity: Some("high"),
            node: Some(self.one.0),
            related: vec![self.other.1.clone()],
        }
    }
}

/// Something that search found.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) node: Node,
    pub(crate) relevance: f64,
    pub(crate) passage: String,
    /// The queries that found it.
    pub(crate) queries: Vec<usize>,
}

/// What a task can look at. Each part is read when it is first asked for.
pub(crate) struct Material<'a> {
    pub(crate) task: &'a Task<'a>,
    /// The repository that the task names.
    pub(crate) repository: Option<String>,
    /// What is to be said of the project's code, if it is not as it is in the last commit.
    pub(crate) unread: Option<String>,
    code: OnceCell<Code>,
    texts: OnceCell<Vec<Text>>,
}

impl<'a> Material<'a> {
    pub(crate) fn new(task: &'a Task<'a>) -> Result<Self> {
        let koi = &task.agents.koi;
        let unread = match koi.awaits_project(task.caller)? {
            false => None,
            true => task.step(
                "read-project",
                || koi.wait_for_project(task.caller),
                |it| serde_json::json!({ "note": it }),
            )?,
        };
        let names = task.agents.koi.repository_names(task.caller)?;
        let words: HashSet<String> = words(task.text).collect();
        let named = |it: &&String| words.contains(&it.to_lowercase());
        Ok(Self {
            task,
            repository: names.iter().find(named).cloned(),
            unread,
            code: OnceCell::new(),
            texts: OnceCell::new(),
        })
    }

    /// The code of the repositories.
    pub(crate) fn code(&self) -> Result<&Code> {
        if let Some(code) = self.code.get() {
            return Ok(code);
        }
        let task = self.task;
        let read = || {
            let space = &task.caller.principal.space;
            let repository = self.repository.as_deref();
            let check = || task.caller.check();
            let log = task.agents.kernel.log();
            log.read(space, |tx| Code::read(tx, repository, &check))
        };
        let code = task.step(
            "read-code",
            read,
            |it| serde_json::json!({ "files": it.files.len(), "symbols": it.symbols.len() }),
        )?;
        Ok(self.code.get_or_init(|| code))
    }

    /// Why no code was looked at, where there is none; that it was not read yet is said anyway.
    pub(crate) fn why_no_code(&self) -> Result<Option<String>> {
        let is_missing = self.unread.is_none() && self.code()?.files.is_empty();
        Ok(is_missing.then(|| NO_CODE.to_owned()))
    }

    /// The texts that people wrote: documents, notes, pages and memories.
    pub(crate) fn texts(&self) -> Result<&[Text]> {
        if let Some(texts) = self.texts.get() {
            return Ok(texts);
        }
        let texts = self.task.step(
            "read-documents",
            || self.read_texts(),
            |it| serde_json::json!({ "texts": it.len() }),
        )?;
        Ok(self.texts.get_or_init(|| texts))
    }

    fn read_texts(&self) -> Result<Vec<Text>> {
        let task = self.task;
        let seen_projects = task.agents.kernel.projects_seen_by(task.caller)?;
        task.agents
            .kernel
            .log()
            .read(&task.caller.principal.space, |tx| {
                let filter = NodeFilter {
                    kinds: vec![Kind::Document, Kind::Memory, Kind::Page],
                    ..NodeFilter::default()
                };
                let (mut texts, mut after) = (Vec::new(), None);
                let mut seen = HashSet::new();
                loop {
                    task.caller.check()?;
                    let page = tx.nodes(&filter, When::Now, after, PAGE)?;
                    let Some(last) = page.last() else { break };
                    after = Some(last.id);
                    for node in page {
                        let is_text = match node.kind {
                            Kind::Document => {
                                is_markdown(&node.key) && !node.key.starts_with("omi:")
                            }
                            _ => projects::is_seen(&node, &seen_projects),
                        };
                        // The same file may be a document of the project and of a repository.
                        let is_new =
                            is_text && seen.insert(kenning_core::Hash::of(node.body.as_bytes()));
                        if is_new && texts.len() < TEXTS_MAX {
                            texts.push(Text {
                                node: node.id,
                                kind: node.kind,
                                place: place_of(&node),
                                body: node.body,
                            });
                        }
                    }
                }
                Ok(texts)
            })
    }

    /// Statements of different places, or of one, that cannot both be right.
    pub(crate) fn contradictions(&self) -> Result<Vec<Contradiction>> {
        let texts = self.texts()?;
        let of: Vec<&Text> = texts.iter().filter(|it| !is_history(&it.place)).collect();
        self.task.step(
            "compare-statements",
            || {
                let mut all: Vec<(&Text, Claim)> = Vec::new();
                for text in of {
                    self.task.caller.check()?;
                    all.extend(claims::claims(&text.body).into_iter().map(|it| (text, it)));
                }
                let only: Vec<&Claim> = all.iter().map(|it| &it.1).collect();
                let place = |n: usize| {
                    let (text, claim) = &all[n];
                    let place = match text.kind {
                        Kind::Memory => text.place.clone(),
                        _ => format!("{}:{}", text.place, claim.line),
                    };
                    (text.node, place, claim.text.clone())
                };
                let found = claims::opposed(&only).into_iter();
                let found = found.map(|it| Contradiction {
                    one: place(it.one),
                    other: place(it.other),
                    why: it.why,
                });
                Ok(found.collect::<Vec<_>>())
            },
            |it| serde_json::json!({ "contradictions": it.len() }),
        )
    }

    /// Links that lead nowhere; `None` before there is a graph of documents.
    pub(crate) fn broken_links(&self) -> Result<Option<Vec<BrokenLink>>> {
        let task = self.task;
        task.step(
            "check-links",
            || {
                let found = task.agents.kg.graph_broken_links(task.caller, 0, LINKS_MAX);
                Ok(unless_missing(found)?.map(|it| it.0))
            },
            |it| serde_json::json!({ "brokenLinks": it.as_ref().map(Vec::len) }),
        )
    }

    /// Documents without links; `None` before there is a graph.
    pub(crate) fn orphans(&self) -> Result<Option<Vec<Orphan>>> {
        let task = self.task;
        task.step(
            "find-orphans",
            || {
                let found = task.agents.kg.graph_orphans(task.caller, 0, 50);
                Ok(unless_missing(found)?.map(|it| it.0))
            },
            |it| serde_json::json!({ "orphans": it.as_ref().map(Vec::len) }),
        )
    }

    /// Figures of the graph; `None` before there is one.
    pub(crate) fn stats(&self) -> Result<Option<GraphStats>> {
        let task = self.task;
        task.step(
            "measure-graph",
            || unless_missing(task.agents.kg.graph_stats(task.caller)),
            |it| serde_json::json!({ "documents": it.as_ref().map(|it| it.nodes) }),
        )
    }

    /// What answers any of the queries, best first.
    pub(crate) fn search(&self, queries: &[String], limit: usize) -> Result<Vec<Source>> {
        let task = self.task;
        let kernel = &task.agents.kernel;
        kenning_kg::Entities::follow(&*task.agents.koi, task.caller)?;
        let filters = [Filter {
            memories_of: kernel.projects_seen_by(task.caller)?,
            kinds: vec![
                Kind::Document,
                Kind::Page,
                Kind::Memory,
                Kind::Symbol,
                Kind::Entity,
            ],
            ..Filter::default()
        }];
        let mut found: HashMap<NodeId, Source> = HashMap::new();
        for (n, query) in queries.iter().enumerate() {
            task.check()?;
            let question = kernel.question(query);
            let space = &task.caller.principal.space;
            kernel.log().read(space, |tx| {
                let now_ms = kernel.log().clock().now_ms();
                let wanted = Wanted::new(&policy::TEXTS, &filters, limit, now_ms);
                let hits = kernel.search(space, tx, &question, |search| search.find(&wanted))??;
                for hit in hits.hits {
                    if let Some(known) = found.get_mut(&hit.node) {
                        if !known.queries.contains(&n) {
                            known.queries.push(n);
                        }
                        known.relevance = known.relevance.max(hit.relevance);
                        continue;
                    }
                    let Some(node) = tx.node(hit.node, When::Now)? else {
                        continue;
                    };
                    let passages = tx.passages(hit.node)?;
                    let passage = passages.into_iter().find(|it| it.n == hit.n);
                    found.insert(
                        hit.node,
                        Source {
                            passage: passage.map_or_else(|| node.body.clone(), |it| it.text),
                            node,
                            relevance: hit.relevance,
                            queries: vec![n],
                        },
                    );
                }
                Ok(())
            })?;
        }
        let mut all: Vec<Source> = found.into_values().collect();
        // What several queries found comes before what one did, if it is about as relevant.
        let weight = |it: &Source| it.relevance + 0.05 * (it.queries.len() as f64 - 1.0);
        all.sort_by(|a, b| {
            weight(b)
                .total_cmp(&weight(a))
                .then(a.node.key.cmp(&b.node.key))
        });
        all.truncate(limit);
        Ok(all)
    }

    /// What a node is linked with, by title and relation.
    pub(crate) fn neighbors(&self, node: NodeId, limit: usize) -> Result<Vec<String>> {
        let task = self.task;
        task.agents
            .kernel
            .log()
            .read(&task.caller.principal.space, |tx| {
                let mut found: Vec<String> = Vec::new();
                for is_out in [true, false] {
                    let filter = EdgeFilter {
                        src: is_out.then_some(node),
                        dst: (!is_out).then_some(node),
                        rel: None,
                    };
                    for edge in tx.edges(&filter, When::Now, limit)? {
                        let other = if is_out { edge.dst } else { edge.src };
                        let Some(other) = tx.node(other, When::Now)? else {
                            continue;
                        };
                        if other.kind == Kind::Agent || other.title.is_empty() {
                            continue;
                        }
                        let shown = match is_out {
                            true => format!("{} → {}", edge.rel, other.title),
                            false => format!("{} ← {}", edge.rel, other.title),
                        };
                        if found.len() < limit && !found.contains(&shown) {
                            found.push(shown);
                        }
                    }
                }
                Ok(found)
            })
    }

    /// The text of a file of a repository.
    pub(crate) fn file_text(&self, node: NodeId) -> Result<Option<String>> {
        let task = self.task;
        let space = &task.caller.principal.space;
        let node = task
            .agents
            .kernel
            .log()
            .read(space, |tx| tx.node(node, When::Now))?;
        Ok(node.map(|it| it.body))
    }
}

/// The words of a text, in small letters.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let is_part = |it: char| it.is_alphanumeric() || matches!(it, '_' | '-' | '.' | '/' | '\'');
    text.split(move |it: char| !is_part(it))
        .map(|it| {
            it.trim_matches(|it: char| !it.is_alphanumeric() && it != '_')
                .to_lowercase()
        })
        .filter(|it| !it.is_empty())
}

/// The words that say what a task is about.
pub(crate) fn subject(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in words(text) {
        if word.chars().count() > 1 && !IDLE.contains(&word.as_str()) && !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

/// Several ways to ask for the same: the task, its subject, what it quotes, and pairs of its words.
pub(crate) fn queries(text: &str) -> Vec<String> {
    const QUERIES_MAX: usize = 8;
    let subject = subject(text);
    let mut all = vec![short(text, 1_000)];
    if !subject.is_empty() {
        all.push(subject.join(" "));
    }
    for quote in ['"', '`', '\''] {
        let parts = text.split(quote).skip(1).step_by(2);
        all.extend(
            parts
                .map(str::trim)
                .filter(|it| it.len() > 2)
                .map(ToOwned::to_owned),
        );
    }
    all.extend(subject.windows(2).map(|it| it.join(" ")));
    if subject.len() <= 3 {
        all.extend(subject);
    }
    let mut distinct: Vec<String> = Vec::new();
    for it in all {
        if !it.is_empty() && !distinct.contains(&it) && distinct.len() < QUERIES_MAX {
            distinct.push(it);
        }
    }
    distinct
}

fn is_markdown(key: &str) -> bool {
    let key = key.to_lowercase();
    key.ends_with(".md") || key.ends_with(".markdown")
}

/// What was true once stands there on purpose.
fn is_history(place: &str) -> bool {
    let place = place.to_lowercase();
    ["changelog", "history", "release-notes", "releases"]
        .iter()
        .any(|it| place.contains(it))
}

/// Where a node is, for people.
pub(crate) fn place_of(node: &Node) -> String {
    let text = |name: &str| node.props.get(name).and_then(Value::as_str);
    match node.kind {
        Kind::Memory => kenning_kernel::memory_id(node),
        Kind::Symbol => match (text("file_path"), node.props.get("line_start")) {
            (Some(path), Some(line)) => format!("{path}:{line}"),
            _ => node.key.clone(),
        },
        Kind::Page => text("url").unwrap_or(&node.key).to_owned(),
        _ => text("path").unwrap_or(&node.key).to_owned(),
    }
}

/// The word of the contract for where something is from.
pub(crate) fn source_of(node: &Node) -> &'static str {
    match node.kind {
        Kind::Symbol => "code",
        Kind::Document if node.props.get("language").is_some() => "code",
        Kind::Document => "documentation",
        Kind::Memory => "memory",
        Kind::Page => "web",
        _ => "knowledge-graph",
    }
}

/// `None` if there is no graph of documents yet.
fn unless_missing<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error)
            if error.code == ErrorCode::Unavailable
                && error.message.contains("not initialized") =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// What is said where there is no graph of documents.
pub(crate) const NO_GRAPH: &str =
    "there is no graph of documents yet, so links were not checked: run `kg_graph_generate`";
/// What is said where there is no code.
const NO_CODE: &str = "no repository was scanned, so no code was looked at: run `github_scan`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_asked_in_several_ways() {
        assert_eq!(
            subject("Analyze API design patterns in the codebase"),
            ["api", "patterns"]
        );
        let all = queries("Find how \"session tokens\" expire in the gateway");
        assert!(all.contains(&"session tokens".to_owned()), "{all:?}");
        assert!(all.len() >= 4, "{all:?}");
        assert!(queries("").is_empty());
    }
}
