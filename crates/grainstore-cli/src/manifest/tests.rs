use std::fs;

use tempfile::TempDir;

use super::*;

/// A folder with the files that the manifests below name.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let files: [(&str, &[u8]); 8] = [
        ("saxpy.c", b"void saxpy(void) {}"),
        ("saxpy.cl", b"kernel void saxpy() {}"),
        ("saxpy.wgsl", b"@compute @workgroup_size(1) fn saxpy() {}"),
        ("other.c", b"int other;"),
        ("noname", b"int x;"),
        ("empty.c", b""),
        ("latin.c", b"// caf\xe9"),
        ("common.h", b"#define N 1"),
    ];
    for (name, content) in files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

fn known() -> Vec<KnownBackend> {
    let known = |name: &str, language| KnownBackend {
        name: name.into(),
        languages: vec![language],
        compiles_ahead: false,
    };
    vec![known("host", Language::C), known("opencl", Language::OpenClC)]
}

fn read(text: &str) -> Result<Manifest, String> {
    let folder = folder();
    let path = folder.path().join(FILE_NAME);
    fs::write(&path, text).unwrap();
    let read = Manifest::read(folder.path(), &known());
    let told = |error: ManifestError| {
        let plain = anstream::adapter::strip_str(&error.to_string()).to_string();
        plain.replace(&format!("{}/", folder.path().display()), "")
    };
    match read {
        Ok(Manifest { wrong: Some(wrong), .. }) | Err(wrong) => Err(told(wrong)),
        Ok(manifest) => Ok(manifest),
    }
}

/// What is said of a kernel with these lines, its name on line 2, theirs from line 3.
fn wrong(lines: &str) -> String {
    read(&format!("[[kernel]]\nname = \"k\"\n{lines}\n")).unwrap_err()
}

#[test]
fn a_whole_manifest_is_read() {
    let manifest = read(
        r#"
        [[kernel]]
        name = "saxpy"
        sources = ["saxpy.c", "saxpy.cl"]
        entry = "saxpy"
        headers = ["common.h"]
        options = ["-g"]
        [kernel.options_for]
        c = ["-ffast-math"]
        opencl-c = ["-cl-fast-relaxed-math"]
        [kernel.defines]
        BLOCK = [64, 128]
        EPS = 1e-5
        ONE = 1.0
        FAST = true
        TYPE = "float"

        [[kernel]]
        name = "plain"
        source = "noname"
        language = "c"
        backends = ["host"]
        "#,
    )
    .unwrap();
    let [saxpy, plain] = manifest.kernels.as_slice() else { panic!("two kernels") };
    let source = saxpy.source_for(&[Language::C]).unwrap();
    let spec = saxpy.spec(source, &saxpy.variants[1]).unwrap();
    assert_eq!(saxpy.variants[1].label, "BLOCK=128");
    assert_eq!(spec.name(), "saxpy");
    assert_eq!(spec.language(), Language::C);
    assert_eq!(spec.source(), b"void saxpy(void) {}");
    assert_eq!(spec.entry(), Some("saxpy"));
    assert_eq!(spec.options(), ["-g", "-ffast-math"]);
    assert_eq!(spec.headers()[0].0, "common.h");
    assert_eq!(&*spec.headers()[0].1, b"#define N 1");
    let defines: Vec<_> =
        spec.defines().iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(defines, ["BLOCK=128", "EPS=1e-5", "FAST=1", "ONE=1.0", "TYPE=float"]);

    let source = saxpy.source_for(&[Language::OpenClC]).unwrap();
    let spec = saxpy.spec(source, &saxpy.variants[0]).unwrap();
    assert_eq!(spec.options(), ["-g", "-cl-fast-relaxed-math"]);

    assert_eq!(plain.backends.as_deref(), Some(&["host".to_owned()][..]));
    assert_eq!(plain.variants.len(), 1);
    assert!(plain.source_for(&[Language::OpenClC]).is_none());
}

