//! Proofs and exports that can be checked without the store: by a file and a public key.

use crate::events::{checkpoint_json, parse_checkpoint, view};
use crate::moments::parse_hlc;
use crate::{Caller, Kernel, Scope};
use kenning_audit::note::{Note, Vouched, parse_verifier_key};
use kenning_audit::{CheckpointLabel, Inclusion, Origin, Report, Tx, Verify, event};
use kenning_core::{Did, Error, Hash, Result, Space};
use kenning_store::{CheckpointRow, EventRow, SealedData, canonical_json, parse_json_once};
use kenning_text::hex;
use serde_json::{Map, Value, json};
use std::io::BufRead;

/// The longest line of an export.
const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Whether a checkpoint is signed where none covers an event.
#[derive(Clone, Copy)]
enum Sign {
    IfNeeded,
    Never,
}

/// What is known of a file that was checked.
#[derive(Debug)]
pub struct CheckedFile {
    /// Events, authors and faults.
    pub report: Report,
    /// Checkpoints in the file.
    pub n_checkpoints: usize,
    /// How many events the newest of them covers.
    pub covered: u64,
}

impl Kernel {
    /// Proves that an event, by its place or its id, is in the log as a signed checkpoint says it was. The
    /// answer holds the event, the checkpoint and the path: see [`check_proof`]. Where no checkpoint covers
    /// the event, one is signed.
    pub fn prove_event(&self, caller: &Caller, event: &str) -> Result<Value> {
        self.prove_by_checkpoint(caller, event, Sign::IfNeeded)
    }

    /// The same, for a caller who must not change anything: where no checkpoint covers the event, that is a
    /// conflict.
    pub fn prove_covered_event(&self, caller: &Caller, event: &str) -> Result<Value> {
        self.prove_by_checkpoint(caller, event, Sign::Never)
    }

    fn prove_by_checkpoint(&self, caller: &Caller, event: &str, sign: Sign) -> Result<Value> {
        caller.principal.require(Scope::Read)?;
        let space = caller.principal.space.clone();
        let named = event.to_owned();
        let seq = self
            .log
            .read(&space, |tx| crate::events::seq_of(tx, &named))?;
        let newest = self
            .log
            .read(&space, |tx| tx.checkpoint_at(u64::MAX >> 1))?;
        let checkpoint = match (newest.filter(|it| it.seq >= seq), sign) {
            (Some(newest), _) => newest,
            (None, Sign::IfNeeded) => {
                self.may_write(caller)?;
                let sign = |tx: &mut Tx<'_>| tx.record_checkpoint(&CheckpointLabel::default());
                self.with_wait_limit(caller.waited, || self.log.write(&space, sign))?
            }
            (None, Sign::Never) => {
                return Err(Error::conflict(format!(
                    "no signed checkpoint covers event {seq} yet"
                ))
                .hint("sign one first: `kg_audit_checkpoint`"));
            }
        };
        let (row, proof) = self.log.read(&space, |tx| {
            let row = tx.events_after(seq - 1, 1)?.pop();
            let row = row.ok_or_else(|| Error::corrupt(format!("event {seq} is missing")))?;
            Ok((row, kenning_audit::inclusion(tx, seq, checkpoint.seq)?))
        })?;
        let path: Vec<String> = proof.path.iter().map(ToString::to_string).collect();
        let mut bundle = json!({
            "proof": "inclusion", "event": proof.event.to_string(), "leafIndex": proof.index,
            "treeSize": proof.size, "eventRoot": proof.root.to_string(), "path": path,
            "content": view(&row).json, "checkpoint": checkpoint_json(&checkpoint),
        });
        if let Ok(note) = self.checkpoint_note(caller, Some(checkpoint.height)) {
            bundle["note"] = note.to_signed_text().into();
        }
        Ok(bundle)
    }

    /// The last line of an export that can be checked elsewhere: a checkpoint that covers all events
    /// before it, and how many those are.
    pub fn export_seal(&self, caller: &Caller) -> Result<(u64, Value)> {
        let signed = self.checkpoint_of_news(caller, CheckpointLabel::default())?;
        let mut seal = json!({ "checkpoint": checkpoint_json(&signed.row) });
        if let Ok(note) = self.checkpoint_note(caller, Some(signed.row.height)) {
            seal["note"] = note.to_signed_text().into();
        }
        Ok((signed.row.seq, seal))
    }
}

