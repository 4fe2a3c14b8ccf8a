//! A loop as an inference server has it: requests of every length, a plan for each shape.
//!
//!     cargo run --package grainstore-examples --example inference
//!
//! A plan is what is prepared once for a shape: which variants of the kernels suit it, loaded and
//! their addresses at hand. Here it is one block of a transformer with one head, on the plain CPU.
//! There are more shapes than places for plans, and more workers too, so that a worker sometimes
//! finds every place taken. Then it waits for room: `serving` has that, which is the same on every
//! device.

mod serving;

use grainstore::{DeviceId, Family, Pinned};
use grainstore_examples::kernels::{attention, matmul, rms_norm, saxpy};
use grainstore_examples::{Generator, Tolerance, compare};
use grainstore_host::{HostBackend, HostModule};
use grainstore_runtime::{
    Device, Kernel, KernelSpec, KernelSpecBuilder, Language, Plans, Runtime, SpecError,
};
use serving::Failure;

/// The width of the model.
const DIM: usize = 64;
/// The lengths that requests have.
const LENGTHS: [usize; 8] = [1, 5, 16, 23, 33, 48, 64, 80];
/// Plans at once.
const PLANS: usize = 3;
const WORKERS: usize = 5;
/// Of each worker.
const REQUESTS: usize = 40;

fn main() -> Result<(), Failure> {
    let runtime = Runtime::builder().backend(HostBackend::new()).build()?;
    let device = runtime.device(&DeviceId::new(Family::HOST, 0))?;
    let model = Model::new();
    let server = Server {
        // A plan whose result might still be written by the device would not be idle; a call on the
        // host has ended when it returns.
        plans: runtime.plans(PLANS, |_: &Plan| true)?,
        specs: Specs::new()?,
        requests: LENGTHS.map(|length| Request::new(&model, length)),
        model,
        runtime,
        device,
    };

    serving::workers(WORKERS, |seed| server.work(seed))?;
    server.show_figures()?;
    server.show_pins()?;
    Ok(server.runtime.shutdown()?)
}

struct Server {
    plans: Plans<Plan>,
    specs: Specs,
    model: Model,
    requests: [Request; LENGTHS.len()],
    runtime: Runtime,
    device: Device,
}

impl Server {
    fn work(&self, seed: usize) -> Result<(), Failure> {
        let mut random = Generator::new(seed as u64);
        for _ in 0..REQUESTS {
            let request = &self.requests[random.below(self.requests.len())];
            self.plan(request.length)?.check(&self.model, request)?;
            let figures = self.plans.statistics();
            if figures.entries + figures.retired > PLANS as u64 {
                return Err(format!("the cache is over its bound: {figures:?}").into());
            }
        }
        Ok(())
    }

    /// The plan for this length, pinned as long as it is used.
    fn plan(&self, length: usize) -> Result<Pinned<Plan>, Failure> {
        let (model, what) =
            ("a block of random weights, seed 0", "transformer block, one head, causal");
        let shape = [length as u64, DIM as u64];
        let key = serving::key(&self.runtime, &self.device, model, what, &shape)?;
        serving::plan(&self.plans, &self.device, &key, || Plan::new(self, length))
    }

    fn show_figures(&self) -> Result<(), Failure> {
        let figures = self.plans.statistics();
        println!("{} requests of {} shapes", WORKERS * REQUESTS, LENGTHS.len());
        println!("plans    {:4} in memory, of at most {PLANS}", figures.entries);
        println!("         {:4} found", figures.hits);
        println!("         {:4} built", figures.built);
        println!("         {:4} evicted", figures.evictions);
        println!("         {:4} times none was free, and the worker waited", figures.refused);
        let kernels = self.runtime.backend_of(&self.device)?.statistics();
        println!("kernels  {:4} compiled", kernels.built);
        println!("         {:4} found", kernels.hits);
        Ok(())
    }

