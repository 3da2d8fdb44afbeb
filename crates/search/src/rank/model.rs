//! Another model than the built-in table: when it answers, and what its cosines mean.

use super::THRESHOLD;
use super::asked::Asked;
use crate::spread::Spread;

/// Passages that a model's cosines are looked at in, to know how they spread.
const SAMPLE: usize = 500;
/// So many deviations above unrelated passages an answer stands, by a model other than the table.
const MODEL_STANDS_OUT: f64 = 3.0;
const MODEL_SLOPE: f64 = 1.5;

/// What is known of the chosen model's cosines with this query.
pub(super) struct Other {
    /// Mean and deviation of its cosines, and of the table's with the same passages.
    pub(super) by_model: Spread,
    pub(super) by_table: Spread,
    /// What its cosines are between passages that have nothing to do with each other.
    pub(super) unrelated: Option<Spread>,
}

impl Other {
    /// Where the chosen model has seen nine passages in ten; until then the table answers.
    pub(super) fn of(asked: &Asked<'_>) -> Option<Self> {
        asked.query.vector?;
        let index = asked.index;
        if !index.is_mostly_embedded() {
            return None;
        }
        let step = (index.entries.len() / SAMPLE).max(1);
        let sampled = (0..index.entries.len())
            .step_by(step)
            .filter(|&at| index.is_alive(at));
        let pairs =
            sampled.filter_map(|at| Some((asked.model_cosine(at)?, asked.table_cosine(at))));
        let (by_model, by_table): (Vec<f64>, Vec<f64>) = pairs.unzip();
        if by_model.is_empty() {
            return None;
        }
        Some(Self {
            by_model: Spread::of(&by_model),
            by_table: Spread::of(&by_table),
            unrelated: index.unrelated(),
        })
    }

    /// What the model would say of a passage that it has not seen yet, by what the table says.
    pub(super) fn estimate(&self, by_table: f64) -> f64 {
        self.by_model.mean + self.by_table.height(by_table) * self.by_model.deviation
    }

    /// Relevance by the model's cosine alone: 0.7 where it stands out from unrelated passages.
    pub(super) fn relevance(&self, cosine: f64) -> f64 {
        self.unrelated.map_or(0.0, |it| {
            logistic(MODEL_SLOPE * (it.height(cosine) - MODEL_STANDS_OUT))
        })
    }
}

/// z = 0 becomes the threshold.
pub(super) fn logistic(z: f64) -> f64 {
    1.0 / (1.0 + (-z - (THRESHOLD / (1.0 - THRESHOLD)).ln()).exp())
}
