//! Whether the machine left a thread alone while it was timed.
//!
//! Two witnesses. The kernel counts how often it took the processor from the thread. What the kernel
//! can't see (a host that runs other guests, a processor that slows down) shows in a fixed piece of
//! work, timed right before and right after.
//!
//! A lock that yields the processor while it waits counts as disturbed where somebody else takes it
//! up: what such a lock costs can be measured on a machine that is quiet, and on no other.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The fixed work may take this much longer than it ever did at best.
const TOLERANCE: f64 = 1.2;

/// The best time of the fixed work so far, in nanoseconds.
static BEST: AtomicU64 = AtomicU64::new(u64::MAX);

/// Finds out how long the fixed work takes at best.
pub fn calibrate() {
    for _ in 0..2_000 {
        spin();
    }
}

/// The fixed work: a chain of multiplications, each of which needs the one before. In nanoseconds.
fn spin() -> u64 {
    let start = Instant::now();
    let mut x = black_box(3_u64);
    for _ in 0..3_000 {
        x = x.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(5);
    }
    black_box(x);
    let took = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    BEST.fetch_min(took, Ordering::Relaxed);
    took
}

/// Whether the machine is as fast as it ever was, just now.
#[must_use]
pub fn now() -> bool {
    spin() as f64 <= BEST.load(Ordering::Relaxed) as f64 * TOLERANCE
}

/// Watches over the thread that made it.
#[derive(Debug)]
pub struct Witness {
    switches: u64,
    quiet_before: bool,
}

impl Witness {
    /// Begins to watch.
    #[must_use]
    pub fn begin() -> Self {
        let switches = involuntary_switches();
        Self { switches, quiet_before: now() }
    }

    /// Whether nothing disturbed the thread since then.
    #[must_use]
    pub fn end(self) -> bool {
        self.quiet_before && now() && involuntary_switches() == self.switches
    }
}

/// How often the processor was taken from this thread.
#[cfg(target_os = "linux")]
fn involuntary_switches() -> u64 {
    use nix::sys::resource::{UsageWho, getrusage};
    getrusage(UsageWho::RUSAGE_THREAD)
        .map_or(0, |usage| u64::try_from(usage.involuntary_context_switches()).unwrap_or(0))
}

/// Not known here: the fixed work alone has to tell.
#[cfg(not(target_os = "linux"))]
fn involuntary_switches() -> u64 {
    0
}
