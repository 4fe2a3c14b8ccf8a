//! Devices, handles and look-ups.

use std::sync::{Barrier, Mutex};
use std::thread;

use grainstore::{DeviceId, Family};
use grainstore_runtime::{
    BackendCache, BackendError, Kernel, KernelSpec, Language, Runtime, RuntimeError, Settings,
};

use crate::fake::{Call, Fake, FakeModule, lock, source, spec};

fn runtime(fake: &Fake) -> Runtime {
    Runtime::builder().backend(fake.clone()).build().unwrap()
}

#[test]
fn handles_and_runtimes_go_from_thread_to_thread() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Runtime>();
    shared::<Kernel>();
    shared::<KernelSpec>();
    shared::<RuntimeError>();
    shared::<BackendCache<Fake>>();
    shared::<grainstore_runtime::Device>();
    shared::<grainstore_runtime::Plans<u32>>();
}

#[test]
fn eight_threads_share_one_build() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = &runtime.devices()[0];
    let gate = fake.hold_builds();
    let (start, saxpy) = (Barrier::new(9), spec("saxpy"));
    let kernels = thread::scope(|scope| {
        let ask = || {
            start.wait();
            runtime.kernel(device, &saxpy).unwrap()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        start.wait();
        gate.arrived(1);
        gate.open();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(fake.builds(), 1);
    assert!(kernels.iter().all(|kernel| kernel.ptr_eq(&kernels[0])));
}

#[test]
fn different_kernels_are_built_at_the_same_time() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = &runtime.devices()[0];
    let gate = fake.hold_builds();
    thread::scope(|scope| {
        for name in ["a", "b", "c"] {
            let runtime = &runtime;
            scope.spawn(move || runtime.kernel(device, &spec(name)).unwrap());
        }
        // All three are inside the compiler, none of them done.
        assert_eq!(gate.arrived(3).len(), 3);
        gate.open();
    });
}

#[test]
fn a_failed_build_reaches_all_who_wait_and_is_tried_again() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = &runtime.devices()[0];
    fake.fail(Call::Build, BackendError::failed("fakeBuild", "the moon is full"));
    let gate = fake.hold_builds();
    let saxpy = spec("saxpy");
    thread::scope(|scope| {
        let asked: Vec<_> =
            (0..4).map(|_| scope.spawn(|| runtime.kernel(device, &saxpy))).collect();
        gate.arrived(1);
        // The other three wait for it, as the cache itself counts.
        while runtime.backends()[0].statistics().waits < 3 {
            thread::yield_now();
        }
        gate.open();
        for asked in asked {
            let error = asked.join().unwrap().unwrap_err();
            assert!(matches!(error.backend_error(), Some(BackendError::Failed { .. })), "{error}");
        }
    });
    assert_eq!(fake.builds(), 1);
    runtime.kernel(device, &saxpy).unwrap();
}

#[test]
fn a_module_is_had_by_its_own_type_alone() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let kernel = runtime.kernel(&runtime.devices()[0], &spec("saxpy")).unwrap();
    assert_eq!(kernel.module::<FakeModule>().unwrap().name, "saxpy");
    assert!(kernel.module::<String>().is_none());
    assert_eq!(kernel.device(), fake.id(0));
}

#[test]
fn a_backend_by_itself_gives_its_own_type() {
    let fake = Fake::new();
    let cache = BackendCache::new(fake.clone(), Settings::new()).unwrap();
    let device = &cache.devices().unwrap()[0];
    let module = cache.kernel(device, &spec("saxpy")).unwrap();
    assert_eq!(module.name, "saxpy");
    assert_eq!(module.device(), fake.id(0));
    drop(module);
    assert_eq!((fake.modules(), cache.statistics().entries), (1, 1));
    drop(cache);
    assert_eq!((fake.modules(), fake.leaked()), (0, 0));
}

