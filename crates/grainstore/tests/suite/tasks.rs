//! One flight for callers and tasks (B6), cycles through futures (B5), and the async twins.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use grainstore::{Cache, DeviceId, Error, Family, Pinned, ReleaseError};

use crate::common::{Failure, Gate, Module, World, block_on, check, failure};

/// A waker that counts.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

fn poll<T>(future: &mut Boxed<T>) -> Poll<T> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// A build that is pending until the flag is set.
async fn when(flag: Arc<AtomicBool>, world: World, key: u64) -> Result<Module, Failure> {
    poll_fn(|_| if flag.load(Ordering::SeqCst) { Poll::Ready(()) } else { Poll::Pending }).await;
    world.build(key)
}

type Value = Result<Pinned<Module>, Error>;

fn request(
    cache: &Cache<u64, Module>,
    key: u64,
    build: impl Future<Output = Result<Module, Failure>> + Send + 'static,
) -> Boxed<Value> {
    let cache = cache.clone();
    Box::pin(async move { cache.get_or_build_async(&key, build).await })
}

#[test]
fn b6_a_future_starts_when_it_is_first_polled() {
    let world = World::default();
    let cache = world.cache(2);
    let build = world.clone();
    let mut future = request(&cache, 1, async move { build.build(1) });
    assert_eq!((cache.statistics().misses, world.made()), (0, 0));
    assert!(matches!(poll(&mut future), Poll::Ready(Ok(_))));
    assert_eq!((cache.statistics().misses, world.made()), (1, 1));
    assert_eq!(
        block_on(cache.get_or_build_async(&1, async { Err(failure("hit")) })).unwrap().key,
        1
    );
    check(&cache);
}

#[test]
fn b6_threads_and_tasks_share_one_build() {
    let world = World::default();
    let cache = world.cache(2);
    let flag = Arc::new(AtomicBool::new(false));
    let mut leader = request(&cache, 1, when(flag.clone(), world.clone(), 1));
    assert!(poll(&mut leader).is_pending());
    let mut second = request(&cache, 1, async { Err(failure("not mine to build")) });
    assert!(poll(&mut second).is_pending());
    let blocked = {
        let cache = cache.clone();
        thread::spawn(move || cache.get_or_build(&1, || Err(failure("nor mine"))))
    };
    while cache.statistics().waits < 2 {
        thread::yield_now();
    }
    flag.store(true, Ordering::SeqCst);
    let Poll::Ready(Ok(led)) = poll(&mut leader) else { panic!("the build is over") };
    let Poll::Ready(Ok(joined)) = poll(&mut second) else { panic!("told at once") };
    let blocked = blocked.join().unwrap().unwrap();
    assert!(Pinned::ptr_eq(&led, &joined) && Pinned::ptr_eq(&led, &blocked));
    assert_eq!((world.made(), cache.statistics().hits), (1, 2));
    check(&cache);
}

