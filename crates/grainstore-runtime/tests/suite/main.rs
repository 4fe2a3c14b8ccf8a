//! What the runtime promises, held against a driver that accounts for every handle.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail it as the test itself may")]

mod ahead;
mod fake;
mod look_up;
mod plans;
mod reset;
mod shutdown;
mod tasks;
mod teardown;
mod walk;
