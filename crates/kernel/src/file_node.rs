//! A text file that is also a node, and what its domain crate knows of it.

use kenning_audit::{Draft, Passages, Tx};
use kenning_core::{Code, Error, Kind, Result};
use kenning_search::passages;
use kenning_store::{Node, Passage};
use kenning_vault::Dir;
use serde_json::{Map, Value};
use std::fmt;

/// The largest note.
pub const NOTE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// What a domain crate knows of the files of its root.
pub trait FileForm: fmt::Debug + Send + Sync {
    /// Whether all files of the root share one lock, because they share something beside them.
    fn shares_lock(&self) -> bool {
        false
    }

    /// The node of a file with this content. Parsing a long text takes a while, so it is done before
    /// the transaction, which keeps every other writer waiting.
    fn read(&self, file: &FileNode, content: &str, props: Map<String, Value>) -> Box<dyn ReadFile> {
        let pieces = passages(file.title(), content);
        Box::new(PlainFile::new(file, content, props, Some(pieces)))
    }

    /// Removes what [`ReadFile::put`] stored beside the removed node.
    fn forget(&self, _tx: &mut Tx<'_>, _file: &FileNode) -> Result<()> {
        Ok(())
    }

    /// Stores what [`ReadFile::put`] stores beside the node, for a node that came from a peer.
    fn merged(&self, _tx: &mut Tx<'_>, _file: &FileNode, _node: &Node) -> Result<()> {
        Ok(())
    }

    /// One text with everything that two versions say, if that can be had without a person: it must not
    /// matter which one is first, nor in which order several are joined.
    fn join(&self, _file: &FileNode, _one: &str, _other: &str) -> Option<String> {
        None
    }

    /// Called when the file is on disk: writes what belongs beside it. It depends only on the
    /// content, so whoever finishes a write writes the same.
    fn written(&self, _dir: &Dir, _file: &FileNode, _content: &str) -> Result<()> {
        Ok(())
    }
}

/// For files without further knowledge.
#[derive(Debug)]
pub struct PlainForm;

impl FileForm for PlainForm {}

/// The forms of the two roots whose files are written here.
#[derive(Clone, Copy, Debug)]
pub struct Forms {
    /// For notes.
    pub vault: &'static dyn FileForm,
    /// For NOW.md and the daily logs.
    pub omi: &'static dyn FileForm,
}

impl Forms {
    /// Names and texts only.
    pub const PLAIN: Self = Self {
        vault: &PlainForm,
        omi: &PlainForm,
    };
}

/// A text file that is also a node.
#[derive(Clone, Debug)]
pub struct FileNode {
    /// The name of its root, with which its node's key begins.
    pub source: &'static str,
    /// What its domain crate knows of it.
    pub form: &'static dyn FileForm,
    /// The path of its root, for the intent.
    pub root: String,
    /// Its name below the root.
    pub name: String,
    /// The node's key.
    pub key: String,
    /// The largest file that is read.
    pub bytes_max: u64,
}

impl FileNode {
    /// The name of its lock.
    pub(crate) fn lock_name(&self) -> &str {
        if self.form.shares_lock() {
            ""
        } else {
            &self.name
        }
    }

    /// Its node, with this content.
    pub(crate) fn read(&self, content: &str, props: Map<String, Value>) -> Box<dyn ReadFile> {
        self.form.read(self, content, props)
    }

    /// `People/Bill Baue.md` is about `Bill Baue`.
    pub fn title(&self) -> &str {
        let last = self.name.rsplit('/').next().unwrap_or(&self.name);
        last.strip_suffix(".md").unwrap_or(last)
    }
}

/// A file's node, ready to be stored.
pub trait ReadFile: Send {
    /// Stores it, with its passages, in place of the old one.
    fn put(self: Box<Self>, tx: &mut Tx<'_>) -> Result<()>;

    /// Its title and its passages, if it can be found by search.
    fn texts(&self) -> Option<(&str, &[Passage])>;
}

/// The node of a file that has only text.
pub struct PlainFile {
    draft: Draft,
    passages: Option<Passages>,
}

impl PlainFile {
    /// Without passages search does not find it.
    pub fn new(
        file: &FileNode,
        content: &str,
        mut props: Map<String, Value>,
        pieces: Option<Vec<Passage>>,
    ) -> Self {
        props.insert("path".to_owned(), Value::from(file.name.as_str()));
        props.insert("source".to_owned(), Value::from(file.source));
        let draft = Draft {
            kind: Kind::Document,
            project: String::new(),
            key: file.key.clone(),
            title: file.title().to_owned(),
            body: content.to_owned(),
            props,
        };
        let passages = pieces.map(Passages::from);
        Self { draft, passages }
    }
}

impl ReadFile for PlainFile {
    fn put(self: Box<Self>, tx: &mut Tx<'_>) -> Result<()> {
        let node = tx.put_node(self.draft)?;
        match self.passages {
            Some(passages) => tx.put_hashed_passages(node.id, &passages),
            None => Ok(()),
        }
    }

    fn texts(&self) -> Option<(&str, &[Passage])> {
        Some((&self.draft.title, self.passages.as_deref()?))
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
