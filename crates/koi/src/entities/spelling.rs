//! Every name in memory, by its letters: for graphs in which the store takes long to find alike names.
//!
//! A store looks through the rows of each key, of which common names have thousands. A process that was
//! kept waiting reads all names once, in the background, and counts keys in memory from then on. What it
//! has read is of one state of the graph, and follows what this process writes ([`Spellings::follow`]). When
//! another process wrote, the store answers again until the names that changed were read. Both find the same.

use super::aliases;
use super::index::{NODES, graph_state};
use kenning_audit::Log;
use kenning_core::{Kind, NodeId, Result, Space};
use kenning_kernel::Text;
use kenning_kernel::later::Later;
use kenning_kernel::worker::contained;
use kenning_search::Recent;
use kenning_store::names::packed_keys;
use kenning_store::{Node, NodeFilter, ReadTx, When};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// From this time on it is worth keeping the names in memory.
const SLOW: Duration = Duration::from_millis(2);
/// The number of nodes that are read at once.
const PAGE: usize = 1_000;
/// More changes than this are not looked up one by one.
const CHANGES_MAX: usize = 5_000;

/// The names of each space.
#[derive(Clone, Default)]
pub(super) struct Spellings(Arc<Mutex<Recent<Space, Slot>>>);

#[derive(Default)]
struct Slot {
    names: Option<Arc<Names>>,
    is_read: bool,
}

/// Entities with similar names, the most similar first.
pub(super) type Alike = Vec<(NodeId, f64)>;

impl Spellings {
    fn lock(&self) -> MutexGuard<'_, Recent<Space, Slot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Entities with similar names.
    pub(super) fn find(
        &self,
        later: &Later,
        space: &Space,
        tx: &dyn ReadTx,
        text: &str,
        limit: usize,
    ) -> Result<Alike> {
        let names = self.lock().get(space).and_then(|it| it.names.clone());
        if let Some(names) = &names
            && names.of == graph_state(tx)?
        {
            return Ok(names.find(text, limit));
        }
        let began = Instant::now();
        let filter = entities();
        let hits = tx.find_names(text, &filter, limit)?;
        if names.is_some() || began.elapsed() > SLOW {
            self.read_later(later, space);
        }
        let mut found: Alike = Vec::new();
        for hit in hits {
            if !found.iter().any(|it| it.0 == hit.node) {
                found.push((hit.node, hit.similarity));
            }
        }
        Ok(found)
    }

    /// Takes over what one transaction of this process changed: who has which names now, and who is gone.
    /// The graph was in the state `n` before, and is in the next one after it.
    pub(super) fn follow(
        &self,
        space: &Space,
        n: u64,
        put: &[(String, NodeId, Vec<String>)],
        removed: &[String],
    ) {
        let mut slots = self.lock();
        let slot = slots.entry(space, Slot::default);
        // While somebody looks at them or reads them again they stay behind, and are read again.
        let Some(names) = slot.names.as_mut().and_then(Arc::get_mut) else {
            return;
        };
        if names.of != n {
            return;
        }
        removed.iter().for_each(|uri| names.remove(uri));
        for (uri, node, called) in put {
            names.remove(uri);
            names.put(uri, *node, called.iter().map(String::as_str));
        }
        names.of = n + 1;
        if names.is_mostly_gone() {
            slot.names = None;
        }
    }

    fn read_later(&self, later: &Later, space: &Space) {
        let mut slots = self.lock();
        let slot = slots.entry(space, Slot::default);
        if std::mem::replace(&mut slot.is_read, true) {
            return;
        }
        let before = slot.names.clone();
        drop(slots);
        let (all, space) = (self.clone(), space.clone());
        later.run(move |log| {
            let read = contained(|| read(log, &space, before.as_deref()));
            let mut slots = all.lock();
            let slot = slots.entry(&space, Slot::default);
            slot.is_read = false;
            slot.names = Some(Arc::new(read?));
            Ok(())
        });
    }
}

fn entities() -> NodeFilter {
    NodeFilter {
        kinds: vec![Kind::Entity],
        ..NodeFilter::default()
    }
}

