//! Work that blocks, away from a caller's executor.
//!
//! Compilers and drivers block, and a task must not. So what a task needs of them runs on a thread
//! of its own, or wherever the user sends it, and brings its outcome back.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread;

use crate::RuntimeError;

/// What is to be run.
type Job = Box<dyn FnOnce() + Send>;

/// What work came to; a panic is carried to whoever asked for it.
pub(crate) type Done<T> = thread::Result<Result<T, RuntimeError>>;

/// A future that goes its own way.
pub(crate) type Task<T> = Pin<Box<dyn Future<Output = Result<T, RuntimeError>> + Send>>;

/// Where blocking work goes. Without a choice, each piece gets a thread.
#[derive(Clone, Default)]
pub(crate) struct Blocking(Option<Arc<dyn Fn(Job) + Send + Sync>>);

impl Blocking {
    pub(crate) fn to(send: impl Fn(Job) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(send)))
    }

    /// Sends this work off. Its outcome is delivered in any case, and once: also when whoever has
    /// the work drops it instead of running it, and possibly before this returns.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, RuntimeError> + Send + 'static,
        deliver: impl FnOnce(Done<T>) + Send + 'static,
    ) {
        let errand = Errand(Some(Box::new(deliver)));
        let job = Box::new(move || errand.deliver(catch_unwind(AssertUnwindSafe(work))));
        match &self.0 {
            Some(send) => send(job),
            // Where no thread can be had, the job is dropped, and says so itself.
            None => drop(thread::Builder::new().name("grainstore-job".into()).spawn(job)),
        }
    }

    /// The outcome of this work, which is sent off at the first poll. Who drops the future after that
    /// does not stop the work.
    pub(crate) fn offload<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, RuntimeError> + Send + 'static,
    ) -> Task<T> {
        let promise = Arc::new(Mutex::new(Promise { done: None, waker: None }));
        let (blocking, mut work) = (self.clone(), Some(work));
        Box::pin(poll_fn(move |context| {
            // The executor's code, as is the drop of the one before it: both under no lock.
            let waker = context.waker().clone();
            let before = lock(&promise).waker.replace(waker);
            drop(before);
            if let Some(work) = work.take() {
                let kept = Arc::clone(&promise);
                blocking.run(work, move |done| keep(&kept, done));
            }
            let done = lock(&promise).done.take();
            done.map_or(Poll::Pending, |done| Poll::Ready(open(done)))
        }))
    }
}

struct Promise<T> {
    done: Option<Done<T>>,
    waker: Option<Waker>,
}

fn keep<T>(promise: &Mutex<Promise<T>>, done: Done<T>) {
    let waker = {
        let mut promise = lock(promise);
        promise.done = Some(done);
        promise.waker.take()
    };
    waker.into_iter().for_each(Waker::wake);
}

/// The outcome of work on behalf of the one who asked for it: its panic goes on here.
pub(crate) fn open<T>(done: Done<T>) -> Result<T, RuntimeError> {
    done.unwrap_or_else(|panic| resume_unwind(panic))
}

/// What has to be told what the work came to.
struct Errand<T>(Option<Deliver<T>>);

type Deliver<T> = Box<dyn FnOnce(Done<T>) + Send>;

impl<T> Errand<T> {
    fn deliver(mut self, done: Done<T>) {
        if let Some(deliver) = self.0.take() {
            deliver(done);
        }
    }
}

impl<T> Drop for Errand<T> {
    fn drop(&mut self) {
        if let Some(deliver) = self.0.take() {
            deliver(Ok(Err(RuntimeError::NotRun)));
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
