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

/// Spans as a subscriber sees them: their names, their cache's name, and which ones were open when
/// something was said.
#[cfg(feature = "tracing")]
mod spans {
    use std::fmt::Debug;
    use std::sync::{Arc, Mutex};

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    #[derive(Default)]
    pub(super) struct Seen {
        pub(super) spans: Vec<String>,
        pub(super) open: usize,
        /// How many spans were open at each event.
        pub(super) events: Vec<usize>,
    }

    #[derive(Clone, Default)]
    pub(super) struct Log(pub(super) Arc<Mutex<Seen>>);

    struct Cache(String);

    impl Visit for Cache {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            if field.name() == "cache" {
                self.0 = format!("{value:?}");
            }
        }
    }

    impl Subscriber for Log {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, span: &Attributes<'_>) -> Id {
            let mut cache = Cache(String::new());
            span.record(&mut cache);
            let mut seen = self.0.lock().unwrap();
            seen.spans.push(format!("{} {}", span.metadata().name(), cache.0));
            Id::from_u64(seen.spans.len() as u64)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, _: &Event<'_>) {
            let mut seen = self.0.lock().unwrap();
            let open = seen.open;
            seen.events.push(open);
        }

        fn enter(&self, _: &Id) {
            self.0.lock().unwrap().open += 1;
        }

        fn exit(&self, _: &Id) {
            self.0.lock().unwrap().open -= 1;
        }
    }
}

#[cfg(feature = "tracing")]
#[test]
fn s2_each_build_is_a_span_and_a_hit_is_none() {
    let log = spans::Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let cache = Cache::<u64, u64>::builder().name("plans").build().unwrap();
        for _ in 0..2 {
            let build = || {
                tracing::info!("inside");
                Ok::<_, Failure>(1)
            };
            cache.get_or_build(&1, build).unwrap();
            tracing::info!("outside");
        }
        assert!(cache.get_or_build(&2, || Err::<u64, _>(failure("no"))).is_err());
    });
    let seen = log.0.lock().unwrap();
    assert_eq!(seen.spans, ["build \"plans\"", "build \"plans\""]);
    assert_eq!(seen.events, [1, 0, 0]);
}
