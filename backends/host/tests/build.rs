//! From a spec to a function that computes.

mod common;

use common::{DEVICE, SAXPY, answer, check_saxpy, listing, saxpy, spec};
use grainstore::{DeviceId, Family};
use grainstore_host::HostBackend;
use grainstore_runtime::{Backend, BackendError, KernelSpec, Language, Target};

#[test]
fn a_kernel_is_built_and_computes() {
    let host = HostBackend::new();
    let (module, artifact) = host.build(&DEVICE, &saxpy()).unwrap();
    check_saxpy(&module);
    assert_eq!(module.functions(), ["saxpy"]);
    assert_eq!(module.bytes(), artifact.unwrap().binary().len() as u64);
    module.function("saxpy").unwrap();
    let error = module.function("saxp").unwrap_err().to_string();
    assert_eq!(error, "there is no entry point `saxp`; there are: saxpy");
    host.unload(module).unwrap();
}

#[test]
fn headers_defines_and_options_are_really_used() {
    let source = "#include <math.h>\n#include \"deep/answer.h\"\n\
                  int answer(void) { return BASE + EXTRA + STEP + (int)sqrt(TEXT[0]); }";
    let spec = spec(source)
        .header("deep/answer.h", "#include \"../base.h\"\n#define EXTRA 2\n")
        .header("base.h", "#define BASE 40\n")
        .define("STEP", "(1 + 2) * 100")
        .define("TEXT", "\"d e\\\"$HOME'\"")
        .option("-DUNUSED=a b")
        .build()
        .unwrap();
    let (module, _) = HostBackend::new().build(&DEVICE, &spec).unwrap();
    assert_eq!(answer(&module, "answer"), 42 + 300 + 10);

    let depends = "int answer(void) { return\n#ifdef __FAST_MATH__\n1\n#else\n0\n#endif\n; }";
    let spec = common::spec(depends).option("-ffast-math").build().unwrap();
    let (module, _) = HostBackend::new().build(&DEVICE, &spec).unwrap();
    assert_eq!(answer(&module, "answer"), 1);
}

#[test]
fn a_module_without_an_entry_point_has_all_its_functions() {
    let source = "int one(void) { return 1; } int two(void) { return 2; }\n\
                  static int hidden(void) { return 3; } int shown = 4; int (*keep)(void) = hidden;";
    let (module, _) = HostBackend::new().build(&DEVICE, &spec(source).build().unwrap()).unwrap();
    assert_eq!(module.functions(), ["one", "two"]);
    assert_eq!(answer(&module, "two"), 2);
    // Neither a variable nor a function of a library below it.
    module.function("shown").unwrap_err();
    module.function("sin").unwrap_err();
    // SAFETY: nothing is called.
    let error = unsafe { module.get::<unsafe extern "C" fn()>("three") }.unwrap_err();
    assert_eq!(error.to_string(), "there is no entry point `three`; there are: one, two");
}

