//! Plans over kernels: how idle plans give way, E8.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use grainstore::{Cache, Error, Ownership, Pinned};

use crate::common::{Failure, Gate, Module, World, check, parts};

/// A lower cache, and an upper one whose values pin the lower one's.
type Plan = (u64, Option<Pinned<Module>>);

fn two_levels(lower: usize, upper: usize) -> (World, Cache<u64, Module>, Cache<u64, Plan>) {
    let world = World::default();
    let kernels = world.cache(lower);
    let plans = Cache::builder().capacity(upper).borrows_from(&kernels).build().unwrap();
    assert_eq!(plans.ownership(), Ownership::Borrows);
    (world, kernels, plans)
}

fn plan(
    world: &World,
    kernels: &Cache<u64, Module>,
    plans: &Cache<u64, Plan>,
    key: u64,
) -> Result<Pinned<Plan>, Error> {
    plans.get_or_build(&key, || {
        Ok::<_, Error>((key, Some(kernels.get_or_build(&key, || world.build(key))?)))
    })
}

#[test]
fn e8_idle_plans_give_way_to_a_kernel_the_oldest_first_and_no_more_than_needed() {
    let (world, kernels, plans) = two_levels(3, 10);
    for key in 1..=3 {
        plan(&world, &kernels, &plans, key).unwrap();
    }
    assert!(plans.get(&1).is_some());
    world.fill(&kernels, [4]);
    assert_eq!(world.released(), [2]);
    assert_eq!(plans.len(), 2);
    assert!(plans.get(&2).is_none());
    world.fill(&kernels, [5]);
    // 4 was unpinned, so that no plan had to go.
    assert_eq!((world.released(), plans.len()), (vec![2, 4], 2));
}

#[test]
fn e8_a_plan_that_somebody_uses_stays() {
    let (world, kernels, plans) = two_levels(2, 10);
    let used = plan(&world, &kernels, &plans, 1).unwrap();
    plan(&world, &kernels, &plans, 2).unwrap();
    let kept = kernels.get_or_build(&3, || world.build(3)).unwrap();
    assert_eq!((world.released(), plans.len()), (vec![2], 1));
    let error = kernels.get_or_build(&4, || world.build(4)).unwrap_err();
    assert_eq!(parts(&error), [2, 0, 0, 0]);
    assert!(plans.get(&1).is_some());
    drop((used, kept));
}

#[test]
fn e8_as_many_as_it_takes() {
    let (world, kernels, plans) = two_levels(1, 10);
    // Five plans over one kernel, so that only the last one frees it; older ones pin nothing.
    let kernel = kernels.get_or_build(&1, || world.build(1)).unwrap();
    for key in 0..5 {
        plans.get_or_build(&key, || Ok::<_, Failure>((key, None))).unwrap();
    }
    for key in 5..10 {
        plans.get_or_build(&key, || Ok::<_, Failure>((key, Some(kernel.clone())))).unwrap();
    }
    drop(kernel);
    world.fill(&kernels, [2]);
    assert_eq!((world.released(), plans.len()), (vec![1], 0));
}

#[test]
fn e8_a_plan_built_inside_the_full_cache_of_plans_finds_room_below() {
    let (world, kernels, plans) = two_levels(2, 2);
    for key in 0..50 {
        plan(&world, &kernels, &plans, key).unwrap();
    }
    assert_eq!((plans.len(), world.most_alive()), (2, 2));
    check(&kernels);
    check(&plans);
}

#[test]
fn e8_plans_are_not_given_up_where_that_can_free_nothing() {
    // All below is being built.
    let (world, kernels, plans) = two_levels(1, 10);
    plans.get_or_build(&1, || Ok::<_, Failure>((1, None))).unwrap();
    kernels
        .get_or_build(&1, || {
            let error = kernels.get_or_build(&2, || world.build(2)).unwrap_err();
            assert_eq!(parts(&error), [0, 0, 1, 0]);
            world.build(1)
        })
        .unwrap();
    assert_eq!(plans.len(), 1);
    // All below is busy.
    world.set_busy(1, true);
    let error = kernels.get_or_build(&2, || world.build(2)).unwrap_err();
    assert_eq!((parts(&error), plans.len()), ([0, 1, 0, 0], 1));
    // All below is retired, and busy, and pinned by nobody.
    let drain = kernels.clear();
    let error = kernels.get_or_build(&2, || world.build(2)).unwrap_err();
    assert_eq!((parts(&error), plans.len()), ([0, 0, 0, 1], 1));
    world.set_busy(1, false);
    drain.wait().unwrap();
}

