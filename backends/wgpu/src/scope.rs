//! Calls of wgpu whose errors come back to their caller.
//!
//! wgpu reports errors to the scopes of the thread that made the call, so builds on several threads
//! get their own, and the application's scopes and handlers see none of them.

use wgpu::{Device, Error, ErrorFilter};

/// Makes the call, and gives what it made with the error that came of it.
///
/// A lost device is no error here: wgpu says it to the application's own callback alone. What was
/// made is then unusable, in silence.
pub(crate) fn caught<T>(device: &Device, call: impl FnOnce() -> T) -> (T, Option<Error>) {
    let memory = device.push_error_scope(ErrorFilter::OutOfMemory);
    let internal = device.push_error_scope(ErrorFilter::Internal);
    let validation = device.push_error_scope(ErrorFilter::Validation);
    let value = call();
    // Scopes end in the reverse of their order, which the application's own depend on.
    let [validation, internal, memory] =
        [validation.pop(), internal.pop(), memory.pop()].map(pollster::block_on);
    // The cause before what may have followed from it.
    (value, memory.or(internal).or(validation))
}
