//! Keys as their users see them: K1 to K6. What is inside (the encoding byte by byte, the search for
//! overlaps) is tested beside the code.

use std::collections::{BTreeMap, HashSet};

use grainstore::{
    Difference, ElementType, Fingerprint, KernelKey, KernelKeyBuilder, KeyError, PlanKey,
    TensorDesc,
};
use proptest::prelude::*;

fn saxpy() -> KernelKeyBuilder {
    KernelKey::builder("saxpy")
        .target("sm_90a")
        .toolchain("nvrtc 12.9.86")
        .language("cuda-c++")
        .source("__global__ void saxpy() {}")
        .header("common.h", "#define N 1")
        .define("BLOCK", "128")
        .constant("0", "4")
        .option("--use_fast_math")
}

fn key(builder: KernelKeyBuilder) -> KernelKey {
    builder.build().unwrap()
}

fn shown(this: &KernelKey, other: &KernelKey) -> Vec<String> {
    this.differences(other).iter().map(ToString::to_string).collect()
}

/// K1: what a key is made of, as a test generates it and as it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Input {
    texts: [String; 4],
    entry: Option<String>,
    source: Vec<u8>,
    headers: BTreeMap<String, Vec<u8>>,
    defines: BTreeMap<String, String>,
    constants: BTreeMap<String, String>,
    options: Vec<String>,
}

impl Input {
    fn key(&self) -> KernelKey {
        let [name, target, toolchain, language] = &self.texts;
        let mut builder = KernelKey::builder(name)
            .target(target)
            .toolchain(toolchain)
            .language(language)
            .source(&self.source);
        if let Some(entry) = &self.entry {
            builder = builder.entry(entry);
        }
        for (name, content) in &self.headers {
            builder = builder.header(name, content);
        }
        for (name, value) in &self.defines {
            builder = builder.define(name, value);
        }
        for (name, value) in &self.constants {
            builder = builder.constant(name, value);
        }
        for option in &self.options {
            builder = builder.option(option);
        }
        key(builder)
    }
}

/// Few and short texts of characters that separators are made of: collisions, if there are any,
/// are near.
fn text() -> impl Strategy<Value = String> {
    "[a=, ]{0,2}"
}

fn input() -> impl Strategy<Value = Input> {
    let named = || prop::collection::btree_map(text(), text(), 0..3);
    (
        [text(), text(), text(), text()],
        prop::option::of(text()),
        "[a=]{0,2}",
        prop::collection::btree_map(text(), "[a=]{0,2}", 0..3),
        named(),
        named(),
        prop::collection::vec(text(), 0..3),
    )
        .prop_map(|(texts, entry, source, headers, defines, constants, options)| Input {
            texts,
            entry,
            source: source.into_bytes(),
            headers: headers.into_iter().map(|(name, text)| (name, text.into_bytes())).collect(),
            defines,
            constants,
            options,
        })
}

/// The same input with a piece of it moved somewhere near: what a careless concatenation confuses.
fn moved(input: &Input) -> Vec<Input> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Input)| {
        let mut other = input.clone();
        change(&mut other);
        all.push(other);
    };
    for i in 0..3 {
        add(&|other| {
            if let Some(last) = other.texts[i].pop() {
                other.texts[i + 1].insert(0, last);
            }
        });
        add(&|other| other.texts.swap(i, i + 1));
    }
    add(&|other| std::mem::swap(&mut other.defines, &mut other.constants));
    add(&|other| {
        other.defines = other
            .defines
            .iter()
            .map(|(name, value)| match value.split_at_checked(1) {
                Some((head, rest)) => (format!("{name}{head}"), rest.to_owned()),
                None => (name.clone(), value.clone()),
            })
            .collect();
    });
    add(&|other| {
        if let Some((name, value)) = other.defines.pop_last() {
            other.options.insert(0, format!("{name}{value}"));
        }
    });
    add(&|other| other.options = vec![other.options.concat()]);
    add(&|other| other.options = vec![other.options.join(" ")]);
    add(&|other| other.options.reverse());
    add(&|other| other.entry = Some(other.entry.take().unwrap_or_default()));
    add(&|other| {
        if let Some((name, content)) = other.headers.pop_last() {
            other.source.extend(name.into_bytes());
            other.source.extend(content);
        }
    });
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn k1_keys_are_equal_exactly_where_their_inputs_are(a in input(), b in input()) {
        let mut others = moved(&a);
        others.extend([a.clone(), b]);
        let this = a.key();
        for other in others {
            let equal = a == other;
            let that = other.key();
            prop_assert_eq!(this == that, equal, "{:?}", &other);
            prop_assert_eq!(this.fingerprint() == that.fingerprint(), equal, "{:?}", &other);
            prop_assert_eq!(this.differences(&that).is_empty(), equal, "{:?}", &other);
        }
    }

    #[test]
    fn k1_the_order_of_named_things_does_not_matter(
        names in prop::collection::hash_set("[a-c]{1,2}", 1..6)
    ) {
        let names: Vec<_> = names.into_iter().collect();
        let build = |names: &mut dyn Iterator<Item = &String>| {
            key(names.fold(saxpy(), |builder, name| {
                builder.define(name, name).constant(name, "1").header(name, name)
            }))
        };
        prop_assert_eq!(build(&mut names.iter()), build(&mut names.iter().rev()));
    }

    #[test]
    fn k1_plan_keys_are_equal_exactly_where_their_inputs_are(
        a in plan_input(), b in plan_input()
    ) {
        prop_assert_eq!(plan(&a) == plan(&b), a == b);
        prop_assert_eq!(plan(&a).differences(&plan(&b)).is_empty(), a == b);
        prop_assert_eq!(plan(&a), plan(&a.clone()));
    }

    #[test]
    fn k5_fingerprints_survive_being_written_and_read(bytes: [u8; 32]) {
        let fingerprint = Fingerprint::from_bytes(bytes);
        prop_assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        prop_assert_eq!(format!("{fingerprint:x}"), fingerprint.to_string());
        prop_assert_eq!(fingerprint.as_bytes(), &bytes);
    }
}

