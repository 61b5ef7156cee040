//! Normalizes answers, so that "1,200 km", "1200 kilometres" and `$1200$` compare as one answer.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use unicode_normalization::UnicodeNormalization;

use super::dates::{self, Day};
use super::decimals::DecimalSign;
use super::number::{Number, within};
use super::phrase::{self, Phrase};
use crate::domain::number_named;
use crate::scoring::expr::{self, Form, amount};
use crate::text::{Word, pattern, plain_sign};

/// A final answer in normal form.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Number(Number),
    /// A letter of the request's options.
    Choice(char),
    YesNo(bool),
    /// A day, or a part of a date, and the words around it: "before 4 July".
    Date(Day, Vec<String>),
    /// Mathematics that is not a plain number: the name that it defines ("y" of "y = 2x"), its text
    /// without blanks, and its values if it can be parsed.
    Formula {
        name: Option<String>,
        text: String,
        form: Option<Form>,
    },
    /// A short answer in words.
    Words(Phrase),
}

const MAX_BYTES: usize = 240;
/// The most characters of an answer that consists of closing punctuation.
const MAX_SIGNS: usize = 2;
/// The most words after the number of an answer: "8 packs of gum".
const MAX_NOUNS: usize = 6;

impl Answer {
    /// Returns the answer as journals and pages show it.
    pub fn label(&self) -> String {
        match self {
            Answer::Number(number) => number.label(),
            Answer::Choice(letter) => letter.to_string(),
            Answer::YesNo(yes) => if *yes { "yes" } else { "no" }.to_owned(),
            Answer::Date(day, _) => day.label(),
            Answer::Formula { text, .. } => text.clone(),
            Answer::Words(phrase) => phrase.text.clone(),
        }
    }

    /// True if two answers do not say the same, although each may say the same as a third one: "500
    /// g" and "500 kg".
    pub fn excludes(&self, other: &Answer) -> bool {
        match (self, other) {
            // "3" and "3000" may both be a "3.000".
            (Answer::Number(a), Answer::Number(b)) => {
                a.differs(b) || a.is_measured() && b.is_measured() && !a.same(b)
            }
            // "March 2024" is neither of two days of it.
            (Answer::Date(..), Answer::Date(..)) => self.differs(other),
            (Answer::Words(a), Answer::Words(b)) => a.excludes(b),
            (Answer::Words(phrase), Answer::Number(number))
            | (Answer::Number(number), Answer::Words(phrase)) => phrase.is_other_version(number),
            _ => false,
        }
    }

    /// True if two answers certainly differ: other numbers, letters, dates, or yes and no. For other
    /// answers that are not the [`same`](Answer::same), only a reader of the texts can tell.
    pub fn differs(&self, other: &Answer) -> bool {
        match (self, other) {
            (Answer::YesNo(a), Answer::YesNo(b)) => a != b,
            (Answer::Choice(a), Answer::Choice(b)) => a != b,
            (Answer::Number(a), Answer::Number(b)) => a.differs(b),
            (Answer::Date(a, around), Answer::Date(b, other)) => around == other && !a.same(b),
            (Answer::Choice(letter), Answer::Words(phrase))
            | (Answer::Words(phrase), Answer::Choice(letter)) => phrase
                .letter()
                .is_some_and(|it| !it.eq_ignore_ascii_case(&letter.to_string())),
            // The letters of options in any alphabet.
            (Answer::Words(a), Answer::Words(b)) => {
                let letters = a.letter().zip(b.letter());
                letters.is_some_and(|(a, b)| a.to_lowercase() != b.to_lowercase())
            }
            _ => false,
        }
    }

