//! A backend, asked everything that its users will ask of it, with a kernel small enough to check
//! by hand.

use std::fmt;

use grainstore::DeviceId;
use grainstore_runtime::{Backend, BackendError, DeviceInfo, KernelSpec, Language, Target};

use super::report::{BackendReport, DeviceReport};

/// How many numbers the kernel computes.
pub(crate) const COUNT: usize = 1000;

/// The factor of `y = FACTOR * x + y`.
pub(crate) const FACTOR: f32 = 3.0;

/// How a backend's users launch: `y = FACTOR * x + y` over [`COUNT`] numbers, by the entry point
/// `saxpy`, on that device.
pub(crate) trait Launch: Backend {
    /// The kernel.
    const SOURCE: &'static str;

    /// The language that it is in: the one that the backend prefers, unless it says another.
    fn language(&self) -> Language {
        self.languages().first().copied().unwrap_or(Language::C)
    }

    /// A target that the compiler can make code for with no device at all, if there is one.
    fn elsewhere(&self) -> Option<Target> {
        None
    }

    /// Launches the kernel and leaves its result in `y`.
    fn launch(
        &self,
        device: &DeviceId,
        module: &Self::Module,
        x: &[f32; COUNT],
        y: &mut [f32; COUNT],
    ) -> Result<(), BackendError>;
}

/// Asks the backend everything. What is missing or fails is in the report, with what would help.
pub(crate) fn examine<B: Launch>(backend: &B) -> BackendReport {
    let mut report = BackendReport { backend: backend.name().into(), ..BackendReport::default() };
    if let Err(trouble) = fill(backend, &mut report) {
        // A driver without its compiler, or the other way round, is not a backend that is here.
        report.found &= !trouble.missing;
        report.error = Some(trouble.error);
        report.hint = trouble.hint;
        if report.compiler.is_none() {
            // But the one may be of use without the other.
            let toolchain = backend.elsewhere().map(|target| backend.toolchain(&target));
            let toolchain = toolchain.and_then(Result::ok);
            report.compiler = toolchain.map(|toolchain| {
                format!("{}; `warm --target` needs no device", toolchain.as_str())
            });
        }
    }
    report
}

fn fill<B: Launch>(backend: &B, report: &mut BackendReport) -> Result<(), Trouble> {
    let devices = backend.devices()?;
    let Some(first) = devices.first() else {
        return Err(Trouble {
            error: "it has no device".into(),
            hint: Some("install a driver, or give this user the right to use the device".into()),
            missing: true,
        });
    };
    report.found = true;
    report.driver = Some(first.driver.clone());
    identify_all(backend, &devices, report)?;
    let spec = KernelSpec::builder("saxpy", backend.language())
        .source(B::SOURCE)
        .entry("saxpy")
        .build()
        .map_err(Trouble::plain)?;
    let mut modules = Vec::new();
    for device in &devices {
        let (module, _) = backend.build(&device.id, &spec)?;
        modules.push((device.id, module));
    }
    report.compiled = true;
    for (device, module) in modules {
        let checked = check(backend, &device, &module);
        let unloaded = backend.unload(module);
        checked?;
        unloaded?;
    }
    report.launched = true;
    Ok(())
}

/// Says of each device what its kernels are kept under. A device that can't be asked says why, and
/// the others go on; what holds for all of them is the backend's own trouble.
fn identify_all<B: Launch>(
    backend: &B,
    devices: &[DeviceInfo],
    report: &mut BackendReport,
) -> Result<(), Trouble> {
    let mut failures = Vec::new();
    for (at, device) in devices.iter().enumerate() {
        let (id, name) = (device.id.to_string(), device.name.clone());
        let mut told = DeviceReport { id, name, ..DeviceReport::default() };
        if let Err(error) = identify(backend, &device.id, &mut told) {
            failures.push((at, error));
        }
        report.devices.push(told);
    }
    report.compiler = report.devices.iter().find_map(|device| device.toolchain.clone());
    if failures.len() == devices.len() {
        return failures.into_iter().next().map_or(Ok(()), |(_, error)| Err(error.into()));
    }
    for (at, error) in failures {
        report.devices[at].error = Some(error.to_string());
    }
    Ok(())
}

