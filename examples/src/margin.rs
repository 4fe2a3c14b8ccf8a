//! Room behind everything that a kernel writes, marked, so that a write past the end shows.
//!
//! Ragged sizes are where kernels go wrong, and a write behind the last row spoils no result.

use crate::{CaseError, Element};

/// A whole tile of the widest rows of the tests: as far as a launch that is rounded up can reach.
const MARGIN: usize = 16 * 128;

/// Room for `len` results and the margin. All of it is marked, so that what a kernel does not write
/// can't pass for a result.
pub(crate) fn room<T: Element>(len: usize) -> Vec<T> {
    vec![T::MARK; len + MARGIN]
}

/// These elements and the margin.
pub(crate) fn extend<T: Element>(elements: &[T]) -> Vec<T> {
    let mut extended = room(elements.len());
    extended[..elements.len()].copy_from_slice(elements);
    extended
}

/// The elements without the margin, if that is as it was.
pub(crate) fn trim<T: Element>(mut extended: Vec<T>) -> Result<Vec<T>, CaseError> {
    let len = extended.len() - MARGIN;
    match extended[len..].iter().position(|element| *element != T::MARK) {
        Some(past) => Err(CaseError::Overrun { past: past + 1 }),
        None => {
            extended.truncate(len);
            Ok(extended)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_past_the_end_is_noticed() {
        let mut extended = extend(&[1.0_f32, 2.0]);
        assert_eq!(trim(extended.clone()).unwrap(), [1.0, 2.0]);
        extended[2] = 0.0;
        assert!(matches!(trim(extended).unwrap_err(), CaseError::Overrun { past: 1 }));
        let mut extended = room::<i32>(3);
        extended[5] = 0;
        assert!(matches!(trim(extended).unwrap_err(), CaseError::Overrun { past: 3 }));
    }
}
