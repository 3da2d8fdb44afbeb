//! What is known of a thing: its name, when it last changed, and the hash of its contents.

use crate::json::Json;
use crate::rid::Rid;
use crate::time;
use kenning_core::{Error, Result};
use kenning_text::hex::sha256;

/// The state of a thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Its name.
    pub rid: Rid,
    /// When it changed, as it was written.
    pub timestamp: String,
    /// The hash of its contents in canonical form.
    pub sha256_hash: String,
}

impl Manifest {
    /// Of contents at a moment, in milliseconds since 1970.
    ///
    /// # Errors
    /// Invalid if the contents have no canonical form.
    pub fn of(rid: &Rid, contents: &Json, now_ms: u64) -> Result<Self> {
        Ok(Self {
            rid: rid.clone(),
            timestamp: time::written(now_ms),
            sha256_hash: hash_of(contents)?,
        })
    }

    /// Reads a manifest. Members beyond the three are part of what was signed and mean nothing here.
    ///
    /// # Errors
    /// Invalid if a member is missing or malformed.
    pub fn from_json(value: &Json) -> Result<Self> {
        let text = |name: &str| {
            let found = value.get(name).and_then(Json::as_str);
            found.ok_or_else(|| Error::invalid(format!("`manifest.{name}` is missing")))
        };
        let (timestamp, sha256_hash) = (text("timestamp")?, text("sha256_hash")?);
        if time::read(timestamp).is_none() {
            return Err(Error::invalid(
                "`manifest.timestamp` is not a time with a zone",
            ));
        }
        let is_hex = sha256_hash.bytes().all(|it| it.is_ascii_hexdigit());
        if !is_hex || !matches!(sha256_hash.len(), 16 | 64) {
            return Err(Error::invalid("`manifest.sha256_hash` is not a SHA-256"));
        }
        Ok(Self {
            rid: Rid::parse(text("rid")?)?,
            timestamp: timestamp.to_owned(),
            sha256_hash: sha256_hash.to_ascii_lowercase(),
        })
    }

    /// With three members: older nodes drop any other before they verify, which breaks the signature.
    pub fn to_json(&self) -> Json {
        Json::object([
            ("rid", Json::text(self.rid.as_str())),
            ("timestamp", Json::text(&self.timestamp)),
            ("sha256_hash", Json::text(&self.sha256_hash)),
        ])
    }

    /// When it changed, in microseconds since 1970.
    pub fn micros(&self) -> i64 {
        time::read(&self.timestamp).unwrap_or_default()
    }

    /// Whether it has only a part of the hash, as Octo's first nodes have.
    pub fn has_short_hash(&self) -> bool {
        self.sha256_hash.len() < 64
    }

    /// Whether these are the contents. Octo nodes have short hashes.
    pub fn is_of(&self, contents: &Json) -> bool {
        hash_of(contents).is_ok_and(|it| it.starts_with(&self.sha256_hash))
    }
}

/// The hash of contents in canonical form.
///
/// # Errors
/// Invalid if there is none.
pub fn hash_of(contents: &Json) -> Result<String> {
    Ok(sha256(contents.to_canonical()?.as_bytes()))
}

/// A manifest with its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// The manifest.
    pub manifest: Manifest,
    /// The contents.
    pub contents: Json,
}

impl Bundle {
    /// Of contents at a moment.
    ///
    /// # Errors
    /// Invalid if the contents have no canonical form.
    pub fn of(rid: &Rid, contents: Json, now_ms: u64) -> Result<Self> {
        let manifest = Manifest::of(rid, &contents, now_ms)?;
        Ok(Self { manifest, contents })
    }

    /// Reads a bundle.
    ///
    /// # Errors
    /// Invalid if a member is missing or malformed.
    pub fn from_json(value: &Json) -> Result<Self> {
        let part = |name: &str| {
            let found = value.get(name);
            found.ok_or_else(|| Error::invalid(format!("`bundle.{name}` is missing")))
        };
        let contents = part("contents")?;
        if contents.members().is_none() {
            return Err(Error::invalid("`bundle.contents` is not an object"));
        }
        Ok(Self {
            manifest: Manifest::from_json(part("manifest")?)?,
            contents: contents.clone(),
        })
    }

    /// As it is sent.
    pub fn to_json(&self) -> Json {
        Json::object([
            ("manifest", self.manifest.to_json()),
            ("contents", self.contents.clone()),
        ])
    }
}