fn read(log: &Log, space: &Space, before: Option<&Names>) -> Result<Names> {
    log.read(space, |tx| {
        let rows: HashMap<String, Text> = NODES.list_readable(tx)?.into_iter().collect();
        let of = graph_state(tx)?;
        if let Some(before) = before {
            let is_changed = |it: &(&String, &Text)| before.rows.get(it.0) != Some(it.1);
            let changed: Vec<&String> = rows.iter().filter(is_changed).map(|it| it.0).collect();
            let gone: Vec<&String> = before
                .rows
                .keys()
                .filter(|it| !rows.contains_key(*it))
                .collect();
            if changed.len() + gone.len() <= CHANGES_MAX {
                let mut names = before.clone();
                gone.iter().chain(&changed).for_each(|it| names.remove(it));
                for uri in changed {
                    if let Some(node) = tx.node_by_key("", Kind::Entity, uri, When::Now)? {
                        names.add(&node);
                    }
                }
                (names.of, names.rows) = (of, rows);
                return Ok(names);
            }
        }
        let mut names = Names {
            of,
            rows,
            ..Names::default()
        };
        let mut after = None;
        loop {
            let page = tx.nodes(&entities(), When::Now, after, PAGE)?;
            let Some(last) = page.last() else {
                return Ok(names);
            };
            after = Some(last.id);
            page.iter().for_each(|it| names.add(it));
        }
    })
}

/// Names of one state of the graph.
#[derive(Clone, Default)]
struct Names {
    of: u64,
    /// What was written of each entity, by its URI.
    rows: HashMap<String, Text>,
    names: Vec<Name>,
    n_gone: usize,
    by_uri: HashMap<String, Vec<u32>>,
    by_key: HashMap<u64, Vec<u32>>,
}

#[derive(Clone)]
struct Name {
    node: NodeId,
    n_keys: u16,
    is_gone: bool,
}

impl Names {
    fn add(&mut self, node: &Node) {
        let names = std::iter::once(node.title.as_str()).chain(aliases(node));
        self.put(&node.key, node.id, names);
    }

    fn put<'a>(&mut self, uri: &str, node: NodeId, names: impl Iterator<Item = &'a str>) {
        let mut places = Vec::new();
        for name in names {
            let keys = packed_keys(name);
            let (Ok(place), Ok(n_keys)) = (self.names.len().try_into(), keys.len().try_into())
            else {
                continue;
            };
            self.names.push(Name {
                node,
                n_keys,
                is_gone: false,
            });
            for key in keys {
                self.by_key.entry(key).or_default().push(place);
            }
            places.push(place);
        }
        self.by_uri.insert(uri.to_owned(), places);
    }

    fn remove(&mut self, uri: &str) {
        for place in self.by_uri.remove(uri).unwrap_or_default() {
            if let Some(name) = self.names.get_mut(place as usize) {
                name.is_gone = true;
                self.n_gone += 1;
            }
        }
    }

    /// Whether it would pay to read them anew.
    fn is_mostly_gone(&self) -> bool {
        self.names.len() > 1_000 && self.n_gone * 2 > self.names.len()
    }

    fn find(&self, text: &str, limit: usize) -> Alike {
        let keys = packed_keys(text);
        let mut common = vec![0u16; self.names.len()];
        let mut touched = Vec::new();
        for place in keys.iter().filter_map(|it| self.by_key.get(it)).flatten() {
            let Some(n) = common.get_mut(*place as usize) else {
                continue;
            };
            if *n == 0 {
                touched.push(*place);
            }
            *n += 1;
        }
        let mut found: Alike = Vec::with_capacity(touched.len());
        for place in touched {
            let (Some(name), Some(&n)) =
                (self.names.get(place as usize), common.get(place as usize))
            else {
                continue;
            };
            if name.is_gone {
                continue;
            }
            let all = keys.len() + usize::from(name.n_keys) - usize::from(n);
            let similarity = f64::from(n) / all.max(1) as f64;
            if similarity >= SIMILARITY_MIN {
                found.push((name.node, similarity));
            }
        }
        best_of(found, limit)
    }
}

/// The most similar entities, each once with its most similar name.
fn best_of(mut found: Alike, limit: usize) -> Alike {
    let order =
        |a: &(NodeId, f64), b: &(NodeId, f64)| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0));
    // Many thousands share a few letters. The best are selected first, so that few are compared
    // twice: because entities have several names, more are kept than requested.
    let mut n_kept = limit.saturating_mul(NAMES_EACH);
    loop {
        let is_all = n_kept >= found.len();
        if !is_all {
            found.select_nth_unstable_by(n_kept, order);
        }
        let mut best = found.get(..n_kept).unwrap_or(&found).to_vec();
        best.sort_by(order);
        let mut seen = HashSet::new();
        best.retain(|it| seen.insert(it.0));
        if is_all || best.len() >= limit {
            best.truncate(limit);
            return best;
        }
        n_kept = n_kept.saturating_mul(NAMES_EACH).max(1);
    }
}

