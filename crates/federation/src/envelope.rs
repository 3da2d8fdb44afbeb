//! Signed messages.
//!
//! What is signed is the compact JSON of `payload`, `source_node` and `target_node` in the order in which
//! the sender wrote everything inside. So an envelope is verified over what was received, written again
//! without white space and without its signature.

use crate::json::{Json, Limits};
use crate::key::{PublicKey, SecretKey, nonce_of};
use crate::rid::NodeRid;
use kenning_core::{Error, Result};
use kenning_text::hex::sha256;

/// Why an envelope is refused, by the names of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The sender is not known.
    UnknownNode,
    /// The sender's key is not the one in its name.
    InvalidKey,
    /// The signature does not match.
    InvalidSignature,
    /// It is for another node.
    InvalidTarget,
}

impl Refused {
    /// The name of the network.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownNode => "unknown_node",
            Self::InvalidKey => "invalid_key",
            Self::InvalidSignature => "invalid_signature",
            Self::InvalidTarget => "invalid_target",
        }
    }

    /// Reads the name of the network.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [
            Self::UnknownNode,
            Self::InvalidKey,
            Self::InvalidSignature,
            Self::InvalidTarget,
        ];
        all.into_iter().find(|it| it.as_str() == text)
    }

    /// What a node is answered that sent such an envelope.
    pub fn to_json(self) -> Json {
        Json::object([
            ("type", Json::text("error_response")),
            ("error", Json::text(self.as_str())),
        ])
    }

    /// The same for an Octo node, which reads a code and a text: without the words `No public key for` it does not
    /// introduce itself to whoever does not know it.
    pub fn to_octo_json(self, source: &str) -> Json {
        let (code, message) = match self {
            Self::UnknownNode => ("UNKNOWN_SOURCE_NODE", format!("No public key for {source}")),
            Self::InvalidKey => (
                "SOURCE_NODE_KEY_BINDING_FAILED",
                format!("Source node RID does not match stored public key: {source}"),
            ),
            Self::InvalidSignature => {
                ("INVALID_SIGNATURE", "Invalid envelope signature".to_owned())
            }
            Self::InvalidTarget => (
                "TARGET_NODE_MISMATCH",
                "Envelope target_node mismatch".to_owned(),
            ),
        };
        Json::object([
            ("type", Json::text("error_response")),
            ("error", Json::text(self.as_str())),
            ("error_code", Json::text(code)),
            ("message", Json::Text(message)),
        ])
    }
}

/// A message that says from whom it is and for whom. Whether that is true, [`Envelope::check`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// What it carries, as it was received.
    pub payload: Json,
    /// Who signed it.
    pub source: NodeRid,
    /// For whom it is.
    pub target: String,
    /// The signature.
    pub signature: String,
    /// What was signed.
    signed: String,
}

impl Envelope {
    /// Reads an envelope without believing it.
    ///
    /// # Errors
    /// Too large; invalid for what is not JSON or no envelope.
    pub fn read(bytes: &[u8], limits: Limits) -> Result<Self> {
        Self::from_json(&Json::parse(bytes, limits)?)
    }

    /// The same of JSON that was read.
    ///
    /// # Errors
    /// Invalid if a member is missing or malformed.
    pub fn from_json(value: &Json) -> Result<Self> {
        let text = |name: &str| {
            let found = value.get(name).and_then(Json::as_str);
            found.ok_or_else(|| Error::invalid(format!("`{name}` is missing or not a text")))
        };
        let payload = value.get("payload").filter(|it| it.members().is_some());
        let payload =
            payload.ok_or_else(|| Error::invalid("`payload` is missing or not an object"))?;
        let signature = text("signature")?.to_owned();
        let members = value.members().unwrap_or_default().iter();
        let unsigned = members.filter(|it| it.0 != "signature").cloned();
        Ok(Self {
            payload: payload.clone(),
            source: NodeRid::parse(text("source_node")?)?,
            target: text("target_node")?.to_owned(),
            signature,
            signed: Json::Object(unsigned.collect()).to_text(),
        })
    }

    /// Whether this key signed it, and whether it is for `me`, in the order of the reference.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, key: &PublicKey, me: &NodeRid) -> std::result::Result<(), Refused> {
        if !self.source.is_of(key) {
            return Err(Refused::InvalidKey);
        }
        if !key.is_signed(self.signed.as_bytes(), &self.signature) {
            return Err(Refused::InvalidSignature);
        }
        if self.target != me.as_str() {
            return Err(Refused::InvalidTarget);
        }
        Ok(())
    }

    /// The same for every copy of this envelope, whatever somebody who has no key changes in it.
    pub fn fingerprint(&self) -> String {
        let nonce = nonce_of(&self.signature).unwrap_or_default();
        sha256(format!("{nonce}{}", self.signed).as_bytes())
    }
}

/// What is signed of a message.
fn unsigned(payload: &Json, source: &NodeRid, target: &str) -> Vec<(String, Json)> {
    let text = |it: &str| Json::text(it);
    vec![
        ("payload".to_owned(), payload.clone()),
        ("source_node".to_owned(), text(source.as_str())),
        ("target_node".to_owned(), text(target)),
    ]
}

/// Signs a message; gives it as it is sent.
pub fn seal(
    payload: &Json,
    source: &NodeRid,
    target: &str,
    key: &SecretKey,
    salt: &[u8; 32],
) -> String {
    let members = unsigned(payload, source, target);
    let mut value = Json::Object(members);
    let signature = key.sign(value.to_text().as_bytes(), salt);
    if let Json::Object(members) = &mut value {
        members.push(("signature".to_owned(), Json::Text(signature)));
    }
    value.to_text()
}

/// What the old key of a node signs when a new one takes its place.
pub fn handover(old: &NodeRid, new: &NodeRid) -> String {
    format!("koi-net key hand-over\nfrom {old}\nto {new}\n")
}
