//! Which kernel is to be made for which device, and which can't be.

use std::fmt;
use std::sync::Arc;

use grainstore_runtime::{
    AnyBackend, BackendCache, Device, KernelSpec, Language, SpecError, Target,
};

use crate::backends::{LEFT_OUT, left_out};
use crate::manifest::{Kernel, KnownBackend, Manifest};

/// A backend that was asked for, and what it answered.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) backend: KnownBackend,
    /// Where its kernels are to go, or why it can't be used.
    pub(super) places: Result<Vec<Place>, String>,
}

/// What a kernel is made for.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// A device that is here: the kernel is loaded there, too.
    Device(Device),
    /// A target that need not be here, by this backend's compiler.
    Target(BackendCache<AnyBackend>, Target),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(device) => device.id().fmt(f),
            Self::Target(_, target) => f.write_str(target.as_str()),
        }
    }
}

/// One variant of a kernel in one place.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) kernel: Arc<str>,
    pub(super) variant: Arc<str>,
    pub(super) backend: Arc<str>,
    pub(super) place: Place,
    pub(super) spec: KernelSpec,
}

/// A kernel that is left out, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Skip {
    pub(super) kernel: String,
    pub(super) reason: String,
}

/// What is to be done.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) jobs: Vec<Job>,
    pub(super) skipped: Vec<Skip>,
}

impl Plan {
    /// Backend by backend, and within it in the order of the manifest.
    ///
    /// A kernel is left out where a backend that it is for can't be used, and, if every backend of
    /// this program was asked (`all`), where it names one that the program was built without, or none
    /// takes its language.
    ///
    /// # Errors
    /// Where a kernel's parts do not make a spec.
    pub(super) fn new(manifest: &Manifest, asked: &[Asked], all: bool) -> Result<Self, SpecError> {
        let mut plan = Self::default();
        for asked in asked {
            for kernel in manifest.kernels.iter().filter(|kernel| wants(kernel, &asked.backend)) {
                plan.add(kernel, asked)?;
            }
        }
        if !all {
            return Ok(plan);
        }
        let names =
            |kernel: &Kernel, backend| kernel.backends.iter().flatten().any(|name| name == backend);
        for backend in LEFT_OUT {
            for kernel in manifest.kernels.iter().filter(|kernel| names(kernel, backend)) {
                let reason = left_out(backend);
                plan.skipped.push(Skip { kernel: kernel.name.clone(), reason });
            }
        }
        for kernel in &manifest.kernels {
            let told = LEFT_OUT.iter().any(|backend| names(kernel, backend));
            if !told && !asked.iter().any(|asked| wants(kernel, &asked.backend)) {
                let languages: Vec<_> =
                    kernel.sources.iter().map(|source| source.language.name()).collect();
                plan.skipped.push(Skip {
                    kernel: kernel.name.clone(),
                    reason: format!(
                        "no backend of this program takes {}{}",
                        languages.join(" or "),
                        remedy(kernel)
                    ),
                });
            }
        }
        Ok(plan)
    }

    fn add(&mut self, kernel: &Kernel, asked: &Asked) -> Result<(), SpecError> {
        let backend = &asked.backend;
        let places = match &asked.places {
            Ok(places) => places,
            Err(reason) => {
                let reason = format!("{}: {reason}", backend.name);
                self.skipped.push(Skip { kernel: kernel.name.clone(), reason });
                return Ok(());
            }
        };
        let Some(source) = kernel.source_for(&backend.languages) else { return Ok(()) };
        let name: Arc<str> = kernel.name.as_str().into();
        let backend: Arc<str> = backend.name.as_str().into();
        for variant in &kernel.variants {
            // One spec for all places: its key is then made once for all that are equal.
            let spec = kernel.spec(source, variant)?;
            let label: Arc<str> = variant.label.as_str().into();
            for place in places {
                self.jobs.push(Job {
                    kernel: Arc::clone(&name),
                    variant: Arc::clone(&label),
                    backend: Arc::clone(&backend),
                    place: place.clone(),
                    spec: spec.clone(),
                });
            }
        }
        Ok(())
    }
}

/// What would help, where a backend that was left out of this build takes the kernel.
fn remedy(kernel: &Kernel) -> &'static str {
    let shader = |language| matches!(language, Language::Wgsl | Language::Glsl | Language::SpirV);
    let left_out = !cfg!(feature = "vulkan");
    if left_out && kernel.sources.iter().any(|source| shader(source.language)) {
        "; build it with `--features all`, and `vulkan` and `wgpu` are among them"
    } else {
        ""
    }
}

/// Whether the manifest means this kernel for this backend.
pub(super) fn wants(kernel: &Kernel, backend: &KnownBackend) -> bool {
    let named = kernel.backends.as_ref().is_none_or(|names| names.contains(&backend.name));
    named && kernel.source_for(&backend.languages).is_some()
}
