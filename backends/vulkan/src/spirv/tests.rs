//! Modules put together word by word, sound ones and broken ones.

use ash::vk;

use super::*;

#[path = "../../tests/common/assembler.rs"]
mod assembler;

use assembler::{Assembler, add_constant};

fn reflect(words: &[u32]) -> Result<Interface, String> {
    let module = Module::new(words, Constants::default()).map_err(|why| why.to_string())?;
    Interface::of(&module, None).map_err(|why| format!("{why:?}"))
}

fn with(words: &[u32], constants: &[(&str, &str)]) -> Result<Vec<Specialized>, String> {
    let constants: Vec<_> =
        constants.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let module = Module::new(words, Constants::given(&constants)).map_err(|why| why.to_string())?;
    Ok(module.constants.into_specialized())
}

fn binding(set: u32, binding: u32, kind: vk::DescriptorType, count: u32) -> Binding {
    Binding { set, binding, kind, count }
}

#[test]
fn a_kernel_is_read() {
    let interface = reflect(&add_constant()).unwrap();
    assert_eq!(interface.entry, "add");
    assert_eq!(interface.bindings, [binding(0, 0, vk::DescriptorType::STORAGE_BUFFER, 1)]);
    assert_eq!(interface.push_constants, 0);
    assert_eq!(interface.workgroup_size, [64, 1, 1]);
}

#[test]
fn constants_go_by_number_and_by_name() {
    let words = add_constant();
    let value = |bytes: [u8; 4]| vec![Specialized { spec_id: 7, bytes: bytes.to_vec() }];
    assert_eq!(with(&words, &[("7", "5")]).unwrap(), value(5_u32.to_le_bytes()));
    assert_eq!(with(&words, &[("amount", "0xFFFFFFFF")]).unwrap(), value([0xFF; 4]));
    assert_eq!(with(&words, &[]).unwrap(), []);
    let error = with(&words, &[("8", "5")]).unwrap_err();
    assert_eq!(error, "there is no specialization constant `8`; there are: 7 (amount), 9 (size)");
    for wrong in ["-1", "4294967296", "five", "", "0x", "0x-1", "1.5"] {
        let error = with(&words, &[("7", wrong)]).unwrap_err();
        assert!(error.contains("`7` is an unsigned integer of 32 bits"), "{error}");
    }
    let error = with(&words, &[("7", "1"), ("amount", "1")]).unwrap_err();
    assert!(error.contains("one and the same"), "{error}");
}

#[test]
fn a_constant_may_size_the_workgroup() {
    let words = add_constant();
    let size = |value: &str| {
        let constants = Constants::given(&[("size".to_owned(), value.to_owned())]);
        let module = Module::new(&words, constants).map_err(|why| why.to_string())?;
        match Interface::of(&module, Some("add")) {
            Ok(interface) => Ok(interface.workgroup_size),
            Err(why) => Err(format!("{why:?}")),
        }
    };
    assert_eq!(size("128").unwrap(), [128, 1, 1]);
    assert!(size("0").unwrap_err().contains("size 0"));
}

#[test]
fn constants_may_share_a_number() {
    let shared = |first: u32, second: u32| {
        let mut code = Assembler::new(3);
        let mut last = 0;
        for width in [first, second] {
            let (kind, id) = (code.id(), code.id());
            last = id;
            code.op(21, &[kind, width, 0]);
            code.op(50, &[kind, id, 1, 0][..2 + width as usize / 32]);
            code.decorate(&[id, 1, 4]);
        }
        // The name of one is the name of both.
        code.name(last, "last");
        let words = code.finish("k", &[]);
        assert_eq!(with(&words, &[("4", "9")]), with(&words, &[("last", "9")]));
        with(&words, &[("4", "9")])
    };
    let value = Specialized { spec_id: 4, bytes: 9_u32.to_le_bytes().to_vec() };
    assert_eq!(shared(32, 32).unwrap(), [value]);
    assert!(shared(32, 64).unwrap_err().contains("of different types"));
}

#[test]
fn every_kind_of_binding_is_known() {
    use vk::DescriptorType as Kind;
    let mut code = Assembler::new(3);
    let float = code.float();
    let image = |code: &mut Assembler, dim, sampled| {
        let id = code.id();
        code.op(25, &[id, float, dim, 0, 0, 0, sampled, 0]);
        id
    };
    let (sampled, storage) = (image(&mut code, 1, 1), image(&mut code, 1, 2));
    let (texels, storage_texels) = (image(&mut code, 5, 1), image(&mut code, 5, 2));
    let sampler = code.id();
    code.op(26, &[sampler]);
    let combined = code.id();
    code.op(27, &[combined, sampled]);
    let rays = code.id();
    code.op(5341, &[rays]);
    let block = code.block(&[(float, 0)]);
    let old = code.block(&[(float, 0)]);
    code.decorate(&[old, 3]);
    let three = code.constant(3);
    let blocks = code.id();
    code.op(28, &[blocks, block, three]);

    let kinds = [
        (block, 2, Kind::UNIFORM_BUFFER, 1),
        (old, 2, Kind::STORAGE_BUFFER, 1),
        (block, 12, Kind::STORAGE_BUFFER, 1),
        (blocks, 2, Kind::UNIFORM_BUFFER, 3),
        (sampled, 0, Kind::SAMPLED_IMAGE, 1),
        (storage, 0, Kind::STORAGE_IMAGE, 1),
        (texels, 0, Kind::UNIFORM_TEXEL_BUFFER, 1),
        (storage_texels, 0, Kind::STORAGE_TEXEL_BUFFER, 1),
        (sampler, 0, Kind::SAMPLER, 1),
        (combined, 0, Kind::COMBINED_IMAGE_SAMPLER, 1),
        (rays, 0, Kind::ACCELERATION_STRUCTURE_KHR, 1),
    ];
    let mut used = Vec::new();
    for (number, (kind, class, ..)) in kinds.iter().enumerate() {
        used.push(code.bound(*kind, *class, 1, number as u32));
    }
    // Not used, so not bound.
    code.bound(block, 12, 0, 9);
    let interface = reflect(&code.finish("k", &used)).unwrap();
    let expected: Vec<_> = kinds
        .iter()
        .enumerate()
        .map(|(number, (_, _, kind, count))| binding(1, number as u32, *kind, *count))
        .collect();
    assert_eq!(interface.bindings, expected);
}

