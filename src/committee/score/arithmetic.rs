//! Recomputes the arithmetic that a text states, such as `4 pieces × 30 days = 120 pieces`. Only equations whose two
//! sides are plain numbers and operators are judged; anything with a variable or a function is left alone, and what
//! converts units is left to `quantity`.

use super::quantity::{self, Check};
use super::text::clip;
use super::tokens::{Token, tokenize};

/// At most this many stated equations of a text are recomputed.
const MAX_EQUATIONS: usize = 120;
/// Words between a number and the next operator that still read as its unit ("5 legs of each × 4").
const MAX_UNIT_WORDS: usize = 3;
const MAX_DEPTH: usize = 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Right,
    Wrong,
}

/// A stated equation, recomputed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Equation {
    pub left: f64,
    pub stated: f64,
    pub verdict: Verdict,
}

/// Every equation of the text that can be recomputed, in order.
pub(super) fn equations(text: &str) -> Vec<Equation> {
    let mut out = Vec::new();
    for line in clip(text, super::text::MAX_BYTES).lines().filter(|line| line.contains(['=', '≈'])) {
        let tokens = tokenize(line);
        let mut by_units = quantity::of_line(line).into_iter();
        for (at, token) in tokens.iter().enumerate() {
            let Token::Equals { about } = token else { continue };
            if by_units.next().is_some_and(|check| check != Check::Plain) {
                continue;
            }
            if out.len() >= MAX_EQUATIONS {
                return out;
            }
            let (before, after) = tokens.split_at(at);
            if let (Some(left), Some(right)) = (ending(before), beginning(after.get(1..).unwrap_or_default()))
                && let Some(equation) = compare(&left, &right, *about)
            {
                out.push(equation);
            }
        }
    }
    out
}

/// The value of a pure expression such as "3/4", "2^10" or "(1 + 2) * 3"; `None` if it is anything else.
pub(super) fn evaluate(text: &str) -> Option<f64> {
    if text.len() > 200 {
        return None;
    }
    let tokens = tokenize(text);
    let expression = beginning(&tokens)?;
    (expression.len() == tokens.len()).then(|| value(&expression, Percent::Hundredth)).flatten()
}

fn compare(left: &[Token], right: &[Token], about: bool) -> Option<Equation> {
    let operators =
        |side: &[Token]| side.iter().filter(|token| matches!(token, Token::Operator(_) | Token::Of)).count();
    if operators(left) + operators(right) == 0 {
        return None;
    }
    let percent = left.iter().chain(right).any(|token| matches!(token, Token::Number { percent: true, .. }));
    let readings: &[Percent] = if percent { &[Percent::Hundredth, Percent::Plain] } else { &[Percent::Hundredth] };
    let decimals = |side: &[Token]| {
        side.iter()
            .filter_map(|token| if let Token::Number { decimals, .. } = token { Some(*decimals) } else { None })
            .max()
    };
    let exact = !about
        && left.iter().chain(right).all(|token| {
            !matches!(token, Token::Operator('/' | '^'))
                && !matches!(token, Token::Number { decimals: 1.., .. } | Token::Number { percent: true, .. })
        });
    // Decimals may be cut off or rounded; a whole number can only be a rounding.
    let slack = match decimals(right).unwrap_or(0) {
        0 => 0.5,
        decimals => 10f64.powi(-decimals.min(12)),
    };
    let mut first = None;
    for reading in readings {
        let (Some(a), Some(b)) = (value(left, *reading), value(right, *reading)) else { continue };
        let near = |a: f64, b: f64| {
            let gap = (a - b).abs();
            gap <= 1e-9 * a.abs().max(1.0)
                || !exact && (gap <= slack || gap <= 0.005 * a.abs())
                || about && gap <= 0.03 * a.abs()
        };
        let verdict = if near(a, b) || (percent && (near(a * 100.0, b) || near(a, b * 100.0))) {
            Verdict::Right
        } else {
            Verdict::Wrong
        };
        if verdict == Verdict::Right {
            return Some(Equation { left: a, stated: b, verdict });
        }
        first.get_or_insert(Equation { left: a, stated: b, verdict });
    }
    first
}

