//! Whole tables, page by page.
//!
//! One statement for a whole table could run into the statement timeout. So each statement reads one page,
//! in the order of keys, and the next begins after the last key. All pages come from one snapshot, that of
//! the transaction.
//!
//! Keys of `kv` and `vectors` are texts of any length, too long for an index: their indexes use hashes.
//! There the groups (buckets, collections) come first, then many keys of one group at once, and then the
//! rows of some keys at a time by the index.

use crate::row;
use crate::tx::Tx;
use kenning_core::{Error, Result};
use kenning_store::{KeyPart, KvRow, Row, RowKey, Table, Vector};
use tokio_postgres::types::ToSql;

/// How many rows one statement reads.
const PAGE: usize = 1_000;

/// How many keys of one group are in memory at once.
const KEYS: usize = 200_000;

/// How many rows one statement looks up by their keys.
const LOOKED_UP: usize = 500;

/// The visitor may take long for a row, so the database must wait.
const PATIENT: &str = "SET LOCAL statement_timeout = '600s';
    SET LOCAL idle_in_transaction_session_timeout = '600s'";

type Visit<'v> = dyn FnMut(Row) -> Result<()> + 'v;

/// A table with an index on its key, or on the first columns of it.
struct Paged {
    columns: String,
    from: &'static str,
    /// The columns of the key, in order.
    key: &'static [&'static str],
    read: fn(&tokio_postgres::Row) -> Result<Row>,
}

impl Paged {
    fn of(table: Table) -> Option<Self> {
        let paged = |columns: &str, from, key, read| {
            let columns = columns.to_owned();
            Some(Self {
                columns,
                from,
                key,
                read,
            })
        };
        match table {
            Table::Nodes => paged(row::NODE_COLUMNS, "nodes", &["id"], |row| {
                row::node(row).map(Row::Node)
            }),
            Table::History => paged(
                &format!("{}, ended", row::NODE_COLUMNS),
                "node_history",
                &["id", "rev"],
                |it| row::history(it).map(|(node, ended)| Row::History(node, ended)),
            ),
            Table::Edges => paged(
                row::EDGE_COLUMNS,
                "edges",
                &["src", "rel", "dst", "valid_from"],
                |it| row::edge(it).map(Row::Edge),
            ),
            Table::Passages => paged(
                &format!("{}, node", row::PASSAGE_COLUMNS),
                "passages",
                &["node", "n"],
                |it| row::passage_row(it).map(Row::Passage),
            ),
            Table::Names => paged("DISTINCT node, name", "names", &["node", "name"], |row| {
                row::name(row).map(Row::Name)
            }),
            Table::Events => paged(row::EVENT_COLUMNS, "events", &["seq"], |row| {
                row::event(row).map(Row::Event)
            }),
            Table::Tiles => paged("level, idx, hash", "tiles", &["level", "idx"], |row| {
                row::tile(row).map(Row::Tile)
            }),
            Table::Checkpoints => {
                paged(row::CHECKPOINT_COLUMNS, "checkpoints", &["height"], |row| {
                    row::checkpoint(row).map(Row::Checkpoint)
                })
            }
            Table::Head => paged(row::HEAD_COLUMNS, "heads", &["0"], |row| {
                row::head(row).map(Row::Head)
            }),
            Table::Kv | Table::Vectors => None,
        }
    }

    fn sql(&self, is_first: bool, page: usize) -> String {
        let Self {
            columns, from, key, ..
        } = self;
        let mut sql = format!("SELECT {columns} FROM {from} WHERE space = $1");
        if !is_first {
            let names = key.join(", ");
            let values = (2..key.len() + 2).map(|n| format!("${n}"));
            let values: Vec<String> = values.collect();
            // The first condition can use an index that covers only the first columns.
            sql += &format!(
                " AND {} >= $2 AND ({names}) > ({})",
                key[0],
                values.join(", ")
            );
        }
        // A head is one row.
        let order = if *from == "heads" {
            "seq".to_owned()
        } else {
            key.join(", ")
        };
        sql + &format!(" ORDER BY {order} LIMIT {page}")
    }
}

fn value(part: &KeyPart, column: &str) -> Result<Box<dyn ToSql + Sync>> {
    let number = |n: u64| {
        i64::try_from(n).map_err(|cause| Error::invalid("a key is too large").because(cause))
    };
    Ok(match part {
        KeyPart::Id(id) => Box::new(id.0.to_vec()),
        KeyPart::Text(text) => Box::new(text.clone().into_bytes()),
        KeyPart::Number(n) if column == "level" => Box::new(
            i16::try_from(*n)
                .map_err(|cause| Error::invalid("a key is too large").because(cause))?,
        ),
        KeyPart::Number(n) => Box::new(number(*n)?),
    })
}

