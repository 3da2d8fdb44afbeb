//! Messages as bytes: JSON, compressed, with limits before anything is read.

use crate::cursor::{Head, parse_log};
use crate::{ENTRIES_MAX, MESSAGE_BYTES_MAX, Page, PageEntry};
use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use kenning_audit::LogId;
use kenning_core::{Error, Hash, Hlc, Result};
use kenning_store::{
    CheckpointRow, Edge, EventRow, KvRow, NameRow, Node, Row, SealedData, Vector, parse_json,
};
use kenning_text::hex;
use serde_json::{Value, json};
use std::io::Read;

/// The most rows of one event.
const ROWS_MAX: usize = 20_000;

/// Compresses a message.
pub fn pack(value: &Value) -> Result<Vec<u8>> {
    let text = value.to_string();
    let mut bytes = Vec::new();
    ZlibEncoder::new(text.as_bytes(), Compression::fast())
        .read_to_end(&mut bytes)
        .map_err(|cause| Error::internal("a message could not be compressed").because(cause))?;
    Ok(bytes)
}

/// Values of a message, counted by commas: those of a text count too, and a note may be a long table.
const VALUES_MAX: usize = 4_000_000;

/// Reads a message. It is unpacked no further than [`MESSAGE_BYTES_MAX`].
pub fn unpack(bytes: &[u8]) -> Result<Value> {
    let bad = || Error::invalid("the message is not compressed JSON");
    let mut text = Vec::new();
    ZlibDecoder::new(bytes)
        .take(MESSAGE_BYTES_MAX + 1)
        .read_to_end(&mut text)
        .map_err(|cause| bad().because(cause))?;
    if text.len() as u64 > MESSAGE_BYTES_MAX {
        return Err(Error::too_large(format!(
            "the message has more than {MESSAGE_BYTES_MAX} bytes"
        )));
    }
    // A value takes tens of bytes of memory for two of the message.
    let n_values = text.iter().filter(|byte| **byte == b',').count();
    if n_values > VALUES_MAX {
        return Err(Error::too_large(format!(
            "the message has more than {VALUES_MAX} values"
        )));
    }
    let text = String::from_utf8(text).map_err(|_| bad())?;
    parse_json(&text).map_err(|cause| bad().because(cause))
}

/// A field that is missing or malformed.
pub(crate) fn malformed(field: &str) -> Error {
    Error::invalid(format!(
        "the message is malformed: `{field}` is missing or wrong"
    ))
}

pub(crate) fn log_json(log: Option<LogId>) -> Value {
    log.map(|it| it.to_string()).into()
}

pub(crate) fn read_log(value: &Value) -> Option<Option<LogId>> {
    match value {
        Value::Null => Some(None),
        it => Some(Some(parse_log(it.as_str()?)?)),
    }
}

impl Page {
    /// As a part of a message.
    pub fn to_json(&self) -> Value {
        let entries: Vec<Value> = self.entries.iter().map(PageEntry::to_json).collect();
        let mut value =
            json!({ "head": self.head.to_json(), "from": self.from, "events": entries });
        if let Some(it) = &self.checkpoint {
            value["checkpoint"] = checkpoint_json(it);
        }
        value
    }

    /// Reads what [`Page::to_json`] gave.
    pub fn from_json(value: &Value) -> Result<Self> {
        let head = value.get("head").and_then(Head::from_json);
        let entries = value.get("events").and_then(Value::as_array);
        let entries = entries.filter(|it| it.len() <= ENTRIES_MAX);
        Ok(Self {
            head: head.ok_or_else(|| malformed("head"))?,
            from: value["from"].as_u64().ok_or_else(|| malformed("from"))?,
            entries: entries
                .ok_or_else(|| malformed("events"))?
                .iter()
                .map(|it| PageEntry::from_json(it).ok_or_else(|| malformed("events")))
                .collect::<Result<_>>()?,
            checkpoint: match value.get("checkpoint") {
                None | Some(Value::Null) => None,
                Some(it) => Some(read_checkpoint(it).ok_or_else(|| malformed("checkpoint"))?),
            },
            too_large: Vec::new(),
        })
    }
}

