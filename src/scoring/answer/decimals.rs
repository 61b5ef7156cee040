//! The decimal sign of texts: "2.500" is 2500 beside "2,5", and 2.5 beside "0.75".

use std::sync::LazyLock;

use regex::Regex;

use crate::text::pattern;

/// The sign before the decimals of a number. The other one groups thousands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecimalSign {
    Point,
    Comma,
}

impl DecimalSign {
    /// Returns the decimal sign that the figures of some texts have; `None` if they have none, or
    /// both. A figure shows it by both signs ("1.234,5"), by groups of thousands ("1.234.567"), by a
    /// number of decimals other than three ("2,5"), or by a zero in front ("0,125").
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut signs = texts.into_iter().flat_map(figures).filter_map(sign_of);
        let first = signs.next()?;
        signs.all(|sign| sign == first).then_some(first)
    }
}

/// Returns the numbers of a text that have a sign inside, without these:
///
/// - with commas and in brackets, which may be lists;
/// - next to letters;
/// - before a full stop or colon, if they may be a date or a time;
/// - before a hyphen ("2,3-dimethylbutane").
fn figures(text: &str) -> impl Iterator<Item = &str> {
    static FIGURE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\d+(?:[.,]\d+)+"));
    FIGURE.find_iter(text).filter_map(|found| {
        let figure = found.as_str();
        let before = text.get(..found.start())?.chars().next_back();
        let mut rest = text.get(found.end()..)?.chars();
        let (behind, next) = (rest.next(), rest.next());
        let in_list = |c: char| figure.contains(',') && "()[]{}".contains(c);
        let is_outside = |c: char| !c.is_alphanumeric() && !in_list(c) && !".,/:".contains(c);
        let is_alone = before.is_none_or(is_outside)
            && behind.is_none_or(|c| match c {
                '.' | ':' => next.is_none_or(char::is_whitespace) && !may_be_date(figure),
                '/' => next.is_some_and(char::is_alphabetic),
                ',' => true,
                c => is_outside(c) && !"-‐‑–".contains(c) || c.is_alphabetic(),
            });
        is_alone.then_some(figure)
    })
}

/// True for a day and a month, or hours and minutes: "3.10", "10.30".
fn may_be_date(figure: &str) -> bool {
    let parts = figure.split_once('.');
    let parts = parts.and_then(|(a, b)| Some((a.parse::<u8>().ok()?, b.parse::<u8>().ok()?)));
    parts.is_none_or(|(a, b)| (1..=31).contains(&a) && b < 60) && !figure.contains(',')
}

fn sign_of(figure: &str) -> Option<DecimalSign> {
    let signs: Vec<char> = figure.chars().filter(|c| !c.is_ascii_digit()).collect();
    let (last, earlier) = signs.split_last()?;
    let mut parts = figure.split(['.', ',']);
    let (whole, decimals) = (parts.next()?, parts.next_back()?);
    let is_grouped = whole.len() <= 3 && parts.all(|part| part.len() == 3);
    let (own, other) = match last {
        ',' => (DecimalSign::Comma, DecimalSign::Point),
        _ => (DecimalSign::Point, DecimalSign::Comma),
    };
    let has_three = decimals.len() == 3;
    if earlier.is_empty() {
        return (!has_three || whole == "0").then_some(own);
    }
    let is_repeated = earlier.iter().all(|sign| sign == last);
    let is_other = earlier.iter().all(|sign| sign != last);
    match (is_grouped, is_repeated, is_other) {
        (true, true, _) if has_three => Some(other),
        (true, _, true) => Some(own),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_show_their_decimal_sign() {
        use DecimalSign::{Comma, Point};
        for (texts, expected) in [
            (
                &["Wie viele Gramm sind 2,5 kg?", "2.500 g"][..],
                Some(Comma),
            ),
            (&["0,125 und 1.234.567"], Some(Comma)),
            (&["1.234,5 €"], Some(Comma)),
            (&["1,234,567 at $2.50 each"], Some(Point)),
            (&["3.1", "1,234.5"], Some(Point)),
            (&["2.500 g", "1,234"], None),
            (&["2,5 kg of v3.10"], Some(Comma)),
            (&["The rate is 0.75. What is due?"], Some(Point)),
            (&["The rate (0.75) is paid"], Some(Point)),
            (&["0.75/kg"], Some(Point)),
            (&["Es sind 2,5."], Some(Comma)),
            (&["12.75: the rate"], Some(Point)),
            (&["0.5", "0,5"], None),
            (&["the enthalpy of 2,3-dimethylbutane"], None),
            (
                &["am 3.10. um 10.30: f(1,5) 1.2.2024 192.168.0.1 1,2,3"],
                None,
            ),
        ] {
            assert_eq!(
                DecimalSign::of(texts.iter().copied()),
                expected,
                "{texts:?}"
            );
        }
    }
}
