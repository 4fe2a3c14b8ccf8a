//! What an entry point binds: descriptors, push constants, and the size of its workgroups.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use ash::vk;

use super::codes::{DIM_BUFFER, DIM_SUBPASS_DATA, class, model};
use super::module::{EntryPoint, LocalSize, Module, Variable};
use super::types::Type;
use super::words::Malformed;

/// Sets and bindings beyond these make a driver reserve memory without end.
const MAX_SET: u32 = 31;
const MAX_BINDING: u32 = 0xFFFF;

/// A compute entry point and what it binds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) entry: String,
    /// By set and binding.
    pub(crate) bindings: Vec<Binding>,
    /// Bytes from the first; 0 where there are none.
    pub(crate) push_constants: u32,
    pub(crate) workgroup_size: [u32; 3],
    /// Bytes that a workgroup shares, at least.
    pub(crate) shared_memory: u64,
}

/// A place for a descriptor, as the kernel declares it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    /// The descriptor set.
    pub set: u32,
    /// The number within the set.
    pub binding: u32,
    /// What is bound there.
    pub kind: vk::DescriptorType,
    /// How many: more than one for an array.
    pub count: u32,
}

impl fmt::Debug for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binding")
            .field("set", &self.set)
            .field("binding", &self.binding)
            // ash names it only with its feature `debug`.
            .field("kind", &self.kind.as_raw())
            .field("count", &self.count)
            .finish()
    }
}

/// Why there is no interface.
#[derive(Debug)]
pub(crate) enum NoInterface {
    /// It is not clear which entry point is meant; these are there for compute.
    EntryPoint(Vec<String>),
    /// The module is wrong, or cannot be bound.
    Malformed(Malformed),
}

