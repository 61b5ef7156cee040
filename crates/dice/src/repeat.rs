//! Recognizes repeated rolls: `6#4d6kh3`, `6x4d6kh3`, `4d6kh3 x6`. They are not part of the
//! expression grammar, because an expression has one total.

use std::sync::LazyLock;

use regex::Regex;

use crate::Expression;

/// Maximum number of repetitions of a roll. [`repeated`] does not enforce it.
pub const MAX_TIMES: u32 = 100;

static BEFORE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\s*(?P<times>\d{1,9})\s*[#xX×]\s*(?P<dice>.*)$"));
static BEHIND: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^(?P<dice>[^#]*?)\s*[xX×]\s*(?P<times>\d{1,9})\s*(?P<comment>#.*)?$")
});

#[expect(
    clippy::expect_used,
    reason = "the patterns are literals, and the tests run both"
)]
fn pattern(source: &str) -> Regex {
    Regex::new(source).expect("a pattern of the program compiles")
}

/// Returns the number of repetitions and the repeated expression. Returns `None` if the whole text
/// is an expression with dice, or if the repeated part is not.
pub fn repeated(text: &str) -> Option<(u32, String)> {
    if Expression::parse(text).is_ok_and(|expression| expression.has_dice()) {
        return None;
    }
    let read = |pattern: &Regex| {
        let captures = pattern.captures(text)?;
        let part = |name: &str| captures.name(name).map_or("", |part| part.as_str());
        let dice = format!("{} {}", part("dice"), part("comment"))
            .trim()
            .to_owned();
        let rolls = Expression::parse(&dice).is_ok_and(|expression| expression.has_dice());
        Some((part("times").parse().ok()?, dice)).filter(|_| rolls)
    };
    read(&BEFORE).or_else(|| read(&BEHIND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_roll_is_repeated_by_a_number_before_or_behind_it() {
        let read = |text: &str| repeated(text).map(|(times, dice)| format!("{times} of {dice}"));
        for (text, expected) in [
            ("6#4d6kh3", "6 of 4d6kh3"),
            ("6 # 4d6kh3", "6 of 4d6kh3"),
            ("6x4d6", "6 of 4d6"),
            ("3 × (1d8+2)", "3 of (1d8+2)"),
            ("4d6kh3 x6", "6 of 4d6kh3"),
            ("4d6kh3 x 6 # stats", "6 of 4d6kh3 # stats"),
            ("6#4d6kh3 # stats", "6 of 4d6kh3 # stats"),
            ("2d6max3x2", "2 of 2d6max3"),
            ("0#1d6", "0 of 1d6"),
        ] {
            assert_eq!(read(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "4d6kh3",
            "2d6 # 3x4",
            "6#six of them",
            "6",
            "2d6max3",
            "d6max50",
            "2#3#4d6",
            "6#4",
            "x6",
            "-6#1d6",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
