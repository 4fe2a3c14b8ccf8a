//! The walk of a request: memory, the stores in order, the compiler, and back up.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::fake::store::{FakeStore, Mode};
use crate::fake::{Call, Fake, lock, source, spec};
use grainstore_runtime::{
    Artifact, BackendCache, BackendError, KernelSpec, Origin, Runtime, RuntimeError, Settings,
    Store,
};

/// What was warned of.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn all(&self) -> Vec<String> {
        lock(&self.0).clone()
    }
}

/// A runtime over the fake and these stores, and what it warns of.
fn runtime(fake: &Fake, stores: &[&FakeStore]) -> (Runtime, Told) {
    let told = Told::default();
    let listener = told.clone();
    let mut builder = Runtime::builder()
        .backend(fake.clone())
        .on_warning(move |warning| lock(&listener.0).push(warning.to_string()));
    for store in stores {
        builder = builder.store((*store).clone());
    }
    (builder.build().unwrap(), told)
}

/// Where the kernel comes from now, by its short name.
fn origin(runtime: &Runtime, spec: &KernelSpec) -> String {
    let device = &runtime.devices()[0];
    let (_kernel, outcome) = runtime.kernel_with_outcome(device, spec).unwrap();
    outcome.origin.to_string()
}

#[test]
fn memory_then_stores_in_order_then_the_compiler() {
    let fake = Fake::new();
    let (near, far) = (FakeStore::new("disk"), FakeStore::shared("remote"));
    let (runtime, told) = runtime(&fake, &[&near, &far]);
    let saxpy = spec("saxpy");

    assert_eq!(origin(&runtime, &saxpy), "compiled");
    assert_eq!((near.take_calls(), far.take_calls()), (vec!["get", "put"], vec!["get", "put"]));
    assert_eq!(origin(&runtime, &saxpy), "memory");
    assert_eq!((near.take_calls(), far.take_calls()), (vec![], vec![]));

    runtime.clear().unwrap().wait().unwrap();
    assert_eq!(origin(&runtime, &saxpy), "disk");
    assert_eq!((near.take_calls(), far.take_calls()), (vec!["get"], vec![]));
    assert_eq!((fake.builds(), fake.loads()), (1, 1));
    assert!(told.all().is_empty());
}

#[test]
fn what_is_found_far_is_written_near() {
    let fake = Fake::new();
    let (near, far) = (FakeStore::new("disk"), FakeStore::shared("remote"));
    let (first, _) = runtime(&fake, &[&far]);
    let saxpy = spec("saxpy");
    assert_eq!(origin(&first, &saxpy), "compiled");
    far.take_calls();

    let (second, _) = runtime(&fake, &[&near, &far]);
    assert_eq!(origin(&second, &saxpy), "remote");
    assert_eq!((near.take_calls(), far.take_calls()), (vec!["get", "put"], vec!["get"]));

    let (third, _) = runtime(&fake, &[&near]);
    assert_eq!(origin(&third, &saxpy), "disk");
    assert_eq!(fake.builds(), 1);
}

#[test]
fn a4_r6_a_lease_is_held_until_the_put_and_a_loader_at_work_is_told() {
    let fake = Fake::new();
    let (near, far) = (FakeStore::leasing("disk"), FakeStore::shared("remote"));
    let (runtime, _) = runtime(&fake, &[&near, &far]);
    let saxpy = spec("saxpy");
    assert_eq!(origin(&runtime, &saxpy), "compiled");
    assert_eq!(near.take_calls(), ["get", "put", "release"]);

    // A loader is at work, and comes back.
    runtime.clear().unwrap().wait().unwrap();
    assert_eq!(origin(&runtime, &saxpy), "disk");
    assert_eq!(near.take_calls(), ["get", "loading", "loaded"]);

    // What is found farther away is worth waiting for as well.
    runtime.clear().unwrap().wait().unwrap();
    let key = runtime.key(&runtime.devices()[0], &saxpy).unwrap();
    Store::discard(&near, key).unwrap();
    assert_eq!(origin(&runtime, &saxpy), "remote");
    assert_eq!(near.take_calls(), ["discard", "get", "put", "release"]);

    // Who fails to build lets the others try.
    fake.fail(Call::Build, BackendError::failed("fakeBuild", "no"));
    assert!(runtime.kernel(&runtime.devices()[0], &spec("other")).is_err());
    assert_eq!(near.take_calls(), ["get", "release"]);
}

