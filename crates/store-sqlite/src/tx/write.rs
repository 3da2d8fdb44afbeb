//! Writing within a transaction.

use super::{Tx, json};
use crate::row;
use kenning_core::{Hash, Hlc, NodeId, Result};
use kenning_store::{
    CheckpointRow, Edge, EventRow, HeadRow, Node, Passage, Row, Table, TileRow, Vector, WriteTx,
    names,
};
use rusqlite::params;

impl Tx<'_> {
    fn remove_passages(&self, node: NodeId) -> Result<()> {
        let sql = "DELETE FROM passages WHERE space = ?1 AND node = ?2";
        self.run(sql, params![self.space(), node.0])?;
        Ok(())
    }

    fn insert_node(&self, node: &Node) -> Result<()> {
        self.run(
            "INSERT INTO nodes (space, id, kind, project, key, title, body, props, created,
                                updated, hash, rev)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
             ON CONFLICT (space, id) DO UPDATE SET kind = ?3, project = ?4, key = ?5, title = ?6,
               body = ?7, props = ?8, created = ?9, updated = ?10, hash = ?11, rev = ?12",
            params![
                self.space(),
                node.id.0,
                node.kind.as_str(),
                node.project,
                node.key,
                node.title,
                node.body,
                json(&node.props),
                row::signed(node.created.0),
                row::signed(node.updated.0),
                node.hash.0,
                row::signed(node.rev),
            ],
        )?;
        Ok(())
    }

    fn insert_history(&self, node: &Node, ended: Hlc) -> Result<()> {
        self.run(
            "INSERT INTO node_history (space, id, kind, project, key, title, body, props, created,
                                       updated, hash, rev, ended)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
            params![
                self.space(),
                node.id.0,
                node.kind.as_str(),
                node.project,
                node.key,
                node.title,
                node.body,
                json(&node.props),
                row::signed(node.created.0),
                row::signed(node.updated.0),
                node.hash.0,
                row::signed(node.rev),
                row::signed(ended.0),
            ],
        )?;
        Ok(())
    }

    /// Moves the current revision, if there is one, to the history without reading it into memory.
    fn archive_node(&self, id: NodeId, ended: Hlc) -> Result<()> {
        self.run(
            "INSERT INTO node_history (space, id, kind, project, key, title, body, props, created,
                                       updated, hash, rev, ended)
             SELECT space, id, kind, project, key, title, body, props, created, updated, hash, rev,
                    ?3
             FROM nodes WHERE space = ?1 AND id = ?2",
            params![self.space(), id.0, row::signed(ended.0)],
        )?;
        Ok(())
    }

    fn insert_edge(&self, edge: &Edge, on_conflict: &str) -> Result<()> {
        self.run(
            &format!(
                "INSERT INTO edges
                   (space, src, rel, dst, weight, props, valid_from, valid_to, hash)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) {on_conflict}"
            ),
            params![
                self.space(),
                edge.src.0,
                edge.rel,
                edge.dst.0,
                edge.weight,
                json(&edge.props),
                row::signed(edge.from.0),
                row::signed(edge.to.0),
                edge.hash.0,
            ],
        )?;
        Ok(())
    }

    fn insert_passage(&self, node: NodeId, passage: &Passage) -> Result<()> {
        self.run(
            "INSERT INTO passages (space, node, n, text, start, tokens, title_tokens)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                self.space(),
                node.0,
                passage.n,
                passage.text,
                row::signed(passage.start),
                passage.tokens,
                passage.title_tokens,
            ],
        )?;
        Ok(())
    }

    fn insert_name(&self, node: NodeId, name: &str) -> Result<()> {
        for key in names::keys(name) {
            self.run(
                "INSERT OR IGNORE INTO names (space, node, name, key) VALUES (?1, ?2, ?3, ?4)",
                params![self.space(), node.0, name, key],
            )?;
        }
        Ok(())
    }

    fn remove_names(&self, node: NodeId) -> Result<()> {
        let sql = "DELETE FROM names WHERE space = ?1 AND node = ?2";
        self.run(sql, params![self.space(), node.0])?;
        Ok(())
    }
}