    /// True if two answers say the same. The relation is symmetric but not transitive, so compare
    /// with the first member of a group.
    pub fn same(&self, other: &Answer) -> bool {
        match (self, other) {
            // "C", "c" and "option C"
            (Answer::Choice(letter), Answer::Words(phrase))
            | (Answer::Words(phrase), Answer::Choice(letter)) => phrase.is_choice(*letter),
            (Answer::Number(a), Answer::Number(b)) => a.same(b),
            (Answer::Date(a, around), Answer::Date(b, other)) => a.same(b) && within(around, other),
            // They have one value, and do not define different names.
            (
                Answer::Formula { name, text, form },
                Answer::Formula {
                    name: other_name,
                    text: other_text,
                    form: other_form,
                },
            ) => {
                let names = name.as_ref().zip(other_name.as_ref());
                let forms = form.as_ref().zip(other_form.as_ref());
                names.is_none_or(|(a, b)| a == b)
                    && (text == other_text || forms.is_some_and(|(a, b)| a.same(b)))
            }
            (Answer::Formula { form, .. }, Answer::Number(number))
            | (Answer::Number(number), Answer::Formula { form, .. }) => form
                .as_ref()
                .and_then(Form::constant)
                .is_some_and(|constant| number.same(&Number::exact(constant))),
            // Beside "-x+1", "1-x" is no name.
            (Answer::Formula { form, .. }, Answer::Words(phrase))
            | (Answer::Words(phrase), Answer::Formula { form, .. }) => form
                .as_ref()
                .is_some_and(|form| expr::read(&phrase.text).is_some_and(|it| it.same(form))),
            (Answer::Words(a), Answer::Words(b)) => a.same(b),
            (Answer::Words(phrase), Answer::Number(number))
            | (Answer::Number(number), Answer::Words(phrase)) => phrase.is_number(number),
            _ => self == other,
        }
    }

    /// Sets its numbers by the decimal sign of the texts around it.
    pub fn read_decimals(&mut self, sign: Option<DecimalSign>) {
        match self {
            Answer::Number(number) => number.read_decimals(sign),
            Answer::Words(phrase) => phrase.read_decimals(sign),
            _ => {}
        }
    }

    /// Sets a number to the meaning that equals a known answer, if one does.
    pub fn read_meaning(&mut self, known: &Answer) {
        if let (Answer::Number(number), Answer::Number(known)) = (self, known) {
            number.read_meaning(known);
        }
    }

    /// Notes which words of the answer the request has.
    pub fn read_request(&mut self, request: &[Word]) {
        match self {
            Answer::Number(number) => number.read_request(request),
            Answer::Words(phrase) => phrase.read_request(request),
            _ => {}
        }
    }

    /// True if a reply that says `said` gives this answer: as [`Answer::same`], but with further
    /// words around a number, which need not be those of the request.
    pub fn is_given_by(&self, said: &Answer) -> bool {
        match (self, said) {
            (Answer::Number(own), Answer::Number(said)) => own.is_given_by(said),
            (Answer::Number(own), Answer::Words(said)) => said.gives(own),
            (Answer::Words(own), Answer::Words(said)) => own.is_given_by(said),
            _ => self.same(said),
        }
    }
}

/// Returns the normal form of an answer's text; `None` if it is too long to be an answer.
pub fn parse(raw: &str) -> Option<Answer> {
    if raw.len() > 2 * MAX_BYTES {
        return None;
    }
    let mut text = undress(raw);
    if text.is_empty() && raw.trim().chars().count() <= MAX_SIGNS {
        // ";" is an answer too.
        text = raw.trim().to_owned();
    }
    if text.is_empty() || text.len() > MAX_BYTES {
        return None;
    }
    // It has too many digits for a number, so it is compared as written.
    static LONG_IN_GROUPS: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^\d{1,3}(?:[ ,.'_]\d{3}){5,}$"));
    if LONG_IN_GROUPS.is_match(&text) {
        text.retain(|c| c.is_ascii_digit());
    }
    if phrase::is_numeral(&text) {
        return phrase::read(&text).map(Answer::Words);
    }
    phrase::yes_no(&text)
        .map(Answer::YesNo)
        .or_else(|| dates::alone(&text).map(|(day, around)| Answer::Date(day, around)))
        .or_else(|| choice(&text))
        .or_else(|| number(&text).map(Answer::Number))
        .or_else(|| formula(&text))
        .or_else(|| phrase::read(&text).map(Answer::Words))
}

/// Returns the text in NFC without surrounding Markdown and LaTeX markup and closing punctuation.
pub(in crate::scoring) fn undress(raw: &str) -> String {
    static MARKUP: LazyLock<Regex> = LazyLock::new(|| pattern(r"\*\*|__|`|\\[()\[\]]"));
    static RANGE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\d)–(\d)"));
    // "—7 °C"
    static SIGN: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\W*)[–—―]([$€£¥]?\d)"));
    static RATIO: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\d) ?[:：∶] ?(\d)"));
    // "1,234,567", or "12,34,567" as in India.
    static GROUPED: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^\d+(?:,\d{3})+$|^\d{1,2}(?:,\d{2})+,000$"));
    static LIST: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\d+(?:,\d+){2,}$"));
    static EMPHASIS: LazyLock<Regex> = LazyLock::new(|| pattern(r"(^|\s)\*(\w(?:[^*\n]*\w)?)\*"));
    let plain: String = raw.nfc().flat_map(in_letters).map(plain_sign).collect();
    let plain = without_scripts(&plain);
    let plain = EMPHASIS.replace_all(&plain, "$1$2");
    let plain = RANGE.replace_all(&plain, "$1-$2");
    let plain = SIGN.replace(&plain, "$1-$2");
    let plain = RATIO.replace_all(&plain, "$1:$2");
    let plain = if LIST.is_match(plain.trim()) && !GROUPED.is_match(plain.trim()) {
        plain.replace(',', ", ")
    } else {
        plain.into_owned()
    };
    let plain = MARKUP.replace_all(&plain, "");
    let mut text = expr::unwrapped(expr::plain_numbers(&plain).into_owned());
    for (from, to) in [
        (r"\$", "$"),
        (r"\%", "%"),
        (r"^\circ", "°"),
        (r"^{\circ}", "°"),
    ] {
        text = text.replace(from, to);
    }
    let mut text = without_marks(&text);
    while let Some(inner) = text
        .strip_prefix('$')
        .and_then(|rest| rest.strip_suffix('$'))
    {
        text = without_marks(inner);
    }
    text.to_owned()
}

