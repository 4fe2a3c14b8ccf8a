//! What this crate must know of a SPIR-V module: that it is whole, and what its entry points bind.
//!
//! Drivers do not check SPIR-V: they read past the end of a cut module, and believe any index. So
//! nothing reaches one that was not walked here first, from word to word, and the layouts that the
//! driver gets are those of this walk. It is no full validator (that is `spirv-val`): what the
//! instructions in a function do is not looked at.

mod codes;
mod constants;
mod interface;
mod module;
mod types;
mod words;

#[cfg(test)]
mod tests;

#[cfg(any(feature = "wgsl", feature = "glsl"))]
pub(crate) use constants::integer;
pub(crate) use constants::{Constants, Specialized};
pub use interface::Binding;
pub(crate) use interface::{Interface, NoInterface};
pub(crate) use module::Module;
pub(crate) use words::{Malformed, from_bytes, to_bytes};
