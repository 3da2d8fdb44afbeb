//! The Markdown graph, its search and its vectors.

mod kg_audit_checkpoint;
mod kg_audit_query;
mod kg_cache_stats;
mod kg_get_node;
mod kg_graph_generate;
mod kg_graph_query;
mod kg_graph_stats;
mod kg_health;
mod kg_health_check;
mod kg_list_tags;
mod kg_query;
mod kg_search_nodes;
mod kg_search_tags;
mod kg_stats;
mod kg_sync_status;
mod kg_vector_search;
mod kg_vector_upsert;
pub(crate) mod words;

pub use kg_audit_checkpoint::KgAuditCheckpoint;
pub use kg_audit_query::KgAuditQuery;
pub use kg_cache_stats::KgCacheStats;
pub use kg_get_node::KgGetNode;
pub use kg_graph_generate::KgGraphGenerate;
pub use kg_graph_query::KgGraphQuery;
pub use kg_graph_stats::KgGraphStats;
pub use kg_health::KgHealth;
pub use kg_health_check::KgHealthCheck;
pub use kg_list_tags::KgListTags;
pub use kg_query::KgQuery;
pub use kg_search_nodes::KgSearchNodes;
pub use kg_search_tags::KgSearchTags;
pub use kg_stats::KgStats;
pub use kg_sync_status::KgSyncStatus;
pub use kg_vector_search::KgVectorSearch;
pub use kg_vector_upsert::KgVectorUpsert;
