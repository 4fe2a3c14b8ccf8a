//! Short digests for what a target or a toolchain has too much of to be read.

/// Sixteen hexadecimal digits that stand for these bytes: a table of limits, the headers of a file.
#[must_use]
pub fn digest(bytes: impl AsRef<[u8]>) -> String {
    let mut hex = blake3::hash(bytes.as_ref()).to_string();
    hex.truncate(16);
    hex
}

/// The same for a set of names, such as a device's extensions: dozens, whose order and repetition
/// mean nothing. The digest says whether they differ.
#[must_use]
pub fn digest_of_names<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_unstable();
    names.dedup();
    digest(names.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_short_and_tells_texts_apart() {
        assert_eq!(digest("a").len(), 16);
        assert_eq!(digest("a"), digest(b"a"));
        assert_ne!(digest("a"), digest("b"));
    }

    #[test]
    fn the_order_of_names_means_nothing() {
        assert_eq!(digest_of_names(["a", "b", "c"]), digest_of_names(["c", "b", "a", "b"]));
        assert_ne!(digest_of_names(["a", "b"]), digest_of_names(["ab"]));
    }
}
