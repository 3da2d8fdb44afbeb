//! What can be done to the model.

use super::{State, Tx};
use kenning_core::{Error, Hash, Hlc, NodeId, Result};
use kenning_store::{
    CheckpointRow, Edge, EventRow, HeadRow, Node, Passage, Row, TileRow, Vector, WriteTx, names,
};
use std::collections::BTreeMap;

type Of<K, V> = fn(&mut State) -> &mut BTreeMap<K, V>;

fn key_exists() -> Error {
    Error::conflict("a row with that key already exists")
}

impl Tx<&mut State> {
    /// Puts or removes a row, and notes how to undo it. Every change goes through here.
    fn change<K, V>(&mut self, table: Of<K, V>, key: K, value: Option<V>)
    where
        K: Ord + Clone + 'static,
        V: 'static,
    {
        fn put<K: Ord, V>(table: &mut BTreeMap<K, V>, key: K, value: Option<V>) -> Option<V> {
            match value {
                Some(value) => table.insert(key, value),
                None => table.remove(&key),
            }
        }
        let before = put(table(self.state), key.clone(), value);
        self.undo.push(Box::new(move |state| {
            put(table(state), key, before);
        }));
    }

    /// Puts a row where none is.
    fn insert<K, V>(&mut self, table: Of<K, V>, key: K, value: V) -> Result<()>
    where
        K: Ord + Clone + 'static,
        V: 'static,
    {
        if table(self.state).contains_key(&key) {
            return Err(key_exists());
        }
        self.change(table, key, Some(value));
        Ok(())
    }

    /// Puts a node; its key may be no other node's.
    fn insert_node(&mut self, node: &Node) -> Result<()> {
        let twin = |other: &Node| {
            (&other.project, other.kind, &other.key) == (&node.project, node.kind, &node.key)
                && other.id != node.id
        };
        if self.state.nodes.values().any(twin) {
            return Err(key_exists());
        }
        self.change(|it| &mut it.nodes, node.id, Some(node.clone()));
        Ok(())
    }

    fn archive(&mut self, id: NodeId, ended: Hlc) -> Result<()> {
        let Some(node) = self.state.nodes.get(&id).cloned() else {
            return Ok(());
        };
        self.insert(|it| &mut it.history, (id, node.rev), (node, ended))
    }

    fn insert_edge(&mut self, edge: &Edge) -> Result<()> {
        let key = (edge.src, edge.rel.clone(), edge.dst, edge.from);
        self.insert(|it| &mut it.edges, key, edge.clone())
    }

    fn replace_edge(&mut self, edge: &Edge) -> Result<()> {
        let key = (edge.src, edge.rel.clone(), edge.dst, edge.from);
        self.change(|it| &mut it.edges, key, Some(edge.clone()));
        Ok(())
    }

    fn insert_passage(&mut self, node: NodeId, passage: &Passage) -> Result<()> {
        if !self.state.nodes.contains_key(&node) {
            return Err(Error::not_found("node", node));
        }
        let key = (node, passage.n);
        self.insert(|it| &mut it.passages, key, passage.clone())
    }

    fn insert_name(&mut self, node: NodeId, name: &str) {
        // A name without letters and digits has no keys, so it is never found and not stored.
        if !names::keys(name).is_empty() {
            self.change(|it| &mut it.names, (node, name.to_owned()), Some(()));
        }
    }

    fn remove_passages(&mut self, node: NodeId) {
        let of_it = self.state.passages.range((node, 0)..=(node, u32::MAX));
        let keys: Vec<_> = of_it.map(|it| *it.0).collect();
        for key in keys {
            self.change(|it| &mut it.passages, key, None);
        }
    }

    fn remove_names(&mut self, node: NodeId) {
        let of_it = self.state.names.keys().filter(|it| it.0 == node);
        let keys: Vec<_> = of_it.cloned().collect();
        for key in keys {
            self.change(|it| &mut it.names, key, None);
        }
    }
}

impl WriteTx for Tx<&mut State> {
    fn put_node(&mut self, node: &Node) -> Result<()> {
        self.archive(node.id, node.updated)?;
        self.insert_node(node)
    }

    fn remove_node(&mut self, id: NodeId, at: Hlc) -> Result<()> {
        self.archive(id, at)?;
        self.remove_passages(id);
        self.remove_names(id);
        self.change(|it| &mut it.nodes, id, None);
        Ok(())
    }

    fn put_edge(&mut self, edge: &Edge) -> Result<()> {
        self.end_edge(edge.src, &edge.rel, edge.dst, edge.from)?;
        self.replace_edge(edge)
    }

