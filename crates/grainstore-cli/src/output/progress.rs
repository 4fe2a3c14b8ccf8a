//! How far a long command is: a bar on a terminal, plain lines elsewhere, nothing where asked.

use std::fmt::Display;
use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::note;

/// Shows on standard error how much of a known amount is done.
#[derive(Debug)]
pub(crate) enum Progress {
    Bar(ProgressBar),
    Lines,
    Quiet,
}

impl Progress {
    pub(crate) fn new(total: usize, quiet: bool) -> Self {
        if quiet {
            return Self::Quiet;
        }
        if !stderr().is_terminal() {
            return Self::Lines;
        }
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
        let colored = anstream::AutoStream::choice(&stderr()) != anstream::ColorChoice::Never;
        let template = if colored {
            "{spinner:.green} [{bar:32.green/black}] {pos}/{len}  {elapsed}  {wide_msg}"
        } else {
            "{spinner} [{bar:32}] {pos}/{len}  {elapsed}  {wide_msg}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        Self::Bar(bar)
    }

    /// One more is done; `line` says which, where there is no bar.
    pub(crate) fn done(&self, line: impl Display) {
        match self {
            Self::Bar(bar) => {
                bar.set_message(line.to_string());
                bar.inc(1);
            }
            Self::Lines => note(line),
            Self::Quiet => {}
        }
    }

    /// One more is done, and not worth a line.
    pub(crate) fn passed(&self) {
        if let Self::Bar(bar) = self {
            bar.inc(1);
        }
    }

    /// Runs what writes to standard error itself, with the bar out of its way.
    pub(crate) fn aside(&self, write: impl FnOnce()) {
        match self {
            Self::Bar(bar) => bar.suspend(write),
            Self::Lines | Self::Quiet => write(),
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