#[test]
fn without_a_preprocessor_defines_are_constants_and_headers_the_others() {
    let both = "[[kernel]]\nname = \"k\"\nsources = [\"saxpy.c\", \"saxpy.wgsl\"]\n\
                headers = [\"common.h\"]\ndefines = {BLOCK = [64], FAST = true}";
    let of = |text: &str, language| {
        let manifest = read(text).unwrap();
        let kernel = &manifest.kernels[0];
        kernel.spec(kernel.source_for(&[language]).unwrap(), &kernel.variants[0]).unwrap()
    };
    let pairs = [("BLOCK", "64"), ("FAST", "1")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    let c = of(both, Language::C);
    assert_eq!((c.defines(), c.constants(), c.headers().len()), (&pairs[..], &[][..], 1));
    let wgsl = of(both, Language::Wgsl);
    assert_eq!((wgsl.defines(), wgsl.constants(), wgsl.headers().len()), (&[][..], &pairs[..], 0));
    // Whom else should they be for? The backend says what to do.
    let alone = "[[kernel]]\nname = \"k\"\nsource = \"saxpy.wgsl\"\nheaders = [\"common.h\"]";
    assert_eq!(of(alone, Language::Wgsl).headers().len(), 1);
}

#[test]
fn what_is_not_toml_is_told_with_its_place() {
    let said = read("[[kernel]]\nname = \"k\nsource = \"saxpy.c\"\n").unwrap_err();
    assert!(said.starts_with("grainstore.toml:2:"), "{said}");
    assert!(said.contains("2 | name = \"k"), "{said}");
    assert!(said.contains("help: `grainstore warm --help` shows"), "{said}");
}

#[test]
fn a_field_that_is_missing_or_of_the_wrong_type_is_told_with_its_place() {
    let said = read("[[kernel]]\nsource = \"saxpy.c\"\n").unwrap_err();
    assert!(said.starts_with("grainstore.toml:1:1: missing field `name`"), "{said}");
    assert!(said.contains("help: give the kernel a name"), "{said}");
    let cases = [
        ("source = 7", "3:10: invalid type: integer `7`", "between quotes: \"7\""),
        ("options = \"-O3\"", "3:11: invalid type: string \"-O3\"", "write a list: [\"-O3\"]"),
        ("source = [\"saxpy.c\"]", "3:10: invalid type: sequence", "grainstore warm --help"),
        ("defines = [\n]", "3:11: invalid type: sequence", "grainstore warm --help"),
    ];
    for (line, expected, help) in cases {
        let said = wrong(line);
        assert!(said.starts_with(&format!("grainstore.toml:{expected}")), "{said}");
        assert!(said.contains("= help: ") && said.contains(help), "{said}");
    }
    let said = read("[kernel]\nname = \"k\"\nsource = \"saxpy.c\"\n").unwrap_err();
    assert!(said.starts_with("grainstore.toml:1:1: `kernel` is not a list"), "{said}");
    assert!(said.contains("help: write [[kernel]]"), "{said}");
}

#[test]
fn an_unknown_field_brings_the_nearest_known_one() {
    let said = wrong("sorce = \"saxpy.c\"");
    assert!(said.starts_with("grainstore.toml:3:1: unknown field `sorce`"), "{said}");
    assert!(said.contains("help: did you mean `source`?"), "{said}");
    let said = read("[[kernels]]\nname = \"k\"\n").unwrap_err();
    assert!(said.contains("help: did you mean `kernel`?"), "{said}");
}

#[test]
fn an_empty_manifest_says_what_to_add() {
    for text in ["", "# nothing\n", "kernel = []\n"] {
        let said = read(text).unwrap_err();
        assert!(said.starts_with("grainstore.toml: there is no [[kernel]]"), "{said}");
        assert!(said.contains("help: add one"), "{said}");
    }
}

#[test]
fn names_are_unique_and_not_empty() {
    let kernel = "[[kernel]]\nname = \"k\"\nsource = \"saxpy.c\"\n";
    let said = read(&format!("{kernel}{kernel}")).unwrap_err();
    assert!(said.starts_with("grainstore.toml:5:8: there are two kernels named `k`"), "{said}");
    let said = read("[[kernel]]\nname = \" \"\nsource = \"saxpy.c\"\n").unwrap_err();
    assert!(said.starts_with("grainstore.toml:2:8: this is no name"), "{said}");
    let said = read("[[kernel]]\nname = \"a\\nb\"\nsource = \"saxpy.c\"\n").unwrap_err();
    assert!(said.starts_with("grainstore.toml:2:8: this is no name"), "{said}");
}

#[test]
fn sources_are_there_and_their_language_is_known() {
    let cases = [
        ("", "2:8: kernel `k` has no source"),
        ("source = \"gone.c\"", "3:10: there is no file `gone.c`"),
        ("source = \"empty.c\"", "3:10: `empty.c` is empty"),
        ("source = \"latin.c\"", "3:10: `latin.c` is not UTF-8 text"),
        ("source = \"noname\"", "3:10: the name of `noname` does not say its language"),
        ("source = \"saxpy.c\"\nlanguage = \"opencl\"", "4:12: unknown language `opencl`"),
        ("sources = []", "3:11: the list is empty"),
        ("sources = [\"saxpy.c\", \"other.c\"]", "3:23: there are two sources in c"),
        ("source = \"saxpy.c\"\nsources = [\"saxpy.cl\"]", "4:11: there is both"),
        ("sources = [\"saxpy.c\"]\nlanguage = \"c\"", "4:12: `language` goes with one `source`"),
    ];
    for (lines, expected) in cases {
        let said = wrong(lines);
        assert!(said.starts_with(&format!("grainstore.toml:{expected}")), "{lines}\n{said}");
        assert!(said.contains("= help: "), "{lines}\n{said}");
    }
    assert!(wrong("source = \"saxpy.c\"\nlanguage = \"opencl\"").contains("mean `opencl-c`?"));
}

#[test]
fn backends_are_known_and_take_the_language() {
    let cases = [
        ("[\"opncl\"]", "4:13: unknown backend `opncl`"),
        ("[]", "4:12: the list is empty"),
        ("[\"host\", \"opencl\"]", "4:21: opencl does not take c"),
    ];
    for (value, expected) in cases {
        let said = wrong(&format!("source = \"saxpy.c\"\nbackends = {value}"));
        assert!(said.starts_with(&format!("grainstore.toml:{expected}")), "{value}\n{said}");
    }
    let said = wrong("source = \"saxpy.c\"\nbackends = [\"zebra\"]");
    assert!(said.contains("help: the backends are: host, opencl"), "{said}");
}

#[test]
fn defines_have_good_names_and_lists_with_different_values() {
    let cases = [
        ("BLOCK = []", "5:9: the list of `BLOCK` is empty"),
        ("BLOCK = [1, 2, 1]", "5:9: the list of `BLOCK` has 1 twice"),
        ("\"2x\" = 1", "5:1: `2x` is no name for a define"),
        ("N = [[1]]", "5:5: a list within a list"),
        ("N = inf", "5:5: inf has no spelling"),
        ("N = {}", "5:5: invalid type: map"),
    ];
    for (line, expected) in cases {
        let said = wrong(&format!("source = \"saxpy.c\"\n[kernel.defines]\n{line}"));
        assert!(said.starts_with(&format!("grainstore.toml:{expected}")), "{line}\n{said}");
    }
    let lists: String = (0..17).map(|name| format!("D{name} = [1, 2]\n")).collect();
    let said = wrong(&format!("source = \"saxpy.c\"\n[kernel.defines]\n{lists}"));
    assert!(said.contains("more than 65536 variants"), "{said}");
}

#[test]
fn headers_and_options_are_checked() {
    let cases = [
        ("headers = [\"gone.h\"]", "4:12: there is no file `gone.h`"),
        ("headers = [\"../common.h\"]", "4:12: `../common.h` is no plain name"),
        ("headers = [\"/etc/passwd\"]", "4:12: `/etc/passwd` is no plain name"),
        ("headers = [\"common.h\", \"common.h\"]", "4:24: the header `common.h` is named twice"),
        ("entry = \"\"", "4:9: the entry point is empty"),
        ("[kernel.options_for]\nopencl = []", "5:1: unknown language `opencl`"),
    ];
    for (lines, expected) in cases {
        let said = wrong(&format!("source = \"saxpy.c\"\n{lines}"));
        assert!(said.starts_with(&format!("grainstore.toml:{expected}")), "{lines}\n{said}");
    }
}

#[test]
fn all_that_is_wrong_is_told_at_once_in_the_order_of_the_text() {
    let said = wrong(
        "source = \"gone.c\"\nbackends = [\"zebra\"]\n[kernel.defines]\nN = []\n[[kernel]]\nname = \
         \"k\"\nsource = \"saxpy.c\"",
    );
    // The first one's "error: " comes from whoever shows it.
    let said = format!("error: {said}");
    let places: Vec<_> =
        said.lines().filter_map(|line| line.strip_prefix("error: grainstore.toml:")).collect();
    let starts = ["3:10:", "4:13:", "6:5:", "8:8:"];
    assert_eq!(places.len(), starts.len(), "{said}");
    for (place, start) in places.iter().zip(starts) {
        assert!(place.starts_with(start), "{said}");
    }
}

#[test]
fn a_manifest_that_is_not_there_or_not_text_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.toml");
    let said = Manifest::read(&path, &known()).unwrap_err().to_string();
    assert!(said.starts_with(&format!("{}: there is no such manifest", path.display())), "{said}");
    fs::write(&path, b"\xff").unwrap();
    let said = Manifest::read(&path, &known()).unwrap_err().to_string();
    assert!(said.contains("can't be read: invalid utf-8"), "{said}");
    assert!(said.contains("help: save it as UTF-8"), "{said}");
}