    fn end_edge(&mut self, src: NodeId, rel: &str, dst: NodeId, at: Hlc) -> Result<()> {
        let same = |edge: &Edge| (edge.src, edge.rel.as_str(), edge.dst) == (src, rel, dst);
        let open = self.state.edges.iter();
        let open = open.filter(|row| same(row.1) && row.1.to == Hlc::MAX);
        let open: Vec<_> = open.map(|row| (row.0.clone(), row.1.clone())).collect();
        for (key, edge) in open {
            self.change(|it| &mut it.edges, key, Some(Edge { to: at, ..edge }));
        }
        Ok(())
    }

    fn put_passages(&mut self, node: NodeId, passages: &[Passage]) -> Result<()> {
        self.remove_passages(node);
        let mut passages = passages.iter();
        passages.try_for_each(|it| self.insert_passage(node, it))
    }

    fn put_names(&mut self, node: NodeId, names: &[String]) -> Result<()> {
        self.remove_names(node);
        names.iter().for_each(|name| self.insert_name(node, name));
        Ok(())
    }

    fn put_vector(&mut self, vector: &Vector) -> Result<()> {
        let key = (vector.collection.clone(), vector.id.clone());
        self.change(|it| &mut it.vectors, key, Some(vector.clone()));
        Ok(())
    }

    fn remove_vector(&mut self, collection: &str, id: &str) -> Result<()> {
        let key = (collection.to_owned(), id.to_owned());
        self.change(|it| &mut it.vectors, key, None);
        Ok(())
    }

    fn append_event(&mut self, event: &EventRow) -> Result<()> {
        if self.state.events.values().any(|it| it.id == event.id) {
            return Err(key_exists());
        }
        self.insert(|it| &mut it.events, event.seq, event.clone())
    }

    fn put_head(&mut self, head: &HeadRow) -> Result<()> {
        self.change(|it| &mut it.head, (), Some(head.clone()));
        Ok(())
    }

    fn put_tile(&mut self, tile: &TileRow) -> Result<()> {
        self.insert(|it| &mut it.tiles, (tile.level, tile.index), tile.hash)
    }

    fn put_checkpoint(&mut self, checkpoint: &CheckpointRow) -> Result<()> {
        let row = checkpoint.clone();
        self.insert(|it| &mut it.checkpoints, checkpoint.height, row)
    }

    fn set(&mut self, bucket: &str, key: &str, value: &[u8]) -> Result<()> {
        let key = (bucket.to_owned(), key.to_owned());
        self.change(|it| &mut it.kv, key, Some(value.to_vec()));
        Ok(())
    }

    fn unset(&mut self, bucket: &str, key: &str) -> Result<()> {
        let key = (bucket.to_owned(), key.to_owned());
        self.change(|it| &mut it.kv, key, None);
        Ok(())
    }

    fn load(&mut self, row: &Row) -> Result<()> {
        match row {
            Row::Node(node) => self.insert_node(node),
            Row::History(node, ended) => {
                let value = (node.clone(), *ended);
                self.insert(|it| &mut it.history, (node.id, node.rev), value)
            }
            Row::Edge(edge) => self.insert_edge(edge),
            Row::Passage(it) => self.insert_passage(it.node, &it.passage),
            Row::Name(it) => {
                self.insert_name(it.node, &it.name);
                Ok(())
            }
            Row::Vector(vector) => self.put_vector(vector),
            Row::Event(event) => self.append_event(event),
            Row::Tile(tile) => self.put_tile(tile),
            Row::Checkpoint(checkpoint) => self.put_checkpoint(checkpoint),
            Row::Head(head) => self.put_head(head),
            Row::Kv(kv) => self.set(&kv.bucket, &kv.key, &kv.value),
        }
    }

    fn erase_revisions(&mut self, id: NodeId, hash: Option<&Hash>) -> Result<()> {
        let of_it = self.state.history.range((id, 0)..=(id, u64::MAX));
        let erased = of_it.filter(|row| hash.is_none_or(|hash| row.1.0.hash == *hash));
        let keys: Vec<_> = erased.map(|row| *row.0).collect();
        for key in keys {
            self.change(|it| &mut it.history, key, None);
        }
        Ok(())
    }

    fn erase_ended_edges(&mut self, id: NodeId) -> Result<()> {
        let edges = self.state.edges.iter();
        let ended = edges.filter(|(_, it)| (it.src == id || it.dst == id) && it.to != Hlc::MAX);
        let keys: Vec<_> = ended.map(|row| row.0.clone()).collect();
        for key in keys {
            self.change(|it| &mut it.edges, key, None);
        }
        Ok(())
    }

    fn erase_event_data(&mut self, id: &Hash) -> Result<()> {
        let event = self.state.events.values().find(|it| it.id == *id).cloned();
        if let Some(mut event) = event {
            event.sealed.data.clear();
            event.sealed.salt.clear();
            self.change(|it| &mut it.events, event.seq, Some(event));
        }
        Ok(())
    }

    fn clear(&mut self) -> Result<()> {
        let before = std::mem::take(self.state);
        self.undo.push(Box::new(move |state| *state = before));
        Ok(())
    }
}
