//! Vectors that callers brought, in memory: one collection, all of one dimension.
//!
//! A vector is named by its node and found by its direction. What a filter may ask for is kept as a
//! list of places for each property, so that a filter comes before the scan and the fewer it admits,
//! the less is looked at. Nothing is overwritten: what is replaced or removed is marked, and when too
//! much is, the rest moves together.

use crate::codes::{Among, Codes, direction};
use kenning_core::{Hash, NodeId, Result};
use serde_json::Value;
use std::collections::HashMap;

/// Of so many places one may be dead before the rest moves together.
const DEAD_ONE_OF: usize = 8;

/// So many dead places are never worth a move.
const DEAD_MIN: usize = 1_000;

/// So many deviations an 8-bit cosine is rarely off.
const DEVIATIONS: f32 = 4.0;

/// The numbers of at least so many, or of four times as many as are wanted, may be read to decide the
/// order. Mostly they are fewer.
const DECIDED_MIN: usize = 64;

/// Vectors of one dimension.
#[derive(Debug)]
pub struct Collection {
    dimensions: usize,
    /// The last event that was taken in.
    pub(crate) seq: u64,
    /// The last event whose removal was taken in, or that was there before anything was.
    pub(crate) removed_seq: u64,
    codes: Codes,
    nodes: Vec<NodeId>,
    /// Whether what lies at a place can be found: not when it is dead, and not when it is zeros, which
    /// point nowhere.
    found: Vec<bool>,
    places: HashMap<NodeId, u32>,
    facets: HashMap<u64, Places>,
}

/// Places in ascending order. Most properties are those of one vector only.
#[derive(Debug)]
enum Places {
    One(u32),
    Many(Vec<u32>),
}

impl Places {
    fn push(&mut self, place: u32) {
        match self {
            Self::One(first) => *self = Self::Many(vec![*first, place]),
            Self::Many(places) => places.push(place),
        }
    }

    fn as_slice(&self) -> &[u32] {
        match self {
            Self::One(place) => std::slice::from_ref(place),
            Self::Many(places) => places,
        }
    }
}

/// A vector that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbor {
    /// The node that has the vector.
    pub node: NodeId,
    /// The cosine, exact.
    pub cosine: f64,
}

/// The nearest vectors, and how they were found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Neighbors {
    /// The most similar first.
    pub nearest: Vec<Neighbor>,
    /// Whether sketches chose what was compared; otherwise everything was.
    pub sketched: bool,
}

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Near<'a> {
    /// Near what.
    pub to: &'a [f32],
    /// Only vectors with all of these properties: see [`facet`].
    pub facets: &'a [u64],
    /// At most so many.
    pub limit: usize,
    /// On how many threads at most.
    pub threads: usize,
}

