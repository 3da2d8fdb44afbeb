//! Vectors as codes only: 8 bits a number, and one where there are many.
//!
//! What the numbers themselves are is read from the store, for the few that an answer is made of; so
//! a vector costs a little more than a byte a number.

use crate::scan::{CoarseQuery, SKETCHED_FROM};
use crate::sketch::{Asked, BLOCK, Sketches, make_room, retain_rows};
use kenning_simd::dot_i8_i16;
use std::ops::Range;

/// From so many numbers on, sketches pay: as for passages, whose vectors have 256 …
const SKETCHED_NUMBERS: usize = SKETCHED_FROM * 256;
/// … if there are also so many vectors, of which sketches then leave out half.
const SKETCHED_MIN: usize = 2 * PROPOSED_MIN;

/// Shorter vectors have sketches about as long as their codes.
const SKETCHED_DIMENSIONS: usize = 64;

/// At least so many get a better cosine than the sketch's estimate …
const PROPOSED_MIN: usize = 2_048;
/// … or one of so many: where there are more, more lie so near to each other that estimates do not
/// tell them apart.
const PROPOSED_ONE_OF: usize = 128;

/// From so many on a second thread takes less time to start than it saves.
const SHARED_FROM: usize = 200_000;

/// Which of the vectors may be found.
#[derive(Clone, Copy)]
pub(crate) enum Among<'a> {
    /// Those that are not marked as gone.
    Living(&'a [bool]),
    /// These, in ascending order.
    These(&'a [u32]),
}

impl Among<'_> {
    fn len(self) -> usize {
        match self {
            Self::Living(all) => all.len(),
            Self::These(places) => places.len(),
        }
    }

    /// One of `of` equal parts.
    fn part(self, i: usize, of: usize) -> Range<usize> {
        self.len() * i / of..self.len() * (i + 1) / of
    }
}

/// A vector with a cosine that is right to about two digits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scored {
    pub(crate) at: u32,
    pub(crate) cosine: f32,
}

/// What was found, and how.
pub(crate) struct Proposed {
    /// Best first.
    pub(crate) best: Vec<Scored>,
    /// Whether sketches chose what was looked at.
    pub(crate) sketched: bool,
}

/// Codes of vectors of one dimension, in the order in which they were added.
#[derive(Debug)]
pub(crate) struct Codes {
    dimensions: usize,
    rows: Vec<i8>,
    scales: Vec<f32>,
    sketched: Option<Sketched>,
}

#[derive(Debug)]
struct Sketched {
    sketches: Sketches,
    /// How many vectors the center is the mean of.
    centered: usize,
}

