//! Compiles the engine's fixed regular expressions.

use regex::Regex;

/// Compiles a pattern that is part of the program text, for use in a `LazyLock` static.
#[expect(
    clippy::expect_used,
    reason = "the patterns are literals of this module tree, and the tests run every one"
)]
pub(super) fn pattern(source: &str) -> Regex {
    Regex::new(source).expect("a literal pattern compiles")
}
