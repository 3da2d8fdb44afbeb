//! The first choice: everything, roughly.

use super::Mode;
use super::asked::Asked;

/// The share of full text in the fusion.
const TEXT_SHARE: f64 = 0.4;
/// How finely scores are told apart when the best are chosen.
const STEPS: usize = 2_048;

/// Full text and vectors, each from 0 to 1.
pub(super) fn fused(text: f64, cosine: f64) -> f64 {
    TEXT_SHARE * text + (1.0 - TEXT_SHARE) * cosine
}

/// Every passage with its text score and a rough cosine: what the first choice is made from.
pub(super) struct Rough {
    pub(super) admitted: Vec<u32>,
    pub(super) text: Vec<f32>,
    pub(super) cosine: Vec<f32>,
    pub(super) by_text: Scale,
    pub(super) lowest_cosine: f64,
    by_cosine: Scale,
}

impl Rough {
    pub(super) fn of(asked: &Asked<'_>) -> Self {
        let index = asked.index;
        let admitted = asked.admission.admitted();
        let (mut text, mut cosine) = (Vec::new(), Vec::new());
        // Where nothing may be found nothing is looked at.
        if !admitted.is_empty() {
            text = asked.text_scores();
            index.vectors.scan(&asked.parsed.vector, &mut cosine);
            if asked.query.mode == Mode::Semantic {
                asked.put_model_cosines(&mut cosine);
            }
        }
        let n = admitted.len();
        let (text_low, text_high) = ends(&text, &admitted);
        let (cosine_low, cosine_high) = ends(&cosine, &admitted);
        Self {
            admitted,
            text,
            cosine,
            by_text: Scale::between(text_low, text_high, n),
            lowest_cosine: cosine_low,
            by_cosine: Scale::between(cosine_low, cosine_high, n),
        }
    }

    /// What a mode orders by, in [`STEPS`]. Every passage is looked at, so it is a few multiplications.
    fn steps(&self, mode: Mode) -> Vec<u16> {
        let (text_share, cosine_share) = match mode {
            Mode::Hybrid | Mode::Fused => (TEXT_SHARE, 1.0 - TEXT_SHARE),
            Mode::Semantic => (0.0, 1.0),
            Mode::FullText => (1.0, 0.0),
        };
        let factor = |share: f64, scale: &Scale| {
            let step = share * (STEPS - 1) as f64 / scale.range;
            (step as f32, scale.low as f32)
        };
        let (text_factor, text_low) = factor(text_share, &self.by_text);
        let (cosine_factor, cosine_low) = factor(cosine_share, &self.by_cosine);
        let step = |(text, cosine): (&f32, &f32)| {
            let by_text = text_factor * (text - text_low).max(0.0);
            let by_cosine = cosine_factor * (cosine - cosine_low).max(0.0);
            (by_text + by_cosine).min((STEPS - 1) as f32) as u16
        };
        if self.admitted.len() == self.text.len() {
            return self.text.iter().zip(&self.cosine).map(step).collect();
        }
        let admitted = self.admitted.iter().map(|&at| at as usize);
        let each = admitted.map(|at| step((&self.text[at], &self.cosine[at])));
        each.collect()
    }

    /// About so many of the best, or all: counted by score instead of sorted.
    pub(super) fn best(&self, wanted: usize, mode: Mode) -> Vec<u32> {
        if self.admitted.len() <= wanted {
            return self.admitted.clone();
        }
        let steps = self.steps(mode);
        let mut counts = [0_usize; STEPS];
        for &it in &steps {
            counts[usize::from(it)] += 1;
        }
        let mut sum = 0;
        let lowest = (0..STEPS).rev().find(|&it| {
            sum += counts[it];
            sum >= wanted
        });
        let lowest = u16::try_from(lowest.unwrap_or(0)).unwrap_or(0);
        let both = self.admitted.iter().zip(&steps);
        let good = both.filter(|(_, it)| **it >= lowest).map(|(at, _)| *at);
        // Where very many are equally good, the later ones say no more than the first.
        good.take(4 * wanted).collect()
    }
}

/// The lowest and the highest score of those that are admitted.
fn ends(scores: &[f32], admitted: &[u32]) -> (f64, f64) {
    /// Several at a time, because each comparison of a single one waits for the one before.
    const LANES: usize = 16;
    let (mut low, mut high) = ([f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES]);
    let mut look = |lane: usize, score: f32| {
        low[lane] = if score < low[lane] { score } else { low[lane] };
        high[lane] = if score > high[lane] {
            score
        } else {
            high[lane]
        };
    };
    if admitted.len() == scores.len() {
        let (lanes, rest) = scores.as_chunks::<LANES>();
        for chunk in lanes {
            (0..LANES).for_each(|lane| look(lane, chunk[lane]));
        }
        rest.iter().for_each(|&score| look(0, score));
    } else {
        for chunk in admitted.chunks(LANES) {
            let each = chunk.iter().enumerate();
            each.for_each(|(lane, &at)| look(lane, scores[at as usize]));
        }
    }
    let low = low.into_iter().fold(f32::INFINITY, f32::min);
    let high = high.into_iter().fold(f32::NEG_INFINITY, f32::max);
    (f64::from(low), f64::from(high))
}

/// Moves scores to 0..1, from the lowest to the highest.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    low: f64,
    range: f64,
}

/// Among fewer scores than this the lower end is nearer to zero, so that the second of two good ones
/// does not become 0.
const MANY: f64 = 100.0;

impl Scale {
    /// Of the scores of `n` passages.
    pub(super) fn of(scores: impl Iterator<Item = f64>, n: usize) -> Self {
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        let (low, high) = scores.fold(ends, |(low, high), it| (low.min(it), high.max(it)));
        Self::between(low, high, n)
    }

    /// From the lowest of the first ones to the highest of all.
    pub(super) fn of_first(scores: &[f64], first: usize) -> Self {
        let low = scores
            .iter()
            .take(first)
            .copied()
            .fold(f64::INFINITY, f64::min);
        let high = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self::between(low, high, scores.len())
    }

    fn between(low: f64, high: f64, n: usize) -> Self {
        let low = low * (n as f64 / MANY).min(1.0);
        Self {
            low,
            range: (high - low).max(1e-9),
        }
    }

    pub(super) fn apply(&self, score: f64) -> f64 {
        (score - self.low).max(0.0) / self.range
    }
}
