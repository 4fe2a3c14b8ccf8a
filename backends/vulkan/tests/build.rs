//! From a spec to a pipeline that computes, on whatever Vulkan driver is there.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::assembler::{Assembler, add_constant};
use common::launch::{check_saxpy, launch};
use common::{glsl, on_vulkan, saxpy, spirv, wgsl};
use grainstore::{DeviceId, Family};
use grainstore_runtime::{Backend, BackendError, KernelSpec, KernelSpecBuilder, Language, Target};
use grainstore_vulkan::ash::vk;
use grainstore_vulkan::{Binding, VulkanBackend};

fn build(vulkan: &VulkanBackend, device: DeviceId, spec: KernelSpecBuilder) -> BackendError {
    vulkan.build(&device, &spec.build().unwrap()).unwrap_err()
}

fn numbers(vulkan: &VulkanBackend, device: DeviceId, spec: KernelSpecBuilder) -> Vec<u32> {
    let (module, _) = vulkan.build(&device, &spec.build().unwrap()).unwrap();
    launch(&module, &[&[10, 20, 30]], &[], 1).remove(0)
}

#[test]
fn wgsl_is_built_and_computes() {
    on_vulkan("wgsl_is_built_and_computes", |vulkan, device| {
        let (module, _) = vulkan.build(&device, &saxpy()).unwrap();
        check_saxpy(&module);
        assert_eq!(module.entry(), "saxpy");
        assert_eq!(module.workgroup_size(), [64, 1, 1]);
        assert_eq!(module.push_constant_size(), 8);
        let kind = vk::DescriptorType::STORAGE_BUFFER;
        let at = |binding| Binding { set: 0, binding, kind, count: 1 };
        assert_eq!(module.bindings(), [at(0), at(1)]);
        assert_eq!(module.set_layouts().len(), 1);
        assert_ne!(module.shader_module(), vk::ShaderModule::null());
        vulkan.unload(module).unwrap();
    });
}

#[test]
fn glsl_is_built_with_its_defines_and_computes() {
    on_vulkan("glsl_is_built_with_its_defines_and_computes", |vulkan, device| {
        let source = "\
#version 450
layout(local_size_x = 4) in;
layout(constant_id = 3) const uint EXTRA = 0;
layout(set = 0, binding = 0) buffer Numbers { uint numbers[]; };
#ifdef DOUBLED
#define FACTOR 2
#else
#define FACTOR 1
#endif
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < numbers.length()) numbers[i] = numbers[i] * FACTOR + STEP + EXTRA;
}
";
        let spec = || glsl(source).define("STEP", "(1 + 2)").entry("main");
        assert_eq!(numbers(vulkan, device, spec()), [13, 23, 33]);
        assert_eq!(numbers(vulkan, device, spec().define("DOUBLED", "")), [23, 43, 63]);
        assert_eq!(numbers(vulkan, device, spec().constant("3", "100")), [113, 123, 133]);
        assert_eq!(numbers(vulkan, device, spec().constant("EXTRA", "200")), [213, 223, 233]);
    });
}

#[test]
fn spirv_is_specialized_by_the_driver() {
    on_vulkan("spirv_is_specialized_by_the_driver", |vulkan, device| {
        // As many invocations as there are numbers: this kernel does not look where it writes.
        let spec = || spirv(&add_constant()).constant("size", "3");
        assert_eq!(numbers(vulkan, device, spec()), [11, 21, 31]);
        assert_eq!(numbers(vulkan, device, spec().constant("7", "5")), [15, 25, 35]);
        assert_eq!(numbers(vulkan, device, spec().constant("amount", "0x10")), [26, 36, 46]);
        let sized = spec().constant("amount", "2").entry("add");
        let (module, _) = vulkan.build(&device, &sized.build().unwrap()).unwrap();
        assert_eq!(module.workgroup_size(), [3, 1, 1]);
        assert_eq!(launch(&module, &[&[1; 12]], &[], 4), [[3; 12]]);
    });
}

