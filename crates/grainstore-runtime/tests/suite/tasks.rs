//! The async half: tasks and threads share builds, a build that has begun is brought to its end, and
//! nothing that blocks runs within a poll.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use grainstore_runtime::{
    BackendError, Device, Kernel, KernelSpec, Runtime, RuntimeBuilder, RuntimeError,
};

use crate::fake::executor::{Task, block_on, poll};
use crate::fake::store::FakeStore;
use crate::fake::{Call, Fake, lock, source, spec};

fn started(build: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder) -> (Fake, Runtime, Device) {
    let fake = Fake::new();
    let runtime = build(Runtime::builder().backend(fake.clone())).build().unwrap();
    let device = runtime.devices().remove(0);
    (fake, runtime, device)
}

type Answer = Result<Kernel, RuntimeError>;

fn task<'a>(runtime: &'a Runtime, device: &'a Device, spec: &'a KernelSpec) -> Task<'a, Answer> {
    Box::pin(runtime.kernel_async(device, spec))
}

/// Jobs wait here until a test runs them.
#[derive(Clone, Default)]
struct Queue(Arc<Mutex<Vec<Job>>>);

type Job = Box<dyn FnOnce() + Send>;

impl Queue {
    fn push(&self, job: Job) {
        lock(&self.0).push(job);
    }

    fn take(&self) -> Vec<Job> {
        std::mem::take(&mut *lock(&self.0))
    }

    /// Runs what is there, and what comes of it, and says how much that was.
    fn run(&self) -> usize {
        let mut count = 0;
        loop {
            let jobs = self.take();
            if jobs.is_empty() {
                return count;
            }
            count += jobs.len();
            jobs.into_iter().for_each(|job| job());
        }
    }
}

fn queued() -> (Queue, Fake, Runtime, Device) {
    let queue = Queue::default();
    let jobs = queue.clone();
    let (fake, runtime, device) = started(|builder| builder.blocking(move |job| jobs.push(job)));
    (queue, fake, runtime, device)
}

/// A waker whose last drop runs the jobs that wait, as an executor's may.
struct RunsJobs(Queue);

impl Wake for RunsJobs {
    fn wake(self: Arc<Self>) {}
}

impl Drop for RunsJobs {
    fn drop(&mut self) {
        self.0.run();
    }
}

#[test]
fn a_waker_that_is_dropped_may_run_the_very_job_that_is_waited_for() {
    for known in [false, true] {
        let (queue, fake, runtime, device) = queued();
        let saxpy = spec("saxpy");
        if known {
            runtime.key(&device, &saxpy).unwrap();
        }
        let mut asked = task(&runtime, &device, &saxpy);
        for _ in 0..4 {
            // The one of the poll before is dropped in this one.
            let waker = Waker::from(Arc::new(RunsJobs(queue.clone())));
            if let Poll::Ready(kernel) = asked.as_mut().poll(&mut Context::from_waker(&waker)) {
                kernel.unwrap();
                break;
            }
        }
        assert_eq!(fake.builds(), 1);
        drop(asked);
        assert!(block_on(runtime.kernel_async(&device, &saxpy)).is_ok());
    }
}

#[test]
fn a_task_gets_what_a_thread_gets() {
    let (fake, runtime, device) = started(|builder| builder);
    let saxpy = spec("saxpy");
    let kernel = block_on(runtime.kernel_async(&device, &saxpy)).unwrap();
    assert!(kernel.ptr_eq(&runtime.kernel(&device, &saxpy).unwrap()));
    assert!(kernel.ptr_eq(&block_on(runtime.kernel_async(&device, &saxpy)).unwrap()));
    assert_eq!(fake.builds(), 1);
    drop(kernel);
    block_on(runtime.shutdown_async(Duration::from_secs(30))).unwrap();
    fake.assert_clean();
}

