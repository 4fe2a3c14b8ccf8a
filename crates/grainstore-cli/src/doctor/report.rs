//! What was found, as text for people and as one JSON object for scripts.

use std::fmt;

use serde::Serialize;

use crate::output::{BOLD, GREEN, RED, YELLOW};

/// All of it. The names of the fields are the documented form of `doctor --json`.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) backends: Vec<BackendReport>,
    pub(super) store: StoreReport,
    /// No remote store is configured.
    pub(super) remote: Option<()>,
}

/// One backend of this program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct BackendReport {
    pub(super) backend: String,
    pub(super) found: bool,
    pub(super) devices: Vec<DeviceReport>,
    pub(super) compiler: Option<String>,
    pub(super) driver: Option<String>,
    /// A small kernel was compiled and loaded on every device.
    pub(super) compiled: bool,
    /// It was launched on every device too, and its numbers were right.
    pub(super) launched: bool,
    pub(super) error: Option<String>,
    pub(super) hint: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct DeviceReport {
    pub(super) id: String,
    pub(super) name: String,
    /// What its kernels are made for, in the words that `warm --target` and the keys have.
    pub(super) target: Option<String>,
    /// Who makes them.
    pub(super) toolchain: Option<String>,
    /// Why one of these can't be told.
    pub(super) error: Option<String>,
}

/// The store's folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct StoreReport {
    pub(super) path: Option<String>,
    /// Its permissions as Unix writes them, where there are such.
    pub(super) mode: Option<String>,
    /// It may be read from: nobody but this user and root could have changed what is in it.
    pub(super) readable: bool,
    /// A small artifact was written into it, read back and removed.
    pub(super) writable: bool,
    pub(super) error: Option<String>,
    pub(super) hint: Option<String>,
}

impl Report {
    /// Whether something that is here does not work.
    pub(super) fn broken(&self) -> bool {
        self.backends.iter().any(|backend| backend.found && !backend.launched)
    }

    /// Whether the program can do its main job at all.
    pub(super) fn usable(&self) -> bool {
        self.backends.iter().any(|backend| backend.found) && self.store.writable
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for backend in &self.backends {
            writeln!(f, "{backend}")?;
        }
        write!(f, "{}", self.store)
    }
}

impl fmt::Display for BackendReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (color, state) = match (self.found, self.launched) {
            (true, true) => (GREEN, "works: compiled, loaded, launched and checked a kernel"),
            (true, false) => (RED, "is here and does not work"),
            (false, _) => (YELLOW, "is not here"),
        };
        writeln!(f, "{BOLD}{}{BOLD:#} {color}{state}{color:#}", self.backend)?;
        for device in &self.devices {
            line(f, "device", &format!("{}  {}", device.id, device.name))?;
            line(f, "target", device.target.as_deref().unwrap_or_default())?;
            // It is long, and mostly that of the first device, which stands below.
            let other = device.toolchain.as_deref().filter(|_| device.toolchain != self.compiler);
            line(f, "toolchain", other.unwrap_or_default())?;
            if let Some(error) = &device.error {
                let which = if device.target.is_some() { "toolchain" } else { "target" };
                line(f, which, &format!("can't be told: {error}"))?;
            }
        }
        line(f, "compiler", self.compiler.as_deref().unwrap_or_default())?;
        line(f, "driver", self.driver.as_deref().unwrap_or_default())?;
        line(f, "error", self.error.as_deref().unwrap_or_default())?;
        line(f, "hint", self.hint.as_deref().unwrap_or_default())
    }
}

impl fmt::Display for StoreReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (color, state) = match (self.readable, self.writable) {
            (true, true) => (GREEN, "works: wrote, read and removed an artifact"),
            (true, false) => (RED, "can be read, and not written"),
            (false, _) => (RED, "can't be used"),
        };
        writeln!(f, "{BOLD}store{BOLD:#} {color}{state}{color:#}")?;
        line(f, "folder", self.path.as_deref().unwrap_or_default())?;
        line(f, "mode", self.mode.as_deref().unwrap_or_default())?;
        line(f, "error", self.error.as_deref().unwrap_or_default())?;
        line(f, "hint", self.hint.as_deref().unwrap_or_default())
    }
}

/// A named line, its text indented where it has several; nothing where it has none.
fn line(f: &mut fmt::Formatter<'_>, name: &str, text: &str) -> fmt::Result {
    let mut lines = text.trim_end().lines();
    let Some(first) = lines.next() else { return Ok(()) };
    writeln!(f, "  {name:<9} {first}")?;
    for rest in lines {
        writeln!(f, "  {:<9} {rest}", "")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backend(found: bool, launched: bool) -> BackendReport {
        BackendReport { backend: "b".into(), found, launched, ..BackendReport::default() }
    }

    fn report(backends: Vec<BackendReport>, writable: bool) -> Report {
        let store = StoreReport { writable, ..StoreReport::default() };
        Report { backends, store, remote: None }
    }

    #[test]
    fn the_document_names_every_field() {
        let document = include_str!("../../../../docs/warm-and-doctor.md");
        let mut backend = backend(true, true);
        backend.devices.push(DeviceReport::default());
        let json = serde_json::to_value(report(vec![backend], true)).unwrap();
        let first = &json["backends"][0];
        for object in [&json, first, &first["devices"][0], &json["store"]] {
            for field in object.as_object().unwrap().keys() {
                assert!(document.contains(&format!("\"{field}\"")), "{field}");
            }
        }
    }

    #[test]
    fn what_is_missing_is_not_broken() {
        let missing = report(vec![backend(true, true), backend(false, false)], true);
        assert!(missing.usable() && !missing.broken());
        let broken = report(vec![backend(true, true), backend(true, false)], true);
        assert!(broken.usable() && broken.broken());
        assert!(!report(vec![backend(false, false)], true).usable());
        assert!(!report(vec![backend(true, true)], false).usable());
    }

    #[test]
    fn text_of_several_lines_stays_in_its_column() {
        let report = BackendReport { error: Some("a\nb\n".into()), ..backend(false, false) };
        let shown = anstream::adapter::strip_str(&report.to_string()).to_string();
        assert_eq!(shown, "b is not here\n  error     a\n            b\n");
    }
}
