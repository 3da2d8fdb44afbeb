//! Vectors as one bit a dimension, from which all cosines are estimated at once.
//!
//! What is kept of a vector is the side of the center on which it lies, dimension by dimension, after
//! a rotation that spreads what it says evenly over all dimensions: its sketch. The query is not cut
//! down as far: it has 16 levels, as four planes of bits, and comparing it with a sketch is counting
//! bits in which they differ. How much a vector loses by being cut down is known when that is done, and
//! kept as a factor, so that the estimate is right on average (RaBitQ: Gao and Long, 2024).
//!
//! With `v` the vector, `q` the query and `c` the center, `v·q = (v-c)·(q-c) + (v-c)·c + c·q`. The
//! first term is estimated, the second is kept with the sketch, the third is the same for all.

use kenning_simd::{PLANES, sketch_distances};
use std::f32::consts::FRAC_1_SQRT_2;
use std::ops::Range;

/// The highest level of the query; the levels are the odd numbers from its negative on.
const LEVEL_MAX: u32 = (1 << PLANES) - 1;

/// Sketches that are compared at a time.
pub(crate) const BLOCK: usize = 1_024;

/// Numbers that are added side by side.
const LANES: usize = 16;

/// Rounds of the rotation: after three, no direction is special …
const ROUNDS: usize = 3;
/// … and after four where each round transforms a part.
const ROUNDS_MIXED: usize = 4;

/// Where the signs of the rotation begin; sketches are never stored, but runs should repeat.
const SEED: u64 = 0x6b65_6e6e_696e_6731;

/// Sketches of vectors, in the order in which they were added.
#[derive(Debug)]
pub(crate) struct Sketches {
    center: Vec<f32>,
    rotation: Rotation,
    bits: Vec<u64>,
    /// What the sum of the query's numbers, each with the sign of the sketch, is to be multiplied by.
    factor: Vec<f32>,
    /// The part of the cosine that is not estimated.
    offset: Vec<f32>,
    /// For the vector that is being added.
    rotated: Vec<f32>,
}

