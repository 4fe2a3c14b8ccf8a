//! Whether two elements of a strided tensor lie at the same place in memory.
//!
//! Two index vectors reach one place when their difference `d` solves `sum(stride[i] * d[i]) == 0`
//! with `|d[i]| < size[i]` and not all `d[i]` zero: a bounded linear Diophantine equation, hard in
//! general. The search is the one that NumPy describes at the head of its `mem_overlap.c`: go
//! through the dimensions from the largest stride down, and at each try only the values that leave a
//! rest within reach of the smaller strides and divisible by their greatest common divisor. With the
//! strides sorted so, two dimensions are decided at once, and whatever a framework makes by slicing,
//! transposing, padding or flipping a contiguous tensor needs no search at all: each stride is
//! larger than everything that the smaller ones reach.
//!
//! What is left can be built on purpose. The search takes a bounded number of steps and then says
//! that it does not know.

/// How many values are tried before giving up: some tens of milliseconds.
const STEPS: u32 = 1 << 16;

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overlap {
    /// Every element has a place of its own.
    None,
    /// Two elements share a place.
    Some,
    /// It would take too many steps to tell.
    Undecided,
}

/// Looks for two elements at one place.
///
/// The tensor's span (the distance from its first to its last element) must fit in 64 bits, as a
/// [`TensorDesc`](crate::TensorDesc) guarantees; an empty tensor may have any strides.
pub(super) fn find(shape: &[u64], strides: &[i64]) -> Overlap {
    if shape.contains(&0) {
        return Overlap::None;
    }
    // A dimension of one has only one index: its stride is never taken. A stride's sign does not
    // matter, since `d` may have either.
    let mut dimensions: Vec<(i128, i128)> = shape
        .iter()
        .zip(strides)
        .filter(|&(&size, _)| size > 1)
        .map(|(&size, &stride)| (i128::from(stride.unsigned_abs()), i128::from(size - 1)))
        .collect();
    dimensions.sort_unstable();
    match dimensions.first() {
        None => return Overlap::None,
        Some((0, _)) => return Overlap::Some,
        Some(_) => {}
    }
    let mut reach = 0;
    let mut divisor = 0;
    let levels = dimensions.into_iter().map(|(stride, limit)| {
        reach += stride * limit;
        divisor = gcd(divisor, stride);
        Level { stride, limit, reach, divisor }
    });
    Search { levels: levels.collect(), steps: STEPS }.run()
}

/// A dimension among those of equal or smaller stride. No number here exceeds the tensor's span, so
/// that sums and differences of a few of them, and the product of two strides, fit in an `i128`.
struct Level {
    stride: i128,
    /// The greatest `|d|`.
    limit: i128,
    /// The greatest sum that this dimension and the smaller ones give.
    reach: i128,
    /// The greatest common divisor of this stride and the smaller ones.
    divisor: i128,
}

struct Search {
    /// By ascending stride.
    levels: Vec<Level>,
    steps: u32,
}

/// The search ran out of steps.
struct GaveUp;

impl Search {
    fn run(&mut self) -> Overlap {
        // Whatever solves the equation has a largest stride whose `d` is not zero; since all signs
        // may be turned, it is positive there.
        for top in 1..self.levels.len() {
            let (lower, level) = (&self.levels[top - 1], &self.levels[top]);
            let (stride, reach, limit) = (level.stride, lower.reach, level.limit);
            // `stride * d` is divisible by the divisor of the lower strides for these `d` alone.
            let step = lower.divisor / level.divisor;
            let mut d = step;
            while d <= limit && stride * d <= reach {
                match self.reaches(top - 1, stride * d) {
                    Ok(true) => return Overlap::Some,
                    Ok(false) => d += step,
                    Err(GaveUp) => return Overlap::Undecided,
                }
            }
        }
        Overlap::None
    }