#[test]
fn a_missing_entry_point_names_those_that_are_there() {
    let spec = spec(SAXPY).entry("saxpi").build().unwrap();
    let host = HostBackend::new();
    let outcomes = [
        host.build(&DEVICE, &spec).map(drop),
        host.compile_for(&host.target(&DEVICE).unwrap(), &spec).map(drop),
    ];
    for outcome in outcomes {
        match outcome.unwrap_err() {
            BackendError::NoEntryPoint { entry, available } => {
                assert_eq!((entry.as_str(), available), ("saxpi", vec!["saxpy".to_owned()]));
            }
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_wrong_source_gives_the_compilers_log() {
    let log = |builder: grainstore_runtime::KernelSpecBuilder| match HostBackend::new()
        .build(&DEVICE, &builder.build().unwrap())
        .unwrap_err()
    {
        BackendError::Compile { log } => log,
        other => panic!("{other}"),
    };
    let error = log(spec("int f(void) {\n    return x;\n}\n"));
    assert!(error.contains("saxpy.c:2:12: error:"), "{error}");
    assert!(!error.contains("grainstore-"), "{error}");
    assert!(!error.contains(&*std::env::temp_dir().to_string_lossy()), "{error}");

    let error = log(spec("#include \"common.h\"\n").header("common.h", "int broken = no;\n"));
    assert!(error.contains("common.h:1:14: error"), "{error}");
    assert!(!error.contains("grainstore-"), "{error}");

    let error = log(spec(SAXPY).option("-fno-such-option"));
    assert!(error.contains("-fno-such-option"), "{error}");

    // Undefined is an error now, not when it is loaded.
    let error = log(spec("int g(int); int f(void) { return g(1); }"));
    assert!(error.contains("saxpy.o") && error.contains("`g'"), "{error}");
    assert!(!error.contains(&*std::env::temp_dir().to_string_lossy()), "{error}");
}

#[test]
fn what_the_key_cannot_hold_is_refused() {
    let refusal = |builder: grainstore_runtime::KernelSpecBuilder| match HostBackend::new()
        .build(&DEVICE, &builder.build().unwrap())
        .unwrap_err()
    {
        error @ BackendError::Unsupported { .. } => error.to_string(),
        other => panic!("{other}"),
    };
    let error = refusal(spec(SAXPY).option("-I/usr/local/include"));
    assert!(error.contains("`-I/usr/local/include` of kernel `saxpy`"), "{error}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret.h");
    std::fs::write(&path, "#define SECRET 1\n").unwrap();
    let error = refusal(spec(&format!("#include \"{}\"\n{SAXPY}", path.display())));
    assert!(error.contains("secret.h"), "{error}");
    assert!(error.contains("give the header's content with the spec"), "{error}");

    for name in ["../up.h", "/etc/up.h", "a/../../up.h", ".", "a\\b.h"] {
        let error = refusal(spec(SAXPY).header(name, ""));
        assert!(error.contains("relative path"), "{name}: {error}");
    }
    refusal(spec(SAXPY).constant("0", "1"));
    refusal(KernelSpec::builder("k", Language::OpenClC).source(SAXPY));
}

#[test]
fn the_same_spec_gives_the_same_bytes_anywhere() {
    let source = "#include \"h.h\"\nconst char *where(void) { return __FILE__ H __DATE__ __TIME__ __TIMESTAMP__; }";
    let [near, far] = ["a", "much/longer/name"].map(|name| {
        let folder = tempfile::tempdir().unwrap();
        let scratch = folder.path().join(name);
        std::fs::create_dir_all(&scratch).unwrap();
        let host = HostBackend::builder().scratch_folder(&scratch).build();
        let spec = KernelSpec::builder(name.replace('/', "_"), Language::C)
            .source(source)
            .header("h.h", "#define H __FILE__\n")
            .option("-g")
            .build()
            .unwrap();
        let artifact = host.build(&DEVICE, &spec).unwrap().1.unwrap();
        assert_eq!(listing(&scratch), [""; 0], "something stayed behind");
        artifact
    });
    // Two builds of one second would agree on the time, too.
    let epoch = b"Jan  1 197000:00:00Thu Jan  1 00:00:00 1970";
    assert!(near.binary().windows(epoch.len()).any(|part| part == epoch));
    assert!(near == far, "the folder or the name got into the bytes");
}

#[test]
fn nothing_stays_behind_when_a_build_fails() {
    let folder = tempfile::tempdir().unwrap();
    let host = HostBackend::builder().scratch_folder(folder.path()).build();
    for source in ["int f(void) { return x; }", "int g(int); int f(void) { return g(1); }"] {
        host.build(&DEVICE, &spec(source).build().unwrap()).unwrap_err();
    }
    assert_eq!(listing(folder.path()), [""; 0]);
}

#[test]
fn a_scratch_folder_that_is_not_there_is_named() {
    let host = HostBackend::builder().scratch_folder("/nowhere/at/all").build();
    let error = host.build(&DEVICE, &saxpy()).unwrap_err().to_string();
    assert!(error.contains("/nowhere/at/all"), "{error}");
}

#[test]
fn there_is_one_device_and_one_target() {
    let host = HostBackend::new();
    let devices = host.devices().unwrap();
    assert_eq!(devices.len(), 1);
    assert_eq!(devices[0].id, DEVICE);
    assert!(!devices[0].name.is_empty() && !devices[0].driver.is_empty());
    let error = host.target(&DeviceId::new(Family::HOST, 1)).unwrap_err();
    assert!(matches!(error, BackendError::NoDevice { .. }));
    assert!(host.build(&DeviceId::new(Family::OPENCL, 0), &saxpy()).is_err());

    let error = host.compile_for(&Target::new("riscv64-linux-gnu"), &saxpy()).unwrap_err();
    assert!(matches!(error, BackendError::Unsupported { .. }), "{error}");
    host.destroy_device(&DEVICE).unwrap();
}

#[test]
fn native_enters_the_toolchain_of_its_spec_alone() {
    let host = HostBackend::new();
    let target = host.target(&DEVICE).unwrap();
    let plain = host.toolchain(&target).unwrap();
    assert_eq!(host.toolchain_for(&target, &saxpy()).unwrap(), plain);
    let native = spec(SAXPY).option("-march=native").build().unwrap();
    let toolchain = host.toolchain_for(&target, &native).unwrap();
    assert!(toolchain.as_str().starts_with(plain.as_str()));
    assert!(toolchain.as_str().contains("; native is "), "{}", toolchain.as_str());
    assert!(toolchain.as_str().len() > plain.as_str().len() + 20, "{}", toolchain.as_str());
    check_saxpy(&host.build(&DEVICE, &native).unwrap().0);
}

#[test]
fn kernels_are_built_side_by_side() {
    let host = HostBackend::new();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let host = &host;
            scope.spawn(move || {
                let source = format!("int answer(void) {{ return {number}; }}");
                let (module, _) = host.build(&DEVICE, &spec(&source).build().unwrap()).unwrap();
                assert_eq!(answer(&module, "answer"), number);
            });
        }
    });
}
