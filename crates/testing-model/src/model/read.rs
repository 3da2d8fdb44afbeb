//! What can be asked of the model.

use super::{State, Tx};
use kenning_core::{Hash, Hlc, Kind, NodeId, Result};
use kenning_store::{
    CheckpointRow, Edge, EdgeFilter, EventFilter, EventPage, EventRow, HeadRow, KvRow, NameHit,
    NameRow, Near, Nearest, Node, NodeFilter, Passage, PassageRow, ReadTx, Row, Table, TileRow,
    Vector, When, names,
};
use std::borrow::Borrow;

fn admits(filter: &NodeFilter, node: &Node) -> bool {
    let kind = filter.kinds.is_empty() || filter.kinds.contains(&node.kind);
    let project = filter.project.as_ref().is_none_or(|it| *it == node.project);
    let key = filter.key_prefix.as_ref();
    kind && project && key.is_none_or(|it| node.key.starts_with(it.as_str()))
}

impl State {
    /// Every node as it was then, in the order of ids.
    fn nodes_when(&self, when: When) -> Vec<&Node> {
        let When::At(at) = when else {
            return self.nodes.values().collect();
        };
        let now = self.nodes.values().filter(|it| it.updated <= at);
        let then = self.history.values();
        let then = then.filter(|(node, ended)| node.updated <= at && *ended > at);
        let mut all: Vec<&Node> = now.chain(then.map(|it| &it.0)).collect();
        all.sort_by_key(|it| (it.id, std::cmp::Reverse(it.updated)));
        all
    }
}

/// `None` where there is no angle: another dimension, or a length of 0.
fn cosine(one: &[f32], two: &[f32]) -> Option<f64> {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    };
    let lengths = (dot(one, one) * dot(two, two)).sqrt();
    (one.len() == two.len() && lengths > 0.0).then(|| dot(one, two) / lengths)
}

impl<S: Borrow<State>> ReadTx for Tx<S> {
    fn node(&self, id: NodeId, when: When) -> Result<Option<Node>> {
        let all = self.state().nodes_when(when);
        Ok(all.into_iter().find(|it| it.id == id).cloned())
    }

    fn node_by_key(
        &self,
        project: &str,
        kind: Kind,
        key: &str,
        when: When,
    ) -> Result<Option<Node>> {
        let all = self.state().nodes_when(when);
        let mut all = all.into_iter();
        let same = |node: &&Node| node.project == project && node.kind == kind && node.key == key;
        Ok(all.find(same).cloned())
    }

    fn nodes(
        &self,
        filter: &NodeFilter,
        when: When,
        after: Option<NodeId>,
        limit: usize,
    ) -> Result<Vec<Node>> {
        let all = self.state().nodes_when(when).into_iter();
        let all = all.filter(|node| admits(filter, node) && after.is_none_or(|id| node.id > id));
        Ok(all.take(limit).cloned().collect())
    }

    fn count_nodes(&self, filter: &NodeFilter) -> Result<u64> {
        let nodes = self.state().nodes.values();
        Ok(nodes.filter(|it| admits(filter, it)).count() as u64)
    }

    fn history(&self, id: NodeId) -> Result<Vec<(Node, Hlc)>> {
        let of_it = self.state().history.range((id, 0)..=(id, u64::MAX));
        Ok(of_it.map(|it| it.1.clone()).collect())
    }

    fn key_history(&self, project: &str, kind: Kind, key: &str) -> Result<Vec<Node>> {
        let same = |it: &&Node| it.project == project && it.kind == kind && it.key == key;
        let now = self.state().nodes.values();
        let then = self.state().history.values().map(|it| &it.0);
        Ok(now.chain(then).filter(same).cloned().collect())
    }

    fn edge_history(&self, src: NodeId, rel: &str, dst: NodeId) -> Result<Vec<Edge>> {
        let all = self.state().edges.values();
        let same = all.filter(|it| it.src == src && it.rel == rel && it.dst == dst);
        Ok(same.cloned().collect())
    }

