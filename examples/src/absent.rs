//! What tests and examples do on a machine that lacks a backend: say so, or fail if it was required.

use std::env;
use std::error::Error;
use std::fmt::{self, Display};

/// The variable that lists, with commas, the backends that must be here.
pub const REQUIRE: &str = "GRAINSTORE_REQUIRE";

/// A backend that must be here is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    message: String,
}

impl Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Absent {}

/// Prints that nothing was run for want of this backend, and why: the reason names it.
///
/// # Errors
/// Where [`REQUIRE`] lists the backend.
pub fn absent(backend: &str, reason: impl Display) -> Result<(), Absent> {
    let required = env::var(REQUIRE).unwrap_or_default();
    if required.split(',').any(|name| name.trim() == backend) {
        let message = format!("{REQUIRE} lists {backend}, which does not work here: {reason}");
        return Err(Absent { message });
    }
    println!("not run: {reason}");
    Ok(())
}
