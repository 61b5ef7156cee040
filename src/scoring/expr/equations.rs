//! Recomputes the equations that a text states: "4 pieces × 30 days = 120 pieces", "90 min = 1.5
//! h". Only sides of numbers, units and operators are judged. An equation with a variable or an
//! unknown function beside them is left out.
//!
//! Units in products are often careless ("3 hours * $10 = $30"). So units overrule the numbers only
//! if both sides measure the same quantity. If they do not, an equation whose numbers are right is
//! unclear. A number without a unit makes its side bare: its units are not compared.
//!
//! A result holds to its last digit, with the operands as written. Where those of a product or
//! quotient may be rounded, a larger difference is unclear, up to what the rounding explains.

use std::sync::LazyLock;

use regex::Regex;

use super::latex::plain;
use super::lexer::{Kind, Notation, Relation, Sign, Token, lex};
use super::parser::{Parser, Parts};
use super::units::{NONE, Unit};
use super::value::{Figure, Interpretation, Quantity};
use super::words::{self, Role, is_counter_script};
use crate::text::{clip, pattern};

/// The most equations of a text that are recomputed.
const MAX_EQUATIONS: usize = 120;
const MAX_BYTES: usize = 64_000;

/// The result of recomputing an equation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recomputed {
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
    pub recomputed: Recomputed,
}

/// Returns the equations of a text that can be recomputed, in order. If it names a base or a modulus,
/// those that are wrong are left out, because they may hold there.
pub fn equations(text: &str) -> Vec<Equation> {
    let mut found = found(text);
    let is_wrong = |it: &Equation| it.recomputed == Recomputed::Wrong;
    if found.iter().any(is_wrong) && words::names_base(&crate::text::words(text)) {
        found.retain(|it| !is_wrong(it));
    }
    found
}