    /// Whether the dimensions up to `at` give the sum `rest`, which must be within their reach and
    /// divisible by their divisor.
    fn reaches(&mut self, at: usize, rest: i128) -> Result<bool, GaveUp> {
        self.steps = self.steps.checked_sub(1).ok_or(GaveUp)?;
        // Alone, a stride gives all its multiples within its reach.
        let Some(below) = at.checked_sub(1) else { return Ok(true) };
        let level = &self.levels[at];
        let lower = &self.levels[below];
        // What may be left for the lower dimensions bounds `d` from both sides.
        let least = div_ceil(rest - lower.reach, level.stride).max(-level.limit);
        let most = (rest + lower.reach).div_euclid(level.stride).min(level.limit);
        // And what is left must be divisible by their divisor: `d` lies in one residue class.
        let step = lower.divisor / level.divisor;
        let unit = level.stride / level.divisor;
        let class = (rest / level.divisor).rem_euclid(step) * inverse(unit.rem_euclid(step), step);
        let mut d = least + (class - least).rem_euclid(step);
        let stride = level.stride;
        while d <= most {
            if self.reaches(below, rest - stride * d)? {
                return Ok(true);
            }
            d += step;
        }
        Ok(false)
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn div_ceil(a: i128, b: i128) -> i128 {
    -(-a).div_euclid(b)
}

/// The inverse of `a` modulo `m`, which have no common divisor: by the extended Euclidean algorithm.
fn inverse(a: i128, m: i128) -> i128 {
    let (mut old, mut new) = ((m, 0), (a, 1));
    while new.0 != 0 {
        let quotient = old.0 / new.0;
        (old, new) = (new, (old.0 - quotient * new.0, old.1 - quotient * new.1));
    }
    old.1.rem_euclid(m)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// Visits every element.
    fn by_hand(shape: &[u64], strides: &[i64]) -> Overlap {
        let mut offsets = vec![0];
        for (&size, &stride) in shape.iter().zip(strides) {
            offsets = offsets
                .iter()
                .flat_map(|o| (0..size as i64).map(move |i| o + i * stride))
                .collect();
        }
        let places: HashSet<_> = offsets.iter().collect();
        if places.len() == offsets.len() { Overlap::None } else { Overlap::Some }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// K3: exact, for any strides.
        #[test]
        fn k3_agrees_with_visiting_every_element(
            dimensions in prop::collection::vec((0u64..7, -40i64..40), 0..5)
        ) {
            let (shape, strides): (Vec<_>, Vec<_>) = dimensions.into_iter().unzip();
            prop_assert_eq!(find(&shape, &strides), by_hand(&shape, &strides));
        }

        /// The same where strides have common divisors and dimensions interleave.
        #[test]
        fn k3_agrees_on_interleaved_dimensions(
            dimensions in prop::collection::vec((2u64..5, 1i64..12, 1i64..7), 2..5)
        ) {
            let (shape, strides): (Vec<_>, Vec<_>) =
                dimensions.into_iter().map(|(size, a, b)| (size, a * b * 6)).unzip();
            prop_assert_eq!(find(&shape, &strides), by_hand(&shape, &strides));
        }
    }

    #[test]
    fn k3_ordinary_tensors() {
        assert_eq!(find(&[], &[]), Overlap::None);
        assert_eq!(find(&[2, 3, 4], &[12, 4, 1]), Overlap::None);
        assert_eq!(find(&[4, 3, 2], &[1, 4, 12]), Overlap::None);
        assert_eq!(find(&[2, 3, 4], &[-12, 4, -1]), Overlap::None);
        assert_eq!(find(&[1, 3], &[0, 1]), Overlap::None);
        assert_eq!(find(&[0, 3], &[0, 0]), Overlap::None);
        assert_eq!(find(&[2, 3], &[0, 1]), Overlap::Some);
        // A sliding window of three.
        assert_eq!(find(&[8, 3], &[1, 1]), Overlap::Some);
        // Interleaved, and yet apart: 0 2 4 and 3 5 7.
        assert_eq!(find(&[2, 3], &[3, 2]), Overlap::None);
    }

    #[test]
    fn k3_large_tensors_are_decided_at_once() {
        let size = 1 << 31;
        assert_eq!(find(&[size, size], &[i64::from(u32::MAX), 1]), Overlap::None);
        assert_eq!(find(&[size, size], &[(1 << 31) - 1, 1]), Overlap::Some);
        // Two large coprime strides meet at their product, just within reach or just out of it.
        let (a, b) = (1_000_003, 999_983);
        assert_eq!(find(&[b as u64, a as u64], &[a, b]), Overlap::None);
        assert_eq!(find(&[b as u64 + 1, a as u64 + 1], &[a, b]), Overlap::Some);
    }

    /// A knapsack: the sums of no two subsets are equal, but nothing short of trying tells so.
    #[test]
    fn k3_what_is_too_hard_is_undecided_and_never_none() {
        // Conway and Guy's sequence has distinct subset sums within a small range.
        let strides: Vec<i64> = distinct_subset_sums(24);
        let shape = vec![2; strides.len()];
        assert_eq!(find(&shape, &strides), Overlap::Undecided);
        assert_eq!(find(&shape[..10], &distinct_subset_sums(10)), Overlap::None);
    }

    /// `n` numbers of which no two subsets have the same sum: `u[n] - u[i]` for the sequence
    /// `u[0] = 0, u[1] = 1, u[n + 1] = 2 u[n] - u[n - r]`, with `r` the nearest integer to
    /// `sqrt(2n)`.
    fn distinct_subset_sums(n: usize) -> Vec<i64> {
        let mut u = vec![0i64, 1];
        for k in 1..n {
            let r = ((2 * k) as f64).sqrt().round() as usize;
            u.push(2 * u[k] - u[k - r]);
        }
        (0..n).map(|i| u[n] - u[i]).collect()
    }

    #[test]
    fn inverses() {
        for m in 1..40 {
            for a in (0..m).filter(|&a| gcd(a, m) == 1) {
                assert_eq!((a * inverse(a, m)).rem_euclid(m), 1 % m, "{a} mod {m}");
            }
        }
    }
}
