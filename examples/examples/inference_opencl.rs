//! Two levels on a GPU: plans by shape over kernels, and work that is not done when a call returns.
//!
//!     cargo run --package grainstore-examples --example inference_opencl
//!
//! A plan is what is prepared once for a number of rows: the variants of the kernels that suit it, a
//! queue, and memory for what is between the kernels. Launching one only puts work into its queue. The
//! plan then says that it is not idle until the device is done, so neither it nor its kernels are
//! released under that work: not for another plan's sake, and not when everything is cleared.
//!
//! `inference` is a larger model with plans of the same kind, on the plain CPU. What they have in
//! common, the requests that wait for a plan among it, is in `serving`.

mod serving;

use std::sync::{Mutex, PoisonError};

use grainstore::{DeviceId, Family, Pinned};
use grainstore_artifacts::ArtifactStore;
use grainstore_examples::kernels::{matmul, rms_norm};
use grainstore_examples::{Generator, Tolerance, absent, compare};
use grainstore_opencl::{OpenClBackend, OpenClModule};
use grainstore_runtime::{Device, Kernel, KernelSpec, Language, Plans, Runtime, SpecError};
use opencl3::command_queue::{CommandQueue, create_command_queue};
use opencl3::error_codes::ClError;
use opencl3::event::{CL_COMPLETE, Event, create_user_event, retain_event, set_user_event_status};
use opencl3::kernel::ExecuteKernel;
use opencl3::memory::{Buffer, CL_MEM_COPY_HOST_PTR, CL_MEM_READ_WRITE, create_buffer};
use opencl3::types::{CL_FALSE, cl_uint};
use serving::Failure;

/// The width of the model.
const DIM: usize = 64;
/// The numbers of rows that requests have.
const ROWS: [usize; 6] = [1, 7, 16, 30, 48, 64];
/// Plans at once.
const PLANS: usize = 3;
const WORKERS: usize = 4;
/// Of each worker.
const REQUESTS: usize = 25;
/// Items of a work-group, the columns of a tile, and the rows of it that an item takes.
const BLOCK: usize = 64;
const WORK: usize = 4;

fn main() -> Result<(), Failure> {
    let runtime = Runtime::builder()
        .backend(OpenClBackend::new())
        .store(ArtifactStore::open_default()?)
        .build()?;
    let device = match runtime.device(&DeviceId::new(Family::OPENCL, 0)) {
        Ok(device) => device,
        // No driver: say so. The project's tests make that a failure where there should be one.
        Err(why) => return Ok(absent("opencl", why)?),
    };
    println!("{device}");
    let mut random = Generator::new(0);
    let server = Server {
        plans: runtime.plans(PLANS, Plan::is_idle)?,
        specs: Specs::new()?,
        norm: random.elements(DIM),
        weights: random.elements(DIM * DIM),
        runtime,
        device,
    };
    serving::workers(WORKERS, |seed| server.serve(seed as u64))?;
    server.show_figures()?;
    server.show_unfinished_work()?;
    Ok(server.runtime.shutdown()?)
}

struct Server {
    plans: Plans<Plan>,
    specs: Specs,
    norm: Vec<f32>,
    weights: Vec<f32>,
    runtime: Runtime,
    device: Device,
}

impl Server {
    fn serve(&self, seed: u64) -> Result<(), Failure> {
        let mut random = Generator::new(seed + 1);
        for _ in 0..REQUESTS {
            let rows = ROWS[random.below(ROWS.len())];
            self.request(rows, &mut random)?.finish(self)?;
        }
        Ok(())
    }

    /// Begins a request. The plan is pinned only until its work is in the queue.
    fn request(&self, rows: usize, random: &mut Generator) -> Result<Pending, Failure> {
        self.plan(rows)?.launch(random.elements(rows * DIM), None)
    }

    /// The plan for so many rows.
    fn plan(&self, rows: usize) -> Result<Pinned<Plan>, Failure> {
        let (model, what) = ("a layer of random weights, seed 0", "norm and projection");
        let shape = [rows as u64, DIM as u64];
        let key = serving::key(&self.runtime, &self.device, model, what, &shape)?;
        serving::plan(&self.plans, &self.device, &key, || Plan::new(self, rows))
    }

