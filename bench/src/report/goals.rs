//! The goals: ratios within one run, each with the limit that it may not pass.

use serde::Serialize;

use super::Results;
use crate::instructions::{ARC, OURS};
use crate::rows::names;
use crate::subject::{Subject, Visit, each};

const QUICK: &str = "quick_cache";

/// A goal and how a run stands to it.
#[derive(Clone, Debug, Serialize)]
pub struct Goal {
    /// The kind of work.
    pub goal: &'static str,
    /// What is divided by what, or what is counted.
    pub measure: String,
    /// What it may be at most.
    pub limit: f64,
    /// Nothing where a part of it did not run.
    pub measured: Option<f64>,
    /// Nothing where it was not measured, or where the machine was too busy to trust it.
    pub met: Option<bool>,
    /// Why it is not known whether it is met.
    pub why_not: Option<&'static str>,
}

/// One median, by row and subject.
type Place<'a> = (&'static str, &'a str);

/// Every goal.
#[must_use]
pub fn judge(results: &Results) -> Vec<Goal> {
    let judge = Judge { results };
    let mut goals =
        vec![judge.ratio("a hit by number", 0.5, ("hit-u64", OURS), ("hit-u64", QUICK))];
    for (what, same, row, plain) in [
        ("a hit by KernelKey", "peers given our KernelKey", "hit-kernel", "hit-kernel-plain"),
        ("a hit by PlanKey", "peers given our PlanKey", "hit-plan", "hit-plan-plain"),
    ] {
        goals.push(judge.ratio_to_fastest(what, 0.15, (row, OURS), plain));
        goals.push(judge.ratio_to_fastest(same, 0.15, (row, OURS), row));
        goals.push(judge.ratio(what, 1.5, (row, OURS), ("hit-u64", OURS)));
    }
    goals.extend([
        judge.ratio(
            "a hit through the runtime",
            1.5,
            ("hit-runtime", OURS),
            ("hit-runtime", names::PLAIN),
        ),
        judge.ratio("a hit by slot", 0.9, ("slot", OURS), ("slot", ARC)),
        judge.ratio(
            "a hit by slot, two threads",
            0.9,
            ("slot-two", OURS),
            ("slot-two", names::ARC_EACH),
        ),
        judge.ratio("one hot key, two threads", 0.1, ("hot-two", OURS), ("hot-two", QUICK)),
        judge.ratio("one hot key, two threads", 1.3, ("hot-two", OURS), ("hot-two", names::ALONE)),
        judge.ratio("64 keys, two threads", 0.2, ("many-two", OURS), ("many-two", QUICK)),
        judge.ratio("p99.9 of a hit under churn", 0.5, ("tail", OURS), ("tail", QUICK)),
    ]);
    for row in ["miss-1000", "miss-100000"] {
        goals.push(judge.ratio("a miss in a full cache", 1.0, (row, OURS), (row, QUICK)));
    }
    for row in ["miss-1000-pinned", "miss-100000-pinned"] {
        let what = "a miss in a full cache, most pinned";
        goals.push(judge.ratio(what, 1.0, (row, OURS), (row, names::QUICK_PINNING)));
    }
    let evict = |subject| ("evict-device", subject);
    goals.extend([
        // Some allowance for what no longer lies in the processor's own caches.
        judge.ratio(
            "evict_device, whatever n is",
            1.5,
            evict(names::SOME_OF_MANY),
            evict(names::SOME_OF_FEW),
        ),
        judge.ratio(
            "evict_device, proportional to d",
            1.5,
            evict(names::MANY_OF_MANY),
            evict(names::FEW_OF_MANY),
        ),
        judge.figure("memory of an entry, in bytes", 160.0, ("memory", OURS)),
        judge.ratio("64 waiters", 1.2, ("waiters", OURS), ("waiters", names::CONDVAR)),
        judge.ratio("an asynchronous hit", 1.2, ("async", OURS), ("async", names::SYNC)),
        judge.figure("an asynchronous hit allocates", 0.0, ("async", names::ALLOCATIONS)),
    ]);
    goals
}

struct Judge<'a> {
    results: &'a Results,
}

