//! NVRTC's calls, each checked and none of them unsafe to use within this crate.
//!
//! It is found at run time, needs no driver and no device, and compiles on as many threads as one
//! likes, each with a program of its own. By NVIDIA's `nvrtc.h`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

use grainstore_runtime::BackendError;

use crate::identity;
use crate::library::{self, functions};
use crate::nvrtc_paths::{self, VARIABLE};
use crate::status::nvrtc_name;

type Status = c_int;
type RawProgram = *mut c_void;

functions! {
    /// The functions, by their names in C.
    Functions {
        nvrtcVersion: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status,
        nvrtcGetNumSupportedArchs: unsafe extern "C" fn(*mut c_int) -> Status,
        nvrtcGetSupportedArchs: unsafe extern "C" fn(*mut c_int) -> Status,
        nvrtcCreateProgram: unsafe extern "C" fn(
            *mut RawProgram,
            *const c_char,
            *const c_char,
            c_int,
            *const *const c_char,
            *const *const c_char,
        ) -> Status,
        nvrtcDestroyProgram: unsafe extern "C" fn(*mut RawProgram) -> Status,
        nvrtcAddNameExpression: unsafe extern "C" fn(RawProgram, *const c_char) -> Status,
        nvrtcCompileProgram: unsafe extern "C" fn(RawProgram, c_int, *const *const c_char) -> Status,
        nvrtcGetLoweredName: unsafe extern "C" fn(RawProgram, *const c_char, *mut *const c_char) -> Status,
        nvrtcGetProgramLogSize: unsafe extern "C" fn(RawProgram, *mut usize) -> Status,
        nvrtcGetProgramLog: unsafe extern "C" fn(RawProgram, *mut c_char) -> Status,
        nvrtcGetPTXSize: unsafe extern "C" fn(RawProgram, *mut usize) -> Status,
        nvrtcGetPTX: unsafe extern "C" fn(RawProgram, *mut c_char) -> Status,
        nvrtcGetCUBINSize: unsafe extern "C" fn(RawProgram, *mut usize) -> Status,
        nvrtcGetCUBIN: unsafe extern "C" fn(RawProgram, *mut c_char) -> Status,
    }
}

/// The compiler, loaded.
pub(crate) struct Nvrtc {
    functions: Functions,
    pub(crate) version: (i32, i32),
    /// The numbers of the architectures it makes code for, sorted.
    pub(crate) known: Vec<u32>,
    /// Version and build, the same wherever the same library is.
    pub(crate) identity: String,
}

/// A call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    call: &'static str,
    pub(crate) code: i32,
}

impl From<Refusal> for BackendError {
    fn from(refusal: Refusal) -> Self {
        Self::failed(refusal.call, format!("{} ({})", nvrtc_name(refusal.code), refusal.code))
    }
}

fn check(call: &'static str, code: Status) -> Result<(), Refusal> {
    if code == 0 { Ok(()) } else { Err(Refusal { call, code }) }
}

impl Nvrtc {
    /// Loads the library: the one chosen, or else the one that the variables or the system know.
    pub(crate) fn load(chosen: Option<&Path>) -> Result<Self, BackendError> {
        let paths = nvrtc_paths::candidates(chosen);
        let (library, path) = library::first(&paths)
            .map_err(|refusals| missing(&format!("NVIDIA's runtime compiler, {refusals},")))?;
        let functions = Functions::of(&library).map_err(|absent| {
            missing(&format!("`{absent}` of CUDA 11.2 or later in `{}`", path.display()))
        })?;
        // It stays for the life of the process: the functions are called without a look at it.
        std::mem::forget(library);
        let mut version = (0, 0);
        // SAFETY: both numbers may be written.
        let code = unsafe { (functions.nvrtcVersion)(&raw mut version.0, &raw mut version.1) };
        check("nvrtcVersion", code)?;
        let known = known(&functions)?;
        let file = library::file_of(functions.nvrtcVersion as *const c_void);
        let identity = identity(version, file.as_deref().unwrap_or(path));
        Ok(Self { functions, version, known, identity })
    }

    /// A program of this source and these headers, not compiled yet.
    pub(crate) fn program(
        &self,
        name: &CStr,
        source: &CStr,
        headers: &[(CString, CString)],
    ) -> Result<Program<'_>, Refusal> {
        let names: Vec<_> = headers.iter().map(|(name, _)| name.as_ptr()).collect();
        let texts: Vec<_> = headers.iter().map(|(_, text)| text.as_ptr()).collect();
        let mut raw = ptr::null_mut();
        // SAFETY: all texts end in a NUL, and both lists are as long as it says.
        let code = unsafe {
            (self.functions.nvrtcCreateProgram)(
                &raw mut raw,
                source.as_ptr(),
                name.as_ptr(),
                headers.len() as c_int,
                texts.as_ptr(),
                names.as_ptr(),
            )
        };
        check("nvrtcCreateProgram", code)?;
        Ok(Program { nvrtc: self, raw })
    }
}

/// A program, good for one thread at a time.
pub(crate) struct Program<'n> {
    nvrtc: &'n Nvrtc,
    raw: RawProgram,
}