/// The longest plain expression that ends the tokens; `None` if what stands before it makes it no expression.
fn ending(tokens: &[Token]) -> Option<Vec<Token>> {
    let mut out: Vec<Token> = Vec::new();
    let (mut units, mut depth) = (0usize, 0usize);
    for token in tokens.iter().rev() {
        // `out` is reversed: its last token stands to the right of this one.
        let right = out.last().copied();
        match token {
            Token::Unknown => return None,
            Token::Word => {
                // A unit stands before an operator, a closing bracket or the equals sign, never before an operand.
                if matches!(right, Some(Token::Number { .. } | Token::Open)) {
                    break;
                }
                units += 1;
                if units > MAX_UNIT_WORDS {
                    return None;
                }
                continue;
            }
            Token::Stop | Token::Equals { .. } => break,
            Token::Number { .. } if matches!(right, Some(Token::Number { .. } | Token::Open)) => break,
            Token::Close if matches!(right, Some(Token::Number { .. } | Token::Open)) => break,
            Token::Close => depth += 1,
            Token::Open if depth == 0 => break,
            Token::Open => depth -= 1,
            Token::Number { .. } | Token::Operator(_) | Token::Of => {}
        }
        if !matches!(token, Token::Number { .. } | Token::Close) && units > 0 {
            // Words that follow no number: "x + rate = 5" and the like.
            return None;
        }
        units = 0;
        out.push(*token);
    }
    if units > 0 && !out.is_empty() && !matches!(out.last(), Some(Token::Number { .. } | Token::Open)) {
        return None;
    }
    out.reverse();
    let starts = matches!(out.first(), Some(Token::Number { .. } | Token::Open));
    (starts && depth == 0).then_some(out)
}

/// The longest plain expression that begins the tokens; `None` if what stands after it makes it part of something else.
fn beginning(tokens: &[Token]) -> Option<Vec<Token>> {
    let mut out: Vec<Token> = Vec::new();
    let (mut units, mut depth) = (0usize, 0usize);
    for token in tokens {
        let operand_before = matches!(out.last(), Some(Token::Number { .. } | Token::Close));
        match token {
            Token::Unknown => return None,
            Token::Word if !operand_before => return None,
            Token::Word => {
                units += 1;
                if units > MAX_UNIT_WORDS {
                    break;
                }
                continue;
            }
            Token::Stop | Token::Equals { .. } => break,
            Token::Number { .. } | Token::Open if operand_before => break,
            Token::Open => depth += 1,
            Token::Close if depth == 0 => break,
            Token::Close => depth -= 1,
            Token::Number { .. } => {}
            Token::Operator(sign) if !operand_before && !matches!(sign, '-' | '+') => return None,
            Token::Operator(_) | Token::Of => {}
        }
        units = 0;
        out.push(*token);
    }
    // "= 3 - then we" leaves a dangling operator: a dash of prose, or an operand that is no number.
    (matches!(out.last(), Some(Token::Number { .. } | Token::Close)) && depth == 0).then_some(out)
}

/// How "40%" counts: as 0.4, or as 40 where a text means percentage points.
#[derive(Debug, Clone, Copy)]
enum Percent {
    Hundredth,
    Plain,
}

fn value(tokens: &[Token], percent: Percent) -> Option<f64> {
    let mut parser = Parser { tokens, at: 0, percent };
    let value = parser.sum(0)?;
    (parser.at == tokens.len() && value.is_finite() && value.abs() < 1e15).then_some(value)
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    percent: Percent,
}

