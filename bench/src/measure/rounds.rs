//! Contenders in turn, round after round, so that whatever changes on the machine meets all of them.

use std::time::{Duration, Instant};

use super::quiet::Witness;
use super::series::Series;

/// How long one contender is timed in one round: short enough to fit often between two
/// interruptions, long enough for the clock.
pub(super) const BATCH: Duration = Duration::from_micros(400);

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Undisturbed rounds that each contender should have.
    pub rounds: usize,
    /// When to stop trying, for one row.
    pub time: Duration,
}

/// One try at a value.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// In the row's unit; not a number, if the try came to nothing.
    pub value: f64,
    /// Whether nothing disturbed it.
    pub quiet: bool,
}

/// One of those who do the same work.
pub struct Contender {
    /// What its line in the table is called.
    pub name: String,
    attempt: Box<dyn FnMut() -> Attempt>,
}

impl Contender {
    /// One whose value is whatever an attempt of its own gives.
    pub fn new(name: impl Into<String>, attempt: impl FnMut() -> Attempt + 'static) -> Self {
        Self { name: name.into(), attempt: Box::new(attempt) }
    }

    /// One that is timed on this thread; `work` does its operation so many times. Its value is
    /// nanoseconds for one operation.
    pub fn timed(name: impl Into<String>, mut work: impl FnMut(u64) + 'static) -> Self {
        let count = count_for(BATCH, &mut work);
        Self::new(name, move || {
            // The others were here in between: let the processor learn this code and data again.
            work(count.div_ceil(8));
            let witness = Witness::begin();
            let start = Instant::now();
            work(count);
            let took = start.elapsed();
            Attempt { value: took.as_nanos() as f64 / count as f64, quiet: witness.end() }
        })
    }
}

/// How many operations take about this long.
pub fn count_for(target: Duration, work: &mut impl FnMut(u64)) -> u64 {
    let mut count = 16;
    loop {
        // An interruption makes one of them long, hardly all three.
        let times = [(); 3].map(|()| {
            let start = Instant::now();
            work(count);
            start.elapsed()
        });
        let best = times.iter().min().copied().unwrap_or_default();
        if best * 4 >= target {
            let scale = target.as_secs_f64() / best.as_secs_f64();
            return ((count as f64 * scale) as u64).max(1);
        }
        count *= 2;
    }
}

/// Gives each contender its rounds, in an order that turns, until all have enough or the time is up.
pub fn interleave(budget: Budget, contenders: &mut [Contender]) -> Vec<Series> {
    /// A disturbed try is made again at once, so that the round stays whole.
    const TRIES: usize = 3;
    let mut series = vec![Series::default(); contenders.len()];
    let start = Instant::now();
    let mut round = 0;
    while start.elapsed() < budget.time
        && series.iter().any(|series| series.quiet_rounds() < budget.rounds)
    {
        for turn in 0..contenders.len() {
            let who = (turn + round) % contenders.len();
            for _ in 0..TRIES {
                let attempt = (contenders[who].attempt)();
                series[who].add(attempt.value, attempt.quiet);
                if attempt.quiet {
                    break;
                }
            }
        }
        round += 1;
    }
    series
}
