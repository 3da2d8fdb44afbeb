//! The tools of the graph contract.

pub mod kg_vector_search;
pub mod kg_vector_upsert;

pub use kg_vector_search::KgVectorSearch;
pub use kg_vector_upsert::KgVectorUpsert;

use kenning_core::{Error, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The types that the contract knows.
pub(crate) const NODE_TYPES: [&str; 8] = [
    "concept",
    "technical",
    "feature",
    "primitive",
    "service",
    "guide",
    "standard",
    "integration",
];

/// What a tool of this contract answers; the envelope adds `success` and the time it took.
#[derive(Serialize, JsonSchema)]
pub struct KgReply<D, M> {
    /// The answer
    pub data: D,
    /// About the answer
    pub metadata: M,
}

/// A vector, with the contract's words for what is wrong with it.
pub(crate) fn vector_of(value: &Value) -> Result<Vec<f32>> {
    let Value::Array(items) = value else {
        return Err(Error::invalid("Vector must be an array").hint("of numbers"));
    };
    let numbers = items.iter().enumerate().map(|(i, item)| {
        let number = item.as_f64().map(|it| it as f32);
        number.filter(|it| it.is_finite()).ok_or_else(|| {
            Error::invalid(format!(
                "Invalid vector element at index {i}: must be a finite number"
            ))
            .hint("numbers of single precision")
        })
    });
    numbers.collect()
}
