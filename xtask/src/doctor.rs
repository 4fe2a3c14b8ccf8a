//! What the program says of this machine, so that nothing about drivers is known twice.

use std::env::consts::EXE_SUFFIX;
use std::process::Command;

use serde::Deserialize;

use crate::report::Outcome;
use crate::shell;

/// What `grainstore doctor --json` says of this machine, as far as it matters here.
#[derive(Default, Deserialize)]
pub(crate) struct Doctor {
    backends: Vec<Diagnosis>,
}

#[derive(Deserialize)]
struct Diagnosis {
    backend: String,
    found: bool,
    devices: Vec<Device>,
    launched: bool,
    error: Option<String>,
    hint: Option<String>,
}

#[derive(Deserialize)]
struct Device {
    name: String,
}

impl Doctor {
    /// Builds the program with all its backends and asks it; `set` gives it its surroundings.
    pub(crate) fn ask(set: impl FnOnce(&mut Command)) -> Self {
        // As the tests are built, so that nothing is built twice.
        let build = ["build", "--quiet", "--workspace", "--all-features", "--bin", "grainstore"];
        if let Outcome::Failed(why) | Outcome::NotRun(why) = shell::run(&mut shell::cargo(&build)) {
            eprintln!("{why}");
            return Self::default();
        }
        let program = shell::target().join("debug").join(format!("grainstore{EXE_SUFFIX}"));
        let mut command = shell::program(&program.to_string_lossy());
        set(command.args(["doctor", "--json"]));
        shell::output(&mut command).map(|text| Self::read(&text)).unwrap_or_default()
    }

    /// What the program wrote; of something else, that it said nothing.
    pub(crate) fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// Whether it looked for this backend's driver and devices, and there are none.
    pub(crate) fn lacks(&self, backend: &str) -> bool {
        let known = self.backends.iter().find(|known| known.backend == backend);
        known.is_some_and(|known| !known.found || known.devices.is_empty())
    }

    /// The names of its devices.
    pub(crate) fn devices(&self, backend: &str) -> Vec<&str> {
        let known = self.backends.iter().filter(|known| known.backend == backend);
        known.flat_map(|known| &known.devices).map(|device| device.name.as_str()).collect()
    }

    /// Whether it said anything of this backend: nothing of any, if the program can't be built.
    pub(crate) fn knows(&self, backend: &str) -> bool {
        self.backends.iter().any(|known| known.backend == backend)
    }

    /// Why a backend does not work here, if it does not.
    pub(crate) fn why_not(&self, backend: &str) -> Option<String> {
        let Some(diagnosis) = self.backends.iter().find(|known| known.backend == backend) else {
            return Some("`grainstore doctor` says nothing of it: see above".into());
        };
        if diagnosis.launched {
            return None;
        }
        let parts: Vec<&str> =
            [&diagnosis.error, &diagnosis.hint].into_iter().flatten().map(String::as_str).collect();
        Some(if parts.is_empty() { "it is not there".into() } else { parts.join("; ") })
    }
}
