//! The kinds of work, each in a file of its own.

mod asynchronous;
mod evict_device;
mod hit;
mod memory;
mod miss;
mod runtime;
mod slot;
mod tail;
mod two_threads;
mod waiters;

use std::rc::Rc;

use serde::Serialize;

use crate::instructions;
use crate::measure::pair::Pair;
use crate::measure::rounds::{Budget, Contender, interleave};
use crate::measure::series::{Series, Summary};

/// Subjects that are no cache: references, and ours in other circumstances.
pub mod names {
    pub use super::asynchronous::{ALLOCATIONS, SYNC};
    pub use super::evict_device::{FEW_OF_MANY, MANY_OF_MANY, SOME_OF_FEW, SOME_OF_MANY};
    pub use super::miss::QUICK_PINNING;
    pub use super::runtime::PLAIN;
    pub use super::two_threads::{ALONE, ARC_EACH, ARC_SHARED};
    pub use super::waiters::CONDVAR;
}

/// What a run was asked for.
pub struct Context {
    /// How much each row measures.
    pub budget: Budget,
    /// Parts of the names of the subjects that are wanted; none for all.
    pub only: Vec<String>,
    /// Two threads on two processors, or why they can't be had.
    pub pair: Result<Rc<Pair>, String>,
    /// Which instructions are counted.
    pub counting: Counting,
}

/// Which instructions are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// None.
    Nothing,
    /// Those of our hits, and the strongest peer's by a plain number.
    Few,
    /// Those of every subject.
    Everything,
}

/// A kind of work.
pub struct Row {
    /// What filters and goals call it.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// Of its figures.
    pub unit: &'static str,
    run: fn(&Context, &Row) -> Result<Vec<Entry>, String>,
}

/// What one subject did in a row.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// A cache, or something to compare with.
    pub subject: String,
    /// Its figures.
    #[serde(flatten)]
    pub summary: Summary,
    /// Instructions for one operation.
    pub instructions: Option<f64>,
}

/// A row that ran, or that could not.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// The row's name.
    pub row: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Of the figures.
    pub unit: &'static str,
    /// Ours first.
    pub entries: Vec<Entry>,
    /// Why there are no entries.
    pub not_run: Option<String>,
}

impl Row {
    /// Runs it.
    #[must_use]
    pub fn measure(&self, context: &Context) -> Table {
        let (entries, not_run) = match (self.run)(context, self) {
            Ok(entries) => (entries, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        Table { row: self.name, about: self.about, unit: self.unit, entries, not_run }
    }
}

/// Every row, in the order in which they are printed.
pub const ALL: &[Row] = &[
    hit::U64,
    hit::KERNEL,
    hit::KERNEL_PLAIN,
    hit::PLAN,
    hit::PLAN_PLAIN,
    runtime::RUNTIME,
    slot::ONE_THREAD,
    slot::TWO_THREADS,
    two_threads::ONE_KEY,
    two_threads::MANY_KEYS,
    tail::TAIL,
    miss::SMALL,
    miss::LARGE,
    miss::SMALL_PINNED,
    miss::LARGE_PINNED,
    evict_device::EVICT_DEVICE,
    memory::MEMORY,
    waiters::WAITERS,
    asynchronous::ASYNC,
];

impl Context {
    fn wants(&self, subject: &str) -> bool {
        let asked = |part: &String| subject.to_lowercase().contains(&part.to_lowercase());
        subject == instructions::OURS || self.only.is_empty() || self.only.iter().any(asked)
    }

    /// Runs the contenders in turn.
    fn compete(&self, contenders: Vec<Contender>) -> Vec<Entry> {
        self.compete_patiently(contenders, 1)
    }

    /// The same for work that is disturbed more often: with so many times the time for it.
    fn compete_patiently(&self, mut contenders: Vec<Contender>, times: u32) -> Vec<Entry> {
        let budget = Budget { time: self.budget.time * times, ..self.budget };
        let series = interleave(budget, &mut contenders);
        let summaries = series.iter().map(Series::summary);
        let names = contenders.iter().map(|contender| contender.name.clone());
        names.zip(summaries).map(|(subject, summary)| Entry::new(subject, summary)).collect()
    }

    /// Notes the instructions of these entries, each of which is its subject's `operation`.
    fn count(&self, operation: &str, entries: &mut [Entry]) {
        for entry in entries {
            let ours = entry.subject == instructions::OURS && operation != "miss-1000";
            let few = ours || (operation == "hit-u64" && entry.subject == "quick_cache");
            let wanted = match self.counting {
                Counting::Nothing => false,
                Counting::Few => few,
                Counting::Everything => true,
            };
            if wanted {
                match instructions::count(operation, &entry.subject) {
                    Ok(count) => entry.instructions = Some(count),
                    Err(why) => eprintln!("{why}"),
                }
            }
        }
    }
}

impl Entry {
    fn new(subject: impl Into<String>, summary: Summary) -> Self {
        Self { subject: subject.into(), summary, instructions: None }
    }
}
