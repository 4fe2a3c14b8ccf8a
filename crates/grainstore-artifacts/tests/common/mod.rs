//! What the tests share: keys, groups, and asking for what only root can do.
#![allow(dead_code, reason = "each test program uses some of it")]

use grainstore::KernelKey;
use grainstore_artifacts::Group;

/// The number-th of many keys that differ.
pub(crate) fn key(number: usize) -> KernelKey {
    KernelKey::builder(format!("kernel-{number}"))
        .target("x86_64")
        .toolchain("cc 12.2.0")
        .language("c")
        .source("int answer(void) { return 42; }")
        .define("BLOCK", "128")
        .build()
        .expect("a key")
}

/// A small group with one of everything.
pub(crate) fn group() -> Group {
    Group::new("kernel.so", vec![0x7f, b'E', b'L', b'F', 1, 2, 3])
        .with_member("kernel.c", &b"int answer(void) { return 42; }"[..])
        .with_metadata(serde_json::json!({ "registers": 32 }))
        .with_toolchain("cc 12.2.0")
        .with_compile_time(std::time::Duration::from_millis(30))
}

/// Makes the seal right again, as somebody could who changes a file on purpose.
pub(crate) fn reseal(file: &mut [u8]) {
    let (signed, seal) = file.split_at_mut(file.len() - 32);
    let (content, signature) = signed.split_at(signed.len() - 104);
    let mut outer = blake3::Hasher::new();
    outer.update(blake3::hash(content).as_bytes()).update(signature);
    seal.copy_from_slice(outer.finalize().as_bytes());
}

/// Says that a test did not run, since this machine does not let it do what it needs: `chown` a
/// file to somebody else, `mount` a file system. Where `GRAINSTORE_REQUIRE` (a list with commas)
/// names that, it is a failure.
pub(crate) fn not_run(what: &str, why: impl std::fmt::Display) {
    let required = std::env::var("GRAINSTORE_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|name| name == what), "{what} is required, but: {why}");
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    eprintln!("not run: {test}: it needs to {what}, but: {why}");
}
