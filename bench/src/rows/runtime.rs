//! A hit through the runtime, with its handles and specs, beside one of the plain cache by key.

use grainstore::KernelKey;

use super::{Context, Counting, Entry, Row};
use crate::instructions::{self, OURS};
use crate::measure::rounds::Contender;
use crate::runtime::Warm;
use crate::subject::ours::Ours;
use crate::work;

pub(super) const RUNTIME: Row = Row {
    name: "hit-runtime",
    about: "a hit by Runtime::kernel, its module read, beside get_or_build by KernelKey",
    unit: "ns",
    run,
};

/// Our hit without a runtime.
pub const PLAIN: &str = "grainstore, by KernelKey";

fn run(context: &Context, row: &Row) -> Result<Vec<Entry>, String> {
    let warm = Warm::new();
    let (subject, keys) = work::warm::<KernelKey, Ours<KernelKey>>();
    let mut entries = context.compete(vec![
        Contender::timed(OURS, move |count| work::runtime_hits(&warm, count)),
        Contender::timed(PLAIN, move |count| work::hits(&subject, &keys, count)),
    ]);
    if context.counting != Counting::Nothing {
        entries[0].instructions = instructions::count(row.name, OURS).ok();
        entries[1].instructions = instructions::count("hit-kernel", OURS).ok();
    }
    Ok(entries)
}
