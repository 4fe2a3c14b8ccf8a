//! From a spec to a kernel that computes, on whatever OpenCL driver is there.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{SAXPY, check_saxpy, launch, on_opencl, saxpy, spec};
use grainstore::{DeviceId, Family};
use grainstore_opencl::OpenClBackend;
use grainstore_runtime::{Backend, BackendError, KernelSpec, KernelSpecBuilder, Language, Target};

fn log(opencl: &OpenClBackend, device: DeviceId, builder: KernelSpecBuilder) -> String {
    match opencl.build(&device, &builder.build().unwrap()).unwrap_err() {
        BackendError::Compile { log } => log,
        other => panic!("{other}"),
    }
}

#[test]
fn a_kernel_is_built_and_computes() {
    on_opencl("a_kernel_is_built_and_computes", |opencl, device| {
        let (module, artifact) = opencl.build(&device, &saxpy()).unwrap();
        check_saxpy(&module);
        assert_eq!(module.kernels(), ["saxpy"]);
        assert!(!artifact.unwrap().binary().is_empty());
        assert!(!module.program().is_null());
        opencl.unload(module).unwrap();
    });
}

#[test]
fn headers_defines_and_options_are_really_used() {
    on_opencl("headers_defines_and_options_are_really_used", |opencl, device| {
        let source = "#include \"deep/answer.h\"\n#include \"base.h\"\n#define S(X) #X\n\
                      kernel void k(global int *x) { \
                      x[get_global_id(0)] += BASE + EXTRA + STEP + TEXT[1] + PLAIN; }";
        let spec = spec(source)
            .header("deep/answer.h", "#define EXTRA 2")
            .header(
                "base.h",
                "#ifndef EXTRA\n#error each header by its own name\n#endif\n#define BASE 40",
            )
            .define("STEP", "(1 + 2) * 100")
            .define("TEXT", "((int[]){7, 8, 9 /* \"it's\" */})")
            .option("-D")
            .option("PLAIN=1000")
            .entry("k")
            .build()
            .unwrap();
        let (module, _) = opencl.build(&device, &spec).unwrap();
        assert_eq!(launch(&module, "k", &[0, 1]), [1350, 1351]);

        let depends = "kernel void k(global int *x) { x[0] = \n#ifdef __FAST_RELAXED_MATH__\n1\n\
                       #else\n0\n#endif\n; }";
        for (option, expected) in [("-cl-fast-relaxed-math", 1), ("-cl-mad-enable", 0)] {
            for header in [false, true] {
                let mut spec = common::spec(depends).option(option);
                if header {
                    spec = spec.header("unused.h", "");
                }
                let (module, _) = opencl.build(&device, &spec.build().unwrap()).unwrap();
                assert_eq!(launch(&module, "k", &[5]), [expected], "{option} {header}");
            }
        }
    });
}

#[test]
fn a_module_without_an_entry_point_has_all_its_kernels() {
    on_opencl("a_module_without_an_entry_point_has_all_its_kernels", |opencl, device| {
        let source = "kernel void b(global int *x) { x[0] = 2; }\n\
                      kernel void a(global int *x) { x[0] = 1; }\nint helper(int x) { return x; }";
        let (module, _) = opencl.build(&device, &spec(source).build().unwrap()).unwrap();
        assert_eq!(module.kernels(), ["a", "b"]);
        assert_eq!(launch(&module, "a", &[0]), [1]);
        assert_eq!(launch(&module, "b", &[0]), [2]);
        let error = module.kernel("helper").unwrap_err().to_string();
        assert_eq!(error, "there is no entry point `helper`; there are: a, b");
        module.kernel("a\0").unwrap_err();
    });
}

#[test]
fn a_missing_entry_point_names_those_that_are_there() {
    on_opencl("a_missing_entry_point_names_those_that_are_there", |opencl, device| {
        let spec = spec(SAXPY).entry("saxpi").build().unwrap();
        match opencl.build(&device, &spec).unwrap_err() {
            BackendError::NoEntryPoint { entry, available } => {
                assert_eq!((entry.as_str(), available), ("saxpi", vec!["saxpy".to_owned()]));
            }
            other => panic!("{other}"),
        }
    });
}