/// Reads a public key: a DID, 64 hexadecimal digits, or the key of a note.
pub fn parse_public_key(text: &str) -> Result<Did> {
    let did = text.trim().parse::<Did>().ok();
    let digits = || Hash::from_hex(text.trim()).map(|it| Did::of_key(&it.0));
    let note = || parse_verifier_key(text).map(|it| Did::of_key(&it.2));
    let found = did
        .or_else(digits)
        .or_else(note)
        .and_then(|it| it.public_key());
    let key = found.ok_or_else(|| {
        Error::invalid(format!("`{text}` is not a public key")).hint(
            "give a DID (`did:key:z6Mk…`), 64 hexadecimal digits, or `name+id+base64` of a note",
        )
    })?;
    Ok(Did::of_key(&key))
}

/// Checks what [`Kernel::prove_event`] gave, with nothing but a key: that the event is what its author
/// signed, that this key signed the checkpoint, and that the event is in the log of that checkpoint. Gives
/// the place and the kind of the event, and the size of the log.
pub fn check_proof(text: &str, key: &Did) -> Result<(u64, String, u64)> {
    let bad = |what: &str| Error::corrupt(format!("the proof does not hold: {what}"));
    let malformed = |field: &str| {
        Error::invalid(format!(
            "the proof is malformed: `{field}` is missing or wrong"
        ))
        .hint("give a file that holds what `kenning audit prove EVENT` printed")
    };
    let proof = parse_json_once(text).map_err(|error| {
        Error::invalid(format!("the proof is not JSON, or malformed: {error}"))
            .hint("give a file that holds what `kenning audit prove EVENT` printed")
    })?;
    // One hash has one spelling.
    let hash = |value: &Value| {
        let text = value.as_str()?;
        Hash::from_hex(text).filter(|it| it.to_string() == text)
    };
    let row = read_event(&proof["content"])?;
    event::check(&row).map_err(|error| bad(&error.message))?;
    let path = proof["path"].as_array().ok_or_else(|| malformed("path"))?;
    let path: Option<Vec<Hash>> = path.iter().map(hash).collect();
    let inclusion = Inclusion {
        event: hash(&proof["event"]).ok_or_else(|| malformed("event"))?,
        index: proof["leafIndex"]
            .as_u64()
            .ok_or_else(|| malformed("leafIndex"))?,
        size: proof["treeSize"]
            .as_u64()
            .ok_or_else(|| malformed("treeSize"))?,
        root: hash(&proof["eventRoot"]).ok_or_else(|| malformed("eventRoot"))?,
        path: path.ok_or_else(|| malformed("path"))?,
    };
    if proof["proof"] != "inclusion" {
        return Err(malformed("proof"));
    }
    if inclusion.event != row.id {
        return Err(bad("it is about another event than the one that it shows"));
    }
    if inclusion.index.checked_add(1) != Some(row.seq) {
        return Err(bad("the event has another place than the proof says"));
    }
    let fields = proof.as_object().ok_or_else(|| malformed("{"))?;
    let seal = fields
        .iter()
        .filter(|it| ["checkpoint", "note"].contains(&it.0.as_str()));
    let seal: Map<String, Value> = seal.map(|seal| (seal.0.clone(), seal.1.clone())).collect();
    if fields.len() != 7 + seal.len() {
        return Err(malformed("{"));
    }
    let checkpoint = read_seal(&Value::Object(seal))?;
    if row.version > 1 && row.sealed.origin != checkpoint.origin {
        return Err(bad("the event and the checkpoint are of different logs"));
    }
    if !is_vouched(&checkpoint, proof["note"].as_str(), key)? {
        return Err(bad(&format!("{key} has not signed the checkpoint")));
    }
    if !inclusion.holds(checkpoint.seq, &checkpoint.event_root) {
        return Err(bad(
            "the path does not lead from the event to the checkpoint's root",
        ));
    }
    Ok((row.seq, row.kind, checkpoint.seq))
}

