//! Queries for items, and their results.

use kenning_items::ItemType;
use kenning_kernel::Page;
use serde_json::Value;
use std::cmp::Ordering;

/// Where to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ItemSource {
    /// In the project and the user's own directory.
    #[default]
    Local,
    /// In the registry.
    Registry,
    /// In our own registry, whatever the operator configured: this is what other machines ask for.
    OwnRegistry,
    /// In both.
    All,
}

impl ItemSource {
    pub(super) fn is_local(self) -> bool {
        matches!(self, Self::Local | Self::All)
    }
}

/// The order of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ItemSort {
    /// By relevance.
    #[default]
    Relevance,
    /// By quality; items without one last.
    Quality,
    /// By name.
    Name,
    /// By the time of the last change.
    Updated,
}

/// A query for items.
#[derive(Clone, Debug, Default)]
pub struct ItemQuery {
    /// The type; `None` for everything, including memories and documents.
    pub item_type: Option<ItemType>,
    /// The query, in any words.
    pub text: String,
    /// Where to look.
    pub source: ItemSource,
    /// At most this many.
    pub limit: usize,
    /// This many of the best are skipped, because the caller has seen them.
    pub skip: usize,
    /// In which order.
    pub sort: ItemSort,
    /// The project, if not the server's own.
    pub project_path: Option<String>,
    /// Whether entities are left out, because the caller searches them separately.
    pub without_entities: bool,
}

/// A result.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundItem {
    /// Its id.
    pub id: String,
    /// `directive`, `tool`, `knowledge`, or another kind of node.
    pub item_type: String,
    /// The name for people.
    pub name: String,
    /// Its category.
    pub category: String,
    /// Its description, or its beginning.
    pub description: String,
    /// From 0 to 100; `None` if there is nothing to judge by.
    pub quality: Option<f64>,
    /// `local` or `registry`.
    pub source: &'static str,
    /// Its version, if it has one.
    pub version: Option<String>,
    /// Its path, if it is a file.
    pub path: Option<String>,
    /// How well it answers, from 0 to 1.
    pub relevance: f64,
    /// The share of a tool's runs that succeeded, from 0 to 1; `None` if it was never run.
    pub success_rate: Option<f64>,
    /// The parameters of a tool, as a JSON Schema.
    pub parameters: Option<Value>,
    /// When it was last changed, in milliseconds since 1970.
    pub updated_ms: u64,
}

impl ItemQuery {
    pub(super) fn page(&self) -> Page {
        Page {
            skip: self.skip,
            limit: self.limit,
        }
    }
}

impl FoundItem {
    /// The order of two results.
    pub fn order(&self, other: &Self, sort: ItemSort) -> Ordering {
        let by_relevance = || other.relevance.total_cmp(&self.relevance);
        let first = match sort {
            ItemSort::Relevance => Ordering::Equal,
            ItemSort::Quality => {
                let points = |it: &Self| it.quality.unwrap_or(-1.0);
                points(other).total_cmp(&points(self))
            }
            ItemSort::Name => {
                let name = |it: &Self| it.name.to_lowercase();
                name(self).cmp(&name(other))
            }
            ItemSort::Updated => other.updated_ms.cmp(&self.updated_ms),
        };
        first.then_with(by_relevance)
    }
}

/// The results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundItems {
    /// Best first.
    pub items: Vec<FoundItem>,
    /// How many there are in all.
    pub total: usize,
    /// Whether there are more after these.
    pub has_more: bool,
}
