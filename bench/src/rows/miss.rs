//! Misses whose build does nothing, in a cache that is full: a victim is found and released, and the
//! new value installed.

use super::{Context, Entry, Row};
use crate::measure::rounds::Contender;
use crate::subject::quick_cache::{QuickCache, QuickCachePinning};
use crate::subject::{Subject, Visit, each};
use crate::work;

const ABOUT: &str = "a miss whose build does nothing, in a full cache";
const ABOUT_PINNED: &str = "the same, with nine of ten values in use";

pub(super) const SMALL: Row = Row {
    name: "miss-1000",
    about: ABOUT,
    unit: "ns",
    run: |context, row| run(context, row, 1_000),
};

pub(super) const LARGE: Row = Row {
    name: "miss-100000",
    about: ABOUT,
    unit: "ns",
    run: |context, row| run(context, row, 100_000),
};

pub(super) const SMALL_PINNED: Row = Row {
    name: "miss-1000-pinned",
    about: ABOUT_PINNED,
    unit: "ns",
    run: |context, _| run_pinned(context, 1_000),
};

pub(super) const LARGE_PINNED: Row = Row {
    name: "miss-100000-pinned",
    about: ABOUT_PINNED,
    unit: "ns",
    run: |context, _| run_pinned(context, 100_000),
};

/// quick_cache, told what is in use.
pub const QUICK_PINNING: &str = <QuickCachePinning<u64> as Subject<u64>>::NAME;
/// quick_cache as it comes, which knows no pins: it may evict what is in use.
const UNPINNED: &str = "quick_cache, none pinned";

fn run(context: &Context, row: &Row, entries: u64) -> Result<Vec<Entry>, String> {
    struct Misses<'a> {
        context: &'a Context,
        entries: u64,
        contenders: Vec<Contender>,
    }
    impl Visit<u64> for Misses<'_> {
        fn visit<S: Subject<u64>>(&mut self) {
            if S::BOUNDED && self.context.wants(S::NAME) {
                self.contenders.push(contender::<S>(S::NAME, self.entries, 0));
            }
        }
    }
    let mut misses = Misses { context, entries, contenders: Vec::new() };
    each::<u64>(&mut misses);
    let mut entries = context.compete(misses.contenders);
    if row.name == SMALL.name {
        context.count(row.name, &mut entries);
    }
    Ok(entries)
}

fn run_pinned(context: &Context, entries: u64) -> Result<Vec<Entry>, String> {
    type Ours = crate::subject::ours::Ours<u64>;
    type Pinning = QuickCachePinning<u64>;
    let pinned = entries / 10 * 9;
    let mut contenders = vec![contender::<Ours>(Ours::NAME, entries, pinned)];
    if context.wants(Pinning::NAME) {
        contenders.push(contender::<Pinning>(Pinning::NAME, entries, pinned));
        contenders.push(contender::<QuickCache<u64>>(UNPINNED, entries, 0));
    }
    Ok(context.compete(contenders))
}

fn contender<S: Subject<u64>>(name: &str, entries: u64, pinned: u64) -> Contender {
    let (subject, mut next) = work::full::<S>(entries);
    let pins: Vec<S::Pin> = (0..pinned).map(|key| subject.get_or_build(&key, || 1)).collect();
    // What is not pinned turns over once, so that what is measured goes on for ever.
    work::misses(&subject, &mut next, entries - pinned);
    Contender::timed(name, move |count| {
        let _held = &pins;
        work::misses(&subject, &mut next, count);
    })
}
