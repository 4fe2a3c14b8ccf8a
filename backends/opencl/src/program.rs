//! OpenCL's calls about programs: source or binary in, kernels and binary out.

use std::ffi::{CStr, c_void};
use std::ptr;

use opencl_sys::{
    CL_PROGRAM_BINARIES, CL_PROGRAM_BINARY_SIZES, CL_PROGRAM_BUILD_LOG, CL_PROGRAM_KERNEL_NAMES,
    cl_program_info,
};

use crate::context::Place;
use crate::driver::{Driver, call, info, text};
use crate::handle::Owned;
use crate::status::Failure;

/// A program, built for the one device of its place, whatever others its context has.
#[derive(Debug)]
pub(crate) struct Program {
    // Released before the context, which it keeps alive.
    owned: Owned,
    place: Place,
}

impl Program {
    /// A program of this source, not built yet.
    pub(crate) fn from_source(place: &Place, source: &[u8]) -> Result<Self, Failure> {
        let driver = place.context.driver();
        let (mut text, length) = (source.as_ptr().cast(), source.len());
        let mut code = 0;
        // SAFETY: one text is announced, and one is given with its length; the driver copies it.
        let raw = unsafe {
            call!(
                driver,
                clCreateProgramWithSource(
                    place.context.raw(),
                    1,
                    &raw mut text,
                    &raw const length,
                    &raw mut code,
                )
            )
        };
        Failure::check("clCreateProgramWithSource", code)?;
        Ok(Self::new(place, raw))
    }

    /// A program of this binary, not built yet.
    pub(crate) fn from_binary(place: &Place, binary: &[u8]) -> Result<Self, Failure> {
        let (driver, device) = (place.context.driver(), place.device);
        let (mut bytes, length) = (binary.as_ptr(), binary.len());
        let (mut status, mut code) = (0, 0);
        // SAFETY: one device of the context is announced, and one binary is given with its length;
        // the driver copies it.
        let raw = unsafe {
            call!(
                driver,
                clCreateProgramWithBinary(
                    place.context.raw(),
                    1,
                    &raw const device.0,
                    &raw const length,
                    &raw mut bytes,
                    &raw mut status,
                    &raw mut code,
                )
            )
        };
        Failure::check("clCreateProgramWithBinary", code)?;
        let program = Self::new(place, raw);
        Failure::check("clCreateProgramWithBinary", status)?;
        Ok(program)
    }

    /// Compiles and links in one step.
    pub(crate) fn build(&self, options: &CStr) -> Result<(), Failure> {
        let (program, device) = (self.owned.raw(), self.place.device);
        // SAFETY: the program lives, and its context's device is given; with no callback the call
        // returns when it is done.
        let code = unsafe {
            call!(
                self.owned.driver(),
                clBuildProgram(
                    program,
                    1,
                    &raw const device.0,
                    options.as_ptr(),
                    None,
                    ptr::null_mut(),
                )
            )
        };
        Failure::check("clBuildProgram", code)
    }

    /// Compiles against these headers, to be linked.
    pub(crate) fn compile(
        &self,
        options: &CStr,
        headers: &[(&CStr, Program)],
    ) -> Result<(), Failure> {
        let names: Vec<_> = headers.iter().map(|(name, _)| name.as_ptr()).collect();
        let programs: Vec<_> = headers.iter().map(|(_, program)| program.owned.raw()).collect();
        let device = self.place.device;
        // SAFETY: as for `build`; both lists are as long as it says, or null where they are empty.
        let code = unsafe {
            call!(
                self.owned.driver(),
                clCompileProgram(
                    self.owned.raw(),
                    1,
                    &raw const device.0,
                    options.as_ptr(),
                    names.len() as u32,
                    start(&programs),
                    start(&names).cast_mut().cast(),
                    None,
                    ptr::null_mut(),
                )
            )
        };
        Failure::check("clCompileProgram", code)
    }

    /// A new program that can be run, of this compiled one alone.
    pub(crate) fn link(&self) -> Result<Self, Failure> {
        let (compiled, device) = (self.owned.raw(), self.place.device);
        let mut code = 0;
        // SAFETY: as for `build`; one program is announced, and one is given.
        let raw = unsafe {
            call!(
                self.owned.driver(),
                clLinkProgram(
                    self.place.context.raw(),
                    1,
                    &raw const device.0,
                    c"".as_ptr(),
                    1,
                    &raw const compiled,
                    None,
                    ptr::null_mut(),
                    &raw mut code,
                )
            )
        };
        // A program may come back with the failure; it must be released then too.
        let linked = (!raw.is_null()).then(|| Self::new(&self.place, raw));
        Failure::check("clLinkProgram", code)?;
        linked.ok_or(Failure { call: "clLinkProgram", code: Some(code) })
    }