#[test]
fn a_future_starts_when_it_is_polled_and_calls_no_backend_within_its_polls() {
    let (queue, fake, runtime, device) = queued();
    let saxpy = spec("saxpy");
    let before = fake.log();
    drop(runtime.kernel_async(&device, &saxpy));
    let mut asked = task(&runtime, &device, &saxpy);
    assert_eq!(queue.take().len(), 0);
    // The key first: who compiles is asked of the compiler. Then the build.
    for _ in 0..2 {
        assert!(poll(&mut asked).is_pending());
        assert_eq!((fake.builds(), fake.log()), (0, before.clone()));
        let [job] = queue.take().try_into().unwrap_or_else(|_| panic!("not one job"));
        job();
    }
    assert_eq!(fake.builds(), 1);
    assert!(matches!(poll(&mut asked), Poll::Ready(Ok(_))));
}

#[test]
fn without_a_choice_a_build_has_a_thread_of_its_own() {
    let (fake, runtime, device) = started(|builder| builder);
    let gate = fake.hold_builds();
    let saxpy = spec("saxpy");
    let mut asked = task(&runtime, &device, &saxpy);
    // The thread that reads the key and the one that builds come from polls that do not wait.
    while gate.waiting() == 0 {
        assert!(poll(&mut asked).is_pending());
        thread::yield_now();
    }
    assert_eq!(gate.threads(), ["grainstore-job"]);
    gate.open();
    block_on(asked).unwrap();
}

#[test]
fn tasks_and_threads_share_one_build() {
    let (fake, runtime, device) = started(|builder| builder);
    let gate = fake.hold_builds();
    let saxpy = spec("saxpy");
    runtime.key(&device, &saxpy).unwrap();
    let mut tasks: Vec<_> = (0..3).map(|_| task(&runtime, &device, &saxpy)).collect();
    assert!(tasks.iter_mut().all(|task| poll(task).is_pending()));
    gate.arrived(1);
    let kernels = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..3).map(|_| scope.spawn(|| runtime.kernel(&device, &saxpy).unwrap())).collect();
        while runtime.backends()[0].statistics().waits < 5 {
            thread::yield_now();
        }
        gate.open();
        let tasks = tasks.into_iter().map(|task| block_on(task).unwrap());
        let threads = threads.into_iter().map(|thread| thread.join().unwrap());
        tasks.chain(threads).collect::<Vec<_>>()
    });
    assert_eq!((fake.builds(), kernels.len()), (1, 6));
    assert!(kernels.iter().all(|kernel| kernel.ptr_eq(&kernels[0])));
}

#[test]
fn a_thread_of_the_executor_may_block_for_the_kernel_that_its_task_is_building() {
    let (fake, runtime, device) = started(|builder| builder);
    let saxpy = spec("saxpy");
    runtime.key(&device, &saxpy).unwrap();
    let mut asked = task(&runtime, &device, &saxpy);
    assert!(poll(&mut asked).is_pending());
    // The task is not polled again until this is over.
    let kernel = runtime.kernel(&device, &saxpy).unwrap();
    assert!(kernel.ptr_eq(&block_on(asked).unwrap()));
    assert_eq!(fake.builds(), 1);
}

#[test]
fn a_build_that_has_begun_outlives_its_future() {
    let (queue, fake, runtime, device) = queued();
    let saxpy = spec("saxpy");
    runtime.key(&device, &saxpy).unwrap();
    let mut leader = task(&runtime, &device, &saxpy);
    let mut waiter = task(&runtime, &device, &saxpy);
    assert!(poll(&mut leader).is_pending() && poll(&mut waiter).is_pending());
    drop(leader);
    assert_eq!(queue.run(), 1);
    let Poll::Ready(Ok(kernel)) = poll(&mut waiter) else { panic!("the waiter was not served") };
    assert!(kernel.ptr_eq(&runtime.kernel(&device, &saxpy).unwrap()));
    assert_eq!((fake.builds(), fake.modules()), (1, 1));

    // Nobody waits at all: what was built is kept for whoever comes.
    let other = spec("other");
    runtime.key(&device, &other).unwrap();
    let mut leader = task(&runtime, &device, &other);
    assert!(poll(&mut leader).is_pending());
    drop(leader);
    assert_eq!(runtime.backends()[0].statistics().building, 1);
    queue.run();
    assert!(matches!(poll(&mut task(&runtime, &device, &other)), Poll::Ready(Ok(_))));
    assert_eq!((fake.builds(), fake.modules()), (2, 2));
    drop(kernel);
    runtime.shutdown().unwrap();
    fake.assert_clean();
}

