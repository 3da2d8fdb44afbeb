//! The eight kinds of documents, the four states, and what relates two of them.

use std::borrow::Cow;

/// What a document is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DocType {
    /// A concept.
    Concept,
    /// How something is built.
    Technical,
    /// What a user can do.
    Feature,
    /// A part that others are made of.
    Primitive,
    /// Something that runs and answers.
    Service,
    /// How to do something.
    Guide,
    /// What everybody follows.
    Standard,
    /// How two systems meet.
    Integration,
}

impl DocType {
    /// Every kind, in the order in which they are listed.
    pub const ALL: [Self; 8] = [
        Self::Concept,
        Self::Technical,
        Self::Feature,
        Self::Primitive,
        Self::Service,
        Self::Guide,
        Self::Standard,
        Self::Integration,
    ];

    /// The word in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Concept => "concept",
            Self::Technical => "technical",
            Self::Feature => "feature",
            Self::Primitive => "primitive",
            Self::Service => "service",
            Self::Guide => "guide",
            Self::Standard => "standard",
            Self::Integration => "integration",
        }
    }

    /// The kind of that word, whatever its case and the space around it.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let is_it = |it: &Self| it.as_str().eq_ignore_ascii_case(word.trim());
        Self::ALL.into_iter().find(is_it)
    }
}

/// The state of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// Not finished.
    Draft,
    /// In force.
    Active,
    /// Replaced, or soon to be.
    Deprecated,
    /// Kept for the record.
    Archived,
}

impl Status {
    /// Every state, in the order in which they are listed.
    pub const ALL: [Self; 4] = [Self::Draft, Self::Active, Self::Deprecated, Self::Archived];

    /// The word in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Active => "active",
            Self::Deprecated => "deprecated",
            Self::Archived => "archived",
        }
    }

    /// The state of that word, whatever its case and the space around it.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let is_it = |it: &Self| it.as_str().eq_ignore_ascii_case(word.trim());
        Self::ALL.into_iter().find(is_it)
    }
}

/// How one document relates to another: `link`, `embed`, `related`, `parent`, or the frontmatter key
/// that names it, such as `depends_on`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Relation(Cow<'static, str>);

impl Relation {
    /// A link in the text.
    pub const LINK: Self = Self(Cow::Borrowed("link"));
    /// A document shown inside another.
    pub const EMBED: Self = Self(Cow::Borrowed("embed"));
    /// `related:` in the frontmatter.
    pub const RELATED: Self = Self(Cow::Borrowed("related"));
    /// `parent:` or `up:` in the frontmatter.
    pub const PARENT: Self = Self(Cow::Borrowed("parent"));

    /// The relation that a frontmatter key names.
    #[must_use]
    pub fn of_key(key: &str) -> Self {
        let words: Vec<String> = key.split_whitespace().map(str::to_lowercase).collect();
        match words.join("_") {
            it if it == "related" => Self::RELATED,
            it if it == "parent" || it == "up" => Self::PARENT,
            it => Self(Cow::Owned(it)),
        }
    }

    /// The word in the store.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The weight of the relation: a link in passing counts less than belonging to a parent.
    #[must_use]
    pub fn weight(&self) -> f64 {
        match self.as_str() {
            "link" | "embed" => 1.0,
            "parent" => 0.95,
            "related" | "reference" => 0.5,
            _ => 0.8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_back_whatever_its_case() {
        for it in DocType::ALL {
            let word = format!(" {} ", it.as_str().to_uppercase());
            assert_eq!(DocType::parse(&word), Some(it));
        }
        for it in Status::ALL {
            let word = format!("{}\n", it.as_str().to_uppercase());
            assert_eq!(Status::parse(&word), Some(it));
        }
        assert_eq!(DocType::parse("note"), None);
        assert_eq!(Status::parse(""), None);
    }

    #[test]
    fn a_key_names_its_relation() {
        for (key, relation, weight) in [
            ("related", "related", 0.5),
            ("Related", "related", 0.5),
            ("parent", "parent", 0.95),
            ("Up", "parent", 0.95),
            ("depends_on", "depends_on", 0.8),
            ("See Also", "see_also", 0.8),
            ("reference", "reference", 0.5),
        ] {
            let it = Relation::of_key(key);
            assert_eq!((it.as_str(), it.weight()), (relation, weight), "{key}");
        }
        assert_eq!(Relation::LINK.weight(), 1.0);
        assert_eq!(Relation::EMBED.weight(), 1.0);
    }
}
