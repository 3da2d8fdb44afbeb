//! How far we have read another node's log, and what that node said of it.

use kenning_audit::merkle::Frontier;
use kenning_audit::{LogId, Origin, Signer, is_signed_by};
use kenning_core::{Did, Hash, Space};
use kenning_store::canonical_json;
use kenning_text::hex;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The bucket of cursors in the space that is shared; a row's key is the peer's identifier.
pub const CURSORS: &str = "sync/cursors";

/// What a node says of its log, signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The log and the space.
    pub origin: Origin,
    /// Number of events.
    pub size: u64,
    /// Merkle root over the event ids.
    pub root: Hash,
    /// When it was said, by the clock of whoever said it.
    pub at_ms: u64,
    /// Who said it.
    pub author: Did,
    /// Ed25519 over all of the above.
    pub signature: Vec<u8>,
}

impl Head {
    /// Signs what a log is now.
    pub fn sign(origin: Origin, size: u64, root: Hash, at_ms: u64, signer: &Signer) -> Self {
        let mut head = Self {
            origin,
            size,
            root,
            at_ms,
            author: signer.did().clone(),
            signature: Vec::new(),
        };
        head.signature = signer.sign(&head.hash());
        head
    }

    fn hash(&self) -> Hash {
        let origin = self.origin.to_bytes();
        Hash::of_parts([
            b"kenning sync head\0".as_slice(),
            &(origin.len() as u64).to_be_bytes(),
            &origin,
            &self.size.to_be_bytes(),
            &self.root.0,
            &self.at_ms.to_be_bytes(),
            self.author.as_str().as_bytes(),
        ])
    }

    /// Whether its author signed it.
    pub fn is_signed(&self) -> bool {
        is_signed_by(&self.author, &self.hash(), &self.signature)
    }

    /// As JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "origin": self.origin.to_json(), "size": self.size, "root": self.root.to_string(),
            "at": self.at_ms, "author": self.author.as_str(),
            "signature": hex::encode(&self.signature),
        })
    }

    /// Reads what [`Head::to_json`] gave.
    pub fn from_json(value: &Value) -> Option<Self> {
        Some(Self {
            origin: Origin::from_json(value.get("origin")?)?,
            size: value.get("size")?.as_u64()?,
            root: Hash::from_hex(value.get("root")?.as_str()?)?,
            at_ms: value.get("at")?.as_u64()?,
            author: value.get("author")?.as_str()?.parse().ok()?,
            signature: hex::decode(value.get("signature")?.as_str()?)?,
        })
    }
}

/// How far we have read another node's log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Which log, once something was read.
    pub log: Option<LogId>,
    /// Entries read, and the tree over them.
    pub frontier: Frontier,
    /// The last signed head that the tree was found to have.
    pub head: Option<Head>,
    /// The tree when that head was checked.
    pub checked: Frontier,
    /// The height of the last of its checkpoints that the tree was found to have.
    pub checkpoint: Option<u64>,
    /// For each log, the last of our events that this node was seen to have.
    pub seen: BTreeMap<String, u64>,
}

impl Cursor {
    /// As it is kept.
    pub fn to_bytes(&self) -> Vec<u8> {
        let value = json!({
            "log": self.log.map(|it| it.to_string()), "tree": tree(&self.frontier),
            "checked": tree(&self.checked), "head": self.head.as_ref().map(Head::to_json),
            "checkpoint": self.checkpoint, "seen": self.seen,
        });
        canonical_json(&value).into_bytes()
    }

    /// Reads what [`Cursor::to_bytes`] gave.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let seen = value.get("seen")?.as_object()?;
        Some(Self {
            log: match value.get("log")? {
                Value::Null => None,
                it => Some(parse_log(it.as_str()?)?),
            },
            frontier: read_tree(value.get("tree")?)?,
            checked: read_tree(value.get("checked")?)?,
            head: match value.get("head")? {
                Value::Null => None,
                it => Some(Head::from_json(it)?),
            },
            checkpoint: value.get("checkpoint").and_then(Value::as_u64),
            seen: seen
                .iter()
                .map(|(log, seq)| Some((log.clone(), seq.as_u64()?)))
                .collect::<Option<_>>()?,
        })
    }
}

fn tree(frontier: &Frontier) -> Value {
    let roots: Vec<String> = frontier.roots.iter().map(ToString::to_string).collect();
    json!({ "size": frontier.size, "roots": roots })
}

fn read_tree(value: &Value) -> Option<Frontier> {
    let roots = value.get("roots")?.as_array()?.iter();
    Some(Frontier {
        size: value.get("size")?.as_u64()?,
        roots: roots
            .map(|it| Hash::from_hex(it.as_str()?))
            .collect::<Option<_>>()?,
    })
}

/// The id of a log from its 32 hexadecimal digits.
pub(crate) fn parse_log(text: &str) -> Option<LogId> {
    hex::decode_array(text).map(LogId)
}

/// The origin of a log's events in a space.
pub(crate) fn origin(log: LogId, space: &Space) -> Origin {
    let space = space.as_str().to_owned();
    Origin { log, space }
}
