//! Files and fingerprints of format 1 as they were when it was frozen: every later release reads
//! them, and writes them byte for byte.
//!
//! A failure here means that stores in the field would be lost. It is not mended by making the files
//! anew, but by undoing what changed them, or by another version of the format.
#![allow(clippy::unwrap_used, reason = "a test that can't set its scene should fail")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use grainstore::{ElementType, KernelKey, PlanKey, TensorDesc};
use grainstore_artifacts::{EntryKey, ForeignKey, Group, Signature, encode, parse};

fn kernel() -> KernelKey {
    KernelKey::builder("saxpy")
        .entry("saxpy")
        .target("sm_90a")
        .toolchain("nvrtc 12.9.86")
        .language("cuda-c++")
        .source("__global__ void saxpy() {}")
        .header("common.h", "#pragma once")
        .define("BLOCK", "128")
        .constant("0", "7")
        .option("--use_fast_math")
        .option("-lineinfo")
        .build()
        .unwrap()
}

fn plan() -> PlanKey {
    let tensor = TensorDesc::contiguous(ElementType::F16, &[1, 128, 4096]).unwrap();
    PlanKey::builder()
        .artifact("sha256:9f86d081884c7d65")
        .target("sm_90a")
        .compiler("nvrtc 12.9 -O3")
        .specialization("attention<64>")
        .scalar("scale", "0.125")
        .input(tensor.clone())
        .output(tensor)
        .build()
        .unwrap()
}

fn foreign() -> ForeignKey {
    ForeignKey::new("triton", *b"f0e1d2c3 matmul 128x128").unwrap()
}

fn everything() -> Group {
    Group::new("saxpy.cubin", (0..=255).collect::<Vec<u8>>())
        .with_member("saxpy.ptx", &b"// none"[..])
        .with_member("saxpy.log", vec![])
        .with_metadata(serde_json::json!({ "registers": 32, "spills": [], "ratio": 0.1 }))
        .with_toolchain("nvrtc 12.9.86")
        .with_compile_time(Duration::from_micros(21_500))
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn check(name: &str, key: &impl EntryKey, group: &Group, signature: Option<Signature>) {
    let mut written = encode(key, group).unwrap();
    if let Some(signature) = signature {
        written = signature.put_into(&written).unwrap();
    }
    let path = file(name);
    // How they came to be. It makes none that is there.
    if !path.exists() && std::env::var_os("GRAINSTORE_FREEZE").is_some() {
        std::fs::write(&path, &written).unwrap();
    }
    let golden = Bytes::from(std::fs::read(&path).unwrap());
    assert!(golden == written, "{name} is not what was written when the format was frozen");
    let entry = parse(&golden, Some(&key.fingerprint())).unwrap();
    assert_eq!(entry.namespace(), key.namespace());
    assert!(entry.fields().map(|(name, value)| (name.into(), value.into())).eq(key.fields()));
    assert_eq!(entry.group(), group);
    assert_eq!(entry.signature(), signature.as_ref());
}

#[test]
fn a1_golden_files_are_read_and_written() {
    check(
        "smallest.grain",
        &KernelKey::builder("k").build().unwrap(),
        &Group::new("k", vec![1]),
        None,
    );
    check("everything.grain", &kernel(), &everything(), None);
    check("plan.grain", &plan(), &Group::new("plan.bin", vec![0; 100]), None);
    check("foreign.grain", &foreign(), &everything(), None);
    let signature = Signature {
        public_key: std::array::from_fn(|at| at as u8),
        signature: std::array::from_fn(|at| 255 - at as u8),
    };
    check("signed.grain", &kernel(), &everything(), Some(signature));
}

#[test]
fn k5_golden_fingerprints() {
    let smallest = KernelKey::builder("k").build().unwrap();
    let fingerprints = [
        smallest.fingerprint(),
        kernel().fingerprint(),
        plan().fingerprint(),
        EntryKey::fingerprint(&foreign()),
    ];
    let shown = fingerprints.map(|fingerprint| fingerprint.to_string());
    assert_eq!(
        shown,
        [
            "33e13eb67831c0efae18f7800cd6422c35640482d241e958ab7562954d30e61b",
            "19ef9d0c6d71b5a45a6aed2b2d01e252f3d322f53e94b134cce92956c856a9e8",
            "ca4ffdf74555c388d6ea1e123dfa2bd8226a8a733c98d3de99ec7f42cc9079bf",
            "8b422b418f5c13b8da9cdb112711b84b2e34576d916479bd33878948f37a6920",
        ]
    );
}

#[test]
fn k5_golden_seals() {
    // The digest of the content, which a signature would be over.
    let digest = |name: &str| {
        let golden = Bytes::from(std::fs::read(file(name)).unwrap());
        let entry = parse(&golden, None).unwrap();
        entry.content_digest().iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    assert_eq!(
        digest("everything.grain"),
        "0a87a22c997efc3e75bbf3d7fe3fddd33a7b49b7cb634b0e797883b382f5bc19"
    );
    assert_eq!(digest("signed.grain"), digest("everything.grain"));
}
