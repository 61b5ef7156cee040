//! Amounts as prose writes them: numbers with units, their sums, products and quotients, brought to base units.

use std::sync::LazyLock;

use regex::Regex;

use super::pattern::pattern;
use super::tokens::plain_latex;
use super::units::{self, Dimensions, MONEY, NONE, Unit};

const MAX_DEPTH: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Equals {
    Sign,
    About,
    /// "is", "equals": prose, in which only a conversion can be meant.
    Word,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Token {
    Number {
        value: f64,
        decimals: i32,
        money: bool,
    },
    Unit(&'static Unit),
    Power(i8),
    Operator(char),
    Open,
    Close,
    Equals(Equals),
    /// A word that is no unit, or punctuation.
    Other,
}

pub(super) fn scan(line: &str) -> Vec<Token> {
    static PIECE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?P<number>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)|(?P<word>°[CF]|[\p{L}µ]+(?:'\p{L}+)?)|(?P<power>[²³]|\^\{?-?\d\}?)|(?P<sign>[=≈])|(?P<operator>[-−–+*×·⋅÷/])|(?P<bracket>[()])|(?P<money>[$€£])|\S",
        )
    });
    static DRESS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\*\*|\\(?:text|mathrm|mbox)\s*\{([^{}]*)\}"));
    // "==", ">=" and the like are code's, where units are names.
    if ["==", ">=", "<=", "!=", ":=", "=>"].iter().any(|sign| line.contains(sign)) {
        return vec![];
    }
    let line = plain_latex(&DRESS.replace_all(line, "$1"));
    let mut out: Vec<Token> = Vec::new();
    let (mut money, mut squared, mut end) = (false, 0, 0);
    for found in PIECE.captures_iter(&line).take(2_000) {
        let piece = |name: &str| found.name(name).map(|piece| piece.as_str());
        let whole = found.get(0);
        let touches = whole.is_some_and(|whole| whole.start() == end);
        end = whole.map_or(end, |whole| whole.end());
        if let Some(digits) = piece("number") {
            let plain: String = digits.chars().filter(|c| *c != ',').collect();
            let decimals = plain.split_once('.').map_or(0, |(_, tail)| tail.len() as i32);
            // "H2" and "x3" are names.
            let in_name = touches && matches!(out.last(), Some(Token::Other | Token::Unit(_))) && !money;
            let value = plain.parse().unwrap_or(f64::NAN);
            out.push(if in_name { Token::Other } else { Token::Number { value, decimals, money } });
            money = false;
        } else if let Some(word) = piece("word") {
            match word {
                "per" => out.push(Token::Operator('/')),
                "plus" => out.push(Token::Operator('+')),
                "minus" => out.push(Token::Operator('-')),
                "times" | "x" | "X" => out.push(Token::Operator('*')),
                "is" | "equals" | "are" => out.push(Token::Equals(Equals::Word)),
                "square" | "sq" => squared = 2,
                "cubic" => squared = 3,
                "squared" => out.push(Token::Power(2)),
                "cubed" => out.push(Token::Power(3)),
                _ => {
                    let behind = matches!(
                        out.last(),
                        Some(
                            Token::Number { .. }
                                | Token::Operator('/' | '*')
                                | Token::Unit(_)
                                | Token::Power(_)
                                | Token::Close
                        )
                    );
                    // One letter is a unit only behind a number or a stroke.
                    match units::in_prose(word).filter(|_| behind || word.chars().count() > 2) {
                        Some(unit) => {
                            out.push(Token::Unit(unit));
                            if squared > 0 {
                                out.push(Token::Power(squared));
                            }
                        }
                        None => out.push(Token::Other),
                    }
                    squared = 0;
                }
            }
        } else if let Some(power) = piece("power") {
            let digit = match power {
                "²" => Some(2),
                "³" => Some(3),
                text => text.trim_matches(|c| matches!(c, '^' | '{' | '}')).parse().ok(),
            };
            out.push(digit.map_or(Token::Other, Token::Power));
        } else if let Some(sign) = piece("sign") {
            out.push(Token::Equals(if sign == "=" { Equals::Sign } else { Equals::About }));
        } else if let Some(operator) = piece("operator") {
            out.push(Token::Operator(match operator {
                "×" | "·" | "⋅" => '*',
                "÷" => '/',
                "−" | "–" => '-',
                plain => plain.chars().next().unwrap_or('+'),
            }));
        } else if let Some(bracket) = piece("bracket") {
            out.push(if bracket == "(" { Token::Open } else { Token::Close });
        } else if piece("money").is_some() {
            money = true;
        } else {
            out.push(Token::Other);
        }
    }
    out
}

/// An amount with what it measures.
#[derive(Debug, Clone)]
pub(super) struct Amount {
    /// In the base units; without meaning when `doubtful`.
    pub value: f64,
    /// The last of its decimals, in the base units; 0 for a whole number.
    pub step: f64,
    pub dimensions: Dimensions,
    pub play: f64,
    /// A number without a unit takes part: what is measured cannot be told.
    pub doubtful: bool,
    /// What each factor measures, if the amount is a product or quotient.
    pub factors: Vec<Dimensions>,
    pub divided: bool,
    pub single: bool,
}

/// Two terms of a sum measure different things.
#[derive(Debug)]
pub(super) struct Mixture;

struct Side<'a> {
    tokens: &'a [Token],
    at: usize,
}

pub(super) type Read = Result<Option<Amount>, Mixture>;

