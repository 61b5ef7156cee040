//! Small English number words.

/// Returns the number that a lower-case English word names, from "zero" to "ninety-nine".
pub fn number_named(word: &str) -> Option<u32> {
    const NAMES: &str = "zero one two three four five six seven eight nine ten eleven twelve thirteen \
                         fourteen fifteen sixteen seventeen eighteen nineteen twenty";
    const TENS: &str = "twenty thirty forty fifty sixty seventy eighty ninety";
    let at = |names: &str, word: &str| {
        let at = names.split(' ').position(|name| name == word)?;
        u32::try_from(at).ok()
    };
    let (tens, ones) = word.split_once('-').unwrap_or((word, ""));
    let ones = if ones.is_empty() {
        Some(0)
    } else {
        at(NAMES, ones).filter(|ones| (1..10).contains(ones))
    };
    let compound = || Some(10 * (at(TENS, tens)? + 2) + ones?);
    at(NAMES, word).or_else(compound)
}
