//! Converts rows of the database to the rows of the store.

use kenning_core::{Hash, Hlc, Kind, NodeId};
use kenning_store::{
    CheckpointRow, Edge, EventRow, HeadRow, KvRow, NameRow, Node, Passage, PassageRow, SealedData,
    TileRow, Vector, parse_json,
};
use rusqlite::types::Type;
use rusqlite::{Error, Result, Row};
use serde_json::{Map, Value};

pub(crate) const NODE_COLUMNS: &str =
    "id, kind, project, key, title, body, props, created, updated, hash, rev";

pub(crate) fn node(row: &Row<'_>) -> Result<Node> {
    Ok(Node {
        id: node_id(row, 0)?,
        kind: kind(row, 1)?,
        project: row.get(2)?,
        key: row.get(3)?,
        title: row.get(4)?,
        body: row.get(5)?,
        props: props(row, 6)?,
        created: hlc(row, 7)?,
        updated: hlc(row, 8)?,
        hash: hash(row, 9)?,
        rev: number(row, 10)?,
    })
}

pub(crate) const EDGE_COLUMNS: &str = "src, rel, dst, weight, props, valid_from, valid_to, hash";

pub(crate) fn edge(row: &Row<'_>) -> Result<Edge> {
    Ok(Edge {
        src: node_id(row, 0)?,
        rel: row.get(1)?,
        dst: node_id(row, 2)?,
        weight: row.get(3)?,
        props: props(row, 4)?,
        from: hlc(row, 5)?,
        to: hlc(row, 6)?,
        hash: hash(row, 7)?,
    })
}

pub(crate) const PASSAGE_COLUMNS: &str = "n, text, start, tokens, title_tokens";

pub(crate) fn passage(row: &Row<'_>) -> Result<Passage> {
    Ok(Passage {
        n: row.get(0)?,
        text: row.get(1)?,
        start: number(row, 2)?,
        tokens: row.get(3)?,
        title_tokens: row.get(4)?,
    })
}

pub(crate) fn passage_row(row: &Row<'_>) -> Result<PassageRow> {
    Ok(PassageRow {
        node: node_id(row, 5)?,
        passage: passage(row)?,
    })
}

pub(crate) const VECTOR_COLUMNS: &str = "collection, id, model, numbers, props, seq";

pub(crate) fn vector(row: &Row<'_>) -> Result<Vector> {
    Ok(Vector {
        collection: row.get(0)?,
        id: row.get(1)?,
        model: row.get(2)?,
        numbers: numbers(row, 3)?,
        props: props(row, 4)?,
        seq: number(row, 5)?,
    })
}

/// Single-precision numbers, little end first.
pub(crate) fn numbers(row: &Row<'_>, column: usize) -> Result<Vec<f32>> {
    let bytes = row.get_ref(column)?.as_blob()?;
    let (numbers, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(bad(
            column,
            Type::Blob,
            "a vector ends in the middle of a number",
        ));
    }
    Ok(numbers.iter().map(|it| f32::from_le_bytes(*it)).collect())
}

pub(crate) fn numbers_to_bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|it| it.to_le_bytes()).collect()
}

pub(crate) fn name(row: &Row<'_>) -> Result<NameRow> {
    Ok(NameRow {
        node: node_id(row, 0)?,
        name: row.get(1)?,
    })
}

pub(crate) const EVENT_COLUMNS: &str =
    "seq, version, id, parents, hlc, author, kind, payload, signature, origin, agent, data, salt,
     commitment";

pub(crate) fn event(row: &Row<'_>) -> Result<EventRow> {
    Ok(EventRow {
        seq: number(row, 0)?,
        version: row.get(1)?,
        id: hash(row, 2)?,
        parents: hashes(row, 3)?,
        hlc: hlc(row, 4)?,
        author: row.get(5)?,
        kind: row.get(6)?,
        payload: row.get(7)?,
        signature: row.get(8)?,
        sealed: SealedData {
            origin: row.get(9)?,
            agent: row.get(10)?,
            data: row.get(11)?,
            salt: row.get(12)?,
            commitment: row.get(13)?,
        },
    })
}

