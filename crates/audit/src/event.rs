//! An event and its canonical bytes.

use crate::Signer;
use crate::key::signed_by;
use kenning_core::{Did, Error, Hash, Hlc, NodeId, Result};
use kenning_store::{EventRow, canonical_json, parse_json};
use serde_json::{Map, Value, json};

/// The version of the canonical form that new events use.
pub const VERSION: u8 = 1;

/// What happened, before it has a place in a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What its author had seen.
    pub parents: Vec<Hash>,
    /// When: later than every parent.
    pub hlc: Hlc,
    /// Who.
    pub author: Did,
    /// What kind of thing happened, in the contract's words.
    pub kind: String,
    /// Which rows it changed.
    pub changes: Vec<Change>,
    /// What else there is to say.
    pub data: Value,
}

/// One changed row, by its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A node has this content now.
    PutNode {
        /// Which.
        id: NodeId,
        /// Which revision this is.
        rev: u64,
        /// Of its content.
        hash: Hash,
    },
    /// A node is gone.
    RemoveNode {
        /// Which.
        id: NodeId,
    },
    /// An edge holds now.
    PutEdge {
        /// From.
        src: NodeId,
        /// How.
        rel: String,
        /// To.
        dst: NodeId,
        /// Of its content.
        hash: Hash,
    },
    /// An edge no longer holds.
    EndEdge {
        /// From.
        src: NodeId,
        /// How.
        rel: String,
        /// To.
        dst: NodeId,
    },
}

impl Change {
    fn to_json(&self) -> Value {
        match self {
            Self::PutNode { id, rev, hash } => {
                json!({ "put": "node", "id": id.to_string(), "rev": rev, "hash": hash.to_string() })
            }
            Self::RemoveNode { id } => json!({ "remove": "node", "id": id.to_string() }),
            Self::PutEdge {
                src,
                rel,
                dst,
                hash,
            } => json!({
                "put": "edge", "src": src.to_string(), "rel": rel, "dst": dst.to_string(),
                "hash": hash.to_string(),
            }),
            Self::EndEdge { src, rel, dst } => json!({
                "remove": "edge", "src": src.to_string(), "rel": rel, "dst": dst.to_string(),
            }),
        }
    }

    fn from_json(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name)?.as_str();
        let id = |name: &str| text(name)?.parse::<NodeId>().ok();
        let hash = || Hash::from_hex(text("hash")?);
        Some(match (text("put"), text("remove")) {
            (Some("node"), None) => Self::PutNode {
                id: id("id")?,
                rev: value.get("rev")?.as_u64()?,
                hash: hash()?,
            },
            (None, Some("node")) => Self::RemoveNode { id: id("id")? },
            (Some("edge"), None) => Self::PutEdge {
                src: id("src")?,
                rel: text("rel")?.to_owned(),
                dst: id("dst")?,
                hash: hash()?,
            },
            (None, Some("edge")) => Self::EndEdge {
                src: id("src")?,
                rel: text("rel")?.to_owned(),
                dst: id("dst")?,
            },
            _ => return None,
        })
    }
}

impl Event {
    /// The payload as it is stored and signed.
    pub fn payload(&self) -> Vec<u8> {
        let changes: Vec<Value> = self.changes.iter().map(Change::to_json).collect();
        let mut payload = Map::new();
        payload.insert("changes".to_owned(), Value::Array(changes));
        payload.insert("data".to_owned(), self.data.clone());
        canonical_json(&Value::Object(payload)).into_bytes()
    }

    /// Signs it, for the place `seq` of a log.
    pub fn sign(&self, seq: u64, signer: &Signer) -> EventRow {
        let mut row = EventRow {
            seq,
            version: VERSION,
            id: Hash::default(),
            parents: self.parents.clone(),
            hlc: self.hlc,
            author: self.author.to_string(),
            kind: self.kind.clone(),
            payload: self.payload(),
            signature: Vec::new(),
        };
        row.id = Hash::of(&canonical_bytes(&row));
        row.signature = signer.sign(&row.id);
        row
    }
}

/// The bytes that an event's id is the hash of. **They never change for a version**: a golden file
/// holds them. The place in the log is not part of them, because peers keep different orders.
///
/// `version | n parents | parent … | hlc | author | kind | payload`, numbers as 8 bytes big-endian,
/// texts with their length before them.
pub fn canonical_bytes(event: &EventRow) -> Vec<u8> {
    let mut out = vec![event.version];
    let number = |out: &mut Vec<u8>, n: u64| out.extend_from_slice(&n.to_be_bytes());
    number(&mut out, event.parents.len() as u64);
    for parent in &event.parents {
        out.extend_from_slice(&parent.0);
    }
    number(&mut out, event.hlc.0);
    for text in [
        event.author.as_bytes(),
        event.kind.as_bytes(),
        &event.payload,
    ] {
        number(&mut out, text.len() as u64);
        out.extend_from_slice(text);
    }
    out
}

/// Checks a row by itself: version, id, author, signature, payload. Gives what it says.
pub fn check(row: &EventRow) -> Result<Event> {
    let bad = |what: &str| Error::corrupt(format!("event {}: {what}", row.seq));
    if row.version != VERSION {
        return Err(bad(&format!("unknown version {}", row.version)));
    }
    if Hash::of(&canonical_bytes(row)) != row.id {
        return Err(bad("the id is not the hash of the content"));
    }
    let author: Did = row
        .author
        .parse()
        .map_err(|_| bad("the author is not a key"))?;
    if !signed_by(&author, &row.id, &row.signature) {
        return Err(bad("the signature does not match"));
    }
    if row.kind.is_empty() {
        return Err(bad("it has no kind"));
    }
    parse(row).ok_or_else(|| bad("the payload is not of its form"))
}

/// Reads a row without checking its signature.
pub fn parse(row: &EventRow) -> Option<Event> {
    let mut payload = parse_json(std::str::from_utf8(&row.payload).ok()?).ok()?;
    let changes = payload.get("changes")?.as_array()?;
    let changes = changes
        .iter()
        .map(Change::from_json)
        .collect::<Option<_>>()?;
    Some(Event {
        parents: row.parents.clone(),
        hlc: row.hlc,
        author: row.author.parse().ok()?,
        kind: row.kind.clone(),
        changes,
        data: payload.get_mut("data")?.take(),
    })
}
