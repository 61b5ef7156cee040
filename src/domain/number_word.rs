//! Small numbers in words.

/// The number that an English word in lower case names, from "zero" to "twenty".
pub fn number_named(word: &str) -> Option<u32> {
    const NAMES: [&str; 21] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
    ];
    NAMES.iter().position(|name| *name == word).and_then(|at| u32::try_from(at).ok())
}
