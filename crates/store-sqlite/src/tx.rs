//! A transaction bound to one space: each method holds its own SQL.

mod write;

use crate::error::from_sqlite;
use crate::row;
use kenning_core::{Hash, Hlc, Kind, NodeId, Result, Space};
use kenning_store::{
    CheckpointRow, Edge, EdgeFilter, EventFilter, EventPage, EventRow, HeadRow, NameHit, Near,
    Nearest, Node, NodeFilter, Passage, ReadTx, Row, Table, Vector, When, canonical_object, names,
};
use rusqlite::types::ToSql;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Map, Value};

pub(crate) struct Tx<'a> {
    connection: &'a Connection,
    space: &'a Space,
}

pub(crate) type Params<'a> = Vec<Box<dyn ToSql + 'a>>;
type MapRow<T> = fn(&rusqlite::Row<'_>) -> rusqlite::Result<T>;

impl<'a> Tx<'a> {
    pub(crate) fn new(connection: &'a Connection, space: &'a Space) -> Self {
        Self { connection, space }
    }

    pub(crate) fn space(&self) -> &str {
        self.space.as_str()
    }

    pub(crate) fn one<T>(
        &self,
        sql: &str,
        params: &[&dyn ToSql],
        map: MapRow<T>,
    ) -> Result<Option<T>> {
        let mut statement = self.connection.prepare_cached(sql).map_err(from_sqlite)?;
        statement
            .query_row(params, map)
            .optional()
            .map_err(from_sqlite)
    }

    pub(crate) fn many<T>(
        &self,
        sql: &str,
        params: &[&dyn ToSql],
        map: MapRow<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.connection.prepare_cached(sql).map_err(from_sqlite)?;
        let rows = statement.query_map(params, map).map_err(from_sqlite)?;
        rows.collect::<rusqlite::Result<_>>().map_err(from_sqlite)
    }

    fn run(&self, sql: &str, params: &[&dyn ToSql]) -> Result<usize> {
        let mut statement = self.connection.prepare_cached(sql).map_err(from_sqlite)?;
        statement.execute(params).map_err(from_sqlite)
    }

    fn visit<T>(
        &self,
        sql: &str,
        map: MapRow<T>,
        visit: &mut dyn FnMut(Row) -> Result<()>,
        wrap: impl Fn(T) -> Row,
    ) -> Result<()> {
        let mut statement = self.connection.prepare_cached(sql).map_err(from_sqlite)?;
        let mut rows = statement
            .query(params![self.space()])
            .map_err(from_sqlite)?;
        while let Some(row) = rows.next().map_err(from_sqlite)? {
            visit(wrap(map(row).map_err(from_sqlite)?))?;
        }
        Ok(())
    }
}

/// `None` where there is no angle: another dimension, or a length of 0.
fn cosine(one: &[f32], two: &[f32]) -> Option<f64> {
    if one.len() != two.len() {
        return None;
    }
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    };
    let lengths = (dot(one, one) * dot(two, two)).sqrt();
    (lengths > 0.0).then(|| dot(one, two) / lengths)
}

fn json(props: &Map<String, Value>) -> String {
    canonical_object(props)
}

pub(crate) fn refs<'a>(params: &'a Params<'_>) -> Vec<&'a dyn ToSql> {
    params.iter().map(AsRef::as_ref).collect()
}

/// `AND …` for a filter; the values go to `params`.
fn node_conditions<'a>(filter: &'a NodeFilter, params: &mut Params<'a>) -> String {
    let mut sql = String::new();
    if !filter.kinds.is_empty() {
        let marks = vec!["?"; filter.kinds.len()].join(", ");
        sql += &format!(" AND kind IN ({marks})");
        params.extend(
            filter
                .kinds
                .iter()
                .map(|it| Box::new(it.as_str()) as Box<dyn ToSql>),
        );
    }
    if let Some(project) = &filter.project {
        sql += " AND project = ?";
        params.push(Box::new(project));
    }
    if let Some(prefix) = &filter.key_prefix {
        // A range, not LIKE: nothing in the prefix is a pattern.
        sql += " AND key >= ?";
        params.push(Box::new(prefix));
        if let Some(end) = end_of_prefix(prefix) {
            sql += " AND key < ?";
            params.push(Box::new(end));
        }
    }
    sql
}

