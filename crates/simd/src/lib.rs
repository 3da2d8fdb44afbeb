//! Loops over vectors, compiled for several processors and chosen at run time.
//!
//! The binary must run on any processor of its family, but the wide instructions of newer ones make
//! these loops two to four times faster. Each is a plain loop that the compiler turns into vector
//! instructions, once for each set of features. The result is the same on every processor, to the
//! last bit.
//!
//! Choosing a version is the only unsafe code of this crate: the macro calls a function compiled for
//! features that it has just found to be there. It lives in a crate of its own so that no other crate
//! may contain unsafe code.

#![deny(missing_docs)]

use multiversion::multiversion;

/// How many planes the query of [`sketch_distances`] has.
pub const PLANES: usize = 4;

/// Sums that are kept side by side, so that adding can be done several at a time.
const LANES: usize = 16;

/// The dot products of many rows, one after the other in `rows`, with one query. Every sum must fit
/// 32 bits, which is the caller's to see to: it wraps around otherwise.
///
/// `out` has one place for each row; rows without a place are left out.
pub fn dot_i8_i16(rows: &[i8], query: &[i16], out: &mut [i32]) {
    if query.is_empty() {
        out.fill(0);
    } else {
        dot_i8_i16_versions(rows, query, out);
    }
}

#[allow(unsafe_code, reason = "calls the version that the processor supports")]
#[multiversion(targets("x86_64+avx2", "x86_64+sse4.1"))]
fn dot_i8_i16_versions(rows: &[i8], query: &[i16], out: &mut [i32]) {
    for (row, out) in rows.chunks_exact(query.len()).zip(out) {
        *out = row.iter().zip(query).fold(0_i32, |sum, (&a, &b)| {
            sum.wrapping_add(i32::from(i16::from(a)) * i32::from(b))
        });
    }
}

/// The dot product of a row with a query. The sum is taken in the same order on every processor.
#[allow(unsafe_code, reason = "calls the version that the processor supports")]
#[multiversion(targets("x86_64+avx2", "x86_64+sse4.1"))]
pub fn dot_i16_f32(row: &[i16], query: &[f32]) -> f32 {
    let (row_lanes, row_rest) = row.as_chunks::<LANES>();
    let (query_lanes, query_rest) = query.as_chunks::<LANES>();
    let mut sums = [0.0_f32; LANES];
    for (a, b) in row_lanes.iter().zip(query_lanes) {
        for i in 0..LANES {
            sums[i] += f32::from(a[i]) * b[i];
        }
    }
    let rest = row_rest.iter().zip(query_rest);
    let rest: f32 = rest.map(|(&a, b)| f32::from(a) * b).sum();
    sums.iter().sum::<f32>() + rest
}

/// How far rows of bits, one after the other in `rows`, are from a query whose bits have weights: the
/// bits in which a row differs from plane `p` count 2^p each.
///
/// A row has as many words as a plane. `out` has one place for each row; rows without a place are left
/// out.
pub fn sketch_distances(rows: &[u64], planes: [&[u64]; PLANES], out: &mut [u32]) {
    if planes.iter().any(|it| it.is_empty()) {
        out.fill(0);
    } else {
        sketch_distances_versions(rows, planes, out);
    }
}

#[allow(unsafe_code, reason = "calls the version that the processor supports")]
#[multiversion(targets(
    "x86_64+avx512f+avx512vl+avx512vpopcntdq",
    "x86_64+avx2+popcnt",
    "x86_64+popcnt"
))]
fn sketch_distances_versions(rows: &[u64], planes: [&[u64]; PLANES], out: &mut [u32]) {
    // A number of words that the compiler knows is worth a factor of two.
    match planes[0].len() {
        // 256, 384, 512, 768, 1,024 and 1,536 numbers: what models have.
        4 => sized::<4>(rows, planes, out),
        6 => sized::<6>(rows, planes, out),
        8 => sized::<8>(rows, planes, out),
        12 => sized::<12>(rows, planes, out),
        16 => sized::<16>(rows, planes, out),
        24 => sized::<24>(rows, planes, out),
        words => {
            for (row, out) in rows.chunks_exact(words).zip(out) {
                *out = distance(row, planes);
            }
        }
    }
}

