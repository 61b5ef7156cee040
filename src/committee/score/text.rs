//! Words, sentences and language: the reading that every measure shares. Knows nothing of reports or scores.

use std::borrow::Cow;
use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization;

/// The most bytes of any one text that are analysed; hostile lengths are cut here.
pub(super) const MAX_BYTES: usize = 24_000;

/// A word as it stands in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub lower: String,
    /// Begins with a capital letter.
    pub capital: bool,
    /// Byte offset of its first and past its last letter.
    pub start: usize,
    pub end: usize,
}

/// The text cut to at most `max` bytes, at a character boundary.
pub(super) fn clip(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// One spelling for typographic variants: composed letters, straight quotes, plain spaces.
pub(super) fn tidy(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.nfc()
            .filter(|c| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}' | '\u{feff}'))
            .map(|c| match c {
                '\u{2018}' | '\u{2019}' => '\'',
                '\u{201c}' | '\u{201d}' => '"',
                '\u{a0}' | '\u{2009}' | '\u{202f}' => ' ',
                c => c,
            })
            .collect(),
    )
}

/// The words of a text: runs of letters and digits, with apostrophes and decimal points inside.
pub(super) fn words(text: &str) -> Vec<Word> {
    let mut out = Vec::new();
    let mut open: Option<usize> = None;
    let mut chars = text.char_indices().peekable();
    let mut previous = ' ';
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map_or(' ', |(_, c)| *c);
        let inside = c.is_alphanumeric()
            || (open.is_some() && c == '\'' && next.is_alphabetic())
            || (open.is_some() && matches!(c, '.' | ',') && previous.is_ascii_digit() && next.is_ascii_digit());
        match (inside, open) {
            (true, None) => open = Some(at),
            (false, Some(start)) => {
                push_word(&mut out, text, start, at);
                open = None;
            }
            _ => {}
        }
        previous = c;
    }
    if let Some(start) = open {
        push_word(&mut out, text, start, text.len());
    }
    out
}

fn push_word(out: &mut Vec<Word>, text: &str, start: usize, end: usize) {
    if let Some(word) = text.get(start..end) {
        let capital = word.chars().next().is_some_and(char::is_uppercase);
        out.push(Word { lower: word.to_lowercase(), capital, start, end });
    }
}

/// The sentences of a text; a line break ends one, as does a full stop before a space, but not in "e.g. this".
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    for line in text.lines() {
        let mut start = 0;
        let mut chars = line.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            if !matches!(c, '.' | '!' | '?' | '。' | '！' | '？') {
                continue;
            }
            let next = chars.peek().map_or(' ', |(_, c)| *c);
            let wide = matches!(c, '。' | '！' | '？');
            if !wide && !next.is_whitespace() && !matches!(next, '"' | ')' | '*') {
                continue;
            }
            let head = line.get(start..at).unwrap_or_default();
            if c == '.' && is_abbreviation(head) {
                continue;
            }
            let end = at + c.len_utf8();
            push_sentence(&mut out, line.get(start..end));
            start = end;
        }
        push_sentence(&mut out, line.get(start..));
    }
    out
}

fn push_sentence<'a>(out: &mut Vec<&'a str>, piece: Option<&'a str>) {
    let piece = piece.unwrap_or_default().trim();
    if piece.chars().any(char::is_alphanumeric) {
        out.push(piece);
    }
}

/// Whether a full stop after `head` belongs to its last word: "e.g", "Dr", a list number, an initial.
fn is_abbreviation(head: &str) -> bool {
    let last = head.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    let numbered = head.trim_start_matches(['*', '-', '#', ' ']).len() <= 3 && last.chars().all(|c| c.is_ascii_digit());
    let initial = last.chars().count() == 1 && last.chars().all(char::is_uppercase) && last != "I" && head.len() > 1;
    numbered || initial || ABBREVIATIONS.contains(&last.to_lowercase().as_str())
}

const ABBREVIATIONS: &[&str] =
    &["e.g", "i.e", "etc", "dr", "mr", "mrs", "ms", "prof", "st", "vs", "approx", "no", "fig", "cf", "jr", "sr"];

/// The words that carry meaning, reduced to their stems, without repeats.
pub(super) fn content(text: &str) -> BTreeSet<String> {
    words(text).iter().filter(|word| is_content(&word.lower)).map(|word| stem(&word.lower)).collect()
}

