//! The one search: how text becomes what is stored and what is asked.
//!
//! [`tokens`] is used for both, so that both floors and every wing find the same passages.
//! [`passages`] cuts a text into verbatim slices; nothing is lost at the tail. This crate knows no
//! wing and no SQL.

mod passages;
mod tokens;

pub use passages::{PASSAGE_BYTES, passages};
pub use tokens::tokens;
