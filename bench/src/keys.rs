//! The keys that are asked for: numbers, Grainstore's own keys, and plain structs with the same
//! fields, which is what people write who have no such keys.

use std::fmt::Debug;
use std::hash::Hash;

use grainstore::{ElementType, KernelKey, PlanKey, TensorDesc};

/// What every cache here wants of a key.
pub trait Key: Hash + Eq + Clone + Debug + Send + Sync + 'static {}
impl<K: Hash + Eq + Clone + Debug + Send + Sync + 'static> Key for K {}

/// A family of keys, one for each number.
pub trait Numbered: Key {
    /// The key of this number. Asked twice, it is made twice.
    fn numbered(number: u64) -> Self;
}

impl Numbered for u64 {
    fn numbered(number: u64) -> Self {
        number
    }
}

const TARGET: &str = "sm_90a";
const TOOLCHAIN: &str = "nvrtc 12.9.86";
const LANGUAGE: &str = "cuda-c++";
const OPTION: &str = "--use_fast_math";

impl Numbered for KernelKey {
    fn numbered(number: u64) -> Self {
        let key = Self::builder(format!("attention_forward_{number}"))
            .target(TARGET)
            .toolchain(TOOLCHAIN)
            .language(LANGUAGE)
            .source(format!("__global__ void attention_forward_{number}() {{}}"))
            .header("common.h", "#define WARP 32")
            .define("BLOCK", "128")
            .option(OPTION)
            .build();
        key.unwrap_or_else(|error| panic!("a key that is well formed was refused: {error}"))
    }
}

/// The fields of a [`KernelKey`], with nothing hashed ahead. It is given the digests of its texts,
/// as the better of those who write such a struct do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlainKernel {
    name: String,
    target: String,
    toolchain: String,
    language: String,
    source: [u8; 32],
    headers: Vec<(String, [u8; 32])>,
    defines: Vec<(String, String)>,
    options: Vec<String>,
}

impl Numbered for PlainKernel {
    fn numbered(number: u64) -> Self {
        let mut source = [7; 32];
        source[..8].copy_from_slice(&number.to_le_bytes());
        Self {
            name: format!("attention_forward_{number}"),
            target: TARGET.into(),
            toolchain: TOOLCHAIN.into(),
            language: LANGUAGE.into(),
            source,
            headers: vec![("common.h".into(), [9; 32])],
            defines: vec![("BLOCK".into(), "128".into())],
            options: vec![OPTION.into()],
        }
    }
}

const ARTIFACT: &str = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
const COMPILER: &str = "nvrtc 12.9 -O3";
const SHAPE: [u64; 3] = [1, 128, 4096];

impl Numbered for PlanKey {
    fn numbered(number: u64) -> Self {
        let tensor = TensorDesc::contiguous(ElementType::F16, &SHAPE)
            .unwrap_or_else(|error| panic!("a tensor that is well formed was refused: {error}"));
        let key = Self::builder()
            .artifact(ARTIFACT)
            .target(TARGET)
            .compiler(COMPILER)
            .specialization(format!("attention<{number}>"))
            .input(tensor.clone())
            .input(tensor.clone())
            .input(tensor.clone())
            .output(tensor)
            .build();
        key.unwrap_or_else(|error| panic!("a key that is well formed was refused: {error}"))
    }
}

/// The fields of a [`PlanKey`], with nothing hashed ahead: four strings, four descriptions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlainPlan {
    artifact: String,
    target: String,
    compiler: String,
    specialization: String,
    inputs: Vec<PlainTensor>,
    outputs: Vec<PlainTensor>,
}

/// The fields of a [`TensorDesc`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PlainTensor {
    element: u8,
    shape: Vec<u64>,
    strides: Vec<i64>,
    layout: String,
}

impl Numbered for PlainPlan {
    fn numbered(number: u64) -> Self {
        let tensor = PlainTensor {
            element: 10,
            shape: SHAPE.to_vec(),
            strides: vec![128 * 4096, 4096, 1],
            layout: TensorDesc::ROW_MAJOR.into(),
        };
        Self {
            artifact: ARTIFACT.into(),
            target: TARGET.into(),
            compiler: COMPILER.into(),
            specialization: format!("attention<{number}>"),
            inputs: vec![tensor.clone(), tensor.clone(), tensor.clone()],
            outputs: vec![tensor],
        }
    }
}

/// The first `count` keys of a family.
pub fn first<K: Numbered>(count: u64) -> Vec<K> {
    (0..count).map(K::numbered).collect()
}
