//! The environment's part in what a compiler makes.

use std::env;

use crate::Toolchain;

impl Toolchain {
    /// The same with the environment variables that steer the compiler behind it, as they are now:
    /// those that `steers` says yes to, in the order of their names.
    #[must_use]
    pub fn with_variables(self, steers: impl Fn(&str) -> bool) -> Self {
        // Nearly all steer nothing, and are not copied: a key is made for every kernel of a warm start.
        let chosen = env::vars_os().filter_map(|(name, value)| {
            let name = name.to_string_lossy();
            steers(&name).then(|| (name.into_owned(), value.to_string_lossy().into_owned()))
        });
        with(&self, chosen.collect())
    }
}

fn with(toolchain: &Toolchain, mut variables: Vec<(String, String)>) -> Toolchain {
    variables.sort();
    let mut text = toolchain.as_str().to_owned();
    for (name, value) in variables {
        text.push_str(&format!("; {name}={value}"));
    }
    Toolchain::new(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_said_in_the_order_of_their_names() {
        let variables = [("B", "2"), ("A", "x y")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        let toolchain = with(&Toolchain::new("cc 1"), variables.into());
        assert_eq!(toolchain.as_str(), "cc 1; A=x y; B=2");
    }

    #[test]
    fn those_that_steer_nothing_are_left_out() {
        let plain = Toolchain::new("cc 1");
        assert_eq!(plain.clone().with_variables(|_| false), plain);
        let text = plain.with_variables(|name| name == "PATH").as_str().to_owned();
        assert!(text.starts_with("cc 1; PATH="), "{text}");
    }
}
