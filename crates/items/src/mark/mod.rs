//! The signature line of an item.
//!
//! Ours is `kenning:signed:<time>:<sha256>:<did:key>:<signature>`, in a comment on the first line, or
//! after the line that names the interpreter, or after the frontmatter. The hash is that of the
//! [`canonical`] form, which covers every byte of the item except the line itself, and also type, id,
//! version, scope and category, so that a signed file cannot be passed off as another. The signature
//! also covers the time and the signer.
//!
//! There is exactly one spelling of a line: [`read`] writes what it has read again and compares, so
//! any changed bit in the line breaks either the format or the signature. For the same reason the
//! line ends as the rest of the text does.
//!
//! The line of the original, a hash that anybody can compute, is read by [`original`].

pub mod original;
mod place;

use crate::kind::{Category, ItemId, ItemType, Scope};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signature, VerifyingKey};
use kenning_core::{Code, Did, Error};
use kenning_text::hex;
use kenning_text::json::{self, Spelling};
use serde_json::json;
use std::fmt;

pub use original::{Compared, Validated};
pub use place::Style;

const WORD: &str = "kenning:signed:";
/// Prefix of the canonical form, so that nothing else that a key signs can be taken for one.
const FORM: &str = "kenning-item-v1\n";
/// Prefix of what is signed.
const STATEMENT: &str = "kenning-item-mark-v1";
const TIME_BYTES: usize = 20;
/// Longer than any valid line; longer ones are not read.
const LINE_BYTES_MAX: usize = 512;

/// Our line, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When it was signed: `2026-01-02T03:04:05Z`.
    pub at: String,
    /// The SHA-256 of the canonical form, in hexadecimal.
    pub sha256: String,
    /// Who signed.
    pub signer: Did,
    /// The Ed25519 signature of the statement.
    pub signature: [u8; 64],
}

/// What is at the place of a signature line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Our line.
    Signed(Mark),
    /// The original's line: validated, but not signed.
    Validated(Validated),
    /// A line that begins like ours or the original's but is malformed.
    Broken(&'static str),
}

/// One file of an item, without the signature line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileHash {
    /// The name of a single file; in a directory the path below it.
    pub path: String,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
}

/// What a signature covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// What the item is.
    pub item_type: ItemType,
    /// Its id.
    pub id: ItemId,
    /// Its version.
    pub version: String,
    /// Where it is kept.
    pub scope: Scope,
    /// The folders above it.
    pub category: Category,
    /// All its files.
    pub files: Vec<FileHash>,
}

/// Why a signature does not hold. Both hashes are always present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkFault {
    /// What is wrong.
    pub kind: MarkFaultKind,
    /// The hash in the line.
    pub stored: String,
    /// The hash of what was found.
    pub computed: String,
}

/// What is wrong with a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkFaultKind {
    /// The item is not what was signed.
    Changed,
    /// The signature is not the signer's.
    Forged,
}

impl fmt::Display for MarkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            MarkFaultKind::Changed => "the content has been modified since it was signed",
            MarkFaultKind::Forged => "the signature is not that of the named signer",
        };
        write!(
            f,
            "{what}: computed `{}`, stored `{}`",
            self.computed, self.stored
        )
    }
}

impl std::error::Error for MarkFault {}

impl From<MarkFault> for Error {
    fn from(fault: MarkFault) -> Self {
        Error::new(Code::Denied, fault.to_string())
            .hint("look at what changed, then sign it again with action `sign`")
    }
}

impl Subject {
    /// An item of one file. `name` is the file's name, `text` its text with or without a signature
    /// line.
    pub fn of_file(
        item_type: ItemType,
        id: ItemId,
        version: impl Into<String>,
        scope: Scope,
        category: Category,
        (name, text): (&str, &str),
    ) -> Self {
        let files = vec![hash_of_text(item_type, name, text)];
        Self {
            item_type,
            id,
            version: version.into(),
            scope,
            category,
            files,
        }
    }

    /// An item that is a directory. `marked` names the file with the signature line; only there the
    /// line is left out of the hash.
    pub fn of_directory<'a>(
        item_type: ItemType,
        id: ItemId,
        version: impl Into<String>,
        scope: Scope,
        category: Category,
        marked: &str,
        files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Self {
        let hash = |(path, bytes): (&str, &[u8])| match std::str::from_utf8(bytes) {
            Ok(text) if path == marked => hash_of_text(item_type, path, text),
            _ => FileHash {
                path: path.to_owned(),
                sha256: hex::sha256(bytes),
            },
        };
        Self {
            item_type,
            id,
            version: version.into(),
            scope,
            category,
            files: files.into_iter().map(hash).collect(),
        }
    }

    /// The SHA-256 of the canonical form: the item's integrity.
    pub fn sha256(&self) -> String {
        hex::sha256(&canonical(self))
    }
}

fn hash_of_text(item_type: ItemType, name: &str, text: &str) -> FileHash {
    let bare = match Style::of(item_type, name) {
        Some(style) => strip(text, style),
        None => text.to_owned(),
    };
    FileHash {
        path: name.to_owned(),
        sha256: hex::sha256(bare.as_bytes()),
    }
}

/// The bytes that are hashed: a versioned prefix and canonical JSON.
pub fn canonical(subject: &Subject) -> Vec<u8> {
    let mut files = subject.files.clone();
    files.sort_unstable();
    let files: Vec<_> = files
        .iter()
        .map(|file| json!({"path": file.path, "sha256": file.sha256}))
        .collect();
    let form = json!({
        "category": subject.category.as_str(),
        "files": files,
        "id": subject.id.as_str(),
        "item_type": subject.item_type.word(),
        "scope": subject.scope.word(),
        "version": subject.version,
    });
    let form = json::canonical(&form, Spelling::Ascii);
    format!("{FORM}{form}").into_bytes()
}

