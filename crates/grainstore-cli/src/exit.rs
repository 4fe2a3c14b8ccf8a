//! Exit codes: what a script learns without reading a word.

use std::fmt;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All was done.
    Ok,
    /// A kernel did not compile or is wrong in the manifest, or a check did not pass; the rest was
    /// done.
    SomeFailed,
    /// The command line or the whole manifest is wrong; nothing was done.
    Usage,
    /// The machine lacks what was asked for: a backend, or a store that can be written.
    Environment,
    /// A signal ended it; what was done until then is kept.
    Signal(u8),
}

impl Exit {
    /// The number that the system gets.
    #[must_use]
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::SomeFailed => 1,
            Self::Usage => 2,
            Self::Environment => 3,
            Self::Signal(number) => 128_u8.saturating_add(number),
        }
    }
}

/// The table of exit codes as the help shows it.
pub(crate) const HELP: &str = "\
Exit codes:
  0    all was done
  1    a kernel did not compile or is wrong in the manifest, or a check did not
       pass; the rest was done
  2    the command line or the whole manifest is wrong; nothing was done
  3    what was asked for is not here: the backend named, any backend at all,
       or a store that can be written
  130  interrupted (143: terminated); what was done until then is kept";

/// Why a command stopped before its end: in words, and as an exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    /// How to end.
    pub(crate) exit: Exit,
    message: String,
}

impl Failure {
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Usage, message: message.to_string() }
    }

    /// A signal came; the message says how things stand.
    pub(crate) fn interrupted(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, message: message.to_string() }
    }

    pub(crate) fn environment(message: impl fmt::Display) -> Self {
        Self { exit: Exit::Environment, message: message.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// A store that does not do what it is asked for.
impl From<grainstore_artifacts::Error> for Failure {
    fn from(error: grainstore_artifacts::Error) -> Self {
        Self::environment(error)
    }
}