impl From<Malformed> for NoInterface {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl Interface {
    /// The interface of the entry point of that name, or of the only one.
    pub(crate) fn of(module: &Module, name: Option<&str>) -> Result<Self, NoInterface> {
        let all: Vec<_> =
            module.entry_points.iter().filter(|it| it.model == model::GL_COMPUTE).collect();
        let entry = match (name, all.as_slice()) {
            (None, [only]) => Some(*only),
            (None, _) => None,
            (Some(name), all) => {
                // A module may not have the same one twice.
                let mut these = all.iter().filter(|entry| entry.name == name);
                these.next().filter(|_| these.next().is_none()).copied()
            }
        };
        let Some(entry) = entry else {
            let names = all.iter().map(|entry| entry.name.clone()).collect();
            return Err(NoInterface::EntryPoint(names));
        };
        let mut interface = Self {
            entry: entry.name.clone(),
            bindings: Vec::new(),
            push_constants: 0,
            workgroup_size: workgroup_size(module, entry)?,
            shared_memory: 0,
        };
        let mut bindings = BTreeMap::new();
        for variable in used(module, entry) {
            if variable.class == class::WORKGROUP {
                let bytes = module.types.parts(variable.kind);
                interface.shared_memory = interface.shared_memory.saturating_add(bytes);
            } else if variable.class == class::PUSH_CONSTANT {
                interface.push_constants = interface.push_constants.max(bytes(module, variable)?);
            } else if let Some(binding) = binding(module, variable)? {
                let earlier = bindings.insert((binding.set, binding.binding), binding);
                if earlier.is_some_and(|earlier| earlier != binding) {
                    let Binding { set, binding, .. } = binding;
                    let what =
                        format!("two different things are bound at set {set}, binding {binding}");
                    return Err(Malformed::new(what).into());
                }
            }
        }
        interface.bindings = bindings.into_values().collect();
        Ok(interface)
    }
}

/// The variables that the entry point and all that it calls can name.
fn used<'a>(module: &'a Module, entry: &'a EntryPoint) -> impl Iterator<Item = &'a Variable> {
    let mut reached = HashSet::from([entry.function]);
    let mut next = vec![entry.function];
    let mut names: HashSet<u32> = HashSet::new();
    while let Some(function) = next.pop().and_then(|id| module.functions.get(&id)) {
        names.extend(&function.names);
        next.extend(function.calls.iter().filter(|id| reached.insert(**id)));
    }
    // From 1.4 on, an entry point lists all that it uses.
    let list: HashSet<u32> = entry.variables.iter().copied().collect();
    let listed = move |id: u32| module.minor_version < 4 || list.contains(&id);
    module.variables.iter().filter(move |it| names.contains(&it.id) && listed(it.id))
}

fn workgroup_size(module: &Module, entry: &EntryPoint) -> Result<[u32; 3], Malformed> {
    let of_constants = |ids: &[u32]| -> Option<[u32; 3]> {
        let mut sizes = [0; 3];
        if ids.len() != sizes.len() {
            return None;
        }
        for (size, id) in sizes.iter_mut().zip(ids) {
            *size = u32::try_from(module.constants.value(*id)?).ok()?;
        }
        Some(sizes)
    };
    // The built-in comes before the mode.
    let size = match (module.workgroup_size, module.local_sizes.get(&entry.function)) {
        (Some(id), _) => module.constants.composite(id).and_then(of_constants),
        (None, Some(LocalSize::Literal(sizes))) => Some(*sizes),
        (None, Some(LocalSize::Constants(ids))) => of_constants(ids),
        (None, None) => None,
    };
    let size = size.ok_or_else(|| {
        Malformed::new(format!("the entry point `{}` has no known workgroup size", entry.name))
    })?;
    if size.contains(&0) {
        let what = format!("the workgroups of entry point `{}` are of size 0", entry.name);
        return Err(Malformed::new(what));
    }
    Ok(size)
}

/// The bytes of the push constants.
fn bytes(module: &Module, variable: &Variable) -> Result<u32, Malformed> {
    let size = module.types.size(variable.kind).and_then(|size| u32::try_from(size).ok());
    size.and_then(|size| size.checked_next_multiple_of(4))
        .ok_or_else(|| Malformed::new(format!("push constants ({}) of no known size", variable.id)))
}

/// Where a variable is bound; none for those that are not.
fn binding(module: &Module, variable: &Variable) -> Result<Option<Binding>, Malformed> {
    if !matches!(variable.class, class::UNIFORM_CONSTANT | class::UNIFORM | class::STORAGE_BUFFER) {
        return Ok(None);
    }
    let id = variable.id;
    let decorations = module.decorations.get(&id).copied().unwrap_or_default();
    let (Some(set), Some(binding)) = (decorations.set, decorations.binding) else {
        let what = format!("variable {id} has no descriptor set and binding");
        return Err(Malformed::new(what));
    };
    if set > MAX_SET || binding > MAX_BINDING {
        let what = format!("set {set}, binding {binding} is beyond {MAX_SET} and {MAX_BINDING}");
        return Err(Malformed::new(what));
    }
    let at = |what: &str| Malformed::new(format!("set {set}, binding {binding} is {what}"));

    let (mut kind, mut count) = (variable.kind, 1_u64);
    let mut depth = 0;
    while let Some(Type::Array { element, length }) = module.types.get(kind) {
        let length = length.filter(|length| *length > 0);
        let length = length.ok_or_else(|| at("an array of no known length"))?;
        count = count.saturating_mul(length);
        kind = *element;
        depth += 1;
        // Nothing keeps an array from naming itself.
        if depth > 8 {
            return Err(at("an array of too many dimensions"));
        }
    }
    let count = u32::try_from(count).map_err(|_| at("an array that is too long"))?;
    use vk::DescriptorType as Kind;
    let kind = match module.types.get(kind) {
        Some(Type::Struct) if variable.class == class::STORAGE_BUFFER => Kind::STORAGE_BUFFER,
        Some(Type::Struct) if variable.class == class::UNIFORM => {
            // Until 1.3, a decoration told storage buffers from uniform ones.
            if module.decorations.get(&kind).is_some_and(|all| all.buffer_block) {
                Kind::STORAGE_BUFFER
            } else {
                Kind::UNIFORM_BUFFER
            }
        }
        Some(Type::Sampler) => Kind::SAMPLER,
        Some(Type::SampledImage { dim: DIM_BUFFER }) => Kind::UNIFORM_TEXEL_BUFFER,
        Some(Type::SampledImage { .. }) => Kind::COMBINED_IMAGE_SAMPLER,
        Some(Type::Image { dim: DIM_SUBPASS_DATA, .. }) => {
            return Err(at("an input attachment, which a compute pipeline has none of"));
        }
        Some(Type::Image { dim: DIM_BUFFER, sampled: 1 }) => Kind::UNIFORM_TEXEL_BUFFER,
        Some(Type::Image { dim: DIM_BUFFER, sampled: 2 }) => Kind::STORAGE_TEXEL_BUFFER,
        Some(Type::Image { sampled: 1, .. }) => Kind::SAMPLED_IMAGE,
        Some(Type::Image { sampled: 2, .. }) => Kind::STORAGE_IMAGE,
        Some(Type::AccelerationStructure) => Kind::ACCELERATION_STRUCTURE_KHR,
        Some(Type::RuntimeArray) => {
            return Err(at(
                "an array without a length; give it one, of a specialization constant \
                           if need be",
            ));
        }
        _ => return Err(at("of a type that cannot be bound")),
    };
    Ok(Some(Binding { set, binding, kind, count }))
}
