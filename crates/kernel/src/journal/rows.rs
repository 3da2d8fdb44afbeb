//! How an intent is kept: JSON, and the two forms that older versions wrote.

use super::{FileChange, Intent};
use crate::bucket::RowCodec;
use kenning_core::{Error, Hash, Result};
use kenning_text::json_bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Serialize, Deserialize)]
struct Row {
    id: String,
    dir: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    lock: String,
    bytes_max: u64,
    files: Vec<FileRow>,
}

#[derive(Serialize, Deserialize)]
struct FileRow {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    staged: Option<String>,
    /// Only in what was taken over from an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

impl FileRow {
    fn of(change: &FileChange) -> Self {
        let hex = |hash: Option<Hash>| hash.map(|it| it.to_string());
        Self {
            name: change.name.clone(),
            before: hex(change.before),
            after: hex(change.after),
            staged: change.staged.clone(),
            content: change.content.as_deref().map(json_bytes::to_text),
        }
    }

    fn into_change(self) -> Option<FileChange> {
        let hash = |text: Option<String>| match text {
            None => Some(None),
            Some(text) => Hash::from_hex(&text).map(Some),
        };
        let content = match self.content {
            None => None,
            Some(text) => Some(json_bytes::to_bytes(&text)?),
        };
        Some(FileChange {
            name: self.name,
            before: hash(self.before)?,
            after: hash(self.after)?,
            staged: self.staged,
            content,
        })
    }
}

impl RowCodec for Intent {
    fn to_bytes(&self) -> Result<Vec<u8>> {
        let row = Row {
            id: self.id.clone(),
            dir: self.dir.clone(),
            lock: self.lock.clone(),
            bytes_max: self.bytes_max,
            files: self.files.iter().map(FileRow::of).collect(),
        };
        serde_json::to_vec(&row)
            .map_err(|cause| Error::internal("an intent as JSON").because(cause))
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let Ok(row) = serde_json::from_slice::<Row>(bytes) else {
            return old_intent(bytes);
        };
        let files = row.files.into_iter().map(FileRow::into_change);
        Some(Self {
            id: row.id,
            dir: row.dir,
            lock: row.lock,
            bytes_max: row.bytes_max,
            files: files.collect::<Option<_>>()?,
        })
    }
}

/// The largest file of an item when intents had no limit of their own.
const OLD_ITEM_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// An intent as older versions wrote it, with the contents in it.
fn old_intent(bytes: &[u8]) -> Option<Intent> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let text = |name: &str| value.get(name)?.as_str().map(ToOwned::to_owned);
    let hash = |value: &Value| match value {
        Value::Null => Some(None),
        hash => Hash::from_hex(hash.as_str()?).map(Some),
    };
    let change = |name: String, before: Option<Hash>, content: Option<Vec<u8>>| FileChange {
        name,
        before,
        after: content.as_deref().map(Hash::of),
        staged: None,
        content,
    };
    let id = Hash::of(bytes).to_string();
    if let Some(dir) = text("root") {
        let content = text("content")?.into_bytes();
        return Some(Intent {
            id,
            dir,
            lock: String::new(),
            bytes_max: value.get("bytes_max")?.as_u64()?,
            files: vec![change(
                text("name")?,
                hash(value.get("before")?)?,
                Some(content),
            )],
        });
    }
    let rows = |name: &str, stays: bool| -> Option<Vec<FileChange>> {
        let row = |row: &Value| {
            let content = row.get(1)?.as_str()?;
            let content = match stays {
                true => Some(json_bytes::to_bytes(content)?),
                false => None,
            };
            let name = row.get(0)?.as_str()?.to_owned();
            Some(change(name, hash(row.get(2)?)?, content))
        };
        value.get(name)?.as_array()?.iter().map(row).collect()
    };
    let mut files = rows("write", true)?;
    files.extend(rows("remove", false)?);
    Some(Intent {
        id,
        dir: text("dir")?,
        lock: text("lock")?,
        bytes_max: OLD_ITEM_BYTES_MAX,
        files,
    })
}
