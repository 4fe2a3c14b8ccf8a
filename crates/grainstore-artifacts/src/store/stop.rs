//! Stopping what goes through many artifacts, between two of them.

use std::fmt;
use std::sync::Arc;

use super::ArtifactStore;
use crate::Error;

/// Who is asked whether to stop; nobody, unless [`Options::stop_when`](crate::Options::stop_when) says.
#[derive(Clone, Default)]
pub(super) struct Stop(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Stop {
    pub(super) fn when(asked: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(asked)))
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Stop(..)" } else { "Stop" })
    }
}

impl ArtifactStore {
    /// Whether somebody wants the call that is under way to end.
    pub(super) fn is_stopped(&self) -> bool {
        self.shared.options.stop.0.as_ref().is_some_and(|asked| asked())
    }

    /// To be asked between two artifacts, where nothing is half done.
    pub(crate) fn check_stop(&self) -> Result<(), Error> {
        if self.is_stopped() { Err(Error::Stopped) } else { Ok(()) }
    }
}