/// Whether a key signed a checkpoint, as its author or in its note.
fn is_vouched(row: &CheckpointRow, note: Option<&str>, key: &Did) -> Result<bool> {
    // Whoever read the checkpoint has checked its own signature.
    if row.author == key.as_str() {
        return Ok(true);
    }
    match note {
        Some(note) => is_note_of(row, note, key),
        None => Ok(false),
    }
}

/// Checks an export with nothing but keys: every id and signature is derived again, and so are the Merkle
/// tree and the state, which must be what the checkpoints in the file say. The file is read twice.
pub fn check_export(
    open: &dyn Fn() -> Result<Box<dyn BufRead>>,
    keys: &[Did],
) -> Result<CheckedFile> {
    let mut checkpoints = Vec::new();
    let mut first = None;
    each_line(&mut *open()?, &mut |n, line| {
        if is_seal(line) {
            checkpoints.push(read_seal(&parse_line(n, line)?)?);
        } else if first.is_none() {
            first = Some(read_event(&parse_line(n, line)?)?);
        }
        Ok(())
    })?;
    let Some(first) = first else {
        return Err(Error::invalid("the export holds no event")
            .hint("give a file that holds what `kenning audit export --checkpoint` printed"));
    };
    if first.seq != 1 {
        return Err(Error::invalid(format!(
            "the export begins with event {}: a part cannot be checked as a whole",
            first.seq
        ))
        .hint("export all of it: `kenning audit export --checkpoint`"));
    }
    checkpoints.sort_by_key(|it| it.seq);
    // The space is part of what is signed, so the first event says it.
    let origin = Origin::from_bytes(&first.sealed.origin);
    let space = origin.and_then(|it| it.space.parse::<Space>().ok());
    let space = space.unwrap_or_default();
    let asked = Verify {
        authors: keys,
        ..Verify::of(&space)
    };
    let mut input = open()?;
    let report = kenning_audit::verify_events(&asked, &checkpoints, &mut |visit| {
        each_line(&mut *input, &mut |n, line| {
            if !is_seal(line) {
                visit(read_event(&parse_line(n, line)?)?);
            }
            Ok(())
        })
    })?;
    Ok(CheckedFile {
        n_checkpoints: checkpoints.len(),
        covered: checkpoints.last().map_or(0, |it| it.seq),
        report,
    })
}

/// Whether a line is a checkpoint and not an event.
fn is_seal(line: &str) -> bool {
    line.trim_start().starts_with("{\"checkpoint\"")
}

fn parse_line(n: u64, line: &str) -> Result<Value> {
    parse_json_once(line)
        .map_err(|error| Error::invalid(format!("line {n} of the export is not JSON: {error}")))
}

fn each_line(
    input: &mut dyn BufRead,
    visit: &mut dyn FnMut(u64, &str) -> Result<()>,
) -> Result<()> {
    let mut line = Vec::new();
    for n in 1.. {
        line.clear();
        let limit = LINE_BYTES_MAX + 1;
        let mut limited = std::io::Read::take(&mut *input, limit);
        let read = limited.read_until(b'\n', &mut line);
        let length = read.map_err(|cause| {
            Error::unavailable("the export cannot be read to its end").because(cause)
        })?;
        if length == 0 {
            return Ok(());
        }
        if line.len() as u64 > LINE_BYTES_MAX {
            return Err(Error::too_large(format!(
                "line {n} of the export has more than {LINE_BYTES_MAX} bytes"
            )));
        }
        let text = std::str::from_utf8(&line)
            .map_err(|_| Error::invalid(format!("line {n} of the export is not UTF-8")))?;
        if !text.trim().is_empty() {
            visit(n, text)?;
        }
    }
    Ok(())
}

/// Reads an event of an export. What it says beside what is signed must follow from that, so that no bit
/// of it can be another one.
fn read_event(value: &Value) -> Result<EventRow> {
    let row = parse_event(value)?;
    match view(&row).json == *value {
        true => Ok(row),
        false => Err(Error::corrupt(format!(
            "event {} has fields that do not follow from what is signed",
            row.seq
        ))),
    }
}

