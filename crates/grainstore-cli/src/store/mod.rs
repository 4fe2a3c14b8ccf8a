//! The commands about what the store holds: each in a file of its own, over what they share.
//!
//! Those that only look open the store so that they change nothing in it, not even its marks of use.
//! Those that write or delete end in order when a signal comes.

mod amount;
pub(crate) mod args;
mod confirm;
mod describe;
mod explain;
mod ls;
mod pack;
mod prune;
mod select;
mod show;
mod stats;
mod variant;
mod verify;

use grainstore_artifacts::{ArtifactStore, Error, Options};

use crate::args::StoreLocation;
use crate::exit::Failure;
use crate::interrupt::Interrupt;
use crate::output;

pub(crate) use explain::run as explain;
pub(crate) use ls::run as ls;
pub(crate) use pack::{pack, unpack};
pub(crate) use prune::{clear, prune};
pub(crate) use show::run as show;
pub(crate) use stats::run as stats;
pub(crate) use verify::run as verify;

/// The store, to be looked at. None, and said so, where there is none yet.
fn open_to_look(location: &StoreLocation) -> Result<Option<ArtifactStore>, Failure> {
    look(location, Options::new())
}

fn look(location: &StoreLocation, options: Options) -> Result<Option<ArtifactStore>, Failure> {
    let folder = location.folder()?;
    match options.use_only().open(&folder) {
        Ok(store) => Ok(Some(store)),
        Err(Error::Io { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => {
            output::note(format!("there is no store in {} yet", folder.display()));
            Ok(None)
        }
        Err(error) => Err(unusable(&folder, &error)),
    }
}

/// The store, to be changed. It is made if it is missing.
pub(crate) fn open_to_change(location: &StoreLocation) -> Result<ArtifactStore, Failure> {
    change(location, Options::new())
}

fn change(location: &StoreLocation, options: Options) -> Result<ArtifactStore, Failure> {
    let folder = location.folder()?;
    options.open(&folder).map_err(|error| unusable(&folder, &error))
}

/// From now on a signal ends what is done with a store that is opened with these options, between two
/// artifacts.
fn until_interrupted() -> (Interrupt, Options) {
    let interrupt = Interrupt::install(|| {});
    let heeded = interrupt.clone();
    (interrupt, Options::new().stop_when(move || heeded.exit().is_some()))
}

/// What was done; or where a signal ended it, how things stand.
fn unless_interrupted<T>(
    done: Result<T, Error>,
    interrupt: &Interrupt,
    standing: &str,
) -> Result<T, Failure> {
    match (done, interrupt.exit()) {
        (Err(Error::Stopped), Some(exit)) => Err(Failure::interrupted(exit, standing)),
        (done, _) => Ok(done?),
    }
}

/// Where it is, as JSON gives it.
fn place(store: &ArtifactStore) -> String {
    store.path().display().to_string()
}

fn unusable(folder: &std::path::Path, error: &Error) -> Failure {
    Failure::environment(format!("the store {} can't be used: {error}", folder.display()))
}
