//! What the runtime promises, held against a driver that accounts for every handle.

mod fake;
mod look_up;
mod plans;
mod reset;
mod shutdown;
mod teardown;
mod walk;