impl Side<'_> {
    fn peek(&self) -> Option<Token> {
        self.tokens.get(self.at).copied()
    }

    fn sum(&mut self, depth: usize) -> Read {
        let Some(mut left) = self.product(depth)? else { return Ok(None) };
        while let Some(Token::Operator(sign @ ('+' | '-'))) = self.peek() {
            self.at += 1;
            let Some(right) = self.product(depth)? else { return Ok(None) };
            left = added(&left, &right, sign)?;
        }
        Ok(Some(left))
    }

    fn product(&mut self, depth: usize) -> Read {
        let Some(mut left) = self.atom(depth)? else { return Ok(None) };
        while let Some(Token::Operator(sign @ ('*' | '/'))) = self.peek() {
            self.at += 1;
            let Some(right) = self.atom(depth)? else { return Ok(None) };
            left = multiplied(left, &right, sign == '/');
        }
        Ok(Some(left))
    }

    /// A number with its unit, a bracket, or amounts that follow one another: "5 ft 3 in", "1 h 30 min".
    fn atom(&mut self, depth: usize) -> Read {
        let mut whole: Option<Amount> = None;
        loop {
            let part = match self.peek() {
                Some(Token::Number { value, decimals, money }) => {
                    self.at += 1;
                    self.measured(value, decimals, money)
                }
                Some(Token::Open) if whole.is_none() && depth < MAX_DEPTH => {
                    self.at += 1;
                    let inner = self.sum(depth + 1)?;
                    if self.peek() != Some(Token::Close) {
                        return Ok(None);
                    }
                    self.at += 1;
                    let unit = self.unit();
                    return Ok(inner.filter(|_| unit.is_none()));
                }
                _ => return Ok(whole),
            };
            whole = Some(match whole {
                None => part,
                Some(before) if before.dimensions == part.dimensions && !part.doubtful && !before.doubtful => {
                    added(&before, &part, '+')?
                }
                Some(_) => return Ok(None),
            });
        }
    }

    fn measured(&mut self, value: f64, decimals: i32, money: bool) -> Amount {
        let step = if decimals > 0 { 10f64.powi(-decimals.min(12)) } else { 0.0 };
        let unit = self.unit();
        let (mut dimensions, size, zero, play) = unit.unwrap_or((NONE, 1.0, 0.0, 0.0));
        if money {
            dimensions = plus(dimensions, MONEY, 1);
        }
        Amount {
            value: value * size + zero,
            step: step * size,
            dimensions,
            play,
            doubtful: unit.is_none() && !money,
            factors: vec![dimensions],
            divided: false,
            single: true,
        }
    }

    /// The units behind a number: "km", "m/s^2", "miles per hour", "kW h".
    fn unit(&mut self) -> Option<(Dimensions, f64, f64, f64)> {
        let start = self.at;
        let (mut dimensions, mut size, mut zero, mut play, mut count) = (NONE, 1.0, 0.0, 0.0f64, 0);
        loop {
            let stroke = match (self.peek(), self.tokens.get(self.at + 1)) {
                (Some(Token::Operator(sign @ ('/' | '*'))), Some(Token::Unit(_))) => {
                    self.at += 1;
                    sign == '/'
                }
                _ => false,
            };
            let Some(Token::Unit(unit)) = self.peek() else { break };
            self.at += 1;
            let mut power = 1;
            if let Some(Token::Power(stated)) = self.peek() {
                self.at += 1;
                power = stated;
            }
            let power = if stroke { -power } else { power };
            dimensions = plus(dimensions, unit.dimensions, power);
            size *= unit.size.powi(i32::from(power));
            zero = if count == 0 { unit.zero } else { 0.0 };
            play = play.max(unit.play);
            count += 1;
        }
        (self.at > start).then_some((dimensions, size, zero, play))
    }
}

fn plus(a: Dimensions, b: Dimensions, times: i8) -> Dimensions {
    let mut out = a;
    for (own, other) in out.iter_mut().zip(b) {
        *own = own.saturating_add(other.saturating_mul(times));
    }
    out
}

/// What is counted, whatever it is counted by: of a speed the length.
pub(super) fn counted(dimensions: Dimensions) -> Dimensions {
    dimensions.map(|exponent| exponent.max(0))
}

fn added(a: &Amount, b: &Amount, sign: char) -> Result<Amount, Mixture> {
    if !a.doubtful && !b.doubtful && a.dimensions != b.dimensions && a.dimensions != NONE && b.dimensions != NONE {
        return Err(Mixture);
    }
    let value = if sign == '+' { a.value + b.value } else { a.value - b.value };
    Ok(Amount {
        value,
        step: a.step.max(b.step),
        doubtful: a.doubtful || b.doubtful || a.dimensions != b.dimensions,
        play: a.play.max(b.play),
        dimensions: a.dimensions,
        factors: vec![a.dimensions],
        divided: false,
        single: false,
    })
}

fn multiplied(a: Amount, b: &Amount, divide: bool) -> Amount {
    let mut factors = a.factors;
    factors.extend(&b.factors);
    Amount {
        value: if divide { a.value / b.value } else { a.value * b.value },
        step: 0.0,
        dimensions: plus(a.dimensions, b.dimensions, if divide { -1 } else { 1 }),
        play: a.play.max(b.play),
        doubtful: a.doubtful || b.doubtful,
        factors,
        divided: a.divided || divide,
        single: false,
    }
}

pub(super) fn whole(tokens: &[Token]) -> Read {
    let mut side = Side { tokens, at: 0 };
    let amount = side.sum(0)?;
    Ok(amount.filter(|amount| side.at == tokens.len() && amount.value.is_finite()))
}
