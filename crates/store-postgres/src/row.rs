//! Converts rows of the database to the rows of the store.

use kenning_core::{Error, Hash, Hlc, NodeId, Result};
use kenning_store::{
    CheckpointRow, Edge, EventRow, HeadRow, KvRow, NameRow, Near, Node, Passage, PassageRow,
    SealedData, TileRow, Vector, parse_json,
};
use serde_json::{Map, Value};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

fn bad() -> Error {
    Error::corrupt("a stored row is malformed")
}

fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T> {
    row.try_get(column).map_err(|cause| bad().because(cause))
}

pub(crate) fn text(row: &Row, column: usize) -> Result<String> {
    let bytes: &[u8] = get(row, column)?;
    String::from_utf8(bytes.to_vec()).map_err(|cause| bad().because(cause))
}

pub(crate) fn near(row: &Row) -> Result<Near> {
    Ok(Near {
        id: text(row, 0)?,
        similarity: get(row, 1)?,
    })
}

pub(crate) fn node_id(row: &Row, column: usize) -> Result<NodeId> {
    NodeId::try_from(get::<&[u8]>(row, column)?).map_err(|cause| bad().because(cause))
}

pub(crate) fn hash(row: &Row, column: usize) -> Result<Hash> {
    Hash::try_from(get::<&[u8]>(row, column)?).map_err(|cause| bad().because(cause))
}

fn hashes(row: &Row, column: usize) -> Result<Vec<Hash>> {
    let bytes: &[u8] = get(row, column)?;
    if !bytes.len().is_multiple_of(32) {
        return Err(bad());
    }
    bytes
        .chunks(32)
        .map(|it| Hash::try_from(it).map_err(|cause| bad().because(cause)))
        .collect()
}

fn props(row: &Row, column: usize) -> Result<Map<String, Value>> {
    let text = std::str::from_utf8(get::<&[u8]>(row, column)?);
    let text = text.map_err(|cause| bad().because(cause))?;
    match parse_json(text).map_err(|cause| bad().because(cause))? {
        Value::Object(props) => Ok(props),
        _ => Err(bad()),
    }
}

pub(crate) fn number(row: &Row, column: usize) -> Result<u64> {
    u64::try_from(get::<i64>(row, column)?).map_err(|cause| bad().because(cause))
}

fn small(row: &Row, column: usize) -> Result<u8> {
    u8::try_from(get::<i16>(row, column)?).map_err(|cause| bad().because(cause))
}

pub(crate) fn count(row: &Row, column: usize) -> Result<u32> {
    u32::try_from(get::<i64>(row, column)?).map_err(|cause| bad().because(cause))
}

fn hlc(row: &Row, column: usize) -> Result<Hlc> {
    number(row, column).map(Hlc)
}

pub(crate) const NODE_COLUMNS: &str =
    "id, kind, project, key, title, body, props, created, updated, hash, rev";

pub(crate) fn node(row: &Row) -> Result<Node> {
    Ok(Node {
        id: node_id(row, 0)?,
        kind: get::<&str>(row, 1)?.parse().map_err(|_| bad())?,
        project: text(row, 2)?,
        key: text(row, 3)?,
        title: text(row, 4)?,
        body: text(row, 5)?,
        props: props(row, 6)?,
        created: hlc(row, 7)?,
        updated: hlc(row, 8)?,
        hash: hash(row, 9)?,
        rev: number(row, 10)?,
    })
}

pub(crate) fn history(row: &Row) -> Result<(Node, Hlc)> {
    Ok((node(row)?, hlc(row, 11)?))
}

pub(crate) const EDGE_COLUMNS: &str = "src, rel, dst, weight, props, valid_from, valid_to, hash";

pub(crate) fn edge(row: &Row) -> Result<Edge> {
    Ok(Edge {
        src: node_id(row, 0)?,
        rel: text(row, 1)?,
        dst: node_id(row, 2)?,
        weight: get(row, 3)?,
        props: props(row, 4)?,
        from: hlc(row, 5)?,
        to: hlc(row, 6)?,
        hash: hash(row, 7)?,
    })
}

pub(crate) const PASSAGE_COLUMNS: &str = "n, text, start, tokens, title_tokens";

pub(crate) fn passage(row: &Row) -> Result<Passage> {
    Ok(Passage {
        n: count(row, 0)?,
        text: text(row, 1)?,
        start: number(row, 2)?,
        tokens: text(row, 3)?,
        title_tokens: text(row, 4)?,
    })
}

pub(crate) fn passage_row(row: &Row) -> Result<PassageRow> {
    Ok(PassageRow {
        node: node_id(row, 5)?,
        passage: passage(row)?,
    })
}

pub(crate) const VECTOR_COLUMNS: &str = "collection, id, model, numbers::real[], props, seq";

pub(crate) fn vector(row: &Row) -> Result<Vector> {
    Ok(Vector {
        collection: text(row, 0)?,
        id: text(row, 1)?,
        model: text(row, 2)?,
        numbers: get(row, 3)?,
        props: props(row, 4)?,
        seq: number(row, 5)?,
    })
}

pub(crate) fn name(row: &Row) -> Result<NameRow> {
    Ok(NameRow {
        node: node_id(row, 0)?,
        name: text(row, 1)?,
    })
}

pub(crate) const EVENT_COLUMNS: &str =
    "seq, version, id, parents, hlc, author, kind, payload, signature, origin, agent, data, salt,
     commitment";

pub(crate) fn event(row: &Row) -> Result<EventRow> {
    Ok(EventRow {
        seq: number(row, 0)?,
        version: small(row, 1)?,
        id: hash(row, 2)?,
        parents: hashes(row, 3)?,
        hlc: hlc(row, 4)?,
        author: text(row, 5)?,
        kind: text(row, 6)?,
        payload: get(row, 7)?,
        signature: get(row, 8)?,
        sealed: SealedData {
            origin: get(row, 9)?,
            agent: text(row, 10)?,
            data: get(row, 11)?,
            salt: get(row, 12)?,
            commitment: get(row, 13)?,
        },
    })
}

pub(crate) fn tile(row: &Row) -> Result<TileRow> {
    Ok(TileRow {
        level: small(row, 0)?,
        index: number(row, 1)?,
        hash: hash(row, 2)?,
    })
}

pub(crate) const CHECKPOINT_COLUMNS: &str =
    "height, seq, event_root, state_root, hlc, author, signature, version, origin";

pub(crate) fn checkpoint(row: &Row) -> Result<CheckpointRow> {
    Ok(CheckpointRow {
        height: number(row, 0)?,
        seq: number(row, 1)?,
        event_root: hash(row, 2)?,
        state_root: hash(row, 3)?,
        hlc: hlc(row, 4)?,
        author: text(row, 5)?,
        signature: get(row, 6)?,
        version: small(row, 7)?,
        origin: get(row, 8)?,
    })
}

pub(crate) const HEAD_COLUMNS: &str = "seq, hlc, tips, frontier, state, log";

pub(crate) fn head(row: &Row) -> Result<HeadRow> {
    Ok(HeadRow {
        seq: number(row, 0)?,
        hlc: hlc(row, 1)?,
        tips: hashes(row, 2)?,
        frontier: hashes(row, 3)?,
        state: get(row, 4)?,
        log: get(row, 5)?,
    })
}

pub(crate) fn kv(row: &Row) -> Result<KvRow> {
    Ok(KvRow {
        bucket: text(row, 0)?,
        key: text(row, 1)?,
        value: get(row, 2)?,
    })
}

pub(crate) fn joined(hashes: &[Hash]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.0).collect()
}

/// PostgreSQL's integers are signed; ours fit.
pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
