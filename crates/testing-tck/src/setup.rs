//! A small writer for the statements that set a scenario up: `CREATE`, after clauses that read.
//!
//! The language itself only reads. What is read here, and every property value, goes through it; only the
//! patterns of `CREATE` are read by this file.

use crate::Session;
use crate::reader::Reader;
use kenning_cypher::{NodeId, Path, Rel, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Variables and their values.
type Row = BTreeMap<String, Value>;

/// Why a statement was not run.
#[derive(Debug)]
pub enum Fault {
    /// It writes in a way that is not supported here.
    Unsupported(String),
    /// It failed as a query does.
    Query(kenning_cypher::Error),
    /// The writer does not understand it.
    Malformed(String),
}

/// The columns and rows of a statement that ends in `RETURN`.
pub type Table = Option<(Vec<String>, Vec<Vec<Value>>)>;

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Nodes that were added.
    pub nodes: u64,
    /// Relationships that were added.
    pub rels: u64,
    /// Properties that were added.
    pub properties: u64,
}

/// A name that no query has.
const ROW: &str = "`  row`";

/// Whether a statement has a clause that writes.
#[must_use]
pub fn writes(text: &str) -> bool {
    segments(text).iter().any(|it| it.0 != Kind::Read)
}

/// Runs a statement that may create.
///
/// # Errors
///
/// See [`Fault`].
pub fn execute(session: &mut Session, text: &str, effects: &mut Effects) -> Result<Table, Fault> {
    let mut rows: Vec<Row> = vec![Row::new()];
    for (kind, text) in segments(text) {
        match kind {
            Kind::Other(word) => return Err(Fault::Unsupported(word)),
            Kind::Create => {
                let parts = Reader::new(text).parts().map_err(Fault::Malformed)?;
                for row in &mut rows {
                    for part in &parts {
                        create(session, row, part, effects)?;
                    }
                }
            }
            Kind::Read => {
                let returns = words(text)
                    .iter()
                    .any(|it| it.1.eq_ignore_ascii_case("RETURN"));
                let tail = if returns { "" } else { " RETURN *" };
                let query = format!("UNWIND $`  rows` AS {ROW} {} {text}{tail}", prefix(&rows));
                let table = run(session, &query, &rows)?;
                if returns {
                    return Ok(Some(table));
                }
                let (columns, found) = table;
                let named = |values: Vec<Value>| columns.iter().cloned().zip(values).collect();
                rows = found.into_iter().map(named).collect();
                for row in &mut rows {
                    row.remove("  row");
                }
            }
        }
    }
    Ok(None)
}

fn prefix(rows: &[Row]) -> String {
    let names = rows.first().into_iter().flat_map(|it| it.keys());
    let names: String = names
        .map(|it| format!(", {ROW}.`{it}` AS `{it}`"))
        .collect();
    format!("WITH {ROW}{names}")
}

fn run(
    session: &Session,
    query: &str,
    rows: &[Row],
) -> Result<(Vec<String>, Vec<Vec<Value>>), Fault> {
    let rows = rows.iter().map(|row| {
        let entries = row
            .iter()
            .map(|(name, it)| (Arc::from(name.as_str()), it.clone()));
        Value::map(entries.collect())
    });
    let rows = rows
        .collect::<Result<Vec<Value>, _>>()
        .map_err(Fault::Query)?;
    let mut parameters = session.parameters.clone();
    parameters.insert(
        "  rows".to_owned(),
        Value::list(rows).map_err(Fault::Query)?,
    );
    let answer = session.query(query, &parameters).map_err(Fault::Query)?;
    Ok((answer.columns, answer.rows))
}