#[test]
fn a_waiter_that_goes_takes_nothing_with_it() {
    let (queue, fake, runtime, device) = queued();
    let saxpy = spec("saxpy");
    runtime.key(&device, &saxpy).unwrap();
    let (mut leader, mut waiter) =
        (task(&runtime, &device, &saxpy), task(&runtime, &device, &saxpy));
    assert!(poll(&mut leader).is_pending() && poll(&mut waiter).is_pending());
    drop(waiter);
    queue.run();
    assert!(matches!(poll(&mut leader), Poll::Ready(Ok(_))));
    drop(leader);
    runtime.clear().unwrap().wait().unwrap();
    assert_eq!((fake.builds(), fake.modules()), (1, 0));
}

#[test]
fn a_place_is_taken_until_the_build_is_over_whoever_has_gone() {
    let queue = Queue::default();
    let jobs = queue.clone();
    let (_fake, runtime, device) =
        started(|builder| builder.capacity(1).blocking(move |job| jobs.push(job)));
    let (saxpy, other) = (spec("saxpy"), spec("other"));
    runtime.key(&device, &saxpy).unwrap();
    let mut leader = task(&runtime, &device, &saxpy);
    assert!(poll(&mut leader).is_pending());
    drop(leader);
    let busy = runtime.kernel(&device, &other).unwrap_err();
    assert!(matches!(busy, RuntimeError::Busy { building: 1, .. }), "{busy}");
    queue.run();
    runtime.kernel(&device, &other).unwrap();
}

#[test]
fn a_device_that_goes_dooms_a_tasks_build_and_nothing_is_leaked() {
    for watched in [true, false] {
        let (queue, fake, runtime, device) = queued();
        let saxpy = spec("saxpy");
        runtime.key(&device, &saxpy).unwrap();
        let mut asked = Some(task(&runtime, &device, &saxpy));
        assert!(poll(asked.as_mut().unwrap()).is_pending());
        let [job] = queue.take().try_into().unwrap_or_else(|_| panic!("not one job"));
        let gate = fake.hold_builds();
        thread::scope(|scope| {
            scope.spawn(job);
            gate.arrived(1);
            let held = runtime.destroy_device_within(&device, Duration::ZERO).unwrap_err();
            assert!(matches!(held, RuntimeError::DeviceHeld { .. }), "{held}");
            if !watched {
                asked = None;
            }
            gate.open();
        });
        if let Some(asked) = asked {
            let error = block_on(asked).unwrap_err();
            assert!(matches!(error, RuntimeError::DeviceDestroyed { .. }), "{error}");
        }
        block_on_jobs(&queue, runtime.destroy_device_async(&device)).unwrap();
        let error = block_on(runtime.kernel_async(&device, &saxpy)).unwrap_err();
        assert!(matches!(error, RuntimeError::DeviceDestroyed { .. }), "{error}");
        fake.assert_clean();
    }
}

/// Runs a future whose jobs go to this queue.
fn block_on_jobs<T: Send>(queue: &Queue, future: impl Future<Output = T> + Send) -> T {
    let mut future: Task<'_, T> = Box::pin(future);
    loop {
        match poll(&mut future) {
            Poll::Ready(output) => return output,
            Poll::Pending => assert_ne!(queue.run(), 0, "it waits for no job"),
        }
    }
}

#[test]
fn a_removal_dooms_a_tasks_build_and_the_next_one_is_good() {
    let (queue, fake, runtime, device) = queued();
    let saxpy = spec("saxpy");
    let removed = block_on_jobs(&queue, async {
        let mut asked = task(&runtime, &device, &saxpy);
        std::future::poll_fn(|context| {
            let polled = asked.as_mut().poll(context);
            // Once its build is under way, the kernel is removed.
            if runtime.backends()[0].statistics().building == 1 {
                drop(runtime.remove(&device, &saxpy).unwrap());
            }
            polled
        })
        .await
    });
    assert!(matches!(removed, Err(RuntimeError::Cache(grainstore::Error::Removed))));
    assert_eq!((fake.builds(), fake.modules()), (1, 0));
    block_on_jobs(&queue, runtime.kernel_async(&device, &saxpy)).unwrap();
    assert_eq!((fake.builds(), fake.modules()), (2, 1));
}

