//! What the backends' own tests are made with: a failure in a process of its own is not lost, nor is
//! what was not run there.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use grainstore_conformance::testing::{in_child, is_child, is_required, not_run};

/// The words of the panic that this ends in.
fn panic_of(body: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(body)).unwrap_err();
    payload.downcast_ref::<String>().unwrap().clone()
}

#[test]
fn what_fails_in_a_child_fails_in_its_parent() {
    let test = "what_fails_in_a_child_fails_in_its_parent";
    assert!(!is_child(), "on purpose");
    let words = panic_of(|| in_child(test, |_| ()));
    assert!(words.contains(test) && words.contains("on purpose"), "{words}");
}

#[test]
fn a_test_that_is_not_there_is_no_success() {
    let words = panic_of(|| in_child("there_is_no_such_test", |_| ()));
    assert!(words.contains("there_is_no_such_test failed"), "{words}");
}

#[test]
fn what_is_required_must_run() {
    let test = "what_is_required_must_run";
    if !is_child() {
        in_child(test, |command| {
            command.env("GRAINSTORE_REQUIRE", "one, two");
        });
        return;
    }
    assert!(is_required("one") && is_required("two") && !is_required("three"));
    let words = panic_of(|| not_run("a test", "two", "it is not here"));
    assert!(words.contains("a test: ") && words.contains("it is not here"), "{words}");
    not_run("a test", "three", "it is not here");
}

#[test]
fn what_a_child_did_not_run_is_said_by_its_parent() {
    let test = "what_a_child_did_not_run_is_said_by_its_parent";
    if env::var_os("GRANDCHILD").is_some() {
        not_run(test, "nothing", "on purpose");
    } else if is_child() {
        in_child(test, |command| {
            command.env("GRANDCHILD", "1");
        });
    } else {
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["--exact", test, "--nocapture"]).env("GRAINSTORE_TEST_CHILD", "1");
        let said = String::from_utf8(child.output().unwrap().stderr).unwrap();
        assert!(said.contains(&format!("not run: {test}: on purpose")), "{said}");
    }
}
