//! Segments a text into pieces of the vocabulary.
//!
//! The algorithm is `unigram::Model::EncodeOptimized` of
//! <https://github.com/google/sentencepiece/blob/master/src/unigram_model.cc>: of all segmentations
//! the one with the highest sum of scores, found from left to right.

use crate::normalizer::Normalizer;
use crate::sentencepiece::{Model, NORMAL};

/// Of a token that is in no text: start, end and unknown. Fixed in the model.
const UNKNOWN: u32 = 0;
const START: u32 = 1;
const END: u32 = 2;

/// How much lower than the lowest score an unknown character is scored.
const UNKNOWN_PENALTY: f32 = 10.0;

/// Bytes of text for each token that is asked for. The rest is not even normalized.
const MAX_BYTES_PER_TOKEN: usize = 16;

#[derive(Debug)]
pub struct Tokenizer {
    normalizer: Normalizer,
    /// Sorted by text.
    vocabulary: Vec<Entry>,
    pieces: usize,
    unknown_score: f32,
}

#[derive(Debug)]
struct Entry {
    text: Box<str>,
    token: u32,
    score: f32,
}

/// The best segmentation of the text up to a position.
#[derive(Debug, Clone, Copy)]
struct Best {
    score: f32,
    /// Where its last piece starts.
    start: usize,
    token: u32,
}

impl Tokenizer {
    pub fn new(model: Model) -> Result<Self, String> {
        let charsmap = model.normalizer.and_then(|spec| spec.charsmap);
        let normalizer = Normalizer::new(&charsmap.unwrap_or_default())?;
        let pieces = model.pieces.len();
        let mut vocabulary: Vec<Entry> = (0..)
            .zip(model.pieces)
            .filter(|(_, piece)| piece.kind.unwrap_or(NORMAL) == NORMAL)
            .map(|(token, piece)| Entry {
                text: piece.text.unwrap_or_default().into_boxed_str(),
                token,
                score: piece.score.unwrap_or_default(),
            })
            .filter(|entry| !entry.text.is_empty())
            .collect();
        if vocabulary.is_empty() {
            return Err("no vocabulary".into());
        }
        vocabulary.sort_by(|a, b| a.text.cmp(&b.text));
        let lowest = vocabulary
            .iter()
            .map(|entry| entry.score)
            .fold(0.0, f32::min);
        Ok(Self {
            normalizer,
            vocabulary,
            pieces,
            unknown_score: lowest - UNKNOWN_PENALTY,
        })
    }

    /// The number of all tokens.
    pub fn pieces(&self) -> usize {
        self.pieces
    }

    /// Returns the first tokens of `text` between [`START`] and [`END`], `limit` in all.
    pub fn tokens(&self, text: &str, limit: usize) -> Vec<u32> {
        let text = text
            .get(..text.floor_char_boundary(limit.saturating_mul(MAX_BYTES_PER_TOKEN)))
            .unwrap_or_default();
        let mut tokens = vec![START];
        tokens.extend(self.segment(&self.normalizer.normalize(text)));
        tokens.truncate(limit.saturating_sub(1));
        tokens.push(END);
        tokens
    }

    fn segment(&self, text: &str) -> Vec<u32> {
        let unreached = Best {
            score: f32::NEG_INFINITY,
            start: 0,
            token: UNKNOWN,
        };
        // One element for each byte position. Only those between characters are used.
        let mut best = vec![unreached; text.len() + 1];
        if let Some(first) = best.first_mut() {
            first.score = 0.0;
        }
        for (start, letter) in text.char_indices() {
            let before = best.get(start).map_or(f32::NEG_INFINITY, |best| best.score);
            let mut offer = |end: usize, token: u32, score: f32| {
                let score = before + score;
                if let Some(best) = best.get_mut(end).filter(|best| score > best.score) {
                    *best = Best {
                        score,
                        start,
                        token,
                    };
                }
            };
            let letter_end = start + letter.len_utf8();
            let mut letter_is_known = false;
            for entry in self.prefixes(text.get(start..).unwrap_or_default()) {
                let end = start + entry.text.len();
                letter_is_known |= end == letter_end;
                offer(end, entry.token, entry.score);
            }
            if !letter_is_known {
                offer(letter_end, UNKNOWN, self.unknown_score);
            }
        }
        let mut tokens = Vec::new();
        let mut end = text.len();
        while let Some(last) = best.get(end).filter(|_| end > 0) {
            tokens.push(last.token);
            end = last.start;
        }
        tokens.reverse();
        // A run of unknown characters is one token.
        tokens.dedup_by(|a, b| *a == UNKNOWN && *b == UNKNOWN);
        tokens
    }