#[test]
fn push_constants_are_as_long_as_their_last_member() {
    let mut code = Assembler::new(3);
    let float = code.float();
    let vector = code.id();
    code.op(23, &[vector, float, 3]);
    let matrix = code.id();
    code.op(24, &[matrix, vector, 2]);
    let block = code.block(&[(float, 0), (matrix, 16)]);
    code.decorate_member(&[block, 1, 7, 16]);
    let variable = code.variable(block, 9);
    // The second column starts 16 bytes behind the first, and has three numbers.
    assert_eq!(reflect(&code.finish("k", &[variable])).unwrap().push_constants, 16 + 16 + 12);
}

#[test]
fn what_cannot_be_bound_is_refused() {
    let refused = |of: &dyn Fn(&mut Assembler) -> u32| {
        let mut code = Assembler::new(3);
        let variable = of(&mut code);
        reflect(&code.finish("k", &[variable])).unwrap_err()
    };
    let error = refused(&|code| {
        let float = code.float();
        let block = code.block(&[(float, 0)]);
        let all = code.id();
        code.op(29, &[all, block]);
        code.bound(all, 12, 0, 0)
    });
    assert!(error.contains("set 0, binding 0 is an array without a length"), "{error}");
    let error = refused(&|code| {
        let float = code.float();
        code.bound(float, 2, 0, 0)
    });
    assert!(error.contains("of a type that cannot be bound"), "{error}");
    let error = refused(&|code| {
        let float = code.float();
        let block = code.block(&[(float, 0)]);
        code.bound(block, 12, 0, u32::MAX)
    });
    assert!(error.contains("beyond"), "{error}");
    let error = refused(&|code| {
        let float = code.float();
        let block = code.block(&[(float, 0)]);
        code.variable(block, 12)
    });
    assert!(error.contains("no descriptor set and binding"), "{error}");
    // An array of itself.
    let error = refused(&|code| {
        let (all, two) = (code.id(), code.constant(2));
        code.op(28, &[all, all, two]);
        code.bound(all, 12, 0, 0)
    });
    assert!(error.contains("too many dimensions"), "{error}");
}

#[test]
fn a_module_cut_anywhere_is_refused() {
    let words = add_constant();
    for length in 0..words.len() {
        let error = reflect(&words[..length]).expect_err(&length.to_string());
        assert!(!error.is_empty());
    }
    let bytes = to_bytes(&words);
    assert_eq!(from_bytes(&bytes).unwrap(), words);
    from_bytes(&bytes[..bytes.len() - 1]).unwrap_err();
}

#[test]
fn no_bytes_make_it_panic_or_hang() {
    let words = add_constant();
    for index in 0..words.len() {
        for bit in 0..32 {
            let mut broken = words.clone();
            broken[index] ^= 1 << bit;
            let _ = reflect(&broken);
            let _ = with(&broken, &[("amount", "1")]);
        }
        for value in [0, 1, u32::MAX, 0xFFFF_0000, 0x0001_0000] {
            let mut broken = words.clone();
            broken[index] = value;
            let _ = reflect(&broken);
        }
    }
}

#[test]
fn headers_say_what_is_wrong_with_them() {
    let words = add_constant();
    let refused = |index: usize, value: u32| {
        let mut words = words.clone();
        words[index] = value;
        reflect(&words).unwrap_err()
    };
    assert!(refused(0, 0x0302_2307).contains("big-endian"));
    assert!(refused(0, 0xDEAD_BEEF).contains("0xdeadbeef is not the magic"));
    assert!(refused(1, 0x0002_0000).contains("no version"));
    assert!(refused(1, 0x0001_0700).contains("no version"));
    assert!(refused(3, 0).contains("bound"));
    assert!(refused(3, u32::MAX).contains("bound"));
    assert!(refused(3, 2).contains("is not below the bound, 2"));
    assert!(refused(5, 0).contains("word 5: an instruction of no words"));
}

#[test]
fn spirv_for_opencl_is_told_apart() {
    let mut words = add_constant();
    let shader = words[5..].iter().position(|word| *word == 1).unwrap();
    words[5 + shader] = 6;
    assert!(reflect(&words).unwrap_err().contains("SPIR-V for OpenCL"));
}
