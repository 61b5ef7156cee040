//! Stated quantities, held against each other: conversions are recomputed ("90 min = 1.5 h"), and sums, quotients and
//! equations that mix what cannot be mixed are found ("5 km + 3 kg", "12 m/s = 43 kg", "a speed of 5 kg").
//!
//! People are careless with units in products ("3 hours * $10 = $30"), so a product or quotient is only held to be wrong
//! when its result measures neither what it should nor what one of its factors does. A number without a unit makes its
//! side doubtful: nothing is held against it.

use std::sync::LazyLock;

use regex::Regex;

use super::pattern::pattern;
use super::text::{MAX_BYTES, clip};
use super::tokens::plain_latex;
use super::units::{self, Dimensions, MONEY, NONE, Unit};

/// What holding two sides against each other gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// A result that follows from the other side.
    Right,
    /// One amount in two units.
    Converted,
    Wrong,
    /// The sides, or two terms of one side, measure different things.
    Mixed,
    /// The numbers alone would mislead, and the units cannot be told.
    Unclear,
    /// No units, or one only: the numbers alone decide.
    Plain,
}

/// How many stated quantities of a text hold, do not, or mix what cannot be mixed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Checked {
    /// Results that were worked out.
    pub right: usize,
    /// Amounts in two units.
    pub converted: usize,
    pub wrong: usize,
    pub mixed: usize,
}

/// At most this many statements of a text are checked.
const MAX_CHECKS: usize = 60;
const MAX_DEPTH: usize = 12;

pub(super) fn checked(text: &str) -> Checked {
    let mut out = Checked::default();
    let mut left = MAX_CHECKS;
    for line in clip(text, MAX_BYTES).lines().filter(|line| line.chars().any(|c| c.is_ascii_digit())) {
        let tokens = scan(line);
        let found = statements(&tokens, line).into_iter().map(|(_, check)| check);
        for check in found.chain(loose_sums(&tokens)).chain(misnamed(line)).take(left) {
            left -= 1;
            match check {
                Check::Right => out.right += 1,
                Check::Converted => out.converted += 1,
                Check::Wrong => out.wrong += 1,
                Check::Mixed => out.mixed += 1,
                Check::Unclear | Check::Plain => {}
            }
        }
    }
    out
}

