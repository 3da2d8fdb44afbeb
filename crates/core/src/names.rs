//! Short names with rules: spaces and kinds.

use std::fmt;
use std::str::FromStr;

/// The space that is used if none is named.
pub const DEFAULT_SPACE: &str = "default";

/// A tenant. Everything stored belongs to exactly one; a transaction sees exactly one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Space(String);

impl Space {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Space {
    fn default() -> Self {
        Self(DEFAULT_SPACE.to_owned())
    }
}

impl FromStr for Space {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
        if text.is_empty() || text.len() > 64 || !text.chars().all(good) {
            return Err(format!(
                "`{text}` is not a space name: 1 to 64 of a-z, 0-9, `-` and `_`"
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The kind of a node. The store does not interpret it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A Markdown document: a note of the vault or a file of the project.
    Document,
    /// A person, an organization, a concept …
    Entity,
    /// A memory or a belief.
    Memory,
    /// A directive, a tool description or a knowledge item.
    Item,
    /// A function, a class, a module of a code base.
    Symbol,
    /// A web page.
    Page,
    /// A running or finished workflow.
    Workflow,
    /// What an agent reported.
    Agent,
    /// A recorded way of solving a task.
    Trajectory,
    /// An installed tool.
    Tool,
    /// A vector from a caller, with its properties.
    Vector,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 11] = [
        Self::Document,
        Self::Entity,
        Self::Memory,
        Self::Item,
        Self::Symbol,
        Self::Page,
        Self::Workflow,
        Self::Agent,
        Self::Trajectory,
        Self::Tool,
        Self::Vector,
    ];

    /// The name in rows and on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Document => "document",
            Self::Entity => "entity",
            Self::Memory => "memory",
            Self::Item => "item",
            Self::Symbol => "symbol",
            Self::Page => "page",
            Self::Workflow => "workflow",
            Self::Agent => "agent",
            Self::Trajectory => "trajectory",
            Self::Tool => "tool",
            Self::Vector => "vector",
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| format!("`{text}` is not a kind of node"))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_reads_back_its_name() {
        for kind in Kind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert!("nothing".parse::<Kind>().is_err());
    }

    #[test]
    fn a_space_name_is_short_and_plain() {
        for bad in ["", "A", "a b", "a/b", "ä", &"x".repeat(65)] {
            assert!(bad.parse::<Space>().is_err(), "{bad}");
        }
        assert_eq!("team-1".parse::<Space>().unwrap().as_str(), "team-1");
    }
}
