//! Texts that repeat themselves.

use std::collections::{BTreeMap, HashSet};

use crate::text::{Word, ratio, sentences};

/// How often a recurring sentence occurs at least.
const MIN_RECURRENCES: usize = 4;

/// Finds a loop: few distinct runs of three words, a recurring sentence, or one character repeated.
pub(super) fn repetition(text: &str, found: &[Word]) -> Option<f64> {
    let distinct = || found.windows(3).collect::<HashSet<_>>().len();
    if found.len() >= 24 && ratio(distinct(), found.len() - 2) < 0.35 {
        return Some(1.0);
    }
    let mut run = (' ', 0);
    let is_run = |c: char| {
        run = if c == run.0 { (c, run.1 + 1) } else { (c, 1) };
        run.1 > 60 && c.is_alphanumeric()
    };
    if text.chars().any(is_run) {
        return Some(1.0);
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let all = sentences(text);
    let all = all.iter().filter(|sentence| sentence.len() >= 12);
    for sentence in all.clone() {
        *counts.entry(sentence).or_default() += 1;
    }
    let (most, all) = (counts.into_values().max()?, all.count());
    (most >= MIN_RECURRENCES && most * 2 >= all).then(|| ratio(most, all).max(0.6))
}
