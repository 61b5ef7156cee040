//! Compares two formulas by evaluating both at the same few fixed points. Two different polynomials
//! agree at a random point with a probability close to zero (Schwartz 1980, Zippel 1979:
//! "Probabilistic algorithms for sparse polynomials"). For roots and functions the test is a
//! heuristic that errs to "different". The points are on both sides of zero, and a formula must be
//! defined where the other one is.

use super::latex::plain;
use super::lexer::{Notation, lex};
use super::parser::Parser;
use super::value::{Interpretation, POINTS};

/// The least number of points at which a formula must have a value.
const MIN_POINTS: usize = 3;
const MAX_LENGTH: usize = 240;

/// A formula by its values at the points.
#[derive(Debug, Clone, PartialEq)]
pub struct Form(Vec<f64>);

impl Form {
    /// True if two formulas are the same wherever they have a value.
    pub fn same(&self, other: &Form) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-3);
        let pairs = || self.0.iter().copied().zip(other.0.iter().copied());
        let defined = pairs()
            .filter(|(a, b)| a.is_finite() && b.is_finite())
            .count();
        let agree = |(a, b): (f64, f64)| match (a.is_finite(), b.is_finite()) {
            (true, true) => near(a, b),
            (a, b) => a == b,
        };
        defined >= MIN_POINTS && pairs().all(agree)
    }

    /// Returns the value of a formula without variables.
    pub fn constant(&self) -> Option<f64> {
        let first = *self.0.first()?;
        let is_constant = self.0.iter().all(|value| *value == first);
        (is_constant && first.is_finite()).then_some(first)
    }
}

/// Parses a formula; `None` if any part of it is not understood.
pub fn read(text: &str) -> Option<Form> {
    if text.len() > MAX_LENGTH {
        return None;
    }
    let text = plain(text);
    let tokens = lex(&text, Notation::Formula);
    let value = |point| {
        let interpretation = Interpretation {
            point,
            ..Interpretation::LITERAL
        };
        let value = Parser::of(&tokens, Notation::Formula, interpretation).whole()?;
        Some(value.plain)
    };
    let values: Vec<f64> = (0..POINTS).map(value).collect::<Option<_>>()?;
    values
        .iter()
        .any(|value| value.is_finite())
        .then_some(Form(values))
}
