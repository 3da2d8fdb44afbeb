//! A write that is also a file.
//!
//! The content is written beside the file and synced, so that a full disk is found before anything is
//! kept; then the event, the node and an intent with the content are committed; then the content takes
//! the file's name; then the intent is cleared and the call is answered. A process that dies in between
//! leaves the intent, and whoever opens the store next (or touches the same file) carries it out. A lock
//! per file, released by death, keeps two processes from doing so at once.
//!
//! Where the name cannot be taken, the node goes back to what the file still is. Only if that cannot be
//! written either, the intent stays, and the answer says that the write will be completed.
//!
//! A file that somebody else changed wins over our copy: it is adopted as a new revision before it is
//! replaced, so nothing is overwritten that is not in the history.
//!
//! Such files lie in a [`Root`]: the vault, or the directory of the current context. Files of the
//! context have checksums beside them, which are written after the file and before the intent is
//! cleared ([`crate::FileForm::written`]).

use crate::roots::{self, Root};
use crate::{FileNode, Forms, Kernel};
use kenning_audit::Tx;
use kenning_core::{Code, Error, Hash, Kind, Result, Space};
use kenning_store::{ReadTx, When, patience};
use kenning_vault::{Dir, Lock};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The key-value bucket of unfinished writes.
pub const INTENTS: &str = "intents";

/// How long a call waits for another one's write of the same file.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// What a file becomes, and what is said about it.
#[derive(Clone, Debug)]
pub struct Writing {
    /// The whole text.
    pub content: String,
    /// The kind of the event.
    pub event: &'static str,
    /// What the event says besides path, size and hash.
    pub details: Map<String, Value>,
    /// What the node carries besides path and source.
    pub props: Map<String, Value>,
}

impl Writing {
    /// Nothing besides.
    pub fn new(content: String, event: &'static str) -> Self {
        Self {
            content,
            event,
            details: Map::new(),
            props: Map::new(),
        }
    }
}

/// An unfinished write.
struct Intent {
    file: FileNode,
    content: String,
    /// Of the file before; `None` when there was none.
    before: Option<Hash>,
}

impl Intent {
    /// Whether the file has this text before or after the write.
    fn knows(&self, text: &str) -> bool {
        let hash = Hash::of(text.as_bytes());
        self.before == Some(hash) || Hash::of(self.content.as_bytes()) == hash
    }

    fn to_bytes(&self) -> Vec<u8> {
        let value = json!({
            "root": self.file.root, "name": self.file.name, "key": self.file.key,
            "bytes_max": self.file.bytes_max, "content": self.content,
            "before": self.before.map(|it| it.to_string()),
        });
        value.to_string().into_bytes()
    }

    fn from_bytes(bytes: &[u8], forms: Forms) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        let before = match value.get("before")? {
            Value::Null => None,
            hash => Some(Hash::from_hex(hash.as_str()?)?),
        };
        let key = text("key")?;
        let source = roots::name_in_key(&key)?;
        let file = FileNode {
            source,
            form: roots::form_of(source, forms),
            root: text("root")?,
            name: text("name")?,
            key,
            bytes_max: value.get("bytes_max")?.as_u64()?,
        };
        Some(Self {
            file,
            content: text("content")?,
            before,
        })
    }
}