/// Writes raised and lowered digits and signs in a line: "10⁻³" is "10^-3", "SO₄²⁻" is "SO42-". Behind
/// a digit, lowered ones stay, because they name its base: "1011₂".
fn without_scripts(text: &str) -> Cow<'_, str> {
    static SCRIPTS: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"[⁺⁻]?([⁰¹²³⁴-⁹]+)([⁺⁻]?)|[⁺⁻]|\d[₀-₉]+|[₀-₉₊₋]+"));
    SCRIPTS.replace_all(text, |found: &Captures<'_>| {
        let whole = found.get(0).map_or("", |it| it.as_str());
        if whole.starts_with(|c: char| c.is_ascii_digit()) {
            return whole.to_owned();
        }
        let is_power = found.get(1).is_some() && found.get(2).is_none_or(|it| it.is_empty());
        let sign = if is_power { "^" } else { "" };
        sign.chars().chain(whole.nfkc().map(plain_sign)).collect()
    })
}

/// Returns the letters of a unit that is one character: "°C" of "℃", "kg" of "㎏".
fn in_letters(c: char) -> impl Iterator<Item = char> {
    let is_unit = matches!(c, '℃' | '℉' | '\u{3300}'..='\u{33ff}');
    let letters = is_unit.then(|| std::iter::once(c).nfkc());
    let own = letters.is_none().then_some(c);
    letters.into_iter().flatten().chain(own)
}

/// Returns the text without quotation marks, emphasis, marks of lists and the signs that end a
/// sentence. Signs with a meaning of their own stay: "*p", ":q!", "5!", "f'", "6\"".
fn without_marks(text: &str) -> &str {
    let is_edge = |c: char| c.is_whitespace() || "“”„,，;。".contains(c);
    let mut text = text.trim_matches(is_edge);
    loop {
        let before = text;
        let listed = text.strip_prefix(['*', ':']);
        text = listed
            .filter(|rest| rest.starts_with(char::is_whitespace))
            .unwrap_or(text);
        for mark in ['"', '\'', '*'] {
            let inner = text.strip_prefix(mark);
            let inner = match inner.and_then(|rest| rest.strip_suffix(mark)) {
                None if mark != '*' => inner,
                paired => paired,
            };
            text = inner.filter(|it| !it.contains(mark)).unwrap_or(text);
        }
        let head = text.trim_end_matches(['"', '\'', '!', '.', ':']);
        let end = text.get(head.len()..).unwrap_or_default();
        let is_code = text.starts_with(['!', ':', '@']);
        text = match end {
            "!" if is_factor(head) || is_code => text,
            "'" | "\"" if is_measured(head) || is_code => text,
            "'" if phrase::has_prime(text) => text,
            _ => head,
        };
        text = text.trim_matches(is_edge);
        if text == before {
            return text;
        }
    }
}

/// True if an exclamation mark behind the text is a factorial: "5!", "n!", "(n - 1)!".
fn is_factor(text: &str) -> bool {
    let is_number = text.chars().all(|c| c.is_ascii_digit()) && !text.is_empty();
    let is_name = text.len() == 1 && text.starts_with(|c: char| c.is_ascii_lowercase());
    is_number || is_name || text.starts_with('(') && text.ends_with(')')
}

