//! The journal of intents: writes of files that are committed and may not be carried out yet.
//!
//! Files that are also nodes (notes, NOW.md, the daily logs, items) are written in this order:
//!
//! 1. Each new content is staged: it lies beside its file, on the disk. A full disk is found here, and
//!    nothing has happened.
//! 2. One transaction commits the event, the node and an [`Intent`]: which files become what, by their
//!    hashes and the ids of the staged contents. The text itself is in the node and in the staged content.
//! 3. The staged contents take their names.
//! 4. The intent is done. It is cleared by the transaction of the next such write, or by one of its own a
//!    moment later if none comes ([`Journal::done`]), so that nobody waits for a second commit.
//!
//! A process that dies after step 2 leaves the intent, and whoever opens the store next (or touches the
//! same files) carries it out: a file that is as it was becomes what it was to be, by the staged content or
//! by the text of the node; a file that is what it was to be is only confirmed; and a file that somebody
//! changed since wins. So it does no harm if an intent outlives its write: an intent is cleared only while
//! it is the very one that was done, by its id.

mod rows;

use crate::bucket::Bucket;
use crate::later::Later;
use kenning_audit::{Log, Tx};
use kenning_core::{Code, Hash, Random, Result, Space};
use kenning_store::ReadTx;
use kenning_vault::{Dir, Staged};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Unfinished writes, by the key of the node (`vault:…`, `omi:…`), or `item:` and the path of an item.
pub const INTENTS: Bucket<Intent> = Bucket::new("intents");

/// What the keys of items begin with.
pub const ITEM: &str = "item:";

/// Where older versions kept those of items, by their paths.
const OLD_ITEM_INTENTS: Bucket<Intent> = Bucket::new("items/intents");

/// How long an intent that is done waits for another write that clears it.
const CLEARED_AFTER: Duration = Duration::from_millis(250);

/// A write of files beneath one directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Tells it from every other intent.
    id: String,
    /// The directory.
    pub dir: String,
    /// What is locked meanwhile, where the files do not tell.
    pub lock: String,
    /// The largest file that is read.
    pub bytes_max: u64,
    /// What becomes of each file.
    pub files: Vec<FileChange>,
}

/// What becomes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Its name beneath the directory.
    pub name: String,
    /// The hash of what it was; `None` when there was none.
    pub before: Option<Hash>,
    /// The hash of what it is to be; `None` when it goes.
    pub after: Option<Hash>,
    /// The id of the staged content, if there is one.
    staged: Option<String>,
    /// The content itself, in an intent of an older version.
    content: Option<Vec<u8>>,
}

impl FileChange {
    /// Whether a file with this hash is as it was, or as it is to be: nobody else has changed it.
    pub fn expects(&self, now: Option<Hash>) -> bool {
        now == self.before || now == self.after
    }

    /// Whether a file with this hash waits for its new content.
    pub fn is_ahead_of(&self, now: Option<Hash>) -> bool {
        now == self.before && now != self.after
    }
}

/// What carrying out an intent came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntentOutcome {
    /// Every file is what it was to be.
    Applied,
    /// Nothing was done: somebody else changed a file since.
    FileChanged,
    /// Nothing was done: a new content is nowhere to be found.
    ContentMissing,
}

impl Intent {
    /// Whether it was left by a process that does not know the directory: then it is for whoever does.
    pub fn is_deferred(&self) -> bool {
        self.dir.is_empty()
    }

    /// The one file of a write that has only one.
    pub fn only(&self) -> Option<&FileChange> {
        match self.files.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }

    /// Makes every file what it is to be. Doing it twice does the same as doing it once. `text` is what the
    /// node says, for a content that is not staged any more.
    ///
    /// # Errors
    /// Those of the directory.
    pub fn carry_out(&self, dir: &Dir, text: Option<&str>) -> Result<IntentOutcome> {
        let mut ahead = Vec::new();
        for change in &self.files {
            let now = match self.hash_now(dir, &change.name) {
                Ok(now) => now,
                // It is no file any more, or a larger one than was ever written.
                Err(error) if matches!(error.code, Code::TooLarge | Code::InvalidInput) => {
                    return Ok(IntentOutcome::FileChanged);
                }
                Err(error) => return Err(error),
            };
            if !change.expects(now) {
                return Ok(IntentOutcome::FileChanged);
            }
            ahead.push(change.is_ahead_of(now));
        }
        let mut sources = Vec::new();
        for (change, is_ahead) in self.files.iter().zip(&ahead) {
            let source = match change.after {
                Some(after) if *is_ahead => match self.source(dir, change, after, text)? {
                    None => return Ok(IntentOutcome::ContentMissing),
                    some => some,
                },
                _ => None,
            };
            sources.push(source);
        }
        for (change, source) in self.files.iter().zip(sources) {
            match (source, change.after) {
                (Some(Source::Staged(id)), _) => drop(dir.take_staged(&change.name, id)?),
                (Some(Source::Bytes(bytes)), _) => dir.write(&change.name, bytes)?,
                // It has its name, given perhaps by who was killed before the disk had answered.
                (None, Some(_)) => dir.confirm(&change.name)?,
                (None, None) => {}
            }
        }
        self.remove_rest(dir)?;
        Ok(IntentOutcome::Applied)
    }

    fn hash_now(&self, dir: &Dir, name: &str) -> Result<Option<Hash>> {
        match dir.read(name, self.bytes_max) {
            Ok(bytes) => Ok(Some(Hash::of(&bytes))),
            Err(error) if error.code == Code::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where the new content of a file is.
    fn source<'a>(
        &self,
        dir: &Dir,
        change: &'a FileChange,
        after: Hash,
        text: Option<&'a str>,
    ) -> Result<Option<Source<'a>>> {
        let is_it = |bytes: &[u8]| Hash::of(bytes) == after;
        if let Some(bytes) = change.content.as_deref().filter(|it| is_it(it)) {
            return Ok(Some(Source::Bytes(bytes)));
        }
        if let Some(id) = &change.staged {
            let staged = dir.read_staged(&change.name, id, self.bytes_max)?;
            if staged.is_some_and(|it| is_it(&it)) {
                return Ok(Some(Source::Staged(id)));
            }
        }
        let text = text.map(str::as_bytes).filter(|it| is_it(it));
        Ok(text.map(Source::Bytes))
    }

    /// Removes what is staged and will not be taken up.
    pub fn discard(&self, dir: &Dir) {
        for change in &self.files {
            if let Some(id) = &change.staged
                && let Err(error) = dir.discard_staged(&change.name, id)
            {
                tracing::warn!("a staged content stays for a day: {error}");
            }
        }
    }

    fn remove_rest(&self, dir: &Dir) -> Result<()> {
        for change in self.files.iter().filter(|it| it.after.is_none()) {
            match dir.remove(&change.name) {
                Ok(()) => {}
                Err(error) if error.code == Code::NotFound => {}
                Err(error) => return Err(error),
            }
            prune(dir, &change.name);
        }
        Ok(())
    }
}