#[test]
fn one_kernel_on_two_devices_is_two_modules_of_one_key() {
    let fake = Fake::new().with_devices(2);
    let runtime = runtime(&fake);
    let devices = runtime.devices();
    let saxpy = spec("saxpy");
    let kernels: Vec<_> =
        devices.iter().map(|device| runtime.kernel(device, &saxpy).unwrap()).collect();
    assert_eq!(kernels[1].device(), fake.id(1));
    assert!(!kernels[0].ptr_eq(&kernels[1]));
    assert_eq!(
        runtime.key(&devices[0], &saxpy).unwrap(),
        runtime.key(&devices[1], &saxpy).unwrap()
    );
}

#[test]
fn whatever_changes_the_binary_is_another_kernel() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = &runtime.devices()[0];
    let base = || KernelSpec::builder("k", Language::OpenClC).source("body").header("h", "1");
    let specs = [
        base(),
        base().source("other body"),
        base().entry("k"),
        base().define("A", "1"),
        base().define("A", "2"),
        base().constant("A", "1"),
        base().option("-O1"),
        base().option("-O1").option("-g"),
        base().option("-g").option("-O1"),
        base().header("i", "1"),
        KernelSpec::builder("k", Language::OpenClC).source("body").header("h", "2"),
        KernelSpec::builder("k", Language::C).source("body").header("h", "1"),
    ];
    let count = specs.len();
    for spec in specs {
        runtime.kernel(device, &spec.build().unwrap()).unwrap();
    }
    assert_eq!(fake.builds(), count);
    runtime.kernel(device, &base().build().unwrap()).unwrap();
    assert_eq!(fake.builds(), count);
}

#[test]
fn each_request_counts_once() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = &runtime.devices()[0];
    let saxpy = spec("saxpy");
    for _ in 0..4 {
        runtime.kernel(device, &saxpy).unwrap();
    }
    let figures = runtime.backends()[0].statistics();
    assert_eq!((figures.misses, figures.hits, figures.built), (1, 3, 1));
}

#[test]
fn target_and_toolchain_are_read_once_for_each_generation() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = &runtime.devices()[0];
    let saxpy = spec("saxpy");
    for _ in 0..3 {
        runtime.kernel(device, &saxpy).unwrap();
        runtime.kernel(device, &saxpy.clone()).unwrap();
    }
    // Once for the device, and once for what this spec's options might add.
    assert_eq!((fake.calls(Call::Target), fake.calls(Call::Toolchain)), (1, 2));

    runtime.destroy_device(device).unwrap();
    fake.set_toolchain("fakec 2");
    let device = &runtime.devices()[0];
    runtime.kernel(device, &saxpy).unwrap();
    assert_eq!(fake.calls(Call::Target), 2);
    assert_eq!(runtime.key(device, &saxpy).unwrap().toolchain(), "fake: fakec 2");
    assert_eq!(runtime.backend_of(device).unwrap().target(device).unwrap().as_str(), "fake-1");
}

#[test]
fn devices_keep_their_handle() {
    let fake = Fake::new().with_devices(2);
    let runtime = runtime(&fake);
    let devices = runtime.devices();
    assert_eq!(devices, runtime.devices());
    assert_eq!(devices[1], runtime.device(&fake.id(1)).unwrap());
    assert_ne!(devices[0], devices[1]);
    assert_eq!((devices[0].name(), devices[0].driver()), ("Fake 0", "fake 1.0"));
    assert_eq!(devices[0].to_string(), "Fake:0 (Fake 0)");
    let error = runtime.device(&fake.id(7)).unwrap_err();
    assert!(matches!(error, RuntimeError::NoDevice { .. }), "{error}");
}

#[test]
fn a_handle_of_another_runtime_is_refused() {
    let (one, two) = (Fake::new(), Fake::new());
    let (first, second) = (runtime(&one), runtime(&two));
    let error = second.kernel(&first.devices()[0], &spec("a")).unwrap_err();
    assert!(matches!(error, RuntimeError::ForeignDevice { .. }), "{error}");
    let error = second.destroy_device(&first.devices()[0]).unwrap_err();
    assert!(matches!(error, RuntimeError::ForeignDevice { .. }), "{error}");

    // Also where the spec knows its key already, and where two caches share a backend.
    let shared = [(); 2].map(|()| BackendCache::new(one.clone(), Settings::new()).unwrap());
    let device = &shared[0].devices().unwrap()[0];
    let saxpy = spec("saxpy");
    shared[0].kernel(device, &saxpy).unwrap();
    let error = shared[1].kernel(device, &saxpy).unwrap_err();
    assert!(matches!(error, RuntimeError::ForeignDevice { .. }), "{error}");
}

