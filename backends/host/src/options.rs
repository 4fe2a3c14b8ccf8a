//! Which compiler options may be in a spec: those known to read no file and to write none.
//!
//! The key holds options as text. An option that names a file would let the file change while the
//! key stays the same, so the list says what is allowed, and all else is refused.

use grainstore_runtime::BackendError;

/// Options taken as they stand.
const EXACT: &[&str] = &[
    "-ansi",
    "-g",
    "-g0",
    "-g1",
    "-g2",
    "-g3",
    "-nostdinc",
    "-pedantic",
    "-pedantic-errors",
    "-pipe",
    "-pthread",
    "-s",
    "-shared",
    "-w",
];

/// Options taken with whatever follows these letters in the same word.
const PREFIXES: &[&str] = &["-D", "-O", "-U", "-W", "-f", "-gdwarf", "-ggdb", "-m", "-std="];

/// Options whose value is the next word.
const PAIRS: &[&str] = &["--param", "-D", "-U"];

/// System libraries that are linked by name alone: the loader finds them, nothing is copied in.
const LIBRARIES: &[&str] = &["-lc", "-ldl", "-lgomp", "-lm", "-lomp", "-lpthread", "-lrt"];

/// Options with an allowed beginning that read or write files all the same, or run other programs.
const REFUSED: &[&str] = &[
    "-Wa,",
    "-Wl,",
    "-Wp,",
    "-fadd-",
    "-fauto-profile",
    "-fbranch-probabilities",
    "-fcallgraph-info",
    "-fcompare-debug",
    "-fcoverage",
    "-fcrash-diagnostics",
    "-fcs-profile",
    "-fdump",
    "-fembed",
    "-finstrument-functions-exclude",
    "-fmodule",
    "-fopt-info",
    "-foptimization-record",
    "-fpass-plugin",
    "-fpch",
    "-fplugin",
    "-fprebuilt",
    "-fprofile",
    "-frecord",
    "-fsanitize-blacklist",
    "-fsanitize-ignorelist",
    "-fsave",
    "-fsplit",
    "-fstack-usage",
    "-fsyntax-only",
    "-ftest-coverage",
    "-fthinlto",
    "-ftime-trace",
    "-fuse-ld",
    "-fverbose-asm",
    "-fworking-directory",
    "-fxray",
    "-mllvm",
    "-mrecord",
    "-mmlir",
];

/// What to do instead of an option that begins like this.
const INSTEAD: &[(&str, &str)] = &[
    ("-I", HEADERS),
    ("-i", HEADERS),
    ("--include", HEADERS),
    ("--sysroot", COMPILER),
    ("-B", COMPILER),
    ("-specs", COMPILER),
    ("--specs", COMPILER),
    ("-x", "the language is that of the spec; the host takes C"),
    ("-o", OUTPUT),
    ("-c", OUTPUT),
    ("-S", OUTPUT),
    ("-E", OUTPUT),
    ("-M", OUTPUT),
    ("-fprofile", OUTPUT),
    ("-l", LINK),
    ("-L", LINK),
    ("-Wl,", LINK),
    ("-static", LINK),
    ("@", "write out the options that the file holds"),
];

const HEADERS: &str = "give the header's content with the spec (a manifest's `headers`), under the \
                       name that `#include` uses";
const COMPILER: &str = "choose another compiler, with `CC` or the builder's `compiler`";
const OUTPUT: &str = "the shared object is the only output; leave the option out";
const LINK: &str =
    "nothing but the system's own libraries can be linked; put the code into the source";

/// The options in the order the compiler wants them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options<'a> {
    /// Before the source.
    pub(crate) compile: Vec<&'a str>,
    /// Behind it: libraries resolve what stands before them.
    pub(crate) link: Vec<&'a str>,
}

/// Sorts the options of the kernel named `kernel`, or says which one is refused, and why.
/// `allowed` are those that the user of the backend vouches for.
pub(crate) fn check<'a>(
    kernel: &str,
    options: &'a [String],
    allowed: &[String],
) -> Result<Options<'a>, BackendError> {
    let mut sorted = Options { compile: Vec::new(), link: Vec::new() };
    let mut words = options.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if allowed.iter().any(|option| option == word) {
            sorted.compile.push(word);
        } else if PAIRS.contains(&word) {
            let Some(value) = words.next() else {
                return Err(BackendError::refused_option(
                    kernel,
                    word,
                    "it lacks its value, which is the next option",
                ));
            };
            sorted.compile.extend([word, value]);
        } else if LIBRARIES.contains(&word) {
            sorted.link.push(word);
        } else if takes(word) {
            sorted.compile.push(word);
        } else {
            return Err(BackendError::refused_option(kernel, word, instead(word)));
        }
    }
    Ok(sorted)
}

