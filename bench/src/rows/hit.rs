//! Hits by key on one thread: the value is read while it is kept alive, and let go.

use grainstore::{KernelKey, PlanKey};

use super::{Context, Entry, Row};
use crate::instructions::ARC;
use crate::keys::{Numbered, PlainKernel, PlainPlan};
use crate::measure::rounds::Contender;
use crate::subject::{Subject, Visit, each};
use crate::work::{self, Padded};

pub(super) const U64: Row = Row {
    name: "hit-u64",
    about: "a hit, a number as the key, one thread",
    unit: "ns",
    run: run::<u64>,
};

pub(super) const KERNEL: Row = Row {
    name: "hit-kernel",
    about: "a hit by KernelKey, one thread; the peers are given our key",
    unit: "ns",
    run: run::<KernelKey>,
};

pub(super) const KERNEL_PLAIN: Row = Row {
    name: "hit-kernel-plain",
    about: "a hit by a plain struct with the fields of a KernelKey, one thread",
    unit: "ns",
    run: run::<PlainKernel>,
};

pub(super) const PLAN: Row = Row {
    name: "hit-plan",
    about: "a hit by PlanKey, one thread; the peers are given our key",
    unit: "ns",
    run: run::<PlanKey>,
};

pub(super) const PLAN_PLAIN: Row = Row {
    name: "hit-plan-plain",
    about: "a hit by a plain struct with the fields of a PlanKey, one thread",
    unit: "ns",
    run: run::<PlainPlan>,
};

fn run<K: Numbered>(context: &Context, row: &Row) -> Result<Vec<Entry>, String> {
    let mut hits = Hits { context, contenders: Vec::new() };
    each::<K>(&mut hits);
    let mut contenders = hits.contenders;
    if context.wants(ARC) {
        let value = Padded::shared();
        contenders.push(Contender::timed(ARC, move |count| work::arc(&value, count)));
    }
    let mut entries = context.compete(contenders);
    context.count(row.name, &mut entries);
    Ok(entries)
}

struct Hits<'a> {
    context: &'a Context,
    contenders: Vec<Contender>,
}

impl<K: Numbered> Visit<K> for Hits<'_> {
    fn visit<S: Subject<K>>(&mut self) {
        if self.context.wants(S::NAME) {
            let (subject, keys) = work::warm::<K, S>();
            self.contenders.push(Contender::timed(S::NAME, move |count| {
                work::hits(&subject, &keys, count);
            }));
        }
    }
}
