//! An asymmetric fence: the frequent side pays nothing, the rare side pays for both.
//!
//! On Linux the rare side has the kernel run a full fence on every thread of the process
//! (membarrier(2), private expedited). Where that is not to be had, both sides fence.

use std::sync::atomic::compiler_fence;

use crate::sync::{AtomicU32, Ordering, fence};

/// Stores zero, and keeps the compiler from moving the caller's next loads before it. If
/// [`is_asymmetric`], that orders the two for a thread that calls [`heavy`]; otherwise the caller
/// has to fence, too.
#[inline]
pub(crate) fn light(slot: &AtomicU32) {
    slot.store(0, Ordering::Release);
    compiler_fence(Ordering::SeqCst);
}

/// Orders the caller's earlier stores before its next loads, and the same for every thread that has
/// called or is about to call [`light`].
pub(crate) fn heavy() {
    fence(Ordering::SeqCst);
    asymmetric::run();
}

/// Whether `heavy` pays for both sides. Decided at the first call, and the same ever after.
pub(crate) fn is_asymmetric() -> bool {
    asymmetric::is_on()
}

#[cfg(all(target_os = "linux", not(any(loom, shuttle, grainstore_symmetric))))]
mod asymmetric {
    use std::sync::OnceLock;

    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: the call takes numbers only and touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    /// The kernel keeps the registration over a fork.
    pub(super) fn is_on() -> bool {
        static ON: OnceLock<bool> = OnceLock::new();
        *ON.get_or_init(|| membarrier(REGISTER_PRIVATE_EXPEDITED) && membarrier(PRIVATE_EXPEDITED))
    }

    pub(super) fn run() {
        // Once registered it fails only where a filter was installed since that forbids it. Then a
        // watched unpin may go unseen, and its value waits for the next look at it.
        if is_on() {
            membarrier(PRIVATE_EXPEDITED);
        }
    }
}

#[cfg(not(all(target_os = "linux", not(any(loom, shuttle, grainstore_symmetric)))))]
mod asymmetric {
    /// Under shuttle all accesses are ordered, so that the usual way can be tried.
    pub(super) fn is_on() -> bool {
        cfg!(shuttle)
    }

    pub(super) fn run() {}
}

#[cfg(all(test, target_os = "linux", not(grainstore_symmetric)))]
mod tests {
    /// Where the kernel has what an unpin relies on, no unpin fences.
    #[test]
    fn it_is_asymmetric_where_the_kernel_says_that_it_can_be() {
        const QUERY: libc::c_int = 0;
        // The commands by their numbers, as in the kernel's own header.
        const PRIVATE_EXPEDITED_AND_ITS_REGISTRATION: libc::c_long = 0b1_1000;
        // SAFETY: the call takes numbers only and touches no memory of ours.
        let known = unsafe { libc::syscall(libc::SYS_membarrier, QUERY, 0, 0) };
        let wanted = PRIVATE_EXPEDITED_AND_ITS_REGISTRATION;
        assert_eq!(super::is_asymmetric(), known > 0 && known & wanted == wanted);
    }
}