/// The number of a property that a filter may name: a string, a number or a boolean under a name.
///
/// It is a hash, so that a long value costs no more memory than a short one.
pub fn facet(name: &str, value: &Value) -> Option<u64> {
    let text = match value {
        Value::String(text) => format!("\"{text}"),
        Value::Bool(it) => it.to_string(),
        Value::Number(number) => match number.as_f64() {
            // 5 and 5.0 are one number.
            Some(it) if it.fract() == 0.0 && it.abs() < 9e15 => format!("{:.0}", it + 0.0),
            _ => number.to_string(),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    let hash = Hash::of(format!("{name}\0{text}").as_bytes());
    let mut short = [0; 8];
    short.copy_from_slice(&hash.0[..8]);
    Some(u64::from_le_bytes(short))
}

impl Collection {
    /// An empty one.
    pub fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            seq: 0,
            removed_seq: 0,
            codes: Codes::new(dimensions),
            nodes: Vec::new(),
            found: Vec::new(),
            places: HashMap::new(),
            facets: HashMap::new(),
        }
    }

    /// How many numbers its vectors have.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// How many vectors it has.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// How much memory the vectors have, without names and properties.
    pub fn bytes(&self) -> usize {
        self.codes.bytes() + self.found.capacity()
    }

    /// Puts a vector in place of the one that this node had. One of another dimension is left out.
    pub fn put(&mut self, node: NodeId, numbers: &[f32], facets: &[u64]) {
        self.remove(node);
        let Ok(at) = u32::try_from(self.nodes.len()) else {
            return;
        };
        if numbers.len() != self.dimensions {
            return;
        }
        let direction = direction(numbers);
        self.found.push(direction.is_some());
        match direction {
            Some(direction) => self.codes.push(&direction),
            None => self.codes.push(numbers),
        }
        self.nodes.push(node);
        self.places.insert(node, at);
        let mut facets = facets.to_vec();
        facets.sort_unstable();
        facets.dedup();
        for facet in facets {
            self.facets
                .entry(facet)
                .and_modify(|it| it.push(at))
                .or_insert(Places::One(at));
        }
    }

    /// Forgets the vector of a node.
    pub fn remove(&mut self, node: NodeId) {
        if let Some(at) = self.places.remove(&node) {
            self.found[at as usize] = false;
        }
    }

    /// To be called when vectors were put or removed and searches will follow.
    pub fn prepare(&mut self) {
        let n_dead = self.nodes.len() - self.places.len();
        if n_dead > DEAD_MIN.max(self.nodes.len() / DEAD_ONE_OF) {
            self.move_together();
        }
        self.codes.prepare();
    }

    fn move_together(&mut self) {
        let mut living: Vec<u32> = self.places.values().copied().collect();
        living.sort_unstable();
        let mut moved = vec![None; self.nodes.len()];
        for (to, from) in (0_u32..).zip(&living) {
            moved[*from as usize] = Some(to);
        }
        let move_all = |places: &[u32]| -> Option<Places> {
            let mut places = places.iter().filter_map(|&it| moved[it as usize]);
            let mut kept = Places::One(places.next()?);
            places.for_each(|it| kept.push(it));
            Some(kept)
        };
        let facets = std::mem::take(&mut self.facets).into_iter();
        self.facets = facets
            .filter_map(|(facet, places)| Some((facet, move_all(places.as_slice())?)))
            .collect();
        self.codes.retain(&living);
        self.nodes = living.iter().map(|&it| self.nodes[it as usize]).collect();
        self.found = living.iter().map(|&it| self.found[it as usize]).collect();
        for place in self.places.values_mut() {
            *place = moved[*place as usize].unwrap_or_default();
        }
    }

    /// The nodes of all vectors with all of these properties.
    pub fn having(&self, facets: &[u64]) -> Vec<NodeId> {
        if facets.is_empty() {
            return self.places.keys().copied().collect();
        }
        let is_current = |&at: &u32| self.places.get(&self.nodes[at as usize]) == Some(&at);
        let places = self.places_having(facets).into_iter().filter(is_current);
        places.map(|at| self.nodes[at as usize]).collect()
    }

    /// The places that all of these properties have in common, dead ones among them.
    fn places_having(&self, facets: &[u64]) -> Vec<u32> {
        let lists = facets.iter().map(|it| self.facets.get(it));
        let Some(mut lists) = lists
            .map(|it| it.map(Places::as_slice))
            .collect::<Option<Vec<_>>>()
        else {
            return Vec::new();
        };
        lists.sort_unstable_by_key(|it| it.len());
        let Some((shortest, others)) = lists.split_first() else {
            return Vec::new();
        };
        let in_all = |at: &&u32| others.iter().all(|it| it.binary_search(at).is_ok());
        shortest.iter().filter(in_all).copied().collect()
    }

    /// The nearest vectors. `exact` gives the numbers of one, for the few whose order they decide.
    pub fn nearest(
        &self,
        near: &Near<'_>,
        mut exact: impl FnMut(NodeId) -> Result<Option<Vec<f32>>>,
    ) -> Result<Neighbors> {
        let Some(query) = direction(near.to).filter(|it| it.len() == self.dimensions) else {
            return Ok(Neighbors::default());
        };
        if near.limit == 0 {
            return Ok(Neighbors::default());
        }
        let admitted;
        let among = if near.facets.is_empty() {
            Among::Living(&self.found)
        } else {
            let mut places = self.places_having(near.facets);
            places.retain(|&at| self.found[at as usize]);
            admitted = places;
            Among::These(&admitted)
        };
        let wanted = near.limit.saturating_mul(4).max(DECIDED_MIN);
        let proposed = self.codes.nearest(&query, among, wanted, near.threads);
        let mut best = proposed.best;
        if let Some(last) = near.limit.checked_sub(1).and_then(|it| best.get(it)) {
            // What lies further below the last than both may be off cannot pass it.
            let lowest = last.cosine - DEVIATIONS * self.codes.deviation(last.at);
            best.retain(|hit| hit.cosine + DEVIATIONS * self.codes.deviation(hit.at) >= lowest);
        }
        let mut nearest = Vec::with_capacity(best.len());
        for it in best {
            let node = self.nodes[it.at as usize];
            // What the store no longer has is not there.
            if let Some(cosine) = exact(node)?.and_then(|it| cosine(near.to, &it)) {
                nearest.push(Neighbor { node, cosine });
            }
        }
        nearest.sort_by(|a, b| b.cosine.total_cmp(&a.cosine).then(a.node.cmp(&b.node)));
        nearest.truncate(near.limit);
        Ok(Neighbors {
            nearest,
            sketched: proposed.sketched,
        })
    }
}