#[test]
fn k1_each_field_changes_the_key() {
    let variants = [
        saxpy(),
        saxpy().entry("saxpy"),
        saxpy().target("sm_90"),
        saxpy().toolchain("nvrtc 12.9.87"),
        saxpy().language("c"),
        saxpy().source("__global__ void saxpy() { }"),
        saxpy().header("other.h", "#define N 1"),
        saxpy().define("DEBUG", ""),
        saxpy().constant("1", "4"),
        saxpy().option("-g"),
    ];
    let fingerprints: HashSet<_> = variants.map(|variant| key(variant).fingerprint()).into();
    assert_eq!(fingerprints.len(), 10);
}

#[test]
fn k1_a_equals_b_with_c_is_not_a_with_b_equals_c() {
    let one = key(KernelKey::builder("k").define("a=b", "c"));
    let other = key(KernelKey::builder("k").define("a", "b=c"));
    assert_ne!(one, other);
    assert_ne!(one.fingerprint(), other.fingerprint());
}

#[test]
fn k1_options_are_a_verbatim_list_in_order() {
    let key_of = |options: &[&str]| {
        key(options.iter().fold(saxpy(), |builder, option| builder.option(*option)))
    };
    let keys = [
        key_of(&["-a", "-b"]),
        key_of(&["-b", "-a"]),
        key_of(&["-a -b"]),
        key_of(&["-a", "-a", "-b"]),
        key_of(&["-a", "", "-b"]),
    ];
    assert_eq!(keys.iter().map(KernelKey::fingerprint).collect::<HashSet<_>>().len(), keys.len());
    assert_eq!(keys[0].options().collect::<Vec<_>>(), ["--use_fast_math", "-a", "-b"]);
}

#[test]
fn k1_one_name_twice_is_an_error_that_names_field_and_name() {
    for (field, name, builder) in [
        ("define", "BLOCK", saxpy().define("BLOCK", "128")),
        ("header", "common.h", saxpy().header("common.h", "")),
        ("constant", "0", saxpy().define("X", "1").constant("0", "5")),
    ] {
        let error = builder.build().unwrap_err();
        assert_eq!(error, KeyError::Duplicate { field, name: name.to_owned() });
        assert!(error.to_string().contains(&format!("{field} `{name}`")), "{error}");
    }
    let error = PlanKey::builder().scalar("n", "1").scalar("n", "2").build().unwrap_err();
    assert_eq!(error, KeyError::Duplicate { field: "scalar", name: "n".to_owned() });
}

#[test]
fn k1_fields_read_back_as_they_were_given() {
    let key = key(saxpy().entry("main").define("ARCH", "9"));
    assert_eq!(
        (key.name(), key.entry(), key.target(), key.toolchain(), key.language()),
        ("saxpy", Some("main"), "sm_90a", "nvrtc 12.9.86", "cuda-c++")
    );
    assert_eq!(key.to_string(), format!("saxpy ({})", key.fingerprint()));
    assert_eq!(key.source().length(), 26);
    assert_eq!(
        key.headers().map(|(name, content)| (name, content.length())).collect::<Vec<_>>(),
        [("common.h", 11)]
    );
    assert_eq!(key.defines().collect::<Vec<_>>(), [("ARCH", "9"), ("BLOCK", "128")]);
    assert_eq!(key.constants().collect::<Vec<_>>(), [("0", "4")]);
}