fn checkpoint_json(row: &CheckpointRow) -> Value {
    json!({
        "version": row.version, "origin": hex::encode(&row.origin), "height": row.height,
        "size": row.seq, "eventRoot": row.event_root.to_string(),
        "stateRoot": row.state_root.to_string(), "hlc": row.hlc.0, "author": row.author,
        "signature": hex::encode(&row.signature),
    })
}

fn read_checkpoint(value: &Value) -> Option<CheckpointRow> {
    let hash = |name: &str| Hash::from_hex(value.get(name)?.as_str()?);
    let bytes = |name: &str| hex::decode(value.get(name)?.as_str()?);
    Some(CheckpointRow {
        version: u8::try_from(value.get("version")?.as_u64()?).ok()?,
        origin: bytes("origin")?,
        height: value.get("height")?.as_u64()?,
        seq: value.get("size")?.as_u64()?,
        event_root: hash("eventRoot")?,
        state_root: hash("stateRoot")?,
        hlc: Hlc(value.get("hlc")?.as_u64()?),
        author: value.get("author")?.as_str()?.to_owned(),
        signature: bytes("signature")?,
    })
}

impl PageEntry {
    /// As a part of a page.
    pub fn to_json(&self) -> Value {
        let mut value = json!({ "id": self.id.to_string() });
        if self.is_offered {
            value["offered"] = true.into();
        }
        if let Some((event, rows)) = &self.event {
            value["event"] = event_json(event);
            let rows: Vec<Value> = rows.iter().filter_map(row_json).collect();
            value["rows"] = rows.into();
        }
        value
    }

    /// Reads what [`PageEntry::to_json`] gave.
    pub fn from_json(value: &Value) -> Option<Self> {
        let id = Hash::from_hex(value.get("id")?.as_str()?)?;
        let event = match value.get("event") {
            None => None,
            Some(event) => {
                let rows = value.get("rows")?.as_array()?;
                let rows = Some(rows).filter(|it| it.len() <= ROWS_MAX)?.iter();
                let rows = rows.map(read_row).collect::<Option<Vec<_>>>()?;
                Some((read_event(id, event)?, rows))
            }
        };
        let is_offered = value.get("offered").is_some();
        Some(Self {
            id,
            event,
            is_offered,
        })
    }
}

fn text_of(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => Value::Null,
    }
}

fn event_json(row: &EventRow) -> Value {
    let parents: Vec<String> = row.parents.iter().map(ToString::to_string).collect();
    let sealed = &row.sealed;
    json!({
        "version": row.version, "parents": parents, "hlc": row.hlc.0, "author": row.author,
        "type": row.kind, "changes": text_of(&row.payload), "signature": hex::encode(&row.signature),
        "origin": hex::encode(&sealed.origin), "agent": sealed.agent, "data": text_of(&sealed.data),
        "salt": hex::encode(&sealed.salt), "commitment": hex::encode(&sealed.commitment),
    })
}

fn read_event(id: Hash, value: &Value) -> Option<EventRow> {
    let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
    let bytes = |name: &str| hex::decode(value.get(name)?.as_str()?);
    let parents = value.get("parents")?.as_array()?.iter();
    Some(EventRow {
        seq: 0,
        version: u8::try_from(value.get("version")?.as_u64()?).ok()?,
        id,
        parents: parents
            .map(|it| Hash::from_hex(it.as_str()?))
            .collect::<Option<_>>()?,
        hlc: Some(Hlc(value.get("hlc")?.as_u64()?)).filter(|it| *it < Hlc::MAX)?,
        author: text("author")?,
        kind: text("type")?,
        payload: text("changes")?.into_bytes(),
        signature: bytes("signature")?,
        sealed: SealedData {
            origin: bytes("origin")?,
            agent: text("agent")?,
            data: text("data")?.into_bytes(),
            salt: bytes("salt")?,
            commitment: bytes("commitment")?,
        },
    })
}

