//! Checks and normalizes the output of every model.

/// The same direction with length 1, and all zeros as they are. Nothing if a number is not finite.
pub(crate) fn unit(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    // In double precision, because the squares of large single ones overflow.
    let squares: f64 = vector.iter().map(|&it| f64::from(it) * f64::from(it)).sum();
    if !squares.is_finite() {
        return None;
    }
    if squares > 0.0 {
        let length = squares.sqrt();
        for value in &mut vector {
            *value = (f64::from(*value) / length) as f32;
        }
    }
    Some(vector)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_gets_length_one_whatever_its_size() {
        for (given, expected) in [
            (vec![3.0, 4.0], Some(vec![0.6, 0.8])),
            (
                vec![3.0 * 2f32.powi(100), 2f32.powi(102)],
                Some(vec![0.6, 0.8]),
            ),
            (vec![0.0, 1e-30], Some(vec![0.0, 1.0])),
            (vec![0.0, 0.0], Some(vec![0.0, 0.0])),
            (vec![f32::NAN, 1.0], None),
            (vec![f32::INFINITY, 1.0], None),
        ] {
            assert_eq!(unit(given.clone()), expected, "{given:?}");
        }
    }
}
