//! Finds a vendor's library and looks up the functions that this crate calls.

use std::path::{Path, PathBuf};

use grainstore_runtime::parts::first_that_loads;
use libloading::Library;

macro_rules! functions {
    ($(#[$note:meta])* $table:ident { $($name:ident: $type:ty,)* }) => {
        $(#[$note])*
        #[expect(non_snake_case, reason = "these are the names that the field knows")]
        pub(crate) struct $table {
            $(pub(crate) $name: $type,)*
        }

        impl $table {
            /// All of them, or the name of the first that is not there.
            pub(crate) fn of(library: &libloading::Library) -> Result<Self, &'static str> {
                Ok(Self {
                    // SAFETY: the type is the function's, by the vendor's own header.
                    $($name: unsafe { library.get::<$type>(stringify!($name)) }
                        .map(|function| *function)
                        .map_err(|_| stringify!($name))?,)*
                })
            }
        }
    };
}
pub(crate) use functions;

/// The first of these that loads, or why none does.
pub(crate) fn first(paths: &[PathBuf]) -> Result<(Library, &Path), String> {
    // SAFETY: loading runs the library's start-up code. It is the vendor's, by the system's or the
    // user's own word.
    first_that_loads(paths, |path| unsafe { Library::new(path) }.map(|library| (library, path)))
}

/// The file that a function was loaded from, if the system tells.
#[cfg(unix)]
pub(crate) fn file_of(function: *const std::ffi::c_void) -> Option<PathBuf> {
    use std::ffi::{CStr, OsStr};
    use std::os::unix::ffi::OsStrExt;

    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: any address may be asked about, and there is room for the answer.
    if unsafe { libc::dladdr(function, info.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: the call says that it has written the answer, whose name is null or a text that lives
    // as long as the library, which is never unloaded.
    let name = unsafe {
        let name = info.assume_init().dli_fname;
        (!name.is_null()).then(|| CStr::from_ptr(name))
    }?;
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

/// The file that a function was loaded from: this system is not asked, since libraries are loaded by
/// their full paths there.
#[cfg(not(unix))]
pub(crate) fn file_of(_: *const std::ffi::c_void) -> Option<PathBuf> {
    None
}
