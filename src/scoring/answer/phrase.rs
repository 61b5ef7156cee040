//! Short answers in words, with the numbers in them, and the words of verdicts (`verdicts.tsv`).

use std::collections::HashMap;
use std::sync::LazyLock;

use super::number::Number;
use crate::scoring::expr::{amount, approximates};

/// The most words of a short answer. A longer text is a statement.
const MAX_WORDS: usize = 12;
/// The most words that the shorter of two equal answers may lack.
const MAX_MORE: usize = 3;
/// The number of characters that count as one word in a script without spaces.
const IDEOGRAPHS_A_WORD: usize = 2;

/// A short answer in words: in lower case and order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Phrase {
    pub words: Vec<String>,
    pub numbers: Vec<Number>,
    /// For each word, whether it begins with a capital letter: it may be part of a name.
    capital: Vec<bool>,
    /// For each word, whether it is after a comma or in brackets. Then it only adds to the name
    /// before.
    apposed: Vec<bool>,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Verdict {
    Yes,
    No,
    Not,
}

static VERDICTS: LazyLock<HashMap<&'static str, Vec<Verdict>>> = LazyLock::new(|| {
    let mut out: HashMap<&'static str, Vec<Verdict>> = HashMap::new();
    for line in include_str!("verdicts.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        for (verdict, words) in [Verdict::Yes, Verdict::No, Verdict::Not]
            .into_iter()
            .zip(line.split('\t').skip(1))
        {
            for word in words.split_whitespace() {
                out.entry(word).or_default().push(verdict);
            }
        }
    }
    out
});

fn is(word: &str, verdict: Verdict) -> bool {
    VERDICTS
        .get(word)
        .is_some_and(|verdicts| verdicts.contains(&verdict))
}

/// Returns yes or no, if the text is such a word or begins with one and punctuation: "Ja, das
/// stimmt."
pub fn yes_no(text: &str) -> Option<bool> {
    let end = text
        .find(|c: char| !c.is_alphanumeric() && c != '\'')
        .unwrap_or(text.len());
    let (word, rest) = text.split_at_checked(end)?;
    let punctuated = |c: char| {
        matches!(
            c,
            ',' | '.' | ';' | ':' | '!' | '-' | '–' | '—' | '。' | '、' | '，' | '！' | '；'
        )
    };
    if !rest.trim_start_matches(['*', ' ']).is_empty()
        && !rest.trim_start_matches(['*', ' ']).starts_with(punctuated)
    {
        return None;
    }
    let word = word.to_lowercase();
    match (is(&word, Verdict::Yes), is(&word, Verdict::No)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

/// True if the text has a negating word.
pub fn denies(text: &str) -> bool {
    text.split(|c: char| !c.is_alphabetic() && c != '\'')
        .any(|word| is(&word.to_lowercase(), Verdict::Not))
}

/// Returns the words and numbers of a short text; `None` if it is too long or has none.
pub fn read(text: &str) -> Option<Phrase> {
    let mut phrase = Phrase::default();
    let text = ranges(text);
    let (mut rest, mut count, mut approximate, mut apposed) = (text.as_str(), 0, false, false);
    let mut parts: Vec<&str> = vec![];
    while let Some(first) = rest.chars().next() {
        let head = rest.split(['–', '—']).next().unwrap_or_default();
        if let Some(found) = begins_number(rest).then(|| amount(head)).flatten()
            && let Some(behind) = rest.get(found.end..)
            && !behind.starts_with(|c: char| c.is_alphanumeric())
        {
            parts.extend(rest.get(..found.end).map(str::trim));
            phrase
                .numbers
                .push(Number::of(found, std::mem::take(&mut approximate)));
            rest = behind;
            count += 1;
        } else {
            let token = rest.split(char::is_whitespace).next().unwrap_or_default();
            if is_code(token) {
                // Commands and paths are compared exactly as written.
                phrase.capital.push(true);
                phrase.apposed.push(false);
                phrase.words.push(token.to_owned());
                parts.push(token);
                rest = rest.get(token.len()..)?;
                count += 1;
                continue;
            }
            let end = rest.find(separates).unwrap_or(rest.len());
            let (word, behind) = rest.split_at_checked(end)?;
            let ends_name =
                behind.starts_with([',', '，']) || behind.trim_start().starts_with(['(', '（']);
            rest = behind.strip_prefix(separates).unwrap_or(behind);
            let word = word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '+' | '#'));
            approximate = matches!(first, '~' | '≈') || approximates(word);
            if !word.contains(char::is_alphanumeric) || approximate {
                continue;
            }
            count += (word
                .chars()
                .filter(|c| ('\u{2e80}'..'\u{fb00}').contains(c))
                .count()
                / IDEOGRAPHS_A_WORD)
                .max(1);
            phrase.capital.push(word.starts_with(char::is_uppercase));
            phrase.apposed.push(apposed);
            apposed |= ends_name;
            phrase.words.push(word.to_lowercase());
            parts.push(word);
        }
        if count > MAX_WORDS {
            return None;
        }
    }
    phrase.text = parts.join(" ").to_lowercase();
    (count > 0).then_some(phrase)
}

