//! From a spec to CUBIN or PTX with NVRTC, on a machine without a driver.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;

use common::{SAXPY, hopper, on_nvrtc, saxpy, spec};
use grainstore_conformance::testing;
use grainstore_cuda::CudaBackend;
use grainstore_runtime::{
    Artifact, Backend, BackendError, KernelSpec, KernelSpecBuilder, Language, Target,
};

const CUBIN: &[u8] = b"\x7fELF";

fn compiled(cuda: &CudaBackend, builder: KernelSpecBuilder) -> Artifact {
    cuda.compile_for(&hopper(), &builder.build().unwrap()).unwrap()
}

fn refusal(cuda: &CudaBackend, builder: KernelSpecBuilder) -> BackendError {
    cuda.compile_for(&hopper(), &builder.build().unwrap()).unwrap_err()
}

fn log(cuda: &CudaBackend, builder: KernelSpecBuilder) -> String {
    match refusal(cuda, builder) {
        BackendError::Compile { log } => log,
        other => panic!("{other}"),
    }
}

/// The PTX of a source: what is in it can be read.
fn ptx(cuda: &CudaBackend, builder: KernelSpecBuilder) -> String {
    let target = Target::new("compute_80");
    let artifact = cuda.compile_for(&target, &builder.build().unwrap()).unwrap();
    assert_eq!(artifact.members()[0].name, "kernel.ptx");
    String::from_utf8(artifact.binary().to_vec()).unwrap()
}

fn names(artifact: &Artifact) -> &str {
    std::str::from_utf8(artifact.member("names").unwrap()).unwrap()
}

#[test]
fn a_kernel_is_compiled_for_a_device_that_is_not_here() {
    on_nvrtc("a_kernel_is_compiled_for_a_device_that_is_not_here", |cuda| {
        let mut done = 0;
        for target in ["sm_75", "sm_80", "sm_90", "sm_90a", "sm_100", "sm_100f", "sm_120a"] {
            let artifact = match cuda.compile_for(&Target::new(target), &saxpy()) {
                Ok(artifact) => artifact,
                // An NVRTC that is older than the architecture, or than its letter.
                Err(BackendError::Unsupported { .. }) => continue,
                Err(other) => panic!("{target}: {other}"),
            };
            done += 1;
            assert_eq!(artifact.members()[0].name, "kernel.cubin");
            assert!(artifact.binary().starts_with(CUBIN), "{target}");
            assert_eq!(names(&artifact), "entry saxpy saxpy\nkernel saxpy\n");
            let toolchain = cuda.toolchain(&Target::new(target)).unwrap();
            artifact.check_seal(&format!("{target} | {}", toolchain.as_str())).unwrap();
        }
        assert!(done >= 3, "{done}");
        assert!(matches!(cuda.devices().unwrap_err(), BackendError::Missing { .. }));
        assert_eq!(cuda.live_handles(), 0);
    });
}

#[test]
fn ptx_is_for_later_devices_too() {
    on_nvrtc("ptx_is_for_later_devices_too", |cuda| {
        let text = ptx(cuda, spec(SAXPY).entry("saxpy"));
        assert!(text.contains(".target sm_80") && text.contains(".entry saxpy("), "{text}");
        assert!(!text.contains('\0'));
    });
}

#[test]
fn the_same_source_gives_the_same_bytes() {
    on_nvrtc("the_same_source_gives_the_same_bytes", |cuda| {
        let first = cuda.compile_for(&hopper(), &saxpy()).unwrap();
        assert_eq!(first, cuda.compile_for(&hopper(), &saxpy()).unwrap());
        // The name is for people, and no part of the code.
        let other = KernelSpec::builder("other", Language::CudaCpp)
            .source(format!("{SAXPY}__device__ const char *file() {{ return __FILE__; }}"))
            .entry("saxpy");
        let renamed = KernelSpec::builder("renamed", Language::CudaCpp)
            .source(format!("{SAXPY}__device__ const char *file() {{ return __FILE__; }}"))
            .entry("saxpy");
        assert_eq!(compiled(cuda, other), compiled(cuda, renamed));
    });
}

#[test]
fn headers_defines_and_options_are_really_used() {
    on_nvrtc("headers_defines_and_options_are_really_used", |cuda| {
        let source = "#include \"deep/answer.h\"\n#include <base.h>\n\
                      extern \"C\" __global__ void k(int *x) { \
                      x[0] = BASE + EXTRA + STEP + TEXT[1] + PLAIN; }";
        let text = ptx(
            cuda,
            spec(source)
                .header("deep/answer.h", "#include \"inner.h\"\n#define EXTRA INNER")
                .header("inner.h", "#define INNER 2")
                .header("base.h", "#define BASE 40")
                .define("STEP", "(1 + 2) * 100")
                .define("TEXT", "\"a\\\"b\"")
                .option("-D")
                .option("PLAIN=1000")
                .entry("k"),
        );
        let answer = 40 + 2 + 300 + i32::from(b'"') + 1000;
        assert!(text.contains(&format!(" {answer};")), "{answer} is not in {text}");

        let divide = "extern \"C\" __global__ void k(float *x) { x[0] = x[1] / x[2]; }";
        let exact = ptx(cuda, spec(divide));
        let fast = ptx(cuda, spec(divide).option("--use_fast_math"));
        assert!(exact.contains("div.rn.f32") && fast.contains("div.approx"), "{fast}");
    });
}

