//! Why a key, or a tensor description in it, could not be made.

use std::error::Error;
use std::fmt;

/// Why a key or a part of it was refused. The text names the field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// One name was given twice in a field where each name has one value.
    Duplicate {
        /// The field: `define`, `header`, `constant` or `scalar`.
        field: &'static str,
        /// The name.
        name: String,
    },
    /// An element type whose name or block can't be.
    ElementType {
        /// The name that was asked for.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A tensor with another number of strides than of dimensions.
    Rank {
        /// The number of dimensions.
        shape: usize,
        /// The number of strides.
        strides: usize,
    },
    /// A tensor too large to count.
    Overflow {
        /// What does not fit: `element count`, `bytes` or `strides`.
        what: &'static str,
        /// The shape that was asked for.
        shape: Vec<u64>,
    },
    /// Two elements of an output lie at the same place in memory.
    Overlap {
        /// Which output, counted from 0.
        output: usize,
        /// Its description.
        tensor: String,
    },
    /// Whether two elements of an output lie at the same place in memory could not be decided with
    /// reasonable effort, so it was refused.
    OverlapUndecided {
        /// Which output, counted from 0.
        output: usize,
        /// Its description.
        tensor: String,
    },
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate { field, name } => {
                write!(f, "the {field} `{name}` is given twice: give each name one value")
            }
            Self::ElementType { name, reason } => write!(f, "the element type `{name}` {reason}"),
            Self::Rank { shape, strides } => {
                write!(
                    f,
                    "a shape of {shape} dimensions has {strides} strides: give each dimension one"
                )
            }
            Self::Overflow { what, shape } => {
                write!(f, "the {what} of a tensor of shape {shape:?} does not fit in 64 bits")
            }
            Self::Overlap { output, tensor } => write!(
                f,
                "output {output} ({tensor}) overlaps itself, so two elements would be written to \
                 one place: give it strides of its own"
            ),
            Self::OverlapUndecided { output, tensor } => write!(
                f,
                "output {output} ({tensor}) has strides too intricate to prove that no two \
                 elements share a place: make it contiguous"
            ),
        }
    }
}

impl Error for KeyError {}
