//! A loaded shared object, and all the unsafe code of this crate.

use std::ffi::c_void;
use std::fmt;
use std::path::Path;

use grainstore_runtime::BackendError;
use grainstore_runtime::parts::{Counted, Live};
use libloading::{Library, Symbol};

use crate::image::Image;
use crate::scratch::Scratch;

/// A kernel in memory: a shared object whose functions can be called.
///
/// It is unloaded when it is dropped; [`Backend::unload`](grainstore_runtime::Backend::unload) does
/// the same and says whether it worked. Function pointers taken from it must not be used after.
pub struct HostModule {
    // Dropped before the folder that holds its file.
    library: Library,
    functions: Vec<String>,
    bytes: u64,
    _counted: Counted,
    _folder: Option<Scratch>,
}

impl HostModule {
    /// Loads a shared object that has been looked at: these are its `functions`.
    pub(crate) fn load(
        bytes: &[u8],
        functions: Vec<String>,
        scratch: Option<&Path>,
        live: &Live,
    ) -> Result<Self, BackendError> {
        let image = Image::new(bytes, scratch)
            .map_err(|error| BackendError::failed("putting the shared object in place", error))?;
        let library = open(image.path())?;
        let (bytes, counted) = (bytes.len() as u64, live.hold(1));
        Ok(Self { library, functions, bytes, _counted: counted, _folder: image.into_keep() })
    }

    /// The address of the function of that name. Good until the module is unloaded.
    ///
    /// # Errors
    /// [`BackendError::NoEntryPoint`] with the names of the functions that are there.
    pub fn function(&self, name: &str) -> Result<*const c_void, BackendError> {
        // The libraries below it are not asked: `sin` is no kernel.
        require(&self.functions, name)?;
        let what = format!("looking up `{name}`");
        // SAFETY: the symbol is a function, whose address is only taken here, and as the address
        // of anything at all: `*const c_void` has no requirements of its own.
        let symbol = unsafe { self.library.get::<*const c_void>(name) }
            .map_err(|error| BackendError::failed(&what, error))?;
        // SAFETY: the bare address does not borrow the library; that it must not be used after the
        // module is gone is for whoever turns it into a function.
        let address = unsafe { symbol.try_as_raw_ptr() };
        address
            .map(<*mut c_void>::cast_const)
            .ok_or_else(|| BackendError::failed(what, "it is null"))
    }

    /// The function of that name, as a `T` such as `unsafe extern "C" fn(i32, *mut f32)`. It borrows
    /// the module, so it cannot be called after that is gone.
    ///
    /// # Safety
    /// `T` must be a function pointer with the signature that the function has in C.
    ///
    /// # Errors
    /// [`BackendError::NoEntryPoint`] with the names of the functions that are there.
    pub unsafe fn get<T>(&self, name: &str) -> Result<Symbol<'_, T>, BackendError> {
        require(&self.functions, name)?;
        // SAFETY: the name is that of a function, and the caller says that `T` is its type.
        unsafe { self.library.get(name) }
            .map_err(|error| BackendError::failed(format!("looking up `{name}`"), error))
    }

    /// The names of the functions that it defines, sorted.
    #[must_use]
    pub fn functions(&self) -> &[String] {
        &self.functions
    }

    /// The size of the shared object in bytes: what a cache may weigh it by.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Unloads it.
    pub(crate) fn close(self) -> Result<(), BackendError> {
        self.library.close().map_err(|error| BackendError::failed("dlclose", error))
    }
}

impl fmt::Debug for HostModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostModule")
            .field("functions", &self.functions)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// Says so if there is no function of that name among these.
pub(crate) fn require(functions: &[String], name: &str) -> Result<(), BackendError> {
    if functions.iter().any(|function| function == name) {
        return Ok(());
    }
    Err(BackendError::NoEntryPoint { entry: name.to_owned(), available: functions.to_vec() })
}

/// Loads the shared object at `path`, with all its symbols resolved, and shares none of them.
fn open(path: &Path) -> Result<Library, BackendError> {
    #[cfg(unix)]
    {
        use libloading::os::unix::{self, RTLD_LOCAL, RTLD_NOW};
        // SAFETY: loading runs the object's own start-up code. It was compiled from the caller's
        // source or comes from a store that the caller trusts to run code from, and its digest and
        // its headers have been checked.
        unsafe { unix::Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
            .map(Library::from)
            .map_err(|error| refused(&error))
    }
    #[cfg(not(unix))]
    {
        // SAFETY: as above.
        unsafe { Library::new(path) }.map_err(|error| refused(&error))
    }
}

/// What the loader's refusal says of the bytes. What comes of the machine's state (no memory, no
/// descriptors) must not have the artifact thrown away; what comes of missing symbols or libraries
/// will be the same the next time.
fn refused(error: &libloading::Error) -> BackendError {
    use std::error::Error;
    let text = match error.source() {
        Some(source) => source.to_string(),
        None => error.to_string(),
    };
    let lasting = ["undefined symbol", "version `", "No such file or directory", "ELF"];
    if lasting.iter().any(|sign| text.contains(sign)) {
        BackendError::InvalidArtifact { reason: text }
    } else {
        BackendError::failed("dlopen", text)
    }
}

/// The version of the C library in this process.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn glibc_version() -> Option<String> {
    // SAFETY: glibc returns a pointer to a constant, NUL-terminated string.
    let text = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    text.to_str().ok().map(str::to_owned)
}
