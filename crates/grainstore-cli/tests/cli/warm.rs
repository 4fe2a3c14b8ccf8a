//! `grainstore warm` as its users run it, on the host backend.

use std::fs;

use crate::place::{Place, Ran, THREE};

/// The figures of `--json`: compiled, from disk, failed.
fn figures(ran: &Ran) -> (u64, u64, u64) {
    let json = ran.json();
    let figure = |name: &str| json[name].as_u64().unwrap_or_else(|| panic!("no {name}: {json}"));
    (figure("compiled"), figure("disk"), figure("failed"))
}

#[test]
fn the_second_run_compiles_nothing() {
    let place = Place::with_manifest(THREE);
    let first = place.run(&["warm", "--json"]).expect(0);
    assert_eq!(figures(&first), (3, 0, 0));
    let stored = place.stored();
    assert_eq!(stored.len(), 3);
    let second = place.run(&["warm", "--json"]).expect(0);
    assert_eq!(figures(&second), (0, 3, 0));
    assert_eq!(place.stored(), stored);
}

#[test]
fn the_json_is_whole_and_alone_on_standard_output() {
    let place = Place::with_manifest(THREE);
    let json = place.run(&["warm", "--json"]).expect(0).json();
    let mut fields: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        ["compile_ms", "compiled", "disk", "elapsed_ms", "failed", "kernels", "memory", "remote"]
    );
    let kernels = json["kernels"].as_array().unwrap();
    let variants: Vec<_> =
        kernels.iter().map(|kernel| kernel["variant"].as_str().unwrap()).collect();
    assert_eq!(variants, ["BLOCK=64", "BLOCK=128", "BLOCK=256"]);
    for kernel in kernels {
        assert_eq!(kernel["name"], "saxpy");
        assert_eq!(kernel["backend"], "host");
        assert_eq!(kernel["device"], "host:0");
        assert_eq!(kernel["outcome"], "compiled");
        assert!(kernel["ms"].as_f64().unwrap() > 0.0);
        assert_eq!(kernel["fingerprint"].as_str().unwrap().len(), 64);
        assert!(kernel.get("error").is_none());
    }
}

#[test]
fn the_table_has_a_row_for_each_backend_and_progress_stays_off_it() {
    let place = Place::with_manifest(THREE);
    let ran = place.run(&["warm"]).expect(0);
    let lines: Vec<_> = ran.out.lines().collect();
    assert_eq!(lines.len(), 2, "{}", ran.out);
    let row: Vec<_> = lines[1].split_whitespace().collect();
    assert_eq!(row[..4], ["host", "3", "0", "0"]);
    ran.says("compiled").says("BLOCK=128");
    assert!(!ran.err.contains('\u{1b}') && !ran.out.contains('\u{1b}'), "no colors in a file");
    let quiet = Place::with_manifest(THREE).run(&["warm", "--quiet"]).expect(0);
    assert!(!quiet.err.contains("BLOCK=128"), "{}", quiet.err);
}

#[test]
fn a_kernel_that_does_not_compile_is_told_and_the_rest_is_done() {
    let place = Place::with_manifest(&format!(
        "{THREE}\n[[kernel]]\nname = \"broken\"\nsource = \"broken.c\"\n"
    ));
    place.write("broken.c", "void broken(void) { undeclared_thing; }\n");
    let ran = place.run(&["warm", "--json"]).expect(1);
    assert_eq!(figures(&ran), (3, 0, 1));
    ran.says("broken").says("undeclared_thing");
    let json = ran.json();
    let broken = &json["kernels"][3];
    assert_eq!(broken["outcome"], "failed");
    assert!(broken["error"].as_str().unwrap().contains("undeclared_thing"));
    assert_eq!(place.stored().len(), 3, "nothing is kept of what failed");
    // It is tried again, and the others are not.
    let again = place.run(&["warm", "--json"]).expect(1);
    assert_eq!(figures(&again), (0, 3, 1));
}

#[test]
fn an_entry_point_that_is_not_there_fails_its_kernel_and_is_not_kept() {
    let place =
        Place::with_manifest("[[kernel]]\nname = \"k\"\nsource = \"saxpy.c\"\nentry = \"sapxy\"\n");
    let ran = place.run(&["warm", "--json"]).expect(1);
    assert_eq!(figures(&ran), (0, 0, 1));
    ran.says("sapxy").says("saxpy");
    assert_eq!(place.stored().len(), 0);
}

