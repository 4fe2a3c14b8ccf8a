//! Launches that go on for minutes while everything under them is torn down, over and over.
//!
//! In rounds of some seconds, each with a backend of its own: eight threads launch kernels and plans
//! and check every number, two do the work that plans left for later, and two tear down: they clear,
//! remove, evict, destroy devices that come back, reset handles. Kernels and plans are deferred by
//! pins that are held on purpose and by work that is not done. A round ends in a shutdown under full
//! load, after which no native handle may be left and every value must have been released once.

mod ground;
mod launches;
mod plans;
mod random;
mod tally;
mod teardowns;

use std::env;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use grainstore::Statistics;

pub use tally::Tally;

use ground::Ground;
use launches::{Launcher, finish_work};
use random::Random;

use crate::gate::BOUND;
use crate::memory::Memory;
use crate::trouble::{Check, Trouble};
use crate::{Subject, Verdict, battery};

/// Says that the battery's program is to soak instead, and for how many seconds.
const SECONDS: &str = "GRAINSTORE_SOAK_SECONDS";
const SEED: &str = "GRAINSTORE_SOAK_SEED";

const ROUND: Duration = Duration::from_secs(5);
const LAUNCHERS: u64 = 8;
const WORKERS: u64 = 2;
const DISTURBERS: u64 = 2;
/// Work that waits; more of it is done by whoever brings it.
const QUEUE: usize = 4;
/// How soon a stop is noticed.
const GLANCE: Duration = Duration::from_millis(100);

/// Soaks the subject's backend for so long, or until `stop` is set. What each thread does follows
/// from the seed; what meets what does not.
pub fn soak<S: Subject>(subject: S, length: Duration, seed: u64, stop: &AtomicBool) -> Tally {
    let subject = Arc::new(subject);
    let mut tally = Tally::new(subject.name());
    // Compiled once for all rounds, unless a teardown forgets it.
    let store = Memory::default();
    let mut outcome = Ok(());
    for number in 0.. {
        let left = length.saturating_sub(tally.elapsed);
        if outcome.is_err() || left.is_zero() || stop.load(Ordering::Relaxed) {
            break;
        }
        outcome = round(&subject, &store, [seed, number], left.min(ROUND), stop, &mut tally);
    }
    tally.verdict = battery::settle(subject.name(), outcome);
    tally
}

/// How long a soak the variables ask for, if they do.
pub(crate) fn asked_for() -> Option<Duration> {
    number(SECONDS).map(Duration::from_secs)
}

