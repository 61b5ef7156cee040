//! Text processing that all measures share: bounds, words, sentences, Markdown. Words and sentences are
//! those of Unicode Standard Annex 29, but a sentence does not end behind a known abbreviation.

mod language;
mod markdown;
mod patterns;
mod word_runs;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use compact_str::CompactString;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};
use unicode_segmentation::UnicodeSegmentation;

pub use language::{is_english, is_latin, language_code, likeliest};
pub use markdown::{Block, Markdown, read as read_markdown, shallow};
pub use patterns::{any_of, built_in_json, listed, pattern, pattern_of_ascii_words};
pub use word_runs::WordRuns;

/// The most bytes of any one text that are analysed; longer texts are cut here.
pub const MAX_BYTES: usize = 24_000;

/// Returns the text cut to at most `max` bytes, at a character boundary.
pub fn clip(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max))
        .unwrap_or_default()
}

/// Returns a text as one line without control characters.
pub fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words = words.filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Returns a text as one line of at most `max` characters. A longer text is cut and ends with `…`.
pub fn excerpt(text: &str, max: usize) -> String {
    let line = one_line(text);
    if line.chars().count() <= max {
        return line;
    }
    let cut: String = line.chars().take(max.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end())
}

/// Returns the ASCII form of a digit of any script, of a full-width sign, of the separators inside
/// Arabic numbers, and of a hyphen or minus. A dash, which may stand between words, stays.
pub fn plain_sign(c: char) -> char {
    static ZEROS: LazyLock<Vec<u32>> = LazyLock::new(|| {
        let lines = include_str!("data/digits.txt").lines();
        lines
            .filter_map(|line| u32::from_str_radix(line, 16).ok())
            .collect()
    });
    let code = u32::from(c);
    match c {
        '\u{2d7}' | '\u{2010}'..='\u{2012}' | '\u{2212}' | '\u{fe63}' => return '-',
        ..'\u{660}' => return c,
        '\u{66b}' => return '.',
        '\u{66c}' => return ',',
        '\u{66a}' => return '%',
        // It separates the items of a list, never the digits of a number.
        '，' => return c,
        '\u{ff01}'..='\u{ff5e}' => return char::from_u32(code - 0xfee0).unwrap_or(c),
        _ => {}
    }
    let after = ZEROS.partition_point(|zero| *zero <= code);
    let zero = after.checked_sub(1).and_then(|at| ZEROS.get(at));
    let digit = zero.and_then(|zero| char::from_digit(code - zero, 10));
    digit.unwrap_or(c)
}

/// Unifies typographic variants: composed letters, straight quotes, plain spaces, digits. Invisible
/// characters are removed.
pub fn collapse_whitespace(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let shows = |c: &char| !matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}' | '\u{feff}');
    let plain = |c: char| match c {
        '\u{2018}' | '\u{2019}' => '\'',
        '\u{201c}' | '\u{201d}' => '"',
        '\u{a0}' | '\u{2009}' | '\u{202f}' => ' ',
        c => plain_sign(c),
    };
    if is_nfc_quick(text.chars()) == IsNormalized::Yes
        && text.chars().all(|c| shows(&c) && plain(c) == c)
    {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(shows).nfc().map(plain).collect())
}

/// A word in lower case. Short ones, which are nearly all, need no allocation.
pub type Word = CompactString;

/// Returns the words of a text in lower case.
pub fn words(text: &str) -> Vec<Word> {
    words_as_written(text).map(lower).collect()
}

fn lower(word: &str) -> Word {
    if !word.is_ascii() {
        return Word::from_str_to_lowercase(word);
    }
    let mut word = Word::from(word);
    word.make_ascii_lowercase();
    word
}

/// Returns the number of words of a text.
pub fn count_words(text: &str) -> usize {
    words_as_written(text).count()
}

/// Returns the words of a text. ASCII parts are split by themselves, because that is faster.
fn words_as_written(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    let parts = std::iter::from_fn(move || {
        let (part, behind) = rest.split_at_checked(part_length(rest))?;
        rest = behind;
        (!part.is_empty()).then_some(part)
    });
    parts.flat_map(UnicodeSegmentation::unicode_words)
}

/// Returns the length of the ASCII part at the start of a text, or of the part up to the next one. A
/// part ends behind a space, unless what follows could combine with the space.
fn part_length(text: &str) -> usize {
    let is_end = |pair: &[u8]| matches!(pair, [b' ', next] if next.is_ascii() && *next != b' ');
    let bytes = text.as_bytes();
    let Some(other) = bytes.iter().position(|byte| !byte.is_ascii()) else {
        return text.len();
    };
    let (ascii, others) = bytes.split_at_checked(other).unwrap_or_default();
    let end = ascii.windows(2).rposition(is_end);
    let next = || Some(other + others.windows(2).position(is_end)?);
    end.or_else(next).map_or(text.len(), |at| at + 1)
}