#[test]
fn failures_and_panics_arrive_as_they_do_for_threads() {
    let (_, runtime, device) = started(|builder| builder);
    let error = block_on(runtime.kernel_async(&device, &source("wrong", "error"))).unwrap_err();
    assert!(error.compile_log().is_some(), "{error}");
    let error = block_on(runtime.kernel_async(&device, &source("panics", "panic"))).unwrap_err();
    let RuntimeError::Cache(grainstore::Error::Panicked { message, .. }) = &error else {
        panic!("{error}")
    };
    assert!(message.contains("lost its head"), "{message}");

    let (fake, runtime, device) = started(|builder| builder);
    fake.fail(Call::Target, BackendError::missing("libfake.so.1", "install it"));
    let error = block_on(runtime.kernel_async(&device, &spec("saxpy"))).unwrap_err();
    assert!(matches!(error.backend_error(), Some(BackendError::Missing { .. })), "{error}");
    block_on(runtime.kernel_async(&device, &spec("saxpy"))).unwrap();
}

#[test]
fn another_runtimes_device_is_refused() {
    let (_, runtime, _) = started(|builder| builder);
    let (_, _other, device) = started(|builder| builder);
    let error = block_on(runtime.kernel_async(&device, &spec("saxpy"))).unwrap_err();
    assert!(matches!(error, RuntimeError::ForeignDevice { .. }), "{error}");
}

#[test]
fn an_executor_may_run_a_job_at_once() {
    let (fake, runtime, device) = started(|builder| builder.blocking(|job| job()));
    let saxpy = spec("saxpy");
    let mut asked = task(&runtime, &device, &saxpy);
    assert!(matches!(poll(&mut asked), Poll::Ready(Ok(_))));
    assert_eq!(fake.builds(), 1);
}

#[test]
fn an_executor_that_drops_jobs_or_panics_is_an_error_and_no_hang() {
    let refuse = Arc::new(AtomicUsize::new(0));
    let how = Arc::clone(&refuse);
    let (fake, runtime, device) = started(|builder| {
        builder.blocking(move |job| match how.load(Ordering::SeqCst) {
            0 => drop(job),
            1 => panic!("the executor lost its head"),
            _ => job(),
        })
    });
    let saxpy = spec("saxpy");
    let error = block_on(runtime.kernel_async(&device, &saxpy)).unwrap_err();
    assert!(matches!(error, RuntimeError::NotRun), "{error}");
    runtime.key(&device, &saxpy).unwrap();
    let error = block_on(runtime.kernel_async(&device, &saxpy)).unwrap_err();
    assert!(matches!(error, RuntimeError::NotRun), "{error}");
    refuse.store(1, Ordering::SeqCst);
    let error = block_on(runtime.kernel_async(&device, &saxpy)).unwrap_err();
    assert!(matches!(error, RuntimeError::Cache(grainstore::Error::Panicked { .. })), "{error}");
    refuse.store(2, Ordering::SeqCst);
    block_on(runtime.kernel_async(&device, &saxpy)).unwrap();
    assert_eq!(fake.builds(), 1);
}

#[test]
fn a_job_that_is_dropped_later_ends_the_build_for_all_who_wait() {
    let (queue, fake, runtime, device) = queued();
    let saxpy = spec("saxpy");
    runtime.key(&device, &saxpy).unwrap();
    let (mut leader, mut waiter) =
        (task(&runtime, &device, &saxpy), task(&runtime, &device, &saxpy));
    assert!(poll(&mut leader).is_pending() && poll(&mut waiter).is_pending());
    drop(leader);
    drop(queue.take());
    let Poll::Ready(Err(RuntimeError::NotRun)) = poll(&mut waiter) else { panic!("not told") };
    assert_eq!(runtime.backends()[0].statistics().building, 0);
    block_on_jobs(&queue, runtime.kernel_async(&device, &saxpy)).unwrap();
    assert_eq!(fake.builds(), 1);
}

