//! Kernels are built, launched, and told apart by everything that makes them.

use grainstore_runtime::{KernelSpec, Origin};

use crate::stage::{Stage, launch};
use crate::trouble::{Check, ensure};
use crate::{Cannot, Subject};

pub(super) fn build_and_launch<S: Subject>(subject: &S) -> Check {
    let stage = Stage::new(subject)?;
    for add in [0, 5, u32::MAX] {
        let spec = subject.kernel(add);
        let before = stage.backend.builds();
        let (kernel, outcome) = stage.cache.kernel_with_outcome(&stage.device, &spec)?;
        ensure!(
            outcome.origin == Origin::Compiled && stage.backend.builds() == before + 1,
            "a new kernel came from {}, with {} builds",
            outcome.origin,
            stage.backend.builds() - before
        );
        launch(subject, &*kernel, add)?;
        launch(subject, &*kernel, add).map_err(|trouble| trouble.at("at the second launch"))?;
        let (_, outcome) = stage.cache.kernel_with_outcome(&stage.device, &spec)?;
        ensure!(outcome.origin == Origin::Memory, "the second request went to {}", outcome.origin);
    }
    stage.finish()
}

pub(super) fn define<S: Subject>(subject: &S) -> Check {
    told_apart(subject, |add| subject.with_define(add))
}

pub(super) fn header<S: Subject>(subject: &S) -> Check {
    told_apart(subject, |add| subject.with_header(add))
}

pub(super) fn option<S: Subject>(subject: &S) -> Check {
    told_apart(subject, |add| subject.with_option(add))
}

pub(super) fn constant<S: Subject>(subject: &S) -> Check {
    told_apart(subject, |add| subject.with_constant(add))
}

/// Two kernels of one source are two kernels: in the key, in memory, and as artifacts.
fn told_apart<S: Subject>(
    subject: &S,
    kernel: impl Fn(u32) -> Result<KernelSpec, Cannot>,
) -> Check {
    let specs = [(3, kernel(3)?), (40, kernel(40)?)];
    ensure!(
        specs[0].1.source() == specs[1].1.source(),
        "the subject's two kernels differ in their source; only the tested part may differ"
    );
    let stage = Stage::new(subject)?;
    ensure!(
        stage.key(&specs[0].1)?.fingerprint() != stage.key(&specs[1].1)?.fingerprint(),
        "two different kernels have one key"
    );
    // The second one twice: it must not have taken the first one's place, nor the first one its.
    for at in [0, 1, 0, 1] {
        let (add, spec) = &specs[at];
        stage.check(spec, *add)?;
    }
    ensure!(stage.backend.builds() == 2, "two kernels took {} builds", stage.backend.builds());
    if stage.has_artifact(&specs[0].1)? {
        stage.clear()?;
        for (add, spec) in &specs {
            stage.check(spec, *add).map_err(|trouble| trouble.at("loaded from its artifact"))?;
        }
        ensure!(
            stage.backend.builds() == 2,
            "two kernels with artifacts took {} builds",
            stage.backend.builds()
        );
    }
    stage.finish()
}