impl Codes {
    pub(crate) fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            rows: Vec::new(),
            scales: Vec::new(),
            sketched: None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.scales.len()
    }

    /// Adds a vector of length 1, or zeros.
    pub(crate) fn push(&mut self, vector: &[f32]) {
        let largest = vector.iter().fold(0.0_f32, |max, it| max.max(it.abs()));
        let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
        make_room(&mut self.rows, self.dimensions);
        make_room(&mut self.scales, 1);
        self.rows
            .extend(vector.iter().map(|it| (it / scale).round() as i8));
        self.scales.push(scale);
    }

    /// Makes scans fast, if there are enough for it to matter. Those that it has not seen are found all
    /// the same.
    pub(crate) fn prepare(&mut self) {
        let n = self.len();
        if !self.sketches_pay(n) {
            return;
        }
        let known = self.sketched.take();
        // The mean of the first vectors is not that of all, but twice as many move it little.
        let known = known.filter(|it| n < 2 * it.centered);
        let mut sketched = known.unwrap_or_else(|| Sketched {
            sketches: Sketches::around(self.mean()),
            centered: n,
        });
        let mut vector = Vec::with_capacity(self.dimensions);
        for at in sketched.sketches.len()..n {
            vector.clear();
            let scale = self.scales[at];
            vector.extend(self.row(at).iter().map(|&it| f32::from(it) * scale));
            sketched.sketches.push(&vector);
        }
        self.sketched = Some(sketched);
    }

    /// Whether so many are found sooner by looking at sketches first.
    fn sketches_pay(&self, n: usize) -> bool {
        self.dimensions >= SKETCHED_DIMENSIONS
            && n >= SKETCHED_MIN
            && n * self.dimensions >= SKETCHED_NUMBERS
    }

    fn row(&self, at: usize) -> &[i8] {
        &self.rows[at * self.dimensions..][..self.dimensions]
    }

    fn mean(&self) -> Vec<f32> {
        let mut sum = vec![0.0_f32; self.dimensions];
        let mut total = vec![0.0_f64; self.dimensions];
        let rows = self.rows.chunks_exact(self.dimensions.max(1));
        for (i, (row, scale)) in rows.zip(&self.scales).enumerate() {
            for (sum, it) in sum.iter_mut().zip(row) {
                *sum += f32::from(*it) * scale;
            }
            // Sums of few are exact enough in single precision.
            if i % BLOCK == BLOCK - 1 || i + 1 == self.len() {
                for (total, sum) in total.iter_mut().zip(&mut sum) {
                    *total += f64::from(std::mem::take(sum));
                }
            }
        }
        let n = self.len().max(1) as f64;
        total.iter().map(|it| (it / n) as f32).collect()
    }

    /// Keeps only these, which are in ascending order.
    pub(crate) fn retain(&mut self, places: &[u32]) {
        let n_sketched = self.sketched.as_ref().map_or(0, |it| it.sketches.len());
        if let Some(sketched) = &mut self.sketched {
            let end = places.partition_point(|&it| (it as usize) < n_sketched);
            sketched.sketches.retain(&places[..end]);
        }
        retain_rows(&mut self.rows, self.dimensions, places);
        retain_rows(&mut self.scales, 1, places);
    }

    /// How much memory it has.
    pub(crate) fn bytes(&self) -> usize {
        let sketches = self.sketched.as_ref().map_or(0, |it| it.sketches.bytes());
        self.rows.capacity() + self.scales.capacity() * 4 + sketches
    }

    /// By how much the cosine of one may be off, as a standard deviation: each number was rounded to
    /// steps, and what was rounded away adds up at random.
    pub(crate) fn deviation(&self, at: u32) -> f32 {
        self.scales[at as usize] / 12.0_f32.sqrt()
    }

    /// The `wanted` nearest to a query of length 1, best first, by at most so many threads.
    pub(crate) fn nearest(
        &self,
        query: &[f32],
        among: Among<'_>,
        wanted: usize,
        threads: usize,
    ) -> Proposed {
        let Some(coarse) = CoarseQuery::of(query) else {
            return Proposed {
                best: Vec::new(),
                sketched: false,
            };
        };
        let sketches = self.sketched.as_ref().map(|it| &it.sketches);
        let sketches = sketches.filter(|_| self.sketches_pay(among.len()));
        let asked = sketches.map(|sketch| (sketch, sketch.asked(query)));
        let asked = asked.as_ref().map(|(sketches, asked)| (*sketches, asked));
        let proposed = if asked.is_some() {
            PROPOSED_MIN
                .max(among.len() / PROPOSED_ONE_OF)
                .max(8 * wanted)
        } else {
            wanted
        };
        let scan =
            |i: usize, of: usize| self.scan(&coarse, asked, among, among.part(i, of), proposed);
        let n_parts = if among.len() < SHARED_FROM {
            1
        } else {
            threads
        };
        let mut best = in_parts(n_parts, proposed, scan);
        if asked.is_some() {
            // In the order of memory.
            best.sort_unstable_by_key(|it| it.at);
            for it in &mut best {
                it.cosine = self.cosine(it.at, &coarse);
            }
            let mut of_proposed = Best::new(wanted);
            of_proposed.kept = best;
            best = of_proposed.into_best();
        }
        best.sort_unstable_by(|a, b| b.cosine.total_cmp(&a.cosine).then(a.at.cmp(&b.at)));
        best.truncate(wanted);
        Proposed {
            best,
            sketched: asked.is_some(),
        }
    }

    /// The best of a part: by estimate where there are sketches, otherwise by their codes.
    fn scan(
        &self,
        coarse: &CoarseQuery,
        asked: Option<(&Sketches, &Asked)>,
        among: Among<'_>,
        part: Range<usize>,
        wanted: usize,
    ) -> Best {
        let mut best = Best::new(wanted);
        let mut scores = [0.0_f32; BLOCK];
        let n_sketched = asked.map_or(0, |(sketches, _)| sketches.len());
        match among {
            Among::Living(living) => {
                let mut start = part.start;
                while start < part.end {
                    let is_sketched = start < n_sketched;
                    let end = if is_sketched { n_sketched } else { part.end };
                    let n = (end.min(part.end) - start).min(BLOCK);
                    let scores = &mut scores[..n];
                    match asked {
                        Some((sketches, asked)) if is_sketched => {
                            sketches.estimate_from(asked, start, scores);
                        }
                        _ => self.cosines_from(start, coarse, scores),
                    }
                    best.offer(scores, |i| start + i, |at| living[at]);
                    start += n;
                }
            }
            Among::These(places) => {
                let places = &places[part];
                let n_sketched = places.partition_point(|&it| (it as usize) < n_sketched);
                let (sketched, others) = places.split_at(n_sketched);
                let mut gathered = Vec::new();
                for block in sketched.chunks(BLOCK) {
                    let scores = &mut scores[..block.len()];
                    if let Some((sketches, asked)) = asked {
                        sketches.estimate_these(asked, block, &mut gathered, scores);
                    }
                    best.offer(scores, |i| block[i] as usize, |_| true);
                }
                for block in others.chunks(BLOCK) {
                    let scores = &mut scores[..block.len()];
                    for (score, &at) in scores.iter_mut().zip(block) {
                        *score = self.cosine(at, coarse);
                    }
                    best.offer(scores, |i| block[i] as usize, |_| true);
                }
            }
        }
        best
    }

    fn cosine(&self, at: u32, query: &CoarseQuery) -> f32 {
        let mut dot = [0];
        dot_i8_i16(self.row(at as usize), &query.codes, &mut dot);
        dot[0] as f32 * self.scales[at as usize] * query.step
    }

    /// The cosines of those from `start` on, as many as there are places for.
    fn cosines_from(&self, start: usize, query: &CoarseQuery, out: &mut [f32]) {
        let mut dots = [0; BLOCK];
        let dots = &mut dots[..out.len()];
        dot_i8_i16(&self.rows[start * self.dimensions..], &query.codes, dots);
        let scales = &self.scales[start..];
        for ((out, dot), scale) in out.iter_mut().zip(dots).zip(scales) {
            *out = *dot as f32 * scale * query.step;
        }
    }
}

