//! A signal in the middle of the work: no compiler is left behind, and nothing half written.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use grainstore::KernelKey;
use grainstore_artifacts::{ArtifactStore, Group};

use crate::place::{Place, Ran, THREE};

/// A compiler that never ends once it is to compile for `BLOCK=128`. It then writes its process
/// number into a pipe, which is how the test knows that it runs.
const HANGS: &str = r#"#!/bin/sh
case "$*" in *BLOCK=128*) echo $$ > "$PIPE"; exec sleep 3600;; esac
exec cc "$@"
"#;

/// Starts `warm` with that compiler, and gives it together with the compiler's process number.
fn start(place: &Place) -> (Child, String) {
    place.write("hangs", HANGS);
    fs::set_permissions(place.path("hangs"), fs::Permissions::from_mode(0o755)).unwrap();
    let pipe = place.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let child = place
        .grainstore(&["warm", "--json", "--jobs", "1"])
        .env("CC", place.path("hangs"))
        .env("PIPE", &pipe)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Reading waits until somebody writes.
    let compiler = fs::read_to_string(&pipe).unwrap().trim().to_owned();
    (child, compiler)
}

fn signal(name: &str, process: &str) -> bool {
    let mut kill = Command::new("kill");
    kill.args(["-s", name, process]).stderr(Stdio::null()).status().unwrap().success()
}

fn ends_with(name: &str, code: i32) {
    let place = Place::with_manifest(THREE);
    let (mut child, compiler) = start(&place);
    assert!(signal(name, &child.id().to_string()));
    assert_eq!(child.wait().unwrap().code(), Some(code));
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(out, "");
    assert!(err.contains("interrupted"), "{err}");
    assert!(err.contains("done and kept: 1 of 3 kernels"), "{err}");
    assert!(!err.contains("error"), "a kernel that was interrupted has not failed: {err}");
    assert!(!signal("0", &compiler), "the compiler lives on");
    assert_eq!(place.stored().len(), 1, "one whole artifact");
    // What was kept is good.
    let again = place.run(&["warm", "--json"]).expect(0).json();
    assert_eq!((&again["disk"], &again["compiled"]), (&1.into(), &2.into()));
}

#[test]
fn ctrl_c_stops_the_compilers_and_keeps_what_is_done() {
    ends_with("INT", 130);
}

#[test]
fn a_request_to_terminate_does_the_same() {
    ends_with("TERM", 143);
}

/// PoCL's compiler, LLVM, has handlers of its own for both signals.
#[test]
fn a_drivers_own_handler_does_not_end_it() {
    let variants: Vec<_> = (0..200).map(|number| number.to_string()).collect();
    let place = Place::with_manifest(&format!(
        "[[kernel]]\nname = \"fill\"\nsource = \"fill.cl\"\n[kernel.defines]\nN = [{}]\n",
        variants.join(", ")
    ));
    place.write("fill.cl", "kernel void fill(global int *x) { x[get_global_id(0)] = N; }");
    if !place.has("opencl") {
        return;
    }
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let mut warm = place.grainstore(&["warm", "--backend", "opencl", "--jobs", "1"]);
        let mut child = warm.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        // The compiler has been at work, and is so again.
        assert!(lines.any(|line| line.starts_with("compiled ")));
        assert!(signal(name, &child.id().to_string()));
        let rest: Vec<_> = lines.collect();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{rest:?}");
        let kept = rest.last().unwrap().strip_prefix("done and kept: ").unwrap();
        assert!(kept.ends_with(" of 200 kernels"), "{rest:?}");
        place.run(&["verify"]).expect(0);
    }
}

/// A place whose store holds so many artifacts of half a mebibyte.
fn filled(artifacts: usize) -> Place {
    let place = Place::new();
    let store = ArtifactStore::open(place.path("store")).unwrap();
    for number in 0..artifacts {
        let key = KernelKey::builder(format!("k{number}")).build().unwrap();
        // Of no pattern that could be compressed away.
        let noise =
            |at: usize| ((at * at + number).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8;
        store
            .put(&key, &Group::new("kernel", (0..1 << 19).map(noise).collect::<Vec<_>>()))
            .unwrap();
    }
    place
}

/// Interrupts the command once it has begun. None if it was done sooner.
fn interrupted(place: &Place, command: &[&str], begun: impl Fn() -> bool) -> Option<Ran> {
    let mut child =
        place.grainstore(command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !begun() {
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        thread::yield_now();
    }
    // It was not waited for since it was seen to live, so its number is nobody else's.
    signal("INT", &child.id().to_string());
    let ran = Ran::new(child.wait_with_output().unwrap());
    (ran.code != Some(0)).then_some(ran)
}

/// The same, with more to do until it is caught in the middle.
fn in_the_middle(command: &[&str], begun: impl Fn(&Place) -> bool) -> (Place, Ran) {
    for artifacts in [8, 32, 128, 512] {
        let place = filled(artifacts);
        place.run(&["pack", "whole.tar"]).expect(0);
        if let Some(ran) = interrupted(&place, command, || begun(&place)) {
            return (place, ran);
        }
    }
    panic!("{command:?} was done sooner than interrupted each time");
}

fn names(folder: &Path) -> Vec<String> {
    let found = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<_> =
        found.map(|found| found.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_bundle_that_is_not_finished_does_not_stay() {
    let unfinished =
        |place: &Place| names(&place.path("")).iter().any(|name| name.starts_with('.'));
    for command in [&["pack", "new.tar"][..], &["pack", "--oci", "new.tar"]] {
        let (place, ran) = in_the_middle(command, unfinished);
        ran.expect(130).says("interrupted").says("no bundle was written");
        assert_eq!(names(&place.path("")), ["saxpy.c", "store", "whole.tar"]);
    }
}

#[test]
fn unpacking_that_was_interrupted_goes_on_the_next_time() {
    let unpack = ["unpack", "whole.tar", "--store", "other", "--json"];
    let (place, ran) = in_the_middle(&unpack, |place| {
        let folders = names(&place.path("other/v1"));
        folders.iter().any(|name| !names(&place.path("other/v1").join(name)).is_empty())
    });
    let ran = ran.expect(130);
    ran.says("interrupted").says("unpack again");
    assert_eq!(ran.out, "");
    let all = place.run(&["ls", "--json"]).expect(0).json()["artifacts"].as_array().unwrap().len();
    place.run(&["verify", "--store", "other"]).expect(0);
    let rest = place.run(&unpack).expect(0).json();
    let [added, present] = ["added", "present"].map(|name| rest[name].as_u64().unwrap());
    assert!(added > 0 && added + present == all as u64, "{rest}");
}