#[test]
fn a_template_is_an_entry_point_by_its_expression() {
    on_nvrtc("a_template_is_an_entry_point_by_its_expression", |cuda| {
        let source = "namespace n { template <typename T, int N> __global__ void scale(T *x) \
                      { x[threadIdx.x] *= N; } }\n__global__ void plain(int *x) { *x = 1; }";
        let artifact = compiled(cuda, spec(source).entry("n::scale<float, 4>"));
        let (entry, rest) = names(&artifact).split_once('\n').unwrap();
        let lowered = entry.strip_suffix(" n::scale<float, 4>").unwrap();
        let lowered = lowered.strip_prefix("entry ").unwrap();
        assert!(lowered.starts_with("_ZN1n5scale"), "{lowered}");
        assert_eq!(rest, format!("kernel _Z5plainPi\nkernel {lowered}\n"));
        // A C++ name without arguments is an expression as well.
        let artifact = compiled(cuda, spec(source).entry("plain"));
        assert!(names(&artifact).starts_with("entry _Z5plainPi plain\n"));
        // Without an entry point there is what the source instantiates.
        assert_eq!(names(&compiled(cuda, spec(source))), "kernel _Z5plainPi\n");
    });
}

#[test]
fn a_missing_entry_point_names_those_that_are_there() {
    on_nvrtc("a_missing_entry_point_names_those_that_are_there", |cuda| {
        let source = format!("{SAXPY}__device__ int helper(int x) {{ return x; }}");
        for entry in ["saxpi", "helper", "saxpy<int>", "none<"] {
            match refusal(cuda, spec(&source).entry(entry)) {
                BackendError::NoEntryPoint { entry: asked, available } => {
                    assert_eq!((asked.as_str(), available), (entry, vec!["saxpy".to_owned()]));
                }
                other => panic!("{entry}: {other}"),
            }
        }
        // Where nothing compiles, that is what is said.
        let error = log(cuda, spec("__global__ void k() { y; }").entry("none"));
        assert!(
            error.contains("\"y\" is undefined") && !error.contains("__nv_name_map"),
            "{error}"
        );
    });
}

#[test]
fn a_wrong_source_gives_the_compilers_log() {
    on_nvrtc("a_wrong_source_gives_the_compilers_log", |cuda| {
        let wrong = "extern \"C\" __global__ void k(int *x) {\n    x[0] = y;\n}\n";
        let error = log(cuda, spec(wrong).define("A", "1"));
        assert!(error.contains("saxpy.cu(2): error"), "{error}");

        let error = log(cuda, spec("#include \"h.h\"\n").header("h.h", "int f(void { }\n"));
        assert!(error.contains("h.h(1): error"), "{error}");

        let error = log(cuda, spec("#include \"nowhere.h\"\n"));
        assert!(error.contains("nowhere.h"), "{error}");

        let error = log(cuda, spec(SAXPY).option("--std=c++1"));
        assert!(error.contains("--std"), "{error}");
    });
}

