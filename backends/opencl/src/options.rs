//! Which build options may be in a spec: those known to read no file.
//!
//! The key holds options as text. An option that names a file would let the file change while the
//! key stays the same, so the list says what is allowed, and all else is refused.

use std::ffi::CString;

use grainstore_runtime::BackendError;

/// Options taken as they stand.
const EXACT: [&str; 3] = ["-g", "-w", "-Werror"];

/// Options taken with whatever follows these letters in the same word: OpenCL's own and the
/// vendors' (`-cl-nv-maxrregcount=32`), macros, and the optimization levels of some drivers.
const PREFIXES: [&str; 4] = ["-D", "-O", "-U", "-cl-"];

/// Options whose value is the next word.
const PAIRS: [&str; 2] = ["-D", "-U"];

const HEADERS: &str = "give the header's content with the spec (a manifest's `headers`), under the \
                       name that `#include` uses";

/// The options as one text, as the driver wants them, or which one is refused, and why. `allowed`
/// are those that the user of the backend vouches for.
pub(crate) fn check(
    kernel: &str,
    options: &[String],
    allowed: &[String],
) -> Result<CString, BackendError> {
    let mut words = options.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if PAIRS.contains(&word) {
            let Some(value) = words.next() else {
                return Err(BackendError::refused_option(
                    kernel,
                    word,
                    "it lacks its value, which is the next option",
                ));
            };
            check_word(kernel, value)?;
            continue;
        }
        check_word(kernel, word)?;
        let known = EXACT.contains(&word) || PREFIXES.iter().any(|prefix| word.starts_with(prefix));
        if !known && !allowed.iter().any(|option| option == word) {
            return Err(BackendError::refused_option(kernel, word, instead(word)));
        }
    }
    CString::new(options.join(" ")).map_err(|_| {
        BackendError::refused_option(
            kernel,
            "with a NUL",
            "options are text without NUL characters",
        )
    })
}

/// Drivers split the text at spaces and read quotes in their own ways, so a word with either could
/// be several options, and one that was not looked at.
fn check_word(kernel: &str, word: &str) -> Result<(), BackendError> {
    if word.is_empty() || word.contains(|c: char| c.is_whitespace() || "\"'\\".contains(c)) {
        let hint = "give each option as one of its own, and a macro whose value holds spaces or \
                    quotes as a define";
        return Err(BackendError::refused_option(kernel, word, hint));
    }
    Ok(())
}

fn instead(word: &str) -> &'static str {
    if word.starts_with("-I") || word.starts_with("-i") {
        HEADERS
    } else if word.starts_with("-x") {
        "the language is that of the spec; this backend takes OpenCL C"
    } else {
        "it is not among those known to read no file; leave it out, or if you know that of it, add \
         it with the builder's `allow_option`"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(options: &[&str], allowed: &[&str]) -> Result<String, String> {
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        check("k", &options, &allowed)
            .map(|text| text.into_string().unwrap_or_default())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn opencls_own_options_are_free() {
        let options = ["-cl-fast-relaxed-math", "-cl-std=CL1.2", "-D", "A=1", "-DB", "-w", "-O3"];
        assert_eq!(checked(&options, &[]).unwrap(), options.join(" "));
        assert_eq!(checked(&[], &[]).unwrap(), "");
    }

    #[test]
    fn what_reads_files_is_refused_with_advice() {
        for (option, advice) in [
            ("-I", "under the name that `#include` uses"),
            ("-I/usr/include", "under the name that `#include` uses"),
            ("-include", "under the name that `#include` uses"),
            ("-x", "takes OpenCL C"),
            ("-fplugin=x", "allow_option"),
            ("saxpy.cl", "allow_option"),
            ("-cl-mad-enable -I/x", "one of its own"),
            ("-DA=\"-I/x\"", "as a define"),
            ("", "one of its own"),
            ("-D", "lacks its value"),
        ] {
            let error = checked(&[option], &[]).expect_err(option);
            assert!(error.contains(&format!("the option `{option}` of kernel `k`")), "{error}");
            assert!(error.contains(advice), "{option}: {error}");
        }
    }

    #[test]
    fn the_user_may_vouch_for_an_option() {
        assert_eq!(checked(&["-fno-x"], &["-fno-x"]).unwrap(), "-fno-x");
        checked(&["-fno-y"], &["-fno-x"]).unwrap_err();
    }
}