fn identify<B: Launch>(
    backend: &B,
    device: &DeviceId,
    told: &mut DeviceReport,
) -> Result<(), BackendError> {
    let target = backend.target(device)?;
    told.target = Some(target.as_str().to_owned());
    told.toolchain = Some(backend.toolchain(&target)?.as_str().to_owned());
    Ok(())
}

/// Whole numbers that a float holds exactly, so that any correct device gives the same.
fn check<B: Launch>(backend: &B, device: &DeviceId, module: &B::Module) -> Result<(), Trouble> {
    let x: [f32; COUNT] = std::array::from_fn(|index| index as f32);
    let before: [f32; COUNT] = std::array::from_fn(|index| (COUNT - index) as f32);
    let mut y = before;
    backend.launch(device, module, &x, &mut y)?;
    for index in 0..COUNT {
        let expected = FACTOR * x[index] + before[index];
        if y[index] != expected {
            return Err(Trouble {
                error: format!("{device} computes wrongly: {} instead of {expected}", y[index]),
                hint: Some("update the driver or the compiler".into()),
                missing: false,
            });
        }
    }
    Ok(())
}

/// What went wrong, and what would help.
struct Trouble {
    error: String,
    hint: Option<String>,
    missing: bool,
}

impl Trouble {
    fn plain(error: impl fmt::Display) -> Self {
        Self { error: error.to_string(), hint: None, missing: false }
    }
}

