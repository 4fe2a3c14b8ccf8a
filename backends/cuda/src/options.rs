//! Which of NVRTC's options may be in a spec: those known to read and write no file.
//!
//! The key holds options as text. An option that names a file would let the file change while the
//! key stays the same, so the list says what is allowed, and all else is refused.

use grainstore_runtime::BackendError;

/// Options by their long names, and the short ones that NVRTC also takes. A value stands behind `=`,
/// or is the next option where the list says so.
const FLAGS: [&[&str]; 29] = [
    &["--device-debug", "-G"],
    &["--generate-line-info", "-lineinfo"],
    &["--dopt", "-dopt"],
    &["--ftz", "-ftz"],
    &["--prec-sqrt", "-prec-sqrt"],
    &["--prec-div", "-prec-div"],
    &["--fmad", "-fmad"],
    &["--use_fast_math", "-use_fast_math"],
    &["--extra-device-vectorization", "-extra-device-vectorization"],
    &["--modify-stack-limit", "-modify-stack-limit"],
    &["--device-stack-protector", "-device-stack-protector"],
    &["--restrict", "-restrict"],
    &["--device-as-default-execution-space", "-default-device"],
    &["--device-int128", "-device-int128"],
    &["--device-float128", "-device-float128"],
    &["--builtin-move-forward", "-builtin-move-forward"],
    &["--builtin-initializer-list", "-builtin-initializer-list"],
    &["--disable-warnings", "-w"],
    &["--display-error-number", "-err-no"],
    &["--no-display-error-number", "-no-err-no"],
    &["--brief-diagnostics", "-brief-diag"],
    &["--version-ident", "-dQ"],
    &["--minimal", "-minimal"],
    &["--no-cache", "-no-cache"],
    &["--no-source-include", "-no-source-include"],
    &["--Ofast-compile", "-Ofc"],
    &["--split-compile", "-split-compile"],
    &["--jump-table-density", "-jtd"],
    &["--warning-as-error", "-Werror"],
];

/// Options that have a value, which may be the next option.
const VALUES: [&[&str]; 11] = [
    &["--define-macro", "-D"],
    &["--undefine-macro", "-U"],
    &["--std", "-std"],
    &["--maxrregcount", "-maxrregcount"],
    &["--ptxas-options", "-Xptxas"],
    &["--diag-error", "-diag-error"],
    &["--diag-suppress", "-diag-suppress"],
    &["--diag-warn", "-diag-warn"],
    &["--optimization-info", "-opt-info"],
    &["--frandom-seed", "-frandom-seed"],
    &["--fmax-errors", "-fmax-errors"],
];

/// Short options whose value may stand right behind them.
const JOINED: [&str; 2] = ["-D", "-U"];

/// What to do instead of the options that are refused for a reason.
const INSTEAD: [(&[&str], &str); 6] = [
    (
        &["--include-path", "-I", "--pre-include", "-include", "--use-bundled-headers"],
        "give the header's content with the spec (a manifest's `headers`), under the name that \
         `#include` uses",
    ),
    (
        &["--gpu-architecture", "-arch"],
        "the target says it: that of the device, or of `warm --target sm_90`; the backend's builder \
         has `features` for `sm_90a` and `code` for PTX",
    ),
    (
        &["--pch", "-pch", "--create-pch", "-create-pch", "--use-pch", "-use-pch", "--pch-dir"],
        "a precompiled header is a file outside the key; leave it out, what is compiled is kept \
         anyway",
    ),
    (
        &[
            "--relocatable-device-code",
            "-rdc",
            "--device-c",
            "-dc",
            "--device-w",
            "-dw",
            "--extensible-whole-program",
            "-ewp",
            "--dlink-time-opt",
            "-dlto",
            "--gen-opt-lto",
            "--optix-ir",
            "--emit-llvm-bc",
            "--fdevice-syntax-only",
            "-fdevice-syntax-only",
        ],
        "a module is a whole program that the driver can load; leave it out",
    ),
    (
        &["--time", "-time", "--device-time-trace", "-fdevice-time-trace", "--fdevice-time-trace"],
        "it writes a file; the cache's statistics and events tell compile times",
    ),
    (
        &["-x", "--x", "--m32", "-m32"],
        "the language and the word size are not chosen here; leave it out",
    ),
];

