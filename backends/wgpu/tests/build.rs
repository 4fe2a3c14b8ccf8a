//! From a spec to pipelines that compute and draw, on whatever device wgpu finds.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use common::{ADD, DEVICE, add, launch, on_wgpu, spec};
use grainstore::{DeviceId, Family};
use grainstore_runtime::{Backend, BackendError, KernelSpec, KernelSpecBuilder, Language, Target};
use grainstore_wgpu::{Layout, WgpuBackend};
use wgpu::{
    BindGroupLayoutDescriptor, BindGroupLayoutEntry, BindingType, BufferBindingType, ShaderStages,
};

fn log(wgpu: &WgpuBackend, builder: KernelSpecBuilder) -> String {
    match wgpu.build(&DEVICE, &builder.build().unwrap()).unwrap_err() {
        BackendError::Compile { log } => log,
        other => panic!("{other}"),
    }
}

#[test]
fn a_kernel_is_built_and_computes() {
    on_wgpu("a_kernel_is_built_and_computes", |wgpu, _| {
        let (module, _) = wgpu.build(&DEVICE, &add(41)).unwrap();
        assert_eq!(launch(&module, "add", &[1; 100]), [42; 100]);
        let (module, _) = wgpu.build(&DEVICE, &spec(ADD).build().unwrap()).unwrap();
        assert_eq!(launch(&module, "add", &[1, 2]), [2, 3], "the default of the override");
        wgpu.unload(module).unwrap();
    });
}

#[test]
fn constants_have_the_type_of_their_override() {
    on_wgpu("constants_have_the_type_of_their_override", |wgpu, _| {
        let source = "override size: u32; override on: bool; @id(7) override half: f32; override low: i32;
            @group(0) @binding(0) var<storage, read_write> x: array<u32>;
            @compute @workgroup_size(size) fn f(@builtin(local_invocation_index) i: u32) {
                if i == size - 1 { x[0] = u32(8 * half) + select(100u, 0u, on) + u32(low + 10); } }";
        let spec = spec(source)
            .entry("f")
            .constant("size", "32")
            .constant("on", "true")
            .constant("7", "0.5")
            .constant("low", "-3")
            .build()
            .unwrap();
        let (module, _) = wgpu.build(&DEVICE, &spec).unwrap();
        assert_eq!(launch(&module, "f", &[0]), [11]);
    });
}

