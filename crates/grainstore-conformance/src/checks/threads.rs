//! Many who ask at once.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use grainstore::Pinned;

use crate::Subject;
use crate::gate::BOUND;
use crate::stage::{Stage, launch};
use crate::trouble::{Check, Trouble, ensure};

pub(super) fn one_build<S: Subject>(subject: &S) -> Check {
    const THREADS: usize = 8;
    let stage = Stage::new(subject)?;
    let spec = subject.kernel(11);
    stage.key(&spec)?;
    let gate = stage.backend.hold_builds();
    let kernels = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let kernel = stage.kernel(&spec)?;
                    launch(subject, &*kernel, 11)?;
                    Ok::<_, Trouble>(kernel)
                })
            })
            .collect();
        // The build goes on when all the others wait for it.
        let began = Instant::now();
        while (stage.cache.statistics().waits as usize) < THREADS - 1 && began.elapsed() < BOUND {
            thread::yield_now();
        }
        gate.open();
        threads.into_iter().map(joined).collect::<Check<Vec<_>>>()
    })?;
    ensure!(
        stage.backend.builds() == 1,
        "{THREADS} threads made {} builds",
        stage.backend.builds()
    );
    ensure!(
        kernels.iter().all(|kernel| Pinned::ptr_eq(kernel, &kernels[0])),
        "{THREADS} threads have different modules of one kernel"
    );
    drop(kernels);
    stage.finish()
}

pub(super) fn many_kernels<S: Subject>(subject: &S) -> Check {
    const KERNELS: u32 = 12;
    const THREADS: u32 = 4;
    let stage = Stage::new(subject)?;
    let specs: Vec<_> = (0..KERNELS).map(|add| (add, subject.kernel(add))).collect();
    for (_, spec) in &specs {
        stage.key(spec)?;
    }
    let start = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (specs, start, stage) = (&specs, &start, &stage);
                scope.spawn(move || {
                    start.wait();
                    // Each thread begins elsewhere, so that they build side by side.
                    let first = (thread * KERNELS / THREADS) as usize;
                    for (add, spec) in specs.iter().cycle().skip(first).take(specs.len()) {
                        stage.check(spec, *add)?;
                    }
                    Ok::<_, Trouble>(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(joined)
    })?;
    ensure!(
        stage.backend.builds() == KERNELS as usize,
        "{KERNELS} kernels took {} builds",
        stage.backend.builds()
    );
    stage.finish()
}

/// What the thread came to; its panic is a failure.
pub(super) fn joined<T>(thread: thread::ScopedJoinHandle<'_, Check<T>>) -> Check<T> {
    thread.join().unwrap_or_else(|_| Err(Trouble::failed("a thread panicked")))
}
