//! The one search.
//!
//! [`tokens`] makes what is stored and what is asked, so that both backends and every domain find the same
//! passages; [`passages`] cuts a text into verbatim slices, and nothing is lost at the tail.
//!
//! An [`Index`] holds what ranking needs of one space, in memory, and follows the log; [`Searcher`]
//! keeps one for each space. The way of a query, in `rank`: full text (BM25) and vectors, fused, then
//! the first hundred re-ranked by soft BM25, then a relevance between 0 and 1 that means the same for
//! every query. The numbers are computed here and not by a backend, so they are the same on both.
//!
//! A [`Collection`] holds vectors that callers brought, which have no text to be ranked by;
//! [`Collections`] keeps them for all spaces.
//!
//! This crate knows no domain crate and no SQL.

mod codes;
mod collection;
mod collections;
mod compact;
mod events;
mod index;
mod passages;
mod prepared;
mod rank;
mod recent;
mod scan;
mod searcher;
mod sketch;
mod slot;
mod snapshot;
mod spread;
mod tokens;
#[cfg(test)]
mod tripping;

pub use collection::{Collection, Near, Neighbor, Neighbors, cosine, facet};
pub use collections::{
    ACCOUNTS, Account, Collections, VECTOR_DELETED, collection_name, of_collection_name,
    row_facets, row_props,
};
pub use events::REINDEXED;
pub use index::{Entry, Filter, Index, WithAllWords};
pub use passages::{PASSAGE_BYTES, passages};
pub use rank::{Hit, Mode, Query, Stages, asks_for_something, order_by_relevance};
pub use recent::{Recent, SPACES_MAX};
pub use searcher::{IndexState, Keeper, Partial, Searcher, collection_of, collection_of_model};
pub use snapshot::snapshot_seq;
pub use tokens::tokens;
