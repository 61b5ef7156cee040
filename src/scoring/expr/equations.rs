//! Recomputes the equations that a text states: "4 pieces × 30 days = 120 pieces", "90 min = 1.5
//! h". Only sides of numbers, units and operators are judged. An equation with a variable or an
//! unknown function beside them is left out.
//!
//! Units in products are often careless ("3 hours * $10 = $30"). So units overrule the numbers only
//! if both sides measure the same quantity. A number without a unit makes its side bare: its units
//! are not compared.

use std::ops::Range;

use super::lexer::{Grouping, Kind, Notation, Relation, Sign, Token, lex};
use super::parser::Parser;
use super::units::{Dimensions, NONE, Unit};
use super::value::{Expr, Factor, Figure, ParsedValue, Quantity};
use super::words::{self, Role};
use crate::text::clip;

/// The most equations of a text that are recomputed.
const MAX_EQUATIONS: usize = 120;
const MAX_BYTES: usize = 64_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Right,
    Wrong,
    /// It does not hold as parsed, but may mean something else.
    Unclear,
}

/// A stated equation, recomputed.
#[derive(Debug, Clone, PartialEq)]
pub struct Equation {
    /// The numbers of the left side, without units. One number is a conversion ("90 min = 1.5 h").
    pub operands: Vec<f64>,
    /// The value of the right side, in its unit.
    pub stated: f64,
    /// The value of the left side, in the unit of the right one.
    pub computed: f64,
    pub verdict: Verdict,
    /// Its byte range in the text.
    pub range: Range<usize>,
}

/// Returns the equations of a text that can be recomputed, in order.
pub fn equations(text: &str) -> Vec<Equation> {
    let mut out = Vec::new();
    for (start, passage) in passages(clip(text, MAX_BYTES)) {
        let tokens = lex(passage, Notation::Prose);
        let bullet = passage.trim_start().starts_with("- ");
        let mut from = 0;
        for (at, token) in tokens.iter().enumerate() {
            let Kind::Relation(relation) = token.kind else {
                from = if token.kind == Kind::Break {
                    at + 1
                } else {
                    from
                };
                continue;
            };
            let left = std::mem::replace(&mut from, at + 1);
            if !matches!(relation, Relation::Equal | Relation::About) {
                continue;
            }
            if out.len() >= MAX_EQUATIONS {
                return out;
            }
            let Some(left) = ending(&tokens, left, at) else {
                continue;
            };
            let Some((right, about)) = beginning(&tokens, at + 1) else {
                continue;
            };
            // A lone "π" is a name.
            if [&left, &right].iter().any(|side| {
                !own(&tokens, side)
                    .iter()
                    .any(|token| matches!(token.kind, Kind::Number { .. }))
            }) {
                continue;
            }
            let about = about || relation == Relation::About;
            if let Some((stated, computed, verdict)) = compare(&left, &right, about) {
                let excused = verdict == Verdict::Wrong
                    && (left.doubt || right.doubt || bullet && left.first == 1);
                let place = |at: usize, end: bool| {
                    tokens
                        .get(at)
                        .map_or(0, |token| start + if end { token.end } else { token.start })
                };
                out.push(Equation {
                    operands: numbers(&left.expr)
                        .map(|figure| figure.value * figure.scale)
                        .collect(),
                    stated,
                    computed,
                    verdict: if excused { Verdict::Unclear } else { verdict },
                    range: place(left.first, false)..place(right.last.saturating_sub(1), true),
                });
            }
        }
    }
    out
}

/// Returns the value of a pure expression such as "3/4", "2^10" or "(1 + 2) * 3"; `None` for any
/// other text.
pub fn evaluate(text: &str) -> Option<f64> {
    if text.len() > 200 {
        return None;
    }
    let tokens = lex(text, Notation::Prose);
    let expr = Parser::new(&tokens, 0, tokens.len(), Notation::Prose).whole()?;
    let value = expr.quantity(0, ParsedValue::LITERAL).plain;
    let measured = expr
        .walk()
        .iter()
        .any(|expr| matches!(expr, Expr::Measured { .. }));
    (!measured && value.is_finite()).then_some(value)
}