    /// What `request` should come to, in plain Rust.
    fn reference(&self, x: &[f32]) -> Vec<f64> {
        let wide = |elements: &[f32]| -> Vec<f64> { elements.iter().map(|&e| e.into()).collect() };
        let norm = wide(&self.norm);
        let normed: Vec<f64> = wide(x)
            .chunks_exact(DIM)
            .flat_map(|row| rms_norm::reference(row, &norm, 0.0))
            .collect();
        matmul::reference(DIM, DIM, &normed, &wide(&self.weights))
    }

    fn show_figures(&self) -> Result<(), Failure> {
        let figures = self.plans.statistics();
        println!("{} requests of {} shapes, all right", WORKERS * REQUESTS, ROWS.len());
        println!("plans    {:4} found", figures.hits);
        println!("         {:4} built", figures.built);
        println!("         {:4} evicted, each when its work was done", figures.evictions);
        println!("         {:4} times all were at work, and a request waited", figures.refused);
        let kernels = self.runtime.backend_of(&self.device)?.statistics();
        println!("kernels  {:4} loaded", kernels.built);
        if figures.entries + figures.retired > PLANS as u64 {
            return Err(format!("the cache is over its bound: {figures:?}").into());
        }
        Ok(())
    }

    /// Everything is cleared while a plan's work waits in the device's queue.
    fn show_unfinished_work(&self) -> Result<(), Failure> {
        let plan = self.plan(ROWS[0])?;
        // Stands for a device that has much to do: the work waits for this.
        let gate = plan.gate()?;
        let pending = plan.launch(Generator::new(9).elements(ROWS[0] * DIM), Some(&gate))?;
        // Nobody holds a pin any more; the work alone keeps the plan, and the plan its kernels.
        drop(plan);
        let drains = self.runtime.clear()?;
        let held = drains.pending();
        println!("cleared: {} kernels released, {held} used by work in a queue", drains.released());
        if held == 0 {
            return Err("a kernel was released under the work that uses it".into());
        }
        set_user_event_status(gate.get(), CL_COMPLETE).map_err(ClError)?;
        pending.finish(self)?;
        println!("the work is done: {} kernels released", drains.released());
        Ok(drains.wait()?)
    }
}

/// The kernels, made once: a spec keeps its key.
struct Specs {
    rms_norm: KernelSpec,
    /// By the width of the tile: few rows are better served by a small one.
    matmul_narrow: KernelSpec,
    matmul_wide: KernelSpec,
}

impl Specs {
    fn new() -> Result<Self, SpecError> {
        let start = |name: &str, source: &str| {
            KernelSpec::builder(name, Language::OpenClC)
                .source(source)
                .header("common.h", include_str!("../kernels/common.h"))
                .entry(name)
        };
        let matmul = |tile: usize| {
            start("matmul", include_str!("../kernels/matmul.cl"))
                .define("TILE", tile.to_string())
                .define("WORK", WORK.to_string())
                .build()
        };
        Ok(Self {
            rms_norm: start("rms_norm", include_str!("../kernels/rms_norm.cl"))
                .define("BLOCK", BLOCK.to_string())
                .build()?,
            matmul_narrow: matmul(8)?,
            matmul_wide: matmul(16)?,
        })
    }
}

/// What is prepared for one number of rows.
struct Plan {
    rows: usize,
    tile: usize,
    rms_norm: Kernel,
    matmul: Kernel,
    norm: Buffer<f32>,
    weights: Buffer<f32>,
    /// What is between the two kernels. One request at a time puts its launches into the queue, and
    /// the queue keeps the order, so each finds its own here.
    between: Buffer<f32>,
    queue: CommandQueue,
    /// The last command in the queue.
    last: Mutex<Option<Event>>,
}

/// A request whose result the device has yet to make. What it holds is its own, not the plan's.
struct Pending {
    x: Vec<f32>,
    /// The device writes here until it is done.
    y: Vec<f32>,
    done: Event,
}

fn module(kernel: &Kernel) -> Result<&OpenClModule, Failure> {
    Ok(kernel.module::<OpenClModule>().ok_or("OpenCL loads OpenCL modules")?)
}

impl Plan {
    fn new(server: &Server, rows: usize) -> Result<Self, Failure> {
        let (runtime, device, specs) = (&server.runtime, &server.device, &server.specs);
        let (tile, spec) =
            if rows < 16 { (8, &specs.matmul_narrow) } else { (16, &specs.matmul_wide) };
        let rms_norm = runtime.kernel(device, &specs.rms_norm)?;
        let matmul = runtime.kernel(device, spec)?;
        let module = module(&matmul)?;
        // SAFETY: The handles are alive while the module is, and the device is the context's.
        let queue = unsafe { create_command_queue(module.context(), module.device(), 0) };
        Ok(Self {
            rows,
            tile,
            norm: buffer(module, &server.norm)?,
            weights: buffer(module, &server.weights)?,
            between: buffer(module, &vec![0.0; rows * DIM])?,
            queue: CommandQueue::new(queue.map_err(ClError)?, 3),
            last: Mutex::new(None),
            rms_norm,
            matmul,
        })
    }

