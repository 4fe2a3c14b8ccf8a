//! SPIR-V as words and instructions, whatever the bytes are: nothing here reads past an end.

use std::fmt;

const MAGIC: u32 = 0x0723_0203;

/// Of the header: magic, version, generator, bound, schema.
const HEADER: usize = 5;

/// The greatest bound of ids that a driver has to accept.
const MAX_BOUND: u32 = 0x003F_FFFF;

/// Why bytes are no SPIR-V that a driver should see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// The index of the word, where one is to blame.
    word: Option<usize>,
    what: String,
}

impl Malformed {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { word: None, what: what.into() }
    }

    pub(crate) fn at(word: usize, what: impl Into<String>) -> Self {
        Self { word: Some(word), what: what.into() }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.word {
            Some(word) => write!(f, "word {word}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// Words with a sound header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    all: &'a [u32],
}

impl<'a> Words<'a> {
    /// Checks the header.
    pub(crate) fn new(all: &'a [u32]) -> Result<Self, Malformed> {
        let [magic, version, _, bound, _, ..] = all else {
            let what = format!("it is {} words long, less than a header", all.len());
            return Err(Malformed::new(what));
        };
        if *magic == MAGIC.swap_bytes() {
            return Err(Malformed::at(0, "its bytes are in big-endian order; give little-endian"));
        }
        if *magic != MAGIC {
            return Err(Malformed::at(0, format!("{magic:#010x} is not the magic of SPIR-V")));
        }
        // 0 | major | minor | 0: each one byte.
        if version & 0xFF00_00FF != 0 || version >> 16 != 1 || version >> 8 & 0xFF > 6 {
            let what = format!("{version:#010x} is no version of SPIR-V from 1.0 to 1.6");
            return Err(Malformed::at(1, what));
        }
        if *bound == 0 || *bound > MAX_BOUND {
            return Err(Malformed::at(3, format!("a bound of {bound} ids is out of range")));
        }
        Ok(Self { all })
    }

    /// The minor version: 3 for SPIR-V 1.3.
    pub(crate) fn minor_version(self) -> u32 {
        self.all[1] >> 8 & 0xFF
    }

    /// One more than the greatest id.
    pub(crate) fn bound(self) -> u32 {
        self.all[3]
    }

    /// The instructions, up to the first that does not fit.
    pub(crate) fn instructions(self) -> impl Iterator<Item = Result<Instruction<'a>, Malformed>> {
        let mut at = HEADER;
        std::iter::from_fn(move || {
            let rest = self.all.get(at..).filter(|rest| !rest.is_empty())?;
            let (opcode, length) = (rest[0] & 0xFFFF, (rest[0] >> 16) as usize);
            let start = at;
            let Some(operands) = rest.get(1..length) else {
                // Nothing behind it can be trusted.
                at = self.all.len();
                let what = if length == 0 {
                    "an instruction of no words".to_owned()
                } else {
                    format!("an instruction of {length} words, where {} are left", rest.len())
                };
                return Some(Err(Malformed::at(start, what)));
            };
            at += length;
            Some(Ok(Instruction { opcode, operands, at: start }))
        })
    }
}

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instruction<'a> {
    pub(crate) opcode: u32,
    /// All words but the first.
    pub(crate) operands: &'a [u32],
    at: usize,
}

impl<'a> Instruction<'a> {
    /// The operand of that index.
    pub(crate) fn operand(&self, index: usize) -> Result<u32, Malformed> {
        self.operands.get(index).copied().ok_or_else(|| {
            self.wrong(format!("instruction {} has {} operands", self.opcode, self.operands.len()))
        })
    }

    /// The operands from that index on; none where there are fewer.
    pub(crate) fn from(&self, index: usize) -> &'a [u32] {
        self.operands.get(index..).unwrap_or_default()
    }

    /// A text that starts at the operand of that index, and the operands behind it.
    pub(crate) fn text(&self, index: usize) -> Result<(String, &'a [u32]), Malformed> {
        let words = self.from(index);
        let mut bytes = Vec::new();
        for (count, word) in words.iter().enumerate() {
            let part = word.to_le_bytes();
            match part.iter().position(|byte| *byte == 0) {
                None => bytes.extend_from_slice(&part),
                Some(end) => {
                    bytes.extend_from_slice(&part[..end]);
                    let text = String::from_utf8(bytes)
                        .map_err(|_| self.wrong("a text that is not UTF-8"))?;
                    return Ok((text, &words[count + 1..]));
                }
            }
        }
        Err(self.wrong("a text without its end"))
    }

    /// Blames this instruction.
    pub(crate) fn wrong(&self, what: impl Into<String>) -> Malformed {
        Malformed::at(self.at, what)
    }
}

/// Bytes as words; none where they are not whole words.
pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Vec<u32>, Malformed> {
    let (words, rest) = bytes.as_chunks::<4>();
    if rest.is_empty() {
        return Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect());
    }
    Err(Malformed::new(format!("{} bytes are not whole words", bytes.len())))
}

/// Words as bytes, as [`from_bytes`] reads them.
pub(crate) fn to_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
