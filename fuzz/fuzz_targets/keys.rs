//! Two keys of any fields: equal fields are one key, and different ones are two, with two
//! fingerprints and a difference to show.
#![no_main]

use arbitrary::Arbitrary;
use grainstore::{Fingerprint, KernelKey};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Clone, Debug, PartialEq)]
struct Parts {
    name: String,
    entry: Option<String>,
    target: String,
    toolchain: String,
    language: String,
    source: Vec<u8>,
    headers: Vec<(String, Vec<u8>)>,
    defines: Vec<(String, String)>,
    constants: Vec<(String, String)>,
    options: Vec<String>,
}

impl Parts {
    fn key(&self) -> Option<KernelKey> {
        let mut builder = KernelKey::builder(&*self.name)
            .target(&*self.target)
            .toolchain(&*self.toolchain)
            .language(&*self.language)
            .source(&self.source);
        if let Some(entry) = &self.entry {
            builder = builder.entry(&**entry);
        }
        for (name, content) in &self.headers {
            builder = builder.header(&**name, content);
        }
        for (name, value) in &self.defines {
            builder = builder.define(&**name, &**value);
        }
        for (name, value) in &self.constants {
            builder = builder.constant(&**name, &**value);
        }
        for option in &self.options {
            builder = builder.option(&**option);
        }
        builder.build().ok()
    }
}

fuzz_target!(|input: (Parts, Parts, u8)| {
    let (one, mut other, same) = input;
    // Random keys differ in everything: let them differ in one thing now and then.
    match same % 8 {
        0 => other = one.clone(),
        1 => other = Parts { defines: other.defines, ..one.clone() },
        2 => other = Parts { constants: other.constants, ..one.clone() },
        3 => other = Parts { options: other.options, ..one.clone() },
        4 => other = Parts { headers: other.headers, ..one.clone() },
        5 => other = Parts { entry: other.entry, ..one.clone() },
        6 => other = Parts { name: other.name, target: other.target, ..one.clone() },
        _ => {}
    }
    let (Some(first), Some(second)) = (one.key(), other.key()) else { return };
    let equal = first == second;
    assert!(equal || one != other);
    assert_eq!(equal, first.fingerprint() == second.fingerprint());
    assert_eq!(equal, first.differences(&second).is_empty());
    let text = first.fingerprint().to_string();
    assert_eq!(text.parse::<Fingerprint>().ok(), Some(first.fingerprint()));
});
