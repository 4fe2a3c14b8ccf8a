//! Several ways to do the same work, in turn.

use std::time::{Duration, Instant};

use crate::Result;

/// By so many batches are the ways apart, so that none reads what another has just read.
pub(crate) const APART: usize = 3;

/// One way: does a batch, and is told which one it is.
pub(crate) type Way<'a> = (&'a str, &'a mut dyn FnMut(usize) -> Result);

/// The time of a batch by each way: the median of this many.
pub(crate) fn medians(rounds: usize, ways: &mut [Way<'_>]) -> Result<Vec<Duration>> {
    let mut times = vec![Vec::with_capacity(rounds); ways.len()];
    for round in 0..rounds {
        for turn in 0..ways.len() {
            // Each is the first as often as the others: who comes first may find colder caches.
            let at = (round + turn) % ways.len();
            let began = Instant::now();
            (ways[at].1)(round + at * APART)?;
            times[at].push(began.elapsed());
        }
    }
    Ok(times.into_iter().map(median).collect())
}

pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Prints each way's time for one of a batch of `of`, and its ratio to the last way, which is the
/// plainest. `goals` are those of the first ways.
pub(crate) fn print(title: &str, ways: &[Way<'_>], times: &[Duration], of: usize, goals: &[f64]) {
    println!("{title}");
    let base = times.last().map_or(1.0, Duration::as_secs_f64);
    for (at, ((name, _), time)) in ways.iter().zip(times).enumerate() {
        let each = time.as_secs_f64() * 1e6 / of as f64;
        let ratio = time.as_secs_f64() / base;
        let verdict = goals.get(at).map_or_else(String::new, |goal| judged(ratio, *goal));
        println!("  {name:<48} {each:9.2} us {ratio:7.2} x{verdict}");
    }
}

/// A ratio that is to be at most so much, in words.
pub(crate) fn judged(ratio: f64, goal: f64) -> String {
    format!("  (goal {goal} x: {})", if ratio <= goal { "met" } else { "MISSED" })
}
