//! A number with its unit, as in answers: "$1.5 million", "86.400 Sekunden", "1064 °C", "1 h 30 min".

use super::lexer::{Grouping, Kind, Notation, lex};
use super::parser::Parser;
use super::units::{self, Measure};
use super::value::Interpretation;

/// A number as written, with all its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Amount {
    /// Without the scale: 1.5 of "1.5 million".
    pub value: f64,
    pub decimals: u8,
    /// The factor to its value in languages with the other decimal sign: 1000 for "1.234", a
    /// thousandth for "1,234", else 1.
    pub other: f64,
    /// True for a number such as "1.000", which ends with a zero that no decimals need: both of its
    /// meanings are likely.
    pub is_open: bool,
    pub percent: bool,
    /// 1e6 for "million", else 1.
    pub scale: f64,
    pub measure: Option<Measure>,
    /// The name of the unit: from the table, else as written.
    pub unit: Option<String>,
    /// The byte offset after it.
    pub end: usize,
}

/// From here on, values that differ in their last digit are equal as floating-point numbers.
const EXACT: f64 = 1e15;

impl Amount {
    /// True if its value stands for all digits that are written, or if only a few are: "6.022e23".
    /// `text` is the one that it was read from.
    pub fn is_exact(&self, text: &str) -> bool {
        let written = text.get(..self.end).unwrap_or_default();
        let mantissa = written.split(['e', 'E', '×', '*', '^']).next();
        let digits = mantissa.map_or(0, |it| it.matches(|c: char| c.is_ascii_digit()).count());
        self.value.abs() < EXACT || self.value.is_finite() && digits <= 15
    }
}

/// Returns the amount at the start of a text; `None` if there is none, or more than one number. A
/// quantity in several units has the last one.
pub fn amount(text: &str) -> Option<Amount> {
    let tokens = lex(text, Notation::Prose);
    let mut parser = Parser::of(&tokens, Notation::Prose, Interpretation::LITERAL);
    let quantity = parser.amount()?;
    let figure = *parser.parts.figures.last()?;
    let value = match parser.parts.figures.len() {
        1 => figure.value.copysign(quantity.plain),
        _ => quantity.plain,
    };
    let last = tokens.get(parser.at.checked_sub(1)?)?;
    let is_number = |kind| matches!(kind, Kind::Number { .. });
    let number = tokens.iter().position(|token| is_number(token.kind))?;
    let unit = parser.parts.measure.as_ref().map(|measure| {
        let as_written = || text.get(tokens.get(number + 1)?.start..last.end);
        let unit = units::named(measure).or_else(as_written);
        unit.unwrap_or_default().to_owned()
    });
    let digits = tokens
        .get(number)
        .and_then(|token| text.get(token.start..token.end));
    let is_open = figure.grouping == Grouping::Dot && digits.is_some_and(|it| it.ends_with('0'));
    Some(Amount {
        value,
        decimals: figure.decimals,
        other: figure.other(),
        is_open,
        percent: figure.percent,
        scale: figure.scale,
        measure: parser.parts.measure,
        unit,
        end: last.end,
    })
}
