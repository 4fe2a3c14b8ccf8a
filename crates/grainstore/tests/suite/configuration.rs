//! How a cache is configured, and which configurations are refused: B0.

use std::time::Duration;

use grainstore::{Builder, Cache, ConfigError, Ownership};

use crate::common::{Failure, World};

fn refused(builder: Builder<u64, u64>) -> ConfigError {
    builder.build().map(drop).expect_err("nonsense is refused")
}

#[test]
fn b0_nonsense_is_refused_with_the_name_of_the_field() {
    let builder = Cache::<u64, u64>::builder;
    for (field, builder) in [
        ("capacity", builder().capacity(0)),
        ("max_weight", builder().max_weight(10)),
        ("max_weight", builder().weigher(|_, _| 1).max_weight(0)),
        ("weigher", builder().weigher(|_, _| 1)),
    ] {
        let error = refused(builder);
        assert_eq!(error.field(), field);
        assert!(error.to_string().contains(field), "{error}");
    }
}

#[test]
fn b0_without_settings_a_cache_owns_is_unbounded_and_drops_its_values() {
    let cache = Cache::<u64, std::sync::Arc<()>>::builder().build().unwrap();
    let value = std::sync::Arc::new(());
    for key in 0..1_000 {
        cache.get_or_build(&key, || Ok::<_, Failure>(value.clone())).unwrap();
    }
    assert_eq!((cache.len(), cache.ownership(), cache.name()), (1_000, Ownership::Owns, "cache"));
    assert_eq!(cache.capacity(), None);
    assert!(cache.wait_for_room(Duration::ZERO));
    drop(cache.clear());
    assert_eq!(std::sync::Arc::strong_count(&value), 1);
}

#[test]
fn b0_a_handle_is_cloned_and_sent_and_is_the_same_cache() {
    fn is_sent_and_shared<T: Clone + Send + Sync + 'static>(value: &T) -> T {
        value.clone()
    }
    let world = World::default();
    let cache = world.cache(2);
    let other = is_sent_and_shared(&cache);
    world.fill(&cache, [1]);
    assert!(other.get(&1).is_some());
    assert_eq!((other.capacity(), other.is_empty()), (Some(2), false));
    assert_eq!(other.clear().released(), 1);
    assert!(cache.is_empty());
}
