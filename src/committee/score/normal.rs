//! Answers in normal form, so that "1,200 km", "1200 kilometres" and `$1200$` can be seen to be one answer.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::algebra::{self, Form};
use super::arithmetic;
use super::dates::{self, Day};
use super::pattern::pattern;
use super::text::{is_content, stem, words};
use super::units;
use crate::domain::number_named;

/// A final answer in normal form.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    Number {
        value: f64,
        decimals: u32,
        percent: bool,
        unit: Option<&'static str>,
    },
    /// A letter of the request's options.
    Choice(char),
    YesNo(bool),
    /// A day, or a part of a date.
    Date(Day),
    /// Mathematics that is no plain number: without its blanks and LaTeX dress, and by its values where it can be read.
    Formula {
        text: String,
        form: Option<Form>,
    },
    /// A short answer in words: their stems, and how they read.
    Words {
        stems: BTreeSet<String>,
        text: String,
    },
}

/// More content words than this are a statement, not a short answer.
const MAX_ANSWER_WORDS: usize = 6;

impl Answer {
    /// The answer as journals and pages show it.
    pub fn label(&self) -> String {
        match self {
            Answer::Number { value, percent, unit, .. } => {
                let number = six_digits(*value);
                match (percent, unit) {
                    (true, _) => format!("{number}%"),
                    (false, Some(unit)) => format!("{number} {unit}"),
                    (false, None) => number,
                }
            }
            Answer::Choice(letter) => letter.to_string(),
            Answer::YesNo(yes) => if *yes { "yes" } else { "no" }.to_owned(),
            Answer::Date(day) => day.label(),
            Answer::Formula { text, .. } => text.clone(),
            Answer::Words { text, .. } => text.clone(),
        }
    }

    /// Whether two answers say the same: numbers to the precision of the coarser one, words if one's are among the
    /// other's ("Paris", "Paris, France").
    pub fn same(&self, other: &Answer) -> bool {
        match (self, other) {
            (
                Answer::Number { value: a, decimals: da, percent: pa, unit: ua },
                Answer::Number { value: b, decimals: db, percent: pb, unit: ub },
            ) => {
                if let (Some(ua), Some(ub)) = (ua, ub)
                    && ua != ub
                {
                    return converted((*a, *da, ua), (*b, *db, ub)) || converted((*b, *db, ub), (*a, *da, ua));
                }
                close(*a, *b, *da, *db)
                    || pa != pb && (close(*a / 100.0, *b, *da + 2, *db) || close(*a, *b / 100.0, *da, *db + 2))
            }
            (Answer::Date(a), Answer::Date(b)) => a.same(b),
            (Answer::Formula { text: a, form: f }, Answer::Formula { text: b, form: g }) => {
                a == b || f.as_ref().zip(g.as_ref()).is_some_and(|(f, g)| f.same(g))
            }
            (Answer::Formula { form, .. }, Answer::Number { value, decimals, percent: false, unit: None })
            | (Answer::Number { value, decimals, percent: false, unit: None }, Answer::Formula { form, .. }) => {
                let constant = form.as_ref().and_then(Form::constant);
                constant.is_some_and(|constant| close(constant, *value, 12, *decimals))
            }
            (Answer::Words { stems: a, .. }, Answer::Words { stems: b, .. }) => {
                a == b || (!a.is_empty() && a.is_subset(b)) || (!b.is_empty() && b.is_subset(a))
            }
            _ => self == other,
        }
    }
}

/// Whether an amount, with its decimals and unit, is another one in that one's unit: exactly, or to the other's decimals.
fn converted((a, _, from): (f64, u32, &str), (b, decimals, to): (f64, u32, &str)) -> bool {
    let found = units::named(from).zip(units::named(to)).and_then(|(from, to)| units::convert(a, from, to));
    found.is_some_and(|a| close(a, b, decimals, decimals))
}

