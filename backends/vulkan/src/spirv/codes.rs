//! The numbers of SPIR-V that this crate knows, by the names of its specification.

/// Opcodes.
pub(crate) mod op {
    pub(crate) const NAME: u32 = 5;
    pub(crate) const EXT_INST: u32 = 12;
    pub(crate) const MEMORY_MODEL: u32 = 14;
    pub(crate) const ENTRY_POINT: u32 = 15;
    pub(crate) const EXECUTION_MODE: u32 = 16;
    pub(crate) const CAPABILITY: u32 = 17;
    pub(crate) const TYPE_BOOL: u32 = 20;
    pub(crate) const TYPE_INT: u32 = 21;
    pub(crate) const TYPE_FLOAT: u32 = 22;
    pub(crate) const TYPE_VECTOR: u32 = 23;
    pub(crate) const TYPE_MATRIX: u32 = 24;
    pub(crate) const TYPE_IMAGE: u32 = 25;
    pub(crate) const TYPE_SAMPLER: u32 = 26;
    pub(crate) const TYPE_SAMPLED_IMAGE: u32 = 27;
    pub(crate) const TYPE_ARRAY: u32 = 28;
    pub(crate) const TYPE_RUNTIME_ARRAY: u32 = 29;
    pub(crate) const TYPE_STRUCT: u32 = 30;
    pub(crate) const TYPE_POINTER: u32 = 32;
    pub(crate) const CONSTANT_TRUE: u32 = 41;
    pub(crate) const CONSTANT_FALSE: u32 = 42;
    pub(crate) const CONSTANT: u32 = 43;
    pub(crate) const CONSTANT_COMPOSITE: u32 = 44;
    pub(crate) const SPEC_CONSTANT_TRUE: u32 = 48;
    pub(crate) const SPEC_CONSTANT_FALSE: u32 = 49;
    pub(crate) const SPEC_CONSTANT: u32 = 50;
    pub(crate) const SPEC_CONSTANT_COMPOSITE: u32 = 51;
    pub(crate) const SPEC_CONSTANT_OP: u32 = 52;
    pub(crate) const FUNCTION: u32 = 54;
    pub(crate) const FUNCTION_END: u32 = 56;
    pub(crate) const FUNCTION_CALL: u32 = 57;
    pub(crate) const VARIABLE: u32 = 59;
    pub(crate) const LOAD: u32 = 61;
    pub(crate) const STORE: u32 = 62;
    pub(crate) const DECORATE: u32 = 71;
    pub(crate) const MEMBER_DECORATE: u32 = 72;
    pub(crate) const DECORATION_GROUP: u32 = 73;
    pub(crate) const VECTOR_SHUFFLE: u32 = 79;
    pub(crate) const COMPOSITE_EXTRACT: u32 = 81;
    pub(crate) const COMPOSITE_INSERT: u32 = 82;
    pub(crate) const U_CONVERT: u32 = 113;
    pub(crate) const I_ADD: u32 = 128;
    pub(crate) const I_SUB: u32 = 130;
    pub(crate) const I_MUL: u32 = 132;
    pub(crate) const U_DIV: u32 = 134;
    pub(crate) const U_MOD: u32 = 137;
    pub(crate) const SHIFT_RIGHT_LOGICAL: u32 = 194;
    pub(crate) const SHIFT_LEFT_LOGICAL: u32 = 196;
    pub(crate) const LOOP_MERGE: u32 = 246;
    pub(crate) const SELECTION_MERGE: u32 = 247;
    pub(crate) const LABEL: u32 = 248;
    pub(crate) const SWITCH: u32 = 251;
    pub(crate) const EXECUTION_MODE_ID: u32 = 331;
    pub(crate) const UNTYPED_VARIABLE: u32 = 4418;
    pub(crate) const TYPE_ACCELERATION_STRUCTURE: u32 = 5341;
}

/// Decorations.
pub(crate) mod decoration {
    pub(crate) const SPEC_ID: u32 = 1;
    pub(crate) const BUFFER_BLOCK: u32 = 3;
    pub(crate) const ROW_MAJOR: u32 = 4;
    pub(crate) const ARRAY_STRIDE: u32 = 6;
    pub(crate) const MATRIX_STRIDE: u32 = 7;
    pub(crate) const BUILT_IN: u32 = 11;
    pub(crate) const BINDING: u32 = 33;
    pub(crate) const DESCRIPTOR_SET: u32 = 34;
    pub(crate) const OFFSET: u32 = 35;
}

/// Storage classes.
pub(crate) mod class {
    pub(crate) const UNIFORM_CONSTANT: u32 = 0;
    pub(crate) const UNIFORM: u32 = 2;
    pub(crate) const WORKGROUP: u32 = 4;
    pub(crate) const PUSH_CONSTANT: u32 = 9;
    pub(crate) const STORAGE_BUFFER: u32 = 12;
}

/// Execution models.
pub(crate) mod model {
    pub(crate) const GL_COMPUTE: u32 = 5;
}

/// Execution modes.
pub(crate) mod mode {
    pub(crate) const LOCAL_SIZE: u32 = 17;
    pub(crate) const LOCAL_SIZE_ID: u32 = 38;
}

/// Capabilities that decide whose SPIR-V this is.
pub(crate) mod capability {
    pub(crate) const SHADER: u32 = 1;
    pub(crate) const KERNEL: u32 = 6;
}

/// The built-in value that a constant of three numbers may be.
pub(crate) const WORKGROUP_SIZE: u32 = 25;

/// An image's dimension: a buffer.
pub(crate) const DIM_BUFFER: u32 = 5;

/// An image's dimension: a render pass's attachment.
pub(crate) const DIM_SUBPASS_DATA: u32 = 6;