/// Whether a lower-case word carries meaning of its own.
pub(super) fn is_content(lower: &str) -> bool {
    FUNCTION_WORDS.binary_search(&lower).is_err() && (lower.len() > 1 || lower.chars().all(char::is_numeric))
}

/// Whether a lower-case word is one of the small words that hold English sentences together.
pub(super) fn is_function_word(lower: &str) -> bool {
    FUNCTION_WORDS.binary_search(&lower).is_ok()
}

/// A light stem of a lower-case English word: plural, possessive and the commonest verb endings fall off. It only has
/// to send the forms of a word to one place, not to be a word.
pub(super) fn stem(lower: &str) -> String {
    let word = lower.strip_suffix("'s").unwrap_or(lower);
    if !word.is_ascii() || word.len() < 4 || word.bytes().any(|b| b.is_ascii_digit()) {
        return word.to_owned();
    }
    let cut = if let Some(root) = word.strip_suffix("ies") {
        return format!("{root}y");
    } else if let Some(root) = word.strip_suffix("ing").filter(|root| root.len() >= 3) {
        undouble(root)
    } else if let Some(root) = word.strip_suffix("ed").filter(|root| root.len() >= 3) {
        undouble(root)
    } else if let Some(root) = word.strip_suffix("ly").filter(|root| root.len() >= 4) {
        root
    } else if word.ends_with("ss") || word.ends_with("us") || word.ends_with("is") {
        word
    } else if ["xes", "ches", "shes", "sses", "zes"].iter().any(|end| word.ends_with(end)) {
        word.strip_suffix("es").unwrap_or(word)
    } else {
        word.strip_suffix('s').unwrap_or(word)
    };
    cut.strip_suffix('e').filter(|root| root.len() >= 3).unwrap_or(cut).to_owned()
}

/// "runn" is "run", but "fall" stays.
fn undouble(root: &str) -> &str {
    let mut tail = root.chars().rev();
    match (tail.next(), tail.next()) {
        (Some(a), Some(b)) if a == b && !matches!(a, 'l' | 's' | 'z' | 'e' | 'o') => {
            root.get(..root.len() - 1).unwrap_or(root)
        }
        _ => root,
    }
}

/// The language of a text of at least eight words, if it is plain: ISO 639-3, such as "eng". English is recognised by
/// its small words, for trigrams alone are unsure of short texts.
pub(super) fn language(text: &str) -> Option<&'static str> {
    let sample = clip(text, 2_000);
    let found = words(sample);
    if found.len() < 8 {
        return None;
    }
    let english = found.iter().filter(|word| is_function_word(&word.lower)).count();
    if ratio(english, found.len()) >= 0.3 {
        return Some("eng");
    }
    // Trigrams find a language in any heap of words; a Latin-script one has to show its small words as well.
    let info = whatlang::detect(sample)?;
    let plain = info.script() != whatlang::Script::Latin
        || ratio(found.iter().filter(|word| is_foreign_function_word(&word.lower)).count(), found.len()) >= 0.12;
    (plain && info.lang() != whatlang::Lang::Eng && info.confidence() >= 0.5).then(|| info.lang().code())
}

/// The commonest small words of the larger Latin-script languages other than English.
fn is_foreign_function_word(lower: &str) -> bool {
    const SMALL: &[&str] = &[
        "af", "al", "als", "att", "au", "auf", "av", "az", "bir", "com", "con", "da", "das", "de", "dei", "del",
        "della", "dem", "den", "der", "des", "det", "die", "do", "du", "e", "egy", "ein", "eine", "el", "en", "er",
        "es", "et", "för", "het", "i", "ich", "il", "ist", "ja", "je", "jest", "la", "las", "le", "les", "lo", "los",
        "met", "mit", "na", "nach", "nicht", "nie", "não", "o", "och", "og", "on", "os", "para", "pas", "per", "por",
        "pour", "på", "que", "qui", "se", "si", "sich", "som", "su", "sur", "të", "um", "uma", "un", "una", "und",
        "une", "van", "ve", "von", "w", "z", "zu", "à", "är", "é", "è",
    ];
    SMALL.contains(&lower)
}

/// The share of `needles` that are in `hay`; 1 when there is nothing to find.
pub(super) fn covered_share(needles: &BTreeSet<String>, hay: &BTreeSet<String>) -> f64 {
    if needles.is_empty() {
        return 1.0;
    }
    ratio(needles.intersection(hay).count(), needles.len())
}

