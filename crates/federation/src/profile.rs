//! Who a node is, and who subscribes to what.

use crate::json::Json;
use crate::rid::{EDGE_TYPE, NODE_TYPE, NodeRid, is_type_named};
use kenning_core::{Error, Result};

const NODE_CONTEXT: &str = "orn:koi-net.context:koi-net.node";
const EDGE_CONTEXT: &str = "orn:koi-net.context:koi-net.edge";

/// The most types that a profile may name.
const TYPES_MAX: usize = 200;

/// Whether a node can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeType {
    /// It serves.
    Full,
    /// It only calls others.
    Partial,
}

impl NodeType {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Partial => "PARTIAL",
        }
    }
}

/// Who a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeProfile {
    /// Where it is called.
    pub base_url: Option<String>,
    /// Whether it can be.
    pub node_type: NodeType,
    /// Types whose events it sends to subscribers.
    pub provides_event: Vec<String>,
    /// Types that can be fetched from it.
    pub provides_state: Vec<String>,
    /// Its key.
    pub public_key: String,
    /// The key that signs its log and where it exchanges whole logs, if it is a node of Kenning.
    pub kenning_did: Option<String>,
    /// The name that it had before, with a signature of the old key: see [`crate::envelope::handover`].
    pub successor_of: Option<(String, String)>,
}

impl NodeProfile {
    /// Reads a profile, in either dialect.
    ///
    /// # Errors
    /// Invalid if a member is missing or malformed.
    pub fn from_json(value: &Json) -> Result<Self> {
        let text = |name: &str| value.get(name).and_then(Json::as_str);
        let bad = |name: &str| Error::invalid(format!("`profile.{name}` is missing or malformed"));
        let node_type = match text("node_type") {
            Some("FULL") => NodeType::Full,
            Some("PARTIAL") => NodeType::Partial,
            _ => return Err(bad("node_type")),
        };
        let provided = |name: &str| texts(value.get("provides").and_then(|it| it.get(name)));
        let base_url = text("base_url").filter(|it| !it.is_empty());
        if base_url.is_some_and(|it| it.len() > 500) {
            return Err(bad("base_url"));
        }
        let kenning = value.get("kenning");
        let of_kenning = |name: &str| kenning?.get(name)?.as_str().map(ToOwned::to_owned);
        let handover = value.get("successor_of");
        let of_handover = |name: &str| handover?.get(name)?.as_str().map(ToOwned::to_owned);
        Ok(Self {
            base_url: base_url.map(ToOwned::to_owned),
            node_type,
            provides_event: provided("event").ok_or_else(|| bad("provides.event"))?,
            provides_state: provided("state").ok_or_else(|| bad("provides.state"))?,
            public_key: text("public_key").unwrap_or_default().to_owned(),
            kenning_did: of_kenning("did"),
            successor_of: of_handover("node").zip(of_handover("signature")),
        })
    }

    /// As the contents of a bundle.
    pub fn to_json(&self) -> Json {
        let mut members = vec![("@context".to_owned(), Json::text(NODE_CONTEXT))];
        let mut put = |name: &str, value: Json| members.push((name.to_owned(), value));
        if let Some(url) = &self.base_url {
            put("base_url", Json::text(url));
        }
        put("node_type", Json::text(self.node_type.as_str()));
        put(
            "provides",
            Json::object([
                ("event", Json::texts(&self.provides_event)),
                ("state", Json::texts(&self.provides_state)),
            ]),
        );
        put("public_key", Json::text(&self.public_key));
        if let Some(did) = &self.kenning_did {
            let offers = [("did", Json::text(did)), ("sync", Json::text("/sync"))];
            put("kenning", Json::object(offers));
        }
        if let Some((node, signature)) = &self.successor_of {
            let members = [
                ("node", Json::text(node)),
                ("signature", Json::text(signature)),
            ];
            put("successor_of", Json::object(members));
        }
        Json::Object(members)
    }
}

fn texts(list: Option<&Json>) -> Option<Vec<String>> {
    let Some(list) = list else {
        return Some(Vec::new());
    };
    let items = list.items().filter(|it| it.len() <= TYPES_MAX)?;
    let texts = items.iter().map(|it| it.as_str().map(ToOwned::to_owned));
    texts.collect()
}

/// How events reach a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeType {
    /// The provider calls.
    Webhook,
    /// The subscriber asks.
    Poll,
}

impl EdgeType {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "WEBHOOK",
            Self::Poll => "POLL",
        }
    }
}

/// Whether the provider agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeStatus {
    /// Not yet.
    Proposed,
    /// It did.
    Approved,
}

impl EdgeStatus {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Proposed => "PROPOSED",
            Self::Approved => "APPROVED",
        }
    }
}

/// A subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeProfile {
    /// The provider.
    pub source: NodeRid,
    /// The subscriber.
    pub target: NodeRid,
    /// How events reach it.
    pub edge_type: EdgeType,
    /// Whether the provider agreed.
    pub status: EdgeStatus,
    /// To what.
    pub rid_types: Vec<String>,
}

impl EdgeProfile {
    /// Reads an edge.
    ///
    /// # Errors
    /// Invalid if a member is missing or malformed.
    pub fn from_json(value: &Json) -> Result<Self> {
        let text = |name: &str| value.get(name).and_then(Json::as_str);
        let bad = |name: &str| Error::invalid(format!("`edge.{name}` is missing or malformed"));
        Ok(Self {
            source: NodeRid::parse(text("source").ok_or_else(|| bad("source"))?)?,
            target: NodeRid::parse(text("target").ok_or_else(|| bad("target"))?)?,
            edge_type: match text("edge_type") {
                Some("WEBHOOK") => EdgeType::Webhook,
                Some("POLL") => EdgeType::Poll,
                _ => return Err(bad("edge_type")),
            },
            status: match text("status") {
                Some("PROPOSED") => EdgeStatus::Proposed,
                Some("APPROVED") => EdgeStatus::Approved,
                _ => return Err(bad("status")),
            },
            rid_types: texts(value.get("rid_types")).ok_or_else(|| bad("rid_types"))?,
        })
    }

    /// As the contents of a bundle.
    pub fn to_json(&self) -> Json {
        Json::object([
            ("@context", Json::text(EDGE_CONTEXT)),
            ("source", Json::text(self.source.as_str())),
            ("target", Json::text(self.target.as_str())),
            ("edge_type", Json::text(self.edge_type.as_str())),
            ("status", Json::text(self.status.as_str())),
            ("rid_types", Json::texts(&self.rid_types)),
        ])
    }

    /// Its name.
    pub fn rid(&self) -> String {
        crate::rid::edge_rid(self.source.as_str(), self.target.as_str())
    }

    /// Whether the subscriber gets events of this type.
    pub fn has_type(&self, rid_type: &str) -> bool {
        self.rid_types.iter().any(|it| is_type_named(rid_type, it))
    }
}

/// Whether a type is one of the network's own: every node provides those.
pub fn is_own_type(name: &str) -> bool {
    is_type_named(NODE_TYPE, name) || is_type_named(EDGE_TYPE, name)
}
