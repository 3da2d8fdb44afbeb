//! Texts that are in no store, found the way everything is found: the tools of a server.

use kenning_core::{Hash, Hlc, Kind, NodeId, SeededRandom};
use kenning_kernel::search::policy;
use kenning_search::{Filter, Index, Mode, Query, passages};
use kenning_store::Node;
use serde_json::Map;
use std::collections::HashMap;

/// A list of texts that can be searched.
pub struct Catalogue {
    index: Index,
    places: HashMap<NodeId, usize>,
}

impl Catalogue {
    /// Of these titles and texts.
    pub fn new<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let (mut index, mut places) = (Index::new(), HashMap::new());
        let random = SeededRandom::new(1);
        for (place, (title, text)) in entries.into_iter().enumerate() {
            let id = NodeId::new(Hlc::default(), &random);
            let node = Node {
                id,
                kind: Kind::Tool,
                project: String::new(),
                key: place.to_string(),
                title: title.to_owned(),
                body: text.to_owned(),
                props: Map::new(),
                created: Hlc::default(),
                updated: Hlc::default(),
                hash: Hash::default(),
                rev: 1,
            };
            index.put(&node, &passages(title, text));
            places.insert(id, place);
        }
        Self { index, places }
    }

    /// Whether what is as relevant as this is found, beside items and by the same threshold.
    pub fn is_answer(relevance: f64) -> bool {
        policy::ITEMS.is_relevant(relevance)
    }

    /// The places of those that answer best, with their relevance from 0 to 1.
    pub fn search(&self, text: &str, limit: usize) -> Vec<(usize, f64)> {
        let query = Query {
            text,
            mode: Mode::Hybrid,
            filter: &Filter::default(),
            limit: 4 * limit,
            vector: None,
        };
        let mut found: Vec<(usize, f64)> = Vec::new();
        for hit in self.index.search(&query) {
            let Some(&place) = self.places.get(&hit.node) else {
                continue;
            };
            if found.len() < limit && !found.iter().any(|it| it.0 == place) {
                found.push((place, hit.relevance));
            }
        }
        found
    }
}
