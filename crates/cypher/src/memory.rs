//! A graph in memory, for tests and small data.

use crate::element::{Direction, NodeId, Rel, RelId, Token};
use crate::error::Result;
use crate::graph::Graph;
use crate::value::{Key, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A graph in memory.
#[derive(Debug, Default)]
pub struct MemoryGraph {
    labels: Names,
    types: Names,
    nodes: Vec<Node>,
    rels: Vec<Stored>,
    by_label: HashMap<Token, Vec<NodeId>>,
    n_by_type: HashMap<Token, u64>,
    indexes: HashMap<(Token, String), HashMap<Key, Vec<NodeId>>>,
}

#[derive(Debug, Default)]
struct Names {
    names: Vec<Arc<str>>,
    tokens: HashMap<Arc<str>, Token>,
}

#[derive(Debug, Default)]
struct Node {
    labels: Vec<Token>,
    properties: BTreeMap<Arc<str>, Value>,
    outgoing: Vec<Rel>,
    incoming: Vec<Rel>,
}

#[derive(Debug)]
struct Stored {
    rel: Rel,
    properties: BTreeMap<Arc<str>, Value>,
}

impl Names {
    fn token(&mut self, name: &str) -> Token {
        if let Some(token) = self.tokens.get(name) {
            return *token;
        }
        let token = Token(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        let name: Arc<str> = Arc::from(name);
        self.names.push(Arc::clone(&name));
        self.tokens.insert(name, token);
        token
    }

    fn name(&self, token: Token) -> Arc<str> {
        self.names
            .get(token.0 as usize)
            .cloned()
            .unwrap_or_default()
    }
}

impl MemoryGraph {
    /// A graph without nodes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node. Properties that are null are left out.
    pub fn add_node(
        &mut self,
        labels: &[&str],
        properties: impl IntoIterator<Item = (Arc<str>, Value)>,
    ) -> NodeId {
        let id = NodeId(self.nodes.len() as u64);
        let mut node = Node {
            properties: without_nulls(properties),
            ..Node::default()
        };
        for label in labels {
            let token = self.labels.token(label);
            if !node.labels.contains(&token) {
                node.labels.push(token);
                self.by_label.entry(token).or_default().push(id);
            }
        }
        for ((label, key), index) in &mut self.indexes {
            if let (true, Some(value)) = (node.labels.contains(label), node.properties.get(&**key))
            {
                index.entry(Key(value.clone())).or_default().push(id);
            }
        }
        self.nodes.push(node);
        id
    }

    /// Adds a relationship between two nodes of this graph; none if one of them does not exist.
    pub fn add_rel(
        &mut self,
        start: NodeId,
        kind: &str,
        end: NodeId,
        properties: impl IntoIterator<Item = (Arc<str>, Value)>,
    ) -> Option<Rel> {
        let n_nodes = self.nodes.len() as u64;
        if start.0 >= n_nodes || end.0 >= n_nodes {
            return None;
        }
        let rel = Rel {
            id: RelId(self.rels.len() as u64),
            start,
            end,
            kind: self.types.token(kind),
        };
        self.rels.push(Stored {
            rel,
            properties: without_nulls(properties),
        });
        *self.n_by_type.entry(rel.kind).or_default() += 1;
        self.nodes.get_mut(start.0 as usize)?.outgoing.push(rel);
        self.nodes.get_mut(end.0 as usize)?.incoming.push(rel);
        Some(rel)
    }

    /// Adds an index of a property for the nodes of a label.
    pub fn add_index(&mut self, label: &str, key: &str) {
        let token = self.labels.token(label);
        let mut index: HashMap<Key, Vec<NodeId>> = HashMap::new();
        for node in self.by_label.get(&token).into_iter().flatten() {
            if let Some(value) = self.node(*node).and_then(|it| it.properties.get(key)) {
                index.entry(Key(value.clone())).or_default().push(*node);
            }
        }
        self.indexes.insert((token, key.to_owned()), index);
    }

    /// All relationships.
    pub fn all_rels(&self) -> impl Iterator<Item = Rel> + '_ {
        self.rels.iter().map(|it| it.rel)
    }

    fn node(&self, node: NodeId) -> Option<&Node> {
        self.nodes.get(usize::try_from(node.0).ok()?)
    }

    fn stored(&self, rel: RelId) -> Option<&Stored> {
        self.rels.get(usize::try_from(rel.0).ok()?)
    }
}

fn without_nulls(
    properties: impl IntoIterator<Item = (Arc<str>, Value)>,
) -> BTreeMap<Arc<str>, Value> {
    let properties = properties.into_iter();
    properties.filter(|(_, value)| !value.is_null()).collect()
}

impl Graph for MemoryGraph {
    fn label(&self, name: &str) -> Option<Token> {
        self.labels.tokens.get(name).copied()
    }

    fn label_name(&self, label: Token) -> Arc<str> {
        self.labels.name(label)
    }

    fn rel_type(&self, name: &str) -> Option<Token> {
        self.types.tokens.get(name).copied()
    }

    fn type_name(&self, kind: Token) -> Arc<str> {
        self.types.name(kind)
    }

    fn n_nodes(&self, label: Option<Token>) -> u64 {
        label.map_or(self.nodes.len(), |it| {
            self.by_label.get(&it).map_or(0, Vec::len)
        }) as u64
    }

    fn n_rels(&self, kind: Option<Token>) -> u64 {
        kind.map_or(self.rels.len() as u64, |it| {
            self.n_by_type.get(&it).copied().unwrap_or(0)
        })
    }

    fn nodes(
        &self,
        label: Option<Token>,
        after: Option<NodeId>,
        n_max: usize,
        into: &mut Vec<NodeId>,
    ) -> Result<()> {
        match label {
            None => {
                let first = after.map_or(0, |it| it.0 + 1);
                let last = (self.nodes.len() as u64).min(first.saturating_add(n_max as u64));
                into.extend((first..last).map(NodeId));
            }
            Some(label) => {
                let nodes = self.by_label.get(&label).map_or(&[][..], Vec::as_slice);
                let first = after.map_or(0, |after| nodes.partition_point(|it| *it <= after));
                into.extend(nodes.iter().skip(first).take(n_max));
            }
        }
        Ok(())
    }

    fn index_selectivity(&self, label: Option<Token>, key: &str) -> Option<f64> {
        let label = label?;
        let index = self.indexes.get(&(label, key.to_owned()))?;
        let n_nodes: usize = index.values().map(Vec::len).sum();
        Some(n_nodes as f64 / index.len().max(1) as f64)
    }

    fn nodes_by_property(
        &self,
        label: Option<Token>,
        key: &str,
        value: &Value,
        into: &mut Vec<NodeId>,
    ) -> Result<()> {
        let index = label.and_then(|it| self.indexes.get(&(it, key.to_owned())));
        let nodes = index.and_then(|it| it.get(&Key(value.clone())));
        into.extend(nodes.into_iter().flatten());
        Ok(())
    }

    fn has_node(&self, node: NodeId) -> Result<bool> {
        Ok(self.node(node).is_some())
    }

    fn labels(&self, node: NodeId) -> Result<Vec<Token>> {
        Ok(self
            .node(node)
            .map_or_else(Vec::new, |it| it.labels.clone()))
    }

    fn has_label(&self, node: NodeId, label: Token) -> Result<bool> {
        Ok(self.node(node).is_some_and(|it| it.labels.contains(&label)))
    }

    fn rels(
        &self,
        node: NodeId,
        direction: Direction,
        kinds: &[Token],
        into: &mut Vec<Rel>,
    ) -> Result<()> {
        let Some(node) = self.node(node) else {
            return Ok(());
        };
        let of_kind = |it: &&Rel| kinds.is_empty() || kinds.contains(&it.kind);
        if direction != Direction::In {
            into.extend(node.outgoing.iter().filter(of_kind));
        }
        if direction != Direction::Out {
            let incoming = node.incoming.iter().filter(of_kind);
            into.extend(incoming.filter(|it| direction == Direction::In || it.start != it.end));
        }
        Ok(())
    }

    fn node_property(&self, node: NodeId, key: &str) -> Result<Value> {
        let value = self.node(node).and_then(|it| it.properties.get(key));
        Ok(value.cloned().unwrap_or_default())
    }

    fn node_properties(&self, node: NodeId) -> Result<Vec<(Arc<str>, Value)>> {
        let properties = self.node(node).into_iter().flat_map(|it| &it.properties);
        Ok(properties
            .map(|(key, it)| (Arc::clone(key), it.clone()))
            .collect())
    }

    fn rel_property(&self, rel: &Rel, key: &str) -> Result<Value> {
        let value = self.stored(rel.id).and_then(|it| it.properties.get(key));
        Ok(value.cloned().unwrap_or_default())
    }

    fn rel_properties(&self, rel: &Rel) -> Result<Vec<(Arc<str>, Value)>> {
        let properties = self
            .stored(rel.id)
            .into_iter()
            .flat_map(|it| &it.properties);
        Ok(properties
            .map(|(key, it)| (Arc::clone(key), it.clone()))
            .collect())
    }
}
