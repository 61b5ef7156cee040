//! Number puzzles that can be checked exactly: "use each of the numbers 4 5 7 9 once to obtain 24". An output solves one
//! if the expression that it ends on uses exactly these numbers and has that value.

use std::sync::LazyLock;

use regex::Regex;

use super::arithmetic::evaluate;
use super::pattern::pattern;
use super::text::clip;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Puzzle {
    /// Sorted.
    numbers: Vec<u32>,
    target: f64,
}

/// The puzzle that a request sets, if it does.
pub(super) fn read(message: &str) -> Option<Puzzle> {
    static SET: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?is)\b(?:use|using|combine|with)\b.{0,40}?\bnumbers?\b[:\s]*((?:\d{1,4}(?:\s*,?\s*(?:and\s+)?)){2,8}).{0,120}?\b(?:obtain|get|make|reach|form|equals?|total|result (?:in|of))\b\s*(?:exactly\s+)?(\d{1,6})\b",
        )
    });
    let found = SET.captures(clip(message, 2_000))?;
    let mut numbers: Vec<u32> = numbers(found.get(1)?.as_str());
    numbers.sort_unstable();
    Some(Puzzle { numbers, target: found.get(2)?.as_str().parse().ok()? })
}

/// Whether the last expression of a text solves the puzzle.
pub(super) fn solves(puzzle: &Puzzle, text: &str) -> bool {
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| pattern(r"[\d(][\d\s()+*/×÷·−-]*[\d)]"));
    let Some(line) = text.lines().rev().find(|line| line.chars().any(|c| c.is_ascii_digit())) else { return false };
    let left = line.split('=').next().unwrap_or(line);
    EXPRESSION.find_iter(left).any(|found| {
        let mut used = numbers(found.as_str());
        used.sort_unstable();
        used == puzzle.numbers && evaluate(found.as_str()).is_some_and(|value| (value - puzzle.target).abs() < 1e-6)
    })
}

fn numbers(text: &str) -> Vec<u32> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_puzzle_is_solved_by_exactly_its_numbers() {
        let puzzle = read("Use each of the numbers 3 3 8 8 exactly once with + - * / to obtain 24.").unwrap();
        assert_eq!(puzzle, Puzzle { numbers: vec![3, 3, 8, 8], target: 24.0 });
        assert!(solves(&puzzle, "3 - 8 / 3 is the divisor.\nAnswer: 8 / (3 - 8 / 3) = 24"));
        for text in ["Answer: 8 * 3 = 24", "Answer: 8 + 8 + 3 + 3 = 24", "No solution", "24"] {
            assert!(!solves(&puzzle, text), "{text}");
        }
        assert_eq!(read("Use the numbers in the table to get an overview."), None);
    }
}
