//! The tools of the KOI contract.

pub mod code_query;
mod cypher;
pub(crate) mod far;
pub mod federation_status;
pub mod get_entity_documents;
pub mod get_entity_neighborhood;
pub mod github_files;
pub mod github_repos;
pub mod github_scan;
pub mod knowledge_search;
pub mod koi_search;
mod limit;
pub mod refusal;
pub mod resolve_entity;
mod vault;
pub mod vault_list_notes;
pub mod vault_read_note;
pub mod vault_write_note;

pub use code_query::CodeQuery;
pub use federation_status::FederationStatus;
pub use get_entity_documents::GetEntityDocuments;
pub use get_entity_neighborhood::GetEntityNeighborhood;
pub use github_scan::GithubScan;
pub use knowledge_search::KnowledgeSearch;
pub use koi_search::KoiSearch;
pub use refusal::Refusal;
pub use resolve_entity::ResolveEntity;
pub use vault_list_notes::VaultListNotes;
pub use vault_read_note::VaultReadNote;
pub use vault_write_note::VaultWriteNote;