fn properties(
    session: &Session,
    row: &Row,
    text: &str,
    effects: &mut Effects,
) -> Result<BTreeMap<Arc<str>, Value>, Fault> {
    if text.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows = std::slice::from_ref(row);
    let query = format!(
        "UNWIND $`  rows` AS {ROW} {} RETURN {text} AS map",
        prefix(rows)
    );
    let (_, found) = run(session, &query, rows)?;
    match found.first().and_then(|it| it.first()) {
        Some(Value::Map(it)) => {
            let set = it.entries().values().filter(|it| !it.is_null());
            effects.properties += set.count() as u64;
            Ok(it.entries().clone())
        }
        _ => Err(Fault::Malformed(format!("`{text}` is not a map"))),
    }
}

fn create(
    session: &mut Session,
    row: &mut Row,
    part: &Part,
    effects: &mut Effects,
) -> Result<(), Fault> {
    let mut path = Path {
        nodes: Vec::new(),
        rels: Vec::new(),
    };
    for node in &part.nodes {
        path.nodes.push(create_node(session, row, node, effects)?);
    }
    for (idx, rel) in part.rels.iter().enumerate() {
        let ends = path
            .nodes
            .get(idx)
            .copied()
            .zip(path.nodes.get(idx + 1).copied());
        let Some((left, right)) = ends else { continue };
        let (start, end) = if rel.back {
            (right, left)
        } else {
            (left, right)
        };
        let values = properties(session, row, &rel.properties, effects)?;
        let made: Option<Rel> = session.graph.add_rel(start, &rel.kind, end, values);
        let made = made.ok_or_else(|| Fault::Malformed("no such node".to_owned()))?;
        effects.rels += 1;
        path.rels.push(made);
        if !rel.name.is_empty() {
            row.insert(rel.name.clone(), Value::Rel(made));
        }
    }
    if !part.name.is_empty() {
        row.insert(part.name.clone(), Value::Path(Arc::new(path)));
    }
    Ok(())
}

fn create_node(
    session: &mut Session,
    row: &mut Row,
    node: &NodeText,
    effects: &mut Effects,
) -> Result<NodeId, Fault> {
    if let Some(Value::Node(it)) = row.get(&node.name) {
        return Ok(*it);
    }
    let values = properties(session, row, &node.properties, effects)?;
    let labels: Vec<&str> = node.labels.iter().map(String::as_str).collect();
    let made = session.graph.add_node(&labels, values);
    effects.nodes += 1;
    if !node.name.is_empty() {
        row.insert(node.name.clone(), Value::Node(made));
    }
    Ok(made)
}

#[derive(Debug, PartialEq)]
enum Kind {
    Read,
    Create,
    Other(String),
}

const OTHERS: &[&str] = &["MERGE", "SET", "DELETE", "DETACH", "REMOVE", "FOREACH"];
const READS: &[&str] = &["MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN", "CALL"];

/// A statement, cut where reading and writing meet.
fn segments(text: &str) -> Vec<(Kind, &str)> {
    let mut cuts: Vec<(usize, usize, Kind)> = Vec::new();
    let mut last = String::new();
    for (at, word) in words(text) {
        let upper = word.to_uppercase();
        let after_test = last == "STARTS" || last == "ENDS";
        let after_optional = last == "OPTIONAL";
        last.clone_from(&upper);
        let kind = if upper == "CREATE" {
            Kind::Create
        } else if OTHERS.contains(&upper.as_str()) {
            Kind::Other(upper)
        } else if READS.contains(&upper.as_str()) && !after_test && !after_optional {
            Kind::Read
        } else {
            continue;
        };
        let start = if kind == Kind::Read {
            at
        } else {
            at + word.len()
        };
        match cuts.last() {
            Some((_, _, Kind::Read)) if kind == Kind::Read => {}
            _ => cuts.push((at, start, kind)),
        }
    }
    let ends: Vec<usize> = cuts
        .iter()
        .skip(1)
        .map(|it| it.0)
        .chain([text.len()])
        .collect();
    let pairs = cuts.into_iter().zip(ends);
    pairs
        .map(|((_, start, kind), end)| (kind, text.get(start..end).unwrap_or_default()))
        .collect()
}

