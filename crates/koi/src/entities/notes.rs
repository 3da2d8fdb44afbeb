//! The state of the notes about entities: read from the vault, or registered by another client.

use super::VAULT;
use super::said::{SAID, note_key};
use crate::Koi;
use kenning_core::{Kind, Result};
use kenning_kernel::{Caller, Scope};
use kenning_store::When;
use kenning_text::hex;

/// How a note stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoteState {
    /// `linked`: read from the vault, and exists; `registered`: told by another client, not in the
    /// vault; `missing`: read from the vault once, and gone now.
    pub status: &'static str,
    /// SHA-256 of the note, or the hash that the other client gave.
    pub content_hash: Option<String>,
    /// When its content last changed or was registered, in milliseconds since 1970.
    pub synced_ms: Option<u64>,
}

impl Koi {
    /// The state of the notes at these paths of the vault.
    pub fn note_states(&self, caller: &Caller, paths: &[&str]) -> Result<Vec<NoteState>> {
        caller.principal.require(Scope::Read)?;
        let space = &caller.principal.space;
        let is_ours = self.kernel.vault().is_named() && self.kernel.vault().space() == space;
        let dir = is_ours
            .then(|| self.kernel.vault().open(space).ok())
            .flatten();
        self.kernel.log().read(space, |tx| {
            let mut states = Vec::new();
            for path in paths {
                let key = format!("{VAULT}:{path}");
                let read = tx.node_by_key("", Kind::Document, &key, When::Now)?;
                if let Some(note) = read.filter(|it| !it.props.contains_key("stated")) {
                    let is_there = dir
                        .as_ref()
                        .is_some_and(|it| it.exists(path).unwrap_or(false));
                    states.push(NoteState {
                        status: if is_there { "linked" } else { "missing" },
                        content_hash: Some(hex::sha256(note.body.as_bytes())),
                        synced_ms: Some(note.updated.ms()),
                    });
                    continue;
                }
                let said = SAID.get_readable(tx, &note_key(path))?;
                let note = said.and_then(|it| it.note).unwrap_or_default();
                states.push(NoteState {
                    status: "registered",
                    content_hash: note.content_hash,
                    synced_ms: note.registered_ms,
                });
            }
            Ok(states)
        })
    }
}
