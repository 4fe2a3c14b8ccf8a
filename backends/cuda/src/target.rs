//! Architectures: how targets are written, and what a device's code is made for.

use std::fmt;

use grainstore::Framework;
use grainstore_runtime::{BackendError, Target};

/// The form of a kernel's code, and with it the way into the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// Machine code of one architecture, which the driver takes as it is.
    Cubin,
    /// Portable assembly, which the driver translates whenever it loads it: for its own architecture
    /// and all later ones.
    Ptx,
}

impl Code {
    /// The framework that a kernel in this form goes through: `CUDA/CUBIN` or `CUDA/PTX`. Its
    /// devices are those of CUDA.
    #[must_use]
    pub fn framework(self) -> Framework {
        Framework::new(match self {
            Self::Cubin => "CUDA/CUBIN",
            Self::Ptx => "CUDA/PTX",
        })
    }

    /// The name of the artifact's member that holds it.
    pub(crate) fn member(self) -> &'static str {
        match self {
            Self::Cubin => "kernel.cubin",
            Self::Ptx => "kernel.ptx",
        }
    }
}

/// What code may use beyond what every later device has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Features {
    /// Nothing: `sm_90`.
    #[default]
    Common,
    /// What the devices of one family share: `sm_100f`. Before compute capability 10.0 there are no
    /// families, and this is as [`Common`](Self::Common).
    Family,
    /// All of the device's own, such as its matrix instructions: `sm_90a`. Before compute capability
    /// 9.0 there are none, and this is as [`Common`](Self::Common).
    Architecture,
}

impl Features {
    /// The letter behind the number, where this architecture has one.
    fn suffix(self, number: u32) -> &'static str {
        match self {
            Self::Family if number >= 100 => "f",
            Self::Architecture if number >= 90 => "a",
            _ => "",
        }
    }
}

/// An architecture as NVRTC writes it: `sm_90`, `sm_90a`, `compute_80`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Architecture {
    pub(crate) code: Code,
    /// The compute capability, ten times.
    pub(crate) number: u32,
    suffix: &'static str,
}

impl Architecture {
    /// Machine code for devices of this compute capability.
    pub(crate) fn real(number: u32, features: Features) -> Self {
        Self { code: Code::Cubin, number, suffix: features.suffix(number) }
    }

    /// PTX for them.
    pub(crate) fn portable(number: u32, features: Features) -> Self {
        Self { code: Code::Ptx, number, suffix: features.suffix(number) }
    }

    /// The architecture of a target.
    pub(crate) fn of(target: &Target) -> Result<Self, BackendError> {
        Self::parse(target.as_str()).ok_or_else(|| {
            BackendError::unsupported(
                format!("`{}` is no architecture of CUDA", target.as_str()),
                "write `sm_90` for machine code, with `a` or `f` behind it for the features of that \
                 architecture or its family, or `compute_90` for PTX",
            )
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let (code, rest) = if let Some(rest) = text.strip_prefix("sm_") {
            (Code::Cubin, rest)
        } else {
            (Code::Ptx, text.strip_prefix("compute_")?)
        };
        let (digits, features) = if let Some(digits) = rest.strip_suffix('a') {
            (digits, Features::Architecture)
        } else if let Some(digits) = rest.strip_suffix('f') {
            (digits, Features::Family)
        } else {
            (rest, Features::Common)
        };
        let number: u32 = digits.parse().ok()?;
        let suffix = features.suffix(number);
        let architecture = Self { code, number, suffix };
        // One way to write each: a leading zero, a sign or a letter too many is another text.
        (architecture.to_string() == text).then_some(architecture)
    }

    pub(crate) fn target(&self) -> Target {
        Target::new(self.to_string())
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.code {
            Code::Cubin => "sm",
            Code::Ptx => "compute",
        };
        write!(f, "{kind}_{}{}", self.number, self.suffix)
    }
}

/// What code is made for on a device of this compute capability, by a compiler that knows these
/// architectures, sorted; none where there is no compiler.
pub(crate) fn choose(
    number: u32,
    known: Option<&[u32]>,
    wanted: Code,
    features: Features,
) -> Architecture {
    let newest = known.and_then(|known| known.iter().rev().find(|known| **known <= number));
    match newest {
        // The compiler is older than the device: the newest PTX that both of them know, and nothing
        // that later devices need not have.
        Some(newest) if *newest != number => Architecture::portable(*newest, Features::Common),
        _ if wanted == Code::Ptx => Architecture::portable(number, features),
        // Also where the compiler has forgotten the device, so that its refusal says which.
        _ => Architecture::real(number, features),
    }
}

#[cfg(test)]
mod tests {
    use grainstore::Family;

    use super::*;

    #[test]
    fn an_architecture_is_written_in_one_way() {
        for text in ["sm_90", "sm_90a", "sm_100f", "sm_121a", "compute_80", "compute_90a"] {
            let architecture = Architecture::of(&Target::new(text)).unwrap();
            assert_eq!(architecture.target().as_str(), text);
        }
        for text in
            ["", "sm_", "sm_a", "sm_090", "sm_+90", "sm_80a", "sm_90f", "SM_90", "90", "sm_90 "]
        {
            let error = Architecture::of(&Target::new(text)).expect_err(text).to_string();
            assert!(error.contains(&format!("`{text}` is no architecture")), "{error}");
        }
    }

    #[test]
    fn h6_both_forms_reach_the_same_devices() {
        assert_eq!(Code::Ptx.framework().family(), Family::CUDA);
        assert_eq!(Code::Cubin.framework().device(1), Code::Ptx.framework().device(1));
        assert_ne!(Code::Cubin.framework(), Code::Ptx.framework());
    }

    #[test]
    fn a_device_gets_the_best_that_the_compiler_can_do() {
        let known = [75, 80, 90, 100, 120];
        for (number, wanted, features, expected) in [
            (90, Code::Cubin, Features::Common, "sm_90"),
            (90, Code::Cubin, Features::Architecture, "sm_90a"),
            (90, Code::Cubin, Features::Family, "sm_90"),
            (100, Code::Cubin, Features::Family, "sm_100f"),
            (80, Code::Cubin, Features::Architecture, "sm_80"),
            (90, Code::Ptx, Features::Common, "compute_90"),
            (90, Code::Ptx, Features::Architecture, "compute_90a"),
            // Newer than the compiler.
            (130, Code::Cubin, Features::Architecture, "compute_120"),
            (103, Code::Cubin, Features::Common, "compute_100"),
            // Older than it.
            (70, Code::Cubin, Features::Common, "sm_70"),
        ] {
            let chosen = choose(number, Some(&known), wanted, features);
            assert_eq!(chosen.to_string(), expected);
        }
        let without = |wanted| choose(130, None, wanted, Features::Common).to_string();
        assert_eq!(
            (without(Code::Cubin), without(Code::Ptx)),
            ("sm_130".into(), "compute_130".into())
        );
    }
}
