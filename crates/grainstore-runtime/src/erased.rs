//! Backends of different types side by side: a module in a box that knows its type.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use grainstore::{DeviceId, Family};

use crate::{Artifact, Backend, BackendError, DeviceInfo, KernelSpec, Language, Target, Toolchain};

/// Any backend's module.
pub struct AnyModule {
    module: Box<dyn Any + Send + Sync>,
    /// The module's type, at hand. To ask the module costs as much as all the rest of a hit: a call
    /// through its table, and an answer that is read before it is written.
    kind: TypeId,
}

impl AnyModule {
    fn new<M: Any + Send + Sync>(module: M) -> Self {
        Self { module: Box::new(module), kind: TypeId::of::<M>() }
    }

    /// The module, if it is an `M`.
    #[must_use]
    #[inline]
    pub fn downcast_ref<M: Any>(&self) -> Option<&M> {
        if self.kind != TypeId::of::<M>() {
            return None;
        }
        let module: *const (dyn Any + Send + Sync) = &*self.module;
        // SAFETY: `new` made the kind of the type of the module, which is an `M` then, and it is
        // borrowed for as long as this is.
        Some(unsafe { &*module.cast::<M>() })
    }
}

impl fmt::Debug for AnyModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyModule")
    }
}

/// Any backend, its module's type put away. It is a [`Backend`] itself, so that all that holds for
/// one backend is written once.
pub type AnyBackend = Arc<dyn Backend<Module = AnyModule>>;

/// Puts away the type of a backend's module.
pub(crate) fn erase(backend: impl Backend) -> AnyBackend {
    Arc::new(Erased(backend))
}

struct Erased<B>(B);

impl<B: Backend> Backend for Erased<B> {
    type Module = AnyModule;

    fn name(&self) -> &str {
        self.0.name()
    }

    fn family(&self) -> Family {
        self.0.family()
    }

    fn languages(&self) -> &[Language] {
        self.0.languages()
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>, BackendError> {
        self.0.devices()
    }

    fn target(&self, device: &DeviceId) -> Result<Target, BackendError> {
        self.0.target(device)
    }

    fn toolchain(&self, target: &Target) -> Result<Toolchain, BackendError> {
        self.0.toolchain(target)
    }

    fn toolchain_for(&self, target: &Target, spec: &KernelSpec) -> Result<Toolchain, BackendError> {
        self.0.toolchain_for(target, spec)
    }

    fn build(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
    ) -> Result<(AnyModule, Option<Artifact>), BackendError> {
        let (module, artifact) = self.0.build(device, spec)?;
        Ok((AnyModule::new(module), artifact))
    }

    fn load(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
        artifact: &Artifact,
    ) -> Result<AnyModule, BackendError> {
        Ok(AnyModule::new(self.0.load(device, spec, artifact)?))
    }

    fn unload(&self, module: AnyModule) -> Result<(), BackendError> {
        match module.module.downcast::<B::Module>() {
            Ok(module) => self.0.unload(*module),
            Err(_) => Err(BackendError::failed("unload", "the module is another backend's")),
        }
    }

    fn destroy_device(&self, device: &DeviceId) -> Result<(), BackendError> {
        self.0.destroy_device(device)
    }

    fn forget_device(&self, device: &DeviceId) -> Result<(), BackendError> {
        self.0.forget_device(device)
    }

    fn compiles_ahead(&self) -> bool {
        self.0.compiles_ahead()
    }

    fn compile_for(&self, target: &Target, spec: &KernelSpec) -> Result<Artifact, BackendError> {
        self.0.compile_for(target, spec)
    }
}

/// A shared backend is a backend: who wants to keep a hand on it gives away a clone.
impl<B: Backend + ?Sized> Backend for Arc<B> {
    type Module = B::Module;

    fn name(&self) -> &str {
        (**self).name()
    }

    fn family(&self) -> Family {
        (**self).family()
    }

    fn languages(&self) -> &[Language] {
        (**self).languages()
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>, BackendError> {
        (**self).devices()
    }

    fn target(&self, device: &DeviceId) -> Result<Target, BackendError> {
        (**self).target(device)
    }

    fn toolchain(&self, target: &Target) -> Result<Toolchain, BackendError> {
        (**self).toolchain(target)
    }

    fn toolchain_for(&self, target: &Target, spec: &KernelSpec) -> Result<Toolchain, BackendError> {
        (**self).toolchain_for(target, spec)
    }

    fn build(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
    ) -> Result<(Self::Module, Option<Artifact>), BackendError> {
        (**self).build(device, spec)
    }

    fn load(
        &self,
        device: &DeviceId,
        spec: &KernelSpec,
        artifact: &Artifact,
    ) -> Result<Self::Module, BackendError> {
        (**self).load(device, spec, artifact)
    }

    fn unload(&self, module: Self::Module) -> Result<(), BackendError> {
        (**self).unload(module)
    }

    fn destroy_device(&self, device: &DeviceId) -> Result<(), BackendError> {
        (**self).destroy_device(device)
    }

    fn forget_device(&self, device: &DeviceId) -> Result<(), BackendError> {
        (**self).forget_device(device)
    }

    fn compiles_ahead(&self) -> bool {
        (**self).compiles_ahead()
    }

    fn compile_for(&self, target: &Target, spec: &KernelSpec) -> Result<Artifact, BackendError> {
        (**self).compile_for(target, spec)
    }
}