/// A check for each sign of equality of a line, in order; none if the line compares or assigns as code does.
pub(super) fn of_line(line: &str) -> Vec<Check> {
    let tokens = scan(line);
    if !tokens.iter().any(|token| matches!(token, Token::Unit(_))) {
        return vec![];
    }
    let all = statements(&tokens, line).into_iter();
    all.filter(|(equals, _)| matches!(equals, Equals::Sign | Equals::About)).map(|(_, check)| check).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Equals {
    Sign,
    About,
    /// "is", "equals": prose, in which only a conversion can be meant.
    Word,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Token {
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

fn scan(line: &str) -> Vec<Token> {
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

/// Each equality of a line with what checking its sides gave.
fn statements(tokens: &[Token], line: &str) -> Vec<(Equals, Check)> {
    let mut out = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Equals(equals) = token else { continue };
        let (before, after) = tokens.split_at(at);
        let sides = (side_before(before), side_after(after.get(1..).unwrap_or_default()));
        let check = match sides {
            (Some(left), Some(right)) => compare(left, right, *equals, line),
            _ => Check::Plain,
        };
        out.push((*equals, check));
    }
    out
}

fn is_part(token: &Token) -> bool {
    !matches!(token, Token::Equals(_) | Token::Other)
}

/// The tokens that end a text and make a side; `None` if what stands before them belongs to it.
fn side_before(tokens: &[Token]) -> Option<&[Token]> {
    let from = tokens.iter().rposition(|token| !is_part(token)).map_or(0, |at| at + 1);
    let side = tokens.get(from..)?;
    matches!(side.first(), Some(Token::Number { .. } | Token::Open)).then_some(side)
}

/// The tokens that begin a text and make a side; `None` if its last number counts something that is no unit.
fn side_after(tokens: &[Token]) -> Option<&[Token]> {
    let to = tokens.iter().position(|token| !is_part(token)).unwrap_or(tokens.len());
    let (mut side, rest) = tokens.split_at(to);
    // A dash before a word is the dash of a sentence.
    if let [body @ .., Token::Operator('-')] = side {
        side = body;
    }
    let counts =
        matches!(side.last(), Some(Token::Number { money: false, .. })) && matches!(rest.first(), Some(Token::Other));
    (!side.is_empty() && !counts).then_some(side)
}

/// An amount with what it measures.
#[derive(Debug, Clone)]
struct Amount {
    /// In the base units; without meaning when `doubtful`.
    value: f64,
    /// The last of its decimals, in the base units; 0 for a whole number.
    step: f64,
    dimensions: Dimensions,
    play: f64,
    /// A number without a unit takes part: what is measured cannot be told.
    doubtful: bool,
    /// What each factor measures, if the amount is a product or quotient.
    factors: Vec<Dimensions>,
    divided: bool,
    single: bool,
}

/// Two terms of a sum measure different things.
#[derive(Debug)]
struct Mixture;

struct Side<'a> {
    tokens: &'a [Token],
    at: usize,
}

type Read = Result<Option<Amount>, Mixture>;

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
fn counted(dimensions: Dimensions) -> Dimensions {
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

fn whole(tokens: &[Token]) -> Read {
    let mut side = Side { tokens, at: 0 };
    let amount = side.sum(0)?;
    Ok(amount.filter(|amount| side.at == tokens.len() && amount.value.is_finite()))
}

fn compare(left: &[Token], right: &[Token], equals: Equals, line: &str) -> Check {
    static RATE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\b(?:each|every|rates?|scale|represents?|corresponds?|map|model|drawing|costs?|uses?|burns?|in \d+)\b",
        )
    });
    let names: Vec<&'static Unit> = left
        .iter()
        .chain(right)
        .filter_map(|token| if let Token::Unit(unit) = token { Some(*unit) } else { None })
        .collect();
    let several = names.iter().any(|unit| names.first().is_some_and(|first| first.name != unit.name));
    let (a, b) = match (whole(left), whole(right)) {
        (Err(Mixture), _) | (_, Err(Mixture)) => return Check::Mixed,
        (Ok(Some(a)), Ok(Some(b))) if several => (a, b),
        _ => return Check::Plain,
    };
    // Two units of one thing: the bare numbers of the sides say nothing.
    let converts = names.iter().any(|u| names.iter().any(|v| u.name != v.name && u.dimensions == v.dimensions));
    let about = if equals == Equals::Sign { 0.0 } else { 0.05 };
    let slack = (0.012f64.max(about) + a.play.max(b.play)) * a.value.abs().max(b.value.abs());
    let near = (a.value - b.value).abs() <= slack.max(0.6 * b.step);
    if a.dimensions == b.dimensions {
        return match (a.doubtful || b.doubtful, near) {
            _ if a.dimensions == NONE => Check::Plain,
            (_, true) if a.single && b.single => Check::Converted,
            (_, true) => Check::Right,
            (false, false) if !RATE.is_match(line) => Check::Wrong,
            _ => Check::Unclear,
        };
    }
    // "20 miles/day + 10 miles/day = 30 miles" leaves out the day.
    if a.doubtful || b.doubtful || counted(a.dimensions) == counted(b.dimensions) {
        return if converts { Check::Unclear } else { Check::Plain };
    }
    let one = left.iter().any(|token| matches!(token, Token::Number { value, .. } if *value == 1.0));
    let told_apart = if a.single && b.single {
        // "1 gallon = 30 miles" is a rate, and money is the measure of anything.
        let money = a.dimensions.last() != Some(&0) || b.dimensions.last() != Some(&0);
        equals != Equals::Word && !one && !money && !RATE.is_match(line)
    } else if a.factors.len() > 1 {
        let numerator = a.factors.first() == Some(&b.dimensions);
        let of_a_factor = if a.divided { numerator } else { a.factors.contains(&b.dimensions) };
        equals != Equals::Word && a.dimensions != NONE && b.single && !of_a_factor
    } else {
        equals != Equals::Word && b.single
    };
    match (told_apart, converts) {
        (true, _) => Check::Mixed,
        (false, true) => Check::Unclear,
        (false, false) => Check::Plain,
    }
}

/// "5 km + 3 kg" without an equation around it.
fn loose_sums(tokens: &[Token]) -> Vec<Check> {
    let in_equation = tokens.iter().any(|token| matches!(token, Token::Equals(Equals::Sign | Equals::About)));
    if in_equation {
        return vec![];
    }
    let mixed = tokens.windows(5).filter(|window| {
        matches!(window, [Token::Number { money: false, .. }, Token::Unit(a), Token::Operator('+'), Token::Number { money: false, .. }, Token::Unit(b)]
            if a.dimensions != b.dimensions)
    });
    mixed.map(|_| Check::Mixed).collect()
}

