//! State capsules: an intent and its progress, with a checksum.
//!
//! A capsule is made whenever NOW.md is updated, so that a session that lost its context can check
//! that what it finds is complete and belongs to the same intent.

use kenning_text::hex;
use kenning_text::json::{Spelling, canonical};
use serde_json::{Value, json};

/// The version of the format.
const VERSION: &str = "1.0";

/// How many digits of the intent's hash are kept.
const INTENT_DIGITS: usize = 16;

/// A capsule.
#[derive(Clone, Debug, PartialEq)]
pub struct Capsule {
    /// The version of the format.
    pub version: String,
    /// The first digits of the intent's SHA-256.
    pub intent_hash: String,
    /// The progress so far.
    pub partial_plan: Value,
    /// When it was made.
    pub timestamp: String,
    /// SHA-256 of everything else, as sorted JSON.
    pub checksum: String,
}

impl Capsule {
    /// Makes a capsule of this intent.
    pub fn new(intent: &str, partial_plan: Value, timestamp: &str) -> Self {
        let mut capsule = Self {
            version: VERSION.to_owned(),
            intent_hash: intent_hash(intent),
            partial_plan,
            timestamp: timestamp.to_owned(),
            checksum: String::new(),
        };
        capsule.checksum = capsule.computed_checksum();
        capsule
    }

    /// Whether its checksum is right.
    pub fn is_whole(&self) -> bool {
        self.checksum == self.computed_checksum()
    }

    /// Whether it belongs to this intent.
    pub fn is_of(&self, intent: &str) -> bool {
        self.intent_hash == intent_hash(intent)
    }

    /// As JSON.
    pub fn to_json(&self) -> Value {
        let mut value = self.unchecked_json();
        value["checksum"] = Value::from(self.checksum.as_str());
        value
    }

    /// Reads what [`Capsule::to_json`] wrote; `None` for anything else. Does not verify the checksum.
    pub fn from_json(value: &Value) -> Option<Self> {
        let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        Some(Self {
            version: text("version")?,
            intent_hash: text("intent_hash")?,
            partial_plan: value.get("partial_plan")?.clone(),
            timestamp: text("timestamp")?,
            checksum: text("checksum")?,
        })
    }

    fn unchecked_json(&self) -> Value {
        json!({
            "version": self.version, "intent_hash": self.intent_hash,
            "partial_plan": self.partial_plan, "timestamp": self.timestamp,
        })
    }

    fn computed_checksum(&self) -> String {
        // Spelled as the original does, so that both checksums agree.
        let text = canonical(&self.unchecked_json(), Spelling::AsciiSpaced);
        hex::sha256(text.as_bytes())
    }
}

fn intent_hash(intent: &str) -> String {
    let mut digits = hex::sha256(intent.as_bytes());
    digits.truncate(INTENT_DIGITS);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn golden() -> Capsule {
        Capsule::new(
            "Implementing authentication middleware",
            json!({ "completions": ["Fixed é \"q\"", "🦀"], "n": 2, "z": null, "a": true }),
            "2026-11-15T02:11:00.123456",
        )
    }

    #[test]
    fn a_capsule_has_the_hashes_that_the_original_computes() {
        let capsule = golden();
        assert_eq!(capsule.intent_hash, "49c166c74ea9aca7");
        assert_eq!(
            capsule.checksum,
            "1edd47ef78f17ecd1f881d1f1a0e53e224549982ba8312e66eb1845b014fc4db"
        );
        assert_eq!(capsule.to_json()["version"], "1.0");
    }

    #[test]
    fn a_capsule_reads_back_and_is_whole() {
        let read = Capsule::from_json(&golden().to_json()).unwrap();
        assert_eq!(read, golden());
        assert!(read.is_whole() && read.is_of("Implementing authentication middleware"));
        assert!(!read.is_of("Something else"));
    }

    #[test]
    fn whatever_is_changed_is_noticed() {
        for (pointer, value) in [
            ("/version", json!("1.1")),
            ("/intent_hash", json!("49c166c74ea9aca8")),
            ("/partial_plan/n", json!(3)),
            ("/partial_plan/completions/1", json!("🦞")),
            ("/timestamp", json!("2026-11-15T02:11:00.123457")),
            ("/checksum", json!("")),
        ] {
            let mut json = golden().to_json();
            *json.pointer_mut(pointer).unwrap() = value;
            assert!(!Capsule::from_json(&json).unwrap().is_whole(), "{pointer}");
        }
        assert!(Capsule::from_json(&json!({ "version": "1.0" })).is_none());
    }
}
