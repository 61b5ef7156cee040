//! Compiles the fixed regular expressions of the program. The tests compile every one.

use regex::Regex;

/// Compiles a pattern that is part of the program, for use in a `LazyLock` static.
#[expect(
    clippy::expect_used,
    reason = "the patterns are literals or rows of tables in the source, and the tests run every one"
)]
pub fn pattern(source: &str) -> Regex {
    Regex::new(source).expect("a pattern of the program compiles")
}

/// Compiles the pattern with this name in a table. Each line of the table is a name, a tab and the
/// pattern.
pub fn listed(table: &str, name: &str) -> Regex {
    let row = |line: &str| {
        line.split_once('\t')
            .filter(|(own, _)| *own == name)
            .map(|(_, source)| pattern(source))
    };
    table
        .lines()
        .find_map(row)
        .unwrap_or_else(|| pattern(r"[^\s\S]"))
}
