//! A module's constants, with the values that a spec gives to those that can be specialized.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::codes::op;
use super::types::Type;
use super::words::Malformed;

/// All constants, by id, and what was asked of them.
#[derive(Debug, Default)]
pub(crate) struct Constants {
    /// Integers and truth values only: what lengths and sizes are made of.
    values: HashMap<u32, u64>,
    composites: HashMap<u32, Vec<u32>>,
    given: Vec<Given>,
    /// The names of those that can be specialized, by number.
    names: BTreeMap<u32, Vec<String>>,
    /// The numbers of those that were declared.
    declared: BTreeSet<u32>,
    specialized: Vec<Specialized>,
}

/// A value of the spec.
#[derive(Debug)]
struct Given {
    name: String,
    value: String,
    used: bool,
}

/// The value of one constant as the driver gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Specialized {
    pub(crate) spec_id: u32,
    pub(crate) bytes: Vec<u8>,
}

impl Constants {
    /// With the values of a spec: by number, or by name where the module has names.
    pub(crate) fn given(values: &[(String, String)]) -> Self {
        let given = values
            .iter()
            .map(|(name, value)| Given { name: name.clone(), value: value.clone(), used: false })
            .collect();
        Self { given, ..Self::default() }
    }

    /// What the driver is to be told.
    pub(crate) fn into_specialized(self) -> Vec<Specialized> {
        self.specialized
    }

    /// A constant as a number.
    pub(crate) fn value(&self, id: u32) -> Option<u64> {
        self.values.get(&id).copied()
    }

    /// The parts of a composite.
    pub(crate) fn composite(&self, id: u32) -> Option<&[u32]> {
        self.composites.get(&id).map(Vec::as_slice)
    }

    pub(crate) fn insert(&mut self, id: u32, value: u64) {
        self.values.insert(id, value);
    }

    pub(crate) fn insert_composite(&mut self, id: u32, parts: &[u32]) {
        self.composites.insert(id, parts.to_vec());
    }

    /// Says what a number is called. All names come before the first constant, as SPIR-V orders its
    /// parts.
    pub(crate) fn name(&mut self, spec_id: u32, name: &str) {
        self.names.entry(spec_id).or_default().push(name.to_owned());
    }

    /// A constant that can be specialized: the spec's value, else its own. Several may have one
    /// number, as compilers do for the size of a workgroup; they all get its value.
    pub(crate) fn declare(
        &mut self,
        id: u32,
        spec_id: u32,
        kind: &Type,
        default: u64,
    ) -> Result<(), Malformed> {
        self.declared.insert(spec_id);
        let names = self.names.get(&spec_id).map_or(&[][..], Vec::as_slice);
        let number = spec_id.to_string();
        let mut value = default;
        let mut found: Option<&str> = None;
        for given in &mut self.given {
            if given.name != number && !names.contains(&given.name) {
                continue;
            }
            if let Some(other) = found {
                let what = format!(
                    "the specialization constants `{other}` and `{}` are one and the same",
                    given.name
                );
                return Err(Malformed::new(what));
            }
            found = Some(&given.name);
            given.used = true;
            let bytes = encode(kind, &given.value).map_err(|expected| {
                Malformed::new(format!(
                    "the specialization constant `{}` is {expected}, not `{}`",
                    given.name, given.value
                ))
            })?;
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(&bytes);
            value = u64::from_le_bytes(word);
            match self.specialized.iter().find(|it| it.spec_id == spec_id) {
                None => self.specialized.push(Specialized { spec_id, bytes }),
                Some(earlier) if earlier.bytes == bytes => {}
                Some(_) => {
                    return Err(Malformed::new(format!(
                        "specialization constants of number {spec_id} are of different types"
                    )));
                }
            }
        }
        if !matches!(kind, Type::Float { .. }) {
            self.values.insert(id, value);
        }
        Ok(())
    }

    /// Refuses values for constants that are not there.
    pub(crate) fn check_all_used(&self) -> Result<(), Malformed> {
        let Some(unused) = self.given.iter().find(|given| !given.used) else {
            return Ok(());
        };
        let there: Vec<_> = self
            .declared
            .iter()
            .map(|spec_id| match self.names.get(spec_id).and_then(|names| names.first()) {
                Some(name) => format!("{spec_id} ({name})"),
                None => spec_id.to_string(),
            })
            .collect();
        let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        Err(Malformed::new(format!(
            "there is no specialization constant `{}`; there are: {there}",
            unused.name
        )))
    }

    /// What comes of an operation on constants, for those that sizes are computed with; none for
    /// others.
    pub(crate) fn operation(&self, opcode: u32, operands: &[u32], width: u32) -> Option<u64> {
        let value = |index: usize| self.value(*operands.get(index)?);
        let left = value(0)?;
        let result = match opcode {
            op::U_CONVERT => left,
            op::I_ADD => left.wrapping_add(value(1)?),
            op::I_SUB => left.wrapping_sub(value(1)?),
            op::I_MUL => left.wrapping_mul(value(1)?),
            op::U_DIV => left.checked_div(value(1)?)?,
            op::U_MOD => left.checked_rem(value(1)?)?,
            op::SHIFT_RIGHT_LOGICAL => left.checked_shr(u32::try_from(value(1)?).ok()?)?,
            op::SHIFT_LEFT_LOGICAL => left.checked_shl(u32::try_from(value(1)?).ok()?)?,
            _ => return None,
        };
        Some(if width < 64 { result & ((1 << width) - 1) } else { result })
    }
}

/// A value as the driver wants its bytes, or what it should have been.
fn encode(kind: &Type, text: &str) -> Result<Vec<u8>, String> {
    match *kind {
        Type::Bool => match text {
            "true" | "1" => Ok(1_u32.to_le_bytes().to_vec()),
            "false" | "0" => Ok(0_u32.to_le_bytes().to_vec()),
            _ => Err("`true` or `false`".to_owned()),
        },
        Type::Int { width: width @ (8 | 16 | 32 | 64), signed } => {
            let expected = || {
                let kind = if signed { "a signed" } else { "an unsigned" };
                format!("{kind} integer of {width} bits")
            };
            let value = integer(text).ok_or_else(expected)?;
            let limit = 1_i128 << (if signed { width - 1 } else { width });
            let least = if signed { -limit } else { 0 };
            if value < least || value >= limit {
                return Err(expected());
            }
            Ok(value.to_le_bytes()[..width as usize / 8].to_vec())
        }
        Type::Float { width: 32 } => {
            let value: f32 = text.parse().map_err(|_| "a number".to_owned())?;
            Ok(value.to_le_bytes().to_vec())
        }
        Type::Float { width: 64 } => {
            let value: f64 = text.parse().map_err(|_| "a number".to_owned())?;
            Ok(value.to_le_bytes().to_vec())
        }
        _ => Err("of a type that this backend gives no values to (use 32 bits)".to_owned()),
    }
}

/// Decimal, or hexadecimal behind `0x`.
pub(crate) fn integer(text: &str) -> Option<i128> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if digits.starts_with(|c: char| c.is_ascii_hexdigit()) => {
            i128::from_str_radix(digits, 16).ok()
        }
        Some(_) => None,
        None => text.parse().ok(),
    }
}
