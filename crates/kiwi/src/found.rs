//! What items are asked for by, and what is found.

use kenning_items::ItemType;
use kenning_kernel::Page;
use serde_json::Value;
use std::cmp::Ordering;

/// Where to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ItemSource {
    /// In the project and the user's own space.
    #[default]
    Local,
    /// In the registry.
    Registry,
    /// In our own registry, whatever the operator named: this is what others ask us for.
    OwnRegistry,
    /// In both.
    All,
}

impl ItemSource {
    pub(super) fn is_local(self) -> bool {
        matches!(self, Self::Local | Self::All)
    }
}

/// In which order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ItemSort {
    /// What answers best first.
    #[default]
    Relevance,
    /// What has the highest quality first; what has none last.
    Quality,
    /// By name.
    Name,
    /// What was changed last first.
    Updated,
}

/// What to find.
#[derive(Clone, Debug, Default)]
pub struct ItemQuery {
    /// Of this type; `None` is everything that there is, memories and documents too.
    pub item_type: Option<ItemType>,
    /// In any words.
    pub text: String,
    /// Where to look.
    pub source: ItemSource,
    /// At most so many.
    pub limit: usize,
    /// So many of the best are left out, which the caller has seen.
    pub skip: usize,
    /// In which order.
    pub sort: ItemSort,
    /// The project, if not the server's own.
    pub project_path: Option<String>,
    /// Whether entities are left out, which somebody else has found.
    pub without_entities: bool,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundItem {
    /// Its id.
    pub id: String,
    /// `directive`, `tool`, `knowledge`, or what else it is.
    pub item_type: String,
    /// For people.
    pub name: String,
    /// Its category.
    pub category: String,
    /// What it is for, or how it begins.
    pub description: String,
    /// From 0 to 100; `None` where nothing stands behind a number.
    pub quality: Option<f64>,
    /// `local` or `registry`.
    pub source: &'static str,
    /// Its version, if it has one.
    pub version: Option<String>,
    /// Where it lies, if it is a file.
    pub path: Option<String>,
    /// How well it answers, from 0 to 1.
    pub relevance: f64,
    /// The share of a tool's runs that went well, from 0 to 1; `None` if it was never run.
    pub success_rate: Option<f64>,
    /// What a tool wants to be told, as a JSON Schema.
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
    /// Which of two comes first.
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

/// All that was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundItems {
    /// Best first.
    pub items: Vec<FoundItem>,
    /// How many there are in all.
    pub total: usize,
    /// Whether there are more behind these.
    pub has_more: bool,
}
