//! One head of attention.

use std::fmt;

use grainstore_host::HostModule;

use super::{softmax, wide};
use crate::case::Kernel;
use crate::gpu::{Arg, Gpu};
use crate::{CaseError, Element, Generator, Tolerance, Variant, margin};

/// `attention` in C: `queries` rows of `q` and of `output`, `keys` rows of `k` and of `v`.
pub type Function<T> = unsafe extern "C" fn(
    queries: usize,
    keys: usize,
    scale: T,
    q: *const T,
    k: *const T,
    v: *const T,
    output: *mut T,
);

pub(crate) struct Attention {
    dim: usize,
    causal: bool,
    tile: usize,
}

pub(crate) struct Problem<T> {
    queries: usize,
    keys: usize,
    scale: T,
    q: Vec<T>,
    k: Vec<T>,
    v: Vec<T>,
}

impl<T> fmt::Display for Problem<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queries, keys = {}, {}", self.queries, self.keys)
    }
}

/// The reference for one query, which sees all the keys given; `v` has a row for each.
#[must_use]
pub fn reference(query: &[f64], scale: f64, k: &[f64], v: &[f64]) -> Vec<f64> {
    let dim = query.len();
    let scores: Vec<f64> = k
        .chunks_exact(dim)
        .map(|key| scale * query.iter().zip(key).map(|(q, k)| q * k).sum::<f64>())
        .collect();
    let weights = softmax::reference(&scores, false);
    let column = |d| weights.iter().zip(v.chunks_exact(dim)).map(|(w, v)| w * v[d]).sum();
    (0..dim).map(column).collect()
}

impl Kernel for Attention {
    const NAME: &'static str = "attention";
    type Problem<T: Element> = Problem<T>;

    fn of(variant: &Variant) -> Result<Self, CaseError> {
        Ok(Self {
            dim: variant.number("HEAD_DIM")?,
            causal: variant.flag("CAUSAL")?,
            tile: variant.number("TILE")?,
        })
    }

    /// A whole prompt, a part of one behind keys of earlier parts, and the next token alone.
    fn problems<T: Element>(&self) -> Vec<Problem<T>> {
        [(1, 1), (33, 33), (16, 50), (1, 47)]
            .map(|(queries, keys)| {
                let mut random = Generator::new((queries * keys) as u64);
                // Sharper than the root of the dimension would have it, so that weights differ.
                let scale = T::from_f64(4.0 / (self.dim as f64).sqrt());
                Problem {
                    queries,
                    keys,
                    scale,
                    q: random.elements(queries * self.dim),
                    k: random.elements(keys * self.dim),
                    v: random.elements(keys * self.dim),
                }
            })
            .into()
    }

    fn reference<T: Element>(&self, problem: &Problem<T>) -> Vec<f64> {
        let &Problem { queries, keys, scale, .. } = problem;
        let (q, k, v) = (wide(&problem.q), wide(&problem.k), wide(&problem.v));
        q.chunks_exact(self.dim)
            .enumerate()
            .flat_map(|(row, query)| {
                let visible = if self.causal { keys - queries + row + 1 } else { keys };
                let seen = visible * self.dim;
                reference(query, scale.to_f64(), &k[..seen], &v[..seen])
            })
            .collect()
    }

    /// The result is an average of values below one, so what counts is the relative error of its
    /// weights: that of an exponential whose argument, a sum of products, is off by a few units.
    fn tolerance<T: Element>(&self, _: &Problem<T>) -> Tolerance {
        Tolerance::absolute(16.0 * T::EPSILON)
    }

    unsafe fn on_host<T: Element>(
        &self,
        module: &HostModule,
        problem: &Problem<T>,
    ) -> Result<Vec<T>, CaseError> {
        let Problem { queries, keys, scale, q, k, v } = problem;
        let mut output = margin::room(q.len());
        // SAFETY: The signature is the source's; there are as many rows as told, of HEAD_DIM.
        unsafe {
            let attention: Function<T> = *module.get("attention")?;
            let (q, k, v) = (q.as_ptr(), k.as_ptr(), v.as_ptr());
            attention(*queries, *keys, *scale, q, k, v, output.as_mut_ptr());
        }
        margin::trim(output)
    }

    unsafe fn on_gpu<G: Gpu, T: Element>(
        &self,
        gpu: &G,
        problem: &Problem<T>,
    ) -> Result<Vec<T>, CaseError> {
        let q = gpu.upload(&problem.q)?;
        let k = gpu.upload(&problem.k)?;
        let v = gpu.upload(&problem.v)?;
        let output = gpu.output(problem.q.len())?;
        let args = [
            Arg::Size(problem.queries),
            Arg::Size(problem.keys),
            Arg::Value(problem.scale),
            Arg::Buffer(&q),
            Arg::Buffer(&k),
            Arg::Buffer(&v),
            Arg::Buffer(&output),
        ];
        let groups = problem.queries.div_ceil(self.tile);
        // SAFETY: The arguments are the source's; there are as many rows as told, of HEAD_DIM.
        unsafe { gpu.launch("attention", [groups], [self.tile], &args)? };
        gpu.download(&output)
    }
}