    /// While a plan is pinned, so are its kernels, even when everything is cleared.
    fn show_pins(&self) -> Result<(), Failure> {
        let request = &self.requests[0];
        let plan = self.plan(request.length)?;
        let drains = self.runtime.clear()?;
        let (released, pinned) = (drains.released(), drains.pending());
        println!("cleared: {released} kernels released, {pinned} pinned by a plan in use");
        if pinned == 0 {
            return Err("a plan does not pin its kernels".into());
        }
        plan.check(&self.model, request)?;
        drop(plan);
        if drains.pending() != 0 {
            return Err(format!("nobody uses {:?}", drains.pending_keys()).into());
        }
        println!("the plan is dropped: {} kernels released", drains.released());
        Ok(drains.wait()?)
    }
}

/// The kernels, made once: a spec keeps its key.
struct Specs {
    rms_norm: KernelSpec,
    /// By the width of the tile: few rows are better served by a small one.
    matmul_narrow: KernelSpec,
    matmul_wide: KernelSpec,
    attention: KernelSpec,
    saxpy: KernelSpec,
}

impl Specs {
    fn new() -> Result<Self, SpecError> {
        let start = |name: &str, source: &str| -> KernelSpecBuilder {
            KernelSpec::builder(name, Language::C)
                .source(source)
                .header("common.h", include_str!("../kernels/common.h"))
                .entry(name)
                .option("-O3")
        };
        let matmul = |tile: &str| {
            start("matmul", include_str!("../kernels/matmul.c"))
                .define("TILE", tile)
                .define("WORK", "4")
                .build()
        };
        Ok(Self {
            rms_norm: start("rms_norm", include_str!("../kernels/rms_norm.c")).build()?,
            matmul_narrow: matmul("8")?,
            matmul_wide: matmul("16")?,
            attention: start("attention", include_str!("../kernels/attention.c"))
                .define("HEAD_DIM", DIM.to_string())
                .define("CAUSAL", "1")
                .build()?,
            saxpy: start("saxpy", include_str!("../kernels/saxpy.c")).build()?,
        })
    }
}

/// A function of a kernel, at hand. The kernel is pinned, so the address stays good.
struct Function<F> {
    call: F,
    _kernel: Kernel,
}

impl<F: Copy> Function<F> {
    /// # Safety
    /// `F` is the signature that the entry point of this kernel has in C.
    unsafe fn new(server: &Server, spec: &KernelSpec) -> Result<Self, Failure> {
        let kernel = server.runtime.kernel(&server.device, spec)?;
        let module = kernel.module::<HostModule>().ok_or("the host backend loads host modules")?;
        // SAFETY: The caller knows the signature.
        let call = unsafe { *module.get::<F>(spec.entry().unwrap_or_default())? };
        Ok(Self { call, _kernel: kernel })
    }
}

/// What is prepared for one length.
struct Plan {
    length: usize,
    rms_norm: Function<rms_norm::Function<f32>>,
    matmul: Function<matmul::Function<f32>>,
    attention: Function<attention::Function<f32>>,
    saxpy: Function<saxpy::Function<f32>>,
}

impl Plan {
    fn new(server: &Server, length: usize) -> Result<Self, Failure> {
        let specs = &server.specs;
        let matmul = if length < 16 { &specs.matmul_narrow } else { &specs.matmul_wide };
        // SAFETY: The signatures are those of the sources in `kernels/`.
        unsafe {
            Ok(Self {
                length,
                rms_norm: Function::new(server, &specs.rms_norm)?,
                matmul: Function::new(server, matmul)?,
                attention: Function::new(server, &specs.attention)?,
                saxpy: Function::new(server, &specs.saxpy)?,
            })
        }
    }

