//! Artifacts that are no good: refused before they do harm, dropped, and built anew.
//!
//! Each kind is tried in a process of its own, since a driver that is shown broken bytes may end it.

use std::path::Path;

use grainstore_runtime::{Artifact, Backend, BackendError, Member};

use crate::memory::of_members;
use crate::stage::Stage;
use crate::trouble::{Check, Trouble, ensure};
use crate::{Subject, again};

pub(super) const FOREIGN: &str = "load foreign artifacts";
pub(super) const CUT: &str = "load cut artifacts";
pub(super) const FLIPPED: &str = "load artifacts with a flipped bit";
pub(super) const EMPTY: &str = "load empty artifacts";

pub(super) fn foreign<S: Subject>(_: &S) -> Check {
    apart(FOREIGN)
}

pub(super) fn cut<S: Subject>(_: &S) -> Check {
    apart(CUT)
}

pub(super) fn flipped<S: Subject>(_: &S) -> Check {
    apart(FLIPPED)
}

pub(super) fn empty<S: Subject>(_: &S) -> Check {
    apart(EMPTY)
}

fn apart(task: &str) -> Check {
    let folder = tempfile::tempdir()?;
    again::run(task, folder.path())
}

pub(super) fn foreign_task<S: Subject>(subject: &S, folder: &Path) -> Check {
    refused(subject, folder, |members| {
        let with = |byte: fn(usize) -> u8| {
            let bytes = |member: &Member| (0..member.bytes.len()).map(byte).collect::<Vec<u8>>();
            members
                .iter()
                .map(|it| Member { name: it.name.clone(), bytes: bytes(it).into() })
                .collect()
        };
        let text = b"what another compiler has made".to_vec();
        vec![
            ("of random bytes".into(), with(|at| (at.wrapping_mul(0x9e37_79b9) >> 7) as u8)),
            ("of NULs".into(), with(|_| 0)),
            (
                "of another backend".into(),
                vec![Member { name: "kernel".into(), bytes: text.into() }],
            ),
        ]
    })
}

pub(super) fn cut_task<S: Subject>(subject: &S, folder: &Path) -> Check {
    refused(subject, folder, |members| {
        let mut broken = Vec::new();
        for (at, member) in members.iter().enumerate() {
            let length = member.bytes.len();
            let mut lengths = spread(length, 32);
            lengths.extend([1, length.saturating_sub(1)]);
            lengths.retain(|cut| (1..length).contains(cut));
            lengths.sort_unstable();
            lengths.dedup();
            for cut in lengths {
                let what = format!("whose `{}` of {length} bytes is cut to {cut}", member.name);
                broken.push((what, with_bytes(members, at, member.bytes[..cut].to_vec())));
            }
            if members.len() > 1 {
                let mut others = members.to_vec();
                others.remove(at);
                broken.push((format!("without its `{}`", member.name), others));
            }
        }
        broken
    })
}

pub(super) fn flipped_task<S: Subject>(subject: &S, folder: &Path) -> Check {
    refused(subject, folder, |members| {
        let mut broken = Vec::new();
        for (at, member) in members.iter().enumerate() {
            for bit in spread(member.bytes.len() * 8, 96) {
                let mut bytes = member.bytes.to_vec();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let what = format!("with bit {bit} of its `{}` flipped", member.name);
                broken.push((what, with_bytes(members, at, bytes)));
            }
        }
        broken
    })
}

pub(super) fn empty_task<S: Subject>(subject: &S, folder: &Path) -> Check {
    refused(subject, folder, |members| {
        let blank =
            |member: &Member| Member { name: member.name.clone(), bytes: Vec::new().into() };
        vec![
            ("whose binary is empty".into(), with_bytes(members, 0, Vec::new())),
            ("with empty members".into(), members.iter().map(blank).collect()),
            ("of one empty member".into(), members.iter().take(1).map(blank).collect()),
        ]
    })
}

/// What may be wrong with an artifact, and the members that it then has.
type Broken = Vec<(String, Vec<Member>)>;

/// Breaks the artifact in all these ways. Each must be refused as invalid; the last one also goes
/// through the cache, which has to drop it and build the kernel anew.
fn refused<S: Subject>(
    subject: &S,
    folder: &Path,
    broken: impl FnOnce(&[Member]) -> Broken,
) -> Check {
    let stage = Stage::new(subject)?;
    let spec = subject.kernel(7);
    stage.require_artifact(&spec)?;
    let key = stage.key(&spec)?;
    let Some(sound) = stage.store.artifact(key) else {
        return Err(Trouble::failed("the store has lost an artifact"));
    };
    let broken: Vec<(String, Artifact)> = broken(sound.members())
        .into_iter()
        .filter_map(|(what, members)| Some((what, of_members(members)?)))
        .filter(|(_, artifact)| *artifact != sound)
        .collect();
    for (what, artifact) in &broken {
        again::step(folder, &format!("loading an artifact {what}"));
        match stage.backend.load(&stage.device.id(), &spec, artifact) {
            Err(BackendError::InvalidArtifact { reason }) => {
                ensure!(
                    !reason.trim().is_empty(),
                    "an artifact {what} is refused without a reason"
                );
            }
            Err(other) => {
                let message = format!("an artifact {what} gave `{other}`, not InvalidArtifact");
                return Err(Trouble::Failed(message));
            }
            Ok(module) => {
                stage.backend.unload(module)?;
                return Err(Trouble::failed(format!("an artifact {what} was loaded")));
            }
        }
    }

    let Some((what, artifact)) = broken.last() else {
        return Err(Trouble::failed("the artifact is so small that nothing can be broken of it"));
    };
    again::step(folder, &format!("asking for a kernel whose artifact is one {what}"));
    stage.clear()?;
    stage.store.plant(key, artifact.clone());
    stage.check(&spec, 7)?;
    ensure!(stage.store.discarded() == 1, "an artifact {what} was not dropped from its store");
    ensure!(
        stage.backend.builds() == 2,
        "after an artifact {what} the kernel was built {} times",
        stage.backend.builds() - 1
    );
    stage.clear()?;
    stage.check(&spec, 7)?;
    ensure!(stage.backend.builds() == 2, "the new artifact could not be loaded");
    again::step(folder, "the shutdown");
    stage.finish()
}

/// The same members, one of them with these bytes.
fn with_bytes(members: &[Member], at: usize, bytes: Vec<u8>) -> Vec<Member> {
    let mut members = members.to_vec();
    members[at].bytes = bytes.into();
    members
}

/// At most `count` numbers under `end`, from the first to the last, at equal distances.
fn spread(end: usize, count: usize) -> Vec<usize> {
    if end <= count {
        return (0..end).collect();
    }
    (0..count).map(|at| at * (end - 1) / (count - 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn numbers_are_spread_from_the_first_to_the_last() {
        assert_eq!(spread(3, 5), [0, 1, 2]);
        assert_eq!(spread(100, 4), [0, 33, 66, 99]);
        assert_eq!(spread(0, 4), [0; 0]);
    }
}
