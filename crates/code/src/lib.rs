//! Source text in, symbols and references out.
//!
//! [`read`] makes [`Facts`] of one text, which follow from that text alone. [`resolve::Project`] takes the
//! facts of all files of a repository and says what each name means: which function is called, which type
//! is inherited, which module is imported, with how much confidence and why.
//!
//! This crate knows no store, no files and no clock. Invariant: whatever the text is, reading it ends, within
//! bounds of depth, size and time, and says so when something was left out.

#![deny(missing_docs)]

mod facts;
mod languages;
mod manifest;
mod read;
pub mod resolve;
mod walk;

pub use facts::{
    Binding, Call, Expr, Facts, Impl, Import, Inherits, Manifest, Param, Symbol, SymbolKind, Type,
    Use, Visibility,
};
pub use kenning_grammars::Language;
pub use manifest::is_manifest;
pub use read::{FORMAT, TEXT_BYTES_MAX, read};