/// Equal, or equal once the finer is rounded to the decimals of the coarser.
fn close(a: f64, b: f64, decimals_a: u32, decimals_b: u32) -> bool {
    let gap = (a - b).abs();
    let coarser = decimals_a.min(decimals_b);
    gap <= 1e-6 * a.abs().max(b.abs()).max(1e-9)
        || (coarser >= 2 && gap <= 0.51 * 10f64.powi(-(coarser.min(12) as i32)))
}

/// A number with at most six significant digits and without trailing zeros.
pub(super) fn six_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = usize::try_from(5 - magnitude).unwrap_or(0).min(12);
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// The normal form of what a text calls its answer; `None` if it is too long to be one.
pub(super) fn normalise(raw: &str) -> Option<Answer> {
    let text = undress(raw);
    if text.is_empty() || text.len() > 240 {
        return None;
    }
    let date = || dates::alone(&text).map(Answer::Date);
    yes_no(&text).or_else(date).or_else(|| number(&text)).or_else(|| formula(&text)).or_else(|| in_words(&text))
}

/// The text without the dress of Markdown and LaTeX, and without closing punctuation.
pub(super) fn undress(raw: &str) -> String {
    static TEXT: LazyLock<Regex> = LazyLock::new(|| pattern(r"\\(?:text|textbf|mathrm|mbox|mathbf)\s*\{([^{}]*)\}"));
    static BARE_FRACTION: LazyLock<Regex> = LazyLock::new(|| pattern(r"\\[dt]?frac\s*(\d)\s*(\d)"));
    static HALF_BARE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\\[dt]?frac\s*(\d)\s*(\{[^{}]*\})"));
    let mut text = raw.trim().replace("**", "").replace("__", "");
    if text.contains('\\') {
        text = TEXT.replace_all(&text, "$1").into_owned();
        text = BARE_FRACTION.replace_all(&text, r"\frac{$1}{$2}").into_owned();
        text = HALF_BARE.replace_all(&text, r"\frac{$1}$2").into_owned();
        for (from, to) in [
            (r"\(", ""),
            (r"\)", ""),
            (r"\[", ""),
            (r"\]", ""),
            (r"\,", ""),
            (r"\!", ""),
            (r"\$", "$"),
            (r"\%", "%"),
            (r"\left", ""),
            (r"\right", ""),
            (r"^\circ", ""),
            (r"^{\circ}", ""),
            (r"\dfrac", r"\frac"),
            (r"\tfrac", r"\frac"),
            (r"\ ", " "),
        ] {
            text = text.replace(from, to);
        }
    }
    text.trim_matches(|c: char| {
        c.is_whitespace() || matches!(c, '$' | '`' | '"' | '\'' | '.' | ',' | ':' | ';' | '!' | '*')
    })
    .to_owned()
}

/// Yes or no, true or false, when the text is or begins with it.
pub(super) fn yes_no(text: &str) -> Option<Answer> {
    let first = words(text).into_iter().next()?;
    let rest = text.get(first.end..).unwrap_or_default();
    let alone = rest.trim().is_empty()
        || rest.starts_with([',', '.', ';', ':', '!', '*', ' '])
            && rest.trim_start_matches(['*', ' ']).starts_with([',', '.', ';', ':', '!', '-', '–', '—']);
    match first.lower.as_str() {
        "yes" | "yeah" | "yep" | "true" | "correct" if alone => Some(Answer::YesNo(true)),
        "no" | "nope" | "false" | "incorrect" if alone => Some(Answer::YesNo(false)),
        _ => None,
    }
}

