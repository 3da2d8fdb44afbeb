//! Memories, the current context and sessions.
//!
//! `memories` are nodes that are found by meaning; `context` is NOW.md, the daily logs and
//! `config.yaml`; `sessions` begin and end. `bus` shows what happened as the memory contract's
//! events, and `webhooks` sends them to others.

mod bus;
mod capture;
mod context;
mod import;
mod memories;
mod projects;
mod sessions;
mod webhooks;

pub use bus::{EVENT_TYPES, EventQuery, EventType, MemoryEvent, MemoryEvents};
pub use capture::{Captured, CapturedSession};
pub use context::{
    ContextForm, FilesIntegrity, Now, NowFile, NowUpdate, checksums, is_daily_log, passages_of_log,
};
pub use kenning_memory::types::MemoryType;
pub use memories::{
    BeliefUpdate, Central, Contradiction, Contradictions, Evidence, EvidenceUpdate, FORGET_MAX,
    FOUNDATIONAL, Forget, ForgetMany, ForgetReport, ForgottenMemory, GraphEdge, Integrity,
    IntegrityScope, ListMemories, MEMORY_BYTES_MAX, Memory, MemoryAccess, MemoryDetails,
    MemoryGraph, MemoryRelation, Neighbor, NewMemory, PendingWrite, Recall, RecallScope,
    RecallSort, Recalled, RecalledMemory, StoredMemory, Topology, hold,
};
pub use projects::{Assignment, ProjectView};
pub use sessions::{SessionEnded, SessionStarted};
pub use webhooks::{Pace, Webhooks};

use kenning_kernel::Kernel;
use std::sync::Arc;

/// Memories, context and sessions of a store.
pub struct Omi {
    kernel: Arc<Kernel>,
    linked: memories::Linked,
    checked_logs: memories::CheckedLogs,
}

impl Omi {
    /// Uses a kernel.
    pub fn new(kernel: Arc<Kernel>) -> Self {
        Self {
            kernel,
            linked: memories::Linked::default(),
            checked_logs: memories::CheckedLogs::default(),
        }
    }
}
