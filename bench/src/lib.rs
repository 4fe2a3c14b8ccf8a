//! Grainstore and its peers on the same work.
//!
//! `subject/` holds one file for each cache, all behind one trait. `rows/` holds one file for each
//! kind of work. `measure/` times them in turn, round after round, and throws away what the machine
//! disturbed. `report/` holds the goals and prints. `instructions.rs` counts instructions instead of
//! time, which needs no quiet machine.

pub mod allocator;
pub mod instructions;
pub mod keys;
#[cfg(feature = "peers")]
pub mod measure;
#[cfg(feature = "peers")]
pub mod report;
#[cfg(feature = "peers")]
pub mod rows;
pub mod runtime;
pub mod subject;
pub mod work;
