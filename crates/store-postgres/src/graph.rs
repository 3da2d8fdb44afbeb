//! The index of a large collection of vectors: an HNSW graph.
//!
//! Each index covers one space, one collection and one dimension, so a search in it reads no other
//! rows, and one tenant's vectors do not slow down another's search. It holds vectors of length 1: their
//! inner product is the cosine, and very long or very short vectors fit. What it finds is
//! compared again exactly, with the original numbers.

use crate::connect::Connection;
use crate::row;
use kenning_core::{Hash, Result, Space};
use kenning_store::{IndexKind, Near, Nearest};
use sha2::{Digest, Sha256};

/// How the name of every such index begins.
pub(crate) const PREFIX: &str = "vectors_hnsw_";

/// The largest dimension of a graph of single precision …
const SINGLE_MAX: usize = 2_000;
/// … and of one of half precision. Beyond it, all vectors are compared.
const HALF_MAX: usize = 4_000;

/// The least `hnsw.ef_search`: more candidates are slower and miss less.
const EF_SEARCH_MIN: usize = 200;
/// The limit of pgvector.
const EF_SEARCH_MAX: usize = 1_000;

/// Denser than by default, because texts come in clusters, and a thin graph loses some of them: on
/// such vectors it raises recall@10 from 0.97 to above 0.99, for a slower build.
const DENSITY: &str = "WITH (m = 24, ef_construction = 128)";

/// The index of one dimension of one collection, built or not.
pub(crate) struct Graph {
    space: String,
    /// SHA-256 of the collection's name, in hexadecimal.
    collection: String,
    dimension: usize,
    kind: &'static str,
}

impl Graph {
    /// `None` if the dimension is too large for an index.
    pub(crate) fn of(space: &Space, collection: &str, dimension: usize) -> Option<Self> {
        let collection = Hash(Sha256::digest(collection.as_bytes()).into());
        Self::of_hash(space.as_str(), &collection, dimension)
    }

    /// The same, where only the hash (SHA-256) of the collection's name is known.
    pub(crate) fn of_hash(space: &str, collection: &Hash, dimension: usize) -> Option<Self> {
        let kind = match dimension {
            1..=SINGLE_MAX => "vector",
            ..=HALF_MAX if dimension > 0 => "halfvec",
            _ => return None,
        };
        Some(Self {
            space: space.replace('\'', "''"),
            collection: collection.to_string(),
            dimension,
            kind,
        })
    }

    pub(crate) fn name(&self) -> String {
        let whole = format!("{}\0{}\0{}", self.space, self.collection, self.dimension);
        let hash = Hash::of(whole.as_bytes()).to_string();
        // A name has at most 63 bytes.
        format!("{PREFIX}{}", &hash[..40])
    }

    /// The condition of the rows that it covers. Literals and not parameters: only then the planner sees
    /// that the index covers the query.
    fn condition(&self) -> String {
        let Self {
            space,
            collection,
            dimension,
            ..
        } = self;
        format!(
            "space = '{space}' AND sha256(collection) = '\\x{collection}'::bytea
             AND vector_dims(numbers) = {dimension} AND vector_norm(numbers) > 0"
        )
    }

    /// The expression of a vector as the graph holds it.
    fn expression(&self, vector: &str) -> String {
        format!(
            "(l2_normalize({vector})::{}({}))",
            self.kind, self.dimension
        )
    }

    /// The statement that builds it while others read and write.
    pub(crate) fn create(&self) -> String {
        format!(
            "CREATE INDEX CONCURRENTLY {} ON vectors USING hnsw ({} {}_ip_ops) {DENSITY} WHERE {}",
            self.name(),
            self.expression("numbers"),
            self.kind,
            self.condition()
        )
    }

    /// Whether it exists and is valid.
    pub(crate) fn is_built(&self, connection: &Connection) -> Result<bool> {
        let sql = "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass($1) AND indisvalid";
        Ok(!connection.query(sql, &[&self.name()])?.is_empty())
    }

    /// The nearest, by the graph.
    pub(crate) fn nearest(&self, connection: &Connection, to: &[f32], n: usize) -> Result<Nearest> {
        // More than asked for: at half precision the order of those at the end is not the exact one.
        let wanted = n.saturating_mul(2).saturating_add(20);
        let ef_search = wanted.saturating_mul(2).clamp(EF_SEARCH_MIN, EF_SEARCH_MAX);
        let steps = wanted.saturating_mul(4).clamp(20_000, 2_000_000);
        // Without sorting the planner must use the index. An iterative scan goes on where the first candidates
        // are not enough; its order is approximate, and the exact one is made below.
        connection.batch(&format!(
            "SET LOCAL enable_sort = off; SET LOCAL hnsw.ef_search = {ef_search};
             SET LOCAL hnsw.iterative_scan = relaxed_order; SET LOCAL hnsw.max_scan_tuples = {steps}"
        ))?;
        let to_given = "$1::real[]::vector";
        let sql = format!(
            "SELECT id, -(l2_normalize(numbers) <#> l2_normalize({to_given})) FROM vectors
             WHERE {} ORDER BY {} <#> {} LIMIT $2",
            self.condition(),
            self.expression("numbers"),
            self.expression(to_given)
        );
        let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
        let rows = connection.query(&sql, &[&to, &wanted])?;
        // Later queries of the transaction are planned as usual.
        connection.batch("SET LOCAL enable_sort TO DEFAULT")?;
        let mut hits: Vec<Near> = rows.iter().map(row::near).collect::<Result<_>>()?;
        hits.sort_by(|a, b| {
            let by_similarity = b.similarity.total_cmp(&a.similarity);
            by_similarity.then_with(|| a.id.cmp(&b.id))
        });
        hits.truncate(n);
        let index = IndexKind::Hnsw;
        Ok(Nearest { index, hits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_covers_one_space_one_collection_and_one_dimension() {
        let name = |space: &str, collection: &str, dimension| {
            let graph = Graph::of(&space.parse().unwrap(), collection, dimension);
            graph.map(|it| it.name())
        };
        let this = name("a", "b", 3).unwrap();
        assert!(this.len() <= 63, "{this}");
        for other in [name("c", "b", 3), name("a", "c", 3), name("a", "b", 4)] {
            assert_ne!(other.unwrap(), this);
        }
        assert_eq!(name("a", "b", 0), None);
        assert_eq!(name("a", "b", HALF_MAX + 1), None);
    }

    #[test]
    fn a_long_vector_is_held_at_half_precision() {
        for (dimension, kind) in [(2_000, "vector"), (2_001, "halfvec"), (4_000, "halfvec")] {
            let graph = Graph::of(&Space::default(), "c", dimension).unwrap();
            assert_eq!(graph.kind, kind, "{dimension}");
        }
    }
}
