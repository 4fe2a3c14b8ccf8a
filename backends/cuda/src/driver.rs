//! The driver's calls that need no context, each checked and none of them unsafe to use within this
//! crate; those in a context are in `context`.
//!
//! By NVIDIA's `cuda.h`. The names with a version are those that its macros stand for.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use grainstore_runtime::BackendError;
use grainstore_runtime::parts::{Live, candidates};
use libloading::Library;

use crate::library::{self, functions};
use crate::status::{Failure, NO_DEVICE};

/// The driver's library.
const VARIABLE: &str = "GRAINSTORE_CUDA_LIBRARY";

/// The system's own, the preferred name first. The name without a version may be the stub for
/// linking, so it is not among them.
const NAMES: &[&str] = if cfg!(windows) { &["nvcuda.dll"] } else { &["libcuda.so.1"] };

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`.
const CAPABILITY: [c_int; 2] = [75, 76];

/// What the driver's functions return.
pub(crate) type Status = c_int;
/// A device: a number.
pub(crate) type RawDevice = c_int;
type Raw = *mut c_void;

functions! {
    /// The functions, by their names in C.
    Functions {
        cuInit: unsafe extern "system" fn(c_uint) -> Status,
        cuDriverGetVersion: unsafe extern "system" fn(*mut c_int) -> Status,
        cuGetErrorName: unsafe extern "system" fn(Status, *mut *const c_char) -> Status,
        cuGetErrorString: unsafe extern "system" fn(Status, *mut *const c_char) -> Status,
        cuDeviceGetCount: unsafe extern "system" fn(*mut c_int) -> Status,
        cuDeviceGet: unsafe extern "system" fn(*mut RawDevice, c_int) -> Status,
        cuDeviceGetName: unsafe extern "system" fn(*mut c_char, c_int, RawDevice) -> Status,
        cuDeviceGetUuid_v2: unsafe extern "system" fn(*mut [u8; 16], RawDevice) -> Status,
        cuDeviceGetAttribute: unsafe extern "system" fn(*mut c_int, c_int, RawDevice) -> Status,
        cuDevicePrimaryCtxRetain: unsafe extern "system" fn(*mut Raw, RawDevice) -> Status,
        cuDevicePrimaryCtxRelease_v2: unsafe extern "system" fn(RawDevice) -> Status,
        cuDevicePrimaryCtxReset_v2: unsafe extern "system" fn(RawDevice) -> Status,
        cuCtxPushCurrent_v2: unsafe extern "system" fn(Raw) -> Status,
        cuCtxPopCurrent_v2: unsafe extern "system" fn(*mut Raw) -> Status,
        cuCtxGetDevice: unsafe extern "system" fn(*mut RawDevice) -> Status,
        cuMemGetInfo_v2: unsafe extern "system" fn(*mut usize, *mut usize) -> Status,
        cuModuleLoadDataEx: unsafe extern "system" fn(
            *mut Raw,
            *const c_void,
            c_uint,
            *mut c_uint,
            *mut *mut c_void,
        ) -> Status,
        cuModuleUnload: unsafe extern "system" fn(Raw) -> Status,
        cuModuleGetFunction: unsafe extern "system" fn(*mut Raw, Raw, *const c_char) -> Status,
        cuLinkCreate_v2: unsafe extern "system" fn(
            c_uint,
            *mut c_uint,
            *mut *mut c_void,
            *mut Raw,
        ) -> Status,
        cuLinkAddData_v2: unsafe extern "system" fn(
            Raw,
            c_uint,
            *mut c_void,
            usize,
            *const c_char,
            c_uint,
            *mut c_uint,
            *mut *mut c_void,
        ) -> Status,
        cuLinkComplete: unsafe extern "system" fn(Raw, *mut *mut c_void, *mut usize) -> Status,
        cuLinkDestroy: unsafe extern "system" fn(Raw) -> Status,
    }
}

/// The driver, loaded and initialized.
pub(crate) struct Driver {
    pub(crate) functions: Functions,
    /// It stays for the life of the process: it has threads that run its code, and the functions are
    /// called without a look at it.
    library: ManuallyDrop<Library>,
    /// The handles that this crate has made in it and not yet released.
    pub(crate) live: Live,
    /// The CUDA version it supports, as it writes it: 12.9 is 12090.
    version: i32,
    has_devices: bool,
}

impl Driver {
    /// Loads the library: the one chosen, or else the one that the variable or the system knows.
    pub(crate) fn load(chosen: Option<&Path>) -> Result<Arc<Self>, BackendError> {
        let paths = candidates(chosen, VARIABLE, NAMES);
        let (library, path) = library::first(&paths)
            .map_err(|refusals| missing(&format!("NVIDIA's driver, {refusals},")))?;
        let functions = Functions::of(&library).map_err(|absent| {
            missing(&format!("`{absent}` of CUDA 11.4 or later in `{}`", path.display()))
        })?;
        let mut driver = Self {
            functions,
            library: ManuallyDrop::new(library),
            live: Live::default(),
            version: 0,
            has_devices: true,
        };
        // SAFETY: no flags.
        let code = unsafe { (driver.functions.cuInit)(0) };
        if code == NO_DEVICE {
            driver.has_devices = false;
        } else {
            driver.check("cuInit", code).map_err(Failure::at_start)?;
        }
        // SAFETY: the number may be written.
        let code = unsafe { (driver.functions.cuDriverGetVersion)(&raw mut driver.version) };
        driver.check("cuDriverGetVersion", code)?;
        Ok(Arc::new(driver))
    }

    /// Turns a status into a result, with the driver's own words for it.
    pub(crate) fn check(&self, call: &'static str, code: Status) -> Result<(), Failure> {
        if code == 0 {
            return Ok(());
        }
        let Functions { cuGetErrorName, cuGetErrorString, .. } = self.functions;
        let words = match (self.word(cuGetErrorName, code), self.word(cuGetErrorString, code)) {
            (Some(name), Some(meaning)) => format!("{name}, {meaning}"),
            (Some(word), None) | (None, Some(word)) => word,
            (None, None) => "an error that this driver has no name for".to_owned(),
        };
        Err(Failure { call, code, words })
    }

    fn word(
        &self,
        ask: unsafe extern "system" fn(Status, *mut *const c_char) -> Status,
        code: Status,
    ) -> Option<String> {
        let mut word = ptr::null();
        // SAFETY: any code may be asked about, and the pointer may be written.
        let answer = unsafe { ask(code, &raw mut word) };
        if answer != 0 || word.is_null() {
            return None;
        }
        // SAFETY: it is one of the driver's constant texts.
        Some(unsafe { CStr::from_ptr(word) }.to_string_lossy().into_owned())
    }

    /// Any function of the library, if it has one of this name.
    pub(crate) fn function(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: what a symbol leads to may be looked at as an address, whatever it is.
        let symbol = unsafe { self.library.get::<*mut c_void>(name) }.ok()?;
        NonNull::new(*symbol)
    }

    /// The CUDA version it supports, for people and keys.
    pub(crate) fn version(&self) -> String {
        format!("{}.{}", self.version / 1000, self.version % 1000 / 10)
    }

    /// All devices, in the driver's order.
    pub(crate) fn devices(&self) -> Result<Vec<RawDevice>, Failure> {
        let mut count = 0;
        if self.has_devices {
            // SAFETY: the number may be written.
            let code = unsafe { (self.functions.cuDeviceGetCount)(&raw mut count) };
            self.check("cuDeviceGetCount", code)?;
        }
        (0..count)
            .map(|index| {
                let mut device = 0;
                // SAFETY: the number may be written.
                let code = unsafe { (self.functions.cuDeviceGet)(&raw mut device, index) };
                self.check("cuDeviceGet", code).map(|()| device)
            })
            .collect()
    }

    pub(crate) fn device_name(&self, device: RawDevice) -> Result<String, Failure> {
        let mut name = [0_u8; 256];
        // SAFETY: there is room for as many bytes as it says; the driver ends the text with a NUL.
        let code = unsafe {
            (self.functions.cuDeviceGetName)(name.as_mut_ptr().cast(), name.len() as c_int, device)
        };
        self.check("cuDeviceGetName", code)?;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Ok(String::from_utf8_lossy(&name[..end]).trim().to_owned())
    }

    pub(crate) fn device_uuid(&self, device: RawDevice) -> Result<[u8; 16], Failure> {
        let mut uuid = [0; 16];
        // SAFETY: there is room for the sixteen bytes.
        let code = unsafe { (self.functions.cuDeviceGetUuid_v2)(&raw mut uuid, device) };
        self.check("cuDeviceGetUuid", code).map(|()| uuid)
    }

    /// The compute capability, ten times: 90 for 9.0.
    pub(crate) fn capability(&self, device: RawDevice) -> Result<u32, Failure> {
        let mut parts = [0; 2];
        for (part, attribute) in parts.iter_mut().zip(CAPABILITY) {
            // SAFETY: the number may be written.
            let code =
                unsafe { (self.functions.cuDeviceGetAttribute)(&raw mut *part, attribute, device) };
            self.check("cuDeviceGetAttribute", code)?;
        }
        Ok(parts[0].unsigned_abs() * 10 + parts[1].unsigned_abs())
    }
}

fn missing(what: &str) -> BackendError {
    BackendError::missing(
        what,
        format!(
            "install it (on Debian `libcuda1` of `nvidia-driver`; in a container it comes from the \
             host, with NVIDIA's container toolkit), or give its path with the variable \
             `{VARIABLE}` or the builder's `library`"
        ),
    )
}
