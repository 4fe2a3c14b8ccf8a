//! The cache as it ships, on the types of loom: the interleavings of two threads, and in each of them
//! every value that a load may see. Where those are too many, a model says up to how many preemptions
//! it goes. `docs/testing.md` says what loom leaves out.
//!
//! In every model each value is released once and never under a pin, and no more values are alive
//! than there are places. `cargo xtask prove` runs them; each prints how many interleavings it had.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod building;
mod pins;
mod teardown;
mod world;
