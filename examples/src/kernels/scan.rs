//! Inclusive prefix sums.

use std::fmt;

use grainstore_host::HostModule;

use crate::case::Kernel;
use crate::gpu::{Arg, Buffer, Gpu};
use crate::{CaseError, Element, Generator, Tolerance, Variant, margin};

/// `scan_blocks` in C: scans each block of `n` elements, and leaves the blocks' totals in `sums`.
pub type ScanBlocks<T> =
    unsafe extern "C" fn(n: usize, input: *const T, output: *mut T, sums: *mut T);

/// `scan_add` in C: adds to each block what the scanned `sums` say of the blocks before it.
pub type ScanAdd<T> = unsafe extern "C" fn(n: usize, output: *mut T, sums: *const T);

pub(crate) struct Scan {
    block: usize,
}

pub(crate) struct Problem<T> {
    input: Vec<T>,
}

impl<T> fmt::Display for Problem<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n = {}", self.input.len())
    }
}

impl Scan {
    /// Elements of a block: two for each item of a work-group.
    const fn span(&self) -> usize {
        2 * self.block
    }

    /// # Safety
    /// The functions are the source's, in this variant.
    unsafe fn host<T: Element>(
        &self,
        blocks: ScanBlocks<T>,
        add: ScanAdd<T>,
        input: &[T],
    ) -> Result<Vec<T>, CaseError> {
        let n = input.len();
        let mut output = margin::room(n);
        let mut sums = margin::room(n.div_ceil(self.span()));
        // SAFETY: The caller promises the functions; sums holds an element for each block.
        unsafe { blocks(n, input.as_ptr(), output.as_mut_ptr(), sums.as_mut_ptr()) };
        let sums = margin::trim(sums)?;
        if sums.len() > 1 {
            // SAFETY: As above; the scanned sums are as many.
            unsafe {
                let sums = self.host(blocks, add, &sums)?;
                add(n, output.as_mut_ptr(), sums.as_ptr());
            }
        }
        margin::trim(output)
    }

    /// # Safety
    /// The module is the source's, in this variant.
    unsafe fn gpu<G: Gpu, T: Element>(
        &self,
        gpu: &G,
        input: &Buffer<T, G::Memory>,
    ) -> Result<Buffer<T, G::Memory>, CaseError> {
        let n = input.len();
        let groups = n.div_ceil(self.span());
        let output = gpu.output(n)?;
        let sums = gpu.output(groups)?;
        let args = [Arg::Size(n), Arg::Buffer(input), Arg::Buffer(&output), Arg::Buffer(&sums)];
        // SAFETY: The caller promises the module; sums holds an element for each group.
        unsafe { gpu.launch("scan_blocks", [groups], [self.block], &args)? };
        if groups > 1 {
            // SAFETY: As above; the scanned sums are as many.
            unsafe {
                let sums = self.gpu(gpu, &sums)?;
                let args = [Arg::Size(n), Arg::Buffer(&output), Arg::Buffer(&sums)];
                gpu.launch("scan_add", [groups], [self.block], &args)?;
            }
        }
        Ok(output)
    }
}

impl Kernel for Scan {
    const NAME: &'static str = "scan";
    type Problem<T: Element> = Problem<T>;

    fn of(variant: &Variant) -> Result<Self, CaseError> {
        Ok(Self { block: variant.number("BLOCK")? })
    }

    /// The last two need their sums' sums: more blocks than a block has elements.
    fn problems<T: Element>(&self) -> Vec<Problem<T>> {
        let square = self.span() * self.span();
        [1, self.span() - 1, self.span(), 1000, square + 1, square + self.span() * 3 / 2]
            .map(|n| Problem { input: Generator::new(n as u64).elements(n) })
            .into()
    }

    fn reference<T: Element>(&self, problem: &Problem<T>) -> Vec<f64> {
        let mut sum = 0.0;
        problem
            .input
            .iter()
            .map(|value| {
                sum += value.to_f64();
                sum
            })
            .collect()
    }

    /// A value passes through at most some 300 additions, in C along a block and the blocks' sums;
    /// the errors are of random signs, each half a unit of a prefix sum, which is itself a random
    /// walk and stays below the root of n times four.
    fn tolerance<T: Element>(&self, problem: &Problem<T>) -> Tolerance {
        let reach = 4.0 * (problem.input.len() as f64).sqrt() * T::REACH;
        Tolerance::absolute(16.0 * T::EPSILON * reach)
    }

    unsafe fn on_host<T: Element>(
        &self,
        module: &HostModule,
        problem: &Problem<T>,
    ) -> Result<Vec<T>, CaseError> {
        // SAFETY: The signatures are the source's, in the variant that the caller promises.
        unsafe { self.host(*module.get("scan_blocks")?, *module.get("scan_add")?, &problem.input) }
    }

    unsafe fn on_gpu<G: Gpu, T: Element>(
        &self,
        gpu: &G,
        problem: &Problem<T>,
    ) -> Result<Vec<T>, CaseError> {
        let input = gpu.upload(&problem.input)?;
        // SAFETY: The module and the variant are what the caller promises.
        let output = unsafe { self.gpu(gpu, &input)? };
        gpu.download(&output)
    }
}