/// Returns the sentences of a text. A line break ends one too. List markers, heading marks and
/// quotes at the start of a line are left out, and so are pieces without a letter or digit.
pub fn sentences(text: &str) -> Vec<&str> {
    each_sentence(text).collect()
}

/// As [`sentences`], one after the other.
pub fn each_sentence(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(|line| without_marker(line.trim()));
    let pieces = lines.flat_map(|line| pieces(line).map(str::trim));
    pieces.filter(|piece| piece.chars().any(char::is_alphanumeric))
}

/// The most bytes of a line in which sentence bounds are looked for at a time. After a full stop the
/// rules of Unicode look ahead as far as brackets and spaces go, which is quadratic in them.
const WINDOW_BYTES: usize = 1000;

/// Splits a line at sentence bounds. A part that ends in an abbreviation continues: "Dr. Alexander
/// Fleming". A sentence that is longer than a window is split at its end.
fn pieces(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    let windows = std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let window = clip(rest, WINDOW_BYTES);
        let mut found = pieces_of(window);
        // The last piece of a window may go on behind it.
        if window.len() < rest.len() && found.len() > 1 {
            found.pop();
        }
        let length = found.iter().map(|piece| piece.len()).sum();
        rest = rest.get(length..).unwrap_or_default();
        Some(found)
    });
    windows.flatten()
}

fn pieces_of(line: &str) -> Vec<&str> {
    let is_printable = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
    let ends = if line.bytes().all(is_printable) || line.chars().all(is_simple) {
        simple_ends(line)
    } else {
        let bounds = line.split_sentence_bound_indices();
        bounds.map(|(at, piece)| at + piece.len()).collect()
    };
    let (mut out, mut start, mut begin) = (Vec::new(), 0, 0);
    for end in ends {
        let piece = line.get(begin..end).unwrap_or_default();
        begin = end;
        let behind = line.get(end..).unwrap_or_default();
        // ".NET", "a.b/c?d=1"
        let is_inside = piece.ends_with(['.', '?', '!'])
            && behind.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !behind.is_empty() && (is_inside || ends_abbreviated(piece) || is_day(piece, behind)) {
            continue;
        }
        out.extend(line.get(start..end));
        start = end;
    }
    out
}

/// True for printable ASCII, for letters of European languages, and for some symbols: characters for
/// which [`simple_ends`] has the rules.
fn is_simple(c: char) -> bool {
    matches!(c, '\t' | ' '..='~' | '\u{c0}'..='\u{17f}' | '°' | '±' | '–' | '—' | '€' | '→' | '≈' | '≤' | '≥')
}

/// Returns where the sentences of a line of such characters end: the rules SB6 to SB11 of Unicode,
/// without looking up the class of each character.
fn simple_ends(line: &str) -> Vec<usize> {
    let from = |index: usize| line.get(index..).unwrap_or_default();
    let at = |index: usize| from(index).chars().next().unwrap_or_default();
    let skip = |index: usize, is: fn(char) -> bool| {
        let rest = from(index);
        index + rest.find(|c| !is(c)).unwrap_or(rest.len())
    };
    let is_term = |c: char| matches!(c, '.' | '!' | '?');
    let is_term_byte = |byte: u8| matches!(byte, b'.' | b'!' | b'?');
    let (mut ends, mut index) = (vec![], 0);
    while let Some(length) = from(index).bytes().position(is_term_byte) {
        let place = index + length;
        let (term, next) = (at(place), place + 1);
        index = next;
        let before = line.get(..place).and_then(|text| text.chars().next_back());
        let is_in_word = before.is_some_and(char::is_alphabetic);
        let is_inside = at(next).is_ascii_digit() || (is_in_word && at(next).is_uppercase());
        if term == '.' && is_inside {
            continue;
        }
        let end = skip(next, |c| "\"'()[]{}".contains(c));
        let end = skip(end, |c| c == ' ' || c == '\t');
        index = end;
        let is_neutral = |c: char| !c.is_alphabetic() && !matches!(c, '.' | '!' | '?');
        let goes_on = is_term(at(end))
            || ",-:;–—".contains(at(end))
            || (term == '.' && at(skip(end, is_neutral)).is_lowercase());
        if !goes_on {
            ends.push(end);
        }
    }
    if ends.last() != Some(&line.len()) {
        ends.push(line.len());
    }
    ends
}

