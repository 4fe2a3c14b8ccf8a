//! An asymmetric fence: the frequent side pays nothing, the rare side pays for both.
//!
//! On Linux the rare side has the kernel run a full fence on every thread of the process
//! (membarrier(2), private expedited). Where that is not to be had, both sides fence.

use std::sync::atomic::compiler_fence;

use crate::sync::{AtomicU32, Ordering, fence};

/// Stores zero, and orders that store before the caller's next loads, as seen by a thread that calls
/// [`heavy`].
#[inline]
pub(crate) fn light(slot: &AtomicU32) {
    if asymmetric::is_on() {
        slot.store(0, Ordering::Release);
        compiler_fence(Ordering::SeqCst);
    } else {
        slot.swap(0, Ordering::SeqCst);
    }
}

/// Orders the caller's earlier stores before its next loads, and the same for every thread that has
/// called or is about to call [`light`].
pub(crate) fn heavy() {
    fence(Ordering::SeqCst);
    asymmetric::run();
}

#[cfg(all(target_os = "linux", not(loom), not(grainstore_symmetric)))]
mod asymmetric {
    use crate::sync::{AtomicU32, Ordering, fence};

    const UNKNOWN: u32 = 0;
    const ON: u32 = 1;
    const OFF: u32 = 2;
    static MODE: AtomicU32 = AtomicU32::new(UNKNOWN);

    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: the call takes numbers only and touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    /// Whether `light` may leave its fence out. Decided once, before the first pin of the process.
    #[inline]
    pub(super) fn is_on() -> bool {
        MODE.load(Ordering::Relaxed) == ON
    }

    /// Decides, if it has not been decided. Called before there is any pin in a slot, and again in a
    /// forked child only by inheritance: the kernel keeps the registration over a fork.
    pub(crate) fn decide() {
        if MODE.load(Ordering::Relaxed) == UNKNOWN {
            let on = membarrier(REGISTER_PRIVATE_EXPEDITED) && membarrier(PRIVATE_EXPEDITED);
            let mode = if on { ON } else { OFF };
            let _ = MODE.compare_exchange(UNKNOWN, mode, Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    pub(super) fn run() {
        if is_on() && !membarrier(PRIVATE_EXPEDITED) {
            // A filter installed since. Later unpins fence; those under way have long passed their
            // store when a context switch has run on every processor, which this cannot know, so
            // the least that it can do is to order its own side.
            MODE.store(OFF, Ordering::SeqCst);
            fence(Ordering::SeqCst);
        }
    }
}

#[cfg(not(all(target_os = "linux", not(loom), not(grainstore_symmetric))))]
mod asymmetric {
    pub(super) fn is_on() -> bool {
        false
    }

    pub(crate) fn decide() {}

    pub(super) fn run() {}
}

pub(crate) use asymmetric::decide;
