//! Hits on two threads at once, each on a processor of its own.

use std::rc::Rc;
use std::sync::Arc;

use super::{Context, Entry, Row};
use crate::keys::first;
use crate::measure::pair::{Counts, Pair, Side};
use crate::measure::rounds::Contender;
use crate::subject::ours::Ours;
use crate::subject::{Subject, Visit, each};
use crate::work::{self, Padded};

pub(super) const ONE_KEY: Row = Row {
    name: "hot-two",
    about: "hits on one hot key, two threads at once; what one hit takes each of them",
    unit: "ns",
    run: one_key,
};

pub(super) const MANY_KEYS: Row = Row {
    name: "many-two",
    about: "hits on 64 keys, two threads at once; what one hit takes each of them",
    unit: "ns",
    run: many_keys,
};

/// Our own hit on the same key, on one thread alone, in the same rounds.
pub const ALONE: &str = "grainstore, one thread";
/// Nothing that the two share.
pub const ARC_EACH: &str = "Arc clone and drop, one each";
/// The one counter that every `Arc` handed out shares.
pub const ARC_SHARED: &str = "Arc clone and drop, shared";

fn one_key(context: &Context, _row: &Row) -> Result<Vec<Entry>, String> {
    let pair = context.pair.clone()?;
    let mut contenders = on_both(context, &pair, 1);
    let (subject, keys) = work::warm::<u64, Ours<u64>>();
    contenders.push(Contender::timed(ALONE, move |count| work::hits(&subject, &keys[..1], count)));
    let value = Padded::shared();
    contenders.push(both(&pair, ARC_EACH, || {
        let value = Padded::shared();
        Box::new(move |count, _| work::arc(&value, count))
    }));
    contenders.push(both(&pair, ARC_SHARED, || {
        let value = Arc::clone(&value);
        Box::new(move |count, _| work::arc(&value, count))
    }));
    Ok(context.compete(contenders))
}

fn many_keys(context: &Context, _row: &Row) -> Result<Vec<Entry>, String> {
    let pair = context.pair.clone()?;
    Ok(context.compete(on_both(context, &pair, 64)))
}

/// A contender whose two sides are made by `side`.
pub(super) fn both(pair: &Rc<Pair>, name: &str, side: impl FnMut() -> Side) -> Contender {
    let mut sides = std::array::from_fn({
        let mut side = side;
        move |_| Some(side())
    });
    let pair = Rc::clone(pair);
    let share = pair.share(&mut sides);
    Contender::new(name, move || pair.attempt(&mut sides, [share; 2], Counts::Both))
}

fn on_both(context: &Context, pair: &Rc<Pair>, keys: u64) -> Vec<Contender> {
    struct Both<'a> {
        context: &'a Context,
        pair: &'a Rc<Pair>,
        keys: u64,
        contenders: Vec<Contender>,
    }
    impl Visit<u64> for Both<'_> {
        fn visit<S: Subject<u64>>(&mut self) {
            if !self.context.wants(S::NAME) {
                return;
            }
            let (subject, _) = work::warm::<u64, S>();
            let subject = Arc::new(subject);
            let mut offset = 0;
            let contender = both(self.pair, S::NAME, || {
                let subject = Arc::clone(&subject);
                let mut keys: Vec<u64> = first(self.keys);
                // The two walk the same keys, half a turn apart.
                keys.rotate_left(offset);
                offset += keys.len() / 2;
                Box::new(move |count, _| work::hits(&*subject, &keys, count))
            });
            self.contenders.push(contender);
        }
    }
    let mut visitor = Both { context, pair, keys, contenders: Vec::new() };
    each::<u64>(&mut visitor);
    visitor.contenders
}
