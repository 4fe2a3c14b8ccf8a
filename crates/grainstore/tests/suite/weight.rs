//! The bound on weight: E5.

use std::sync::{Arc, Mutex, OnceLock};

use grainstore::{Cache, Error};

use crate::common::{Failure, Module, World, check, failure};

/// A cache whose values weigh what their key says.
fn weighed(world: &World, limit: u64) -> Cache<u64, Module> {
    world.builder().weigher(|key, _| *key).max_weight(limit).build().unwrap()
}

#[test]
fn e5_idle_values_go_until_the_new_one_fits_the_oldest_first() {
    let world = World::default();
    let cache = weighed(&world, 10);
    world.fill(&cache, [2, 3, 5]);
    assert_eq!((cache.len(), world.released()), (3, vec![]));
    world.fill(&cache, [4]);
    assert_eq!((cache.len(), world.released()), (2, vec![2, 3]));
    let figures = cache.statistics();
    assert_eq!((figures.evictions, figures.unretained), (2, 0));
    check(&cache);
}

#[test]
fn e5_what_cannot_fit_evicts_nothing_and_is_handed_out_all_the_same() {
    let world = World::default();
    let cache = weighed(&world, 10);
    world.fill(&cache, [2, 3, 5]);
    let pin = cache.get(&5).unwrap();
    for heavy in [11, 7] {
        let handed = cache.get_or_build(&heavy, || world.build(heavy)).unwrap();
        assert_eq!((handed.key, cache.len()), (heavy, 3));
        assert!(cache.get(&heavy).is_none());
        drop(handed);
        assert_eq!(world.released().last(), Some(&heavy));
    }
    let figures = cache.statistics();
    assert_eq!((figures.evictions, figures.unretained, figures.retired), (0, 2, 0));
    // All of it was possible, but for the pin.
    drop(pin);
    world.fill(&cache, [7]);
    assert_eq!(cache.len(), 1);
    check(&cache);
}

#[test]
fn e5_busy_values_do_not_go() {
    let world = World::default();
    let cache = weighed(&world, 10);
    world.fill(&cache, [4, 6]);
    world.set_busy(4, true);
    world.fill(&cache, [7]);
    assert_eq!((world.released(), cache.len()), (vec![7], 2));
    world.fill(&cache, [5]);
    assert_eq!((world.released(), cache.len()), (vec![7, 6], 2));
}

#[test]
fn e5_waiters_share_a_value_that_is_not_kept() {
    let world = World::default();
    let cache = weighed(&world, 10);
    let pins = cache
        .get_or_build(&11, || {
            assert_eq!(cache.statistics().building, 1);
            world.build(11)
        })
        .map(|pin| (pin.clone(), pin))
        .unwrap();
    assert_eq!((world.alive(), cache.statistics().retired), (1, 1));
    drop(pins);
    assert_eq!((world.alive(), cache.statistics().retired), (0, 0));
}

#[test]
fn e5_a_panic_in_the_weigher_means_not_kept() {
    let world = World::default();
    let weigher = |key: &u64, _: &Module| {
        assert!(*key != 3, "cannot tell");
        *key
    };
    let cache = world.builder().weigher(weigher).max_weight(10).build().unwrap();
    world.fill(&cache, [1, 2, 3]);
    assert_eq!((cache.len(), world.released()), (2, vec![3]));
    assert_eq!(cache.statistics().unretained, 1);
}

#[test]
fn e5_weights_that_would_overflow_do_not() {
    let world = World::default();
    let cache = world.builder().weigher(|key, _| *key).max_weight(u64::MAX).build().unwrap();
    world.fill(&cache, [u64::MAX - 1]);
    world.fill(&cache, [u64::MAX]);
    assert_eq!((cache.len(), world.released()), (1, vec![u64::MAX - 1]));
    world.fill(&cache, [1]);
    assert_eq!(world.released(), [u64::MAX - 1, u64::MAX]);
}

