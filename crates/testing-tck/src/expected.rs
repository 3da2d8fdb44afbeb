//! Values as the kit writes them: `(:A {name: 'x'})`, `<(:A)-[:T]->(:B)>`, `[1, null]`.

use crate::reader::Reader;
use kenning_cypher::{Graph, MemoryGraph, NodeId, Rel, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A value without identity.
#[derive(Clone, Debug)]
pub enum Expected {
    /// `null`
    Null,
    /// `true`
    Bool(bool),
    /// `1`
    Int(i64),
    /// `1.5`, `NaN`
    Float(f64),
    /// `'text'`, and points in time
    Str(String),
    /// `[1, 2]`
    List(Vec<Self>),
    /// `{a: 1}`
    Map(BTreeMap<String, Self>),
    /// `(:A {a: 1})`
    Node(BTreeSet<String>, BTreeMap<String, Self>),
    /// `[:T {a: 1}]`
    Rel(String, BTreeMap<String, Self>),
    /// `<(:A)-[:T]->(:B)>`: nodes and relationships in turn, each with whether it leads on.
    Path(Vec<(Self, bool)>),
}

impl PartialEq for Expected {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => {
                a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
            }
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::List(a), Self::List(b)) => a == b,
            (Self::Map(a), Self::Map(b)) => a == b,
            (Self::Node(a, c), Self::Node(b, d)) => a == b && c == d,
            (Self::Rel(a, c), Self::Rel(b, d)) => a == b && c == d,
            (Self::Path(a), Self::Path(b)) => a == b,
            _ => false,
        }
    }
}

impl Expected {
    /// The value that an answer has.
    ///
    /// # Errors
    ///
    /// The graph could not be read.
    pub fn of(value: &Value, graph: &MemoryGraph) -> Result<Self, String> {
        Ok(match value {
            Value::Null => Self::Null,
            Value::Bool(it) => Self::Bool(*it),
            Value::Int(it) => Self::Int(*it),
            Value::Float(it) => Self::Float(*it),
            Value::Str(it) => Self::Str(it.to_string()),
            Value::List(it) => {
                let items = it.items().iter().map(|it| Self::of(it, graph));
                Self::List(items.collect::<Result<_, _>>()?)
            }
            Value::Map(it) => {
                let entries = it.entries().iter();
                let entries = entries.map(|(key, it)| Ok((key.to_string(), Self::of(it, graph)?)));
                Self::Map(entries.collect::<Result<_, String>>()?)
            }
            Value::Node(it) => Self::node(*it, graph)?,
            Value::Rel(it) => Self::rel(it, graph)?,
            Value::Path(it) => {
                let mut parts = Vec::new();
                for (idx, node) in it.nodes.iter().enumerate() {
                    if let Some(rel) = idx.checked_sub(1).and_then(|idx| it.rels.get(idx)) {
                        parts.push((Self::rel(rel, graph)?, rel.end == *node));
                    }
                    parts.push((Self::node(*node, graph)?, true));
                }
                Self::Path(parts)
            }
            time => Self::Str(time.to_string()),
        })
    }

    fn node(node: NodeId, graph: &MemoryGraph) -> Result<Self, String> {
        let labels = graph.labels(node).map_err(|it| it.to_string())?;
        let labels = labels
            .into_iter()
            .map(|it| graph.label_name(it).to_string());
        let found = graph.node_properties(node).map_err(|it| it.to_string())?;
        Ok(Self::Node(labels.collect(), properties(found, graph)?))
    }

    fn rel(rel: &Rel, graph: &MemoryGraph) -> Result<Self, String> {
        let found = graph.rel_properties(rel).map_err(|it| it.to_string())?;
        Ok(Self::Rel(
            graph.type_name(rel.kind).to_string(),
            properties(found, graph)?,
        ))
    }

    /// Reads a cell.
    ///
    /// # Errors
    ///
    /// It is not a value.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader::new(text.trim());
        let value = reader.value()?;
        if !reader.rest.trim().is_empty() {
            return Err(format!(
                "`{text}` is not a value: `{}` is left",
                reader.rest
            ));
        }
        Ok(value)
    }

    /// The same with every list sorted.
    #[must_use]
    pub fn sorted(self) -> Self {
        match self {
            Self::List(items) => {
                let mut items: Vec<Self> = items.into_iter().map(Self::sorted).collect();
                items.sort_by_key(|it| format!("{it:?}"));
                Self::List(items)
            }
            other => other,
        }
    }
}

