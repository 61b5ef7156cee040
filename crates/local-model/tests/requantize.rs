//! Tests the conversion to Q8_0. There is only one test, so that nothing else competes for the
//! cores.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use conclave_local_model::{LocalModel, Options};

mod weights;
use weights::weights;

fn load(path: &Path) {
    LocalModel::load(Options {
        context_tokens: 256,
        ..Options::new(path)
    })
    .unwrap();
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).unwrap().modified().unwrap()
}

#[test]
fn a_slow_model_is_rewritten_once_and_a_stale_or_truncated_copy_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("tiny.gguf");
    fs::copy(weights(), &source).unwrap();
    let copy = folder.path().join("tiny.q8_0.gguf");

    std::thread::scope(|scope| {
        scope.spawn(|| load(&source));
        scope.spawn(|| load(&source));
    });
    let whole = fs::metadata(&copy).unwrap().len();
    let made = modified(&copy);
    load(&source);
    assert_eq!(modified(&copy), made, "a good copy is used again");

    let file = fs::OpenOptions::new().write(true).open(&copy).unwrap();
    file.set_len(whole / 2).unwrap();
    drop(file);
    load(&source);
    let replaced = fs::metadata(&copy).unwrap().len();
    assert_eq!(replaced, whole, "a truncated copy is replaced");

    let made = modified(&copy);
    #[allow(
        clippy::disallowed_methods,
        reason = "the file system has the system's time"
    )]
    let now = SystemTime::now();
    let file = fs::OpenOptions::new().write(true).open(&source).unwrap();
    file.set_modified(now).unwrap();
    load(&source);
    let is_newer = modified(&copy) > made;
    assert!(is_newer, "a copy older than its source is replaced");

    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    let expected = ["tiny.gguf", "tiny.q8_0.gguf"];
    assert_eq!(names, expected, "nothing is left over");
}
