//! A machine without the library: an error that says what is missing, and no panic.

use grainstore::DeviceId;
use grainstore_runtime::{Backend, BackendCache, BackendError, Settings};

use crate::Subject;
use crate::trouble::{Check, Trouble, ensure};

/// The name of a file that is nowhere.
const NOWHERE: &str = "libgrainstore-nowhere.so.1";

pub(super) fn library<S: Subject>(subject: &S) -> Check {
    let folder = tempfile::tempdir()?;
    let backend = subject.without_library(&folder.path().join(NOWHERE))?;
    let family = backend.family();
    says_missing("devices", backend.devices())?;
    says_missing("build", backend.build(&DeviceId::new(family, 0), &subject.kernel(1)).map(drop))?;

    let cache = BackendCache::new(backend, Settings::new())?;
    match cache.devices() {
        Err(error) => {
            ensure!(error.to_string().contains(NOWHERE), "the library's name is lost: {error}");
        }
        Ok(_) => {
            return Err(Trouble::failed("the runtime finds devices where the backend has none"));
        }
    }
    Ok(cache.shutdown()?)
}

fn says_missing<T>(call: &str, outcome: Result<T, BackendError>) -> Check {
    match outcome {
        Err(BackendError::Missing { what, hint }) => {
            ensure!(
                what.contains(NOWHERE),
                "{call}: the error does not name the library `{NOWHERE}` but `{what}`"
            );
            ensure!(!hint.trim().is_empty(), "{call}: the error says nothing that would help");
            Ok(())
        }
        Err(other) => Err(Trouble::failed(format!(
            "{call} without the library gave `{other}`, not BackendError::Missing"
        ))),
        Ok(_) => Err(Trouble::failed(format!("{call} succeeded without the library"))),
    }
}
