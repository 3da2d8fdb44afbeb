//! A transaction bound to one space: each method holds its own SQL.

use crate::connect::{Connection, Later};
use crate::graph::Graph;
use crate::row::{self, joined, signed};
use kenning_core::{Hash, Hlc, Kind, NodeId, Result, Space};
use kenning_store::{
    CheckpointRow, Edge, EdgeFilter, EventFilter, EventPage, EventRow, HeadRow, NameHit, Nearest,
    Node, NodeFilter, Passage, ReadTx, Row, RowKey, Table, TileRow, Vector, When, WriteTx,
    canonical_object, names,
};
use serde_json::{Map, Value};
use std::sync::atomic::Ordering;
use tokio_postgres::types::ToSql;

/// Parameters that are kept until they are sent.
macro_rules! owned {
    ($($value:expr),* $(,)?) => {
        vec![$(Box::new($value) as Box<dyn ToSql + Sync + Send>),*]
    };
}

pub(crate) struct Tx<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) space: &'a str,
    of: &'a Space,
}

pub(crate) type Owned<'a> = Vec<Box<dyn ToSql + Sync + 'a>>;
type Map1<T> = fn(&tokio_postgres::Row) -> Result<T>;

impl<'a> Tx<'a> {
    pub(crate) fn new(connection: &'a Connection, space: &'a Space) -> Self {
        Self {
            connection,
            space: space.as_str(),
            of: space,
        }
    }

    fn one<T>(&self, sql: &str, params: &[&(dyn ToSql + Sync)], map: Map1<T>) -> Result<Option<T>> {
        self.connection
            .query(sql, params)?
            .first()
            .map(map)
            .transpose()
    }

    pub(crate) fn many<T>(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
        map: Map1<T>,
    ) -> Result<Vec<T>> {
        self.connection
            .query(sql, params)?
            .iter()
            .map(map)
            .collect()
    }

    pub(crate) fn owned<T>(&self, sql: &str, params: &Owned<'_>, map: Map1<T>) -> Result<Vec<T>> {
        let params: Vec<&(dyn ToSql + Sync)> = params.iter().map(AsRef::as_ref).collect();
        self.many(sql, &params, map)
    }

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

fn json(props: &Map<String, Value>) -> Vec<u8> {
    canonical_object(props).into_bytes()
}

/// `AND …` for a filter; the values go to `params`.
fn conditions<'a>(filter: &'a NodeFilter, params: &mut Owned<'a>) -> String {
    let mut sql = String::new();
    if !filter.kinds.is_empty() {
        let kinds: Vec<&str> = filter.kinds.iter().map(|it| it.as_str()).collect();
        params.push(Box::new(kinds));
        sql += &format!(" AND kind = ANY(${})", params.len());
    }
    if let Some(project) = &filter.project {
        params.push(Box::new(project.as_bytes()));
        sql += &format!(" AND project = ${}", params.len());
    }
    if let Some(prefix) = &filter.key_prefix {
        params.push(Box::new(prefix.as_bytes()));
        let at = params.len();
        sql += &format!(" AND substring(key FROM 1 FOR length(${at}::bytea)) = ${at}");
    }
    sql
}

/// The limit of pgvector.
const DIMENSIONS_MAX: usize = 16_000;

