//! Vectors, scanned.
//!
//! Each vector is kept twice: in 8 bits a number for the scan over all, and in 16 bits for those that
//! the scan proposes. There is no index to build, to tune or to repair, a filter costs nothing, and
//! what another process wrote is appended.
//!
//! Where there are many, reading 8 bits a number of all takes longer than everything else that a query
//! needs. Then one bit a number, in [`Sketches`], says which are worth it. Making them takes as long as some
//! hundred scans, so a process that asks once does without.

use crate::sketch::Sketches;
use kenning_simd::{dot_i8_i16, dot_i16_f32};
use std::sync::atomic::{AtomicU64, Ordering};

/// From so many vectors on, sketches pay: fewer are scanned in a fraction of a millisecond.
pub(crate) const SKETCHED_FROM: usize = 20_000;

/// About so many of the best by estimate get a better cosine: several times what ranking looks at.
const CORRECTED_BEST: usize = 2_048;

/// About so many of the lowest do, because ranking scales by the lowest of all.
const CORRECTED_LOWEST: usize = 512;

/// Every so many estimates one is looked at, to tell where the best begin. A prime, so that it does not
/// fall into step with how memories were written.
const SAMPLED: usize = 17;

/// Rows that are multiplied at a time.
const BLOCK: usize = 1_024;

/// Vectors that are sketched at a time while others wait.
const SKETCHED_AT_ONCE: usize = 2_048;

/// Vectors of one dimension, in the order in which they were added.
#[derive(Debug)]
pub(crate) struct Vectors {
    /// No other vectors of this process have it.
    id: u64,
    dimensions: usize,
    coarse: Vec<i8>,
    coarse_scale: Vec<f32>,
    fine: Vec<i16>,
    fine_scale: Vec<f32>,
    sketched: Option<Sketched>,
}

#[derive(Debug)]
struct Sketched {
    sketches: Sketches,
    /// How many vectors the center is the mean of.
    centered: usize,
}

/// Sketches that are being made beside the vectors that they are of.
pub(crate) struct Sketching {
    of: u64,
    sketched: Sketched,
}

