//! Which artifacts are meant.

use grainstore_artifacts::Entry;

use super::args::Which;
use super::describe::name;

/// As few digits of a fingerprint as may stand for it.
const FEWEST_DIGITS: usize = 4;

impl Which {
    /// Whether this artifact is one of them.
    pub(super) fn means(&self, entry: &Entry) -> bool {
        let is_named = || self.kernels.iter().any(|kernel| is_called(entry, kernel));
        self.namespace.as_ref().is_none_or(|namespace| namespace == entry.namespace())
            && (self.kernels.is_empty() || is_named())
    }
}

/// Whether a person who writes this means that artifact: by its name, or by its fingerprint's first
/// digits.
pub(super) fn is_called(entry: &Entry, text: &str) -> bool {
    let digits = text.to_ascii_lowercase();
    name(entry) == text
        || (digits.len() >= FEWEST_DIGITS && entry.fingerprint().to_string().starts_with(&digits))
}
