//! A number with its unit, as in answers: "$1.5 million", "86.400 Sekunden", "1064 °C".

use super::lexer::{Grouping, Kind, Notation, Token, lex};
use super::parser::Parser;
use super::units::{self, Measure};
use super::value::{Expr, Figure};
use super::words::{self, Role};

/// A number as written, with all its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Amount {
    /// Without the scale: 1.5 of "1.5 million".
    pub value: f64,
    pub decimals: u8,
    /// The number in languages that write "1.000" for a thousand, if it can mean that.
    pub grouped: Option<f64>,
    pub percent: bool,
    /// 1e6 for "million", else 1.
    pub scale: f64,
    pub measure: Option<Measure>,
    /// The name of the unit: from the table, else as written.
    pub unit: Option<String>,
    /// The byte offset after it.
    pub end: usize,
}

/// Returns the amount at the start of a text; `None` if there is none, or more than one number.
pub fn amount(text: &str) -> Option<Amount> {
    let tokens = lex(text, Notation::Prose);
    let mut parser = Parser::new(&tokens, 0, tokens.len(), Notation::Prose).careless();
    let (figure, negative, measure) = figure_of(parser.amount()?)?;
    let before = parser.at.checked_sub(1)?;
    let mut places = tokens.iter().enumerate();
    let (number, grouping) = places.find_map(|(at, token)| match token.kind {
        Kind::Number { grouping, .. } => Some((at, grouping)),
        _ => None,
    })?;
    let written = |token: &Token<'_>| text.get(token.start..token.end);
    let behind = tokens.get(number + 1..=before).unwrap_or_default();
    let unit = measure.as_ref().map(|measure| {
        let as_written = || text.get(behind.first()?.start..behind.last()?.end);
        let unit = units::named(measure).or_else(as_written);
        unit.unwrap_or_default().to_owned()
    });
    let sign = if negative { -1.0 } else { 1.0 };
    let amount = Amount {
        value: sign * figure.value,
        decimals: figure.decimals,
        grouped: None,
        percent: figure.percent,
        scale: figure.scale,
        measure,
        unit,
        end: tokens.get(before)?.end,
    };
    // With a unit of such a language, or a trailing zero that needs no decimals, the dot groups
    // digits.
    let dotted = behind.iter().filter_map(written).any(units::groups_by_dots);
    let digits = tokens.get(number).and_then(written);
    Some(match grouping {
        Grouping::Dot if dotted => Amount {
            value: amount.value * 1000.0,
            decimals: 0,
            ..amount
        },
        Grouping::Dot if digits.is_some_and(|digits| digits.ends_with('0')) => Amount {
            grouped: Some(amount.value * 1000.0),
            ..amount
        },
        _ => amount,
    })
}

/// Returns the number of an expression, whether it is negative, and its measure; `None` if the
/// expression is more than one number.
fn figure_of(mut expr: Expr) -> Option<(Figure, bool, Option<Measure>)> {
    let (mut negative, mut measure) = (false, None);
    loop {
        expr = match expr {
            Expr::Negative(inner) => {
                negative = !negative;
                *inner
            }
            Expr::Measured {
                of, measure: found, ..
            } => {
                measure = Some(found);
                *of
            }
            Expr::Number(figure) => return Some((figure, negative, measure)),
            _ => return None,
        };
    }
}

/// True if a word makes the number after it negative.
pub fn negates(word: &str) -> bool {
    words::is(word, Role::Minus)
}

/// True if a word marks a number as approximate.
pub fn approximates(word: &str) -> bool {
    words::is(word, Role::About)
}
