//! Element types of tensors: a name, and how many elements share how many bytes.

use std::fmt;

use super::error::KeyError;

/// The longest name that an element type may have, in bytes.
const NAME_LIMIT: usize = 23;

/// What a tensor's elements are.
///
/// Elements come in blocks: one element a block for most, two in a byte for a 4-bit float, 32 in 18
/// bytes for a quantized format. The types that are known by name here are constants; any other is
/// made with [`block`](Self::block).
///
/// The names of the small floats are those of MLIR: `F8E4M3FN` has four bits of exponent, three of
/// mantissa, and is finite.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ElementType {
    /// UTF-8, filled up with zeros; never empty, never with a zero inside.
    name: [u8; NAME_LIMIT],
    elements: u32,
    bytes: u32,
}

macro_rules! known {
    ($($constant:ident = $name:literal, $elements:literal in $bytes:literal, $doc:literal;)*) => {
        impl ElementType {
            $(
                #[doc = $doc]
                pub const $constant: Self = Self::known($name, $elements, $bytes);
            )*

            /// Every type that has a constant.
            const KNOWN: &[Self] = &[$(Self::$constant),*];
        }
    };
}

known! {
    BOOL = "bool", 1 in 1, "A truth value in a byte.";
    U8 = "u8", 1 in 1, "An unsigned integer of 8 bits.";
    U16 = "u16", 1 in 2, "An unsigned integer of 16 bits.";
    U32 = "u32", 1 in 4, "An unsigned integer of 32 bits.";
    U64 = "u64", 1 in 8, "An unsigned integer of 64 bits.";
    I8 = "i8", 1 in 1, "A signed integer of 8 bits.";
    I16 = "i16", 1 in 2, "A signed integer of 16 bits.";
    I32 = "i32", 1 in 4, "A signed integer of 32 bits.";
    I64 = "i64", 1 in 8, "A signed integer of 64 bits.";
    F16 = "f16", 1 in 2, "IEEE 754 binary16.";
    BF16 = "bf16", 1 in 2, "The upper half of an `f32`: 8 bits of exponent, 7 of mantissa.";
    F32 = "f32", 1 in 4, "IEEE 754 binary32.";
    F64 = "f64", 1 in 8, "IEEE 754 binary64.";
    F8E3M4 = "f8e3m4", 1 in 1, "8 bits: 3 of exponent, 4 of mantissa, as IEEE 754 would have it.";
    F8E4M3 = "f8e4m3", 1 in 1, "8 bits: 4 of exponent, 3 of mantissa, as IEEE 754 would have it.";
    F8E4M3FN = "f8e4m3fn", 1 in 1, "8 bits: 4 of exponent, 3 of mantissa, no infinities (OCP E4M3).";
    F8E4M3FNUZ = "f8e4m3fnuz", 1 in 1, "8 bits: 4 of exponent, 3 of mantissa, no infinities, one zero.";
    F8E4M3B11FNUZ = "f8e4m3b11fnuz", 1 in 1, "As `F8E4M3FNUZ`, with an exponent bias of 11.";
    F8E5M2 = "f8e5m2", 1 in 1, "8 bits: 5 of exponent, 2 of mantissa (OCP E5M2).";
    F8E5M2FNUZ = "f8e5m2fnuz", 1 in 1, "8 bits: 5 of exponent, 2 of mantissa, no infinities, one zero.";
    F8E8M0FNU = "f8e8m0fnu", 1 in 1, "8 bits of exponent alone: a scale (OCP E8M0).";
    F4E2M1FN = "f4e2m1fn", 2 in 1, "4 bits: 2 of exponent, 1 of mantissa, two in a byte (OCP E2M1).";
}

