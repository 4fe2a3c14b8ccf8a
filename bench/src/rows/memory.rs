//! Memory beyond keys and values, as the allocator sees it.

use super::{Context, Entry, Row};
use crate::allocator::watch;
use crate::measure::series::Series;
use crate::subject::{Subject, Visit, each};

pub(super) const MEMORY: Row = Row {
    name: "memory",
    about: "memory of an entry beyond its key and value, at 10,000 entries",
    unit: "bytes",
    run,
};

const ENTRIES: u64 = 10_000;
/// A number for a key and a number for a value.
const KEY_AND_VALUE: f64 = 16.0;

fn run(context: &Context, _row: &Row) -> Result<Vec<Entry>, String> {
    struct Sizes<'a> {
        context: &'a Context,
        entries: Vec<Entry>,
    }
    impl Visit<u64> for Sizes<'_> {
        fn visit<S: Subject<u64>>(&mut self) {
            if !self.context.wants(S::NAME) {
                return;
            }
            // What a process or a thread sets up once is no part of an entry.
            drop(fill::<S>());
            let (_subject, allocated) = watch(fill::<S>);
            let each = allocated.bytes as f64 / ENTRIES as f64 - KEY_AND_VALUE;
            self.entries.push(Entry::new(S::NAME, Series::exact(each)));
        }
    }
    let mut sizes = Sizes { context, entries: Vec::new() };
    each::<u64>(&mut sizes);
    Ok(sizes.entries)
}

fn fill<S: Subject<u64>>() -> S {
    let subject = S::new(ENTRIES as usize);
    for key in 0..ENTRIES {
        drop(subject.get_or_build(&key, || 1));
    }
    subject
}
