//! The tools of the KOI contract.

mod vault;
pub mod vault_list_notes;
pub mod vault_read_note;
pub mod vault_write_note;

pub use vault_list_notes::VaultListNotes;
pub use vault_read_note::VaultReadNote;
pub use vault_write_note::VaultWriteNote;
