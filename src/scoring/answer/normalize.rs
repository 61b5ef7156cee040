//! Normalizes answers, so that "1,200 km", "1200 kilometres" and `$1200$` compare as one answer.

use unicode_normalization::UnicodeNormalization;

use super::dates::{self, Day};
use super::number::{Number, within};
use super::phrase::{self, Phrase};
use crate::domain::number_named;
use crate::scoring::expr::{self, Form, amount, approximates, negates};

/// A final answer in normal form.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Number(Number),
    /// A letter of the request's options, and the text after it.
    Choice {
        letter: char,
        stated: Option<Box<Answer>>,
    },
    YesNo(bool),
    /// A day, or a part of a date, and the words around it: "before 4 July".
    Date(Day, Vec<String>),
    /// Seconds from midnight, and the zone if one is named.
    Time(u32, Option<String>),
    /// Mathematics that is not a plain number: its text without blanks, and its values if it can be
    /// parsed.
    Formula {
        text: String,
        form: Option<Form>,
    },
    /// A short answer in words.
    Words(Phrase),
}

const MAX_BYTES: usize = 240;
/// The most words after the number of an answer: "8 packs of gum".
const MAX_NOUNS: usize = 6;

impl Answer {
    /// Returns the answer as journals and pages show it.
    pub fn label(&self) -> String {
        match self {
            Answer::Number(number) => number.label(),
            Answer::Choice { letter, .. } => letter.to_string(),
            Answer::YesNo(yes) => if *yes { "yes" } else { "no" }.to_owned(),
            Answer::Date(day, _) => day.label(),
            Answer::Time(seconds, _) => match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
                (hour, minute, 0) => format!("{hour:02}:{minute:02}"),
                (hour, minute, second) => format!("{hour:02}:{minute:02}:{second:02}"),
            },
            Answer::Formula { text, .. } => text.clone(),
            Answer::Words(phrase) => phrase.text.clone(),
        }
    }

    /// Returns the answer without words that only repeat the request: "port 443" is 443 if a port
    /// was asked for.
    pub fn without_words_of(self, request: &[String]) -> Self {
        match &self {
            Answer::Words(phrase) => match phrase.only_number_beside(request) {
                Some(number) => Answer::Number(number.clone()),
                None => self,
            },
            _ => self,
        }
    }

    /// True if two answers cannot mean the same, because their units or time zones differ.
    pub fn excludes(&self, other: &Answer) -> bool {
        let measured = match (self, other) {
            (Answer::Number(a), Answer::Number(b)) => a.is_measured() && b.is_measured(),
            (Answer::Time(_, zone), Answer::Time(_, other)) => zone.is_some() && other.is_some(),
            _ => false,
        };
        measured && !self.same(other)
    }

    /// True if two answers say the same. The relation is symmetric but not transitive, so compare
    /// with the first member of a group.
    pub fn same(&self, other: &Answer) -> bool {
        match (self, other) {
            (Answer::Choice { letter: a, .. }, Answer::Choice { letter: b, .. }) => a == b,
            (Answer::Choice { letter, stated }, other)
            | (other, Answer::Choice { letter, stated }) => match stated {
                Some(stated) => stated.same(other),
                // "C" and "option C"
                None => {
                    matches!(other, Answer::Words(phrase) if phrase.words.contains(&letter.to_lowercase().to_string()))
                }
            },
            (Answer::Number(a), Answer::Number(b)) => a.same(b),
            (Answer::Date(a, around), Answer::Date(b, other)) => a.same(b) && within(around, other),
            (Answer::Formula { text: a, form: f }, Answer::Formula { text: b, form: g }) => {
                a == b || f.as_ref().zip(g.as_ref()).is_some_and(|(f, g)| f.same(g))
            }
            (Answer::Formula { form, .. }, Answer::Number(number))
            | (Answer::Number(number), Answer::Formula { form, .. }) => form
                .as_ref()
                .and_then(Form::constant)
                .is_some_and(|constant| number.same(&Number::exact(constant))),
            (Answer::Time(a, zone), Answer::Time(b, other)) => {
                a == b
                    && zone
                        .as_ref()
                        .zip(other.as_ref())
                        .is_none_or(|(a, b)| a == b)
            }
            (Answer::Time(time, _), Answer::Number(number))
            | (Answer::Number(number), Answer::Time(time, _)) => {
                number.seconds() == Some(f64::from(*time))
            }
            (Answer::Words(a), Answer::Words(b)) => a.same(b),
            (Answer::Words(phrase), Answer::Number(number))
            | (Answer::Number(number), Answer::Words(phrase)) => phrase.is_number(number),
            _ => self == other,
        }
    }
}

