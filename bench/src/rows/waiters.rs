//! 64 threads that wait for one build: from the build's end until the last of them goes on, beside
//! a bare `Condvar::notify_all`.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use grainstore::Cache;

use super::{Context, Entry, Row};
use crate::instructions::OURS;
use crate::measure::quiet;
use crate::measure::rounds::{Attempt, Contender};

pub(super) const WAITERS: Row = Row {
    name: "waiters",
    about: "from the end of a build until the last of 64 threads that wait for it goes on",
    unit: "us",
    run,
};

/// The least that waking so many threads takes.
pub const CONDVAR: &str = "Condvar::notify_all";

const CROWD: usize = 64;
/// How long a crowd that is known to wait is left alone, so that all of them sleep.
const SETTLE: Duration = Duration::from_micros(500);

fn run(context: &Context, _row: &Row) -> Result<Vec<Entry>, String> {
    Ok(context.compete(vec![ours(), bare()]))
}

fn ours() -> Contender {
    let cache: Cache<u64, u64> = Cache::builder()
        .capacity(8)
        .build()
        .unwrap_or_else(|error| panic!("8 places were refused: {error}"));
    let key = Arc::new(AtomicU64::new(0));
    let crowd = Crowd::new({
        let (cache, key) = (cache.clone(), Arc::clone(&key));
        move || {
            let key = key.load(Ordering::Acquire);
            // Somebody else's build, never its own: the crowd comes when that one runs.
            let value = cache.get_or_build(&key, || Err::<u64, _>("nobody led the build"));
            assert!(value.is_ok(), "a waiter was not served");
        }
    });
    Contender::new(OURS, move || {
        let key = key.fetch_add(1, Ordering::AcqRel) + 1;
        let before = cache.statistics().waits;
        let mut ended = Instant::now();
        let value = cache.get_or_build(&key, || {
            crowd.come();
            settle(|| cache.statistics().waits == before + CROWD as u64);
            ended = Instant::now();
            Ok::<_, Infallible>(1)
        });
        assert!(value.is_ok(), "the build was refused");
        crowd.time_since(ended)
    })
}

fn bare() -> Contender {
    #[derive(Default)]
    struct Door {
        /// How often it was opened, and who waits for the next time.
        state: Mutex<(u64, usize)>,
        opened: Condvar,
    }
    let door = Arc::new(Door::default());
    let crowd = Crowd::new({
        let door = Arc::clone(&door);
        move || {
            let mut state = lock(&door.state);
            state.1 += 1;
            let seen = state.0;
            while state.0 == seen {
                state = door.opened.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    });
    Contender::new(CONDVAR, move || {
        crowd.come();
        settle(|| lock(&door.state).1 == CROWD);
        let ended = Instant::now();
        let mut state = lock(&door.state);
        *state = (state.0 + 1, 0);
        drop(state);
        door.opened.notify_all();
        crowd.time_since(ended)
    })
}

/// Until this is so, and a little longer.
fn settle(all_wait: impl Fn() -> bool) {
    while !all_wait() {
        thread::yield_now();
    }
    let since = Instant::now();
    while since.elapsed() < SETTLE {
        thread::yield_now();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Threads that do the same thing once each time they are asked to come.
struct Crowd {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    come: Barrier,
    gone: Barrier,
    leave: AtomicBool,
    left: AtomicUsize,
    last: Mutex<Instant>,
}

impl Crowd {
    fn new(wait: impl Fn() + Send + Sync + 'static) -> Self {
        let shared = Arc::new(Shared {
            come: Barrier::new(CROWD + 1),
            gone: Barrier::new(CROWD + 1),
            leave: AtomicBool::new(false),
            left: AtomicUsize::new(0),
            last: Mutex::new(Instant::now()),
        });
        let wait = Arc::new(wait);
        let threads = (0..CROWD)
            .map(|_| {
                let (shared, wait) = (Arc::clone(&shared), Arc::clone(&wait));
                thread::spawn(move || shared.serve(&*wait))
            })
            .collect();
        Self { shared, threads }
    }

    /// Lets them all start.
    fn come(&self) {
        self.shared.left.store(CROWD, Ordering::Release);
        self.shared.come.wait();
    }

    /// From this moment until the last of them went on.
    fn time_since(&self, ended: Instant) -> Attempt {
        self.shared.gone.wait();
        let took = lock(&self.shared.last).saturating_duration_since(ended);
        // That these threads take the processor from each other is what is measured, so only the
        // speed of the machine can be watched.
        Attempt { value: took.as_nanos() as f64 / 1e3, quiet: quiet::now() }
    }
}

impl Shared {
    fn serve(&self, wait: &impl Fn()) {
        loop {
            self.come.wait();
            if self.leave.load(Ordering::Acquire) {
                return;
            }
            wait();
            if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
                *lock(&self.last) = Instant::now();
            }
            self.gone.wait();
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.shared.leave.store(true, Ordering::Release);
        self.shared.come.wait();
        for thread in self.threads.drain(..) {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}