#[test]
fn overrides_go_by_name_and_by_number() {
    on_vulkan("overrides_go_by_name_and_by_number", |vulkan, device| {
        let source = "\
override step: u32 = 1;
@id(8) override sign: i32 = 1;
override size: u32 = 4;
override on: bool = true;
@group(0) @binding(0) var<storage, read_write> numbers: array<u32>;
@compute @workgroup_size(size)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if on && id.x < arrayLength(&numbers) {
        numbers[id.x] = u32(i32(numbers[id.x]) + sign * i32(step));
    }
}
";
        let spec = || wgsl(source);
        assert_eq!(numbers(vulkan, device, spec()), [11, 21, 31]);
        assert_eq!(numbers(vulkan, device, spec().constant("step", "3")), [13, 23, 33]);
        assert_eq!(numbers(vulkan, device, spec().constant("8", "-1")), [9, 19, 29]);
        assert_eq!(numbers(vulkan, device, spec().constant("sign", "-2")), [8, 18, 28]);
        assert_eq!(numbers(vulkan, device, spec().constant("on", "false")), [10, 20, 30]);
        assert_eq!(numbers(vulkan, device, spec().constant("size", "2")), [11, 21, 30]);

        for (name, value, words) in [
            ("stride", "1", "no specialization constant `stride`; there are: step, 8 (sign)"),
            ("step", "two", "`step` is an integer, not `two`"),
            ("step", "-1", "doesn't fit"),
            ("step", "-170141183460469231731687303715884105728", "an integer of up to 53 bits"),
            ("on", "maybe", "`on` is `true` or `false`, not `maybe`"),
            ("size", "0", "workgroup"),
        ] {
            let error = build(vulkan, device, spec().constant(name, value));
            assert!(matches!(error, BackendError::Compile { .. }), "{error}");
            assert!(error.to_string().contains(words), "{name}={value}: {error}");
        }
        let twice = build(vulkan, device, spec().constant("8", "1").constant("sign", "1"));
        assert!(twice.to_string().contains("8 (sign) has two values"), "{twice}");
    });
}

#[test]
fn a_wrong_source_is_shown_with_line_and_column() {
    on_vulkan("a_wrong_source_is_shown_with_line_and_column", |vulkan, device| {
        let log = |spec| match build(vulkan, device, spec) {
            BackendError::Compile { log } => log,
            other => panic!("{other}"),
        };
        let error = log(wgsl("@compute @workgroup_size(1)\nfn k() {\n    let x = y;\n}\n"));
        assert!(error.contains("saxpy.wgsl:3:13"), "{error}");
        assert!(error.contains("let x = y;") && error.contains("y"), "{error}");
        // What parses, and is wrong.
        let error = log(wgsl(
            "@group(0) @binding(0) var<storage, read> x: array<u32>;\n\
             @compute @workgroup_size(1)\nfn k() {\n    x[0] = 1u;\n}\n",
        ));
        assert!(error.contains("saxpy.wgsl:4:"), "{error}");
        assert!(error.contains("x[0] = 1u;"), "{error}");

        let error = log(glsl("#version 450\nvoid main() {\n    uint x = y;\n}\n").define("A", "1"));
        assert!(error.contains("saxpy.comp:3:14"), "{error}");
        assert!(error.contains("uint x = y;"), "{error}");

        let mut words = add_constant();
        words.truncate(words.len() - 1);
        let error = log(spirv(&words));
        assert!(error.contains("saxpy.spv: function 1 has no end"), "{error}");
        let error = log(spirv(&[1, 2, 3, 4, 5, 6]));
        assert!(error.contains("saxpy.spv: word 0: 0x00000001 is not the magic"), "{error}");
        let error = log(spirv(&add_constant()).constant("1", "1"));
        assert!(error.contains("there are: 7 (amount), 9 (size)"), "{error}");
        assert_eq!(vulkan.live_handles(), 0, "no device is made for a wrong source");
    });
}