/// True if a text ends with a digit or a closing bracket.
fn is_measured(text: &str) -> bool {
    text.ends_with(|c: char| c.is_numeric() || c == ')')
}

/// Parses "B", "(B)", "b)", "B) dark green", "B、緑". "B. dark green" may be a name, as "B. subtilis" is.
fn choice(text: &str) -> Option<Answer> {
    let open = text.strip_prefix('(').unwrap_or(text);
    let letter = open.chars().next().filter(char::is_ascii_alphabetic)?;
    let rest = open.get(1..)?;
    let known = ('A'..='J').contains(&letter.to_ascii_uppercase())
        && (letter.is_ascii_uppercase() || rest.starts_with(')'));
    let is_choice = known && (rest.is_empty() || rest.starts_with([')', '、']));
    is_choice.then(|| Answer::Choice(letter.to_ascii_uppercase()))
}

/// Parses a number with its unit and words, or a plain expression of numbers. "1990s" is a decade, and
/// neither a year nor a time.
fn number(text: &str) -> Option<Number> {
    if phrase::begins_decade(text) {
        return None;
    }
    let named = text
        .split_once('=')
        .filter(|(name, _)| name.trim().len() <= 5 && !name.contains(char::is_numeric));
    let bare = named.map_or(text, |(_, value)| value).trim_start();
    let (currency, bare) = currency(bare);
    let bare = &in_one_number(bare);
    if let Some(value) = number_named(&bare.to_lowercase()) {
        return Some(Number::exact(f64::from(value)));
    }
    if let Some(found) = amount(bare).filter(|it| it.is_exact(bare))
        && let Some(rest) = bare.get(found.end..)
        && is_noun_phrase(rest)
    {
        // A symbol keeps its case: "mW" is not "MW".
        let word = |word: &str| match word.chars().count() {
            ..=2 => word.to_owned(),
            _ => word.to_lowercase(),
        };
        let is_inner = |c: char| c.is_alphanumeric() || c == '\'' || phrase::is_symbol(c);
        let words = rest.split(|c: char| !is_inner(c));
        // "42 ✓" is 42, and "5♥" is a card.
        let is_apart = rest.starts_with(char::is_whitespace);
        let is_sign = |c: char| !c.is_alphanumeric() && !phrase::is_unit_sign(c);
        let is_dress = |word: &str| word.is_empty() || is_apart && word.chars().all(is_sign);
        let words = words.filter(|word| !is_dress(word)).chain(currency);
        let words = words.map(word).collect();
        return Some(Number::of(found, words));
    }
    // "04/07/1776" is a date in figures, and "60 requests/minute" is not a calculation.
    let calculates =
        bare.contains(['\\', '^', '+', '*', '×', '½', '¼', '¾']) || bare.matches('/').count() == 1;
    let is_math = calculates && prose_words(bare).all(|word| word.chars().count() < 3);
    if is_math && bare.contains(char::is_numeric) && !bare.contains(['=', ',']) {
        return expr::evaluate(bare).map(Number::exact);
    }
    None
}

/// Splits off the sign of a currency without a unit of its own: "CA$", "₫".
fn currency(text: &str) -> (Option<&str>, &str) {
    static CURRENCY: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^([A-Z]{1,3}\$|[\p{Sc}--[$€£¥₹¢₩₽₺₴]]) ?\d"));
    let sign = CURRENCY.captures(text).and_then(|found| found.get(1));
    match sign.filter(|sign| sign.as_str() != "US$") {
        Some(sign) => (
            Some(sign.as_str()),
            text.get(sign.end()..).unwrap_or_default(),
        ),
        None => (None, text),
    }
}

