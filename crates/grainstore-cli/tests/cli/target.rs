//! `grainstore warm --target`: kernels for machines that this one is not.

use crate::place::{Place, THREE};

fn figure(json: &serde_json::Value, name: &str) -> u64 {
    json[name].as_u64().unwrap_or_else(|| panic!("no {name}: {json}"))
}

#[test]
fn a_target_asks_for_what_its_devices_ask_for_and_doctor_tells_it() {
    let place = Place::with_manifest(THREE);
    place.run(&["warm", "--backend", "host"]).expect(0);
    let stored = place.run(&["ls", "--json"]).expect(0).json();
    let target = stored["artifacts"][0]["target"].as_str().unwrap();
    let doctor = place.run(&["doctor", "--json"]).json();
    assert_eq!(doctor["backends"][0]["backend"], "host");
    let device = &doctor["backends"][0]["devices"][0];
    assert_eq!(device["target"], target, "{device}");
    let toolchain = format!("host: {}", device["toolchain"].as_str().unwrap());
    assert_eq!(stored["artifacts"][0]["toolchain"], toolchain);
    let warm = ["warm", "--backend", "host", "--target", target, "--json"];
    let json = place.run(&warm).expect(0).json();
    assert_eq!((figure(&json, "compiled"), figure(&json, "disk")), (0, 3), "{json}");
    assert_eq!(json["kernels"][0]["device"], target);

    // And the other way round: what was made for the target is there for the device.
    let other = Place::with_manifest(THREE);
    let json = other.run(&warm).expect(0).json();
    assert_eq!((figure(&json, "compiled"), figure(&json, "disk")), (3, 0), "{json}");
    let json = other.run(&["warm", "--backend", "host", "--json"]).expect(0).json();
    assert_eq!((figure(&json, "compiled"), figure(&json, "disk")), (0, 3), "{json}");
}

#[test]
fn a_target_that_nobody_knows_is_told_with_what_each_backend_says() {
    let place = Place::with_manifest(THREE);
    let ran = place.run(&["warm", "--target", "sm_9O"]).expect(3);
    ran.says("no backend compiles these kernels for `sm_9O`").says("host: ");
    // The second of two is not passed over because the first is known.
    let known = format!("{}-linux-gnu", std::env::consts::ARCH);
    place.run(&["warm", "--target", &known, "--target", "nothing"]).expect(3).says("`nothing`");
    assert!(!place.path("store").exists(), "nothing was begun");
}

/// A kernel for both, of which OpenCL's drivers compile only for their own devices.
const BOTH: &str = "[[kernel]]\nname = \"saxpy\"\nsources = [\"saxpy.c\", \"saxpy.cl\"]\n";

#[test]
fn who_compiles_only_on_a_device_takes_no_part() {
    let place = Place::with_manifest(BOTH);
    place.write("saxpy.cl", "kernel void saxpy(global float *y) { y[0] += 1; }");
    let native = format!("{}-linux-gnu", std::env::consts::ARCH);
    let json = place.run(&["warm", "--target", &native, "--json"]).expect(0).json();
    assert_eq!((figure(&json, "compiled"), figure(&json, "failed")), (1, 0), "{json}");

    // Named, it is the one error there is, and tells the way out.
    let named = ["warm", "--backend", "host", "--backend", "opencl", "--target", &native];
    let named = [&named[..], &["--store", "none"]].concat();
    let ran = place.run(&named).expect(2);
    ran.says("opencl: compiles only on a device that is here").says("`warm --backend opencl`");
    assert_eq!(ran.err.matches("error").count(), 1, "{}", ran.err);

    // So it is where no kernel is for another.
    place.write("grainstore.toml", "[[kernel]]\nname = \"saxpy\"\nsource = \"saxpy.cl\"\n");
    let ran = place.run(&["warm", "--target", "sm_90", "--store", "none"]).expect(2);
    ran.says("opencl: compiles only on a device");
    assert!(!place.path("none").exists(), "nothing was begun");
}

#[test]
fn the_target_of_a_device_that_must_be_here_is_told_as_such() {
    let place = Place::with_manifest(BOTH);
    place.write("saxpy.cl", "kernel void saxpy(global float *y) { y[0] += 1; }");
    if !place.has("opencl") {
        return;
    }
    place.run(&["warm", "--backend", "opencl"]).expect(0);
    let stored = place.run(&["ls", "--json"]).expect(0).json();
    let target = stored["artifacts"][0]["target"].as_str().unwrap();
    for text in [target, "OpenCL:0"] {
        let ran = place.run(&["warm", "--target", text, "--store", "none"]).expect(2);
        ran.says("opencl: compiles only on a device that is here");
        assert!(!place.path("none").exists(), "nothing was begun");
    }
}

#[test]
fn kernels_that_no_backend_takes_are_told_with_a_target_too() {
    let place = Place::with_manifest("[[kernel]]\nname = \"saxpy\"\nsource = \"saxpy.cl\"\n");
    place.write("saxpy.cl", "kernel void saxpy(global float *y) { y[0] += 1; }");
    let ran = place.run(&["warm", "--backend", "host", "--target", "sm_90"]).expect(2);
    ran.says("is for host");
    place.write("grainstore.toml", "[[kernel]]\nname = \"k\"\nsource = \"k.metal\"\n");
    place.write("k.metal", "kernel void k() {}");
    let ran = place.run(&["warm", "--target", "sm_90"]).expect(3);
    ran.says("no backend of this program takes");
    place.run(&["warm"]).expect(3).says("no backend of this program takes");
    assert!(!place.path("store").exists(), "nothing was begun");
}

/// Needs no driver and no device.
#[cfg(feature = "cuda")]
#[test]
fn nvrtc_compiles_for_a_card_that_is_not_here() {
    let place = Place::with_manifest(
        "[[kernel]]\nname = \"fill\"\nsource = \"fill.cu\"\n[kernel.defines]\nBLOCK = [64, 128]\n",
    );
    place.write("fill.cu", "extern \"C\" __global__ void fill(int *x) { x[threadIdx.x] = BLOCK; }");
    let warm = ["warm", "--target", "sm_90", "--json"];
    let mut command = place.grainstore(&warm);
    let Some(nvrtc) = std::env::var_os("GRAINSTORE_NVRTC_LIBRARY") else {
        println!("not run: warm --target on CUDA: no NVRTC is named by GRAINSTORE_NVRTC_LIBRARY");
        return;
    };
    command.env("GRAINSTORE_NVRTC_LIBRARY", &nvrtc);
    let json = crate::place::Ran::new(command.output().unwrap()).expect(0).json();
    assert_eq!(figure(&json, "compiled"), 2, "{json}");
    assert_eq!(json["kernels"][1]["device"], "sm_90");
    let mut again = place.grainstore(&warm);
    again.env("GRAINSTORE_NVRTC_LIBRARY", &nvrtc);
    let json = crate::place::Ran::new(again.output().unwrap()).expect(0).json();
    assert_eq!((figure(&json, "compiled"), figure(&json, "disk")), (0, 2), "{json}");
}