impl ElementType {
    /// A type of any other name, of which `elements` together take `bytes`.
    ///
    /// ```
    /// use grainstore::ElementType;
    /// let q4_0 = ElementType::block("q4_0", 32, 18)?;
    /// assert_eq!(q4_0.bytes_per_block(), 18);
    /// assert_eq!(ElementType::block("f16", 1, 2)?, ElementType::F16);
    /// # Ok::<(), grainstore::KeyError>(())
    /// ```
    ///
    /// # Errors
    /// A name that is empty, longer than 23 bytes or has a NUL in it; a block of no elements or no
    /// bytes; and the name of a known type with a block that is not its own.
    pub fn block(name: &str, elements: u32, bytes: u32) -> Result<Self, KeyError> {
        let refuse = |reason| Err(KeyError::ElementType { name: name.to_owned(), reason });
        if name.is_empty() || name.len() > NAME_LIMIT || name.contains('\0') {
            return refuse("has a name that is empty, has a NUL, or is longer than 23 bytes");
        }
        if elements == 0 || bytes == 0 {
            return refuse("has an empty block: give the elements and the bytes of one block");
        }
        let element = Self::known(name, elements, bytes);
        match Self::KNOWN.iter().find(|known| known.name == element.name) {
            Some(known) if *known != element => {
                refuse("is known with another block size: use its constant, or another name")
            }
            _ => Ok(element),
        }
    }

    /// The name must be one that [`block`](Self::block) accepts.
    const fn known(name: &str, elements: u32, bytes: u32) -> Self {
        let mut padded = [0; NAME_LIMIT];
        let (head, _) = padded.split_at_mut(name.len());
        head.copy_from_slice(name.as_bytes());
        Self { name: padded, elements, bytes }
    }

    /// Its name, such as `f16`.
    #[must_use]
    pub fn name(&self) -> &str {
        let length = self.name.iter().position(|&byte| byte == 0).unwrap_or(NAME_LIMIT);
        // The name came as a `str` and was kept whole, so it is UTF-8.
        str::from_utf8(&self.name[..length]).unwrap_or_default()
    }

    /// How many elements make one block.
    #[must_use]
    pub const fn elements_per_block(&self) -> u32 {
        self.elements
    }

    /// How many bytes one block takes.
    #[must_use]
    pub const fn bytes_per_block(&self) -> u32 {
        self.bytes
    }

    /// The bytes of this many elements in whole blocks, if they can be counted.
    pub(super) fn bytes_of(&self, elements: u64) -> Option<u64> {
        elements.div_ceil(u64::from(self.elements)).checked_mul(u64::from(self.bytes))
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}({} in {} bytes)", self.elements, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k3_known_types_have_their_names_once_and_their_sizes() {
        for (i, known) in ElementType::KNOWN.iter().enumerate() {
            assert!(ElementType::KNOWN[i + 1..].iter().all(|other| other.name() != known.name()));
            let digits: String = known
                .name()
                .chars()
                .skip_while(|c| !c.is_ascii_digit())
                .take_while(char::is_ascii_digit)
                .collect();
            let bits = digits.parse().unwrap_or(8);
            assert_eq!(known.bytes_per_block() * 8, bits * known.elements_per_block(), "{known}");
        }
        assert_eq!(ElementType::BF16.to_string(), "bf16");
    }

    #[test]
    fn k3_blocks_are_counted_whole() {
        assert_eq!(ElementType::F4E2M1FN.bytes_of(3), Some(2));
        assert_eq!(ElementType::F64.bytes_of(u64::MAX / 8), Some(u64::MAX - 7));
        assert_eq!(ElementType::F64.bytes_of(u64::MAX / 8 + 1), None);
        let q4_0 = ElementType::block("q4_0", 32, 18).unwrap();
        assert_eq!(
            [0, 1, 32, 33].map(|n| q4_0.bytes_of(n)),
            [Some(0), Some(18), Some(18), Some(36)]
        );
    }

    #[test]
    fn k3_a_type_of_ones_own() {
        let longest = "x".repeat(NAME_LIMIT);
        assert_eq!(ElementType::block(&longest, 1, 1).unwrap().name(), longest);
        assert_ne!(ElementType::block("a", 2, 1), ElementType::block("a", 1, 1));
        assert_eq!(ElementType::block("f16", 1, 2).unwrap(), ElementType::F16);
        for (name, elements, bytes) in [
            ("", 1, 1),
            (&*"x".repeat(24), 1, 1),
            ("a\0", 1, 1),
            ("a", 0, 1),
            ("a", 1, 0),
            ("f16", 1, 4),
        ] {
            let error = ElementType::block(name, elements, bytes).unwrap_err();
            assert!(matches!(error, KeyError::ElementType { .. }), "{name}: {error}");
        }
    }
}
