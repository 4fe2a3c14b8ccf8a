//! Kernels in C, compiled by the system's own compiler and run on the processor at hand.
//!
//! This is the embedded backend: it needs a C compiler and nothing else. A kernel is a C source
//! whose functions are called through native pointers.
//!
//! ```
//! use grainstore_host::HostBackend;
//! use grainstore_runtime::{Backend, KernelSpec, Language};
//!
//! let host = HostBackend::new();
//! let device = host.devices()?[0].id;
//! let spec = KernelSpec::builder("saxpy", Language::C)
//!     .source("void saxpy(int n, float a, const float *x, float *y) {
//!                  for (int i = 0; i < n; i++) y[i] = a * x[i] + y[i];
//!              }")
//!     .entry("saxpy")
//!     .build()?;
//!
//! let (module, artifact) = host.build(&device, &spec)?;
//! let (x, mut y) = ([1.0_f32, 2.0, 3.0], [10.0_f32, 20.0, 30.0]);
//! type Saxpy = unsafe extern "C" fn(i32, f32, *const f32, *mut f32);
//! // SAFETY: this is the signature of the C function, and both arrays hold three numbers.
//! unsafe {
//!     let saxpy = module.get::<Saxpy>("saxpy")?;
//!     saxpy(3, 2.0, x.as_ptr(), y.as_mut_ptr());
//! }
//! assert_eq!(y, [12.0, 24.0, 36.0]);
//!
//! // The artifact is the shared object: what another process loads without compiling.
//! let again = host.load(&device, &spec, &artifact.expect("the host always keeps one"))?;
//! host.unload(again)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The compiler
//! The one given to [`HostBackendBuilder::compiler`], else `$CC` (which may hold arguments, such as
//! `ccache gcc`), else `cc`, `gcc` or `clang`, the first that is there. It gets
//! `-std=gnu11 -O2 -fPIC -shared` before the options of the spec, and `-lm` at the end. A compiler
//! that has not ended after five minutes is killed, with all that it started;
//! [`HostBackendBuilder::deadline`] changes that.
//!
//! Every build works in a folder of its own that nobody else can read, and gives the same bytes
//! whatever that folder and the current one are called. The folder goes when the build is over,
//! with every temporary file of the compiler. A killed process leaves one behind, in the system's
//! folder for temporary files or wherever [`HostBackendBuilder::scratch_folder`] says; on systems
//! like Unix the next process that compiles there removes it.
//!
//! # Devices
//! One, `host:0`: the processor. Its code is made for the kind of machine that this process runs on,
//! not for this very processor, unless an option such as `-march=native` says so.
//!
//! # Sources
//! C. The entry point is a function's name; without one, all functions that the source defines are in
//! the module. Defines are the compiler's own `-D`. C has no specialization constants, so they are
//! refused; a define does instead.
//!
//! # What is in the key
//! What the compiler says of itself, its target, the C library, and the variables that change its
//! output (`CPATH`, `LIBRARY_PATH`, `SDKROOT` and others). With `-march=native` and its
//! relatives, also what `native` means to this compiler on this processor.
//!
//! What the key does not hold must not change the code, so:
//! - An option is taken if it is known to read no file and to write none. Others are refused, and
//!   the error says what to do instead. [`HostBackendBuilder::allow_option`] adds one that you know
//!   to be harmless.
//! - Headers come with the spec, by name; system headers such as `<math.h>` are found too. A source
//!   that includes any other file is refused.
//! - `__DATE__` and `__TIME__` are those of the first second of 1970.
//!
//! A file that the assembler reads (`.incbin`) goes unnoticed: don't.
//!
//! # The artifact
//! The shared object. It is sealed: bytes that are cut, changed, or made for another kind of machine
//! are refused before the system's loader sees them. Loading takes the bytes through an anonymous
//! file in memory on Linux, elsewhere through a private temporary file. Loading the same bytes twice
//! gives two modules with variables of their own.
//!
//! # What was tried where
//! Linux is where this is tested. On macOS and Windows the code is type-checked and has never run.

mod artifact;
mod backend;
mod builder;
mod compile;
mod compiler;
mod device;
mod image;
mod log;
mod module;
mod object_file;
mod options;
mod run;
mod scratch;
mod toolchain;

pub use backend::HostBackend;
pub use builder::HostBackendBuilder;
pub use module::HostModule;