impl Kernel {
    /// Writes a file and its node. `writing` is asked, while nobody else can write, what becomes of the
    /// text that is there.
    pub fn write_file(
        &self,
        space: &Space,
        dir: &Dir,
        file: &FileNode,
        writing: impl FnOnce(Option<&str>) -> Result<Writing>,
    ) -> Result<()> {
        let wait = || self.lock_file(file, patience::left(LOCK_WAIT));
        let _lock = patience::waiting(wait)?;
        self.finish_before(space, dir, file)?;
        // A name that leads outside, or that is no file, is refused here, before anything is kept.
        let before = read_text(dir, file)?;
        let writing = writing(before.as_deref())?;
        let intent = Intent {
            file: file.clone(),
            content: writing.content.clone(),
            before: before.as_ref().map(|it| Hash::of(it.as_bytes())),
        };
        let unwritable = |error| self.root(file.source).unwritable(error);
        let staged = dir.stage(&file.name, writing.content.as_bytes());
        let staged = staged.map_err(unwritable)?;
        let known = self.commit_intent(space, file, before, &writing, intent.to_bytes())?;
        if let Err(error) = staged.take_name() {
            if kenning_vault::is_unconfirmed(&error) {
                // File and node are new. The intent stays: whoever writes or opens next makes sure that
                // the file is kept.
                return Err(unwritable(error));
            }
            return Err(match self.undo_file_write(space, file, known) {
                Ok(()) => unwritable(error),
                Err(_) => completed_later(unwritable(error)),
            });
        }
        self.conclude(space, dir, file, &writing.content)
    }

    /// The file is written: records its checksum and clears the intent. If there is no room for that, the
    /// intent stays, so that whoever comes next does it; what was asked for is done.
    fn conclude(&self, space: &Space, dir: &Dir, file: &FileNode, content: &str) -> Result<()> {
        if let Err(error) = file.form.written(dir, file, content) {
            tracing::warn!("the checksum of `{}` is not recorded: {error}", file.name);
            return Ok(());
        }
        match self.clear_intent(space, &file.key) {
            Err(error) if error.code == Code::Unavailable => {
                tracing::warn!(
                    "`{}` is written, which is not noted yet: {error}",
                    file.name
                );
                Ok(())
            }
            cleared => cleared,
        }
    }

    /// Carries out what must be done before this file is written. The caller holds its lock.
    fn finish_before(&self, space: &Space, dir: &Dir, file: &FileNode) -> Result<()> {
        if !file.form.shares_lock() {
            return self.finish_file_write(space, dir, &file.key);
        }
        self.finish_unfinished(space, dir)
    }

    /// Carries out every unfinished write of the context. The caller holds its lock.
    pub fn finish_unfinished(&self, space: &Space, dir: &Dir) -> Result<()> {
        for key in self.unfinished_writes(space, &self.omi)? {
            self.finish_file_write(space, dir, &key)?;
        }
        Ok(())
    }

    /// Commits the event, the node and the intent. Returns what the node's text was before.
    fn commit_intent(
        &self,
        space: &Space,
        file: &FileNode,
        before: Option<String>,
        writing: &Writing,
        intent: Vec<u8>,
    ) -> Result<Option<String>> {
        let (file, writing) = (file.clone(), writing.clone());
        let forms = self.hooks.forms;
        let prepared = file.read(&writing.content, writing.props.clone());
        let hash = Hash::of(writing.content.as_bytes()).to_string();
        self.log.write(space, move |tx| {
            // A write whose caller waited no longer may have been committed after we had looked for
            // one. It never came to its file, so the file being another is nobody else's doing.
            let late = tx
                .get(INTENTS, &file.key)?
                .and_then(|it| Intent::from_bytes(&it, forms));
            if let Some(theirs) = &before
                && !late.is_some_and(|it| it.knows(theirs))
            {
                adopt(tx, &file, theirs)?;
            }
            prepared.put(tx)?;
            let n_bytes = writing.content.len();
            let mut data = json!({ "path": file.name, "bytes": n_bytes, "content": hash });
            if let Some(data) = data.as_object_mut() {
                data.extend(writing.details);
            }
            tx.record(writing.event, data)?;
            tx.set(INTENTS, &file.key, &intent)?;
            Ok(before)
        })
    }

    /// The file could not be written: the node goes back to what the file still is.
    pub fn undo_file_write(
        &self,
        space: &Space,
        file: &FileNode,
        known: Option<String>,
    ) -> Result<()> {
        let file = file.clone();
        self.log.write(space, move |tx| {
            match known {
                Some(text) => file.read(&text, Map::new()).put(tx)?,
                None => {
                    let node = tx.node_by_key("", Kind::Document, &file.key, When::Now)?;
                    if let Some(node) = node {
                        tx.remove_node(node.id)?;
                        file.form.forget(tx, &file)?;
                    }
                }
            }
            tx.record("FileWriteUndone", json!({ "path": file.name }))?;
            tx.unset(INTENTS, &file.key)
        })
    }

