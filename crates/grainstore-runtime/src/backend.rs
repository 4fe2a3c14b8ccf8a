//! What a backend's author writes, and no more: find devices, compile, load, unload.

use std::any::Any;

use grainstore::{DeviceId, Family};

use crate::{Artifact, BackendError, KernelSpec, Language};

/// A GPU API, or the plain CPU, as this crate sees it.
///
/// Identity, caching, stores and the order of a teardown are done for it, once, by
/// [`BackendCache`](crate::BackendCache). All calls may block; the runtime makes them under no lock
/// and from any thread, several at once.
pub trait Backend: Send + Sync + 'static {
    /// A loaded kernel or program. It keeps alive what it needs (its context), so that a late
    /// release is safe in any case.
    type Module: Any + Send + Sync;

    /// The name that users write in manifests and on the command line: `host`, `opencl`.
    fn name(&self) -> &str;

    /// The family its devices belong to.
    fn family(&self) -> Family;

    /// The languages it takes, the preferred one first.
    fn languages(&self) -> &[Language];

    /// The devices that are there now.
    ///
    /// # Errors
    /// [`BackendError::Missing`] where the driver or compiler is not installed.
    fn devices(&self) -> Result<Vec<DeviceInfo>, BackendError>;

    /// What code must be made for to run on this device: architecture and features.
    ///
    /// # Errors
    /// [`BackendError::NoDevice`] for an index that is not there.
    fn target(&self, device: &DeviceId) -> Result<Target, BackendError>;

    /// Who makes code for this target: compiler and driver, read from what is really loaded, with
    /// whatever in the environment changes their output.
    ///
    /// # Errors
    /// [`BackendError::Missing`] where there is no compiler.
    fn toolchain(&self, target: &Target) -> Result<Toolchain, BackendError>;

    /// The toolchain as it goes into the key of this spec: [`toolchain`](Self::toolchain), and with
    /// it whatever this spec's options have the compiler look up, such as the processor that
    /// `-march=native` stands for. The default adds nothing.
    ///
    /// # Errors
    /// As [`toolchain`](Self::toolchain).
    fn toolchain_for(&self, target: &Target, spec: &KernelSpec) -> Result<Toolchain, BackendError> {
        let _ = spec;
        self.toolchain(target)
    }

    /// Compiles and loads. The artifact, if there is one, is all that [`load`](Self::load) needs in
    /// another process.
    ///
    /// # Errors
    /// [`BackendError::Compile`] with the compiler's own log, or whatever else went wrong.
    fn build(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
    ) -> Result<(Self::Module, Option<Artifact>), BackendError>;

    /// Loads what [`build`](Self::build) or [`compile_for`](Self::compile_for) made, for the same
    /// target and toolchain. The spec is the one it was made from (its entry point, for a backend
    /// whose unit is a pipeline).
    ///
    /// # Errors
    /// [`BackendError::InvalidArtifact`] only where the bytes themselves are no good: then they are
    /// dropped. Any other error drops nothing.
    fn load(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
        artifact: &Artifact,
    ) -> Result<Self::Module, BackendError>;

    /// Releases a module. Called once for each, when nothing uses it any more.
    ///
    /// # Errors
    /// What the driver said. The module counts as released all the same.
    fn unload(&self, module: Self::Module) -> Result<(), BackendError>;

    /// Releases what this backend itself holds for a device (its context), after its modules. The
    /// next call for the same index may make it anew.
    ///
    /// # Errors
    /// What the driver said.
    fn destroy_device(&self, device: &DeviceId) -> Result<(), BackendError>;

    /// Drops its own hold on a device that is lost, or was given up with modules still in use. The
    /// next call for the same index must make it anew. What those modules need stays alive with
    /// them. A backend whose driver must not be called for a lost device says so here.
    ///
    /// # Errors
    /// What the driver said.
    fn forget_device(&self, device: &DeviceId) -> Result<(), BackendError> {
        self.destroy_device(device)
    }

    /// Whether [`compile_for`](Self::compile_for) compiles. For which targets it does,
    /// [`toolchain`](Self::toolchain) tells. Loads nothing and asks no driver.
    ///
    /// The default is no: who writes `compile_for` says yes here.
    fn compiles_ahead(&self) -> bool {
        false
    }

    /// Compiles for a target that need not be here, with no device at all.
    ///
    /// # Errors
    /// [`BackendError::Unsupported`] where the compiler can't, which is for every target where
    /// [`compiles_ahead`](Self::compiles_ahead) says no; otherwise as [`build`](Self::build).
    fn compile_for(&self, target: &Target, spec: &KernelSpec) -> Result<Artifact, BackendError> {
        let _ = (target, spec);
        Err(BackendError::unsupported(
            format!("{} compiles only on a device that is here", self.name()),
            "run on a machine that has the device",
        ))
    }
}

/// A device, as its backend describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its identity.
    pub id: DeviceId,
    /// The name that its driver gives, for people.
    pub name: String,
    /// The driver and its version, for people.
    pub driver: String,
}

/// What code is made for: an architecture, and the features it may use.
///
/// Equal text is equal code; the text is part of every key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target(String);

impl Target {
    /// A target by its canonical text, such as `sm_90a` or `x86_64-unknown-linux-gnu`.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Who made the code: compiler, driver and their versions. The text is part of every key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Toolchain(String);

impl Toolchain {
    /// A toolchain by its canonical text, such as `nvrtc 12.9.86`.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
