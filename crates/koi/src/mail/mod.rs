//! Mail as documents: an mbox file, a Maildir, or a folder of those, which is only read.
//!
//! `mailbox` finds messages, `message` reads them. Reading is incremental: an mbox that has grown is read on
//! from its last message, one that is another than it was is read anew, and of a Maildir only files that are
//! new. A message that is in no mailbox any more is forgotten. Two copies of a message are one document; two
//! messages that claim one name are two, so that nobody can replace another's by sending one.
//!
//! What a mail says is data: every document says that it is mail, whose, and of which mailbox.

mod mailbox;
mod message;

use crate::Koi;
use kenning_audit::{Draft, Passages, Tx};
use kenning_core::{Code, Error, Hash, Kind, Result, Space};
use kenning_kernel::{Bucket, Caller, Principal, Text};
use kenning_search::passages;
use kenning_store::When;
use kenning_vault::{Dir, Stamp};
use mailbox::{Mailbox, Mbox};
use message::Message;
pub use message::Message as MailMessage;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How far each mailbox was read.
const MAILBOXES: Bucket<State> = Bucket::new("mail.mailboxes");
/// How often a message is there, by the name of its document.
const COPIES: Bucket<u64> = Bucket::new("mail.copies");
/// So many messages are written together, at most …
const BATCH: usize = 100;
/// … and this many bytes of them.
const BATCH_BYTES: usize = 8 << 20;
/// How long a search waits for mail to be read.
const SEARCH_WAIT: Duration = Duration::from_secs(3);
/// How long a check counts as current.
const FRESH: Duration = Duration::from_secs(2);

/// Where mail is, and when it was last looked at.
pub(crate) struct Mail {
    path: Option<PathBuf>,
    space: Space,
    looked: Mutex<Option<Instant>>,
}

impl Mail {
    pub(crate) fn new(path: Option<PathBuf>, space: Space) -> Self {
        Self {
            path,
            space,
            looked: Mutex::default(),
        }
    }
}

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MailRead {
    /// Messages that are new.
    pub added: u64,
    /// Messages that are gone.
    pub removed: u64,
    /// Messages that nothing could be read of.
    pub broken: u64,
    /// Whether everything was read; otherwise the next check continues.
    pub is_complete: bool,
}

/// How far a mailbox was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    /// As the file was when it was read to its end.
    #[serde(default)]
    stamp: Option<(u64, i64, u64)>,
    /// Where the last message that was read begins.
    #[serde(default)]
    at: u64,
    /// What stood before it.
    #[serde(default)]
    before: Option<String>,
    /// That message, which may not have been there to its end.
    #[serde(default)]
    last: Option<String>,
}

/// A reading of all mailboxes.
struct Reading<'a> {
    engine: &'a Koi,
    caller: &'a Caller,
    dir: Dir,
    /// What names of mailboxes begin with: this data directory and the configured path.
    root: String,
    until: Option<Instant>,
    done: MailRead,
}

/// A message to be written: its name in its mailbox, and what it says, if anything.
type New = (String, Option<Message>);

impl Koi {
    /// Reads what is new in the configured mailboxes, and forgets what is gone.
    pub fn read_mail(&self, caller: &Caller) -> Result<MailRead> {
        self.kernel.may_write(caller)?;
        if self.mail.path.is_none() {
            return Err(
                Error::unavailable("KENNING_MAIL environment variable must be set")
                    .hint("set it to an mbox file, a Maildir, or a folder of those"),
            );
        }
        self.look_at_mail(caller, None)
    }

    /// Before a search: reads what is new, for a moment. Errors do not affect the search.
    pub(crate) fn follow_mail(&self, caller: &Caller) {
        let is_ours = self.mail.space == caller.principal.space;
        if self.mail.path.is_none() || self.kernel.is_read_only() || !is_ours {
            return;
        }
        let looked = self
            .mail
            .looked
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_fresh = looked.is_some_and(|it| it.elapsed() < FRESH);
        drop(looked);
        if is_fresh {
            return;
        }
        if let Err(error) = self.look_at_mail(caller, Some(Instant::now() + SEARCH_WAIT)) {
            tracing::warn!("mail could not be read: {error}");
        }
    }

