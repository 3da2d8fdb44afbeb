//! Markdown documents as a graph, independent of where they are kept.
//!
//! [`parse`] reads one text: its fields, tags, headings and links; [`inline_fields`] reads fields
//! inside the text. [`Names`] resolves a link to a document, and [`Names::nearest`] proposes one for
//! a broken link; [`Mentions`] finds names of documents in a text without a link. [`analysis`]
//! computes ranks and communities, and [`export`] writes the graph in other formats.
//!
//! The crate opens no file, reads no clock and keeps nothing: the same arguments give the same
//! answer. Texts come from anywhere, so none is refused, and the work is bounded by the length.

#![deny(missing_docs)]

pub mod analysis;
mod anchors;
mod body;
mod context;
mod document;
mod edit;
pub mod export;
mod fault;
mod fields;
mod frontmatter;
mod html;
mod inline;
mod kinds;
mod link;
mod mentions;
mod names;
mod paths;
mod relink;
mod tags;
mod target;

pub use anchors::{anchor_key, leads_to_anchor};
pub use document::{Document, Readable, frontmatter_faults, parse, readable};
pub use edit::{Uneditable, append, replace_section, section, set_field};
pub use fault::Fault;
pub use inline::inline_fields;
pub use kinds::{DocType, Relation, Status};
pub use link::Link;
pub use mentions::{Mention, Mentions};
pub use names::{Files, Meaning, Named, Names, Origin, stems_of_link, stems_of_names};
pub use paths::{is_generic, slug, stem_of_path, title_of_path, type_of_path, unique_ids};
pub use relink::{relative_path, relink, root_path};
