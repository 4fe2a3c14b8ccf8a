//! A2, A3, A4 and A7 together: processes that do everything at once on one folder, and are killed at
//! random instants, over and over. Then everything is verified.
//!
//! It runs for some seconds, or as many as `GRAINSTORE_TORTURE_SECONDS` says; `cargo xtask torture`
//! sets that, and shows the table.
//!
//! There are three kinds of artifacts. *Kept* ones are put once before the first kill, then replaced
//! and read all the time, so no bound may take them: whoever misses one has found a lost artifact.
//! *Churned* ones are made under leases, made to look old, pruned, cut and flipped. Those of a
//! *namespace* are purged. Each artifact's bytes tell whose they are and are all of one writer, so a
//! wrong answer is one that is not so.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't set its scene should fail"
)]

mod common;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use grainstore::KernelKey;
use grainstore_artifacts::{
    ArtifactStore, EntryKey, Fault, ForeignKey, Found, Group, LookUp, Options, encode, parse,
};

use common::key;

const FOLDER: &str = "GRAINSTORE_TEST_FOLDER";
const SEED: &str = "GRAINSTORE_TEST_SEED";
const SECONDS: &str = "GRAINSTORE_TORTURE_SECONDS";
const PROCESSES: usize = 4;
const KEPT: u64 = 40;
const CHURNED: u64 = 300;
const PURGED: u64 = 50;
const LENGTH: usize = 8 << 10;
/// Room for all of them, but not for what the estimate makes of them: so puts prune now and then.
const LIMIT: u64 = 6 << 20;
/// Room for what is kept and some of the rest.
const PRUNE_TO: u64 = 2 << 20;

/// What was done, in the order of the lines that a child prints.
const COUNTED: [&str; 8] =
    ["reads", "writes", "prunes", "purges", "leases", "faults", "wrong answers", "lost artifacts"];
const WRONG: usize = 6;
const LOST: usize = 7;

/// Xorshift: a seed makes a child's choices again.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn kept(number: u64) -> KernelKey {
    key(number as usize)
}

fn churned(number: u64) -> KernelKey {
    key(1000 + number as usize)
}

fn purged(number: u64) -> ForeignKey {
    ForeignKey::new("torture", number.to_le_bytes()).unwrap()
}

/// Bytes that say whose they are, and are all of one writer.
fn group(key: &impl EntryKey, writer: u8) -> Group {
    let mut bytes = vec![writer; LENGTH];
    bytes[..32].copy_from_slice(key.fingerprint().as_bytes());
    Group::new("kernel", bytes)
}

fn is_right(key: &impl EntryKey, group: &Group) -> bool {
    let bytes = group.binary();
    bytes.len() == LENGTH
        && bytes[..32] == *key.fingerprint().as_bytes()
        && bytes[32..].iter().all(|byte| *byte == bytes[32])
}

fn open(folder: &Path) -> ArtifactStore {
    Options::new().limit(LIMIT).open(folder).unwrap()
}

struct Tortured {
    store: ArtifactStore,
    random: Random,
    counts: [u64; COUNTED.len()],
}

impl Tortured {
    fn count(&mut self, what: &str) {
        let at = COUNTED.iter().position(|name| *name == what).unwrap();
        self.counts[at] += 1;
    }

    fn check(&mut self, key: &impl EntryKey, group: &Group) {
        if !is_right(key, group) {
            self.counts[WRONG] += 1;
        }
    }

    fn writer(&mut self) -> u8 {
        self.random.below(256) as u8
    }

