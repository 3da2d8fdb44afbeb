//! Queries and results.

use super::upsert::check_numbers;
use super::{is_name, not_a_name};
use kenning_core::{Error, NodeId, Result};
use kenning_kernel::search::Question;
use kenning_search::facet;
use kenning_store::IndexKind;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The most results.
pub const VECTOR_RESULTS_MAX: usize = 100;

/// At least this many are ranked again by keywords.
const HYBRID_MIN: usize = 100;

/// What to find.
#[derive(Clone, Debug)]
pub struct VectorQuery {
    /// The query, in any words; may be empty if a vector is given.
    pub text: String,
    /// Near this vector, among those of its dimension.
    pub vector: Option<Vec<f32>>,
    /// At most this many.
    pub limit: usize,
    /// How many of the best the caller has seen: `limit` includes them.
    pub skip: usize,
    /// Only of this type.
    pub node_type: Option<String>,
    /// Only with all of these tags.
    pub tags: Vec<String>,
    /// Only vectors whose metadata has exactly these values.
    pub filter: Map<String, Value>,
    /// Only of this namespace; `documents` is that of the documents.
    pub namespace: Option<String>,
    /// Whether the words of the text count too.
    pub hybrid: bool,
    /// Only with at least this score.
    pub min_score: f64,
    /// Whether the answer has the numbers.
    pub include_vectors: bool,
}

impl Default for VectorQuery {
    fn default() -> Self {
        Self {
            text: String::new(),
            vector: None,
            limit: 10,
            skip: 0,
            node_type: None,
            tags: Vec::new(),
            filter: Map::new(),
            namespace: None,
            hybrid: false,
            min_score: 0.0,
            include_vectors: false,
        }
    }
}

/// What was found of one vector or document.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorHit {
    /// The caller's id for it, or the document's.
    pub id: String,
    /// The namespace, if it is a caller's vector.
    pub namespace: Option<String>,
    /// The cosine, from 0 to 1.
    pub score: f64,
    /// The keyword score and the combined score; only for a hybrid search.
    pub keywords: Option<Keywords>,
    /// Its metadata.
    pub metadata: Map<String, Value>,
    /// The numbers, on request.
    pub vector: Option<Vec<f32>>,
}

/// What the words of a query add.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Keywords {
    /// How many of the words it has, from 0 to 1.
    pub score: f64,
    /// What it is ranked by.
    pub combined: f64,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundVectors {
    /// Whether there are more than these.
    pub has_more: bool,
    /// Best first.
    pub hits: Vec<VectorHit>,
    /// How many vectors can be searched.
    pub total: u64,
    /// The index that was used: `exact`, `sketch` or `hnsw`.
    pub index: &'static str,
    /// Remarks about the answer.
    pub remarks: Vec<String>,
}

/// The index that was used, the most exact first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Looked {
    #[default]
    Exact,
    Sketch,
    Hnsw,
}

impl Looked {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => IndexKind::Exact.as_str(),
            Self::Sketch => "sketch",
            Self::Hnsw => IndexKind::Hnsw.as_str(),
        }
    }

    pub(super) fn sketched(is: bool) -> Self {
        if is { Self::Sketch } else { Self::Exact }
    }
}

/// Nodes with their scores.
#[derive(Default)]
pub(super) struct Candidates {
    pub(super) scores: HashMap<NodeId, f64>,
    pub(super) looked: Looked,
    pub(super) remarks: Vec<String>,
}

impl Candidates {
    pub(super) fn add(&mut self, node: NodeId, cosine: f64) {
        let score = self.scores.entry(node).or_insert(0.0);
        *score = score.max(cosine.clamp(0.0, 1.0));
    }
}

/// A query, checked.
pub(super) struct Asked<'a> {
    pub(super) query: &'a VectorQuery,
    pub(super) namespace: Option<&'a str>,
    /// What callers' vectors must have.
    pub(super) facets: Vec<u64>,
    /// The text, and what the model that was chosen makes of it.
    pub(super) question: Question,
}

impl<'a> Asked<'a> {
    pub(super) fn of(query: &'a VectorQuery) -> Result<Self> {
        let namespace = query.namespace.as_deref().filter(|it| !it.is_empty());
        if let Some(name) = namespace.filter(|it| !is_name(it)) {
            return Err(not_a_name("Namespace", name));
        }
        if let Some(vector) = &query.vector {
            check_numbers(vector)?;
        }
        let mut facets = Vec::new();
        for (name, value) in &query.filter {
            facets.push(facet(name, value).ok_or_else(|| {
                Error::invalid(format!(
                    "`filter.{name}`: only plain values can be compared"
                ))
                .hint("a string, a number or a boolean")
            })?);
        }
        let node_type = query.node_type.as_ref().map(|it| it.as_str().into());
        facets.extend(node_type.and_then(|it| facet("type", &it)));
        let tags = query.tags.iter().map(|it| it.as_str().into());
        facets.extend(tags.filter_map(|it| facet("tags", &it)));
        Ok(Self {
            query,
            namespace,
            facets,
            question: Question::of_words(&query.text),
        })
    }

    /// How many to rank before the order is decided.
    pub(super) fn wanted(&self) -> usize {
        if self.query.hybrid {
            HYBRID_MIN.max(4 * self.query.limit)
        } else {
            self.query.limit
        }
    }

    /// The properties as the index of texts names them.
    pub(super) fn text_facets(&self) -> Vec<String> {
        let node_type = self.query.node_type.iter().map(|it| format!("type={it}"));
        let tags = self.query.tags.iter().map(|it| format!("tag={it}"));
        node_type.chain(tags).collect()
    }

    pub(super) fn is_of_namespace(&self, namespace: &str) -> bool {
        self.namespace.is_none_or(|it| it == namespace)
    }
}
