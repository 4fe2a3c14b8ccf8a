//! The fake driver of `fake/cuda.c`, compiled and loaded. It is no GPU and proves nothing about one:
//! it shows what this crate asks of a driver, in which order, and with which context current.

use std::ffi::{CString, c_char, c_int, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use grainstore::{DeviceId, Family};
use grainstore_conformance::testing;
use grainstore_cuda::{CudaBackend, CudaBackendBuilder};

use super::driver::Driver;

pub(crate) const FIRST: DeviceId = DeviceId::new(Family::CUDA, 0);
pub(crate) const SECOND: DeviceId = DeviceId::new(Family::CUDA, 1);

pub(crate) struct Fake {
    pub(crate) driver: Driver,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Fake {
    /// A driver of the test's own: each copy of the library counts for itself.
    ///
    /// # Errors
    /// There is no C compiler.
    pub(crate) fn new() -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("cuda.c");
        fs::write(&source, include_str!("../fake/cuda.c")).unwrap();
        let path = folder.path().join("libcuda.so.1");
        let output = Command::new("cc")
            .args(["-std=c11", "-O1", "-shared", "-fPIC", "-o"])
            .args([&path, &source])
            .args(["-lpthread", "-ldl"])
            .output()
            .map_err(|error| format!("the fake driver needs the C compiler `cc`: {error}"))?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(Self { driver: Driver::open(&path), path, _folder: folder })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A backend on this driver, with the first NVRTC that the tests have.
    pub(crate) fn backend(&self) -> CudaBackend {
        self.builder().build()
    }

    pub(crate) fn builder(&self) -> CudaBackendBuilder {
        let builder = CudaBackend::builder().library(&self.path);
        match super::nvrtcs().swap_remove(0) {
            Some(path) => builder.nvrtc(path),
            None => builder,
        }
    }

    /// Contexts, modules, and what was done wrong.
    pub(crate) fn counts(&self) -> (i32, i32, i32) {
        (self.ask("fake_contexts"), self.ask("fake_modules"), self.ask("fake_mistakes"))
    }

    /// How many contexts are on this thread's stack.
    pub(crate) fn depth(&self) -> i32 {
        self.ask("fake_depth")
    }

    pub(crate) fn calls(&self) -> i32 {
        self.ask("fake_calls")
    }

    pub(crate) fn current(&self) -> *mut c_void {
        let current: unsafe extern "C" fn() -> *mut c_void = self.driver.get("fake_current");
        // SAFETY: it is the fake's own function, of that type.
        unsafe { current() }
    }

    pub(crate) fn fail_next(&self, call: &str, code: i32) {
        let fail: unsafe extern "C" fn(*const c_char, c_int) = self.driver.get("fake_fail");
        let call = CString::new(call).unwrap();
        // SAFETY: as in `current`; it copies the text.
        unsafe { fail(call.as_ptr(), code) };
    }

    pub(crate) fn lose(&self, device: i32) {
        let lose: unsafe extern "C" fn(c_int) = self.driver.get("fake_lose");
        // SAFETY: as in `current`.
        unsafe { lose(device) };
    }

    pub(crate) fn have_no_device(&self) {
        let none: unsafe extern "C" fn() = self.driver.get("fake_have_no_device");
        // SAFETY: as in `current`.
        unsafe { none() };
    }

    /// From here on what is done wrong ends the process.
    pub(crate) fn be_strict(&self) {
        let strict: unsafe extern "C" fn() = self.driver.get("fake_be_strict");
        // SAFETY: as in `current`.
        unsafe { strict() };
    }

    pub(crate) fn application_context(&self, device: i32) -> *mut c_void {
        let make: unsafe extern "C" fn(c_int) -> *mut c_void =
            self.driver.get("fake_application_context");
        // SAFETY: as in `current`.
        unsafe { make(device) }
    }

    fn ask(&self, what: &str) -> i32 {
        let ask: unsafe extern "C" fn() -> c_int = self.driver.get(what);
        // SAFETY: every name that is asked is of a function of that type.
        unsafe { ask() }
    }
}

/// Runs the body on a fake driver of its own.
pub(crate) fn on_fake(test: &str, body: impl FnOnce(&Fake)) {
    match Fake::new() {
        Ok(fake) => {
            body(&fake);
            assert_eq!(fake.counts().2, 0, "mistakes; see standard error");
        }
        Err(reason) => testing::not_run(test, "cc", reason),
    }
}
