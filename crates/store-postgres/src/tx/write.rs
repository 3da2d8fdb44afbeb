//! Writing within a transaction.

use super::{COLLECTION, Tx, json};
use crate::connect::Later;
use crate::row::{joined, signed};
use kenning_core::{Hash, Hlc, NodeId, Result};
use kenning_store::{
    CheckpointRow, Edge, EventRow, HeadRow, Node, Passage, Row, Table, TileRow, Vector, WriteTx,
    names,
};
use std::sync::atomic::Ordering;
use tokio_postgres::types::ToSql;

/// Parameters that are kept until they are sent.
macro_rules! owned {
    ($($value:expr),* $(,)?) => {
        vec![$(Box::new($value) as Box<dyn ToSql + Sync + Send>),*]
    };
}

/// Rows that one statement of [`WriteTx::clear`] removes.
const CLEAR_PAGE: usize = 2_000;

impl Tx<'_> {
    /// Changes rows, at the latest before the next query or the end of the call. An error is reported
    /// then.
    fn later(&self, sql: &str, params: Later) -> Result<()> {
        self.connection.later(sql, params)
    }

    fn insert_node(&self, node: &Node) -> Result<()> {
        self.later(
            "INSERT INTO nodes (space, id, kind, project, key, title, body, props, created,
                                updated, hash, rev)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
             ON CONFLICT (space, id) DO UPDATE SET kind = $3, project = $4, key = $5, title = $6,
               body = $7, props = $8, created = $9, updated = $10, hash = $11, rev = $12",
            owned![
                self.space.to_owned(),
                node.id.0.to_vec(),
                node.kind.as_str().to_owned(),
                node.project.as_bytes().to_vec(),
                node.key.as_bytes().to_vec(),
                node.title.as_bytes().to_vec(),
                node.body.as_bytes().to_vec(),
                json(&node.props),
                signed(node.created.0),
                signed(node.updated.0),
                node.hash.0.to_vec(),
                signed(node.rev)
            ],
        )?;
        Ok(())
    }

    fn insert_history(&self, node: &Node, ended: Hlc) -> Result<()> {
        self.later(
            "INSERT INTO node_history (space, id, kind, project, key, title, body, props, created,
                                       updated, hash, rev, ended)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
            owned![
                self.space.to_owned(),
                node.id.0.to_vec(),
                node.kind.as_str().to_owned(),
                node.project.as_bytes().to_vec(),
                node.key.as_bytes().to_vec(),
                node.title.as_bytes().to_vec(),
                node.body.as_bytes().to_vec(),
                json(&node.props),
                signed(node.created.0),
                signed(node.updated.0),
                node.hash.0.to_vec(),
                signed(node.rev),
                signed(ended.0)
            ],
        )?;
        Ok(())
    }

    /// Moves the current revision, if there is one, to the history without transferring it.
    fn archive_node(&self, id: NodeId, ended: Hlc) -> Result<()> {
        self.later(
            "INSERT INTO node_history (space, id, kind, project, key, title, body, props, created,
                                       updated, hash, rev, ended)
             SELECT space, id, kind, project, key, title, body, props, created, updated, hash, rev,
                    $3::bigint
             FROM nodes WHERE space = $1 AND id = $2",
            owned![self.space.to_owned(), id.0.to_vec(), signed(ended.0)],
        )
    }

    fn insert_edge(&self, edge: &Edge, on_conflict: &str) -> Result<()> {
        self.later(
            &format!(
                "INSERT INTO edges
                   (space, src, rel, dst, weight, props, valid_from, valid_to, hash)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) {on_conflict}"
            ),
            owned![
                self.space.to_owned(),
                edge.src.0.to_vec(),
                edge.rel.as_bytes().to_vec(),
                edge.dst.0.to_vec(),
                edge.weight,
                json(&edge.props),
                signed(edge.from.0),
                signed(edge.to.0),
                edge.hash.0.to_vec()
            ],
        )?;
        Ok(())
    }

    fn insert_passage(&self, node: NodeId, passage: &Passage) -> Result<()> {
        self.later(
            "INSERT INTO passages (space, node, n, text, start, tokens, title_tokens)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            owned![
                self.space.to_owned(),
                node.0.to_vec(),
                i64::from(passage.n),
                passage.text.as_bytes().to_vec(),
                signed(passage.start),
                passage.tokens.as_bytes().to_vec(),
                passage.title_tokens.as_bytes().to_vec(),
            ],
        )
    }

    fn insert_name(&self, node: NodeId, name: &str) -> Result<()> {
        let keys: Vec<String> = names::keys(name).into_iter().collect();
        self.later(
            "INSERT INTO names (space, node, name, key)
             SELECT $1, $2, $3, key FROM unnest($4::text[]) AS key
             ON CONFLICT DO NOTHING",
            owned![
                self.space.to_owned(),
                node.0.to_vec(),
                name.as_bytes().to_vec(),
                keys
            ],
        )?;
        Ok(())
    }
}