#[test]
fn a_missing_driver_is_one_backends_error_and_the_others_go_on() {
    let gone = Fake::named("gone", Family::CUDA);
    gone.uninstall();
    let here = Fake::named("here", Family::OPENCL);
    let runtime = Runtime::builder().backend(gone).backend(here.clone()).build().unwrap();

    let devices = runtime.devices();
    assert_eq!(devices.len(), 1);
    assert_eq!(runtime.backend_of(&devices[0]).unwrap().name(), "here");
    let error = runtime.backends()[0].devices().unwrap_err();
    assert_eq!(error.to_string(), "gone: libfake.so.1 was not found: install `fake-runtime`");
    let error = runtime.device(&DeviceId::new(Family::CUDA, 0)).unwrap_err();
    assert!(matches!(error.backend_error(), Some(BackendError::Missing { .. })), "{error}");
    runtime.kernel(&devices[0], &spec("a")).unwrap();
    runtime.shutdown().unwrap();
}

#[test]
fn backends_are_found_by_name_and_by_family() {
    let cuda = Fake::named("nvidia", Family::CUDA);
    let other = Fake::named("cl", Family::OPENCL);
    let runtime = Runtime::builder().backend(cuda).backend(other).build().unwrap();
    let found = |name| runtime.find_backend(name).map(|backend| backend.name().to_owned());
    for name in ["CUDA", "cuda", "CUDA/PTX", "NVIDIA"] {
        assert_eq!(found(name).as_deref(), Some("nvidia"), "{name}");
    }
    assert_eq!(found("opencl").as_deref(), Some("cl"));
    assert_eq!(found("Metal"), None);
    assert_eq!(found(""), None);
}

#[test]
fn nonsense_is_refused_by_name() {
    let error = Runtime::builder().build().unwrap_err();
    assert!(error.to_string().contains("no backend"), "{error}");
    let error = Runtime::builder().backend(Fake::new()).backend(Fake::new()).build().unwrap_err();
    assert!(error.to_string().contains("two backends named `fake`"), "{error}");
    let error = Runtime::builder().backend(Fake::new()).capacity(0).build().unwrap_err();
    assert!(error.to_string().contains("capacity"), "{error}");
}

#[test]
fn a_language_that_the_backend_does_not_take_never_reaches_it() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let wgsl = KernelSpec::builder("k", Language::Wgsl).source("fn k() {}").build().unwrap();
    let error = runtime.kernel(&runtime.devices()[0], &wgsl).unwrap_err();
    assert!(error.to_string().contains("it takes opencl-c, c"), "{error}");
    assert_eq!(fake.builds(), 0);
}

#[test]
fn a_full_cache_answers_busy_and_counts() {
    let fake = Fake::new();
    let runtime = Runtime::builder().backend(fake.clone()).capacity(2).build().unwrap();
    let device = &runtime.devices()[0];
    let (a, _b) = (runtime.kernel(device, &spec("a")), runtime.kernel(device, &spec("b")));
    let error = runtime.kernel(device, &spec("c")).unwrap_err();
    assert!(matches!(error, RuntimeError::Busy { capacity: 2, pinned: 2, .. }), "{error:?}");
    drop(a);
    runtime.kernel(device, &spec("c")).unwrap();
    assert_eq!(fake.modules(), 2);
}

#[test]
fn a_panic_in_a_backend_is_an_error() {
    let cache = BackendCache::new(Fake::new(), Settings::new()).unwrap();
    let device = &cache.devices().unwrap()[0];
    let error = cache.kernel(device, &source("k", "panic")).unwrap_err();
    assert!(matches!(error, RuntimeError::Cache(grainstore::Error::Panicked { .. })), "{error:?}");
    cache.kernel(device, &spec("k")).unwrap();
    // It left, also by unwinding: a shutdown has nobody to wait for.
    cache.shutdown().unwrap();
}

