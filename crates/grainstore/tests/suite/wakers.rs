//! A waker is its executor's code: to clone it, to wake it and to drop it may each call the cache.

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::thread;

use grainstore::{Cache, DeviceId, Family};

use crate::common::{Gate, Module, World, check};

/// A waker that calls the cache at every turn.
struct Caller {
    cache: Cache<u64, Module>,
    /// How often it was cloned, woken and dropped.
    turns: [AtomicUsize; 3],
    /// Its drops panic.
    panics: AtomicBool,
}

impl Caller {
    fn turn(&self, which: usize) {
        self.turns[which].fetch_add(1, Ordering::SeqCst);
        // Each takes the cache's lock, and then that of every flight and drain there is.
        drop(self.cache.remove(&7));
        drop(self.cache.clear());
        assert!(self.cache.statistics().misses > 0);
    }

    fn turns(&self) -> [usize; 3] {
        self.turns.each_ref().map(|turns| turns.load(Ordering::SeqCst))
    }
}

static TABLE: RawWakerVTable = RawWakerVTable::new(
    |caller| {
        // SAFETY: as for every function of this table: the pointer is `waker`'s.
        unsafe { of(caller) }.turn(0);
        // SAFETY: as above; one more count for the new waker.
        unsafe { Arc::increment_strong_count(caller.cast::<Caller>()) };
        RawWaker::new(caller, &TABLE)
    },
    |caller| {
        // SAFETY: as above; the waker's own count is taken over.
        unsafe { Arc::from_raw(caller.cast::<Caller>()) }.turn(1);
    },
    // SAFETY: as above.
    |caller| unsafe { of(caller) }.turn(1),
    |caller| {
        // SAFETY: as above; the waker's own count is taken over.
        let caller = unsafe { Arc::from_raw(caller.cast::<Caller>()) };
        caller.turn(2);
        assert!(!caller.panics.load(Ordering::SeqCst), "on purpose");
    },
);

/// # Safety
/// The pointer was made by [`waker`], and its waker lives as long as the reference is used.
unsafe fn of<'a>(caller: *const ()) -> &'a Caller {
    // SAFETY: as just said.
    unsafe { &*caller.cast() }
}

fn waker(caller: &Arc<Caller>) -> Waker {
    let raw = RawWaker::new(Arc::into_raw(Arc::clone(caller)).cast(), &TABLE);
    // SAFETY: the functions of the table keep a waker's rules: each waker owns one count.
    unsafe { Waker::from_raw(raw) }
}

fn caller(cache: &Cache<u64, Module>) -> Arc<Caller> {
    Arc::new(Caller { cache: cache.clone(), turns: Default::default(), panics: false.into() })
}

#[test]
fn wakers_may_call_the_cache_while_a_task_waits_for_a_build() {
    let world = World::default();
    let cache = world.cache(2);
    let caller = caller(&cache);
    let mut waiter = pin!(cache.get_or_build_async(&1, async { world.build(1) }));
    let gate = Gate::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            let build = || {
                gate.pass();
                world.build(1)
            };
            cache.get_or_build(&1, build).unwrap();
        });
        gate.await_arrivals(1);
        let waker = waker(&caller);
        for _ in 0..2 {
            assert!(waiter.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        gate.open();
    });
    let [cloned, woken, dropped] = caller.turns();
    assert!(cloned >= 2 && woken == 1 && dropped >= 2, "{cloned}, {woken}, {dropped}");
    let Poll::Ready(value) = waiter.poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("the build is over")
    };
    assert_eq!(value.unwrap().key, 1);
    check(&cache);
}

#[test]
fn wakers_may_call_the_cache_while_a_task_waits_for_room_and_for_a_drain() {
    let world = World::default();
    let cache = world.cache(1);
    let caller = caller(&cache);
    let waker = waker(&caller);
    let mut context = Context::from_waker(&waker);
    let pin = cache.get_or_build(&1, || world.build(1)).unwrap();
    let mut room = pin!(cache.room());
    let mut drain = pin!(cache.remove(&1).wait_async());
    for _ in 0..2 {
        assert!(room.as_mut().poll(&mut context).is_pending());
        assert!(drain.as_mut().poll(&mut context).is_pending());
    }
    drop(pin);
    let [cloned, woken, dropped] = caller.turns();
    assert!(cloned >= 2 && woken >= 2 && dropped >= 1, "{cloned}, {woken}, {dropped}");
    assert!(drain.poll(&mut context).is_ready());
    assert!(room.poll(&mut context).is_ready());
    check(&cache);
}

/// What a future that is gone has left with a drain is dropped with it, not under the cache's lock.
#[test]
fn a_waker_of_a_wait_that_was_given_up_may_call_the_cache() {
    let world = World::default();
    let cache = world.cache(2);
    let caller = caller(&cache);
    let device = DeviceId::new(Family::CUDA, 0);
    let pin = cache.on(&device).get_or_build(&1, || world.build(1)).unwrap();
    {
        let waker = waker(&caller);
        let mut wait = Box::pin(cache.evict_device(&device).wait_async());
        assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    let [cloned, woken, dropped] = caller.turns();
    assert_eq!((cloned, woken), (dropped - 1, 0), "all clones and the waker itself are gone");
    let drain = cache.evict_device(&device);
    drop(pin);
    drain.wait().unwrap();
    check(&cache);
}

/// The panic of a waker's drop is its executor's affair: whoever leads then leads.
#[test]
fn a_waker_that_panics_takes_no_lead_with_it() {
    let world = World::default();
    let cache = world.cache(2);
    let caller = caller(&cache);
    let waker = waker(&caller);
    let mut context = Context::from_waker(&waker);
    let never = async {
        pending::<()>().await;
        world.build(1)
    };
    let mut leader = Box::pin(cache.get_or_build_async(&1, never));
    assert!(leader.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let mut waiter = pin!(cache.get_or_build_async(&1, async { world.build(1) }));
    assert!(waiter.as_mut().poll(&mut context).is_pending());
    drop(leader);
    caller.panics.store(true, Ordering::SeqCst);
    let Poll::Ready(value) = waiter.poll(&mut context) else { panic!("it leads, and builds") };
    caller.panics.store(false, Ordering::SeqCst);
    assert_eq!(value.unwrap().key, 1);
    check(&cache);
}
