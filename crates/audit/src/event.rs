//! An event and its canonical bytes.

use crate::key::is_signed_by;
use crate::{Origin, Signer};
use kenning_core::{Did, Error, Hash, Hlc, NodeId, Result};
use kenning_store::{EventRow, SealedData, canonical_json, parse_json};
use serde_json::{Value, json};

/// The version of the canonical form that new events use. Version 1 had no origin and no agent, and
/// its data could not be erased.
pub const VERSION: u8 = 2;

/// Bytes of randomness that are hashed with the data.
pub const SALT_BYTES: usize = 16;

/// An event before it has a position in a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What its author had seen.
    pub parents: Vec<Hash>,
    /// When: later than every parent.
    pub hlc: Hlc,
    /// The node that wrote and signed it.
    pub author: Did,
    /// The agent for whom the author wrote it, if one was named.
    pub agent: Option<Did>,
    /// What kind of thing happened, in the contract's words.
    pub kind: String,
    /// Which rows it changed.
    pub changes: Vec<Change>,
    /// Further data; null once it was erased.
    pub data: Value,
}

/// One changed row, by its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A node has this content now.
    PutNode {
        /// Its identity.
        id: NodeId,
        /// Which revision this is.
        rev: u64,
        /// The hash of its content.
        hash: Hash,
    },
    /// A node is gone.
    RemoveNode {
        /// Its identity.
        id: NodeId,
    },
    /// An edge holds now.
    PutEdge {
        /// The source node.
        src: NodeId,
        /// The relation.
        rel: String,
        /// The target node.
        dst: NodeId,
        /// The hash of its content.
        hash: Hash,
    },
    /// An edge no longer holds.
    EndEdge {
        /// The source node.
        src: NodeId,
        /// The relation.
        rel: String,
        /// The target node.
        dst: NodeId,
    },
    /// A row that is neither node nor edge has this content now.
    PutRow {
        /// Its identity.
        row: SignedRow,
        /// The hash of its content.
        hash: Hash,
    },
    /// A row that is neither node nor edge is gone.
    RemoveRow {
        /// Its identity.
        row: SignedRow,
    },
    /// A key may sign events of this log.
    AddAuthor {
        /// The key.
        author: Did,
    },
    /// A key may sign no further events of this log.
    RevokeAuthor {
        /// The key.
        author: Did,
    },
    /// The time of this event may be earlier than that of the events before it.
    ResetClock,
    /// The changes after this one apply an event of another log: they happened at its time.
    Apply {
        /// The other log's event, which is in this log too.
        event: Hash,
    },
    /// A revision that lost against another one is in the history.
    KeepRevision {
        /// The node.
        id: NodeId,
        /// Its number, from [`LOST_REVISION`] on.
        rev: u64,
        /// The hash of its content.
        hash: Hash,
        /// The time of the revision that it lost against.
        ended: Hlc,
    },
    /// Every revision of a node that is gone was erased, and every ended edge at it.
    EraseNode {
        /// Its identity.
        id: NodeId,
    },
    /// Superseded revisions of a node with this content were erased.
    EraseRevision {
        /// The node.
        id: NodeId,
        /// The hash of the content.
        hash: Hash,
    },
    /// The data of an event was erased.
    EraseEvent {
        /// The event.
        event: Hash,
    },
}

/// Revisions that lost have numbers from here on, so that they do not meet those that held.
pub const LOST_REVISION: u64 = 1 << 40;

/// A row that is neither node nor edge, and whose hash is in the event that wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SignedRow {
    /// All passages of a node.
    Passages(NodeId),
    /// All names that a node is found by.
    Names(NodeId),
    /// A vector: collection and id.
    Vector(String, String),
    /// A row of the key-value table: bucket and key.
    Pair(String, String),
}

impl SignedRow {
    fn to_json(&self, verb: &str) -> Value {
        match self {
            Self::Passages(id) => json!({ verb: "passages", "id": id.to_string() }),
            Self::Names(id) => json!({ verb: "names", "id": id.to_string() }),
            Self::Vector(collection, id) => {
                json!({ verb: "vector", "collection": collection, "id": id })
            }
            Self::Pair(bucket, key) => json!({ verb: "pair", "bucket": bucket, "key": key }),
        }
    }

    fn from_json(what: &str, value: &Value) -> Option<Self> {
        let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        Some(match what {
            "passages" => Self::Passages(text("id")?.parse().ok()?),
            "names" => Self::Names(text("id")?.parse().ok()?),
            "vector" => Self::Vector(text("collection")?, text("id")?),
            "pair" => Self::Pair(text("bucket")?, text("key")?),
            _ => return None,
        })
    }
}

