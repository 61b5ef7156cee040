//! Compares two formulas by evaluating both at the same few fixed points. Two different polynomials
//! agree at a random point with a probability close to zero (Schwartz 1980, Zippel 1979:
//! "Probabilistic algorithms for sparse polynomials"). For roots and functions the test is a
//! heuristic that errs to "different". The points are on both sides of zero, and a formula must be
//! defined where the other one is.

use super::lexer::{Kind, Notation, Relation, Token, lex};
use super::parser::Parser;
use super::value::{POINTS, ParsedValue};

/// The least number of points at which a formula must have a value.
const MIN_POINTS: usize = 3;
const MAX_LENGTH: usize = 240;
const MAX_NESTING: usize = 3;
const MAX_ITEMS: usize = 24;

/// A formula by its values.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    Value(Vec<f64>),
    /// The difference of the two sides. Equations are the same if one is a multiple of the other.
    Equation(Vec<f64>),
    /// Inequalities, the smallest side first: whether each sign is strict, and the sides.
    Chain(Vec<bool>, Vec<Form>),
    /// A tuple, interval or bare list, with its brackets.
    List(char, char, Vec<Form>),
    /// A set or union, in any order.
    Set(Vec<Form>),
}

impl Form {
    /// True if two formulas are the same wherever they have a value.
    pub fn same(&self, other: &Form) -> bool {
        match (self, other) {
            (Form::Value(a), Form::Value(b)) => agree(a, b),
            (Form::Equation(a), Form::Equation(b)) => proportional(a, b) && proportional(b, a),
            (Form::Chain(s, a), Form::Chain(t, b)) => s == t && all_same(a, b),
            (Form::List(o, c, a), Form::List(p, d, b)) => o == p && c == d && all_same(a, b),
            (Form::Set(a), Form::Set(b)) => {
                let among = |one: &Form, all: &[Form]| all.iter().any(|other| one.same(other));
                a.len() == b.len()
                    && a.iter().all(|one| among(one, b))
                    && b.iter().all(|one| among(one, a))
            }
            _ => false,
        }
    }

    /// Returns the value of a formula without variables.
    pub fn constant(&self) -> Option<f64> {
        let Form::Value(values) = self else {
            return None;
        };
        let first = *values.first()?;
        values
            .iter()
            .all(|value| *value == first)
            .then_some(first)
            .filter(|value| value.is_finite())
    }
}

fn all_same(a: &[Form], b: &[Form]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b))
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-3)
}

fn agree(a: &[f64], b: &[f64]) -> bool {
    let at = || a.iter().zip(b);
    at().all(|(a, b)| {
        if a.is_finite() && b.is_finite() {
            near(*a, *b)
        } else {
            !a.is_finite() && !b.is_finite()
        }
    }) && at().filter(|(a, b)| a.is_finite() && b.is_finite()).count() >= MIN_POINTS
}

fn proportional(a: &[f64], b: &[f64]) -> bool {
    let ratio = a
        .iter()
        .zip(b)
        .find(|(a, b)| a.is_finite() && b.is_finite() && a.abs() > 1e-6)
        .map(|(a, b)| b / a);
    ratio.is_some_and(|ratio| {
        ratio.abs() > 1e-9 && agree(&a.iter().map(|a| a * ratio).collect::<Vec<_>>(), b)
    })
}

/// Parses a formula; `None` if any part of it is not understood.
pub fn read(text: &str) -> Option<Form> {
    if text.len() > MAX_LENGTH {
        return None;
    }
    let tokens = lex(text, Notation::Formula);
    let reader = Reader { tokens: &tokens };
    let form = reader.form(0, tokens.len(), 0);
    form.filter(|form| !matches!(form, Form::Value(values) if values.iter().all(|value| !value.is_finite())))
}

struct Reader<'t, 'a> {
    tokens: &'t [Token<'a>],
}

