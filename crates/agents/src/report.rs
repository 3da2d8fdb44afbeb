//! What an agent hands back, and the node that keeps it.

use crate::kinds::AgentKind;
use kenning_audit::{Draft, EdgeDraft, Passages, Tx};
use kenning_core::{Kind, NodeId, Result};
use kenning_search::passages;
use kenning_store::When;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// Findings that one answer holds.
pub(crate) const FINDINGS_MAX: usize = 200;
/// Sources that a report cites in the graph.
const CITED_MAX: usize = 50;
/// A longer report is cut.
const BODY_CHARS_MAX: usize = 100_000;

/// Something that was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    /// `report`, `code` or `data`.
    pub kind: &'static str,
    /// A name for a file.
    pub name: String,
    /// What it holds.
    pub content: String,
    /// In which format.
    pub mime_type: &'static str,
}

/// Something that was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Finding {
    /// A word for what it is: `broken-link`, `contradiction`, `source` …
    pub(crate) kind: &'static str,
    pub(crate) title: String,
    pub(crate) description: String,
    /// From 0 to 1.
    pub(crate) relevance: f64,
    /// `code`, `documentation`, `knowledge-graph`, `memory` or `web`.
    pub(crate) source: &'static str,
    /// Places: a path, with `:` and a line.
    pub(crate) references: Vec<String>,
    pub(crate) related: Vec<String>,
    /// `high`, `medium` or `low`, of something that is wrong.
    pub(crate) severity: Option<&'static str>,
    /// The node that it is about.
    pub(crate) node: Option<NodeId>,
}

impl Finding {
    pub(crate) fn to_json(&self) -> Value {
        let mut it = json!({
            "type": self.kind, "title": self.title, "description": self.description,
            "relevance": kenning_text::round::rounded(self.relevance, 4, kenning_text::round::Ties::Away), "source": self.source,
            "references": self.references,
        });
        if !self.related.is_empty() {
            it["relatedNodes"] = self.related.clone().into();
        }
        if let Some(severity) = self.severity {
            it["severity"] = severity.into();
        }
        it
    }
}

/// What an agent found out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub(crate) summary: String,
    pub(crate) findings: Vec<Finding>,
    pub(crate) recommendations: Vec<String>,
    /// What could not be looked at, and why.
    pub(crate) notes: Vec<String>,
    /// The fields of this agent's own kind.
    pub(crate) fields: Map<String, Value>,
    pub(crate) artifacts: Vec<Artifact>,
    /// What a model wrote about it.
    pub(crate) answer: Option<String>,
}

impl Report {
    pub(crate) fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.insert(name.to_owned(), value.into());
    }

    /// The fields of the contract, then those of this agent.
    pub(crate) fn to_json(&self) -> Value {
        let findings = self.findings.iter().take(FINDINGS_MAX);
        let mut it = json!({
            "summary": self.summary,
            "findings": findings.map(Finding::to_json).collect::<Vec<_>>(),
            "recommendations": self.recommendations,
        });
        let n = self.findings.len();
        if n > FINDINGS_MAX {
            it["findingsTotal"] = n.into();
        }
        if !self.notes.is_empty() {
            it["notes"] = self.notes.clone().into();
        }
        if let Some(answer) = &self.answer {
            it["answer"] = answer.as_str().into();
        }
        for (name, value) in &self.fields {
            it[name] = value.clone();
        }
        it
    }

    /// The same for people, each finding with its places.
    pub(crate) fn to_markdown(&self, kind: AgentKind, task: &str) -> String {
        let mut out = format!("# {}: {task}\n\n{}\n", kind.as_str(), self.summary);
        if let Some(answer) = &self.answer {
            let _ = write!(out, "\n{answer}\n");
        }
        if !self.findings.is_empty() {
            out += "\n## Findings\n\n";
        }
        for (n, it) in (1..).zip(self.findings.iter().take(FINDINGS_MAX)) {
            let severity = it.severity.map(|it| format!(" ({it})")).unwrap_or_default();
            let _ = writeln!(out, "{n}. **{}**{severity}: {}", it.title, it.description);
            for place in &it.references {
                let _ = writeln!(out, "   - `{place}`");
            }
        }
        for (head, list) in [
            ("Recommendations", &self.recommendations),
            ("Notes", &self.notes),
        ] {
            if !list.is_empty() {
                let _ = write!(out, "\n## {head}\n\n");
                for it in list {
                    let _ = writeln!(out, "- {it}");
                }
            }
        }
        if let Some((at, _)) = out.char_indices().nth(BODY_CHARS_MAX) {
            out.truncate(at);
        }
        out
    }
}

/// Whose report it is.
pub(crate) struct Written<'a> {
    pub(crate) kind: AgentKind,
    pub(crate) agent: &'a str,
    pub(crate) name: &'a str,
    pub(crate) task_id: &'a str,
    pub(crate) task: &'a str,
}

/// The key of the node of a report.
pub(crate) fn key_of(task_id: &str) -> String {
    format!("agent:{task_id}")
}

/// A report, ready to be stored: its text is cut before the transaction.
pub(crate) struct Prepared {
    draft: Draft,
    passages: Passages,
    cited: Vec<(NodeId, f64)>,
}

impl Prepared {
    pub(crate) fn of(report: &Report, of: &Written<'_>) -> Self {
        let title = format!("{}: {}", of.kind.as_str(), short(of.task, 120));
        let body = report.to_markdown(of.kind, of.task);
        let mut props = Map::new();
        for (name, value) in [
            ("source", "agent"),
            ("agentType", of.kind.as_str()),
            ("agentId", of.agent),
            ("agentName", of.name),
            ("taskId", of.task_id),
            ("description", &report.summary),
        ] {
            props.insert(name.to_owned(), value.into());
        }
        let mut cited: Vec<(NodeId, f64)> = Vec::new();
        for it in &report.findings {
            let Some(node) = it.node else { continue };
            if cited.len() < CITED_MAX && !cited.iter().any(|known| known.0 == node) {
                cited.push((node, it.relevance));
            }
        }
        Self {
            passages: passages(&title, &body).into(),
            draft: Draft {
                kind: Kind::Agent,
                project: String::new(),
                key: key_of(of.task_id),
                title,
                body,
                props,
            },
            cited,
        }
    }

    /// Puts the node and what it cites.
    pub(crate) fn put(self, tx: &mut Tx<'_>) -> Result<NodeId> {
        let node = tx.put_node(self.draft)?;
        tx.put_hashed_passages(node.id, &self.passages)?;
        for (cited, weight) in self.cited {
            // Somebody may have removed it meanwhile.
            if tx.node(cited, When::Now)?.is_some() {
                tx.put_edge(EdgeDraft {
                    src: node.id,
                    rel: "cites".to_owned(),
                    dst: cited,
                    weight,
                    props: Map::new(),
                })?;
            }
        }
        Ok(node.id)
    }
}

/// The beginning of a text, on one line.
pub(crate) fn short(text: &str, chars_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(chars_max) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
