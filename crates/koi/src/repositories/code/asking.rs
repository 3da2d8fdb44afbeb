//! What people ask of the code graph: where something is, who calls it, what it calls, what tests it, and
//! what a change of it may reach.

use crate::Koi;
use kenning_core::{Error, Kind, NodeId, Result};
use kenning_kernel::{Caller, Scope};
use kenning_store::{Edge, EdgeFilter, Node, NodeFilter, ReadTx, When};
use serde_json::Value;
use std::collections::{HashSet, VecDeque};

/// Symbols of one name that are looked at.
const NAMED_MAX: usize = 50;
/// Nodes that are read together.
const PAGE: usize = 1_000;
/// A change is followed so far …
const DEPTH_MAX: usize = 6;
/// … and to so many symbols.
const REACHED_MAX: usize = 1_000;

/// What is asked about a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeQuestion {
    /// Who calls it.
    Callers,
    /// What it calls.
    Callees,
    /// Which tests reach it.
    Tests,
    /// What may change when it does: callers, users and heirs, and theirs.
    Impact,
}

/// A symbol of a repository.
#[derive(Clone, Debug, PartialEq)]
pub struct CodeSymbol {
    /// The name of its node.
    pub key: String,
    /// Everything that is known of it: `label`, `name`, `file_path`, `line_start`, `signature` …
    pub props: serde_json::Map<String, Value>,
}

impl CodeSymbol {
    fn of(node: Node) -> Self {
        Self {
            key: node.key,
            props: node.props,
        }
    }

    /// A property that is a text.
    pub fn text(&self, name: &str) -> &str {
        self.props
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The line that it begins on; 0 if it is no part of a file.
    pub fn line(&self) -> u64 {
        self.props
            .get("line_start")
            .and_then(Value::as_u64)
            .unwrap_or(0)
    }
}

/// A symbol that another leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct CodeLink {
    /// The other end.
    pub symbol: CodeSymbol,
    /// The last relation on the way.
    pub relation: String,
    /// How sure that is.
    pub confidence: f64,
    /// How it was found.
    pub origin: String,
    /// The lines of it.
    pub lines: Vec<u64>,
    /// How many steps away.
    pub depth: usize,
}

impl Koi {
    /// The symbols of a name, `Type.method` or the name alone, in all repositories or in one.
    pub fn code_symbols(
        &self,
        caller: &Caller,
        name: &str,
        repository: Option<&str>,
    ) -> Result<Vec<CodeSymbol>> {
        caller.principal.require(Scope::Read)?;
        self.kernel.log().read(&caller.principal.space, |tx| {
            let found = named(tx, name, repository)?;
            Ok(found.into_iter().map(CodeSymbol::of).collect())
        })
    }

    /// What leads to the symbols of a name, or away from them. With guesses also what only has the name.
    pub fn code_links(
        &self,
        caller: &Caller,
        name: &str,
        repository: Option<&str>,
        question: CodeQuestion,
        with_guesses: bool,
    ) -> Result<Vec<(CodeSymbol, Vec<CodeLink>)>> {
        caller.principal.require(Scope::Read)?;
        self.kernel.log().read(&caller.principal.space, |tx| {
            let mut all = Vec::new();
            for node in named(tx, name, repository)? {
                let links = follow(tx, node.id, question, with_guesses)?;
                all.push((CodeSymbol::of(node), links));
            }
            if all.is_empty() {
                let shown: String = name.chars().filter(|it| !it.is_control()).take(100).collect();
                return Err(Error::not_found("symbol", shown)
                    .hint("scan the repository with `github_scan`, or look for part of the name with `knowledge_search`"));
            }
            Ok(all)
        })
    }
}

