//! Checkpoints as people and programs see them, and who else signed them.

use crate::log_query::shown_did;
use crate::{Bucket, Caller, Kernel, Raw, Scope, timestamp};
use kenning_audit::note::{self, Note, Vouched};
use kenning_audit::{
    CHECKPOINT_COSIGNED, CHECKPOINT_CREATED, CheckpointLabel, Origin, Signer, Tx, event,
};
use kenning_core::{Code, Did, Error, Result, Space};
use kenning_peers::Peer;
use kenning_store::{CheckpointRow, ReadTx};
use serde_json::{Value, json};

/// Who signed a checkpoint beside its author: a row a checkpoint.
const COSIGNATURES: Bucket<Raw> = Bucket::new("log/cosignatures");

/// No checkpoint is signed by more.
const COSIGNATURES_MAX: usize = 64;

/// The longest name, and the longest tag, in characters.
const NAME_CHARS_MAX: usize = 200;

/// The most tags.
const TAGS_MAX: usize = 50;

/// A signed checkpoint.
#[derive(Clone, Debug)]
pub struct CheckpointView {
    /// As it is stored.
    pub row: CheckpointRow,
    /// What it is called.
    pub label: CheckpointLabel,
    /// When it was signed, in milliseconds since 1970.
    pub at_ms: u64,
    /// Who signed it: its author first.
    pub validators: Vec<Validator>,
    /// The height and the size of the one before it.
    pub previous: Option<(u64, u64)>,
}

/// Somebody who signed a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validator {
    /// Their key.
    pub did: String,
    /// Their name in the note, if they are not the author.
    pub name: Option<String>,
    /// When they signed it, in seconds since 1970, if they said so.
    pub at_s: Option<u64>,
}

/// A cosignature as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    did: String,
    line: String,
}

impl Kernel {
    /// Signs what the log of the caller's space is now. Every call signs anew.
    pub fn create_checkpoint(
        &self,
        caller: &Caller,
        label: CheckpointLabel,
    ) -> Result<CheckpointView> {
        self.sign_checkpoint(caller, label, |tx, label| tx.record_checkpoint(label))
    }

    /// The same; if nothing happened since the last checkpoint, gives that one.
    pub fn checkpoint_of_news(
        &self,
        caller: &Caller,
        label: CheckpointLabel,
    ) -> Result<CheckpointView> {
        self.sign_checkpoint(caller, label, |tx, label| {
            tx.record_checkpoint_of_news(label)
        })
    }

    fn sign_checkpoint(
        &self,
        caller: &Caller,
        label: CheckpointLabel,
        sign: fn(&mut Tx<'_>, &CheckpointLabel) -> Result<CheckpointRow>,
    ) -> Result<CheckpointView> {
        self.may_write(caller)?;
        check_label(&label)?;
        let method = self.did_method()?;
        let space = caller.principal.space.clone();
        let work = move |tx: &mut Tx<'_>| {
            let row = sign(tx, &label)?;
            let at_ms = row.hlc.ms();
            view(&**tx, row, label, at_ms, &method)
        };
        self.with_wait_limit(caller.waited, || self.log.write(&space, work))
    }

    /// Checkpoints of the caller's space, newest first, below a height.
    pub fn checkpoints(
        &self,
        caller: &Caller,
        below: Option<u64>,
        limit: usize,
    ) -> Result<Vec<CheckpointView>> {
        caller.principal.require(Scope::Read)?;
        let method = self.did_method()?;
        let work = |tx: &dyn ReadTx| {
            let mut views = Vec::new();
            let mut row = match below {
                Some(0) => None,
                Some(height) => Some(find(tx, Some(height - 1))?),
                None => tx.checkpoint_at(u64::MAX >> 1)?,
            };
            while let Some(it) = row.take()
                && views.len() < limit
            {
                row = match it.seq {
                    0 => None,
                    seq => tx.checkpoint_at(seq - 1)?,
                };
                let (label, at_ms) = (label_of(tx, &it)?, it.hlc.ms());
                views.push(view(tx, it, label, at_ms, &method)?);
            }
            Ok(views)
        };
        let space = &caller.principal.space;
        self.with_wait_limit(caller.waited, || self.log.read(space, work))
    }

    /// The checkpoint of this height in the caller's space, or the newest.
    pub fn checkpoint_at(&self, caller: &Caller, height: Option<u64>) -> Result<CheckpointRow> {
        caller.principal.require(Scope::Read)?;
        let work = |tx: &dyn ReadTx| find(tx, height);
        let space = &caller.principal.space;
        self.with_wait_limit(caller.waited, || self.log.read(space, work))
    }

    /// A checkpoint of this node as a signed note (C2SP tlog-checkpoint), with the cosignatures it has.
    pub fn checkpoint_note(&self, caller: &Caller, height: Option<u64>) -> Result<Note> {
        caller.principal.require(Scope::Read)?;
        let work = |tx: &dyn ReadTx| {
            let row = find(tx, height)?;
            signed_note(tx, &row, self.log.signer())
        };
        let space = &caller.principal.space;
        self.with_wait_limit(caller.waited, || self.log.read(space, work))
    }

