//! Which compiler is taken, who it says it is, and one that is missing, broken or hangs.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::time::Duration;

use common::{DEVICE, check_saxpy, in_child, listing, saxpy, script};
use grainstore_conformance::testing::is_child;
use grainstore_host::HostBackend;
use grainstore_runtime::{Backend, BackendError};

fn toolchain(host: &HostBackend) -> String {
    let target = host.target(&DEVICE).unwrap();
    host.toolchain(&target).unwrap().as_str().to_owned()
}

#[test]
fn a_missing_compiler_says_what_would_help() {
    if is_child() {
        let host = HostBackend::new();
        let target = host.target(&DEVICE).unwrap();
        for error in [
            host.devices().unwrap_err(),
            host.toolchain(&target).unwrap_err(),
            host.build(&DEVICE, &saxpy()).unwrap_err(),
        ] {
            assert!(matches!(error, BackendError::Missing { .. }), "{error}");
            let text = error.to_string();
            for word in ["`cc`", "`gcc`", "build-essential", "`CC`"] {
                assert!(text.contains(word), "{text}");
            }
        }
        return;
    }
    let empty = tempfile::tempdir().unwrap();
    let path = empty.path().to_str().unwrap();
    in_child("a_missing_compiler_says_what_would_help", &[("PATH", path), ("CC", "")]);
}

#[test]
fn a_chosen_compiler_that_is_not_there_is_named() {
    if is_child() {
        let error = HostBackend::new().devices().unwrap_err().to_string();
        assert!(error.contains("`no-such-cc -O2`, chosen by the variable `CC`"), "{error}");
        return;
    }
    let host = HostBackend::builder().compiler("/nowhere/cc").build();
    let error = host.build(&DEVICE, &saxpy()).unwrap_err();
    assert!(matches!(error, BackendError::Missing { .. }), "{error}");
    assert!(error.to_string().contains("/nowhere/cc"), "{error}");
    in_child("a_chosen_compiler_that_is_not_there_is_named", &[("CC", "no-such-cc -O2")]);
}

#[test]
fn cc_may_be_a_path_and_may_hold_arguments() {
    if is_child() {
        let host = HostBackend::new();
        assert!(toolchain(&host).contains("with -DX=1"), "{}", toolchain(&host));
        check_saxpy(&host.build(&DEVICE, &saxpy()).unwrap().0);
        return;
    }
    // A folder with a space in its name: the whole of `CC` is tried as a path first.
    let folder = tempfile::Builder::new().prefix("with space").tempdir().unwrap();
    let wrapper = script(folder.path(), "my cc", "exec cc -DX=1 \"$@\"");
    let host = HostBackend::builder().compiler(&wrapper).build();
    check_saxpy(&host.build(&DEVICE, &saxpy()).unwrap().0);
    in_child("cc_may_be_a_path_and_may_hold_arguments", &[("CC", "cc -DX=1")]);
}

#[test]
fn a_compiler_that_was_replaced_is_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let version = |number: &str| {
        let text =
            format!("echo asked >> {}/asked\necho 'fake cc {number}'", folder.path().display());
        script(folder.path(), "cc", &text)
    };
    let asked = || std::fs::read_to_string(folder.path().join("asked")).unwrap().lines().count();
    let host = HostBackend::builder().compiler(version("1.0")).build();
    assert!(toolchain(&host).starts_with("fake cc 1.0;"), "{}", toolchain(&host));
    assert_eq!(asked(), 2, "one question for the version, one for the machine, and no more");
    // Longer, so that it differs even where times are coarse.
    version("2.0-beta");
    assert!(toolchain(&host).starts_with("fake cc 2.0-beta;"), "{}", toolchain(&host));
    assert_eq!(asked(), 4);
}

#[test]
fn variables_that_change_the_code_are_part_of_the_toolchain() {
    if is_child() {
        let text = toolchain(&HostBackend::new());
        assert!(text.contains("CPATH=/some/where"), "{text}");
        return;
    }
    let text = toolchain(&HostBackend::new());
    assert!(!text.contains("/some/where"), "{text}");
    let variables = [("CPATH", "/some/where")];
    in_child("variables_that_change_the_code_are_part_of_the_toolchain", &variables);
}

#[test]
fn the_toolchain_holds_no_path_of_the_compiler() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("cc");
    let path = std::env::var_os("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|p| p.join("cc")).find(|p| p.exists()).unwrap();
    std::os::unix::fs::symlink(real, &link).unwrap();
    let through_link = HostBackend::builder().compiler(link).build();
    let by_name = HostBackend::builder().compiler("cc").build();
    assert_eq!(toolchain(&through_link), toolchain(&by_name));
}

#[test]
fn a_hanging_compiler_is_killed_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let scratch = folder.path().join("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let pid = folder.path().join("pid");
    // Its child does the hanging, as cc1 does below gcc.
    let hang = format!("sleep 3600 &\necho $! > {}.new\nmv {0}.new {0}\nwait", pid.display());
    let host = HostBackend::builder()
        .compiler(script(folder.path(), "cc", &hang))
        .deadline(Duration::from_millis(500))
        .scratch_folder(&scratch)
        .build();
    let error = host.build(&DEVICE, &saxpy()).unwrap_err().to_string();
    assert!(error.contains("not ended after 500ms and was killed"), "{error}");
    assert!(error.contains("`deadline`"), "{error}");
    assert_eq!(listing(&scratch), [""; 0]);
    if let Ok(pid) = std::fs::read_to_string(&pid) {
        let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        let gone = state.map_or(true, |stat| stat.contains(") Z "));
        assert!(gone, "the child of the compiler still runs");
    }
}

#[test]
fn a_crashing_or_silent_compiler_is_an_error_in_words() {
    let folder = tempfile::tempdir().unwrap();
    for (text, expected) in [
        ("kill -SEGV $$", "the compiler failed (signal: 11"),
        ("exit 1", "the compiler failed (exit status: 1)"),
        ("touch grainstore-kernel.d; exit 0", "left no kernel.so"),
    ] {
        let host = HostBackend::builder().compiler(script(folder.path(), "cc", text)).build();
        let error = host.build(&DEVICE, &saxpy()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn what_is_no_compiler_says_so() {
    let host = HostBackend::builder().compiler("false").build();
    let error = host.devices().unwrap_err().to_string();
    assert!(error.contains("is it a C compiler"), "{error}");
}

#[test]
fn code_for_another_machine_is_never_loaded() {
    let folder = tempfile::tempdir().unwrap();
    // Writes an ELF header of the other byte order where the shared object should be.
    let text = "printf '\\177ELF\\002\\002\\001' > kernel.so\n\
                head -c 100 /dev/zero >> kernel.so\ntouch grainstore-kernel.d";
    let host = HostBackend::builder().compiler(script(folder.path(), "cc", text)).build();
    let error = host.build(&DEVICE, &saxpy()).unwrap_err().to_string();
    assert!(error.contains("`CC` must name a compiler for"), "{error}");
}