impl Vectors {
    pub(crate) fn new(dimensions: usize) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            dimensions,
            coarse: Vec::new(),
            coarse_scale: Vec::new(),
            fine: Vec::new(),
            fine_scale: Vec::new(),
            sketched: None,
        }
    }

    /// The 16-bit codes and their scales, which everything else is made of.
    pub(crate) fn fine(&self) -> (&[i16], &[f32]) {
        (&self.fine, &self.fine_scale)
    }

    /// From such codes; `None` if there are not as many as scales.
    pub(crate) fn from_fine(dimensions: usize, fine: Vec<i16>, scales: Vec<f32>) -> Option<Self> {
        if fine.len() != scales.len().checked_mul(dimensions)? {
            return None;
        }
        // 32,767 steps of the fine scale are 127 of the coarse one.
        const RATIO: f32 = 32_767.0 / 127.0;
        Some(Self {
            coarse: fine.iter().map(|&it| coarse_of(it)).collect(),
            coarse_scale: scales.iter().map(|it| it * RATIO).collect(),
            fine,
            fine_scale: scales,
            ..Self::new(dimensions)
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.coarse_scale.len()
    }

    /// Adds a vector of length 1, or zeros.
    pub(crate) fn push(&mut self, vector: &[f32]) {
        let largest = vector.iter().fold(0.0_f32, |max, it| max.max(it.abs()));
        let scale = |steps: f32| if largest > 0.0 { largest / steps } else { 1.0 };
        let (coarse, fine) = (scale(127.0), scale(32_767.0));
        self.coarse
            .extend(vector.iter().map(|it| (it / coarse).round() as i8));
        self.fine
            .extend(vector.iter().map(|it| (it / fine).round() as i16));
        self.coarse_scale.push(coarse);
        self.fine_scale.push(fine);
    }

    /// Adds one of other vectors of this dimension.
    pub(crate) fn push_of(&mut self, other: &Self, at: usize) {
        let numbers = at * self.dimensions..(at + 1) * self.dimensions;
        self.coarse
            .extend_from_slice(&other.coarse[numbers.clone()]);
        self.fine.extend_from_slice(&other.fine[numbers]);
        self.coarse_scale.push(other.coarse_scale[at]);
        self.fine_scale.push(other.fine_scale[at]);
    }

    /// Makes scans fast, if there are enough for it to matter. To be called when vectors were added and
    /// scans will follow; those that it has not seen are found all the same.
    pub(crate) fn prepare(&mut self) {
        let n = self.len();
        if n < SKETCHED_FROM {
            return;
        }
        let known = self.sketched.take();
        // The mean of the first vectors is not that of all, but twice as many move it little.
        let known = known.filter(|it| n < 2 * it.centered);
        let mut sketched = known.unwrap_or_else(|| Sketched {
            sketches: Sketches::around(self.mean()),
            centered: n,
        });
        for at in sketched.sketches.len()..n {
            sketched.sketches.push(&self.get(at));
        }
        self.sketched = Some(sketched);
    }

    pub(crate) fn is_sketched(&self) -> bool {
        self.sketched.is_some()
    }

    /// Whether scans would be faster with sketches, and there are none.
    pub(crate) fn lacks_sketches(&self) -> bool {
        self.sketched.is_none() && self.len() >= SKETCHED_FROM
    }

    /// Sketches what was added, if there are sketches.
    pub(crate) fn prepare_further(&mut self) {
        if self.is_sketched() {
            self.prepare();
        }
    }

    /// Begins to make sketches beside these vectors, which may grow meanwhile.
    pub(crate) fn begin_sketches(&self) -> Sketching {
        Sketching {
            of: self.id,
            sketched: Sketched {
                sketches: Sketches::around(self.mean()),
                centered: self.len(),
            },
        }
    }

    /// Sketches some more; false if all are, or if these are other vectors.
    pub(crate) fn sketch_some(&self, sketching: &mut Sketching) -> bool {
        let sketches = &mut sketching.sketched.sketches;
        if sketching.of != self.id || sketches.len() >= self.len() {
            return false;
        }
        let end = self.len().min(sketches.len() + SKETCHED_AT_ONCE);
        for at in sketches.len()..end {
            sketches.push(&self.get(at));
        }
        true
    }

    /// Takes over sketches that were made beside these vectors.
    pub(crate) fn adopt(&mut self, sketching: Sketching) {
        if sketching.of == self.id && self.sketched.is_none() {
            self.sketched = Some(sketching.sketched);
        }
    }

    fn mean(&self) -> Vec<f32> {
        let mut sum = vec![0.0_f64; self.dimensions];
        let rows = self.fine.chunks_exact(self.dimensions.max(1));
        for (row, scale) in rows.zip(&self.fine_scale) {
            for (sum, it) in sum.iter_mut().zip(row) {
                *sum += f64::from(f32::from(*it) * scale);
            }
        }
        let n = self.len().max(1) as f64;
        sum.iter().map(|it| (it / n) as f32).collect()
    }

    /// The cosines of all: to about two digits while there are few, otherwise of the best two thousand
    /// or so and of the lowest, and estimates of those between.
    pub(crate) fn scan(&self, query: &[f32], out: &mut Vec<f32>) {
        out.clear();
        out.resize(self.len(), 0.0);
        let Some(coarse_query) = CoarseQuery::of(query) else {
            return;
        };
        let n_sketched = self.sketched.as_ref().map_or(0, |it| it.sketches.len());
        let (estimated, rest) = out.split_at_mut(n_sketched);
        self.coarse_cosines(n_sketched, &coarse_query, rest);
        if let Some(sketched) = &self.sketched {
            sketched.sketches.estimate(query, estimated);
            self.correct_ends(&coarse_query, estimated);
        }
    }

    /// Puts better cosines in the place of estimates at both ends.
    fn correct_ends(&self, query: &CoarseQuery, estimates: &mut [f32]) {
        let Some((low, high)) = ends(estimates) else {
            return;
        };
        let mut lowest = f32::INFINITY;
        for (at, estimate) in estimates.iter_mut().enumerate() {
            if *estimate <= low || *estimate >= high {
                *estimate = self.coarse_cosine(at, query);
                lowest = lowest.min(*estimate);
            }
        }
        // An estimate beneath the lowest that was looked at is an error of the estimate.
        let floor = lowest.next_up();
        for estimate in estimates.iter_mut().filter(|it| **it < lowest) {
            *estimate = floor;
        }
    }

    fn coarse_cosine(&self, at: usize, query: &CoarseQuery) -> f32 {
        let mut dot = [0];
        let rows = &self.coarse[at * self.dimensions..];
        dot_i8_i16(rows, &query.codes, &mut dot);
        dot[0] as f32 * self.coarse_scale[at] * query.step
    }

    /// The cosines of those from `start` on, as many as there are places for.
    fn coarse_cosines(&self, start: usize, query: &CoarseQuery, out: &mut [f32]) {
        let mut dots = [0; BLOCK];
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            let first = start + block * BLOCK;
            let dots = &mut dots[..out.len()];
            dot_i8_i16(&self.coarse[first * self.dimensions..], &query.codes, dots);
            let scales = &self.coarse_scale[first..];
            for ((out, dot), scale) in out.iter_mut().zip(dots).zip(scales) {
                *out = *dot as f32 * scale * query.step;
            }
        }
    }

    /// One of them, as it was added.
    pub(crate) fn get(&self, at: usize) -> Vec<f32> {
        let row = &self.fine[at * self.dimensions..][..self.dimensions];
        row.iter()
            .map(|&it| f32::from(it) * self.fine_scale[at])
            .collect()
    }

    /// The cosine of one, to five digits.
    pub(crate) fn cosine(&self, at: usize, query: &[f32]) -> f32 {
        let row = &self.fine[at * self.dimensions..][..self.dimensions];
        dot_i16_f32(row, query) * self.fine_scale[at]
    }
}