/// Checks all of a spec's options. `allowed` are those that the user of the backend vouches for.
pub(crate) fn check(
    kernel: &str,
    options: &[String],
    allowed: &[String],
) -> Result<(), BackendError> {
    let mut words = options.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if allowed.iter().any(|option| option == word) {
            continue;
        }
        let (name, value) = word.split_once('=').map_or((word, None), |(n, v)| (n, Some(v)));
        if among(&FLAGS, name) {
            continue;
        }
        if among(&VALUES, name) {
            let value = match value {
                Some(value) => value,
                // What looks like an option would be one, and unseen.
                None => words
                    .next()
                    .filter(|next| is_assembler(name) || !next.starts_with('-'))
                    .ok_or_else(|| {
                        BackendError::refused_option(
                            kernel,
                            word,
                            "it lacks its value, which is the next option",
                        )
                    })?,
            };
            check_value(kernel, name, value)?;
            continue;
        }
        if JOINED.iter().any(|short| word.starts_with(short)) {
            continue;
        }
        return Err(BackendError::refused_option(kernel, word, instead(name)));
    }
    Ok(())
}

/// The assembler has an option of its own that reads a file of further options.
fn check_value(kernel: &str, name: &str, value: &str) -> Result<(), BackendError> {
    let assembler = is_assembler(name);
    if assembler && (value.contains("options-file") || value.contains("-optf")) {
        return Err(BackendError::refused_option(
            kernel,
            value,
            "it reads a file; write the options themselves",
        ));
    }
    if assembler && (value.contains("gpu-name") || value.contains("-arch")) {
        return Err(BackendError::refused_option(kernel, value, INSTEAD[1].1));
    }
    Ok(())
}

fn is_assembler(name: &str) -> bool {
    matches!(name, "--ptxas-options" | "-Xptxas")
}

fn among(list: &[&[&str]], name: &str) -> bool {
    list.iter().any(|names| names.contains(&name))
}

fn instead(name: &str) -> &'static str {
    let known = INSTEAD.iter().find(|(names, _)| names.contains(&name));
    // The value of `-I` may stand right behind it.
    let known = known.or_else(|| INSTEAD.first().filter(|_| name.starts_with("-I")));
    known.map_or(
        "it is not among those known to read no file; leave it out, or if you know that of it, add \
         it with the builder's `allow_option`",
        |(_, hint)| hint,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(options: &[&str], allowed: &[&str]) -> Result<(), String> {
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        check("k", &options, &allowed).map_err(|error| error.to_string())
    }

    #[test]
    fn options_about_the_code_are_free() {
        let options = [
            "--use_fast_math",
            "-lineinfo",
            "--fmad=false",
            "-D",
            "A=1",
            "-DB",
            "--std=c++17",
            "-std",
            "c++20",
            "--maxrregcount=64",
            "-Xptxas",
            "-O3",
            "--ptxas-options=-v",
            "-UX",
            "-w",
        ];
        checked(&options, &[]).unwrap();
        checked(&[], &[]).unwrap();
    }

    #[test]
    fn what_reads_or_writes_files_is_refused_with_advice() {
        for (option, advice) in [
            ("-I", "under the name that `#include` uses"),
            ("-I/usr/include", "under the name that `#include` uses"),
            ("--include-path=/usr/include", "under the name that `#include` uses"),
            ("--pre-include=x.h", "under the name that `#include` uses"),
            ("-include", "under the name that `#include` uses"),
            ("--gpu-architecture=sm_80", "--target sm_90"),
            ("-arch=sm_80", "--target sm_90"),
            ("-pch", "precompiled"),
            ("--pch-dir=/tmp", "precompiled"),
            ("-rdc=true", "whole program"),
            ("-dlto", "whole program"),
            ("--time=x.csv", "writes a file"),
            ("--ptxas-options=--options-file=x", "write the options themselves"),
            ("--ptxas-options=-arch=sm_80", "--target sm_90"),
            ("-fplugin=x", "allow_option"),
            ("saxpy.cu", "allow_option"),
            ("", "allow_option"),
            ("-D", "lacks its value"),
        ] {
            let error = checked(&[option], &[]).expect_err(option);
            assert!(error.contains("of kernel `k` is refused"), "{error}");
            assert!(error.contains(advice), "{option}: {error}");
        }
        checked(&["-D", "-I"], &[]).unwrap_err();
        checked(&["-D", "A", "-I"], &[]).unwrap_err();
    }

    #[test]
    fn the_user_may_vouch_for_an_option() {
        checked(&["-fno-x"], &["-fno-x"]).unwrap();
        checked(&["-fno-y"], &["-fno-x"]).unwrap_err();
    }
}
