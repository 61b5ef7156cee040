//! Short answers in words, with the numbers in them, and the words of verdicts (`verdicts.tsv`).

use std::collections::HashMap;
use std::sync::LazyLock;

use super::number::Number;
use crate::scoring::expr::{amount, approximates};

/// More words than these are a statement, not a short answer.
const MAX_WORDS: usize = 12;
/// So many words may be missing from the shorter of two equal answers.
const MAX_MORE: usize = 3;
/// As many characters of a script without blanks count as one word.
const IDEOGRAPHS_A_WORD: usize = 2;

/// A short answer in words: in lower case and order.
#[derive(Debug, Clone, PartialEq)]
pub struct Phrase {
    pub words: Vec<String>,
    pub numbers: Vec<Number>,
    /// Whether a word begins with a capital letter: it may name something.
    named: bool,
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
    for line in include_str!("verdicts.tsv").lines().filter(|line| !line.starts_with('#')) {
        for (verdict, words) in [Verdict::Yes, Verdict::No, Verdict::Not].into_iter().zip(line.split('\t').skip(1)) {
            for word in words.split_whitespace() {
                out.entry(word).or_default().push(verdict);
            }
        }
    }
    out
});

fn is(word: &str, verdict: Verdict) -> bool {
    VERDICTS.get(word).is_some_and(|verdicts| verdicts.contains(&verdict))
}

/// Yes or no, if the text is such a word or begins with one and a punctuation mark: "Ja, das stimmt."
pub fn yes_no(text: &str) -> Option<bool> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '\'').unwrap_or(text.len());
    let (word, rest) = text.split_at_checked(end)?;
    let punctuated =
        |c: char| matches!(c, ',' | '.' | ';' | ':' | '!' | '-' | '–' | '—' | '。' | '、' | '，' | '！' | '；');
    if !rest.trim_start_matches(['*', ' ']).is_empty() && !rest.trim_start_matches(['*', ' ']).starts_with(punctuated) {
        return None;
    }
    let word = word.to_lowercase();
    match (is(&word, Verdict::Yes), is(&word, Verdict::No)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

/// Whether a word of the text negates.
pub fn denies(text: &str) -> bool {
    text.split(|c: char| !c.is_alphabetic() && c != '\'').any(|word| is(&word.to_lowercase(), Verdict::Not))
}

/// The words and numbers of a short text; `None` if it is too long or has none.
pub fn read(text: &str) -> Option<Phrase> {
    let mut phrase = Phrase { words: vec![], numbers: vec![], named: false, text: String::new() };
    let text = ranges(text);
    let (mut rest, mut count, mut approximate) = (text.as_str(), 0, false);
    let mut parts: Vec<&str> = vec![];
    while let Some(first) = rest.chars().next() {
        let head = rest.split(['–', '—']).next().unwrap_or_default();
        if let Some(found) = begins_number(rest).then(|| amount(head)).flatten()
            && let Some(behind) = rest.get(found.end..)
            && !behind.starts_with(|c: char| c.is_alphanumeric())
        {
            parts.extend(rest.get(..found.end).map(str::trim));
            phrase.numbers.push(Number::of(found, std::mem::take(&mut approximate)));
            rest = behind;
            count += 1;
        } else {
            let end = rest.find(separates).unwrap_or(rest.len());
            let (word, behind) = rest.split_at_checked(end)?;
            rest = behind.strip_prefix(separates).unwrap_or(behind);
            let word = word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '+' | '#'));
            approximate = matches!(first, '~' | '≈') || approximates(word);
            if !word.contains(char::is_alphanumeric) || approximate {
                continue;
            }
            count += (word.chars().filter(|c| ('\u{2e80}'..'\u{fb00}').contains(c)).count() / IDEOGRAPHS_A_WORD).max(1);
            phrase.named |= word.starts_with(char::is_uppercase);
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

/// The text with a dash for the hyphen of "5-7 days".
fn ranges(text: &str) -> String {
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let parts: Vec<&str> = text.split('-').collect();
    let mut out = parts.first().copied().unwrap_or_default().to_owned();
    for pair in parts.windows(2) {
        let [before, after] = pair else { continue };
        out.push(if digit(before.chars().last()) && digit(after.chars().next()) { '–' } else { '-' });
        out.push_str(after);
    }
    out
}

fn separates(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, ',' | ';' | '(' | ')' | '/' | '"' | '“' | '”' | '„' | '–' | '—' | '~' | '≈' | '、' | '，')
}

fn begins_number(text: &str) -> bool {
    let text = text.trim_start_matches(['-', '−', '$', '€', '£', '¥', '₹', ' ', '.']);
    text.starts_with(|c: char| c.is_ascii_digit())
}

impl Phrase {
    /// Whether two phrases say the same: they have the same numbers and words, or one has a few more words.
    pub fn same(&self, other: &Phrase) -> bool {
        let numbers = self.numbers.len() == other.numbers.len()
            && self.numbers.iter().zip(&other.numbers).all(|(a, b)| a.same(b));
        if !numbers || self.denied() != other.denied() {
            return false;
        }
        // "port 443" and "TCP 443": what is no name only says what the number is.
        let described = self.numbers.len() == 1 && (!self.named || !other.named);
        let (short, long) = if self.words.len() <= other.words.len() { (self, other) } else { (other, self) };
        let more = long.words.len() - short.words.len();
        described || more <= MAX_MORE && long.has_all(short) && (more > 0 || short.has_all(long))
    }

    /// Whether the phrase is that number with words around it.
    pub fn is_number(&self, number: &Number) -> bool {
        matches!(self.numbers.as_slice(), [own] if own.same(number)) && !self.denied()
    }

    fn denied(&self) -> bool {
        self.words.iter().any(|word| is(word, Verdict::Not))
    }

    /// Two words may be turned ("Paris, France"); the order of more of them has a meaning ("A beats B").
    fn has_all(&self, short: &Phrase) -> bool {
        if short.words.is_empty() {
            return !short.numbers.is_empty();
        }
        let mut words = self.words.iter();
        short.words.iter().all(|word| words.any(|own| own == word))
            || short.words.len() < 3 && short.words.iter().all(|word| self.words.contains(word))
    }
}