impl Tx<'_> {
    /// The rows of a table with a greater key, in the order of keys.
    pub(crate) fn pages(
        &self,
        table: Table,
        after: Option<&RowKey>,
        page: usize,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        self.connection.flush()?;
        self.connection.batch(PATIENT)?;
        let Some(paged) = Paged::of(table) else {
            return self.pages_of_groups(table, after, page, visit);
        };
        if table == Table::Head && after.is_some() {
            return Ok(());
        }
        let mut after = after.cloned();
        loop {
            let mut params: Vec<Box<dyn ToSql + Sync>> = vec![Box::new(self.space)];
            for (part, column) in after.iter().flat_map(|it| &it.0).zip(paged.key) {
                params.push(value(part, column)?);
            }
            let params: Vec<&(dyn ToSql + Sync)> = params.iter().map(AsRef::as_ref).collect();
            let sql = paged.sql(after.is_none(), page);
            let mut n_rows = 0;
            let mut last = None;
            self.connection.visit(&sql, &params, &mut |raw| {
                let row = (paged.read)(raw)?;
                n_rows += 1;
                if n_rows == page {
                    last = Some(row.key());
                }
                visit(row)
            })?;
            match last {
                Some(last) if table != Table::Head => after = Some(last),
                _ => return Ok(()),
            }
        }
    }

    /// The rows of `kv` or `vectors`.
    fn pages_of_groups(
        &self,
        table: Table,
        after: Option<&RowKey>,
        page: usize,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let (group, key) = match table {
            Table::Kv => ("bucket", "key"),
            _ => ("collection", "id"),
        };
        let name = table.as_str();
        let (mut in_group, mut after_key) = match after.map(|it| it.0.as_slice()) {
            Some([KeyPart::Text(group), KeyPart::Text(key)]) => (
                Some(group.clone().into_bytes()),
                Some(key.clone().into_bytes()),
            ),
            _ => (None, None),
        };
        let mut groups = self.groups(name, group)?;
        groups.sort();
        groups.retain(|it| in_group.as_ref().is_none_or(|from| it >= from));
        for found in groups {
            if in_group.take().is_none_or(|it| it != found) {
                after_key = None;
            }
            loop {
                let keys_max = if page < PAGE { page } else { KEYS };
                let keys = self.connection.query(
                    &format!(
                        "SELECT {key} FROM {name} WHERE space = $1 AND sha256({group}) = sha256($2)
                         AND ($3::bytea IS NULL OR {key} > $3) ORDER BY {key} LIMIT {keys_max}"
                    ),
                    &[&self.space, &found, &after_key],
                )?;
                let keys: Vec<Vec<u8>> = keys.iter().map(|it| it.get(0)).collect();
                for some in keys.chunks(LOOKED_UP.min(page)) {
                    self.visit_keys(table, &found, some, visit)?;
                }
                if keys.len() < keys_max {
                    break;
                }
                after_key = keys.into_iter().next_back();
            }
        }
        Ok(())
    }

    /// The buckets or collections of this space, in any order: skips from one to the next in an index.
    fn groups(&self, name: &str, group: &str) -> Result<Vec<Vec<u8>>> {
        let sql = format!(
            "WITH RECURSIVE known AS (
               (SELECT {group}, sha256({group}) AS hash FROM {name} WHERE space = $1
                ORDER BY sha256({group}) LIMIT 1)
               UNION ALL
               SELECT next.{group}, next.hash FROM known, LATERAL
                 (SELECT {group}, sha256({group}) AS hash FROM {name}
                  WHERE space = $1 AND sha256({group}) > known.hash
                  ORDER BY sha256({group}) LIMIT 1) AS next)
             SELECT {group} FROM known"
        );
        let rows = self.connection.query(&sql, &[&self.space])?;
        Ok(rows.iter().map(|it| it.get(0)).collect())
    }

    /// The rows with these keys, in the order of these keys.
    fn visit_keys(
        &self,
        table: Table,
        group: &[u8],
        keys: &[Vec<u8>],
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let by_index = |columns: &str, group: &str, key: &str| {
            format!(
                "SELECT {columns} FROM {} WHERE space = $1 AND sha256({group}) = sha256($2)
                 AND sha256({key}) = ANY(ARRAY(SELECT sha256(it) FROM unnest($3::bytea[]) AS it))
                 ORDER BY {key}",
                table.as_str()
            )
        };
        let (sql, read): (_, fn(&tokio_postgres::Row) -> Result<Row>) = match table {
            Table::Kv => (by_index("bucket, key, value", "bucket", "key"), |it| {
                row::kv(it).map(|it: KvRow| Row::Kv(it))
            }),
            _ => (by_index(row::VECTOR_COLUMNS, "collection", "id"), |it| {
                row::vector(it).map(|it: Vector| Row::Vector(it))
            }),
        };
        self.connection
            .visit(&sql, &[&self.space, &group, &keys], &mut |row| {
                visit(read(row)?)
            })
    }

    /// Every row of a table.
    pub(crate) fn scan_all(&self, table: Table, visit: &mut Visit<'_>) -> Result<()> {
        self.pages(table, None, PAGE, visit)
    }

    /// Every row with a greater key.
    pub(crate) fn scan_rest(
        &self,
        table: Table,
        after: &RowKey,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        self.pages(table, Some(after), PAGE, visit)
    }
}

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "a test writes rows that no event is about"
)]
mod tests {
    use super::*;
    use crate::Postgres;
    use kenning_core::{Hash, Hlc, Kind, NodeId, SeededRandom, Space};
    use kenning_store::{Edge, Node, Passage, Store, WriteTx};
    use kenning_testing_postgres::shared;
    use serde_json::Map;