    /// The compiler's log; empty where there is none.
    pub(crate) fn log(&self) -> String {
        let (program, device) = (self.owned.raw(), self.place.device.0);
        let what = CL_PROGRAM_BUILD_LOG;
        let log = info("clGetProgramBuildInfo", |size, value, needed| {
            // SAFETY: the program lives, and `value` has room for `size` bytes.
            Ok(unsafe {
                call!(
                    self.owned.driver(),
                    clGetProgramBuildInfo(program, device, what, size, value, needed)
                )
            })
        });
        log.map_or(String::new(), |bytes| text(&bytes))
    }

    /// The names of its kernels, once it is built, sorted.
    pub(crate) fn kernel_names(&self) -> Result<Vec<String>, Failure> {
        let names = text(&self.info(CL_PROGRAM_KERNEL_NAMES)?);
        let mut names: Vec<_> =
            names.split(';').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The driver's own binary; empty where the driver gives none.
    pub(crate) fn binary(&self) -> Result<Vec<u8>, Failure> {
        // A program made of source may have a place in the lists for each device of its context. It
        // was built for one of them, so the others' binaries are empty. Which devices the lists are
        // about is not to be had: some drivers leave out those it was not built for.
        let sizes = self.info(CL_PROGRAM_BINARY_SIZES)?;
        let (sizes, _) = sizes.as_chunks();
        let mut sizes_in_order = sizes.iter().map(|bytes| usize::from_ne_bytes(*bytes)).enumerate();
        let Some((at, size)) = sizes_in_order.find(|(_, size)| *size > 0) else {
            return Ok(Vec::new());
        };
        let mut binary = vec![0_u8; size];
        let mut slots = vec![ptr::null_mut(); sizes.len()];
        slots[at] = binary.as_mut_ptr();
        let program = self.owned.raw();
        // SAFETY: there is a pointer for each of the program's devices: one points to as many bytes
        // as the driver has said that it will write, and the others, being null, are passed over.
        let code = unsafe {
            call!(
                self.owned.driver(),
                clGetProgramInfo(
                    program,
                    CL_PROGRAM_BINARIES,
                    size_of_val(slots.as_slice()),
                    slots.as_mut_ptr().cast(),
                    ptr::null_mut(),
                )
            )
        };
        Failure::check("clGetProgramInfo", code)?;
        Ok(binary)
    }

    /// A kernel of its own for the caller, since a kernel's arguments are part of it.
    pub(crate) fn kernel(&self, name: &CStr) -> Result<Owned, Failure> {
        let driver = self.owned.driver();
        let mut code = 0;
        // SAFETY: the program lives, and the name ends in a NUL.
        let raw = unsafe {
            call!(driver, clCreateKernel(self.owned.raw(), name.as_ptr(), &raw mut code))
        };
        Failure::check("clCreateKernel", code)?;
        Ok(Owned::new(raw, driver, Driver::release_kernel))
    }

    /// The native handle.
    pub(crate) fn raw(&self) -> *mut c_void {
        self.owned.raw()
    }

    /// Its context and device.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Releases it, and says whether that worked.
    pub(crate) fn release(self) -> Result<(), Failure> {
        self.owned.release()
    }

    fn new(place: &Place, raw: *mut c_void) -> Self {
        let owned = Owned::new(raw, place.context.driver(), Driver::release_program);
        Self { owned, place: place.clone() }
    }

    fn info(&self, what: cl_program_info) -> Result<Vec<u8>, Failure> {
        let program = self.owned.raw();
        info("clGetProgramInfo", |size, value, needed| {
            // SAFETY: the program lives, and `value` has room for `size` bytes.
            Ok(unsafe {
                call!(self.owned.driver(), clGetProgramInfo(program, what, size, value, needed))
            })
        })
    }
}

/// A list's start, or null where it is empty, as OpenCL wants it.
fn start<T>(list: &[T]) -> *const T {
    if list.is_empty() { ptr::null() } else { list.as_ptr() }
}
