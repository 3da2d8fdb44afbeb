//! The original's line, `kiwi-mcp:validated:<time>:<sha256>`.
//!
//! It is a hash that anybody can compute, and it covers less than the whole file; so it shows that
//! somebody validated the item, but not who. It is read and compared, never written.

use super::is_time;
use crate::mark::FileHash;
use kenning_text::hex;
use kenning_text::json::{Spelling, canonical};
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

/// The original's hash, compared with that of the item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The hash in the item.
    pub stored: String,
    /// The hash of the item as it is now.
    pub computed: String,
}

impl Compared {
    /// Whether the hashes are equal.
    pub fn holds(&self) -> bool {
        self.stored == self.computed
    }
}

impl Validated {
    /// Compares with the hashes that the original may have computed for an item, the likeliest first:
    /// its versions cover different parts.
    pub fn compare(&self, candidates: &[String]) -> Compared {
        let found = candidates.iter().find(|it| **it == self.sha256);
        Compared {
            stored: self.sha256.clone(),
            computed: found.or(candidates.first()).cloned().unwrap_or_default(),
        }
    }

    /// From the frontmatter keys that early knowledge entries carry.
    pub fn of_frontmatter(fields: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| fields.get(name)?.as_str().map(str::to_owned);
        let (at, sha256) = (text("validated_at")?, text("content_hash")?);
        (is_time(&at) && hex::is_sha256(&sha256)).then_some(Self { at, sha256 })
    }
}

/// `None` if the comment is not the original's, `Some(None)` if it is but malformed.
pub(super) fn read(content: &str) -> Option<Option<Validated>> {
    let rest = content.strip_prefix(WORD)?;
    let read = || {
        let (at, sha256) = rest.rsplit_once(':')?;
        (is_time(at) && hex::is_sha256(sha256)).then(|| Validated {
            at: at.to_owned(),
            sha256: sha256.to_owned(),
        })
    };
    Some(read())
}

fn hash(form: &Value) -> String {
    hex::sha256(canonical(form, Spelling::Ascii).as_bytes())
}

/// Of a directive: only its XML.
pub fn directive_sha256(name: &str, version: &str, xml: &str) -> String {
    hash(&json!({
        "directive_name": name,
        "version": version,
        "xml_hash": hex::sha256(xml.as_bytes()),
        "metadata": {},
    }))
}

/// Of a tool: the extracted fields, and its files without the line.
pub fn tool_sha256(tool_id: &str, version: &str, manifest: &Value, files: &[FileHash]) -> String {
    let mut files = files.to_vec();
    files.sort_unstable();
    let files: Vec<_> = files
        .iter()
        .map(|file| json!({"path": file.path, "sha256": file.sha256}))
        .collect();
    hash(&json!({
        "tool_id": tool_id,
        "version": version,
        "manifest": manifest,
        "files": files,
    }))
}

/// Fields that the original extracted from a tool, with null for those that it did not find.
const EXTRACTED: [&str; 9] = [
    "version",
    "tool_type",
    "executor_id",
    "category",
    "description",
    "config_schema",
    "config",
    "env_config",
    "mutates_state",
];

/// What the original may have extracted from a tool with these fields. Its rules were files of each
/// project, so there are several possibilities.
pub fn tool_manifests(tool_id: &str, fields: &Map<String, Value>) -> Vec<Value> {
    let named = |mut manifest: Map<String, Value>| {
        manifest.insert("name".to_owned(), tool_id.into());
        Value::Object(manifest)
    };
    let mut all = vec![Value::Object(fields.clone()), named(fields.clone())];
    for n_fields in [EXTRACTED.len(), EXTRACTED.len() - 1, EXTRACTED.len() - 2] {
        let rules = EXTRACTED.iter().take(n_fields);
        let extracted = rules.map(|rule| {
            let value = fields.get(*rule).cloned().unwrap_or_default();
            ((*rule).to_owned(), value)
        });
        all.push(named(extracted.collect()));
    }
    all.push(json!({}));
    all
}

/// Of a knowledge entry, as entries with frontmatter keys were hashed: its body alone.
pub fn knowledge_sha256_of_body(zettel_id: &str, version: &str, body: &str) -> String {
    hash(&json!({
        "zettel_id": zettel_id,
        "version": version,
        "content_hash": hex::sha256(body.trim().as_bytes()),
        "frontmatter": {},
    }))
}

/// Of a knowledge entry, as entries with the comment were hashed: with category, type and tags.
pub fn knowledge_sha256(
    zettel_id: &str,
    version: &str,
    body: &str,
    category: Option<&str>,
    entry_type: &str,
    tags: &[String],
) -> String {
    hash(&json!({
        "id": zettel_id,
        "version": version,
        "content_hash": hex::sha256(body.trim().as_bytes()),
        "metadata": {"category": category, "entry_type": entry_type, "tags": tags},
    }))
}