/// Returns the normal form of an answer's text; `None` if it is too long to be an answer.
pub fn parse(raw: &str) -> Option<Answer> {
    if raw.len() > 2 * MAX_BYTES {
        return None;
    }
    let text = undress(raw);
    if text.is_empty() || text.len() > MAX_BYTES {
        return None;
    }
    phrase::yes_no(&text)
        .map(Answer::YesNo)
        .or_else(|| dates::alone(&text).map(|(day, around)| Answer::Date(day, around)))
        .or_else(|| dates::time(&text).map(|(time, zone)| Answer::Time(time, zone)))
        .or_else(|| choice(&text))
        .or_else(|| number(&text).map(Answer::Number))
        .or_else(|| formula(&text))
        .or_else(|| phrase::read(&text).map(Answer::Words))
}

/// Returns the text in NFC without surrounding Markdown and LaTeX markup and closing punctuation.
pub(in crate::scoring) fn undress(raw: &str) -> String {
    let mut text: String = raw
        .nfc()
        .map(plain_form)
        .collect::<String>()
        .replace("**", "")
        .replace("__", "")
        .replace('`', "");
    for name in [
        r"\boxed", r"\text", r"\textbf", r"\mathrm", r"\mathbf", r"\mbox",
    ] {
        while let Some(bare) = unwrapped(&text, name) {
            text = bare;
        }
    }
    for (from, to) in [
        (r"\(", ""),
        (r"\)", ""),
        (r"\[", ""),
        (r"\]", ""),
        (r"\$", "$"),
        (r"\%", "%"),
        (r"\ ", " "),
        ("US$", "$"),
    ] {
        text = text.replace(from, to);
    }
    let ends = |c: char| {
        c.is_whitespace()
            || matches!(
                c,
                '"' | '\'' | '“' | '”' | '„' | ',' | ':' | ';' | '*' | '。'
            )
    };
    let mut text = text
        .trim_matches(ends)
        .trim_end_matches(|c| ends(c) || matches!(c, '.' | '!'));
    while let Some(inner) = text
        .strip_prefix('$')
        .and_then(|rest| rest.strip_suffix('$'))
    {
        text = inner.trim_matches(ends);
    }
    // "v2.4.1", "H_2O".
    let version = text
        .strip_prefix(['v', 'V'])
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let mut plain = dates::in_figures(version.unwrap_or(text));
    let lowered = |plain: &String| {
        let at = plain.find('_').filter(|_| !plain.contains('\\'))?;
        plain
            .get(at + 1..)?
            .starts_with(|c: char| c.is_ascii_digit())
            .then_some(at)
    };
    while let Some(at) = lowered(&plain) {
        plain.remove(at);
    }
    plain
}

/// Returns the ASCII form of full-width characters and subscript digits: "１０", "H₂O".
fn plain_form(c: char) -> char {
    let code = u32::from(c);
    let plain = match code {
        0xFF01..=0xFF5E => code - 0xFEE0,
        0x2080..=0x2089 => code - 0x2080 + u32::from('0'),
        0x3000 => u32::from(' '),
        _ => code,
    };
    char::from_u32(plain).unwrap_or(c)
}

/// Returns the text without the first `\name{...}` around a part of it.
fn unwrapped(text: &str, name: &str) -> Option<String> {
    let (before, rest) = text.split_once(&format!("{name}{{"))?;
    let mut depth = 1;
    let end = rest.char_indices().find(|(_, c)| {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        depth == 0
    });
    let (inner, after) = rest.split_at_checked(end?.0)?;
    Some(format!("{before}{inner}{}", after.get(1..)?))
}

/// Parses "B", "(B)", "b)", "B. dark green".
fn choice(text: &str) -> Option<Answer> {
    let open = text.strip_prefix('(').unwrap_or(text);
    let letter = open.chars().next().filter(char::is_ascii_alphabetic)?;
    let rest = open.get(1..)?;
    let marked =
        rest.starts_with(')') || rest.starts_with(['.', ':']) && rest.get(1..)?.starts_with(' ');
    let known = ('A'..='J').contains(&letter.to_ascii_uppercase())
        && (letter.is_ascii_uppercase() || rest.starts_with(')'));
    if !known || !(marked || rest.is_empty()) {
        return None;
    }
    let stated = parse(rest.get(1..).unwrap_or_default()).map(Box::new);
    Some(Answer::Choice {
        letter: letter.to_ascii_uppercase(),
        stated,
    })
}

