//! A write that is also a file: notes, NOW.md and the daily logs.
//!
//! How such a write is made safe is the journal's ([`crate::journal`]): stage, commit with an intent, take
//! the name, clear the intent. Here is what is particular to a file whose text is the body of its node. A
//! lock per file, released by death, keeps two processes from writing or finishing it at once.
//!
//! Where the name cannot be taken, the node goes back to what the file still is. Only if that cannot be
//! written either, the intent stays, and the answer says that the write will be completed.
//!
//! A file that somebody else changed wins over our copy: it is adopted as a new revision before it is
//! replaced, so nothing is overwritten that is not in the history.
//!
//! Such files lie in a [`Root`]: the vault, or the directory of the current context. Files of the
//! context have checksums beside them, which are written after the file and before the intent is
//! done ([`crate::FileForm::written`]).

pub use crate::file_node::read_text;
use crate::journal::{self, INTENTS, Intent, IntentOutcome, Plan};
use crate::roots::{self, Root};
use crate::{FileNode, Forms, Kernel, ReadFile, open_conflicts};
use kenning_audit::Tx;
use kenning_audit::foreign::{Conflict, SYNC_APPLIED, Side};
use kenning_core::{Code, Error, EventId, Hash, Kind, Random, Result, Space};
use kenning_store::{ReadTx, When, patience};
use kenning_vault::{Dir, Lock};
use serde_json::{Map, Value, json};
use std::time::Duration;

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

/// The file of an intent, if it is one of a root.
fn file_of(key: &str, intent: &Intent, forms: Forms) -> Option<FileNode> {
    let source = roots::name_in_key(key)?;
    Some(FileNode {
        source,
        form: roots::form_of(source, forms),
        root: intent.dir.clone(),
        name: intent.only()?.name.clone(),
        key: key.to_owned(),
        bytes_max: intent.bytes_max,
    })
}

/// What somebody else wrote to a file, read before the transaction that adopts it.
struct Theirs {
    text: String,
    /// Its node, unless it is what was known anyway.
    prepared: Option<Box<dyn ReadFile>>,
}

impl Theirs {
    fn prepare(kernel: &Kernel, space: &Space, file: &FileNode, text: String) -> Result<Self> {
        let is_known = kernel.log.read(space, |tx| is_known(tx, file, &text))?;
        let prepared = (!is_known).then(|| file.read(&text, Map::new()));
        Ok(Self { text, prepared })
    }

    /// Makes a revision of it, if it is not what we know.
    fn adopt(self, tx: &mut Tx<'_>, file: &FileNode) -> Result<Option<EventId>> {
        if is_known(&**tx, file, &self.text)? {
            return Ok(None);
        }
        let prepared = self.prepared;
        let prepared = prepared.unwrap_or_else(|| file.read(&self.text, Map::new()));
        prepared.put(tx)?;
        let data = json!({ "path": file.name, "bytes": self.text.len() });
        tx.record("FileAdopted", data).map(Some)
    }
}

