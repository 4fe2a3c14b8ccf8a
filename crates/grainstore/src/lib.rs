//! The cache of compiled GPU kernels.
//!
//! GPU programs compile kernels while they run, and keep them. This crate is the keeping: one cache
//! for whatever a compiler makes and a driver has to be told to unload. It does no I/O and knows no
//! GPU; the crates above it do.
//!
//! ```
//! use grainstore::{Cache, KernelKey, Pinned};
//!
//! struct Module(String);
//! # fn compile(key: &KernelKey) -> Result<Module, std::io::Error> { Ok(Module(key.name().into())) }
//!
//! let cache = Cache::<KernelKey, Module>::builder()
//!     .name("opencl")
//!     .capacity(256)
//!     .release(|module: Module| drop(module.0)) // tell the driver
//!     .build()?;
//!
//! let key = KernelKey::builder("saxpy").target("sm_90a").source("..").build()?;
//! let module: Pinned<Module> = cache.get_or_build(&key, || compile(&key))?;
//! assert_eq!(module.0, "saxpy");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Building
//!
//! Callers who ask for one key at once share one build and its outcome, threads and tasks alike; the
//! build runs under no lock, on the thread or task that came first. A build may ask for other keys.
//! One that comes to wait for itself, by whatever way, gets [`Error::Cycle`]; only what it waits for
//! out of sight (a thread or a task that it spawned) can hang it. A failure reaches everybody who
//! waited and leaves nothing behind; so does a panic.
//!
//! # The bound
//!
//! With a capacity, no more values than that are alive at any moment, counting those being built and
//! those not yet released. When a new key needs a place, the least recently used value goes that
//! nobody pins and that `idle` calls idle; it is released before the build starts. When there is
//! none, the answer is [`Error::Busy`], at once. [`Cache::wait_for_room`] and [`Cache::room`] wait.
//!
//! # Pins
//!
//! What a look-up returns is [`Pinned`]: while it lives, the value is neither evicted nor released,
//! whatever happens to the cache. A value that is taken out of the cache while pinned is *retired*:
//! nobody finds it any more, and its release follows the last pin.
//!
//! # Teardown
//!
//! [`Cache::evict_device`] retires exactly the values of a device and dooms the builds for it;
//! [`Cache::clear`] and [`Cache::remove`] do the same for everything and for one key. Each returns a
//! [`Drain`], by which the caller waits, gives up, or abandons. [`Hooks`] carry the news of a
//! teardown up to memos and plans in other caches; [`Cache::listen`] wires a cache to them.
//!
//! # Tasks
//!
//! [`Cache::get_or_build_async`], [`Cache::room`] and [`Drain::wait_async`] run on any executor and
//! on none. If a future that leads a build is dropped, one of those who wait goes on with its own.
//!
//! # What a hit costs
//!
//! A few nanoseconds: a hash, a probe without a lock, and one exchange on a cache line of the
//! thread's own. No two threads' hits write to the same line. A [`Slot`] skips the hash and the
//! probe; so does a [`Bookmark`], which threads can share.
//!
//! # What is not promised
//!
//! Among threads the order of use may blur by what they did at the same moment. A blocking caller
//! that blocks the executor which a leading future needs waits for ever, unless
//! [`takeover_after`](Builder::takeover_after) is set. Each thread that uses a cache keeps eight
//! bytes for each entry of it.
//!
//! # Features
//!
//! `serde`: [`Statistics`] serializes. `tracing`: each build is a span. Neither is on by default.

mod cache;
mod contain;
mod device;
mod error;
mod hashing;
mod hooks;
mod key;
mod sync;
mod timer;

pub use cache::Cache;
pub use cache::bookmark::Bookmark;
pub use cache::builder::{Builder, ConfigError, Ownership, ReleaseOutcome};
pub use cache::drain::Drain;
pub use cache::event::{Event, EventKind};
pub use cache::pinned::Pinned;
pub use cache::slot::Slot;
pub use cache::statistics::Statistics;
pub use cache::view::View;
pub use device::{DeviceId, Family, Framework};
pub use error::{Error, ReleaseError};
pub use hooks::{HookError, Hooks, Registration};
pub use key::{
    ContentId, Difference, ElementType, Fingerprint, KernelKey, KernelKeyBuilder, KeyError,
    ParseFingerprintError, PlanKey, PlanKeyBuilder, TensorDesc,
};