#[test]
fn an_id_makes_its_spec_once() {
    let fake = Fake::new().with_devices(2);
    let runtime = runtime(&fake);
    let devices = runtime.devices();
    let made = Mutex::new(0);
    let make = |name: &'static str| {
        let made = &made;
        move || {
            *lock(made) += 1;
            spec(name)
        }
    };
    let a = runtime.kernel_by(&devices[0], "id", make("a")).unwrap();
    let again = runtime.kernel_by(&devices[0], "id", make("b")).unwrap();
    assert!(a.ptr_eq(&again));
    assert_eq!(*lock(&made), 1);
    // An id is one device's, and the bytes are what counts.
    runtime.kernel_by(&devices[1], b"id", make("b")).unwrap();
    assert_eq!((*lock(&made), fake.builds()), (2, 2));

    // It is forgotten with a clear, since the generator may have changed its mind.
    drop(runtime.clear().unwrap());
    let fresh = runtime.kernel_by(&devices[0], "id", make("c")).unwrap();
    assert_eq!(fresh.module::<FakeModule>().unwrap().name, "c");
}

#[test]
fn an_id_whose_spec_fails_says_why_and_is_tried_again() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = &runtime.devices()[0];
    let broken = || KernelSpec::builder("k", Language::OpenClC).build();
    let error = runtime.kernel_by(device, "id", broken).unwrap_err();
    assert_eq!(error.to_string(), "kernel `k` has an empty source");
    assert!(matches!(error, RuntimeError::Spec(_)));
    runtime.kernel_by(device, "id", || spec("k")).unwrap();
}

#[test]
fn a_kernel_that_needs_another_is_built_inside_its_spec() {
    let fake = Fake::new();
    let runtime = runtime(&fake);
    let device = &runtime.devices()[0];
    let outer = runtime
        .kernel_by(device, "outer", || {
            let inner = runtime.kernel_by(device, "inner", || spec("inner"))?;
            let name = &inner.module::<FakeModule>().map_or("none", |module| &module.name);
            Ok::<_, RuntimeError>(spec(&format!("over_{name}")))
        })
        .unwrap();
    assert_eq!(outer.module::<FakeModule>().unwrap().name, "over_inner");

    let error = runtime
        .kernel_by(device, "loop", || {
            runtime.kernel_by(device, "loop", || spec("k")).map(|_| spec("k"))
        })
        .unwrap_err();
    assert!(format!("{error:?}").contains("Cycle"), "{error:?}");
}

#[test]
fn specs_that_no_compiler_could_take_are_refused() {
    let wrong = |spec: Result<KernelSpec, grainstore_runtime::SpecError>| match spec {
        Ok(spec) => panic!("{spec:?} was taken"),
        Err(error) => error.to_string(),
    };
    let cl = || KernelSpec::builder("k", Language::OpenClC).source("body");
    let spirv = |bytes: &[u8]| KernelSpec::builder("k", Language::SpirV).source(bytes).build();
    assert!(wrong(cl().source("").build()).contains("empty source"));
    assert!(wrong(cl().source([b'a', 0xff]).build()).contains("not UTF-8 (byte 1)"));
    assert!(wrong(cl().source("a\0b").build()).contains("NUL"));
    assert!(wrong(cl().option("-D\0").build()).contains("NUL"));
    assert!(wrong(cl().define("A", "1").define("A", "1").build()).contains("define `A` twice"));
    assert!(wrong(cl().define("A=B", "1").build()).contains("`=`"));
    assert!(wrong(cl().define("", "1").build()).contains("without a name"));
    assert!(wrong(cl().header("h", "1").header("h", "2").build()).contains("header `h` twice"));
    assert!(wrong(cl().constant("0", "1").constant("0", "2").build()).contains("constant `0`"));
    assert!(wrong(cl().entry("").build()).contains("empty entry"));
    assert!(wrong(spirv(&[1, 2, 3])).contains("3 bytes"));
    spirv(&[3, 2, 35, 7]).unwrap();
}
