//! The product of two matrices.

use std::fmt;

use grainstore_host::HostModule;

use crate::case::Kernel;
use crate::gpu::{Arg, Gpu};
use crate::{CaseError, Element, Generator, Tolerance, Variant, margin};

/// `matmul` in C: `c = a b`, row-major, where `a` is `m` by `k` and `b` is `k` by `n`.
pub type Function<T> =
    unsafe extern "C" fn(m: usize, n: usize, k: usize, a: *const T, b: *const T, c: *mut T);

pub(crate) struct Matmul {
    tile: usize,
    work: usize,
}

pub(crate) struct Problem<T> {
    m: usize,
    n: usize,
    k: usize,
    a: Vec<T>,
    b: Vec<T>,
}

impl<T> fmt::Display for Problem<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m, n, k = {}, {}, {}", self.m, self.n, self.k)
    }
}

/// The reference: `n` columns, `k` products each.
#[must_use]
pub fn reference<T: Element>(n: usize, k: usize, a: &[T], b: &[T]) -> Vec<f64> {
    let dot = |row: &[T], column: usize| -> f64 {
        row.iter().enumerate().map(|(p, a)| a.to_f64() * b[p * n + column].to_f64()).sum()
    };
    a.chunks_exact(k).flat_map(|row| (0..n).map(move |column| dot(row, column))).collect()
}

impl Kernel for Matmul {
    const NAME: &'static str = "matmul";
    type Problem<T: Element> = Problem<T>;

    fn of(variant: &Variant) -> Result<Self, CaseError> {
        Ok(Self { tile: variant.number("TILE")?, work: variant.number("WORK")? })
    }

    fn problems<T: Element>(&self) -> Vec<Problem<T>> {
        [(1, 1, 1), (5, 33, 7), (32, 32, 32), (65, 50, 67)]
            .map(|(m, n, k)| {
                let mut random = Generator::new((m * n * k) as u64);
                Problem { m, n, k, a: random.elements(m * k), b: random.elements(k * n) }
            })
            .into()
    }

    fn reference<T: Element>(&self, problem: &Problem<T>) -> Vec<f64> {
        reference(problem.n, problem.k, &problem.a, &problem.b)
    }

    /// Each of k steps rounds a product below one and a partial sum below k, by half a unit; but
    /// partial sums are near the root of k, and errors of random signs.
    fn tolerance<T: Element>(&self, problem: &Problem<T>) -> Tolerance {
        Tolerance::absolute(T::EPSILON * (1 + problem.k) as f64)
    }

    unsafe fn on_host<T: Element>(
        &self,
        module: &HostModule,
        problem: &Problem<T>,
    ) -> Result<Vec<T>, CaseError> {
        let Problem { m, n, k, a, b } = problem;
        let mut c = margin::room(m * n);
        // SAFETY: The signature is the source's; the matrices are of the sizes told.
        unsafe {
            let matmul: Function<T> = *module.get("matmul")?;
            matmul(*m, *n, *k, a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
        }
        margin::trim(c)
    }

    unsafe fn on_gpu<G: Gpu, T: Element>(
        &self,
        gpu: &G,
        problem: &Problem<T>,
    ) -> Result<Vec<T>, CaseError> {
        let &Problem { m, n, k, .. } = problem;
        let a = gpu.upload(&problem.a)?;
        let b = gpu.upload(&problem.b)?;
        let c = gpu.output(m * n)?;
        let groups = [n.div_ceil(self.tile), m.div_ceil(self.tile)];
        let local = [self.tile, self.tile / self.work];
        let args = [
            Arg::Size(m),
            Arg::Size(n),
            Arg::Size(k),
            Arg::Buffer(&a),
            Arg::Buffer(&b),
            Arg::Buffer(&c),
        ];
        // SAFETY: The arguments are the source's; the matrices are of the sizes told.
        unsafe { gpu.launch("matmul", groups, local, &args)? };
        gpu.download(&c)
    }
}
