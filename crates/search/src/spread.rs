//! How numbers spread.

/// Mean and standard deviation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
}

impl Spread {
    pub(crate) fn of(values: &[f64]) -> Self {
        let n = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / n;
        Self {
            mean,
            deviation: variance.sqrt().max(1e-6),
        }
    }

    /// How many deviations above the mean.
    pub(crate) fn height(self, value: f64) -> f64 {
        (value - self.mean) / self.deviation
    }
}