/// Returns the lines with an equals sign, joined with lines that continue with one. Each has its
/// byte offset.
fn passages(text: &str) -> Vec<(usize, &str)> {
    let mut out: Vec<(usize, &str)> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let continues = line
            .trim_start_matches(|c: char| c.is_whitespace() || c == '&')
            .starts_with(['=', '≈']);
        match out.last_mut() {
            Some((from, passage)) if continues && *from + passage.len() == start => {
                *passage = text.get(*from..start + line.len()).unwrap_or(passage);
            }
            _ => out.push((start, line)),
        }
        start += line.len();
    }
    out.retain(|(_, passage)| passage.contains(['=', '≈']) || passage.contains("approx"));
    out
}

/// One side of an equation.
struct Side {
    expr: Expr,
    /// The positions of its first token and after its last one.
    first: usize,
    last: usize,
    /// True if its result may be rounded: it does more than add, subtract or multiply whole
    /// numbers.
    inexact: bool,
    decimals: u8,
    doubt: bool,
}

impl Side {
    fn new(tokens: &[Token<'_>], expr: Expr, first: usize, last: usize) -> Self {
        let own = tokens.get(first..last).unwrap_or_default();
        let inexact = own.iter().any(|token| {
            matches!(
                token.kind,
                Kind::Sign(Sign::Over | Sign::Power)
                    | Kind::Percent
                    | Kind::Fraction
                    | Kind::Root
                    | Kind::Number { decimals: 1.., .. }
            )
        });
        let scaled = numbers(&expr).any(|figure| figure.scale != 1.0);
        let decimals = own
            .iter()
            .map(|token| {
                if let Kind::Number { decimals, .. } = token.kind {
                    decimals
                } else {
                    0
                }
            })
            .max();
        // "1 000" may be two numbers, and the "b" of "4b" a variable.
        let doubt = own.iter().any(|token| {
            matches!(
                token.kind,
                Kind::Number {
                    grouping: Grouping::Blank,
                    ..
                }
            )
        }) || own.windows(2).any(|pair| match pair {
            [
                Token {
                    kind: Kind::Number { .. },
                    ..
                },
                Token {
                    kind: Kind::Word(word),
                    spaced: false,
                    ..
                },
            ] => word.chars().count() == 1,
            _ => false,
        });
        Self {
            inexact: inexact || scaled,
            decimals: decimals.unwrap_or(0),
            expr,
            first,
            last,
            doubt,
        }
    }
}

/// Returns the expression at the end of a run of tokens; `None` if the text before belongs to it.
fn ending(tokens: &[Token<'_>], from: usize, end: usize) -> Option<Side> {
    let before = from
        .checked_sub(1)
        .and_then(|before| tokens.get(before))
        .map(|token| token.kind);
    if before == Some(Kind::Relation(Relation::Other)) {
        return None;
    }
    let mut parser = Parser::new(tokens, from, end, Notation::Prose);
    let (mut tainted, mut doubt) = (false, false);
    while parser.at < end {
        let start = parser.at;
        let negative = !tainted
            && is_sign(tokens, start)
            && tokens.get(start + 1).is_some_and(|token| !token.spaced);
        if parser.starts(start) || negative && parser.starts(start + 1) {
            let expr = parser.sum(0);
            match expr {
                Some(expr) if parser.at == end => {
                    let side = Side::new(tokens, expr, start, end);
                    return (!tainted).then_some(Side {
                        doubt: doubt || side.doubt,
                        ..side
                    });
                }
                // "2 (3 + 4)" may be a product.
                Some(_) => (doubt, tainted) = (true, false),
                None => tainted = true,
            }
            parser.at = parser.at.max(start + 1);
        } else {
            let unmatched = matches!(tokens.get(start), Some(Token { kind: Kind::Open(_), pair, .. }) if pair.is_none_or(|pair| pair >= end));
            let called = start > from && tokens.get(start).is_some_and(|token| !token.spaced);
            let word = if let Some(Kind::Word(word)) = tokens.get(start).map(|token| token.kind) {
                Some(word)
            } else {
                None
            };
            // "half of 10 + 3"
            let plain = |word| !(parser.opaque(start) || tainted && words::is(word, Role::Of));
            tainted = !(word.is_some_and(plain) || unmatched && !called);
            doubt = false;
            parser.at += 1;
        }
    }
    None
}

fn own<'t, 'a>(tokens: &'t [Token<'a>], side: &Side) -> &'t [Token<'a>] {
    tokens.get(side.first..side.last).unwrap_or_default()
}

