//! The sum or the maximum of many elements.

use std::fmt;

use grainstore_host::HostModule;

use super::wide;
use crate::case::Kernel;
use crate::gpu::{Arg, Gpu};
use crate::{CaseError, Element, Generator, Tolerance, Variant, margin};

/// `reduce` in C: leaves one value of the `n` elements of `input` in `output`.
pub type Function<T> = unsafe extern "C" fn(n: usize, input: *const T, output: *mut T);

/// Work-groups of the first launch, whose values the second one reduces.
const GROUPS: usize = 4;

pub(crate) struct Reduction {
    block: usize,
    op: Op,
}

enum Op {
    Sum,
    Max,
}

pub(crate) struct Problem<T> {
    input: Vec<T>,
}

impl<T> fmt::Display for Problem<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n = {}", self.input.len())
    }
}

impl Kernel for Reduction {
    const NAME: &'static str = "reduction";
    type Problem<T: Element> = Problem<T>;

    fn of(variant: &Variant) -> Result<Self, CaseError> {
        // The name of a macro, or where there are none a flag.
        let op = match variant.text("OP") {
            Ok("SUM") => Op::Sum,
            Ok("MAX") => Op::Max,
            Ok(other) => {
                return Err(CaseError::Variant(format!("OP is {other}, not SUM or MAX")));
            }
            Err(_) if variant.flag("MAX")? => Op::Max,
            Err(_) => Op::Sum,
        };
        Ok(Self { block: variant.number("BLOCK")?, op })
    }

    fn problems<T: Element>(&self) -> Vec<Problem<T>> {
        [1, 63, 1000, 4099]
            .map(|n| {
                let mut input = Generator::new(n as u64).elements::<T>(n);
                // All below zero once, so that a maximum that starts at zero shows.
                if n == 63 {
                    for value in &mut input {
                        *value = T::from_f64(-value.to_f64().abs() - 1.0);
                    }
                }
                Problem { input }
            })
            .into()
    }

    fn reference<T: Element>(&self, problem: &Problem<T>) -> Vec<f64> {
        let values = wide(&problem.input).into_iter();
        vec![match self.op {
            Op::Sum => values.sum(),
            Op::Max => values.fold(f64::NEG_INFINITY, f64::max),
        }]
    }

    /// A maximum rounds nothing. In a sum, a value passes through at most some 300 additions; their
    /// errors, of random signs, grow as the square root of that.
    fn tolerance<T: Element>(&self, problem: &Problem<T>) -> Tolerance {
        match self.op {
            Op::Sum => {
                let reach: f64 = wide(&problem.input).iter().map(|value| value.abs()).sum();
                Tolerance::absolute(16.0 * T::EPSILON * reach)
            }
            Op::Max => Tolerance::EXACT,
        }
    }

    unsafe fn on_host<T: Element>(
        &self,
        module: &HostModule,
        problem: &Problem<T>,
    ) -> Result<Vec<T>, CaseError> {
        let mut output = margin::room(1);
        // SAFETY: The signature is the source's; input holds n elements, output one.
        unsafe {
            let reduce: Function<T> = *module.get("reduce")?;
            reduce(problem.input.len(), problem.input.as_ptr(), output.as_mut_ptr());
        }
        margin::trim(output)
    }

    unsafe fn on_gpu<G: Gpu, T: Element>(
        &self,
        gpu: &G,
        problem: &Problem<T>,
    ) -> Result<Vec<T>, CaseError> {
        let n = problem.input.len();
        let input = gpu.upload(&problem.input)?;
        let partial = gpu.output(GROUPS)?;
        let output = gpu.output(1)?;
        let first = [Arg::Size(n), Arg::Buffer(&input), Arg::Buffer(&partial)];
        let second = [Arg::Size(GROUPS), Arg::Buffer(&partial), Arg::Buffer(&output)];
        // SAFETY: The arguments are the source's; each launch reads as many elements as it is told
        // and writes one for each of its groups.
        unsafe {
            gpu.launch("reduce", [GROUPS], [self.block], &first)?;
            gpu.launch("reduce", [1], [self.block], &second)?;
        }
        gpu.download(&output)
    }
}
