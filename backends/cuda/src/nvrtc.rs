//! NVRTC's calls, each checked and none of them unsafe to use within this crate.
//!
//! It is found at run time, needs no driver and no device, and compiles on as many threads as one
//! likes, each with a program of its own. By NVIDIA's `nvrtc.h`.

use std::env;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::ptr;

use grainstore_runtime::BackendError;

use crate::identity;
use crate::library::{self, functions};
use crate::status::nvrtc_name;

/// The library, or the folder that it is in.
const VARIABLE: &str = "GRAINSTORE_NVRTC_LIBRARY";
/// Where the toolkit's installers and users say that the toolkit is.
const TOOLKIT: [&str; 2] = ["CUDA_PATH", "CUDA_HOME"];

type Code = c_int;
type RawProgram = *mut c_void;

functions! {
    /// The functions, by their names in C.
    Functions {
        nvrtcVersion: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Code,
        nvrtcGetNumSupportedArchs: unsafe extern "C" fn(*mut c_int) -> Code,
        nvrtcGetSupportedArchs: unsafe extern "C" fn(*mut c_int) -> Code,
        nvrtcCreateProgram: unsafe extern "C" fn(
            *mut RawProgram,
            *const c_char,
            *const c_char,
            c_int,
            *const *const c_char,
            *const *const c_char,
        ) -> Code,
        nvrtcDestroyProgram: unsafe extern "C" fn(*mut RawProgram) -> Code,
        nvrtcAddNameExpression: unsafe extern "C" fn(RawProgram, *const c_char) -> Code,
        nvrtcCompileProgram: unsafe extern "C" fn(RawProgram, c_int, *const *const c_char) -> Code,
        nvrtcGetLoweredName: unsafe extern "C" fn(RawProgram, *const c_char, *mut *const c_char) -> Code,
        nvrtcGetProgramLogSize: unsafe extern "C" fn(RawProgram, *mut usize) -> Code,
        nvrtcGetProgramLog: unsafe extern "C" fn(RawProgram, *mut c_char) -> Code,
        nvrtcGetPTXSize: unsafe extern "C" fn(RawProgram, *mut usize) -> Code,
        nvrtcGetPTX: unsafe extern "C" fn(RawProgram, *mut c_char) -> Code,
        nvrtcGetCUBINSize: unsafe extern "C" fn(RawProgram, *mut usize) -> Code,
        nvrtcGetCUBIN: unsafe extern "C" fn(RawProgram, *mut c_char) -> Code,
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

fn check(call: &'static str, code: Code) -> Result<(), Refusal> {
    if code == 0 { Ok(()) } else { Err(Refusal { call, code }) }
}

impl Nvrtc {
    /// Loads the library: the one chosen, or else the one that the variables or the system know.
    pub(crate) fn load(chosen: Option<&Path>) -> Result<Self, BackendError> {
        let paths = candidates(chosen);
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
        size: unsafe extern "C" fn(RawProgram, *mut usize) -> Code,
        get: unsafe extern "C" fn(RawProgram, *mut c_char) -> Code,
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
            "install it (it is in the CUDA toolkit, in Debian's `libnvrtc12` and in PyPI's \
             `nvidia-cuda-nvrtc`), or give its path with the variable `{VARIABLE}`, the toolkit's \
             with `CUDA_PATH`, or the builder's `nvrtc`"
        ),
    )
}

fn candidates(chosen: Option<&Path>) -> Vec<PathBuf> {
    let variable =
        |name: &str| env::var_os(name).filter(|text| !text.is_empty()).map(PathBuf::from);
    if let Some(path) = chosen.map(Path::to_owned).or_else(|| variable(VARIABLE)) {
        return if path.is_dir() { in_folder(&path) } else { vec![path] };
    }
    let mut paths = Vec::new();
    for toolkit in TOOLKIT.into_iter().filter_map(variable) {
        let folders: &[&str] = if cfg!(windows) { &["bin/x64", "bin"] } else { &["lib64", "lib"] };
        let folders = folders.iter().map(|folder| toolkit.join(folder));
        paths
            .extend(folders.filter(|folder| folder.is_dir()).flat_map(|folder| in_folder(&folder)));
    }
    if cfg!(windows) {
        // By full paths, so that it is known which file was loaded.
        let folders = variable("PATH").unwrap_or_default();
        paths.extend(env::split_paths(&folders).flat_map(|folder| libraries_of(&folder)));
    } else {
        paths.extend(NAMES.map(PathBuf::from));
        paths.extend(NAMES.map(|name| Path::new("/usr/local/cuda/lib64").join(name)));
    }
    if paths.is_empty() {
        paths.push(PathBuf::from(NAMES[0]));
    }
    paths
}

/// The preferred one first.
const NAMES: [&str; 4] = if cfg!(windows) {
    ["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll", "nvrtc64.dll"]
} else {
    ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"]
};

/// What is in this folder, or what should be.
fn in_folder(folder: &Path) -> Vec<PathBuf> {
    let found = libraries_of(folder);
    if found.is_empty() { NAMES.iter().map(|name| folder.join(name)).collect() } else { found }
}

/// NVRTC libraries of any version in a folder, the newest first.
fn libraries_of(folder: &Path) -> Vec<PathBuf> {
    let prefix = if cfg!(windows) { "nvrtc64_" } else { "libnvrtc.so" };
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut names: Vec<_> = names
        .filter_map(|name| name.into_string().ok())
        .filter(|name| name.starts_with(prefix) && !name.contains(".alt"))
        .filter(|name| !cfg!(windows) || name.ends_with(".dll"))
        .collect();
    names.sort_by_cached_key(|name| std::cmp::Reverse(version_in(name)));
    names.into_iter().map(|name| folder.join(name)).collect()
}

/// The numbers in a file's name, in order.
fn version_in(name: &str) -> Vec<u32> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

/// A text as it comes from C.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_library_of_a_folder_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let names = if cfg!(windows) {
            [
                "nvrtc64_112_0.dll",
                "nvrtc64_130_0.dll",
                "nvrtc64_120_0.alt.dll",
                "nvrtc-builtins64_130.dll",
            ]
        } else {
            [
                "libnvrtc.so.12",
                "libnvrtc.so.13.5.37",
                "libnvrtc.alt.so.12",
                "libnvrtc-builtins.so.13.5",
            ]
        };
        for name in names {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let expected = [names[1], names[0]].map(|name| folder.path().join(name));
        assert_eq!(candidates(Some(folder.path())), expected);
        assert_eq!(candidates(Some(Path::new("/nowhere/x.so"))), [Path::new("/nowhere/x.so")]);
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(candidates(Some(empty.path()))[0], empty.path().join(NAMES[0]));
    }
}