impl Sketches {
    /// None yet, of vectors that lie around this center.
    pub(crate) fn around(center: Vec<f32>) -> Self {
        Self {
            rotation: Rotation::new(center.len()),
            center,
            bits: Vec::new(),
            factor: Vec::new(),
            offset: Vec::new(),
            rotated: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.factor.len()
    }

    /// Adds the sketch of a vector.
    pub(crate) fn push(&mut self, vector: &[f32]) {
        self.rotated.clear();
        let apart = vector.iter().zip(&self.center).map(|(a, b)| a - b);
        self.rotated.extend(apart);
        make_room(&mut self.offset, 1);
        make_room(&mut self.factor, 1);
        make_room(&mut self.bits, self.rotation.width / 64);
        self.offset.push(dot(&self.rotated, &self.center));
        self.rotation.apply(&mut self.rotated);
        let size = sum(&self.rotated, &self.rotated, |it, _| it.abs());
        let square = dot(&self.rotated, &self.rotated);
        self.factor
            .push(if size > 0.0 { square / size } else { 0.0 });
        let words = self.rotated.chunks(64);
        self.bits.extend(words.map(|it| word(it, |x| *x >= 0.0)));
    }

    /// The estimated cosines with a query of the first so many.
    pub(crate) fn estimate(&self, query: &[f32], out: &mut [f32]) {
        let asked = Asked::new(self, query);
        for (block, out) in out.chunks_mut(BLOCK).enumerate() {
            self.estimate_from(&asked, block * BLOCK, out);
        }
    }

    /// A query, made ready to be compared with sketches.
    pub(crate) fn asked(&self, query: &[f32]) -> Asked {
        Asked::new(self, query)
    }

    /// The estimated cosines of those from `start` on, as many as there are places for, which are at
    /// most [`BLOCK`].
    pub(crate) fn estimate_from(&self, asked: &Asked, start: usize, out: &mut [f32]) {
        let words = self.words();
        let mut distances = [0; BLOCK];
        let distances = &mut distances[..out.len()];
        asked.distances(&self.bits[start * words..], distances);
        let kept = self.factor[start..].iter().zip(&self.offset[start..]);
        for ((out, distance), (factor, offset)) in out.iter_mut().zip(distances).zip(kept) {
            *out = asked.estimate(*distance, *factor, *offset);
        }
    }

    /// The estimated cosines of these, at most [`BLOCK`]. `gathered` is for their bits.
    pub(crate) fn estimate_these(
        &self,
        asked: &Asked,
        places: &[u32],
        gathered: &mut Vec<u64>,
        out: &mut [f32],
    ) {
        let words = self.words();
        gathered.clear();
        for &at in places {
            gathered.extend_from_slice(&self.bits[at as usize * words..][..words]);
        }
        let mut distances = [0; BLOCK];
        let distances = &mut distances[..places.len()];
        asked.distances(gathered, distances);
        for ((out, distance), &at) in out.iter_mut().zip(distances).zip(places) {
            let (factor, offset) = (self.factor[at as usize], self.offset[at as usize]);
            *out = asked.estimate(*distance, factor, offset);
        }
    }

    fn words(&self) -> usize {
        self.rotation.width / 64
    }

    /// Keeps only these, which are in ascending order.
    pub(crate) fn retain(&mut self, places: &[u32]) {
        let words = self.words();
        retain_rows(&mut self.bits, words, places);
        retain_rows(&mut self.factor, 1, places);
        retain_rows(&mut self.offset, 1, places);
    }

    /// How much memory it has.
    pub(crate) fn bytes(&self) -> usize {
        self.bits.capacity() * 8 + (self.factor.capacity() + self.offset.capacity()) * 4
    }
}

/// A query, made ready to be compared with sketches.
pub(crate) struct Asked {
    planes: [Vec<u64>; PLANES],
    /// What one level is.
    step: f32,
    /// The sum of the query's numbers if all agreed in every plane.
    sum_max: f32,
    /// The part of the cosine that is the same for all.
    common: f32,
}

impl Asked {
    fn new(sketches: &Sketches, query: &[f32]) -> Self {
        let center = &sketches.center;
        let mut rotated: Vec<f32> = query.iter().zip(center).map(|(a, b)| a - b).collect();
        sketches.rotation.apply(&mut rotated);
        let largest = rotated.iter().fold(0.0_f32, |max, it| max.max(it.abs()));
        let step = largest / LEVEL_MAX as f32;
        // The level 2n - LEVEL_MAX has the number n, whose bits say which planes add and which subtract.
        let number = |it: &f32| ((it / step + LEVEL_MAX as f32) / 2.0).round() as u32;
        let numbers: Vec<u32> = rotated.iter().map(number).collect();
        let plane = |p| {
            numbers
                .chunks(64)
                .map(move |it| word(it, |n| n >> p & 1 == 1))
        };
        Self {
            planes: std::array::from_fn(|p| plane(p).collect()),
            step,
            sum_max: step * LEVEL_MAX as f32 * rotated.len() as f32,
            common: dot(query, center),
        }
    }

    fn distances(&self, bits: &[u64], out: &mut [u32]) {
        sketch_distances(bits, self.planes.each_ref().map(|it| &it[..]), out);
    }

