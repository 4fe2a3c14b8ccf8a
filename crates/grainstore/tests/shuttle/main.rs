//! The whole cache as it ships, on the types of shuttle: threads and tasks do at random all that the
//! contract allows, in an order that is thrown too, and at the end the books must balance.
//!
//! `GRAINSTORE_SCHEDULES` says how many schedules each test tries. A failure names its seed;
//! `SHUTTLE_RANDOM_SEED` with that seed repeats it, throws and interleaving alike.
//! `cargo xtask prove` runs them.
#![cfg(shuttle)]
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod calls;
mod tasks;
mod world;

use std::time::Instant;

use shuttle::scheduler::{
    PctScheduler, RandomScheduler, Scheduler, UncontrolledNondeterminismCheckScheduler,
};
use shuttle::{Config, FailurePersistence, Runner};

use crate::world::World;

fn schedules() -> usize {
    std::env::var("GRAINSTORE_SCHEDULES").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000)
}

fn run(name: &str, scheduler: impl Scheduler + 'static, one: fn()) {
    let mut config = Config::new();
    // The seed is enough.
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    let start = Instant::now();
    let ran = Runner::new(scheduler, config).run(one);
    println!("\nproof: shuttle: {name}: {ran} schedules: {:.1} s", start.elapsed().as_secs_f64());
}

/// Three threads and two tasks, on two levels of caches.
fn everything() {
    let world = World::new();
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let world = world.clone();
            shuttle::thread::spawn(move || (0..5).for_each(|_| world.step()))
        })
        .collect();
    let tasks: Vec<_> =
        (0..2).map(|_| shuttle::future::spawn(tasks::some(world.clone()))).collect();
    (0..3).for_each(|_| world.step());
    for task in tasks {
        // Dropped wherever it is, or seen to its end.
        if world::one_in(2) {
            task.abort();
        }
        let _ = shuttle::future::block_on(task);
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    world.end();
}

/// Few keys and no callbacks: hits, pins, victims, removals.
fn hits() {
    let world = World::plain();
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let world = world.clone();
            shuttle::thread::spawn(move || (0..6).for_each(|_| world.hit()))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    world.end();
}

#[test]
fn everything_at_random() {
    run("everything at random", RandomScheduler::new(schedules()), everything);
}

#[test]
fn everything_with_few_preemptions() {
    run("everything, few preemptions (PCT)", PctScheduler::new(4, schedules()), everything);
}

#[test]
fn hits_at_random() {
    run("hits, pins and victims at random", RandomScheduler::new(schedules()), hits);
}

#[test]
fn hits_with_few_preemptions() {
    run("hits, pins and victims, few preemptions (PCT)", PctScheduler::new(3, schedules()), hits);
}

/// Each schedule is run twice, and does the same: so a seed does replay a failure.
#[test]
fn a_schedule_repeats() {
    let random = RandomScheduler::new(schedules() / 20);
    let twice = UncontrolledNondeterminismCheckScheduler::new(random);
    run("everything, each schedule twice", twice, everything);
}
