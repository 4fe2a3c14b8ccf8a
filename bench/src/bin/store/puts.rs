//! A put, of keys that are there and of new ones. Nobody syncs.

use std::fs;
use std::path::Path;

use grainstore_artifacts::{ArtifactStore, encode};

use crate::turns::{self, APART, Way};
use crate::{Result, bytes, group, key};

const BATCH: usize = 25;
const ROUNDS: usize = 120;

pub(crate) fn run(folder: &Path) -> Result {
    one(&folder.join("again"), "a put of 64 KiB over one that is there", |_, at| at)?;
    one(&folder.join("new"), "a put of 64 KiB under a new key", |round, at| round * BATCH + at)
}

fn one(folder: &Path, title: &str, number: impl Fn(usize, usize) -> usize) -> Result {
    let store = ArtifactStore::open(folder.join("store"))?;
    let [quick, default, plain] = ["xxh3", "sha256", "plain"].map(|name| folder.join(name));
    // As deep as the store's, so that no side has the smaller folders.
    for part in 0..=u8::MAX {
        fs::create_dir_all(plain.join(format!("{part:02x}")))?;
    }
    let groups: Vec<_> = (0..BATCH).map(group).collect();
    let contents: Vec<_> = (0..BATCH).map(bytes).collect();
    // What the store writes, the same length and all.
    let mut files = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        files.push(encode(&key(at)?, group)?);
    }
    // Made beforehand: a key costs what it costs on all sides.
    let mut keys = Vec::new();
    let mut names = Vec::new();
    for round in 0..ROUNDS + 3 * APART {
        let made = (0..BATCH).map(|at| key(number(round, at))).collect::<Result<Vec<_>>>()?;
        names.push(made.iter().map(|key| key.fingerprint().to_string()).collect::<Vec<_>>());
        keys.push(made);
    }

    let mut ours = |round: usize| {
        for (key, group) in keys[round].iter().zip(&groups) {
            store.put(key, group)?;
        }
        Ok(())
    };
    let mut theirs = |round: usize| {
        for (name, content) in names[round].iter().zip(&contents) {
            cacache::write_sync(&default, name, content)?;
        }
        Ok(())
    };
    let mut theirs_quick = |round: usize| {
        for (name, content) in names[round].iter().zip(&contents) {
            cacache::write_sync_with_algo(cacache::Algorithm::Xxh3, &quick, name, content)?;
        }
        Ok(())
    };
    let mut by_hand = |round: usize| {
        for (name, file) in names[round].iter().zip(&files) {
            let unfinished = plain.join(name);
            fs::write(&unfinished, file)?;
            fs::rename(unfinished, plain.join(&name[..2]).join(name))?;
        }
        Ok(())
    };
    let mut ways: [Way<'_>; 4] = [
        ("grainstore", &mut ours),
        ("cacache, SHA-256 (its default)", &mut theirs),
        ("cacache, XXH3 (its quickest)", &mut theirs_quick),
        ("plain: write and rename of the same bytes", &mut by_hand),
    ];
    let times = turns::medians(ROUNDS, &mut ways)?;
    turns::print(title, &ways, &times, BATCH, &[1.5]);
    Ok(())
}
