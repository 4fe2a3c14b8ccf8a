//! One walk over a module: everything that is declared, and where its functions are.

use std::collections::{HashMap, HashSet};

use super::codes::{WORKGROUP_SIZE, capability, decoration, mode, op};
use super::constants::Constants;
use super::types::{MemberLayout, Numbers, Sizes, Type, Types};
use super::words::{Instruction, Malformed, Words};

/// A module that was walked to its end.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) minor_version: u32,
    bound: u32,
    pub(crate) capabilities: Vec<u32>,
    pub(crate) entry_points: Vec<EntryPoint>,
    pub(crate) constants: Constants,
    pub(crate) types: Types,
    pub(crate) variables: Vec<Variable>,
    pub(crate) functions: HashMap<u32, Function>,
    pub(crate) decorations: HashMap<u32, Decorations>,
    /// By function.
    pub(crate) local_sizes: HashMap<u32, LocalSize>,
    /// The constant that is `WorkgroupSize`.
    pub(crate) workgroup_size: Option<u32>,
    names: HashMap<u32, String>,
    members: HashMap<(u32, u32), MemberLayout>,
    has_memory_model: bool,
}

/// An entry point.
#[derive(Debug)]
pub(crate) struct EntryPoint {
    pub(crate) model: u32,
    pub(crate) function: u32,
    pub(crate) name: String,
    pub(crate) variables: Vec<u32>,
}

/// A variable outside of all functions.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) id: u32,
    pub(crate) class: u32,
    /// What it holds.
    pub(crate) kind: u32,
}

/// What a function's body names. Whatever is in its words may be an id, but for what is surely a
/// literal; so this is a little more than it uses, and never less.
#[derive(Debug, Default)]
pub(crate) struct Function {
    pub(crate) names: HashSet<u32>,
    pub(crate) calls: Vec<u32>,
    labels: u32,
}

/// How many invocations are in a workgroup: as they are, or as constants.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LocalSize {
    Literal([u32; 3]),
    Constants([u32; 3]),
}

/// What is said of an id.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Decorations {
    pub(crate) set: Option<u32>,
    pub(crate) binding: Option<u32>,
    pub(crate) buffer_block: bool,
    spec_id: Option<u32>,
    array_stride: Option<u32>,
}

impl Module {
    /// Walks over all of it, with these values for its specialization constants.
    pub(crate) fn new(words: &[u32], constants: Constants) -> Result<Self, Malformed> {
        let words = Words::new(words)?;
        let mut module = Self {
            minor_version: words.minor_version(),
            bound: words.bound(),
            capabilities: Vec::new(),
            entry_points: Vec::new(),
            constants,
            types: Types::default(),
            variables: Vec::new(),
            functions: HashMap::new(),
            decorations: HashMap::new(),
            local_sizes: HashMap::new(),
            workgroup_size: None,
            names: HashMap::new(),
            members: HashMap::new(),
            has_memory_model: false,
        };
        let mut open: Option<(u32, Function)> = None;
        for instruction in words.instructions() {
            let instruction = instruction?;
            match (instruction.opcode, &mut open) {
                (op::FUNCTION, None) => {
                    open = Some((module.id(&instruction, 1)?, Function::default()));
                }
                (op::FUNCTION, Some(_)) => {
                    return Err(instruction.wrong("a function within a function"));
                }
                (op::FUNCTION_END, _) => {
                    let Some((id, function)) = open.take() else {
                        return Err(instruction.wrong("the end of a function without its start"));
                    };
                    if module.functions.insert(id, function).is_some() {
                        return Err(instruction.wrong(format!("a second function {id}")));
                    }
                }
                (_, Some((_, function))) => function.read(&instruction)?,
                (_, None) => module.declare(&instruction)?,
            }
        }
        if let Some((id, _)) = open {
            return Err(Malformed::new(format!("function {id} has no end: the module is cut")));
        }
        module.check()?;
        Ok(module)
    }

