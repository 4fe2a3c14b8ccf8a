//! A signal in the middle of the work: no compiler is left behind, and nothing half written.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use crate::place::{Place, THREE};

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
