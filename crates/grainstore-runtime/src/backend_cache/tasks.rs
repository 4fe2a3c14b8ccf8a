//! Kernels for tasks: a hit on the spot, a miss whose build blocks somebody else.

use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use grainstore::KernelKey;

use super::{BackendCache, Module};
use crate::blocking::{Done, Task, lock, open};
use crate::spec_keys::Known;
use crate::{Backend, Device, KernelSpec, Loaded, RuntimeError};

impl<B: Backend> BackendCache<B> {
    /// As [`kernel`](Self::kernel), for a task. A hit is all that the first poll does; it allocates
    /// nothing. A miss blocks a thread of its own, or the one that
    /// [`Settings::blocking`](crate::Settings::blocking) chooses, and callers of either kind share it.
    ///
    /// A build that has begun is brought to its end, also when this future is dropped: those who
    /// wait for it get its kernel, and so does whoever asks next. Nor does it need this future's
    /// executor for that: a thread of it may block for the same kernel.
    ///
    /// A backend that asks for a kernel from inside its build is out of the cache's sight there: a
    /// build that waits for itself that way is not told so, but waits.
    ///
    /// # Errors
    /// As there, and [`RuntimeError::NotRun`].
    pub fn kernel_async<'a>(
        &'a self,
        device: &'a Device,
        spec: &'a KernelSpec,
    ) -> impl Future<Output = Result<Module<B>, RuntimeError>> + Send + Unpin + 'a {
        let mut fetch = None;
        poll_fn(move |context| {
            if fetch.is_none()
                && let Some(kernel) = self.in_memory(device, spec)
            {
                return Poll::Ready(Ok(kernel));
            }
            fetch.get_or_insert_with(|| self.fetch(device, spec)).as_mut().poll(context)
        })
    }

    /// As [`destroy_device`](Self::destroy_device), for a task. Once it was polled it goes on, also
    /// when this future is dropped.
    ///
    /// # Errors
    /// As there, and [`RuntimeError::NotRun`].
    pub fn destroy_device_async(
        &self,
        device: &Device,
    ) -> impl Future<Output = Result<(), RuntimeError>> + Send + use<B> {
        let device = device.clone();
        self.offload(move |cache| cache.destroy_device(&device))
    }

    /// As [`shutdown_within`](Self::shutdown_within), for a task. Once it was polled it goes on, also
    /// when this future is dropped.
    ///
    /// # Errors
    /// As there, and [`RuntimeError::NotRun`].
    pub fn shutdown_async(
        &self,
        bound: Duration,
    ) -> impl Future<Output = Result<(), RuntimeError>> + Send + use<B> {
        self.offload(move |cache| cache.shutdown_within(bound))
    }

    /// What blocks, somewhere else. In a forked child it is refused before anything is asked of a
    /// thread that is not there.
    fn offload<T: Send + 'static>(
        &self,
        work: impl FnOnce(Self) -> Result<T, RuntimeError> + Send + 'static,
    ) -> Task<T> {
        let cache = self.clone();
        Box::pin(async move {
            cache.check_home()?;
            let blocking = cache.inner.settings.blocking.clone();
            blocking.offload(move || work(cache)).await
        })
    }

    /// The long way. Boxed, so that a hit does not move around what only a miss needs.
    pub(crate) fn fetch(&self, device: &Device, spec: &KernelSpec) -> Task<Module<B>> {
        let (cache, device, spec) = (self.clone(), device.clone(), spec.clone());
        Box::pin(async move {
            cache.check_home()?;
            cache.check_owner(&device)?;
            // A handle that is good no more needs no compiler to say so.
            cache.check_live(&device)?;
            let known = spec.known(device.profile_id()).and_then(Known::key).cloned();
            let key = match known {
                Some(key) => key,
                // The compiler is asked who it is, and that blocks.
                None => {
                    let (device, spec) = (device.clone(), spec.clone());
                    cache.offload(move |cache| cache.key(&device, &spec).cloned()).await?
                }
            };
            loop {
                cache.check_live(&device)?;
                let found = Request::new(&cache, &device, &spec, &key).await;
                if let Some(kernel) = cache.settle(&device, found)? {
                    // The profile was read before the key was made.
                    Self::note_place(device.profile_id(), &device, &spec, &kernel);
                    return Ok(kernel);
                }
            }
        })
    }
}

