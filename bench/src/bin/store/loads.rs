//! A warm load: open, read, verify, trust, hand over.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use grainstore_artifacts::ArtifactStore;
use grainstore_runtime::Store;

use crate::turns::{self, Way};
use crate::{Result, bytes, group, key};

const ARTIFACTS: usize = 1000;
/// Short enough to be done, more often than not, before the machine turns to others.
const BATCH: usize = 50;
const ROUNDS: usize = 600;

pub(crate) fn run(folder: &Path) -> Result {
    let store = ArtifactStore::open(folder.join("store"))?;
    let keys = (0..ARTIFACTS).map(key).collect::<Result<Vec<_>>>()?;
    let [quick, default] = ["xxh3", "sha256"].map(|name| folder.join(name));
    for (number, key) in keys.iter().enumerate() {
        store.put(key, &group(number))?;
        let name = key.fingerprint().to_string();
        cacache::write_sync(&default, &name, bytes(number))?;
        cacache::write_sync_with_algo(cacache::Algorithm::Xxh3, &quick, &name, bytes(number))?;
    }
    let files: Vec<PathBuf> = keys.iter().map(|key| store.file(key)).collect();
    let names: Vec<String> = keys.iter().map(|key| key.fingerprint().to_string()).collect();
    let of = |round: usize| {
        let from = round * BATCH % ARTIFACTS;
        from..from + BATCH
    };
    let missing = "an artifact is missing";

    let behind: &dyn Store = &store;
    let mut ours = |round| {
        for key in &keys[of(round)] {
            black_box(store.get(key)?.ok_or(missing)?);
        }
        Ok(())
    };
    let mut by_runtime = |round| {
        for key in &keys[of(round)] {
            black_box(behind.get(key)?.ok_or(missing)?);
        }
        Ok(())
    };
    let mut watched = |round| {
        for key in &keys[of(round)] {
            let artifact = behind.get(key)?.ok_or(missing)?;
            let mark = behind.loading(key);
            black_box(&artifact);
            drop(mark);
        }
        Ok(())
    };
    let mut theirs = |round| {
        for name in &names[of(round)] {
            black_box(cacache::read_sync(&default, name)?);
        }
        Ok(())
    };
    let mut theirs_quick = |round| {
        for name in &names[of(round)] {
            black_box(cacache::read_sync(&quick, name)?);
        }
        Ok(())
    };
    let mut plain = |round| {
        for file in &files[of(round)] {
            let bytes = fs::read(file)?;
            black_box(blake3::hash(&bytes));
        }
        Ok(())
    };
    let mut ways: [Way<'_>; 6] = [
        ("grainstore: a verified group", &mut ours),
        ("grainstore: as the runtime gets it", &mut by_runtime),
        ("grainstore: and watched while it is loaded", &mut watched),
        ("cacache, by key, SHA-256 (its default)", &mut theirs),
        ("cacache, by key, XXH3 (its quickest)", &mut theirs_quick),
        ("plain: read the file and hash it with BLAKE3", &mut plain),
    ];
    let times = turns::medians(ROUNDS, &mut ways)?;
    turns::print("a warm load of 64 KiB", &ways, &times, BATCH, &[1.15, 1.15]);
    Ok(())
}
