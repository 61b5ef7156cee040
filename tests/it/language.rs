//! Comments, documents and names use the field's terms, not words of this project's past.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

/// Words of the old private language, and pronouns for users and models.
static BANNED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:whoever|whomever|nobody|somebody|anybody|house|doorkeeper|desk|upright|withheld|mended|stand-in|starved|unbought|he|him|his|she|her)\b").unwrap()
});

/// Words that no name has: the field has another term for what they meant here.
const BANNED_IN_NAMES: [&str; 22] = [
    "barred", "bars", "bought", "buy", "buys", "calmer", "door", "exhibit", "hear", "heard",
    "intake", "kin", "roomier", "seat", "seats", "starved", "stray", "thrown", "told", "unsound",
    "voice", "wave",
];

/// The name that a line defines: of an item or a variable, of a field, or of a variant.
static DEFINED: LazyLock<Regex> = LazyLock::new(|| {
    let item = r"\b(?:fn|let mut|let|struct|enum|trait|type|const|static|mod) +(\w+)";
    let field = r"^\s*(?:pub(?:\([\w: ]+\))? )?(\w+): ";
    let variant = r"^\s*([A-Z]\w*)[,({]";
    Regex::new(&format!("{item}|{field}|{variant}")).unwrap()
});

/// A word of a name: `is_told` and `IsTold` have two.
static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[A-Z]?[a-z0-9]+|[A-Z]+").unwrap());

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

/// Returns the names that a line defines with a banned word.
fn banned_names(line: &str) -> Vec<&str> {
    let is_banned = |word: &str| BANNED_IN_NAMES.contains(&&*word.to_lowercase());
    let names = DEFINED.captures_iter(line);
    let names = names.filter_map(|it| it.iter().skip(1).flatten().next());
    let names = names.map(|name| name.as_str());
    let banned = names.filter(|name| WORD.find_iter(name).any(|word| is_banned(word.as_str())));
    banned.collect()
}

#[test]
fn no_name_has_a_banned_word() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = rust_files(&root.join("src"));
    paths.extend(rust_files(&root.join("crates")));
    // Names of tests are sentences.
    paths.retain(|path| {
        let file = path.strip_prefix(root).unwrap().display();
        !file.to_string().contains("tests")
    });
    let mut found = vec![];
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
        for (number, line) in code.lines().enumerate() {
            let file = path.strip_prefix(root).unwrap().display();
            let names = banned_names(line).into_iter();
            found.extend(names.map(|name| format!("{file}:{}: {name}", number + 1)));
        }
    }
    assert_eq!(found, [""; 0]);
}

#[test]
fn a_banned_word_is_found_in_prose_and_in_names() {
    assert_eq!(banned_names("    let was_told = 1;"), ["was_told"]);
    assert_eq!(banned_names("    pub(super) bought: Vec<u8>,"), ["bought"]);
    assert_eq!(banned_names("    IsHeard(u8),"), ["IsHeard"]);
    assert_eq!(banned_names("    reply(\"it was told\");"), [""; 0]);
    assert_eq!(
        banned_in("Whoever asks gets his answer"),
        ["Whoever", "his"]
    );
    assert_eq!(
        banned_in("`nobody` and \"somebody\", theirs and this"),
        [""; 0]
    );
}
