//! Running the user's code so that nothing unwinds out of it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What the code returned, or the message of its panic.
///
/// What the code leaves half done is its own: the crate keeps no state of its own open while it
/// runs.
pub(crate) fn contain<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    if cfg!(loom) {
        // There a panic is what loom found, and not for us to keep.
        return Ok(code());
    }
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| {
        let message = panic_message(&*payload);
        // A payload's own drop may panic, too, and so may that panic's: the last is leaked.
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(second);
        }
        message
    })
}

/// What a panic said.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a message".to_owned()
    }
}
