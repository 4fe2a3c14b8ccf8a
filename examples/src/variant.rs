//! One variant of a kernel: the values of its defines.

use std::fmt;

use crate::CaseError;

/// The defines that a kernel was compiled with, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    defines: Vec<(String, String)>,
}

impl Variant {
    /// A variant of these defines.
    #[must_use]
    pub fn new(defines: Vec<(String, String)>) -> Self {
        Self { defines }
    }

    /// All of them, in the order given.
    #[must_use]
    pub fn defines(&self) -> &[(String, String)] {
        &self.defines
    }

    /// The value of a define.
    ///
    /// # Errors
    /// Where the variant does not have it: what a launch depends on is always said, never left to
    /// the default in the source.
    pub fn text(&self, name: &str) -> Result<&str, CaseError> {
        self.defines
            .iter()
            .find(|(define, _)| define == name)
            .map(|(_, value)| value.as_str())
            .ok_or_else(|| CaseError::Variant(format!("the variant {self} does not define {name}")))
    }

    /// The value of a define that is a number.
    ///
    /// # Errors
    /// Where the variant does not have it, or it is no number.
    pub fn number(&self, name: &str) -> Result<usize, CaseError> {
        let text = self.text(name)?;
        text.parse()
            .map_err(|_| CaseError::Variant(format!("{name} is {text}, which is no number")))
    }

    /// The value of a define that is 0 or 1.
    ///
    /// # Errors
    /// Where the variant does not have it, or it is no number.
    pub fn flag(&self, name: &str) -> Result<bool, CaseError> {
        Ok(self.number(name)? != 0)
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.defines.iter().enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}