#[test]
fn no_file_outside_the_key_is_read() {
    let test = "no_file_outside_the_key_is_read";
    if testing::is_child() {
        // Here the process's own folder has such a header.
        on_nvrtc(test, |cuda| {
            let error = log(cuda, spec("#include \"beside.h\"\n"));
            assert!(error.contains("beside.h"), "{error}");
        });
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("beside.h"), "").unwrap();
    testing::in_child(test, |command| {
        command.current_dir(folder.path());
    });
    on_nvrtc(test, |cuda| {
        let path = folder.path().join("beside.h");
        let error = refusal(cuda, spec(&format!("#include \"{}\"\n", path.display())));
        assert!(matches!(error, BackendError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("`headers`"), "{error}");
        let error = refusal(cuda, spec(SAXPY).option("-I/usr/include"));
        assert!(error.to_string().contains("`-I/usr/include` of kernel `saxpy`"), "{error}");
    });
}

#[test]
fn what_cannot_be_done_is_refused() {
    on_nvrtc("what_cannot_be_done_is_refused", |cuda| {
        let unsupported = |builder: KernelSpecBuilder| match refusal(cuda, builder) {
            error @ BackendError::Unsupported { .. } => error.to_string(),
            other => panic!("{other}"),
        };
        unsupported(spec(SAXPY).constant("0", "1"));
        unsupported(spec(SAXPY).define("A B", "1"));
        unsupported(KernelSpec::builder("k", Language::OpenClC).source(SAXPY));
        unsupported(
            KernelSpec::builder("k", Language::Ptx).source(".version 8.0").define("A", "1"),
        );
        unsupported(KernelSpec::builder("k", Language::Cubin).source([0]).option("-w"));
        let error = unsupported(KernelSpec::builder("k", Language::Ptx).source(".version 8.0"));
        assert!(error.contains("by the driver"), "{error}");

        for (target, advice) in [
            ("sm_20", "of an earlier CUDA"),
            ("sm_990", "a newer NVRTC, or the target `compute_"),
            ("gfx90a", "write `sm_90`"),
        ] {
            let error = cuda.compile_for(&Target::new(target), &saxpy()).unwrap_err().to_string();
            assert!(error.contains(target) && error.contains(advice), "{error}");
        }
        assert!(cuda.toolchain(&Target::new("gfx90a")).is_err());
    });
}

#[test]
fn an_empty_result_is_an_error() {
    // Both are known not to make code, so they are refused as long as nobody vouches for them.
    for nvrtc in common::nvrtcs() {
        let mut builder =
            CudaBackend::builder().allow_option("--fdevice-syntax-only").allow_option("-dlto");
        if let Some(path) = nvrtc {
            builder = builder.nvrtc(path);
        }
        let cuda = builder.build();
        if let Err(missing) = cuda.toolchain(&hopper()) {
            return testing::not_run("an_empty_result_is_an_error", "nvrtc", missing);
        }
        let error = log(&cuda, spec(SAXPY).option("-dlto"));
        assert!(error.contains("no code for sm_90"), "{error}");
        let error = log(&cuda, spec(SAXPY).entry("saxpy").option("--fdevice-syntax-only"));
        let unknown = "unrecognized option"; // to NVRTC before 12
        assert!(error.contains("no code for sm_90") || error.contains(unknown), "{error}");
    }
}

#[test]
fn ready_made_code_is_an_artifact_as_it_is() {
    on_nvrtc("ready_made_code_is_an_artifact_as_it_is", |cuda| {
        let made = cuda.compile_for(&hopper(), &saxpy()).unwrap();
        let cubin = |bytes: &[u8]| KernelSpec::builder("made", Language::Cubin).source(bytes);
        let artifact = compiled(cuda, cubin(made.binary()).entry("saxpy"));
        assert_eq!(artifact.members()[..2], made.members()[..2], "the names are in the file");
        match refusal(cuda, cubin(made.binary()).entry("other")) {
            BackendError::NoEntryPoint { available, .. } => assert_eq!(available, ["saxpy"]),
            other => panic!("{other}"),
        }
        for length in [1, 63, 64, made.binary().len() / 2, made.binary().len() - 1] {
            log(cuda, cubin(&made.binary()[..length]));
        }

        // Wherever a bit is wrong, it is looked through to its end, or refused.
        for at in 0..made.binary().len().min(2048) {
            let mut flipped = made.binary().to_vec();
            flipped[at] ^= 0x81;
            let spec = cubin(&flipped).build().unwrap();
            if let Err(error) = cuda.compile_for(&hopper(), &spec) {
                assert!(matches!(error, BackendError::Compile { .. }), "{error}");
            }
        }

        let target = Target::new("compute_80");
        let text = cuda.compile_for(&target, &saxpy()).unwrap();
        let spec = KernelSpec::builder("made", Language::Ptx)
            .source(text.binary())
            .entry("saxpy")
            .build()
            .unwrap();
        let artifact = cuda.compile_for(&target, &spec).unwrap();
        assert_eq!(artifact.members()[..2], text.members()[..2]);
    });
}

#[test]
fn the_toolchain_tells_compilers_apart() {
    let mut seen = Vec::new();
    for nvrtc in common::nvrtcs() {
        let cuda = common::compiler(nvrtc);
        match cuda.toolchain(&hopper()) {
            Ok(toolchain) => {
                let text = toolchain.as_str().to_owned();
                assert!(text.starts_with("nvrtc 1") && text.contains(", build "), "{text}");
                assert!(!text.contains('/') && !text.contains("unknown"), "{text}");
                let spec = KernelSpec::builder("k", Language::Cubin).source([0]).build().unwrap();
                let ready = cuda.toolchain_for(&hopper(), &spec).unwrap();
                assert_eq!(ready.as_str(), "cubin as it is");
                assert_eq!(cuda.toolchain_for(&hopper(), &saxpy()).unwrap(), toolchain);
                assert!(!seen.contains(&text), "{text} is two libraries");
                seen.push(text);
            }
            Err(missing) => {
                testing::not_run("the_toolchain_tells_compilers_apart", "nvrtc", missing);
            }
        }
    }
}

#[test]
fn kernels_are_compiled_side_by_side() {
    on_nvrtc("kernels_are_compiled_side_by_side", |cuda| {
        let alone: Vec<_> = (0..8).map(|number| compiled(cuda, numbered(number))).collect();
        std::thread::scope(|scope| {
            for (number, alone) in alone.iter().enumerate() {
                scope.spawn(move || assert_eq!(compiled(cuda, numbered(number)), *alone));
            }
        });
    });
}

fn numbered(number: usize) -> KernelSpecBuilder {
    spec("extern \"C\" __global__ void k(int *x) { x[0] = NUMBER; }")
        .define("NUMBER", number.to_string())
        .entry("k")
}
