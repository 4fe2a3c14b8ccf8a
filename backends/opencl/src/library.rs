//! Finds OpenCL's loader library and looks up the functions that this crate calls.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;

use grainstore_runtime::BackendError;
use libloading::Library;
use opencl_sys::cl_function_types::{
    clBuildProgram_t, clCompileProgram_t, clCreateContext_t, clCreateKernel_t,
    clCreateProgramWithBinary_t, clCreateProgramWithSource_t, clGetContextInfo_t, clGetDeviceIDs_t,
    clGetDeviceInfo_t, clGetPlatformIDs_t, clGetPlatformInfo_t, clGetProgramBuildInfo_t,
    clGetProgramInfo_t, clLinkProgram_t, clReleaseContext_t, clReleaseDevice_t, clReleaseKernel_t,
    clReleaseProgram_t, clRetainContext_t, clRetainDevice_t,
};

/// Where users of OpenCL crates already say where the library is: paths, separated by `;`.
const VARIABLE: &str = "OPENCL_DYLIB_PATH";

/// The system's own, the preferred name first.
const NAMES: &[&str] = if cfg!(windows) {
    &["OpenCL.dll"]
} else if cfg!(target_vendor = "apple") {
    &["/System/Library/Frameworks/OpenCL.framework/OpenCL"]
} else {
    &["libOpenCL.so.1", "libOpenCL.so"]
};

macro_rules! functions {
    ($($name:ident: $type:ty,)*) => {
        /// The functions, by their names in C; none where the library is too old to have one.
        #[expect(non_snake_case, reason = "these are the names that the field knows")]
        pub(crate) struct Functions {
            $(pub(crate) $name: $type,)*
        }

        impl Functions {
            fn of(library: &Library) -> Self {
                Self {
                    // SAFETY: the type is the function's, by OpenCL's own headers, and `None` is
                    // a good value of it.
                    $($name: unsafe { library.get::<$type>(stringify!($name)) }
                        .map_or(None, |function| *function),)*
                }
            }
        }
    };
}

functions! {
    clBuildProgram: clBuildProgram_t,
    clCompileProgram: clCompileProgram_t,
    clCreateContext: clCreateContext_t,
    clCreateKernel: clCreateKernel_t,
    clCreateProgramWithBinary: clCreateProgramWithBinary_t,
    clCreateProgramWithSource: clCreateProgramWithSource_t,
    clGetContextInfo: clGetContextInfo_t,
    clGetDeviceIDs: clGetDeviceIDs_t,
    clGetDeviceInfo: clGetDeviceInfo_t,
    clGetPlatformIDs: clGetPlatformIDs_t,
    clGetPlatformInfo: clGetPlatformInfo_t,
    clGetProgramBuildInfo: clGetProgramBuildInfo_t,
    clGetProgramInfo: clGetProgramInfo_t,
    clLinkProgram: clLinkProgram_t,
    clReleaseContext: clReleaseContext_t,
    clReleaseDevice: clReleaseDevice_t,
    clReleaseKernel: clReleaseKernel_t,
    clReleaseProgram: clReleaseProgram_t,
    clRetainContext: clRetainContext_t,
    clRetainDevice: clRetainDevice_t,
}

/// Loads the library: the one chosen, or else the system's.
pub(crate) fn load(chosen: Option<&PathBuf>) -> Result<Functions, BackendError> {
    let paths: Vec<OsString> = match (chosen, env::var_os(VARIABLE).filter(|text| !text.is_empty()))
    {
        (Some(path), _) => vec![path.into()],
        (None, Some(text)) => text
            .to_string_lossy()
            .split(';')
            .filter(|part| !part.is_empty())
            .map(Into::into)
            .collect(),
        (None, None) => NAMES.iter().map(Into::into).collect(),
    };
    let mut refusals = Vec::new();
    for path in &paths {
        // SAFETY: loading runs the library's start-up code. It is OpenCL's loader by the system's
        // or the user's own word.
        match unsafe { Library::new(path.as_os_str()) } {
            Ok(library) => {
                let functions = Functions::of(&library);
                // It stays for the life of the process: drivers start threads that run its code,
                // and the functions are called without a look at it.
                std::mem::forget(library);
                return Ok(functions);
            }
            Err(error) => {
                // The library's own words are one level down.
                let words = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                refusals.push(format!("`{}` ({words})", path.to_string_lossy()));
            }
        }
    }
    Err(BackendError::missing(
        format!("OpenCL's loader library, {},", refusals.join(", ")),
        format!(
            "install it (on Debian `ocl-icd-libopencl1`, and a driver such as `pocl-opencl-icd`), or \
             give its path with the variable `{VARIABLE}` or the builder's `library`"
        ),
    ))
}