impl Change {
    /// Whether it erases something.
    pub fn erases(&self) -> bool {
        matches!(
            self,
            Self::EraseNode { .. } | Self::EraseRevision { .. } | Self::EraseEvent { .. }
        )
    }

    /// Whether it puts or ends this edge.
    pub(crate) fn is_about_edge(&self, from: NodeId, relation: &str, to: NodeId) -> bool {
        match self {
            Self::PutEdge { src, rel, dst, .. } | Self::EndEdge { src, rel, dst } => {
                (*src, rel.as_str(), *dst) == (from, relation, to)
            }
            _ => false,
        }
    }

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
            Self::PutRow { row, hash } => {
                let mut value = row.to_json("put");
                value["hash"] = hash.to_string().into();
                value
            }
            Self::RemoveRow { row } => row.to_json("remove"),
            Self::AddAuthor { author } => json!({ "put": "author", "did": author.as_str() }),
            Self::RevokeAuthor { author } => json!({ "remove": "author", "did": author.as_str() }),
            Self::ResetClock => json!({ "put": "clock" }),
            Self::Apply { event } => json!({ "put": "event", "id": event.to_string() }),
            Self::KeepRevision {
                id,
                rev,
                hash,
                ended,
            } => json!({
                "put": "revision", "id": id.to_string(), "rev": rev, "hash": hash.to_string(),
                "ended": ended.0,
            }),
            Self::EraseNode { id } => json!({ "erase": "node", "id": id.to_string() }),
            Self::EraseRevision { id, hash } => json!({
                "erase": "revision", "id": id.to_string(), "hash": hash.to_string(),
            }),
            Self::EraseEvent { event } => json!({ "erase": "event", "id": event.to_string() }),
        }
    }

    fn from_json(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name)?.as_str();
        let id = |name: &str| text(name)?.parse::<NodeId>().ok();
        let hash = || Hash::from_hex(text("hash")?);
        if let Some(what) = text("erase") {
            return Some(match what {
                "node" => Self::EraseNode { id: id("id")? },
                "revision" => Self::EraseRevision {
                    id: id("id")?,
                    hash: hash()?,
                },
                "event" => Self::EraseEvent {
                    event: Hash::from_hex(text("id")?)?,
                },
                _ => return None,
            });
        }
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
            (Some("author"), None) => Self::AddAuthor {
                author: text("did")?.parse().ok()?,
            },
            (None, Some("author")) => Self::RevokeAuthor {
                author: text("did")?.parse().ok()?,
            },
            (Some("clock"), None) => Self::ResetClock,
            (Some("event"), None) => Self::Apply {
                event: Hash::from_hex(text("id")?)?,
            },
            (Some("revision"), None) => Self::KeepRevision {
                id: id("id")?,
                rev: value.get("rev")?.as_u64()?,
                hash: hash()?,
                ended: Hlc(value.get("ended")?.as_u64()?),
            },
            (Some(what), None) => Self::PutRow {
                row: SignedRow::from_json(what, value)?,
                hash: hash()?,
            },
            (None, Some(what)) => Self::RemoveRow {
                row: SignedRow::from_json(what, value)?,
            },
            _ => return None,
        })
    }
}

impl Event {
    /// Signs it, as event number `seq` of the log `origin`. The salt is random and used once.
    pub fn sign(
        &self,
        seq: u64,
        origin: &Origin,
        salt: [u8; SALT_BYTES],
        signer: &Signer,
    ) -> EventRow {
        let changes: Vec<Value> = self.changes.iter().map(Change::to_json).collect();
        let data = canonical_json(&self.data).into_bytes();
        let commitment = commitment(&salt, &data);
        let mut row = EventRow {
            seq,
            version: VERSION,
            id: Hash::default(),
            parents: self.parents.clone(),
            hlc: self.hlc,
            author: self.author.to_string(),
            kind: self.kind.clone(),
            payload: canonical_json(&Value::Array(changes)).into_bytes(),
            signature: Vec::new(),
            sealed: SealedData {
                origin: origin.to_bytes(),
                agent: self.agent.as_ref().map(Did::to_string).unwrap_or_default(),
                data,
                salt: salt.to_vec(),
                commitment: commitment.0.to_vec(),
            },
        };
        row.id = Hash::of(&canonical_bytes(&row));
        row.signature = signer.sign(&row.id);
        row
    }
}

/// What is signed in place of an event's data.
fn commitment(salt: &[u8], data: &[u8]) -> Hash {
    Hash::of(&[b"kenning event data\0", salt, data].concat())
}

