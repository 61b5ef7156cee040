//! Compiles the fixed regular expressions of the program, and reads its JSON data. The tests compile
//! and read every one.

use aho_corasick::AhoCorasick;
use regex::Regex;
use serde::de::DeserializeOwned;

/// Compiles a pattern that is part of the program, for use in a `LazyLock` static.
#[expect(
    clippy::expect_used,
    reason = "the patterns are literals or rows of tables in the source, and the tests run every one"
)]
pub fn pattern(source: &str) -> Regex {
    Regex::new(source).expect("a pattern of the program compiles")
}

/// Reads a JSON document that is part of the program.
#[expect(
    clippy::expect_used,
    reason = "the documents are compiled in, and the tests read every one"
)]
pub fn built_in_json<T: DeserializeOwned>(source: &str) -> T {
    serde_json::from_str(source).expect("a document of the program is valid")
}

/// Returns a search for any of these texts, which are part of the program. ASCII letters equal their
/// other case.
#[expect(
    clippy::expect_used,
    reason = "the texts are rows of tables in the source, and the tests search for them"
)]
pub fn any_of(texts: &[&str]) -> AhoCorasick {
    let mut builder = AhoCorasick::builder();
    let built = builder.ascii_case_insensitive(true).build(texts);
    built.expect("the texts are few and short")
}

/// Like [`pattern`], for a pattern whose words begin and end with ASCII letters. Its `\b` looks at
/// ASCII letters only. So the fast engine of the crate searches any text; with a Unicode `\b` it gives
/// up at the first other letter, and a slow one goes on.
pub fn pattern_of_ascii_words(source: &str) -> Regex {
    pattern(&source.replace(r"\b", r"(?-u:\b)"))
}

/// Compiles the pattern with this name in a table. Each line of the table is a name, a tab and the
/// pattern.
#[expect(
    clippy::expect_used,
    reason = "table and name are in the source, and the tests run every one"
)]
pub fn listed(table: &str, name: &str) -> Regex {
    let row = |line: &str| {
        let (own, source) = line.split_once('\t')?;
        (own == name).then(|| pattern(source))
    };
    let found = table.lines().find_map(row);
    found.expect("the table has a pattern of this name")
}
