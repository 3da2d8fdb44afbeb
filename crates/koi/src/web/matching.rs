//! Which entities of the graph a page names.
//!
//! The names of all entities are made ready once for each state of the graph, and serve every page until it
//! changes; then only those entities are read that are others.

use super::pages::StoredText;
use crate::Koi;
use crate::entities::{GRAPH_NODES, graph_state};
use kenning_core::{Kind, Result, Space};
use kenning_entities::mentions::Mentions;
use kenning_kernel::Text;
use kenning_store::{Node, NodeFilter, ReadTx, When};
use kenning_text::line::widened;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, PoisonError};

/// Entities that are read together.
const BATCH: usize = 2_000;
/// More than this are not read one by one.
const CHANGES_MAX: usize = 5_000;
/// At most this many characters are shown on either side of a name.
const CONTEXT_CHARS: usize = 50;

/// An entity that a page names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedEntity {
    /// Its name in the graph.
    pub name: String,
    /// Its URI.
    pub uri: String,
    /// Its type.
    pub kind: String,
    /// The words around the first place where it is named.
    pub context: String,
}

/// An entity as it is looked for.
#[derive(Clone)]
pub(super) struct KnownEntity {
    pub(super) name: String,
    pub(super) uri: String,
    pub(super) kind: String,
    pub(super) aliases: Vec<String>,
}

/// The names of all entities, as the graph was.
pub(super) struct Matcher {
    space: Space,
    state: u64,
    /// What was written of each entity, by its URI: when that is another, the entity is.
    rows: HashMap<String, Text>,
    mentions: Mentions,
    entities: Vec<Arc<KnownEntity>>,
}

impl Koi {
    /// The names of all entities, as the graph is in this snapshot.
    pub(super) fn matcher(&self, space: &Space, tx: &dyn ReadTx) -> Result<Arc<Matcher>> {
        let state = graph_state(tx)?;
        let kept = self.web.matcher.lock();
        let mut kept = kept.unwrap_or_else(PoisonError::into_inner);
        let before = kept.as_ref().filter(|it| it.space == *space);
        if let Some(it) = before.filter(|it| it.state == state) {
            return Ok(Arc::clone(it));
        }
        let made = Arc::new(Matcher::read(space, state, tx, before.map(|it| &**it))?);
        *kept = Some(Arc::clone(&made));
        Ok(made)
    }
}

impl Matcher {
    fn read(space: &Space, state: u64, tx: &dyn ReadTx, before: Option<&Self>) -> Result<Self> {
        let rows: HashMap<String, Text> = GRAPH_NODES.list_readable(tx)?.into_iter().collect();
        let known = before.map(|it| it.known(&rows)).unwrap_or_default();
        let missing: Vec<&String> = rows
            .keys()
            .filter(|it| !known.contains_key(it.as_str()))
            .collect();
        let mut entities: Vec<Arc<KnownEntity>> = Vec::with_capacity(rows.len());
        if missing.len() <= CHANGES_MAX {
            for uri in missing {
                let node = tx.node_by_key("", Kind::Entity, uri, When::Now)?;
                entities.extend(node.map(|it| Arc::new(KnownEntity::from(it))));
            }
            entities.extend(known.into_values().cloned());
        } else {
            read_all(tx, &mut entities)?;
        }
        entities.sort_unstable_by(|a, b| a.uri.cmp(&b.uri));
        let names = (0u32..).zip(&entities).flat_map(|(n, it)| {
            let names = std::iter::once(&it.name).chain(&it.aliases);
            names.map(move |name| (n, name.as_str()))
        });
        Ok(Self {
            space: space.clone(),
            state,
            mentions: Mentions::new(names),
            rows,
            entities,
        })
    }

    /// Those who are as they were, by their URIs.
    fn known<'a>(&'a self, rows: &HashMap<String, Text>) -> HashMap<&'a str, &'a Arc<KnownEntity>> {
        let is_same = |uri: &str| rows.contains_key(uri) && rows.get(uri) == self.rows.get(uri);
        let same = self.entities.iter().filter(|it| is_same(&it.uri));
        same.map(|it| (it.uri.as_str(), it)).collect()
    }

    /// The entities that a text names, each with the first place, the longest name first.
    pub(super) fn find(&self, text: &str) -> Vec<(&KnownEntity, Range<usize>)> {
        let mut first: BTreeMap<u32, Range<usize>> = BTreeMap::new();
        for mention in self.mentions.find(text) {
            for id in mention.ids {
                first.entry(id).or_insert_with(|| mention.range.clone());
            }
        }
        let entity = |id: u32| Some(&**self.entities.get(usize::try_from(id).ok()?)?);
        let found = first
            .into_iter()
            .filter_map(|(id, range)| Some((entity(id)?, range)));
        let mut found: Vec<_> = found.collect();
        found.sort_by(|(a, _), (b, _)| {
            let length = |it: &KnownEntity| it.name.chars().count();
            length(b).cmp(&length(a)).then_with(|| a.name.cmp(&b.name))
        });
        found
    }

    /// The same as an answer shows it.
    pub(super) fn matches(&self, text: &StoredText) -> Vec<MatchedEntity> {
        let found = self.find(&text.summary).into_iter();
        let shown = found.map(|(it, range)| MatchedEntity {
            name: it.name.clone(),
            uri: it.uri.clone(),
            kind: it.kind.clone(),
            context: around(&text.summary, &range),
        });
        shown.collect()
    }
}

impl From<Node> for KnownEntity {
    fn from(node: Node) -> Self {
        let kind = node.props.get("type").and_then(Value::as_str);
        let aliases = node.props.get("aliases").and_then(Value::as_array);
        let aliases = aliases.into_iter().flatten().filter_map(Value::as_str);
        Self {
            kind: kind.unwrap_or_default().to_owned(),
            aliases: aliases.map(ToOwned::to_owned).collect(),
            name: node.title,
            uri: node.key,
        }
    }
}

fn read_all(tx: &dyn ReadTx, entities: &mut Vec<Arc<KnownEntity>>) -> Result<()> {
    let filter = NodeFilter {
        kinds: vec![Kind::Entity],
        ..NodeFilter::default()
    };
    let mut after = None;
    loop {
        let batch = tx.nodes(&filter, When::Now, after, BATCH)?;
        let Some(last) = batch.last() else {
            return Ok(());
        };
        after = Some(last.id);
        entities.extend(batch.into_iter().map(|it| Arc::new(it.into())));
    }
}

/// The words around a place, as they stand there, with dots where more follows.
fn around(text: &str, range: &Range<usize>) -> String {
    let shown = widened(text, range, CONTEXT_CHARS);
    let dots = |is_cut: bool| if is_cut { "..." } else { "" };
    let (before, after) = (dots(shown.start > 0), dots(shown.end < text.len()));
    format!("{before}{}{after}", text[shown].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_around_a_name_is_cut_at_fifty_characters() {
        let text = format!("{}é\nBill Baue {}", "x".repeat(80), "y".repeat(49));
        let at = text.find("Bill").unwrap();
        let shown = around(&text, &(at..at + 9));
        let expected = format!("...{}é\nBill Baue {}", "x".repeat(48), "y".repeat(49));
        assert_eq!(shown, expected);
        let shown = around(&format!("Bill {} y", "x".repeat(48)), &(0..4));
        assert_eq!(
            shown,
            format!("Bill {}...", "x".repeat(48)),
            "no space at the ends"
        );
        let shown = around("Bill", &(0..4));
        assert_eq!(shown, "Bill");
    }
}