fn is_known(tx: &dyn ReadTx, file: &FileNode, text: &str) -> Result<bool> {
    let known = tx.node_by_key("", Kind::Document, &file.key, When::Now)?;
    Ok(known.is_some_and(|it| it.body == text))
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
        let hash_before = before.as_ref().map(|it| Hash::of(it.as_bytes()));
        let unwritable = |error| self.root(file.source).unwritable(error);
        let mut plan = self.plan(file);
        plan.write(dir, &file.name, writing.content.as_bytes(), hash_before)
            .map_err(unwritable)?;
        let content = writing.content.clone();
        self.commit_file(space, file, before.clone(), writing, plan.intent())?;
        if let Err(error) = plan.take_names(dir) {
            if kenning_vault::is_unconfirmed(&error) {
                // File and node are new. The intent stays: whoever writes or opens next makes sure that
                // the file is kept.
                return Err(unwritable(error));
            }
            return Err(match self.undo_file_write(space, file, before) {
                Ok(()) => unwritable(error),
                Err(_) => completed_later(unwritable(error)),
            });
        }
        self.conclude(space, dir, file, plan.intent(), &content);
        Ok(())
    }

    fn plan(&self, file: &FileNode) -> Plan {
        let (root, bytes_max) = (file.root.clone(), file.bytes_max);
        Plan::new(self.log.random(), root, String::new(), bytes_max)
    }

    /// The file is written: records its checksum, and the intent is done. If there is no room for the
    /// checksum, the intent stays, so that whoever comes next does it; what was asked for is done.
    fn conclude(&self, space: &Space, dir: &Dir, file: &FileNode, intent: &Intent, content: &str) {
        match file.form.written(dir, file, content) {
            Ok(()) => self
                .journal
                .mark_done(&self.later, space, &file.key, intent),
            Err(error) => {
                tracing::warn!("the checksum of `{}` is not recorded: {error}", file.name);
            }
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

    /// Commits the event, the node and the intent.
    fn commit_file(
        &self,
        space: &Space,
        file: &FileNode,
        before: Option<String>,
        writing: Writing,
        intent: &Intent,
    ) -> Result<()> {
        let prepared = file.read(&writing.content, writing.props);
        if let Some((title, passages)) = prepared.texts() {
            self.prepare_search(space, title, passages, writing.content.len());
        }
        let data = event_data(file, &writing.content, writing.details);
        let theirs = before.map(|text| Theirs::prepare(self, space, file, text));
        let (theirs, event, file) = (theirs.transpose()?, writing.event, file.clone());
        let key = file.key.clone();
        let work = move |tx: &mut Tx<'_>, late: Option<Intent>| {
            // A write whose caller waited no longer may have been committed after we had looked for
            // one. It never came to its file, so the file being another is nobody else's doing.
            if let Some(theirs) = theirs {
                let now = Some(Hash::of(theirs.text.as_bytes()));
                let late = late.as_ref().and_then(Intent::only);
                if !late.is_some_and(|it| it.expects(now)) {
                    theirs.adopt(tx, &file)?;
                }
            }
            prepared.put(tx)?;
            tx.record(event, data).map(drop)
        };
        self.journal.commit(&self.log, space, &key, intent, work)
    }

    /// The file could not be written: the node goes back to what the file still is.
    pub fn undo_file_write(
        &self,
        space: &Space,
        file: &FileNode,
        known: Option<String>,
    ) -> Result<()> {
        let file = file.clone();
        let known = known.map(|text| file.read(&text, Map::new()));
        self.log.write(space, move |tx| {
            match known {
                Some(known) => known.put(tx)?,
                None => {
                    let node = tx.node_by_key("", Kind::Document, &file.key, When::Now)?;
                    if let Some(node) = node {
                        tx.remove_node(node.id)?;
                        file.form.forget(tx, &file)?;
                    }
                }
            }
            tx.record("FileWriteUndone", json!({ "path": file.name }))?;
            journal::give_up(tx, &file.key)
        })
    }

    /// Whether a write of this file was left unfinished.
    pub fn has_unfinished_write(&self, space: &Space, key: &str) -> Result<bool> {
        let open = |tx: &dyn ReadTx| self.journal.open_intent(tx, space, key);
        Ok(self.log.read(space, open)?.is_some())
    }

    /// The unfinished writes of a root's files, by the keys of their nodes.
    fn intents_of(&self, space: &Space, root: &Root) -> Result<Vec<(FileNode, Intent)>> {
        let open = |tx: &dyn ReadTx| self.journal.open_intents(tx, space);
        let intents = self.log.read(space, open)?.into_iter();
        let files = intents.filter_map(|(key, intent)| {
            let mut file = file_of(&key, &intent, self.hooks.forms)?;
            if intent.is_deferred() && root.is_named() && root.name() == file.source {
                file = root.file(&file.name, file.bytes_max);
            }
            root.has(&file).then_some((file, intent))
        });
        Ok(files.collect())
    }

    /// The keys of a root's files whose writes were left unfinished.
    pub fn unfinished_writes(&self, space: &Space, root: &Root) -> Result<Vec<String>> {
        let intents = self.intents_of(space, root)?.into_iter();
        Ok(intents.map(|it| it.0.key).collect())
    }

    /// The keys of notes that are committed and whose files are still what they were before.
    pub fn notes_ahead_of_files(&self, space: &Space) -> Result<Vec<String>> {
        let intents = self.intents_of(space, &self.vault)?;
        if intents.is_empty() {
            return Ok(Vec::new());
        }
        let dir = self.vault.open(space)?;
        let ahead = intents.into_iter().filter(|(file, intent)| {
            let now = dir.read(&file.name, file.bytes_max).ok();
            let now = now.map(|it| Hash::of(&it));
            intent.only().is_some_and(|it| it.is_ahead_of(now))
        });
        Ok(ahead.map(|it| it.0.key).collect())
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
        let open = |tx: &dyn ReadTx| {
            let Some(intent) = self.journal.open_intent(tx, space, key)? else {
                return Ok(None);
            };
            let node = tx.node_by_key("", Kind::Document, key, When::Now)?;
            Ok(Some((intent, node.map(|it| it.body))))
        };
        let Some((intent, body)) = self.log.read(space, open)? else {
            return Ok(());
        };
        let Some(file) = file_of(key, &intent, self.hooks.forms) else {
            return Err(Error::corrupt(
                "the record of an unfinished write is malformed",
            ));
        };
        let carried = intent.carry_out(dir, body.as_deref())?;
        let now = read_text(dir, &file)?;
        match (carried, now) {
            (IntentOutcome::Applied, Some(text)) => {
                self.conclude(space, dir, &file, &intent, &text);
                return Ok(());
            }
            // The file wins. Whoever changed it had not seen what was to be written.
            (_, Some(text)) if intent.is_deferred() => self.adopt_unseen(space, &file, text)?,
            (_, Some(text)) => self.adopt_file(space, &file, text)?,
            (_, None) => {}
        }
        intent.discard(dir);
        self.journal.mark_done(&self.later, space, key, &intent);
        Ok(())
    }

    /// Finishes every write of this process's roots that no living process is busy with. Those of
    /// other directories are none of its business.
    pub fn finish_file_writes(&self) -> Result<()> {
        for root in [&self.vault, &self.omi] {
            let space = root.space();
            for (file, _) in self.intents_of(space, root)? {
                let finished = root.create(space).and_then(|dir| {
                    let _lock = self.lock_file(&file, Duration::ZERO)?;
                    self.finish_file_write(space, &dir, &file.key)
                });
                if let Err(error) = finished {
                    let key = &file.key;
                    tracing::warn!("space {space}: `{key}` is still unfinished: {error}");
                }
            }
        }
        Ok(())
    }

    /// Makes a revision of a file that was not written here, if it is not what is known. The caller holds the
    /// file's lock.
    pub fn adopt_file(&self, space: &Space, file: &FileNode, text: String) -> Result<()> {
        let theirs = Theirs::prepare(self, space, file, text)?;
        let file = file.clone();
        self.log.write(space, move |tx| {
            theirs.adopt(tx, &file)?;
            // Whatever was to be written before is over.
            journal::give_up(tx, &file.key)
        })
    }

    /// The same for a file that was to become what a peer wrote: whoever changed it had not seen that.
    fn adopt_unseen(&self, space: &Space, file: &FileNode, text: String) -> Result<()> {
        let theirs = Theirs::prepare(self, space, file, text)?;
        let (file, me) = (file.clone(), self.log.signer().did().to_string());
        self.log.write(space, move |tx| {
            let node_now = |tx: &Tx<'_>| tx.node_by_key("", Kind::Document, &file.key, When::Now);
            let lost = node_now(tx)?;
            let adopted = theirs.adopt(tx, &file)?;
            journal::give_up(tx, &file.key)?;
            let (Some(event), Some(lost), Some(now)) = (adopted, lost, node_now(tx)?) else {
                return Ok(());
            };
            let is_its = |it: &kenning_audit::Change| {
                matches!(it, kenning_audit::Change::PutNode { id, hash, .. }
                    if (*id, *hash) == (lost.id, lost.hash))
            };
            let events = tx.events_at(lost.updated)?.into_iter();
            let mut writers = events.filter(|it| {
                let event = kenning_audit::event::parse(it);
                it.kind != SYNC_APPLIED && event.is_some_and(|it| it.changes.iter().any(is_its))
            });
            let Some(writer) = writers.next() else {
                return Ok(());
            };
            let conflict = Conflict {
                kind: Kind::Document,
                key: file.key.clone(),
                winner: Side {
                    event: event.0,
                    author: me,
                    node: now.id,
                    hash: now.hash,
                },
                loser: Side {
                    event: writer.id,
                    author: writer.author,
                    node: lost.id,
                    hash: lost.hash,
                },
            };
            tx.record("ConflictDetected", conflict.to_json())?;
            open_conflicts::keep(tx, &[conflict])
        })
    }

    /// Prepares a file that is not there yet, to be a part of a larger transaction.
    pub fn prepare_new_file(&self, file: FileNode, content: &str) -> NewFile {
        let mut plan = self.plan(&file);
        plan.change(&file.name, None, Some(Hash::of(content.as_bytes())));
        NewFile {
            prepared: file.read(content, Map::new()),
            data: event_data(&file, content, Map::new()),
            intent: plan.intent().clone(),
            file,
        }
    }
}