    /// The same for a server.
    pub fn look_at_mail_now(&self) -> Result<()> {
        if self.mail.path.is_none() || self.kernel.is_read_only() {
            return Ok(());
        }
        let mut caller = Caller::new(Principal::owner(self.mail.space.clone()));
        caller.deadline += Duration::from_secs(24 * 60 * 60);
        self.look_at_mail(&caller, None).map(drop)
    }

    fn look_at_mail(&self, caller: &Caller, until: Option<Instant>) -> Result<MailRead> {
        let Some(path) = self.mail.path.as_ref() else {
            return Ok(MailRead::default());
        };
        if caller.principal.space != self.mail.space {
            return Err(Error::denied("this space has no mail"));
        }
        // Another process that reads it does the same.
        let lock = self.kernel.data().lock("mail.lock", Duration::ZERO);
        let _lock = match lock {
            Err(error) if error.code == Code::Unavailable => return Ok(MailRead::default()),
            lock => lock?,
        };
        let (dir, mailboxes) = open(path)?;
        let did = self.kernel.log().signer().did().to_string();
        let mut reading = Reading {
            engine: self,
            caller,
            dir,
            root: format!("{did}\n{}\n", path.display()),
            until,
            done: MailRead::default(),
        };
        reading.run(&did, &mailboxes)?;
        *self
            .mail
            .looked
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        if reading.done.added > 0 {
            self.kernel.embed_later(&caller.principal.space);
        }
        Ok(reading.done)
    }
}

/// The configured place, and the mailboxes in it.
fn open(path: &std::path::Path) -> Result<(Dir, Vec<Mailbox>)> {
    let unread = |error: Error| {
        Error::unavailable("the mail that KENNING_MAIL names cannot be opened")
            .hint("set KENNING_MAIL to an mbox file, a Maildir, or a folder of those")
            .because(error)
    };
    if let Ok(dir) = Dir::open(path) {
        let found = mailbox::find(&dir).map_err(unread)?;
        return Ok((dir, found));
    }
    let (dir, name) = kenning_vault::split(path).map_err(unread)?;
    // An empty file is a mailbox without mail.
    let size_bytes = dir.stamp(&name).map_err(unread)?.size_bytes;
    if size_bytes > 0 && !mailbox::is_mbox(&dir, &name) {
        return Err(unread(Error::invalid("the file is not an mbox")));
    }
    Ok((dir, vec![Mailbox::Mbox(name)]))
}

/// The bucket of a mailbox's messages: which document each is.
fn messages_of(mailbox: &str) -> Bucket<Text> {
    let hash = Hash::of(mailbox.as_bytes()).to_string();
    Bucket::named(format!("mail.messages.{}", &hash[..32]))
}

