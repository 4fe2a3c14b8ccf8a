//! Defines for compilers of C's family that are called as a library.

use crate::KernelSpec;

/// The source with its defines in front, and its own lines counted from 1 all the same, in a file of
/// this name.
///
/// In front, since each compiler reads quotes and spaces in options in its own way, and some take
/// options to come before headers of their own, which a define would break.
#[must_use]
pub fn with_defines(spec: &KernelSpec, file: &str) -> Vec<u8> {
    let mut text = String::new();
    for (name, value) in spec.defines() {
        text.push_str(&format!("#define {name} {value}\n"));
    }
    text.push_str(&format!("#line 1 \"{file}\"\n"));
    let mut text = text.into_bytes();
    text.extend_from_slice(spec.source());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Language;

    #[test]
    fn defines_come_first_and_lines_stay() {
        let spec = KernelSpec::builder("k", Language::OpenClC).source("kernel void k() {}");
        let spec = spec.define("A", "1").define("B", "x y").build().unwrap();
        let text = String::from_utf8(with_defines(&spec, "k.cl")).unwrap();
        assert_eq!(text, "#define A 1\n#define B x y\n#line 1 \"k.cl\"\nkernel void k() {}");
    }
}
