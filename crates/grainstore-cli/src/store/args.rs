//! What the commands about the store are told.

use std::path::PathBuf;

use clap::Args;

use super::amount::Size;
use crate::args::Common;

/// Which artifacts: all, unless something is said.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Kernels by name, or artifacts by the first digits of their fingerprint [default: all]
    #[arg(value_name = "KERNEL")]
    pub(crate) kernels: Vec<String>,

    /// Only keys of this namespace: kernel, plan, or another program's
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}

/// Leave to delete.
#[derive(Debug, Args)]
pub(crate) struct Consent {
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// `grainstore ls`.
#[derive(Debug, Args)]
pub(crate) struct Ls {
    #[command(flatten)]
    pub(crate) which: Which,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// `grainstore show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// A kernel by name, or an artifact by the first digits of its fingerprint
    pub(crate) kernel: String,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// `grainstore prune`.
#[derive(Debug, Args)]
pub(crate) struct Prune {
    /// How much may stay: bytes, or with K, M or G for powers of 1024
    #[arg(long, value_name = "SIZE", default_value = "1G", allow_negative_numbers = true)]
    pub(crate) max_size: Size,

    #[command(flatten)]
    pub(crate) consent: Consent,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// `grainstore clear`.
#[derive(Debug, Args)]
pub(crate) struct Clear {
    /// Only keys of this namespace: kernel, plan, or another program's
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    #[command(flatten)]
    pub(crate) consent: Consent,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// `grainstore pack`.
#[derive(Debug, Args)]
pub(crate) struct Pack {
    /// The bundle to write; with --oci the folder to make
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) which: Which,

    /// Write an OCI image layout, a folder that container tools push
    #[arg(long)]
    pub(crate) oci: bool,

    /// What container tools call the image
    #[arg(long, value_name = "TAG", default_value = "latest", requires = "oci")]
    pub(crate) tag: String,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// `grainstore unpack`.
#[derive(Debug, Args)]
pub(crate) struct Unpack {
    /// The bundle
    pub(crate) bundle: PathBuf,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// `grainstore explain`.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A kernel of the manifest by name, or an artifact of the store by the first digits of its
    /// fingerprint
    pub(crate) kernel: String,

    /// The manifest, or the folder that holds it [default: as for warm]
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) common: Common,
}
