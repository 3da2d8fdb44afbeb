//! What people want of a graph beyond its contract.

mod kg_backlinks;
mod kg_broken_links;
mod kg_communities;
mod kg_export;
mod kg_neighbors;
mod kg_orphans;
mod kg_path;
mod kg_rank;

pub use kg_backlinks::KgBacklinks;
pub use kg_broken_links::KgBrokenLinks;
pub use kg_communities::KgCommunities;
pub use kg_export::KgExport;
pub use kg_neighbors::KgNeighbors;
pub use kg_orphans::KgOrphans;
pub use kg_path::KgPath;
pub use kg_rank::KgRank;