fn properties(
    of: Vec<(std::sync::Arc<str>, Value)>,
    graph: &MemoryGraph,
) -> Result<BTreeMap<String, Expected>, String> {
    of.into_iter()
        .map(|(key, it)| Ok((key.to_string(), Expected::of(&it, graph)?)))
        .collect()
}

/// Characters of numbers, beside those of words.
const OF_NUMBERS: &str = ".+-";

impl Reader<'_> {
    fn value(&mut self) -> Result<Expected, String> {
        self.skip();
        match self.rest.chars().next() {
            Some('\'') => self.text(),
            Some('[') => {
                let inner = self.rest.get(1..).unwrap_or_default().trim_start();
                if inner.starts_with(':') {
                    return self.rel();
                }
                self.expect("[")?;
                let mut items = Vec::new();
                while !self.eat("]") {
                    items.push(self.value()?);
                    if !self.eat(",") && !self.rest.trim_start().starts_with(']') {
                        return Err(format!("expected `,` at `{}`", self.rest));
                    }
                }
                Ok(Expected::List(items))
            }
            Some('{') => Ok(Expected::Map(self.map()?)),
            Some('(') => self.node(),
            Some('<') => self.path(),
            _ => self.plain(),
        }
    }

    fn plain(&mut self) -> Result<Expected, String> {
        let word = self.word(OF_NUMBERS);
        Ok(match word.as_str() {
            "null" => Expected::Null,
            "true" => Expected::Bool(true),
            "false" => Expected::Bool(false),
            "NaN" => Expected::Float(f64::NAN),
            "Inf" | "Infinity" => Expected::Float(f64::INFINITY),
            "-Inf" | "-Infinity" => Expected::Float(f64::NEG_INFINITY),
            _ => match (word.parse::<i64>(), word.parse::<f64>()) {
                (Ok(it), _) => Expected::Int(it),
                (_, Ok(it)) => Expected::Float(it),
                _ => return Err(format!("`{word}` is not a value")),
            },
        })
    }

    fn text(&mut self) -> Result<Expected, String> {
        self.expect("'")?;
        let mut text = String::new();
        let mut rest = self.rest.char_indices();
        while let Some((at, it)) = rest.next() {
            match it {
                '\\' => match rest.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, it)) => text.push(it),
                    None => {}
                },
                '\'' => {
                    self.rest = self.rest.get(at + 1..).unwrap_or_default();
                    return Ok(Expected::Str(text));
                }
                _ => text.push(it),
            }
        }
        Err("a text has no end".to_owned())
    }

    fn map(&mut self) -> Result<BTreeMap<String, Expected>, String> {
        let mut map = BTreeMap::new();
        self.expect("{")?;
        while !self.eat("}") {
            let key = self.word(OF_NUMBERS);
            self.expect(":")?;
            map.insert(key, self.value()?);
            if !self.eat(",") && !self.rest.trim_start().starts_with('}') {
                return Err(format!("expected `,` at `{}`", self.rest));
            }
        }
        Ok(map)
    }

    fn properties(&mut self) -> Result<BTreeMap<String, Expected>, String> {
        self.skip();
        if self.rest.starts_with('{') {
            return self.map();
        }
        Ok(BTreeMap::new())
    }

    fn node(&mut self) -> Result<Expected, String> {
        self.expect("(")?;
        let mut labels = BTreeSet::new();
        while self.eat(":") {
            labels.insert(self.word(OF_NUMBERS));
        }
        let properties = self.properties()?;
        self.expect(")")?;
        Ok(Expected::Node(labels, properties))
    }

    fn rel(&mut self) -> Result<Expected, String> {
        self.expect("[")?;
        self.expect(":")?;
        let kind = self.word(OF_NUMBERS);
        let properties = self.properties()?;
        self.expect("]")?;
        Ok(Expected::Rel(kind, properties))
    }

    fn path(&mut self) -> Result<Expected, String> {
        self.expect("<")?;
        let mut parts = vec![(self.node()?, true)];
        while !self.eat(">") {
            let back = self.eat("<-");
            if !back {
                self.expect("-")?;
            }
            let rel = self.rel()?;
            self.expect(if back { "-" } else { "->" })?;
            parts.push((rel, !back));
            parts.push((self.node()?, true));
        }
        Ok(Expected::Path(parts))
    }
}