fn row_json(row: &Row) -> Option<Value> {
    Some(match row {
        Row::Node(it) => json!({
            "node": it.id.to_string(), "kind": it.kind.as_str(), "project": it.project,
            "key": it.key, "title": it.title, "body": it.body, "props": it.props,
        }),
        Row::Edge(it) => json!({
            "edge": it.src.to_string(), "rel": it.rel, "dst": it.dst.to_string(),
            // JSON has no infinite numbers.
            "weight": if it.weight.is_finite() { it.weight.into() } else { Value::from(it.weight.to_string()) },
            "props": it.props,
        }),
        Row::Name(it) => json!({ "name": it.name, "of": it.node.to_string() }),
        Row::Vector(it) => json!({
            "vector": it.id, "collection": it.collection, "model": it.model,
            "numbers": it.numbers, "props": it.props,
        }),
        Row::Kv(it) => json!({
            "pair": it.key, "bucket": it.bucket, "value": hex::encode(&it.value),
        }),
        _ => return None,
    })
}

fn read_row(value: &Value) -> Option<Row> {
    let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
    let id = |name: &str| value.get(name)?.as_str()?.parse().ok();
    let props = || Some(value.get("props")?.as_object()?.clone());
    if value.get("node").is_some() {
        let mut node = Node {
            id: id("node")?,
            kind: text("kind")?.parse().ok()?,
            project: text("project")?,
            key: text("key")?,
            title: text("title")?,
            body: text("body")?,
            props: props()?,
            created: Hlc::default(),
            updated: Hlc::default(),
            hash: Hash::default(),
            rev: 0,
        };
        node.hash = node.canonical_hash();
        return Some(Row::Node(node));
    }
    if value.get("edge").is_some() {
        let mut edge = Edge {
            src: id("edge")?,
            rel: text("rel")?,
            dst: id("dst")?,
            weight: match value.get("weight")? {
                Value::String(text) => text.parse().ok()?,
                number => number.as_f64()?,
            },
            props: props()?,
            from: Hlc::default(),
            to: Hlc::MAX,
            hash: Hash::default(),
        };
        edge.hash = edge.canonical_hash();
        return Some(Row::Edge(edge));
    }
    if value.get("name").is_some() {
        return Some(Row::Name(NameRow {
            node: id("of")?,
            name: text("name")?,
        }));
    }
    if value.get("vector").is_some() {
        let numbers = value.get("numbers")?.as_array()?.iter();
        // A single-precision number survives the conversion to double and back.
        #[expect(clippy::cast_possible_truncation, reason = "it was one before")]
        let number = |it: &Value| {
            let number = it.as_f64()? as f32;
            number.is_finite().then_some(number)
        };
        return Some(Row::Vector(Vector {
            collection: text("collection")?,
            id: text("vector")?,
            model: text("model")?,
            numbers: numbers.map(number).collect::<Option<_>>()?,
            props: props()?,
            seq: 0,
        }));
    }
    Some(Row::Kv(KvRow {
        bucket: text("bucket")?,
        key: text("pair")?,
        value: hex::decode(value.get("value")?.as_str()?)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_message_of_millions_of_values_is_refused_before_it_is_parsed() {
        let many = format!("[{}0]", "0,".repeat(VALUES_MAX + 1));
        let mut packed = Vec::new();
        ZlibEncoder::new(many.as_bytes(), Compression::fast())
            .read_to_end(&mut packed)
            .unwrap();
        assert!(packed.len() < 100_000, "{}", packed.len());
        let error = unpack(&packed).unwrap_err();
        assert!(error.message.contains("values"), "{error}");
    }
}
