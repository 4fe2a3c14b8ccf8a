//! The program as its users and their scripts meet it: arguments in, output and exit code out.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod doctor;
mod errors;
#[cfg(unix)]
mod interrupt;
mod json;
mod place;
mod store;
mod target;
mod warm;
