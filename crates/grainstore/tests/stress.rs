//! Everything at once: threads that do at random all that the contract allows, and at the end, and
//! at each step where that can be, the books must balance.
//!
//! `GRAINSTORE_STRESS_SECONDS` makes the runs longer, `GRAINSTORE_STRESS_SEED` repeats the dice of a
//! run (not its interleaving). Both are in the message of a failure.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "all of this is tests")]

mod common;

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use common::{Dice, Failure, failure};
use grainstore::{
    Bookmark, Builder, Cache, DeviceId, Drain, Error, Family, Hooks, Ownership, Pinned,
};

/// What a panic says that belongs to the test.
const ON_PURPOSE: &str = "on purpose";

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// How long one test runs, and the seed of its dice.
fn run_length() -> (Duration, u64) {
    let seconds = setting("GRAINSTORE_STRESS_SECONDS", 2);
    let now = std::time::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_nanos() as u64);
    let seed = setting("GRAINSTORE_STRESS_SEED", now);
    println!("GRAINSTORE_STRESS_SECONDS={seconds} GRAINSTORE_STRESS_SEED={seed}");
    (Duration::from_millis(seconds * 500), seed)
}

/// Panics that are part of the test say nothing.
fn hush() {
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.payload().downcast_ref::<String>().map(String::as_str);
        if text.or_else(|| info.payload().downcast_ref().copied()) != Some(ON_PURPOSE) {
            loud(info);
        }
    }));
}

/// What is known of all values, in a few atomics so that it orders nothing for the cache.
#[derive(Default)]
struct Books {
    made: AtomicUsize,
    alive: AtomicUsize,
    released: AtomicUsize,
    /// The first thing that must not happen: panics in callbacks are contained, so it is kept here.
    fault: Mutex<Option<String>>,
    faulty: AtomicBool,
}

impl Books {
    fn fault(&self, text: String) {
        self.faulty.store(true, Ordering::SeqCst);
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(text);
    }

    fn expect(&self, holds: bool, text: impl FnOnce() -> String) {
        if !holds {
            self.fault(text());
        }
    }
}

/// A value that knows whether it has been released.
struct Grain {
    key: u64,
    device: usize,
    gone: Arc<AtomicBool>,
}

type Grains = Cache<u64, Grain>;

/// One cache under stress, and what its threads share.
struct Arena {
    cache: OnceLock<Grains>,
    books: Books,
    capacity: usize,
    /// Whether values are abandoned: then more may be alive than there are places.
    abandons: bool,
    keys: u64,
    /// Pins on their way from one thread to another.
    pool: Mutex<Vec<Pinned<Grain>>>,
}

thread_local! {
    static DICE: RefCell<Dice> = RefCell::new(Dice::new(1));
}

fn roll(sides: u64) -> u64 {
    DICE.with_borrow_mut(|dice| dice.roll(sides))
}

fn one_in(sides: u64) -> bool {
    roll(sides) == 0
}

fn device(index: usize) -> DeviceId {
    DeviceId::new(Family::CUDA, index as u32)
}

impl Arena {
    fn new(capacity: usize, keys: u64, abandons: bool) -> Arc<Self> {
        Arc::new(Self {
            cache: OnceLock::new(),
            books: Books::default(),
            capacity,
            abandons,
            keys,
            pool: Mutex::default(),
        })
    }

    fn cache(&self) -> &Grains {
        self.cache.get().unwrap()
    }

    fn make(&self, key: u64, device: usize) -> Grain {
        self.books.made.fetch_add(1, Ordering::SeqCst);
        let alive = self.books.alive.fetch_add(1, Ordering::SeqCst) + 1;
        self.books.expect(self.abandons || alive <= self.capacity, || {
            format!("{alive} values alive in {} places", self.capacity)
        });
        Grain { key, device, gone: Arc::default() }
    }

    fn look(&self, pin: &Grain, key: u64, device: usize) {
        self.books.expect(!pin.gone.load(Ordering::SeqCst), || format!("{key} gone under a pin"));
        self.books.expect((pin.key, pin.device) == (key, device), || {
            format!("asked for {key} on {device}, got {} on {}", pin.key, pin.device)
        });
    }

