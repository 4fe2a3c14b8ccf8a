//! Finds OpenCL's loader library and looks up the functions that this crate calls.

use std::env;
use std::path::Path;

use grainstore_runtime::BackendError;
use grainstore_runtime::parts::{candidates, first_that_loads};
use libloading::Library;
use opencl_sys::cl_function_types::{
    clBuildProgram_t, clCompileProgram_t, clCreateContext_t, clCreateKernel_t,
    clCreateProgramWithBinary_t, clCreateProgramWithSource_t, clGetContextInfo_t, clGetDeviceIDs_t,
    clGetDeviceInfo_t, clGetPlatformIDs_t, clGetPlatformInfo_t, clGetProgramBuildInfo_t,
    clGetProgramInfo_t, clLinkProgram_t, clReleaseContext_t, clReleaseDevice_t, clReleaseKernel_t,
    clReleaseProgram_t, clRetainContext_t, clRetainDevice_t,
};

/// Where the library is, for those who have it elsewhere.
const VARIABLE: &str = "GRAINSTORE_OPENCL_LIBRARY";

/// Where users of OpenCL crates already say it: paths, separated by `;`.
const FIELDS_VARIABLE: &str = "OPENCL_DYLIB_PATH";

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

/// Loads the library: the one chosen, or else the one that the variables or the system know.
pub(crate) fn load(chosen: Option<&Path>) -> Result<Functions, BackendError> {
    let listed = env::var_os(FIELDS_VARIABLE).unwrap_or_default().to_string_lossy().into_owned();
    let listed: Vec<_> = listed.split(';').filter(|path| !path.is_empty()).collect();
    let names = if listed.is_empty() { NAMES } else { &listed };
    let paths = candidates(chosen, VARIABLE, names);
    // SAFETY: loading runs the library's start-up code. It is OpenCL's loader by the system's or the
    // user's own word.
    let library =
        first_that_loads(&paths, |path| unsafe { Library::new(path) }).map_err(|why| {
            BackendError::missing(
                format!("OpenCL's loader library, {why},"),
                format!(
                    "install it (on Debian `ocl-icd-libopencl1`, and a driver such as \
                 `pocl-opencl-icd`), or give its path with the variable `{VARIABLE}` or \
                 `{FIELDS_VARIABLE}`, or the builder's `library`"
                ),
            )
        })?;
    let functions = Functions::of(&library);
    // It stays for the life of the process: drivers start threads that run its code, and the
    // functions are called without a look at it.
    std::mem::forget(library);
    Ok(functions)
}
