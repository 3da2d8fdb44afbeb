//! Text to vectors, behind one trait.
//!
//! Every vector belongs to a [`Model`]: vectors of two models are never compared. The built-in table
//! is part of the binary and always there; a transformer from a local folder and HTTP providers are
//! chosen by configuration.

#![deny(missing_docs)]

pub mod http;
mod table;
#[cfg(feature = "transformer")]
pub mod transformer;
mod vector;

pub use table::{DIMENSIONS, Probe, TOKENS_MAX, Table, TableVector, TokenId, normalize};

use kenning_core::{Error, Result};

/// An embedding model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Its name, stored with every vector: provider, name and whatever else changes the numbers.
    pub id: String,
    /// How many numbers a vector has.
    pub dimensions: usize,
}

/// Makes vectors of texts.
pub trait Embedder: Send + Sync {
    /// The model.
    fn model(&self) -> &Model;

    /// One vector of length 1 for each text, in their order; all zeros for a text without a token
    /// of the model. May wait for a network or a processor: `unavailable` means later.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>>;

    /// The vector of a question, to be compared with those of [`Embedder::embed`]. Some models
    /// embed questions differently from passages, and a caller waits for this one.
    fn embed_query(&self, text: &str) -> Result<Vec<f32>> {
        let only = self.embed(&[text])?.pop();
        only.ok_or_else(|| Error::internal("the model gave no vector for the query"))
    }
}
