//! An artifact is all that another process needs.

use std::path::Path;

use grainstore_runtime::{Backend, Origin};

use crate::memory::Memory;
use crate::stage::{Stage, launch};
use crate::trouble::{Check, ensure};
use crate::{Subject, again};

pub(super) const TASK: &str = "load what another process has compiled";

pub(super) fn load_and_launch<S: Subject>(subject: &S) -> Check {
    let stage = Stage::new(subject)?;
    let spec = subject.kernel(8);
    stage.require_artifact(&spec)?;
    stage.clear()?;
    let (kernel, outcome) = stage.cache.kernel_with_outcome(&stage.device, &spec)?;
    ensure!(
        matches!(outcome.origin, Origin::Store(_)) && stage.backend.builds() == 1,
        "an artifact was not loaded: the kernel came from {}",
        outcome.origin
    );
    launch(subject, &*kernel, 8)?;

    // Beside it, once more: two modules of the same bytes are each other's equals, not each other.
    if let Some(artifact) = stage.store.artifact(stage.key(&spec)?) {
        let second = stage.backend.load(&stage.device.id(), &spec, &artifact)?;
        launch(subject, &second, 8)?;
        stage.backend.unload(second)?;
        launch(subject, &*kernel, 8).map_err(|trouble| {
            trouble.at("after a second module of the same bytes was unloaded")
        })?;
    }
    drop(kernel);
    stage.finish()
}

pub(super) fn in_new_process<S: Subject>(subject: &S) -> Check {
    let stage = Stage::new(subject)?;
    stage.require_artifact(&subject.kernel(8))?;
    for spec in variants(subject).iter().flatten() {
        drop(stage.kernel(spec)?);
    }
    let folder = tempfile::tempdir()?;
    let store = folder.path().join("store");
    std::fs::create_dir(&store)?;
    stage.store.write_to(&store)?;
    stage.finish()?;
    again::run(TASK, folder.path())
}

pub(super) fn task<S: Subject>(subject: &S, folder: &Path) -> Check {
    let stage = Stage::with_store(subject, Memory::read_from(&folder.join("store"))?)?;
    stage.check(&subject.kernel(8), 8)?;
    for spec in variants(subject).iter().flatten() {
        stage.check(spec, 9)?;
    }
    ensure!(
        stage.backend.builds() == 0,
        "a new process compiled {} kernels that were all in the store",
        stage.backend.builds()
    );
    stage.finish()
}

/// Kernels whose number is not in their source, as far as there are any.
fn variants<S: Subject>(subject: &S) -> [Option<grainstore_runtime::KernelSpec>; 4] {
    [
        subject.with_header(9).ok(),
        subject.with_define(9).ok(),
        subject.with_option(9).ok(),
        subject.with_constant(9).ok(),
    ]
}