/// The bytes that are signed: the hash, the signer and the time.
fn statement(at: &str, sha256: &str, signer: &Did) -> Vec<u8> {
    format!("{STATEMENT}\n{at}\n{sha256}\n{signer}").into_bytes()
}

/// Signs. `sign` gets the bytes to sign and returns the Ed25519 signature of `signer`.
///
/// Refused if `at` is not a time of the form `2026-01-02T03:04:05Z`.
pub fn sign(
    subject: &Subject,
    at: &str,
    signer: &Did,
    sign: impl FnOnce(&[u8]) -> [u8; 64],
) -> Result<Mark, Error> {
    if !is_time(at) {
        return Err(
            Error::internal(format!("`{at}` is not a valid signature time"))
                .hint("write it as `2026-01-02T03:04:05Z`"),
        );
    }
    let sha256 = subject.sha256();
    let signature = sign(&statement(at, &sha256, signer));
    Ok(Mark {
        at: at.to_owned(),
        sha256,
        signer: signer.clone(),
        signature,
    })
}

/// Checks that the signer signed this subject. Whether to trust the signer is not decided here.
pub fn verify(subject: &Subject, mark: &Mark) -> Result<(), MarkFault> {
    let computed = subject.sha256();
    let fault = |kind| MarkFault {
        kind,
        stored: mark.sha256.clone(),
        computed: computed.clone(),
    };
    if computed != mark.sha256 {
        return Err(fault(MarkFaultKind::Changed));
    }
    let key = mark
        .signer
        .public_key()
        .and_then(|key| VerifyingKey::from_bytes(&key).ok())
        .ok_or_else(|| fault(MarkFaultKind::Forged))?;
    let message = statement(&mark.at, &mark.sha256, &mark.signer);
    // Strict verification: one message of one key has one signature.
    key.verify_strict(&message, &Signature::from_bytes(&mark.signature))
        .map_err(|_| fault(MarkFaultKind::Forged))
}

/// The signature line, if there is something like one at its place.
pub fn read(text: &str, style: Style) -> Option<Line> {
    marked(text, style).map(|it| it.1)
}

/// The first comment that looks like a signature line, parsed.
fn marked(text: &str, style: Style) -> Option<(place::Line<'_>, Line)> {
    place::lines(text, style).find_map(|line| {
        let found = read_line(&line)?;
        Some((line, found))
    })
}

fn read_line(line: &place::Line<'_>) -> Option<Line> {
    let content = line.content;
    if let Some(read) = original::read(content) {
        return Some(read.map_or(
            Line::Broken("its hash is not 64 hexadecimal digits"),
            Line::Validated,
        ));
    }
    if !content.starts_with(WORD) {
        return None;
    }
    if !line.is_well_ended {
        return Some(Line::Broken("its line ending differs from the others"));
    }
    Some(match Mark::parse(content) {
        Some(mark) => Line::Signed(mark),
        None => Line::Broken("it is not `kenning:signed:<time>:<sha256>:<did:key>:<signature>`"),
    })
}

/// Our signature, if there is a valid line.
pub fn find(text: &str, style: Style) -> Option<Mark> {
    match read(text, style)? {
        Line::Signed(mark) => Some(mark),
        Line::Validated(_) | Line::Broken(_) => None,
    }
}

/// The text without a signature line, ours, the original's or a broken one; otherwise unchanged.
pub fn strip(text: &str, style: Style) -> String {
    match marked(text, style) {
        Some((line, _)) => {
            let mut out = text[..line.start].to_owned();
            out.push_str(&text[line.end..]);
            out
        }
        None => text.to_owned(),
    }
}

/// The text with this signature, in place of any other.
pub fn embed(text: &str, style: Style, mark: &Mark) -> String {
    place::insert(&strip(text, style), style, &mark.to_string())
}

impl Mark {
    fn parse(content: &str) -> Option<Self> {
        if content.len() > LINE_BYTES_MAX {
            return None;
        }
        let rest = content.strip_prefix(WORD)?;
        let (at, rest) = rest.split_at_checked(TIME_BYTES)?;
        let (sha256, rest) = rest.strip_prefix(':')?.split_once(':')?;
        let (signer, signature) = rest.rsplit_once(':')?;
        let mark = Self {
            at: at.to_owned(),
            sha256: sha256.to_owned(),
            signer: signer.parse().ok()?,
            signature: URL_SAFE_NO_PAD.decode(signature).ok()?.try_into().ok()?,
        };
        let is_good = is_time(at) && hex::is_sha256(sha256) && signer.starts_with("did:key:");
        (is_good && mark.to_string() == content).then_some(mark)
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // From the key, not from the text: so there is one spelling of a signer.
        let signer = self.signer.public_key().map(|key| Did::of_key(&key));
        let signer = signer.as_ref().unwrap_or(&self.signer);
        let signature = URL_SAFE_NO_PAD.encode(self.signature);
        write!(f, "{WORD}{}:{}:{signer}:{signature}", self.at, self.sha256)
    }
}

/// Whether a text is `YYYY-MM-DDTHH:MM:SSZ`.
pub(crate) fn is_time(text: &str) -> bool {
    const SHAPE: &[u8] = b"dddd-dd-ddTdd:dd:ddZ";
    let fits = |(byte, shape): (u8, &u8)| match shape {
        b'd' => byte.is_ascii_digit(),
        other => byte == *other,
    };
    text.len() == SHAPE.len() && text.bytes().zip(SHAPE).all(fits)
}
