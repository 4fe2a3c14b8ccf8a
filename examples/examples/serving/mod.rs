//! What every server has that keeps plans, whatever it computes and on whichever device: a key for a
//! shape, its plan, and requests that wait where all plans are in use.

use std::error::Error;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use grainstore::{ElementType, Pinned, PlanKey, TensorDesc};
use grainstore_runtime::{Device, Plans, Runtime};

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// Everything that a plan depends on: the model and what is computed of it, who compiles for which
/// device, and of a request only the shape.
pub(crate) fn key(
    runtime: &Runtime,
    device: &Device,
    model: &str,
    computation: &str,
    shape: &[u64],
) -> Result<PlanKey, Failure> {
    let backend = runtime.backend_of(device)?;
    let tokens = TensorDesc::contiguous(ElementType::F32, shape)?;
    let key = PlanKey::builder()
        .artifact(model)
        .target(backend.target(device)?.as_str())
        .compiler(backend.toolchain(device)?.as_str())
        .specialization(computation)
        .input(tokens.clone())
        .output(tokens)
        .build();
    Ok(key?)
}

/// The plan of this key, built where there is none, and pinned as long as it is used.
pub(crate) fn plan<P: Send + Sync>(
    plans: &Plans<P>,
    device: &Device,
    key: &PlanKey,
    build: impl Fn() -> Result<P, Failure>,
) -> Result<Pinned<P>, Failure> {
    loop {
        match plans.on(&device.id()).get_or_build(key, &build) {
            Ok(plan) => return Ok(plan),
            // All plans are in use. They never take more memory than so many; the request waits until
            // another is done with one. That is the backpressure.
            Err(grainstore::Error::Busy { .. }) => {
                if !plans.wait_for_room(Duration::from_secs(60)) {
                    return Err("no plan became free in a minute".into());
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Runs so many workers at once, each with its number, and gives the first failure.
pub(crate) fn workers(
    count: usize,
    work: impl Fn(usize) -> Result<(), Failure> + Sync,
) -> Result<(), Failure> {
    let start = Barrier::new(count);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..count)
            .map(|number| {
                let (start, work) = (&start, &work);
                scope.spawn(move || {
                    start.wait();
                    work(number)
                })
            })
            .collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or(Err("a worker panicked".into())))
    })
}
