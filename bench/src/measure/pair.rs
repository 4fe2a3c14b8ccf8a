//! Two threads that really run at the same time, each on a processor of its own.
//!
//! They start at one barrier on which both spin, and stop together: the first that has done its
//! share tells the other. A try counts only if the times of both lie over one another nearly
//! completely and neither thread lost its processor.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::quiet::Witness;
use super::rounds::{Attempt, BATCH};

/// What one side does: so many operations, in a batch that counts or in one to warm up.
pub type Side = Box<dyn FnMut(u64, Phase) + Send>;

/// Why a side is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Before the start: nothing of it counts.
    WarmUp,
    /// Between start and stop.
    Timed,
}

/// Operations between two looks at whether the other side is done.
const STRIDE: u64 = 128;

/// Operations before the start at most.
const WARM_UP: u64 = 10_000;

/// How long to spin for the other side: longer, and it does not have its processor.
const PATIENCE: Duration = Duration::from_millis(3);

/// How much of the time of either the two must have in common.
const OVERLAP: f64 = 0.95;

/// The two threads.
pub struct Pair {
    workers: [Worker; 2],
}

struct Worker {
    jobs: Sender<Job>,
    done: Receiver<Done>,
}

struct Job {
    side: Side,
    share: u64,
    start: Arc<Start>,
}

struct Done {
    side: Side,
    /// Nothing, if the other side did not come in time.
    ran: Option<Ran>,
}

#[derive(Clone, Copy)]
struct Ran {
    begin: Instant,
    end: Instant,
    count: u64,
    quiet: bool,
}

#[derive(Default)]
struct Start {
    /// How often a side has arrived at a meeting.
    arrived: AtomicU32,
    /// Ends both sides: one has done its share, or has waited in vain for the other.
    stop: AtomicBool,
}

impl Start {
    /// Spins until so many arrivals are counted. Nothing, if the other side is late: then it is
    /// stopped too, since it may come through a moment after this one gave up.
    fn meet(&self, arrivals: u32) -> Option<()> {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        let since = Instant::now();
        while self.arrived.load(Ordering::Acquire) < arrivals {
            if since.elapsed() > PATIENCE {
                self.stop.store(true, Ordering::Release);
            }
            if self.stop.load(Ordering::Acquire) {
                return None;
            }
            std::hint::spin_loop();
        }
        Some(())
    }
}

impl Pair {
    /// Starts them.
    ///
    /// # Errors
    /// If this process may use only one processor.
    pub fn new() -> Result<Self, String> {
        let processors = processors();
        if processors.len() < 2 {
            return Err("this process may use only one processor".into());
        }
        Ok(Self { workers: [Worker::start(processors[0]), Worker::start(processors[1])] })
    }

    /// Has both sides work at once, each until one of them has done its share of operations. The value is
    /// the nanoseconds that one operation took, as the threads that count saw it.
    ///
    /// # Panics
    /// If a side panicked.
    pub fn attempt(
        &self,
        sides: &mut [Option<Side>; 2],
        shares: [u64; 2],
        counts: Counts,
    ) -> Attempt {
        let start = Arc::new(Start::default());
        for ((worker, side), share) in self.workers.iter().zip(sides.iter_mut()).zip(shares) {
            let side = side.take().unwrap_or_else(|| panic!("a side is used in two places"));
            let sent = worker.jobs.send(Job { side, share, start: Arc::clone(&start) });
            assert!(sent.is_ok(), "a side of the pair has panicked");
        }
        let mut ran = [None; 2];
        for (index, worker) in self.workers.iter().enumerate() {
            let Ok(done) = worker.done.recv() else { panic!("a side of the pair has panicked") };
            sides[index] = Some(done.side);
            ran[index] = done.ran;
        }
        let [Some(one), Some(other)] = ran else {
            return Attempt { value: f64::NAN, quiet: false };
        };
        let both = one.end.min(other.end).saturating_duration_since(one.begin.max(other.begin));
        let either = one.end.max(other.end) - one.begin.min(other.begin);
        let together = both.as_secs_f64() >= either.as_secs_f64() * OVERLAP;
        let rate = |ran: Ran| (ran.end - ran.begin).as_nanos() as f64 / ran.count as f64;
        let value = match counts {
            Counts::First => rate(one),
            // What an operation cost on the whole, also where a lock favours one side.
            Counts::Both => 2.0 / (1.0 / rate(one) + 1.0 / rate(other)),
        };
        Attempt { value, quiet: together && one.quiet && other.quiet }
    }
}

impl Pair {
    /// How many operations of these sides make a batch.
    pub fn share(&self, sides: &mut [Option<Side>; 2]) -> u64 {
        /// Where no try said how long an operation takes.
        const GUESS: f64 = 50.0;
        let mut times: Vec<f64> = (0..10)
            .map(|_| self.attempt(sides, [STRIDE * 16; 2], Counts::Both).value)
            .filter(|value| value.is_finite())
            .collect();
        times.sort_by(f64::total_cmp);
        let each = times.first().copied().unwrap_or(GUESS);
        (BATCH.as_nanos() as f64 / each) as u64
    }
}

/// Whose operations are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// Those of both sides, as one rate.
    Both,
    /// Those of the first: the other one only gets in its way.
    First,
}

impl Worker {
    fn start(processor: usize) -> Self {
        let (jobs, inbox) = channel::<Job>();
        let (outbox, done) = channel();
        thread::spawn(move || {
            stay_on(processor);
            for Job { mut side, share, start } in inbox {
                let ran = run(&mut side, share, &start);
                if outbox.send(Done { side, ran }).is_err() {
                    return;
                }
            }
        });
        Self { jobs, done }
    }
}

fn run(side: &mut Side, share: u64, start: &Start) -> Option<Ran> {
    side((share / 8).clamp(1, WARM_UP), Phase::WarmUp);
    start.meet(2)?;
    let witness = Witness::begin();
    // Each has looked at its own processor, which takes a while: once more together.
    start.meet(4)?;
    let begin = Instant::now();
    let mut count = 0;
    loop {
        side(STRIDE, Phase::Timed);
        count += STRIDE;
        if count >= share {
            start.stop.store(true, Ordering::Release);
        }
        if start.stop.load(Ordering::Acquire) {
            break;
        }
    }
    let end = Instant::now();
    Some(Ran { begin, end, count, quiet: witness.end() })
}

/// The processors that this process may use.
#[cfg(target_os = "linux")]
fn processors() -> Vec<usize> {
    use nix::sched::{CpuSet, sched_getaffinity};
    use nix::unistd::Pid;
    let Ok(allowed) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu).unwrap_or(false)).collect()
}

#[cfg(target_os = "linux")]
fn stay_on(processor: usize) {
    use nix::sched::{CpuSet, sched_setaffinity};
    use nix::unistd::Pid;
    let mut only = CpuSet::new();
    // A refusal leaves the choice to the kernel; whether the two ran at once is checked anyway.
    let _ = only.set(processor).and_then(|()| sched_setaffinity(Pid::from_raw(0), &only));
}

#[cfg(not(target_os = "linux"))]
fn processors() -> Vec<usize> {
    (0..thread::available_parallelism().map_or(1, usize::from)).collect()
}

#[cfg(not(target_os = "linux"))]
fn stay_on(_processor: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_whose_partner_gave_up_does_not_work_for_ever() {
        let start = Start::default();
        assert_eq!(start.meet(2), None, "nobody else came");
        let mut side: Side = Box::new(|_, _| {});
        let ran = run(&mut side, u64::MAX, &start);
        assert!(ran.is_none_or(|ran| ran.count == STRIDE));
    }
}