/// True for "4." before "März 2024", in languages that write ordinals with a full stop.
fn is_day(piece: &str, behind: &str) -> bool {
    let Some(head) = piece.trim_end().strip_suffix('.') else {
        return false;
    };
    let digits = head.len() - head.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    // A month and a year are no longer than this.
    let mut words = clip(behind, 40).split_whitespace();
    let is_month =
        |word: &str| word.starts_with(char::is_uppercase) && word.chars().all(char::is_alphabetic);
    (1..=2).contains(&digits)
        && words.next().is_some_and(is_month)
        && words.next().is_some_and(|word| {
            let year = word.trim_end_matches(|c: char| !c.is_alphanumeric());
            year.len() == 4 && year.parse::<u16>().is_ok()
        })
}

fn ends_abbreviated(piece: &str) -> bool {
    static KNOWN: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
        include_str!("data/abbreviations.txt")
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect()
    });
    let last = piece
        .trim_end()
        .strip_suffix('.')
        .and_then(|piece| piece.split_whitespace().next_back());
    last.is_some_and(|word| {
        let word = word.trim_start_matches(|c: char| !c.is_alphanumeric());
        // "e.g."
        let is_letters =
            |part: &str| part.chars().count() == 1 && part.chars().all(char::is_alphabetic);
        word.contains('.') && word.split('.').all(is_letters)
            || KNOWN.contains(word.to_lowercase().as_str())
    })
}

/// Returns a line without its leading list marker, heading mark or quotation mark.
pub fn without_marker(line: &str) -> &str {
    let rest = line.trim_start_matches(['#', '>', ' ']);
    let bullet = rest
        .strip_prefix(['-', '*', '•', '+'])
        .filter(|rest| rest.starts_with(' '));
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let numbered = rest
        .get(digits..)
        .and_then(|rest| rest.strip_prefix(['.', ')']))
        .filter(|rest| rest.starts_with(' '));
    let numbered = numbered.filter(|_| (1..=3).contains(&digits));
    bullet.or(numbered).unwrap_or(rest).trim_start()
}

/// The bytes of a text that tell its language.
const MAX_DETECTED: usize = 2000;

/// Returns the numbers of a text without thousands separators and with a dot for decimals: "1,200.50"
/// and "1.200,50" are "1200.5". A sign in front of three digits separates thousands, whichever it is:
/// languages differ in it, and one panel writes in one language.
pub fn figures(text: &str) -> BTreeSet<String> {
    // A narrow no-break space can be inside a number.
    let is_break = |c: char| c.is_whitespace() && c != '\u{202f}';
    let with_digits = text
        .split(is_break)
        .filter(|part| part.bytes().any(|byte| byte.is_ascii_digit()));
    with_digits
        .flat_map(UnicodeSegmentation::unicode_words)
        .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .map(figure)
        .collect()
}

/// Returns the capitalized words inside sentences, in lower case. In most languages with capitals
/// these are names.
pub fn names(text: &str) -> BTreeSet<String> {
    let inside = sentences(text)
        .into_iter()
        .flat_map(|sentence| sentence.unicode_words().skip(1));
    inside
        .filter(|word| word.starts_with(char::is_uppercase))
        .map(str::to_lowercase)
        .collect()
}

/// True if a text is German, where all nouns are capitalized and not only names.
pub fn capitalizes_nouns(text: &str) -> bool {
    whatlang::detect_lang(clip(text, MAX_DETECTED)) == Some(whatlang::Lang::Deu)
}

fn figure(word: &str) -> String {
    let end = word.find(|c: char| !c.is_ascii_digit() && c != ',' && c != '.');
    let (number, unit) = word.split_at(end.unwrap_or(word.len()));
    let parts: Vec<&str> = number.split([',', '.']).collect();
    let last = number.rfind([',', '.']).and_then(|at| number.get(at..=at));
    let is_repeated = last.is_some_and(|sign| number.matches(sign).count() > 1);
    let (plain, is_one) = match parts.as_slice() {
        [whole, decimals] if decimals.len() != 3 || *whole == "0" => {
            (format!("{whole}.{decimals}"), true)
        }
        [whole @ .., decimals] if !is_repeated && number.contains(',') && number.contains('.') => {
            (whole.concat() + "." + decimals, true)
        }
        // "1.2.3" is a version.
        [_, inner @ .., last] if last.len() != 3 || inner.iter().any(|it| it.len() < 2) => {
            (number.to_owned(), false)
        }
        parts => (parts.concat(), true),
    };
    let value = plain
        .parse::<f64>()
        .ok()
        .filter(|it| it.is_finite() && is_one);
    value.map_or(plain, |value| value.to_string()) + unit
}

/// Returns the share of `needles` that are in `hay`, 0 to 1; `None` if `needles` is empty.
pub fn share_in<T: Ord>(needles: &BTreeSet<T>, hay: &BTreeSet<T>) -> Option<f64> {
    (!needles.is_empty()).then(|| ratio(needles.intersection(hay).count(), needles.len()))
}