#[test]
fn b6_a_task_waits_for_a_thread() {
    let world = World::default();
    let cache = world.cache(2);
    let gate = Gate::default();
    let leader = {
        let (cache, world, gate) = (cache.clone(), world.clone(), gate.clone());
        thread::spawn(move || {
            cache.get_or_build(&1, || {
                gate.pass();
                world.build(1)
            })
        })
    };
    gate.await_arrivals(1);
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut task = request(&cache, 1, async { Err(failure("not mine to build")) });
    assert!(task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert!(task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    gate.open();
    leader.join().unwrap().unwrap();
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert!(matches!(poll(&mut task), Poll::Ready(Ok(_))));
}

#[test]
fn b6_when_the_leading_future_is_dropped_a_waiter_builds() {
    let world = World::default();
    let cache = world.cache(1);
    let never = Arc::new(AtomicBool::new(false));
    let mut leaders: Vec<Boxed<Value>> = (0..5)
        .map(|_| {
            let mut future = request(&cache, 1, when(never.clone(), world.clone(), 1));
            assert!(poll(&mut future).is_pending());
            future
        })
        .collect();
    // Each takes over from the one before, and is dropped in turn.
    for _ in 0..4 {
        drop(leaders.remove(0));
        leaders.iter_mut().for_each(|leader| assert!(poll(leader).is_pending()));
        assert_eq!(cache.statistics().building, 1);
    }
    let last = {
        let (cache, world) = (cache.clone(), world.clone());
        thread::spawn(move || cache.get_or_build(&1, || world.build(1)))
    };
    while cache.statistics().waits < 5 {
        thread::yield_now();
    }
    drop(leaders);
    assert_eq!(last.join().unwrap().unwrap().key, 1);
    assert_eq!(world.made(), 1);
    check(&cache);
}

#[test]
fn b6_a_deserted_flight_gives_its_place_back() {
    let world = World::default();
    let cache = world.cache(1);
    let never = Arc::new(AtomicBool::new(false));
    let mut leader = request(&cache, 1, when(never.clone(), world.clone(), 1));
    let mut waiter = request(&cache, 1, when(never, world.clone(), 1));
    assert!(poll(&mut leader).is_pending() && poll(&mut waiter).is_pending());
    drop(leader);
    // Without a leader it keeps its place for the one who waits.
    assert!(cache.get_or_build(&2, || world.build(2)).unwrap_err().is_busy());
    drop(waiter);
    assert_eq!(cache.statistics().entries, 0);
    assert!(cache.get_or_build(&2, || world.build(2)).is_ok());
}

#[test]
fn b6_a_leader_that_nobody_waits_for_gives_its_place_back_when_it_is_dropped() {
    let world = World::default();
    let cache = world.cache(1);
    let mut leader = request(&cache, 1, when(Arc::default(), world.clone(), 1));
    assert!(poll(&mut leader).is_pending());
    assert_eq!(cache.statistics().entries, 1);
    drop(leader);
    assert_eq!(cache.statistics().entries, 0);
    assert!(cache.get_or_build(&2, || world.build(2)).is_ok());
    check(&cache);
}

/// Whoever waits and goes takes nothing from the others: not the lead that is free for them, nor
/// the leader they have.
#[test]
fn b6_a_waiter_that_goes_changes_nothing_for_the_others() {
    let world = World::default();
    let cache = world.cache(1);
    let never = Arc::new(AtomicBool::new(false));
    let mut leader = request(&cache, 1, when(never.clone(), world.clone(), 1));
    let mut waiters: Vec<_> = (0..3)
        .map(|_| {
            let build = world.clone();
            request(&cache, 1, async move { build.build(1) })
        })
        .collect();
    assert!(poll(&mut leader).is_pending());
    waiters.iter_mut().for_each(|waiter| assert!(poll(waiter).is_pending()));
    drop(waiters.pop());
    // The leader is still there, so who comes now waits for it.
    let build = world.clone();
    let mut late = request(&cache, 1, async move { build.build(1) });
    assert!(poll(&mut late).is_pending());
    assert_eq!(world.made(), 0);
    drop(leader);
    drop(waiters.pop());
    let Some(Poll::Ready(Ok(built))) = waiters.iter_mut().map(poll).next() else {
        panic!("the lead was free")
    };
    let Poll::Ready(Ok(shared)) = poll(&mut late) else { panic!("the build is over") };
    assert!(Pinned::ptr_eq(&built, &shared));
    drop((built, shared, waiters));
    check(&cache);
}

#[test]
fn b6_a_lead_that_was_passed_on_leaves_neither_pin_nor_place() {
    let world = World::default();
    let cache = world.cache(1);
    for comes_to_something in [false, true] {
        let flag = Arc::new(AtomicBool::new(false));
        let mut requests: Vec<_> =
            (0..3).map(|_| request(&cache, 1, when(flag.clone(), world.clone(), 1))).collect();
        for _ in 0..2 {
            requests.iter_mut().for_each(|request| assert!(poll(request).is_pending()));
            drop(requests.remove(0));
        }
        assert!(poll(&mut requests[0]).is_pending());
        if comes_to_something {
            flag.store(true, Ordering::SeqCst);
            assert!(matches!(poll(&mut requests[0]), Poll::Ready(Ok(_))));
            assert_eq!(cache.remove(&1).released(), 1);
        }
        drop(requests);
        assert_eq!(cache.statistics().entries, 0);
        check(&cache);
    }
}

#[test]
fn b6_whoever_comes_to_a_flight_without_a_leader_leads_it() {
    let world = World::default();
    let cache = world.cache(1);
    let never = Arc::new(AtomicBool::new(false));
    let mut leader = request(&cache, 1, when(never.clone(), world.clone(), 1));
    let mut idler = request(&cache, 1, when(never, world.clone(), 1));
    assert!(poll(&mut leader).is_pending() && poll(&mut idler).is_pending());
    drop(leader);
    let built = cache.get_or_build(&1, || world.build(1)).unwrap();
    // The waiter that was not polled meanwhile has its pin all the same.
    let Poll::Ready(Ok(shared)) = poll(&mut idler) else { panic!("the build is over") };
    assert!(Pinned::ptr_eq(&built, &shared));
}

#[test]
fn b6_a_waiter_that_is_dropped_or_never_polled_again_keeps_no_pin() {
    let world = World::default();
    let cache = world.cache(1);
    let flag = Arc::new(AtomicBool::new(false));
    let mut leader = request(&cache, 1, when(flag.clone(), world.clone(), 1));
    let mut waiter = request(&cache, 1, async { Err(failure("no")) });
    assert!(poll(&mut leader).is_pending() && poll(&mut waiter).is_pending());
    flag.store(true, Ordering::SeqCst);
    assert!(matches!(poll(&mut leader), Poll::Ready(Ok(_))));
    assert!(cache.get_or_build(&2, || world.build(2)).unwrap_err().is_busy());
    drop(waiter);
    assert!(cache.get_or_build(&2, || world.build(2)).is_ok());
    check(&cache);
}

#[test]
fn b6_a_blocked_caller_takes_over_after_its_patience() {
    let world = World::default();
    let cache =
        world.builder().capacity(2).takeover_after(Duration::from_millis(20)).build().unwrap();
    let flag = Arc::new(AtomicBool::new(false));
    let mut late = request(&cache, 1, when(flag.clone(), world.clone(), 1));
    assert!(poll(&mut late).is_pending());
    let taken = cache.get_or_build(&1, || world.build(1)).unwrap();
    flag.store(true, Ordering::SeqCst);
    // The late one gets the value that is there, and its own is released.
    let Poll::Ready(Ok(given)) = poll(&mut late) else { panic!("the late build is over") };
    assert!(Pinned::ptr_eq(&taken, &given));
    assert_eq!((world.made(), world.alive(), cache.statistics().misses), (2, 1, 2));
    drop((taken, given));
    let flag = Arc::new(AtomicBool::new(false));
    let mut late = request(&cache, 2, when(flag.clone(), world.clone(), 2));
    assert!(poll(&mut late).is_pending());
    cache.get_or_build(&2, || world.build(2)).unwrap();
    drop(cache.remove(&2));
    flag.store(true, Ordering::SeqCst);
    assert!(matches!(poll(&mut late), Poll::Ready(Err(Error::Superseded))));
    check(&cache);
}

#[test]
fn b4_a_future_that_panics_is_an_error() {
    let cache = Cache::<u64, u64>::builder().capacity(1).build().unwrap();
    let panics = async { if cache.is_empty() { panic!("in a poll") } else { Ok::<_, Failure>(1) } };
    match block_on(cache.get_or_build_async(&1, panics)) {
        Err(Error::Panicked { message }) => assert_eq!(message, "in a poll"),
        other => panic!("{other:?}"),
    }
    assert_eq!(*block_on(cache.get_or_build_async(&1, async { Ok::<_, Failure>(2) })).unwrap(), 2);
}

#[test]
fn b5_a_future_that_asks_for_itself_is_told() {
    let cache = Cache::<u64, u64>::builder().build().unwrap();
    let inner = cache.clone();
    let error = block_on(cache.get_or_build_async(&1, async {
        inner
            .get_or_build_async(&2, async {
                inner
                    .get_or_build_async(&1, async { Ok::<_, Failure>(1) })
                    .await
                    .map(|value| *value)
            })
            .await
            .map(|value| *value)
    }))
    .unwrap_err();
    let inner = error.downcast_ref::<Error>().and_then(|error| error.downcast_ref::<Error>());
    assert!(matches!(inner, Some(Error::Cycle { .. })), "{error:?}");
    assert_eq!(cache.len(), 0);
}

#[test]
fn b5_a_circle_of_two_tasks_between_polls_is_told() {
    // Task one builds 1, which needs 2; task two builds 2, which needs 1; polled in turn.
    let cache = Cache::<u64, u64>::builder().build().unwrap();
    let task = |mine: u64, other: u64| -> Boxed<Result<u64, Error>> {
        let cache = cache.clone();
        Box::pin(async move {
            let mut yielded = false;
            let build = async {
                poll_fn(|_| {
                    if std::mem::replace(&mut yielded, true) {
                        Poll::Ready(())
                    } else {
                        Poll::Pending
                    }
                })
                .await;
                cache.get_or_build_async(&other, async { Ok::<_, Failure>(0) }).await.map(|v| *v)
            };
            cache.get_or_build_async(&mine, build).await.map(|value| *value)
        })
    };
    let (mut one, mut two) = (task(1, 2), task(2, 1));
    assert!(poll(&mut one).is_pending() && poll(&mut two).is_pending());
    assert!(poll(&mut one).is_pending());
    let Poll::Ready(Err(told)) = poll(&mut two) else { panic!("the circle is closed") };
    assert!(matches!(told.downcast_ref::<Error>(), Some(Error::Cycle { .. })), "{told:?}");
    assert!(matches!(poll(&mut one), Poll::Ready(Err(Error::Build(_)))));
}

/// A build waits for those that were begun in it, also while nobody polls them.
#[test]
fn b5_a_circle_through_a_build_inside_a_build_is_told() {
    let cache = Cache::<u64, u64>::builder().build().unwrap();
    let path = |keys: &'static [u64]| -> Boxed<Result<u64, Error>> {
        fn ask(cache: Cache<u64, u64>, keys: &'static [u64]) -> Boxed<Result<u64, Error>> {
            Box::pin(async move {
                let Some((key, rest)) = keys.split_first() else { return Ok(0) };
                let build = async {
                    let mut yielded = keys.len() == 1;
                    poll_fn(|_| match std::mem::replace(&mut yielded, true) {
                        true => Poll::Ready(()),
                        false => Poll::Pending,
                    })
                    .await;
                    ask(cache.clone(), rest).await
                };
                cache.get_or_build_async(key, build).await.map(|value| *value)
            })
        }
        ask(cache.clone(), keys)
    };
    // Task one builds 1, in it 3, and needs 2; task two builds 2 and needs 1.
    let (mut one, mut two) = (path(&[1, 3, 2]), path(&[2, 1]));
    assert!(poll(&mut two).is_pending());
    for _ in 0..3 {
        assert!(poll(&mut one).is_pending());
    }
    let Poll::Ready(Err(told)) = poll(&mut two) else { panic!("the circle is closed") };
    assert!(matches!(told.downcast_ref::<Error>(), Some(Error::Cycle { .. })), "{told:?}");
    assert!(matches!(poll(&mut one), Poll::Ready(Err(Error::Build(_)))));
}

#[test]
fn b7_a_doomed_flight_that_nobody_leads_ends_at_once() {
    let world = World::default();
    let cache = world.cache(1);
    let device = DeviceId::new(Family::VULKAN, 3);
    let never = Arc::new(AtomicBool::new(false));
    let future = |world: World| -> Boxed<Value> {
        let (cache, never) = (cache.clone(), never.clone());
        Box::pin(
            async move { cache.on(&device).get_or_build_async(&1, when(never, world, 1)).await },
        )
    };
    let (mut leader, mut waiter) = (future(world.clone()), future(world.clone()));
    assert!(poll(&mut leader).is_pending() && poll(&mut waiter).is_pending());
    drop(leader);
    let drain = cache.evict_device(&device);
    assert_eq!(drain.pending(), 0);
    drain.wait().unwrap();
    assert!(matches!(poll(&mut waiter), Poll::Ready(Err(Error::DeviceDestroyed { .. }))));
    assert_eq!(cache.statistics().entries, 0);
}

#[test]
fn b8_a_future_that_leads_a_doomed_build_is_told_at_its_end_and_its_waiters_at_once() {
    let world = World::default();
    let cache = world.cache(2);
    let flag = Arc::new(AtomicBool::new(false));
    let mut leader = request(&cache, 1, when(flag.clone(), world.clone(), 1));
    let mut waiter = request(&cache, 1, async { Err(failure("not mine to build")) });
    assert!(poll(&mut leader).is_pending() && poll(&mut waiter).is_pending());
    let drain = cache.remove(&1);
    assert!(matches!(poll(&mut waiter), Poll::Ready(Err(Error::Removed))));
    assert!(poll(&mut leader).is_pending());
    assert_eq!(drain.pending(), 1);
    flag.store(true, Ordering::SeqCst);
    assert!(matches!(poll(&mut leader), Poll::Ready(Err(Error::Removed))));
    drain.wait().unwrap();
    assert_eq!((world.alive(), cache.statistics().doomed), (0, 1));
    check(&cache);
}

#[test]
fn p5_awaiting_a_drain_inside_ones_own_build_is_told_instead_of_hanging() {
    let world = World::default();
    let cache = world.cache(3);
    let pin = cache.get_or_build(&1, || world.build(1)).unwrap();
    let (inner, build) = (cache.clone(), world.clone());
    let mut future = request(&cache, 2, async move {
        let told = inner.remove(&1).wait_async().await;
        assert!(matches!(told, Err(ReleaseError::WouldDeadlock)), "{told:?}");
        build.build(2)
    });
    assert!(matches!(poll(&mut future), Poll::Ready(Ok(_))));
    drop(pin);
    assert_eq!((world.alive(), cache.statistics().release_failures), (1, 0));
}

#[test]
fn p5_a_drain_is_awaited_through_pins_and_busy_values() {
    let world = World::default();
    let cache = world.cache(4);
    let pinned = cache.get_or_build(&1, || world.build(1)).unwrap();
    cache.get_or_build(&2, || world.build(2)).unwrap();
    world.set_busy(2, true);
    let drain = cache.clear();
    let mut waiting: Boxed<Result<(), ReleaseError>> = Box::pin(drain.wait_async());
    assert!(poll(&mut waiting).is_pending());
    drop(pinned);
    assert!(poll(&mut waiting).is_pending());
    let idle = world.clone();
    let other = thread::spawn(move || idle.set_busy(2, false));
    block_on(waiting).unwrap();
    other.join().unwrap();
    assert_eq!(world.alive(), 0);
    check(&cache);
}

/// The end of what a drain waits for wakes the task that awaits it, once however often that was
/// polled; and so does a poke.
#[test]
fn p5_a_task_that_awaits_a_drain_is_woken_by_its_end_and_by_a_poke() {
    let world = World::default();
    let cache = world.cache(4);
    let pinned = cache.get_or_build(&1, || world.build(1)).unwrap();
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let woken = || count.0.swap(0, Ordering::SeqCst);
    let mut waiting = pin!(cache.clear().wait_async());
    let mut poll = || waiting.as_mut().poll(&mut Context::from_waker(&waker));
    for _ in 0..3 {
        assert!(poll().is_pending());
    }
    assert_eq!(woken(), 0);
    cache.poke();
    assert_eq!(woken(), 1);
    assert!(poll().is_pending());
    drop(pinned);
    assert_eq!(woken(), 1);
    assert!(matches!(poll(), Poll::Ready(Ok(()))));
}

/// A value whose last pin goes while it is busy is released without a sign, some time. Who waits for
/// it, and was waiting for the pin, has to know that it must ask from now on.
#[test]
fn p5_a_task_that_awaits_a_drain_learns_that_a_value_is_busy() {
    let world = World::default();
    let cache = world.cache(4);
    let pinned = cache.get_or_build(&1, || world.build(1)).unwrap();
    world.set_busy(1, true);
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut waiting = pin!(cache.clear().wait_async());
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(pinned);
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    world.set_busy(1, false);
    block_on(waiting).unwrap();
    assert_eq!(world.released(), [1]);
}

#[test]
fn e4_room_is_awaited() {
    let world = World::default();
    let cache = world.cache(1);
    let pinned = cache.get_or_build(&1, || world.build(1)).unwrap();
    let room = cache.clone();
    let mut room: Boxed<()> = Box::pin(async move { room.room().await });
    assert!(poll(&mut room).is_pending());
    drop(pinned);
    block_on(room);
    assert!(cache.get_or_build(&2, || world.build(2)).is_ok());
    // A pin that is found and later dropped says so by itself.
    let pinned = cache.get(&2).unwrap();
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut waiting = pin!(cache.room());
    assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(pinned);
    while count.0.load(Ordering::SeqCst) == 0 {
        thread::yield_now();
    }
    block_on(waiting);
}

#[test]
fn e4_awaited_room_is_asked_for_again_by_itself_and_at_once_by_a_poke() {
    let world = World::default();
    let cache = world.cache(1);
    world.fill(&cache, [1]);
    world.set_busy(1, true);
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut waiting = pin!(cache.room());
    // Every poke wakes before it returns; by itself it wakes at growing distances.
    for _ in 0..50 {
        let before = count.0.load(Ordering::SeqCst);
        assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        cache.poke();
        assert!(count.0.load(Ordering::SeqCst) > before);
    }
    // Polled often, it is woken no oftener.
    for _ in 0..1_000 {
        assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    let before = count.0.load(Ordering::SeqCst);
    cache.poke();
    assert!(count.0.load(Ordering::SeqCst) < before + 100);
    world.set_busy(1, false);
    block_on(waiting);
    assert!(cache.get_or_build(&2, || world.build(2)).is_ok());
}
