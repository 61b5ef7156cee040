//! A number with its unit, as in answers: "$1.5 million", "86.400 Sekunden", "1064 °C".

use super::lexer::{Grouping, Kind, Notation, lex};
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
    let expr = parser.amount()?;
    let (mut negative, mut measure, mut expr) = (false, None, expr);
    let figure = loop {
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
            Expr::Number(figure) => break figure,
            _ => return None,
        };
    };
    let before = parser.at.checked_sub(1)?;
    let number = tokens
        .iter()
        .position(|token| matches!(token.kind, Kind::Number { .. }))?;
    let written = |token: &super::lexer::Token<'_>| text.get(token.start..token.end);
    let behind = tokens.get(number + 1..=before).unwrap_or_default();
    let dotted = behind.iter().filter_map(written).any(units::groups_by_dots);
    let unit = measure.as_ref().map(|measure| {
        units::named(measure)
            .map(str::to_owned)
            .or_else(|| {
                let phrase = text.get(behind.first()?.start..behind.last()?.end);
                phrase.map(str::to_owned)
            })
            .unwrap_or_default()
    });
    let Figure {
        value,
        decimals,
        percent,
        scale,
        ..
    } = figure;
    let sign = if negative { -1.0 } else { 1.0 };
    let digits = tokens.get(number)?;
    let dot = matches!(
        digits.kind,
        Kind::Number {
            grouping: Grouping::Dot,
            ..
        }
    );
    // With a unit of such a language, or a trailing zero that needs no decimals, the dot groups
    // digits.
    let ends_on_zero = written(digits).is_some_and(|digits| digits.ends_with('0'));
    let end = tokens.get(before)?.end;
    let amount = Amount {
        value: sign * value,
        decimals,
        grouped: None,
        percent,
        scale,
        measure,
        unit,
        end,
    };
    Some(match dot {
        true if dotted => Amount {
            value: amount.value * 1000.0,
            decimals: 0,
            ..amount
        },
        true if ends_on_zero => Amount {
            grouped: Some(amount.value * 1000.0),
            ..amount
        },
        _ => amount,
    })
}

/// True if a word makes the number after it negative.
pub fn negates(word: &str) -> bool {
    words::is(word, Role::Minus)
}

/// True if a word marks a number as approximate.
pub fn approximates(word: &str) -> bool {
    words::is(word, Role::About)
}
