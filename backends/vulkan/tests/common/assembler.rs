//! Puts SPIR-V together, instruction by instruction, with no compiler.

/// A module of one compute kernel in the making. Ids are given out in order.
pub(crate) struct Assembler {
    version: u32,
    next: u32,
    modes: Vec<u32>,
    names: Vec<u32>,
    decorations: Vec<u32>,
    /// Types, constants and variables.
    globals: Vec<u32>,
    body: Vec<u32>,
}

fn put(words: &mut Vec<u32>, opcode: u32, operands: &[u32]) {
    words.push((operands.len() as u32 + 1) << 16 | opcode);
    words.extend(operands);
}

fn text(text: &str) -> Vec<u32> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

impl Assembler {
    /// For SPIR-V of this minor version.
    pub(crate) fn new(version: u32) -> Self {
        Self {
            version,
            // 1 to 4 are the kernel's function, its type, what it returns, and its start.
            next: 5,
            modes: Vec::new(),
            names: Vec::new(),
            decorations: Vec::new(),
            globals: Vec::new(),
            body: Vec::new(),
        }
    }

    pub(crate) fn id(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// A type, a constant or a variable.
    pub(crate) fn op(&mut self, opcode: u32, operands: &[u32]) {
        put(&mut self.globals, opcode, operands);
    }

    /// An instruction of the kernel, which gives an id of this type; none means that it gives none.
    pub(crate) fn body(&mut self, opcode: u32, kind: Option<u32>, operands: &[u32]) -> u32 {
        let id = self.id();
        let result = kind.map_or(Vec::new(), |kind| vec![kind, id]);
        put(&mut self.body, opcode, &[&result, operands].concat());
        id
    }

    pub(crate) fn name(&mut self, id: u32, name: &str) {
        put(&mut self.names, 5, &[&[id][..], &text(name)].concat());
    }

    pub(crate) fn decorate(&mut self, operands: &[u32]) {
        put(&mut self.decorations, 71, operands);
    }

    pub(crate) fn decorate_member(&mut self, operands: &[u32]) {
        put(&mut self.decorations, 72, operands);
    }

    pub(crate) fn float(&mut self) -> u32 {
        let id = self.id();
        self.op(22, &[id, 32]);
        id
    }

    pub(crate) fn uint(&mut self) -> u32 {
        let id = self.id();
        self.op(21, &[id, 32, 0]);
        id
    }

    /// A number of 32 bits without a sign, of a type of its own.
    pub(crate) fn constant(&mut self, value: u32) -> u32 {
        let (kind, id) = (self.uint(), self.id());
        self.op(43, &[kind, id, value]);
        id
    }

    /// A struct with these members at these offsets, for buffers.
    pub(crate) fn block(&mut self, members: &[(u32, u32)]) -> u32 {
        let id = self.id();
        let kinds: Vec<u32> = members.iter().map(|(kind, _)| *kind).collect();
        self.op(30, &[&[id][..], &kinds].concat());
        self.decorate(&[id, 2]);
        for (index, (_, offset)) in members.iter().enumerate() {
            self.decorate_member(&[id, index as u32, 35, *offset]);
        }
        id
    }

    /// A pointer's type.
    pub(crate) fn pointer(&mut self, kind: u32, class: u32) -> u32 {
        let id = self.id();
        self.op(32, &[id, class, kind]);
        id
    }

    pub(crate) fn variable(&mut self, kind: u32, class: u32) -> u32 {
        let (pointer, id) = (self.pointer(kind, class), self.id());
        self.op(59, &[pointer, id, class]);
        id
    }

    /// A variable that is bound.
    pub(crate) fn bound(&mut self, kind: u32, class: u32, set: u32, binding: u32) -> u32 {
        let id = self.variable(kind, class);
        self.decorate(&[id, 34, set]);
        self.decorate(&[id, 33, binding]);
        id
    }

    /// The module: the kernel does what was put into its body, and reads `used`.
    pub(crate) fn finish(mut self, name: &str, used: &[u32]) -> Vec<u32> {
        for variable in used {
            // The type that it loads as does not matter where nobody runs it.
            self.body(61, Some(2), &[*variable]);
        }
        let mut words = vec![0x0723_0203, 0x0001_0000 | self.version << 8, 0, self.next, 0];
        put(&mut words, 17, &[1]);
        put(&mut words, 14, &[0, 1]);
        put(&mut words, 15, &[&[5, 1][..], &text(name), &self.modes].concat());
        put(&mut words, 16, &[1, 17, 64, 1, 1]);
        words.extend(&self.names);
        words.extend(&self.decorations);
        put(&mut words, 19, &[2]);
        put(&mut words, 33, &[3, 2]);
        words.extend(&self.globals);
        put(&mut words, 54, &[2, 1, 0, 3]);
        put(&mut words, 248, &[4]);
        words.extend(&self.body);
        put(&mut words, 253, &[]);
        put(&mut words, 56, &[]);
        words
    }
}

/// `numbers[i] += amount` on the buffer at set 0, binding 0, which must be as long as all workgroups
/// together: `amount` is the specialization constant
/// 7, which is 1 if it is not given, and workgroups are of size 9, which is 64.
pub(crate) fn add_constant() -> Vec<u32> {
    let mut code = Assembler::new(3);
    let uint = code.uint();
    let vector = code.id();
    code.op(23, &[vector, uint, 3]);
    let numbers = code.id();
    code.op(29, &[numbers, uint]);
    code.decorate(&[numbers, 6, 4]);
    let block = code.block(&[(numbers, 0)]);
    let buffer = code.bound(block, 12, 0, 0);
    let place = code.variable(vector, 1);
    code.decorate(&[place, 11, 28]);
    code.modes.push(place);
    let element = code.pointer(uint, 12);

    let constant = |code: &mut Assembler, value| {
        let id = code.id();
        code.op(43, &[uint, id, value]);
        id
    };
    let (zero, one) = (constant(&mut code, 0), constant(&mut code, 1));
    let special = |code: &mut Assembler, name: &str, number, value| {
        let id = code.id();
        code.op(50, &[uint, id, value]);
        code.decorate(&[id, 1, number]);
        code.name(id, name);
        id
    };
    let amount = special(&mut code, "amount", 7, 1);
    let size = special(&mut code, "size", 9, 64);
    let sizes = code.id();
    code.op(51, &[vector, sizes, size, one, one]);
    code.decorate(&[sizes, 11, 25]);

    let at = code.body(61, Some(vector), &[place]);
    let index = code.body(81, Some(uint), &[at, 0]);
    let target = code.body(65, Some(element), &[buffer, zero, index]);
    let number = code.body(61, Some(uint), &[target]);
    let sum = code.body(128, Some(uint), &[number, amount]);
    code.body(62, None, &[target, sum]);
    code.finish("add", &[])
}
