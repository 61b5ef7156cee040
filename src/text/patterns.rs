//! Compiles fixed regular expressions.

use regex::Regex;

/// Compiles a pattern that is part of the program text, for use in a `LazyLock` static. One test
/// (`tests/it/patterns.rs`) compiles every pattern that is one literal.
#[expect(
    clippy::expect_used,
    reason = "the patterns are part of the program text, and tests compile every one"
)]
pub fn pattern(source: &str) -> Regex {
    Regex::new(source).expect("a fixed pattern compiles")
}
