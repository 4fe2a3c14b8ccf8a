//! What tells artifacts of one name and target apart: the fields of their keys that differ.

use std::collections::HashMap;

use super::describe::Described;

/// Longer values are cut: `show` gives them whole.
const LONGEST: usize = 24;

/// For each artifact the fields in which those of its namespace, name and target differ, as
/// `BLOCK=64,TILE=8`. Nothing for one that is alone, nor where all that differs is the toolchain.
pub(super) fn variants(artifacts: &[Described]) -> Vec<String> {
    let mut alike: HashMap<_, Vec<&Described>> = HashMap::new();
    for artifact in artifacts {
        alike.entry(called(artifact)).or_default().push(artifact);
    }
    let differing: HashMap<_, Vec<&str>> =
        alike.into_iter().map(|(called, alike)| (called, differing(&alike))).collect();
    artifacts.iter().map(|artifact| variant(artifact, &differing[&called(artifact)])).collect()
}

/// What is listed beside the variant.
fn called(artifact: &Described) -> [Option<&str>; 3] {
    let Described { namespace, name, target, .. } = artifact;
    [Some(namespace), Some(name), target.as_deref()]
}

/// The names of the fields that not all of them have with the same value, in their keys' order.
fn differing<'d>(alike: &[&'d Described]) -> Vec<&'d str> {
    let mut names = Vec::new();
    for (name, _) in alike.iter().flat_map(|artifact| &artifact.in_order) {
        let values = || alike.iter().map(|artifact| artifact.fields.get(name));
        let differs = || values().zip(values().skip(1)).any(|(one, next)| one != next);
        // The toolchain has a column of its own.
        if name != "toolchain" && !names.contains(&name.as_str()) && differs() {
            names.push(name.as_str());
        }
    }
    names
}

fn variant(artifact: &Described, differing: &[&str]) -> String {
    let parts = differing.iter().filter_map(|name| {
        let value = artifact.fields.get(*name)?;
        Some(format!("{}={}", bare(name), brief(value)))
    });
    parts.collect::<Vec<_>>().join(",")
}

/// A define or constant is known by its own name.
fn bare(name: &str) -> &str {
    ["define ", "constant "].iter().find_map(|kind| name.strip_prefix(kind)).unwrap_or(name)
}

/// The identity of a source or header by the first digits of its digest, what else is long by its
/// beginning.
fn brief(value: &str) -> String {
    if let Some((_, digest)) = value.split_once(", BLAKE3 ") {
        return digest.chars().take(8).collect();
    }
    match value.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    fn artifact(name: &str, fields: &[(&str, &str)]) -> Described {
        let in_order: Vec<_> =
            fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let field = |name: &str| in_order.iter().find(|it| it.0 == name).map(|it| it.1.clone());
        Described {
            fingerprint: String::new(),
            namespace: "kernel".into(),
            name: name.into(),
            target: field("target"),
            toolchain: field("toolchain"),
            bytes: 0,
            disk_bytes: 0,
            used: 0,
            compile_ms: None,
            path: String::new(),
            fields: in_order.iter().cloned().collect(),
            in_order,
            used_at: SystemTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn fields_that_differ_tell_variants_apart_and_those_that_do_not_are_left_out() {
        let kernel = |block, tile: &[(&'static str, &'static str)]| {
            let fields = [("target", "t"), ("define BLOCK", block), ("define FAST", "1")];
            artifact("k", &[&fields, tile].concat())
        };
        let listed = [
            kernel("64", &[]),
            artifact("other", &[("target", "t"), ("define BLOCK", "1")]),
            kernel("128", &[("constant TILE", "8")]),
            kernel("128", &[("constant TILE", "16")]),
        ];
        assert_eq!(variants(&listed), ["BLOCK=64", "", "BLOCK=128,TILE=8", "BLOCK=128,TILE=16"]);
    }

    #[test]
    fn another_target_or_toolchain_has_its_own_column() {
        let kernel = |target, toolchain| {
            artifact("k", &[("target", target), ("toolchain", toolchain), ("define N", target)])
        };
        let listed = [kernel("a", "x"), kernel("a", "y"), kernel("b", "x")];
        assert_eq!(variants(&listed), ["", "", ""]);
    }

    #[test]
    fn contents_and_long_values_are_cut() {
        let kernel = |digest, options| {
            let source = format!("26 bytes, BLAKE3 {digest}");
            artifact("k", &[("source", &source), ("options", options)])
        };
        let long = "[\"-O3\", \"-ffast-math\", \"-g\"]";
        let listed = [kernel("0123456789", long), kernel("9876543210", "[]")];
        let expected = [
            "source=01234567,options=[\"-O3\", \"-ffast-math\", \"…",
            "source=98765432,options=[]",
        ];
        assert_eq!(variants(&listed), expected);
    }
}