impl WriteTx for Tx<'_> {
    fn put_node(&mut self, node: &Node) -> Result<()> {
        self.connection.n_nodes.fetch_add(1, Ordering::Relaxed);
        self.archive_node(node.id, node.updated)?;
        self.insert_node(node)
    }

    fn remove_node(&mut self, id: NodeId, at: Hlc) -> Result<()> {
        self.archive_node(id, at)?;
        for sql in [
            "DELETE FROM passages WHERE space = $1 AND node = $2",
            "DELETE FROM names WHERE space = $1 AND node = $2",
            "DELETE FROM nodes WHERE space = $1 AND id = $2",
        ] {
            self.later(sql, owned![self.space.to_owned(), id.0.to_vec()])?;
        }
        Ok(())
    }

    fn put_edge(&mut self, edge: &Edge) -> Result<()> {
        self.end_edge(edge.src, &edge.rel, edge.dst, edge.from)?;
        // An edge that began at this very moment was never valid: it is replaced.
        self.insert_edge(
            edge,
            "ON CONFLICT (space, src, sha256(rel), dst, valid_from)
               DO UPDATE SET weight = $5, props = $6, valid_to = $8, hash = $9",
        )
    }

    fn end_edge(&mut self, src: NodeId, rel: &str, dst: NodeId, at: Hlc) -> Result<()> {
        self.later(
            "UPDATE edges SET valid_to = $6
             WHERE space = $1 AND src = $2 AND sha256(rel) = sha256($3::bytea) AND dst = $4
               AND valid_to = $5",
            owned![
                self.space.to_owned(),
                src.0.to_vec(),
                rel.as_bytes().to_vec(),
                dst.0.to_vec(),
                signed(Hlc::MAX.0),
                signed(at.0)
            ],
        )?;
        Ok(())
    }

    fn put_passages(&mut self, node: NodeId, passages: &[Passage]) -> Result<()> {
        self.later(
            "DELETE FROM passages WHERE space = $1 AND node = $2",
            owned![self.space.to_owned(), node.0.to_vec()],
        )?;
        passages
            .iter()
            .try_for_each(|passage| self.insert_passage(node, passage))
    }

    fn put_names(&mut self, node: NodeId, names: &[String]) -> Result<()> {
        self.later(
            "DELETE FROM names WHERE space = $1 AND node = $2",
            owned![self.space.to_owned(), node.0.to_vec()],
        )?;
        names
            .iter()
            .try_for_each(|name| self.insert_name(node, name))
    }

    fn put_vector(&mut self, vector: &Vector) -> Result<()> {
        self.connection.n_vectors.fetch_add(1, Ordering::Relaxed);
        self.later(
            "INSERT INTO vectors (space, collection, id, model, numbers, props, seq)
             VALUES ($1, $2, $3, $4, $5::real[]::vector, $6, $7)
             ON CONFLICT (space, sha256(collection), sha256(id)) DO UPDATE SET model = $4,
               numbers = $5::real[]::vector, props = $6, seq = $7",
            owned![
                self.space.to_owned(),
                vector.collection.as_bytes().to_vec(),
                vector.id.as_bytes().to_vec(),
                vector.model.as_bytes().to_vec(),
                vector.numbers.clone(),
                json(&vector.props),
                signed(vector.seq)
            ],
        )?;
        Ok(())
    }

    fn remove_vector(&mut self, collection: &str, id: &str) -> Result<()> {
        self.later(
            &format!(
                "DELETE FROM vectors
                 WHERE space = $1 AND {COLLECTION} AND sha256(id) = sha256($3::bytea)"
            ),
            owned![
                self.space.to_owned(),
                collection.as_bytes().to_vec(),
                id.as_bytes().to_vec()
            ],
        )?;
        Ok(())
    }

    fn append_event(&mut self, event: &EventRow) -> Result<()> {
        self.later(
            "INSERT INTO events (space, seq, version, id, parents, hlc, author, kind, payload,
                                 signature, origin, agent, data, salt, commitment)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
            owned![
                self.space.to_owned(),
                signed(event.seq),
                i16::from(event.version),
                event.id.0.to_vec(),
                joined(&event.parents),
                signed(event.hlc.0),
                event.author.as_bytes().to_vec(),
                event.kind.as_bytes().to_vec(),
                event.payload.clone(),
                event.signature.clone(),
                event.sealed.origin.clone(),
                event.sealed.agent.as_bytes().to_vec(),
                event.sealed.data.clone(),
                event.sealed.salt.clone(),
                event.sealed.commitment.clone()
            ],
        )?;
        Ok(())
    }

    fn put_head(&mut self, head: &HeadRow) -> Result<()> {
        self.later(
            "INSERT INTO heads (space, seq, hlc, tips, frontier, state, log)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (space) DO UPDATE SET seq = $2, hlc = $3, tips = $4, frontier = $5,
               state = $6, log = $7",
            owned![
                self.space.to_owned(),
                signed(head.seq),
                signed(head.hlc.0),
                joined(&head.tips),
                joined(&head.frontier),
                head.state.clone(),
                head.log.clone()
            ],
        )?;
        Ok(())
    }

    fn put_tile(&mut self, tile: &TileRow) -> Result<()> {
        self.later(
            "INSERT INTO tiles (space, level, idx, hash) VALUES ($1, $2, $3, $4)",
            owned![
                self.space.to_owned(),
                i16::from(tile.level),
                signed(tile.index),
                tile.hash.0.to_vec()
            ],
        )?;
        Ok(())
    }

    fn put_checkpoint(&mut self, checkpoint: &CheckpointRow) -> Result<()> {
        self.later(
            "INSERT INTO checkpoints (space, height, seq, event_root, state_root, hlc, author,
                                      signature, version, origin)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            owned![
                self.space.to_owned(),
                signed(checkpoint.height),
                signed(checkpoint.seq),
                checkpoint.event_root.0.to_vec(),
                checkpoint.state_root.0.to_vec(),
                signed(checkpoint.hlc.0),
                checkpoint.author.as_bytes().to_vec(),
                checkpoint.signature.clone(),
                i16::from(checkpoint.version),
                checkpoint.origin.clone()
            ],
        )?;
        Ok(())
    }

    fn set(&mut self, bucket: &str, key: &str, value: &[u8]) -> Result<()> {
        self.later(
            "INSERT INTO kv (space, bucket, key, value) VALUES ($1, $2, $3, $4)
             ON CONFLICT (space, sha256(bucket), sha256(key)) DO UPDATE SET value = $4",
            owned![
                self.space.to_owned(),
                bucket.as_bytes().to_vec(),
                key.as_bytes().to_vec(),
                value.to_vec()
            ],
        )?;
        Ok(())
    }

    fn unset(&mut self, bucket: &str, key: &str) -> Result<()> {
        self.later(
            "DELETE FROM kv WHERE space = $1 AND sha256(bucket) = sha256($2::bytea)
               AND sha256(key) = sha256($3::bytea)",
            owned![
                self.space.to_owned(),
                bucket.as_bytes().to_vec(),
                key.as_bytes().to_vec()
            ],
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
        self.later(
            "DELETE FROM node_history
             WHERE space = $1 AND id = $2 AND ($3::bytea IS NULL OR hash = $3)",
            owned![
                self.space.to_owned(),
                id.0.to_vec(),
                hash.map(|it| it.0.to_vec())
            ],
        )
    }

    fn erase_ended_edges(&mut self, id: NodeId) -> Result<()> {
        for end in ["src", "dst"] {
            self.later(
                &format!("DELETE FROM edges WHERE space = $1 AND {end} = $2 AND valid_to <> $3"),
                owned![self.space.to_owned(), id.0.to_vec(), signed(Hlc::MAX.0)],
            )?;
        }
        Ok(())
    }

    fn erase_event_data(&mut self, id: &Hash) -> Result<()> {
        self.later(
            "UPDATE events SET data = '', salt = '' WHERE space = $1 AND id = $2",
            owned![self.space.to_owned(), id.0.to_vec()],
        )
    }

    fn clear(&mut self) -> Result<()> {
        // Backwards: passages refer to nodes. In pages: a statement has a time limit.
        for table in Table::ALL.iter().rev() {
            let table = table.as_str();
            let sql = format!(
                "DELETE FROM {table} WHERE ctid = ANY (ARRAY
                   (SELECT ctid FROM {table} WHERE space = $1 LIMIT {CLEAR_PAGE})) RETURNING 1"
            );
            while self.connection.query(&sql, &[&self.space])?.len() == CLEAR_PAGE {}
        }
        Ok(())
    }
}
