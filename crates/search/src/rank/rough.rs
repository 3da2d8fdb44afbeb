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
        let of = |scores: &[f32]| {
            let scores = admitted.iter().map(|&at| f64::from(scores[at as usize]));
            (
                Scale::of(scores.clone(), admitted.len()),
                scores.fold(f64::INFINITY, f64::min),
            )
        };
        let ((by_text, _), (by_cosine, lowest_cosine)) = (of(&text), of(&cosine));
        Self {
            admitted,
            text,
            cosine,
            by_text,
            lowest_cosine,
            by_cosine,
        }
    }

    /// What a mode orders by, from 0 to 1.
    pub(super) fn score(&self, at: u32, mode: Mode) -> f64 {
        let text = || self.by_text.apply(f64::from(self.text[at as usize]));
        let cosine = || self.by_cosine.apply(f64::from(self.cosine[at as usize]));
        match mode {
            Mode::Hybrid | Mode::Fused => fused(text(), cosine()),
            Mode::Semantic => cosine(),
            Mode::FullText => text(),
        }
    }

    /// About so many of the best, or all: counted by score instead of sorted.
    pub(super) fn best(&self, wanted: usize, mode: Mode) -> Vec<u32> {
        if self.admitted.len() <= wanted {
            return self.admitted.clone();
        }
        let step = |score: f64| ((score * (STEPS - 1) as f64) as usize).min(STEPS - 1);
        let steps: Vec<u16> = self
            .admitted
            .iter()
            .map(|&at| u16::try_from(step(self.score(at, mode))).unwrap_or(u16::MAX))
            .collect();
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