enum Source<'a> {
    Staged(&'a str),
    Bytes(&'a [u8]),
}

/// Removes the folders of a file as far as they are empty.
fn prune(dir: &Dir, name: &str) {
    let mut at = name;
    while let Some((folder, _)) = at.rsplit_once('/') {
        if dir.remove_dir(folder).is_err() {
            return;
        }
        at = folder;
    }
}

/// A write of files that is being prepared: the new contents are staged, and nothing else has happened. What
/// is staged goes when this is dropped.
pub struct Plan {
    intent: Intent,
    staged: Vec<Staged>,
}

impl Plan {
    /// A write beneath this directory.
    pub fn new(random: &dyn Random, dir: String, lock: String, bytes_max: u64) -> Self {
        let mut id = [0; 16];
        random.fill(&mut id);
        let intent = Intent {
            id: kenning_text::hex::encode(&id),
            dir,
            lock,
            bytes_max,
            files: Vec::new(),
        };
        Self {
            intent,
            staged: Vec::new(),
        }
    }

    /// Gives a file this content.
    ///
    /// # Errors
    /// Those of the directory; nothing has happened then.
    pub fn write(
        &mut self,
        dir: &Dir,
        name: &str,
        bytes: &[u8],
        before: Option<Hash>,
    ) -> Result<()> {
        let staged = dir.stage(name, bytes)?;
        self.change(name, before, Some(Hash::of(bytes)));
        if let Some(change) = self.intent.files.last_mut() {
            change.staged = Some(staged.id().to_owned());
        }
        self.staged.push(staged);
        Ok(())
    }

    /// Changes a file without staging: it stays as it is, it goes, or its content is the text of a node that
    /// [`Intent::carry_out`] is given.
    pub fn change(&mut self, name: &str, before: Option<Hash>, after: Option<Hash>) {
        self.intent.files.push(FileChange {
            name: name.to_owned(),
            before,
            after,
            staged: None,
            content: None,
        });
    }

    /// What is committed.
    pub fn intent(&self) -> &Intent {
        &self.intent
    }

    /// Makes the staged contents findable after a power cut, for files whose text is in no node.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn sync_staged(&self) -> Result<()> {
        self.staged.iter().try_for_each(Staged::sync_id)
    }

    /// Gives every file its new content, once the intent is committed.
    ///
    /// # Errors
    /// Those of the directory. What was not taken up stays staged.
    pub fn take_names(&mut self, dir: &Dir) -> Result<()> {
        while !self.staged.is_empty() {
            self.staged.remove(0).take_name()?;
        }
        self.intent.remove_rest(dir)
    }

    /// Leaves what is staged for whoever carries out the intent.
    pub fn leave(self) -> Intent {
        self.staged.into_iter().for_each(Staged::leave);
        self.intent
    }

    /// Removes what is staged, and folders that were made for it.
    pub fn give_up(self, dir: &Dir) {
        drop(self.staged);
        let new = self.intent.files.iter().filter(|it| it.before.is_none());
        new.for_each(|it| prune(dir, &it.name));
    }
}

/// Ids of the intents of one space that are done, by their keys.
type Done = BTreeMap<String, String>;

/// Intents that this process has carried out and that are not cleared yet.
#[derive(Default)]
pub struct Journal {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    done: BTreeMap<Space, Done>,
    /// Whether [`Journal::clear_done`] will be called.
    is_scheduled: bool,
}

impl Journal {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this process has carried it out.
    pub fn is_done(&self, space: &Space, key: &str, intent: &Intent) -> bool {
        let state = self.lock();
        let id = state.done.get(space).and_then(|it| it.get(key));
        id == Some(&intent.id)
    }

    /// The intent of these files, unless it is done.
    ///
    /// # Errors
    /// Corrupt when it is malformed, and those of the store.
    pub fn open_intent(&self, tx: &dyn ReadTx, space: &Space, key: &str) -> Result<Option<Intent>> {
        let intent = INTENTS.get(tx, key)?;
        Ok(intent.filter(|it| !self.is_done(space, key, it)))
    }

    /// Every intent of a space that is not done. One that is malformed hides no other.
    ///
    /// # Errors
    /// Those of the store.
    pub fn open_intents(&self, tx: &dyn ReadTx, space: &Space) -> Result<Vec<(String, Intent)>> {
        let mut intents = INTENTS.list_readable(tx)?;
        intents.retain(|(key, intent)| !self.is_done(space, key, intent));
        Ok(intents)
    }