    /// Adds the signature of somebody else to a checkpoint: a line of a note and the key that it must be
    /// of, or a whole cosigned note.
    pub fn add_cosignature(
        &self,
        caller: &Caller,
        height: Option<u64>,
        line: &str,
        key: &Did,
    ) -> Result<CheckpointView> {
        caller.principal.require(Scope::Admin)?;
        self.writable()?;
        let (line, key) = (line.trim().to_owned(), key.clone());
        let method = self.did_method()?;
        let space = caller.principal.space.clone();
        let work = move |tx: &mut Tx<'_>| {
            let row = find(&**tx, height)?;
            cosign(tx, &row, &line, &key)?;
            let at_ms = row.hlc.ms();
            view(&**tx, row, CheckpointLabel::default(), at_ms, &method)
        };
        self.with_wait_limit(caller.waited, || self.log.write(&space, work))
    }

    /// Signs a checkpoint with a second key, under a name, as a witness does.
    pub fn cosign_with(
        &self,
        caller: &Caller,
        height: Option<u64>,
        signer: &Signer,
        name: &str,
    ) -> Result<CheckpointView> {
        let note = self.checkpoint_note(caller, height)?;
        let at_s = self.log.clock().now_ms() / 1_000;
        let line = note::cosign(signer, name, &note.text(), at_s)?;
        self.add_cosignature(caller, height, &line, signer.did())
    }
}

impl Kernel {
    /// Keeps a peer's signatures of checkpoints of this node. One that does not fit is the peer's mistake,
    /// and keeps nothing else from being exchanged.
    pub(crate) fn take_cosignatures(
        &self,
        space: &Space,
        peer: &Peer,
        lines: &[(u64, String)],
    ) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let (lines, key) = (lines.to_vec(), peer.did.clone());
        self.log.write(space, move |tx| {
            for (height, line) in lines {
                let added =
                    find(&**tx, Some(height)).and_then(|row| cosign(tx, &row, line.trim(), &key));
                match added {
                    Err(error) if matches!(error.code, Code::InvalidInput | Code::NotFound) => {
                        tracing::warn!("a countersignature of {key} does not count: {error}");
                    }
                    other => other?,
                }
            }
            Ok(())
        })
    }
}

fn check_label(label: &CheckpointLabel) -> Result<()> {
    let too_long = |text: &str| text.chars().count() > NAME_CHARS_MAX;
    if label.name.as_deref().is_some_and(too_long) {
        return Err(
            Error::invalid(format!("`name` has more than {NAME_CHARS_MAX} characters"))
                .hint("shorten it"),
        );
    }
    if label.tags.len() > TAGS_MAX || label.tags.iter().any(|it| too_long(it)) {
        return Err(Error::invalid(format!(
            "`tags` has more than {TAGS_MAX} entries, or one of more than {NAME_CHARS_MAX} characters"
        ))
        .hint("use fewer or shorter tags"));
    }
    Ok(())
}

fn find(tx: &dyn ReadTx, height: Option<u64>) -> Result<CheckpointRow> {
    let mut row = tx.checkpoint_at(u64::MAX >> 1)?;
    while let Some(it) = &row
        && height.is_some_and(|height| it.height > height)
    {
        // Two checkpoints never cover the same number of events.
        row = match it.seq {
            0 => None,
            seq => tx.checkpoint_at(seq - 1)?,
        };
    }
    let found = row.filter(|it| height.is_none_or(|height| it.height == height));
    found.ok_or_else(|| match height {
        Some(height) => Error::not_found("checkpoint", height),
        None => {
            Error::not_found("checkpoint", "newest").hint("sign one: `kenning audit checkpoint`")
        }
    })
}

/// What a checkpoint is called: the event about it comes next in the log.
fn label_of(tx: &dyn ReadTx, row: &CheckpointRow) -> Result<CheckpointLabel> {
    let next = tx.events_after(row.seq, 1)?.pop();
    let next = next.filter(|it| it.kind == CHECKPOINT_CREATED);
    let data = next.map(|it| event::data(&it)).unwrap_or_default();
    let tags = data["tags"].as_array().into_iter().flatten();
    Ok(CheckpointLabel {
        name: data["name"].as_str().map(str::to_owned),
        tags: tags.filter_map(Value::as_str).map(str::to_owned).collect(),
        is_automatic: data["automatic"] == true,
    })
}

fn kept(tx: &dyn ReadTx, height: u64) -> Result<Vec<Kept>> {
    let Some(Raw(bytes)) = COSIGNATURES.get(tx, &key_of(height))? else {
        return Ok(Vec::new());
    };
    let bad = || {
        Error::corrupt(format!(
            "the cosignatures of checkpoint {height} are malformed"
        ))
    };
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| bad())?;
    let list = value.as_array().ok_or_else(bad)?.iter();
    list.map(|row| {
        Some(Kept {
            did: row["did"].as_str()?.to_owned(),
            line: row["line"].as_str()?.to_owned(),
        })
    })
    .collect::<Option<_>>()
    .ok_or_else(bad)
}