impl WriteTx for Tx<'_> {
    fn put_node(&mut self, node: &Node) -> Result<()> {
        self.archive_node(node.id, node.updated)?;
        self.insert_node(node)
    }

    fn remove_node(&mut self, id: NodeId, at: Hlc) -> Result<()> {
        self.archive_node(id, at)?;
        self.remove_passages(id)?;
        self.remove_names(id)?;
        self.run(
            "DELETE FROM nodes WHERE space = ?1 AND id = ?2",
            params![self.space(), id.0],
        )?;
        Ok(())
    }

    fn put_edge(&mut self, edge: &Edge) -> Result<()> {
        self.end_edge(edge.src, &edge.rel, edge.dst, edge.from)?;
        // An edge that began at this very moment was never valid: it is replaced.
        self.insert_edge(
            edge,
            "ON CONFLICT (space, src, rel, dst, valid_from)
               DO UPDATE SET weight = ?5, props = ?6, valid_to = ?8, hash = ?9",
        )
    }

    fn end_edge(&mut self, src: NodeId, rel: &str, dst: NodeId, at: Hlc) -> Result<()> {
        self.run(
            "UPDATE edges SET valid_to = ?6
             WHERE space = ?1 AND src = ?2 AND rel = ?3 AND dst = ?4 AND valid_to = ?5",
            params![
                self.space(),
                src.0,
                rel,
                dst.0,
                row::signed(Hlc::MAX.0),
                row::signed(at.0)
            ],
        )?;
        Ok(())
    }

    fn put_passages(&mut self, node: NodeId, passages: &[Passage]) -> Result<()> {
        self.remove_passages(node)?;
        passages
            .iter()
            .try_for_each(|passage| self.insert_passage(node, passage))
    }

    fn put_names(&mut self, node: NodeId, names: &[String]) -> Result<()> {
        self.remove_names(node)?;
        names
            .iter()
            .try_for_each(|name| self.insert_name(node, name))
    }

    fn put_vector(&mut self, vector: &Vector) -> Result<()> {
        self.run(
            "INSERT INTO vectors (space, collection, id, model, numbers, props, seq)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (space, collection, id) DO UPDATE SET model = ?4, numbers = ?5,
               props = ?6, seq = ?7",
            params![
                self.space(),
                vector.collection,
                vector.id,
                vector.model,
                row::numbers_to_bytes(&vector.numbers),
                json(&vector.props),
                row::signed(vector.seq),
            ],
        )?;
        Ok(())
    }

    fn remove_vector(&mut self, collection: &str, id: &str) -> Result<()> {
        self.run(
            "DELETE FROM vectors WHERE space = ?1 AND collection = ?2 AND id = ?3",
            params![self.space(), collection, id],
        )?;
        Ok(())
    }

    fn append_event(&mut self, event: &EventRow) -> Result<()> {
        self.run(
            "INSERT INTO events (space, seq, version, id, parents, hlc, author, kind, payload,
                                 signature, origin, agent, data, salt, commitment)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
            params![
                self.space(),
                row::signed(event.seq),
                event.version,
                event.id.0,
                row::joined(&event.parents),
                row::signed(event.hlc.0),
                event.author,
                event.kind,
                event.payload,
                event.signature,
                event.sealed.origin,
                event.sealed.agent,
                event.sealed.data,
                event.sealed.salt,
                event.sealed.commitment,
            ],
        )?;
        Ok(())
    }

    fn put_head(&mut self, head: &HeadRow) -> Result<()> {
        self.run(
            "INSERT INTO heads (space, seq, hlc, tips, frontier, state, log)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (space) DO UPDATE SET seq = ?2, hlc = ?3, tips = ?4, frontier = ?5,
               state = ?6, log = ?7",
            params![
                self.space(),
                row::signed(head.seq),
                row::signed(head.hlc.0),
                row::joined(&head.tips),
                row::joined(&head.frontier),
                head.state,
                head.log,
            ],
        )?;
        Ok(())
    }

    fn put_tile(&mut self, tile: &TileRow) -> Result<()> {
        self.run(
            "INSERT INTO tiles (space, level, idx, hash) VALUES (?1, ?2, ?3, ?4)",
            params![
                self.space(),
                tile.level,
                row::signed(tile.index),
                tile.hash.0
            ],
        )?;
        Ok(())
    }

    fn put_checkpoint(&mut self, checkpoint: &CheckpointRow) -> Result<()> {
        self.run(
            "INSERT INTO checkpoints (space, height, seq, event_root, state_root, hlc, author,
                                      signature, version, origin)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                self.space(),
                row::signed(checkpoint.height),
                row::signed(checkpoint.seq),
                checkpoint.event_root.0,
                checkpoint.state_root.0,
                row::signed(checkpoint.hlc.0),
                checkpoint.author,
                checkpoint.signature,
                checkpoint.version,
                checkpoint.origin,
            ],
        )?;
        Ok(())
    }

    fn set(&mut self, bucket: &str, key: &str, value: &[u8]) -> Result<()> {
        self.run(
            "INSERT INTO kv (space, bucket, key, value) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (space, bucket, key) DO UPDATE SET value = ?4",
            params![self.space(), bucket, key, value],
        )?;
        Ok(())
    }

    fn unset(&mut self, bucket: &str, key: &str) -> Result<()> {
        self.run(
            "DELETE FROM kv WHERE space = ?1 AND bucket = ?2 AND key = ?3",
            params![self.space(), bucket, key],
        )?;
        Ok(())
    }

    fn load(&mut self, row: &Row) -> Result<()> {
        match row {
            Row::Node(node) => self.insert_node(node),
            Row::History(node, ended) => self.insert_history(node, *ended),
            Row::Edge(edge) => self.insert_edge(edge, ""),
            Row::Passage(it) => self.insert_passage(it.node, &it.passage),
            Row::Name(it) => self.insert_name(it.node, &it.name),
            Row::Vector(vector) => self.put_vector(vector),
            Row::Event(event) => self.append_event(event),
            Row::Tile(tile) => self.put_tile(tile),
            Row::Checkpoint(checkpoint) => self.put_checkpoint(checkpoint),
            Row::Head(head) => self.put_head(head),
            Row::Kv(kv) => self.set(&kv.bucket, &kv.key, &kv.value),
        }
    }

    fn erase_revisions(&mut self, id: NodeId, hash: Option<&Hash>) -> Result<()> {
        self.run(
            "DELETE FROM node_history
             WHERE space = ?1 AND id = ?2 AND (?3 IS NULL OR hash = ?3)",
            params![self.space(), id.0, hash.map(|it| it.0)],
        )?;
        Ok(())
    }

    fn erase_ended_edges(&mut self, id: NodeId) -> Result<()> {
        for end in ["src", "dst"] {
            let sql =
                format!("DELETE FROM edges WHERE space = ?1 AND {end} = ?2 AND valid_to <> ?3");
            self.run(&sql, params![self.space(), id.0, row::signed(Hlc::MAX.0)])?;
        }
        Ok(())
    }

    fn erase_event_data(&mut self, id: &Hash) -> Result<()> {
        self.run(
            "UPDATE events SET data = x'', salt = x'' WHERE space = ?1 AND id = ?2",
            params![self.space(), id.0],
        )?;
        Ok(())
    }

    fn clear(&mut self) -> Result<()> {
        // Backwards: passages refer to nodes.
        for table in Table::ALL.iter().rev() {
            let sql = format!("DELETE FROM {} WHERE space = ?1", table.as_str());
            self.run(&sql, params![self.space()])?;
        }
        Ok(())
    }
}
