//! The text as the vocabulary spells it: NFKC with a few more rules, one space between words.
//!
//! The rules are in the model file as a "precompiled charsmap": the size of a trie in bytes, the
//! trie as a double array in the format of Darts-clone, and the replacements, each ended by a zero
//! byte. The algorithm is `Normalizer::Normalize` of
//! <https://github.com/google/sentencepiece/blob/master/src/normalizer.cc>.

/// Stands for a space in the vocabulary.
pub const SPACE: char = '\u{2581}';

#[derive(Debug)]
pub struct Normalizer {
    /// The double array. A unit has the label of the edge to it, the offset of its children, and
    /// whether it ends a key; the child with label 0 then has the key's value.
    trie: Vec<u32>,
    /// The replacements. A value of the trie is the position of one.
    replacements: Vec<u8>,
}

impl Normalizer {
    pub fn new(charsmap: &[u8]) -> Result<Self, String> {
        let (size, rest) = charsmap
            .split_first_chunk()
            .ok_or("no normalization rules")?;
        let size = u32::from_le_bytes(*size) as usize;
        let (trie, replacements) = rest
            .split_at_checked(size)
            .filter(|(trie, _)| !trie.is_empty() && trie.len() % 4 == 0)
            .ok_or("malformed normalization rules")?;
        let (units, _) = trie.as_chunks();
        Ok(Self {
            trie: units.iter().map(|unit| u32::from_le_bytes(*unit)).collect(),
            replacements: replacements.to_vec(),
        })
    }

    /// Returns the words of `text`, each with a [`SPACE`] before it.
    pub fn normalize(&self, text: &str) -> String {
        let mut normal = String::with_capacity(text.len() + SPACE.len_utf8());
        let mut pending_space = true;
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let (length, replacement) = match self.longest_rule(rest) {
                Some((length, replacement)) => (length, Some(replacement)),
                None => (first.len_utf8(), None),
            };
            let mut append = |letter: char| {
                if letter == ' ' {
                    pending_space = true;
                    return;
                }
                if std::mem::take(&mut pending_space) {
                    normal.push(SPACE);
                }
                normal.push(letter);
            };
            match replacement {
                Some(replacement) => String::from_utf8_lossy(replacement)
                    .chars()
                    .for_each(&mut append),
                None => append(first),
            }
            rest = rest.get(length..).unwrap_or_default();
        }
        normal
    }

    /// Returns the length in bytes of the longest key that `text` starts with, and its replacement.
    /// A key that ends inside a character, which only a damaged model has, does not count.
    fn longest_rule(&self, text: &str) -> Option<(usize, &[u8])> {
        let mut longest = None;
        let mut node = offset(*self.trie.first()?);
        for (index, byte) in text.bytes().enumerate() {
            node ^= usize::from(byte);
            let Some(&unit) = self.trie.get(node) else {
                break;
            };
            // The sign bit marks a value, which has no label.
            if unit & 0x8000_00FF != u32::from(byte) {
                break;
            }
            node ^= offset(unit);
            let ends_key = unit & 0x100 != 0;
            if ends_key && text.is_char_boundary(index + 1) {
                let value = self.trie.get(node)? & 0x7FFF_FFFF;
                longest = Some((index + 1, value));
            }
        }
        let (length, value) = longest?;
        let replacement = self.replacements.get(value as usize..)?;
        Some((length, replacement.split(|byte| *byte == 0).next()?))
    }
}

/// The distance from a unit to its children, as `DoubleArrayUnit::offset` of Darts-clone has it.
fn offset(unit: u32) -> usize {
    ((unit >> 10) << ((unit & 0x200) >> 6)) as usize
}
