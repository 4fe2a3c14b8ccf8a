//! The table of the example kernels, and the one way in which each is checked.

use std::fmt;

use grainstore_host::HostModule;

use crate::gpu::Gpu;
use crate::kernels::{
    attention::Attention, conv2d::Conv2d, matmul::Matmul, reduction::Reduction, rms_norm::RmsNorm,
    saxpy::Saxpy, scan::Scan, softmax::Softmax,
};
use crate::{Agreement, CaseError, Element, Launcher, Tolerance, Variant, compare};

/// What a kernel brings: sizes to try, a plain reference, and how it is launched on the processor and
/// on a GPU.
/// A value of it is one variant, its defines read.
pub(crate) trait Kernel: Sized {
    /// The name of its source files, without extension.
    const NAME: &'static str;

    /// One launch: sizes and inputs.
    type Problem<T: Element>: fmt::Display;

    /// Reads the defines that the launch depends on.
    fn of(variant: &Variant) -> Result<Self, CaseError>;

    /// Launches that reach every path: less than a block, ragged, several blocks.
    fn problems<T: Element>(&self) -> Vec<Self::Problem<T>>;

    /// What comes of it, computed plainly.
    fn reference<T: Element>(&self, problem: &Self::Problem<T>) -> Vec<f64>;

    /// How far a device may be from that, for it adds in another order and rounds each step.
    fn tolerance<T: Element>(&self, problem: &Self::Problem<T>) -> Tolerance;

    /// Calls the functions of a shared object.
    ///
    /// # Safety
    /// The module was compiled from this kernel's C source, in this variant, for this `T`.
    unsafe fn on_host<T: Element>(
        &self,
        module: &HostModule,
        problem: &Self::Problem<T>,
    ) -> Result<Vec<T>, CaseError>;

    /// Launches its functions on a GPU.
    ///
    /// # Safety
    /// The modules were compiled from this kernel's source in the language of that API, in this
    /// variant, for this `T`.
    unsafe fn on_gpu<G: Gpu, T: Element>(
        &self,
        gpu: &G,
        problem: &Self::Problem<T>,
    ) -> Result<Vec<T>, CaseError>;
}

/// One of the example kernels.
#[derive(Clone, Copy)]
pub struct Case {
    name: &'static str,
    check: unsafe fn(&Launcher<'_>, &Variant) -> Result<Agreement, CaseError>,
}

impl Case {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::of::<Saxpy>(),
        Self::of::<Reduction>(),
        Self::of::<Scan>(),
        Self::of::<Matmul>(),
        Self::of::<Softmax>(),
        Self::of::<RmsNorm>(),
        Self::of::<Attention>(),
        Self::of::<Conv2d>(),
    ];

    const fn of<K: Kernel>() -> Self {
        Self { name: K::NAME, check: check::<K> }
    }

    /// The one whose source files have this name, without extension.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|case| case.name == name)
    }

    /// The name of its source files, without extension.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Launches it with several sizes, ragged ones among them, and compares every value.
    ///
    /// # Safety
    /// The modules were compiled from this kernel's source with the variant's defines.
    ///
    /// # Errors
    /// Where a launch fails, or a value is further from the reference than rounding explains.
    pub unsafe fn check(
        &self,
        on: &Launcher<'_>,
        variant: &Variant,
    ) -> Result<Agreement, CaseError> {
        // SAFETY: The caller's promise is the one that is asked for.
        unsafe { (self.check)(on, variant) }
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Case").field(&self.name).finish()
    }
}

/// # Safety
/// As [`Case::check`].
unsafe fn check<K: Kernel>(on: &Launcher<'_>, variant: &Variant) -> Result<Agreement, CaseError> {
    // The one define with a default: every source takes T as float where nothing is said.
    let element = variant.text("T").unwrap_or(f32::NAME);
    // SAFETY: The caller promises kernel and variant; the element type is the variant's.
    unsafe {
        match element {
            f32::NAME => check_elements::<K, f32>(on, variant),
            f64::NAME => check_elements::<K, f64>(on, variant),
            i32::NAME => check_elements::<K, i32>(on, variant),
            other => Err(CaseError::Variant(format!("T is {other}, which no kernel takes"))),
        }
    }
}

/// # Safety
/// As [`Case::check`], and `T` is the variant's element type.
unsafe fn check_elements<K: Kernel, T: Element>(
    on: &Launcher<'_>,
    variant: &Variant,
) -> Result<Agreement, CaseError> {
    let kernel = K::of(variant)?;
    let mut all = Agreement::default();
    for problem in kernel.problems::<T>() {
        // SAFETY: The caller promises kernel, variant and element type.
        let got = unsafe {
            match on {
                Launcher::Host(module) => kernel.on_host(module, &problem)?,
                Launcher::OpenCl(session) => kernel.on_gpu(session, &problem)?,
                #[cfg(feature = "cuda")]
                Launcher::Cuda(session) => kernel.on_gpu(session, &problem)?,
                #[cfg(feature = "vulkan")]
                Launcher::Vulkan(session) => kernel.on_gpu(session, &problem)?,
                #[cfg(feature = "wgpu")]
                Launcher::Wgpu(session) => kernel.on_gpu(session, &problem)?,
            }
        };
        let want = kernel.reference(&problem);
        let agreement = compare(&got, &want, kernel.tolerance(&problem))
            .map_err(|mismatch| CaseError::Wrong { problem: problem.to_string(), mismatch })?;
        all = all.and(agreement);
    }
    Ok(all)
}