/// The bytes that an event's id is the hash of. **They never change for a version**: golden files
/// record them. The position in the log is not part of them, because peers keep different orders.
///
/// Version 1: `version | n parents | parent … | hlc | author | kind | payload`.
/// Version 2: `version | origin | n parents | parent … | hlc | author | agent | kind | changes |
/// commitment`. Numbers are 8 bytes big-endian, texts have their length before them.
pub fn canonical_bytes(event: &EventRow) -> Vec<u8> {
    let mut out = vec![event.version];
    let number = |out: &mut Vec<u8>, n: u64| out.extend_from_slice(&n.to_be_bytes());
    let text = |out: &mut Vec<u8>, text: &[u8]| {
        number(out, text.len() as u64);
        out.extend_from_slice(text);
    };
    let is_first = event.version == 1;
    if !is_first {
        text(&mut out, &event.sealed.origin);
    }
    number(&mut out, event.parents.len() as u64);
    for parent in &event.parents {
        out.extend_from_slice(&parent.0);
    }
    number(&mut out, event.hlc.0);
    text(&mut out, event.author.as_bytes());
    if !is_first {
        text(&mut out, event.sealed.agent.as_bytes());
    }
    text(&mut out, event.kind.as_bytes());
    text(&mut out, &event.payload);
    if !is_first {
        text(&mut out, &event.sealed.commitment);
    }
    out
}

/// Whether the event's data was erased: its salt and its data are gone, what was signed is still there.
pub fn is_erased(row: &EventRow) -> bool {
    row.version > 1 && row.sealed.salt.is_empty() && row.sealed.data.is_empty()
}

/// Removes the data of an event. Its id and its signature stay valid.
pub(crate) fn erase(row: &mut EventRow) {
    if row.version > 1 {
        row.sealed.data.clear();
        row.sealed.salt.clear();
    }
}

/// Whether the data matches the event's id, or was erased.
pub fn has_signed_data(row: &EventRow) -> bool {
    let SealedData { data, salt, .. } = &row.sealed;
    let is_signed =
        || salt.len() == SALT_BYTES && row.sealed.commitment == commitment(salt, data).0;
    row.version == 1 || is_erased(row) || is_signed()
}

/// Checks a row by itself: version, id, author, signature, payload, data. Returns its content.
pub fn check(row: &EventRow) -> Result<Event> {
    let bad = |what: &str| Error::corrupt(format!("event {}: {what}", row.seq));
    if !(1..=VERSION).contains(&row.version) {
        return Err(bad(&format!("unknown version {}", row.version)));
    }
    if row.version == 1 && row.sealed != SealedData::default() {
        return Err(bad("it has fields that its version does not have"));
    }
    if Hash::of(&canonical_bytes(row)) != row.id {
        return Err(bad("the id is not the hash of the content"));
    }
    let author: Did = row
        .author
        .parse()
        .map_err(|_| bad("the author is not a key"))?;
    if !is_signed_by(&author, &row.id, &row.signature) {
        return Err(bad("the signature does not match"));
    }
    if row.kind.is_empty() {
        return Err(bad("it has no kind"));
    }
    if !has_signed_data(row) {
        return Err(bad("the data is not what was signed"));
    }
    parse(row).ok_or_else(|| bad("the payload is malformed"))
}

/// Reads a row without checking its signature.
pub fn parse(row: &EventRow) -> Option<Event> {
    let json = |bytes: &[u8]| parse_json(std::str::from_utf8(bytes).ok()?).ok();
    let mut payload = json(&row.payload)?;
    let (changes, data) = if row.version == 1 {
        let data = payload.get_mut("data")?.take();
        (payload.get("changes")?.as_array()?, data)
    } else if is_erased(row) {
        (payload.as_array()?, Value::Null)
    } else {
        let data = json(&row.sealed.data)?;
        (payload.as_array()?, data)
    };
    let changes = changes
        .iter()
        .map(Change::from_json)
        .collect::<Option<_>>()?;
    let agent = &row.sealed.agent;
    Some(Event {
        parents: row.parents.clone(),
        hlc: row.hlc,
        author: row.author.parse().ok()?,
        agent: match agent.as_str() {
            "" => None,
            agent => Some(agent.parse().ok()?),
        },
        kind: row.kind.clone(),
        changes,
        data,
    })
}

/// The event's data besides its changes: null if it was erased or cannot be read.
pub fn data(row: &EventRow) -> Value {
    if row.version > 1 {
        return json_or_null(&row.sealed.data);
    }
    let mut payload = json_or_null(&row.payload);
    payload.get_mut("data").map(Value::take).unwrap_or_default()
}

/// The changes of an event as JSON, for people and other programs.
pub fn changes_json(row: &EventRow) -> Value {
    let mut payload = json_or_null(&row.payload);
    match payload.get_mut("changes") {
        Some(changes) if row.version == 1 => changes.take(),
        _ => payload,
    }
}

fn json_or_null(bytes: &[u8]) -> Value {
    let text = std::str::from_utf8(bytes).ok();
    text.and_then(|it| parse_json(it).ok()).unwrap_or_default()
}