/// A fine code as the nearest coarse one, in whole numbers: a process that starts does this with every one.
fn coarse_of(fine: i16) -> i8 {
    const BITS: u32 = 24;
    /// 127 / 32,767 of `1 << BITS`; the greatest product still fits 32 bits.
    const FACTOR: i32 = 65_026;
    ((i32::from(fine) * FACTOR + (1 << (BITS - 1))) >> BITS) as i8
}

/// Up to where the lowest go, and from where on the best do.
fn ends(estimates: &[f32]) -> Option<(f32, f32)> {
    let mut sample: Vec<f32> = estimates.iter().step_by(SAMPLED).copied().collect();
    let high_at = sample.len().checked_sub(CORRECTED_BEST / SAMPLED + 1)?;
    let (below, &mut high, _) = sample.select_nth_unstable_by(high_at, f32::total_cmp);
    let low_at = CORRECTED_LOWEST / SAMPLED;
    if low_at >= below.len() {
        return None;
    }
    let (_, &mut low, _) = below.select_nth_unstable_by(low_at, f32::total_cmp);
    Some((low, high))
}

/// A query, to be multiplied with 8-bit codes.
pub(crate) struct CoarseQuery {
    pub(crate) codes: Vec<i16>,
    pub(crate) step: f32,
}