fn is_sign(tokens: &[Token<'_>], at: usize) -> bool {
    tokens
        .get(at)
        .is_some_and(|token| token.kind == Kind::Sign(Sign::Minus))
}

/// Returns the expression at the start of a run of tokens, and whether a word marks it as
/// approximate.
fn beginning(tokens: &[Token<'_>], from: usize) -> Option<(Side, bool)> {
    let about = matches!(tokens.get(from).map(|token| token.kind), Some(Kind::Word(word)) if words::is(word, Role::About));
    let from = from + usize::from(about);
    let run = tokens
        .get(from..)?
        .iter()
        .position(|token| matches!(token.kind, Kind::Relation(_) | Kind::Break));
    let end = run.map_or(tokens.len(), |run| from + run);
    let mut parser = Parser::new(tokens, from, end, Notation::Prose);
    if !parser.starts(from) && !is_sign(tokens, from) {
        return None;
    }
    let expr = parser.sum(0)?;
    let next = tokens.get(parser.at).map(|token| token.kind);
    if next == Some(Kind::Relation(Relation::Other)) {
        return None;
    }
    let side = Side::new(tokens, expr, from, parser.at);
    // "14 (7 + 7)" explains, "2 (3 + 4)" multiplies; "5/8 of 16" may be 5/8 as well.
    let bracket = matches!(next, Some(Kind::Open(_))) && parser.starts(parser.at + 1);
    let share = own(tokens, &side)
        .iter()
        .any(|token| matches!(token.kind, Kind::Word(word) if words::is(word, Role::Of)));
    Some((
        Side {
            doubt: side.doubt || bracket || share,
            ..side
        },
        about,
    ))
}

fn numbers(expr: &Expr) -> impl Iterator<Item = Figure> {
    expr.walk().into_iter().filter_map(|expr| {
        if let Expr::Number(figure) = expr {
            Some(*figure)
        } else {
            None
        }
    })
}

/// Returns the stated and the recomputed value with the verdict, in the first interpretation that
/// holds; `None` if nothing is calculated or converted.
fn compare(left: &Side, right: &Side, about: bool) -> Option<(f64, f64, Verdict)> {
    let any = |wanted: fn(&Figure) -> bool| {
        numbers(&left.expr)
            .chain(numbers(&right.expr))
            .any(|figure| wanted(&figure))
    };
    let readings = [
        Some(ParsedValue::LITERAL),
        any(|figure| figure.percent).then_some(ParsedValue {
            percent: 1.0,
            ..ParsedValue::LITERAL
        }),
        any(|figure| figure.scale != 1.0).then_some(ParsedValue {
            scaled: false,
            ..ParsedValue::LITERAL
        }),
        any(|figure| figure.other != 1.0).then_some(ParsedValue {
            other_signs: true,
            ..ParsedValue::LITERAL
        }),
    ];
    let mut judged = readings
        .into_iter()
        .flatten()
        .filter_map(|reading| judge(left, right, about, reading));
    let first = judged.next()?;
    let right = |judged: &(f64, f64, Verdict)| judged.2 == Verdict::Right;
    Some(if right(&first) {
        first
    } else {
        judged.find(right).unwrap_or(first)
    })
}

fn judge(
    left: &Side,
    right: &Side,
    about: bool,
    reading: ParsedValue,
) -> Option<(f64, f64, Verdict)> {
    let (a, b) = (
        left.expr.quantity(0, reading),
        right.expr.quantity(0, reading),
    );
    if let Some(verdict) = by_units(left, right, &a, &b, about) {
        let computed = match &right.expr {
            _ if a.dimensions != b.dimensions => a.plain,
            Expr::Measured { measure, .. } => (a.base - measure.zero) / measure.size,
            _ => a.base * b.plain / b.base,
        };
        return computed.is_finite().then_some((b.plain, computed, verdict));
    }
    let (a, b) = (a.plain, b.plain);
    if !(left.expr.calculates() || right.expr.calculates()) || !(a.abs() < 1e15 && b.abs() < 1e15) {
        return None;
    }
    let percent = numbers(&left.expr)
        .chain(numbers(&right.expr))
        .any(|figure| figure.percent);
    let exact = !about && !left.inexact && !right.inexact;
    // Decimals may be cut off or rounded; a whole number can only be rounded.
    let slack = if right.decimals == 0 {
        0.5
    } else {
        10f64.powi(-i32::from(right.decimals.min(12)))
    };
    let near = |a: f64, b: f64| {
        let gap = (a - b).abs();
        gap <= 1e-9 * a.abs().max(1.0)
            || !exact && (gap <= slack || gap <= 0.005 * a.abs())
            || about && gap <= 0.03 * a.abs()
    };
    let holds = near(a, b) || percent && (near(a * 100.0, b) || near(a, b * 100.0));
    Some((
        b,
        a,
        if holds {
            Verdict::Right
        } else {
            Verdict::Wrong
        },
    ))
}

/// Returns the verdict that the units give; `None` if the numbers must decide.
fn by_units(left: &Side, right: &Side, a: &Quantity, b: &Quantity, about: bool) -> Option<Verdict> {
    if a.mixed || b.mixed {
        return Some(Verdict::Wrong);
    }
    let units: Vec<&Unit> = [&left.expr, &right.expr]
        .into_iter()
        .flat_map(Expr::walk)
        .flat_map(own_units)
        .collect();
    if units.iter().all(|unit| units.first() == Some(unit)) {
        return None;
    }
    // Two units of one quantity: the bare numbers of the sides say nothing.
    let converts = units
        .iter()
        .any(|u| units.iter().any(|v| u != v && u.dimensions == v.dimensions));
    let share = 0.012f64.max(if about { 0.05 } else { 0.0 }) + a.play.max(b.play);
    let slack = (share * a.base.abs().max(b.base.abs())).max(0.6 * b.step);
    if a.dimensions == b.dimensions && a.dimensions != NONE {
        if (a.base - b.base).abs() <= slack {
            return Some(Verdict::Right);
        }
        // "1 cm = 5 km" is the scale of a map.
        let rate = |side: &Side, value: &Quantity| side.expr.is_single() && value.plain == 1.0;
        let unclear = a.bare || b.bare || rate(left, a) || rate(right, b);
        return Some(if unclear {
            Verdict::Unclear
        } else {
            Verdict::Wrong
        });
    }
    let counted = |dimensions: Dimensions| dimensions.map(|exponent| exponent.max(0));
    // "20 miles/day + 10 miles/day = 30 miles" omits the day.
    let told_apart = !a.bare
        && !b.bare
        && counted(a.dimensions) != counted(b.dimensions)
        && a.dimensions != NONE;
    (converts || told_apart && !names_a_factor(&left.expr, b.dimensions))
        .then_some(Verdict::Unclear)
}

fn own_units(expr: &Expr) -> Vec<&'static Unit> {
    if let Expr::Measured { units, .. } = expr {
        units.clone()
    } else {
        vec![]
    }
}

/// True if a result has the unit of a factor of the product: "5 m × 3 m = 15 m".
fn names_a_factor(expr: &Expr, dimensions: Dimensions) -> bool {
    let Expr::Product(factors) = expr else {
        return false;
    };
    let mut multiplied = factors
        .iter()
        .filter(|(factor, _)| *factor == Factor::Times);
    multiplied.any(|(_, expr)| expr.quantity(0, ParsedValue::LITERAL).dimensions == dimensions)
}
