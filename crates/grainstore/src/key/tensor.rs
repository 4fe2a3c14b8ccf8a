//! What a compiled plan must know of a tensor: element type, shape, strides, layout.

use std::fmt;

use super::element::ElementType;
use super::error::KeyError;
use super::overlap::{self, Overlap};

/// A tensor as a plan is compiled for it. Its data is no part of it.
///
/// An empty shape is a scalar; a dimension of zero makes a tensor of no elements. Strides count
/// elements and may be zero (a broadcast) or negative (a flip). Everything is taken as it is given:
/// two tensors of the same elements at the same places but with other strides are two descriptions,
/// since a kernel may be compiled for its strides.
///
/// ```
/// use grainstore::{ElementType, TensorDesc};
/// let weights = TensorDesc::contiguous(ElementType::F16, &[128, 4096])?;
/// let transposed = TensorDesc::strided(ElementType::F16, &[4096, 128], &[1, 4096], "row-major")?;
/// assert_eq!(weights.strides(), [4096, 1]);
/// assert_eq!(weights.bytes(), transposed.bytes());
/// # Ok::<(), grainstore::KeyError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TensorDesc {
    element: ElementType,
    shape: Box<[u64]>,
    strides: Box<[i64]>,
    layout: Box<str>,
    /// Derived from the above, kept so that it is computed once.
    elements: u64,
    bytes: u64,
}

impl TensorDesc {
    /// The layout of [`contiguous`](Self::contiguous).
    pub const ROW_MAJOR: &str = "row-major";

    /// A tensor without gaps, its last dimension the fastest.
    ///
    /// A dimension of zero counts as one in the strides, as in other libraries; a stride that
    /// nothing can be reached by is cut down to what fits.
    ///
    /// # Errors
    /// [`KeyError::Overflow`] where the elements, their bytes or a stride can't be counted.
    pub fn contiguous(element: ElementType, shape: &[u64]) -> Result<Self, KeyError> {
        let empty = shape.contains(&0);
        let mut strides = vec![0; shape.len()];
        let mut next: u64 = 1;
        for (stride, &size) in strides.iter_mut().zip(shape).rev() {
            *stride = match i64::try_from(next) {
                Ok(stride) => stride,
                Err(_) if empty => i64::MAX,
                Err(_) => return Err(overflow("strides", shape)),
            };
            next = match next.checked_mul(size.max(1)) {
                Some(next) => next,
                None if empty => u64::MAX,
                None => return Err(overflow("element count", shape)),
            };
        }
        Self::strided(element, shape, &strides, Self::ROW_MAJOR)
    }

    /// A tensor of any strides, in elements. The layout is a name for what shape and strides do not
    /// tell (`nhwc`, a tiling, a swizzle); [`ROW_MAJOR`](Self::ROW_MAJOR) where there is nothing to
    /// tell.
    ///
    /// # Errors
    /// [`KeyError::Rank`] where there is not one stride for each dimension, [`KeyError::Overflow`]
    /// where the elements can't be counted, or the bytes: those of all elements, or those of the
    /// memory between the first and the last.
    pub fn strided(
        element: ElementType,
        shape: &[u64],
        strides: &[i64],
        layout: impl Into<String>,
    ) -> Result<Self, KeyError> {
        if shape.len() != strides.len() {
            return Err(KeyError::Rank { shape: shape.len(), strides: strides.len() });
        }
        let (elements, bytes) = if shape.contains(&0) {
            (0, 0)
        } else {
            let elements = shape
                .iter()
                .try_fold(1, |product: u64, &size| product.checked_mul(size))
                .ok_or_else(|| overflow("element count", shape))?;
            element.bytes_of(elements).ok_or_else(|| overflow("bytes", shape))?;
            let bytes = span(shape, strides)
                .and_then(|span| element.bytes_of(span))
                .ok_or_else(|| overflow("bytes", shape))?;
            (elements, bytes)
        };
        Ok(Self {
            element,
            shape: shape.into(),
            strides: strides.into(),
            layout: layout.into().into_boxed_str(),
            elements,
            bytes,
        })
    }

    /// What its elements are.
    #[must_use]
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// The size of each dimension.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The stride of each dimension, in elements.
    #[must_use]
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// The name of its layout.
    #[must_use]
    pub fn layout(&self) -> &str {
        &self.layout
    }

    /// How many elements it has: 1 for a scalar.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// The bytes of the memory it covers, gaps included, in whole blocks. A broadcast covers fewer
    /// than its elements would fill.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether two of its elements lie at the same place.
    pub(super) fn overlap(&self) -> Overlap {
        overlap::find(&self.shape, &self.strides)
    }
}