pub(crate) fn tile(row: &Row<'_>) -> Result<TileRow> {
    Ok(TileRow {
        level: row.get(0)?,
        index: number(row, 1)?,
        hash: hash(row, 2)?,
    })
}

pub(crate) const CHECKPOINT_COLUMNS: &str =
    "height, seq, event_root, state_root, hlc, author, signature, version, origin";

pub(crate) fn checkpoint(row: &Row<'_>) -> Result<CheckpointRow> {
    Ok(CheckpointRow {
        height: number(row, 0)?,
        seq: number(row, 1)?,
        event_root: hash(row, 2)?,
        state_root: hash(row, 3)?,
        hlc: hlc(row, 4)?,
        author: row.get(5)?,
        signature: row.get(6)?,
        version: row.get(7)?,
        origin: row.get(8)?,
    })
}

pub(crate) const HEAD_COLUMNS: &str = "seq, hlc, tips, frontier, state, log";

pub(crate) fn head(row: &Row<'_>) -> Result<HeadRow> {
    Ok(HeadRow {
        seq: number(row, 0)?,
        hlc: hlc(row, 1)?,
        tips: hashes(row, 2)?,
        frontier: hashes(row, 3)?,
        state: row.get(4)?,
        log: row.get(5)?,
    })
}

pub(crate) fn kv(row: &Row<'_>) -> Result<KvRow> {
    Ok(KvRow {
        bucket: row.get(0)?,
        key: row.get(1)?,
        value: row.get(2)?,
    })
}

pub(crate) fn node_id(row: &Row<'_>, column: usize) -> Result<NodeId> {
    let bytes = row.get_ref(column)?.as_blob()?;
    NodeId::try_from(bytes).map_err(|error| bad(column, Type::Blob, error))
}

fn kind(row: &Row<'_>, column: usize) -> Result<Kind> {
    let text = row.get_ref(column)?.as_str()?;
    text.parse()
        .map_err(|error: String| bad(column, Type::Text, error))
}

fn props(row: &Row<'_>, column: usize) -> Result<Map<String, Value>> {
    let text = row.get_ref(column)?.as_str()?;
    match parse_json(text) {
        Ok(Value::Object(props)) => Ok(props),
        Ok(_) => Err(bad(column, Type::Text, "the properties are not an object")),
        Err(error) => Err(bad(column, Type::Text, error)),
    }
}

pub(crate) fn hash(row: &Row<'_>, column: usize) -> Result<Hash> {
    let bytes = row.get_ref(column)?.as_blob()?;
    Hash::try_from(bytes).map_err(|error| bad(column, Type::Blob, error))
}

fn hashes(row: &Row<'_>, column: usize) -> Result<Vec<Hash>> {
    let bytes = row.get_ref(column)?.as_blob()?;
    if bytes.len() % 32 != 0 {
        return Err(bad(
            column,
            Type::Blob,
            "the length of a list of hashes is not a multiple of 32",
        ));
    }
    bytes
        .chunks(32)
        .map(|it| Hash::try_from(it).map_err(|error| bad(column, Type::Blob, error)))
        .collect()
}

pub(crate) fn joined(hashes: &[Hash]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.0).collect()
}

fn hlc(row: &Row<'_>, column: usize) -> Result<Hlc> {
    number(row, column).map(Hlc)
}

pub(crate) fn number(row: &Row<'_>, column: usize) -> Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| Error::IntegralValueOutOfRange(column, value))
}

/// SQLite's integers are signed; ours fit.
pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn bad(
    column: usize,
    kind: Type,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Error {
    Error::FromSqlConversionFailure(column, kind, error.into())
}
