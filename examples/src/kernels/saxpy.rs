//! `y = a x + y`.

use std::fmt;

use grainstore_host::HostModule;

use crate::case::Kernel;
use crate::gpu::{Arg, Gpu};
use crate::{CaseError, Element, Generator, Tolerance, Variant, margin};

/// `saxpy` in C: adds `a` times the `n` elements of `x` to those of `y`.
pub type Function<T> = unsafe extern "C" fn(n: usize, a: T, x: *const T, y: *mut T);

/// Items of a work-group. Only in WGSL does the kernel say how many.
const GROUP: usize = 64;

pub(crate) struct Saxpy {
    vector: usize,
}

pub(crate) struct Problem<T> {
    a: T,
    x: Vec<T>,
    y: Vec<T>,
}

impl<T> fmt::Display for Problem<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n = {}", self.x.len())
    }
}

/// The reference.
#[must_use]
pub fn reference<T: Element>(a: T, x: &[T], y: &[T]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| a.to_f64() * x.to_f64() + y.to_f64()).collect()
}

/// One rounding of the product and one of the sum, each of values below `2 REACH²`.
#[must_use]
pub fn tolerance<T: Element>() -> Tolerance {
    Tolerance::absolute(2.0 * T::EPSILON)
}

impl Kernel for Saxpy {
    const NAME: &'static str = "saxpy";
    type Problem<T: Element> = Problem<T>;

    fn of(variant: &Variant) -> Result<Self, CaseError> {
        Ok(Self { vector: variant.number("VECTOR")? })
    }

    fn problems<T: Element>(&self) -> Vec<Problem<T>> {
        [1, 7, 1000, 4099]
            .map(|n| {
                let mut random = Generator::new(n as u64);
                Problem { a: T::from_f64(0.75), x: random.elements(n), y: random.elements(n) }
            })
            .into()
    }

    fn reference<T: Element>(&self, problem: &Problem<T>) -> Vec<f64> {
        reference(problem.a, &problem.x, &problem.y)
    }

    fn tolerance<T: Element>(&self, _: &Problem<T>) -> Tolerance {
        tolerance::<T>()
    }

    unsafe fn on_host<T: Element>(
        &self,
        module: &HostModule,
        problem: &Problem<T>,
    ) -> Result<Vec<T>, CaseError> {
        let mut y = margin::extend(&problem.y);
        // SAFETY: The signature is the source's; x and y hold n elements each.
        unsafe {
            let saxpy: Function<T> = *module.get("saxpy")?;
            saxpy(problem.y.len(), problem.a, problem.x.as_ptr(), y.as_mut_ptr());
        }
        margin::trim(y)
    }

    unsafe fn on_gpu<G: Gpu, T: Element>(
        &self,
        gpu: &G,
        problem: &Problem<T>,
    ) -> Result<Vec<T>, CaseError> {
        let n = problem.x.len();
        let x = gpu.upload(&problem.x)?;
        let y = gpu.upload(&problem.y)?;
        let groups = n.div_ceil(self.vector).div_ceil(GROUP);
        let args = [Arg::Size(n), Arg::Value(problem.a), Arg::Buffer(&x), Arg::Buffer(&y)];
        // SAFETY: The arguments are the source's; x and y hold n elements each.
        unsafe { gpu.launch("saxpy", [groups], [GROUP], &args)? };
        gpu.download(&y)
    }
}
