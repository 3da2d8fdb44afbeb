//! Vectors, scanned.
//!
//! Each vector is kept twice: in 8 bits a number for the scan over all, and in 16 bits for those that
//! the scan proposes. There is no index to build, to tune or to repair, a filter costs nothing, and
//! what another process wrote is appended.

/// Vectors of one dimension, in the order in which they were added.
#[derive(Debug)]
pub(crate) struct Vectors {
    dimensions: usize,
    coarse: Vec<i8>,
    coarse_scale: Vec<f32>,
    fine: Vec<i16>,
    fine_scale: Vec<f32>,
}

impl Vectors {
    pub(crate) fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            coarse: Vec::new(),
            coarse_scale: Vec::new(),
            fine: Vec::new(),
            fine_scale: Vec::new(),
        }
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

    /// The cosines of all, to about two digits.
    pub(crate) fn scan(&self, query: &[f32], out: &mut Vec<f32>) {
        out.clear();
        let largest = query.iter().fold(0.0_f32, |max, it| max.max(it.abs()));
        if largest == 0.0 {
            out.resize(self.len(), 0.0);
            return;
        }
        let step = largest / 2_047.0;
        let query: Vec<i16> = query.iter().map(|it| (it / step).round() as i16).collect();
        let rows = self.coarse.chunks_exact(self.dimensions.max(1));
        out.extend(rows.zip(&self.coarse_scale).map(|(row, scale)| {
            let dot: i32 = row
                .iter()
                .zip(&query)
                .map(|(&a, &b)| i32::from(i16::from(a)) * i32::from(b))
                .sum();
            dot as f32 * scale * step
        }));
    }

    /// The cosine of one, to five digits.
    pub(crate) fn cosine(&self, at: usize, query: &[f32]) -> f32 {
        let row = &self.fine[at * self.dimensions..][..self.dimensions];
        let dot: f32 = row.iter().zip(query).map(|(&a, b)| f32::from(a) * b).sum();
        dot * self.fine_scale[at]
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
}
