//! Which manifest is meant where none is named: the nearest one, else the project's own examples.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

/// The name of a manifest.
pub(crate) const FILE_NAME: &str = "grainstore.toml";

/// The examples of the clone that this program was built in. An installed program has none: the
/// path then leads into a folder of the registry, which holds this crate alone.
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/kernels");

/// A manifest that nobody named.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// In the folder itself, or in one above it.
    Nearest(PathBuf),
    /// The project's own examples.
    Examples(PathBuf),
}

/// The manifest for a program started in this folder.
///
/// # Errors
/// Where there is none here or above, and no examples either.
pub(crate) fn find(folder: &Path) -> Result<Found, NotFound> {
    find_with(folder, Path::new(EXAMPLES))
}

fn find_with(folder: &Path, examples: &Path) -> Result<Found, NotFound> {
    let nearest =
        folder.ancestors().map(|folder| folder.join(FILE_NAME)).find(|path| path.is_file());
    if let Some(path) = nearest {
        return Ok(Found::Nearest(path));
    }
    match examples.join(FILE_NAME).canonicalize() {
        Ok(path) => Ok(Found::Examples(path)),
        Err(_) => Err(NotFound { folder: folder.to_owned() }),
    }
}

/// There is no manifest to take.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotFound {
    folder: PathBuf,
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "there is no {FILE_NAME} in {} or in any folder above it\n  = help: write one \
             (`grainstore warm --help` shows how), or name one: grainstore warm PATH",
            self.folder.display()
        )
    }
}

impl Error for NotFound {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_nearest_manifest_wins_over_one_above_and_over_the_examples() {
        let root = tempfile::tempdir().unwrap();
        let examples = root.path().join("examples");
        let inner = root.path().join("work/a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::create_dir_all(&examples).unwrap();
        let ours = root.path().canonicalize().unwrap();

        assert_eq!(
            find_with(&inner, &examples),
            Err(NotFound { folder: inner.clone() }),
            "no manifest anywhere"
        );
        fs::write(examples.join(FILE_NAME), "").unwrap();
        let shown = Found::Examples(ours.join("examples").join(FILE_NAME));
        assert_eq!(find_with(&inner, &examples), Ok(shown));
        for folder in ["work", "work/a", "work/a/b"] {
            let manifest = root.path().join(folder).join(FILE_NAME);
            fs::write(&manifest, "").unwrap();
            assert_eq!(find_with(&inner, &examples), Ok(Found::Nearest(manifest)));
        }
    }
}