impl Reading<'_> {
    fn space(&self) -> &Space {
        &self.caller.principal.space
    }

    /// Whether it is time to end; an error when whoever asked is gone.
    fn is_over(&self) -> Result<bool> {
        self.caller.check()?;
        Ok(self.until.is_some_and(|it| Instant::now() >= it))
    }

    fn run(&mut self, did: &str, mailboxes: &[Mailbox]) -> Result<()> {
        let known = self.engine.kernel.log().read(self.space(), |tx| {
            let mut known = BTreeMap::new();
            for name in MAILBOXES.keys(tx)? {
                let state = MAILBOXES.get_readable(tx, &name)?;
                known.insert(name, state);
            }
            Ok(known)
        });
        let mut known: BTreeMap<String, Option<State>> = known?;
        self.done.is_complete = true;
        for mailbox in mailboxes {
            let name = format!("{}{}", self.root, mailbox.name());
            let state = known.remove(&name).flatten();
            let read = match mailbox {
                Mailbox::Mbox(file) => self.mbox(&name, file, state.unwrap_or_default()),
                Mailbox::Maildir(folder) => self.maildir(&name, folder),
            };
            match read {
                Ok(()) => {}
                // A mailbox that cannot be read, or that is being moved, does not affect the others.
                Err(error)
                    if matches!(
                        error.code,
                        Code::NotFound | Code::Denied | Code::Unavailable
                    ) =>
                {
                    self.done.is_complete = false;
                    tracing::warn!("the mailbox `{}` was not read: {error}", mailbox.name());
                }
                Err(error) => return Err(error),
            }
            if self.is_over()? {
                self.done.is_complete = false;
                return Ok(());
            }
        }
        // Mailboxes that this data directory had read and does not find any more.
        for name in known
            .into_keys()
            .filter(|it| it.starts_with(&format!("{did}\n")))
        {
            let rows = self.rows(&name)?;
            self.write(&name, rows.into_keys().collect(), Vec::new(), None)?;
            let gone = name.clone();
            let space = self.space().clone();
            self.engine
                .kernel
                .log()
                .write(&space, move |tx| MAILBOXES.unset(tx, &gone))?;
        }
        Ok(())
    }

    fn rows(&self, mailbox: &str) -> Result<BTreeMap<String, String>> {
        let rows = self
            .engine
            .kernel
            .log()
            .read(self.space(), |tx| messages_of(mailbox).list_readable(tx))?;
        Ok(rows.into_iter().map(|(name, key)| (name, key.0)).collect())
    }

    fn mbox(&mut self, name: &str, file: &str, state: State) -> Result<()> {
        let stamp = self.dir.stamp(file)?;
        if state.stamp == Some(short(&stamp)) {
            return Ok(());
        }
        let known = self.rows(name)?;
        let is_grown =
            state.before.is_some() && mailbox::before(&self.dir, file, state.at)? == state.before;
        // What is read on, or for the first time, is noted as far as it was read; what is read anew only at
        // its end, when it is known what is gone.
        let goes_on = is_grown || known.is_empty();
        let from = if is_grown { state.at } else { 0 };
        let mut mbox = Mbox::open(&self.dir, file, from)?;
        let mut seen: HashSet<String> = HashSet::new();
        let mut gone: Vec<String> = state.last.filter(|_| is_grown).into_iter().collect();
        let mut state = State {
            at: from,
            ..State::default()
        };
        let (mut new, mut n_bytes): (Vec<New>, usize) = (Vec::new(), 0);
        while let Some(raw) = mbox.next(file)? {
            n_bytes += raw.bytes.as_ref().map_or(0, Vec::len);
            let message = raw.bytes.as_deref().and_then(Message::read);
            let row = match &message {
                Some(it) => format!("{}\n{}", it.id, it.hash),
                None => format!("\n{}", raw.start),
            };
            (state.at, state.last) = (raw.start, Some(row.clone()));
            gone.retain(|it| *it != row);
            if seen.insert(row.clone()) && !known.contains_key(&row) {
                new.push((row, message));
            }
            if new.len() == BATCH || n_bytes >= BATCH_BYTES {
                state.before = mailbox::before(&self.dir, file, state.at)?;
                let noted = goes_on.then(|| state.clone());
                self.write(
                    name,
                    std::mem::take(&mut gone),
                    std::mem::take(&mut new),
                    noted,
                )?;
                n_bytes = 0;
                if self.is_over()? {
                    return Ok(());
                }
            }
        }
        if !goes_on {
            gone.extend(known.into_keys().filter(|it| !seen.contains(it)));
        }
        state.before = mailbox::before(&self.dir, file, state.at)?;
        // A file that was written to meanwhile is read again.
        state.stamp = Some(short(&stamp));
        self.write(name, gone, new, Some(state))
    }

    fn maildir(&mut self, name: &str, folder: &str) -> Result<()> {
        let mut known = self.rows(name)?;
        let mut files: Vec<(String, String)> = Vec::new();
        for part in ["cur", "new"] {
            let path = if folder.is_empty() {
                part.to_owned()
            } else {
                format!("{folder}/{part}")
            };
            let entries = match self.dir.list(&path) {
                Err(error) if error.code == Code::NotFound => continue,
                entries => entries?,
            };
            for entry in entries
                .iter()
                .filter(|it| it.is_file && !it.name.starts_with('.'))
            {
                // Marks come after the name, and a message that is read goes from one folder to the other.
                let base = entry
                    .name
                    .split_once(":2,")
                    .map_or(entry.name.as_str(), |it| it.0);
                let row = format!("{base}\n{}", entry.size_bytes);
                if known.remove(&row).is_none() {
                    files.push((row, format!("{path}/{}", entry.name)));
                }
            }
        }
        let mut gone: Vec<String> = known.into_keys().collect();
        let (mut new, mut n_bytes): (Vec<New>, usize) = (Vec::new(), 0);
        for (row, file) in files {
            let bytes = match self.dir.read(&file, mailbox::MESSAGE_BYTES_MAX as u64) {
                Ok(bytes) => Some(bytes),
                Err(error) if error.code == Code::TooLarge => None,
                // It got a mark, or was removed, since the folder was listed: the next look finds it.
                Err(error) if error.code == Code::NotFound => continue,
                Err(error) => {
                    tracing::warn!("a message of the mailbox `{folder}` was not read: {error}");
                    self.done.is_complete = false;
                    continue;
                }
            };
            n_bytes += bytes.as_ref().map_or(0, Vec::len);
            new.push((row, bytes.as_deref().and_then(Message::read)));
            if new.len() == BATCH || n_bytes >= BATCH_BYTES {
                let state = Some(State::default());
                self.write(
                    name,
                    std::mem::take(&mut gone),
                    std::mem::take(&mut new),
                    state,
                )?;
                n_bytes = 0;
                if self.is_over()? {
                    return Ok(());
                }
            }
        }
        self.write(name, gone, new, Some(State::default()))
    }

    /// Writes what is gone, what is new and how far the mailbox was read, together.
    fn write(
        &mut self,
        mailbox: &str,
        mut gone: Vec<String>,
        new: Vec<New>,
        state: Option<State>,
    ) -> Result<()> {
        while gone.len() > BATCH {
            let rest = gone.split_off(BATCH);
            self.write_batch(
                mailbox,
                std::mem::replace(&mut gone, rest),
                Vec::new(),
                None,
            )?;
        }
        self.write_batch(mailbox, gone, new, state)
    }

    fn write_batch(
        &mut self,
        mailbox: &str,
        gone: Vec<String>,
        new: Vec<New>,
        state: Option<State>,
    ) -> Result<()> {
        let (space, mailbox) = (self.space().clone(), mailbox.to_owned());
        let shown = mailbox
            .strip_prefix(&self.root)
            .unwrap_or_default()
            .to_owned();
        let is_noted = self
            .engine
            .kernel
            .log()
            .read(&space, |tx| MAILBOXES.get_readable(tx, &mailbox))?
            == state;
        if gone.is_empty() && new.is_empty() && (is_noted || state.is_none()) {
            return Ok(());
        }
        let new: Vec<_> = new
            .into_iter()
            .map(|(row, message)| {
                let passages = message.as_ref().map(passages_of).unwrap_or_default();
                (row, message, passages)
            })
            .collect();
        let done = self.engine.kernel.log().write(&space, move |tx| {
            let bucket = messages_of(&mailbox);
            let mut done = MailRead::default();
            for row in gone {
                if let Some(Text(key)) = bucket.get_readable(&**tx, &row)? {
                    bucket.unset(tx, &row)?;
                    done.removed += u64::from(release(tx, &key)?);
                }
            }
            for (row, message, passages) in new {
                let key = match &message {
                    Some(message) => {
                        let (key, is_new) = put(tx, &shown, message, &passages)?;
                        done.added += u64::from(is_new);
                        key
                    }
                    None => {
                        done.broken += 1;
                        String::new()
                    }
                };
                bucket.set(tx, &row, &key.into())?;
            }
            if let Some(state) = state {
                MAILBOXES.set(tx, &mailbox, &state)?;
            }
            Ok(done)
        })?;
        self.done.added += done.added;
        self.done.removed += done.removed;
        self.done.broken += done.broken;
        Ok(())
    }
}

