//! When the log of a space was last checked as a whole, on this machine.
//!
//! It is a file in the data directory and not a row: a check changes nothing in the store that it checks. It is
//! what this machine found, not a proof; `kenning audit verify` checks again.

use crate::{Kernel, timestamp};
use kenning_core::Space;
use serde_json::{Map, Value, json};

const FILE: &str = "verified.json";

/// The most bytes of that file.
const BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A check of a whole log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// How many events there were.
    pub n_events: u64,
    /// Whether all was well.
    pub is_clean: bool,
}

impl Verified {
    /// As JSON.
    pub fn to_json(self) -> Value {
        json!({
            "timestamp": timestamp(self.at_ms), "events": self.n_events, "clean": self.is_clean,
        })
    }
}

impl Kernel {
    /// Notes that the whole log of a space was checked just now. If that cannot be written, only the note is
    /// missing: the check itself was answered.
    pub fn note_verified(&self, space: &Space, n_events: u64, is_clean: bool) {
        let mut all = self.read_verified();
        let row = json!({
            "at_ms": self.log.clock().now_ms(), "events": n_events, "clean": is_clean,
        });
        all.insert(space.as_str().to_owned(), row);
        let text = Value::Object(all).to_string();
        if let Err(error) = self.data.write_private(FILE, text.as_bytes()) {
            tracing::debug!("the time of a verification could not be kept: {error}");
        }
    }

    /// The last check of the whole log of a space.
    pub fn last_verified(&self, space: &Space) -> Option<Verified> {
        let all = self.read_verified();
        let row = all.get(space.as_str())?;
        Some(Verified {
            at_ms: row["at_ms"].as_u64()?,
            n_events: row["events"].as_u64()?,
            is_clean: row["clean"].as_bool()?,
        })
    }

    fn read_verified(&self) -> Map<String, Value> {
        let bytes = self.data.read(FILE, BYTES_MAX).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }
}
