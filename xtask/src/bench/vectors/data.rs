//! Clustered vectors, questions, and the right answers.

use super::LIMIT;
use kenning_core::SeededRandom;

const CENTERS: usize = 1_000;

/// Questions of a run.
const QUERIES: usize = 200;

const SEED: u64 = 8_351;

/// Numbers that are added side by side.
const LANES: usize = 16;

/// What share of the vectors a filter admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    All,
    Tenth,
    Hundredth,
}

impl Share {
    pub(super) const ALL: [Self; 3] = [Self::All, Self::Tenth, Self::Hundredth];

    /// One of so many.
    pub(super) const fn one_of(self) -> usize {
        match self {
            Self::All => 1,
            Self::Tenth => 10,
            Self::Hundredth => 100,
        }
    }

    /// The property that those have.
    pub(super) const fn facet(self) -> &'static [u64] {
        match self {
            Self::All => &[],
            Self::Tenth => &[10],
            Self::Hundredth => &[100],
        }
    }

    /// All properties of a vector.
    pub(super) fn facets(i: usize) -> Vec<u64> {
        let of = [10, 100].into_iter();
        of.filter(|it| (i as u64).is_multiple_of(*it)).collect()
    }
}

/// Vectors around centers, each as far from its own as that is from nothing, and questions from the
/// same.
pub(super) struct Data {
    pub(super) n: usize,
    pub(super) dimensions: usize,
    numbers: Vec<f32>,
    queries: Vec<f32>,
    /// The nearest of each question, for each share.
    truth: Vec<Vec<Vec<usize>>>,
}

impl Data {
    pub(super) fn make(n: usize, dimensions: usize) -> Self {
        let random = SeededRandom::new(SEED);
        let mut centers = Vec::with_capacity(CENTERS * dimensions);
        for _ in 0..CENTERS {
            push_unit(&mut centers, dimensions, |_| normal(&random));
        }
        let spread = 1.0 / (dimensions as f32).sqrt();
        let push = |to: &mut Vec<f32>| {
            let center = usize::try_from(random.below(CENTERS as u64)).unwrap_or(0);
            let center = &centers[center * dimensions..][..dimensions];
            push_unit(to, dimensions, |i| center[i] + spread * normal(&random));
        };
        let mut numbers = Vec::with_capacity(n * dimensions);
        (0..n).for_each(|_| push(&mut numbers));
        let mut queries = Vec::with_capacity(QUERIES * dimensions);
        (0..QUERIES).for_each(|_| push(&mut queries));
        let mut data = Self {
            n,
            dimensions,
            numbers,
            queries,
            truth: Vec::new(),
        };
        data.truth = Share::ALL.map(|share| data.compare_all(share)).to_vec();
        data
    }

    pub(super) fn vector(&self, i: usize) -> &[f32] {
        &self.numbers[i * self.dimensions..][..self.dimensions]
    }

    pub(super) fn queries(&self) -> impl Iterator<Item = &[f32]> {
        self.queries.chunks_exact(self.dimensions)
    }

    fn compare_all(&self, share: Share) -> Vec<Vec<usize>> {
        let nearest = |query: &[f32]| {
            let mut best: Vec<(f32, usize)> = Vec::new();
            for i in (0..self.n).step_by(share.one_of()) {
                let score = dot(query, self.vector(i));
                if best.len() < LIMIT || best.last().is_some_and(|it| score > it.0) {
                    let at = best.partition_point(|it| it.0 >= score);
                    best.insert(at, (score, i));
                    best.truncate(LIMIT);
                }
            }
            best.into_iter().map(|it| it.1).collect()
        };
        self.queries().map(nearest).collect()
    }

    /// What share of the right answers was found.
    pub(super) fn recall(&self, share: Share, found: &[Vec<usize>]) -> f64 {
        let at = Share::ALL.iter().position(|it| *it == share).unwrap_or(0);
        let truth = &self.truth[at];
        let both = truth.iter().zip(found);
        let held: usize = both
            .map(|(truth, found)| truth.iter().filter(|it| found.contains(it)).count())
            .sum();
        let of: usize = truth.iter().map(Vec::len).sum();
        held as f64 / of.max(1) as f64
    }

    /// Vectors, questions, and answers for each share: what a peer reads.
    pub(super) fn files(&self) -> [(&'static str, Vec<u8>); 3] {
        let bytes = |numbers: &[f32]| numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
        let truth = self.truth.iter().flatten().flatten();
        let truth = truth.flat_map(|&it| u32::try_from(it).unwrap_or(u32::MAX).to_le_bytes());
        [
            ("vectors.f32", bytes(&self.numbers)),
            ("queries.f32", bytes(&self.queries)),
            ("truth.u32", truth.collect()),
        ]
    }
}

fn push_unit(to: &mut Vec<f32>, dimensions: usize, number: impl Fn(usize) -> f32) {
    let start = to.len();
    to.extend((0..dimensions).map(number));
    let length = dot(&to[start..], &to[start..]).sqrt();
    to[start..].iter_mut().for_each(|it| *it /= length);
}

/// About the normal distribution: the sum of sixteen even numbers of four bits.
fn normal(random: &SeededRandom) -> f32 {
    let bits = random.below(u64::MAX);
    let sum: u64 = (0..16).map(|i| bits >> (4 * i) & 15).sum();
    // Sixteen times the variance of a number from 0 to 15, (16 * 16 - 1) / 12.
    (sum as f32 - 120.0) / 340.0_f32.sqrt()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a_lanes, a_rest) = a.as_chunks::<LANES>();
    let (b_lanes, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in a_lanes.iter().zip(b_lanes) {
        for i in 0..LANES {
            sums[i] += a[i] * b[i];
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| a * b);
    sums.iter().sum::<f32>() + rest.sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_answers_are_those_of_a_full_sort() {
        let data = Data::make(1_500, 24);
        let query = data.queries().nth(3).unwrap();
        for (share, truth) in Share::ALL.into_iter().zip(&data.truth) {
            let mut all: Vec<usize> = (0..data.n).step_by(share.one_of()).collect();
            let score = |i: &usize| dot(query, data.vector(*i));
            all.sort_by(|a, b| score(b).total_cmp(&score(a)));
            assert_eq!(truth[3], all[..LIMIT]);
            assert!((data.recall(share, truth) - 1.0).abs() < 1e-9);
        }
        let nothing = vec![Vec::new(); QUERIES];
        assert!(data.recall(Share::All, &nothing) < 1e-9);
        let [vectors, queries, truth] = data.files().map(|it| it.1.len());
        assert_eq!((vectors, queries), (1_500 * 24 * 4, QUERIES * 24 * 4));
        assert_eq!(truth, 3 * QUERIES * LIMIT * 4);
    }
}
