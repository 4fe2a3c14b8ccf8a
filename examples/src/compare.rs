//! What a device computed, against what it should have.

use std::fmt;

use crate::Element;

/// How far a value may be from the reference: `absolute + relative * |reference|`.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// In units of the value.
    pub absolute: f64,
    /// As a share of the reference.
    pub relative: f64,
}

impl Tolerance {
    /// Not a bit of difference.
    pub const EXACT: Self = Self { absolute: 0.0, relative: 0.0 };

    /// The same distance everywhere.
    #[must_use]
    pub const fn absolute(absolute: f64) -> Self {
        Self { absolute, relative: 0.0 }
    }
}

/// A comparison that held.
#[derive(Clone, Copy, Debug, Default)]
pub struct Agreement {
    /// How many values were compared.
    pub values: usize,
    /// The greatest share of its tolerance that any of them used, at most one.
    pub used: f64,
}

impl Agreement {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { values: self.values + other.values, used: self.used.max(other.used) }
    }
}

/// The first value that is too far from the reference, or a result of the wrong length.
#[derive(Clone, Debug, PartialEq)]
pub enum Mismatch {
    /// There are more or fewer values than there should be.
    Length {
        /// How many there are.
        got: usize,
        /// How many there should be.
        want: usize,
    },
    /// A value is too far off.
    Value {
        /// Where.
        index: usize,
        /// What is there.
        got: f64,
        /// What should be there.
        want: f64,
        /// How far from that it may be.
        within: f64,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { got, want } => write!(f, "{got} values instead of {want}"),
            Self::Value { index, got, want, within } => {
                write!(f, "value {index} is {got:e}, not {want:e} within {within:e}")
            }
        }
    }
}

impl std::error::Error for Mismatch {}

/// Compares every value. What is not a number agrees with nothing, infinities with themselves.
///
/// # Errors
/// The first value that is not within the tolerance.
pub fn compare<T: Element>(
    got: &[T],
    want: &[f64],
    tolerance: Tolerance,
) -> Result<Agreement, Mismatch> {
    if got.len() != want.len() {
        return Err(Mismatch::Length { got: got.len(), want: want.len() });
    }
    let mut used = 0.0_f64;
    for (index, (got, &want)) in got.iter().map(|got| got.to_f64()).zip(want).enumerate() {
        if got == want {
            continue;
        }
        let within = tolerance.absolute + tolerance.relative * want.abs();
        let off = (got - want).abs();
        // Written so that a NaN fails it.
        if !(off <= within && off.is_finite()) {
            return Err(Mismatch::Value { index, got, want, within });
        }
        used = used.max(off / within);
    }
    Ok(Agreement { values: got.len(), used })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOSE: Tolerance = Tolerance { absolute: 0.5, relative: 0.1 };

    #[test]
    fn the_tolerance_is_a_distance_and_a_share() {
        let agreement = compare(&[10.75_f64, 2.0], &[10.0, 2.0], CLOSE).unwrap();
        assert_eq!(agreement.values, 2);
        assert!((agreement.used - 0.5).abs() < 1e-12);
        assert!(compare(&[11.6_f64], &[10.0], CLOSE).is_err());
        assert!(compare(&[1_i32], &[2.0], Tolerance::EXACT).is_err());
        assert!(compare(&[2_i32], &[2.0], Tolerance::EXACT).is_ok());
    }

    #[test]
    fn nan_infinities_and_lengths_are_told_apart() {
        let far = Tolerance::absolute(f64::INFINITY);
        assert!(compare(&[f64::NAN], &[1.0], far).is_err());
        assert!(compare(&[1.0_f64], &[f64::NAN], far).is_err());
        assert!(compare(&[f64::INFINITY], &[1.0], far).is_err());
        assert!(compare(&[f64::NEG_INFINITY], &[f64::NEG_INFINITY], Tolerance::EXACT).is_ok());
        assert_eq!(
            compare(&[1.0_f64], &[1.0, 2.0], far).unwrap_err(),
            Mismatch::Length { got: 1, want: 2 }
        );
    }
}