/// The words outside brackets, quotes and comments, with their places.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let bytes = text.as_bytes();
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(it) = bytes.get(at) {
        match it {
            b'\'' | b'"' | b'`' => {
                at += 1;
                while bytes.get(at).is_some_and(|end| end != it) {
                    at += if bytes.get(at) == Some(&b'\\') { 2 } else { 1 };
                }
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                while bytes.get(at).is_some_and(|it| *it != b'\n') {
                    at += 1;
                }
            }
            it if it.is_ascii_alphabetic() || *it == b'_' => {
                let start = at;
                while bytes
                    .get(at)
                    .is_some_and(|it| it.is_ascii_alphanumeric() || *it == b'_')
                {
                    at += 1;
                }
                let is_property = start > 0 && bytes.get(start - 1) == Some(&b'.');
                if depth == 0 && !is_property {
                    words.push((start, text.get(start..at).unwrap_or_default()));
                }
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    words
}

#[derive(Default)]
struct Part {
    name: String,
    nodes: Vec<NodeText>,
    rels: Vec<RelText>,
}

struct NodeText {
    name: String,
    labels: Vec<String>,
    properties: String,
}

struct RelText {
    name: String,
    kind: String,
    properties: String,
    back: bool,
}

/// Reads the patterns of a `CREATE`.
impl Reader<'_> {
    /// The text of a map, with its braces.
    fn map_text(&mut self) -> String {
        self.skip();
        if !self.rest.starts_with('{') {
            return String::new();
        }
        let mut depth = 0usize;
        let mut quote = None;
        let mut escaped = false;
        for (at, it) in self.rest.char_indices() {
            match (quote, it) {
                (Some(_), _) if escaped => escaped = false,
                (Some(_), '\\') => escaped = true,
                (Some(open), it) if it == open => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"' | '`') => quote = Some(it),
                (None, '{') => depth += 1,
                (None, '}') => {
                    depth -= 1;
                    if depth == 0 {
                        let text = self.rest.get(..=at).unwrap_or_default().to_owned();
                        self.rest = self.rest.get(at + 1..).unwrap_or_default();
                        return text;
                    }
                }
                _ => {}
            }
        }
        String::new()
    }

    fn parts(mut self) -> Result<Vec<Part>, String> {
        let mut parts = vec![self.part()?];
        while self.eat(",") {
            parts.push(self.part()?);
        }
        self.eat(";");
        self.skip();
        if !self.rest.is_empty() {
            return Err(format!("`{}` is left of a `CREATE`", self.rest));
        }
        Ok(parts)
    }

    fn part(&mut self) -> Result<Part, String> {
        let mut part = Part::default();
        self.skip();
        if !self.rest.starts_with('(') {
            part.name = self.word("");
            self.expect("=")?;
        }
        part.nodes.push(self.node_text()?);
        loop {
            let back = self.eat("<-");
            if !back && !self.eat("-") {
                return Ok(part);
            }
            let mut rel = RelText {
                name: String::new(),
                kind: String::new(),
                properties: String::new(),
                back,
            };
            if self.eat("[") {
                rel.name = self.word("");
                if self.eat(":") {
                    rel.kind = self.word("");
                }
                rel.properties = self.map_text();
                self.expect("]")?;
            }
            self.expect("-")?;
            self.eat(">");
            part.rels.push(rel);
            part.nodes.push(self.node_text()?);
        }
    }

    fn node_text(&mut self) -> Result<NodeText, String> {
        self.expect("(")?;
        self.skip();
        let name = if self.rest.starts_with([':', '{', ')']) {
            String::new()
        } else {
            self.word("")
        };
        let mut labels = Vec::new();
        while self.eat(":") {
            self.skip();
            labels.push(self.word(""));
        }
        let properties = self.map_text();
        self.expect(")")?;
        Ok(NodeText {
            name,
            labels,
            properties,
        })
    }
}