    /// Returns the entries that `text` starts with, the shortest first.
    fn prefixes<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a Entry> {
        let mut candidates = self.vocabulary.as_slice();
        text.bytes()
            .enumerate()
            .map_while(move |(index, byte)| {
                // All candidates agree with the text before `index`. The ones that end there are first.
                let label = |entry: &Entry| entry.text.as_bytes().get(index).copied();
                let from = candidates.partition_point(|entry| label(entry) < Some(byte));
                let to = candidates.partition_point(|entry| label(entry) <= Some(byte));
                candidates = candidates.get(from..to).filter(|rest| !rest.is_empty())?;
                Some(
                    candidates
                        .first()
                        .filter(|entry| entry.text.len() == index + 1),
                )
            })
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentencepiece::{self, NormalizerSpec, Piece};

    /// A vocabulary without rules of normalization.
    fn tokenizer(pieces: &[(&str, f32)]) -> Tokenizer {
        let special = |text: &str| Piece {
            text: Some(text.into()),
            score: None,
            kind: Some(3),
        };
        let mut all = vec![special("<unk>"), special("<s>"), special("</s>")];
        all.extend(pieces.iter().map(|(text, score)| Piece {
            text: Some((*text).into()),
            score: Some(*score),
            kind: None,
        }));
        let charsmap = Some(vec![4, 0, 0, 0, 0, 0, 0, 0]);
        Tokenizer::new(Model {
            pieces: all,
            normalizer: Some(NormalizerSpec { charsmap }),
        })
        .unwrap()
    }

    #[test]
    fn the_segmentation_with_the_highest_score_is_chosen() {
        let words = [("▁a", -2.0), ("b", -2.0), ("▁ab", -3.0), ("c", -1.0)];
        let letters = [("▁", -1.0), ("a", -1.0), ("s", -1.0)];
        let long = "a".repeat(100_000);
        for (pieces, text, limit, expected) in [
            (&words[..], "abc", 9, &[START, 5, 6, END][..]),
            (&words, "  a   abb ", 9, &[START, 3, 5, 4, END]),
            // A run of unknown characters is one token.
            (&letters, "xya", 9, &[START, 3, UNKNOWN, 4, END]),
            // Special tokens cannot be written.
            (&letters, "<s>", 9, &[START, 3, UNKNOWN, 5, UNKNOWN, END]),
            (&letters, &long, 4, &[START, 3, 4, END]),
            (&letters, "", 4, &[START, END]),
        ] {
            assert_eq!(tokenizer(pieces).tokens(text, limit), expected, "{text}");
        }
    }

    #[test]
    fn rules_that_are_cut_off_are_refused() {
        assert!(Normalizer::new(&[]).is_err());
        assert!(Normalizer::new(&[8, 0, 0, 0, 1, 2, 3, 4]).is_err());
    }

    /// The tokens by the library sentencepiece 0.2.
    #[test]
    fn tokens_of_the_real_model_are_those_of_the_reference() {
        let path = "../../data/models/sentence-embedding/sp.model";
        let bytes = std::fs::read(path).expect("run scripts/fetch-embedding.sh");
        let tokenizer = sentencepiece::parse(&bytes)
            .and_then(Tokenizer::new)
            .unwrap();
        let references: [(&str, &[u32]); 8] = [
            ("", &[1, 2]),
            (" \u{3000} ", &[1, 2]),
            (
                "How do I reset my password?",
                &[1, 1348, 61, 33, 18580, 31, 179, 11007, 21, 2],
            ),
            ("😀👍🏽 \0 x\ty\r\nz", &[1, 6, 0, 6, 0, 257, 51, 381, 2]),
            ("e\u{301} é ß ẞ", &[1, 165, 165, 6, 2152, 6, 0, 2]),
            ("\u{200b}\u{ad}soft", &[1, 6, 127_940, 11241, 2]),
            (
                "<s> </s> <unk> ▁a",
                &[1, 87, 9, 65, 6372, 9, 65, 87, 39089, 65, 10, 2],
            ),
            (
                "ﬁne  Ｆｕｌｌ\u{3000}ｗｉｄｔｈ ½ ①",
                &[1, 1668, 17004, 16050, 32259, 116, 2],
            ),
        ];
        for (text, expected) in references {
            assert_eq!(tokenizer.tokens(text, 99), expected, "{text}");
        }
    }
}
