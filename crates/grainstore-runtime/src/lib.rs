//! Backends and stores plugged into one kernel cache.
//!
//! A [`Backend`] finds devices, compiles, loads and unloads, and no more. A [`Store`] keeps compiled
//! binaries beyond the process. A [`Runtime`] puts several of both together; a [`BackendCache`] is
//! the same for one backend, with its own module type.
//!
//! # The walk of a request
//!
//! [`Runtime::kernel`] gets a [`Device`] handle and a [`KernelSpec`], and goes down until it has a
//! kernel:
//!
//! 1. **Memory.** The spec's key is the source, the headers, the defines and the options with the
//!    device's target and toolchain; it was made when the spec was first asked for. A hit takes no
//!    lock of this crate's and allocates nothing. What comes back is pinned: whatever happens, it is
//!    not released while the [`Kernel`] or a clone of it lives.
//! 2. **Stores**, in order, nearest first. Whoever misses first walks on; the others who ask for the
//!    same kernel wait for what comes of it. An artifact that its loader calls invalid is dropped
//!    from this machine's store, and the kernel built afresh. A store that fails is passed over, with
//!    one [`Warning`].
//! 3. **The compiler**, last.
//!
//! And back up: what was found in a farther store is put into the nearer ones, what was compiled
//! into all of them, and the module into memory. [`Runtime::kernel_with_outcome`] tells which way it
//! was.
//!
//! ```
//! use grainstore_runtime::{
//!     Artifact, Backend, BackendError, DeviceInfo, KernelSpec, Language, Origin, Runtime, Target,
//!     Toolchain,
//! };
//! use grainstore::{DeviceId, Family};
//!
//! /// A backend whose kernels count the bytes of their own source.
//! struct Counter;
//!
//! impl Backend for Counter {
//!     type Module = usize;
//!
//!     fn name(&self) -> &str { "counter" }
//!     fn family(&self) -> Family { Family::new("counter") }
//!     fn languages(&self) -> &[Language] { &[Language::C] }
//!     fn devices(&self) -> Result<Vec<DeviceInfo>, BackendError> {
//!         let id = DeviceId::new(self.family(), 0);
//!         Ok(vec![DeviceInfo { id, name: "abacus".into(), driver: "beads 1".into() }])
//!     }
//!     fn target(&self, _: &DeviceId) -> Result<Target, BackendError> {
//!         Ok(Target::new("abacus"))
//!     }
//!     fn toolchain(&self, _: &Target) -> Result<Toolchain, BackendError> {
//!         Ok(Toolchain::new("counting 1.0"))
//!     }
//!     fn build(
//!         &self,
//!         _: &DeviceId,
//!         spec: &KernelSpec,
//!     ) -> Result<(usize, Option<Artifact>), BackendError> {
//!         let count = spec.source().len();
//!         Ok((count, Some(Artifact::new("count", count.to_le_bytes().to_vec()))))
//!     }
//!     fn load(
//!         &self,
//!         _: &DeviceId,
//!         _: &KernelSpec,
//!         artifact: &Artifact,
//!     ) -> Result<usize, BackendError> {
//!         let bytes = artifact.binary().try_into().map_err(|_| BackendError::InvalidArtifact {
//!             reason: "it is no count".into(),
//!         })?;
//!         Ok(usize::from_le_bytes(bytes))
//!     }
//!     fn unload(&self, _: usize) -> Result<(), BackendError> { Ok(()) }
//!     fn destroy_device(&self, _: &DeviceId) -> Result<(), BackendError> { Ok(()) }
//! }
//!
//! let runtime = Runtime::builder().backend(Counter).capacity(64).build()?;
//! let device = runtime.devices().remove(0);
//! let spec = KernelSpec::builder("empty", Language::C).source("void f(void) {}").build()?;
//!
//! let (kernel, outcome) = runtime.kernel_with_outcome(&device, &spec)?;
//! assert_eq!(outcome.origin, Origin::Compiled);
//! assert_eq!(kernel.module::<usize>(), Some(&15));
//!
//! let (again, outcome) = runtime.kernel_with_outcome(&device, &spec)?;
//! assert_eq!(outcome.origin, Origin::Memory);
//! assert!(again.ptr_eq(&kernel));
//!
//! drop((kernel, again));
//! runtime.shutdown()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Tasks
//!
//! [`Runtime::kernel_async`] is [`Runtime::kernel`] for a task, and shares builds with it. A hit is
//! all that its first poll does. Compilers and drivers block, so a miss goes to a thread of its own,
//! or to [where you say](RuntimeBuilder::blocking), such as tokio's `spawn_blocking`. A build that has
//! begun is brought to its end there, whoever has dropped its future: its kernel is for all who wait
//! and for whoever asks next.
//!
//! # Lives of a device
//!
//! A [`Device`] is a handle for one life of a device. [`Runtime::destroy_device`] ends that life, in
//! an order that is written once for all backends: the handle goes first, then the layers above hear
//! of it through the [hooks](grainstore::Hooks) and let go, then the modules are released, and the
//! context last. While somebody still pins a kernel the device is not destroyed under it: the call
//! says which, and may be called again. A device of the same identity may be there again at once; a
//! handle of the earlier life gets [`RuntimeError::DeviceDestroyed`] for good, and never a kernel of
//! the new one.
//!
//! [`Runtime::device_lost`] is for a device whose driver has lost it: nothing is released, since
//! there is nothing left to release. [`Runtime::shutdown`] ends everything; what cannot end within
//! its bound is named and given up, and after it no driver is called, so that the process may exit
//! in any order.
//!
//! # Above the kernels
//!
//! What an application makes of kernels, such as plans by input shape, lives in a cache above theirs:
//! [`Runtime::plans`] makes one that is bounded, and that hears of every clear and teardown before
//! the kernels go.
//!
//! # What is not promised
//!
//! - After `fork`, a child may drop what it has and make a runtime of its own; every call that would
//!   touch the parent's driver is refused with [`RuntimeError::Forked`]. A hit touches no driver, so
//!   it is served, for what it is worth there.
//! - A pin keeps a module loaded, not its work running: keep the kernel until the device is done
//!   with what you launched.
//! - A module that was abandoned is never released. That is what abandoning means.

#[cfg(test)]
extern crate self as grainstore_runtime;

mod activity;
mod artifact;
mod backend;
mod backend_cache;
mod blocking;
mod device;
mod erased;
mod error;
mod language;
mod loaded;
mod outcome;
pub mod parts;
mod process;
mod profile;
mod runtime;
mod runtime_error;
mod seal;
mod settings;
mod spec;
mod spec_keys;
mod store;
mod stores;
mod table;
mod warning;

pub use artifact::{Artifact, Member};
pub use backend::{Backend, DeviceInfo, Target, Toolchain};
pub use backend_cache::BackendCache;
pub use device::Device;
pub use erased::{AnyBackend, AnyModule};
pub use error::BackendError;
pub use language::Language;
pub use loaded::Loaded;
pub use outcome::{Origin, Outcome};
pub use runtime::{Drains, IntoSpec, Kernel, Plans, Runtime, RuntimeBuilder};
pub use runtime_error::RuntimeError;
pub use settings::Settings;
pub use spec::{KernelSpec, KernelSpecBuilder, SpecError};
pub use store::{BuildFacts, Guard, LookUp, Store, StoreError};
pub use warning::Warning;

#[cfg(test)]
#[path = "../tests/suite/fake/mod.rs"]
#[allow(clippy::unwrap_used, reason = "a helper of a test may fail it as the test itself may")]
mod fake;
