//! Instructions for one operation, counted by callgrind: the same on a busy machine as on a quiet
//! one.
//!
//! The program runs itself under callgrind twice, with two numbers of operations. The difference of
//! the two totals, divided by the difference of the numbers, is one operation: start, filling and
//! end cancel out.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use grainstore::{KernelKey, PlanKey};

use crate::keys::{Numbered, PlainKernel, PlainPlan};
use crate::runtime::Warm;
use crate::subject::ours::Ours;
use crate::subject::{Subject, Visit, each};
use crate::work::{self, Padded};

/// The first argument of a run that is to be counted.
const RUN: &str = "run-operation";

/// Operations of the shorter run. The longer one does twice as many.
const OPERATIONS: u64 = 20_000;

/// What our cache is called.
pub const OURS: &str = <Ours<u64> as Subject<u64>>::NAME;

/// What stands for the bare `Arc` in a subject's place.
pub const ARC: &str = "Arc clone and drop";

/// Whether callgrind can be had here.
///
/// # Errors
/// What to do about it where not.
pub fn available() -> Result<(), String> {
    let version = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status();
    match version {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("valgrind --version failed ({status})")),
        Err(_) => Err("valgrind is not installed; install it to count instructions".into()),
    }
}

/// Instructions of one operation of this kind on this subject.
///
/// # Errors
/// What went wrong with callgrind.
pub fn count(operation: &str, subject: &str) -> Result<f64, String> {
    let program = std::env::current_exe().map_err(|error| format!("no path of my own: {error}"))?;
    let start = |count| {
        Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(&program)
            .args([RUN, operation, subject])
            .arg(u64::to_string(&count))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("valgrind can't be started: {error}"))
    };
    // Both at once: neither is timed.
    let runs = [start(OPERATIONS)?, start(2 * OPERATIONS)?];
    let mut totals = [0; 2];
    for (run, total) in runs.into_iter().zip(&mut totals) {
        let output = run.wait_with_output().map_err(|error| format!("valgrind: {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        *total = collected(&said).filter(|_| output.status.success()).ok_or_else(|| {
            format!("valgrind gave no count for {operation} on {subject}:\n{said}")
        })?;
    }
    Ok((totals[1] as f64 - totals[0] as f64) / OPERATIONS as f64)
}

/// The total in what callgrind says at its end.
fn collected(said: &str) -> Option<u64> {
    let (_, total) = said.lines().find_map(|line| line.split_once("Collected : "))?;
    total.trim().parse().ok()
}

/// Does the run that is to be counted, where these arguments ask for one.
pub fn serve(arguments: &[String]) -> Option<ExitCode> {
    let [first, operation, subject, count] = arguments else { return None };
    if first != RUN {
        return None;
    }
    let done = count.parse().map_err(|_| "not a number".into()).and_then(|count| {
        let program = std::env::current_exe().unwrap_or_default();
        run(operation, subject, count).map_err(|why| format!("{}: {why}", program.display()))
    });
    Some(match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    })
}

fn run(operation: &str, subject: &str, count: u64) -> Result<(), String> {
    if subject == ARC {
        work::arc(&Padded::shared(), count);
        return Ok(());
    }
    match operation {
        "hit-u64" => hits::<u64>(subject, count),
        "hit-kernel" => hits::<KernelKey>(subject, count),
        "hit-kernel-plain" => hits::<PlainKernel>(subject, count),
        "hit-plan" => hits::<PlanKey>(subject, count),
        "hit-plan-plain" => hits::<PlainPlan>(subject, count),
        "miss-1000" => misses(subject, count),
        "async" if subject == OURS => {
            let (subject, keys) = work::warm::<u64, Ours<u64>>();
            work::async_hits(&subject, &keys, count);
            Ok(())
        }
        "hit-runtime" if subject == OURS => {
            work::runtime_hits(&Warm::new(), count);
            Ok(())
        }
        "slot" if subject == OURS => {
            let (subject, keys) = work::warm::<u64, Ours<u64>>();
            work::slot_hits(&mut subject.0.slot(keys[0]), count);
            Ok(())
        }
        _ => Err(format!("no operation {operation} on {subject}")),
    }
}

fn misses(subject: &str, count: u64) -> Result<(), String> {
    struct Misses<'a> {
        wanted: &'a str,
        count: u64,
        done: bool,
    }
    impl Visit<u64> for Misses<'_> {
        fn visit<S: Subject<u64>>(&mut self) {
            if S::NAME == self.wanted && S::BOUNDED {
                let (subject, mut next) = work::full::<S>(1_000);
                work::misses(&subject, &mut next, self.count);
                self.done = true;
            }
        }
    }
    let mut visitor = Misses { wanted: subject, count, done: false };
    each::<u64>(&mut visitor);
    if visitor.done { Ok(()) } else { Err(format!("no bounded subject {subject}")) }
}

fn hits<K: Numbered>(subject: &str, count: u64) -> Result<(), String> {
    struct Hits<'a> {
        wanted: &'a str,
        count: u64,
        done: bool,
    }
    impl<K: Numbered> Visit<K> for Hits<'_> {
        fn visit<S: Subject<K>>(&mut self) {
            if S::NAME == self.wanted {
                let (subject, keys) = work::warm::<K, S>();
                work::hits(&subject, &keys, self.count);
                self.done = true;
            }
        }
    }
    let mut visitor = Hits { wanted: subject, count, done: false };
    each::<K>(&mut visitor);
    if visitor.done { Ok(()) } else { Err(format!("no subject {subject}")) }
}

/// Compares our own counts with the limits in this file: one operation and its limit a line.
///
/// # Errors
/// What is over its limit, or why it could not be counted.
pub fn guard(limits: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(limits)
        .map_err(|error| format!("{} can't be read: {error}", limits.display()))?;
    let mut over = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let (operation, limit) = parse_limit(line)
            .ok_or_else(|| format!("{}: not an operation and a limit: {line}", limits.display()))?;
        let count = count(operation, OURS)?;
        println!("{operation}: {count:.1} instructions, at most {limit}");
        if count > limit {
            over.push(format!("{operation} takes {count:.1} instructions, {limit} are allowed"));
        } else if count < limit * 0.8 {
            println!("{operation}: the limit could be tightened");
        }
    }
    if over.is_empty() { Ok(()) } else { Err(over.join("; ")) }
}

fn parse_limit(line: &str) -> Option<(&str, f64)> {
    let (operation, limit) = line.split_once(' ')?;
    Some((operation, limit.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_from_what_callgrind_says() {
        let said = "==7== \n==7== Events    : Ir\n==7== Collected : 123456\n==7== \n";
        assert_eq!(collected(said), Some(123_456));
        assert_eq!(collected("==7== Collected : many"), None);
        assert_eq!(collected(""), None);
    }

    #[test]
    fn a_limit_is_an_operation_and_a_number() {
        assert_eq!(parse_limit("hit-u64 120"), Some(("hit-u64", 120.0)));
        assert_eq!(parse_limit("hit-u64"), None);
        assert_eq!(parse_limit("hit-u64 fast"), None);
    }

    #[test]
    fn every_subject_can_be_run_by_its_name() {
        struct All(u64);
        impl Visit<u64> for All {
            fn visit<S: Subject<u64>>(&mut self) {
                assert_eq!(run("hit-u64", S::NAME, 100), Ok(()));
                self.0 += 1;
            }
        }
        let mut all = All(0);
        each::<u64>(&mut all);
        assert!(all.0 >= 1);
        assert!(run("hit-u64", "nobody", 1).is_err());
        assert!(run("nothing", "grainstore", 1).is_err());
    }
}