#[test]
fn e5_nothing_goes_for_a_value_that_is_doomed_anyway() {
    let world = World::default();
    let cache = weighed(&world, 10);
    world.fill(&cache, [6]);
    let doomed = cache.get_or_build(&7, || {
        let _ = cache.remove(&7).wait_timeout(std::time::Duration::ZERO);
        world.build(7)
    });
    assert!(matches!(doomed, Err(Error::Removed)));
    assert_eq!((world.released(), cache.len()), (vec![7], 1));
}

/// What the weigher, or a victim's release, is told that asks for the very key being built.
fn answer_inside(ask_in_release: bool) -> Result<(), Error> {
    let myself: Arc<OnceLock<Cache<u64, u64>>> = Arc::default();
    let answer = Arc::new(Mutex::new(None));
    let ask = {
        let (myself, answer) = (myself.clone(), answer.clone());
        move || {
            let cache = myself.get().unwrap();
            let told = cache.get_or_build(&7, || Err(failure("it is being built"))).map(drop);
            *answer.lock().unwrap() = Some(told);
        }
    };
    let ask_too = ask.clone();
    let cache = Cache::<u64, u64>::builder()
        .weigher(move |key, _| {
            if *key == 7 && !ask_in_release {
                ask();
            }
            *key
        })
        .max_weight(10)
        .release(move |key| {
            if key == 6 && ask_in_release {
                ask_too();
            }
        })
        .build()
        .unwrap();
    assert!(myself.set(cache.clone()).is_ok());
    for key in [6, 7] {
        cache.get_or_build(&key, || Ok::<_, Failure>(key)).unwrap();
    }
    assert_eq!(cache.len(), 1);
    let told = answer.lock().unwrap().take();
    told.expect("it was asked")
}

#[test]
fn e5_b5_a_weigher_that_asks_for_what_it_weighs_is_told() {
    assert!(matches!(answer_inside(false), Err(Error::Cycle { .. })));
}

#[test]
fn e5_b5_a_victims_release_that_asks_for_what_it_goes_for_is_told() {
    assert!(matches!(answer_inside(true), Err(Error::Cycle { .. })));
}

#[test]
fn e5_both_bounds_hold_together() {
    let world = World::default();
    let cache =
        world.builder().capacity(3).weigher(|key, _| *key % 5).max_weight(6).build().unwrap();
    for key in 0..200 {
        let pin = cache.get_or_build(&key, || world.build(key)).unwrap();
        assert!(world.alive() <= 3);
        drop(pin);
    }
    check(&cache);
    assert_eq!(cache.clear().pending(), 0);
    assert_eq!(world.alive(), 0);
}

/// Those that are to go for a heavy value go together. Whoever is pinned while another is still asked
/// stays, and a third goes.
#[test]
fn e5_a_value_that_is_pinned_while_another_is_asked_about_stays() {
    let world = World::default();
    let myself: Arc<OnceLock<Cache<u64, Module>>> = Arc::default();
    let kept = Arc::new(Mutex::new(None));
    let cache = {
        let (release, myself, kept) = (world.clone(), myself.clone(), kept.clone());
        let idle = move |module: &Module| {
            if module.key == 2 {
                *kept.lock().unwrap() = myself.get().unwrap().get(&1);
            }
            true
        };
        Cache::<u64, Module>::builder()
            .weigher(|key, _| if *key == 4 { 2 } else { 1 })
            .max_weight(3)
            .idle(idle)
            .release(move |module| release.release(module))
            .build()
            .unwrap()
    };
    assert!(myself.set(cache.clone()).is_ok());
    world.fill(&cache, 1..=4);
    assert_eq!(world.released(), [2, 3]);
    assert_eq!(kept.lock().unwrap().as_ref().unwrap().key, 1);
    assert!(cache.get(&1).is_some() && cache.get(&4).is_some());
    check(&cache);
}
