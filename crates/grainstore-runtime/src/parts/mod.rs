//! What most backends are made of beside their own API's calls, written once for all of them.
//!
//! A [`Backend`](crate::Backend) needs none of it. It is for those who write one and do not want to
//! find out again what the others have: how a library is looked for, how handles are counted, what of
//! the environment belongs into a key. Errors that several have are made by
//! [`BackendError`](crate::BackendError), seals by [`Artifact::sealed`](crate::Artifact::sealed), and
//! [`Toolchain::with_variables`](crate::Toolchain::with_variables) adds what steers a compiler.

mod digest;
mod library;
mod live;
mod sought;
mod source;
mod variables;

pub use digest::{digest, digest_of_names};
pub use library::{candidates, first_that_loads};
pub use live::{Counted, Live};
pub use sought::Sought;
pub use source::with_defines;
