//! Values for the `override`s of a shader.

use grainstore_runtime::{BackendError, KernelSpec};

/// The spec's constants as wgpu takes them: each a number, whatever its type in the shader.
pub(crate) fn of(spec: &KernelSpec) -> Result<Vec<(&str, f64)>, BackendError> {
    spec.constants()
        .iter()
        .map(|(name, text)| match value(text) {
            Some(value) => Ok((name.as_str(), value)),
            None => Err(BackendError::unsupported(
                format!("the constant `{name}` of kernel `{}` is `{text}`", spec.name()),
                "the value of an `override` is a finite number, `true` or `false`",
            )),
        })
        .collect()
}

fn value(text: &str) -> Option<f64> {
    match text {
        "true" => Some(1.0),
        "false" => Some(0.0),
        number => number.parse().ok().filter(|value: &f64| value.is_finite()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_flags_are_values() {
        let values = ["64", "-1.5", "1e3", "true", "false", "", "f32", "64u", "inf", "NaN"];
        let found = values.map(value);
        let [a, b, c, d, e, ..] = found;
        assert_eq!([a, b, c, d, e], [64.0, -1.5, 1000.0, 1.0, 0.0].map(Some));
        assert_eq!(found[5..], [None; 5]);
    }
}
