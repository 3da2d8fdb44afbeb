//! The interface of a graph that queries run over.

use crate::element::{Direction, NodeId, Rel, Token};
use crate::error::Result;
use crate::value::Value;
use std::sync::Arc;

/// A graph that can be read.
///
/// Answers are stable while a query runs. Methods that list things add to a buffer of the caller, in
/// batches where there may be many, so that a query that needs ten nodes does not read a million.
pub trait Graph {
    /// The number of a label, if any node has it.
    fn label(&self, name: &str) -> Option<Token>;

    /// The label of a number.
    fn label_name(&self, label: Token) -> Arc<str>;

    /// The number of a relationship type, if there is one.
    fn rel_type(&self, name: &str) -> Option<Token>;

    /// The relationship type of a number.
    fn type_name(&self, kind: Token) -> Arc<str>;

    /// How many nodes there are, or have a label. An estimate unless [`Graph::counts_are_exact`].
    fn n_nodes(&self, label: Option<Token>) -> u64;

    /// How many relationships there are, or are of a type.
    fn n_rels(&self, kind: Option<Token>) -> u64;

    /// Whether the counts are exact.
    fn counts_are_exact(&self) -> bool {
        true
    }

    /// Adds up to `n_max` nodes in the order of their ids, after the given one. Adding none means the
    /// end.
    ///
    /// # Errors
    ///
    /// The graph could not be read.
    fn nodes(
        &self,
        label: Option<Token>,
        after: Option<NodeId>,
        n_max: usize,
        into: &mut Vec<NodeId>,
    ) -> Result<()>;

    /// How many nodes of a label have one value of a property, on average; none if there is no index.
    fn index_selectivity(&self, label: Option<Token>, key: &str) -> Option<f64> {
        let _ = (label, key);
        None
    }

    /// Adds the nodes whose property equals a value. Only called if [`Graph::index_selectivity`]
    /// returns a value.
    ///
    /// # Errors
    ///
    /// The graph could not be read.
    fn nodes_by_property(
        &self,
        label: Option<Token>,
        key: &str,
        value: &Value,
        into: &mut Vec<NodeId>,
    ) -> Result<()> {
        let _ = (label, key, value, into);
        Ok(())
    }

    /// Whether there is such a node.
    ///
    /// # Errors
    ///
    /// The graph could not be read.
    fn has_node(&self, node: NodeId) -> Result<bool>;

    /// The labels of a node.
    ///
    /// # Errors
    ///
    /// The graph could not be read.
    fn labels(&self, node: NodeId) -> Result<Vec<Token>>;

    /// Whether a node has a label.
    ///
    /// # Errors
    ///
    /// The graph could not be read.
    fn has_label(&self, node: NodeId, label: Token) -> Result<bool> {
        Ok(self.labels(node)?.contains(&label))
    }

    /// Adds the relationships of a node; no types are all types.
    ///
    /// # Errors
    ///
    /// The graph could not be read.
    fn rels(
        &self,
        node: NodeId,
        direction: Direction,
        kinds: &[Token],
        into: &mut Vec<Rel>,
    ) -> Result<()>;

    /// How many relationships a node has; no types are all types.
    ///
    /// # Errors
    ///
    /// The graph could not be read.
    fn degree(&self, node: NodeId, direction: Direction, kinds: &[Token]) -> Result<u64> {
        let mut rels = Vec::new();
        self.rels(node, direction, kinds, &mut rels)?;
        Ok(rels.len() as u64)
    }

    /// Whether the graph numbers the names of properties.
    fn numbers_keys(&self) -> bool {
        false
    }

    /// The number of a property's name, if the graph numbers them and some node or relationship has it.
    fn key(&self, name: &str) -> Option<Token> {
        let _ = name;
        None
    }

    /// A property of a node by the number of its name, where it lies in memory: null if the node has none.
    /// None means that [`Graph::node_property`] must be asked.
    fn node_value(&self, node: NodeId, key: Token) -> Option<&Value> {
        let _ = (node, key);
        None
    }

    /// One property of a node, null if it has none.
    ///
    /// # Errors
    ///
    /// The graph could not be read.
    fn node_property(&self, node: NodeId, key: &str) -> Result<Value>;

    /// All properties of a node.
    ///
    /// # Errors
    ///
    /// The graph could not be read.
    fn node_properties(&self, node: NodeId) -> Result<Vec<(Arc<str>, Value)>>;

    /// One property of a relationship, null if it has none.
    ///
    /// # Errors
    ///
    /// The graph could not be read.
    fn rel_property(&self, rel: &Rel, key: &str) -> Result<Value>;

    /// All properties of a relationship.
    ///
    /// # Errors
    ///
    /// The graph could not be read.
    fn rel_properties(&self, rel: &Rel) -> Result<Vec<(Arc<str>, Value)>>;

    /// The node's `elementId`.
    fn node_name(&self, node: NodeId) -> String {
        node.0.to_string()
    }

    /// The relationship's `elementId`.
    fn rel_name(&self, rel: &Rel) -> String {
        rel.id.0.to_string()
    }
}

/// A procedure's arguments and columns.
#[derive(Clone, Debug)]
pub struct Signature {
    /// The names of the arguments, and whether they may be left out.
    pub arguments: Vec<(String, bool)>,
    /// The names of the columns.
    pub columns: Vec<String>,
}

/// The procedures for `CALL`.
pub trait Procedures {
    /// The arguments and columns of a procedure, if there is one of that name.
    fn signature(&self, name: &str) -> Option<Signature>;

    /// Calls it: one value a column for each row. `n_max` is how many rows the caller has room for.
    ///
    /// # Errors
    ///
    /// The procedure failed; it says why.
    fn call(&self, name: &str, arguments: &[Value], n_max: usize) -> Result<Vec<Vec<Value>>>;
}

/// No procedures.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProcedures;

impl Procedures for NoProcedures {
    fn signature(&self, _: &str) -> Option<Signature> {
        None
    }

    fn call(&self, _: &str, _: &[Value], _: usize) -> Result<Vec<Vec<Value>>> {
        Ok(Vec::new())
    }
}