/// A plan's texts, scalars, inputs and outputs.
type PlanInput = ([String; 4], BTreeMap<String, String>, Vec<TensorDesc>, Vec<TensorDesc>);

fn plan_input() -> impl Strategy<Value = PlanInput> {
    let short = || "[a:]{0,1}";
    let tensors = || prop::collection::vec(tensor(), 0..3);
    (
        [short(), short(), short(), short()],
        prop::collection::btree_map(short(), short(), 0..2),
        tensors(),
        tensors(),
    )
}

/// Tensors that do not overlap, from a small set, so that equal ones turn up.
fn tensor() -> impl Strategy<Value = TensorDesc> {
    let element = prop::sample::select(vec![ElementType::F16, ElementType::BF16]);
    (element, prop::collection::vec(0u64..3, 0..3), any::<bool>()).prop_map(
        |(element, shape, flipped)| {
            let desc = TensorDesc::contiguous(element, &shape).unwrap();
            if !flipped {
                return desc;
            }
            let strides: Vec<_> = desc.strides().iter().map(|stride| -stride).collect();
            TensorDesc::strided(element, &shape, &strides, "flipped").unwrap()
        },
    )
}

fn plan((texts, scalars, inputs, outputs): &PlanInput) -> PlanKey {
    let [artifact, target, compiler, specialization] = texts;
    let mut builder = PlanKey::builder()
        .artifact(artifact)
        .target(target)
        .compiler(compiler)
        .specialization(specialization);
    for (name, value) in scalars {
        builder = builder.scalar(name, value);
    }
    for input in inputs {
        builder = builder.input(input.clone());
    }
    for output in outputs {
        builder = builder.output(output.clone());
    }
    builder.build().unwrap()
}

fn f32s(shape: &[u64], strides: &[i64]) -> TensorDesc {
    TensorDesc::strided(ElementType::F32, shape, strides, TensorDesc::ROW_MAJOR).unwrap()
}

#[test]
fn k2_inputs_and_outputs_are_lists_in_order() {
    let (a, b) = (f32s(&[2], &[1]), f32s(&[3], &[1]));
    let keys = [
        PlanKey::builder().input(a.clone()).input(b.clone()),
        PlanKey::builder().input(b.clone()).input(a.clone()),
        PlanKey::builder().input(a.clone()).output(b.clone()),
        PlanKey::builder().output(a.clone()).output(b.clone()),
    ]
    .map(|builder| builder.build().unwrap());
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), 4);
    assert_eq!(keys[0].inputs(), [a.clone(), b.clone()]);
    assert_eq!(keys[3].outputs(), [a, b]);
}

#[test]
fn k2_fields_read_back_as_they_were_given() {
    let plan = PlanKey::builder()
        .artifact("sha256:1f")
        .target("sm_90a")
        .compiler("nvrtc 12.9 -O3")
        .specialization("attention<64>")
        .scalar("n", "4")
        .build()
        .unwrap();
    assert_eq!((plan.artifact(), plan.target()), ("sha256:1f", "sm_90a"));
    assert_eq!((plan.compiler(), plan.specialization()), ("nvrtc 12.9 -O3", "attention<64>"));
    assert_eq!(plan.scalars().collect::<Vec<_>>(), [("n", "4")]);
    assert_eq!(plan.to_string(), format!("attention<64> ({})", plan.fingerprint()));
}

#[test]
fn k3_inputs_may_overlap_and_outputs_may_not() {
    let broadcast = f32s(&[8, 3], &[0, 1]);
    let window = f32s(&[8, 3], &[1, 1]);
    for overlapping in [broadcast, window] {
        assert!(PlanKey::builder().input(overlapping.clone()).build().is_ok());
        let error = PlanKey::builder()
            .output(f32s(&[4], &[1]))
            .output(overlapping.clone())
            .build()
            .unwrap_err();
        assert_eq!(error, KeyError::Overlap { output: 1, tensor: overlapping.to_string() });
        assert!(error.to_string().starts_with("output 1 "), "{error}");
    }
}

