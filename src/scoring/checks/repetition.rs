//! Texts that repeat themselves.

use std::collections::BTreeMap;

use crate::text::{Word, WordRuns, each_sentence, ratio};

/// How often a recurring sentence occurs at least.
const MIN_RECURRENCES: usize = 4;

/// Finds a loop: few distinct runs of three words, a recurring sentence, or one character repeated.
/// Sentences that differ are no loop, however little: the steps for ten servers.
pub(super) fn repetition(text: &str, found: &[Word]) -> Option<f64> {
    let mut run = (' ', 0);
    let is_run = |c: char| {
        run = if c == run.0 { (c, run.1 + 1) } else { (c, 1) };
        run.1 > 60 && c.is_alphanumeric()
    };
    if text.chars().any(is_run) {
        return Some(1.0);
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for sentence in each_sentence(text).filter(|sentence| sentence.len() >= 12) {
        *counts.entry(sentence).or_default() += 1;
    }
    let most = counts.values().max().copied().unwrap_or_default();
    let all: usize = counts.values().sum();
    let differ = all >= MIN_RECURRENCES && 2 * counts.len() > all;
    let distinct = || WordRuns::of(found, 3).distinct();
    if !differ && found.len() >= 24 && ratio(distinct(), found.len() - 2) < 0.35 {
        return Some(1.0);
    }
    (most >= MIN_RECURRENCES && most * 2 >= all).then(|| ratio(most, all).max(0.6))
}
