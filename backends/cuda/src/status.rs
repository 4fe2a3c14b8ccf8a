//! What the driver's and NVRTC's codes are called, and what they mean to a caller.

use std::fmt;

use grainstore_runtime::BackendError;

/// `CUDA_ERROR_DEINITIALIZED`: the process is ending, and the driver has gone first.
pub(crate) const GONE: i32 = 4;
/// `CUDA_ERROR_CONTEXT_IS_DESTROYED`.
pub(crate) const DESTROYED: i32 = 709;
/// `CUDA_ERROR_STUB_LIBRARY`: the library that comes with the toolkit, for linking only.
const STUB: i32 = 34;
/// `CUDA_ERROR_NO_DEVICE`.
pub(crate) const NO_DEVICE: i32 = 100;
/// `CUDA_ERROR_JIT_COMPILER_NOT_FOUND`.
const NO_JIT: i32 = 221;
/// `CUDA_ERROR_UNSUPPORTED_PTX_VERSION`: PTX of a compiler that is newer than the driver.
pub(crate) const NEWER_PTX: i32 = 222;
/// `CUDA_ERROR_NOT_FOUND`: no function of that name.
pub(crate) const NOT_FOUND: i32 = 500;

/// Codes that say that these bytes are no code for this device: `CUDA_ERROR_INVALID_IMAGE`,
/// `_NO_BINARY_FOR_GPU`, `_INVALID_PTX`, `_INVALID_SOURCE`.
const BAD_IMAGE: [i32; 4] = [200, 209, 218, 300];

/// Codes after which no call for this context succeeds any more: uncorrectable memory or link errors,
/// a context destroyed by another, a kernel that crashed or ran too long, and
/// `CUDA_ERROR_UNKNOWN`, which is what is left after them.
const LOST: [i32; 13] = [214, 220, 226, 700, 702, DESTROYED, 710, 714, 715, 716, 717, 718, 719];
const UNKNOWN: i32 = 999;

/// A call of the driver that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The function's name in C.
    pub(crate) call: &'static str,
    /// What it returned.
    pub(crate) code: i32,
    /// The code's name and meaning in the driver's words.
    pub(crate) words: String,
}

impl Failure {
    /// The device, or its context, is gone.
    pub(crate) fn is_lost(&self) -> bool {
        self.code == UNKNOWN || LOST.contains(&self.code)
    }

    /// The same of the call that starts the driver: there is no device yet that could be lost.
    pub(crate) fn at_start(self) -> BackendError {
        if self.code == STUB {
            return self.into();
        }
        let hint = "`nvidia-smi` tells whether the driver works at all";
        BackendError::failed(self.call, format!("{} ({}); {hint}", self.words, self.code))
    }

    /// The bytes are at fault.
    pub(crate) fn is_bad_image(&self) -> bool {
        BAD_IMAGE.contains(&self.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.call, self.words, self.code)
    }
}

impl From<Failure> for BackendError {
    fn from(failure: Failure) -> Self {
        match failure.code {
            _ if failure.is_lost() => Self::DeviceLost { message: failure.to_string() },
            STUB => Self::missing(
                "NVIDIA's driver",
                "the `libcuda` that was loaded is the stub that the CUDA toolkit has for linking; \
                 take its folder out of the library path, and install the driver",
            ),
            NO_JIT => Self::missing(
                "the driver's compiler for PTX, `libnvidia-ptxjitcompiler`,",
                "install it (it is part of the driver; in a container, the capability `compute` \
                 brings it), or use code for this very device (CUBIN)",
            ),
            NEWER_PTX => Self::unsupported(
                format!("{failure}: the PTX is newer than the driver"),
                "update the driver, or take an NVRTC that is not newer than it",
            ),
            code => Self::failed(failure.call, format!("{} ({code})", failure.words)),
        }
    }
}

/// The name in `nvrtc.h`.
pub(crate) fn nvrtc_name(code: i32) -> &'static str {
    match code {
        1 => "NVRTC_ERROR_OUT_OF_MEMORY",
        2 => "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
        3 => "NVRTC_ERROR_INVALID_INPUT",
        4 => "NVRTC_ERROR_INVALID_PROGRAM",
        5 => "NVRTC_ERROR_INVALID_OPTION",
        6 => "NVRTC_ERROR_COMPILATION",
        7 => "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
        8 => "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
        9 => "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
        10 => "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        11 => "NVRTC_ERROR_INTERNAL_ERROR",
        12 => "NVRTC_ERROR_TIME_FILE_WRITE_FAILED",
        _ => "an error that this crate has no name for",
    }
}
