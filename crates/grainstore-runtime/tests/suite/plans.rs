//! Plans above kernels: two caches, one teardown.

use std::time::Duration;

use grainstore::{ElementType, PlanKey, TensorDesc};
use grainstore_runtime::{Kernel, Runtime, RuntimeError};

use crate::fake::{Fake, spec};

/// A plan holds the kernels it was made of.
struct Plan {
    kernels: Vec<Kernel>,
    done: bool,
}

fn runtime(fake: &Fake, capacity: usize) -> Runtime {
    Runtime::builder().backend(fake.clone()).capacity(capacity).build().unwrap()
}

fn key(batch: u64) -> PlanKey {
    let tensor = TensorDesc::contiguous(ElementType::F32, &[batch, 64]).unwrap();
    PlanKey::builder().artifact("model").target("fake-1").input(tensor).build().unwrap()
}

fn plan(runtime: &Runtime, name: &str) -> Result<Plan, RuntimeError> {
    let kernels = vec![runtime.kernel(&runtime.devices()[0], &spec(name))?];
    Ok(Plan { kernels, done: true })
}

#[test]
fn plans_go_before_the_kernels_they_hold() {
    let fake = Fake::new();
    let runtime = runtime(&fake, 8);
    let plans = runtime.plans::<Plan>(4, |plan| plan.done).unwrap();
    let device = runtime.devices().remove(0);
    for batch in 1..=3 {
        plans.on(&device.id()).get_or_build(&key(batch), || plan(&runtime, "k")).unwrap();
    }
    assert_eq!((plans.len(), fake.modules()), (3, 1));

    // No pin is left once the plans are gone, so the teardown need not wait.
    runtime.destroy_device_within(&device, Duration::ZERO).unwrap();
    assert_eq!(plans.len(), 0);
    fake.assert_clean();
}

#[test]
fn a_clear_takes_the_plans_and_what_they_hold() {
    let fake = Fake::new();
    let runtime = runtime(&fake, 8);
    let plans = runtime.plans::<Plan>(4, |plan| plan.done).unwrap();
    plans.get_or_build(&key(1), || plan(&runtime, "k")).unwrap();
    let drains = runtime.clear().unwrap();
    assert_eq!((drains.pending(), drains.released()), (0, 1));
    assert!(drains.wait_timeout(Duration::ZERO));
    assert_eq!((plans.len(), fake.modules(), fake.leaked()), (0, 0, 0));
}

#[test]
fn a_plan_in_use_keeps_its_kernels_and_the_clear_says_which() {
    let fake = Fake::new();
    let runtime = runtime(&fake, 8);
    let plans = runtime.plans::<Plan>(4, |plan| plan.done).unwrap();
    let used = plans.get_or_build(&key(1), || plan(&runtime, "k")).unwrap();
    let drains = runtime.clear().unwrap();
    assert_eq!(drains.pending(), 1);
    assert_eq!(drains.pending_keys()[0].name(), "k");
    assert!(used.kernels[0].module::<crate::fake::FakeModule>().is_some());
    drop(used);
    drains.wait().unwrap();
    assert_eq!((fake.modules(), fake.leaked()), (0, 0));
}

#[test]
fn a_plan_that_is_being_made_during_a_clear_is_not_kept() {
    let fake = Fake::new();
    let runtime = runtime(&fake, 8);
    let plans = runtime.plans::<Plan>(4, |plan| plan.done).unwrap();
    let made = plans.get_or_build(&key(1), || {
        let plan = plan(&runtime, "k")?;
        drop(runtime.clear()?);
        Ok::<_, RuntimeError>(plan)
    });
    assert!(matches!(made, Err(grainstore::Error::Cleared)), "{:?}", made.err());
    assert_eq!((plans.len(), fake.modules(), fake.leaked()), (0, 0, 0));
}

#[test]
fn idle_plans_do_not_starve_the_kernels_below() {
    let fake = Fake::new();
    let runtime = runtime(&fake, 2);
    let plans = runtime.plans::<Plan>(16, |plan| plan.done).unwrap();
    for (batch, name) in [(1, "a"), (2, "b"), (3, "c"), (4, "d")] {
        plans.get_or_build(&key(batch), || plan(&runtime, name)).unwrap();
        assert!(fake.modules() <= 2);
    }
    assert_eq!(plans.len(), 2);
}

#[test]
fn a_bounded_plan_cache_pushes_back() {
    let fake = Fake::new();
    let runtime = runtime(&fake, 8);
    let plans = runtime.plans_by::<u64, _>(2, |plan: &Plan| plan.done).unwrap();
    let first = plans.get_or_build(&1, || plan(&runtime, "k")).unwrap();
    let _second = plans.get_or_build(&2, || plan(&runtime, "k")).unwrap();
    let refused = plans.get_or_build(&3, || plan(&runtime, "k"));
    assert!(matches!(refused, Err(grainstore::Error::Busy { capacity: 2, .. })));
    drop(first);
    plans.get_or_build(&3, || plan(&runtime, "k")).unwrap();
    assert!(runtime.plans::<Plan>(0, |_| true).is_err());
}

#[test]
fn a_failed_kernel_is_found_inside_the_plans_error() {
    let fake = Fake::new();
    let runtime = runtime(&fake, 8);
    let plans = runtime.plans_by::<u64, Plan>(2, |plan| plan.done).unwrap();
    let broken = crate::fake::source("k", "error");
    let failed = plans.get_or_build(&1, || {
        let kernels = vec![runtime.kernel(&runtime.devices()[0], &broken)?];
        Ok::<_, RuntimeError>(Plan { kernels, done: true })
    });
    let error = failed.err().unwrap();
    assert!(error.downcast_ref::<RuntimeError>().unwrap().compile_log().is_some());
}
