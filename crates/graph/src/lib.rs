//! Markdown documents as a graph, apart from where they are kept.
//!
//! [`parse`] says what one text says: its fields, tags, headings and links; [`inline_fields`] reads those
//! that stand in the text. [`Names`] says which
//! document a link means, and [`Names::nearest`] which one it may have meant; [`Mentions`] finds names that
//! a text says without a link. [`analysis`] is about the shape that documents and links make, and
//! [`export`] gives it to others.
//!
//! The crate opens no file, reads no clock and keeps nothing: the same arguments give the same answer.
//! Texts come from anywhere, so no text is refused and none takes more work than its length warrants.

#![deny(missing_docs)]

pub mod analysis;
mod anchors;
mod body;
mod context;
mod document;
pub mod export;
mod fields;
mod frontmatter;
mod html;
mod inline;
mod kinds;
mod mentions;
mod names;
mod paths;
mod tags;
mod target;

pub use anchors::{anchor_key, leads_to_anchor};
pub use document::{Document, Fault, Link, Readable, frontmatter_faults, parse, readable};
pub use inline::inline_fields;
pub use kinds::{DocType, Relation, Status};
pub use mentions::{Mention, Mentions};
pub use names::{Files, Meaning, Named, Names, Origin, stems_of_link, stems_of_names};
pub use paths::{is_generic, slug, stem_of_path, title_of_path, type_of_path, unique_ids};
