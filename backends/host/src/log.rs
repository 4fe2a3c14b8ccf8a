//! Makes a compiler's log fit to be read, and the same from run to run.

use std::path::{MAIN_SEPARATOR, Path};

use crate::compile::{HEADERS, SOURCE_FILE};

/// Stands for the folder until its files have been renamed. No log holds this byte otherwise.
const TEMPORARY: &str = "\u{1}";

/// The log with the names of our files taken out: the source goes by the kernel's name, headers by
/// theirs, and temporary objects of the compiler by `name.o`.
pub(crate) fn readable(log: &[u8], folder: &Path, kernel: &str) -> String {
    let mut text = String::from_utf8_lossy(log).into_owned();
    let real = folder.canonicalize().ok();
    for folder in [Some(folder), real.as_deref()].into_iter().flatten() {
        text = text.replace(&format!("{}{MAIN_SEPARATOR}", folder.display()), TEMPORARY);
    }
    let text =
        text.replace(&format!("{HEADERS}/"), "").replace(SOURCE_FILE, &format!("{kernel}.c"));
    objects_by_name(&text, kernel)
}

/// Gives the compiler's temporary files, such as gcc's `ccOu8QFL.o` and clang's
/// `grainstore-kernel-b48c7a.o`, the kernel's name.
fn objects_by_name(text: &str, kernel: &str) -> String {
    let mut parts = text.split(TEMPORARY);
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let in_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        let end = part.find(|c| !in_name(c)).unwrap_or(part.len());
        let (stem, rest) = part.split_at(end);
        let temporary = stem.starts_with("cc") || stem.starts_with("grainstore-");
        result.push_str(if temporary && rest.starts_with('.') { kernel } else { stem });
        result.push_str(rest);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_out() {
        let log = format!(
            "{SOURCE_FILE}:3:5: error: no\nIn file included from {SOURCE_FILE}:1:\n\
             {HEADERS}/common.h:2: note\n/usr/bin/ld: /tmp/grainstore-Xy/ccOu8QFL.o: in function `f':\n\
             ld: /tmp/grainstore-Xy/grainstore-kernel-b48c7a.o: in function `g'\n"
        );
        assert_eq!(
            readable(log.as_bytes(), Path::new("/tmp/grainstore-Xy"), "saxpy"),
            "saxpy.c:3:5: error: no\nIn file included from saxpy.c:1:\n\
             common.h:2: note\n/usr/bin/ld: saxpy.o: in function `f':\n\
             ld: saxpy.o: in function `g'\n"
        );
    }
}
