//! The identity of a log, and the keys that may sign in it.
//!
//! The first event of version 2 fixes the log's id and its first author. Authors may add and
//! revoke others; these are changes in events like any other, so they are signed and ordered. A node
//! whose key is not in the list adds itself with an event ([`Tx::begin`](crate::Tx)): it can go on writing,
//! and [`crate::verify`] reports whether a trusted author has confirmed it.

use kenning_core::{Did, Error, Random, Result, Space};
use kenning_store::canonical_json;
use kenning_text::hex::{self, Hex};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt;

/// The permanent id of a log: random, fixed by its first event of version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogId(pub [u8; 16]);

impl LogId {
    pub(crate) fn new(random: &dyn Random) -> Self {
        let mut bytes = [0; 16];
        random.fill(&mut bytes);
        Self(bytes)
    }

    fn from_hex(text: &str) -> Option<Self> {
        hex::decode_array(text).map(Self)
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

/// The log and the space of an event or a checkpoint. It is signed, so nothing can be moved to another
/// log or space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Which log.
    pub log: LogId,
    /// Which space.
    pub space: String,
}

impl Origin {
    pub(crate) fn new(log: LogId, space: &Space) -> Self {
        let space = space.as_str().to_owned();
        Self { log, space }
    }

    /// As it is stored and signed: the id's 16 bytes, then the name.
    pub fn to_bytes(&self) -> Vec<u8> {
        [&self.log.0, self.space.as_bytes()].concat()
    }

    /// Reads what [`Origin::to_bytes`] gave.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (log, space) = bytes.split_at_checked(16)?;
        Some(Self {
            log: LogId(log.try_into().ok()?),
            space: std::str::from_utf8(space).ok()?.to_owned(),
        })
    }

    /// As JSON, for people and other programs.
    pub fn to_json(&self) -> Value {
        json!({ "log": self.log.to_string(), "space": self.space })
    }

    /// Reads what [`Origin::to_json`] gave.
    pub fn from_json(value: &Value) -> Option<Self> {
        Some(Self {
            log: LogId::from_hex(value.get("log")?.as_str()?)?,
            space: value.get("space")?.as_str()?.to_owned(),
        })
    }
}

/// What the head keeps of a log's identity, so that a writer need not read the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) id: LogId,
    pub(crate) authors: BTreeSet<String>,
    pub(crate) revoked: BTreeSet<String>,
}

impl Identity {
    /// The identity of a log that begins with an event of this author.
    pub(crate) fn new(id: LogId, first: &Did) -> Self {
        Self {
            id,
            authors: BTreeSet::from([first.to_string()]),
            revoked: BTreeSet::new(),
        }
    }

    pub(crate) fn add(&mut self, author: &Did) {
        self.authors.insert(author.to_string());
    }

    pub(crate) fn revoke(&mut self, author: &Did) {
        self.authors.remove(author.as_str());
        self.revoked.insert(author.to_string());
    }

    /// As the head keeps it.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let value = json!({
            "authors": self.authors, "id": self.id.to_string(), "revoked": self.revoked,
        });
        canonical_json(&value).into_bytes()
    }

    /// What the head keeps; nothing while all events are of version 1.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Option<Self>> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let read = || {
            let value: Value = serde_json::from_slice(bytes).ok()?;
            let dids = |name: &str| -> Option<BTreeSet<String>> {
                let list = value.get(name)?.as_array()?.iter();
                list.map(|it| Some(it.as_str()?.to_owned())).collect()
            };
            Some(Self {
                id: LogId::from_hex(value.get("id")?.as_str()?)?,
                authors: dids("authors")?,
                revoked: dids("revoked")?,
            })
        };
        let identity =
            read().ok_or_else(|| Error::corrupt("the head's list of authors is malformed"))?;
        Ok(Some(identity))
    }
}

/// Whether the rows of a bucket decide about permissions, or about what may not come back. The hash of each change is in an event, so
/// that [`crate::verify`] notices when such a row was changed, added or removed by other means.
/// Everything else in that table is a cursor, a cache or a counter.
pub fn is_signed_bucket(bucket: &str) -> bool {
    const SIGNED: &[&str] = &[
        "agents",
        "erased/events",
        "erased/keys",
        "erased/nodes",
        "erased/revisions",
        "federation/edges",
        "federation/node",
        "federation/peers",
        "items/grants",
        "log/cosignatures",
        "omi/held",
        "omi/pending",
        "peers",
        "runs/callers",
        "tokens",
        "tools/compiled",
        "tools/retired-names",
        "tools/trusted",
    ];
    SIGNED.contains(&bucket) || bucket.starts_with("registry/")
}

/// Whether the rows of a bucket are what somebody said, and so go to peers: the hash of each change
/// is in an event, and the latest write holds. What is derived, or of one machine, is not shared.
pub fn is_shared_bucket(bucket: &str) -> bool {
    const SHARED: &[&str] = &[
        "entities/merged",
        "entities/said",
        "entities/vetoes",
        "omi/pending",
        "web/pages",
        "web/texts",
    ];
    SHARED.contains(&bucket) || bucket.starts_with("registry/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_core::SeededRandom;

    #[test]
    fn an_origin_reads_back_from_bytes_and_from_json() {
        let log = LogId::new(&SeededRandom::new(1));
        let origin = Origin::new(log, &Space::default());
        assert_eq!(Origin::from_bytes(&origin.to_bytes()), Some(origin.clone()));
        assert_eq!(Origin::from_json(&origin.to_json()), Some(origin));
        assert_eq!(Origin::from_bytes(b"short"), None);
    }

    #[test]
    fn a_head_without_an_identity_is_not_one_with_a_broken_one() {
        assert_eq!(Identity::from_bytes(b"").unwrap(), None);
        assert!(Identity::from_bytes(b"{}").is_err());
    }
}