    /// What has to be there, as a whole.
    fn check(&self) -> Result<(), Malformed> {
        if self.capabilities.contains(&capability::KERNEL) {
            return Err(Malformed::new(
                "it is SPIR-V for OpenCL; Vulkan takes that with the capability Shader",
            ));
        }
        if !self.capabilities.contains(&capability::SHADER) {
            return Err(Malformed::new("it does not have the capability Shader"));
        }
        if !self.has_memory_model {
            return Err(Malformed::new("it has no memory model"));
        }
        for entry in &self.entry_points {
            if self.functions.get(&entry.function).is_none_or(|function| function.labels == 0) {
                let what = format!("the entry point `{}` has no function with a body", entry.name);
                return Err(Malformed::new(what));
            }
        }
        for (id, function) in &self.functions {
            if let Some(absent) = function.calls.iter().find(|id| !self.functions.contains_key(id))
            {
                let what = format!("function {id} calls function {absent}, which is not there");
                return Err(Malformed::new(what));
            }
        }
        self.constants.check_all_used()
    }

    /// An instruction outside of all functions.
    fn declare(&mut self, it: &Instruction) -> Result<(), Malformed> {
        match it.opcode {
            op::CAPABILITY => self.capabilities.push(it.operand(0)?),
            op::MEMORY_MODEL => self.has_memory_model = it.operand(1).is_ok(),
            op::ENTRY_POINT => {
                let (name, variables) = it.text(2)?;
                let (model, function) = (it.operand(0)?, self.id(it, 1)?);
                let variables = variables.to_vec();
                self.entry_points.push(EntryPoint { model, function, name, variables });
            }
            op::EXECUTION_MODE | op::EXECUTION_MODE_ID => self.execution_mode(it)?,
            op::NAME => {
                let (name, _) = it.text(1)?;
                self.names.insert(self.id(it, 0)?, name);
            }
            op::DECORATE => self.decorate(it)?,
            op::MEMBER_DECORATE => self.decorate_member(it)?,
            op::DECORATION_GROUP => {
                return Err(it.wrong(
                    "a decoration group, which SPIR-V has given up: run it through `spirv-opt \
                     --flatten-decorations`",
                ));
            }
            op::VARIABLE => self.variable(it)?,
            op::UNTYPED_VARIABLE => {
                return Err(it.wrong("a variable without a type, for which no layout can be read"));
            }
            op::CONSTANT_TRUE..=op::SPEC_CONSTANT_OP => self.constant(it)?,
            op::TYPE_BOOL..=op::TYPE_POINTER | op::TYPE_ACCELERATION_STRUCTURE => {
                self.declare_type(it)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn execution_mode(&mut self, it: &Instruction) -> Result<(), Malformed> {
        let function = self.id(it, 0)?;
        let sizes = || Ok([it.operand(2)?, it.operand(3)?, it.operand(4)?]);
        let size = match (it.opcode, it.operand(1)?) {
            (op::EXECUTION_MODE, mode::LOCAL_SIZE) => LocalSize::Literal(sizes()?),
            (op::EXECUTION_MODE_ID, mode::LOCAL_SIZE_ID) => LocalSize::Constants(sizes()?),
            _ => return Ok(()),
        };
        self.local_sizes.insert(function, size);
        Ok(())
    }

    fn decorate(&mut self, it: &Instruction) -> Result<(), Malformed> {
        let id = self.id(it, 0)?;
        let decorations = self.decorations.entry(id).or_default();
        match it.operand(1)? {
            decoration::SPEC_ID => {
                let spec_id = it.operand(2)?;
                decorations.spec_id = Some(spec_id);
                if let Some(name) = self.names.get(&id).filter(|name| !name.is_empty()) {
                    self.constants.name(spec_id, name);
                }
            }
            decoration::BUFFER_BLOCK => decorations.buffer_block = true,
            decoration::ARRAY_STRIDE => decorations.array_stride = Some(it.operand(2)?),
            decoration::BINDING => decorations.binding = Some(it.operand(2)?),
            decoration::DESCRIPTOR_SET => decorations.set = Some(it.operand(2)?),
            decoration::BUILT_IN if it.operand(2)? == WORKGROUP_SIZE => {
                self.workgroup_size = Some(id);
            }
            _ => {}
        }
        Ok(())
    }

    fn decorate_member(&mut self, it: &Instruction) -> Result<(), Malformed> {
        let member = (self.id(it, 0)?, it.operand(1)?);
        let layout = self.members.entry(member).or_default();
        match it.operand(2)? {
            decoration::OFFSET => layout.offset = Some(it.operand(3)?),
            decoration::MATRIX_STRIDE => layout.matrix_stride = Some(it.operand(3)?),
            decoration::ROW_MAJOR => layout.row_major = true,
            _ => {}
        }
        Ok(())
    }

    fn variable(&mut self, it: &Instruction) -> Result<(), Malformed> {
        let (pointer, id, class) = (self.id(it, 0)?, self.id(it, 1)?, it.operand(2)?);
        let Some(Type::Pointer { class: of_pointer, to }) = self.types.get(pointer) else {
            return Err(it.wrong(format!("variable {id} is no pointer")));
        };
        if *of_pointer != class {
            return Err(it.wrong(format!("variable {id} is not where its pointer points")));
        }
        self.variables.push(Variable { id, class, kind: *to });
        Ok(())
    }

    fn constant(&mut self, it: &Instruction) -> Result<(), Malformed> {
        let (kind, id) = (it.operand(0)?, self.id(it, 1)?);
        // Of a type that this crate does not know, and that no size is made of.
        let Some(kind) = self.types.get(kind) else { return Ok(()) };
        let default = match it.opcode {
            op::CONSTANT_TRUE | op::SPEC_CONSTANT_TRUE => 1,
            op::CONSTANT_FALSE | op::SPEC_CONSTANT_FALSE => 0,
            op::CONSTANT | op::SPEC_CONSTANT => {
                let high = it.operand(3).unwrap_or_default();
                u64::from(it.operand(2)?) | u64::from(high) << 32
            }
            op::CONSTANT_COMPOSITE | op::SPEC_CONSTANT_COMPOSITE => {
                self.constants.insert_composite(id, it.from(2));
                return Ok(());
            }
            op::SPEC_CONSTANT_OP => {
                let width = if let Type::Int { width, .. } = kind { *width } else { 64 };
                let value = self.constants.operation(it.operand(2)?, it.from(3), width);
                value.into_iter().for_each(|value| self.constants.insert(id, value));
                return Ok(());
            }
            _ => return Ok(()),
        };
        let spec_id = self.decorations.get(&id).and_then(|decorations| decorations.spec_id);
        match spec_id {
            Some(spec_id) if it.opcode >= op::SPEC_CONSTANT_TRUE => {
                self.constants.declare(id, spec_id, kind, default)
            }
            _ => {
                if !matches!(kind, Type::Float { .. }) {
                    self.constants.insert(id, default);
                }
                Ok(())
            }
        }
    }

    fn declare_type(&mut self, it: &Instruction) -> Result<(), Malformed> {
        let id = self.id(it, 0)?;
        let (new, sizes) = match it.opcode {
            op::TYPE_BOOL => (Type::Bool, Sizes::default()),
            op::TYPE_INT => {
                let (width, signed) = (it.operand(1)?, it.operand(2)? != 0);
                if !matches!(width, 8 | 16 | 32 | 64) {
                    return Err(it.wrong(format!("integers of {width} bits")));
                }
                (Type::Int { width, signed }, Sizes::plain(u64::from(width / 8)))
            }
            op::TYPE_FLOAT => {
                let width = it.operand(1)?;
                (Type::Float { width }, Sizes::plain(u64::from(width / 8)))
            }
            op::TYPE_VECTOR | op::TYPE_MATRIX => {
                let count = u64::from(it.operand(2)?);
                match self.types.numbers(it.operand(1)?) {
                    Some(Numbers { component, rows, .. }) => {
                        let (rows, columns) =
                            if it.opcode == op::TYPE_VECTOR { (count, 1) } else { (rows, count) };
                        let size = component.saturating_mul(rows).saturating_mul(columns);
                        let numbers = Numbers { component, rows, columns };
                        (Type::Numbers(numbers), Sizes::plain(size))
                    }
                    // Of truth values, which have no place in memory.
                    None => (Type::Bool, Sizes::default()),
                }
            }
            op::TYPE_IMAGE => {
                let (dim, sampled) = (it.operand(2)?, it.operand(6)?);
                (Type::Image { dim, sampled }, Sizes::default())
            }
            op::TYPE_SAMPLER => (Type::Sampler, Sizes::default()),
            op::TYPE_SAMPLED_IMAGE => match self.types.get(it.operand(1)?) {
                Some(Type::Image { dim, .. }) => {
                    (Type::SampledImage { dim: *dim }, Sizes::default())
                }
                _ => return Err(it.wrong("a sampled image of what is no image")),
            },
            op::TYPE_ARRAY => {
                let (element, length) = (it.operand(1)?, self.constants.value(it.operand(2)?));
                let stride = self.decorations.get(&id).and_then(|all| all.array_stride);
                let size = length
                    .zip(stride)
                    .and_then(|(length, stride)| length.checked_mul(u64::from(stride)));
                let parts = length.unwrap_or_default().saturating_mul(self.types.parts(element));
                (Type::Array { element, length }, Sizes { size, parts })
            }
            op::TYPE_RUNTIME_ARRAY => (Type::RuntimeArray, Sizes::default()),
            op::TYPE_STRUCT => {
                let mut sizes = Sizes::plain(0);
                for (index, member) in it.from(1).iter().enumerate() {
                    let layout = self.members.get(&(id, index as u32)).copied();
                    let end = self.types.member_end(*member, layout.unwrap_or_default());
                    sizes.size = sizes.size.zip(end).map(|(size, end)| size.max(end));
                    sizes.parts = sizes.parts.saturating_add(self.types.parts(*member));
                }
                (Type::Struct, sizes)
            }
            op::TYPE_POINTER => {
                (Type::Pointer { class: it.operand(1)?, to: self.id(it, 2)? }, Sizes::plain(8))
            }
            op::TYPE_ACCELERATION_STRUCTURE => (Type::AccelerationStructure, Sizes::default()),
            _ => return Ok(()),
        };
        if self.types.insert(id, new, sizes) {
            Ok(())
        } else {
            Err(it.wrong(format!("a second type {id}")))
        }
    }

    /// The operand of that index, which is an id.
    fn id(&self, it: &Instruction, index: usize) -> Result<u32, Malformed> {
        match it.operand(index)? {
            id if id != 0 && id < self.bound => Ok(id),
            id => Err(it.wrong(format!("id {id} is not below the bound, {}", self.bound))),
        }
    }
}

impl Function {
    /// An instruction of its body.
    fn read(&mut self, it: &Instruction) -> Result<(), Malformed> {
        match it.opcode {
            op::LABEL => self.labels += 1,
            op::FUNCTION_CALL => self.calls.push(it.operand(2)?),
            _ => {}
        }
        // Those that end in literals, and where these start. They are small numbers, and so are the
        // ids of variables.
        let ids = match it.opcode {
            op::LOOP_MERGE | op::STORE => 2,
            op::SELECTION_MERGE | op::SWITCH => 1,
            op::LOAD | op::COMPOSITE_EXTRACT => 3,
            op::COMPOSITE_INSERT | op::VECTOR_SHUFFLE => 4,
            _ => usize::MAX,
        };
        let ids = &it.operands[..it.operands.len().min(ids)];
        match it.opcode {
            // The number of the instruction, in the middle.
            op::EXT_INST => self.names.extend(it.operands.iter().take(3).chain(it.from(4))),
            _ => self.names.extend(ids),
        }
        Ok(())
    }
}