    fn id(n: u64) -> NodeId {
        NodeId::new(Hlc::from_ms(n), &SeededRandom::new(n))
    }

    fn fill(tx: &mut dyn WriteTx) -> Result<()> {
        for n in 1..=9 {
            let at = Hlc::from_ms(n);
            for rev in 1..=2 {
                tx.put_node(&Node {
                    id: id(n),
                    kind: Kind::Document,
                    project: String::new(),
                    key: n.to_string(),
                    title: String::new(),
                    body: String::new(),
                    props: Map::new(),
                    created: at,
                    updated: at,
                    hash: Hash::default(),
                    rev,
                })?;
            }
            let passages = (0..3).map(|n| Passage {
                n,
                text: String::new(),
                start: 0,
                tokens: String::new(),
                title_tokens: String::new(),
            });
            tx.put_passages(id(n), &passages.collect::<Vec<_>>())?;
            tx.put_names(id(n), &["name one".to_owned(), format!("another {n}")])?;
            for (rel, dst) in [("b", 1), ("a", 2), ("a", 1), ("a\0", 1)] {
                tx.put_edge(&Edge {
                    src: id(n),
                    rel: rel.to_owned(),
                    dst: id(dst),
                    weight: 1.0,
                    props: Map::new(),
                    from: at,
                    to: Hlc::MAX,
                    hash: Hash::default(),
                })?;
            }
            for group in ["b", "a", "", "a\0"] {
                tx.set(group, &format!("{}", n * 7 % 10), b"value")?;
                tx.put_vector(&Vector {
                    collection: group.to_owned(),
                    id: format!("{}", n * 7 % 10),
                    model: String::new(),
                    numbers: vec![1.0, 2.0],
                    props: Map::new(),
                    seq: n,
                })?;
            }
        }
        Ok(())
    }

    #[test]
    fn a_table_read_in_pages_of_any_size_from_any_key_gives_every_row_once_and_in_order() {
        let url = shared().database();
        let space = Space::default();
        let store = Store::new(Postgres::open(&url, None).unwrap());
        store.write(&space, |tx| fill(tx)).unwrap();
        let other: Space = "other".parse().unwrap();
        store.write(&other, |tx| fill(tx)).unwrap();

        let backend = Postgres::open(&url, None).unwrap();
        let mut taken = backend.pool.take().unwrap();
        taken.begun();
        let connection = taken.get().unwrap();
        connection.batch("BEGIN").unwrap();
        let tx = Tx::new(connection, &space);
        let rows = |table, after: Option<&RowKey>, page| {
            let mut rows = Vec::new();
            tx.pages(table, after, page, &mut |row| {
                rows.push(row);
                Ok(())
            })
            .unwrap();
            rows
        };
        for (table, expected) in [
            (Table::Nodes, 9),
            (Table::History, 9),
            (Table::Edges, 36),
            (Table::Passages, 27),
            (Table::Names, 18),
            (Table::Vectors, 36),
            (Table::Kv, 36),
            (Table::Head, 0),
        ] {
            let all = rows(table, None, PAGE);
            assert_eq!(all.len(), expected, "{table:?}");
            assert!(all.is_sorted_by(|a, b| a.key() < b.key()), "{table:?}");
            for page in [1, 2, 3, 7, 36] {
                assert_eq!(rows(table, None, page), all, "{table:?} by {page}");
                for (n, row) in all.iter().enumerate() {
                    let rest = rows(table, Some(&row.key()), page);
                    assert_eq!(rest, all[n + 1..], "{table:?} after {n} by {page}");
                }
            }
        }
    }
}
