//! Rows divided by their root mean square.

use std::fmt;

use grainstore_host::HostModule;

use super::wide;
use crate::case::Kernel;
use crate::gpu::{Arg, Gpu};
use crate::{CaseError, Element, Generator, Tolerance, Variant, margin};

/// `rms_norm` in C, of each of `rows` rows of `columns` elements; as many weights.
pub type Function<T> = unsafe extern "C" fn(
    rows: usize,
    columns: usize,
    epsilon: T,
    input: *const T,
    weights: *const T,
    output: *mut T,
);

/// What is added to the mean square, so that a row of zeros stays one.
pub const EPSILON: f64 = 1e-5;

pub(crate) struct RmsNorm {
    block: usize,
    unit_offset: bool,
}

pub(crate) struct Problem<T> {
    rows: usize,
    columns: usize,
    input: Vec<T>,
    weights: Vec<T>,
}

impl<T> fmt::Display for Problem<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rows, columns = {}, {}", self.rows, self.columns)
    }
}

/// The reference for one row; `offset` is added to every weight.
#[must_use]
pub fn reference(row: &[f64], weights: &[f64], offset: f64) -> Vec<f64> {
    let mean = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
    let scale = 1.0 / (mean + EPSILON).sqrt();
    row.iter().zip(weights).map(|(x, weight)| x * scale * (weight + offset)).collect()
}

impl Kernel for RmsNorm {
    const NAME: &'static str = "rms_norm";
    type Problem<T: Element> = Problem<T>;

    fn of(variant: &Variant) -> Result<Self, CaseError> {
        Ok(Self { block: variant.number("BLOCK")?, unit_offset: variant.flag("UNIT_OFFSET")? })
    }

    fn problems<T: Element>(&self) -> Vec<Problem<T>> {
        [(1, 1), (3, 63), (5, 257), (2, 1000)]
            .map(|(rows, columns)| {
                let mut random = Generator::new((rows * columns) as u64);
                let mut input = random.elements(rows * columns);
                if rows == 5 {
                    input[..columns].fill(T::default());
                }
                Problem { rows, columns, input, weights: random.elements(columns) }
            })
            .into()
    }

    fn reference<T: Element>(&self, problem: &Problem<T>) -> Vec<f64> {
        let weights = wide(&problem.weights);
        let offset = if self.unit_offset { 1.0 } else { 0.0 };
        wide(&problem.input)
            .chunks_exact(problem.columns)
            .flat_map(|row| reference(row, &weights, offset))
            .collect()
    }

    /// The sum of squares is of one sign, so its relative error is small, and the root halves it;
    /// then a root of a few units and two products. One plus a weight near minus one has a unit
    /// of one as its error, times x over the root mean square, which is below two.
    fn tolerance<T: Element>(&self, _: &Problem<T>) -> Tolerance {
        Tolerance { absolute: 2.0 * T::EPSILON, relative: 16.0 * T::EPSILON }
    }

    unsafe fn on_host<T: Element>(
        &self,
        module: &HostModule,
        problem: &Problem<T>,
    ) -> Result<Vec<T>, CaseError> {
        let Problem { rows, columns, input, weights } = problem;
        let mut output = margin::room(input.len());
        let epsilon = T::from_f64(EPSILON);
        // SAFETY: The signature is the source's; input and output hold rows times columns elements,
        // weights columns.
        unsafe {
            let rms_norm: Function<T> = *module.get("rms_norm")?;
            let output = output.as_mut_ptr();
            rms_norm(*rows, *columns, epsilon, input.as_ptr(), weights.as_ptr(), output);
        }
        margin::trim(output)
    }

    unsafe fn on_gpu<G: Gpu, T: Element>(
        &self,
        gpu: &G,
        problem: &Problem<T>,
    ) -> Result<Vec<T>, CaseError> {
        let input = gpu.upload(&problem.input)?;
        let weights = gpu.upload(&problem.weights)?;
        let output = gpu.output(problem.input.len())?;
        let args = [
            Arg::Size(problem.columns),
            Arg::Value(T::from_f64(EPSILON)),
            Arg::Buffer(&input),
            Arg::Buffer(&weights),
            Arg::Buffer(&output),
        ];
        // SAFETY: The arguments are the source's; there is a group for each row.
        unsafe {
            gpu.launch("rms_norm", [problem.rows], [self.block], &args)?;
        }
        gpu.download(&output)
    }
}
