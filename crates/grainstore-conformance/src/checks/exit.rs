//! The end of a process, in whatever order its parts go: it ends, and with status 0.

use std::any::Any;
use std::cell::RefCell;
use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use grainstore_runtime::RuntimeError;

use crate::gate::BOUND;
use crate::stage::{Stage, launch};
use crate::trouble::{Check, Trouble, ensure};
use crate::{Subject, again};

pub(super) const PINNED: &str = "exit with modules that are pinned";
pub(super) const THREAD_LOCAL: &str = "exit with modules that go at the very end";
pub(super) const SHUT_DOWN: &str = "exit after a shutdown";
pub(super) const ASKING: &str = "exit after a shutdown that others have not noticed";
pub(super) const ORDERS: &str = "drop cache, backend and kernels in each order";

pub(super) fn while_pinned<S: Subject>(_: &S) -> Check {
    apart(&[PINNED, THREAD_LOCAL])
}

pub(super) fn after_shutdown<S: Subject>(_: &S) -> Check {
    apart(&[SHUT_DOWN, ASKING])
}

pub(super) fn in_any_order<S: Subject>(_: &S) -> Check {
    apart(&[ORDERS])
}

fn apart(tasks: &[&str]) -> Check {
    for task in tasks {
        let folder = tempfile::tempdir()?;
        again::run(task, folder.path()).map_err(|trouble| trouble.at(task))?;
    }
    Ok(())
}

/// What is still there when the process ends.
static KEPT: Mutex<Vec<Box<dyn Any + Send>>> = Mutex::new(Vec::new());

thread_local! {
    /// What goes with its thread.
    static LOCAL: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

fn keep(thing: impl Any + Send) {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(thing));
}

fn keep_locally(thing: impl Any) {
    LOCAL.with_borrow_mut(|kept| kept.push(Box::new(thing)));
}

pub(super) fn pinned_task<S: Subject>(subject: &S, _: &Path) -> Check {
    let stage = Stage::new(subject)?;
    let kernel = stage.kernel(&subject.kernel(27))?;
    launch(subject, &*kernel, 27)?;
    // A thread that nobody waits for has one too.
    let (has_it, it_has) = mpsc::channel();
    let threads = kernel.clone();
    thread::spawn(move || {
        let _ = has_it.send(());
        loop {
            thread::park();
            std::hint::black_box(&threads);
        }
    });
    let _ = it_has.recv();
    keep(kernel);
    keep(stage.cache);
    keep(stage.backend);
    Ok(())
}

pub(super) fn thread_local_task<S: Subject>(subject: &S, _: &Path) -> Check {
    let stage = Stage::new(subject)?;
    let kernel = stage.kernel(&subject.kernel(28))?;
    launch(subject, &*kernel, 28)?;
    // In another thread, which ends before the process does, and in this one, which ends with it.
    let (cache, threads) = (stage.cache.clone(), kernel.clone());
    thread::spawn(move || keep_locally((threads, cache)))
        .join()
        .map_err(|_| Trouble::failed("a thread that ends with a pin panicked"))?;
    keep_locally((kernel, stage.cache, stage.backend));
    Ok(())
}

pub(super) fn shut_down_task<S: Subject>(subject: &S, _: &Path) -> Check {
    let stage = Stage::new(subject)?;
    let (held, free) = (stage.kernel(&subject.kernel(29))?, stage.kernel(&subject.kernel(30))?);
    launch(subject, &*held, 29)?;
    drop(free);
    let ended = stage.cache.shutdown_within(Duration::ZERO);
    ensure!(
        matches!(ended, Err(RuntimeError::ShutdownIncomplete { .. })),
        "a shutdown with a pinned kernel gave {ended:?}"
    );
    keep_locally(held.clone());
    keep(held);
    keep_locally(stage.cache);
    Ok(())
}

pub(super) fn asking_task<S: Subject>(subject: &S, _: &Path) -> Check {
    const THREADS: usize = 4;
    let stage = Stage::new(subject)?;
    let spec = subject.kernel(31);
    stage.check(&spec, 31)?;
    let (heard, hear) = mpsc::channel();
    for _ in 0..THREADS {
        let (cache, device, spec) = (stage.cache.clone(), stage.device.clone(), spec.clone());
        let heard = heard.clone();
        thread::spawn(move || {
            loop {
                if let Err(error) = cache.kernel(&device, &spec) {
                    let _ = heard.send(matches!(error, RuntimeError::ShutDown));
                    break;
                }
            }
            // They never learn.
            while cache.kernel(&device, &spec).is_err() {
                thread::yield_now();
            }
        });
    }
    stage.cache.shutdown()?;
    for _ in 0..THREADS {
        let told = hear.recv_timeout(BOUND).unwrap_or_default();
        ensure!(told, "a thread that asks after a shutdown was not told of it");
    }
    Ok(())
}

pub(super) fn orders_task<S: Subject>(subject: &S, folder: &Path) -> Check {
    let spec = subject.kernel(32);
    for order in ["kernel, cache, backend", "cache, kernel, backend", "cache, backend, kernel"] {
        again::step(folder, &format!("dropping in this order: {order}"));
        let Stage { backend, cache, device, store, .. } = Stage::new(subject)?;
        let mut kernel = Some(cache.kernel(&device, &spec)?);
        let (mut cache, mut backend) = (Some(cache), Some(backend));
        drop((device, store));
        for part in order.split(", ") {
            match part {
                "cache" => drop(cache.take()),
                "backend" => drop(backend.take()),
                _ => drop(kernel.take()),
            }
            if let Some(kernel) = &kernel {
                launch(subject, &**kernel, 32).map_err(|trouble| trouble.at(order))?;
            }
        }
    }
    Ok(())
}
