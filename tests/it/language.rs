//! Comments and documents use the field's terms, not words of this project's past.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

/// Words of the old private language, and pronouns for users and models.
static BANNED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:whoever|whomever|nobody|somebody|anybody|house|doorkeeper|desk|upright|withheld|mended|stand-in|starved|unbought|he|him|his|she|her)\b").unwrap()
});

static QUOTED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"`[^`]*`|"[^"]*"|“[^”]*”"#).unwrap());

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

/// Returns the Rust files under a folder.
pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    files(folder, "rs", &mut found);
    found
}

/// The comment of a line of Rust; of other files the whole line.
fn prose<'a>(path: &Path, line: &'a str) -> Option<&'a str> {
    if path.extension().is_some_and(|extension| extension == "rs") {
        line.trim_start().strip_prefix("//")
    } else {
        Some(line)
    }
}

fn banned_in(text: &str) -> Vec<String> {
    // Code and quotations may hold any word.
    let text = QUOTED.replace_all(text, "");
    BANNED
        .find_iter(&text)
        .map(|word| word.as_str().to_owned())
        .collect()
}

#[test]
fn no_comment_and_no_document_uses_a_banned_word() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = vec![];
    for folder in ["src", "crates", "tests/it", "fuzz", "benches"] {
        files(&root.join(folder), "rs", &mut paths);
    }
    files(&root.join("docs"), "md", &mut paths);
    paths.extend(["README.md", "ARCHITECTURE.md", "CHANGELOG.md"].map(|file| root.join(file)));
    let mut found = vec![];
    for path in &paths {
        for (number, line) in fs::read_to_string(path).unwrap().lines().enumerate() {
            let words = prose(path, line).map(banned_in).unwrap_or_default();
            if !words.is_empty() {
                let file = path.strip_prefix(root).unwrap().display().to_string();
                found.push(format!("{file}:{}: {}", number + 1, words.join(", ")));
            }
        }
    }
    assert!(paths.len() > 200, "the folders were not found");
    assert_eq!(found, [""; 0]);
}

#[test]
fn a_banned_word_is_found_outside_code_and_quotations() {
    assert_eq!(
        banned_in("Whoever asks gets his answer"),
        ["Whoever", "his"]
    );
    assert_eq!(
        banned_in("`nobody` and \"somebody\", theirs and this"),
        [""; 0]
    );
}
