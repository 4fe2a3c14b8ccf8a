//! A folder with kernels and a store of its own, and the program run in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A kernel that compiles, and computes something.
pub(crate) const SAXPY: &str = "\
void saxpy(int n, float a, const float *x, float *y) {
    for (int i = 0; i < n; i++) y[i] = a * x[i] + y[i];
}
";

/// A manifest of [`SAXPY`] for the host in three variants.
pub(crate) const THREE: &str = r#"
[[kernel]]
name = "saxpy"
source = "saxpy.c"
entry = "saxpy"
[kernel.defines]
BLOCK = [64, 128, 256]
"#;

/// A place of its own for one test.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        place.write("saxpy.c", SAXPY);
        place
    }

    /// The same with this manifest.
    pub(crate) fn with_manifest(text: &str) -> Self {
        let place = Self::new();
        place.write("grainstore.toml", text);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// The program, in this folder, its store and home below it, and nothing else of the user's.
    pub(crate) fn grainstore(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_grainstore"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .env("HOME", self.path("home"))
            .env("XDG_CACHE_HOME", self.path("home/.cache"))
            .env("POCL_CACHE_DIR", self.path("pocl"))
            .env("POCL_KERNEL_CACHE", "0")
            .env("GRAINSTORE_DIR", self.path("store"))
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR_FORCE");
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::new(self.grainstore(arguments).output().unwrap())
    }

    /// Whether that backend works here. One that `GRAINSTORE_REQUIRE` names has to.
    #[track_caller]
    pub(crate) fn has(&self, backend: &str) -> bool {
        let json = self.run(&["doctor", "--json"]).json();
        let backends = json["backends"].as_array().unwrap();
        let diagnosis = backends.iter().find(|known| known["backend"] == backend).unwrap();
        let works = diagnosis["launched"] == true;
        if !works {
            assert!(!is_required(backend), "{backend} is required and does not work: {diagnosis}");
            // `cargo xtask test` gathers these lines.
            let test = std::thread::current().name().unwrap_or("a test").to_owned();
            eprintln!("not run: {test}: {backend} does not work here: {}", diagnosis["error"]);
        }
        works
    }

    /// Every artifact of the store, once it was seen that nothing unfinished lies beside them.
    #[track_caller]
    pub(crate) fn stored(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        collect(&self.path("store"), &mut files);
        let unfinished = files.iter().find(|file| file.parent().unwrap().ends_with("tmp"));
        assert_eq!(unfinished, None, "something half written was left behind");
        files.retain(|file| file.extension().is_some_and(|extension| extension == "grain"));
        files
    }
}

fn is_required(backend: &str) -> bool {
    std::env::var("GRAINSTORE_REQUIRE")
        .is_ok_and(|names| names.split(',').any(|name| name.trim() == backend))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}

/// How a run ended, and what it said.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn new(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The same, if it ended with this exit code.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", self.out, self.err))
    }

    #[track_caller]
    pub(crate) fn says(&self, words: &str) -> &Self {
        assert!(self.err.contains(words), "`{words}` is not in:\n{}", self.err);
        self
    }
}
