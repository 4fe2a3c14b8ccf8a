//! What the compiler refuses, and what it makes for machines that are not here.

use grainstore_runtime::{Backend, BackendError, KernelSpec, Target};

use crate::Subject;
use crate::stage::{Stage, absent};
use crate::trouble::{Check, Trouble, ensure};

pub(super) fn wrong_source<S: Subject>(subject: &S) -> Check {
    let stage = Stage::new(subject)?;
    let wrong = subject.wrong();
    let log = |attempt: usize| -> Check<String> {
        let Err(error) = stage.kernel(&wrong) else {
            return Err(Trouble::failed("the compiler takes the subject's wrong source"));
        };
        let Some(log) = error.compile_log() else {
            let message = format!("a wrong source gave `{error}`, not BackendError::Compile");
            return Err(Trouble::Failed(message));
        };
        ensure!(!log.trim().is_empty(), "a wrong source gave no log");
        ensure!(
            error.to_string().contains(wrong.name()),
            "the error does not name the kernel `{}`: {error}",
            wrong.name()
        );
        let figures = stage.cache.statistics();
        ensure!(
            figures.entries == 0 && figures.building == 0,
            "a failed build left something in memory: {figures:?}"
        );
        ensure!(stage.store.len() == 0, "a failed build left an artifact in the store");
        ensure!(
            stage.backend.builds() == attempt,
            "request {attempt} for a wrong source has made {} builds, and should be compiled anew",
            stage.backend.builds()
        );
        Ok(log.to_owned())
    };
    let (first, second) = (log(1)?, log(2)?);
    ensure!(
        first == second,
        "the log of one source is another each time (a temporary path in it?):\n{first}\n{second}"
    );
    stage.check(&subject.kernel(2), 2).map_err(|trouble| trouble.at("after a wrong source"))?;
    stage.finish()
}

pub(super) fn missing_entry_point<S: Subject>(subject: &S) -> Check {
    const NOWHERE: &str = "grainstore_nowhere";
    let stage = Stage::new(subject)?;
    let spec = with_entry(&subject.kernel(4), NOWHERE)?;
    match stage.kernel(&spec) {
        Ok(_) => Err(Trouble::failed(format!("a kernel was made of the entry point `{NOWHERE}`"))),
        Err(error) => {
            ensure!(
                matches!(
                    error.backend_error(),
                    Some(BackendError::NoEntryPoint { .. } | BackendError::Compile { .. })
                ),
                "an entry point that is not there gave `{error}`, not NoEntryPoint"
            );
            ensure!(
                error.to_string().contains(NOWHERE),
                "the error does not name the entry point: {error}"
            );
            stage.finish()
        }
    }
}

/// The same kernel with another entry point.
fn with_entry(spec: &KernelSpec, entry: &str) -> Check<KernelSpec> {
    let mut other = KernelSpec::builder(spec.name(), spec.language()).source(spec.source());
    for (name, content) in spec.headers() {
        other = other.header(name, &content[..]);
    }
    for (name, value) in spec.defines() {
        other = other.define(name, value);
    }
    for (name, value) in spec.constants() {
        other = other.constant(name, value);
    }
    for option in spec.options() {
        other = other.option(option);
    }
    Ok(other.entry(entry).build()?)
}

pub(super) fn without_device<S: Subject>(subject: &S) -> Check {
    let backend = subject.backend().map_err(absent)?;
    let here = match backend.devices() {
        Ok(devices) => devices.into_iter().next().map(|info| info.id),
        Err(BackendError::Missing { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let mut targets = subject.targets();
    if let Some(device) = &here {
        // The one that is here comes last, and is launched.
        targets.push(backend.target(device)?);
    }
    if targets.is_empty() {
        return Err(Trouble::Absent("there is no device, and the subject names no target".into()));
    }
    let spec = subject.kernel(6);
    if !backend.compiles_ahead() {
        return refused(&backend, &targets, &spec);
    }
    let mut made = None;
    for target in &targets {
        let toolchain = backend.toolchain(target).map_err(absent)?;
        ensure!(!toolchain.as_str().trim().is_empty(), "no toolchain for `{}`", target.as_str());
        let artifact = match backend.compile_for(target, &spec) {
            Ok(artifact) => artifact,
            Err(error @ BackendError::Unsupported { .. }) => {
                let message = format!("it says that it compiles ahead, and refuses: {error}");
                return Err(Trouble::Failed(message).at(target.as_str()));
            }
            Err(error) => return Err(absent(error).at(target.as_str())),
        };
        ensure!(
            !artifact.binary().is_empty(),
            "compiling for `{}` gave an empty binary",
            target.as_str()
        );
        match backend.compile_for(target, &subject.wrong()) {
            Err(BackendError::Compile { log }) if !log.trim().is_empty() => {}
            other => {
                let message = format!("a wrong source for `{}` gave {other:?}", target.as_str());
                return Err(Trouble::Failed(message));
            }
        }
        made = Some(artifact);
    }
    let (Some(_), Some(artifact)) = (here, made) else { return Ok(()) };

    let stage = Stage::new(subject)?;
    stage.store.plant(stage.key(&spec)?, artifact);
    stage.check(&spec, 6).map_err(|trouble| trouble.at("made without a device"))?;
    ensure!(
        stage.backend.builds() == 0,
        "what was compiled without a device could not be loaded, and was built again"
    );
    stage.finish()
}

/// Who compiles nothing ahead refuses every target, and that is all there is to check.
fn refused<B: Backend>(backend: &B, targets: &[Target], spec: &KernelSpec) -> Check {
    let mut why = String::new();
    for target in targets {
        match backend.compile_for(target, spec) {
            Err(error @ BackendError::Unsupported { .. }) => why = error.to_string(),
            Err(error) => return Err(absent(error).at(target.as_str())),
            Ok(_) => {
                let message = "it says that it does not compile ahead, and does";
                return Err(Trouble::failed(message).at(target.as_str()));
            }
        }
    }
    Err(Trouble::Cannot(why))
}