#[test]
fn entry_points_are_told_apart() {
    on_vulkan("entry_points_are_told_apart", |vulkan, device| {
        let two = "\
@group(0) @binding(0) var<storage, read_write> numbers: array<u32>;
@group(1) @binding(2) var<storage, read_write> others: array<u32>;
@compute @workgroup_size(4)
fn one(@builtin(global_invocation_id) id: vec3<u32>) { numbers[id.x] = 1u; }
@compute @workgroup_size(2)
fn two(@builtin(global_invocation_id) id: vec3<u32>) { others[id.x] = 2u; }
@fragment fn paint() {}
";
        assert_eq!(numbers(vulkan, device, wgsl(two).entry("one")), [1, 1, 1]);
        let spec = wgsl(two).entry("two").build().unwrap();
        let (module, _) = vulkan.build(&device, &spec).unwrap();
        // What the other one binds is not asked for, and set 0 is there all the same.
        let kind = vk::DescriptorType::STORAGE_BUFFER;
        assert_eq!(module.bindings(), [Binding { set: 1, binding: 2, kind, count: 1 }]);
        assert_eq!(module.set_layouts().len(), 2);
        assert_eq!(module.workgroup_size(), [2, 1, 1]);

        match build(vulkan, device, wgsl(two).entry("three")) {
            BackendError::NoEntryPoint { entry, available } => {
                assert_eq!((entry.as_str(), available.join(" ").as_str()), ("three", "one two"));
            }
            other => panic!("{other}"),
        }
        let error = build(vulkan, device, wgsl(two));
        assert!(error.to_string().contains("there are several (one, two): name one"), "{error}");
        let error = build(vulkan, device, wgsl("@fragment fn paint() {}"));
        assert!(error.to_string().contains("no entry point for compute"), "{error}");
        let error = build(vulkan, device, spirv(&add_constant()).entry("sub"));
        assert_eq!(error.to_string(), "there is no entry point `sub`; there are: add");
    });
}

#[test]
fn what_this_backend_cannot_do_is_refused_with_advice() {
    on_vulkan("what_this_backend_cannot_do_is_refused_with_advice", |vulkan, device| {
        let refusal = |spec| match build(vulkan, device, spec) {
            error @ BackendError::Unsupported { .. } => error.to_string(),
            other => panic!("{other}"),
        };
        let empty = "#version 450\nvoid main() {}";
        for (spec, words) in [
            (wgsl(common::SAXPY).header("a.h", ""), "the header `a.h` of kernel `saxpy`"),
            (wgsl(common::SAXPY).define("A", "1"), "an `override` in WGSL"),
            (wgsl(common::SAXPY).option("-O3"), "--unchecked"),
            (spirv(&add_constant()).define("A", "1"), "specialization constant"),
            (glsl(empty).header("a.h", ""), "the header `a.h`"),
            (glsl(empty).define("A", "1\n#extension x"), "one line"),
            (glsl(empty).define("A B", "1"), "plain name"),
            (KernelSpec::builder("saxpy", Language::OpenClC).source("x"), "SPIR-V, WGSL and GLSL"),
        ] {
            let error = refusal(spec);
            assert!(error.contains(words), "{error}");
        }
    });
}

