//! A bundle as an OCI image layout: a folder that the usual tools copy to a registry, from where it
//! is mounted read-only or copied into other images.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Packed;
use crate::store::unique;
use crate::{ArtifactStore, Entry, Error};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

impl ArtifactStore {
    /// As [`pack`](Self::pack), but into a new folder that is an OCI image layout, with an image of
    /// one layer: the bundle. `name` is how tools speak of the image: `latest`, `1.4.0`.
    ///
    /// Tools such as `skopeo copy oci:FOLDER:NAME docker://…` take it from there. Where the image is
    /// mounted, the mounted folder is a [layer](crate::Options::layer).
    ///
    /// # Errors
    /// As [`pack`](Self::pack); and [`Error::Bundle`] if there is something at this path.
    pub fn pack_oci(
        &self,
        folder: impl AsRef<Path>,
        name: &str,
        choose: impl FnMut(&Entry) -> bool,
    ) -> Result<Packed, Error> {
        let path = folder.as_ref();
        let path = std::path::absolute(path).map_err(Error::bundle("find", path))?;
        if fs::symlink_metadata(&path).is_ok() {
            let there = io::Error::new(io::ErrorKind::AlreadyExists, "something is there already");
            return Err(Error::bundle("create", path)(there));
        }
        let chosen = self.chosen(choose)?;
        let unfinished = path.parent().unwrap_or(&path).join(format!(".{}", unique()));
        let written = Layout::new(&unfinished).and_then(|layout| {
            let layer = layout.blob(LAYER, |writer| self.write_bundle(writer, &chosen))?;
            layout.image(&layer, name)?;
            fs::rename(&unfinished, &path)?;
            Ok(layer.size)
        });
        match written {
            Ok(bytes) => Ok(Packed { path, artifacts: chosen.len() as u64, bytes }),
            Err(error) => {
                let _ = fs::remove_dir_all(&unfinished);
                Err(Error::bundle("write", path)(error))
            }
        }
    }
}

/// A layout that is being written.
struct Layout {
    folder: PathBuf,
}

/// A blob that was written.
struct Blob {
    kind: &'static str,
    digest: String,
    size: u64,
}

impl Blob {
    fn descriptor(&self) -> Value {
        json!({ "mediaType": self.kind, "digest": self.digest, "size": self.size })
    }
}

impl Layout {
    fn new(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder.join("blobs/sha256"))?;
        let layout = Self { folder: folder.to_owned() };
        layout.file("oci-layout", &json!({ "imageLayoutVersion": "1.0.0" }))?;
        Ok(layout)
    }

    /// Writes a blob, which is named by its digest.
    fn blob(
        &self,
        kind: &'static str,
        write: impl FnOnce(Hashing) -> io::Result<Hashing>,
    ) -> io::Result<Blob> {
        let blobs = self.folder.join("blobs/sha256");
        let unnamed = blobs.join("unnamed");
        let file = BufWriter::new(File::create_new(&unnamed)?);
        let mut written = write(Hashing { file, hasher: Sha256::new(), size: 0 })?;
        written.file.flush()?;
        let digest = written.hasher.finalize();
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        fs::rename(unnamed, blobs.join(&digest))?;
        Ok(Blob { kind, digest: format!("sha256:{digest}"), size: written.size })
    }

    fn json(&self, kind: &'static str, value: &Value) -> io::Result<Blob> {
        self.blob(kind, |mut writer| {
            writer.write_all(value.to_string().as_bytes())?;
            Ok(writer)
        })
    }

    /// The image of this layer: nothing in it tells when or where it was made.
    fn image(&self, layer: &Blob, name: &str) -> io::Result<()> {
        let config = self.json(
            CONFIG,
            &json!({
                "architecture": architecture(),
                "os": "linux",
                "config": {},
                "rootfs": { "type": "layers", "diff_ids": [layer.digest] },
            }),
        )?;
        let manifest = self.json(
            MANIFEST,
            &json!({
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": config.descriptor(),
                "layers": [layer.descriptor()],
            }),
        )?;
        let mut named = manifest.descriptor();
        named["annotations"] = json!({ "org.opencontainers.image.ref.name": name });
        self.file("index.json", &json!({ "schemaVersion": 2, "manifests": [named] }))
    }

    fn file(&self, name: &str, value: &Value) -> io::Result<()> {
        fs::write(self.folder.join(name), value.to_string())
    }
}

/// In the words of container images.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// A file whose digest is known when it is written.
struct Hashing {
    file: BufWriter<File>,
    hasher: Sha256,
    size: u64,
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
