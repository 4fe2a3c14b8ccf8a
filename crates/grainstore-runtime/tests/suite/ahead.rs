//! Compiling for a target that is not here: from a store, or compiled and put into all of them.

use std::sync::Arc;

use grainstore::{DeviceId, Family};
use grainstore_runtime::{
    Artifact, Backend, BackendCache, BackendError, DeviceInfo, KernelSpec, Language, Origin,
    Runtime, Settings, Store, Target, Toolchain,
};

use crate::fake::store::{FakeStore, Mode};
use crate::fake::{Fake, spec};

/// A compiler with no device. A target of its own it does not know, and `panic` it does not survive.
struct Compiler;

impl Backend for Compiler {
    type Module = ();

    fn name(&self) -> &str {
        "compiler"
    }

    fn family(&self) -> Family {
        Family::new("Compiler")
    }

    fn languages(&self) -> &[Language] {
        &[Language::OpenClC]
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>, BackendError> {
        Ok(Vec::new())
    }

    fn target(&self, device: &DeviceId) -> Result<Target, BackendError> {
        Err(BackendError::NoDevice { message: format!("there is no {device}") })
    }

    fn toolchain(&self, target: &Target) -> Result<Toolchain, BackendError> {
        match target.as_str() {
            "unknown" => Err(BackendError::unsupported("no such target", "take another")),
            _ => Ok(Toolchain::new("compiler 1")),
        }
    }

    fn build(&self, _: &DeviceId, _: &KernelSpec) -> Result<((), Option<Artifact>), BackendError> {
        panic!("there is no device to build for")
    }

    fn load(&self, _: &DeviceId, _: &KernelSpec, _: &Artifact) -> Result<(), BackendError> {
        panic!("there is no device to load on")
    }

    fn unload(&self, (): ()) -> Result<(), BackendError> {
        Ok(())
    }

    fn destroy_device(&self, _: &DeviceId) -> Result<(), BackendError> {
        Ok(())
    }

    fn compiles_ahead(&self) -> bool {
        true
    }

    fn compile_for(&self, target: &Target, spec: &KernelSpec) -> Result<Artifact, BackendError> {
        assert_ne!(target.as_str(), "panic", "the compiler is beside itself");
        Ok(Artifact::new("code", format!("{} for {}", spec.name(), target.as_str()).into_bytes()))
    }
}

fn cache(stores: &[&FakeStore]) -> BackendCache<Compiler> {
    let settings = stores.iter().fold(Settings::new(), |it, store| it.store((*store).clone()));
    BackendCache::new(Compiler, settings).unwrap()
}

#[test]
fn r1_a_target_that_is_not_here_is_compiled_for_once_and_kept_everywhere() {
    let (near, far) = (FakeStore::new("disk"), FakeStore::shared("remote"));
    let (target, saxpy) = (Target::new("sm_90"), spec("saxpy"));
    let (artifact, outcome) = cache(&[&near, &far]).compile_for(&target, &saxpy).unwrap();
    assert_eq!(artifact.binary(), b"saxpy for sm_90");
    assert_eq!(outcome.origin, Origin::Compiled);
    assert!(outcome.compile_time.is_some());
    assert_eq!((near.take_calls(), far.take_calls()), (vec!["get", "put"], vec!["get", "put"]));

    // Another process finds it in the nearest; and what only a farther one has is brought near.
    let (_, outcome) = cache(&[&near, &far]).compile_for(&target, &saxpy).unwrap();
    assert_eq!((outcome.origin.to_string(), outcome.compile_time), ("disk".into(), None));
    assert_eq!((near.take_calls(), far.take_calls()), (vec!["get"], vec![]));
    let empty = FakeStore::new("other disk");
    let (_, outcome) = cache(&[&empty, &far]).compile_for(&target, &saxpy).unwrap();
    assert_eq!(outcome.origin.to_string(), "remote");
    assert_eq!(empty.take_calls(), ["get", "put"]);

    // Each target has its own.
    let (artifact, _) = cache(&[&near]).compile_for(&Target::new("sm_80"), &saxpy).unwrap();
    assert_eq!(artifact.binary(), b"saxpy for sm_80");
}

#[test]
fn r1_who_compiles_ahead_says_so_and_who_does_not_refuses() {
    let fake = Fake::new();
    let runtime =
        Runtime::builder().backend(Arc::new(Compiler)).backend(fake.clone()).build().unwrap();
    let ahead = runtime.find_backend("compiler").unwrap();
    assert!(ahead.compiles_ahead());
    ahead.compile_for(&Target::new("sm_90"), &spec("saxpy")).unwrap();

    let bound = runtime.find_backend(fake.name()).unwrap();
    assert!(!bound.compiles_ahead());
    let target = fake.target(&fake.id(0)).unwrap();
    let error = bound.compile_for(&target, &spec("saxpy")).unwrap_err();
    assert!(matches!(error.backend_error(), Some(BackendError::Unsupported { .. })), "{error}");
    assert!(error.to_string().contains("only on a device that is here"), "{error}");
}

#[test]
fn r1_what_a_store_withholds_is_compiled_and_put_as_after_a_miss() {
    let (near, far) = (FakeStore::new("disk"), FakeStore::shared("remote"));
    near.set_mode(Mode::Withholding);
    let made = cache(&[&near, &far]).compile_for(&Target::new("sm_90"), &spec("saxpy")).unwrap();
    assert_eq!(made.1.origin, Origin::Compiled);
    assert_eq!((near.take_calls(), far.take_calls()), (vec!["get", "put"], vec!["put"]));
}

#[test]
fn r1_a_store_that_fails_is_gone_without() {
    let (near, far) = (FakeStore::new("disk"), FakeStore::shared("remote"));
    near.set_mode(Mode::Failing);
    cache(&[&near, &far]).compile_for(&Target::new("sm_90"), &spec("saxpy")).unwrap();
    assert_eq!((near.take_calls(), far.take_calls()), (vec!["get"], vec!["get", "put"]));
}

#[test]
fn r1_what_cannot_be_compiled_leaves_nothing() {
    let store = FakeStore::new("disk");
    let cache = cache(&[&store]);
    let error = cache.compile_for(&Target::new("unknown"), &spec("saxpy")).unwrap_err();
    assert!(error.to_string().contains("no such target"), "{error}");
    let error = cache.compile_for(&Target::new("panic"), &spec("saxpy")).unwrap_err();
    assert!(error.to_string().contains("the compiler is beside itself"), "{error}");
    assert_eq!(store.take_calls(), ["get"]);
    let key = cache.key_for(&Target::new("sm_90"), &spec("saxpy")).unwrap();
    assert!(Store::get(&store, &key).unwrap().is_none());
}
