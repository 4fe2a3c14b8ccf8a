//! The loops that are timed, and whose instructions are counted: the same code for both.

use std::convert::Infallible;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use grainstore::Slot;

use crate::keys::{Key, Numbered};
use crate::runtime::Warm;
use crate::subject::Subject;
use crate::subject::ours::Ours;

/// Keys asked for in turn where a row says nothing else: the same few kernels, again and again.
pub const HOT: u64 = 8;

/// Entries beside them.
pub const RESIDENT: u64 = 256;

/// A cache with room to spare that holds [`RESIDENT`] entries, and the first [`HOT`] keys.
pub fn warm<K: Numbered, S: Subject<K>>() -> (S, Vec<K>) {
    // Sharded caches keep to a share of their capacity in each shard, so room to spare is plenty.
    let subject = S::new(RESIDENT as usize * 8);
    let mut keys: Vec<K> = (0..RESIDENT).map(K::numbered).collect();
    for key in &keys {
        drop(subject.get_or_build(key, || 1));
    }
    keys.truncate(HOT as usize);
    (subject, keys)
}

/// A cache that is full, and a number that it has not seen.
pub fn full<S: Subject<u64>>(entries: u64) -> (S, u64) {
    let subject = S::new(entries as usize);
    for key in 0..entries {
        drop(subject.get_or_build(&key, || 1));
    }
    (subject, entries)
}

/// Hits on these keys in turn: the value is read while it is kept alive, and let go.
///
/// # Panics
/// If a value is not there: it would not be a hit that is measured.
#[inline(never)]
pub fn hits<K, S: Subject<K>>(subject: &S, keys: &[K], count: u64) {
    let mut left = count;
    while left > 0 {
        for key in keys.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
            let pin = subject.get_or_build(black_box(key), missed);
            black_box(*pin);
            left -= 1;
        }
    }
}

/// The same by the asynchronous call: a hit is ready at its first poll.
///
/// # Panics
/// If it is not.
#[inline(never)]
pub fn async_hits<K: Key>(subject: &Ours<K>, keys: &[K], count: u64) {
    let mut context = Context::from_waker(Waker::noop());
    let mut left = count;
    while left > 0 {
        for key in keys.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
            let build = async { Ok::<_, Infallible>(missed()) };
            let request = pin!(subject.0.get_or_build_async(black_box(key), build));
            match request.poll(&mut context) {
                Poll::Ready(Ok(pin)) => black_box(*pin),
                Poll::Ready(Err(_)) | Poll::Pending => missed(),
            };
            left -= 1;
        }
    }
}

#[cold]
fn missed() -> u64 {
    panic!("an entry that no row removes was not there")
}

/// Hits through the runtime: the module is read while it is kept alive, and let go.
///
/// # Panics
/// If a kernel is not there.
#[inline(never)]
pub fn runtime_hits(warm: &Warm, count: u64) {
    let mut left = count;
    while left > 0 {
        for spec in warm.specs.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
            let kernel = warm.runtime.kernel(black_box(&warm.device), black_box(spec));
            black_box(match &kernel {
                Ok(kernel) => kernel.module::<u64>().copied().unwrap_or_default(),
                Err(_) => missed(),
            });
            left -= 1;
        }
    }
}

/// Hits by a slot, used in the same way.
///
/// # Panics
/// If the value is not there.
#[inline(never)]
pub fn slot_hits<K: Key>(slot: &mut Slot<K, u64>, count: u64) {
    for _ in 0..count {
        match black_box(&mut *slot).get_or_build(|| Ok::<_, Infallible>(missed())) {
            Ok(pin) => black_box(*pin),
            Err(_) => missed(),
        };
    }
}

/// A number with cache lines of its own, so that what lies beside it disturbs nobody.
#[repr(align(128))]
#[derive(Debug)]
pub struct Padded(u64);

impl Padded {
    /// One, in an `Arc`.
    #[must_use]
    pub fn shared() -> Arc<Self> {
        Arc::new(Self(1))
    }
}

/// Clones and drops an `Arc`, and reads through it.
#[inline(never)]
pub fn arc(value: &Arc<Padded>, count: u64) {
    for _ in 0..count {
        let pin = Arc::clone(black_box(value));
        black_box(pin.0);
    }
}

/// Misses on keys never asked for before, whose build does nothing. Each puts out an older entry
/// once the cache is full.
#[inline(never)]
pub fn misses<S: Subject<u64>>(subject: &S, next: &mut u64, count: u64) {
    for _ in 0..count {
        drop(subject.get_or_build(black_box(next), || 1));
        *next += 1;
    }
}