/// Writes powers of ten and fractions before a unit as one number: "9.46 × 10^15 m" as "9.46e15 m",
/// "1 1/2 cups" and "1½ cups" as "1.5 cups".
fn in_one_number(text: &str) -> String {
    static POWER: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"^(?:(-?[\d.,]*\d) ?(?:[×x·⋅*]|\\times|\\cdot) ?)?10\^\{?(-?\d{1,2})\}?(?: |$)")
    });
    static FRACTION: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^(?:(\d+) *)?\b(\d{1,3})[/⁄](\d{1,3}) (\p{L})"));
    let compatible = |text: &str| text.nfkc().collect::<String>().replace('−', "-");
    if let Some(found) = POWER.captures(text) {
        let part = |at: usize| found.get(at).map_or("1", |part| part.as_str());
        let rest = text.get(part(0).trim_end().len()..).unwrap_or_default();
        return format!("{}e{}{rest}", part(1), part(2));
    }
    // "1½" is "1 1⁄2", with a slash of its own.
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        let spelled = compatible(c.encode_utf8(&mut [0; 4]));
        if spelled.contains('⁄') {
            plain.extend([" ", &spelled]);
        } else {
            plain.push(c);
        }
    }
    let plain = plain.trim_start();
    let Some(found) = FRACTION.captures(plain) else {
        return text.to_owned();
    };
    let part = |at: usize| {
        found
            .get(at)
            .and_then(|part| part.as_str().parse::<f64>().ok())
    };
    let (Some(over), Some(under)) = (part(2), part(3)) else {
        return text.to_owned();
    };
    let whole = part(1).filter(|_| over < under);
    // "3/4 time" and "24/7 support" are no amounts.
    if whole.is_none() && plain == text {
        return text.to_owned();
    }
    let value = whole.unwrap_or(0.0) + over / under;
    let unit = found.get(4).map_or(plain.len(), |unit| unit.start());
    format!("{value} {}", plain.get(unit..).unwrap_or_default())
}

/// Returns the words of a text without LaTeX names.
fn prose_words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphabetic() && c != '\\');
    words.filter(|word| !word.starts_with('\\'))
}

/// True if the text after a number only says what is counted: "packs of gum", "bottles/h".
fn is_noun_phrase(text: &str) -> bool {
    static RATE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\p{L}[\p{M}.]*)/(\p{L})"));
    let calculates = |c: char| {
        c.is_numeric() || ['=', '+', '*', '^', '\\', '<', '>', '/', '{', '['].contains(&c)
    };
    let text = RATE.replace_all(text, "$1 $2");
    text.split_whitespace().count() <= MAX_NOUNS
        && !text.starts_with(|c: char| c == '!' || c.is_alphanumeric() && !is_ideographic(c))
        && !text.contains(calculates)
}

/// True for scripts that write no space between a number and what it counts.
fn is_ideographic(c: char) -> bool {
    ('\u{2e80}'..'\u{fb00}').contains(&c)
}

/// Parses mathematics that is more than a number: it has its own symbols and little prose.
fn formula(text: &str) -> Option<Answer> {
    let is_factorial = text.strip_suffix('!').is_some_and(is_factor);
    let inner = text.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
    let is_tuple = inner.is_some_and(|it| it.contains(',') && !it.contains(['(', ')']));
    let sure = is_factorial
        || is_tuple
        || text.contains([
            '\\', '^', '=', '{', '√', '∞', '[', '<', '>', '≤', '≥', '±', '⌊', '⌈',
        ]);
    // "O(n)"
    let name = text.split_once('(').map(|(name, _)| name);
    let called = name.is_some_and(|name| name.ends_with(char::is_alphabetic));
    let likely = called
        || text.contains(['+', '*', '/', '(']) && text.contains(|c: char| c.is_ascii_digit());
    let long = prose_words(text).filter(|word| word.chars().count() > 3);
    if !sure && !likely || long.count() > 1 {
        return None;
    }
    let mut text = text.to_owned();
    for (from, to) in [
        (r"\left", ""),
        (r"\right", ""),
        (r"\dfrac", r"\frac"),
        (r"\tfrac", r"\frac"),
    ] {
        text = text.replace(from, to);
    }
    let is_name = |name: &str| {
        let name = name.trim();
        (1..=5).contains(&name.chars().count()) && !name.ends_with(['!', '<', '>', '=', ':'])
    };
    let defined = text.rsplit_once('=').filter(|(name, _)| is_name(name));
    let (name, text) = match defined {
        Some((name, value)) => (Some(name.trim().to_owned()), value.trim()),
        None => (None, text.trim()),
    };
    let form = expr::read(text);
    if form.is_none() && !sure {
        return None;
    }
    // "^\d+$" has an end, and "$x$ + $y$" is marked up.
    let is_marked_up = text.matches('$').count() % 2 == 0;
    let text: String = text
        .chars()
        .filter(|c| !(c.is_whitespace() || is_marked_up && *c == '$'))
        .collect();
    (!text.is_empty()).then_some(Answer::Formula { name, text, form })
}

#[cfg(test)]
mod tests;