impl Parser<'_> {
    fn take(&mut self, wanted: impl Fn(Token) -> bool) -> Option<Token> {
        let token = *self.tokens.get(self.at)?;
        wanted(token).then(|| {
            self.at += 1;
            token
        })
    }

    fn sum(&mut self, depth: usize) -> Option<f64> {
        let mut left = self.product(depth)?;
        while let Some(Token::Operator(sign)) = self.take(|t| matches!(t, Token::Operator('+' | '-'))) {
            let right = self.product(depth)?;
            left = if sign == '+' { left + right } else { left - right };
        }
        Some(left)
    }

    fn product(&mut self, depth: usize) -> Option<f64> {
        let mut left = self.power(depth)?;
        while let Some(token) = self.take(|t| matches!(t, Token::Operator('*' | '/' | '%') | Token::Of)) {
            let right = self.power(depth)?;
            left = match token {
                Token::Operator('/') if right == 0.0 => return None,
                Token::Operator('/') => left / right,
                Token::Operator('%') if right == 0.0 => return None,
                Token::Operator('%') => left.rem_euclid(right),
                _ => left * right,
            };
        }
        Some(left)
    }

    fn power(&mut self, depth: usize) -> Option<f64> {
        if depth > MAX_DEPTH {
            return None;
        }
        if let Some(Token::Operator(sign)) = self.take(|t| matches!(t, Token::Operator('-' | '+'))) {
            let value = self.power(depth + 1)?;
            return Some(if sign == '-' { -value } else { value });
        }
        let base = self.operand(depth)?;
        if self.take(|t| t == Token::Operator('^')).is_some() {
            return Some(base.powf(self.power(depth + 1)?));
        }
        Some(base)
    }

    fn operand(&mut self, depth: usize) -> Option<f64> {
        match self.take(|t| matches!(t, Token::Number { .. } | Token::Open))? {
            Token::Number { value, percent: true, .. } if matches!(self.percent, Percent::Hundredth) => {
                Some(value / 100.0)
            }
            Token::Number { value, .. } => Some(value),
            _ => {
                let value = self.sum(depth + 1)?;
                self.take(|t| t == Token::Close)?;
                Some(value)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn verdicts(text: &str) -> Vec<Verdict> {
        equations(text).into_iter().map(|equation| equation.verdict).collect()
    }

    #[test]
    fn right_sums_are_found_right() {
        for text in [
            "2 + 1 = 3",
            "So it takes 2 + 1 = 3.0 bolts",
            "4 pieces × 30 days = 120 pieces",
            "$5 + $3 = $8",
            "1,000 * 2 = 2,000",
            "5 dogs × 4 legs each = 20 legs",
            "(1 + 2) * 3 = 9",
            "2^10 = 1024",
            "10 / 3 = 3.33",
            "5/3=1.6",
            "40% of 200 = 80",
            "1/4 = 25%",
            r"\frac{1}{2} + \frac{1}{4} = 0.75",
            "7 x 6 = 42",
            "17 % 5 = 2",
            "22/7 ≈ 3.14",
            "2**3 = 8",
            "1. 5 + 3 = 8",
            "**Total**: 3 + 4 = **7**",
        ] {
            assert_eq!(verdicts(text), [Verdict::Right], "{text}");
        }
        assert_eq!(verdicts("x = 2 * 3 + 4 = 6 + 4 = 10"), [Verdict::Right, Verdict::Right]);
    }

    #[test]
    fn wrong_sums_are_found_wrong() {
        for text in
            ["2 + 2 = 5", "33 x 99 - 11 = 3258", "12 * 12 = 142", "100 - 25% = 30", "(2 + 3) * 4 = 14", "10 / 4 = 4"]
        {
            assert_eq!(verdicts(text), [Verdict::Wrong], "{text}");
        }
    }

    #[test]
    fn what_is_no_plain_arithmetic_is_left_alone() {
        for text in [
            "x + 5 = 12",
            "2x + 5 = 12",
            "f(2) = 3 + 4",
            "let y = 3 + z",
            "5! = 120",
            "a == b",
            "if n >= 3 = 2 + 2",
            "sqrt(16) + 1 = 5",
            "price = 12",
            "m+n = -3 + k",
            r"\sin 30 + 1 = 1.5",
            "2 hours + 30 minutes = 150 minutes",
            "200 GB / 2 GB/minute = 100 minutes",
        ] {
            assert_eq!(verdicts(text), [], "{text}");
        }
    }

    #[test]
    fn pure_expressions_have_a_value() {
        assert_eq!(evaluate("3/4"), Some(0.75));
        assert_eq!(evaluate(r"-\frac{1}{9}"), Some(-1.0 / 9.0));
        assert_eq!(evaluate("three quarters"), None);
        assert_eq!(evaluate("1 / 0"), None);
    }

    proptest! {
        #[test]
        fn sums_of_any_two_numbers_are_judged_rightly(a in -5_000i64..5_000, b in 0i64..5_000, off in 1i64..50) {
            prop_assert_eq!(verdicts(&format!("{a} + {b} = {}", a + b)), if a < 0 { vec![] } else { vec![Verdict::Right] });
            prop_assume!(a >= 0);
            prop_assert_eq!(verdicts(&format!("{a} + {b} = {}", a + b + off)), vec![Verdict::Wrong]);
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,200}", sums in "[0-9x+*/^%=(). -]{0,80}") {
            equations(&text);
            equations(&sums);
            evaluate(&sums);
        }
    }
}
