//! The soak passes where nothing is wrong, and can fail: backends with a planted fault.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "faults/faulty.rs"]
#[allow(dead_code, reason = "the battery has more faults to find")]
mod faulty;
#[path = "../examples/stranger.rs"]
#[allow(dead_code, reason = "its own main is not called here")]
mod stranger;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use faulty::{Fault, Faulty};
use grainstore_conformance::{Tally, Verdict, soak};

/// Enough for some hundred teardowns, on a busy machine too.
const LENGTH: Duration = Duration::from_secs(2);

fn soaked(fault: Fault) -> Tally {
    soak(Faulty(fault), LENGTH, 1, &AtomicBool::new(false))
}

fn failure(tally: &Tally) -> &str {
    match &tally.verdict {
        Verdict::Failed(reason) => reason,
        other => panic!("{tally}: {other:?}"),
    }
}

#[test]
fn nothing_is_wrong_with_a_good_backend() {
    let tally = soaked(Fault::None);
    assert_eq!(tally.verdict, Verdict::Passed, "{tally}");
    assert_eq!((tally.wrong, tally.handles), (0, 0), "{tally}");
    assert!(tally.launches > 0 && tally.teardowns > 0 && tally.deferred > 0, "{tally}");
    let row = tally.to_string();
    assert!(row.starts_with("stack | ") && row.ends_with(" | 0 | 0"), "{row}");
}

#[test]
fn a_handle_that_is_left_is_found() {
    let tally = soaked(Fault::LeaksOnUnload);
    assert!(failure(&tally).contains("handles left"), "{tally}");
    assert!(tally.handles > 0, "{tally}");
}

#[test]
fn a_module_that_goes_from_under_a_launch_is_found() {
    let tally = soaked(Fault::UnloadsEquals);
    assert!(failure(&tally).contains("launch"), "{}", failure(&tally));
    assert!(tally.wrong > 0, "{tally}");
}

#[test]
fn a_missing_driver_is_no_failure() {
    let tally = soaked(Fault::Absent);
    assert!(matches!(tally.verdict, Verdict::NotRun(_)), "{:?}", tally.verdict);
    assert_eq!(tally.launches, 0);
}

#[test]
fn it_ends_when_it_is_told_to() {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let soaking = scope.spawn(|| soak(Faulty(Fault::None), Duration::MAX, 1, &stop));
        stop.store(true, Ordering::Relaxed);
        assert_eq!(soaking.join().unwrap().verdict, Verdict::Passed);
    });
}
