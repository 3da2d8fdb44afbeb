//! The log: signed events in one order, provably append-only.
//!
//! Every write goes through [`Log::write`]. The work gets a [`Tx`], which changes rows
//! and records each change; [`Tx::record`] turns the changes since the last one into a signed event. A
//! transaction with changes that no event records is refused. So there is no write without its event
//! and no event without its write, and they become durable together.
//!
//! Reading order: [`event`] (what is signed), [`identity`](Origin) (which log, whose keys), [`merkle`] (proofs), [`state`] (the root of everything
//! that is true now), [`Tx`], [`verify`] (re-derives all of it from raw rows).
//!
//! The crate does not interpret kinds and payloads of events: they belong to the caller.

pub mod archive;
mod checkpoint;
mod clock;
mod continuity;
pub mod event;
mod identity;
mod key;
mod log;
pub mod merkle;
mod migrate;
pub mod note;
mod prove;
mod since;
pub mod state;
mod tx;
mod verify;

pub use checkpoint::{
    CHECKPOINT_COSIGNED, CHECKPOINT_CREATED, CHECKPOINT_EVERY, CHECKPOINT_EVERY_MIN,
    CheckpointLabel, is_checkpoint_signed,
};
pub use clock::Clock;
pub use continuity::Continuity;
pub use event::{Change, Event, SignedRow};
pub use identity::{LogId, Origin, is_shared_bucket, is_signed_bucket};
pub use key::{Signer, is_signed_by, is_text_signed_by};
pub use log::{
    Companion, Log, Roots, accompanied, authors, current_agent, is_in_transaction, log_id,
    on_behalf_of, roots,
};
pub use migrate::{Migrated, migrate};
pub use prove::{Consistency, Inclusion, consistency, inclusion};
pub use since::{Newest, Place, verify_newest};
pub use tx::foreign;
pub use tx::{Draft, EdgeDraft, Erased, Passages, Tombstones, Tx};
pub use verify::{Author, EventSource, Report, Verify, survey_authors, verify, verify_events};
