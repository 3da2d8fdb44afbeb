//! Compares the files with the cards: new, changed, touched or removed.
//!
//! Files are read and parsed on every core. A file with the same stamp is not read at all; one with
//! another stamp and the same content is only recorded.

use super::cards::Card;
use super::generate::{FileError, step};
use super::library::Library;
use super::rules::NoteRules;
use kenning_core::{Error, Hash, Result};
use kenning_kernel::{Caller, NOTE_BYTES_MAX};
use kenning_vault::{Dir, Found, Stamp};
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

/// Folders without documents.
pub(super) const SKIPPED: &[&str] = &["node_modules", ".git", "_templates"];

/// Texts up to this many bytes are kept from reading to writing; the rest is read twice.
const KEPT_BYTES: i64 = 32 * 1024 * 1024;

/// A tree of files.
pub(super) struct Tree {
    pub(super) dir: Dir,
    /// The folder below `dir`.
    pub(super) folder: String,
    /// The root in its cards.
    pub(super) root: String,
    pub(super) is_vault: bool,
}

impl Tree {
    pub(super) fn path_of(&self, name: &str) -> String {
        if self.is_vault {
            format!("vault:{name}")
        } else {
            name.to_owned()
        }
    }

    /// Which of its files are notes, if it is the vault.
    pub(super) fn rules(&self) -> Option<NoteRules> {
        self.is_vault.then(|| NoteRules::of(&self.dir))
    }

    pub(super) fn is_document(&self, name: &str, rules: Option<&NoteRules>) -> bool {
        is_markdown(name) && rules.is_none_or(|it| it.why_not(name).is_none())
    }

    pub(super) fn owns(&self, path: &str, card: &Card) -> bool {
        if self.is_vault != card.is_of_vault() {
            return false;
        }
        self.is_vault
            || self.folder.is_empty()
            || path
                .strip_prefix(&self.folder)
                .is_some_and(|it| it.starts_with('/'))
    }
}

/// A file to read.
pub(super) struct Task<'a> {
    pub(super) tree: &'a Tree,
    pub(super) path: String,
    pub(super) name: String,
    pub(super) stamp: Stamp,
    pub(super) before: Option<&'a Card>,
}

/// What was read.
pub(super) struct Read<'a> {
    pub(super) task: &'a Task<'a>,
    pub(super) card: Card,
    pub(super) frontmatter: Map<String, Value>,
    /// Kept while there is room.
    pub(super) text: Option<String>,
}

pub(super) enum Looked<'a> {
    /// Another stamp, the same content.
    Touched(&'a Task<'a>),
    Read(Box<Read<'a>>),
    Failed(FileError),
}

/// How the trees differ from the cards.
#[derive(Default)]
pub(super) struct Survey<'a> {
    pub(super) tasks: Vec<Task<'a>>,
    pub(super) removed: Vec<(String, &'a Card)>,
    pub(super) n_files: usize,
    pub(super) n_notes: usize,
    pub(super) n_same: usize,
    pub(super) errors: Vec<FileError>,
}

pub(super) fn is_markdown(name: &str) -> bool {
    let has_ending = |ending: &str| {
        let at = name.len().checked_sub(ending.len());
        let end = at.and_then(|at| name.as_bytes().get(at..));
        end.is_some_and(|it| it.eq_ignore_ascii_case(ending.as_bytes()))
    };
    has_ending(".md") || has_ending(".markdown")
}

/// The names of all Markdown files of a vault.
pub fn note_names(dir: &Dir) -> Result<Vec<String>> {
    let rules = NoteRules::of(dir);
    let is_note = |name: &str| is_markdown(name) && rules.why_not(name).is_none();
    let walked = dir.walk("", SKIPPED, &is_note)?;
    Ok(walked.files.into_iter().map(|it| it.name).collect())
}

pub(super) fn survey<'a>(
    trees: &'a [Tree],
    before: &'a Library,
    force: bool,
) -> Result<Survey<'a>> {
    let mut survey = Survey::default();
    for tree in trees {
        let rules = tree.rules();
        let is_wanted = |name: &str| tree.is_document(name, rules.as_ref());
        let walked = tree.dir.walk(&tree.folder, SKIPPED, &is_wanted)?;
        for (name, why) in walked.faults {
            survey.errors.push(FileError {
                path: tree.path_of(&name),
                line: None,
                message: why,
            });
        }
        if tree.is_vault {
            survey.n_notes = walked.files.len();
        } else {
            survey.n_files = walked.files.len();
        }
        let mut seen: HashSet<String> = HashSet::with_capacity(walked.files.len());
        for Found { name, stamp } in walked.files {
            let path = tree.path_of(&name);
            let known = before.number_of(&path).map(|at| &before.doc(at).card);
            seen.insert(path.clone());
            if !force
                && known.is_some_and(|card| card.is_surely_of(stamp) && !is_inner_root(tree, card))
            {
                survey.n_same += 1;
                continue;
            }
            survey.tasks.push(Task {
                tree,
                path,
                name,
                stamp,
                before: known,
            });
        }
        let gone = before
            .docs
            .iter()
            .filter(|doc| tree.owns(&doc.path, &doc.card) && !seen.contains(&doc.path));
        survey
            .removed
            .extend(gone.map(|doc| (doc.path.clone(), &doc.card)));
    }
    Ok(survey)
}