fn key_of(height: u64) -> String {
    format!("{height:020}")
}

/// The note of a checkpoint, signed by this node, and by those who countersigned it.
fn signed_note(tx: &dyn ReadTx, row: &CheckpointRow, signer: &Signer) -> Result<Note> {
    let mut note = unsigned_note(row)?;
    if row.author == signer.did().as_str() {
        note.sign(signer)?;
    }
    for it in kept(tx, row.height)? {
        note.add_line(&it.line)?;
    }
    Ok(note)
}

fn unsigned_note(row: &CheckpointRow) -> Result<Note> {
    let origin = Origin::from_bytes(&row.origin).ok_or_else(|| {
        Error::invalid(format!(
            "checkpoint {} is of a log without an id",
            row.height
        ))
        .hint("write something with this program, and sign a new one")
    })?;
    Ok(Note::new(&origin, row.seq, row.event_root))
}

fn cosign(tx: &mut Tx<'_>, row: &CheckpointRow, line: &str, key: &Did) -> Result<()> {
    let bad = |what: &str| {
        Error::invalid(format!(
            "the cosignature of checkpoint {}: {what}",
            row.height
        ))
        .hint("give the line that a witness answered for this checkpoint, and its public key")
    };
    if key.as_str() == row.author {
        return Err(bad("its key is the one that signed the checkpoint itself"));
    }
    let mut note = unsigned_note(row)?;
    note.add_line(line)?;
    let public = key.public_key().ok_or_else(|| bad("its key is none"))?;
    let at_s = match note.vouched_by(&public) {
        Some(Vouched::Cosigned(at)) => Some(at),
        Some(Vouched::Signed) => None,
        None => {
            return Err(bad(
                "the signature is not of this key, or of another checkpoint",
            ));
        }
    };
    let mut list = kept(&**tx, row.height)?;
    if list.iter().any(|it| it.did == key.as_str()) {
        return Ok(());
    }
    if list.len() == COSIGNATURES_MAX {
        return Err(bad(&format!("it has {COSIGNATURES_MAX} already")));
    }
    list.push(Kept {
        did: key.to_string(),
        line: line.to_owned(),
    });
    let rows: Vec<Value> = list
        .iter()
        .map(|row| json!({ "did": row.did, "line": row.line }))
        .collect();
    let list = Raw(Value::from(rows).to_string().into_bytes());
    COSIGNATURES.set(tx, &key_of(row.height), &list)?;
    let data = json!({ "height": row.height, "validator": key.as_str(), "signedAt": at_s });
    tx.record(CHECKPOINT_COSIGNED, data).map(drop)
}

fn view(
    tx: &dyn ReadTx,
    row: CheckpointRow,
    label: CheckpointLabel,
    at_ms: u64,
    method: &str,
) -> Result<CheckpointView> {
    let mut validators = vec![Validator {
        did: shown_did(&row.author, method),
        name: None,
        at_s: None,
    }];
    for it in kept(tx, row.height)? {
        let mut note = unsigned_note(&row)?;
        note.add_line(&it.line)?;
        let key = it.did.parse::<Did>().ok().and_then(|it| it.public_key());
        // What does not verify does not count, whoever put it there.
        let Some(vouched) = key.and_then(|key| note.vouched_by(&key)) else {
            continue;
        };
        validators.push(Validator {
            did: shown_did(&it.did, method),
            name: note.names().next().map(str::to_owned),
            at_s: match vouched {
                Vouched::Cosigned(at) => Some(at),
                Vouched::Signed => None,
            },
        });
    }
    let previous = match row.seq {
        0 => None,
        seq => tx.checkpoint_at(seq - 1)?,
    };
    Ok(CheckpointView {
        validators,
        previous: previous.map(|previous| (previous.height, previous.seq)),
        row,
        label,
        at_ms,
    })
}

impl CheckpointView {
    /// Events since the checkpoint before it, or since the beginning.
    pub fn n_new(&self) -> u64 {
        self.row.seq - self.previous.map_or(0, |it| it.1)
    }

    /// As JSON.
    pub fn to_json(&self) -> Value {
        let validators: Vec<Value> = self
            .validators
            .iter()
            .map(|validator| json!({ "did": validator.did, "name": validator.name, "signedAt": validator.at_s }))
            .collect();
        json!({
            "height": self.row.height, "size": self.row.seq, "timestamp": self.timestamp(),
            "eventRoot": self.row.event_root.to_string(),
            "stateRoot": self.row.state_root.to_string(),
            "validatorCount": validators.len(), "validators": validators,
            "name": self.label.name, "tags": self.label.tags, "automatic": self.label.is_automatic,
            "eventsSincePrevious": self.n_new(),
        })
    }

    /// When it was signed.
    pub fn timestamp(&self) -> String {
        timestamp(self.at_ms)
    }
}
