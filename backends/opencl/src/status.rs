//! What OpenCL's error codes are called, and what they mean to a caller.

use std::fmt;

use grainstore_runtime::BackendError;

/// `CL_PLATFORM_NOT_FOUND_KHR`: the loader is there, but no driver is.
const NO_PLATFORM: i32 = -1001;

/// `CL_DEVICE_NOT_AVAILABLE`: it was there when it was found.
const LOST: i32 = -2;

/// A call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The function's name in C.
    pub(crate) call: &'static str,
    /// What it returned; none where the library does not have it.
    pub(crate) code: Option<i32>,
}

impl Failure {
    /// Turns a status into a result.
    pub(crate) fn check(call: &'static str, code: i32) -> Result<(), Self> {
        if code == 0 { Ok(()) } else { Err(Self { call, code: Some(code) }) }
    }

    /// The function is not in the library.
    pub(crate) fn absent(call: &'static str) -> Self {
        Self { call, code: None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            None => write!(f, "{}: not in this library, which is older than OpenCL 1.2", self.call),
            Some(code) => write!(f, "{}: {} ({code})", self.call, name(code)),
        }
    }
}

impl From<Failure> for BackendError {
    fn from(failure: Failure) -> Self {
        match failure.code {
            Some(NO_PLATFORM) => Self::missing(
                "an OpenCL driver",
                "install that of your device's vendor, or one for the processor (on Debian \
                 `pocl-opencl-icd`); a folder of `.icd` files may be given with the variable \
                 `OCL_ICD_VENDORS`",
            ),
            Some(LOST) => Self::DeviceLost { message: failure.to_string() },
            Some(code) => Self::failed(failure.call, format!("{} ({code})", name(code))),
            None => {
                Self::failed(failure.call, "not in this library, which is older than OpenCL 1.2")
            }
        }
    }
}

/// The name in `CL/cl.h`.
fn name(code: i32) -> &'static str {
    match code {
        -1 => "CL_DEVICE_NOT_FOUND",
        -2 => "CL_DEVICE_NOT_AVAILABLE",
        -3 => "CL_COMPILER_NOT_AVAILABLE",
        -4 => "CL_MEM_OBJECT_ALLOCATION_FAILURE",
        -5 => "CL_OUT_OF_RESOURCES",
        -6 => "CL_OUT_OF_HOST_MEMORY",
        -11 => "CL_BUILD_PROGRAM_FAILURE",
        -15 => "CL_COMPILE_PROGRAM_FAILURE",
        -16 => "CL_LINKER_NOT_AVAILABLE",
        -17 => "CL_LINK_PROGRAM_FAILURE",
        -30 => "CL_INVALID_VALUE",
        -32 => "CL_INVALID_PLATFORM",
        -33 => "CL_INVALID_DEVICE",
        -34 => "CL_INVALID_CONTEXT",
        -42 => "CL_INVALID_BINARY",
        -43 => "CL_INVALID_BUILD_OPTIONS",
        -44 => "CL_INVALID_PROGRAM",
        -45 => "CL_INVALID_PROGRAM_EXECUTABLE",
        -46 => "CL_INVALID_KERNEL_NAME",
        -47 => "CL_INVALID_KERNEL_DEFINITION",
        -48 => "CL_INVALID_KERNEL",
        -59 => "CL_INVALID_OPERATION",
        -66 => "CL_INVALID_COMPILER_OPTIONS",
        -67 => "CL_INVALID_LINKER_OPTIONS",
        -1001 => "CL_PLATFORM_NOT_FOUND_KHR",
        _ => "an error that OpenCL has no name for",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_what_a_caller_would_do_about_it() {
        let error = |code| BackendError::from(Failure { call: "clCreateContext", code });
        assert!(matches!(error(Some(NO_PLATFORM)), BackendError::Missing { .. }));
        let BackendError::DeviceLost { message } = error(Some(LOST)) else { panic!("not lost") };
        assert_eq!(message, "clCreateContext: CL_DEVICE_NOT_AVAILABLE (-2)");
        assert!(matches!(error(Some(-6)), BackendError::Failed { .. }));
        assert!(error(None).to_string().contains("older than OpenCL 1.2"));
    }
}