/// What the cache's own future comes to.
type Found<B> = Result<Module<B>, grainstore::Error>;

/// The cache's own future: it joins a build, or leads one.
type Miss<B> = Pin<Box<dyn Future<Output = Found<B>> + Send>>;

/// A request that found nothing in memory.
///
/// Until it leads a build it drives the cache's future itself. Then that future passes to the job
/// that builds, which brings it to its end wherever it runs; what is left here is to wait.
struct Request<B: Backend> {
    miss: Option<Miss<B>>,
    shared: Arc<Shared<B>>,
}

/// What a request and its job have in common.
type Shared<B> = Mutex<State<B>>;

struct State<B: Backend> {
    /// The build is on its way to its job.
    begun: bool,
    /// What it came to.
    built: Option<Done<Loaded<<B as Backend>::Module>>>,
    /// The cache's future, while the job has it.
    miss: Option<Miss<B>>,
    /// What that came to.
    found: Option<Found<B>>,
    /// Who waits for that.
    waker: Option<Waker>,
}

impl<B: Backend> Request<B> {
    fn new(cache: &BackendCache<B>, device: &Device, spec: &KernelSpec, key: &KernelKey) -> Self {
        let shared = Arc::new(Mutex::new(State {
            begun: false,
            built: None,
            miss: None,
            found: None,
            waker: None,
        }));
        let build = build(cache.clone(), device.clone(), spec.clone(), key.clone(), &shared);
        let (cache, device, key) = (cache.cache.clone(), device.clone(), key.clone());
        let miss = async move { cache.on(device.identity()).get_or_build_async(&key, build).await };
        Self { miss: Some(Box::pin(miss)), shared }
    }
}

/// The build, as the cache's future sees it: sent off at the first poll, then awaited.
fn build<B: Backend>(
    cache: BackendCache<B>,
    device: Device,
    spec: KernelSpec,
    key: KernelKey,
    shared: &Arc<Shared<B>>,
) -> impl Future<Output = Result<Loaded<B::Module>, RuntimeError>> + Send + use<B> {
    let shared = Arc::clone(shared);
    let blocking = cache.inner.settings.blocking.clone();
    let mut work = Some(move || cache.obtain(&device, &key, &spec, &mut None));
    poll_fn(move |_| {
        if let Some(work) = work.take() {
            lock(&shared).begun = true;
            let job = Arc::clone(&shared);
            blocking.run(work, move |done| deliver(&job, done));
        }
        let built = lock(&shared).built.take();
        built.map_or(Poll::Pending, |done| Poll::Ready(open(done)))
    })
}

/// The job's end: what was built goes into the cache, and whoever waits hears of it.
fn deliver<B: Backend>(shared: &Shared<B>, done: Done<Loaded<B::Module>>) {
    let miss = {
        let mut state = lock(shared);
        state.built = Some(done);
        state.miss.take()
    };
    // Where it is not there, the request is polling it just now, and will look again.
    let Some(mut miss) = miss else { return };
    let found = match miss.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(found) => found,
        // With the build at its end there is nothing left to wait for.
        Poll::Pending => Err(grainstore::Error::Superseded),
    };
    let waker = {
        let mut state = lock(shared);
        state.found = Some(found);
        state.waker.take()
    };
    waker.into_iter().for_each(Waker::wake);
}

impl<B: Backend> Future for Request<B> {
    type Output = Found<B>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Found<B>> {
        // The executor's code, as is the drop of the one before it: both under no lock.
        let mut waker = Some(context.waker().clone());
        let Some(mut miss) = self.miss.take() else {
            let mut state = lock(&self.shared);
            if let Some(found) = state.found.take() {
                return Poll::Ready(found);
            }
            mem::swap(&mut state.waker, &mut waker);
            return Poll::Pending;
        };
        loop {
            if let Poll::Ready(found) = miss.as_mut().poll(context) {
                return Poll::Ready(found);
            }
            let shared = Arc::clone(&self.shared);
            let mut state = lock(&shared);
            if !state.begun {
                // Somebody else builds it. Dropped, this leaves as anybody may.
                self.miss = Some(miss);
                return Poll::Pending;
            }
            if state.built.is_none() {
                state.miss = Some(miss);
                mem::swap(&mut state.waker, &mut waker);
                return Poll::Pending;
            }
            // The build came back while this was being polled.
        }
    }
}