    fn is_idle(&self, grain: &Grain) -> bool {
        self.books.expect(!grain.gone.load(Ordering::SeqCst), || "asked after release".to_owned());
        match roll(40) {
            0 => panic!("{ON_PURPOSE}"),
            1..=9 => return false,
            10 => drop(self.view(grain.device, |view| view.get(&grain.key))),
            11 => self.sometimes(),
            _ => {}
        }
        true
    }

    #[allow(clippy::needless_pass_by_value, reason = "it ends here")]
    fn release(&self, grain: Grain) -> Result<(), Failure> {
        let twice = grain.gone.swap(true, Ordering::SeqCst);
        self.books.expect(!twice, || format!("{} released twice", grain.key));
        if one_in(20) {
            self.sometimes();
        }
        self.books.released.fetch_add(1, Ordering::SeqCst);
        self.books.alive.fetch_sub(1, Ordering::SeqCst);
        match roll(20) {
            0 => panic!("{ON_PURPOSE}"),
            1 => Err(failure("on purpose")),
            _ => Ok(()),
        }
    }

    /// A call from inside a callback.
    fn sometimes(&self) {
        let cache = self.cache();
        match roll(8) {
            0 => drop(cache.clear()),
            1 => drop(cache.remove(&roll(self.keys))),
            2 => drop(cache.evict_device(&device(1))),
            3 => drop(self.take_from_pool()),
            4 => drop(cache.reap()),
            5 => {
                let drain = cache.clear();
                let _ = drain.wait();
            }
            6 => cache.poke(),
            _ => self.request(2),
        }
    }