#[test]
fn what_the_device_does_not_have_never_reaches_it() {
    on_vulkan("what_the_device_does_not_have_never_reaches_it", |vulkan, device| {
        let (module, _) = vulkan.build(&device, &saxpy()).unwrap();
        let limits = *module.device().limits();
        drop(module);
        let refusal = |spec| match build(vulkan, device, spec) {
            error @ BackendError::Unsupported { .. } => error.to_string(),
            other => panic!("{other}"),
        };
        let size = limits.max_compute_work_group_size[0] + 1;
        let error = refusal(spirv(&add_constant()).constant("size", size.to_string()));
        assert!(error.contains(&format!("workgroups of [{size}, 1, 1]")), "{error}");

        // A capability that no device of this backend has: 6022, matrices of several invocations.
        let mut words = add_constant();
        words.splice(5..5, [2 << 16 | 17, 6022]);
        let error = refusal(spirv(&words));
        assert!(error.contains("capability 6022") && error.contains("`device`"), "{error}");

        let bound = |kind: u32, set: u32, count: u32| {
            let mut code = Assembler::new(3);
            let float = code.float();
            let block = code.block(&[(float, 0)]);
            let (length, all) = (code.constant(count), code.id());
            code.op(28, &[all, block, length]);
            let variable = code.bound(all, kind, set, 0);
            spirv(&code.finish("k", &[variable]))
        };
        let most = limits.max_per_stage_descriptor_storage_buffers;
        if most < u32::MAX {
            let error = refusal(bound(12, 0, most + 1));
            assert!(error.contains("storage buffers, beyond"), "{error}");
        }
        if limits.max_bound_descriptor_sets < 31 {
            let error = refusal(bound(12, limits.max_bound_descriptor_sets, 1));
            assert!(error.contains("descriptor set"), "{error}");
        }
        let words = limits.max_compute_shared_memory_size / 4 + 1;
        let tile = "\
override length: u32 = 1;
var<workgroup> tile: array<vec4<u32>, length>;
@compute @workgroup_size(1) fn k() { tile[0] = vec4(1u); tile[1] = tile[0]; }
";
        let error = refusal(wgsl(tile).constant("length", words.div_ceil(4).to_string()));
        assert!(error.contains("bytes of workgroup memory, beyond"), "{error}");

        let mut code = Assembler::new(3);
        let float = code.float();
        let block = code.block(&[(float, limits.max_push_constants_size)]);
        let variable = code.variable(block, 9);
        let error = refusal(spirv(&code.finish("k", &[variable])));
        assert!(error.contains("bytes of push constants"), "{error}");
    });
}

#[test]
fn what_the_device_has_may_be_used() {
    on_vulkan("what_the_device_has_may_be_used", |vulkan, device| {
        let buffer = "@group(0) @binding(0) var<storage, read_write> numbers: array<u32>;\n";
        let kernel = |enable: &str, value: &str| {
            let main = format!(
                "@compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3<u32>) \
                 {{ let n = numbers[id.x]; numbers[id.x] = {value}; }}"
            );
            wgsl(&format!("{enable}{buffer}{main}"))
        };
        for (feature, enable, value, expected) in [
            ("shaderFloat16", "enable f16;\n", "u32(f16(n) * 2.0h)", 20),
            ("shaderInt64", "", "u32((u64(n) << 33u) >> 32u)", 20),
            ("shaderFloat64", "", "u32(f64(n) * 2.0lf)", 20),
            ("subgroupArithmetic", "", "subgroupAdd(n)", 10),
            ("shaderIntegerDotProduct", "", "u32(dot4U8Packed(n, 2u))", 20),
        ] {
            let spec = kernel(enable, value).build().unwrap();
            match vulkan.build(&device, &spec) {
                Ok((module, _)) => {
                    assert_eq!(launch(&module, &[&[10]], &[], 1), [[expected]], "{feature}");
                }
                // Known before the driver is asked, and the feature is named.
                Err(error @ BackendError::Unsupported { .. }) => {
                    assert!(error.to_string().contains(feature), "{error}");
                }
                Err(other) => panic!("{feature}: {other}"),
            }
        }
    });
}

