//! The graph of a space as a query sees it: numbers in memory, long texts from rows.

use crate::graph::Graph as Memory;
use crate::rows::{self, Property};
use kenning_core::NodeId as Id;
use kenning_cypher::{Direction, Error, Graph, NodeId, Rel, Result, Token, Value};
use kenning_store::{Edge, Node};
use std::cell::RefCell;
use std::sync::Arc;

/// Reads single rows, each in a short transaction: a query may take long, and holds none open.
pub(crate) trait Rows {
    fn node(&self, id: Id) -> kenning_core::Result<Option<Node>>;

    fn edge(&self, src: Id, relation: &str, dst: Id) -> kenning_core::Result<Option<Edge>>;
}

/// The graph of a space at a moment.
pub(crate) struct View<'a> {
    graph: &'a Memory,
    rows: &'a dyn Rows,
    /// The row that was read last: a query that asks for one long text often asks for the next of the same node.
    row: RefCell<Option<Node>>,
}

impl<'a> View<'a> {
    pub(crate) fn new(graph: &'a Memory, rows: &'a dyn Rows) -> Self {
        Self {
            graph,
            rows,
            row: RefCell::new(None),
        }
    }

    pub(crate) fn find(&self, id: Id) -> Option<NodeId> {
        Some(NodeId(u64::from(self.graph.slot_of(id)?)))
    }

    fn value(&self, node: u32, name: &str, property: &Property) -> Result<Value> {
        match property {
            Property::Here(value) => Ok(value.clone()),
            Property::Moment(ms) => Ok(rows::moment(*ms)),
            Property::InRow => self.in_row(node, name),
        }
    }

    fn in_row(&self, node: u32, name: &str) -> Result<Value> {
        let Some(id) = self.graph.id_of(node) else {
            return Ok(Value::Null);
        };
        let mut row = self.row.borrow_mut();
        if row.as_ref().is_none_or(|it| it.id != id) {
            *row = self.rows.node(id).map_err(unreadable)?;
        }
        let value = row.as_ref().map(|it| rows::property_in_row(it, name));
        Ok(value.unwrap_or_default())
    }

    fn rel_value(&self, rel: &Rel, name: &str, property: &Property) -> Result<Value> {
        let (src, relation, dst) = match (property, self.graph.row_of_rel(rel.id)) {
            (Property::Here(value), _) => return Ok(value.clone()),
            (Property::Moment(ms), _) => return Ok(rows::moment(*ms)),
            (Property::InRow, None) => return Ok(Value::Null),
            (Property::InRow, Some(row)) => row,
        };
        let edge = self.rows.edge(src, relation, dst).map_err(unreadable)?;
        let value = edge.as_ref().and_then(|it| it.props.get(name));
        value.map_or(Ok(Value::Null), Value::from_json)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "a function for `map_err`")]
fn unreadable(error: kenning_core::Error) -> Error {
    Error::graph(error.to_string())
}

/// Numbers of nodes are those of the graph in memory.
fn slot(node: NodeId) -> u32 {
    u32::try_from(node.0).unwrap_or(u32::MAX)
}

