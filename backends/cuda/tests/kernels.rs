//! The example kernels in CUDA C++, as their manifest has them, compiled for real architectures.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::on_nvrtc;
use grainstore_cuda::CudaBackend;
use grainstore_runtime::{Backend, BackendError, KernelSpec, Language, Target};
use toml::{Table, Value};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kernels")
}

/// Every kernel that the manifest has in CUDA C++, in all its variants.
fn kernels() -> Vec<Vec<KernelSpec>> {
    let manifest = fs::read_to_string(folder().join("grainstore.toml")).unwrap();
    let manifest: Table = manifest.parse().unwrap();
    manifest["kernel"].as_array().unwrap().iter().filter_map(variants).collect()
}

fn variants(kernel: &Value) -> Option<Vec<KernelSpec>> {
    let texts = |name: &str| -> Vec<&str> {
        let list = kernel.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let source = texts("sources").into_iter().find(|file| file.ends_with(".cu"))?;
    let options = kernel.get("options_for").and_then(|options| options.get("cuda-c++"));
    let options = options.and_then(Value::as_array).into_iter().flatten();
    let options: Vec<_> = options.map(|option| option.as_str().unwrap()).collect();
    let mut specs = vec![Vec::new()];
    for (name, values) in kernel["defines"].as_table().unwrap() {
        let values = values.as_array().cloned().unwrap_or_else(|| vec![values.clone()]);
        let with = |defines: Vec<(String, String)>| {
            let all = values.iter().map(|value| (name.clone(), text(value)));
            all.map(|define| [defines.clone(), vec![define]].concat()).collect::<Vec<_>>()
        };
        specs = specs.into_iter().flat_map(with).collect();
    }
    let spec = |defines: Vec<(String, String)>| {
        let name = kernel["name"].as_str().unwrap();
        let mut spec = KernelSpec::builder(name, Language::CudaCpp)
            .source(fs::read(folder().join(source)).unwrap());
        for header in texts("headers") {
            spec = spec.header(header, fs::read(folder().join(header)).unwrap());
        }
        for option in &options {
            spec = spec.option(*option);
        }
        for (name, value) in defines {
            spec = spec.define(name, value);
        }
        match kernel.get("entry").and_then(Value::as_str) {
            Some(entry) => spec.entry(entry).build().unwrap(),
            None => spec.build().unwrap(),
        }
    };
    Some(specs.into_iter().map(spec).collect())
}

/// A define's value as the preprocessor gets it.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Boolean(flag) => u8::from(*flag).to_string(),
        Value::Integer(number) => number.to_string(),
        other => panic!("the examples have no define such as {other:?}"),
    }
}

fn kernel(name: &str) -> Vec<KernelSpec> {
    kernels().into_iter().find(|specs| specs[0].name() == name).unwrap()
}

/// Every second variant for one architecture, from this one on: so that no test takes long.
fn variants_of(test: &str, name: &str, first: usize) {
    let specs = kernel(name);
    on_nvrtc(test, |cuda| {
        specs.iter().skip(first).step_by(2).for_each(|spec| compile(cuda, "sm_90", spec));
    });
}

/// One variant for an architecture of every family that the compiler knows, and as PTX.
fn families_of(test: &str, name: &str) {
    let spec = kernel(name).swap_remove(0);
    on_nvrtc(test, |cuda| {
        for family in FAMILIES {
            match cuda.compile_for(&Target::new(family), &spec) {
                Ok(artifact) => assert!(!artifact.binary().is_empty()),
                // This compiler is too old or too new for it.
                Err(BackendError::Unsupported { .. }) => {}
                Err(other) => panic!("{name} for {family}: {other}"),
            }
        }
    });
}

/// One of each; every compiler of CUDA 12 and 13 knows most of them.
const FAMILIES: [&str; 7] =
    ["sm_60", "sm_75", "sm_80", "sm_100f", "sm_110", "sm_120a", "compute_75"];

macro_rules! every_kernel {
    ($($test:ident $name:literal)*) => {
        mod even_variants {
            $(#[test] fn $test() { super::variants_of(stringify!($test), $name, 0); })*
        }

        mod odd_variants {
            $(#[test] fn $test() { super::variants_of(stringify!($test), $name, 1); })*
        }

        mod families {
            $(#[test] fn $test() { super::families_of(stringify!($test), $name); })*
        }

        #[test]
        fn every_kernel_has_a_test() {
            let names: Vec<_> =
                kernels().iter().map(|specs| specs[0].name().to_owned()).collect();
            assert_eq!(names, [$($name),*]);
            assert!(kernels().iter().flatten().count() >= 40);
        }
    };
}

every_kernel! {
    saxpy "saxpy"
    reduction "reduction"
    scan "scan"
    matmul "matmul"
    softmax "softmax"
    rms_norm "rms-norm"
    attention "attention"
    conv2d "conv2d"
}

#[test]
fn doubles_compile_where_the_manifest_has_only_floats() {
    on_nvrtc("doubles_compile_where_the_manifest_has_only_floats", |cuda| {
        let sources = ["conv2d", "matmul", "rms_norm", "saxpy", "scan", "softmax"];
        for name in sources {
            let spec = KernelSpec::builder(name, Language::CudaCpp)
                .source(fs::read(folder().join(format!("{name}.cu"))).unwrap())
                .header("common.h", fs::read(folder().join("common.h")).unwrap())
                .define("T", "double")
                .build()
                .unwrap();
            compile(cuda, "sm_90", &spec);
        }
    });
}

fn compile(cuda: &CudaBackend, target: &str, spec: &KernelSpec) {
    let artifact = cuda.compile_for(&Target::new(target), spec).unwrap_or_else(|error| {
        panic!("{} {:?} for {target}: {error}", spec.name(), spec.defines())
    });
    let names = std::str::from_utf8(artifact.member("names").unwrap()).unwrap();
    let kernels = if spec.name() == "scan" { 2 } else { 1 };
    assert_eq!(names.matches("kernel ").count(), kernels, "{names}");
}
