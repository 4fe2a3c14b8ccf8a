//! Unfinished files: named so that nobody else's has that name, removed when they fail, swept when
//! their writer died.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use super::layout::{TEMPORARY_FOLDER, folder_of};
use crate::folder::{Folder, distance};

/// How old an unfinished file must be before it is swept. Writing takes milliseconds, so its writer
/// is dead; if it is not (a suspended machine, a clock set), its rename fails, and nothing is lost
/// but one write.
const ABANDONED_AFTER: Duration = Duration::from_secs(60 * 60);
/// How many one sweep looks at, so that opening a store stays quick. The next one goes on.
const SWEEP_AT_MOST: usize = 256;

/// A file that is being written. Dropped before it is committed, it is removed.
pub(crate) struct Temporary<'a> {
    folder: &'a Folder,
    name: String,
    committed: bool,
}

impl<'a> Temporary<'a> {
    /// Writes a new unfinished file. It is closed again: what it needs now is a name.
    pub(crate) fn write(folder: &'a Folder, bytes: &[u8]) -> io::Result<Self> {
        let (temporary, mut file) = Self::create(folder)?;
        file.write_all(bytes)?;
        Ok(temporary)
    }

    fn create(folder: &'a Folder) -> io::Result<(Self, File)> {
        let mut folder_made = false;
        loop {
            let name = unique_name();
            match folder.create(&name) {
                Ok(file) => return Ok((Self { folder, name, committed: false }, file)),
                // Not ours after all: two machines of one name, say. The next name is another.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound && !folder_made => {
                    folder.make_folder(TEMPORARY_FOLDER)?;
                    folder_made = true;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Its unfinished name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Gives the file its final name, in one step.
    pub(crate) fn commit(mut self, name: &str) -> io::Result<()> {
        let renamed = match self.folder.rename(&self.name, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.folder.make_folder(folder_of(name))?;
                self.folder.rename(&self.name, name)
            }
            renamed => renamed,
        };
        self.committed = renamed.is_ok();
        renamed
    }
}

impl Temporary<'_> {
    /// Gives the file its final name, in one step, unless something has that name.
    pub(crate) fn commit_new(self, name: &str) -> io::Result<()> {
        match self.folder.link(&self.name, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.folder.make_folder(folder_of(name))?;
                self.folder.link(&self.name, name)
            }
            linked => linked,
        }
        // Dropping takes the unfinished name away.
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.committed {
            // If even this fails, a later sweep gets it.
            let _ = self.folder.remove(&self.name);
        }
    }
}

/// A name in the folder of unfinished files that no other writer has.
fn unique_name() -> String {
    format!("{TEMPORARY_FOLDER}/{}", unique())
}

/// A name that nobody else has: by host, process, a random number that each process draws
/// (containers share host names and process numbers), and a count that all threads share. A forked
/// child has its parent's random number and count, but not its process number.
pub(crate) fn unique() -> String {
    static RANDOM: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
    static HOST: LazyLock<String> = LazyLock::new(host);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}-{:016x}-{}", *HOST, std::process::id(), *RANDOM, COUNT.fetch_add(1, Relaxed))
}

/// This machine's name, or what of it a file's name can hold.
fn host() -> String {
    #[cfg(unix)]
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let name = std::env::var("COMPUTERNAME").unwrap_or_default();
    name.chars().filter(char::is_ascii_alphanumeric).take(32).collect()
}

/// Removes unfinished files whose writer is dead. Gives how many; what can't be read or removed is
/// left to the next sweep.
pub(crate) fn sweep(folder: &Folder) -> u64 {
    let Ok(files) = folder.files(TEMPORARY_FOLDER) else { return 0 };
    let now = SystemTime::now();
    let mut swept = 0;
    for file in files.take(SWEEP_AT_MOST) {
        // A time that far ahead is as wrong as one that far back: the clock was set.
        let age = distance(now, file.used);
        if age > ABANDONED_AFTER && folder.remove(&file.name).is_ok() {
            swept += 1;
        }
    }
    swept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a1_names_are_unique_to_threads_and_tell_process_and_machine() {
        let names = || std::iter::repeat_with(unique_name).take(1000).collect::<Vec<_>>();
        let mut all = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(names)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        let beginning = format!("tmp/{}-{}-", host(), std::process::id());
        assert!(all.iter().all(|name| name.starts_with(&beginning)), "{}", all[0]);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 4000);
    }

    #[test]
    fn a1_a_name_that_is_taken_is_passed_over() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path(), "v1").unwrap();
        folder.make_folder(TEMPORARY_FOLDER).unwrap();
        // Whoever has our host name, process number and luck: the next names are all theirs.
        let name = unique_name();
        let (stem, count) = name.rsplit_once('-').unwrap();
        let count: u64 = count.parse().unwrap();
        let theirs: Vec<_> = (1..=2000).map(|i| format!("{stem}-{}", count + i)).collect();
        for name in &theirs {
            folder.create(name).unwrap();
        }
        Temporary::write(&folder, b"ours").unwrap().commit("ab/ours").unwrap();
        for name in &theirs {
            assert!(std::fs::read(place.path().join("v1").join(name)).unwrap().is_empty());
        }
    }
}