/// `a / b`, and 0 for nothing of nothing.
pub(super) fn ratio(a: usize, b: usize) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

/// Words without a subject of their own, sorted for binary search.
const FUNCTION_WORDS: &[&str] = &[
    "a",
    "about",
    "above",
    "after",
    "again",
    "all",
    "also",
    "am",
    "among",
    "an",
    "and",
    "any",
    "are",
    "aren't",
    "as",
    "at",
    "be",
    "because",
    "been",
    "before",
    "being",
    "below",
    "between",
    "both",
    "but",
    "by",
    "can",
    "can't",
    "cannot",
    "could",
    "couldn't",
    "did",
    "didn't",
    "do",
    "does",
    "doesn't",
    "doing",
    "don't",
    "down",
    "during",
    "each",
    "either",
    "else",
    "etc",
    "ever",
    "every",
    "few",
    "for",
    "from",
    "further",
    "get",
    "gets",
    "give",
    "given",
    "gives",
    "had",
    "has",
    "hasn't",
    "have",
    "haven't",
    "having",
    "he",
    "hence",
    "her",
    "here",
    "hers",
    "him",
    "his",
    "how",
    "however",
    "i",
    "i'd",
    "i'll",
    "i'm",
    "i've",
    "if",
    "in",
    "into",
    "is",
    "isn't",
    "it",
    "it's",
    "its",
    "itself",
    "just",
    "let",
    "let's",
    "like",
    "made",
    "make",
    "makes",
    "many",
    "may",
    "me",
    "might",
    "mine",
    "more",
    "most",
    "much",
    "must",
    "my",
    "neither",
    "never",
    "no",
    "nor",
    "not",
    "of",
    "off",
    "on",
    "once",
    "one",
    "one's",
    "only",
    "or",
    "other",
    "our",
    "out",
    "over",
    "own",
    "per",
    "please",
    "same",
    "shall",
    "she",
    "should",
    "shouldn't",
    "since",
    "so",
    "some",
    "such",
    "than",
    "that",
    "that's",
    "the",
    "their",
    "them",
    "then",
    "there",
    "there's",
    "therefore",
    "these",
    "they",
    "this",
    "those",
    "through",
    "thus",
    "to",
    "too",
    "under",
    "until",
    "up",
    "upon",
    "us",
    "very",
    "was",
    "wasn't",
    "we",
    "we're",
    "well",
    "were",
    "weren't",
    "what",
    "what's",
    "when",
    "where",
    "whether",
    "which",
    "while",
    "who",
    "whom",
    "whose",
    "why",
    "will",
    "with",
    "within",
    "without",
    "won't",
    "would",
    "wouldn't",
    "yet",
    "you",
    "you're",
    "your",
    "yours",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_words_are_sorted() {
        assert!(FUNCTION_WORDS.is_sorted());
    }

    #[test]
    fn sentences_end_where_a_reader_stops() {
        assert_eq!(
            sentences("Use a list, e.g. a queue. It costs 3.5 USD! Right?\n1. First step"),
            ["Use a list, e.g. a queue.", "It costs 3.5 USD!", "Right?", "1. First step"]
        );
    }

    #[test]
    fn forms_of_a_word_share_a_stem() {
        for (a, b) in
            [("plans", "plan"), ("cities", "city"), ("running", "run"), ("closed", "closing"), ("boxes", "box")]
        {
            assert_eq!(stem(a), stem(b), "{a} {b}");
        }
        assert_ne!(stem("glass"), stem("gla"));
    }

    #[test]
    fn numbers_and_apostrophes_stay_in_one_word() {
        let found: Vec<_> = words("It's 1,234.5 km, don't.").into_iter().map(|word| word.lower).collect();
        assert_eq!(found, ["it's", "1,234.5", "km", "don't"]);
    }

    #[test]
    fn the_language_of_plain_text_is_known() {
        assert_eq!(language("Please explain to me how a database keeps its data safe after a crash."), Some("eng"));
        assert_eq!(
            language("Eine Datenbank schreibt jede Änderung zuerst in ein Protokoll, damit nichts verloren geht."),
            Some("deu")
        );
        assert_eq!(language("Yes."), None);
    }

    #[test]
    fn clipping_never_splits_a_character() {
        assert_eq!(clip("aé", 2), "a");
    }
}