/// "a speed of 5 kg": what the noun names is not measured in that unit.
fn misnamed(line: &str) -> Vec<Check> {
    static NAMED: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\b(speed|velocity|distance|length|height|width|depth|radius|diameter|altitude|perimeter|circumference|area|mass|weight|duration|temperature|voltage)\s+(?:of|is|=|was)\s+(?:about |approximately |only |exactly )?(\d[\d,]*(?:\.\d+)?)\s*(°[CF]|[a-zA-Zµ]+)((?:\s*(?:/|per|²|³|\^|\*|squared|cubed))?)",
        )
    });
    let wrong = NAMED.captures_iter(line).filter(|found| {
        let text = |n: usize| found.get(n).map_or("", |part| part.as_str());
        let allowed = units::measured_by(&text(1).to_lowercase());
        text(4).is_empty()
            && units::in_prose(text(3))
                .is_some_and(|unit| !allowed.contains(&unit.dimensions) && unit.dimensions != MONEY)
    });
    wrong.map(|_| Check::Mixed).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str) -> (usize, usize, usize) {
        let checked = checked(text);
        (checked.right + checked.converted, checked.wrong, checked.mixed)
    }

    #[test]
    fn conversions_that_hold_are_right() {
        for text in [
            "5 km = 5000 m",
            "90 min = 1.5 h",
            "So 1 mile = 1.6 km.",
            "1 h 30 min = 90 minutes",
            "2 hours + 30 minutes = 150 minutes",
            "60 miles / 2 hours = 30 mph",
            "4 weeks x 25 km/week = 100 km",
            r"\frac{12 \text{ miles}}{6 \text{ mph}} = 2 \text{ hours}",
            "60 miles / 2 hours = 30 miles per hour",
            "200 GB / 2 GB/minute = 100 minutes",
            "72 km/h = 20 m/s",
            "3 * 20 min = 1 hour",
            "100 °C = 212 °F",
            "1 GB = 1024 MB",
            "1 year = 365 days",
            "2 square meters = 20,000 square centimeters",
            "9.8 m/s^2 * 10 kg = 98 N",
            "**12 V** × 2 A = 24 W",
            r"1.5 \text{ h} = 90 \text{ min}",
            "A distance of 5 km is 5000 m.",
        ] {
            assert_eq!(found(text), (1, 0, 0), "{text}");
        }
    }

    #[test]
    fn an_amount_in_two_units_is_told_from_a_result() {
        let found = checked("5 km = 5000 m. 60 miles / 2 hours = 30 mph");
        assert_eq!((found.right, found.converted), (1, 1));
    }

    #[test]
    fn conversions_that_do_not_hold_are_wrong() {
        for text in [
            "5 km = 500 m",
            "90 min = 2 h",
            "10 miles = 10 km",
            "2 hours + 30 minutes = 230 minutes",
            "72 km/h = 25 m/s",
        ] {
            assert_eq!(found(text), (0, 1, 0), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_mixed_is_found() {
        for text in [
            "5 km + 3 kg = 8 km",
            "Add 5 km + 3 kg of it.",
            "12 m/s = 43 kg",
            "60 miles / 2 hours = 30 hours",
            "5 m × 3 m = 15 kg",
            "5 km + 3 km = 8 kg",
            "It has a speed of 5 kg.",
            "The mass is 12 hours.",
        ] {
            assert_eq!(found(text), (0, 0, 1), "{text}");
        }
    }

    #[test]
    fn careless_and_ordinary_prose_is_left_alone() {
        for text in [
            "3 hours * $10 = $30",
            "5 m × 3 m = 15 m",
            "60 miles / 2 hours = 30 miles",
            "60 miles / 2 = 30 mph",
            "1 gallon = 30 miles",
            "On the map 1 cm = 5 km.",
            "5 apples = 3 kg",
            "x = 5 km",
            "4 weeks * 5 days = 20 days",
            "The walk of 5 km is 2 hours away.",
            "a distance of 5 minutes by car",
            "a clock speed of 3 GHz",
            "mass of 5 kg/m",
            "Run 5 km - 3 hours later, rest.",
            "if (5 m == 3 kg) fail",
            "12 + 5 = 17",
            "The weight is 3 dollars.",
            "CO2 = 5 kg + H2",
            "20 miles/day + 10 miles/day = 30 miles",
            "4 weeks x 25 km/week + 3 km = 103 km",
            r"\frac{12 \text{ miles}}{6 \text{ mph}} is what it takes",
        ] {
            assert_eq!(found(text), (0, 0, 0), "{text}");
        }
    }

    proptest! {
        #[test]
        fn conversions_of_any_length_are_told_right_from_wrong(km in 1u32..5_000, off in 2u32..9) {
            prop_assert_eq!(found(&format!("{km} km = {} m", km * 1_000)), (1, 0, 0));
            prop_assert_eq!(found(&format!("{km} km = {} m", km * 1_000 * off)), (0, 1, 0));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,200}", like in "([0-9]{1,4}| |km|kg|h|/|\\*|\\+|-|=|\\(|\\)|\\^2|per|\\$|is){0,80}") {
            checked(&text);
            checked(&like);
            of_line(&like);
        }
    }
}
