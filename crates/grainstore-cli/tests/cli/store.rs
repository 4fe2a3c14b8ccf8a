//! The commands about the store: what they print, and that those which look change nothing.

use std::collections::BTreeMap;
use std::fs;
use std::time::SystemTime;

use crate::place::{Place, THREE};

/// A place with three variants of a kernel in its store.
fn warm() -> Place {
    let place = Place::with_manifest(THREE);
    place.run(&["warm", "--quiet", "--backend", "host"]).expect(0);
    place
}

/// Every file of the store with its time: what may not change.
fn state(place: &Place) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let mut state = BTreeMap::new();
    let mut ahead = vec![place.path("store")];
    while let Some(folder) = ahead.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                ahead.push(path);
            } else {
                let modified = path.metadata().unwrap().modified().unwrap();
                state.insert(path.display().to_string(), (fs::read(path).unwrap(), modified));
            }
        }
    }
    state
}

#[test]
fn ls_and_show_tell_what_is_there() {
    let place = warm();
    let before = state(&place);
    let listing = place.run(&["ls", "--json"]).expect(0).json();
    let artifacts = listing["artifacts"].as_array().unwrap();
    assert_eq!(artifacts.len(), 3);
    for artifact in artifacts {
        assert_eq!(artifact["name"], "saxpy");
        assert_eq!(artifact["namespace"], "kernel");
        assert_eq!(artifact["fingerprint"].as_str().unwrap().len(), 64);
        assert!(artifact["bytes"].as_u64().unwrap() > 1000);
        assert!(artifact["compile_ms"].as_f64().unwrap() > 0.0);
    }
    let table = place.run(&["ls"]).expect(0);
    assert_eq!(table.out.lines().count(), 4, "{}", table.out);
    table.says("3 artifacts");
    // Variants are told apart, and the one kernel that is alone needs no such column.
    for value in ["64", "128", "256"] {
        assert!(table.out.contains(&format!("  BLOCK={value} ")), "{}", table.out);
        assert!(artifacts.iter().any(|artifact| artifact["fields"]["define BLOCK"] == value));
    }
    let alone = place.run(&["ls", artifacts[0]["fingerprint"].as_str().unwrap()]).expect(0).out;
    assert!(table.out.contains("variant") && !alone.contains("variant"), "{alone}");

    let digits = &artifacts[0]["fingerprint"].as_str().unwrap()[..12];
    let shown = place.run(&["show", digits, "--json"]).expect(0).json();
    let shown = shown["artifacts"].as_array().unwrap();
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0]["fields"]["language"], "c");
    assert_eq!(shown[0]["members"][0]["name"], "kernel.so");
    let text = place.run(&["show", "saxpy"]).expect(0).out;
    for words in ["define BLOCK", "128", "kernel.so", "compile time"] {
        assert!(text.contains(words), "{words} is not in:\n{text}");
    }
    place.run(&["show", "nothing"]).expect(1).says("grainstore ls");
    assert_eq!(
        place.run(&["ls", digits, "--json"]).json()["artifacts"].as_array().unwrap().len(),
        1
    );
    assert_eq!(
        place.run(&["ls", "--namespace", "x", "--json"]).json()["artifacts"],
        serde_json::json!([])
    );
    assert!(state(&place) == before, "looking has changed something");
}

#[test]
fn stats_are_over_all_processes() {
    let place = warm();
    place.run(&["warm", "--quiet", "--backend", "host"]).expect(0);
    let before = state(&place);
    let stats = place.run(&["stats", "--json"]).expect(0).json();
    assert_eq!(stats["artifacts"], 3);
    assert_eq!(stats["namespaces"]["kernel"]["artifacts"], 3);
    assert_eq!((&stats["hits"], &stats["misses"]), (&3.into(), &3.into()));
    assert_eq!(stats["writes"], 3);
    assert!(stats["saved_ms"].as_f64().unwrap() > 0.0);
    let text = place.run(&["stats"]).expect(0).out;
    assert!(text.contains("50.0 % of them hits"), "{text}");
    assert!(state(&place) == before, "looking has changed something");
}

#[test]
fn verify_says_whether_all_is_whole_and_what_is_not() {
    let place = warm();
    place.run(&["verify"]).expect(0).says("3 artifacts are whole");
    let broken = &place.stored()[1];
    let mut bytes = fs::read(broken).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(broken, bytes).unwrap();
    let verified = place.run(&["verify"]).expect(1);
    assert!(verified.out.contains(broken.to_str().unwrap()), "{}", verified.out);
    assert!(verified.out.contains("digest"), "{}", verified.out);
    verified.says("1 file is not whole, and 2 are whole");
    let json = place.run(&["verify", "--json"]).expect(1).json();
    assert_eq!((&json["artifacts"], &json["broken"]), (&2.into(), &1.into()));
    assert_eq!(json["files"][0]["path"], broken.to_str().unwrap());
    place.run(&["ls"]).expect(0).says("not whole");
    // The next request makes it anew.
    place.run(&["warm", "--quiet", "--backend", "host"]).expect(0);
    place.run(&["verify"]).expect(0);
}

