//! NOW.md.

use super::{Now, NowUpdate, Place, checksums};
use crate::Omi;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kenning_core::{Code, Error, Result};
use kenning_kernel::Caller;
use kenning_kernel::FileNode;
use kenning_kernel::files::{Writing, read_text};
use kenning_memory::capsule::Capsule;
use kenning_memory::{now, stamp};
use kenning_text::hex;
use kenning_vault::Dir;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// The largest NOW.md.
pub(super) const BYTES_MAX: u64 = 1024 * 1024;

/// NOW.md read without a store, for callers that cannot wait until one is open.
#[derive(Clone, Debug, PartialEq)]
pub struct NowFile {
    /// What the agent was doing.
    pub now: Now,
    /// Whether the file matches its checksum; also true if there is none yet.
    pub is_as_written: bool,
}

impl NowFile {
    /// Reads the file of a project (or, with an empty id, of none) in a directory; `None` if it is missing, empty
    /// or has its default content.
    pub fn read(dir: &Path, project: &str) -> Result<Option<Self>> {
        let place = Place::of(project);
        let name = &place.name(now::FILE);
        let dir = match Dir::open(dir) {
            Err(error) if error.code == Code::NotFound => return Ok(None),
            opened => opened?,
        };
        let bytes = match dir.read(name, BYTES_MAX) {
            Err(error) if error.code == Code::NotFound => return Ok(None),
            read => read?,
        };
        let text = String::from_utf8_lossy(&bytes);
        if now::is_default(&text) {
            return Ok(None);
        }
        let mut found = now::parse(&text);
        if found.timestamp.is_empty() {
            let modified = i64::try_from(dir.metadata(name)?.modified_ms).unwrap_or(0);
            let modified = Timestamp::from_millisecond(modified).unwrap_or(Timestamp::UNIX_EPOCH);
            found.timestamp = stamp::iso(modified.to_zoned(TimeZone::system()).datetime());
        }
        let sum = checksums::of(&dir, &place, now::FILE)?;
        Ok(Some(Self {
            now: found,
            is_as_written: sum.is_none_or(|it| it == hex::sha256(&bytes)),
        }))
    }
}

impl Omi {
    fn now_file(&self, caller: &Caller) -> Result<FileNode> {
        Ok(self.file_at(&self.place(caller)?, now::FILE, BYTES_MAX))
    }

    /// What the agent was doing; `None` if the file is missing, empty or has its default content.
    pub fn now_read(&self, caller: &Caller) -> Result<Option<Now>> {
        let Some(dir) = self.context_to_read(caller)? else {
            return Ok(None);
        };
        let file = self.now_file(caller)?;
        let text = read_text(&dir, &file)?.unwrap_or_default();
        if now::is_default(&text) {
            return Ok(None);
        }
        let mut found = now::parse(&text);
        if found.timestamp.is_empty() {
            found.timestamp = stamp::iso(self.local(dir.metadata(&file.name)?.modified_ms));
        }
        Ok(Some(found))
    }

    /// Changes what the agent is doing: fields that are left out stay, completions are added, the
    /// rest is replaced. A capsule of the new state is kept with the node, its hashes with the event.
    pub fn now_update(&self, caller: &Caller, update: NowUpdate) -> Result<()> {
        let dir = self.context_to_write(caller)?;
        let at = self.local_now();
        let tokens_max = self.now_tokens_max();
        let writing = |before: Option<&str>| {
            let before = before.filter(|it| !now::is_default(it)).map(now::parse);
            let after = before.unwrap_or_default().updated(update, at, tokens_max);
            let content = after.render();
            if content.len() as u64 > BYTES_MAX {
                return Err(Error::too_large(format!(
                    "NOW.md: {} bytes are more than the limit of {BYTES_MAX}",
                    content.len()
                ))
                .hint("shorten `current_task` or the lists; store the rest with `memory_store`"));
            }
            let capsule = capsule_of(&after);
            let mut writing = Writing::new(content, "NowUpdated");
            let hashes = json!({
                "intent_hash": capsule.intent_hash, "checksum": capsule.checksum,
            });
            writing.details.insert("capsule".to_owned(), hashes);
            writing
                .props
                .insert("capsule".to_owned(), capsule.to_json());
            Ok(writing)
        };
        self.remember_project(caller)?;
        self.write_context_file(caller, &dir, &self.now_file(caller)?, writing)
    }

    /// Keeps a copy of NOW.md and returns its name.
    pub fn now_checkpoint(&self, caller: &Caller, reason: Option<&str>) -> Result<String> {
        let dir = self.context_to_write(caller)?;
        let at = self.local_now();
        let place = self.place(caller)?;
        let text = read_text(&dir, &self.now_file(caller)?)?;
        let text = text.as_deref().unwrap_or(now::DEFAULT);
        let reason = reason.unwrap_or(now::CHECKPOINT_REASON_DEFAULT);
        let mut writing = Writing::new(now::checkpoint(text, reason, at), "NowCheckpointed");
        writing
            .details
            .insert("reason".to_owned(), Value::from(reason));
        let mut name = now::checkpoint_name(at);
        let stem = name.trim_end_matches(".md").to_owned();
        for n in 2.. {
            // The checkpoint is longer than the original by a comment.
            let file = self.file_at(&place, &name, 2 * BYTES_MAX);
            let written = self.write_context_file(caller, &dir, &file, |before| match before {
                None => Ok(writing.clone()),
                Some(_) => Err(Error::conflict(format!("`{}` exists", file.name))),
            });
            match written {
                // Another checkpoint of the same second has the name.
                Err(error) if error.code == Code::Conflict => name = format!("{stem}-{n}.md"),
                written => return written.map(|()| name),
            }
        }
        Err(Error::internal("every name for a checkpoint is taken"))
    }

    pub(super) fn write_context_file(
        &self,
        caller: &Caller,
        dir: &Dir,
        file: &FileNode,
        writing: impl FnOnce(Option<&str>) -> Result<Writing>,
    ) -> Result<()> {
        let space = &caller.principal.space;
        self.kernel.with_wait_limit(caller.waited, || {
            self.kernel.write_file(space, dir, file, writing)
        })
    }

    /// A mistake elsewhere in the configuration must not cost an agent its context.
    fn now_tokens_max(&self) -> usize {
        let config = self.kernel.memory_config().unwrap_or_else(|error| {
            tracing::warn!("using the default limit of NOW.md: {error}");
            Arc::default()
        });
        config.max_now_tokens
    }
}

fn capsule_of(now: &Now) -> Capsule {
    let plan = json!({
        "recent_completions": now.completions,
        "pending_decisions": now.pending,
        "key_files": now.files,
    });
    Capsule::new(&now.task, plan, &now.timestamp)
}