    /// `x + attention(norm(x) Wq, norm(x) Wk, norm(x) Wv) Wo`.
    fn run(&self, model: &Model, x: &[f32]) -> Vec<f32> {
        let rows = self.length;
        assert_eq!(x.len(), rows * DIM, "the plan is for {rows} tokens");
        let room = || vec![0.0_f32; rows * DIM];
        let times = |a: &[f32], weights: &[f32]| {
            let mut product = room();
            // SAFETY: a and the product are rows x DIM, every weight matrix is DIM x DIM.
            unsafe {
                let (a, weights) = (a.as_ptr(), weights.as_ptr());
                (self.matmul.call)(rows, DIM, DIM, a, weights, product.as_mut_ptr());
            }
            product
        };
        let mut normed = room();
        // SAFETY: x and its norm are rows x DIM, the weights DIM.
        unsafe {
            let (x, weights) = (x.as_ptr(), model.norm.as_ptr());
            let epsilon = rms_norm::EPSILON as f32;
            (self.rms_norm.call)(rows, DIM, epsilon, x, weights, normed.as_mut_ptr());
        }
        let [q, k, v] = [&model.q, &model.k, &model.v].map(|weights| times(&normed, weights));
        let mut seen = room();
        // SAFETY: All four are rows x DIM, which is the kernel's HEAD_DIM.
        unsafe {
            let (q, k, v) = (q.as_ptr(), k.as_ptr(), v.as_ptr());
            (self.attention.call)(rows, rows, Model::scale(), q, k, v, seen.as_mut_ptr());
        }
        let mut y = times(&seen, &model.o);
        // SAFETY: x and y are equally long.
        unsafe { (self.saxpy.call)(y.len(), 1.0, x.as_ptr(), y.as_mut_ptr()) };
        y
    }

    fn check(&self, model: &Model, request: &Request) -> Result<(), Failure> {
        // Values below ten, three products of 64 terms in a row: some hundred units of the last
        // place.
        let tolerance = Tolerance::absolute(1e-4);
        compare(&self.run(model, &request.tokens), &request.answer, tolerance)?;
        Ok(())
    }
}

/// What is asked, and what plain Rust answers.
struct Request {
    length: usize,
    tokens: Vec<f32>,
    answer: Vec<f64>,
}

impl Request {
    fn new(model: &Model, length: usize) -> Self {
        let tokens = Generator::new(length as u64).elements(length * DIM);
        Self { length, answer: model.reference(&tokens), tokens }
    }
}

/// The weights.
struct Model {
    norm: Vec<f32>,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    o: Vec<f32>,
}

impl Model {
    fn new() -> Self {
        let mut random = Generator::new(0);
        let mut matrix = || {
            let mut matrix = random.elements::<f32>(DIM * DIM);
            matrix.iter_mut().for_each(|weight| *weight /= (DIM as f32).sqrt());
            matrix
        };
        Self { q: matrix(), k: matrix(), v: matrix(), o: matrix(), norm: random.elements(DIM) }
    }

    fn scale() -> f32 {
        1.0 / (DIM as f32).sqrt()
    }

    /// What a plan computes, in plain Rust.
    fn reference(&self, x: &[f32]) -> Vec<f64> {
        let wide = |elements: &[f32]| -> Vec<f64> { elements.iter().map(|&e| e.into()).collect() };
        let times = |a: &[f64], weights: &[f32]| matmul::reference(DIM, DIM, a, &wide(weights));
        let x = wide(x);
        let norm = wide(&self.norm);
        let normed: Vec<f64> =
            x.chunks_exact(DIM).flat_map(|row| rms_norm::reference(row, &norm, 0.0)).collect();
        let [q, k, v] = [&self.q, &self.k, &self.v].map(|weights| times(&normed, weights));
        let seen: Vec<f64> = q
            .chunks_exact(DIM)
            .enumerate()
            .flat_map(|(row, query)| {
                let visible = (row + 1) * DIM;
                attention::reference(query, Self::scale().into(), &k[..visible], &v[..visible])
            })
            .collect();
        times(&seen, &self.o).iter().zip(&x).map(|(y, x)| y + x).collect()
    }
}