    /// Device 0 is none, 3 is a set of two.
    fn view<R>(&self, on: usize, look: impl FnOnce(&grainstore::View<'_, u64, Grain>) -> R) -> R {
        match on {
            0 => look(&self.cache().on_all(&[])),
            3 => look(&self.cache().on_all(&[device(2), device(1), device(2)])),
            one => look(&self.cache().on(&device(one))),
        }
    }

    /// One request, whose build may fail, panic, or request in turn, so deep at most.
    fn request(&self, depth: u64) {
        let (key, on) = (roll(self.keys), roll(4) as usize);
        let answer = self.view(on, |view| {
            view.get_or_build(&key, || {
                match roll(16) {
                    0 => panic!("{ON_PURPOSE}"),
                    1 => return Err(failure("on purpose")),
                    2..=4 if depth > 0 => self.request(depth - 1),
                    5 if depth > 0 => self.sometimes(),
                    6 => thread::yield_now(),
                    _ => {}
                }
                Ok(self.make(key, on))
            })
        });
        match answer {
            Ok(pin) => {
                self.look(&pin, key, on);
                match roll(6) {
                    0 => self.pool.lock().unwrap_or_else(PoisonError::into_inner).push(pin),
                    1 => {
                        let clone = pin.clone();
                        drop(pin);
                        thread::yield_now();
                        self.look(&clone, key, on);
                    }
                    _ => self.look(&pin, key, on),
                }
            }
            Err(Error::Busy { capacity, pinned, busy, building, retired }) => {
                self.books.expect(capacity == pinned + busy + building + retired, || {
                    format!("{capacity} != {pinned} + {busy} + {building} + {retired}")
                });
            }
            Err(_) => {}
        }
    }

    /// A request by a task that is polled a few times, and dropped if that was not enough.
    fn request_task(&self) {
        let (key, on) = (roll(self.keys), roll(4) as usize);
        let build = async {
            for _ in 0..roll(4) {
                let mut polled = false;
                poll_fn(|_| {
                    if std::mem::replace(&mut polled, true) {
                        Poll::Ready(())
                    } else {
                        Poll::Pending
                    }
                })
                .await;
            }
            match roll(12) {
                0 => panic!("{ON_PURPOSE}"),
                1 => return Err(failure("on purpose")),
                2 => self.request(1),
                3 => self.sometimes(),
                _ => {}
            }
            Ok(self.make(key, on))
        };
        let mut context = Context::from_waker(Waker::noop());
        self.view(on, |view| {
            let mut request = pin!(view.get_or_build_async(&key, build));
            for _ in 0..1 + roll(6) {
                if let Poll::Ready(answer) = request.as_mut().poll(&mut context) {
                    if let Ok(pin) = answer {
                        self.look(&pin, key, on);
                    }
                    break;
                }
                thread::yield_now();
            }
        });
    }

    /// Waits of tasks that are given up.
    fn wait_task(&self) {
        let mut context = Context::from_waker(Waker::noop());
        let mut room = pin!(self.cache().room());
        let mut drained = pin!(self.cache().remove(&roll(self.keys)).wait_async());
        for _ in 0..roll(3) {
            if drained.as_mut().poll(&mut context).is_ready() {
                break;
            }
        }
        for _ in 0..roll(3) {
            if room.as_mut().poll(&mut context).is_ready() {
                break;
            }
        }
    }

    fn take_from_pool(&self) -> Option<Pinned<Grain>> {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.is_empty() {
            return None;
        }
        let at = roll(pool.len() as u64) as usize;
        Some(pool.swap_remove(at))
    }

    fn end(&self, drain: Drain<u64>) {
        match roll(5) {
            0 => drop(drain),
            1 => drop(drain.wait_timeout(Duration::from_micros(roll(500)))),
            2 if self.abandons => drop(drain.abandon()),
            3 => drop((drain.errors(), drain.pending_keys(), drain.released())),
            _ => drop(drain.wait_timeout(Duration::ZERO)),
        }
    }

    fn step(self: &Arc<Self>) {
        let cache = self.cache();
        match roll(64) {
            0 => self.end(cache.clear()),
            1 | 2 => self.end(cache.evict_device(&device(1 + roll(2) as usize))),
            3..=5 => self.end(self.view(roll(4) as usize, |view| view.remove(&roll(self.keys)))),
            6 => drop(cache.reap()),
            7 => cache.poke(),
            8 => drop(cache.wait_for_room(Duration::from_micros(roll(300)))),
            9..=19 => drop(self.take_from_pool()),
            20..=29 => {
                let (key, on) = (roll(self.keys), roll(4) as usize);
                if let Some(pin) = self.view(on, |view| view.get(&key)) {
                    self.look(&pin, key, on);
                }
            }
            30 => {
                let figures = cache.statistics();
                let taken = (figures.entries + figures.retired) as usize;
                self.books.expect(taken <= self.capacity, || format!("{figures:?}"));
                let live = figures.entries - figures.building + figures.retired;
                self.books
                    .expect(figures.built == figures.released + figures.abandoned + live, || {
                        format!("{figures:?}")
                    });
            }
            31 => {
                // A thread that comes, pins, and ends with its pins handed on or dropped.
                let (arena, seed) = (self.clone(), roll(1 << 30));
                let passing = thread::spawn(move || {
                    DICE.set(Dice::new(seed));
                    (0..5).for_each(|_| arena.request(1));
                });
                if passing.join().is_err() {
                    self.books.fault("a passing thread panicked".to_owned());
                }
            }
            32..=37 => self.request_task(),
            38 => self.wait_task(),
            _ => self.request(2),
        }
        // So that not all is pinned for ever.
        if self.pool.lock().unwrap_or_else(PoisonError::into_inner).len() > self.capacity {
            drop(self.take_from_pool());
        }
    }

    fn builder(self: &Arc<Self>) -> Builder<u64, Grain> {
        // Weak, or the cache would keep itself.
        let (idle, release): (Weak<Self>, Weak<Self>) =
            (Arc::downgrade(self), Arc::downgrade(self));
        Cache::builder()
            .capacity(self.capacity)
            .idle(move |grain: &Grain| idle.upgrade().is_none_or(|arena| arena.is_idle(grain)))
            .release(move |grain: Grain| match release.upgrade() {
                Some(arena) => arena.release(grain),
                None => Ok(()),
            })
    }

    /// Runs so many threads, lets everything go, and checks the books.
    fn run(self: &Arc<Self>, threads: u64) {
        hush();
        let (length, seed) = run_length();
        let start = Instant::now();
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let arena = self.clone();
                thread::spawn(move || {
                    DICE.set(Dice::new(seed.wrapping_add(thread)));
                    while start.elapsed() < length && !arena.books.faulty.load(Ordering::SeqCst) {
                        arena.step();
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        let fault = self.books.fault.lock().unwrap().take();
        assert!(fault.is_none(), "{fault:?} (GRAINSTORE_STRESS_SEED={seed})");
        self.pool.lock().unwrap().clear();
        // A busy answer is a throw of the dice, so that all goes in the end.
        self.cache().clear().wait().ok();
        for index in 1..=2 {
            self.cache().evict_device(&device(index)).wait().ok();
        }
        while self.cache().statistics().retired > 0 {
            self.cache().reap();
        }
        let figures = self.cache().statistics();
        let context = format!("{figures:?} (GRAINSTORE_STRESS_SEED={seed})");
        assert_eq!((figures.entries, figures.retired), (0, 0), "{context}");
        assert_eq!(figures.built, figures.released + figures.abandoned, "{context}");
        assert_eq!(
            figures.released as usize,
            self.books.released.load(Ordering::SeqCst),
            "{context}"
        );
        let alive = self.books.alive.load(Ordering::SeqCst);
        assert_eq!(alive as u64, figures.abandoned, "{context}");
        assert!(figures.built > 100 && figures.evictions > 10, "it did too little: {context}");
    }
}

#[test]
fn an_owning_cache_under_stress() {
    let arena = Arena::new(5, 9, false);
    assert!(arena.cache.set(arena.builder().build().unwrap()).is_ok());
    arena.run(4);
}

#[test]
fn a_borrowing_cache_under_stress_with_abandoning() {
    let arena = Arena::new(4, 7, true);
    let cache = arena.builder().ownership(Ownership::Borrows).build().unwrap();
    assert!(arena.cache.set(cache).is_ok());
    arena.run(5);
}

#[test]
fn a_weighed_cache_under_stress() {
    let arena = Arena::new(6, 9, false);
    let cache = arena.builder().weigher(|key, _| key % 4).max_weight(7).build().unwrap();
    assert!(arena.cache.set(cache).is_ok());
    arena.run(4);
}

#[test]
fn a_cache_that_releases_on_some_threads_only_under_stress() {
    let arena = Arena::new(5, 9, false);
    let cache = arena.builder().may_release(|| !one_in(4)).build().unwrap();
    assert!(arena.cache.set(cache).is_ok());
    arena.run(4);
}

/// No `idle`, no calls from callbacks, few keys: hits, pins and victims at full speed.
#[test]
fn hits_and_victims_under_stress() {
    hush();
    let (length, seed) = run_length();
    let alive = Arc::new(AtomicUsize::new(0));
    let gone_under_pin = Arc::new(AtomicBool::new(false));
    let cache = {
        let alive = alive.clone();
        Cache::<u64, Grain>::builder()
            .capacity(4)
            .release(move |grain: Grain| {
                grain.gone.store(true, Ordering::SeqCst);
                alive.fetch_sub(1, Ordering::SeqCst);
            })
            .build()
            .unwrap()
    };
    let start = Instant::now();
    let bookmarks: Arc<[Bookmark; 6]> = Arc::default();
    let workers: Vec<_> = (0..4)
        .map(|thread| {
            let (cache, alive, bad) = (cache.clone(), alive.clone(), gone_under_pin.clone());
            let bookmarks = bookmarks.clone();
            thread::spawn(move || {
                let mut dice = Dice::new(seed.wrapping_add(thread));
                let mut held: HashMap<u64, Pinned<Grain>> = HashMap::new();
                while start.elapsed() < length {
                    let key = dice.roll(6);
                    let build = || {
                        assert!(alive.fetch_add(1, Ordering::SeqCst) < 4, "more than four alive");
                        Ok::<_, Failure>(Grain { key, device: 0, gone: Arc::default() })
                    };
                    // Each thread holds one at most, so that a place can always be found.
                    held.clear();
                    let bookmark = &bookmarks[key as usize];
                    let found = dice.one_in(2).then(|| cache.try_get_at(bookmark, |_| true));
                    let answer =
                        found.flatten().map_or_else(|| cache.get_or_build(&key, build), Ok);
                    let pin = match answer {
                        Err(Error::Removed) => continue,
                        answer => answer.unwrap(),
                    };
                    bookmark.set(&pin);
                    if pin.gone.load(Ordering::SeqCst) || pin.key != key {
                        bad.store(true, Ordering::SeqCst);
                    }
                    match dice.roll(8) {
                        0 => drop(held.insert(key, pin)),
                        // Without the pin, which may by now be of an earlier value of the key.
                        1 => {
                            drop(pin);
                            drop(cache.remove(&key));
                        }
                        2 => {
                            let clone = pin.clone();
                            drop(pin);
                            if clone.gone.load(Ordering::SeqCst) {
                                bad.store(true, Ordering::SeqCst);
                            }
                        }
                        _ => {}
                    }
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    assert!(!gone_under_pin.load(Ordering::SeqCst), "seed {seed}");
    let figures = cache.statistics();
    assert_eq!(figures.retired, 0, "{figures:?}");
    assert_eq!(cache.clear().pending(), 0);
    assert_eq!(alive.load(Ordering::SeqCst), 0);
    let figures = cache.statistics();
    assert_eq!((figures.built, figures.refused), (figures.released, 0), "{figures:?}");
}

/// A plan: its key, and the kernels it closes over.
type Plan = (u64, Vec<Pinned<Grain>>);

#[test]
fn two_levels_and_their_hooks_under_stress() {
    hush();
    let (length, seed) = run_length();
    let arena = Arena::new(4, 8, false);
    assert!(arena.cache.set(arena.builder().build().unwrap()).is_ok());
    let plans: Cache<u64, Plan> = Cache::builder()
        .capacity(5)
        .borrows_from(arena.cache())
        .idle(|_| !one_in(5))
        .build()
        .unwrap();
    let hooks = Hooks::new();
    let wired = (plans.listen(&hooks), arena.cache().listen(&hooks));
    let start = Instant::now();
    let workers: Vec<_> = (0..4)
        .map(|thread| {
            let (arena, plans, hooks) = (arena.clone(), plans.clone(), hooks.clone());
            thread::spawn(move || {
                DICE.set(Dice::new(seed.wrapping_add(thread)));
                while start.elapsed() < length && !arena.books.faulty.load(Ordering::SeqCst) {
                    match roll(40) {
                        0 => drop(hooks.notify_clear_all()),
                        1 => drop(hooks.notify_device_destroy(&device(1))),
                        2 => drop(hooks.around_clear(|| arena.cache().clear().wait())),
                        3 => arena.end(arena.cache().clear()),
                        4 => drop(plans.clear()),
                        5 => drop(plans.reap() + arena.cache().reap()),
                        6 => drop(arena.take_from_pool()),
                        7..=12 => arena.request(1),
                        _ => {
                            let (key, on) = (roll(8), roll(2) as usize);
                            let build = || {
                                let mut kernels = Vec::new();
                                for at in 0..1 + roll(2) {
                                    let want = (key + at) % 8;
                                    let kernel = arena.view(on, |view| {
                                        view.get_or_build(&want, || {
                                            Ok::<_, Failure>(arena.make(want, on))
                                        })
                                    })?;
                                    arena.look(&kernel, want, on);
                                    kernels.push(kernel);
                                }
                                Ok::<_, Error>((key, kernels))
                            };
                            let plan = if on == 0 {
                                plans.get_or_build(&key, build)
                            } else {
                                plans.on(&device(1)).get_or_build(&key, build)
                            };
                            if let Ok(plan) = plan {
                                for kernel in &plan.1 {
                                    let gone = kernel.gone.load(Ordering::SeqCst);
                                    arena.books.expect(!gone, || "gone in a plan".to_owned());
                                }
                            }
                        }
                    }
                    drop(arena.take_from_pool());
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    let fault = arena.books.fault.lock().unwrap().take();
    assert!(fault.is_none(), "{fault:?} (GRAINSTORE_STRESS_SEED={seed})");
    arena.pool.lock().unwrap().clear();
    drop(wired);
    drop(plans);
    arena.cache().clear().wait().ok();
    while arena.cache().statistics().retired > 0 {
        arena.cache().reap();
    }
    assert_eq!(arena.books.alive.load(Ordering::SeqCst), 0, "seed {seed}");
}
