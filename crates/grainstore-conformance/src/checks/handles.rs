//! Native handles are counted, and none is left.

use grainstore_runtime::{Artifact, Backend};

use crate::Subject;
use crate::gate::BOUND;
use crate::stage::{Stage, launch};
use crate::trouble::{Check, ensure};

pub(super) fn none_left<S: Subject>(subject: &S) -> Check {
    let stage = Stage::new(subject)?;
    let (one, two) = (subject.kernel(23), subject.kernel(24));
    let handles = || stage.handles();
    ensure!(handles() == 0, "a backend that has made nothing counts {} handles", handles());

    stage.check(&one, 23)?;
    let with_one = handles();
    ensure!(with_one > 0, "a loaded module is not counted as a handle");
    let kept = stage.kernel(&one)?;
    stage.check(&two, 24)?;
    let with_two = handles();
    ensure!(with_two > with_one, "two modules have {with_two} handles, and one has {with_one}");

    // What comes to nothing leaves nothing.
    drop(stage.kernel(&subject.wrong()));
    ensure!(handles() == with_two, "a wrong source left {} handles", excess(handles(), with_two));
    let garbage = Artifact::new("garbage", b"garbage".to_vec());
    if let Ok(module) = stage.backend.load(&stage.device.id(), &one, &garbage) {
        // Another check reports it.
        stage.backend.unload(module)?;
    }
    ensure!(
        handles() == with_two,
        "a refused artifact left {} handles",
        excess(handles(), with_two)
    );

    // One goes, and the other stays.
    let drain = stage.cache.remove(&stage.device, &two)?;
    ensure!(drain.wait_timeout(BOUND), "a removed kernel was not released");
    ensure!(
        handles() == with_one,
        "with the second of two modules unloaded there are {} handles, before it was loaded {with_one}",
        handles()
    );
    launch(subject, &*kept, 23)
        .map_err(|trouble| trouble.at("after another module was unloaded"))?;
    drop(kept);

    // Again and again, it does not grow.
    let mut after_first = None;
    for round in 1..=4 {
        stage.check(&one, 23)?;
        stage.check(&two, 24)?;
        stage.clear()?;
        let left = handles();
        let first = *after_first.get_or_insert(left);
        ensure!(left == first, "round {round} leaves {left} handles, the first one left {first}");
    }
    for life in 1..=3 {
        let device = stage.cache.device(&stage.device.id())?;
        launch(subject, &*stage.cache.kernel(&device, &one)?, 23)?;
        stage.cache.destroy_device(&device)?;
        ensure!(
            handles() == 0,
            "{} handles are left of life {life} of a device that was destroyed",
            handles()
        );
    }
    let device = stage.cache.device(&stage.device.id())?;
    launch(subject, &*stage.cache.kernel(&device, &one)?, 23)?;
    stage.cache.shutdown()?;
    ensure!(handles() == 0, "{} handles are left after the shutdown", handles());
    Ok(())
}

fn excess(now: usize, before: usize) -> i128 {
    now as i128 - before as i128
}