#[test]
fn without_an_entry_point_each_compute_function_is_a_pipeline() {
    on_wgpu("without_an_entry_point_each_compute_function_is_a_pipeline", |wgpu, _| {
        let source = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
            fn helper() -> u32 { return 5; }
            @compute @workgroup_size(1) fn b() { x[0] = helper(); }
            @compute @workgroup_size(1) fn a() { x[0] = 6; }";
        let (module, _) = wgpu.build(&DEVICE, &spec(source).build().unwrap()).unwrap();
        assert_eq!(launch(&module, "b", &[0]), [5]);
        assert_eq!(launch(&module, "a", &[0]), [6]);
        let error = module.compute("helper").unwrap_err().to_string();
        assert_eq!(error, "there is no entry point `helper`; there are: b, a");

        let none = spec("fn f() {}").build().unwrap();
        let error = wgpu.build(&DEVICE, &none).unwrap_err();
        assert!(matches!(error, BackendError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("no `@compute` function"), "{error}");
    });
}

#[test]
fn a_missing_entry_point_names_those_that_are_there() {
    on_wgpu("a_missing_entry_point_names_those_that_are_there", |wgpu, _| {
        match wgpu.build(&DEVICE, &spec(ADD).entry("ad").build().unwrap()).unwrap_err() {
            BackendError::NoEntryPoint { entry, available } => {
                assert_eq!((entry.as_str(), available), ("ad", vec!["add".to_owned()]));
            }
            other => panic!("{other}"),
        }
    });
}

#[test]
fn a_wrong_source_gives_line_column_and_text() {
    on_wgpu("a_wrong_source_gives_line_column_and_text", |wgpu, _| {
        // What the parser does not take.
        let wrong = "@compute @workgroup_size(1)\nfn f() {\n    let x = 1 + y;\n}\n";
        let error = log(wgpu, spec(wrong).entry("f"));
        assert!(error.starts_with("kernel.wgsl:3:17: error: "), "{error}");
        assert!(error.contains("    let x = 1 + y;") && error.contains("`y`"), "{error}");
        assert!(!error.contains(" wgsl:"), "{error}");

        // What only the validator sees.
        let wrong = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;\n\
                     @compute @workgroup_size(1)\nfn f() {\n    if true { workgroupBarrier(); } x[0] = f32(1);\n}\n";
        let error = log(wgpu, spec(wrong).entry("f"));
        assert!(error.starts_with("kernel.wgsl:4:"), "{error}");
    });
}

#[test]
fn what_makes_no_pipeline_says_why() {
    on_wgpu("what_makes_no_pipeline_says_why", |wgpu, _| {
        let error = log(wgpu, spec(ADD).entry("add").constant("stop", "1"));
        assert!(error.starts_with("kernel.wgsl: in `add`: "), "{error}");
        assert!(error.contains("'stop' not found in the shader"), "{error}");

        let source = "override needed: u32; @compute @workgroup_size(needed) fn f() {}";
        let error = log(wgpu, spec(source).entry("f"));
        assert!(error.contains("needed"), "{error}");

        let source = "@compute @workgroup_size(2, 1, 1024) fn f() {}";
        let error = log(wgpu, spec(source).entry("f"));
        assert!(error.contains("in `f`: ") && error.contains("1024"), "{error}");
    });
}

#[test]
fn what_wgsl_has_not_is_refused_with_advice() {
    on_wgpu("what_wgsl_has_not_is_refused_with_advice", |wgpu, _| {
        let refusal = |builder: KernelSpecBuilder| match wgpu
            .build(&DEVICE, &builder.build().unwrap())
            .unwrap_err()
        {
            error @ BackendError::Unsupported { .. } => error.to_string(),
            other => panic!("{other}"),
        };
        let error = refusal(spec(ADD).define("BLOCK", "64"));
        assert!(
            error.contains("`BLOCK` of kernel `kernel`") && error.contains("override"),
            "{error}"
        );
        let error = refusal(spec(ADD).header("h.wgsl", "const A = 1;"));
        assert!(error.contains("`h.wgsl`") && error.contains("in front of the source"), "{error}");
        let error = refusal(spec(ADD).constant("step", "two"));
        assert!(error.contains("the constant `step` of kernel `kernel` is `two`"), "{error}");
        let error = refusal(spec(ADD).option("-O3"));
        assert!(error.contains("the option `-O3`"), "{error}");
        let error = refusal(KernelSpec::builder("k", Language::Glsl).source("void main() {}"));
        assert!(error.contains("written in glsl"), "{error}");
    });
}

fn entry(binding: u32) -> BindGroupLayoutEntry {
    BindGroupLayoutEntry {
        binding,
        visibility: ShaderStages::COMPUTE,
        ty: BindingType::Buffer {
            ty: BufferBindingType::Storage { read_only: false },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    }
}

#[test]
fn an_explicit_layout_fits_the_applications_own() {
    on_wgpu("an_explicit_layout_fits_the_applications_own", |wgpu, device| {
        let with = |layout: Layout| {
            spec(ADD)
                .entry("add")
                .option(layout)
                .option("--no-zero-workgroup-memory")
                .build()
                .unwrap()
        };
        let (module, _) = wgpu.build(&DEVICE, &with(Layout::new().group(&[entry(0)]))).unwrap();
        assert_eq!(launch(&module, "add", &[1]), [2]);

        // A bind group of the application's own layout of the same entries.
        let own = device.create_bind_group_layout(&BindGroupLayoutDescriptor {
            label: None,
            entries: &[entry(0)],
        });
        let buffer = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: 4,
            usage: wgpu::BufferUsages::STORAGE,
            mapped_at_creation: false,
        });
        let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &own,
            entries: &[wgpu::BindGroupEntry { binding: 0, resource: buffer.as_entire_binding() }],
        });
        let scope = device.push_error_scope(wgpu::ErrorFilter::Validation);
        let mut encoder = device.create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            pass.set_pipeline(module.compute("add").unwrap());
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(1, 1, 1);
        }
        drop(encoder.finish());
        assert!(pollster::block_on(scope.pop()).is_none());

        let error = match wgpu.build(&DEVICE, &with(Layout::new().group(&[entry(1)]))).unwrap_err()
        {
            BackendError::Compile { log } => log,
            other => panic!("{other}"),
        };
        assert!(error.contains("in `add`"), "{error}");
        let twice = with(Layout::new().group(&[entry(0), entry(0)]));
        let error = wgpu.build(&DEVICE, &twice).unwrap_err().to_string();
        assert!(error.contains("the layout of kernel `kernel` failed"), "{error}");
    });
}