impl Program<'_> {
    /// Has the compiler keep the kernel that this C++ expression names, and its name in the code.
    pub(crate) fn add_name(&self, expression: &CStr) -> Result<(), Refusal> {
        // SAFETY: the program lives, and the text ends in a NUL.
        let code =
            unsafe { (self.functions().nvrtcAddNameExpression)(self.raw, expression.as_ptr()) };
        check("nvrtcAddNameExpression", code)
    }

    /// Compiles.
    pub(crate) fn compile(&self, options: &[CString]) -> Result<(), Refusal> {
        let options: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: the program lives; the list is as long as it says, and its texts end in a NUL.
        let code = unsafe {
            (self.functions().nvrtcCompileProgram)(
                self.raw,
                options.len() as c_int,
                options.as_ptr(),
            )
        };
        check("nvrtcCompileProgram", code)
    }

    /// The name in the code of what [`add_name`](Self::add_name) named.
    pub(crate) fn lowered(&self, expression: &CStr) -> Result<String, Refusal> {
        let mut name = ptr::null();
        // SAFETY: the program lives, and the text ends in a NUL.
        let code = unsafe {
            (self.functions().nvrtcGetLoweredName)(self.raw, expression.as_ptr(), &raw mut name)
        };
        check("nvrtcGetLoweredName", code)?;
        if name.is_null() {
            return Err(Refusal { call: "nvrtcGetLoweredName", code });
        }
        // SAFETY: the call says that it is a text; it lives as long as the program.
        Ok(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }

    /// What the compiler said; empty where it said nothing.
    pub(crate) fn log(&self) -> String {
        let Functions { nvrtcGetProgramLogSize: size, nvrtcGetProgramLog: get, .. } =
            *self.functions();
        text(&self.bytes("nvrtcGetProgramLog", size, get).unwrap_or_default())
    }

    /// The PTX.
    pub(crate) fn ptx(&self) -> Result<String, Refusal> {
        let Functions { nvrtcGetPTXSize: size, nvrtcGetPTX: get, .. } = *self.functions();
        self.bytes("nvrtcGetPTX", size, get).map(|bytes| text(&bytes))
    }

    /// The machine code. Empty, and no error, where it was compiled to PTX only.
    pub(crate) fn cubin(&self) -> Result<Vec<u8>, Refusal> {
        let Functions { nvrtcGetCUBINSize: size, nvrtcGetCUBIN: get, .. } = *self.functions();
        self.bytes("nvrtcGetCUBIN", size, get)
    }

    fn functions(&self) -> &Functions {
        &self.nvrtc.functions
    }

    /// Asks for the size first, and then for the bytes.
    fn bytes(
        &self,
        call: &'static str,
        size: unsafe extern "C" fn(RawProgram, *mut usize) -> Status,
        get: unsafe extern "C" fn(RawProgram, *mut c_char) -> Status,
    ) -> Result<Vec<u8>, Refusal> {
        let mut length = 0;
        // SAFETY: the program lives, and the number may be written.
        check(call, unsafe { size(self.raw, &raw mut length) })?;
        let mut bytes = vec![0_u8; length];
        if length > 0 {
            // SAFETY: there is room for as many bytes as the library has said.
            check(call, unsafe { get(self.raw, bytes.as_mut_ptr().cast()) })?;
        }
        Ok(bytes)
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: it lives until here. A failure could tell nobody anything.
        let _ = unsafe { (self.functions().nvrtcDestroyProgram)(&raw mut self.raw) };
    }
}

fn known(functions: &Functions) -> Result<Vec<u32>, Refusal> {
    let mut count = 0;
    // SAFETY: the number may be written.
    let code = unsafe { (functions.nvrtcGetNumSupportedArchs)(&raw mut count) };
    check("nvrtcGetNumSupportedArchs", code)?;
    let mut list: Vec<c_int> = vec![0; usize::try_from(count).unwrap_or_default()];
    // SAFETY: there is room for as many as the library has said.
    let code = unsafe { (functions.nvrtcGetSupportedArchs)(list.as_mut_ptr()) };
    check("nvrtcGetSupportedArchs", code)?;
    let mut known: Vec<_> = list.into_iter().filter_map(|arch| u32::try_from(arch).ok()).collect();
    known.sort_unstable();
    Ok(known)
}

/// Version and builds. The version alone would not do: its last part is in no call's answer.
fn identity((major, minor): (i32, i32), file: &Path) -> String {
    let build = identity::of(file).unwrap_or_else(|| "unknown".to_owned());
    let mut identity = format!("nvrtc {major}.{minor}, build {build}");
    // The part of the compiler that lies in a file of its own, where it is beside it.
    let builtins = if cfg!(windows) {
        format!("nvrtc-builtins64_{major}{minor}.dll")
    } else {
        format!("libnvrtc-builtins.so.{major}.{minor}")
    };
    if let Some(build) = identity::of(&file.with_file_name(builtins)) {
        identity.push_str(&format!(", builtins {build}"));
    }
    identity
}

fn missing(what: &str) -> BackendError {
    BackendError::missing(
        what,
        format!(
            "install it (it is in the CUDA toolkit, and alone in PyPI's `nvidia-cuda-nvrtc`; it should \
             not be newer than the driver), or give its path with the variable `{VARIABLE}`, the \
             toolkit's with `CUDA_PATH`, or the builder's `nvrtc`"
        ),
    )
}

/// A text as it comes from C.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
