//! The driver's own assembler: machine code of PTX, and what it says of PTX that is wrong.

use std::ffi::{CStr, c_uint, c_void};
use std::ptr;

use crate::context::Context;
use crate::status::Failure;

/// `CU_JIT_ERROR_LOG_BUFFER` and `CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES`.
const LOG_OPTIONS: [c_uint; 2] = [5, 6];
/// `CU_JIT_INPUT_PTX`.
const INPUT_PTX: c_uint = 1;
/// As much as anybody reads of an assembler's complaints.
const LOG_ROOM: usize = 16 * 1024;

/// A call that failed, with what the driver's assembler said about it.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) failure: Failure,
    pub(crate) log: String,
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self { failure, log: String::new() }
    }
}

impl Context {
    /// Has the driver make machine code for this device of PTX that ends in a NUL.
    pub(crate) fn assemble(&self, ptx: &CStr) -> Result<Vec<u8>, Refused> {
        let functions = &self.driver.functions;
        let mut log = Log::new();
        let mut state = ptr::null_mut();
        let created = self.inside("cuLinkCreate", || {
            let (count, options, values) = log.options();
            // SAFETY: as for `load`. The log's buffer lives as long as the state.
            unsafe { (functions.cuLinkCreate_v2)(count, options, values, &raw mut state) }
        });
        created.map_err(|failure| Refused { failure, log: log.text() })?;
        let assembled = self.assemble_with(state, ptx);
        // SAFETY: the state was made above and nothing uses it any more: the code was copied.
        let _ = self.inside("cuLinkDestroy", || unsafe { (functions.cuLinkDestroy)(state) });
        assembled.map_err(|failure| Refused { failure, log: log.text() })
    }

    fn assemble_with(&self, state: *mut c_void, ptx: &CStr) -> Result<Vec<u8>, Failure> {
        let functions = &self.driver.functions;
        let bytes = ptx.to_bytes_with_nul();
        self.inside("cuLinkAddData", || {
            // SAFETY: the state lives; there are as many bytes as it says, which are only read.
            unsafe {
                (functions.cuLinkAddData_v2)(
                    state,
                    INPUT_PTX,
                    bytes.as_ptr().cast_mut().cast(),
                    bytes.len(),
                    c"kernel.ptx".as_ptr(),
                    0,
                    ptr::null_mut(),
                    ptr::null_mut(),
                )
            }
        })?;
        let (mut code, mut length) = (ptr::null_mut(), 0);
        self.inside("cuLinkComplete", || {
            // SAFETY: the state lives, and both may be written.
            unsafe { (functions.cuLinkComplete)(state, &raw mut code, &raw mut length) }
        })?;
        if code.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: the driver says that there are as many bytes, which live as long as the state.
        Ok(unsafe { std::slice::from_raw_parts(code.cast::<u8>(), length) }.to_vec())
    }
}

/// Where the driver's assembler writes what is wrong.
pub(crate) struct Log {
    room: Vec<u8>,
    options: [c_uint; 2],
    values: [*mut c_void; 2],
}

impl Log {
    pub(crate) fn new() -> Self {
        Self { room: vec![0; LOG_ROOM], options: LOG_OPTIONS, values: [ptr::null_mut(); 2] }
    }

    pub(crate) fn options(&mut self) -> (c_uint, *mut c_uint, *mut *mut c_void) {
        // The second is a number in the place of a pointer.
        self.values = [self.room.as_mut_ptr().cast(), ptr::without_provenance_mut(LOG_ROOM)];
        (2, self.options.as_mut_ptr(), self.values.as_mut_ptr())
    }

    pub(crate) fn text(&self) -> String {
        let end = self.room.iter().position(|byte| *byte == 0).unwrap_or(LOG_ROOM);
        String::from_utf8_lossy(&self.room[..end]).trim().to_owned()
    }
}