/// Soaks, with Ctrl-C to end it, and prints what came of it.
pub(crate) fn serve<S: Subject>(subject: S, length: Duration) -> ExitCode {
    let stop = Arc::new(AtomicBool::new(false));
    // Where that is refused, Ctrl-C ends the process as it always does.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&stop));
    let tally = soak(subject, length, number(SEED).unwrap_or_default(), &stop);
    match &tally.verdict {
        Verdict::Passed => println!("soak: {tally}"),
        Verdict::NotRun(reason) => println!("not run: soak of {}: {reason}", tally.subject),
        Verdict::Failed(reason) => {
            println!("soak: {tally}");
            eprintln!("{reason}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().and_then(|text| text.trim().parse().ok())
}

fn round<S: Subject>(
    subject: &Arc<S>,
    store: &Memory,
    [seed, number]: [u64; 2],
    length: Duration,
    stop: &AtomicBool,
    tally: &mut Tally,
) -> Check {
    let ground = Arc::new(Ground::new(subject, store)?);
    let threads = start(&ground, seed, number);
    // The time in which the first kernel is compiled soaks nothing.
    let launched = ground.launched.more(1);
    let began = Instant::now();
    while launched.is_ok() && began.elapsed() < length && !stop.load(Ordering::Relaxed) {
        thread::park_timeout(GLANCE.min(length.saturating_sub(began.elapsed())));
    }
    // Under full load.
    if let Err(error) = ground.runtime.shutdown() {
        ground.fault(format!("at the shutdown: {error}"));
    }
    ground.launched.end();
    let ended = launched.and(threads.join());
    tally.elapsed += began.elapsed();
    for (sum, count) in [
        (&mut tally.launches, &ground.launches),
        (&mut tally.teardowns, &ground.teardowns),
        (&mut tally.deferred, &ground.deferred),
    ] {
        *sum += count.load(Ordering::Relaxed);
    }
    if let Err(trouble) = ended {
        tally.wrong += 1;
        return Err(trouble);
    }
    let left = leave(&ground);
    tally.handles += left as u64;
    let (wrong, told) = ground.faults();
    tally.wrong += wrong;
    if wrong > 0 || left > 0 {
        let told = told.join("\n");
        return Err(Trouble::failed(format!(
            "round {number} of seed {seed}: {wrong} faults, {left} handles left\n{told}"
        )));
    }
    Ok(())
}

/// The end of a round: how many native handles are left.
fn leave<S: Subject>(ground: &Ground<S>) -> usize {
    let plans = ground.plans.clear();
    if !plans.wait_timeout(BOUND) {
        ground.fault("plans are still held when nobody is left to hold them");
    }
    accounts(ground, "plans", &ground.plans.statistics());
    for cache in ground.runtime.backends() {
        accounts(ground, "kernels", &cache.statistics());
    }
    let loaded = ground.backend.modules();
    if loaded > 0 {
        ground.fault(format!("{loaded} modules are still loaded"));
    }
    ground.subject.live_handles(ground.backend.inner())
}

/// Every value that was built has been released, once; none was given up.
fn accounts<S: Subject>(ground: &Ground<S>, what: &str, figures: &Statistics) {
    let Statistics { built, released, abandoned, entries, retired, release_failures, .. } =
        *figures;
    if built != released || abandoned + entries + retired + release_failures > 0 {
        ground.fault(format!("{what} at the end of a round: {figures:?}"));
    }
}

/// The threads of a round, and how to hear that each has ended.
struct Threads {
    handles: Vec<(String, thread::JoinHandle<()>)>,
    ended: mpsc::Receiver<()>,
}

impl Threads {
    /// Waits for all of them, but not for ever: one that hangs would keep everybody from knowing.
    fn join(self) -> Check {
        let deadline = Instant::now() + BOUND;
        for _ in &self.handles {
            // Each tells of its end, by a message or by letting go of the channel.
            let left = deadline.saturating_duration_since(Instant::now());
            if self.ended.recv_timeout(left) == Err(mpsc::RecvTimeoutError::Timeout) {
                break;
            }
        }
        let mut hang = Vec::new();
        for (name, handle) in self.handles {
            if !handle.is_finished() && Instant::now() >= deadline {
                hang.push(name);
            } else if handle.join().is_err() {
                return Err(Trouble::failed(format!("{name} panicked")));
            }
        }
        if hang.is_empty() {
            return Ok(());
        }
        Err(Trouble::failed(format!("after {BOUND:?} these threads hang: {}", hang.join(", "))))
    }
}

fn start<S: Subject>(ground: &Arc<Ground<S>>, seed: u64, round: u64) -> Threads {
    let (later, queue) = mpsc::sync_channel(QUEUE);
    let queue = Arc::new(Mutex::new(queue));
    let (end, ended) = mpsc::channel();
    let mut handles = Vec::new();
    let mut spawn = |name: String, body: Box<dyn FnOnce() + Send>| {
        let end = end.clone();
        let handle = thread::spawn(move || {
            body();
            let _ = end.send(());
        });
        handles.push((name, handle));
    };
    for number in 0..LAUNCHERS {
        let (ground, later) = (Arc::clone(ground), later.clone());
        let random = Random::new(seed, round, number);
        let run = move || Launcher::new(&ground, random, later).run();
        spawn(format!("launcher {number}"), Box::new(run));
    }
    for number in 0..WORKERS {
        let (ground, queue) = (Arc::clone(ground), Arc::clone(&queue));
        spawn(format!("worker {number}"), Box::new(move || finish_work(&ground, &queue)));
    }
    for number in 0..DISTURBERS {
        let ground = Arc::clone(ground);
        let random = Random::new(seed, round, LAUNCHERS + number);
        spawn(format!("teardown {number}"), Box::new(move || teardowns::run(&ground, random)));
    }
    Threads { handles, ended }
}