#[test]
fn r5_what_a_store_withholds_is_built_afresh_put_and_told_each_time() {
    let fake = Fake::new();
    let (near, far) = (FakeStore::new("disk"), FakeStore::shared("remote"));
    let (runtime, told) = runtime(&fake, &[&near, &far]);
    let told_at_last = || told.all().last().cloned().unwrap_or_default();
    near.set_mode(Mode::Withholding);
    assert_eq!(origin(&runtime, &spec("saxpy")), "compiled");
    assert_eq!(near.take_calls(), ["get", "put"]);
    // It has the same from the same compiler.
    assert_eq!(far.take_calls(), ["put"]);
    assert_eq!(
        told_at_last(),
        "`saxpy` is not taken from the store `disk`: there is something about it"
    );
    assert_eq!(origin(&runtime, &spec("other")), "compiled");
    assert!(told_at_last().starts_with("`other`"), "{:?}", told.all());

    // The one warning that a store has for its failures is left.
    near.set_mode(Mode::Failing);
    assert_eq!(origin(&runtime, &spec("third")), "compiled");
    assert!(told_at_last().contains("does not work"), "{:?}", told.all());
    assert_eq!(told.all().len(), 3);
}

#[test]
fn the_compile_time_is_kept_beside_the_artifact_and_told() {
    let fake = Fake::new();
    let store = FakeStore::new("disk");
    let (runtime, _) = runtime(&fake, &[&store]);
    let saxpy = spec("saxpy");
    let device = &runtime.devices()[0];

    let (_kernel, outcome) = runtime.kernel_with_outcome(device, &saxpy).unwrap();
    let took = outcome.compile_time.unwrap();
    assert_eq!(outcome.origin, Origin::Compiled);
    assert!(took <= outcome.elapsed);
    let key = runtime.key(device, &saxpy).unwrap();
    assert_eq!(store.facts(key).unwrap().compile_time, Some(took));
}

#[test]
fn an_invalid_artifact_is_dropped_here_and_the_kernel_built_afresh() {
    let fake = Fake::new();
    let (near, far) = (FakeStore::new("disk"), FakeStore::shared("remote"));
    let (runtime, told) = runtime(&fake, &[&near, &far]);
    let saxpy = spec("saxpy");
    let key = runtime.key(&runtime.devices()[0], &saxpy).unwrap();
    near.plant(key, Artifact::new("kernel.fake", b"garbage".to_vec()));

    assert_eq!(origin(&runtime, &saxpy), "compiled");
    assert_eq!(near.take_calls(), ["get", "discard", "put"]);
    assert_eq!(near.artifact(key).unwrap().binary(), b"fake:kernel void saxpy() {}");
    let told = told.all();
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("`saxpy` in the store `disk` is invalid (wrong magic)"), "{told:?}");
}

#[test]
fn an_invalid_artifact_of_a_shared_store_is_replaced_not_dropped() {
    let fake = Fake::new();
    let far = FakeStore::shared("remote");
    let (runtime, _) = runtime(&fake, &[&far]);
    let saxpy = spec("saxpy");
    let key = runtime.key(&runtime.devices()[0], &saxpy).unwrap();
    far.plant(key, Artifact::new("kernel.fake", b"garbage".to_vec()));
    fake.fail(Call::Build, BackendError::Compile { log: "not today".into() });

    runtime.kernel(&runtime.devices()[0], &saxpy).unwrap_err();
    assert!(far.has(key));
    assert_eq!(origin(&runtime, &saxpy), "compiled");
    assert_eq!(far.artifact(key).unwrap().binary(), b"fake:kernel void saxpy() {}");
}

#[test]
fn a_loader_that_merely_fails_drops_nothing() {
    let fake = Fake::new();
    let store = FakeStore::new("disk");
    let (runtime, told) = runtime(&fake, &[&store]);
    let saxpy = spec("saxpy");
    origin(&runtime, &saxpy);
    runtime.clear().unwrap().wait().unwrap();
    store.take_calls();

    // Something that a build might get over: it is built, and what is kept stays as it is.
    fake.fail(Call::Load, BackendError::failed("fakeLoad", "out of memory"));
    assert_eq!(origin(&runtime, &saxpy), "compiled");
    assert_eq!(store.take_calls(), ["get"]);
    assert!(told.all()[0].contains("could not be loaded (fakeLoad failed: out of memory)"));

    // Something that no build gets over.
    runtime.clear().unwrap().wait().unwrap();
    fake.fail(Call::Load, BackendError::DeviceLost { message: "fell off the bus".into() });
    let error = runtime.kernel(&runtime.devices()[0], &saxpy).unwrap_err();
    assert!(matches!(error.backend_error(), Some(BackendError::DeviceLost { .. })), "{error}");
    assert_eq!(store.take_calls(), ["get"]);
    assert_eq!(store.len(), 1);
}