/// Parses a number with its unit and words, or a plain expression of numbers.
fn number(text: &str) -> Option<Number> {
    let named = text
        .split_once('=')
        .filter(|(name, _)| name.trim().len() <= 5 && !name.contains(char::is_numeric));
    let bare = named.map_or(text, |(_, value)| value).trim_start();
    let (bare, approximate, negative) = without_signs(bare);
    let spelled = spelled_out(bare);
    let bare = spelled.as_deref().unwrap_or(bare);
    if let Some(found) = amount(bare)
        && let Some(rest) = bare.get(found.end..)
        && is_noun_phrase(rest)
    {
        // A symbol keeps its case: "mW" is not "MW".
        let word = |word: &str| {
            if word.chars().count() > 2 {
                word.to_lowercase()
            } else {
                word.to_owned()
            }
        };
        let words = rest
            .split(|c: char| !c.is_alphanumeric() && c != '\'')
            .filter(|word| !word.is_empty())
            .map(word);
        return Some(
            Number::of(found, approximate)
                .negated(negative)
                .followed_by(words.collect()),
        );
    }
    // "04/07/1776" is a date in figures.
    let calculates =
        bare.contains(['\\', '^', '+', '*', '×', '½', '¼', '¾']) || bare.matches('/').count() == 1;
    // "60 requests/minute" is not a calculation.
    let prose = bare.split(|c: char| !c.is_alphabetic() && c != '\\');
    let calculates = calculates
        && prose
            .filter(|word| !word.starts_with('\\'))
            .all(|word| word.chars().count() < 3);
    if calculates && bare.contains(char::is_numeric) && !bare.contains(['=', ',']) {
        return expr::evaluate(bare).map(Number::exact);
    }
    None
}

/// Returns the text without the signs and words before a number, and whether they make the number
/// approximate and negative.
fn without_signs(mut bare: &str) -> (&str, bool, bool) {
    let (mut approximate, mut negative) = (false, false);
    loop {
        let word = bare.split(char::is_whitespace).next().unwrap_or_default();
        let sign = bare.strip_prefix(['~', '≈', '=']);
        let about = approximates(word.trim_end_matches('.'));
        let minus = negates(word) && word.len() > 1;
        let Some(rest) = sign.or_else(|| {
            bare.get(word.len()..)
                .filter(|_| (about || minus) && !word.is_empty())
        }) else {
            return (bare, approximate, negative);
        };
        negative |= minus;
        approximate |= about || sign.is_some() && !bare.starts_with('=');
        bare = rest.trim_start();
    }
}

/// True if the text after a number only says what is counted.
fn is_noun_phrase(text: &str) -> bool {
    let calculates = |c: char| {
        c.is_numeric() || ['=', '+', '*', '^', '\\', '<', '>', '/', '{', '['].contains(&c)
    };
    text.split_whitespace().count() <= MAX_NOUNS
        && !text.starts_with(|c: char| c.is_alphanumeric() && !is_ideographic(c))
        && !text.contains(calculates)
}

/// Returns "three days" in figures. The number word must be alone, or before a unit or scale.
fn spelled_out(text: &str) -> Option<String> {
    let word = text.split(char::is_whitespace).next()?;
    let value = number_named(&word.to_lowercase())?;
    let rest = text.get(word.len()..)?;
    let figures = format!("{value}{rest}");
    let measured =
        || amount(&figures).is_some_and(|found| found.measure.is_some() || found.scale > 1.0);
    (rest.trim().is_empty() || measured()).then_some(figures)
}

/// True for scripts that write no space between a number and what it counts.
fn is_ideographic(c: char) -> bool {
    ('\u{2e80}'..'\u{fb00}').contains(&c)
}

/// Returns a superscript digit as a power.
fn raised(c: char) -> Option<String> {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    DIGITS
        .iter()
        .position(|digit| *digit == c)
        .map(|digit| format!("^{digit}"))
}

/// Parses mathematics that is more than a number: it has its own symbols and little prose.
fn formula(text: &str) -> Option<Answer> {
    let raised = text.chars().fold(String::new(), |out, c| {
        out + &raised(c).unwrap_or(c.to_string())
    });
    let text = raised.as_str();
    let sure = text.contains(['\\', '^', '=', '{', '√', '∞', '[', '<', '>', '≤', '≥', '±']);
    // "O(n)"
    let called = text
        .split('(')
        .next()
        .is_some_and(|name| name.len() < text.len() && name.ends_with(char::is_alphabetic));
    let likely = called
        || text.contains(['+', '*', '/', '(']) && text.contains(|c: char| c.is_ascii_digit());
    let prose = text
        .split(|c: char| !c.is_alphabetic() && c != '\\')
        .filter(|word| word.chars().count() > 3);
    if !sure && !likely || prose.filter(|word| !word.starts_with('\\')).count() > 1 {
        return None;
    }
    let mut text = text.to_owned();
    for (from, to) in [
        (r"\cdot", "*"),
        (r"\times", "*"),
        (r"\left", ""),
        (r"\right", ""),
        (r"\dfrac", r"\frac"),
        (r"\tfrac", r"\frac"),
    ] {
        text = text.replace(from, to);
    }
    let value = text
        .rsplit_once('=')
        .filter(|(name, _)| name.trim().chars().count() <= 5);
    let text = value.map_or(text.as_str(), |(_, value)| value).trim();
    let form = expr::read(text);
    if form.is_none() && !sure {
        return None;
    }
    let text: String = text
        .chars()
        .filter(|c| !c.is_whitespace() && *c != '$')
        .collect();
    (!text.is_empty()).then_some(Answer::Formula { text, form })
}

#[cfg(test)]
mod tests;
