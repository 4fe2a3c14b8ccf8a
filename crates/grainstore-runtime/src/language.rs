//! The languages in which a kernel may be written.

use std::fmt;

/// What a kernel's source is written in. Text, but for those that [are binary](Language::is_binary).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Language {
    /// C, for the host backend.
    C,
    /// OpenCL C.
    OpenClC,
    /// CUDA C++.
    CudaCpp,
    /// HIP C++.
    HipCpp,
    /// The WebGPU shading language.
    Wgsl,
    /// The OpenGL shading language.
    Glsl,
    /// SPIR-V words, little-endian.
    SpirV,
    /// The Metal shading language.
    Msl,
    /// NVIDIA's portable assembly.
    Ptx,
    /// NVIDIA's machine code, an ELF file for one architecture.
    Cubin,
    /// A text language of somebody else's backend, by the name that keys know it by.
    Other(&'static str),
}

impl Language {
    /// Every language that has a name of its own here, in the order of the declaration.
    pub const ALL: [Self; 10] = [
        Self::C,
        Self::OpenClC,
        Self::CudaCpp,
        Self::HipCpp,
        Self::Wgsl,
        Self::Glsl,
        Self::SpirV,
        Self::Msl,
        Self::Ptx,
        Self::Cubin,
    ];

    /// The name used in keys and manifests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::OpenClC => "opencl-c",
            Self::CudaCpp => "cuda-c++",
            Self::HipCpp => "hip-c++",
            Self::Wgsl => "wgsl",
            Self::Glsl => "glsl",
            Self::SpirV => "spir-v",
            Self::Msl => "msl",
            Self::Ptx => "ptx",
            Self::Cubin => "cubin",
            Self::Other(name) => name,
        }
    }

    /// Whether a source in it is bytes instead of text.
    #[must_use]
    pub const fn is_binary(self) -> bool {
        matches!(self, Self::SpirV | Self::Cubin)
    }

    /// Whether a source in it goes through a preprocessor, which has macros and `#include`. Where it
    /// does not, what varies is a specialization constant.
    #[must_use]
    pub const fn has_preprocessor(self) -> bool {
        matches!(
            self,
            Self::C | Self::OpenClC | Self::CudaCpp | Self::HipCpp | Self::Glsl | Self::Msl
        )
    }

    /// The language of that name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.name() == name)
    }

    /// The language that a file's extension (without its dot) says, if it says one.
    #[must_use]
    pub fn from_extension(extension: &str) -> Option<Self> {
        Some(match extension {
            "c" => Self::C,
            "cl" => Self::OpenClC,
            "cu" => Self::CudaCpp,
            "hip" => Self::HipCpp,
            "wgsl" => Self::Wgsl,
            "comp" | "glsl" => Self::Glsl,
            "spv" => Self::SpirV,
            "metal" => Self::Msl,
            "ptx" => Self::Ptx,
            "cubin" => Self::Cubin,
            _ => return None,
        })
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