#[test]
fn a_wrong_source_gives_the_compilers_log() {
    on_opencl("a_wrong_source_gives_the_compilers_log", |opencl, device| {
        let cache = std::env::var("POCL_CACHE_DIR").unwrap();
        let log = |builder| {
            let log = log(opencl, device, builder);
            assert!(!log.contains(&cache) && !log.contains("grainstore-"), "{log}");
            log
        };
        // Lines are those of the source, whatever stands in front of it.
        let wrong = "kernel void k(global int *x) {\n    x[0] = y;\n}\n";
        let error = log(spec(wrong).define("A", "1"));
        assert!(error.contains("saxpy.cl:2:12"), "{error}");
        assert!(error.contains("CL_BUILD_PROGRAM_FAILURE (-11)"), "{error}");

        let error = log(spec("#include \"h.h\"\n").header("h.h", "global int *f(void { }\n"));
        assert!(error.contains("h.h:1:"), "{error}");

        let error = log(spec("#include \"nowhere.h\"\n"));
        assert!(error.contains("nowhere.h"), "{error}");

        let error = log(spec(SAXPY).option("-cl-no-such-option"));
        assert!(error.contains("-cl-no-such-option"), "{error}");
        assert!(error.contains("CL_INVALID_BUILD_OPTIONS (-43)"), "{error}");

        let error = log(spec("int f(int); kernel void k(global int *x) { x[0] = f(1); }"));
        assert!(error.contains('f'), "{error}");
    });
}

#[test]
fn what_the_key_cannot_hold_is_refused() {
    on_opencl("what_the_key_cannot_hold_is_refused", |opencl, device| {
        let refusal = |builder: KernelSpecBuilder| match opencl
            .build(&device, &builder.build().unwrap())
            .unwrap_err()
        {
            error @ BackendError::Unsupported { .. } => error.to_string(),
            other => panic!("{other}"),
        };
        let error = refusal(spec(SAXPY).option("-I/usr/include"));
        assert!(error.contains("`-I/usr/include` of kernel `saxpy`"), "{error}");
        refusal(spec(SAXPY).constant("0", "1"));
        refusal(spec(SAXPY).define("A", "1\n#include </etc/passwd>"));
        refusal(spec(SAXPY).define("A", "1 \\"));
        refusal(KernelSpec::builder("k", Language::C).source(SAXPY));
    });
}

#[test]
fn devices_are_numbered_the_same_each_time() {
    on_opencl("devices_are_numbered_the_same_each_time", |opencl, device| {
        let devices = opencl.devices().unwrap();
        assert_eq!(OpenClBackend::new().devices().unwrap(), devices);
        for (index, device) in devices.iter().enumerate() {
            assert_eq!(device.id, DeviceId::new(Family::OPENCL, index as u32));
            assert!(!device.name.is_empty() && !device.driver.is_empty());
        }
        let target = opencl.target(&device).unwrap();
        assert!(target.as_str().contains(&devices[0].name), "{}", target.as_str());
        let toolchain = opencl.toolchain(&target).unwrap();
        assert!(toolchain.as_str().contains("driver "), "{}", toolchain.as_str());

        let missing = DeviceId::new(Family::OPENCL, 1000);
        let error = opencl.build(&missing, &saxpy()).unwrap_err();
        assert!(error.to_string().contains("there is no device OpenCL:1000"), "{error}");
        let other = DeviceId::new(Family::HOST, 0);
        assert!(matches!(opencl.target(&other).unwrap_err(), BackendError::NoDevice { .. }));
        assert!(opencl.toolchain(&Target::new("sm_90")).is_err());
        let error = opencl.compile_for(&target, &saxpy()).unwrap_err();
        assert!(matches!(error, BackendError::Unsupported { .. }), "{error}");
    });
}

#[test]
fn a_module_outlives_its_device() {
    on_opencl("a_module_outlives_its_device", |opencl, device| {
        let (old, _) = opencl.build(&device, &saxpy()).unwrap();
        opencl.destroy_device(&device).unwrap();
        // Twice is no harm, and neither is a device that never had a context.
        opencl.destroy_device(&device).unwrap();
        opencl.destroy_device(&DeviceId::new(Family::OPENCL, 1000)).unwrap();
        let (new, _) = opencl.build(&device, &saxpy()).unwrap();
        assert_ne!(old.context(), new.context(), "the device got a new context");
        check_saxpy(&old);
        check_saxpy(&new);
        let (again, _) = opencl.build(&device, &saxpy()).unwrap();
        assert_eq!(again.context(), new.context(), "one context for all");
        for module in [old, new, again] {
            opencl.unload(module).unwrap();
        }
        opencl.destroy_device(&device).unwrap();
    });
}

#[test]
fn kernels_are_built_side_by_side() {
    on_opencl("kernels_are_built_side_by_side", |opencl, device| {
        std::thread::scope(|scope| {
            for number in 0..4 {
                scope.spawn(move || {
                    let source = "kernel void k(global int *x) { x[0] = NUMBER; }";
                    let spec = spec(source).define("NUMBER", number.to_string()).build().unwrap();
                    let (module, _) = opencl.build(&device, &spec).unwrap();
                    assert_eq!(launch(&module, "k", &[0]), [number]);
                });
            }
        });
    });
}