    fn step(&mut self, folder: &Path) {
        let writer = self.writer();
        match self.random.below(100) {
            0..35 => {
                let key = kept(self.random.below(KEPT));
                self.count("reads");
                match self.store.find(&key).unwrap() {
                    Found::Group(found) => self.check(&key, &found),
                    _ => self.counts[LOST] += 1,
                }
            }
            35..50 => {
                let key = kept(self.random.below(KEPT));
                self.store.put(&key, &group(&key, writer)).unwrap();
                self.count("writes");
            }
            50..55 => {
                let key = kept(self.random.below(KEPT));
                // Gone means lost here: nobody removes these.
                match self.store.replace(&key, &group(&key, writer)).unwrap() {
                    Some(found) => self.check(&key, &found),
                    None => self.counts[LOST] += 1,
                }
                self.count("writes");
            }
            55..80 => self.lease(writer),
            80..88 => {
                let key = purged(self.random.below(PURGED));
                if let Some(found) = self.store.put_if_absent(&key, &group(&key, writer)).unwrap() {
                    self.check(&key, &found);
                }
                self.count("writes");
            }
            88..92 => {
                self.age();
                self.store.prune(PRUNE_TO).unwrap();
                self.count("prunes");
            }
            92..94 => {
                self.store.purge("torture").unwrap();
                self.count("purges");
            }
            94..98 => self.fault(),
            _ => self.store = open(folder),
        }
    }

    fn lease(&mut self, writer: u8) {
        let key = churned(self.random.below(CHURNED));
        match self.store.lookup_or_lease(&key, Duration::from_millis(20)).unwrap() {
            LookUp::Hit(found) => {
                self.count("reads");
                self.check(&key, &found);
            }
            LookUp::Lease(_lease) => {
                self.store.put(&key, &group(&key, writer)).unwrap();
                self.count("leases");
            }
        }
    }

    /// Makes what is churned look as if it had not been used for long.
    fn age(&mut self) {
        for number in 0..CHURNED {
            let hours = 2 + self.random.below(1000);
            if let Ok(file) = File::options().append(true).open(self.store.file(&churned(number))) {
                let time = SystemTime::now() - Duration::from_secs(hours * 3600);
                file.set_modified(time).unwrap();
            }
        }
    }

    /// Cuts or flips what is churned: what a broken disk would do.
    fn fault(&mut self) {
        let file = self.store.file(&churned(self.random.below(CHURNED)));
        let Ok(file) = File::options().read(true).write(true).open(file) else { return };
        let length = file.metadata().unwrap().len().max(1);
        let at = self.random.below(length);
        if self.random.below(2) == 0 {
            file.set_len(at).unwrap();
        } else {
            let mut byte = [0];
            let _ = file.read_at(&mut byte, at);
            file.write_at(&[byte[0] ^ 1 << self.random.below(8)], at).unwrap();
        }
        self.count("faults");
    }
}

