//! Where the store lies when nobody says: `GRAINSTORE_DIR`, else the platform's cache folder.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::Error;

/// The variable that moves the store.
pub const VARIABLE: &str = "GRAINSTORE_DIR";

/// The store's folder: `GRAINSTORE_DIR` if it is set and not empty, else `grainstore` in the user's
/// cache folder (`$XDG_CACHE_HOME` or `~/.cache`; `~/Library/Caches` on macOS, `%LOCALAPPDATA%` on
/// Windows). Nothing is looked up or made on disk.
///
/// # Errors
/// [`Error::NoLocation`] for a user without a home folder.
pub fn default_folder() -> Result<PathBuf, Error> {
    // The home folder of the user's account, where the variable `HOME` is missing.
    choose(Platform::CURRENT, |name| std::env::var_os(name), std::env::home_dir)
}

/// Whose habits apply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Platform {
    Xdg,
    Apple,
    Windows,
}

impl Platform {
    const CURRENT: Self = if cfg!(windows) {
        Self::Windows
    } else if cfg!(target_vendor = "apple") {
        Self::Apple
    } else {
        Self::Xdg
    };
}

/// A relative `GRAINSTORE_DIR` is the user's word and taken from the current folder. Any other path
/// that is not absolute comes from an empty or broken variable, and would scatter stores about.
fn choose(
    platform: Platform,
    variable: impl Fn(&str) -> Option<OsString>,
    home: impl FnOnce() -> Option<PathBuf>,
) -> Result<PathBuf, Error> {
    if let Some(folder) = variable(VARIABLE).filter(|folder| !folder.is_empty()) {
        return Ok(folder.into());
    }
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let in_home = |path: &str| home().filter(|home| home.is_absolute()).map(|home| home.join(path));
    let cache = match platform {
        Platform::Xdg => absolute("XDG_CACHE_HOME").or_else(|| in_home(".cache")),
        Platform::Apple => in_home("Library/Caches"),
        Platform::Windows => absolute("LOCALAPPDATA").or_else(|| in_home("AppData/Local")),
    };
    cache.map(|cache| cache.join("grainstore")).ok_or(Error::NoLocation)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const ALL: [Platform; 3] = [Platform::Xdg, Platform::Apple, Platform::Windows];

    fn chosen(platform: Platform, set: &[(&str, &str)], home: Option<&str>) -> Option<PathBuf> {
        let variable = |name: &str| {
            set.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        };
        match choose(platform, variable, || home.map(PathBuf::from)) {
            Ok(folder) => Some(folder),
            Err(Error::NoLocation) => None,
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a6_the_variable_wins_everywhere_unless_it_is_empty() {
        for platform in ALL {
            let set = [(VARIABLE, "/srv/grains"), ("XDG_CACHE_HOME", "/x"), ("LOCALAPPDATA", "/l")];
            assert_eq!(chosen(platform, &set, Some("/home/ada")), Some("/srv/grains".into()));
            assert_eq!(chosen(platform, &[(VARIABLE, "here")], None), Some("here".into()));
            let empty = chosen(platform, &[(VARIABLE, "")], Some("/home/ada"));
            assert_eq!(empty, chosen(platform, &[], Some("/home/ada")));
        }
    }

    #[test]
    fn each_platform_has_its_cache_folder() {
        let home = Some("/home/ada");
        assert_eq!(chosen(Platform::Xdg, &[], home), Some("/home/ada/.cache/grainstore".into()));
        let xdg = [("XDG_CACHE_HOME", "/x")];
        assert_eq!(chosen(Platform::Xdg, &xdg, home), Some("/x/grainstore".into()));
        assert_eq!(chosen(Platform::Xdg, &xdg, None), Some("/x/grainstore".into()));
        let apple = chosen(Platform::Apple, &xdg, home);
        assert_eq!(apple, Some("/home/ada/Library/Caches/grainstore".into()));
        let windows = chosen(Platform::Windows, &[("LOCALAPPDATA", "/l")], home);
        assert_eq!(windows, Some("/l/grainstore".into()));
    }

    #[test]
    fn a5_no_home_is_an_error_and_never_a_relative_folder() {
        for platform in ALL {
            assert_eq!(chosen(platform, &[], None), None);
            let broken = [("XDG_CACHE_HOME", "x"), ("LOCALAPPDATA", "")];
            assert_eq!(chosen(platform, &broken, Some("")), None);
        }
    }
}
