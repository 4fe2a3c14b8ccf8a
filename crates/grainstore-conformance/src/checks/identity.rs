//! Who the backend says it is: its devices, and what goes into every key.

use std::collections::BTreeSet;

use grainstore::DeviceId;
use grainstore_runtime::{Backend, BackendError};

use crate::Subject;
use crate::stage::Stage;
use crate::trouble::{Check, Trouble, ensure};

pub(super) fn identity<S: Subject>(subject: &S) -> Check {
    let (one, two) = (Stage::new(subject)?, Stage::new(subject)?);
    let devices = one.backend.devices()?;
    ensure!(devices == one.backend.devices()?, "devices() gives another list each time");
    ensure!(devices == two.backend.devices()?, "two backends list different devices");
    let ids: BTreeSet<_> = devices.iter().map(|info| info.id).collect();
    ensure!(ids.len() == devices.len(), "two devices have one identity: {devices:?}");
    for info in &devices {
        ensure!(
            info.id.family() == one.family(),
            "device {} is not of the family {}",
            info.id,
            one.family().name()
        );
        ensure!(!info.name.trim().is_empty(), "device {} has no name", info.id);
        ensure!(!info.driver.trim().is_empty(), "device {} has no driver", info.id);
        let target = one.backend.target(&info.id)?;
        ensure!(!target.as_str().trim().is_empty(), "the target of {} is empty", info.id);
        ensure!(
            target == two.backend.target(&info.id)?,
            "two backends give different targets for {}",
            info.id
        );
        let toolchain = one.backend.toolchain(&target)?;
        ensure!(!toolchain.as_str().trim().is_empty(), "the toolchain of {} is empty", info.id);
        let other = two.backend.toolchain(&target)?;
        ensure!(
            toolchain == other,
            "two backends give different toolchains for {}: `{}` and `{}`",
            info.id,
            toolchain.as_str(),
            other.as_str()
        );
    }

    let (spec, again) = (subject.kernel(1), subject.kernel(1));
    let language = spec.language();
    ensure!(one.backend.languages().contains(&language), "languages() leaves out {language}");
    ensure!(
        one.key(&spec)?.fingerprint() == two.key(&again)?.fingerprint(),
        "the same kernel has two keys: {:?}",
        one.key(&spec)?.differences(two.key(&again)?)
    );
    ensure!(
        one.key(&spec)?.fingerprint() != one.key(&subject.kernel(2))?.fingerprint(),
        "the subject's kernels for 1 and 2 have one key, so they are one kernel"
    );
    one.finish()?;
    two.finish()
}

pub(super) fn unknown_device<S: Subject>(subject: &S) -> Check {
    let stage = Stage::new(subject)?;
    let nobody = DeviceId::new(stage.family(), u32::MAX);
    let said = |call: &str, error: Option<BackendError>| match error {
        Some(BackendError::NoDevice { .. }) => Ok(()),
        Some(other) => {
            Err(Trouble::failed(format!("{call} of {nobody} gave `{other}`, not NoDevice")))
        }
        None => Err(Trouble::failed(format!("{call} of {nobody} succeeded"))),
    };
    said("target", stage.backend.target(&nobody).err())?;
    let spec = subject.kernel(1);
    match stage.backend.build(&nobody, &spec) {
        Ok((module, _)) => {
            stage.backend.unload(module)?;
            said("build", None)?;
        }
        Err(error) => said("build", Some(error))?,
    }
    stage.finish()
}
