//! A node that we know, and what it may do.

use crate::Head;
use kenning_core::{Did, Hash, Kind, Space};
use serde_json::{Value, json};

/// What a peer may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The spaces that are shared with it.
    pub spaces: Vec<Space>,
    /// The kinds of nodes that are shared; empty for all.
    pub kinds: Vec<Kind>,
    /// Whether it may have our events.
    pub may_read: bool,
    /// Whether its events are applied here.
    pub may_write: bool,
    /// Whether events of authors that are not known here are taken if this peer passes them on.
    pub relays: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            spaces: vec![Space::default()],
            kinds: Vec::new(),
            may_read: true,
            may_write: true,
            relays: false,
        }
    }
}

/// Two signed statements of one peer that cannot both be true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// What it said first, which was checked.
    pub known: Head,
    /// What it said later.
    pub shown: Head,
    /// What is wrong with them.
    pub what: String,
}

impl Evidence {
    /// As it is kept.
    pub fn to_json(&self) -> Value {
        json!({ "known": self.known.to_json(), "shown": self.shown.to_json(), "what": self.what })
    }

    /// Reads what [`Evidence::to_json`] gave.
    pub fn from_json(value: &Value) -> Option<Self> {
        Some(Self {
            known: Head::from_json(value.get("known")?)?,
            shown: Head::from_json(value.get("shown")?)?,
            what: value.get("what")?.as_str()?.to_owned(),
        })
    }
}

/// A node that we know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// What it is called here.
    pub id: String,
    /// Its key.
    pub did: Did,
    /// Where it is reached; nothing for a node that only calls us.
    pub endpoint: String,
    /// What it may do.
    pub policy: Policy,
    /// When it was added, in milliseconds since 1970.
    pub added_ms: u64,
    /// Why nothing is exchanged with it any more.
    pub cut_off: Option<Evidence>,
}

impl Peer {
    /// Whether a space is shared with it.
    pub fn has_space(&self, space: &Space) -> bool {
        self.policy.spaces.contains(space)
    }

    /// Whether nodes of a kind are shared with it. Installed tools belong to one machine.
    pub fn shares(&self, kind: Kind) -> bool {
        let kinds = &self.policy.kinds;
        kind != Kind::Tool && (kinds.is_empty() || kinds.contains(&kind))
    }

    /// As it is kept.
    pub fn to_json(&self) -> Value {
        let policy = &self.policy;
        let spaces: Vec<&str> = policy.spaces.iter().map(Space::as_str).collect();
        let kinds: Vec<&str> = policy.kinds.iter().map(|it| it.as_str()).collect();
        json!({
            "id": self.id, "did": self.did.as_str(), "endpoint": self.endpoint,
            "spaces": spaces, "kinds": kinds, "read": policy.may_read, "write": policy.may_write,
            "relay": policy.relays, "added": self.added_ms,
            "cutOff": self.cut_off.as_ref().map(Evidence::to_json),
        })
    }

    /// Reads what [`Peer::to_json`] gave.
    pub fn from_json(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name)?.as_str();
        let list = |name: &str| value.get(name)?.as_array();
        let policy = Policy {
            spaces: list("spaces")?
                .iter()
                .map(|it| it.as_str()?.parse().ok())
                .collect::<Option<_>>()?,
            kinds: list("kinds")?
                .iter()
                .map(|it| it.as_str()?.parse().ok())
                .collect::<Option<_>>()?,
            may_read: value.get("read")?.as_bool()?,
            may_write: value.get("write")?.as_bool()?,
            relays: value.get("relay")?.as_bool()?,
        };
        Some(Self {
            id: text("id")?.to_owned(),
            did: text("did")?.parse().ok()?,
            endpoint: text("endpoint")?.to_owned(),
            policy,
            added_ms: value.get("added")?.as_u64()?,
            cut_off: match value.get("cutOff") {
                None | Some(Value::Null) => None,
                Some(it) => Some(Evidence::from_json(it)?),
            },
        })
    }
}

/// `peer-` and a hash of where it is reached, or of its key: the same on every run.
pub fn peer_id(endpoint: &str, did: &Did) -> String {
    let named = if endpoint.is_empty() {
        did.as_str()
    } else {
        endpoint
    };
    let hash = Hash::of(named.as_bytes());
    let mut number = hash
        .0
        .iter()
        .take(8)
        .fold(0_u64, |n, byte| (n << 8) | u64::from(*byte));
    let mut digits = Vec::new();
    while number > 0 {
        let digit = u32::try_from(number % 36).unwrap_or(0);
        digits.extend(char::from_digit(digit, 36));
        number /= 36;
    }
    let digits: String = digits.into_iter().rev().collect();
    format!("peer-{digits}")
}
