//! A forked child leaves its parent's driver alone.
//!
//! A test program of its own, with one test: a child of a process with other threads in it could
//! find any lock held.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::launch::check_saxpy;
use common::{on_vulkan, saxpy};
use grainstore_runtime::Backend;

#[test]
fn a_forked_child_destroys_nothing() {
    on_vulkan("a_forked_child_destroys_nothing", |vulkan, device| {
        let (module, _) = vulkan.build(&device, &saxpy()).unwrap();
        let before = vulkan.live_handles();
        // SAFETY: the child drops a module, calls no driver, and leaves by `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            vulkan.unload(module).unwrap();
            vulkan.destroy_device(&device).unwrap();
            // SAFETY: it ends the child, and nothing is run on the way.
            unsafe { libc::_exit(i32::from(vulkan.live_handles() != before)) }
        }
        assert!(child > 0);
        let mut status = 0;
        // SAFETY: the child is this process's own.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child called the driver");
        check_saxpy(&module);
    });
}