impl Graph for View<'_> {
    fn label(&self, name: &str) -> Option<Token> {
        self.graph.labels.find_in_any_case(name).map(Token)
    }

    fn label_name(&self, label: Token) -> Arc<str> {
        self.graph.labels.name(label.0)
    }

    fn rel_type(&self, name: &str) -> Option<Token> {
        self.graph.types.find_in_any_case(name).map(Token)
    }

    fn type_name(&self, kind: Token) -> Arc<str> {
        self.graph.types.name(kind.0)
    }

    fn n_nodes(&self, label: Option<Token>) -> u64 {
        self.graph.n_nodes(label)
    }

    fn n_rels(&self, kind: Option<Token>) -> u64 {
        self.graph.n_rels(kind)
    }

    fn nodes(
        &self,
        label: Option<Token>,
        after: Option<NodeId>,
        n_max: usize,
        into: &mut Vec<NodeId>,
    ) -> Result<()> {
        let take = |it: u32| into.push(NodeId(u64::from(it)));
        self.graph.nodes_after(label, after.map(slot), n_max, take);
        Ok(())
    }

    fn index_selectivity(&self, _: Option<Token>, key: &str) -> Option<f64> {
        self.graph.selectivity(key)
    }

    fn nodes_by_property(
        &self,
        label: Option<Token>,
        key: &str,
        value: &Value,
        into: &mut Vec<NodeId>,
    ) -> Result<()> {
        let (mut found, in_rows) = self.graph.nodes_by_value(key, value);
        for node in in_rows {
            if self.in_row(node, key)?.equivalent(value) {
                found.push(node);
            }
        }
        let having = |it: &u32| label.is_none_or(|label| self.graph.has_label(*it, label));
        found.retain(having);
        into.extend(found.into_iter().map(|it| NodeId(u64::from(it))));
        Ok(())
    }

    fn has_node(&self, node: NodeId) -> Result<bool> {
        Ok(self.graph.has_node(slot(node)))
    }

    fn labels(&self, node: NodeId) -> Result<Vec<Token>> {
        Ok(self.graph.labels_of(slot(node)).to_vec())
    }

    fn has_label(&self, node: NodeId, label: Token) -> Result<bool> {
        Ok(self.graph.has_label(slot(node), label))
    }

    fn rels(
        &self,
        node: NodeId,
        direction: Direction,
        kinds: &[Token],
        into: &mut Vec<Rel>,
    ) -> Result<()> {
        self.graph.rels_of(slot(node), direction, kinds, into);
        Ok(())
    }

    fn degree(&self, node: NodeId, direction: Direction, kinds: &[Token]) -> Result<u64> {
        Ok(self.graph.degree(slot(node), direction, kinds))
    }

    fn numbers_keys(&self) -> bool {
        true
    }

    fn key(&self, name: &str) -> Option<Token> {
        self.graph.keys.find(name).map(Token)
    }

    fn node_value(&self, node: NodeId, key: Token) -> Option<&Value> {
        self.graph.value(slot(node), key.0)
    }

    fn node_property(&self, node: NodeId, key: &str) -> Result<Value> {
        let node = slot(node);
        let Some(token) = self.graph.keys.find(key) else {
            return Ok(Value::Null);
        };
        let properties = self.graph.properties_of(node);
        match properties.binary_search_by_key(&token, |it| it.0) {
            Ok(at) => properties
                .get(at)
                .map_or(Ok(Value::Null), |it| self.value(node, key, &it.1)),
            Err(_) => Ok(Value::Null),
        }
    }

    fn node_properties(&self, node: NodeId) -> Result<Vec<(Arc<str>, Value)>> {
        let node = slot(node);
        let properties = self.graph.properties_of(node).iter();
        let named = properties.map(|(key, it)| (self.graph.keys.name(*key), it));
        let read = named.map(|(name, it)| Ok((Arc::clone(&name), self.value(node, &name, it)?)));
        read.collect()
    }

    fn rel_property(&self, rel: &Rel, key: &str) -> Result<Value> {
        let Some(token) = self.graph.keys.find(key) else {
            return Ok(Value::Null);
        };
        let properties = self.graph.properties_of_rel(rel.id).iter();
        let mut found = properties.filter(|it| it.0 == token);
        let found = found.next();
        found.map_or(Ok(Value::Null), |it| self.rel_value(rel, key, &it.1))
    }

    fn rel_properties(&self, rel: &Rel) -> Result<Vec<(Arc<str>, Value)>> {
        let properties = self.graph.properties_of_rel(rel.id).iter();
        let named = properties.map(|(key, it)| (self.graph.keys.name(*key), it));
        let read = named.map(|(name, it)| Ok((Arc::clone(&name), self.rel_value(rel, &name, it)?)));
        read.collect()
    }

    fn node_name(&self, node: NodeId) -> String {
        match self.graph.id_of(slot(node)) {
            Some(id) => id.to_string(),
            // An event has an id of its own, a tag only its name.
            None => match ["id", "name"].map(|it| self.node_property(node, it)) {
                [Ok(Value::Str(id)), _] => id.to_string(),
                [_, Ok(Value::Str(name))] => format!("tag:{name}"),
                _ => format!("tag:{}", node.0),
            },
        }
    }

    fn rel_name(&self, rel: &Rel) -> String {
        let kind = self.graph.types.name(rel.kind.0);
        format!(
            "{}-{kind}-{}",
            self.node_name(rel.start),
            self.node_name(rel.end)
        )
    }
}