/// Runs parts side by side, this thread being one of them, and gives the best of all.
fn in_parts(
    n_parts: usize,
    wanted: usize,
    scan: impl Fn(usize, usize) -> Best + Sync,
) -> Vec<Scored> {
    if n_parts <= 1 {
        return scan(0, 1).into_best();
    }
    std::thread::scope(|scope| {
        let scan = &scan;
        let others: Vec<_> = (1..n_parts)
            .map(|i| scope.spawn(move || scan(i, n_parts).into_best()))
            .collect();
        let mut all = Best::new(wanted);
        all.kept = scan(0, n_parts).into_best();
        for part in others {
            // A panic there is a panic here.
            match part.join() {
                Ok(part) => all.kept.extend(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all.into_best()
    })
}

/// The best so far, in no order. Twice as many as are wanted are gathered before the worse half goes,
/// so that most of what is offered costs one comparison.
struct Best {
    wanted: usize,
    kept: Vec<Scored>,
    /// Nothing below this can be among the wanted.
    floor: f32,
}

impl Best {
    fn new(wanted: usize) -> Self {
        Self {
            wanted: wanted.max(1),
            kept: Vec::new(),
            floor: f32::NEG_INFINITY,
        }
    }

    fn offer(
        &mut self,
        scores: &[f32],
        place: impl Fn(usize) -> usize,
        admits: impl Fn(usize) -> bool,
    ) {
        for (i, &cosine) in scores.iter().enumerate() {
            if cosine > self.floor {
                let at = place(i);
                if admits(at) {
                    // There are fewer than four billion places.
                    let at = u32::try_from(at).unwrap_or(u32::MAX);
                    self.kept.push(Scored { at, cosine });
                    if self.kept.len() == 2 * self.wanted {
                        self.cut();
                    }
                }
            }
        }
    }

    fn cut(&mut self) {
        if self.kept.len() > self.wanted {
            let by_cosine =
                |a: &Scored, b: &Scored| b.cosine.total_cmp(&a.cosine).then(a.at.cmp(&b.at));
            let (_, last, _) = self.kept.select_nth_unstable_by(self.wanted - 1, by_cosine);
            self.floor = last.cosine;
            self.kept.truncate(self.wanted);
        }
    }

    fn into_best(mut self) -> Vec<Scored> {
        self.cut();
        self.kept
    }
}

/// The direction of a vector: the same with length 1, or `None` for zeros.
pub(crate) fn direction(vector: &[f32]) -> Option<Vec<f32>> {
    // Squares of what single precision can hold may be beyond it.
    let square: f64 = vector
        .iter()
        .map(|&value| f64::from(value) * f64::from(value))
        .sum();
    let length = square.sqrt();
    let is_direction = length > 0.0 && length.is_finite();
    let scaled = |it: &f32| (f64::from(*it) / length) as f32;
    is_direction.then(|| vector.iter().map(scaled).collect())
}