#[test]
fn e8_plans_of_every_cache_above_give_way() {
    let (world, kernels, first) = two_levels(2, 10);
    let second = Cache::builder().borrows_from(&kernels).build().unwrap();
    plan(&world, &kernels, &first, 1).unwrap();
    plan(&world, &kernels, &second, 2).unwrap();
    let pins = [3, 4].map(|key| kernels.get_or_build(&key, || world.build(key)).unwrap());
    assert_eq!((first.len(), second.len()), (0, 0));
    assert_eq!(parts(&kernels.get_or_build(&5, || world.build(5)).unwrap_err()), [2, 0, 0, 0]);
    drop(pins);
}

/// What was retired while it was busy goes first, and where that is enough no other plan follows.
#[test]
fn e8_a_plan_stays_where_a_retired_one_makes_room() {
    let world = World::default();
    let kernels = world.cache(2);
    let busy = Arc::new(AtomicBool::new(true));
    let plans = {
        let busy = busy.clone();
        let idle = move |plan: &Plan| plan.0 != 1 || !busy.load(Ordering::SeqCst);
        Cache::<u64, Plan>::builder().borrows_from(&kernels).idle(idle).build().unwrap()
    };
    plan(&world, &kernels, &plans, 1).unwrap();
    plan(&world, &kernels, &plans, 2).unwrap();
    drop(plans.remove(&1));
    busy.store(false, Ordering::SeqCst);
    world.fill(&kernels, [3]);
    assert_eq!((world.released(), plans.len()), (vec![1], 1));
}

/// P8 holds above as well: where plans may not be released, none gives way.
#[test]
fn e8_p8_plans_do_not_give_way_on_a_thread_that_may_not_release_them() {
    let world = World::default();
    let kernels = world.cache(1);
    let allowed = Arc::new(AtomicBool::new(false));
    let plans = {
        let allowed = allowed.clone();
        Cache::<u64, Pinned<Module>>::builder()
            .borrows_from(&kernels)
            .may_release(move || allowed.load(Ordering::SeqCst))
            .build()
            .unwrap()
    };
    drop(plans.get_or_build(&1, || kernels.get_or_build(&1, || world.build(1))).unwrap());
    let error = kernels.get_or_build(&2, || world.build(2)).unwrap_err();
    assert_eq!((parts(&error), plans.len()), ([1, 0, 0, 0], 1));
    allowed.store(true, Ordering::SeqCst);
    assert!(kernels.get_or_build(&2, || world.build(2)).is_ok());
    assert_eq!((world.released(), plans.len()), (vec![1], 0));
}

#[test]
fn e8_plans_also_give_way_for_what_they_pin_among_the_retired() {
    let (world, kernels, plans) = two_levels(1, 10);
    for round in 1..=3 {
        plan(&world, &kernels, &plans, 1).unwrap();
        let drain = kernels.clear();
        assert_eq!(drain.pending(), 1);
        world.fill(&kernels, [2]);
        assert_eq!((plans.len(), drain.pending()), (0, 0));
        assert_eq!(world.released(), [2, 1].repeat(round)[1..]);
    }
}

#[test]
fn e8_room_can_be_waited_for_below_idle_plans() {
    let (world, kernels, plans) = two_levels(1, 10);
    plan(&world, &kernels, &plans, 1).unwrap();
    assert!(kernels.wait_for_room(Duration::ZERO));
    world.fill(&kernels, [2]);
}

