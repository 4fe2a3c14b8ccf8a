//! What is wrong is said on standard error, with its place and what to do; nothing is half done.

use std::fs;

use crate::place::{Place, THREE};

/// Runs `warm` on this manifest, which is wrong.
fn wrong(manifest: &str, words: &[&str]) {
    let place = Place::with_manifest(manifest);
    let ran = place.run(&["warm", "--json"]).expect(2);
    assert_eq!(ran.out, "");
    for words in words {
        ran.says(words);
    }
    assert!(!place.path("store").exists(), "nothing was begun");
}

#[test]
fn a_manifest_that_is_missing() {
    let place = Place::new();
    let ran = place.run(&["warm", "gone.toml"]).expect(2);
    ran.says("error: gone.toml: there is no such manifest").says("help:");
    assert!(!place.path("store").exists());
}

#[test]
fn a_manifest_that_is_malformed_or_empty() {
    wrong("[[kernel]]\nname = \n", &["grainstore.toml:2:8: ", "2 | name ="]);
    wrong("", &["grainstore.toml: there is no [[kernel]]", "help: add one"]);
}

#[test]
fn an_unknown_field() {
    wrong(
        "[[kernel]]\nname = \"k\"\nsorce = \"saxpy.c\"\n",
        &["grainstore.toml:3:1: unknown field `sorce`", "did you mean `source`?", "^^^^^"],
    );
}

#[test]
fn an_unknown_field_of_one_kernel_leaves_the_others() {
    let place = Place::with_manifest(&format!(
        "[[kernel]]\nname = \"wrong\"\nsorce = \"saxpy.c\"\n{THREE}"
    ));
    let ran = place.run(&["warm", "--json"]).expect(1);
    ran.says("grainstore.toml:3:1: unknown field `sorce`").says("did you mean `source`?");
    let json = ran.json();
    assert_eq!((&json["compiled"], &json["failed"]), (&3.into(), &1.into()));
    assert_eq!(json["kernels"][3]["name"], "wrong");
}

#[test]
fn a_file_that_is_missing() {
    wrong(
        "[[kernel]]\nname = \"k\"\nsource = \"gone.c\"\n",
        &["grainstore.toml:3:10: there is no file `gone.c`", "relative to the manifest"],
    );
}

#[test]
fn an_unknown_language_or_backend() {
    let kernel = "[[kernel]]\nname = \"k\"\nsource = \"saxpy.c\"\n";
    wrong(
        &format!("{kernel}language = \"klingon\"\n"),
        &[":4:12: unknown language `klingon`", "the languages are: c, opencl-c"],
    );
    wrong(
        &format!("{kernel}backends = [\"hosst\"]\n"),
        &[":4:13: unknown backend `hosst`", "did you mean `host`?"],
    );
}

#[test]
fn an_empty_matrix() {
    wrong(
        "[[kernel]]\nname = \"k\"\nsource = \"saxpy.c\"\n[kernel.defines]\nBLOCK = []\n",
        &[":5:9: the list of `BLOCK` is empty", "at least one value"],
    );
}

#[test]
fn two_kernels_of_one_name() {
    let place = Place::with_manifest(&format!("{THREE}{THREE}"));
    let ran = place.run(&["warm", "--json"]).expect(1);
    ran.says("grainstore.toml:10:8: there are two kernels named `saxpy`").says("differently");
    let json = ran.json();
    assert_eq!((&json["compiled"], &json["failed"]), (&3.into(), &1.into()));
}

#[test]
fn a_kernel_that_is_wrong_is_told_and_the_others_are_done() {
    let place = Place::with_manifest(&format!(
        "[[kernel]]\nname = \"wrong\"\nsource = \"gone.c\"\n{THREE}"
    ));
    let ran = place.run(&["warm", "--json"]).expect(1);
    ran.says("grainstore.toml:3:10: there is no file `gone.c`").says("help: ");
    let json = ran.json();
    assert_eq!((&json["compiled"], &json["failed"]), (&3.into(), &1.into()));
    let wrong = &json["kernels"][3];
    assert_eq!((&wrong["name"], &wrong["backend"]), (&"wrong".into(), &"".into()));
    assert!(wrong["error"].as_str().unwrap().contains("gone.c"));
}

#[test]
fn a_header_that_the_manifest_does_not_name() {
    let place = Place::with_manifest("[[kernel]]\nname = \"k\"\nsource = \"k.c\"\n");
    place.write("common.h", "#define ONE 1\n");
    place.write("k.c", "#include \"common.h\"\nint one(void) { return ONE; }\n");
    let ran = place.run(&["warm"]).expect(1);
    ran.says("k.c:1:10: fatal error").says("= help: name the file in the kernel's `headers`");
}

#[test]
fn a_store_that_cannot_be_made() {
    let place = Place::with_manifest(THREE);
    place.write("file", "in the way");
    let ran = place.run(&["warm", "--store", "file/store"]).expect(3);
    ran.says("file/store").says("GRAINSTORE_DIR");
    assert_eq!(ran.out, "");
    assert_eq!(fs::read(place.path("file")).unwrap(), b"in the way");
    // Nor is it an empty one to those who only look.
    for command in ["ls", "stats", "verify"] {
        place.run(&[command, "--store", "file"]).expect(3).says("something else is in the way");
    }
}

#[test]
fn a_folder_for_temporary_files_that_is_not_there() {
    let place = Place::with_manifest(THREE);
    let mut warm = place.grainstore(&["warm"]);
    let ran = warm.env("TMPDIR", place.path("gone")).output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(said.contains("gone") && said.contains("`TMPDIR` names another place"), "{said}");
}

#[test]
fn a_command_line_that_is_wrong() {
    let place = Place::with_manifest(THREE);
    place.run(&[]).expect(2).says("Usage:");
    place.run(&["wram"]).expect(2).says("warm");
    for jobs in ["0", "-1", "two", ""] {
        let ran = place.run(&["warm", "--jobs", jobs]).expect(2);
        ran.says("--jobs").says("write 1 or more").says("one for each core");
    }
    place.run(&["warm", "--stroe", "x"]).expect(2).says("--store");
}

#[test]
fn help_and_version_go_to_standard_output() {
    let place = Place::new();
    let help = place.run(&["warm", "--help"]).expect(0);
    for words in ["[kernel.defines]", "Exit codes:", "GRAINSTORE_DIR", "--backend"] {
        assert!(help.out.contains(words), "{}", help.out);
    }
    assert_eq!(help.err, "");
    assert!(place.run(&["--version"]).expect(0).out.starts_with("grainstore "));
}
