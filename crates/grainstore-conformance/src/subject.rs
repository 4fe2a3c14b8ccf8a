//! What a backend's author tells the battery: a kernel, how to launch it, and what cannot be done.

use std::error::Error;
use std::fmt;
use std::path::Path;

use grainstore_runtime::{Backend, BackendError, KernelSpec, Target};

/// A failure of a launch, in the driver's words.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A backend under test.
///
/// Six methods must be there; each of the others is something that not every backend can do, and
/// says so unless it is written.
/// What they say is listed as `not run`, with the reason, and never passed over in silence.
///
/// # The kernel
/// All kernels are one computation: `out[i] = in[i] + add` on `u32`, with wrap-around. Two specs
/// with different numbers must be different kernels, so the number has to be in the code that is
/// made: as text in the source, in a header, a define, an option, a specialization constant. Which
/// of these it is, the method's name says; everything else of the spec must then be the same for
/// every number.
pub trait Subject: Send + Sync + 'static {
    /// The backend.
    type Backend: Backend;

    /// Its name, as [`Backend::name`] gives it. Where the variable `GRAINSTORE_REQUIRE`, a list with
    /// commas, holds it, a driver that is missing fails the battery.
    fn name(&self) -> &str;

    /// A new backend, with a state of its own. It is called for every check.
    ///
    /// # Errors
    /// [`BackendError::Missing`] where it cannot even be made without its driver; most backends find
    /// that out later, in [`Backend::devices`]. Either way the battery says what it did not run.
    fn backend(&self) -> Result<Self::Backend, BackendError>;

    /// The kernel that adds `add`, which is in its source.
    fn kernel(&self, add: u32) -> KernelSpec;

    /// A kernel that the compiler refuses, in the same language.
    fn wrong(&self) -> KernelSpec;

    /// Runs the module's kernel over these numbers and waits for the result.
    ///
    /// It is called from several threads at once, also on one module, and on a module whose cache or
    /// backend is gone already: what it needs, the module keeps alive.
    ///
    /// # Errors
    /// What the driver said.
    fn launch(
        &self,
        module: &<Self::Backend as Backend>::Module,
        input: &[u32],
    ) -> Result<Vec<u32>, BoxError>;

    /// The native handles that this backend has made and not yet released: contexts, logical
    /// devices, modules, programs, pipelines. What stays as long as the backend does (a loaded
    /// library, an instance, the user's own device) does not count; so it is 0 in a new backend,
    /// and 0 again when every module was unloaded and every device destroyed.
    ///
    /// A module that was abandoned on purpose counts for as long as its handles are there.
    fn live_handles(&self, backend: &Self::Backend) -> usize;

    /// As [`kernel`](Self::kernel), with the number in a header that comes with the spec.
    ///
    /// # Errors
    /// Why there is none.
    fn with_header(&self, add: u32) -> Result<KernelSpec, Cannot> {
        let _ = add;
        Err(Cannot::because("the subject has no kernel with a header"))
    }

    /// As [`kernel`](Self::kernel), with the number in a define.
    ///
    /// # Errors
    /// Why there is none.
    fn with_define(&self, add: u32) -> Result<KernelSpec, Cannot> {
        let _ = add;
        Err(Cannot::because("the subject has no kernel with a define"))
    }

    /// As [`kernel`](Self::kernel), with the number in an option of the compiler, such as
    /// `-DADD=5`.
    ///
    /// # Errors
    /// Why there is none.
    fn with_option(&self, add: u32) -> Result<KernelSpec, Cannot> {
        let _ = add;
        Err(Cannot::because("the subject has no kernel with an option"))
    }

    /// As [`kernel`](Self::kernel), with the number in a specialization constant.
    ///
    /// # Errors
    /// Why there is none.
    fn with_constant(&self, add: u32) -> Result<KernelSpec, Cannot> {
        let _ = add;
        Err(Cannot::because("the subject has no kernel with a specialization constant"))
    }

    /// Why a build may leave no artifact here. It is asked only where one left none; what a backend
    /// does leave is always checked.
    ///
    /// # Errors
    /// The reason: a driver that keeps nothing. Without this method a build without an artifact is a
    /// failure.
    fn artifact(&self, backend: &Self::Backend) -> Result<(), Cannot> {
        let _ = backend;
        Ok(())
    }

    /// The backend with nothing in reach: it is told that its library or compiler is the file
    /// `nowhere`, which is not there.
    ///
    /// # Errors
    /// Why that can't be.
    fn without_library(&self, nowhere: &Path) -> Result<Self::Backend, Cannot> {
        let _ = nowhere;
        Err(Cannot::because("the subject has no backend without its library"))
    }

    /// Targets to compile for with no device, beside those of the devices that are here.
    fn targets(&self) -> Vec<Target> {
        Vec::new()
    }
}

/// Why a backend cannot do something: a reason to list a check as not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cannot {
    reason: String,
}

impl Cannot {
    /// It cannot, for this reason.
    pub fn because(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }

    /// The reason.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for Cannot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}