fn read_checkpoint(value: &Value) -> Result<CheckpointRow> {
    let row = parse_checkpoint(value)?;
    if !kenning_audit::is_checkpoint_signed(&row) {
        return Err(Error::corrupt(format!(
            "checkpoint {}: the signature does not match",
            row.height
        )));
    }
    match checkpoint_json(&row) == *value {
        true => Ok(row),
        false => Err(Error::corrupt(format!(
            "checkpoint {} has fields that do not follow from what is signed",
            row.height
        ))),
    }
}

/// Reads the line of an export that holds a checkpoint. Its note must be of that checkpoint, and signed by
/// its author.
fn read_seal(value: &Value) -> Result<CheckpointRow> {
    let row = read_checkpoint(&value["checkpoint"])?;
    let bad = |what: &str| Error::corrupt(format!("checkpoint {}: {what}", row.height));
    let n_fields = value.as_object().map_or(0, |it| it.len());
    let Some(note) = value.get("note") else {
        return match n_fields {
            1 => Ok(row),
            _ => Err(bad("its line has fields that do not belong there")),
        };
    };
    let text = note.as_str().ok_or_else(|| bad("its note is not a text"))?;
    let author = row.author.parse::<Did>();
    let author = author.map_err(|_| bad("its author is not a key"))?;
    let is_own = n_fields == 2
        && Note::parse(text)?.to_signed_text() == text
        && is_note_of(&row, text, &author)?;
    match is_own {
        true => Ok(row),
        false => Err(bad(
            "its note is not of it, or its author has not signed it",
        )),
    }
}

/// Whether a note is of this checkpoint, and this key signed it.
fn is_note_of(row: &CheckpointRow, note: &str, key: &Did) -> Result<bool> {
    let note = Note::parse(note)?;
    let origin = Origin::from_bytes(&row.origin);
    let is_same = origin.is_some_and(|it| {
        let body = Note::new(&it, row.seq, row.event_root).text();
        note.text() == body
    });
    let vouched = key.public_key().and_then(|it| note.vouched_by(&it));
    Ok(is_same && matches!(vouched, Some(Vouched::Signed | Vouched::Cosigned(_))))
}

/// Reads what an export says of an event. What is signed is put together again from it.
pub(crate) fn parse_event(value: &Value) -> Result<EventRow> {
    let bad = |field: &str| {
        Error::invalid(format!(
            "an event is malformed: `{field}` is missing or wrong"
        ))
        .hint("give what `kenning audit export` printed")
    };
    let text = |field: &str| value[field].as_str().ok_or_else(|| bad(field));
    let hash = |field: &str| Hash::from_hex(text(field)?).ok_or_else(|| bad(field));
    let bytes = |field: &str| hex::decode(text(field)?).ok_or_else(|| bad(field));
    let version = value["version"]
        .as_u64()
        .and_then(|it| u8::try_from(it).ok());
    let version = version.ok_or_else(|| bad("version"))?;
    let parents = value["parents"].as_array().ok_or_else(|| bad("parents"))?;
    let parents: Option<Vec<Hash>> = parents
        .iter()
        .map(|it| it.as_str().and_then(Hash::from_hex))
        .collect();
    let (changes, data) = (&value["changes"], &value["data"]);
    let is_erased = value["erased"] == true;
    let (payload, sealed) = if version == 1 {
        let payload = json!({ "changes": changes, "data": data });
        (payload, SealedData::default())
    } else {
        let origin = Origin::from_json(&value["origin"]).ok_or_else(|| bad("origin"))?;
        let agent = value["agent"].as_str().unwrap_or_default();
        let sealed = SealedData {
            origin: origin.to_bytes(),
            agent: agent.to_owned(),
            data: match is_erased {
                true => Vec::new(),
                false => canonical_json(data).into_bytes(),
            },
            salt: bytes("salt")?,
            commitment: bytes("commitment")?,
        };
        (changes.clone(), sealed)
    };
    Ok(EventRow {
        seq: value["seq"].as_u64().ok_or_else(|| bad("seq"))?,
        version,
        id: hash("id")?,
        parents: parents.ok_or_else(|| bad("parents"))?,
        hlc: parse_hlc(text("hlc")?).ok_or_else(|| bad("hlc"))?,
        author: text("author")?.to_owned(),
        kind: text("kind")?.to_owned(),
        payload: canonical_json(&payload).into_bytes(),
        signature: bytes("signature")?,
        sealed,
    })
}
