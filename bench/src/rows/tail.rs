//! The slow hits: one thread asks for one key, while another builds, evicts, clears and reaps
//! without pause.

use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::{Context, Entry, Row};
use crate::measure::pair::{Counts, Phase, Side};
use crate::measure::rounds::{Attempt, Contender};
use crate::measure::series::quantile;
use crate::subject::{Subject, Visit, each};

pub(super) const TAIL: Row = Row {
    name: "tail",
    about: "p99.9 of a hit, while another thread builds, evicts, clears and reaps without pause",
    unit: "ns",
    run,
};

/// So small that the other thread's builds evict all the time.
const CAPACITY: usize = 64;
/// Asked for by the thread that is timed.
const HOT_KEY: u64 = 0;
/// Hits in one round: what is above p99.9 of them are 8. More would take so long that a busy machine
/// disturbs each round.
const HITS: u64 = 8_000;
/// Builds between two clears.
const BUILDS_A_CLEAR: u64 = 256;

fn run(context: &Context, _row: &Row) -> Result<Vec<Entry>, String> {
    struct Tails<'a> {
        context: &'a Context,
        contenders: Vec<Contender>,
        pair: Rc<crate::measure::pair::Pair>,
    }
    impl Visit<u64> for Tails<'_> {
        fn visit<S: Subject<u64>>(&mut self) {
            if !self.context.wants(S::NAME) {
                return;
            }
            let subject = Arc::new(S::new(CAPACITY));
            let times = Arc::new(Mutex::new(Vec::new()));
            let mut sides =
                [Some(asking(Arc::clone(&subject), Arc::clone(&times))), Some(churning(subject))];
            let pair = Rc::clone(&self.pair);
            let overhead = clock_overhead();
            self.contenders.push(Contender::new(S::NAME, move || {
                let attempt = pair.attempt(&mut sides, [HITS, u64::MAX], Counts::First);
                let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
                times.sort_by(f64::total_cmp);
                let slow = quantile(&times, 0.999);
                // No hit at all, if the two sides did not come together: no figure either.
                let value = if slow.is_nan() { slow } else { (slow - overhead).max(0.0) };
                Attempt { value, quiet: attempt.quiet }
            }));
        }
    }
    let pair = context.pair.clone()?;
    let mut tails = Tails { context, contenders: Vec::new(), pair };
    each::<u64>(&mut tails);
    Ok(context.compete_patiently(tails.contenders, 4))
}

/// Times each hit alone. A request that had to build, since the other thread put the key out, is no
/// hit and is not noted.
fn asking<S: Subject<u64>>(subject: Arc<S>, times: Arc<Mutex<Vec<f64>>>) -> Side {
    Box::new(move |count, phase| {
        let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
        if phase == Phase::WarmUp {
            times.clear();
        }
        for _ in 0..count {
            let mut built = false;
            let start = Instant::now();
            let pin = subject.get_or_build(&HOT_KEY, || {
                built = true;
                1
            });
            std::hint::black_box(*pin);
            drop(pin);
            let took = start.elapsed();
            if phase == Phase::Timed && !built {
                times.push(took.as_nanos() as f64);
            }
        }
    })
}

fn churning<S: Subject<u64>>(subject: Arc<S>) -> Side {
    let mut next = HOT_KEY + 1;
    Box::new(move |_, _| {
        // A few at a time, so that this side stops soon after the other.
        for _ in 0..8 {
            drop(subject.get_or_build(&next, || 1));
            if next.is_multiple_of(BUILDS_A_CLEAR) {
                subject.clear();
            }
            if next.is_multiple_of(BUILDS_A_CLEAR / 4) {
                subject.reap();
            }
            next += 1;
        }
    })
}

/// What the clock adds to a time that is nothing.
fn clock_overhead() -> f64 {
    let mut times: Vec<f64> = (0..10_000)
        .map(|_| {
            let start = Instant::now();
            start.elapsed().as_nanos() as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    quantile(&times, 0.5)
}
