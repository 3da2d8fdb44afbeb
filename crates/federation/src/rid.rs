//! Names of things. `orn:namespace:reference` (and `urn:`), otherwise `scheme:reference`.

use crate::json::shown;
use crate::key::PublicKey;
use kenning_core::{Error, Result};
use kenning_text::hex::sha256;
use std::fmt;

/// A longer name is refused.
pub const RID_BYTES_MAX: usize = 1_000;

/// The type of nodes.
pub const NODE_TYPE: &str = "orn:koi-net.node";

/// The type of edges.
pub const EDGE_TYPE: &str = "orn:koi-net.edge";

/// A name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rid(String);

impl Rid {
    /// Reads a name.
    ///
    /// # Errors
    /// Invalid if a part is missing, or if it has control characters.
    pub fn parse(text: &str) -> Result<Self> {
        let bad = |why: &str| {
            Error::invalid(format!("`{}` is not a RID: {why}", shown(text))).hint(
                "a RID is `orn:namespace:reference`, for example `orn:koi-net.practice:herring`",
            )
        };
        if text.len() > RID_BYTES_MAX || text.chars().any(char::is_control) {
            return Err(bad("it is too long or has control characters"));
        }
        let (context, reference) = split(text).ok_or_else(|| bad("a part is missing"))?;
        if context.is_empty() || reference.is_empty() {
            return Err(bad("a part is empty"));
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The type: everything before the reference.
    pub fn rid_type(&self) -> &str {
        split(&self.0).map_or("", |it| it.0)
    }

    /// What is after the type.
    pub fn reference(&self) -> &str {
        split(&self.0).map_or("", |it| it.1)
    }
}

impl fmt::Display for Rid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The type and the reference.
fn split(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    if scheme.is_empty() {
        return None;
    }
    if !matches!(scheme, "orn" | "urn") {
        return Some((scheme, rest));
    }
    let (namespace, reference) = rest.split_once(':')?;
    if namespace.is_empty() {
        return None;
    }
    let at = scheme.len() + 1 + namespace.len();
    Some((text.get(..at)?, reference))
}

/// A name for a type that `types` may have: the whole type, or its bare name as Octo nodes give it.
pub fn is_type_named(rid_type: &str, name: &str) -> bool {
    if rid_type == name {
        return true;
    }
    let bare = rid_type.rsplit(['.', ':']).next().unwrap_or(rid_type);
    let plain = |text: &str| text.replace(['-', '_'], "").to_ascii_lowercase();
    !name.contains(':') && plain(bare) == plain(name)
}

/// The name of a node, which its key determines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeRid(Rid);

/// So many digits of the hash old nodes have in their names.
const SHORT_HASH: usize = 16;

impl NodeRid {
    /// The name of a node with this key.
    ///
    /// # Errors
    /// Invalid if `name` cannot be part of one.
    pub fn of(name: &str, key: &PublicKey) -> Result<Self> {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
        if name.is_empty() || name.len() > 100 || !name.chars().all(is_plain) {
            return Err(
                Error::invalid(format!("`{}` is not a name of a node", shown(name)))
                    .hint("use up to 100 letters, digits, `-`, `_` and `.`"),
            );
        }
        Self::parse(&format!("{NODE_TYPE}:{name}+{}", key.hash()))
    }

    /// Reads the name of a node.
    ///
    /// # Errors
    /// Invalid if it is not one.
    pub fn parse(text: &str) -> Result<Self> {
        let rid = Rid::parse(text)?;
        let is_node = rid.rid_type() == NODE_TYPE;
        let parts: Vec<&str> = rid.reference().split('+').collect();
        let is_hex = |it: &str| it.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
        match parts[..] {
            [name, hash]
                if is_node
                    && !name.is_empty()
                    && matches!(hash.len(), SHORT_HASH | 64)
                    && is_hex(hash) =>
            {
                Ok(Self(rid))
            }
            _ => Err(
                Error::invalid(format!("`{}` is not the RID of a node", shown(text))).hint(
                    format!("it is `{NODE_TYPE}:NAME+HASH`, with the SHA-256 of the node's key"),
                ),
            ),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The part that people read.
    pub fn name(&self) -> &str {
        self.0.reference().split('+').next().unwrap_or_default()
    }

    /// Whether this is the name of whoever has the key. Octo nodes have only a part of the hash in theirs, or the
    /// hash of the key itself and not of its base64.
    pub fn is_of(&self, key: &PublicKey) -> bool {
        let hash = self.hash();
        key.hash() == hash
            || key.hash_of_der() == hash
            || (self.has_short_hash() && key.hash().starts_with(hash))
    }

    /// Whether it has only a part of the hash, as Octo's first nodes have: 64 bits bind a name to a key less well
    /// than 256 do, so new nodes of this kind are taken in Octo's handshake only.
    pub fn has_short_hash(&self) -> bool {
        self.hash().len() == SHORT_HASH
    }

    fn hash(&self) -> &str {
        self.0.reference().rsplit('+').next().unwrap_or_default()
    }
}

impl fmt::Display for NodeRid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of the edge from a provider to a subscriber.
pub fn edge_rid(source: &str, target: &str) -> String {
    format!(
        "{EDGE_TYPE}:{}",
        sha256(format!("{source}{target}").as_bytes())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_a_name_is_what_stands_before_the_reference() {
        for (text, rid_type, reference) in [
            ("orn:bkc.practice:x:y", "orn:bkc.practice", "x:y"),
            ("urn:isbn:1", "urn:isbn", "1"),
            ("https://example.org/a", "https", "//example.org/a"),
        ] {
            let rid = Rid::parse(text).unwrap();
            assert_eq!((rid.rid_type(), rid.reference()), (rid_type, reference));
        }
        for bad in [
            "",
            "orn",
            "orn:",
            "orn:a",
            "orn:a:",
            "orn::b",
            ":a",
            "https:",
            "orn:a:b\n",
        ] {
            assert!(Rid::parse(bad).is_err(), "{bad}");
        }
        assert!(is_type_named("orn:koi-net.case_study", "CaseStudy"));
        assert!(is_type_named(
            "orn:koi-net.practice",
            "orn:koi-net.practice"
        ));
        assert!(!is_type_named("orn:koi-net.practice", "orn:bkc.practice"));
        for bad in [
            "orn:koi-net.node:a",
            "orn:koi-net.node:a+b+c",
            "orn:koi-net.node:a+XYZ",
            "orn:koi-net.edge:a+0123456789abcdef",
        ] {
            assert!(NodeRid::parse(bad).is_err(), "{bad}");
        }
        assert!(NodeRid::parse("orn:koi-net.node:a+0123456789abcdef").is_ok());
    }
}