fn short(stamp: &Stamp) -> (u64, i64, u64) {
    (stamp.size_bytes, stamp.modified_ns, stamp.inode)
}

fn copies(tx: &Tx<'_>, key: &str) -> Result<u64> {
    Ok(COPIES.get_readable(&**tx, key)?.unwrap_or(0))
}

/// A message is found by who wrote it, too.
fn passages_of(message: &Message) -> Passages {
    let title = format!("{} {} {}", message.subject, message.from, message.to);
    passages(&title, &message.body).into()
}

/// The document of a message, and whether it is new.
fn put(
    tx: &mut Tx<'_>,
    mailbox: &str,
    message: &Message,
    passages: &Passages,
) -> Result<(String, bool)> {
    let mut key = format!("email:{}", message.id);
    let is_same = |it: &kenning_store::Node| {
        it.props.get("content_hash") == Some(&Value::from(message.hash.as_str()))
    };
    let mut known = tx.node_by_key("", Kind::Document, &key, When::Now)?;
    if known.as_ref().is_some_and(|it| !is_same(it)) {
        // Another message has this id already.
        key = format!("{key}#{}", &message.hash[..16]);
        known = tx.node_by_key("", Kind::Document, &key, When::Now)?;
    }
    let n = copies(tx, &key)?;
    COPIES.set(tx, &key, &(n + 1))?;
    if known.is_some() {
        return Ok((key, false));
    }
    let mut props = Map::new();
    for (name, value) in [
        ("source", Value::from("email")),
        ("from", message.from.as_str().into()),
        ("to", message.to.as_str().into()),
        ("date", message.date.clone().into()),
        ("message_id", message.id.as_str().into()),
        ("thread_id", message.conversation.as_str().into()),
        ("mailbox", mailbox.into()),
        ("content_hash", message.hash.as_str().into()),
        ("email", message.card()),
    ] {
        props.insert(name.to_owned(), value);
    }
    let node = tx.put_node(Draft {
        kind: Kind::Document,
        project: String::new(),
        key: key.clone(),
        title: message.subject.clone(),
        body: message.body.clone(),
        props,
    })?;
    tx.put_hashed_passages(node.id, passages)?;
    let data = json!({
        "nodeId": node.id.to_string(), "rid": key, "source": "email", "content": message.hash,
    });
    tx.record("DocumentAdded", data)?;
    Ok((key, true))
}

/// Removes one copy. True if it was the last one, and the document is gone.
fn release(tx: &mut Tx<'_>, key: &str) -> Result<bool> {
    if key.is_empty() {
        return Ok(false);
    }
    let n = copies(tx, key)?.saturating_sub(1);
    if n > 0 {
        COPIES.set(tx, key, &n)?;
        return Ok(false);
    }
    COPIES.unset(tx, key)?;
    let Some(node) = tx.node_by_key("", Kind::Document, key, When::Now)? else {
        return Ok(false);
    };
    tx.remove_node(node.id)?;
    let data = json!({ "nodeId": node.id.to_string(), "rid": key, "source": "email" });
    tx.record("DocumentRemoved", data)?;
    Ok(true)
}
