//! The tools of the KOI contract.

pub mod code_query;
pub mod federation_status;
pub mod get_entity_documents;
pub mod get_entity_neighborhood;
pub mod github_files;
pub mod github_repos;
pub mod github_scan;
pub mod ingest_url;
pub mod knowledge_search;
pub mod koi_search;
mod limit;
pub mod moments;
pub mod monitor_url;
pub mod preview_url;
pub mod process_url;
pub mod resolve_entity;
mod vault;
pub mod vault_list_notes;
pub mod vault_read_note;
pub mod vault_write_note;

pub use crate::koi_api::{self as api, Refusal};
pub use code_query::CodeQuery;
pub use federation_status::FederationStatus;
pub use get_entity_documents::GetEntityDocuments;
pub use get_entity_neighborhood::GetEntityNeighborhood;
pub use github_scan::GithubScan;
pub use ingest_url::IngestUrl;
pub use knowledge_search::KnowledgeSearch;
pub use koi_search::KoiSearch;
pub use monitor_url::MonitorUrl;
pub use preview_url::PreviewUrl;
pub use process_url::ProcessUrl;
pub use resolve_entity::ResolveEntity;
pub use vault_list_notes::VaultListNotes;
pub use vault_read_note::VaultReadNote;
pub use vault_write_note::VaultWriteNote;
