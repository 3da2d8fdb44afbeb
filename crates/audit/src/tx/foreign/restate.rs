//! What an event of another log changed, written as changes of this log's own.

use super::Foreign;
use crate::event::{Change, SignedRow};
use crate::identity::is_shared_bucket;
use crate::tx::{Draft, EdgeDraft, Passages, Tx};
use kenning_core::{Hash, NodeId, Result};
use kenning_store::{Node, Row, When};
use std::collections::HashMap;

impl Tx<'_> {
    /// Does here what an event of another log did there, without appending that event. The caller records it, so
    /// that it goes to everybody as a write of this node. Gives the nodes that were put.
    ///
    /// # Errors
    /// Those of the store.
    pub fn restate(
        &mut self,
        foreign: &Foreign,
        passages: &HashMap<Hash, Passages>,
    ) -> Result<Vec<Node>> {
        let mut put = Vec::new();
        for change in &foreign.event.changes {
            match change {
                Change::PutNode { id, hash, .. } => {
                    if let Some(node) = foreign.node(*id, hash) {
                        put.push(self.restate_node(node, passages)?);
                    }
                }
                Change::RemoveNode { id } => {
                    if self.raw.node(*id, When::Now)?.is_some() {
                        self.remove_node(*id)?;
                    }
                }
                Change::PutEdge { hash, .. } => {
                    let edges = foreign.rows.iter().filter_map(|it| match it {
                        Row::Edge(edge) if edge.hash == *hash => Some(edge),
                        _ => None,
                    });
                    for edge in edges.cloned().collect::<Vec<_>>() {
                        self.put_edge(EdgeDraft {
                            src: edge.src,
                            rel: edge.rel,
                            dst: edge.dst,
                            weight: edge.weight,
                            props: edge.props,
                        })?;
                    }
                }
                Change::EndEdge { src, rel, dst } => {
                    if self.current_edge(*src, rel, *dst)?.is_some() {
                        self.end_edge(*src, rel, *dst)?;
                    }
                }
                Change::PutRow { row, .. } => self.restate_row(foreign, row)?,
                Change::RemoveRow { row } => match row {
                    SignedRow::Vector(collection, id) => self.remove_vector(collection, id)?,
                    SignedRow::Pair(bucket, key) if is_shared_bucket(bucket) => {
                        self.unset(bucket, key)?;
                    }
                    SignedRow::Names(id) => self.put_names(*id, &[])?,
                    SignedRow::Pair(..) | SignedRow::Passages(_) => {}
                },
                Change::EraseNode { id } => drop(self.erase_node(*id)?),
                Change::EraseRevision { id, hash } => drop(self.erase_revision(*id, *hash)?),
                Change::EraseEvent { event } => match self.raw.event_by_id(event)? {
                    Some(row) => drop(self.erase_event(&row)?),
                    None => self.keep_out_event(event)?,
                },
                // Who may sign is decided by each log for itself.
                Change::AddAuthor { .. }
                | Change::RevokeAuthor { .. }
                | Change::ResetClock
                | Change::Apply { .. }
                | Change::KeepRevision { .. } => {}
            }
        }
        Ok(put)
    }

    fn restate_node(&mut self, node: &Node, passages: &HashMap<Hash, Passages>) -> Result<Node> {
        let draft = Draft {
            kind: node.kind,
            project: node.project.clone(),
            key: node.key.clone(),
            title: node.title.clone(),
            body: node.body.clone(),
            props: node.props.clone(),
        };
        let known = self
            .raw
            .node_by_key(&node.project, node.kind, &node.key, When::Now)?;
        let is_moved = known.is_none() && self.raw.node(node.id, When::Now)?.is_some();
        let put = match is_moved {
            true => self.move_node(node.id, draft)?,
            false => self.put_node_as(node.id, draft)?,
        };
        match passages.get(&node.hash) {
            Some(passages) => self.put_hashed_passages(put.id, passages)?,
            None => self.put_passages(put.id, &[])?,
        }
        Ok(put)
    }

    fn restate_row(&mut self, foreign: &Foreign, row: &SignedRow) -> Result<()> {
        match row {
            SignedRow::Names(id) => {
                let names = names_of(foreign, *id);
                if !names.is_empty() {
                    self.put_names(*id, &names)?;
                }
            }
            SignedRow::Vector(collection, id) => {
                for it in &foreign.rows {
                    if let Row::Vector(it) = it
                        && (&it.collection, &it.id) == (collection, id)
                    {
                        self.put_vector(it.clone())?;
                    }
                }
            }
            SignedRow::Pair(bucket, key) if is_shared_bucket(bucket) => {
                for it in &foreign.rows {
                    if let Row::Kv(it) = it
                        && (&it.bucket, &it.key) == (bucket, key)
                    {
                        self.set(bucket, key, &it.value)?;
                    }
                }
            }
            // Passages follow from their nodes.
            SignedRow::Pair(..) | SignedRow::Passages(_) => {}
        }
        Ok(())
    }
}

fn names_of(foreign: &Foreign, id: NodeId) -> Vec<String> {
    let names = foreign.rows.iter().filter_map(|it| match it {
        Row::Name(it) if it.node == id => Some(it.name.clone()),
        _ => None,
    });
    names.collect()
}