    /// Asked by the cache before it evicts or releases the plan.
    fn is_idle(&self) -> bool {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // A device that can't say is taken to be at work.
        last.as_ref().is_none_or(|event| {
            event.command_execution_status().is_ok_and(|status| status.0 == CL_COMPLETE)
        })
    }

    /// An event of this plan's context that completes when it is told to.
    fn gate(&self) -> Result<Event, Failure> {
        let event = create_user_event(module(&self.matmul)?.context());
        Ok(Event::new(event.map_err(ClError)?))
    }

    /// Puts the work into the queue, behind `gate` if there is one, and returns.
    fn launch(&self, x: Vec<f32>, gate: Option<&Event>) -> Result<Pending, Failure> {
        let matmul = module(&self.matmul)?;
        let mut y = vec![0.0_f32; x.len()];
        let (input, output) = (buffer(matmul, &x)?, buffer(matmul, &y)?);
        let norm =
            opencl3::kernel::Kernel::new(module(&self.rms_norm)?.kernel("rms_norm")?.into_raw());
        let product = opencl3::kernel::Kernel::new(matmul.kernel("matmul")?.into_raw());
        let (rows, dim) = (self.rows as cl_uint, DIM as cl_uint);
        let tiles = |length: usize| length.div_ceil(self.tile);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: These are the arguments and local sizes of the sources in `kernels/`; all
        // matrices are rows x DIM or DIM x DIM. The driver keeps kernels and buffers until it is
        // done, and `Pending` keeps `y`.
        let done = unsafe {
            let mut norm = ExecuteKernel::new(&norm);
            norm.set_arg(&dim)
                .set_arg(&(rms_norm::EPSILON as f32))
                .set_arg(&input)
                .set_arg(&self.norm)
                .set_arg(&self.between)
                .set_global_work_size(self.rows * BLOCK)
                .set_local_work_size(BLOCK);
            if let Some(gate) = gate {
                norm.set_wait_event(gate);
            }
            norm.enqueue_nd_range(&self.queue)?;
            ExecuteKernel::new(&product)
                .set_arg(&rows)
                .set_arg(&dim)
                .set_arg(&dim)
                .set_arg(&self.between)
                .set_arg(&self.weights)
                .set_arg(&output)
                .set_global_work_sizes(&[
                    tiles(DIM) * self.tile,
                    tiles(self.rows) * self.tile / WORK,
                ])
                .set_local_work_sizes(&[self.tile, self.tile / WORK])
                .enqueue_nd_range(&self.queue)?;
            self.queue.enqueue_read_buffer(&output, CL_FALSE, 0, &mut y, &[])?
        };
        let pending = Pending { x, y, done };
        self.queue.flush()?;
        // SAFETY: The event is alive, and the plan gets a reference of its own.
        unsafe { retain_event(pending.done.get()) }.map_err(ClError)?;
        *last = Some(Event::new(pending.done.get()));
        Ok(pending)
    }
}

impl Pending {
    /// Waits for the device and checks what it made.
    fn finish(self, server: &Server) -> Result<(), Failure> {
        self.done.wait()?;
        // Nothing else would tell the cache that a plan is idle now: requests that wait for room ask
        // again at once, and what was cleared meanwhile is released.
        server.plans.poke();
        server.plans.reap();
        compare(&self.y, &server.reference(&self.x), Tolerance::absolute(1e-4))?;
        Ok(())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // The device must not write into memory that is somebody else's by then.
        let _ = self.done.wait();
    }
}

/// A buffer with these elements, in the module's context.
fn buffer(module: &OpenClModule, elements: &[f32]) -> Result<Buffer<f32>, Failure> {
    let flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
    let source = elements.as_ptr().cast_mut().cast();
    // SAFETY: The context is alive while the module is; the driver copies the elements.
    let memory = unsafe { create_buffer(module.context(), flags, size_of_val(elements), source) };
    Ok(Buffer::new(memory.map_err(ClError)?))
}