    /// Commits `work` with an intent, and clears those that are done. `work` gets the intent that it replaces.
    ///
    /// # Errors
    /// Those of `work` and of the store.
    pub fn commit<T: Send + 'static>(
        &self,
        log: &Log,
        space: &Space,
        key: &str,
        intent: &Intent,
        work: impl FnOnce(&mut Tx<'_>, Option<Intent>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let done = self.lock().done.remove(space).unwrap_or_default();
        let cleared = done.clone();
        let (key, intent) = (key.to_owned(), intent.clone());
        let committed = log.write(space, move |tx| {
            let replaced = INTENTS.get_readable(&**tx, &key)?;
            let value = work(tx, replaced)?;
            clear(tx, &cleared)?;
            INTENTS.set(tx, &key, &intent)?;
            Ok(value)
        });
        if committed.is_err() {
            self.put_back(space, done);
        }
        committed
    }

    /// The files have their names. The intent need not be there any longer: the next commit clears it, or
    /// the thread that works afterwards.
    pub fn mark_done(self: &Arc<Self>, later: &Later, space: &Space, key: &str, intent: &Intent) {
        let mut state = self.lock();
        let done = state.done.entry(space.clone()).or_default();
        done.insert(key.to_owned(), intent.id.clone());
        let is_scheduled = std::mem::replace(&mut state.is_scheduled, true);
        drop(state);
        if !is_scheduled {
            let journal = Arc::clone(self);
            later.run_after(CLEARED_AFTER, move |log| journal.clear_done(log));
        }
    }

    /// Clears every intent that is done.
    ///
    /// # Errors
    /// Those of the store: then they stay until the next commit or the next process.
    pub fn clear_done(&self, log: &Log) -> Result<()> {
        let all = {
            let mut state = self.lock();
            state.is_scheduled = false;
            std::mem::take(&mut state.done)
        };
        let mut failed = Ok(());
        for (space, done) in all {
            let cleared = done.clone();
            if let Err(error) = log.write(&space, move |tx| clear(tx, &cleared)) {
                self.put_back(&space, done);
                failed = Err(error);
            }
        }
        failed
    }

    fn put_back(&self, space: &Space, done: Done) {
        if done.is_empty() {
            return;
        }
        let mut state = self.lock();
        let now = state.done.entry(space.clone()).or_default();
        for (key, id) in done {
            // What was done meanwhile is newer.
            now.entry(key).or_insert(id);
        }
    }
}

/// Clears these intents, each if it is still the one that was done.
fn clear(tx: &mut Tx<'_>, done: &Done) -> Result<()> {
    for (key, id) in done {
        let intent = INTENTS.get_readable(&**tx, key)?;
        if intent.is_some_and(|it| it.id == *id) {
            INTENTS.unset(tx, key)?;
        }
    }
    Ok(())
}

/// Clears an intent whose write is given up, as a part of a larger transaction.
///
/// # Errors
/// Those of the store.
pub fn give_up(tx: &mut Tx<'_>, key: &str) -> Result<()> {
    INTENTS.unset(tx, key)
}

/// Takes over the intents of items that an older version left in a bucket of their own.
///
/// # Errors
/// Those of the store.
pub fn take_over_old(log: &Log, space: &Space) -> Result<()> {
    if log.read(space, |tx| OLD_ITEM_INTENTS.keys(tx))?.is_empty() {
        return Ok(());
    }
    log.write(space, |tx| {
        for (path, intent) in OLD_ITEM_INTENTS.list_readable(&**tx)? {
            INTENTS.set(tx, &format!("{ITEM}{path}"), &intent)?;
            OLD_ITEM_INTENTS.unset(tx, &path)?;
        }
        Ok(())
    })
}

/// The ids of every staged content of a space that somebody will take up.
///
/// # Errors
/// Those of the store.
pub fn staged_ids(tx: &dyn ReadTx) -> Result<BTreeSet<String>> {
    let intents = INTENTS.list_readable(tx)?.into_iter();
    let changes = intents.flat_map(|it| it.1.files);
    Ok(changes.filter_map(|it| it.staged).collect())
}