#[test]
fn what_deletes_wants_a_word_where_nobody_can_be_asked() {
    let place = warm();
    for command in
        [&["clear"][..], &["prune", "--max-size", "0"], &["clear", "--namespace", "kernel"]]
    {
        place.run(command).expect(2).says("--yes");
        assert_eq!(place.stored().len(), 3);
    }
    let pruned = place.run(&["prune", "--yes", "--max-size", "1G", "--json"]).expect(0).json();
    assert_eq!((&pruned["removed"], &pruned["kept"]), (&0.into(), &3.into()));
    let one = fs::metadata(&place.stored()[0]).unwrap().len().next_multiple_of(4096);
    let size = (2 * one + 4096).to_string();
    let pruned = place.run(&["prune", "--yes", "--max-size", &size, "--json"]).expect(0).json();
    assert_eq!((&pruned["removed"], &pruned["kept"]), (&1.into(), &2.into()));
    for wrong in ["plenty", "-1"] {
        place.run(&["prune", "--yes", "--max-size", wrong]).expect(2).says("500M");
    }
    place.run(&["clear", "--yes", "--namespace", "other"]).expect(0).says("removed 0");
    assert_eq!(place.run(&["clear", "--yes", "--json"]).expect(0).json()["removed"], 2);
    assert!(place.stored().is_empty());
}

#[test]
fn a_bundle_goes_from_one_store_to_another() {
    let place = warm();
    let packed = place.run(&["pack", "kernels.tar", "--json"]).expect(0).json();
    assert_eq!(packed["artifacts"], 3);
    assert_eq!(packed["bytes"], fs::metadata(place.path("kernels.tar")).unwrap().len());
    let unpacked =
        place.run(&["unpack", "kernels.tar", "--store", "other", "--json"]).expect(0).json();
    assert_eq!((&unpacked["added"], &unpacked["present"]), (&3.into(), &0.into()));
    place.run(&["verify", "--store", "other"]).expect(0).says("3 artifacts");
    let stats = place.run(&["stats", "--store", "other", "--json"]).expect(0).json();
    assert_eq!((&stats["writes"], &stats["imported"]), (&0.into(), &3.into()));
    let text = place.run(&["stats", "--store", "other"]).expect(0).out;
    assert!(text.contains("imported       3") && !text.contains("compile"), "{text}");
    // Nothing is left to compile.
    let warm = ["warm", "--json", "--backend", "host", "--store", "other"];
    assert_eq!(place.run(&warm).expect(0).json()["compiled"], 0);

    place.run(&["pack", "--oci", "image", "--tag", "1.0"]).expect(0).says("3 artifacts");
    let index = fs::read_to_string(place.path("image/index.json")).unwrap();
    assert!(index.contains("\"1.0\""), "{index}");
    place.run(&["pack", "none.tar", "nothing"]).expect(0).says("grainstore ls");
    place.write("no-bundle", "text");
    place.run(&["unpack", "no-bundle"]).expect(3).says("no whole bundle");
}

#[test]
fn explain_names_the_nearest_key_and_what_differs() {
    let place = warm();
    let explained = place.run(&["explain", "saxpy", "--json"]).expect(0).json();
    let host = |json: &serde_json::Value| -> Vec<serde_json::Value> {
        let keys = json["keys"].as_array().unwrap();
        keys.iter().filter(|key| key["backend"] == "host").cloned().collect()
    };
    let keys = host(&explained);
    assert_eq!(keys.len(), 3);
    assert!(keys.iter().all(|key| key["stored"] == true));
    assert_eq!(keys[0]["variant"], "BLOCK=64");

    place.write("grainstore.toml", THREE.replace("64, 128, 256", "512"));
    let explained = place.run(&["explain", "saxpy", "--json"]).expect(0).json();
    let keys = host(&explained);
    assert_eq!(keys.len(), 1);
    assert_eq!(keys[0]["stored"], false);
    let differences = keys[0]["nearest"]["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 1, "{differences:?}");
    assert_eq!(differences[0]["field"], "define BLOCK");
    assert_eq!(differences[0]["wanted"], "512");
    let text = place.run(&["explain", "saxpy"]).expect(0).out;
    assert!(text.contains("not in the store"), "{text}");
    assert!(text.contains("define BLOCK: ") && text.contains(" -> 512"), "{text}");

    // Of what is in the store alone: its nearest other.
    let digits = place.run(&["ls", "--json"]).json()["artifacts"][0]["fingerprint"].clone();
    let stored = place.run(&["explain", digits.as_str().unwrap(), "--json"]).expect(0).json();
    assert_eq!(stored["keys"][0]["nearest"]["differences"].as_array().unwrap().len(), 1);
    place.run(&["explain", "nothing"]).expect(2).says("grainstore ls");
}

#[test]
fn a_store_that_is_not_there_yet_is_an_empty_one_and_is_not_made() {
    let place = Place::new();
    for command in [&["ls"][..], &["stats"], &["verify"], &["prune", "--yes"], &["clear", "--yes"]]
    {
        place.run(command).expect(0).says("no store");
        let json = [command, &["--json"]].concat();
        place.run(&json).expect(0).json();
    }
    place.run(&["pack", "kernels.tar"]).expect(3).says("grainstore warm");
    assert!(!place.path("store").exists());
}
