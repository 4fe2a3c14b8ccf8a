//! Defines that are lists, expanded: one variant for each combination of their values.

use super::raw::RawDefine;

/// One combination of a kernel's defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variant {
    /// The values that were chosen from lists, as `BLOCK=64,TILE=8`; empty where none is a list.
    pub(crate) label: String,
    /// Every define of the kernel with its value here, sorted by name.
    pub(crate) defines: Vec<(String, String)>,
}

/// The most variants that one kernel may have: beyond it, a list was surely meant otherwise.
pub(super) const MOST: usize = 65_536;

/// How many variants these defines make, unless they are more than [`MOST`].
pub(super) fn count(defines: &[(String, RawDefine)]) -> Option<usize> {
    defines
        .iter()
        .map(|(_, values)| if let RawDefine::Each(values) = values { values.len() } else { 1 })
        .try_fold(1_usize, usize::checked_mul)
        .filter(|count| *count <= MOST)
}

/// All variants. The first define (they are sorted by name) varies slowest, values keep the order
/// written: so labels and their order depend on the manifest's content alone.
pub(super) fn expand(defines: Vec<(String, RawDefine)>) -> Vec<Variant> {
    let mut variants = vec![Variant { label: String::new(), defines: Vec::new() }];
    for (name, values) in defines {
        let (values, listed) = match values {
            RawDefine::One(value) => (vec![value], false),
            RawDefine::Each(values) => (values, true),
        };
        variants = variants
            .into_iter()
            .flat_map(|variant| values.iter().map(move |value| (variant.clone(), value)))
            .map(|(mut variant, value)| {
                if listed {
                    let comma = if variant.label.is_empty() { "" } else { "," };
                    variant.label.push_str(&format!("{comma}{name}={value}"));
                }
                variant.defines.push((name.clone(), value.clone()));
                variant
            })
            .collect();
    }
    variants
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(name: &str, values: &[&str]) -> (String, RawDefine) {
        (name.into(), RawDefine::Each(values.iter().map(ToString::to_string).collect()))
    }

    #[test]
    fn every_combination_is_there_once_in_a_stable_order() {
        let one = ("EPS".to_owned(), RawDefine::One("1e-5".to_owned()));
        let variants = expand(vec![list("BLOCK", &["64", "128"]), one, list("TILE", &["8", "4"])]);
        let labels: Vec<_> = variants.iter().map(|variant| variant.label.as_str()).collect();
        assert_eq!(
            labels,
            ["BLOCK=64,TILE=8", "BLOCK=64,TILE=4", "BLOCK=128,TILE=8", "BLOCK=128,TILE=4"]
        );
        let defines = [("BLOCK", "64"), ("EPS", "1e-5"), ("TILE", "4")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(variants[1].defines, defines);
    }

    #[test]
    fn no_list_makes_one_variant_without_a_label() {
        let variants = expand(vec![("N".to_owned(), RawDefine::One("1".to_owned()))]);
        assert_eq!(variants.len(), 1);
        assert_eq!(variants[0].label, "");
    }

    #[test]
    fn a_product_beyond_the_bound_is_refused_before_it_is_made() {
        let values: Vec<String> = (0..300).map(|value| value.to_string()).collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        assert_eq!(count(&[list("A", &values)]), Some(300));
        assert_eq!(count(&[list("A", &values), list("B", &values)]), None);
        let many: Vec<_> = (0..64).map(|name| list(&format!("D{name}"), &["1", "2"])).collect();
        assert_eq!(count(&many), None);
    }
}
