//! Checkpoints in the form that transparency logs and their witnesses exchange: C2SP signed notes
//! (`signed-note`), with the body of `tlog-checkpoint` and the cosignatures of `tlog-cosignature` (v1).
//!
//! The body is three lines: the origin of the log, the number of events, the Merkle root in base 64. The
//! log signs the body; a witness signs a line `cosignature/v1`, a line with the time, and the body.

use crate::key::is_text_signed_by;
use crate::{Origin, Signer};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kenning_core::{Did, Error, Hash, Result};
use sha2::{Digest as _, Sha256};

/// The longest note that is read.
pub const NOTE_BYTES_MAX: usize = 64 * 1024;

/// The most signatures that a note may have.
const SIGNATURES_MAX: usize = 100;

/// What stands before a signature.
const DASH: &str = "\u{2014} ";

/// The type of the signature: what its key id is computed with, and what was signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureType {
    /// Ed25519 over the body.
    Ed25519 = 1,
    /// Ed25519 over the body and a time.
    Cosignature = 4,
}

/// What a key says of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vouched {
    /// It signed the body.
    Signed,
    /// It signed the body as the newest it has seen, at this time: seconds since 1970.
    Cosigned(u64),
}

/// A checkpoint with its signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Which log.
    pub origin: String,
    /// Number of events.
    pub size: u64,
    /// Merkle root over the event ids.
    pub root: Hash,
    /// Lines that say more, which we do not write.
    extensions: Vec<String>,
    signatures: Vec<Line>,
}

/// One signature.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    name: String,
    key_id: [u8; 4],
    bytes: Vec<u8>,
}

/// The first line of a log's notes, and the name of its key.
pub fn origin_line(origin: &Origin) -> String {
    format!("kenning/{}/{}", origin.log, origin.space)
}

/// The id of a key under a name.
pub fn key_id(name: &str, kind: SignatureType, key: &[u8; 32]) -> [u8; 4] {
    let hash: [u8; 32] = Sha256::new()
        .chain_update(name)
        .chain_update([b'\n', kind as u8])
        .chain_update(key)
        .finalize()
        .into();
    [hash[0], hash[1], hash[2], hash[3]]
}

/// A public key as tools for notes take it: `name+id+base64`.
pub fn verifier_key(name: &str, kind: SignatureType, key: &[u8; 32]) -> String {
    let id = kenning_text::hex::encode(&key_id(name, kind, key));
    let bytes = [&[kind as u8][..], key].concat();
    format!("{name}+{id}+{}", STANDARD.encode(bytes))
}

/// Reads what [`verifier_key`] wrote: the name, the type, the key.
pub fn parse_verifier_key(text: &str) -> Option<(String, SignatureType, [u8; 32])> {
    let mut parts = text.trim().splitn(3, '+');
    let (name, id, bytes) = (parts.next()?, parts.next()?, parts.next()?);
    let bytes = STANDARD.decode(bytes).ok()?;
    let (kind, key) = bytes.split_first()?;
    let kind = match kind {
        1 => SignatureType::Ed25519,
        4 => SignatureType::Cosignature,
        _ => return None,
    };
    let key = key.try_into().ok()?;
    let is_same = is_name(name) && kenning_text::hex::encode(&key_id(name, kind, &key)) == id;
    is_same.then(|| (name.to_owned(), kind, key))
}

/// The line with which a witness countersigns a body, at a time in seconds since 1970.
pub fn cosign(signer: &Signer, name: &str, body: &str, at_s: u64) -> Result<String> {
    if !is_name(name) {
        return Err(bad_name(name));
    }
    let key = public_key(signer)?;
    let signature = signer.sign_text(cosigned_text(body, at_s).as_bytes());
    let line = Line {
        name: name.to_owned(),
        key_id: key_id(name, SignatureType::Cosignature, &key),
        bytes: [&at_s.to_be_bytes()[..], &signature].concat(),
    };
    Ok(line.to_text())
}

fn public_key(signer: &Signer) -> Result<[u8; 32]> {
    let key = signer.did().public_key();
    key.ok_or_else(|| Error::internal("the key of this node has no public part"))
}

fn cosigned_text(body: &str, at_s: u64) -> String {
    format!("cosignature/v1\ntime {at_s}\n{body}")
}

fn is_name(name: &str) -> bool {
    let is_bad = |it: char| it.is_whitespace() || it == '+' || it.is_control();
    !name.is_empty() && name.len() <= 255 && !name.contains(is_bad)
}

fn bad_name(name: &str) -> Error {
    Error::invalid(format!("`{name}` is not the name of a key"))
        .hint("use 1 to 255 bytes without spaces and `+`: `witness.example.com/w1`")
}

fn malformed(what: &str) -> Error {
    Error::invalid(format!("the note is malformed: {what}")).hint(
        "a note is three lines (origin, size, root in base 64), an empty line, and lines of signatures",
    )
}

impl Line {
    fn to_text(&self) -> String {
        let bytes = [&self.key_id[..], &self.bytes].concat();
        format!("{DASH}{} {}", self.name, STANDARD.encode(bytes))
    }

