//! A forked child leaves its parent's driver alone.
//!
//! A test program of its own, with one test: a child of a process with other threads in it could
//! find any lock held. The one other thread that there is waits, and holds none.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a helper of a test may fail it as the test itself may")]

#[path = "suite/fake/mod.rs"]
mod fake;

use std::thread;
use std::time::Duration;

use fake::executor::block_on;
use fake::gate::Gate;
use fake::{Call, Fake, spec};
use grainstore_runtime::{Runtime, RuntimeError};

/// Runs this in a forked child, and gives what it says: nothing if all is well.
fn in_child(check: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for the two descriptors that the call writes.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let [read, write] = ends;
    // SAFETY: the child only runs `check` and leaves by `_exit`; this process runs one test, so no
    // other thread holds a lock that the check needs.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let said = check().err().unwrap_or_default();
        // SAFETY: the pointer and the length are those of a living string.
        let written = unsafe { libc::write(write, said.as_ptr().cast(), said.len()) };
        let status = i32::from(written != said.len() as isize || !said.is_empty());
        // SAFETY: it ends the child, and nothing is run on the way.
        unsafe { libc::_exit(status) }
    }
    let mut text = vec![0_u8; 4096];
    let mut status = 0;
    // SAFETY: the descriptors are ours, the buffer is as long as said, and the child is ours.
    let length = unsafe {
        libc::close(write);
        let length = libc::read(read, text.as_mut_ptr().cast(), text.len());
        libc::close(read);
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        length
    };
    text.truncate(usize::try_from(length).unwrap_or(0));
    let said = String::from_utf8_lossy(&text).into_owned();
    if status == 0 && said.is_empty() { Ok(()) } else { Err(format!("status {status}: {said}")) }
}

#[test]
fn a_child_refuses_and_forgets_what_its_parent_uses() {
    let fake = Fake::new();
    let runtime = Runtime::builder().backend(fake.clone()).build().unwrap();
    let device = runtime.devices().remove(0);
    let kernel = runtime.kernel(&device, &spec("held")).unwrap();
    runtime.kernel(&device, &spec("loose")).unwrap();

    // A thread that is not there in the child is making a spec.
    let other = Runtime::builder().backend(Fake::new()).build().unwrap();
    let others_device = other.devices().remove(0);
    let gate = Gate::new();
    let maker = thread::spawn({
        let (other, device, gate) = (other.clone(), others_device.clone(), gate.clone());
        let make = move || {
            gate.pass("maker");
            spec("made")
        };
        move || drop(other.kernel_by(&device, "id", make).unwrap())
    });
    gate.arrived(1);

    let (childs, childs_runtime, childs_kernel) = (fake.clone(), runtime.clone(), kernel.clone());
    let childs_device = device.clone();
    in_child(move || {
        childs.seal();
        let (runtime, device) = (childs_runtime, &childs_device);
        let results = [
            runtime.kernel(device, &spec("new")).map(drop),
            runtime.kernel(device, &spec("loose")).map(drop),
            runtime.device(&device.id()).map(drop),
            runtime.clear().map(drop),
            runtime.reset_devices(),
            runtime.destroy_device(device),
            runtime.device_lost(device),
            runtime.shutdown_within(Duration::ZERO),
            block_on(runtime.kernel_async(device, &spec("new"))).map(drop),
            block_on(runtime.kernel_by_async(device, "id", || spec("new"))).map(drop),
            runtime.kernel_by(device, "id", || spec("new")).map(drop),
            other.kernel_by(&others_device, "id", || spec("made")).map(drop),
            block_on(other.kernel_by_async(&others_device, "id", || spec("made"))).map(drop),
            block_on(runtime.destroy_device_async(device)),
            block_on(runtime.shutdown_async(Duration::ZERO)),
        ];
        for (at, result) in results.iter().enumerate() {
            if !matches!(result, Err(RuntimeError::Forked { .. })) {
                return Err(format!("call {at} gave {result:?}"));
            }
        }
        if !device.is_live() {
            return Err("the handle was retired".into());
        }
        // The last handles go: everything is forgotten, nothing released.
        drop(childs_kernel);
        drop(runtime);
        if childs.violations().is_empty() && childs.leaked() == 0 {
            // A runtime of the child's own works.
            let own = Runtime::builder().backend(Fake::new()).build().map_err(|e| e.to_string())?;
            own.kernel(&own.devices()[0], &spec("own")).map_err(|e| e.to_string())?;
            own.shutdown().map_err(|e| e.to_string())
        } else {
            Err(format!("{:?}", childs.violations()))
        }
    })
    .unwrap();

    gate.open();
    maker.join().unwrap();

    // The parent goes on as if nothing had been.
    assert_eq!((fake.modules(), fake.calls(Call::Unload)), (2, 0));
    runtime.kernel(&device, &spec("loose")).unwrap();
    assert_eq!(fake.builds(), 2);
    drop(kernel);
    runtime.shutdown().unwrap();
    fake.assert_clean();
}