/// Whether some option makes code for the processor that compiles, so that the processor is part
/// of the toolchain. Those options are the answer.
pub(crate) fn for_this_processor(options: &[String]) -> Vec<&str> {
    options.iter().map(String::as_str).filter(|option| option.ends_with("=native")).collect()
}

fn takes(word: &str) -> bool {
    let begins = |list: &[&str]| list.iter().any(|prefix| word.starts_with(prefix));
    // A macro may hold anything; elsewhere a slash is a path.
    let path = word.contains(['/', '\\']) && !word.starts_with("-D");
    (EXACT.contains(&word) || begins(PREFIXES)) && !begins(REFUSED) && !path
}

fn instead(word: &str) -> &'static str {
    if !word.starts_with(['-', '@']) {
        return "a file cannot be compiled or linked in; put the code into the source";
    }
    let known = INSTEAD.iter().find(|(prefix, _)| word.starts_with(prefix));
    known.map_or(
        "it is not among those known to read and write no file; leave it out, or if you know that \
         of it, add it with the builder's `allow_option`",
        |(_, hint)| hint,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(options: &[&str], allowed: &[&str]) -> Result<(Vec<String>, Vec<String>), String> {
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        let own = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect::<Vec<_>>();
        check("k", &options, &allowed)
            .map(|sorted| (own(sorted.compile), own(sorted.link)))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn code_generation_is_free() {
        for option in [
            "-O3",
            "-Ofast",
            "-ffast-math",
            "-fopenmp",
            "-funroll-loops",
            "-ffp-contract=off",
            "-mavx2",
            "-march=x86-64-v3",
            "-march=native",
            "-Wall",
            "-std=c99",
            "-DA=b/c",
            "-UA",
            "-g",
            "-gdwarf-4",
            "-pthread",
            "-fno-math-errno",
        ] {
            assert_eq!(checked(&[option], &[]).unwrap().0, [option]);
        }
        let (compile, link) = checked(&["-lm", "-D", "A=1", "--param", "p=1"], &[]).unwrap();
        assert_eq!(compile, ["-D", "A=1", "--param", "p=1"]);
        assert_eq!(link, ["-lm"]);
    }

    #[test]
    fn what_reads_or_writes_files_is_refused_with_advice() {
        let by_name = "under the name that `#include` uses";
        for (option, advice) in [
            ("-I/usr/local/include", by_name),
            ("-I", by_name),
            ("-include", by_name),
            ("-isystem", by_name),
            ("-iquote", by_name),
            ("-idirafter", by_name),
            ("-imacros", by_name),
            ("--include=a.h", by_name),
            ("--sysroot=/x", "choose another compiler"),
            ("-B/x", "choose another compiler"),
            ("-specs=x", "choose another compiler"),
            ("-o", "the only output"),
            ("-MD", "the only output"),
            ("-save-temps", "allow_option"),
            ("-fprofile-use=x.profdata", "the only output"),
            ("-fplugin=x", "allow_option"),
            ("-fdump-tree-all", "allow_option"),
            ("-Wl,-rpath,/x", "put the code into the source"),
            ("-L/x", "put the code into the source"),
            ("-lfoo", "put the code into the source"),
            ("-l:libfoo.a", "put the code into the source"),
            ("@flags", "write out"),
            ("other.c", "put the code into the source"),
            ("/x/libfoo.a", "put the code into the source"),
            ("-fsanitize-coverage-allowlist=/x", "allow_option"),
            ("-D", "lacks its value"),
            ("--param", "lacks its value"),
            ("", "put the code into the source"),
        ] {
            let error = checked(&[option], &[]).expect_err(option);
            assert!(error.contains(&format!("the option `{option}` of kernel `k`")), "{error}");
            assert!(error.contains(advice), "{option}: {error}");
        }
    }

    #[test]
    fn the_user_may_vouch_for_an_option() {
        assert_eq!(checked(&["-fplugin=x"], &["-fplugin=x"]).unwrap().0, ["-fplugin=x"]);
        checked(&["-fplugin=y"], &["-fplugin=x"]).unwrap_err();
    }

    #[test]
    fn native_is_noticed() {
        let options = ["-O2", "-march=native", "-mtune=native", "-march=x86-64"].map(String::from);
        assert_eq!(for_this_processor(&options), ["-march=native", "-mtune=native"]);
    }
}