/// This many names of one entity are assumed at first.
const NAMES_EACH: usize = 4;

/// A name with a smaller share of common letters is not a candidate.
pub(super) const SIMILARITY_MIN: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;
    use kenning_store::NameRow;
    use kenning_store::names::ranked;

    const NAMES: [&str; 9] = [
        "Bill Baue",
        "Bill Bauer",
        "William Baue",
        "Herring Monitoring",
        "Herring Watch",
        "Łukasz Żak",
        "会議室",
        "r3.0",
        "aaa aaaa aaa",
    ];

    fn node(n: usize) -> NodeId {
        NodeId([u8::try_from(n).unwrap(); 16])
    }

    #[test]
    fn memory_finds_what_the_store_finds() {
        let mut names = Names::default();
        for (n, name) in NAMES.iter().enumerate() {
            names.put(name, node(n), std::iter::once(*name));
        }
        for text in [
            "Bill Baue",
            "bil baue",
            "herring",
            "zak",
            "会議",
            "aaa",
            "",
            "r3",
        ] {
            let all = NAMES.iter().enumerate().map(|(n, name)| NameRow {
                node: node(n),
                name: (*name).to_owned(),
            });
            let hits = ranked(text, all.collect(), NAMES.len()).into_iter();
            let mut expected: Vec<(NodeId, f64)> = hits
                .map(|it| (it.node, it.similarity))
                .filter(|it| it.1 >= SIMILARITY_MIN)
                .collect();
            expected.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            assert_eq!(names.find(text, 100), expected, "{text}");
            expected.truncate(2);
            assert_eq!(names.find(text, 2), expected, "{text}");
        }
    }

    #[test]
    fn names_follow_what_this_process_writes_and_wait_if_another_did() {
        let spellings = Spellings::default();
        let space = Space::default();
        let mut names = Names {
            of: 7,
            ..Names::default()
        };
        names.put("a", node(1), ["Bill Baue"].into_iter());
        names.put("b", node(2), ["Bill Bauer"].into_iter());
        spellings.lock().entry(&space, Slot::default).names = Some(Arc::new(names));
        let found = |text: &str| {
            let names = spellings.lock().get(&space).unwrap().names.clone().unwrap();
            let found = names.find(text, 9).into_iter().map(|it| it.0);
            (names.of, found.collect::<Vec<_>>())
        };
        let put = [("a".to_owned(), node(1), vec!["Wilma".to_owned()])];
        spellings.follow(&space, 7, &put, &["b".to_owned()]);
        assert_eq!(found("Bill Baue"), (8, vec![]));
        assert_eq!(found("Wilma"), (8, vec![node(1)]));
        // Another process has written in between: they say of which state they are, and are not asked.
        let put = [("c".to_owned(), node(3), vec!["Carla".to_owned()])];
        spellings.follow(&space, 9, &put, &[]);
        assert_eq!(found("Carla"), (8, vec![]));
        let held = spellings.lock().get(&space).unwrap().names.clone();
        spellings.follow(&space, 8, &put, &[]);
        drop(held);
        assert_eq!(found("Carla"), (8, vec![]));
        spellings.follow(&space, 8, &put, &[]);
        assert_eq!(found("Carla"), (9, vec![node(3)]));
    }

    #[test]
    fn who_was_removed_is_not_found_and_who_has_several_names_is_found_once() {
        let mut names = Names::default();
        names.put("a", node(1), ["Bill Baue", "Bill"].into_iter());
        names.put("b", node(2), ["Bill Bauer"].into_iter());
        let found: Vec<NodeId> = names.find("Bill", 9).into_iter().map(|it| it.0).collect();
        assert_eq!(found, [node(1), node(2)]);
        names.remove("a");
        let found: Vec<NodeId> = names.find("Bill", 9).into_iter().map(|it| it.0).collect();
        assert_eq!(found, [node(2)]);
    }
}
