//! Files and folders beside the documents.

use std::collections::BTreeMap;

/// Files and folders that are targets of links and not documents, by their paths from the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// Whether each is a folder.
    places: BTreeMap<Box<str>, bool>,
}

impl Files {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file or folder that exists.
    pub fn insert(&mut self, path: &str, is_folder: bool) {
        self.places.insert(path.into(), is_folder);
    }

    /// All, in the order of their paths, and whether each is a folder.
    pub fn iter(&self) -> impl Iterator<Item = (&str, bool)> {
        self.places.iter().map(|place| (&**place.0, *place.1))
    }

    pub(super) fn is_file(&self, path: &str) -> bool {
        self.places.get(path) == Some(&false)
    }

    /// Whether anything exists at a path.
    #[must_use]
    pub fn is_there(&self, path: &str) -> bool {
        self.places.contains_key(path)
    }
}
