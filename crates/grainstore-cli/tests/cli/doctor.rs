//! `grainstore doctor` as its users run it.

use crate::place::{Place, Ran};

fn backend<'a>(json: &'a serde_json::Value, name: &str) -> &'a serde_json::Value {
    let backends = json["backends"].as_array().unwrap();
    backends.iter().find(|backend| backend["backend"] == name).unwrap()
}

#[test]
fn the_host_compiles_launches_and_computes() {
    let place = Place::new();
    // Another backend may well be here and broken; that is not this test's concern.
    let ran = place.run(&["doctor", "--json"]);
    let json = ran.json();
    let host = backend(&json, "host");
    assert_eq!(host["found"], true, "{json}");
    assert_eq!(host["compiled"], true);
    assert_eq!(host["launched"], true);
    assert_eq!(host["error"], serde_json::Value::Null);
    assert_eq!(host["devices"][0]["id"], "host:0");
    assert!(host["compiler"].as_str().is_some_and(|text| !text.is_empty()));
    assert!(host["driver"].as_str().is_some_and(|text| !text.is_empty()));
    assert_eq!(json["store"]["writable"], true);
    assert_eq!(json["store"]["path"], place.path("store").to_str().unwrap());
    assert_eq!(json["remote"], serde_json::Value::Null);
    assert_eq!(place.stored().len(), 0, "it leaves nothing behind");
    let stats = place.run(&["stats", "--json"]).expect(0).json();
    for figure in ["hits", "misses", "writes", "removed"] {
        assert_eq!(stats[figure], 0, "{figure} counts what nobody asked for: {stats}");
    }
}

#[test]
fn opencl_compiles_launches_and_computes() {
    let place = Place::new();
    if place.has("opencl") {
        let json = place.run(&["doctor", "--json"]).expect(0).json();
        let opencl = backend(&json, "opencl");
        assert_eq!(opencl["compiled"], true);
        assert!(!opencl["devices"].as_array().unwrap().is_empty());
        assert_eq!(opencl["error"], serde_json::Value::Null);
    }
}

#[test]
fn a_missing_driver_is_told_with_a_hint_and_is_no_failure() {
    let place = Place::new();
    let mut command = place.grainstore(&["doctor", "--json"]);
    command.env("OPENCL_DYLIB_PATH", "/nowhere/libOpenCL.so");
    let json = Ran::new(command.output().unwrap()).expect(0).json();
    let opencl = backend(&json, "opencl");
    assert_eq!(opencl["found"], false);
    assert!(opencl["error"].as_str().unwrap().contains("/nowhere/libOpenCL.so"), "{json}");
    assert!(opencl["hint"].as_str().is_some_and(|hint| !hint.is_empty()));
}

#[test]
fn a_missing_compiler_is_told_with_a_hint_and_the_rest_is_examined() {
    let place = Place::new();
    let mut command = place.grainstore(&["doctor", "--json"]);
    let ran = Ran::new(command.env("CC", "/nowhere/cc").output().unwrap());
    let json = ran.json();
    let host = backend(&json, "host");
    assert_eq!(host["found"], false);
    assert!(host["error"].as_str().unwrap().contains("/nowhere/cc"), "{json}");
    assert!(host["hint"].as_str().is_some_and(|hint| !hint.is_empty()));
    assert_eq!(json["store"]["writable"], true);
    assert_eq!(backend(&json, "opencl")["backend"], "opencl");
}

#[test]
fn a_compiler_that_fails_is_broken_and_not_missing() {
    let place = Place::new();
    place.write(
        "cc",
        "#!/bin/sh\ncase \"$*\" in *.c*) echo no licence >&2; exit 1;; esac\nexec cc \"$@\"\n",
    );
    make_executable(&place.path("cc"));
    let mut command = place.grainstore(&["doctor", "--json"]);
    let ran = Ran::new(command.env("CC", place.path("cc")).output().unwrap()).expect(1);
    let json = ran.json();
    let host = backend(&json, "host");
    assert_eq!(host["found"], true, "{json}");
    assert_eq!(host["launched"], false);
    assert!(host["error"].as_str().unwrap().contains("no licence"), "{json}");
}

#[test]
fn a_store_that_cannot_be_made_is_told() {
    let place = Place::new();
    place.write("file", "in the way");
    let ran = place.run(&["doctor", "--store", "file/store"]).expect(3);
    assert!(ran.out.contains("can't be used"), "{}", ran.out);
    let json = place.run(&["doctor", "--json", "--store", "file/store"]).expect(3).json();
    assert_eq!(json["store"]["readable"], false);
    assert!(json["store"]["error"].as_str().unwrap().contains("/file"));
}

fn make_executable(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
