//! What the OMI contract shows beside its six tools. Off unless `--toolsets` names `omi-extra`.

pub mod belief_check_contradiction;
pub mod belief_evidence;
pub mod belief_retrieve;
pub mod daily_append;
pub mod memory_forget;
pub mod memory_get;
pub mod memory_store_batch;
pub mod vault_backup;

pub use belief_check_contradiction::BeliefCheckContradiction;
pub use belief_evidence::BeliefEvidence;
pub use belief_retrieve::BeliefRetrieve;
pub use daily_append::DailyAppend;
pub use memory_forget::MemoryForget;
pub use memory_get::MemoryGet;
pub use memory_store_batch::MemoryStoreBatch;
pub use vault_backup::VaultBackup;
