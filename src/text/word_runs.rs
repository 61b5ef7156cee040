//! Runs of adjacent words, to find what texts have in common and what they repeat.

use std::hash::BuildHasher as _;

use rustc_hash::FxBuildHasher;

use super::Word;

/// The distinct runs of `length` adjacent words of a text, as sorted hashes. Two runs with one hash
/// count as the same.
#[derive(Debug)]
pub struct WordRuns {
    length: usize,
    hashes: Vec<u64>,
}

impl WordRuns {
    pub fn of(words: &[Word], length: usize) -> Self {
        let mut hashes = hashes(words, length);
        hashes.sort_unstable();
        hashes.dedup();
        Self { length, hashes }
    }

    pub fn distinct(&self) -> usize {
        self.hashes.len()
    }

    /// Returns the number of runs that both have. Both must have runs of the same length.
    pub fn shared(&self, other: &Self) -> usize {
        let is_known = |hash: &&u64| other.hashes.binary_search(hash).is_ok();
        self.hashes.iter().filter(is_known).count()
    }

    /// Returns how many runs of a text are among these. A run that the text repeats counts each
    /// time.
    pub fn count_in(&self, words: &[Word]) -> usize {
        let is_known = |hash: &u64| self.hashes.binary_search(hash).is_ok();
        let runs = hashes(words, self.length);
        runs.into_iter().filter(is_known).count()
    }
}

fn hashes(words: &[Word], length: usize) -> Vec<u64> {
    let words: Vec<u64> = words
        .iter()
        .map(|word| FxBuildHasher.hash_one(word))
        .collect();
    let run = |run: &[u64]| {
        run.iter()
            .fold(0, |all: u64, word| all.rotate_left(1) ^ word)
    };
    words.windows(length).map(run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::words;

    #[test]
    fn runs_are_distinct_and_their_order_of_words_counts() {
        let text = words("to be or not to be, be to");
        let pairs = WordRuns::of(&text, 2);
        // "to be" twice; "be be" and "be to" once.
        assert_eq!((text.len(), pairs.distinct()), (8, 6));
        let other = words("not to be to");
        assert_eq!(pairs.shared(&WordRuns::of(&other, 2)), 3);
        assert_eq!(pairs.count_in(&words("to be to be to")), 4);
        assert_eq!(WordRuns::of(&words("one two"), 3).count_in(&text), 0);
    }
}
