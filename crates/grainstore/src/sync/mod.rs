//! The one place from which the crate takes its locks, atomics, cells, statics and clock.
//!
//! Everything that threads share goes through here, so that the code that ships is also the code
//! that model checkers run: on loom's types with `--cfg loom`, on shuttle's with `--cfg shuttle`.

#[cfg(not(any(loom, shuttle, grainstore_tsan)))]
mod locks;
#[cfg(any(loom, shuttle))]
mod model;
#[cfg(not(any(loom, shuttle)))]
mod native;
mod serials;
#[cfg(all(grainstore_tsan, not(any(loom, shuttle))))]
mod spin;

#[cfg(any(loom, shuttle))]
use self::model as types;
#[cfg(not(any(loom, shuttle)))]
use self::native as types;

pub(crate) use std::sync::atomic::Ordering;
// Neither checker follows an `Arc` with weak references.
pub(crate) use std::sync::{Arc, Weak};

pub(crate) use self::serials::Serials;
pub(crate) use self::types::{
    AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Condvar, Instant, Mutex, MutexGuard, UnsafeCell,
    agree, fence, per_thread, process_wide, start_thread,
};
