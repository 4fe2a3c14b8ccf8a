//! What a store has done, counted: in this process, and over all processes.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::Rejection;
use crate::folder::Folder;
use crate::lock::{self, Place, Waited};

const REASONS: usize = Rejection::NAMES.len();
const FIGURES: usize = 12;
const ALL: usize = FIGURES + REASONS + 1;

/// The file with the figures of all processes: a `u64` for each, little-endian, in the order of
/// [`Figure`], with the reasons for rejection before the later ones. New ones are added at its end.
const NAME: &str = "figures";
/// How often a look-up carries the figures there. Puts and the store's end do so as well.
const CARRY_EVERY: Duration = Duration::from_secs(1);
/// How long that waits for another process that does the same. It takes it microseconds.
const CARRY_WAIT: Duration = Duration::from_millis(50);

/// Figures of one opened store since it was opened, or of one folder over all processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Look-ups that gave a group.
    pub hits: u64,
    /// Look-ups that gave none: there was no file, or one that was rejected.
    pub misses: u64,
    /// Look-ups that waited for another thread or process to make the artifact.
    pub waited: u64,
    /// Look-ups that ended with an error: an untrusted file, a failing disk.
    pub read_failures: u64,
    /// Files that were there but not what was asked for, by the reason's name. Reasons that never
    /// occurred are left out.
    pub rejected: Vec<(&'static str, u64)>,
    /// Groups written.
    pub writes: u64,
    /// Artifacts that came from bundles, as they were. They are not among the writes.
    pub imported: u64,
    /// Groups and artifacts that could not be written.
    pub write_failures: u64,
    /// Artifacts removed because somebody asked for it.
    pub removed: u64,
    /// Files removed since the store had outgrown its bound.
    pub pruned: u64,
    /// Temporary files of processes that died while writing, cleared away.
    pub swept: u64,
    /// How long it had taken to make what the hits gave, where that is known: what they saved.
    pub saved: Duration,
    /// How long it took to make what was written, where that is known.
    pub compile_time: Duration,
    /// Loads that ended a process, found by whoever opened the store next.
    pub crashes: u64,
}

/// What is counted. The order is that of the file.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub(crate) enum Figure {
    Hits,
    Misses,
    Waited,
    ReadFailures,
    Writes,
    WriteFailures,
    Removed,
    Pruned,
    Swept,
    /// In nanoseconds, as all times here.
    Saved,
    CompileTime,
    /// Files whose loading ended a process, found when the store was opened.
    Crashes,
    // Behind the reasons for rejection.
    Imported = FIGURES + REASONS,
}

/// The live counters. Each is a fact of its own, so no order among them is promised.
#[derive(Debug)]
pub(crate) struct Counters {
    all: [AtomicU64; ALL],
    /// Whether they are carried to the file at all.
    carries: bool,
    /// What of each has been carried to the file.
    carried: [AtomicU64; ALL],
    opened: Instant,
    /// When it was last carried, in milliseconds since it was opened.
    carried_at: AtomicU64,
    /// A forked child has its parent's counters, which are the parent's to carry.
    process: AtomicU32,
}

impl Counters {
    /// None has counted yet. Only what `carries` writes to the file.
    pub(crate) fn new(carries: bool) -> Self {
        Self {
            all: [const { AtomicU64::new(0) }; ALL],
            carries,
            carried: [const { AtomicU64::new(0) }; ALL],
            opened: Instant::now(),
            carried_at: AtomicU64::new(0),
            process: AtomicU32::new(std::process::id()),
        }
    }

    pub(crate) fn count(&self, figure: Figure) {
        self.add(figure, 1);
    }

    pub(crate) fn add(&self, figure: Figure, number: u64) {
        self.all[figure as usize].fetch_add(number, Relaxed);
    }

    pub(crate) fn add_time(&self, figure: Figure, time: Option<Duration>) {
        let nanos = time.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.add(figure, nanos);
    }

    pub(crate) fn reject(&self, rejection: &Rejection) {
        self.count(Figure::Misses);
        self.all[FIGURES + rejection.index()].fetch_add(1, Relaxed);
    }

    pub(crate) fn read(&self) -> Statistics {
        statistics(&std::array::from_fn(|at| self.all[at].load(Relaxed)))
    }

    /// Carries them to the file if that was not done for a while.
    pub(crate) fn carry_sometimes(&self, folder: &Folder) {
        let now = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        let last = self.carried_at.load(Relaxed);
        if now.saturating_sub(last) >= CARRY_EVERY.as_millis() as u64
            && self.carried_at.compare_exchange(last, now, Relaxed, Relaxed).is_ok()
        {
            self.carry(folder, Duration::ZERO);
        }
    }

    /// Carries them to the file now.
    pub(crate) fn carry_now(&self, folder: &Folder) {
        self.carry(folder, CARRY_WAIT);
    }

    /// What could not be carried is carried the next time. Where there are no locks, what two
    /// processes carry at once may count once.
    fn carry(&self, folder: &Folder, wait: Duration) {
        if !self.carries {
            return;
        }
        let me = std::process::id();
        let is_forked = self.process.swap(me, Relaxed) != me;
        let is_new = |at: usize| self.all[at].load(Relaxed) != self.carried[at].load(Relaxed);
        if is_forked || !(0..ALL).any(is_new) {
            for (all, carried) in self.all.iter().zip(&self.carried) {
                carried.fetch_max(all.load(Relaxed), Relaxed);
            }
            return;
        }
        let _lock = match lock::wait(folder, Place::FIGURES, wait, |_| false) {
            Waited::Held { lock, .. } => Some(lock),
            Waited::TooLong => return,
            Waited::NoLocks => None,
        };
        let mut overall = read_file(folder);
        for (at, sum) in overall.iter_mut().enumerate() {
            let now = self.all[at].load(Relaxed);
            let before = self.carried[at].fetch_max(now, Relaxed);
            *sum = sum.saturating_add(now.saturating_sub(before));
        }
        let bytes: Vec<u8> = overall.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        // What can't be written is lost: figures are not worth an error.
        let _ = folder.write_in_place(NAME, &bytes);
    }
}

/// The figures over all processes, as far as they have been carried to the file.
pub(crate) fn overall(folder: &Folder) -> Statistics {
    statistics(&read_file(folder))
}

fn read_file(folder: &Folder) -> [u64; ALL] {
    const MOST: u64 = 1 << 16;
    let bytes = folder.read(NAME, MOST, None).ok().flatten().unwrap_or_default();
    let mut numbers =
        bytes.chunks_exact(8).map(|number| number.try_into().map_or(0, u64::from_le_bytes));
    std::array::from_fn(|_| numbers.next().unwrap_or(0))
}

fn statistics(numbers: &[u64; ALL]) -> Statistics {
    let of = |figure: Figure| numbers[figure as usize];
    let rejected = Rejection::NAMES.into_iter().zip(numbers[FIGURES..].iter().copied());
    Statistics {
        hits: of(Figure::Hits),
        misses: of(Figure::Misses),
        waited: of(Figure::Waited),
        read_failures: of(Figure::ReadFailures),
        rejected: rejected.filter(|(_, count)| *count > 0).collect(),
        writes: of(Figure::Writes),
        imported: of(Figure::Imported),
        write_failures: of(Figure::WriteFailures),
        removed: of(Figure::Removed),
        pruned: of(Figure::Pruned),
        swept: of(Figure::Swept),
        saved: Duration::from_nanos(of(Figure::Saved)),
        compile_time: Duration::from_nanos(of(Figure::CompileTime)),
        crashes: of(Figure::Crashes),
    }
}