    fn estimate(&self, distance: u32, factor: f32, offset: f32) -> f32 {
        let signed_sum = self.sum_max - 2.0 * self.step * distance as f32;
        factor * signed_sum + offset + self.common
    }
}

/// Keeps only these rows of a list of rows of `width`, in ascending order.
pub(crate) fn retain_rows<T: Copy>(rows: &mut Vec<T>, width: usize, places: &[u32]) {
    for (to, &from) in places.iter().enumerate() {
        let from = from as usize * width;
        rows.copy_within(from..from + width, to * width);
    }
    rows.truncate(places.len() * width);
}

/// Makes room by eighths. Doubling would leave up to half of the memory unused, and moving a large
/// list is cheap: the system moves pages, not bytes.
pub(crate) fn make_room<T>(list: &mut Vec<T>, further: usize) {
    if list.capacity() - list.len() < further {
        list.reserve_exact(further.max(list.len() / 8));
    }
}

fn word<T>(of: &[T], is_set: impl Fn(&T) -> bool) -> u64 {
    let bits = of.iter().enumerate();
    bits.fold(0, |word, (i, it)| word | u64::from(is_set(it)) << i)
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    sum(a, b, |a, b| a * b)
}

/// Several sums side by side, because each addition of a single one waits for the one before.
fn sum(a: &[f32], b: &[f32], of: impl Fn(f32, f32) -> f32) -> f32 {
    let (a_lanes, a_rest) = a.as_chunks::<LANES>();
    let (b_lanes, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in a_lanes.iter().zip(b_lanes) {
        for i in 0..LANES {
            sums[i] += of(a[i], b[i]);
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| of(*a, *b));
    sums.iter().sum::<f32>() + rest.sum::<f32>()
}

/// A rotation that looks random and takes a few additions a number: signs, then a Hadamard transform,
/// several times over.
///
/// The transform takes a power of two of numbers. Where there are others, it is done to the first ones
/// and to the last ones by turns, and in between both halves are mixed with each other.
#[derive(Debug)]
struct Rotation {
    /// Full words: vectors are padded with zeros.
    width: usize,
    /// How many numbers are transformed at a time.
    window: usize,
    signs: Vec<f32>,
}

impl Rotation {
    fn new(dimensions: usize) -> Self {
        let width = dimensions.next_multiple_of(64).max(64);
        let window = (width / 2 + 1).next_power_of_two();
        let rounds = if window == width {
            ROUNDS
        } else {
            ROUNDS_MIXED
        };
        // A transform makes vectors longer by the root of the window; the signs take that back.
        let shorter = (window as f32).powf(-0.5);
        let mut random = SEED;
        let mut signs = Vec::with_capacity(rounds * width);
        for round in 0..rounds {
            let window = window_of(round, width, window);
            signs.extend((0..width).map(|i| {
                let is_positive = next_random(&mut random) >> 63 == 0;
                let size = if window.contains(&i) { shorter } else { 1.0 };
                if is_positive { size } else { -size }
            }));
        }
        Self {
            width,
            window,
            signs,
        }
    }

    fn apply(&self, vector: &mut Vec<f32>) {
        vector.resize(self.width, 0.0);
        for (round, signs) in self.signs.chunks_exact(self.width).enumerate() {
            for (it, sign) in vector.iter_mut().zip(signs) {
                *it *= sign;
            }
            hadamard(&mut vector[window_of(round, self.width, self.window)]);
            if self.window < self.width {
                mix_halves(vector);
            }
        }
    }
}

/// Which numbers are transformed in a round.
fn window_of(round: usize, width: usize, window: usize) -> Range<usize> {
    if round.is_multiple_of(2) {
        0..window
    } else {
        width - window..width
    }
}

/// Turns each number of the first half and its partner in the second by an eighth.
fn mix_halves(numbers: &mut [f32]) {
    let (low, high) = numbers.split_at_mut(numbers.len() / 2);
    for (a, b) in low.iter_mut().zip(high) {
        let (sum, difference) = (*a + *b, *a - *b);
        (*a, *b) = (sum * FRAC_1_SQRT_2, difference * FRAC_1_SQRT_2);
    }
}

/// The Walsh-Hadamard transform, in place, of a power of two of numbers.
fn hadamard(numbers: &mut [f32]) {
    let mut half = 1;
    while half < numbers.len() {
        for pair in numbers.chunks_exact_mut(2 * half) {
            let (low, high) = pair.split_at_mut(half);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half *= 2;
    }
}

/// SplitMix64: a few lines, and the same in every process and version.
pub(crate) fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut it = *state;
    it = (it ^ it >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    it = (it ^ it >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    it ^ it >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_vectors(n: usize, dimensions: usize) -> Vec<Vec<f32>> {
        let mut random = 1;
        let mut number = || (next_random(&mut random) >> 40) as f32 / (1 << 23) as f32 - 1.0;
        let vector = |_| {
            let mut vector: Vec<f32> = (0..dimensions).map(|_| number()).collect();
            kenning_embed::normalize(&mut vector);
            vector
        };
        (0..n).map(vector).collect()
    }

    #[test]
    fn the_rotation_keeps_lengths_and_angles() {
        for dimensions in [1, 3, 64, 100, 192, 256, 384, 1_088, 1_536, 1_984] {
            let mut vectors = random_vectors(2, dimensions);
            let before = dot(&vectors[0], &vectors[1]);
            let rotation = Rotation::new(dimensions);
            vectors.iter_mut().for_each(|it| rotation.apply(it));
            let after = dot(&vectors[0], &vectors[1]);
            assert!((before - after).abs() < 1e-5, "{dimensions}");
            let length = dot(&vectors[0], &vectors[0]);
            assert!((length - 1.0).abs() < 1e-5, "{dimensions}");
        }
    }

    #[test]
    fn the_rotation_spreads_a_single_number_over_all() {
        for dimensions in [256, 192, 320, 960, 1_088, 1_536, 1_984] {
            for at in [17, dimensions / 2, dimensions - 1] {
                let mut vector = vec![0.0; dimensions];
                vector[at] = 1.0;
                Rotation::new(dimensions).apply(&mut vector);
                assert_eq!(vector.len(), dimensions);
                let largest = vector.iter().fold(0.0_f32, |max, it| max.max(it.abs()));
                let even = 1.0 / (dimensions as f32).sqrt();
                assert!(largest < 5.0 * even, "{dimensions} {at}: {largest}");
                for half in vector.chunks(dimensions / 2) {
                    let share = dot(half, half);
                    assert!((0.3..0.7).contains(&share), "{dimensions} {at}: {share}");
                }
            }
        }
    }

    #[test]
    fn estimates_are_right_on_average_and_near_for_each() {
        for (dimensions, near) in [
            (64, 0.6),
            (100, 0.6),
            (256, 0.3),
            (384, 0.25),
            (960, 0.15),
            (1_024, 0.15),
        ] {
            for shift in [0.0, 1.5] {
                let mut vectors = random_vectors(300, dimensions);
                for vector in &mut vectors {
                    vector
                        .iter_mut()
                        .for_each(|it| *it += shift / (dimensions as f32).sqrt());
                    kenning_embed::normalize(vector);
                }
                let mean = |i| vectors.iter().map(|it| it[i]).sum::<f32>() / 300.0;
                let mut sketches = Sketches::around((0..dimensions).map(mean).collect());
                vectors.iter().for_each(|it| sketches.push(it));
                let mut error_sum = 0.0;
                for (at, query) in vectors[..20].iter().enumerate() {
                    let mut estimates = vec![0.0; vectors.len()];
                    sketches.estimate(query, &mut estimates);
                    // Here all that the sketch loses has one sign: without the factor, a fifth is lost.
                    let own = estimates[at];
                    assert!((own - 1.0).abs() < 0.1, "{dimensions} {shift}: {own}");
                    for (estimate, vector) in estimates.iter().zip(&vectors) {
                        let error = estimate - dot(query, vector);
                        assert!(error.abs() < near, "{dimensions} {shift}: {error}");
                        error_sum += error;
                    }
                }
                let error_mean = error_sum / 6_000.0;
                assert!(
                    error_mean.abs() < 0.004,
                    "{dimensions} {shift}: {error_mean}"
                );
            }
        }
    }

    #[test]
    fn what_lies_at_the_center_and_a_query_there_have_finite_estimates() {
        let center = vec![0.125; 64];
        let mut sketches = Sketches::around(center.clone());
        sketches.push(&center);
        sketches.push(&[0.0; 64]);
        for query in [&center, &vec![0.0; 64]] {
            let mut estimates = [f32::NAN; 2];
            sketches.estimate(query, &mut estimates);
            assert!(
                (estimates[0] - dot(&center, query)).abs() < 1e-5,
                "{estimates:?}"
            );
            assert!(estimates[1].abs() < 0.3, "{estimates:?}");
        }
    }
}