/// A file that is not there yet.
pub struct NewFile {
    /// The file.
    pub file: FileNode,
    prepared: Box<dyn ReadFile>,
    data: Value,
    intent: Intent,
}

impl NewFile {
    /// Keeps its node, its event and the intent. The caller holds the file's lock, and carries the intent out
    /// ([`Kernel::finish_file_write`]) once this is committed.
    ///
    /// # Errors
    /// Those of the store.
    pub fn put(self, tx: &mut Tx<'_>, event: &'static str) -> Result<()> {
        self.prepared.put(tx)?;
        tx.record(event, self.data)?;
        INTENTS.set(tx, &self.file.key, &self.intent)
    }
}

/// What the event of a write says.
fn event_data(file: &FileNode, content: &str, details: Map<String, Value>) -> Value {
    let hash = Hash::of(content.as_bytes()).to_string();
    let mut data = json!({ "path": file.name, "bytes": content.len(), "content": hash });
    if let Some(data) = data.as_object_mut() {
        data.extend(details);
    }
    data
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
    for key in INTENTS.keys(tx)? {
        if key.starts_with(journal::ITEM) {
            continue;
        }
        let intent = INTENTS.get_readable(tx, &key)?;
        let file = intent
            .as_ref()
            .and_then(|it| file_of(&key, it, Forms::PLAIN));
        let is_its_file = file.is_some_and(|file| key == format!("{}:{}", file.source, file.name));
        let after = intent.as_ref().and_then(|it| it.only()?.after);
        let node = tx.node_by_key("", Kind::Document, &key, When::Now)?;
        let body = node.map(|it| Hash::of(it.body.as_bytes()));
        if !is_its_file || after != body {
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

/// Keeps the intent that a file which is as `before` becomes `after`, or goes, as a part of a larger
/// transaction that gives its node that text. The caller holds the file's lock, and carries the intent out
/// ([`Kernel::finish_file_write`]) once this is committed.
pub(crate) fn intend(
    tx: &mut Tx<'_>,
    random: &dyn Random,
    file: &FileNode,
    before: Option<&str>,
    after: Option<&str>,
) -> Result<()> {
    let hash = |text: &str| Hash::of(text.as_bytes());
    let mut plan = Plan::new(random, file.root.clone(), String::new(), file.bytes_max);
    plan.change(&file.name, before.map(hash), after.map(hash));
    INTENTS.set(tx, &file.key, plan.intent())
}

/// The same for a process that does not know the file's directory: whoever does, carries it out. `before`
/// and `after` are the hashes of what the node said and says.
pub(crate) fn defer(
    tx: &mut Tx<'_>,
    random: &dyn Random,
    file: &FileNode,
    before: Option<Hash>,
    after: Option<Hash>,
) -> Result<()> {
    let known = INTENTS.get_readable(&**tx, &file.key)?;
    // If an earlier write is not carried out yet, the file is still as it was before that one.
    let deferred = known.filter(Intent::is_deferred);
    let before = match deferred.as_ref().and_then(Intent::only) {
        Some(change) => change.before,
        None => before,
    };
    if before == after {
        return journal::give_up(tx, &file.key);
    }
    let mut plan = Plan::new(random, String::new(), String::new(), file.bytes_max);
    plan.change(&file.name, before, after);
    INTENTS.set(tx, &file.key, plan.intent())
}

/// Makes a revision of what somebody else wrote, if it is not what we know, as a part of a larger
/// transaction.
pub(crate) fn adopt(tx: &mut Tx<'_>, file: &FileNode, text: &str) -> Result<()> {
    let (text, prepared) = (text.to_owned(), None);
    Theirs { text, prepared }.adopt(tx, file).map(drop)
}
