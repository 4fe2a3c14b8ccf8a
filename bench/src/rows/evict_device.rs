//! Evicting a device with `d` values from a cache of `n`: ours alone, since no peer knows devices.

use std::convert::Infallible;
use std::time::Instant;

use grainstore::{Cache, DeviceId, Family};

use super::{Context, Entry, Row};
use crate::measure::quiet::Witness;
use crate::measure::rounds::{Attempt, Contender};

pub(super) const EVICT_DEVICE: Row = Row {
    name: "evict-device",
    about: "evict_device of d values among n, for each of the d values",
    unit: "ns",
    run,
};

/// Fewer values, as many others.
pub const FEW_OF_MANY: &str = "50 of 100,000";
/// Some values among a few.
pub const SOME_OF_FEW: &str = "500 of 1,000";
/// As many values among a hundred times as many.
pub const SOME_OF_MANY: &str = "500 of 100,000";
/// More values, as many others.
pub const MANY_OF_MANY: &str = "2,000 of 100,000";

const EVICTED: DeviceId = DeviceId::new(Family::HOST, 0);
/// Devices that share the rest.
const OTHERS: u32 = 7;

fn run(context: &Context, _row: &Row) -> Result<Vec<Entry>, String> {
    let contenders = vec![
        contender(SOME_OF_FEW, 500, 1_000),
        contender(SOME_OF_MANY, 500, 100_000),
        contender(FEW_OF_MANY, 50, 100_000),
        contender(MANY_OF_MANY, 2_000, 100_000),
    ];
    Ok(context.compete(contenders))
}

fn contender(name: &str, values: u32, entries: u32) -> Contender {
    let cache: Cache<u64, u64> = Cache::builder()
        .capacity(entries as usize)
        .build()
        .unwrap_or_else(|error| panic!("{entries} places were refused: {error}"));
    for number in values..entries {
        put(&cache, DeviceId::new(Family::HOST, 1 + number % OTHERS), number);
    }
    Contender::new(name, move || {
        for number in 0..values {
            put(&cache, EVICTED, number);
        }
        let witness = Witness::begin();
        let start = Instant::now();
        let drain = cache.evict_device(&EVICTED);
        let took = start.elapsed();
        let quiet = witness.end();
        assert_eq!(drain.released(), values as usize, "evict_device released something else");
        Attempt { value: took.as_nanos() as f64 / f64::from(values), quiet }
    })
}

fn put(cache: &Cache<u64, u64>, device: DeviceId, number: u32) {
    let value = cache.on(&device).get_or_build(&u64::from(number), || Ok::<_, Infallible>(1));
    assert!(value.is_ok(), "a value of a device was refused");
}
