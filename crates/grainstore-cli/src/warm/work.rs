//! The work itself: jobs taken from a list by as many threads as were asked for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use super::plan::Job;
use super::report::{Row, Walls};

/// How a job ended.
#[derive(Debug)]
pub(super) struct Done {
    /// Its place in the list of jobs.
    pub(super) index: usize,
    pub(super) row: Row,
    began: Instant,
    ended: Instant,
}

/// What all jobs came to: rows in the order of the jobs, without those that were not begun.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) rows: Vec<Row>,
    pub(super) walls: Walls,
}

/// Does every job, `threads` at a time, and calls `seen` on this thread as each one ends.
///
/// Once `stop` says so no further job is begun; those that are under way are ended.
pub(super) fn run(
    jobs: &[Job],
    threads: usize,
    make: impl Fn(&Job) -> Row + Sync,
    stop: impl Fn() -> bool + Sync,
    mut seen: impl FnMut(&Job, &Row),
) -> Work {
    let next = AtomicUsize::new(0);
    let (sender, ended) = mpsc::channel();
    let worker = |sender: mpsc::Sender<Done>| {
        while !stop() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { return };
            let began = Instant::now();
            let row = make(job);
            // The receiver outlives the scope, so nothing is lost here.
            let _ = sender.send(Done { index, row, began, ended: Instant::now() });
        }
    };
    let mut all = Vec::with_capacity(jobs.len());
    thread::scope(|scope| {
        for _ in 0..threads.min(jobs.len()) {
            let sender = sender.clone();
            scope.spawn(|| worker(sender));
        }
        drop(sender);
        for done in ended {
            seen(&jobs[done.index], &done.row);
            all.push(done);
        }
    });
    gather(all)
}

fn gather(mut all: Vec<Done>) -> Work {
    let mut spans: BTreeMap<String, (Instant, Instant)> = BTreeMap::new();
    for done in &all {
        let span = spans.entry(done.row.backend.clone()).or_insert((done.began, done.ended));
        *span = (span.0.min(done.began), span.1.max(done.ended));
    }
    all.sort_by_key(|done| done.index);
    let walls = spans.into_iter().map(|(name, (began, ended))| (name, ended - began)).collect();
    Work { rows: all.into_iter().map(|done| done.row).collect(), walls }
}