#[test]
fn headers_defines_and_options_reach_the_compiler_and_the_key() {
    let place = Place::new();
    place.write("n.h", "#define N 2\n");
    place.write(
        "k.c",
        "#include \"n.h\"\n#if N != 2 || M != 3 || O != 4\n#error wrong\n#endif\nint k(void) { return N; }\n",
    );
    let manifest = "[[kernel]]\nname = \"k\"\nsource = \"k.c\"\nheaders = [\"n.h\"]\n\
                    options = [\"-DO=4\"]\n[kernel.defines]\nM = 3\n";
    place.write("grainstore.toml", manifest);
    assert_eq!(figures(&place.run(&["warm", "--json"]).expect(0)), (1, 0, 0));
    place.write("n.h", "#define N 2 // changed\n");
    assert_eq!(figures(&place.run(&["warm", "--json"]).expect(0)), (1, 0, 0));
    assert_eq!(figures(&place.run(&["warm", "--json"]).expect(0)), (0, 1, 0));
}

#[test]
fn the_manifest_is_found_above_and_by_name_and_in_a_folder() {
    let place = Place::with_manifest(THREE);
    place.write("deep/er/x", "");
    let mut above = place.grainstore(&["warm", "--json"]);
    let above = above.current_dir(place.path("deep/er")).output().unwrap();
    assert_eq!(figures(&Ran::new(above).expect(0)), (3, 0, 0));
    fs::rename(place.path("grainstore.toml"), place.path("other.toml")).unwrap();
    let named = place.run(&["warm", "other.toml", "--json"]).expect(0);
    assert_eq!(figures(&named), (0, 3, 0));
    place.write("sub/saxpy.c", crate::place::SAXPY);
    place.write("sub/grainstore.toml", THREE);
    let folder = place.run(&["warm", "sub", "--json"]).expect(0);
    assert_eq!(figures(&folder), (0, 3, 0), "paths are no part of a key");
}

#[test]
fn the_store_is_where_the_option_says() {
    let place = Place::with_manifest(THREE);
    place.run(&["warm", "--store", "elsewhere"]).expect(0);
    assert!(place.path("elsewhere").is_dir());
    assert!(!place.path("store").exists());
    let mut home = place.grainstore(&["warm"]);
    Ran::new(home.env_remove("GRAINSTORE_DIR").output().unwrap()).expect(0);
    assert!(place.path("home/.cache/grainstore").is_dir());
}

#[test]
fn a_backend_that_is_asked_for_is_the_only_one() {
    let place = Place::with_manifest(THREE);
    let ran = place.run(&["warm", "--backend", "host", "--jobs", "1", "--json"]).expect(0);
    assert_eq!(figures(&ran), (3, 0, 0));
    place.run(&["warm", "--backend", "hots"]).expect(2).says("did you mean `host`?");
    place.run(&["warm", "--backend", "opencl"]).expect(2).says("no kernel");
}

#[test]
fn a_compiler_that_is_missing_is_named_with_what_would_help() {
    let place = Place::with_manifest(THREE);
    let mut command = place.grainstore(&["warm"]);
    let ran = Ran::new(command.env("CC", "/nowhere/cc").output().unwrap()).expect(3);
    ran.says("/nowhere/cc").says("saxpy");
    assert_eq!(place.stored().len(), 0);
}

#[test]
fn a_language_that_no_backend_takes_is_skipped_and_listed() {
    let place = Place::with_manifest(&format!(
        "{THREE}\n[[kernel]]\nname = \"shader\"\nsource = \"s.metal\"\n"
    ));
    place.write("s.metal", "kernel void f() {}");
    let ran = place.run(&["warm", "--json"]).expect(0);
    assert_eq!(figures(&ran), (3, 0, 0));
    ran.says("shader").says("msl");
    place.write("grainstore.toml", "[[kernel]]\nname = \"shader\"\nsource = \"s.metal\"\n");
    place.run(&["warm"]).expect(3).says("msl");
}

#[test]
fn an_artifact_that_was_broken_is_made_again() {
    let place = Place::with_manifest(THREE);
    place.run(&["warm"]).expect(0);
    let victim = &place.stored()[0];
    let mut bytes = fs::read(victim).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(victim, bytes).unwrap();
    assert_eq!(figures(&place.run(&["warm", "--json"]).expect(0)), (1, 2, 0));
    assert_eq!(figures(&place.run(&["warm", "--json"]).expect(0)), (0, 3, 0));
}