/// Returns `a / b`, and 0 for `b` = 0.
pub fn ratio(a: usize, b: usize) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The reference is the `Nd` of the regex crate, which follows Unicode too.
    #[test]
    fn digits_of_every_script_are_read() {
        let digit = regex::Regex::new(r"^\p{Nd}$").unwrap();
        for c in '\0'..='\u{1ffff}' {
            let is_digit = digit.is_match(c.encode_utf8(&mut [0; 4]));
            assert_eq!(plain_sign(c).is_ascii_digit(), is_digit, "{c:?}");
        }
        let plain = |text: &str| text.chars().map(plain_sign).collect::<String>();
        assert_eq!(plain("１７×２４＝４０８"), "17×24=408");
        assert_eq!(plain("١٧٫٥ و ४०८ और ۴۰۸，ok"), "17.5 و 408 और 408，ok");
        assert_eq!(plain("˗1 ‐1 ‑1 ‒1 −1 ﹣1 －1"), ["-1"; 7].join(" "));
        assert_eq!(plain("a – b — c ― d"), "a – b — c ― d");
    }

    #[test]
    fn a_line_longer_than_the_window_has_the_same_sentences() {
        let one = "The valve closes at 3.5 bar (see page 4). ";
        assert_eq!(sentences(&one.repeat(200)), [one.trim(); 200]);
        let long = "word ".repeat(500);
        let found = sentences(&long);
        assert_eq!(found.len(), 3);
        let bytes: usize = found.iter().map(|piece| piece.len()).sum();
        assert!(bytes > 2490, "nothing is lost but spaces: {bytes}");
    }

    #[test]
    fn sentences_end_where_a_reader_stops_in_any_script() {
        assert_eq!(
            sentences(
                "Use a list, e.g. a queue. It costs 3.5 USD! Right?\n1. First step\n- second"
            ),
            [
                "Use a list, e.g. a queue.",
                "It costs 3.5 USD!",
                "Right?",
                "First step",
                "second"
            ]
        );
        assert_eq!(
            sentences("It was Dr. Alexander Fleming. He found it."),
            ["It was Dr. Alexander Fleming.", "He found it."]
        );
        assert_eq!(
            sentences("首都はキャンベラです。人口は約45万人です。").len(),
            2
        );
    }

    proptest! {
        #[test]
        fn a_text_has_the_same_words_as_in_one_piece(
            text in "([a-z]{1,3}|[ .,:'_0-9\\-\n]|\\PC|[\u{300}\u{93f}\u{5d0}\u{200d}]){0,40}"
        ) {
            let found: Vec<&str> = words_as_written(&text).collect();
            prop_assert_eq!(found, text.unicode_words().collect::<Vec<_>>());
        }

        #[test]
        fn a_sentence_of_simple_characters_ends_where_unicode_says(
            line in "([.!? ]|[a-zA-Z0-9äÄ]|[ -~\t]|[\u{c0}-\u{17f}°±–—€→≈≤≥]){1,40}"
        ) {
            prop_assert!(line.chars().all(is_simple));
            let bounds = line.split_sentence_bound_indices();
            let expected: Vec<usize> = bounds.map(|(at, piece)| at + piece.len()).collect();
            prop_assert_eq!(simple_ends(&line), expected);
        }
    }

    #[test]
    fn words_are_found_without_spaces_too() {
        assert_eq!(
            words("It's 1,234.5 km, don't."),
            ["it's", "1,234.5", "km", "don't"]
        );
        assert!(words("首都はキャンベラです").len() >= 4);
    }

    #[test]
    fn figures_are_compared_without_their_dress() {
        assert_eq!(
            figures("1,200 of 1200.50 in 2026"),
            ["1200", "1200.5", "2026"].map(str::to_owned).into()
        );
        for (text, figure) in [
            ("1,5", "1.5"),
            ("1.5", "1.5"),
            ("0,125", "0.125"),
            ("1.200,50", "1200.5"),
            ("1.200", "1200"),
            ("1.234.567", "1234567"),
            ("12,34,567", "1234567"),
            ("1.2.3", "1.2.3"),
            ("12.05.2024", "12.05.2024"),
            ("1,5kg", "1.5kg"),
            ("007", "7"),
        ] {
            assert_eq!(figures(text), [figure.to_owned()].into(), "{text}");
        }
    }

    #[test]
    fn names_have_a_capital_inside_a_sentence() {
        assert_eq!(
            names("The ship left Hamburg. Then Ada came."),
            ["hamburg", "ada"].map(str::to_owned).into()
        );
        assert!(names("首都はキャンベラです。").is_empty());
    }

    #[test]
    fn clipping_never_splits_a_character() {
        assert_eq!(clip("aé", 2), "a");
        assert_eq!(clip("a", 9), "a");
    }
}
