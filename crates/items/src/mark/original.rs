//! The original's line, `kiwi-mcp:validated:<time>:<sha256>`.
//!
//! It is a hash that anybody can compute, and it covers less than the whole file; so whoever finds one
//! knows that somebody validated the item, not who. It is read and compared, never written.

use super::is_time;
use crate::digest::{canonical_json, is_sha256_hex, sha256_hex};
use crate::mark::FileHash;
use serde_json::{Map, Value, json};

const WORD: &str = "kiwi-mcp:validated:";

/// The original's line, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validated {
    /// When: `2026-01-02T03:04:05Z`.
    pub at: String,
    /// The hash in the line.
    pub sha256: String,
}

impl Validated {
    /// Whether this is the hash in the line.
    pub fn holds_for(&self, sha256: &str) -> bool {
        self.sha256 == sha256
    }

    /// From the frontmatter keys that early knowledge entries carry.
    pub fn of_frontmatter(fields: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| fields.get(name)?.as_str().map(str::to_owned);
        let (at, sha256) = (text("validated_at")?, text("content_hash")?);
        (is_time(&at) && is_sha256_hex(&sha256)).then_some(Self { at, sha256 })
    }
}

/// `None` if the comment is not the original's, `Some(None)` if it is and is broken.
pub(super) fn read(content: &str) -> Option<Option<Validated>> {
    let rest = content.strip_prefix(WORD)?;
    let read = || {
        let (at, sha256) = rest.rsplit_once(':')?;
        (is_time(at) && is_sha256_hex(sha256)).then(|| Validated {
            at: at.to_owned(),
            sha256: sha256.to_owned(),
        })
    };
    Some(read())
}

fn hash(form: &Value) -> String {
    sha256_hex(canonical_json(form).as_bytes())
}

/// Of a directive: its XML and nothing around it.
pub fn directive_sha256(name: &str, version: &str, xml: &str) -> String {
    hash(&json!({
        "directive_name": name,
        "version": version,
        "xml_hash": sha256_hex(xml.as_bytes()),
        "metadata": {},
    }))
}

/// Of a tool: what was extracted from it, and its files without the line.
pub fn tool_sha256(tool_id: &str, version: &str, manifest: &Value, files: &[FileHash]) -> String {
    let mut files = files.to_vec();
    files.sort_unstable();
    let files: Vec<_> = files
        .iter()
        .map(|it| json!({"path": it.path, "sha256": it.sha256}))
        .collect();
    hash(&json!({
        "tool_id": tool_id,
        "version": version,
        "manifest": manifest,
        "files": files,
    }))
}

/// Of a knowledge entry, as entries with frontmatter keys were hashed: its body alone.
pub fn knowledge_sha256_of_body(zettel_id: &str, version: &str, body: &str) -> String {
    hash(&json!({
        "zettel_id": zettel_id,
        "version": version,
        "content_hash": sha256_hex(body.trim().as_bytes()),
        "frontmatter": {},
    }))
}

/// Of a knowledge entry, as entries with the comment were hashed: with category, type and tags.
pub fn knowledge_sha256(
    zettel_id: &str,
    version: &str,
    body: &str,
    category: &str,
    entry_type: &str,
    tags: &[String],
) -> String {
    hash(&json!({
        "id": zettel_id,
        "version": version,
        "content_hash": sha256_hex(body.trim().as_bytes()),
        "metadata": {"category": category, "entry_type": entry_type, "tags": tags},
    }))
}
