//! Stated quantities, held against each other: conversions are recomputed ("90 min = 1.5 h"), and sums, quotients and
//! equations that mix what cannot be mixed are found ("5 km + 3 kg", "12 m/s = 43 kg", "a speed of 5 kg").
//!
//! People are careless with units in products ("3 hours * $10 = $30"), so a product or quotient is only held to be wrong
//! when its result measures neither what it should nor what one of its factors does. A number without a unit makes its
//! side doubtful: nothing is held against it.

use std::sync::LazyLock;

use regex::Regex;

use super::amount::{Equals, Mixture, Token, counted, scan, whole};
use super::pattern::pattern;
use super::text::{MAX_BYTES, clip};
use super::units::{self, MONEY, NONE, Unit};

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
            "4 weeks x 25 km/week + 3 km = 103 km",
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
