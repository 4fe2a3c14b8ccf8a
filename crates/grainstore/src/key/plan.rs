//! The key of a compiled plan: kernels put together for tensors of given shapes.

use std::borrow::Cow;
use std::fmt;
use std::hash::Hash;

use super::difference::{Difference, Field};
use super::encoding;
use super::error::KeyError;
use super::fingerprint::Fingerprint;
use super::hashed::Hashed;
use super::kernel::sort_by_name;
use super::overlap::Overlap;
use super::tensor::TensorDesc;

/// Everything that changes a compiled plan: the model, the hardware, the compiler, what it was
/// specialized for, and the tensors that go in and come out.
///
/// As cheap in a look-up as a [`KernelKey`](crate::KernelKey): hashed once, when it is built.
///
/// ```
/// use grainstore::{ElementType, PlanKey, TensorDesc};
/// let tokens = TensorDesc::contiguous(ElementType::F16, &[1, 128, 4096])?;
/// let plan = PlanKey::builder()
///     .artifact("sha256:9f86d081884c7d65, packed 4 bits")
///     .target("sm_90a")
///     .compiler("nvrtc 12.9 -O3")
///     .specialization("attention<64>")
///     .scalar("scale", "0.125")
///     .input(tokens.clone())
///     .output(tokens)
///     .build()?;
/// assert_eq!(plan.inputs()[0].shape(), [1, 128, 4096]);
/// # Ok::<(), grainstore::KeyError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PlanKey(Hashed<PlanParts>);

/// The fields, in the order of the encoding.
#[derive(Clone, Debug, Default)]
pub(super) struct PlanParts {
    pub(super) artifact: String,
    pub(super) target: String,
    pub(super) compiler: String,
    pub(super) specialization: String,
    pub(super) scalars: Vec<(String, String)>,
    pub(super) inputs: Vec<TensorDesc>,
    pub(super) outputs: Vec<TensorDesc>,
}

impl PlanKey {
    /// Starts a key.
    pub fn builder() -> PlanKeyBuilder {
        PlanKeyBuilder { parts: PlanParts::default() }
    }

    /// The hash of all its fields: the same in every process and on every machine.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.0.fingerprint()
    }

    /// The digest of the model artifact, and its packing.
    #[must_use]
    pub fn artifact(&self) -> &str {
        &self.0.parts().artifact
    }

    /// The device's architecture and the features it needs.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.0.parts().target
    }

    /// The compiler, its version and its options.
    #[must_use]
    pub fn compiler(&self) -> &str {
        &self.0.parts().compiler
    }

    /// What the plan is specialized for.
    #[must_use]
    pub fn specialization(&self) -> &str {
        &self.0.parts().specialization
    }

    /// The scalar arguments that are compiled in, sorted by name.
    pub fn scalars(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.parts().scalars.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The tensors that go in, in order.
    #[must_use]
    pub fn inputs(&self) -> &[TensorDesc] {
        &self.0.parts().inputs
    }

    /// The tensors that come out, in order.
    #[must_use]
    pub fn outputs(&self) -> &[TensorDesc] {
        &self.0.parts().outputs
    }

    /// All fields as text, in the order of the encoding. Each name stands once.
    pub fn fields(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        let text = |(name, value)| -> Field<'_> { (Cow::Borrowed(name), Cow::Borrowed(value)) };
        [
            ("artifact", self.artifact()),
            ("target", self.target()),
            ("compiler", self.compiler()),
            ("specialization", self.specialization()),
        ]
        .into_iter()
        .map(text)
        .chain(self.scalars().map(|(name, value)| (format!("scalar {name}").into(), value.into())))
        .chain(tensors("input", self.inputs()))
        .chain(tensors("output", self.outputs()))
    }

    /// The fields in which the other key differs, in the order of the encoding.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        Difference::between(self.fields(), other.fields())
    }
}

fn tensors<'a>(kind: &'a str, tensors: &'a [TensorDesc]) -> impl Iterator<Item = Field<'a>> {
    tensors
        .iter()
        .enumerate()
        .map(move |(i, tensor)| (format!("{kind} {i}").into(), tensor.to_string().into()))
}

/// Shows what it is specialized for and the fingerprint.
impl fmt::Display for PlanKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.specialization(), self.fingerprint())
    }
}

impl fmt::Debug for PlanKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.fields()).finish()
    }
}

/// Collects the fields of a [`PlanKey`]. A text that is not given counts as empty.
#[derive(Clone, Debug)]
#[must_use]
pub struct PlanKeyBuilder {
    parts: PlanParts,
}

impl PlanKeyBuilder {
    /// The digest of the model artifact, and its packing.
    pub fn artifact(mut self, artifact: impl Into<String>) -> Self {
        self.parts.artifact = artifact.into();
        self
    }

    /// The real architecture of the device, and the features that are required of it.
    pub fn target(mut self, target: impl Into<String>) -> Self {
        self.parts.target = target.into();
        self
    }

    /// The compiler, its version and its options.
    pub fn compiler(mut self, compiler: impl Into<String>) -> Self {
        self.parts.compiler = compiler.into();
        self
    }

    /// What the plan is specialized for.
    pub fn specialization(mut self, specialization: impl Into<String>) -> Self {
        self.parts.specialization = specialization.into();
        self
    }

    /// A scalar argument that is compiled in. Their order does not matter.
    ///
    /// It may stand in the [`specialization`](Self::specialization) as well; here it can't run
    /// together with its neighbour.
    pub fn scalar(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parts.scalars.push((name.into(), value.into()));
        self
    }

    /// One more tensor that goes in. Its elements may overlap, as those of a broadcast do.
    pub fn input(mut self, tensor: TensorDesc) -> Self {
        self.parts.inputs.push(tensor);
        self
    }

    /// One more tensor that comes out.
    pub fn output(mut self, tensor: TensorDesc) -> Self {
        self.parts.outputs.push(tensor);
        self
    }

    /// The key.
    ///
    /// # Errors
    /// [`KeyError::Overlap`] where two elements of an output share a place,
    /// [`KeyError::OverlapUndecided`] where that would take too long to tell, and
    /// [`KeyError::Duplicate`] where a scalar is named twice.
    pub fn build(self) -> Result<PlanKey, KeyError> {
        let mut parts = self.parts;
        sort_by_name("scalar", &mut parts.scalars)?;
        for (output, tensor) in parts.outputs.iter().enumerate() {
            match tensor.overlap() {
                Overlap::None => {}
                Overlap::Some => {
                    return Err(KeyError::Overlap { output, tensor: tensor.to_string() });
                }
                Overlap::Undecided => {
                    return Err(KeyError::OverlapUndecided { output, tensor: tensor.to_string() });
                }
            }
        }
        let encoding = encoding::plan(&parts);
        Ok(PlanKey(Hashed::new(parts, encoding)))
    }
}