/// Whether the card's id is relative to a folder within this one: the outer folder counts.
pub(super) fn is_inner_root(tree: &Tree, card: &Card) -> bool {
    !tree.is_vault && card.root != tree.root && card.root.starts_with(&tree.root)
}

/// Reads and parses on every core.
pub(super) fn look_into<'a>(
    tasks: &'a [Task<'a>],
    force: bool,
    caller: &Caller,
) -> Result<Vec<Looked<'a>>> {
    let (next, room) = (AtomicUsize::new(0), AtomicI64::new(KEPT_BYTES));
    let found = Mutex::new(Vec::with_capacity(tasks.len()));
    let work = || {
        let mut own = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = tasks.get(at) else { break };
            if at % (tasks.len() / 20).clamp(16, 256) == 0 {
                caller.check()?;
                step(caller, 0, at, tasks.len(), "files read");
            }
            own.push((at, look(task, force, &room)));
        }
        found.lock().map_err(|_| broken())?.extend(own);
        Ok(())
    };
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(1 + tasks.len() / 64);
    if threads == 1 {
        work()?;
    } else {
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            all.into_iter()
                .try_for_each(|it| it.join().unwrap_or_else(|_| Err(broken())))
        })?;
    }
    let mut found = found.into_inner().map_err(|_| broken())?;
    found.sort_unstable_by_key(|it| it.0);
    Ok(found.into_iter().map(|it| it.1).collect())
}

pub(super) fn broken() -> Error {
    Error::internal("a thread that reads files panicked")
}

pub(super) fn look<'a>(task: &'a Task<'a>, force: bool, room: &AtomicI64) -> Looked<'a> {
    let text = match read(task) {
        Ok(text) => text,
        Err(error) => {
            let (path, message) = (task.path.clone(), error.to_string());
            return Looked::Failed(FileError {
                path,
                line: None,
                message,
            });
        }
    };
    let content = Hash::of(text.bytes());
    if !force
        && task.before.is_some_and(|card| {
            card.content == content && card.is_read_as_now() && !is_inner_root(task.tree, card)
        })
    {
        return Looked::Touched(task);
    }
    let document = kenning_graph::parse(text.as_str());
    let frontmatter = document.frontmatter.clone();
    let root = match task.before {
        // If a file is in two folders, its id is relative to the outer one.
        Some(before) if task.tree.root.starts_with(&before.root) && !task.tree.is_vault => {
            before.root.clone()
        }
        _ => task.tree.root.clone(),
    };
    let mut card = Card::of(document, &root, &task.path, content);
    if let Text::Repaired(..) = text {
        card.faults.push((
            1,
            "it is not UTF-8: what cannot be read is replaced".to_owned(),
        ));
    }
    let text = text.into_string();
    let size = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let text = (room.fetch_sub(size, Ordering::Relaxed) >= size).then_some(text);
    Looked::Read(Box::new(Read {
        task,
        card,
        frontmatter,
        text,
    }))
}

/// The text of a file, and the bytes if these are not the text's.
pub(super) enum Text {
    Plain(String),
    Repaired(String, Vec<u8>),
}

impl Text {
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Plain(text),
            Err(error) => {
                let bytes = error.into_bytes();
                Self::Repaired(String::from_utf8_lossy(&bytes).into_owned(), bytes)
            }
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Plain(text) => text.as_bytes(),
            Self::Repaired(_, bytes) => bytes,
        }
    }

    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Plain(text) | Self::Repaired(text, _) => text,
        }
    }

    pub(super) fn into_string(self) -> String {
        match self {
            Self::Plain(text) | Self::Repaired(text, _) => text,
        }
    }
}

pub(super) fn read(task: &Task<'_>) -> Result<Text> {
    Ok(Text::of(task.tree.dir.read(&task.name, NOTE_BYTES_MAX)?))
}
