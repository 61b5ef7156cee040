//! Runs the fuzzer's targets on their corpus, so that a repaired defect does not come back.

use std::fs;
use std::path::Path;

#[path = "../../fuzz/entry.rs"]
mod entry;

#[test]
fn every_input_of_the_corpus_keeps_the_rules_of_its_target() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for (name, run) in entry::TARGETS {
        let mut files: Vec<_> = fs::read_dir(corpus.join(name))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        assert!(files.len() >= 3, "{name} has {} inputs", files.len());
        for file in files {
            println!("{}", file.display());
            run(&fs::read(&file).unwrap());
        }
    }
    let folders = fs::read_dir(&corpus).unwrap().count();
    assert_eq!(
        folders,
        entry::TARGETS.len(),
        "a folder of the corpus has no target"
    );
}

#[test]
fn every_target_is_a_program_of_the_fuzzer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    for (name, _) in entry::TARGETS {
        assert!(
            manifest.contains(&format!("path = \"targets/{name}.rs\"")),
            "{name}"
        );
        assert!(
            fs::read_to_string(root.join(format!("targets/{name}.rs")))
                .unwrap()
                .contains("fuzz_target!")
        );
    }
}