#[test]
fn a_kernel_whose_fields_cannot_be_read_leaves_the_others() {
    let folder = folder();
    let good = "[[kernel]]\nname = \"good\"\nsource = \"saxpy.c\"\n";
    let unknown = "[[kernel]]\nname = \"unknown\"\nsorce = \"saxpy.c\"\n";
    let nameless = "[[kernel]]\nsource = \"saxpy.c\"\n";
    fs::write(folder.path().join(FILE_NAME), format!("{unknown}{good}{nameless}")).unwrap();
    let manifest = Manifest::read(folder.path(), &known()).unwrap();
    assert_eq!(manifest.kernels.len(), 1);
    assert_eq!(manifest.kernels[0].name, "good");
    let wrong = manifest.wrong.unwrap();
    let names: Vec<_> = wrong.kernels().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["unknown", "#3"]);
}

#[test]
fn a_field_beside_the_kernels_spoils_the_whole_manifest() {
    let said = read("version = 1\n[[kernel]]\nname = \"k\"\nsource = \"saxpy.c\"\n").unwrap_err();
    assert!(said.starts_with("grainstore.toml:1:1: unknown field `version`"), "{said}");
    let folder = folder();
    let text = "[[kernel]]\nname = \"k\"\nsource = \"saxpy.c\"\n[extra]\n";
    fs::write(folder.path().join(FILE_NAME), text).unwrap();
    Manifest::read(folder.path(), &known()).unwrap_err();
}

