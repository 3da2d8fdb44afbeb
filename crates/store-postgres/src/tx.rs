//! A transaction bound to one space: each method holds its own SQL.

mod write;

use crate::connect::Connection;
use crate::graph::Graph;
use crate::row::{self, signed};
use kenning_core::{Hash, Hlc, Kind, NodeId, Result, Space};
use kenning_store::{
    CheckpointRow, Edge, EdgeFilter, EventFilter, EventPage, EventRow, HeadRow, NameHit, Nearest,
    Node, NodeFilter, Passage, ReadTx, Row, RowKey, Table, Vector, When, canonical_object, names,
};
use serde_json::{Map, Value};
use tokio_postgres::types::ToSql;

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