pub(crate) fn limit(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

const COLLECTION: &str = "sha256(collection) = sha256($2::bytea)";

const KEY: &str = "space = $1 AND kind = $2 AND sha256(project) = sha256($3::bytea)
                   AND sha256(key) = sha256($4::bytea)";

impl ReadTx for Tx<'_> {
    fn node(&self, id: NodeId, when: When) -> Result<Option<Node>> {
        let columns = row::NODE_COLUMNS;
        match when {
            When::Now => self.one(
                &format!("SELECT {columns} FROM nodes WHERE space = $1 AND id = $2"),
                &[&self.space, &id.0.as_slice()],
                row::node,
            ),
            When::At(at) => self.one(
                &format!(
                    "SELECT {columns} FROM nodes WHERE space = $1 AND id = $2 AND updated <= $3
                     UNION ALL
                     SELECT {columns} FROM node_history
                     WHERE space = $1 AND id = $2 AND updated <= $3 AND ended > $3
                     ORDER BY updated DESC"
                ),
                &[&self.space, &id.0.as_slice(), &signed(at.0)],
                row::node,
            ),
        }
    }

    fn node_by_key(
        &self,
        project: &str,
        kind: Kind,
        key: &str,
        when: When,
    ) -> Result<Option<Node>> {
        let columns = row::NODE_COLUMNS;
        let (kind, project, key) = (kind.as_str(), project.as_bytes(), key.as_bytes());
        match when {
            When::Now => self.one(
                &format!("SELECT {columns} FROM nodes WHERE {KEY}"),
                &[&self.space, &kind, &project, &key],
                row::node,
            ),
            When::At(at) => self.one(
                &format!(
                    "SELECT {columns} FROM nodes WHERE {KEY} AND updated <= $5
                     UNION ALL
                     SELECT {columns} FROM node_history
                     WHERE {KEY} AND updated <= $5 AND ended > $5
                     ORDER BY updated DESC"
                ),
                &[&self.space, &kind, &project, &key, &signed(at.0)],
                row::node,
            ),
        }
    }

    fn nodes(
        &self,
        filter: &NodeFilter,
        when: When,
        after: Option<NodeId>,
        n: usize,
    ) -> Result<Vec<Node>> {
        let after = after.map_or_else(Vec::new, |id| id.0.to_vec());
        let columns = row::NODE_COLUMNS;
        let mut params: Owned<'_> = vec![Box::new(self.space), Box::new(after), Box::new(limit(n))];
        let more = conditions(filter, &mut params);
        let place = format!("space = $1 AND id > $2{more}");
        let sql = match when {
            When::Now => format!("SELECT {columns} FROM nodes WHERE {place}"),
            When::At(at) => {
                params.push(Box::new(signed(at.0)));
                let at = params.len();
                format!(
                    "SELECT {columns} FROM nodes WHERE {place} AND updated <= ${at}
                     UNION ALL
                     SELECT {columns} FROM node_history
                     WHERE {place} AND updated <= ${at} AND ended > ${at}"
                )
            }
        };
        self.owned(&format!("{sql} ORDER BY id LIMIT $3"), &params, row::node)
    }

    fn count_nodes(&self, filter: &NodeFilter) -> Result<u64> {
        let mut params: Owned<'_> = vec![Box::new(self.space)];
        let more = conditions(filter, &mut params);
        let sql = format!("SELECT count(*) FROM nodes WHERE space = $1{more}");
        Ok(self
            .owned(&sql, &params, |it| row::number(it, 0))?
            .first()
            .copied()
            .unwrap_or(0))
    }

    fn history(&self, id: NodeId) -> Result<Vec<(Node, Hlc)>> {
        let columns = row::NODE_COLUMNS;
        self.many(
            &format!(
                "SELECT {columns}, ended FROM node_history
                 WHERE space = $1 AND id = $2 ORDER BY rev"
            ),
            &[&self.space, &id.0.as_slice()],
            row::history,
        )
    }

    fn key_history(&self, project: &str, kind: Kind, key: &str) -> Result<Vec<Node>> {
        let columns = row::NODE_COLUMNS;
        let (kind, project, key) = (kind.as_str(), project.as_bytes(), key.as_bytes());
        self.many(
            &format!(
                "SELECT {columns} FROM nodes WHERE {KEY}
                 UNION ALL SELECT {columns} FROM node_history WHERE {KEY}"
            ),
            &[&self.space, &kind, &project, &key],
            row::node,
        )
    }

    fn edge_history(&self, src: NodeId, rel: &str, dst: NodeId) -> Result<Vec<Edge>> {
        let columns = row::EDGE_COLUMNS;
        self.many(
            &format!(
                "SELECT {columns} FROM edges WHERE space = $1 AND src = $2
                 AND sha256(rel) = sha256($3::bytea) AND dst = $4 ORDER BY valid_from"
            ),
            &[
                &self.space,
                &src.0.as_slice(),
                &rel.as_bytes(),
                &dst.0.as_slice(),
            ],
            row::edge,
        )
    }

    fn names_of(&self, node: NodeId) -> Result<Vec<String>> {
        let rows = self.many(
            "SELECT DISTINCT node, name FROM names WHERE space = $1 AND node = $2 ORDER BY name",
            &[&self.space, &node.0.as_slice()],
            row::name,
        )?;
        Ok(rows.into_iter().map(|it| it.name).collect())
    }

    fn edges(&self, filter: &EdgeFilter, when: When, n: usize) -> Result<Vec<Edge>> {
        let at = match when {
            When::Now => Hlc(Hlc::MAX.0 - 1),
            When::At(at) => at,
        };
        let columns = row::EDGE_COLUMNS;
        let mut params: Owned<'_> = vec![
            Box::new(self.space),
            Box::new(signed(at.0)),
            Box::new(limit(n)),
        ];
        let mut sql = format!(
            "SELECT {columns} FROM edges WHERE space = $1 AND valid_from <= $2 AND valid_to > $2"
        );
        if let Some(src) = filter.src {
            params.push(Box::new(src.0.to_vec()));
            sql += &format!(" AND src = ${}", params.len());
        }
        if let Some(rel) = &filter.rel {
            params.push(Box::new(rel.as_bytes()));
            sql += &format!(" AND sha256(rel) = sha256(${}::bytea)", params.len());
        }
        if let Some(dst) = filter.dst {
            params.push(Box::new(dst.0.to_vec()));
            sql += &format!(" AND dst = ${}", params.len());
        }
        self.owned(
            &format!("{sql} ORDER BY src, rel, dst, valid_from LIMIT $3"),
            &params,
            row::edge,
        )
    }

    fn passages(&self, node: NodeId) -> Result<Vec<Passage>> {
        let columns = row::PASSAGE_COLUMNS;
        self.many(
            &format!("SELECT {columns} FROM passages WHERE space = $1 AND node = $2 ORDER BY n"),
            &[&self.space, &node.0.as_slice()],
            row::passage,
        )
    }

    fn find_names(&self, text: &str, filter: &NodeFilter, n: usize) -> Result<Vec<NameHit>> {
        let keys: Vec<String> = names::keys(text).into_iter().collect();
        let mut params: Owned<'_> = vec![
            Box::new(self.space),
            Box::new(keys),
            Box::new(limit(names::candidates(n))),
        ];
        let more = conditions(filter, &mut params);
        // Kind, project and key exist in `nodes` only, so the filter needs no table names.
        let sql = format!(
            "SELECT names.node, names.name FROM names
             JOIN nodes ON nodes.space = names.space AND nodes.id = names.node
             WHERE names.space = $1 AND names.key = ANY($2){}
             GROUP BY names.node, names.name
             ORDER BY count(*) DESC, names.node, names.name LIMIT $3",
            more.replace("(key FROM", "(nodes.key FROM")
        );
        Ok(names::ranked(
            text,
            self.owned(&sql, &params, row::name)?,
            n,
        ))
    }

    fn vector(&self, collection: &str, id: &str) -> Result<Option<Vector>> {
        let columns = row::VECTOR_COLUMNS;
        self.one(
            &format!(
                "SELECT {columns} FROM vectors
                 WHERE space = $1 AND {COLLECTION} AND sha256(id) = sha256($3::bytea)"
            ),
            &[&self.space, &collection.as_bytes(), &id.as_bytes()],
            row::vector,
        )
    }

    fn vectors_since(&self, collection: &str, seq: u64, n: usize) -> Result<Vec<Vector>> {
        let columns = row::VECTOR_COLUMNS;
        self.many(
            &format!(
                "SELECT {columns} FROM vectors WHERE space = $1 AND {COLLECTION} AND seq > $3
                 ORDER BY seq, id LIMIT $4"
            ),
            &[&self.space, &collection.as_bytes(), &signed(seq), &limit(n)],
            row::vector,
        )
    }

    fn nearest(&self, collection: &str, to: &[f32], n: usize) -> Result<Nearest> {
        // Such a vector has no neighbors, and the database would refuse the query.
        if to.iter().all(|it| *it == 0.0) || to.len() > DIMENSIONS_MAX {
            return Ok(Nearest::exact(Vec::new()));
        }
        if let Some(graph) = Graph::of(self.of, collection, to.len())
            && graph.is_built(self.connection)?
        {
            return graph.nearest(self.connection, to, n);
        }
        // Exact, without an index, among vectors of the same dimension. They are normalized first: the
        // squares of very long or very short vectors do not fit into the single precision that `<=>`
        // computes in.
        let sql = format!(
            "SELECT id, -(numbers <#> l2_normalize($3::real[]::vector)) FROM
               (SELECT id, l2_normalize(numbers) AS numbers FROM vectors
                WHERE space = $1 AND {COLLECTION} AND vector_dims(numbers) = $4
                  AND vector_norm(numbers) > 0
                OFFSET 0) AS candidates
             ORDER BY 2 DESC, id LIMIT $5"
        );
        let hits = self.many(
            &sql,
            &[
                &self.space,
                &collection.as_bytes(),
                &to,
                &i32::try_from(to.len()).unwrap_or(i32::MAX),
                &limit(n),
            ],
            row::near,
        )?;
        Ok(Nearest::exact(hits))
    }

    fn head(&self) -> Result<Option<HeadRow>> {
        self.one(
            &format!("SELECT {} FROM heads WHERE space = $1", row::HEAD_COLUMNS),
            &[&self.space],
            row::head,
        )
    }

    fn events_after(&self, seq: u64, n: usize) -> Result<Vec<EventRow>> {
        let columns = row::EVENT_COLUMNS;
        self.many(
            &format!(
                "SELECT {columns} FROM events WHERE space = $1 AND seq > $2 ORDER BY seq LIMIT $3"
            ),
            &[&self.space, &signed(seq), &limit(n)],
            row::event,
        )
    }

    fn events_at(&self, hlc: Hlc) -> Result<Vec<EventRow>> {
        let columns = row::EVENT_COLUMNS;
        self.many(
            &format!("SELECT {columns} FROM events WHERE space = $1 AND hlc = $2 ORDER BY seq"),
            &[&self.space, &signed(hlc.0)],
            row::event,
        )
    }

    fn find_events(&self, filter: &EventFilter, page: EventPage) -> Result<Vec<EventRow>> {
        self.events_of(filter, page)
    }

    fn count_events(&self, filter: &EventFilter) -> Result<u64> {
        self.number_of_events(filter)
    }

    fn event_kinds(&self) -> Result<Vec<(String, u64)>> {
        self.kinds_of_events()
    }

    fn event_by_id(&self, id: &Hash) -> Result<Option<EventRow>> {
        let columns = row::EVENT_COLUMNS;
        self.one(
            &format!("SELECT {columns} FROM events WHERE space = $1 AND id = $2"),
            &[&self.space, &id.0.as_slice()],
            row::event,
        )
    }

    fn tile(&self, level: u8, index: u64) -> Result<Option<Hash>> {
        self.one(
            "SELECT hash FROM tiles WHERE space = $1 AND level = $2 AND idx = $3",
            &[&self.space, &i16::from(level), &signed(index)],
            |it| row::hash(it, 0),
        )
    }

    fn checkpoint_at(&self, seq: u64) -> Result<Option<CheckpointRow>> {
        let columns = row::CHECKPOINT_COLUMNS;
        self.one(
            &format!(
                "SELECT {columns} FROM checkpoints WHERE space = $1 AND seq <= $2
                 ORDER BY height DESC LIMIT 1"
            ),
            &[&self.space, &signed(seq)],
            row::checkpoint,
        )
    }

    fn get(&self, bucket: &str, key: &str) -> Result<Option<Vec<u8>>> {
        self.one(
            "SELECT value FROM kv
             WHERE space = $1 AND sha256(bucket) = sha256($2::bytea)
               AND sha256(key) = sha256($3::bytea)",
            &[&self.space, &bucket.as_bytes(), &key.as_bytes()],
            |it| Ok(it.get(0)),
        )
    }

    fn list(&self, bucket: &str) -> Result<Vec<(String, Vec<u8>)>> {
        let rows = self.many(
            "SELECT bucket, key, value FROM kv
             WHERE space = $1 AND sha256(bucket) = sha256($2::bytea) ORDER BY key",
            &[&self.space, &bucket.as_bytes()],
            row::kv,
        )?;
        Ok(rows.into_iter().map(|row| (row.key, row.value)).collect())
    }

    fn scan(&self, table: Table, visit: &mut dyn FnMut(Row) -> Result<()>) -> Result<()> {
        self.scan_all(table, visit)
    }

    fn scan_after(
        &self,
        table: Table,
        after: &RowKey,
        visit: &mut dyn FnMut(Row) -> Result<()>,
    ) -> Result<()> {
        self.scan_rest(table, after, visit)
    }
}

/// Rows that one statement of [`WriteTx::clear`] removes.
const CLEAR_PAGE: usize = 2_000;

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
