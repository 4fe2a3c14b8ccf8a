//! Where a vendor's library is looked for.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};

/// The files to try: the one that was chosen; else the one that the variable names; else the system's
/// own, by `names`, the preferred one first. A variable without a value counts as none.
#[must_use]
pub fn candidates(chosen: Option<&Path>, variable: &str, names: &[&str]) -> Vec<PathBuf> {
    let named = env::var_os(variable).filter(|path| !path.is_empty());
    match (chosen, named) {
        (Some(path), _) => vec![path.to_owned()],
        (None, Some(path)) => vec![path.into()],
        (None, None) => names.iter().map(PathBuf::from).collect(),
    }
}

/// What comes of the first of these that loads.
///
/// # Errors
/// Why none does, in one line: each path, with the loader's own words.
pub fn first_that_loads<'p, T, E: Error>(
    paths: &'p [PathBuf],
    mut load: impl FnMut(&'p Path) -> Result<T, E>,
) -> Result<T, String> {
    let mut refusals = Vec::new();
    for path in paths {
        match load(path) {
            Ok(loaded) => return Ok(loaded),
            Err(error) => refusals.push(format!("`{}` ({})", path.display(), innermost(&error))),
        }
    }
    Err(refusals.join(", "))
}

/// The loader's own words are at the bottom.
fn innermost(error: &dyn Error) -> String {
    let mut words = error;
    while let Some(below) = words.source() {
        words = below;
    }
    words.to_string()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn what_was_chosen_comes_before_the_systems_own() {
        // Its value is not what is wanted here, only that it has one.
        let (set, unset) = ("PATH", "GRAINSTORE_TEST_NO_SUCH_VARIABLE");
        let chosen = Some(Path::new("/chosen.so"));
        assert_eq!(candidates(chosen, set, &["a.so"]), [PathBuf::from("/chosen.so")]);
        let path = PathBuf::from(env::var_os(set).unwrap());
        assert_eq!(candidates(None, set, &["a.so"]), [path]);
        let names = candidates(None, unset, &["a.so.1", "a.so"]);
        assert_eq!(names, ["a.so.1", "a.so"].map(PathBuf::from));
    }

    #[test]
    fn the_first_that_loads_is_taken_or_all_say_why_not() {
        let paths = ["a", "b", "c"].map(PathBuf::from);
        let from_b = |path: &Path| match path.to_str() {
            Some("a") => Err(io::Error::other("not a")),
            name => Ok(name.unwrap().to_owned()),
        };
        assert_eq!(first_that_loads(&paths, from_b).unwrap(), "b");
        let never = |path: &Path| Err::<(), _>(io::Error::other(path.display().to_string()));
        assert_eq!(first_that_loads(&paths, never).unwrap_err(), "`a` (a), `b` (b), `c` (c)");
    }

    #[test]
    fn the_words_are_the_loaders() {
        #[derive(Debug)]
        struct Outer(io::Error);
        impl std::fmt::Display for Outer {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("it did not work")
            }
        }
        impl Error for Outer {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                Some(&self.0)
            }
        }
        let load = |_: &Path| Err::<(), _>(Outer(io::Error::from(io::ErrorKind::NotFound)));
        let why = first_that_loads(&["x".into()], load).unwrap_err();
        assert_eq!(why, format!("`x` ({})", io::Error::from(io::ErrorKind::NotFound)));
    }
}
