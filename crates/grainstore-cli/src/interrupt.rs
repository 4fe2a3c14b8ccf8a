//! Ctrl-C: begin nothing more, stop the compilers, leave with the signal's exit code.
//!
//! What is under way within this process (a driver's own compiler, a write into the store) is waited
//! for, so that nothing is left behind; a second signal does not wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::exit::Exit;
#[cfg(unix)]
use crate::output;

/// Whether a signal has come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// From now on SIGINT and SIGTERM do not end the process, but are noted here and told; `stop` is
    /// called for the first one, on a thread of its own.
    ///
    /// To be called before a driver is loaded. LLVM, in PoCL and Mesa, has handlers as well: set after
    /// these they give way to them, set before they would be called by them, and end the process.
    ///
    /// Elsewhere than on Unix the system's own way stays: the process ends at once.
    #[must_use]
    pub(crate) fn install(stop: impl FnOnce() + Send + 'static) -> Self {
        let interrupt = Self::default();
        #[cfg(unix)]
        interrupt.listen(stop);
        #[cfg(not(unix))]
        drop(stop);
        interrupt
    }

    /// How to end, once a signal has come.
    #[must_use]
    pub(crate) fn exit(&self) -> Option<Exit> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            number => Some(Exit::Signal(u8::try_from(number).unwrap_or(u8::MAX))),
        }
    }

    #[cfg(unix)]
    fn listen(&self, stop: impl FnOnce() + Send + 'static) {
        use signal_hook::consts::{SIGINT, SIGTERM};
        use signal_hook::iterator::Signals;
        use signal_hook::low_level;

        // Where no handler can be had the system's own way stays, as elsewhere.
        let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
        let noted = Arc::clone(&self.signal);
        let watch = move || {
            let mut stop = Some(stop);
            for number in signals.forever() {
                match stop.take() {
                    Some(stop) => {
                        noted.store(usize::try_from(number).unwrap_or_default(), Ordering::Relaxed);
                        output::note(
                            "interrupted: ending what is under way; once more to leave at once",
                        );
                        stop();
                    }
                    // At once: no destructor runs while other threads are inside a driver.
                    None => low_level::exit(128 + number),
                }
            }
        };
        let _ = std::thread::Builder::new().name("signals".into()).spawn(watch);
    }
}