#[test]
#[ignore = "the torture runs it, as a process of its own"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let seed: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    let store = open(folder);
    let mut tortured = Tortured { store, random: Random(seed), counts: [0; COUNTED.len()] };
    let mut out = std::io::stdout();
    loop {
        for _ in 0..16 {
            tortured.step(folder);
        }
        let counts = tortured.counts.map(|count| count.to_string()).join(" ");
        // Who listens has gone: so do we.
        if writeln!(out, "counts {counts}").and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

fn spawn(folder: &Path, seed: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .env(SEED, seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// One place for a process: fills it, kills it, and fills it again, until the time is over.
fn torture(folder: &Path, end: Instant, seed: u64, kills: &AtomicU64, totals: &[AtomicU64]) {
    let mut random = Random(seed);
    while Instant::now() < end {
        let mut child = spawn(folder, random.0);
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut lines = output.lines().map_while(Result::ok).filter_map(|line| {
            Some(line.split_once("counts ")?.1.split(' ').filter_map(|n| n.parse().ok()).collect())
        });
        // It has done something: from now on any instant is as good as another.
        let first: Option<Vec<u64>> = lines.next();
        thread::sleep(Duration::from_micros(random.below(20_000)));
        child.kill().unwrap();
        let last = lines.last().or(first);
        let status = child.wait().unwrap();
        assert_eq!(status.code(), None, "a process ended by itself, with seed {seed}");
        kills.fetch_add(1, Relaxed);
        for (total, count) in totals.iter().zip(last.unwrap()) {
            total.fetch_add(count, Relaxed);
        }
    }
}

/// What must be so when all is quiet again. Gives how many files were left that should not be.
fn verify(folder: &Path) -> usize {
    let store = open(folder);
    for number in 0..KEPT {
        let found = store.get(&kept(number)).unwrap();
        assert!(found.is_some_and(|found| is_right(&kept(number), &found)), "{number} was lost");
    }
    for scanned in store.files() {
        let scanned = scanned.unwrap();
        match &scanned.entry {
            Ok(entry) => {
                let bytes = entry.group().binary();
                assert_eq!(bytes[..32], *entry.fingerprint().as_bytes());
            }
            // What was cut or flipped on purpose.
            Err(Fault::Rejected(_)) => {
                let is_churned = |number| store.file(&churned(number)) == scanned.path;
                assert!((0..CHURNED).any(is_churned), "{}", scanned.path.display());
            }
            Err(other) => panic!("{other}"),
        }
    }
    // What is broken is made anew, and nothing is left of it.
    for number in 0..CHURNED {
        let key = churned(number);
        if let LookUp::Lease(lease) = store.lookup_or_lease(&key, Duration::ZERO).unwrap() {
            assert!(lease.is_exclusive(), "a dead process holds a lease");
            store.put(&key, &group(&key, 1)).unwrap();
        }
    }
    assert!(store.files().all(|scanned| scanned.unwrap().entry.is_ok()));

    // An hour later, whoever opens the store sweeps what the dead left unfinished.
    let unfinished = folder.join("v1/tmp");
    let old = SystemTime::now() - Duration::from_secs(2 * 3600);
    for file in fs::read_dir(&unfinished).unwrap() {
        File::options().append(true).open(file.unwrap().path()).unwrap().set_modified(old).unwrap();
    }
    let mut left = usize::MAX;
    loop {
        drop(open(folder));
        let now = fs::read_dir(&unfinished).unwrap().count();
        if now == 0 || now == left {
            return now;
        }
        left = now;
    }
}

/// How many of all artifacts that are cut anywhere, or have any bit flipped, are taken all the same.
fn cut_and_flipped() -> (usize, usize) {
    let key = key(0);
    let whole = encode(&key, &Group::new("kernel", vec![7; 600])).unwrap();
    let fingerprint = EntryKey::fingerprint(&key);
    let (mut tried, mut taken) = (0, 0);
    let mut try_it = |bytes: Vec<u8>| {
        tried += 1;
        taken += usize::from(parse(&bytes.into(), Some(&fingerprint)).is_ok());
    };
    for at in 0..whole.len() {
        try_it(whole[..at].to_vec());
        for bit in 0..8 {
            let mut flipped = whole.to_vec();
            flipped[at] ^= 1 << bit;
            try_it(flipped);
        }
    }
    (tried, taken)
}

#[test]
fn a7_killed_over_and_over_nothing_is_lost_and_nothing_is_wrong() {
    let seconds = std::env::var(SECONDS).ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
    eprintln!("torture for {seconds} s, seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for number in 0..KEPT {
        store.put(&kept(number), &group(&kept(number), 0)).unwrap();
    }
    let end = Instant::now() + Duration::from_secs(seconds);
    let kills = AtomicU64::new(0);
    let totals = [const { AtomicU64::new(0) }; COUNTED.len()];
    thread::scope(|scope| {
        for place in 0..PROCESSES as u64 {
            let (kills, totals, folder) = (&kills, &totals, folder.path());
            let seed = seed ^ (place + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            scope.spawn(move || torture(folder, end, seed, kills, totals));
        }
    });
    let stray = verify(folder.path());
    let (tried, taken) = cut_and_flipped();

    println!("torture  {:>10}  kills", kills.load(Relaxed));
    for (name, total) in COUNTED.iter().zip(&totals) {
        println!("torture  {:>10}  {name}", total.load(Relaxed));
    }
    println!("torture  {stray:>10}  stray files");
    println!("torture  {tried:>10}  cuts and flips");
    println!("torture  {taken:>10}  of them taken for whole");
    assert!(kills.load(Relaxed) >= PROCESSES as u64);
    assert_eq!(totals[WRONG].load(Relaxed), 0, "wrong answers, seed {seed}");
    assert_eq!(totals[LOST].load(Relaxed), 0, "lost artifacts, seed {seed}");
    assert_eq!((stray, taken), (0, 0));
}