/// A number with an optional currency, percent sign and unit, or a plain fraction or product of numbers.
pub(super) fn number(text: &str) -> Option<Answer> {
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"^(?:about|approximately|around|roughly|exactly|nearly|only|a total of|=|≈|~)?\s*[$€£]?\s*(-|−)?\s*[$€£]?\s*(\d{1,3}(?:,\s?\d{3})+(?:\.\d+)?|\d*\.?\d+(?:[eE][+-]?\d+)?)\s*(%|percent\b)?\s*(?:([A-Za-z°µ]+(?:/[A-Za-z]+)?)((?:\s+\S+){0,5}))?$",
        )
    });
    let bare = text
        .strip_prefix(['x', 'y', 'n', 'X'])
        .and_then(|rest| rest.trim_start().strip_prefix('='))
        .unwrap_or(text)
        .trim();
    if let Some(found) = NUMBER.captures(bare).filter(|found| !goes_on(found)) {
        let digits: String = found.get(2)?.as_str().chars().filter(|c| !matches!(c, ',' | ' ')).collect();
        let value: f64 = digits.parse().ok()?;
        let scale = found.get(4).map_or(1.0, |word| scale_of(&word.as_str().to_lowercase()));
        let value = if found.get(1).is_some() { -value } else { value } * scale;
        let decimals = digits.split_once('.').map_or(0, |(_, tail)| tail.len() as u32);
        let unit = found.get(4).and_then(|unit| units::behind_number(unit.as_str())).map(|unit| unit.name);
        return value.is_finite().then_some(Answer::Number { value, decimals, percent: found.get(3).is_some(), unit });
    }
    if let Some(value) = mixed_number(bare) {
        return Some(Answer::Number { value, decimals: 12, percent: false, unit: None });
    }
    if bare.chars().any(|c| c.is_ascii_digit())
        && !bare.contains(['=', ','])
        && bare.contains(['/', '\\', '^', '+', '*', '×'])
    {
        let value = arithmetic::evaluate(bare)?;
        return Some(Answer::Number { value, decimals: 12, percent: false, unit: None });
    }
    words_for_number(bare).map(|value| Answer::Number { value, decimals: 0, percent: false, unit: None })
}

/// Whether what follows a number is no unit and no noun: a variable, or the rest of a formula.
fn goes_on(found: &Captures<'_>) -> bool {
    let part = |n: usize| found.get(n).map_or("", |part| part.as_str());
    let variable = part(4).chars().count() == 1 && units::behind_number(part(4)).is_none() && part(4) != "a";
    variable && !part(5).is_empty() && part(5).contains(['+', '-', '*', '/', '=', '^'])
        || part(5).split_whitespace().any(|word| matches!(word, "+" | "-" | "*" | "/" | "="))
}

/// "30\\frac{1}{2}" is thirty and a half.
fn mixed_number(text: &str) -> Option<f64> {
    let (whole, fraction) = text.split_once(r"\frac")?;
    let whole: f64 = whole.trim().parse().ok()?;
    let part = arithmetic::evaluate(&format!(r"\frac{fraction}"))?;
    Some(if whole < 0.0 { whole - part } else { whole + part })
}

fn scale_of(word: &str) -> f64 {
    match word {
        "thousand" => 1e3,
        "million" => 1e6,
        "billion" => 1e9,
        "trillion" => 1e12,
        _ => 1.0,
    }
}

/// "seven" or "Twelve eggs": a number word alone or with one word behind it.
fn words_for_number(text: &str) -> Option<f64> {
    let found = words(text);
    let first = found.first().filter(|_| found.len() <= 2)?;
    number_named(&first.lower).map(f64::from)
}

/// Mathematics that is more than a number: it has signs of its own, and little prose.
fn formula(text: &str) -> Option<Answer> {
    let mathematical = text.contains(['\\', '^', '=', '{', '√', '∞', '['])
        || (text.contains(['+', '*', '/', '(']) && text.chars().any(|c| c.is_ascii_digit()));
    let long_words =
        words(text).iter().filter(|word| word.lower.len() > 3 && !text.contains(&format!("\\{}", word.lower))).count();
    if !mathematical || long_words > 1 {
        return None;
    }
    let text = text.replace(r"\cdot", "*").replace(r"\times", "*");
    let text: String = text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '$')).collect();
    let text = text.rsplit_once('=').filter(|(name, _)| name.len() <= 5).map_or(text.as_str(), |(_, value)| value);
    (!text.is_empty()).then(|| Answer::Formula { text: text.to_owned(), form: algebra::read(text) })
}

