//! The command line.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::exit;
use crate::store::args as store;

const ABOUT: &str =
    "Keeps compiled GPU kernels: compiles them ahead of time, and says what is here.";

const ENVIRONMENT: &str = "\
Environment:
  GRAINSTORE_DIR     the folder of the store, where --store does not say
  CC                 the C compiler of the host backend
  GRAINSTORE_OPENCL_LIBRARY, OPENCL_DYLIB_PATH
                     the loader library of the opencl backend
  GRAINSTORE_NVRTC_LIBRARY, GRAINSTORE_CUDA_LIBRARY
                     NVRTC and the driver of the cuda backend
  GRAINSTORE_VULKAN_LIBRARY
                     the loader library of the vulkan backend
  NO_COLOR           no colors";

const MANIFEST: &str = "\
The manifest (grainstore.toml):
  [[kernel]]
  name = \"saxpy\"                     # unique in the manifest
  source = \"saxpy.cl\"                # relative to the manifest
  sources = [\"saxpy.c\", \"saxpy.cl\"]  # instead of source: one for each language
  language = \"opencl-c\"              # default: by the source's extension
  entry = \"saxpy\"                    # default: all functions of the source
  backends = [\"opencl\"]              # default: all that take the language
  headers = [\"common.h\"]             # named as #include names them
  options = [\"-cl-fast-relaxed-math\"]
  [kernel.options_for]               # options for the sources of one language
  c = [\"-O3\"]
  [kernel.defines]
  BLOCK = [64, 128, 256]             # a list is a matrix: one artifact each
  FAST = true                        # 1; false is 0";

/// What was typed.
#[derive(Debug, Parser)]
#[command(name = "grainstore", version, about = ABOUT)]
pub(crate) struct Cli {
    /// The command.
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Reads a command line, program name first.
    ///
    /// # Errors
    /// What is wrong with it, or the help or version that it asks for.
    pub(crate) fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        Self::from_arg_matches(&command().try_get_matches_from(arguments)?)
    }
}

/// The command line, with what stands below the help of every command.
fn command() -> clap::Command {
    let environment = format!("{ENVIRONMENT}\n\n{}", exit::HELP);
    let below = |command: clap::Command| {
        let long = match command.get_name() {
            "warm" => format!("{MANIFEST}\n\n{environment}"),
            _ => environment.clone(),
        };
        command.after_help(exit::HELP).after_long_help(long)
    };
    below(Cli::command().mut_subcommands(&below))
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compile every kernel of a manifest into the store; what is there already is left alone
    Warm(Warm),
    /// Say what this machine has, and run a small kernel on every backend to see that it works
    Doctor(Common),
    /// List what the store holds
    Ls(store::Ls),
    /// Show all that is known of an artifact
    Show(store::Show),
    /// Say what the store takes, and what all processes did with it
    Stats(Common),
    /// Say why a kernel is not in the store: the nearest key that is, and what differs
    Explain(store::Explain),
    /// Read every artifact and say which are not whole
    Verify(Common),
    /// Delete what was not used for longest
    Prune(store::Prune),
    /// Delete everything, or one namespace
    Clear(store::Clear),
    /// Write artifacts into a bundle, one file to be shipped with an image
    Pack(store::Pack),
    /// Take the artifacts of a bundle into the store
    Unpack(store::Unpack),
}

/// `grainstore warm`.
#[derive(Debug, Args)]
pub(crate) struct Warm {
    /// The manifest, or the folder that holds it
    ///
    /// Default: grainstore.toml here or in the nearest folder above; in a clone of
    /// grainstore otherwise its examples.
    #[arg(verbatim_doc_comment)]
    pub(crate) manifest: Option<PathBuf>,

    /// Only this backend; may be given several times
    ///
    /// A backend that is asked for and not found makes the exit code 3.
    #[arg(long = "backend", value_name = "NAME")]
    pub(crate) backends: Vec<String>,

    /// Compile for this target instead of the devices that are here; may be given several times
    ///
    /// No device is needed, and nothing is loaded: `--target sm_90` compiles CUDA
    /// kernels for such devices of other machines, and needs NVRTC alone. opencl,
    /// vulkan and wgpu compile only on a device that is here. `grainstore doctor` tells
    /// the targets of this machine's devices, `grainstore show` that of an artifact.
    #[arg(long = "target", value_name = "TARGET", verbatim_doc_comment)]
    pub(crate) targets: Vec<String>,

    /// How many kernels to compile at once [default: one for each core]
    #[arg(long, short, value_name = "N", value_parser = jobs, allow_negative_numbers = true)]
    pub(crate) jobs: Option<NonZeroUsize>,

    /// Show no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// As everywhere.
    #[command(flatten)]
    pub(crate) common: Common,
}

/// How many kernels to compile at once.
fn jobs(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| {
        format!(
            "`{text}` is no number of kernels at once: write 1 or more, since with none nothing would \
             be compiled, or leave --jobs out for one for each core"
        )
    })
}

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// Where the store is.
    #[command(flatten)]
    pub(crate) store: StoreLocation,
}

/// Where the store is.
#[derive(Debug, Args)]
pub(crate) struct StoreLocation {
    /// The folder of the store [default: $GRAINSTORE_DIR, else in the user's cache folder]
    #[arg(long = "store", value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

impl StoreLocation {
    /// The folder that was named, else the default one. Nothing is looked up or made on disk.
    pub(crate) fn folder(&self) -> Result<PathBuf, grainstore_artifacts::Error> {
        match &self.folder {
            Some(folder) => Ok(folder.clone()),
            None => grainstore_artifacts::default_folder(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_command_tells_its_exit_codes() {
        for command in command().get_subcommands() {
            for help in [command.get_after_help(), command.get_after_long_help()] {
                let help = help.map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("Exit codes:"), "{}", command.get_name());
            }
        }
    }
}
