//! Expressions: one lexer and one evaluator for stated equations, answer values and formulas.

mod amount;
mod equations;
mod form;
mod latex;
mod lexer;
mod parser;
mod quantities;
mod units;
mod value;
mod words;

pub use amount::{Amount, amount};
pub use equations::{Equation, Recomputed, equations, evaluate};
pub use form::{Form, read};
pub use latex::{plain_numbers, unwrapped};
pub use units::Measure;
pub use words::names_base;

#[cfg(test)]
mod tests;
