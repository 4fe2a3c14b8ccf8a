//! Timing on a machine that others use too: short batches in turn, and what was disturbed is
//! thrown away and said.

pub mod pair;
pub mod quiet;
pub mod rounds;
pub mod series;
