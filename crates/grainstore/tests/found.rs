//! What the model checkers found, each as a plain test.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod common;

use std::sync::{Arc, Mutex};

use common::{Failure, World};
use grainstore::Cache;

/// The last pin goes between the search that found nothing and the answer: then it looks again. It
/// once answered `Busy`, with parts of another moment than the search's.
#[test]
fn e4_a_pin_that_goes_while_plans_are_asked_makes_room() {
    let world = World::default();
    let kernels = world.cache(1);
    let held = Arc::new(Mutex::new(Some(kernels.get_or_build(&1, || world.build(1)).unwrap())));
    let dropped = held.clone();
    // This cache is asked to give way in between, and its value says that it is busy.
    let plans = Cache::<u64, u64>::builder()
        .borrows_from(&kernels)
        .idle(move |_| {
            drop(dropped.lock().unwrap().take());
            false
        })
        .build()
        .unwrap();
    drop(plans.get_or_build(&1, || Ok::<_, Failure>(1)).unwrap());
    assert_eq!(kernels.get_or_build(&2, || world.build(2)).unwrap().key, 2);
    assert!(held.lock().unwrap().is_none(), "the plan was not asked");
    assert_eq!(world.released(), [1]);
}