#[test]
fn e8_plans_stay_while_other_threads_release_and_build_below() {
    let (world, gate) = (World::default(), Gate::default());
    let kernels = {
        let (world, gate) = (world.clone(), gate.clone());
        Cache::<u64, Module>::builder()
            .capacity(1)
            .release(move |module| {
                gate.pass();
                world.release(module);
            })
            .build()
            .unwrap()
    };
    let plans = Cache::builder().capacity(4).borrows_from(&kernels).build().unwrap();
    plans.get_or_build(&1, || Ok::<_, Failure>(())).unwrap();
    world.fill(&kernels, [1]);
    let evictor = {
        let (kernels, world) = (kernels.clone(), world.clone());
        thread::spawn(move || kernels.get_or_build(&2, || world.build(2)).map(|pin| pin.key))
    };
    gate.await_arrivals(1);
    // The one place is about to be free, and then another's: no plan has to do with it.
    let error = kernels.get_or_build(&3, || world.build(3)).unwrap_err();
    assert_eq!((parts(&error), plans.len()), ([0, 0, 0, 1], 1));
    gate.open();
    assert_eq!(evictor.join().unwrap().unwrap(), 2);
}

#[test]
fn e8_give_way_through_three_levels() {
    // Graphs over plans over kernels: an idle graph pins its plan, which pins its kernel.
    let (world, kernels, plans) = two_levels(1, 10);
    let graphs = Cache::builder().capacity(10).borrows_from(&plans).build().unwrap();
    graphs.get_or_build(&1, || plan(&world, &kernels, &plans, 1)).unwrap();
    world.fill(&kernels, [2]);
    assert_eq!((world.released(), plans.len(), graphs.len()), (vec![1], 0, 0));
}

#[test]
fn e8_what_is_let_go_while_plans_are_asked_is_found() {
    let world = World::default();
    let kernels = world.cache(1);
    let pin = Arc::new(Mutex::new(Some(kernels.get_or_build(&1, || world.build(1)).unwrap())));
    let plans = {
        let pin = pin.clone();
        // Stands for another thread that lets go just then.
        let idle = move |_: &u64| {
            drop(pin.lock().unwrap().take());
            false
        };
        Cache::builder().idle(idle).borrows_from(&kernels).build().unwrap()
    };
    plans.get_or_build(&1, || Ok::<_, Failure>(1)).unwrap();
    let found = kernels.get_or_build(&2, || world.build(2));
    assert_eq!((found.unwrap().key, plans.len()), (2, 1));
}

#[test]
fn e8_a_teardown_below_releases_what_was_retired_above_while_it_was_busy() {
    let world = World::default();
    let kernels = world.cache(2);
    let busy = Arc::new(AtomicBool::new(true));
    let plans = {
        let busy = busy.clone();
        Cache::<u64, Pinned<Module>>::builder()
            .borrows_from(&kernels)
            .idle(move |_| !busy.load(Ordering::SeqCst))
            .build()
            .unwrap()
    };
    drop(plans.get_or_build(&1, || kernels.get_or_build(&1, || world.build(1))).unwrap());
    drop(plans.clear());
    let drain = kernels.clear();
    assert!(!drain.wait_timeout(Duration::ZERO));
    busy.store(false, Ordering::SeqCst);
    drain.wait().unwrap();
    assert_eq!(world.released(), [1]);
}

/// A plan that was retired while it was busy becomes idle without a sign, and so does the kernel it
/// pins become free: who waits for the kernel asks the plan again.
#[test]
fn p5_a_wait_below_sees_by_itself_that_a_plan_above_has_become_idle() {
    let world = World::default();
    let kernels = world.cache(2);
    let (busy, asked) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let plans = {
        let (busy, asked) = (busy.clone(), asked.clone());
        Cache::<u64, Pinned<Module>>::builder()
            .borrows_from(&kernels)
            .idle(move |_| {
                asked.fetch_add(1, Ordering::SeqCst);
                !busy.load(Ordering::SeqCst)
            })
            .build()
            .unwrap()
    };
    drop(plans.get_or_build(&1, || kernels.get_or_build(&1, || world.build(1))).unwrap());
    drop(plans.clear());
    let drain = kernels.clear();
    let before = asked.load(Ordering::SeqCst);
    let waiting = thread::spawn(move || drain.wait());
    while asked.load(Ordering::SeqCst) == before {
        thread::yield_now();
    }
    busy.store(false, Ordering::SeqCst);
    waiting.join().unwrap().unwrap();
    assert_eq!(world.released(), [1]);
}
