//! A 2-D convolution over several channels, with several filters.

use std::fmt;

use grainstore_host::HostModule;

use super::wide;
use crate::case::Kernel;
use crate::gpu::{Arg, Gpu};
use crate::{CaseError, Element, Generator, Tolerance, Variant, margin};

/// `conv2d` in C; see the source for the layouts.
pub type Function<T> = unsafe extern "C" fn(
    channels: usize,
    filters: usize,
    height: usize,
    width: usize,
    input: *const T,
    weights: *const T,
    bias: *const T,
    output: *mut T,
);

pub(crate) struct Conv2d {
    filter: usize,
    stride: usize,
    tile: usize,
}

pub(crate) struct Problem<T> {
    channels: usize,
    filters: usize,
    height: usize,
    width: usize,
    input: Vec<T>,
    weights: Vec<T>,
    bias: Vec<T>,
}

impl<T> fmt::Display for Problem<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { channels, filters, height, width, .. } = self;
        write!(f, "channels, filters, height, width = {channels}, {filters}, {height}, {width}")
    }
}

impl Conv2d {
    /// Rows and columns of the output.
    fn extent<T>(&self, problem: &Problem<T>) -> (usize, usize) {
        (problem.height.div_ceil(self.stride), problem.width.div_ceil(self.stride))
    }

    fn output_len<T>(&self, problem: &Problem<T>) -> usize {
        let (rows, columns) = self.extent(problem);
        problem.filters * rows * columns
    }
}

impl Kernel for Conv2d {
    const NAME: &'static str = "conv2d";
    type Problem<T: Element> = Problem<T>;

    fn of(variant: &Variant) -> Result<Self, CaseError> {
        Ok(Self {
            filter: variant.number("FILTER")?,
            stride: variant.number("STRIDE")?,
            tile: variant.number("TILE")?,
        })
    }

    /// An image smaller than the filter, one smaller than a tile, one of several tiles.
    fn problems<T: Element>(&self) -> Vec<Problem<T>> {
        [(1, 1, 1, 1), (2, 3, 5, 7), (3, 4, 37, 21)]
            .map(|(channels, filters, height, width)| {
                let mut random = Generator::new((channels * filters * height * width) as u64);
                Problem {
                    channels,
                    filters,
                    height,
                    width,
                    input: random.elements(channels * height * width),
                    weights: random.elements(filters * channels * self.filter * self.filter),
                    bias: random.elements(filters),
                }
            })
            .into()
    }

    fn reference<T: Element>(&self, problem: &Problem<T>) -> Vec<f64> {
        let &Problem { channels, filters, height, width, .. } = problem;
        let (input, weights) = (wide(&problem.input), wide(&problem.weights));
        let (rows, columns) = self.extent(problem);
        let pad = self.filter / 2;
        // Zero outside; the coordinates are those of the padded plane.
        let pixel = |channel: usize, y: usize, x: usize| {
            let inside = (pad..height + pad).contains(&y) && (pad..width + pad).contains(&x);
            if inside { input[(channel * height + y - pad) * width + x - pad] } else { 0.0 }
        };
        let mut output = Vec::with_capacity(self.output_len(problem));
        for filter in 0..filters {
            for row in 0..rows {
                for column in 0..columns {
                    let mut sum = problem.bias[filter].to_f64();
                    for channel in 0..channels {
                        let plane = (filter * channels + channel) * self.filter * self.filter;
                        for fy in 0..self.filter {
                            for fx in 0..self.filter {
                                sum += weights[plane + fy * self.filter + fx]
                                    * pixel(
                                        channel,
                                        row * self.stride + fy,
                                        column * self.stride + fx,
                                    );
                            }
                        }
                    }
                    output.push(sum);
                }
            }
        }
        output
    }

    /// As for a matrix product of as many terms as a filter has weights, the bias one more.
    fn tolerance<T: Element>(&self, problem: &Problem<T>) -> Tolerance {
        let terms = problem.channels * self.filter * self.filter + 1;
        Tolerance::absolute(T::EPSILON * terms as f64)
    }

    unsafe fn on_host<T: Element>(
        &self,
        module: &HostModule,
        problem: &Problem<T>,
    ) -> Result<Vec<T>, CaseError> {
        let &Problem { channels, filters, height, width, .. } = problem;
        let mut output = margin::room(self.output_len(problem));
        // SAFETY: The signature is the source's; the planes are of the sizes told, the weights of
        // FILTER squared for each channel of each filter.
        unsafe {
            let conv2d: Function<T> = *module.get("conv2d")?;
            conv2d(
                channels,
                filters,
                height,
                width,
                problem.input.as_ptr(),
                problem.weights.as_ptr(),
                problem.bias.as_ptr(),
                output.as_mut_ptr(),
            );
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
        let bias = gpu.upload(&problem.bias)?;
        let output = gpu.output(self.output_len(problem))?;
        let (rows, columns) = self.extent(problem);
        let groups = [columns.div_ceil(self.tile), rows.div_ceil(self.tile), problem.filters];
        let args = [
            Arg::Size(problem.channels),
            Arg::Size(problem.height),
            Arg::Size(problem.width),
            Arg::Buffer(&input),
            Arg::Buffer(&weights),
            Arg::Buffer(&bias),
            Arg::Buffer(&output),
        ];
        // SAFETY: The arguments are the source's; the buffers are of the sizes told, and there is a
        // group for each tile of each filter.
        unsafe { gpu.launch("conv2d", groups, [self.tile, self.tile, 1], &args)? };
        gpu.download(&output)
    }
}