/// A short answer in words; articles and other function words do not count.
pub(super) fn in_words(text: &str) -> Option<Answer> {
    let found = words(text);
    let stems: BTreeSet<String> =
        found.iter().filter(|word| is_content(&word.lower)).map(|word| stem(&word.lower)).collect();
    if stems.is_empty() || stems.len() > MAX_ANSWER_WORDS || found.len() > MAX_ANSWER_WORDS * 2 {
        return None;
    }
    let text: Vec<&str> = found.iter().filter(|word| is_content(&word.lower)).map(|word| word.lower.as_str()).collect();
    Some(Answer::Words { stems, text: text.join(" ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(a: &str, b: &str) -> bool {
        normalise(a).unwrap().same(&normalise(b).unwrap())
    }

    #[test]
    fn forms_of_one_answer_are_the_same() {
        for (a, b) in [
            ("1,200", "$1200$"),
            ("1,200 km", "1200 kilometres"),
            ("0.5", "1/2"),
            (r"\frac{1}{2}", "0.50"),
            ("25%", "0.25"),
            ("1500 m", "1.5 km"),
            ("90 minutes", "1.5 hours"),
            ("98.6 °F", "37 °C"),
            ("1.61 km", "1 mile"),
            ("**42**", "42."),
            ("Yes.", "yes, it is"),
            ("Paris", "paris, France"),
            ("$5", "5 dollars"),
            ("0.333", r"\frac{1}{3}"),
            ("seven", "7"),
            ("3 million", "3,000,000"),
            (r"\text{Paris}", "Paris"),
            ("x = 5", "5"),
            (r"30\frac{1}{2}", "30.5"),
            (r"2\sqrt{3}", r"2 \sqrt{3}"),
            (r"2\sqrt{3}", r"\sqrt{12}"),
            (r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt{2}}"),
            (r"\sqrt{16}", "4"),
            ("y = 2x + 3", "y = 3 + 2x"),
            (r"\left(3, \frac{\pi}{2}\right)", r"(3, \frac{\pi}{2})"),
            ("4 July 1776", "July 4th, 1776"),
            ("1776-07-04", "the 4th of July, 1776"),
            ("July 1776", "4 July 1776"),
        ] {
            assert!(same(a, b), "{a} and {b}");
        }
    }

    #[test]
    fn different_answers_stay_apart() {
        for (a, b) in [
            ("12", "13"),
            ("5 km", "5 miles"),
            ("5 km", "50 m"),
            ("2 km", "1 mile"),
            ("60 s", "60 kg"),
            ("Paris", "Lyon"),
            ("yes", "no"),
            ("33.56", "0.1289"),
            (r"2\sqrt{3}", r"3\sqrt{2}"),
            ("4 July 1776", "5 July 1776"),
            ("4 July 1776", "4 July 1777"),
            ("(3, 4)", "(4, 3)"),
            ("y = 2x + 3", "y = 2x - 3"),
            ("1900", "1901"),
            ("25%", "0.26"),
        ] {
            assert!(!same(a, b), "{a} and {b}");
        }
    }

    #[test]
    fn a_statement_is_no_short_answer() {
        assert_eq!(
            normalise("It depends on how large the database grows and whether replicas are needed in several regions"),
            None
        );
    }

    #[test]
    fn labels_have_six_significant_digits() {
        let label = |text| normalise(text).unwrap().label();
        assert_eq!(label("0.5578231"), "0.557823");
        assert_eq!(label("1,234,567"), "1234567");
        assert_eq!(label(r"-\frac{1}{9}"), "-0.111111");
        assert_eq!(label("50%"), "50%");
    }
}