/// The cosine of two vectors; `None` where one is zeros or they are of different dimensions.
pub fn cosine(a: &[f32], b: &[f32]) -> Option<f64> {
    if a.len() != b.len() {
        return None;
    }
    let (mut dot, mut of_a, mut of_b) = (0.0_f64, 0.0_f64, 0.0_f64);
    for (&a, &b) in a.iter().zip(b) {
        let (a, b) = (f64::from(a), f64::from(b));
        dot += a * b;
        of_a += a * a;
        of_b += b * b;
    }
    let lengths = of_a.sqrt() * of_b.sqrt();
    (lengths > 0.0).then(|| (dot / lengths).clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::next_random;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::json;
    use std::collections::HashSet;

    /// A collection with the numbers that a store would have.
    struct Filled {
        collection: Collection,
        numbers: HashMap<NodeId, (Vec<f32>, Vec<u64>)>,
    }

    impl Filled {
        fn new(dimensions: usize) -> Self {
            Self {
                collection: Collection::new(dimensions),
                numbers: HashMap::new(),
            }
        }

        fn put(&mut self, node: NodeId, numbers: Vec<f32>, facets: Vec<u64>) {
            self.collection.put(node, &numbers, &facets);
            self.numbers.insert(node, (numbers, facets));
        }

        fn remove(&mut self, node: NodeId) {
            self.collection.remove(node);
            self.numbers.remove(&node);
        }

        fn nearest(&self, to: &[f32], facets: &[u64], limit: usize, threads: usize) -> Neighbors {
            let near = Near {
                to,
                facets,
                limit,
                threads,
            };
            let exact = |node| Ok(self.numbers.get(&node).map(|it| it.0.clone()));
            self.collection.nearest(&near, exact).unwrap()
        }

        fn by_hand(&self, to: &[f32], facets: &[u64], limit: usize) -> Vec<Neighbor> {
            let admits = |of: &[u64]| facets.iter().all(|it| of.contains(it));
            let admitted = self.numbers.iter().filter(|(_, it)| admits(&it.1));
            let mut all: Vec<Neighbor> = admitted
                .filter_map(|(&node, it)| {
                    let cosine = cosine(to, &it.0)?;
                    Some(Neighbor { node, cosine })
                })
                .collect();
            all.sort_by(|a, b| b.cosine.total_cmp(&a.cosine).then(a.node.cmp(&b.node)));
            all.truncate(limit);
            all
        }
    }

    fn node(n: usize) -> NodeId {
        let mut bytes = [0; 16];
        bytes[8..].copy_from_slice(&(n as u64).to_be_bytes());
        NodeId(bytes)
    }

    /// About the normal distribution: twelve even numbers, added.
    fn normal(random: &mut u64) -> f32 {
        let even = |random: &mut u64| (next_random(random) >> 40) as f32 / (1 << 24) as f32;
        (0..12).map(|_| even(random)).sum::<f32>() - 6.0
    }

    fn normals(random: &mut u64, dimensions: usize) -> Vec<f32> {
        (0..dimensions).map(|_| normal(random)).collect()
    }

    /// Vectors around centers, as those of texts are: as far from it as it is from the others.
    fn clustered(random: &mut u64, centers: &[Vec<f32>]) -> Vec<f32> {
        let center = &centers[usize::try_from(next_random(random)).unwrap() % centers.len()];
        let around = normals(random, center.len());
        center.iter().zip(around).map(|(a, b)| a + b).collect()
    }

    const MANY: usize = 42_000;

    fn many(dimensions: usize) -> (Filled, Vec<Vec<f32>>) {
        let mut random = 7;
        let centers: Vec<_> = (0..100).map(|_| normals(&mut random, dimensions)).collect();
        let mut filled = Filled::new(dimensions);
        for i in 0..MANY {
            let facets = [10, 100, 2].map(|of| (i % of == 0).then_some(of as u64));
            let facets = facets.into_iter().flatten().collect();
            filled.put(node(i), clustered(&mut random, &centers), facets);
        }
        filled.collection.prepare();
        let queries = (0..20).map(|_| clustered(&mut random, &centers)).collect();
        (filled, queries)
    }

    #[test]
    fn nearly_all_of_the_nearest_are_found_among_many_whatever_the_filter() {
        let by_half = |is_sketched| [true, is_sketched, false, false, false];
        for (dimensions, sketched) in [(128, by_half(false)), (256, by_half(true))] {
            let (mut filled, queries) = many(dimensions);
            let facets: [&[u64]; 5] = [&[], &[2], &[10], &[100], &[2, 10]];
            for (facets, sketched) in facets.into_iter().zip(sketched) {
                let (mut held, mut of) = (0, 0);
                for query in &queries {
                    let exact: HashSet<NodeId> = filled
                        .by_hand(query, facets, 10)
                        .iter()
                        .map(|it| it.node)
                        .collect();
                    let found = filled.nearest(query, facets, 10, 2);
                    assert_eq!(found.sketched, sketched);
                    assert_eq!(found.nearest.len(), 10);
                    held += found
                        .nearest
                        .iter()
                        .filter(|it| exact.contains(&it.node))
                        .count();
                    of += exact.len();
                }
                assert!(
                    held * 100 >= of * 99,
                    "{dimensions} {facets:?}: {held} of {of}"
                );
            }
            // Only a third stays: they are found as well, in less memory.
            let before = filled.collection.bytes();
            (0..MANY)
                .filter(|i| i % 3 > 0)
                .for_each(|i| filled.remove(node(i)));
            filled.collection.prepare();
            assert_eq!(filled.collection.nodes.len(), MANY.div_ceil(3));
            assert!(filled.collection.bytes() <= before);
            for facets in facets {
                for query in &queries {
                    let found = filled.nearest(query, facets, 10, 2);
                    assert_eq!(found.nearest, filled.by_hand(query, facets, 10));
                }
            }
        }
    }

    #[test]
    fn memory_is_little_more_than_a_byte_and_a_bit_a_number() {
        let (filled, _) = many(192);
        let each = filled.collection.bytes() as f64 / MANY as f64;
        assert!(each <= 1.3 * (192.0 + 192.0 / 8.0), "{each}");
    }

    #[test]
    fn several_threads_find_what_one_does() {
        let mut random = 3;
        let mut filled = Filled::new(4);
        for i in 0..250_000 {
            filled
                .collection
                .put(node(i), &normals(&mut random, 4), &[]);
        }
        let query = normals(&mut random, 4);
        let near = |threads| {
            let near = Near {
                to: &query,
                facets: &[],
                limit: 50,
                threads,
            };
            // Any direction will do: the order does not matter here, only who is found.
            let found = filled
                .collection
                .nearest(&near, |_| Ok(Some(query.clone())));
            found.unwrap().nearest
        };
        assert_eq!(near(1), near(3));
        assert_eq!(near(1).len(), 50);
    }

    #[test]
    fn a_property_is_a_plain_value_under_a_name() {
        let distinct = [
            facet("a", &json!("x")),
            facet("b", &json!("x")),
            facet("a", &json!("5")),
            facet("a", &json!(5)),
            facet("a", &json!(5.5)),
            facet("a", &json!(-5)),
            facet("a", &json!(true)),
            facet("a", &json!("true")),
        ];
        let set: HashSet<_> = distinct.iter().flatten().collect();
        assert_eq!(set.len(), distinct.len());
        assert_eq!(facet("a", &json!(5)), facet("a", &json!(5.0)));
        assert_eq!(facet("a", &json!(0)), facet("a", &json!(-0.0)));
        for not_plain in [json!(null), json!([]), json!({})] {
            assert_eq!(facet("a", &not_plain), None);
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Put(usize, Vec<f32>, Vec<u64>),
        Remove(usize),
        Prepare,
    }

    fn step() -> impl Strategy<Value = Step> {
        // Few values, so that there are zeros and equals.
        let number = prop_oneof![Just(0.0_f32), Just(1.0), Just(-1.0), -1.0_f32..1.0];
        let put = (0..40_usize, vec(number, 3), vec(0..4_u64, 0..4));
        prop_oneof![
            6 => put.prop_map(|(n, numbers, facets)| Step::Put(n, numbers, facets)),
            2 => (0..40_usize).prop_map(Step::Remove),
            1 => Just(Step::Prepare),
        ]
    }

    proptest! {
        #[test]
        fn whatever_was_put_and_removed_is_found_like_by_hand(
            steps in vec(step(), 0..200),
            query in vec(-1.0_f32..1.0, 3),
            facets in vec(0..4_u64, 0..3),
            limit in 0..12_usize,
        ) {
            let mut filled = Filled::new(3);
            for step in steps {
                match step {
                    Step::Put(n, numbers, facets) => filled.put(node(n), numbers, facets),
                    Step::Remove(n) => filled.remove(node(n)),
                    Step::Prepare => filled.collection.move_together(),
                }
            }
            prop_assert_eq!(filled.collection.len(), filled.numbers.len());
            let found = filled.nearest(&query, &facets, limit, 1).nearest;
            let by_hand = filled.by_hand(&query, &facets, limit);
            prop_assert_eq!(found.len(), by_hand.len());
            for (found, by_hand) in found.iter().zip(by_hand) {
                // Which of equals are found is not said.
                prop_assert!((found.cosine - by_hand.cosine).abs() < 1e-12);
                let (numbers, of) = &filled.numbers[&found.node];
                prop_assert!(facets.iter().all(|it| of.contains(it)));
                prop_assert_eq!(cosine(&query, numbers), Some(found.cosine));
            }
            let mut having = filled.collection.having(&facets);
            having.sort();
            let has = |of: &[u64]| facets.iter().all(|it| of.contains(it));
            let by_hand = filled.numbers.iter().filter(|it| has(&it.1.1)).map(|it| *it.0);
            let mut by_hand: Vec<NodeId> = by_hand.collect();
            by_hand.sort();
            prop_assert_eq!(having, by_hand);
        }
    }
}