    fn clear_intent(&self, space: &Space, key: &str) -> Result<()> {
        let key = key.to_owned();
        self.log.write(space, move |tx| tx.unset(INTENTS, &key))
    }

    /// Whether a write of this file was left unfinished.
    pub fn has_unfinished_write(&self, space: &Space, key: &str) -> Result<bool> {
        Ok(self.log.read(space, |tx| tx.get(INTENTS, key))?.is_some())
    }

    /// The keys of a root's files whose writes were left unfinished.
    pub fn unfinished_writes(&self, space: &Space, root: &Root) -> Result<Vec<String>> {
        let intents = self.log.read(space, |tx| tx.list(INTENTS))?;
        let own = intents.into_iter().filter(|(_, bytes)| {
            let intent = Intent::from_bytes(bytes, self.hooks.forms);
            intent.is_some_and(|it| root.has(&it.file))
        });
        Ok(own.map(|(key, _)| key).collect())
    }

    pub fn lock_file(&self, file: &FileNode, wait: Duration) -> Result<Lock> {
        let name = Hash::of(format!("{}\0{}", file.root, file.lock_name()).as_bytes());
        let locks = if self.shared {
            let root = self.root(file.source);
            root.open(root.space())?.create_subdir(".kenning/locks")?
        } else {
            self.data.private_subdir("locks")?
        };
        let name = format!("{}.lock", &name.to_string()[..32]);
        kenning_core::idle::waiting(|| locks.lock_briefly(&name, wait)).map_err(|error| match error
            .code
        {
            Code::Unavailable => {
                Error::unavailable(format!("`{}` is being written by another call", file.name))
                    .hint("call again")
                    .because(error)
            }
            _ => error,
        })
    }

    /// Carries out what a killed process left behind. The caller holds the file's lock.
    pub fn finish_file_write(&self, space: &Space, dir: &Dir, key: &str) -> Result<()> {
        let Some(bytes) = self.log.read(space, |tx| tx.get(INTENTS, key))? else {
            return Ok(());
        };
        let Some(intent) = Intent::from_bytes(&bytes, self.hooks.forms) else {
            return Err(Error::corrupt("an unfinished write is not of its form"));
        };
        let now = read_text(dir, &intent.file)?;
        let now_hash = now.as_ref().map(|it| Hash::of(it.as_bytes()));
        if now_hash == Some(Hash::of(intent.content.as_bytes())) {
            // The file was renamed into place; only the answer was lost, and perhaps the checksum. Whether
            // the rename had reached the disk, nobody knows.
            dir.confirm(&intent.file.name)?;
            return self.conclude(space, dir, &intent.file, &intent.content);
        }
        if now_hash == intent.before {
            dir.write(&intent.file.name, intent.content.as_bytes())?;
            return self.conclude(space, dir, &intent.file, &intent.content);
        }
        if let Some(theirs) = now {
            // Somebody else wrote meanwhile: the file wins.
            let file = intent.file.clone();
            self.log.write(space, move |tx| adopt(tx, &file, &theirs))?;
        }
        self.clear_intent(space, key)
    }

    /// Finishes every write of this process's roots that no living process is busy with. Those of
    /// other directories are none of its business.
    pub fn finish_file_writes(&self) -> Result<()> {
        for root in [&self.vault, &self.omi] {
            let space = root.space();
            for (key, bytes) in self.log.read(space, |tx| tx.list(INTENTS))? {
                let Some(intent) = Intent::from_bytes(&bytes, self.hooks.forms) else {
                    tracing::error!(
                        "space {space}: the unfinished write `{key}` is not of its form"
                    );
                    continue;
                };
                if !root.has(&intent.file) {
                    continue;
                }
                let finished = root.create(space).and_then(|dir| {
                    let _lock = self.lock_file(&intent.file, Duration::ZERO)?;
                    self.finish_file_write(space, &dir, &key)
                });
                if let Err(error) = finished {
                    tracing::warn!("space {space}: `{key}` is still unfinished: {error}");
                }
            }
        }
        Ok(())
    }