#[test]
fn a_failing_store_is_warned_of_once_and_hurts_nobody() {
    for mode in [Mode::Failing, Mode::Panicking] {
        let fake = Fake::new();
        let (near, far) = (FakeStore::new("disk"), FakeStore::shared("remote"));
        let (runtime, told) = runtime(&fake, &[&near, &far]);
        near.set_mode(mode);

        assert_eq!(origin(&runtime, &spec("a")), "compiled");
        // It has failed in this very request: it is not asked to keep what came of it.
        assert_eq!((near.take_calls(), far.take_calls()), (vec!["get"], vec!["get", "put"]));
        assert_eq!(origin(&runtime, &spec("b")), "compiled");
        runtime.clear().unwrap().wait().unwrap();
        assert_eq!(origin(&runtime, &spec("a")), "remote");
        assert_eq!(told.all().len(), 1, "{:?}", told.all());
        assert!(told.all()[0].contains("the store `disk` does not work"), "{:?}", told.all());

        near.set_mode(Mode::Good);
        runtime.clear().unwrap().wait().unwrap();
        assert_eq!(origin(&runtime, &spec("a")), "remote");
        runtime.clear().unwrap().wait().unwrap();
        assert_eq!(origin(&runtime, &spec("a")), "disk");
    }
}

#[test]
fn a_store_that_only_fails_to_keep_is_no_failure_of_the_build() {
    let fake = Fake::new();
    let store = FakeStore::new("disk");
    let (runtime, told) = runtime(&fake, &[&store]);
    // The build itself breaks the store, so that its `get` was good and its `put` is not.
    let gate = fake.hold_builds();
    std::thread::scope(|scope| {
        let built = scope.spawn(|| origin(&runtime, &spec("a")));
        gate.arrived(1);
        store.set_mode(Mode::Failing);
        gate.open();
        assert_eq!(built.join().unwrap(), "compiled");
    });
    assert_eq!(told.all().len(), 1);
    assert_eq!(store.len(), 0);
}

#[test]
fn a_warning_listener_that_panics_fails_no_build() {
    let fake = Fake::new();
    let store = FakeStore::new("disk");
    store.set_mode(Mode::Failing);
    let runtime = Runtime::builder()
        .backend(fake.clone())
        .store(store)
        .on_warning(|_| panic!("no bad news, please"))
        .build()
        .unwrap();
    assert_eq!(origin(&runtime, &spec("a")), "compiled");
}

#[test]
fn builds_under_the_chosen_time_are_not_persisted() {
    let fake = Fake::new();
    let store = FakeStore::new("disk");
    let settings = || Settings::new().store(store.clone());
    let slow = BackendCache::new(fake.clone(), settings().persist_over(Duration::MAX)).unwrap();
    let device = &slow.devices().unwrap()[0];
    slow.kernel(device, &spec("a")).unwrap();
    assert_eq!(store.len(), 0);

    let all = BackendCache::new(fake.clone(), settings()).unwrap();
    all.kernel(&all.devices().unwrap()[0], &spec("a")).unwrap();
    assert_eq!(store.len(), 1);
}

#[test]
fn the_key_tells_toolchains_and_backends_apart() {
    let fake = Fake::new();
    let store = FakeStore::new("disk");
    let (first, _) = runtime(&fake, &[&store]);
    let saxpy = spec("saxpy");
    assert_eq!(origin(&first, &saxpy), "compiled");

    fake.set_toolchain("fakec 2");
    let (second, _) = runtime(&fake, &[&store]);
    assert_eq!(origin(&second, &saxpy), "compiled");

    // Another backend that names its compiler in the same words does not get this one's bytes.
    let other = Fake::named("other", grainstore::Family::new("Other"));
    other.set_toolchain("fakec 2");
    let (third, _) = runtime(&other, &[&store]);
    assert_eq!(origin(&third, &saxpy), "compiled");
    assert_eq!(store.len(), 3);
}

#[test]
fn an_artifact_that_no_memory_holds_any_more_is_loaded_not_built() {
    let fake = Fake::new();
    let store = FakeStore::new("disk");
    let runtime =
        Runtime::builder().backend(fake.clone()).store(store).capacity(1).build().unwrap();
    for _ in 0..3 {
        origin(&runtime, &spec("a"));
        origin(&runtime, &spec("b"));
    }
    assert_eq!((fake.builds(), fake.loads()), (2, 4));
    assert_eq!(fake.modules(), 1);
}

#[test]
fn a_source_that_does_not_compile_leaves_nothing_behind() {
    let fake = Fake::new();
    let store = FakeStore::new("disk");
    let (runtime, told) = runtime(&fake, &[&store]);
    let device = &runtime.devices()[0];
    let broken = source("broken", "error here");

    let error = runtime.kernel(device, &broken).unwrap_err();
    assert_eq!(error.compile_log(), Some("fake.cl:1: error: no"));
    assert!(error.to_string().contains("kernel `broken`"), "{error}");
    let RuntimeError::Backend { backend, .. } = &error else { panic!("{error:?}") };
    assert_eq!(&**backend, "fake");
    let cause = std::error::Error::source(&error).unwrap();
    assert!(matches!(cause.downcast_ref(), Some(BackendError::Compile { .. })));
    assert_eq!((store.len(), fake.modules(), told.all().len()), (0, 0, 0));
    runtime.kernel(device, &broken).unwrap_err();
    assert_eq!(fake.builds(), 2);
}
