//! Checkpoints: signed statements of what a log is.

use crate::key::is_signed_by;
use kenning_core::{Did, Hash};
use kenning_store::CheckpointRow;

/// The number of events after which a log signs a checkpoint by itself, unless it is told otherwise.
pub const CHECKPOINT_EVERY: u64 = 1_024;

/// The fewest events between two checkpoints that a log signs by itself.
pub const CHECKPOINT_EVERY_MIN: u64 = 10;

/// The event that says that a checkpoint was signed. It comes after the checkpoint, which does not cover
/// it.
pub const CHECKPOINT_CREATED: &str = "CheckpointCreated";

/// The event that says that somebody else signed a checkpoint too.
pub const CHECKPOINT_COSIGNED: &str = "CheckpointCosigned";

/// What people call a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckpointLabel {
    /// A name.
    pub name: Option<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Whether the log signed it by itself.
    pub is_automatic: bool,
}

impl CheckpointLabel {
    pub(crate) fn automatic() -> Self {
        let is_automatic = true;
        Self {
            is_automatic,
            ..Self::default()
        }
    }
}

/// What a checkpoint's author signs. From version 2 on, the origin is part of it.
pub(crate) fn checkpoint_hash(row: &CheckpointRow) -> Hash {
    let mut bytes = vec![row.version, b'c'];
    if row.version > 1 {
        bytes.extend_from_slice(&(row.origin.len() as u64).to_be_bytes());
        bytes.extend_from_slice(&row.origin);
    }
    for number in [row.height, row.seq, row.hlc.0] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    bytes.extend_from_slice(&row.event_root.0);
    bytes.extend_from_slice(&row.state_root.0);
    bytes.extend_from_slice(row.author.as_bytes());
    Hash::of(&bytes)
}

/// Whether a checkpoint is what its author signed.
pub fn is_checkpoint_signed(row: &CheckpointRow) -> bool {
    let author = row.author.parse::<Did>();
    author.is_ok_and(|it| is_signed_by(&it, &checkpoint_hash(row), &row.signature))
}