fn found(text: &str) -> Vec<Equation> {
    let mut out = Vec::new();
    for passage in passages(clip(text, MAX_BYTES)) {
        let passage = plain(passage);
        let tokens = lex(&passage, Notation::Prose);
        let mut from = 0;
        for (at, token) in tokens.iter().enumerate() {
            let relation = match token.kind {
                Kind::Relation(relation) => relation,
                Kind::Break => {
                    from = at + 1;
                    continue;
                }
                _ => continue,
            };
            let left = std::mem::replace(&mut from, at + 1);
            if !matches!(relation, Relation::Equal | Relation::About) {
                continue;
            }
            if out.len() >= MAX_EQUATIONS {
                return out;
            }
            let (Some(left), Some(right)) = (ending(&tokens, left, at), beginning(&tokens, at + 1))
            else {
                continue;
            };
            // A lone "π" is a name.
            if left.parts.figures.is_empty() || right.parts.figures.is_empty() {
                continue;
            }
            let about = relation == Relation::About;
            let Some(recomputed) = compare(&tokens, (&left, &right), about) else {
                continue;
            };
            let operands = left.parts.figures.iter().map(|it| it.value * it.scale);
            out.push(Equation {
                operands: operands.collect(),
                stated: right.value.plain,
                recomputed: match recomputed {
                    Recomputed::Wrong if left.doubt || right.doubt => Recomputed::Unclear,
                    recomputed => recomputed,
                },
            });
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
    // "3 1/2" is three and a half.
    static MIXED: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(\d+) (\d+/\d+)$"));
    let text = plain(text);
    let text = MIXED.replace(&text, "$1 + $2");
    let tokens = lex(&text, Notation::Prose);
    let mut parser = Parser::of(&tokens, Notation::Prose, Interpretation::LITERAL);
    let value = parser.whole()?.plain;
    (parser.parts.units.is_empty() && value.is_finite()).then_some(value)
}

/// Returns the lines with an equals sign, joined with lines that continue with one.
fn passages(text: &str) -> Vec<&str> {
    let mut out: Vec<(usize, &str)> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_start_matches(|c: char| c.is_whitespace() || c == '&');
        let end = start + line.len();
        match out.last_mut() {
            Some((from, passage)) if bare.starts_with(['=', '≈']) => {
                *passage = text.get(*from..end).unwrap_or(passage);
            }
            _ => out.push((start, line)),
        }
        start = end;
    }
    let relates = |text: &&str| text.contains(['=', '≈']) || text.contains("approx");
    out.into_iter()
        .map(|(_, passage)| passage)
        .filter(relates)
        .collect()
}

/// The share of a unit in the last decimal by which a number may be off that is cut off there.
const CUT_OFF: f64 = 0.999;

/// One side of an equation.
struct Side {
    value: Quantity,
    parts: Parts,
    /// The positions of its first token, and after the last one that may belong to it.
    first: usize,
    end: usize,
    doubt: bool,
}

impl Side {
    fn new(
        parser: Parser<'_, '_>,
        value: Quantity,
        own: &[Token<'_>],
        places: (usize, usize),
    ) -> Self {
        // The "b" of "4b" may be a variable, and so may the "س" of "3س".
        let is_number = |kind| matches!(kind, Kind::Number { .. });
        let may_vary = |kind| matches!(kind, Kind::Word(word) if word.chars().count() == 1 && !word.starts_with(is_counter_script));
        let mut pairs = own.array_windows();
        let has_letter = pairs.any(|[number, word]| {
            is_number(number.kind) && may_vary(word.kind) && number.end == word.start
        });
        Self {
            value,
            parts: parser.parts,
            first: places.0,
            end: places.1,
            doubt: has_letter,
        }
    }

    /// True if it has whole numbers only.
    fn is_whole(&self) -> bool {
        self.parts.figures.iter().all(Figure::is_whole)
    }

    /// True if it is this number with nothing but zeros and ones beside it: "48 + 0", "48 * 1".
    fn is_only(&self, number: f64) -> bool {
        let mut values: Vec<f64> = self.parts.figures.iter().map(|it| it.value).collect();
        let own = values.iter().position(|value| *value == number);
        own.is_some_and(|own| {
            values.swap_remove(own);
            values.iter().all(|value| [0.0, 1.0].contains(value))
        })
    }

    fn is_exact(&self) -> bool {
        !self.parts.divides && self.is_whole()
    }

    /// Returns by how much its value may be off if it is one number, rounded and cut off: half a unit
    /// of the last decimal and less than a unit. In "26%" the first is half a percent. `value` is that
    /// of the other side.
    fn rounding(&self, value: f64) -> (f64, f64) {
        let Some(finest) = self.parts.figures.iter().max_by_key(|it| it.decimals) else {
            return (0.0, 0.0);
        };
        let unit = finest.scale * if finest.percent { 0.01 } else { 1.0 };
        match finest.decimals {
            // Half a million beside 600,000 is no rounding.
            0 if finest.scale != 1.0 => ((0.5 * unit).min(0.25 * value.abs()), 0.0),
            0 if !finest.percent => (0.5 * unit, 0.0),
            decimals => {
                let unit = unit * 10f64.powi(-i32::from(decimals.min(12)));
                (0.5 * unit, CUT_OFF * unit)
            }
        }
    }

    /// Returns by how much its value may be off because decimals in a product or quotient are
    /// rounded: by the sum of their relative errors. Sums of money and whole numbers are exact.
    fn uncertainty(&self) -> f64 {
        let scales = self.parts.multiplies || self.parts.divides;
        if !scales || self.parts.units.iter().any(|unit| unit.is_money()) {
            return 0.0;
        }
        let figures = self.parts.figures.iter();
        let rounded = figures.filter(|it| it.decimals > 0 && it.value != 0.0);
        let share = |it: &Figure| 0.5 * 10f64.powi(-i32::from(it.decimals)) / it.value.abs();
        self.value.plain.abs() * rounded.map(share).sum::<f64>()
    }

    /// Returns the value in another interpretation.
    fn read(&self, tokens: &[Token<'_>], interpretation: Interpretation) -> Option<Quantity> {
        Parser::new(tokens, self.first, self.end, interpretation).sum(0)
    }
}

/// Returns the expression at the end of a run of tokens; `None` if the text before belongs to it.
fn ending(tokens: &[Token<'_>], from: usize, end: usize) -> Option<Side> {
    let kind = |at: usize| tokens.get(at).map(|token| token.kind);
    let is_tight = |at: usize| tokens.get(at).is_some_and(|token| !token.spaced);
    let mut at = from;
    let (mut tainted, mut doubt) = (false, false);
    while at < end {
        let start = at;
        let mut parser = Parser::new(tokens, start, end, Interpretation::LITERAL);
        let is_negative = !tainted && parser.is_sign(start, Sign::Minus) && is_tight(start + 1);
        if parser.starts(start) || is_negative && parser.starts(start + 1) {
            let value = parser.sum(0);
            at = parser.at.max(start + 1);
            match value {
                Some(value) if parser.at == end => {
                    let own = tokens.get(start..end)?;
                    let mut side = Side::new(parser, value, own, (start, end));
                    side.doubt |= doubt;
                    return (!tainted).then_some(side);
                }
                // "2 (3 + 4)" may be a product.
                Some(_) => (doubt, tainted) = (true, false),
                None => tainted = true,
            }
        } else {
            let pair = tokens.get(start).and_then(|token| token.pair);
            let is_unmatched =
                matches!(kind(start), Some(Kind::Open(_))) && pair.is_none_or(|pair| pair >= end);
            let is_called = start > from && is_tight(start);
            // "half of 10 + 3"
            let is_plain = parser.word(start).is_some_and(|word| {
                let goes_on = parser.opaque(start) || parser.says_operator(start);
                !(goes_on || tainted && words::is(word, Role::Of))
            });
            tainted = !(is_plain || is_unmatched && !is_called);
            // The words behind a number may calculate with it: "12 умножить на 11 + 5 = 137".
            doubt &= is_plain;
            at += 1;
        }
    }
    None
}

/// Returns the expression at the start of a run of tokens.
fn beginning(tokens: &[Token<'_>], from: usize) -> Option<Side> {
    let is_end = |token: &Token<'_>| matches!(token.kind, Kind::Relation(_) | Kind::Break);
    let run = tokens.get(from..)?.iter().position(is_end);
    let end = run.map_or(tokens.len(), |run| from + run);
    let mut parser = Parser::new(tokens, from, end, Interpretation::LITERAL);
    if !parser.starts(from) && !parser.is_sign(from, Sign::Minus) {
        return None;
    }
    let value = parser.sum(0)?;
    let own = tokens.get(from..parser.at)?;
    // "5/8 of 16" may be 5/8 as well.
    let mut behind = tokens.get(parser.at..)?.iter().map(|it| it.kind);
    let is_factor = matches!(behind.next(), Some(Kind::Word(_)))
        && matches!(behind.next(), Some(Kind::Number { .. }));
    let mut side = Side::new(parser, value, own, (from, end));
    side.doubt |= is_factor;
    Some(side)
}

/// Returns the result for the literal interpretation, or of another one that makes it right: with
/// the other decimal signs, or with a percentage of what it is added to. An equation of binary digits is
/// unclear if it does not hold, and so is one that only holds with `^` as exclusive or. `None` if
/// nothing is calculated or converted.
fn compare(tokens: &[Token<'_>], (left, right): (&Side, &Side), about: bool) -> Option<Recomputed> {
    let values = (left.value, right.value);
    let mut literal = judge(left, right, values, about, 0.0)?;
    if literal == Recomputed::Right {
        // "1937 + 0 = 1937" says nothing of 1937.
        let is_empty = left.parts.calculates && left.is_only(right.value.plain);
        return Some(if is_empty {
            Recomputed::Unclear
        } else {
            literal
        });
    }
    let uncertain = left.uncertainty() + right.uncertainty();
    literal = judge(left, right, values, about, uncertain)?;
    let figures = || left.parts.figures.iter().chain(&right.parts.figures);
    let usual = Interpretation::LITERAL;
    let other_signs = Interpretation {
        other_signs: true,
        ..usual
    };
    let percent_of_sum = Interpretation {
        percent_of_sum: true,
        ..usual
    };
    let xor = Interpretation { xor: true, ..usual };
    let holds = |interpretation: Interpretation| {
        let values = left
            .read(tokens, interpretation)
            .zip(right.read(tokens, interpretation));
        let recomputed = values.and_then(|values| judge(left, right, values, about, uncertain));
        recomputed == Some(Recomputed::Right)
    };
    let holds_otherwise = || {
        figures().any(|it| it.other() != 1.0) && holds(other_signs)
            || figures().any(|it| it.percent) && holds(percent_of_sum)
    };
    let is_bare = left.parts.units.is_empty() && right.parts.units.is_empty();
    let is_binary = || {
        let is_digit =
            |it: &Figure| it.is_whole() && it.value.to_string().bytes().all(|b| b <= b'1');
        is_bare && figures().all(is_digit)
    };
    Some(match literal {
        Recomputed::Right => Recomputed::Right,
        _ if holds_otherwise() => Recomputed::Right,
        _ if is_binary() || holds(xor) => Recomputed::Unclear,
        _ => literal,
    })
}

/// The share by which a number after "about" may be off, and one that is rounded to fewer digits than
/// it has.
const ROUGHLY: f64 = 0.005;

fn judge(
    left: &Side,
    right: &Side,
    values: (Quantity, Quantity),
    about: bool,
    uncertain: f64,
) -> Option<Recomputed> {
    if let Some(recomputed) = by_units(left, right, &values, about) {
        return Some(recomputed);
    }
    let (a, b) = (values.0.plain, values.1.plain);
    let calculates = left.parts.calculates || right.parts.calculates;
    if !(calculates && a.abs() < 1e15 && b.abs() < 1e15) {
        return None;
    }
    let fit = Fit::new(left, right, about);
    // A whole result may be cut off.
    let cut = if fit.is_whole_result { 0.499 } else { 0.0 };
    // A quotient may be rounded up.
    let up = if fit.divides {
        fit.cut - fit.slack
    } else {
        0.0
    };
    let differ = values.0.dimensions != values.1.dimensions;
    let is_other = differ && !values.0.bare && !values.1.bare;
    Some(if fit.holds(a, b, 0.0, about) {
        if is_other {
            Recomputed::Unclear
        } else {
            Recomputed::Right
        }
    } else if fit.holds(a, b, uncertain + f64::max(up, cut), about || fit.divides) {
        Recomputed::Unclear
    } else {
        Recomputed::Wrong
    })
}

/// How the numbers of two sides may fit.
struct Fit {
    /// True if nothing is rounded.
    exact: bool,
    is_whole_result: bool,
    divides: bool,
    /// True if a percent sign may be missing: in a sum ("15% + 10% = 25"), or beside a number of 100
    /// ("50/200 * 100 = 25%").
    may_lack_percent: bool,
    /// The rounding of the number.
    slack: f64,
    /// By how much the number may be less than the other side, because its decimals are cut off.
    cut: f64,
    /// True if the number is the right side.
    is_right: bool,
}

impl Fit {
    fn new(left: &Side, right: &Side, about: bool) -> Self {
        let figures = || left.parts.figures.iter().chain(&right.parts.figures);
        let scales = |side: &Side| side.parts.multiplies || side.parts.divides;
        let is_sum = !scales(left) && !scales(right);
        let is_whole = left.is_whole() && right.is_whole();
        // A number may be rounded. A fraction of whole numbers is none: 1/2 + 1/3 = 2/5 is wrong.
        let result = match (left.parts.calculates, right.parts.calculates) {
            (true, true) => None,
            (false, true) => Some((left, right.value.plain)),
            (_, false) => Some((right, left.value.plain)),
        };
        let exact = left.is_exact() && right.is_exact() || is_whole && result.is_none();
        let (slack, cut) = result.map_or((0.0, 0.0), |(side, value)| side.rounding(value));
        Self {
            exact: !about && exact,
            is_whole_result: result.is_some_and(|(side, _)| side.is_whole()),
            divides: left.parts.divides || right.parts.divides,
            may_lack_percent: figures().any(|figure| figure.percent)
                && (is_sum || figures().any(|figure| figure.value == 100.0)),
            slack,
            cut,
            is_right: !right.parts.calculates,
        }
    }

    /// True if two values agree: to the last digit of the result and `more`, or roughly.
    fn holds(&self, a: f64, b: f64, more: f64, is_rough: bool) -> bool {
        let near = |a: f64, b: f64, slack: f64| {
            let gap = (a - b).abs();
            let (size, rough) = (a.abs().max(1.0), f64::from(u8::from(is_rough)));
            if self.exact {
                // A quotient of whole numbers is not exact.
                return gap <= if self.divides { 1e-12 } else { 1e-15 } * size;
            }
            let (number, other) = if self.is_right { (b, a) } else { (a, b) };
            let is_cut = number.abs() <= other.abs() && gap <= slack - self.slack + self.cut;
            gap <= slack + 1e-12 * size || is_cut || gap <= rough * ROUGHLY * a.abs()
        };
        let slack = self.slack;
        near(a, b, slack + more)
            || self.may_lack_percent
                && (near(a * 100.0, b, slack + 100.0 * more)
                    || near(a, b * 100.0, 100.0 * slack + more))
    }
}

/// Returns the result that the units give; `None` if the numbers must decide.
fn by_units(
    left: &Side,
    right: &Side,
    (a, b): &(Quantity, Quantity),
    about: bool,
) -> Option<Recomputed> {
    if a.mixed || b.mixed {
        return Some(Recomputed::Wrong);
    }
    let units = || left.parts.units.iter().chain(&right.parts.units);
    let first = units().next()?;
    if units().all(|unit| unit == first) {
        return None;
    }
    if a.dimensions == b.dimensions && a.dimensions != NONE {
        let share = if about { 0.05 } else { 0.012 } + a.tolerance.max(b.tolerance);
        // A share of the temperature on its own scale, not of that above absolute zero.
        let size = |side: &Side, value: &Quantity| {
            let zero = side
                .parts
                .units
                .first()
                .map_or(0.0, |unit| unit.measure.zero);
            (value.base - zero).abs()
        };
        let slack = (share * size(left, a).max(size(right, b))).max(0.6 * b.step);
        if (a.base - b.base).abs() <= slack {
            return Some(Recomputed::Right);
        }
        return Some(if a.bare || b.bare {
            Recomputed::Unclear
        } else {
            Recomputed::Wrong
        });
    }
    // Two units of one quantity: the bare numbers of the sides say nothing.
    let same = |u: &Unit, v: &Unit| u != v && u.measure.dimensions == v.measure.dimensions;
    units()
        .any(|u| units().any(|v| same(u, v)))
        .then_some(Recomputed::Unclear)
}
