//! Makes a compiler's log fit to be read.

use crate::compile::SOURCE_NAME;

/// The log with the source under the kernel's own name. It holds no paths and nothing random:
/// headers go by the names they were given.
pub(crate) fn readable(log: &str, kernel: &str) -> String {
    log.replace(SOURCE_NAME, &format!("{kernel}.cu"))
}