#[test]
fn two_kernels_of_one_content_and_two_names_are_both_told() {
    let place = Place::with_manifest(
        "[[kernel]]\nname = \"a\"\nsource = \"saxpy.c\"\n[[kernel]]\nname = \"b\"\nsource = \
         \"saxpy.c\"\n",
    );
    let json = place.run(&["warm", "--json"]).expect(0).json();
    assert_eq!(json["kernels"].as_array().unwrap().len(), 2);
    assert_eq!(json["failed"], 0);
}

/// [`SAXPY`] for the host, and the same for OpenCL, in two variants.
const BOTH: &str = r#"
[[kernel]]
name = "saxpy"
sources = ["saxpy.c", "saxpy.cl"]
entry = "saxpy"
[kernel.options_for]
opencl-c = ["-cl-mad-enable"]
[kernel.defines]
BLOCK = [64, 128]
"#;

const SAXPY_CL: &str = "\
kernel void saxpy(float a, global const float *x, global float *y) {
    size_t i = get_global_id(0);
    y[i] = a * x[i] + y[i];
}
";

fn both() -> Place {
    let place = Place::with_manifest(BOTH);
    place.write("saxpy.cl", SAXPY_CL);
    place
}

/// Runs it where OpenCL's library is not to be found.
fn without_opencl(place: &Place, arguments: &[&str]) -> Ran {
    let mut command = place.grainstore(arguments);
    Ran::new(command.env("OPENCL_DYLIB_PATH", "/nowhere/libOpenCL.so").output().unwrap())
}

#[test]
fn a_kernel_in_two_languages_is_made_for_both_backends() {
    let place = both();
    if !place.has("opencl") {
        return;
    }
    let first = place.run(&["warm", "--json"]).expect(0);
    assert_eq!(figures(&first), (4, 0, 0));
    let json = first.json();
    let backends: Vec<_> = json["kernels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kernel| kernel["backend"].as_str().unwrap())
        .collect();
    assert_eq!(backends, ["host", "host", "opencl", "opencl"]);
    assert_eq!(figures(&place.run(&["warm", "--json"]).expect(0)), (0, 4, 0));
    place.write("saxpy.cl", SAXPY_CL.replace("y[i] = a", "y[j] = a"));
    let broken = place.run(&["warm", "--json"]).expect(1);
    assert_eq!(figures(&broken), (0, 2, 2));
    broken.says("use of undeclared identifier 'j'");
}

#[test]
fn a_driver_that_is_missing_is_listed_and_fails_nothing() {
    let place = both();
    let ran = without_opencl(&place, &["warm", "--json"]).expect(0);
    assert_eq!(figures(&ran), (2, 0, 0));
    ran.says("skipped saxpy: opencl: ").says("/nowhere/libOpenCL.so");
}

#[test]
fn a_driver_that_was_asked_for_and_is_missing_makes_the_exit_code_3() {
    let place = both();
    let asked = without_opencl(&place, &["warm", "--backend", "opencl", "--backend", "host"]);
    let asked = asked.expect(3);
    asked.says("skipped saxpy: opencl: ").says("error: the backend opencl is not here");
    assert!(asked.out.contains("host"), "the rest is done all the same: {}", asked.out);
    assert_eq!(place.stored().len(), 2);
    let alone = without_opencl(&place, &["warm", "--backend", "opencl"]).expect(3);
    alone.says("no kernel of").says("grainstore doctor");
    let only = "[[kernel]]\nname = \"k\"\nsource = \"saxpy.cl\"\nbackends = [\"opencl\"]\n";
    place.write("grainstore.toml", only);
    without_opencl(&place, &["warm"]).expect(3).says("skipped k: opencl: ");
}

/// A manifest serves those who built the program with more than this one has.
#[cfg(not(feature = "wgpu"))]
#[test]
fn a_backend_that_was_left_out_of_the_build_is_told_and_fails_nothing() {
    let with =
        |backends: &str| THREE.replace("entry =", &format!("backends = {backends}\nentry ="));
    let place = Place::with_manifest(&with("[\"host\", \"wgpu\"]"));
    let ran = place.run(&["warm", "--json"]).expect(0);
    ran.says("skipped saxpy: this program was built without wgpu").says("`--features wgpu`");
    assert_eq!(ran.json()["compiled"], 3);
    place.run(&["warm", "--backend", "host"]).expect(0);

    let ran = place.run(&["warm", "--backend", "wgpu"]).expect(3);
    ran.says("built without wgpu").says("`--features wgpu`");
    place.write("grainstore.toml", with("[\"wgpu\"]"));
    place.run(&["warm"]).expect(3).says("skipped saxpy: this program was built without wgpu");
}