fn named(tx: &dyn ReadTx, name: &str, repository: Option<&str>) -> Result<Vec<Node>> {
    // As people write it in the language they ask about.
    let name = name.trim().trim_end_matches("()");
    let name = &name.replace("::", ".").replace('#', ".");
    let filter = NodeFilter {
        kinds: vec![Kind::Symbol],
        project: Some(String::new()),
        key_prefix: Some(match repository {
            Some(it) => format!("github:{it}:"),
            None => "github:".to_owned(),
        }),
    };
    let is_named = |it: &Node| {
        let text = |name: &str| it.props.get(name).and_then(Value::as_str);
        let is_symbol = !matches!(text("label"), Some("Import"));
        is_symbol && [text("name"), text("qualified_name")].contains(&Some(name.as_str()))
    };
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = tx.nodes(&filter, When::Now, after, PAGE)?;
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        found.extend(page.into_iter().filter(is_named));
        if found.len() >= NAMED_MAX {
            break;
        }
    }
    found.truncate(NAMED_MAX);
    // What is in the repository comes before what is outside of it.
    found.sort_by_key(|it| it.props.get("file_path").is_none());
    Ok(found)
}

fn follow(
    tx: &dyn ReadTx,
    from: NodeId,
    question: CodeQuestion,
    with_guesses: bool,
) -> Result<Vec<CodeLink>> {
    let mut relations = match question {
        // A function that is passed on is called by whoever gets it.
        CodeQuestion::Callers | CodeQuestion::Callees | CodeQuestion::Tests => {
            vec!["CALLS", "USES"]
        }
        CodeQuestion::Impact => vec!["CALLS", "EXTENDS", "IMPLEMENTS", "USES"],
    };
    if with_guesses {
        relations.push("MAY_CALL");
    }
    let depth_max = match question {
        CodeQuestion::Callers | CodeQuestion::Callees => 1,
        CodeQuestion::Tests | CodeQuestion::Impact => DEPTH_MAX,
    };
    let mut seen = HashSet::from([from]);
    let mut next = VecDeque::from([(from, 0)]);
    let mut all = Vec::new();
    while let Some((at, depth)) = next.pop_front() {
        if depth == depth_max || seen.len() > REACHED_MAX {
            continue;
        }
        for relation in &relations {
            // A type that is named is not called.
            let is_value = *relation == "USES" && question != CodeQuestion::Impact;
            if is_value && question != CodeQuestion::Callees {
                let node = tx.node(at, When::Now)?;
                if !node.is_some_and(|it| is_function(&it)) {
                    continue;
                }
            }
            for (id, edge) in edges(tx, at, relation, question)? {
                if seen.contains(&id) {
                    continue;
                }
                let Some(node) = tx.node(id, When::Now)? else {
                    continue;
                };
                if is_value && question == CodeQuestion::Callees && !is_function(&node) {
                    continue;
                }
                seen.insert(id);
                next.push_back((id, depth + 1));
                let is_test = node.props.get("is_test").and_then(Value::as_bool) == Some(true);
                if question != CodeQuestion::Tests || is_test {
                    all.push(link(node, &edge, depth + 1));
                }
            }
        }
    }
    all.sort_by(|a, b| {
        let place = |it: &CodeLink| {
            (
                it.depth,
                it.symbol.text("file_path").to_owned(),
                it.symbol.line(),
            )
        };
        place(a).cmp(&place(b))
    });
    Ok(all)
}

fn is_function(node: &Node) -> bool {
    let label = node.props.get("label").and_then(Value::as_str);
    matches!(label, Some("Function" | "Method" | "Macro"))
}

/// The other ends of a node's edges of a relation.
fn edges(
    tx: &dyn ReadTx,
    at: NodeId,
    relation: &str,
    question: CodeQuestion,
) -> Result<Vec<(NodeId, Edge)>> {
    let is_out = question == CodeQuestion::Callees;
    let filter = EdgeFilter {
        src: is_out.then_some(at),
        rel: Some(relation.to_owned()),
        dst: (!is_out).then_some(at),
    };
    let found = tx.edges(&filter, When::Now, REACHED_MAX)?.into_iter();
    Ok(found
        .map(|it| (if is_out { it.dst } else { it.src }, it))
        .collect())
}

fn link(node: Node, edge: &Edge, depth: usize) -> CodeLink {
    let lines = edge.props.get("lines").and_then(Value::as_array);
    let lines = lines.into_iter().flatten().filter_map(Value::as_u64);
    CodeLink {
        symbol: CodeSymbol::of(node),
        relation: edge.rel.clone(),
        confidence: edge.weight,
        origin: edge
            .props
            .get("origin")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        lines: lines.collect(),
        depth,
    }
}
