//! A link as it stands in a text.

use crate::Relation;

/// A link to a document that may or may not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// A name or a path, without what follows `#`; empty only in [`Document::lost`](crate::Document::lost).
    pub target: String,
    /// A heading, or a block that begins with `^`.
    pub fragment: Option<String>,
    /// What the reader sees.
    pub text: String,
    /// How the two documents are related.
    pub relation: Relation,
    /// Whether the target is a name; otherwise it is a path from the file.
    pub is_wiki: bool,
    /// The words around it, in one line of at most 200 characters.
    pub context: String,
    /// From 1, in the whole text.
    pub line: u32,
}