#[inline(always)]
fn sized<const WORDS: usize>(rows: &[u64], planes: [&[u64]; PLANES], out: &mut [u32]) {
    let mut sized = [[0; WORDS]; PLANES];
    for (sized, plane) in sized.iter_mut().zip(planes) {
        for (to, from) in sized.iter_mut().zip(plane) {
            *to = *from;
        }
    }
    let (rows, _) = rows.as_chunks::<WORDS>();
    for (row, out) in rows.iter().zip(out) {
        *out = distance(row, sized.each_ref().map(|it| &it[..]));
    }
}

#[inline(always)]
fn distance(row: &[u64], planes: [&[u64]; PLANES]) -> u32 {
    let mut sum = 0;
    for (p, plane) in planes.iter().enumerate() {
        let differing = row.iter().zip(*plane).map(|(a, b)| (a ^ b).count_ones());
        sum += differing.sum::<u32>() << p;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Rows of one length, and a query of that length.
    fn rows_and_query<A: Strategy, B: Strategy>(
        a: impl Fn() -> A,
        b: impl Fn() -> B,
        length_max: usize,
    ) -> impl Strategy<Value = (Vec<Vec<A::Value>>, Vec<B::Value>)> {
        let lengths = (0..length_max, 0..9_usize);
        lengths.prop_flat_map(move |(length, n)| (vec(vec(a(), length), n), vec(b(), length)))
    }

    proptest! {
        #[test]
        fn codes_are_multiplied_like_by_hand(
            (rows, query) in rows_and_query(any::<i8>, any::<i16>, 150)
        ) {
            let by_hand = rows.iter().map(|row| {
                let products = row.iter().zip(&query).map(|(a, b)| i32::from(*a) * i32::from(*b));
                products.sum::<i32>()
            });
            let mut out = vec![-1; rows.len()];
            dot_i8_i16(&rows.concat(), &query, &mut out);
            prop_assert_eq!(out, by_hand.collect::<Vec<_>>());
        }

        #[test]
        fn fine_codes_are_multiplied_like_by_hand(
            (rows, query) in rows_and_query(any::<i16>, || -1.0_f32..1.0, 150)
        ) {
            for row in rows {
                let products = row.iter().zip(&query).map(|(a, b)| f64::from(*a) * f64::from(*b));
                let by_hand: f64 = products.sum();
                let found = f64::from(dot_i16_f32(&row, &query));
                prop_assert!((found - by_hand).abs() < 1.0, "{found} {by_hand}");
            }
        }

        #[test]
        fn differing_bits_are_counted_like_by_hand(
            (rows, planes) in rows_and_query(any::<u64>, any::<[u64; PLANES]>, 20)
        ) {
            let by_hand = rows.iter().map(|row| {
                let of_word = |(a, planes): (&u64, &[u64; PLANES])| {
                    let weighed = planes.iter().zip([1, 2, 4, 8]);
                    weighed.map(|(plane, weight)| (a ^ plane).count_ones() * weight).sum::<u32>()
                };
                row.iter().zip(&planes).map(of_word).sum::<u32>()
            });
            let of_plane = |p: usize| planes.iter().map(|it| it[p]).collect::<Vec<_>>();
            let planes: [Vec<u64>; PLANES] = std::array::from_fn(of_plane);
            let mut out = vec![9; rows.len()];
            sketch_distances(&rows.concat(), planes.each_ref().map(|it| &it[..]), &mut out);
            prop_assert_eq!(out, by_hand.collect::<Vec<_>>());
        }
    }
}