impl Reader<'_, '_> {
    /// Returns the positions of tokens of a kind that are not in brackets.
    fn outside(&self, from: usize, to: usize, wanted: fn(&Kind<'_>) -> bool) -> Vec<usize> {
        let (mut out, mut at) = (Vec::new(), from);
        while let Some(token) = self.tokens.get(at).filter(|_| at < to) {
            if wanted(&token.kind) {
                out.push(at);
            }
            let closed = token.pair.filter(|pair| *pair > at && *pair < to);
            at = closed.unwrap_or(at) + 1;
        }
        out
    }

    fn each(&self, from: usize, to: usize, cuts: &[usize], depth: usize) -> Option<Vec<Form>> {
        let parts = pieces(from, to, cuts);
        if parts.len() > MAX_ITEMS {
            return None;
        }
        parts
            .into_iter()
            .map(|(from, to)| self.form(from, to, depth + 1))
            .collect()
    }

    fn form(&self, from: usize, to: usize, depth: usize) -> Option<Form> {
        if depth > MAX_NESTING || from >= to {
            return None;
        }
        let unions = self.outside(from, to, |kind| *kind == Kind::Union);
        if !unions.is_empty() {
            return self.each(from, to, &unions, depth).map(Form::Set);
        }
        let is_comma = |kind: &Kind<'_>| *kind == Kind::Comma;
        let commas = self.outside(from, to, is_comma);
        if !commas.is_empty() {
            return self
                .each(from, to, &commas, depth)
                .map(|items| Form::List(' ', ' ', items));
        }
        let relations = self.outside(from, to, |kind| matches!(kind, Kind::Relation(_)));
        if !relations.is_empty() {
            return self.chain(from, to, &relations);
        }
        let (first, last) = (self.tokens.get(from)?, self.tokens.get(to - 1)?);
        if let (Kind::Open(open), Kind::Close(close)) = (first.kind, last.kind)
            && first.pair == Some(to - 1)
        {
            let commas = self.outside(from + 1, to - 1, is_comma);
            if open == 's' {
                return if close == 's' {
                    self.each(from + 1, to - 1, &commas, depth).map(Form::Set)
                } else {
                    None
                };
            }
            if !commas.is_empty() {
                return self
                    .each(from + 1, to - 1, &commas, depth)
                    .map(|items| Form::List(open, close, items));
            }
        }
        self.values(from, to).map(Form::Value)
    }

    fn chain(&self, from: usize, to: usize, relations: &[usize]) -> Option<Form> {
        let relation = |at: &usize| {
            if let Some(Kind::Relation(relation)) = self.tokens.get(*at).map(|token| token.kind) {
                Some(relation)
            } else {
                None
            }
        };
        let mut signs: Vec<Relation> = relations.iter().filter_map(relation).collect();
        let sides = pieces(from, to, relations)
            .into_iter()
            .map(|(from, to)| self.values(from, to));
        let mut sides: Vec<Vec<f64>> = sides.collect::<Option<_>>()?;
        if let ([Relation::Equal], [left, right]) = (signs.as_slice(), sides.as_slice()) {
            return Some(Form::Equation(
                left.iter().zip(right).map(|(a, b)| a - b).collect(),
            ));
        }
        if signs
            .iter()
            .all(|sign| matches!(sign, Relation::Greater | Relation::GreaterEqual))
        {
            let turned = |sign: &Relation| {
                if *sign == Relation::Greater {
                    Relation::Less
                } else {
                    Relation::LessEqual
                }
            };
            signs = signs.iter().rev().map(turned).collect();
            sides.reverse();
        }
        let ascending = signs
            .iter()
            .all(|sign| matches!(sign, Relation::Less | Relation::LessEqual));
        let strict = signs.iter().map(|sign| *sign == Relation::Less).collect();
        ascending.then(|| Form::Chain(strict, sides.into_iter().map(Form::Value).collect()))
    }

    fn values(&self, from: usize, to: usize) -> Option<Vec<f64>> {
        let expr = Parser::new(self.tokens, from, to, Notation::Formula).whole()?;
        Some(
            (0..POINTS)
                .map(|point| expr.quantity(point, ParsedValue::LITERAL).plain)
                .collect(),
        )
    }
}

fn pieces(from: usize, to: usize, cuts: &[usize]) -> Vec<(usize, usize)> {
    let starts = std::iter::once(from).chain(cuts.iter().map(|at| at + 1));
    starts.zip(cuts.iter().copied().chain([to])).collect()
}