/// The first text after all texts with this prefix; `None` if there is no such text.
fn end_of_prefix(prefix: &str) -> Option<String> {
    let rest = prefix.trim_end_matches(char::MAX);
    let last = rest.chars().next_back()?;
    let end = (last..=char::MAX).nth(1)?;
    Some(format!("{}{end}", &rest[..rest.len() - last.len_utf8()]))
}

impl ReadTx for Tx<'_> {
    fn node(&self, id: NodeId, when: When) -> Result<Option<Node>> {
        let columns = row::NODE_COLUMNS;
        match when {
            When::Now => self.one(
                &format!("SELECT {columns} FROM nodes WHERE space = ?1 AND id = ?2"),
                params![self.space(), id.0],
                row::node,
            ),
            When::At(at) => self.one(
                &format!(
                    "SELECT {columns} FROM nodes WHERE space = ?1 AND id = ?2 AND updated <= ?3
                     UNION ALL
                     SELECT {columns} FROM node_history
                     WHERE space = ?1 AND id = ?2 AND updated <= ?3 AND ended > ?3
                     ORDER BY updated DESC"
                ),
                params![self.space(), id.0, row::signed(at.0)],
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
        let place = "space = ?1 AND kind = ?2 AND project = ?3 AND key = ?4";
        match when {
            When::Now => self.one(
                &format!("SELECT {columns} FROM nodes WHERE {place}"),
                params![self.space(), kind.as_str(), project, key],
                row::node,
            ),
            When::At(at) => self.one(
                &format!(
                    "SELECT {columns} FROM nodes WHERE {place} AND updated <= ?5
                     UNION ALL
                     SELECT {columns} FROM node_history
                     WHERE {place} AND updated <= ?5 AND ended > ?5
                     ORDER BY updated DESC"
                ),
                params![self.space(), kind.as_str(), project, key, row::signed(at.0)],
                row::node,
            ),
        }
    }

    fn nodes(
        &self,
        filter: &NodeFilter,
        when: When,
        after: Option<NodeId>,
        limit: usize,
    ) -> Result<Vec<Node>> {
        let after = after.map_or_else(Vec::new, |id| id.0.to_vec());
        let columns = row::NODE_COLUMNS;
        let mut params: Params<'_> = vec![];
        let mut part = |table: &str, at: Option<Hlc>, ended: bool| {
            params.push(Box::new(self.space()));
            params.push(Box::new(after.clone()));
            let mut sql = format!("SELECT {columns} FROM {table} WHERE space = ? AND id > ?");
            if let Some(at) = at {
                sql += " AND updated <= ?";
                params.push(Box::new(row::signed(at.0)));
                if ended {
                    sql += " AND ended > ?";
                    params.push(Box::new(row::signed(at.0)));
                }
            }
            sql + &node_conditions(filter, &mut params)
        };
        let sql = match when {
            When::Now => part("nodes", None, false),
            When::At(at) => {
                let now = part("nodes", Some(at), false);
                format!("{now} UNION ALL {}", part("node_history", Some(at), true))
            }
        };
        params.push(Box::new(i64::try_from(limit).unwrap_or(i64::MAX)));
        self.many(
            &format!("{sql} ORDER BY id LIMIT ?"),
            &refs(&params),
            row::node,
        )
    }

    fn count_nodes(&self, filter: &NodeFilter) -> Result<u64> {
        let mut params: Params<'_> = vec![Box::new(self.space())];
        let conditions = node_conditions(filter, &mut params);
        let sql = format!("SELECT count(*) FROM nodes WHERE space = ?{conditions}");
        Ok(self
            .one(&sql, &refs(&params), |it| row::number(it, 0))?
            .unwrap_or(0))
    }

    fn history(&self, id: NodeId) -> Result<Vec<(Node, Hlc)>> {
        let columns = row::NODE_COLUMNS;
        self.many(
            &format!(
                "SELECT {columns}, ended FROM node_history
                 WHERE space = ?1 AND id = ?2 ORDER BY rev"
            ),
            params![self.space(), id.0],
            |row| Ok((row::node(row)?, Hlc(row::number(row, 11)?))),
        )
    }

    fn key_history(&self, project: &str, kind: Kind, key: &str) -> Result<Vec<Node>> {
        let columns = row::NODE_COLUMNS;
        let place = "space = ?1 AND kind = ?2 AND project = ?3 AND key = ?4";
        self.many(
            &format!(
                "SELECT {columns} FROM nodes WHERE {place}
                 UNION ALL SELECT {columns} FROM node_history WHERE {place}"
            ),
            params![self.space(), kind.as_str(), project, key],
            row::node,
        )
    }

    fn edge_history(&self, src: NodeId, rel: &str, dst: NodeId) -> Result<Vec<Edge>> {
        let columns = row::EDGE_COLUMNS;
        self.many(
            &format!(
                "SELECT {columns} FROM edges
                 WHERE space = ?1 AND src = ?2 AND rel = ?3 AND dst = ?4 ORDER BY valid_from"
            ),
            params![self.space(), src.0, rel, dst.0],
            row::edge,
        )
    }

    fn names_of(&self, node: NodeId) -> Result<Vec<String>> {
        self.many(
            "SELECT DISTINCT name FROM names WHERE space = ?1 AND node = ?2 ORDER BY name",
            params![self.space(), node.0],
            |it| it.get(0),
        )
    }

    fn edges(&self, filter: &EdgeFilter, when: When, limit: usize) -> Result<Vec<Edge>> {
        let at = match when {
            When::Now => Hlc(Hlc::MAX.0 - 1),
            When::At(at) => at,
        };
        let columns = row::EDGE_COLUMNS;
        // The planner would rather walk all edges in the order of the answer than sort a few.
        let index = match (filter.src, filter.dst) {
            (None, Some(_)) => " INDEXED BY edges_by_dst",
            _ => "",
        };
        let mut sql = format!(
            "SELECT {columns} FROM edges{index}
             WHERE space = ? AND valid_from <= ? AND valid_to > ?"
        );
        let mut params: Params<'_> = vec![
            Box::new(self.space()),
            Box::new(row::signed(at.0)),
            Box::new(row::signed(at.0)),
        ];
        if let Some(src) = filter.src {
            sql += " AND src = ?";
            params.push(Box::new(src.0));
        }
        if let Some(rel) = &filter.rel {
            sql += " AND rel = ?";
            params.push(Box::new(rel));
        }
        if let Some(dst) = filter.dst {
            sql += " AND dst = ?";
            params.push(Box::new(dst.0));
        }
        params.push(Box::new(i64::try_from(limit).unwrap_or(i64::MAX)));
        self.many(
            &format!("{sql} ORDER BY src, rel, dst, valid_from LIMIT ?"),
            &refs(&params),
            row::edge,
        )
    }

    fn passages(&self, node: NodeId) -> Result<Vec<Passage>> {
        let columns = row::PASSAGE_COLUMNS;
        self.many(
            &format!("SELECT {columns} FROM passages WHERE space = ?1 AND node = ?2 ORDER BY n"),
            params![self.space(), node.0],
            row::passage,
        )
    }

    fn find_names(&self, text: &str, filter: &NodeFilter, limit: usize) -> Result<Vec<NameHit>> {
        let keys = names::keys(text);
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut params: Params<'_> = vec![Box::new(self.space())];
        let marks = vec!["?"; keys.len()].join(", ");
        params.extend(keys.into_iter().map(|it| Box::new(it) as Box<dyn ToSql>));
        let conditions = node_conditions(filter, &mut params);
        let conditions = conditions.replace(" key ", " nodes.key ");
        params.push(Box::new(
            i64::try_from(names::candidates(limit)).unwrap_or(i64::MAX),
        ));
        let sql = format!(
            "SELECT names.node, names.name FROM names
             JOIN nodes ON nodes.space = names.space AND nodes.id = names.node
             WHERE names.space = ? AND names.key IN ({marks}){conditions}
             GROUP BY names.node, names.name
             ORDER BY count(*) DESC, names.node, names.name LIMIT ?"
        );
        let candidates = self.many(&sql, &refs(&params), row::name)?;
        Ok(names::ranked(text, candidates, limit))
    }

    fn nearest(&self, collection: &str, to: &[f32], limit: usize) -> Result<Nearest> {
        let sql = "SELECT id, numbers FROM vectors WHERE space = ?1 AND collection = ?2";
        let mut statement = self.connection.prepare_cached(sql).map_err(from_sqlite)?;
        let rows = statement
            .query_map(params![self.space(), collection], |row| {
                Ok((row.get::<_, String>(0)?, row::numbers(row, 1)?))
            })
            .map_err(from_sqlite)?;
        let mut found = Vec::new();
        for row in rows {
            let (id, numbers) = row.map_err(from_sqlite)?;
            if let Some(similarity) = cosine(&numbers, to) {
                found.push(Near { id, similarity });
            }
        }
        found.sort_by(|a, b| {
            b.similarity
                .total_cmp(&a.similarity)
                .then_with(|| a.id.cmp(&b.id))
        });
        found.truncate(limit);
        Ok(Nearest::exact(found))
    }

    fn vector(&self, collection: &str, id: &str) -> Result<Option<Vector>> {
        let columns = row::VECTOR_COLUMNS;
        self.one(
            &format!(
                "SELECT {columns} FROM vectors WHERE space = ?1 AND collection = ?2 AND id = ?3"
            ),
            params![self.space(), collection, id],
            row::vector,
        )
    }

    fn vectors_since(&self, collection: &str, seq: u64, limit: usize) -> Result<Vec<Vector>> {
        let columns = row::VECTOR_COLUMNS;
        self.many(
            &format!(
                "SELECT {columns} FROM vectors WHERE space = ?1 AND collection = ?2 AND seq > ?3
                 ORDER BY seq, id LIMIT ?4"
            ),
            params![
                self.space(),
                collection,
                row::signed(seq),
                i64::try_from(limit).unwrap_or(i64::MAX)
            ],
            row::vector,
        )
    }

    fn head(&self) -> Result<Option<HeadRow>> {
        self.one(
            &format!("SELECT {} FROM heads WHERE space = ?1", row::HEAD_COLUMNS),
            params![self.space()],
            row::head,
        )
    }

    fn events_after(&self, seq: u64, limit: usize) -> Result<Vec<EventRow>> {
        let columns = row::EVENT_COLUMNS;
        self.many(
            &format!(
                "SELECT {columns} FROM events WHERE space = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3"
            ),
            params![
                self.space(),
                row::signed(seq),
                i64::try_from(limit).unwrap_or(i64::MAX)
            ],
            row::event,
        )
    }

    fn events_at(&self, hlc: Hlc) -> Result<Vec<EventRow>> {
        let columns = row::EVENT_COLUMNS;
        self.many(
            &format!("SELECT {columns} FROM events WHERE space = ?1 AND hlc = ?2 ORDER BY seq"),
            params![self.space(), row::signed(hlc.0)],
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
            &format!("SELECT {columns} FROM events WHERE space = ?1 AND id = ?2"),
            params![self.space(), id.0],
            row::event,
        )
    }

    fn tile(&self, level: u8, index: u64) -> Result<Option<Hash>> {
        self.one(
            "SELECT hash FROM tiles WHERE space = ?1 AND level = ?2 AND idx = ?3",
            params![self.space(), level, row::signed(index)],
            |it| row::hash(it, 0),
        )
    }

    fn checkpoint_at(&self, seq: u64) -> Result<Option<CheckpointRow>> {
        let columns = row::CHECKPOINT_COLUMNS;
        self.one(
            &format!(
                "SELECT {columns} FROM checkpoints WHERE space = ?1 AND seq <= ?2
                 ORDER BY height DESC LIMIT 1"
            ),
            params![self.space(), row::signed(seq)],
            row::checkpoint,
        )
    }

    fn get(&self, bucket: &str, key: &str) -> Result<Option<Vec<u8>>> {
        self.one(
            "SELECT value FROM kv WHERE space = ?1 AND bucket = ?2 AND key = ?3",
            params![self.space(), bucket, key],
            |it| it.get(0),
        )
    }

    fn list(&self, bucket: &str) -> Result<Vec<(String, Vec<u8>)>> {
        self.many(
            "SELECT key, value FROM kv WHERE space = ?1 AND bucket = ?2 ORDER BY key",
            params![self.space(), bucket],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    fn scan(&self, table: Table, visit: &mut dyn FnMut(Row) -> Result<()>) -> Result<()> {
        let select = |columns: &str, from: &str, order: &str| {
            format!("SELECT {columns} FROM {from} WHERE space = ?1 ORDER BY {order}")
        };
        match table {
            Table::Nodes => {
                let sql = select(row::NODE_COLUMNS, "nodes", "id");
                self.visit(&sql, row::node, visit, Row::Node)
            }
            Table::History => {
                let columns = format!("{}, ended", row::NODE_COLUMNS);
                let sql = select(&columns, "node_history", "id, rev");
                let map: MapRow<(Node, Hlc)> =
                    |row| Ok((row::node(row)?, Hlc(row::number(row, 11)?)));
                self.visit(&sql, map, visit, |(node, ended)| Row::History(node, ended))
            }
            Table::Edges => {
                let sql = select(row::EDGE_COLUMNS, "edges", "src, rel, dst, valid_from");
                self.visit(&sql, row::edge, visit, Row::Edge)
            }
            Table::Passages => {
                let columns = format!("{}, node", row::PASSAGE_COLUMNS);
                let sql = select(&columns, "passages", "node, n");
                self.visit(&sql, row::passage_row, visit, Row::Passage)
            }
            Table::Names => {
                let sql = select("DISTINCT node, name", "names", "node, name");
                self.visit(&sql, row::name, visit, Row::Name)
            }
            Table::Vectors => {
                let sql = select(row::VECTOR_COLUMNS, "vectors", "collection, id");
                self.visit(&sql, row::vector, visit, Row::Vector)
            }
            Table::Events => {
                let sql = select(row::EVENT_COLUMNS, "events", "seq");
                self.visit(&sql, row::event, visit, Row::Event)
            }
            Table::Tiles => {
                let sql = select("level, idx, hash", "tiles", "level, idx");
                self.visit(&sql, row::tile, visit, Row::Tile)
            }
            Table::Checkpoints => {
                let sql = select(row::CHECKPOINT_COLUMNS, "checkpoints", "height");
                self.visit(&sql, row::checkpoint, visit, Row::Checkpoint)
            }
            Table::Head => {
                let sql = select(row::HEAD_COLUMNS, "heads", "seq");
                self.visit(&sql, row::head, visit, Row::Head)
            }
            Table::Kv => {
                let sql = select("bucket, key, value", "kv", "bucket, key");
                self.visit(&sql, row::kv, visit, Row::Kv)
            }
        }
    }
}