    /// Makes a revision of a file that was not written here, if it is not what is known.
    pub fn adopt_file(&self, space: &Space, file: &FileNode, text: String) -> Result<()> {
        let file = file.clone();
        self.log.write(space, move |tx| adopt(tx, &file, &text))
    }
}

/// What to say of a write that could neither be done nor be undone.
pub fn completed_later(error: Error) -> Error {
    let message = format!(
        "{}; the write is kept and will be completed when there is room",
        error.message
    );
    Error::new(error.code, message)
        .hint("free some space; the next write to it or the next start completes it")
        .because(error)
}

/// Unfinished writes that are not of the text that their nodes have: nodes are in the log, intents are
/// not.
pub fn faults_of_intents(tx: &dyn ReadTx) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for (key, bytes) in tx.list(INTENTS)? {
        let intent = Intent::from_bytes(&bytes, Forms::PLAIN).filter(|it| it.file.key == key);
        let node = tx.node_by_key("", Kind::Document, &key, When::Now)?;
        let is_said = |it: &Intent| node.as_ref().is_some_and(|node| node.body == it.content);
        if !intent.is_some_and(|it| is_said(&it)) {
            faults.push(format!(
                "the unfinished write of `{key}` is not what its node says"
            ));
        }
    }
    Ok(faults)
}

/// For whoever only reads: a write that cannot be finished now, because the disk is full or away, is left
/// to whoever comes next.
pub fn unless_unavailable(finished: Result<()>) -> Result<()> {
    match finished {
        Err(error) if error.code == Code::Unavailable => {
            tracing::warn!("a write is still unfinished: {error}");
            Ok(())
        }
        other => other,
    }
}

/// The file's text; `None` when there is none.
pub fn read_text(dir: &Dir, file: &FileNode) -> Result<Option<String>> {
    match dir.read(&file.name, file.bytes_max) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| {
            Error::conflict(format!("`{}` is not UTF-8 text", file.name))
                .hint("convert it to UTF-8; it was left as it is")
        }),
        Err(error) if error.code == Code::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Keeps a file that is not there yet, as a part of a larger write: its node, its event and the intent. The
/// caller holds the file's lock, and carries the intent out once this is committed.
pub fn put_new(tx: &mut Tx<'_>, file: &FileNode, content: &str, event: &'static str) -> Result<()> {
    file.read(content, Map::new()).put(tx)?;
    let hash = Hash::of(content.as_bytes()).to_string();
    let data = json!({ "path": file.name, "bytes": content.len(), "content": hash });
    tx.record(event, data)?;
    let intent = Intent {
        file: file.clone(),
        content: content.to_owned(),
        before: None,
    };
    tx.set(INTENTS, &file.key, &intent.to_bytes())
}

/// Keeps the intent to write a file that is there as `before`, as a part of a larger write. The caller
/// holds the file's lock, and carries the intent out once this is committed.
pub(crate) fn intend(
    tx: &mut Tx<'_>,
    file: &FileNode,
    content: &str,
    before: Option<&str>,
) -> Result<()> {
    let intent = Intent {
        file: file.clone(),
        content: content.to_owned(),
        before: before.map(|it| Hash::of(it.as_bytes())),
    };
    tx.set(INTENTS, &file.key, &intent.to_bytes())
}

/// Makes a revision of what somebody else wrote, if it is not what we know.
pub(crate) fn adopt(tx: &mut Tx<'_>, file: &FileNode, theirs: &str) -> Result<()> {
    let known = tx.node_by_key("", Kind::Document, &file.key, When::Now)?;
    if known.is_some_and(|it| it.body == theirs) {
        return Ok(());
    }
    file.read(theirs, Map::new()).put(tx)?;
    tx.record(
        "FileAdopted",
        json!({ "path": file.name, "bytes": theirs.len() }),
    )?;
    Ok(())
}
