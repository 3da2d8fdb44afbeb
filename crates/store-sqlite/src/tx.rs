//! A transaction bound to one space: each method holds its own SQL.

use crate::error::from_sqlite;
use crate::row;
use kenning_core::{Hash, Hlc, Kind, NodeId, Result, Space};
use kenning_store::{
    CheckpointRow, Edge, EdgeFilter, EventFilter, EventPage, EventRow, HeadRow, NameHit, Near,
    Nearest, Node, NodeFilter, Passage, ReadTx, Row, Table, TileRow, Vector, When, WriteTx,
    canonical_object, names,
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
    fn clear(&mut self) -> Result<()> {
        // Backwards: passages refer to nodes.
        for table in Table::ALL.iter().rev() {
            let sql = format!("DELETE FROM {} WHERE space = ?1", table.as_str());
            self.run(&sql, params![self.space()])?;
        }
        Ok(())
    }
}