#[test]
fn a_shutdown_waits_for_a_tasks_build_or_names_it() {
    let (fake, runtime, device) = started(|builder| builder);
    let gate = fake.hold_builds();
    let saxpy = spec("saxpy");
    runtime.key(&device, &saxpy).unwrap();
    let mut asked = task(&runtime, &device, &saxpy);
    assert!(poll(&mut asked).is_pending());
    gate.arrived(1);
    drop(asked);
    let Err(RuntimeError::ShutdownIncomplete { running, .. }) =
        runtime.shutdown_within(Duration::ZERO)
    else {
        panic!("the build is running")
    };
    assert!(running.iter().any(|what| what.contains("saxpy")), "{running:?}");
    gate.open();
    block_on(runtime.shutdown_async(Duration::from_secs(30))).unwrap();
    let error = block_on(runtime.kernel_async(&device, &saxpy)).unwrap_err();
    assert!(matches!(error, RuntimeError::ShutDown), "{error}");
}

#[test]
fn a_job_that_comes_after_the_shutdown_touches_nothing() {
    let (queue, fake, runtime, device) = queued();
    let saxpy = spec("saxpy");
    runtime.key(&device, &saxpy).unwrap();
    let mut asked = task(&runtime, &device, &saxpy);
    assert!(poll(&mut asked).is_pending());
    let _ = runtime.shutdown_within(Duration::ZERO);
    fake.seal();
    queue.run();
    let Poll::Ready(Err(error)) = poll(&mut asked) else { panic!("not told") };
    assert!(
        matches!(error, RuntimeError::ShutDown | RuntimeError::DeviceDestroyed { .. }),
        "{error}"
    );
    fake.assert_clean();
}

#[test]
fn a_tasks_kernel_goes_through_the_stores() {
    let store = FakeStore::new("disk");
    let (fake, runtime, device) = started(|builder| builder.store(store.clone()));
    let saxpy = spec("saxpy");
    block_on(runtime.kernel_async(&device, &saxpy)).unwrap();
    assert_eq!(store.len(), 1);
    block_on(runtime.clear().unwrap().wait_async()).unwrap();
    assert_eq!(fake.modules(), 0);
    block_on(runtime.kernel_async(&device, &saxpy)).unwrap();
    assert_eq!((fake.builds(), fake.loads()), (1, 1));
}

#[test]
fn an_id_makes_its_spec_once_for_tasks_and_threads() {
    let (fake, runtime, device) = started(|builder| builder);
    let made = AtomicUsize::new(0);
    let make = || {
        made.fetch_add(1, Ordering::SeqCst);
        spec("saxpy")
    };
    let kernel = block_on(runtime.kernel_by_async(&device, "id", make)).unwrap();
    assert!(kernel.ptr_eq(&block_on(runtime.kernel_by_async(&device, "id", make)).unwrap()));
    assert!(kernel.ptr_eq(&runtime.kernel_by(&device, "id", make).unwrap()));
    assert_eq!((made.load(Ordering::SeqCst), fake.builds()), (1, 1));

    let none = || Err::<KernelSpec, _>("no such kernel");
    let error = block_on(runtime.kernel_by_async(&device, "other", none)).unwrap_err();
    assert!(matches!(error, RuntimeError::Spec(_)), "{error}");
    drop(kernel);
    runtime.destroy_device(&device).unwrap();
    let error = block_on(runtime.kernel_by_async(&device, "id", make)).unwrap_err();
    assert!(matches!(error, RuntimeError::DeviceDestroyed { .. }), "{error}");
}

#[test]
fn many_tasks_on_many_threads_end_with_nothing_left() {
    let (fake, runtime, device) = started(|builder| builder.capacity(4));
    thread::scope(|scope| {
        for thread in 0..4 {
            let (runtime, device) = (&runtime, &device);
            scope.spawn(move || {
                for round in 0..200 {
                    let spec = spec(&format!("kernel {}", (round * 7 + thread) % 6));
                    let mut asked = task(runtime, device, &spec);
                    // Some are dropped where they are, some brought to their end.
                    let polled = poll(&mut asked);
                    if round % 3 == 0 {
                        continue;
                    }
                    let answer = match polled {
                        Poll::Ready(answer) => answer,
                        Poll::Pending => block_on(asked),
                    };
                    match answer {
                        Ok(kernel) => assert_eq!(kernel.device(), device.id()),
                        Err(RuntimeError::Busy { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    runtime.shutdown().unwrap();
    fake.assert_clean();
}
