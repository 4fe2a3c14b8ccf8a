//! A hit by the asynchronous call beside one by the synchronous call.

use super::{Context, Entry, Row};
use crate::allocator::watch;
use crate::instructions::{self, OURS};
use crate::measure::rounds::Contender;
use crate::measure::series::Series;
use crate::subject::ours::Ours;
use crate::work;

pub(super) const ASYNC: Row = Row {
    name: "async",
    about: "a hit by get_or_build_async, polled once, beside get_or_build",
    unit: "ns",
    run,
};

/// Our hit by the synchronous call.
pub const SYNC: &str = "grainstore, get_or_build";
/// What the allocator was asked for meanwhile.
pub const ALLOCATIONS: &str = "allocations of 1,000 hits";

fn run(context: &Context, row: &Row) -> Result<Vec<Entry>, String> {
    let (subject, keys) = work::warm::<u64, Ours<u64>>();
    // What this thread sets up once for this cache is no part of a hit.
    work::async_hits(&subject, &keys, 1_000);
    let ((), allocated) = watch(|| work::async_hits(&subject, &keys, 1_000));
    let contenders =
        vec![Contender::timed(OURS, move |count| work::async_hits(&subject, &keys, count)), {
            let (subject, keys) = work::warm::<u64, Ours<u64>>();
            Contender::timed(SYNC, move |count| work::hits(&subject, &keys, count))
        }];
    let mut entries = context.compete(contenders);
    if context.counting != super::Counting::Nothing {
        entries[0].instructions = instructions::count(row.name, OURS).ok();
        entries[1].instructions = instructions::count("hit-u64", OURS).ok();
    }
    entries.push(Entry::new(ALLOCATIONS, Series::exact(allocated.calls as f64)));
    Ok(entries)
}