#[test]
fn builds_at_once_get_their_own_errors() {
    on_wgpu("builds_at_once_get_their_own_errors", |wgpu, _| {
        let start = Barrier::new(8);
        thread::scope(|scope| {
            for number in 0..8 {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    for round in 0..20 {
                        if number % 2 == 0 {
                            let (module, _) = wgpu.build(&DEVICE, &add(number)).unwrap();
                            if round == 0 {
                                assert_eq!(launch(&module, "add", &[1]), [1 + number]);
                            }
                        } else {
                            let source = format!("fn f() {{ let x = wrong_{number}; }}");
                            let error = log(wgpu, spec(&source));
                            assert!(error.contains(&format!("`wrong_{number}`")), "{error}");
                        }
                    }
                });
            }
        });
    });
}

#[test]
fn the_applications_handlers_and_scopes_see_nothing() {
    on_wgpu("the_applications_handlers_and_scopes_see_nothing", |wgpu, device| {
        let seen = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&seen);
        device.on_uncaptured_error(Arc::new(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        }));
        let lost = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&lost);
        device.set_device_lost_callback(move |_, _| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let outer = device.push_error_scope(wgpu::ErrorFilter::Validation);
        log(wgpu, spec("fn f( {"));
        wgpu.build(&DEVICE, &spec(ADD).entry("no").build().unwrap()).unwrap_err();
        wgpu.build(&DEVICE, &add(1)).unwrap();
        assert!(pollster::block_on(outer.pop()).is_none());
        assert_eq!(seen.load(Ordering::Relaxed), 0);

        // The handlers are still the application's.
        let _ = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: 4,
            usage: wgpu::BufferUsages::empty(),
            mapped_at_creation: false,
        });
        assert_eq!(seen.load(Ordering::Relaxed), 1);
        device.destroy();
        device.poll(wgpu::PollType::Poll).unwrap();
        assert_eq!(lost.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn devices_are_those_that_were_given() {
    on_wgpu("devices_are_those_that_were_given", |wgpu, device| {
        let devices = wgpu.devices().unwrap();
        assert_eq!(devices.len(), 1);
        assert_eq!(devices[0].id, DEVICE);
        assert_eq!(devices[0].name, device.adapter_info().name);
        let target = wgpu.target(&DEVICE).unwrap();
        assert!(target.as_str().contains(&devices[0].name), "{}", target.as_str());
        let toolchain = wgpu.toolchain(&target).unwrap();
        let version = device.adapter_info().driver_info;
        assert!(toolchain.as_str().starts_with("wgpu 30; "), "{}", toolchain.as_str());
        assert!(toolchain.as_str().contains(&version), "{}", toolchain.as_str());

        for wrong in [DeviceId::new(Family::WGPU, 1), DeviceId::new(Family::VULKAN, 0)] {
            let error = wgpu.build(&wrong, &add(1)).unwrap_err();
            assert!(matches!(error, BackendError::NoDevice { .. }), "{error}");
            assert!(error.to_string().contains("there are: wgpu:0"), "{error}");
        }
        assert!(wgpu.toolchain(&Target::new("sm_90")).is_err());
        let error = wgpu.compile_for(&target, &add(1)).unwrap_err();
        assert!(matches!(error, BackendError::Unsupported { .. }), "{error}");
    });
}

#[test]
fn a_backend_without_devices_says_how_to_give_one() {
    let wgpu = WgpuBackend::builder().build();
    let error = wgpu.devices().unwrap_err();
    assert!(matches!(error, BackendError::Missing { .. }), "{error}");
    assert!(error.to_string().contains(".device(device, queue)"), "{error}");
    let error = wgpu.build(&DEVICE, &add(1)).unwrap_err();
    assert!(matches!(error, BackendError::NoDevice { .. }), "{error}");
}