#[test]
fn devices_are_numbered_the_same_each_time() {
    on_vulkan("devices_are_numbered_the_same_each_time", |vulkan, device| {
        let devices = vulkan.devices().unwrap();
        assert_eq!(VulkanBackend::new().devices().unwrap(), devices);
        for (index, device) in devices.iter().enumerate() {
            assert_eq!(device.id, DeviceId::new(Family::VULKAN, index as u32));
            assert!(!device.name.is_empty() && !device.driver.is_empty());
        }
        let target = vulkan.target(&device).unwrap();
        assert!(target.as_str().contains(&devices[0].name), "{}", target.as_str());
        let toolchain = vulkan.toolchain(&target).unwrap();
        assert!(toolchain.as_str().contains(&devices[0].driver), "{}", toolchain.as_str());
        // Only what naga translates depends on naga.
        let of = |spec: &KernelSpec| vulkan.toolchain_for(&target, spec).unwrap();
        assert_eq!(of(&spirv(&add_constant()).build().unwrap()), toolchain);
        assert!(of(&saxpy()).as_str().starts_with("naga "));

        let missing = DeviceId::new(Family::VULKAN, 1000);
        let error = vulkan.build(&missing, &saxpy()).unwrap_err();
        assert!(error.to_string().contains("there is no device Vulkan:1000"), "{error}");
        let other = DeviceId::new(Family::HOST, 0);
        assert!(matches!(vulkan.target(&other).unwrap_err(), BackendError::NoDevice { .. }));
        assert!(vulkan.toolchain(&Target::new("sm_90")).is_err());
        let error = vulkan.compile_for(&target, &saxpy()).unwrap_err();
        assert!(matches!(error, BackendError::Unsupported { .. }), "{error}");
    });
}

#[test]
fn a_module_outlives_its_device() {
    on_vulkan("a_module_outlives_its_device", |vulkan, device| {
        let (old, _) = vulkan.build(&device, &saxpy()).unwrap();
        // A device, a shader module, a layout of a set and one of the pipeline, a pipeline.
        assert_eq!(vulkan.live_handles(), 5);
        vulkan.destroy_device(&device).unwrap();
        // Twice is no harm, and neither is a device that never was.
        vulkan.destroy_device(&device).unwrap();
        vulkan.destroy_device(&DeviceId::new(Family::VULKAN, 1000)).unwrap();
        let (new, _) = vulkan.build(&device, &saxpy()).unwrap();
        let handle = |module: &grainstore_vulkan::VulkanModule| module.device().device().handle();
        assert_ne!(handle(&old), handle(&new), "the device was made anew");
        check_saxpy(&old);
        check_saxpy(&new);
        let (again, _) = vulkan.build(&device, &saxpy()).unwrap();
        assert_eq!(handle(&again), handle(&new), "one device for all");
        assert_eq!(vulkan.live_handles(), 14);
        for module in [old, new, again] {
            vulkan.unload(module).unwrap();
        }
        assert_eq!(vulkan.live_handles(), 1);
        vulkan.forget_device(&device).unwrap();
        assert_eq!(vulkan.live_handles(), 0);
    });
}

#[test]
fn a_failed_build_leaves_no_handle() {
    on_vulkan("a_failed_build_leaves_no_handle", |vulkan, device| {
        let (module, _) = vulkan.build(&device, &saxpy()).unwrap();
        let before = vulkan.live_handles();
        let size = module.device().limits().max_compute_work_group_size[0] + 1;
        for _ in 0..3 {
            build(vulkan, device, spirv(&add_constant()).constant("size", size.to_string()));
            build(vulkan, device, wgsl("nonsense"));
        }
        assert_eq!(vulkan.live_handles(), before);
    });
}

#[test]
fn kernels_are_built_and_launched_side_by_side() {
    on_vulkan("kernels_are_built_and_launched_side_by_side", |vulkan, device| {
        let start = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for number in 0..8_u32 {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    let spec = spirv(&add_constant()).constant("amount", number.to_string());
                    let (module, _) = vulkan.build(&device, &spec.build().unwrap()).unwrap();
                    for _ in 0..10 {
                        let out = launch(&module, &[&[1; 64]], &[], 1);
                        assert_eq!(out, [[1 + number; 64]]);
                    }
                });
            }
        });
        assert_eq!(vulkan.live_handles(), 1);
    });
}
