//! What the graph of all statements holds: entities, and what relates them.
//!
//! It is a function of all statements and merges, and of nothing else: neither the order in which they were
//! made nor who has read them first matters. So taking back a statement or a merge gives the graph that
//! there would be without it. A name that nobody has yet leads nowhere until somebody has it.
//!
//! `incremental` evaluates that function. The same function, written down as plainly as can be, stands in
//! `scratch` here, for the tests to compare with.

use std::collections::BTreeMap;

/// The relation if what a note says is not valid.
pub(super) const RELATED: &str = "related_to";

/// An entity, from everything that is stated about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Thing {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) aliases: Vec<String>,
    pub(super) description: String,
    /// The source of the entity; the first of several.
    pub(super) source: String,
    /// The RID of that source: a note's path, a page.
    pub(super) source_rid: String,
    /// The notes about it; its name is from the first.
    pub(super) paths: Vec<String>,
    /// The URIs that were merged into it.
    pub(super) merged: Vec<String>,
}

/// The source of a relationship, and its confidence.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Origin {
    pub(super) source: String,
    pub(super) source_rid: String,
    pub(super) confidence: f64,
}

/// The objects of relationships, by predicate and URI, with their sources.
pub(super) type Relations = BTreeMap<(String, String), Origin>;

impl Thing {
    pub(super) fn add_alias(&mut self, alias: &str) {
        if !self.aliases.iter().any(|it| it == alias) {
            self.aliases.push(alias.to_owned());
        }
    }

    pub(super) fn describe(&mut self, description: &str) {
        if self.description.is_empty() {
            description.clone_into(&mut self.description);
        }
    }

    pub(super) fn add_merged(&mut self, uri: &str) {
        if !self.merged.iter().any(|it| it == uri) {
            self.merged.push(uri.to_owned());
        }
    }
}

#[cfg(test)]
pub(super) mod scratch;
