//! A runtime whose kernels are numbers, so that a hit is all that there is to measure.

use grainstore::{DeviceId, Family};
use grainstore_runtime::{
    Artifact, Backend, BackendError, Device, DeviceInfo, KernelSpec, Language, Runtime,
    RuntimeError, SpecError, Target, Toolchain,
};

/// A backend that has nothing to do.
struct Nothing;

impl Backend for Nothing {
    type Module = u64;

    fn name(&self) -> &str {
        "nothing"
    }

    fn family(&self) -> Family {
        Family::HOST
    }

    fn languages(&self) -> &[Language] {
        &[Language::C]
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>, BackendError> {
        let id = DeviceId::new(Family::HOST, 0);
        Ok(vec![DeviceInfo { id, name: "nothing".into(), driver: "none".into() }])
    }

    fn target(&self, _: &DeviceId) -> Result<Target, BackendError> {
        Ok(Target::new("sm_90a"))
    }

    fn toolchain(&self, _: &Target) -> Result<Toolchain, BackendError> {
        Ok(Toolchain::new("nvrtc 12.9.86"))
    }

    fn build(&self, _: &DeviceId, _: &KernelSpec) -> Result<(u64, Option<Artifact>), BackendError> {
        Ok((1, None))
    }

    fn load(&self, _: &DeviceId, _: &KernelSpec, _: &Artifact) -> Result<u64, BackendError> {
        Ok(1)
    }

    fn unload(&self, _: u64) -> Result<(), BackendError> {
        Ok(())
    }

    fn destroy_device(&self, _: &DeviceId) -> Result<(), BackendError> {
        Ok(())
    }
}

/// A runtime with room to spare, its device, and its kernels.
pub struct Warm {
    /// Holds [`RESIDENT`](crate::work::RESIDENT) kernels.
    pub runtime: Runtime,
    /// The one device.
    pub device: Device,
    /// The first [`HOT`](crate::work::HOT) of them.
    pub specs: Vec<KernelSpec>,
}

impl Warm {
    /// One that has built all its kernels.
    ///
    /// # Panics
    /// If it can't be made.
    #[must_use]
    pub fn new() -> Self {
        Self::make(crate::work::RESIDENT, crate::work::HOT as usize)
            .unwrap_or_else(|error| panic!("no runtime: {error}"))
    }

    fn make(resident: u64, hot: usize) -> Result<Self, RuntimeError> {
        let runtime =
            Runtime::builder().backend(Nothing).capacity(resident as usize * 8).build()?;
        let device = runtime.device(&DeviceId::new(Family::HOST, 0))?;
        let mut specs = (0..resident).map(spec).collect::<Result<Vec<_>, _>>()?;
        for spec in &specs {
            drop(runtime.kernel(&device, spec)?);
        }
        specs.truncate(hot);
        Ok(Self { runtime, device, specs })
    }
}

impl Default for Warm {
    fn default() -> Self {
        Self::new()
    }
}

/// With the same parts as the [`KernelKey`](grainstore::KernelKey)s of the other rows.
fn spec(number: u64) -> Result<KernelSpec, SpecError> {
    KernelSpec::builder(format!("attention_forward_{number}"), Language::C)
        .source(format!("__global__ void attention_forward_{number}() {{}}"))
        .header("common.h", "#define WARP 32")
        .define("BLOCK", "128")
        .option("--use_fast_math")
        .build()
}