/// Returns the text with a dash for the hyphen of "5-7 days".
fn ranges(text: &str) -> String {
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let parts: Vec<&str> = text.split('-').collect();
    let mut out = parts.first().copied().unwrap_or_default().to_owned();
    for pair in parts.windows(2) {
        let [before, after] = pair else { continue };
        out.push(
            if digit(before.chars().last()) && digit(after.chars().next()) {
                '–'
            } else {
                '-'
            },
        );
        out.push_str(after);
    }
    out
}

fn separates(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            ',' | ';'
                | '('
                | ')'
                | '/'
                | '"'
                | '“'
                | '”'
                | '„'
                | '–'
                | '—'
                | '~'
                | '≈'
                | '、'
                | '，'
        )
}

/// True for options, paths, patterns and variables: "-V", "~/.bashrc", "*.txt", "$HOME", "&&".
fn is_code(token: &str) -> bool {
    let mut chars = token.chars();
    let signed = chars.next().is_some_and(|c| {
        matches!(
            c,
            '-' | '~' | '$' | '*' | '/' | '\\' | '&' | '|' | '.' | '<' | '>'
        )
    });
    signed
        && chars
            .next()
            .is_some_and(|c| !c.is_whitespace() && !c.is_ascii_digit())
}

fn begins_number(text: &str) -> bool {
    let text = text.trim_start_matches(['-', '−', '$', '€', '£', '¥', '₹', ' ', '.']);
    text.starts_with(|c: char| c.is_ascii_digit())
}

impl Phrase {
    /// True if two phrases say the same. Either they have the same numbers and words, or one has a
    /// few more words that do not change what is named.
    pub fn same(&self, other: &Phrase) -> bool {
        let numbers = self.numbers.len() == other.numbers.len()
            && self
                .numbers
                .iter()
                .zip(&other.numbers)
                .all(|(a, b)| a.same_version(b));
        if !numbers || self.denied() != other.denied() {
            return false;
        }
        let (short, long) = if self.words.len() <= other.words.len() {
            (self, other)
        } else {
            (other, self)
        };
        let more = long.words.len() - short.words.len();
        match more {
            0 => long.has_all(short) && short.has_all(long),
            more => more <= MAX_MORE && long.has_all(short) && long.names_nothing_beside(short),
        }
    }

    /// True if the words that `short` lacks do not change what is named. They are no names ("the
    /// city of Paris"), or after a comma ("Paris, France"), or first names ("Alexander Fleming").
    fn names_nothing_beside(&self, short: &Phrase) -> bool {
        let more: Vec<usize> = (0..self.words.len())
            .filter(|at| {
                self.words
                    .get(*at)
                    .is_some_and(|w| !short.words.contains(w))
            })
            .collect();
        let all =
            |flags: &Vec<bool>, wanted: bool| more.iter().all(|at| flags.get(*at) == Some(&wanted));
        let is_last_name = self.words.ends_with(&short.words) && !short.words.is_empty();
        all(&self.capital, false)
            || all(&self.apposed, true)
            || is_last_name && all(&self.capital, true)
    }

    /// Returns its number, if it has exactly one and all its words are among `words`.
    pub fn only_number_beside(&self, words: &[String]) -> Option<&Number> {
        let [number] = self.numbers.as_slice() else {
            return None;
        };
        // With decimals it may be a version: 3.1 is not 3.10.
        let repeats = self
            .words
            .iter()
            .all(|word| words.contains(word) && !is(word, Verdict::Not));
        (repeats && number.is_whole()).then_some(number)
    }

    /// True if the phrase is that number with words around it.
    pub fn is_number(&self, number: &Number) -> bool {
        matches!(self.numbers.as_slice(), [own] if own.same_version(number))
            && !self.denied()
            && number.may_be_said_with(&self.words)
    }

    fn denied(&self) -> bool {
        self.words.iter().any(|word| is(word, Verdict::Not))
    }

    /// True if it has all words of `short`. Two words may be in any order ("Paris, France"); for
    /// more words the order has a meaning ("A beats B").
    fn has_all(&self, short: &Phrase) -> bool {
        if short.words.is_empty() {
            return !short.numbers.is_empty();
        }
        let mut words = self.words.iter();
        short.words.iter().all(|word| words.any(|own| own == word))
            || short.words.len() < 3 && short.words.iter().all(|word| self.words.contains(word))
    }
}
