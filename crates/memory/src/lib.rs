//! What a memory is, apart from where it is kept.
//!
//! Arithmetic and formats only: no store, no files, no clock. The engine composes them.

#![deny(missing_docs)]
