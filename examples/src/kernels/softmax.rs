//! The softmax of each row of a matrix, or its logarithm.

use std::fmt;

use grainstore_host::HostModule;

use super::wide;
use crate::case::Kernel;
use crate::gpu::{Arg, Gpu};
use crate::{CaseError, Element, Generator, Tolerance, Variant, margin};

/// `softmax` in C, of each of `rows` rows of `columns` elements.
pub type Function<T> =
    unsafe extern "C" fn(rows: usize, columns: usize, input: *const T, output: *mut T);

pub(crate) struct Softmax {
    block: usize,
    log: bool,
}

pub(crate) struct Problem<T> {
    rows: usize,
    columns: usize,
    input: Vec<T>,
}

impl<T> fmt::Display for Problem<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rows, columns = {}, {}", self.rows, self.columns)
    }
}

/// The reference for one row.
#[must_use]
pub fn reference(row: &[f64], log: bool) -> Vec<f64> {
    let maximum = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = row.iter().map(|x| (x - maximum).exp()).sum();
    if log {
        row.iter().map(|x| x - maximum - sum.ln()).collect()
    } else {
        row.iter().map(|x| (x - maximum).exp() / sum).collect()
    }
}

impl Kernel for Softmax {
    const NAME: &'static str = "softmax";
    type Problem<T: Element> = Problem<T>;

    fn of(variant: &Variant) -> Result<Self, CaseError> {
        Ok(Self { block: variant.number("BLOCK")?, log: variant.flag("LOG")? })
    }

    /// Logits as models give them: far from zero, so that a plain `exp` overflows or vanishes, and
    /// some masked.
    fn problems<T: Element>(&self) -> Vec<Problem<T>> {
        [(3, 1), (4, 63), (2, 1000), (5, 257)]
            .map(|(rows, columns)| {
                let mut random = Generator::new((rows * columns) as u64);
                let mut input = random.elements::<T>(rows * columns);
                let around = if columns == 1000 { -100.0 } else { 100.0 };
                for value in &mut input {
                    *value = T::from_f64(10.0 * value.to_f64() + around);
                }
                if columns > 1 {
                    // The first of a row and a whole stretch of it.
                    for row in input.chunks_exact_mut(columns) {
                        row[0] = T::from_f64(f64::NEG_INFINITY);
                        row[columns / 2..columns * 3 / 4].fill(T::from_f64(f64::NEG_INFINITY));
                    }
                }
                Problem { rows, columns, input }
            })
            .into()
    }

    fn reference<T: Element>(&self, problem: &Problem<T>) -> Vec<f64> {
        wide(&problem.input)
            .chunks_exact(problem.columns)
            .flat_map(|row| reference(row, self.log))
            .collect()
    }

    /// An exponent of up to 20 is rounded by up to 20 halves of a unit, which its exponential has as
    /// a relative error, beside its own few; the sum's errors mostly cancel. The logarithm subtracts
    /// from values near 110, so it has their units as an absolute error.
    fn tolerance<T: Element>(&self, _: &Problem<T>) -> Tolerance {
        if self.log {
            Tolerance { absolute: 110.0 * T::EPSILON, relative: 2.0 * T::EPSILON }
        } else {
            Tolerance { absolute: 0.0, relative: 32.0 * T::EPSILON }
        }
    }

    unsafe fn on_host<T: Element>(
        &self,
        module: &HostModule,
        problem: &Problem<T>,
    ) -> Result<Vec<T>, CaseError> {
        let Problem { rows, columns, input } = problem;
        let mut output = margin::room(input.len());
        // SAFETY: The signature is the source's; both hold rows times columns elements.
        unsafe {
            let softmax: Function<T> = *module.get("softmax")?;
            softmax(*rows, *columns, input.as_ptr(), output.as_mut_ptr());
        }
        margin::trim(output)
    }

    unsafe fn on_gpu<G: Gpu, T: Element>(
        &self,
        gpu: &G,
        problem: &Problem<T>,
    ) -> Result<Vec<T>, CaseError> {
        let input = gpu.upload(&problem.input)?;
        let output = gpu.output(problem.input.len())?;
        let args = [Arg::Size(problem.columns), Arg::Buffer(&input), Arg::Buffer(&output)];
        // SAFETY: The arguments are the source's; there is a group for each row.
        unsafe {
            gpu.launch("softmax", [problem.rows], [self.block], &args)?;
        }
        gpu.download(&output)
    }
}