/// The distance from the first to the last element in memory, both included, of a tensor that is not
/// empty.
fn span(shape: &[u64], strides: &[i64]) -> Option<u64> {
    let mut span: u128 = 1;
    for (&size, &stride) in shape.iter().zip(strides) {
        let reach = u128::from(size - 1).checked_mul(u128::from(stride.unsigned_abs()))?;
        span = span.checked_add(reach)?;
    }
    u64::try_from(span).ok()
}

fn overflow(what: &'static str, shape: &[u64]) -> KeyError {
    KeyError::Overflow { what, shape: shape.to_vec() }
}

impl fmt::Display for TensorDesc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { element, shape, strides, layout, .. } = self;
        write!(f, "{element}{shape:?} strides {strides:?} {layout}")
    }
}

impl fmt::Debug for TensorDesc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TensorDesc({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BIG: u64 = 1 << 63;

    fn contiguous(shape: &[u64]) -> Result<TensorDesc, KeyError> {
        TensorDesc::contiguous(ElementType::F16, shape)
    }

    fn strided(shape: &[u64], strides: &[i64]) -> Result<TensorDesc, KeyError> {
        TensorDesc::strided(ElementType::F16, shape, strides, TensorDesc::ROW_MAJOR)
    }

    fn what(result: Result<TensorDesc, KeyError>) -> &'static str {
        match result {
            Err(KeyError::Overflow { what, .. }) => what,
            other => panic!("expected an overflow, got {other:?}"),
        }
    }

    #[test]
    fn k3_contiguous_is_row_major() {
        let desc = contiguous(&[2, 3, 4]).unwrap();
        assert_eq!(desc.strides(), [12, 4, 1]);
        assert_eq!((desc.elements(), desc.bytes()), (24, 48));
        assert_eq!(desc, strided(&[2, 3, 4], &[12, 4, 1]).unwrap());
        assert_eq!(desc.to_string(), "f16[2, 3, 4] strides [12, 4, 1] row-major");
    }

    #[test]
    fn k3_an_empty_shape_is_a_scalar() {
        let scalar = contiguous(&[]).unwrap();
        assert_eq!((scalar.elements(), scalar.bytes()), (1, 2));
    }

    #[test]
    fn k3_a_zero_dimension_is_an_empty_tensor_whatever_the_others_are() {
        for shape in
            [&[0][..], &[0, 3], &[3, 0], &[0, u64::MAX, u64::MAX], &[u64::MAX, u64::MAX, 0]]
        {
            let empty = contiguous(shape).unwrap();
            assert_eq!((empty.elements(), empty.bytes()), (0, 0), "{shape:?}");
        }
        assert_eq!(contiguous(&[2, 0, 4]).unwrap().strides(), [4, 4, 1]);
        assert_eq!(strided(&[0, u64::MAX], &[i64::MIN, i64::MIN]).unwrap().bytes(), 0);
    }

    #[test]
    fn k3_overflow_is_refused() {
        assert_eq!(what(contiguous(&[BIG, 2])), "element count");
        assert_eq!(what(contiguous(&[1 << 32, 1 << 32])), "element count");
        assert_eq!(what(contiguous(&[BIG])), "bytes");
        assert_eq!(what(contiguous(&[1, u64::MAX])), "strides");
        assert_eq!(contiguous(&[BIG - 1]).unwrap().bytes(), u64::MAX - 1);
        // Broadcasts: little memory, but elements without number.
        assert_eq!(what(strided(&[BIG, 2], &[0, 0])), "element count");
        assert_eq!(what(strided(&[BIG], &[0])), "bytes");
        // Few elements, but far apart.
        assert_eq!(what(strided(&[2], &[i64::MAX])), "bytes");
        assert_eq!(what(strided(&[2], &[i64::MIN])), "bytes");
        assert_eq!(what(strided(&[3; 3], &[i64::MIN; 3])), "bytes");
    }

    #[test]
    fn k3_strides_and_dimensions_go_in_pairs() {
        assert_eq!(strided(&[2, 3], &[1]), Err(KeyError::Rank { shape: 2, strides: 1 }));
    }

    #[test]
    fn k3_bytes_are_those_of_the_memory_between_first_and_last() {
        assert_eq!(strided(&[4, 3], &[-8, 2]).unwrap().bytes(), 2 * (3 * 8 + 2 * 2 + 1));
        assert_eq!(strided(&[1000, 3], &[0, 1]).unwrap().bytes(), 6);
    }
}
