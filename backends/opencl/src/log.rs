//! Makes a compiler's log fit to be read, and the same from run to run.

use crate::compile::SOURCE_NAME;

/// The log with our own and the driver's file names taken out: the source goes by the kernel's
/// name, headers by theirs.
pub(crate) fn readable(log: &str, kernel: &str, headers: &[&str]) -> String {
    let log = log.replace(SOURCE_NAME, &format!("{kernel}.cl"));
    let mut result = String::with_capacity(log.len());
    let mut rest = log.as_str();
    while let Some(start) = rest.find(['/', '\\']) {
        // A path begins where the word does that the separator is in.
        let begin = rest[..start].rfind(ends_word).map_or(0, |at| at + 1);
        let begin = if rest[begin..start].ends_with(':') && start - begin == 2 {
            begin
        } else {
            rest[begin..start].rfind(':').map_or(begin, |at| begin + at + 1)
        };
        let length = rest[start..].find(|c| ends_word(c) || c == ':').unwrap_or(rest.len() - start);
        let (path, after) = rest[begin..].split_at(start + length - begin);
        result.push_str(&rest[..begin]);
        result.push_str(&short(path, kernel, headers));
        rest = after;
    }
    result.push_str(rest);
    result
}

fn ends_word(c: char) -> bool {
    c.is_whitespace() || "\"'`<>()[],;=".contains(c)
}

/// What a path is called: a header's name, the kernel's where it is a temporary file of the
/// driver, or itself.
fn short(path: &str, kernel: &str, headers: &[&str]) -> String {
    let is = |name: &&&str| {
        path.strip_suffix(**name).is_some_and(|folder| folder.ends_with(['/', '\\']))
    };
    // The longest name: `deep/a.h` rather than `a.h`.
    if let Some(name) = headers.iter().filter(is).max_by_key(|name| name.len()) {
        return (*name).to_owned();
    }
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    if file.ends_with(".cl") { format!("{kernel}.cl") } else { path.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_out() {
        let log = "error: grainstore-kernel.cl:2:7: undeclared 'y'\n\
                   error: /tmp/pocl/_UNCACHED_phDrsV/b.h:1:5: no\n\
                   error: /tmp/pocl/_UNCACHED_phDrsV/deep/a.h:1:5: no\n\
                   error: /tmp/pocl/tempfile_HekL2l.cl:1:10: 'c.h' not found (a/b)\n";
        assert_eq!(
            readable(log, "saxpy", &["a.h", "b.h", "deep/a.h"]),
            "error: saxpy.cl:2:7: undeclared 'y'\nerror: b.h:1:5: no\nerror: deep/a.h:1:5: no\n\
             error: saxpy.cl:1:10: 'c.h' not found (a/b)\n"
        );
    }

    #[test]
    fn other_logs_stay_as_they_are() {
        for log in ["", "no path", "a / b", "/", "x=1/2", "C:\\x\\y z"] {
            assert_eq!(readable(log, "k", &[]), log);
        }
    }
}