    fn names_of(&self, node: NodeId) -> Result<Vec<String>> {
        let all = self.state().names.keys().filter(|it| it.0 == node);
        Ok(all.map(|it| it.1.clone()).collect())
    }

    fn edges(&self, filter: &EdgeFilter, when: When, limit: usize) -> Result<Vec<Edge>> {
        let holds = |edge: &Edge| match when {
            When::Now => edge.to == Hlc::MAX,
            When::At(at) => edge.from <= at && edge.to > at,
        };
        let all = self.state().edges.values().filter(|edge| {
            holds(edge)
                && filter.src.is_none_or(|src| edge.src == src)
                && filter.rel.as_ref().is_none_or(|rel| edge.rel == *rel)
                && filter.dst.is_none_or(|dst| edge.dst == dst)
        });
        Ok(all.take(limit).cloned().collect())
    }

    fn passages(&self, node: NodeId) -> Result<Vec<Passage>> {
        let of_it = self.state().passages.range((node, 0)..=(node, u32::MAX));
        Ok(of_it.map(|it| it.1.clone()).collect())
    }

    fn find_names(&self, text: &str, filter: &NodeFilter, limit: usize) -> Result<Vec<NameHit>> {
        let wanted = names::keys(text);
        let mut found = Vec::new();
        for (node, name) in self.state().names.keys() {
            let n_common = names::keys(name).intersection(&wanted).count();
            let whose = self.state().nodes.get(node);
            if n_common > 0 && whose.is_some_and(|it| admits(filter, it)) {
                found.push((n_common, *node, name.clone()));
            }
        }
        found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| (a.1, &a.2).cmp(&(b.1, &b.2))));
        found.truncate(names::candidates(limit));
        let found = found.into_iter();
        let found = found.map(|(_, node, name)| NameRow { node, name });
        Ok(names::ranked(text, found.collect(), limit))
    }

    fn vector(&self, collection: &str, id: &str) -> Result<Option<Vector>> {
        let key = (collection.to_owned(), id.to_owned());
        Ok(self.state().vectors.get(&key).cloned())
    }

    fn vectors_since(&self, collection: &str, seq: u64, limit: usize) -> Result<Vec<Vector>> {
        let all = self.state().vectors.values();
        let all = all.filter(|vector| vector.collection == collection && vector.seq > seq);
        let mut all: Vec<Vector> = all.cloned().collect();
        all.sort_by(|a, b| (a.seq, &a.id).cmp(&(b.seq, &b.id)));
        all.truncate(limit);
        Ok(all)
    }

    fn nearest(&self, collection: &str, to: &[f32], limit: usize) -> Result<Nearest> {
        let mut found = Vec::new();
        for vector in self.state().vectors.values() {
            if vector.collection == collection
                && let Some(similarity) = cosine(&vector.numbers, to)
            {
                let id = vector.id.clone();
                found.push(Near { id, similarity });
            }
        }
        found.sort_by(|a, b| {
            let by_similarity = b.similarity.total_cmp(&a.similarity);
            by_similarity.then_with(|| a.id.cmp(&b.id))
        });
        found.truncate(limit);
        Ok(Nearest::exact(found))
    }

    fn head(&self) -> Result<Option<HeadRow>> {
        Ok(self.state().head.get(&()).cloned())
    }

    fn events_after(&self, seq: u64, limit: usize) -> Result<Vec<EventRow>> {
        let all = self.state().events.values().filter(|it| it.seq > seq);
        Ok(all.take(limit).cloned().collect())
    }

    fn events_at(&self, hlc: Hlc) -> Result<Vec<EventRow>> {
        let all = self.state().events.values().filter(|it| it.hlc == hlc);
        Ok(all.cloned().collect())
    }

    fn find_events(&self, filter: &EventFilter, page: EventPage) -> Result<Vec<EventRow>> {
        let all = self.state().events.values();
        let mut found: Vec<&EventRow> = all.filter(|it| filter.admits(it)).collect();
        found.sort_by_key(|it| (it.hlc, it.seq));
        if page.newest_first {
            found.reverse();
        }
        let skip = usize::try_from(page.skip).unwrap_or(usize::MAX);
        let page = found.into_iter().skip(skip).take(page.limit);
        Ok(page.cloned().collect())
    }

    fn count_events(&self, filter: &EventFilter) -> Result<u64> {
        let all = self.state().events.values();
        Ok(all.filter(|it| filter.admits(it)).count() as u64)
    }

    fn event_kinds(&self) -> Result<Vec<(String, u64)>> {
        let mut kinds = std::collections::BTreeMap::new();
        for event in self.state().events.values() {
            *kinds.entry(event.kind.clone()).or_insert(0) += 1;
        }
        Ok(kinds.into_iter().collect())
    }

    fn event_by_id(&self, id: &Hash) -> Result<Option<EventRow>> {
        let mut all = self.state().events.values();
        Ok(all.find(|it| it.id == *id).cloned())
    }

    fn tile(&self, level: u8, index: u64) -> Result<Option<Hash>> {
        Ok(self.state().tiles.get(&(level, index)).copied())
    }

    fn checkpoint_at(&self, seq: u64) -> Result<Option<CheckpointRow>> {
        let mut newest_first = self.state().checkpoints.values().rev();
        Ok(newest_first.find(|it| it.seq <= seq).cloned())
    }

    fn get(&self, bucket: &str, key: &str) -> Result<Option<Vec<u8>>> {
        let key = (bucket.to_owned(), key.to_owned());
        Ok(self.state().kv.get(&key).cloned())
    }

    fn list(&self, bucket: &str) -> Result<Vec<(String, Vec<u8>)>> {
        let all = self.state().kv.iter().filter(|it| it.0.0 == bucket);
        Ok(all.map(|pair| (pair.0.1.clone(), pair.1.clone())).collect())
    }

    fn scan(&self, table: Table, visit: &mut dyn FnMut(Row) -> Result<()>) -> Result<()> {
        let state = self.state();
        let rows: Vec<Row> = match table {
            Table::Nodes => state.nodes.values().cloned().map(Row::Node).collect(),
            Table::History => {
                let all = state.history.values().cloned();
                all.map(|(node, ended)| Row::History(node, ended)).collect()
            }
            Table::Edges => state.edges.values().cloned().map(Row::Edge).collect(),
            Table::Passages => {
                let row = |(&(node, _), passage): (&(NodeId, u32), &Passage)| {
                    let passage = passage.clone();
                    Row::Passage(PassageRow { node, passage })
                };
                state.passages.iter().map(row).collect()
            }
            Table::Names => {
                let all = state.names.keys().cloned();
                let row = |(node, name)| Row::Name(NameRow { node, name });
                all.map(row).collect()
            }
            Table::Vectors => state.vectors.values().cloned().map(Row::Vector).collect(),
            Table::Events => state.events.values().cloned().map(Row::Event).collect(),
            Table::Tiles => {
                let all = state.tiles.iter().map(|(&(level, index), &hash)| {
                    let tile = TileRow { level, index, hash };
                    Row::Tile(tile)
                });
                all.collect()
            }
            Table::Checkpoints => {
                let all = state.checkpoints.values().cloned();
                all.map(Row::Checkpoint).collect()
            }
            Table::Head => state.head.values().cloned().map(Row::Head).collect(),
            Table::Kv => {
                let row = |((bucket, key), value): (&(String, String), &Vec<u8>)| {
                    let (bucket, key) = (bucket.clone(), key.clone());
                    let value = value.clone();
                    Row::Kv(KvRow { bucket, key, value })
                };
                state.kv.iter().map(row).collect()
            }
        };
        rows.into_iter().try_for_each(visit)
    }
}