#[test]
fn a_kernel_that_is_wrong_leaves_the_others() {
    let folder = folder();
    let good = "[[kernel]]\nname = \"good\"\nsource = \"saxpy.c\"\n";
    let wrong = "[[kernel]]\nname = \"bad\"\nsource = \"gone.c\"\nbackends = []\n";
    fs::write(folder.path().join(FILE_NAME), format!("{wrong}{good}")).unwrap();
    let manifest = Manifest::read(folder.path(), &known()).unwrap();
    assert_eq!(manifest.kernels.len(), 1);
    assert_eq!(manifest.kernels[0].name, "good");
    let wrong = manifest.wrong.unwrap();
    let kernels = wrong.kernels();
    assert_eq!(kernels.len(), 1);
    assert_eq!(kernels[0].0, "bad");
    let lines: Vec<_> = kernels[0].1.lines().collect();
    assert!(lines[0].ends_with(":3:10: there is no file `gone.c`"), "{lines:?}");
    assert!(lines[1].ends_with(":4:12: the list is empty"), "{lines:?}");
}

#[test]
fn what_the_runtime_refuses_is_told_with_the_manifest() {
    let said = wrong("source = \"saxpy.c\"\n[kernel.defines]\nN = \"\\u0000\"");
    assert!(said.starts_with("grainstore.toml:2:8: "), "{said}");
}
