//! Texts that repeat themselves.

use std::collections::{BTreeMap, HashSet};

use crate::text::{Word, ratio, sentences};

/// How much a text may repeat itself: bounds that are known before it is screened.
pub(in crate::scoring) struct Repeats {
    /// The number of different pairs of adjacent words.
    pub pairs: usize,
    /// How often the text has one sentence, regardless of case and punctuation.
    pub sentence: usize,
}

/// How often a recurring sentence occurs at least.
const MIN_RECURRENCES: usize = 4;

/// Finds a loop: few distinct runs of three words, a recurring sentence, or one character repeated.
pub(super) fn repetition(text: &str, found: &[Word], repeats: &Repeats) -> Option<f64> {
    let is_loop = |distinct: usize| ratio(distinct, found.len() - 2) < 0.35;
    // At most one pair of words begins no run of three.
    let may_loop = found.len() >= 24 && is_loop(repeats.pairs.saturating_sub(1));
    if may_loop && is_loop(found.windows(3).collect::<HashSet<_>>().len()) {
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
    if repeats.sentence < MIN_RECURRENCES {
        return None;
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
