//! The types of a module, each with its size in memory, known when it is declared.
//!
//! A type names only types that were declared before it, but for what a pointer points to; a name
//! that comes too early is of a type without a size. So sizes never need a walk down, and no nesting,
//! however deep or circular, costs more than its own words.

use std::collections::HashMap;

/// A type, as far as layouts depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// The truth values.
    Bool,
    /// Integers: bits, and whether they have a sign.
    Int { width: u32, signed: bool },
    /// Floating-point numbers: bits.
    Float { width: u32 },
    /// A type of several numbers.
    Numbers(Numbers),
    /// An image: its dimension, and 1 where it is sampled, 2 where it is read and written.
    Image { dim: u32, sampled: u32 },
    /// A sampler.
    Sampler,
    /// An image with its sampler: the image's dimension.
    SampledImage { dim: u32 },
    /// So many of one type; none where that is not known.
    Array { element: u32, length: Option<u64> },
    /// As many as there are.
    RuntimeArray,
    /// A block, or a part of one.
    Struct,
    /// A pointer.
    Pointer { class: u32, to: u32 },
    /// What rays are traced in.
    AccelerationStructure,
}

/// A vector, or a matrix of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) component: u64,
    pub(crate) rows: u64,
    /// 1 for a vector.
    pub(crate) columns: u64,
}

impl Numbers {
    /// Bytes from the first to the last, as a struct's member with these decorations.
    fn size(self, stride: Option<u32>, row_major: bool) -> u64 {
        let Self { component, rows, columns } = self;
        let (lines, in_line) = if row_major { (rows, columns) } else { (columns, rows) };
        let line = component.saturating_mul(in_line);
        let stride = stride.map_or(line, u64::from);
        stride.saturating_mul(lines.saturating_sub(1)).saturating_add(line)
    }
}

/// How a member lies in its struct.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemberLayout {
    pub(crate) offset: Option<u32>,
    pub(crate) matrix_stride: Option<u32>,
    pub(crate) row_major: bool,
}

/// How large a type is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    /// In a buffer, by its layout.
    pub(crate) size: Option<u64>,
    /// At least, with no layout.
    pub(crate) parts: u64,
}

impl Sizes {
    /// Of this size anywhere.
    pub(crate) fn plain(size: u64) -> Self {
        Self { size: Some(size), parts: size }
    }
}

/// All types, by id.
#[derive(Debug, Default)]
pub(crate) struct Types {
    types: HashMap<u32, Type>,
    /// In bytes; not there where a type has none, or it depends on the buffer.
    sizes: HashMap<u32, u64>,
    /// Bytes of the parts alone, however they lie: what it takes at least.
    parts: HashMap<u32, u64>,
}

impl Types {
    /// Adds one; false where the id has a type already.
    pub(crate) fn insert(&mut self, id: u32, new: Type, sizes: Sizes) -> bool {
        if let Some(size) = sizes.size {
            self.sizes.insert(id, size);
        }
        self.parts.insert(id, sizes.parts);
        self.types.insert(id, new).is_none()
    }

    /// The type of that id.
    pub(crate) fn get(&self, id: u32) -> Option<&Type> {
        self.types.get(&id)
    }

    /// Its size in bytes.
    pub(crate) fn size(&self, id: u32) -> Option<u64> {
        self.sizes.get(&id).copied()
    }

    /// What it takes at least; 0 where that is not known.
    pub(crate) fn parts(&self, id: u32) -> u64 {
        self.parts.get(&id).copied().unwrap_or_default()
    }

    /// A scalar or vector as numbers.
    pub(crate) fn numbers(&self, id: u32) -> Option<Numbers> {
        match self.get(id)? {
            Type::Int { width, .. } | Type::Float { width } => {
                Some(Numbers { component: u64::from(width / 8), rows: 1, columns: 1 })
            }
            Type::Numbers(numbers) => Some(*numbers),
            _ => None,
        }
    }

    /// Where a member ends, from its struct's start.
    pub(crate) fn member_end(&self, id: u32, layout: MemberLayout) -> Option<u64> {
        let size = match self.get(id)? {
            Type::Numbers(numbers) if numbers.columns > 1 => {
                numbers.size(layout.matrix_stride, layout.row_major)
            }
            _ => self.size(id)?,
        };
        u64::from(layout.offset?).checked_add(size)
    }
}