#[test]
fn k3_outputs_may_be_flipped_transposed_padded_interleaved_empty_and_scalar() {
    for desc in [
        f32s(&[2, 3], &[-3, 1]),
        f32s(&[2, 3], &[-3, -1]),
        f32s(&[2, 3], &[1, 2]),
        f32s(&[2, 3], &[8, 2]),
        f32s(&[2, 3], &[3, 2]),
        f32s(&[0, 3], &[0, 0]),
        f32s(&[1, 3], &[0, 1]),
        f32s(&[], &[]),
    ] {
        assert!(PlanKey::builder().output(desc.clone()).build().is_ok(), "{desc}");
    }
}

#[test]
fn k3_descriptions_differ_by_each_of_their_parts() {
    let of = |element, strides: &[i64], layout: &str| {
        TensorDesc::strided(element, &[2, 3], strides, layout).unwrap()
    };
    let block = ElementType::block("mine", 1, 4).unwrap();
    let descs = [
        of(ElementType::F32, &[3, 1], "nc"),
        of(block, &[3, 1], "nc"),
        of(ElementType::block("mine", 1, 8).unwrap(), &[3, 1], "nc"),
        of(ElementType::F32, &[1, 2], "nc"),
        of(ElementType::F32, &[3, 1], "cn"),
        TensorDesc::strided(ElementType::F32, &[3, 2], &[3, 1], "nc").unwrap(),
    ];
    let keys: HashSet<_> =
        descs.map(|desc| PlanKey::builder().input(desc).build().unwrap().fingerprint()).into();
    assert_eq!(keys.len(), 6);
}

/// K5: pinned while the encoding's version is what it is; computed by another program, from the
/// encoding's description. If this fails, every store starts afresh.
#[test]
fn k5_fingerprints_are_the_same_everywhere() {
    assert_eq!(key(saxpy()).fingerprint().to_string(), GOLDEN_KERNEL);
    let desc = TensorDesc::contiguous(ElementType::F16, &[1, 128, 4096]).unwrap();
    let plan = PlanKey::builder()
        .artifact("sha256:9f86d081")
        .target("sm_90a")
        .compiler("nvrtc 12.9 -O3")
        .specialization("attention<64>")
        .input(desc.clone())
        .output(desc)
        .build()
        .unwrap();
    assert_eq!(plan.fingerprint().to_string(), GOLDEN_PLAN);
}

const GOLDEN_KERNEL: &str = "815a503b1dbd02801af552e302a2848012ecfbc5a20b7c8fd9842d01f851262a";
const GOLDEN_PLAN: &str = "372e45de410a3bbb09bc4d2d4b2a4b139c36a392f7eeebe280f22240fd1d5c05";

#[test]
fn k6_differences_name_the_field_and_both_values() {
    let old = key(saxpy().define("OLD", "1"));
    let new = key(KernelKey::builder("saxpy")
        .target("sm_90a")
        .toolchain("nvrtc 13.0")
        .language("cuda-c++")
        .source("x")
        .header("common.h", "#define N 1")
        .define("BLOCK", "256")
        .constant("0", "4")
        .option("--use_fast_math")
        .option("-D X"));
    let digest = |text: &str| blake3::hash(text.as_bytes()).to_string();
    assert_eq!(
        shown(&old, &new),
        [
            "toolchain: nvrtc 12.9.86 -> nvrtc 13.0".to_owned(),
            format!(
                "source: 26 bytes, BLAKE3 {} -> 1 byte, BLAKE3 {}",
                digest("__global__ void saxpy() {}"),
                digest("x")
            ),
            "define BLOCK: 128 -> 256".to_owned(),
            "define OLD: 1 -> (none)".to_owned(),
            "options: --use_fast_math -> --use_fast_math \"-D X\"".to_owned(),
        ]
    );
    assert!(old.differences(&old.clone()).is_empty());
}

#[test]
fn k6_a_stored_key_is_compared_by_its_fields() {
    let key = key(saxpy());
    let mut stored: Vec<(String, String)> =
        key.fields().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
    assert!(Difference::between(stored.clone(), key.fields()).is_empty());
    let names: HashSet<_> = stored.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names.len(), stored.len(), "each name stands once");

    stored.iter_mut().find(|(name, _)| name == "target").unwrap().1 = "sm_80".to_owned();
    let differences = Difference::between(stored, key.fields());
    assert_eq!(differences.len(), 1);
    assert_eq!(differences[0].to_string(), "target: sm_80 -> sm_90a");
}

#[test]
fn k6_plans_differ_by_tensor() {
    let of = |n| PlanKey::builder().input(f32s(&[n], &[1])).build().unwrap();
    let differences = of(2).differences(&of(3));
    assert_eq!(differences.len(), 1);
    assert_eq!(
        differences[0].to_string(),
        "input 0: f32[2] strides [1] row-major -> f32[3] strides [1] row-major"
    );
}