impl CoarseQuery {
    /// `None` for zeros, whose cosines are zeros.
    pub(crate) fn of(query: &[f32]) -> Option<Self> {
        let largest = query.iter().fold(0.0_f32, |max, it| max.max(it.abs()));
        if largest == 0.0 {
            return None;
        }
        // As fine as it can be while the sum over all dimensions surely fits 32 bits.
        let sum_max = i32::MAX as usize / 128;
        let steps = (sum_max / query.len()).clamp(1, 2_047);
        let step = largest / steps as f32;
        Some(Self {
            codes: query.iter().map(|it| (it / step).round() as i16).collect(),
            step,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_precisions_are_near_the_exact_cosine(
            a in proptest::collection::vec(-1.0_f32..1.0, 32), b in proptest::collection::vec(-1.0_f32..1.0, 32),
        ) {
            let (mut a, mut b) = (a, b);
            kenning_embed::normalize(&mut a);
            kenning_embed::normalize(&mut b);
            let exact: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
            let mut vectors = Vectors::new(32);
            vectors.push(&a);
            let mut coarse = Vec::new();
            vectors.scan(&b, &mut coarse);
            prop_assert!((coarse[0] - exact).abs() < 0.02, "{} {exact}", coarse[0]);
            prop_assert!((vectors.cosine(0, &b) - exact).abs() < 1e-4);
        }
    }

    const WHO: [&str; 16] = [
        "the gardener",
        "my sister",
        "a nurse",
        "the database team",
        "our landlord",
        "the pilot",
        "an old teacher",
        "the compiler",
        "the baker",
        "Alice from accounting",
        "the night guard",
        "a customer",
        "the violinist",
        "the mayor",
        "the backup job",
        "a child",
    ];
    const DOES: [&str; 14] = [
        "repaired",
        "forgot about",
        "sold",
        "is afraid of",
        "measured",
        "dreams of",
        "replaced",
        "complained about",
        "painted",
        "deleted",
        "paid for",
        "carefully tested",
        "lost",
        "praised",
    ];
    const WHAT: [&str; 16] = [
        "the water pump",
        "a bag of flour",
        "the login page",
        "an invoice",
        "the red bicycle",
        "a broken index",
        "the piano",
        "two train tickets",
        "the vaccine",
        "an engine",
        "the contract",
        "a password",
        "the apple tree",
        "the budget",
        "a long poem",
        "the kitchen window",
    ];
    const WHEN: [&str; 10] = [
        "before the release",
        "on a rainy Monday",
        "in Lisbon",
        "during the war",
        "at the hospital",
        "after the election",
        "near the harbor",
        "last winter",
        "for the wedding",
        "without a reason",
    ];

    /// Every combination of the lists: many that are much alike, around the parts that they share.
    fn sentences() -> impl Iterator<Item = String> {
        let n = WHO.len() * DOES.len() * WHAT.len() * WHEN.len();
        (0..n).map(|i| {
            let (who, i) = (WHO[i % WHO.len()], i / WHO.len());
            let (does, i) = (DOES[i % DOES.len()], i / DOES.len());
            let (what, i) = (WHAT[i % WHAT.len()], i / WHAT.len());
            format!("{who} {does} {what} {}", WHEN[i])
        })
    }

    fn vector_of(text: &str) -> Vec<f32> {
        let table = kenning_embed::Table::built_in();
        table.passage(&table.ids(text)).to_vec()
    }

    fn vectors_of(sentences: impl Iterator<Item = String>) -> Vectors {
        let mut vectors = Vectors::new(kenning_embed::DIMENSIONS);
        sentences.for_each(|it| vectors.push(&vector_of(&it)));
        vectors
    }

    fn exact(vectors: &Vectors, query: &[f32]) -> Vec<f32> {
        let all = 0..vectors.len();
        all.map(|at| vectors.cosine(at, query)).collect()
    }

    fn best(scores: &[f32], n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        order.truncate(n);
        order
    }

    #[test]
    fn the_best_are_among_the_first_by_estimate_and_their_cosines_are_near() {
        let mut vectors = vectors_of(sentences());
        vectors.prepare();
        let sketches = &vectors.sketched.as_ref().unwrap().sketches;
        assert_eq!(sketches.len(), vectors.len());
        let (mut held, mut held_by_sketch, mut of) = (0, 0, 0);
        for i in 0..48 {
            let (who, what, when) = (WHO[i % 16], WHAT[i * 5 % 16], WHEN[i * 3 % 10]);
            let text = match i % 3 {
                0 => format!("what did {who} do with {what}?"),
                1 => format!("{what} {when}"),
                _ => format!("who {} {what} {when}", DOES[i % 14]),
            };
            let query = vector_of(&text);
            let exact = exact(&vectors, &query);
            let first = best(&exact, 10);
            let (mut found, mut estimates) = (Vec::new(), vec![0.0; vectors.len()]);
            vectors.scan(&query, &mut found);
            sketches.estimate(&query, &mut estimates);
            let (proposed, by_sketch) = (best(&found, 400), best(&estimates, 400));
            held += first.iter().filter(|it| proposed.contains(it)).count();
            held_by_sketch += first.iter().filter(|it| by_sketch.contains(it)).count();
            of += first.len();
            for at in &proposed[..100] {
                assert!((found[*at] - exact[*at]).abs() < 0.02, "{text}: {at}");
            }
            let lowest = best(&found, found.len())[found.len() - 1];
            let lowest_exact = exact.iter().copied().fold(1.0, f32::min);
            assert!((exact[lowest] - lowest_exact).abs() < 0.05, "{text}");
            for (estimate, exact) in found.iter().zip(&exact) {
                assert!((estimate - exact).abs() < 0.3, "{text}: {estimate} {exact}");
            }
        }
        assert!(held * 100 >= of * 99, "{held} of {of}");
        assert!(held_by_sketch * 100 >= of * 99, "{held_by_sketch} of {of}");
    }

    #[test]
    fn a_fine_code_becomes_the_nearest_coarse_one() {
        for fine in -32_767..=32_767_i16 {
            let exact = f64::from(fine) * 127.0 / 32_767.0;
            let off = (f64::from(coarse_of(fine)) - exact).abs();
            assert!(off < 0.501, "{fine}: {off}");
        }
    }

    #[test]
    fn sketches_that_are_made_beside_the_vectors_find_the_same_and_are_of_no_others() {
        let mut vectors = vectors_of(sentences().take(SKETCHED_FROM + 3_000));
        assert!(vectors.lacks_sketches());
        let mut sketching = vectors.begin_sketches();
        while vectors.sketch_some(&mut sketching) {}
        // One that comes while they are being made is scanned as before.
        let query = vector_of("when did the mayor praise the violinist");
        vectors.push(&query);
        vectors.adopt(sketching);
        assert!(vectors.is_sketched());
        let mut beside = Vec::new();
        vectors.scan(&query, &mut beside);
        let mut prepared = vectors_of(sentences().take(SKETCHED_FROM + 3_000));
        prepared.prepare();
        prepared.push(&query);
        let mut at_once = Vec::new();
        prepared.scan(&query, &mut at_once);
        assert_eq!(beside, at_once);
        assert_eq!(best(&beside, 1), [SKETCHED_FROM + 3_000]);

        let mut other = vectors_of(sentences().take(SKETCHED_FROM));
        let sketching = vectors.begin_sketches();
        other.adopt(sketching);
        assert!(!other.is_sketched());
    }

    #[test]
    fn few_are_not_sketched_and_what_was_added_since_is_found() {
        let mut vectors = vectors_of(sentences().take(SKETCHED_FROM - 1));
        vectors.prepare();
        assert!(vectors.sketched.is_none());
        let query = vector_of("when did the mayor praise the violinist");
        let (mut before, mut after) = (Vec::new(), Vec::new());
        vectors.scan(&query, &mut before);
        for (coarse, exact) in before.iter().zip(exact(&vectors, &query)) {
            assert!((coarse - exact).abs() < 0.02);
        }

        vectors.push(&query);
        vectors.prepare();
        let centered = |it: &Vectors| it.sketched.as_ref().map(|it| it.centered);
        assert_eq!(centered(&vectors), Some(SKETCHED_FROM));
        vectors.scan(&query, &mut after);
        assert_eq!(best(&after, 1), [SKETCHED_FROM - 1]);
        for at in best(&before, 10) {
            assert_eq!(
                after[at], before[at],
                "the best have the same cosines as before"
            );
        }

        let unlike = vector_of("quarterly tax return");
        vectors.push(&unlike);
        vectors.scan(&unlike, &mut after);
        assert_eq!(best(&after, 1), [SKETCHED_FROM], "not sketched yet");
        vectors.prepare();
        vectors.scan(&unlike, &mut after);
        assert_eq!(
            best(&after, 1),
            [SKETCHED_FROM],
            "sketched around the old center"
        );
        assert_eq!(centered(&vectors), Some(SKETCHED_FROM));
    }

    /// Of three times as many as are sketched at first, about something else.
    #[test]
    fn the_center_follows_when_there_are_twice_as_many() {
        let dimensions = 64;
        let mut vectors = Vectors::new(dimensions);
        let axis = |at: usize| {
            (0..dimensions)
                .map(|i| f32::from(u8::from(i == at)))
                .collect::<Vec<_>>()
        };
        (0..SKETCHED_FROM).for_each(|_| vectors.push(&axis(3)));
        vectors.prepare();
        for (n, centered) in [(SKETCHED_FROM - 1, SKETCHED_FROM), (1, 2 * SKETCHED_FROM)] {
            (0..n).for_each(|_| vectors.push(&axis(40)));
            vectors.prepare();
            let sketched = vectors.sketched.as_ref().unwrap();
            assert_eq!(sketched.centered, centered);
            assert_eq!(sketched.sketches.len(), vectors.len());
        }
        let mut found = Vec::new();
        vectors.scan(&axis(40), &mut found);
        let (first, second) = found.split_at(SKETCHED_FROM);
        assert!(first.iter().all(|it| it.abs() < 0.1));
        assert!(
            second.iter().all(|it| (it - 1.0).abs() < 0.02),
            "equals are corrected together"
        );
    }

    #[test]
    fn any_dimension_can_be_sketched_and_zeros_are_neither_near_nor_far() {
        for dimensions in [1, 100, 384] {
            let mut vectors = Vectors::new(dimensions);
            let wave = |n: usize| {
                let mut it: Vec<f32> = (0..dimensions)
                    .map(|i| ((i + 1) as f32 * n as f32).sin())
                    .collect();
                kenning_embed::normalize(&mut it);
                it
            };
            for n in 0..SKETCHED_FROM {
                vectors.push(&if n == 7 {
                    vec![0.0; dimensions]
                } else {
                    wave(n + 1)
                });
            }
            vectors.prepare();
            let mut found = Vec::new();
            let query = wave(12_346);
            vectors.scan(&query, &mut found);
            assert!((found[12_345] - 1.0).abs() < 0.02, "{dimensions}");
            assert!(found[7].abs() < 0.1, "{dimensions}: {}", found[7]);
            vectors.scan(&vec![0.0; dimensions], &mut found);
            assert_eq!(found, vec![0.0; SKETCHED_FROM]);
        }
    }
}