impl Judge<'_> {
    fn ratio(&self, goal: &'static str, limit: f64, ours: Place, other: Place) -> Goal {
        let name = |(row, subject): Place| format!("{subject} [{row}]");
        self.goal(goal, format!("{} / {}", name(ours), name(other)), limit, &[ours, other], |all| {
            all[0] / all[1]
        })
    }

    /// Against whichever peer is the fastest in this row.
    fn ratio_to_fastest(
        &self,
        goal: &'static str,
        limit: f64,
        ours: Place,
        row: &'static str,
    ) -> Goal {
        let peers = peers().into_iter().filter_map(|peer| self.results.entry(row, peer));
        let fastest = peers
            .min_by(|a, b| a.summary.median.total_cmp(&b.summary.median))
            .map(|entry| &entry.subject);
        self.ratio(goal, limit, ours, (row, fastest.map_or("the fastest peer", String::as_str)))
    }

    fn figure(&self, goal: &'static str, limit: f64, place: Place) -> Goal {
        self.goal(goal, format!("{} [{}]", place.1, place.0), limit, &[place], |all| all[0])
    }

    fn goal(
        &self,
        goal: &'static str,
        measure: String,
        limit: f64,
        places: &[Place],
        value: impl Fn(&[f64]) -> f64,
    ) -> Goal {
        let found: Option<Vec<_>> =
            places.iter().map(|(row, subject)| self.results.entry(row, subject)).collect();
        let Some(found) = found else {
            let why_not = Some("not measured in this run");
            return Goal { goal, measure, limit, measured: None, met: None, why_not };
        };
        let medians: Vec<f64> = found.iter().map(|entry| entry.summary.median).collect();
        let measured = value(&medians);
        let trusted = found.iter().all(|entry| entry.summary.trusted);
        let met = trusted.then_some(measured <= limit);
        let why_not = (!trusted).then_some("too few rounds were undisturbed");
        Goal { goal, measure, limit, measured: Some(measured), met, why_not }
    }
}

/// The names of all caches but ours.
fn peers() -> Vec<&'static str> {
    struct Names(Vec<&'static str>);
    impl Visit<u64> for Names {
        fn visit<S: Subject<u64>>(&mut self) {
            self.0.push(S::NAME);
        }
    }
    let mut names = Names(Vec::new());
    each::<u64>(&mut names);
    names.0.retain(|name| *name != OURS);
    names.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::series::{Series, Summary};
    use crate::rows::{Entry, Table};

    fn results(row: &'static str, entries: &[(&str, Summary)]) -> Results {
        let entries = entries
            .iter()
            .map(|(subject, summary)| Entry {
                subject: (*subject).into(),
                summary: *summary,
                instructions: None,
            })
            .collect();
        Results { rows: vec![Table { row, about: "", unit: "ns", entries, not_run: None }] }
    }

    fn first(goals: &[Goal], measure: &str) -> Goal {
        goals.iter().find(|goal| goal.measure.contains(measure)).unwrap().clone()
    }

    #[test]
    fn a_goal_is_met_up_to_its_limit_and_unknown_without_trust() {
        let exact = Series::exact;
        let measure = "grainstore [hit-u64] / quick_cache [hit-u64]";
        for (ours, met) in [(5.0, true), (5.1, false)] {
            let results = results("hit-u64", &[(OURS, exact(ours)), (QUICK, exact(10.0))]);
            assert_eq!(first(&judge(&results), measure).met, Some(met));
        }
        let doubtful = Summary { trusted: false, ..exact(5.0) };
        let results = results("hit-u64", &[(OURS, doubtful), (QUICK, exact(10.0))]);
        let goal = first(&judge(&results), measure);
        assert_eq!((goal.met, goal.measured), (None, Some(0.5)));
        assert!(first(&judge(&Results::default()), measure).measured.is_none());
    }

    #[test]
    fn the_fastest_peer_is_neither_us_nor_the_bare_arc() {
        let exact = Series::exact;
        let entries =
            [(OURS, exact(1.0)), ("papaya", exact(10.0)), ("moka", exact(90.0)), (ARC, exact(0.5))];
        let goal = first(&judge(&results("hit-plan", &entries)), "[hit-plan] / papaya");
        assert_eq!(goal.measured, Some(0.1));
    }
}