impl From<BackendError> for Trouble {
    fn from(error: BackendError) -> Self {
        match error {
            BackendError::Missing { what, hint } => {
                let error = format!("{what} was not found");
                Self { error, hint: Some(hint), missing: true }
            }
            BackendError::Unsupported { what, hint } => {
                Self { error: what, hint: Some(hint), missing: false }
            }
            other => Self::plain(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use grainstore::Family;
    use grainstore_runtime::{Artifact, Toolchain};

    /// A backend that does what its fields say, with a module that is its own result.
    #[derive(Clone, Copy)]
    struct Fake {
        devices: Result<u32, &'static str>,
        /// How many of the devices, from the first one, can't be asked for their target.
        mute: u32,
        compiles: bool,
        factor: f32,
    }

    const GOOD: Fake = Fake { devices: Ok(2), mute: 0, compiles: true, factor: FACTOR };

    impl Backend for Fake {
        type Module = f32;

        fn name(&self) -> &str {
            "fake"
        }

        fn family(&self) -> Family {
            Family::new("fake")
        }

        fn languages(&self) -> &[Language] {
            &[Language::C]
        }

        fn devices(&self) -> Result<Vec<DeviceInfo>, BackendError> {
            let count = self.devices.map_err(|what| BackendError::missing(what, "install it"))?;
            let device = |index| DeviceInfo {
                id: DeviceId::new(self.family(), index),
                name: "a device".into(),
                driver: "a driver 1.0".into(),
            };
            Ok((0..count).map(device).collect())
        }

        fn target(&self, device: &DeviceId) -> Result<Target, BackendError> {
            if device.index() < self.mute {
                return Err(BackendError::unsupported("it does not answer", "restart it"));
            }
            Ok(Target::new(format!("t{}", device.index())))
        }

        fn toolchain(&self, target: &Target) -> Result<Toolchain, BackendError> {
            Ok(Toolchain::new(format!("cc 1.0 for {}", target.as_str())))
        }

        fn build(
            &self,
            _: &DeviceId,
            _: &KernelSpec,
        ) -> Result<(f32, Option<Artifact>), BackendError> {
            if self.compiles {
                Ok((self.factor, None))
            } else {
                Err(BackendError::Compile { log: "no".into() })
            }
        }

        fn load(&self, _: &DeviceId, _: &KernelSpec, _: &Artifact) -> Result<f32, BackendError> {
            Ok(self.factor)
        }

        fn unload(&self, _: f32) -> Result<(), BackendError> {
            Ok(())
        }

        fn destroy_device(&self, _: &DeviceId) -> Result<(), BackendError> {
            Ok(())
        }
    }

    impl Launch for Fake {
        const SOURCE: &'static str = "saxpy";

        fn launch(
            &self,
            _: &DeviceId,
            module: &f32,
            x: &[f32; COUNT],
            y: &mut [f32; COUNT],
        ) -> Result<(), BackendError> {
            for (x, y) in x.iter().zip(y) {
                *y += module * x;
            }
            Ok(())
        }
    }

    #[test]
    fn a_backend_that_works_is_told_whole() {
        let report = examine(&GOOD);
        assert!(report.found && report.compiled && report.launched, "{report:?}");
        assert_eq!(report.devices.len(), 2);
        assert_eq!(report.devices[1].id, "fake:1");
        assert_eq!(report.devices[1].target.as_deref(), Some("t1"));
        assert_eq!(report.devices[1].toolchain.as_deref(), Some("cc 1.0 for t1"));
        assert_eq!(report.compiler.as_deref(), Some("cc 1.0 for t0"));
        assert_eq!(report.driver.as_deref(), Some("a driver 1.0"));
        assert_eq!((report.error, report.hint), (None, None));
    }

    #[test]
    fn a_device_without_a_target_says_why_and_the_others_go_on() {
        let report = examine(&Fake { mute: 1, ..GOOD });
        assert!(report.launched, "{report:?}");
        assert_eq!((&report.error, report.compiler.as_deref()), (&None, Some("cc 1.0 for t1")));
        let [first, second] = &report.devices[..] else { panic!("{report:?}") };
        assert_eq!((&first.target, &first.toolchain), (&None, &None));
        assert!(first.error.as_ref().is_some_and(|error| error.contains("it does not answer")));
        assert_eq!((second.target.as_deref(), &second.error), (Some("t1"), &None));
        let text = anstream::adapter::strip_str(&report.to_string()).to_string();
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        assert!(lines[2].starts_with("target    can't be told: it does not answer"), "{text}");
        assert_eq!(lines[4], "target    t1", "{text}");
    }

    #[test]
    fn a_backend_none_of_whose_devices_has_a_target_does_not_work_and_says_so_once() {
        let report = examine(&Fake { mute: 2, ..GOOD });
        assert!(report.found && !report.compiled, "{report:?}");
        assert_eq!(report.error.as_deref(), Some("it does not answer"));
        assert_eq!(report.hint.as_deref(), Some("restart it"));
        assert!(report.devices.iter().all(|device| device.error.is_none()), "{report:?}");
    }

    #[test]
    fn a_backend_that_is_missing_says_what_to_install() {
        let report = examine(&Fake { devices: Err("libfake.so"), ..GOOD });
        assert!(!report.found && !report.compiled && !report.launched);
        assert_eq!(report.error.as_deref(), Some("libfake.so was not found"));
        assert_eq!(report.hint.as_deref(), Some("install it"));
        assert!(!examine(&Fake { devices: Ok(0), ..GOOD }).found);
    }

    #[test]
    fn a_compiler_that_fails_and_wrong_numbers_are_told_apart() {
        let report = examine(&Fake { compiles: false, ..GOOD });
        assert!(report.found && !report.compiled && !report.launched);
        assert!(report.error.unwrap().contains("does not compile"));
        let report = examine(&Fake { factor: 2.0, ..GOOD });
        assert!(report.found && report.compiled && !report.launched);
        assert_eq!(report.error.unwrap(), "fake:0 computes wrongly: 1001 instead of 1002");
    }
}
