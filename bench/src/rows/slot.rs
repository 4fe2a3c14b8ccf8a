//! Hits by a slot that the caller holds, beside an `Arc` that nobody else touches.

use std::sync::Arc;

use grainstore::Slot;

use super::two_threads::{ARC_EACH, both};
use super::{Context, Entry, Row};
use crate::instructions::{ARC, OURS};
use crate::measure::rounds::Contender;
use crate::subject::ours::Ours;
use crate::work::{self, Padded};

pub(super) const ONE_THREAD: Row =
    Row { name: "slot", about: "a hit by slot, one thread", unit: "ns", run: one_thread };

pub(super) const TWO_THREADS: Row = Row {
    name: "slot-two",
    about: "hits by slot on one hot key, two threads at once, a slot for each",
    unit: "ns",
    run: two_threads,
};

fn one_thread(context: &Context, row: &Row) -> Result<Vec<Entry>, String> {
    let (_cache, mut slot) = hot_slot();
    let value = Padded::shared();
    let mut entries = context.compete(vec![
        Contender::timed(OURS, move |count| work::slot_hits(&mut slot, count)),
        Contender::timed(ARC, move |count| work::arc(&value, count)),
    ]);
    context.count(row.name, &mut entries);
    Ok(entries)
}

fn two_threads(context: &Context, _row: &Row) -> Result<Vec<Entry>, String> {
    let pair = context.pair.clone()?;
    let (cache, _slot) = hot_slot();
    let ours = both(&pair, OURS, || {
        let mut slot = cache.0.slot(0);
        Box::new(move |count, _| work::slot_hits(&mut slot, count))
    });
    let bare = both(&pair, ARC_EACH, || {
        let value: Arc<Padded> = Padded::shared();
        Box::new(move |count, _| work::arc(&value, count))
    });
    Ok(context.compete(vec![ours, bare]))
}

/// A warm cache and a slot for the first of its keys.
fn hot_slot() -> (Ours<u64>, Slot<u64, u64>) {
    let (cache, keys) = work::warm::<u64, Ours<u64>>();
    let slot = cache.0.slot(keys[0]);
    (cache, slot)
}
