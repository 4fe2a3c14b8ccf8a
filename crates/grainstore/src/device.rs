//! What a device is called: its family of APIs and its index there.
//!
//! The cache knows nothing else of a device. A [`DeviceId`] is a look-up's third part, beside the
//! key and the cache, so that the same key on two devices is two values.

use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Names of the families that are known from the start, at the index that their [`Family`] holds.
const KNOWN: [&str; 7] = ["CUDA", "HIP", "OpenCL", "Vulkan", "Metal", "wgpu", "host"];

/// Names added by [`Family::new`], each kept for the life of the process: a program names a handful.
static ADDED: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// A family of GPU APIs: every backend numbers its devices within its own.
///
/// Two families are equal when their names are, without regard to ASCII case. A family is a small
/// number, cheap to copy and to compare.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Family(u32);

impl Family {
    /// NVIDIA's CUDA.
    pub const CUDA: Self = Self(0);
    /// AMD's HIP.
    pub const HIP: Self = Self(1);
    /// OpenCL, whatever the vendor.
    pub const OPENCL: Self = Self(2);
    /// Vulkan.
    pub const VULKAN: Self = Self(3);
    /// Apple's Metal.
    pub const METAL: Self = Self(4);
    /// wgpu, whatever lies below it.
    pub const WGPU: Self = Self(5);
    /// The processor this program runs on.
    pub const HOST: Self = Self(6);

    /// The family of this name: one of the constants if it is theirs, otherwise a family of its own.
    ///
    /// Blocks on a process-wide lock for a moment: make it once and copy it. The name is kept for
    /// the life of the process, once however often it is asked for.
    #[must_use]
    pub fn new(name: impl AsRef<str>) -> Self {
        let name = name.as_ref();
        if let Some(index) = KNOWN.iter().position(|known| known.eq_ignore_ascii_case(name)) {
            return Self(index as u32);
        }
        let mut added = ADDED.lock().unwrap_or_else(PoisonError::into_inner);
        let index =
            added.iter().position(|seen| seen.eq_ignore_ascii_case(name)).unwrap_or_else(|| {
                added.push(Box::leak(name.to_owned().into_boxed_str()));
                added.len() - 1
            });
        Self((KNOWN.len() + index) as u32)
    }

    /// The name, as it was first written.
    #[must_use]
    pub fn name(self) -> &'static str {
        let index = self.0 as usize;
        KNOWN.get(index).copied().unwrap_or_else(|| {
            let added = ADDED.lock().unwrap_or_else(PoisonError::into_inner);
            added.get(index - KNOWN.len()).copied().unwrap_or("unknown")
        })
    }
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One way into a family, such as `CUDA/PTX`: a refinement of the API that shares its devices.
///
/// A device reached through a refinement is a device of the family, so whoever listens for the
/// family hears of it.
///
/// ```
/// use grainstore::{Family, Framework};
/// assert_eq!(Framework::new("CUDA/PTX").family(), Family::CUDA);
/// assert_eq!(Framework::new("CUDA/PTX").refinement(), Some("PTX"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Framework {
    name: Box<str>,
}

impl Framework {
    /// A framework by its full name: the family, and after a slash its refinement, if any.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into().into_boxed_str() }
    }

    /// The full name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The family: what comes before the first slash.
    #[must_use]
    pub fn family(&self) -> Family {
        Family::new(self.name.split('/').next().unwrap_or_default())
    }

    /// What comes after the first slash.
    #[must_use]
    pub fn refinement(&self) -> Option<&str> {
        self.name.split_once('/').map(|(_, refinement)| refinement)
    }

    /// The device of this index: the same as the family's own.
    #[must_use]
    pub fn device(&self, index: u32) -> DeviceId {
        DeviceId::new(self.family(), index)
    }
}

impl fmt::Display for Framework {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A device: its family, and the backend's own index of it. The pair is the identity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId {
    family: Family,
    index: u32,
}

impl DeviceId {
    /// The pair as one number, of its own and never zero.
    #[inline]
    pub(crate) fn number(self) -> u64 {
        (u64::from(self.family.0) + 1) << 32 | u64::from(self.index)
    }

    /// The device of this family and index.
    #[must_use]
    pub const fn new(family: Family, index: u32) -> Self {
        Self { family, index }
    }

    /// Its family.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// Its index within the family.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }
}

impl fmt::Debug for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.family, self.index)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn d1_device_0_of_two_families_is_two_devices() {
        let families = [
            Family::CUDA,
            Family::HIP,
            Family::OPENCL,
            Family::VULKAN,
            Family::METAL,
            Family::WGPU,
            Family::HOST,
            Family::new("one more"),
            Family::new("and another"),
        ];
        let devices: HashSet<_> = families.map(|family| DeviceId::new(family, 0)).into();
        assert_eq!(devices.len(), families.len());
        assert_ne!(DeviceId::new(Family::HOST, 0), DeviceId::new(Family::HOST, 1));
        assert_eq!(DeviceId::new(Family::OPENCL, 2).to_string(), "OpenCL:2");
    }

    #[test]
    fn d1_a_family_is_its_name_whoever_asks_first() {
        for (constant, name) in
            [(Family::CUDA, "cuda"), (Family::WGPU, "WGPU"), (Family::HOST, "Host")]
        {
            assert_eq!(Family::new(name), constant);
        }
        let made = std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(|| Family::new(String::from("d1 threads"))));
            threads.map(|thread| thread.join().unwrap())
        });
        assert!(made.iter().all(|family| *family == made[0]));
        assert_eq!(Family::new("D1 THREADS"), made[0]);
        assert_ne!(Family::new("d1 thread"), made[0]);
        assert_eq!(made[0].name(), "d1 threads");
    }

    #[test]
    fn h6_a_refinement_shares_the_familys_devices() {
        let ptx = Framework::new("CUDA/PTX");
        assert_eq!(ptx.device(1), DeviceId::new(Family::CUDA, 1));
        assert_eq!(ptx.device(1), Framework::new("cuda/CUBIN").device(1));
        assert_eq!(Framework::new("CUDA").refinement(), None);
        assert_eq!(Framework::new("mine/a/b").refinement(), Some("a/b"));
        assert_eq!(Framework::new("mine/a/b").family(), Family::new("mine"));
    }
}
