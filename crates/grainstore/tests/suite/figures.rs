//! What can be seen of a cache from outside: the figures, S1, and the events, S2.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use grainstore::{Cache, DeviceId, EventKind, Family};

use crate::common::{Failure, Module, World, check, failure};

/// Runs until the clock has moved on, and says by how much.
fn take_some_time() -> Duration {
    let start = Instant::now();
    loop {
        let took = start.elapsed();
        if took > Duration::from_millis(2) {
            return took;
        }
        std::hint::spin_loop();
    }
}

#[test]
fn s1_build_time_is_that_of_all_builds_failed_ones_too() {
    let cache = Cache::<u64, u64>::builder().build().unwrap();
    let mut inside = Duration::ZERO;
    let start = Instant::now();
    cache
        .get_or_build(&1, || {
            inside += take_some_time();
            Ok::<_, Failure>(1)
        })
        .unwrap();
    cache
        .get_or_build(&2, || {
            inside += take_some_time();
            Err::<u64, _>(failure("no"))
        })
        .unwrap_err();
    let whole = start.elapsed();
    let told = cache.statistics().build_time;
    assert!(inside <= told && told <= whole, "{inside:?} <= {told:?} <= {whole:?}");
}

#[test]
fn s1_statistics_can_be_asked_for_inside_a_build_and_len_counts_the_resident() {
    let world = World::default();
    let cache = world.cache(4);
    world.fill(&cache, [1, 2]);
    let pin = cache.get(&2).unwrap();
    drop(cache.remove(&2));
    cache
        .get_or_build(&3, || {
            let figures = cache.statistics();
            assert_eq!((figures.entries, figures.building, figures.retired), (2, 1, 1));
            assert_eq!(cache.len(), 1);
            world.build(3)
        })
        .unwrap();
    let figures = cache.statistics();
    assert_eq!((figures.entries, figures.building, cache.len()), (2, 0, 2));
    drop(pin);
    check(&cache);
}

#[cfg(feature = "serde")]
#[test]
fn s1_statistics_serialize_with_all_their_figures() {
    let world = World::default();
    let cache = world.cache(1);
    world.fill(&cache, [1, 2, 2]);
    let json = serde_json::to_value(cache.statistics()).unwrap();
    let mut names: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "abandoned",
            "build_failures",
            "build_time",
            "building",
            "built",
            "doomed",
            "entries",
            "evictions",
            "hits",
            "misses",
            "refused",
            "release_failures",
            "released",
            "retired",
            "unretained",
            "waits",
        ]
    );
    assert_eq!(
        (&json["hits"], &json["misses"], &json["evictions"]),
        (&1.into(), &2.into(), &1.into())
    );
}

#[test]
fn s2_an_event_names_key_devices_and_how_long_the_build_took() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let cache = {
        let told = told.clone();
        Cache::<u64, u64>::builder()
            .observer(move |event| {
                if let EventKind::BuildFinished { took, error } = event.kind {
                    let error = error.map(ToString::to_string);
                    told.lock().unwrap().push((*event.key, event.devices.to_vec(), took, error));
                }
            })
            .build()
            .unwrap()
    };
    let devices = [0, 1].map(|index| DeviceId::new(Family::CUDA, index));
    let mut inside = Duration::ZERO;
    let build = || {
        inside = take_some_time();
        Ok::<_, Failure>(7)
    };
    cache.on_all(&devices).get_or_build(&7, build).unwrap();
    assert!(cache.get_or_build(&8, || Err::<u64, _>(failure("no driver"))).is_err());
    let told = told.lock().unwrap();
    assert_eq!((told[0].0, &told[0].1[..], &told[0].3), (7, &devices[..], &None));
    assert!(told[0].2 >= inside, "{:?} >= {inside:?}", told[0].2);
    assert_eq!((told[1].0, &told[1].1[..]), (8, &[][..]));
    assert!(told[1].3.as_ref().is_some_and(|error| error.contains("no driver")), "{told:?}");
}

#[test]
fn s2_an_observer_may_call_the_cache_and_its_panics_harm_nobody() {
    let world = World::default();
    let myself: Arc<std::sync::OnceLock<Cache<u64, Module>>> = Arc::default();
    let cache = {
        let myself = myself.clone();
        let observer = move |event: &grainstore::Event<'_, u64>| {
            let cache = myself.get().unwrap();
            let _ = (cache.statistics(), cache.get(&99), cache.reap());
            drop(cache.remove(&99));
            panic!("no word of {}", event.key);
        };
        world.builder().capacity(1).observer(observer).build().unwrap()
    };
    assert!(myself.set(cache.clone()).is_ok());
    world.fill(&cache, 1..=3);
    assert!(cache.get_or_build(&4, || Err(failure("no"))).is_err());
    drop(cache.clear());
    assert_eq!(world.alive(), 0);
    check(&cache);
}

#[test]
fn s2_an_observer_hears_of_everything_but_hits() {
    let told: Arc<Mutex<Vec<(u64, String)>>> = Arc::default();
    let cache = {
        let told = told.clone();
        Cache::<u64, u64>::builder()
            .capacity(1)
            .release(|value| if value == 2 { Err(failure("no")) } else { Ok(()) })
            .observer(move |event| {
                let what = match event.kind {
                    EventKind::BuildStarted => "started",
                    EventKind::BuildFinished { error: None, .. } => "built",
                    EventKind::BuildFinished { .. } => "failed",
                    EventKind::Evicted => "evicted",
                    EventKind::Retired => "retired",
                    EventKind::Released => "released",
                    EventKind::ReleaseFailed { .. } => "release failed",
                    EventKind::Abandoned => "abandoned",
                    _ => "new",
                };
                told.lock().unwrap().push((*event.key, what.to_owned()));
            })
            .build()
            .unwrap()
    };
    let take = || std::mem::take(&mut *told.lock().unwrap());
    let said = |list: &[(u64, &str)]| -> Vec<(u64, String)> {
        list.iter().map(|&(key, what)| (key, what.to_owned())).collect()
    };
    cache.get_or_build(&1, || Ok::<_, Failure>(1)).unwrap();
    cache.get_or_build(&1, || Ok::<_, Failure>(1)).unwrap();
    assert_eq!(take(), said(&[(1, "started"), (1, "built")]));
    cache.get_or_build(&2, || Ok::<_, Failure>(2)).unwrap();
    assert_eq!(take(), said(&[(1, "evicted"), (1, "released"), (2, "started"), (2, "built")]));
    drop(cache.clear());
    assert_eq!(take(), said(&[(2, "retired"), (2, "release failed")]));
    assert!(cache.get_or_build(&3, || Err::<u64, _>(failure("no"))).is_err());
    assert_eq!(take(), said(&[(3, "started"), (3, "failed")]));
    let pinned = cache.get_or_build(&4, || Ok::<_, Failure>(4)).unwrap();
    assert_eq!(cache.clear().abandon(), 1);
    drop(pinned);
    let all = said(&[(4, "started"), (4, "built"), (4, "retired"), (4, "abandoned")]);
    assert_eq!(take(), all);
}