    fn parse(line: &str) -> Option<Self> {
        let (name, bytes) = line.strip_prefix(DASH)?.split_once(' ')?;
        let bytes = STANDARD.decode(bytes).ok()?;
        let (id, rest) = bytes.split_at_checked(4)?;
        let is_good = is_name(name) && !rest.is_empty();
        is_good.then(|| Self {
            name: name.to_owned(),
            key_id: [id[0], id[1], id[2], id[3]],
            bytes: rest.to_vec(),
        })
    }

    /// What this key says by it of the body; nothing if it is not of this key, or not of this body.
    fn vouched(&self, body: &str, key: &[u8; 32]) -> Option<Vouched> {
        let is_of = |kind| key_id(&self.name, kind, key) == self.key_id;
        let did = Did::of_key(key);
        if is_of(SignatureType::Ed25519) {
            let is_signed = is_text_signed_by(&did, body.as_bytes(), &self.bytes);
            return is_signed.then_some(Vouched::Signed);
        }
        if !is_of(SignatureType::Cosignature) {
            return None;
        }
        let (time, signature) = self.bytes.split_at_checked(8)?;
        let at_s = u64::from_be_bytes(time.try_into().ok()?);
        let text = cosigned_text(body, at_s);
        let is_signed =
            at_s <= i64::MAX as u64 && is_text_signed_by(&did, text.as_bytes(), signature);
        is_signed.then_some(Vouched::Cosigned(at_s))
    }
}

impl Note {
    /// Of a log with so many events and this root. Nobody has signed it yet.
    pub fn new(origin: &Origin, size: u64, root: Hash) -> Self {
        Self {
            origin: origin_line(origin),
            size,
            root,
            extensions: Vec::new(),
            signatures: Vec::new(),
        }
    }

    /// The body, which is what is signed.
    pub fn text(&self) -> String {
        let root = STANDARD.encode(self.root.0);
        let mut text = format!("{}\n{}\n{root}\n", self.origin, self.size);
        for line in &self.extensions {
            text += line;
            text.push('\n');
        }
        text
    }

    /// Signs it as the log.
    pub fn sign(&mut self, signer: &Signer) -> Result<()> {
        let key = public_key(signer)?;
        let line = Line {
            name: self.origin.clone(),
            key_id: key_id(&self.origin, SignatureType::Ed25519, &key),
            bytes: signer.sign_text(self.text().as_bytes()).to_vec(),
        };
        self.signatures.push(line);
        Ok(())
    }

    /// Adds a signature that somebody made elsewhere.
    pub fn add_line(&mut self, line: &str) -> Result<()> {
        let line =
            Line::parse(line.trim_end()).ok_or_else(|| malformed("a line of a signature"))?;
        if self.signatures.len() == SIGNATURES_MAX {
            return Err(malformed("it has too many signatures"));
        }
        self.signatures.push(line);
        Ok(())
    }

    /// What this key says of it.
    pub fn vouched_by(&self, key: &[u8; 32]) -> Option<Vouched> {
        let body = self.text();
        self.signatures.iter().find_map(|it| it.vouched(&body, key))
    }

    /// The names of those who signed it, as they call themselves.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.signatures.iter().map(|it| it.name.as_str())
    }

    /// The lines of those who signed it.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.signatures.iter().map(Line::to_text)
    }

    /// The whole note.
    pub fn to_signed_text(&self) -> String {
        let mut text = self.text();
        text.push('\n');
        for line in self.lines() {
            text += &line;
            text.push('\n');
        }
        text
    }

    /// Reads a note. Nothing of it is checked but its form.
    pub fn parse(text: &str) -> Result<Self> {
        if text.len() > NOTE_BYTES_MAX {
            return Err(malformed(&format!(
                "it has more than {NOTE_BYTES_MAX} bytes"
            )));
        }
        if text.contains(|it: char| it < ' ' && it != '\n') {
            return Err(malformed("it has a control character"));
        }
        let (body, signatures) = text
            .rsplit_once("\n\n")
            .ok_or_else(|| malformed("no empty line comes before its signatures"))?;
        let mut lines = body.split('\n');
        let mut line = |what: &str| {
            let line = lines.next().filter(|it| !it.is_empty());
            line.ok_or_else(|| malformed(what)).map(str::to_owned)
        };
        let origin = line("it has no origin")?;
        let size = line("it has no size")?;
        let is_plain =
            size.bytes().all(|it| it.is_ascii_digit()) && (size == "0" || !size.starts_with('0'));
        let size = size.parse().ok().filter(|_| is_plain);
        let size = size.ok_or_else(|| malformed("its size is not a number"))?;
        let root = STANDARD.decode(line("it has no root")?).ok();
        let root = root.and_then(|it| it.try_into().ok());
        let root = Hash(root.ok_or_else(|| malformed("its root is not 32 bytes in base 64"))?);
        let extensions: Vec<String> = lines.map(str::to_owned).collect();
        if extensions.iter().any(String::is_empty) {
            return Err(malformed("a line of its text is empty"));
        }
        let mut note = Self {
            origin,
            size,
            root,
            extensions,
            signatures: Vec::new(),
        };
        let signatures = signatures.strip_suffix('\n');
        let signatures = signatures.ok_or_else(|| malformed("its last line does not end"))?;
        for line in signatures.split('\n') {
            note.add_line(line)?;
        }
        Ok(note)
    }
}
