//! The six tools of the OMI contract.

pub mod belief_update;
pub mod integrity_check;
pub mod memory_recall;
pub mod memory_store;
pub mod now_read;
pub mod now_update;
mod words;

pub use belief_update::BeliefUpdate;
pub use integrity_check::IntegrityCheck;
pub use memory_recall::MemoryRecall;
pub use memory_store::MemoryStore;
pub use now_read::NowRead;
pub use now_update::NowUpdate;
pub(crate) use words::CONTENT_CHARS_MAX;
pub use words::{MemoryResult, MemoryTypeWord, Nothing};
