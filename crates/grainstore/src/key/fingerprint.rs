//! The fingerprint of a key: 256 bits, the same in every process and on every machine.

use std::error::Error;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// The BLAKE3 hash of a key's canonical encoding, in full width.
///
/// It displays as 64 lower-case hexadecimal digits and parses from the same:
///
/// ```
/// use grainstore::{Fingerprint, KernelKey};
/// let fingerprint = KernelKey::builder("saxpy").build()?.fingerprint();
/// assert_eq!(fingerprint.to_string().parse::<Fingerprint>()?, fingerprint);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint whose bytes these are: one that was stored or sent.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes, in the order in which they are displayed.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The fingerprint of an encoding.
    pub(super) fn of(encoding: &[u8]) -> Self {
        Self(*blake3::hash(encoding).as_bytes())
    }
}

/// Writes one `u64`: the bytes are a cryptographic hash, so any eight of them are spread as well as
/// all of them.
impl Hash for Fingerprint {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        state.write_u64(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
    }
}

impl fmt::LowerHex for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(self, f)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl FromStr for Fingerprint {
    type Err = ParseFingerprintError;

    /// Reads 64 hexadecimal digits, of either case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let count = text.chars().count();
        if count != 64 {
            return Err(ParseFingerprintError::Length(count));
        }
        let mut bytes = [0; 32];
        for (position, digit) in text.chars().enumerate() {
            let value =
                digit.to_digit(16).ok_or(ParseFingerprintError::Digit { position, digit })?;
            // Two digits a byte, the high one first; a hexadecimal digit fits in four bits.
            bytes[position / 2] = bytes[position / 2] << 4 | value as u8;
        }
        Ok(Self(bytes))
    }
}

/// Why a text is no [`Fingerprint`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseFingerprintError {
    /// It has this many characters instead of 64.
    Length(usize),
    /// A character is no hexadecimal digit.
    Digit {
        /// Which character, counted from 0.
        position: usize,
        /// The character.
        digit: char,
    },
}

impl fmt::Display for ParseFingerprintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(count) => {
                write!(f, "a fingerprint has 64 hexadecimal digits, not {count}: give all of them")
            }
            Self::Digit { position, digit } => {
                write!(
                    f,
                    "{digit:?} at position {position} of a fingerprint is no hexadecimal digit"
                )
            }
        }
    }
}

impl Error for ParseFingerprintError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k6_displays_as_64_digits_high_half_first() {
        let mut bytes = [0; 32];
        bytes[0] = 0xa1;
        bytes[31] = 0x0f;
        let text = Fingerprint::from_bytes(bytes).to_string();
        assert_eq!(text, format!("a1{}0f", "0".repeat(60)));
        assert_eq!(text.parse(), Ok(Fingerprint::from_bytes(bytes)));
        assert_eq!(text.to_uppercase().parse(), Ok(Fingerprint::from_bytes(bytes)));
    }

    #[test]
    fn k6_what_is_no_fingerprint_is_refused() {
        use ParseFingerprintError::{Digit, Length};
        let parse = str::parse::<Fingerprint>;
        assert_eq!(parse(""), Err(Length(0)));
        assert_eq!(parse(&"0".repeat(63)), Err(Length(63)));
        assert_eq!(parse(&"0".repeat(65)), Err(Length(65)));
        // 64 bytes, but not 64 characters; and 64 characters in more than 64 bytes.
        assert_eq!(parse(&"é".repeat(32)), Err(Length(32)));
        assert_eq!(parse(&"é".repeat(64)), Err(Digit { position: 0, digit: 'é' }));
        assert_eq!(parse(&format!("0x{}", "0".repeat(62))), Err(Digit { position: 1, digit: 'x' }));
        assert_eq!(parse(&format!("{}+", "0".repeat(63))), Err(Digit { position: 63, digit: '+' }));
        // What it says names what is wrong.
        let told = |text: &str| parse(text).unwrap_err().to_string();
        assert!(told("").contains("not 0"), "{}", told(""));
        let digit = told(&"é".repeat(64));
        assert!(digit.contains("'é' at position 0"), "{digit}");
    }

    #[test]
    fn order_is_the_order_of_the_digits() {
        let low = Fingerprint::from_bytes([1; 32]);
        let high = Fingerprint::from_bytes([2; 32]);
        assert!(low < high && low.to_string() < high.to_string());
    }
}
