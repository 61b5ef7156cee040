//! Whether two formulas are one: both are evaluated at the same few fixed points. Two different polynomials agree at a
//! random point with a probability that is next to nothing (Schwartz 1980, Zippel 1979: "Probabilistic algorithms for
//! sparse polynomials"); for the roots and functions beside them the test is a heuristic that errs to "different", for
//! the points lie on both sides of zero and a formula has to be defined where the other one is.
//!
//! LaTeX and plain notation are read. What is not understood has no value, and is compared as text by `normal`.

use super::formula::{Token, scan};

/// How many points a formula is evaluated at.
const POINTS: usize = 6;
/// At this many of them it has to have a value.
const LEAST: usize = 3;
const MAX_LENGTH: usize = 240;
const MAX_DEPTH: usize = 16;
const MAX_ITEMS: usize = 24;

/// A formula by its values.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    Value(Vec<f64>),
    /// The difference of the two sides: they describe the same if one is a multiple of the other.
    Equation(Vec<f64>),
    /// Sides of inequalities, the smallest first, with the signs between them.
    Chain(Vec<&'static str>, Vec<Form>),
    /// A tuple, interval or bare list, with its brackets.
    List(char, char, Vec<Form>),
    /// A set or union, in any order.
    Set(Vec<Form>),
}

impl Form {
    /// Whether two formulas are the same wherever they have a value.
    pub fn same(&self, other: &Form) -> bool {
        match (self, other) {
            (Form::Value(a), Form::Value(b)) => agree(a, b),
            (Form::Equation(a), Form::Equation(b)) => proportional(a, b),
            (Form::Chain(s, a), Form::Chain(t, b)) => s == t && all_same(a, b),
            (Form::List(o, c, a), Form::List(p, d, b)) => o == p && c == d && all_same(a, b),
            (Form::Set(a), Form::Set(b)) => {
                let among = |one: &Form, all: &[Form]| all.iter().any(|other| one.same(other));
                a.len() == b.len() && a.iter().all(|one| among(one, b)) && b.iter().all(|one| among(one, a))
            }
            _ => false,
        }
    }

    /// The number that a formula without variables is.
    pub fn constant(&self) -> Option<f64> {
        let Form::Value(values) = self else { return None };
        let first = *values.first()?;
        values.iter().all(|value| *value == first).then_some(first).filter(|value| value.is_finite())
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
    at().all(|(a, b)| if a.is_finite() && b.is_finite() { near(*a, *b) } else { !a.is_finite() && !b.is_finite() })
        && at().filter(|(a, b)| a.is_finite() && b.is_finite()).count() >= LEAST
}

fn proportional(a: &[f64], b: &[f64]) -> bool {
    let ratio = a.iter().zip(b).find(|(a, b)| a.is_finite() && b.is_finite() && a.abs() > 1e-6).map(|(a, b)| b / a);
    ratio.is_some_and(|ratio| ratio.abs() > 1e-9 && agree(&a.iter().map(|a| a * ratio).collect::<Vec<_>>(), b))
}

/// Reads a formula; `None` if any of it is not understood.
pub(super) fn read(text: &str) -> Option<Form> {
    if text.len() > MAX_LENGTH {
        return None;
    }
    let tokens = scan(text)?;
    form(&tokens, 0)
        .filter(|form| !matches!(form, Form::Value(values) if values.iter().all(|value| !value.is_finite())))
}

/// The positions of tokens of a kind that stand in no brackets.
fn outside(tokens: &[Token], wanted: fn(&Token) -> bool) -> Vec<usize> {
    let mut depth = 0i32;
    let mut out = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Open(_) => depth += 1,
            Token::Close(_) => depth -= 1,
            token if depth == 0 && wanted(token) => out.push(at),
            _ => {}
        }
    }
    out
}

fn pieces<'a>(tokens: &'a [Token], at: &[usize]) -> Vec<&'a [Token]> {
    let starts = std::iter::once(0).chain(at.iter().map(|at| at + 1));
    let ends = at.iter().copied().chain([tokens.len()]);
    starts.zip(ends).filter_map(|(start, end)| tokens.get(start..end)).collect()
}

fn form(tokens: &[Token], depth: usize) -> Option<Form> {
    if depth > 3 || tokens.is_empty() {
        return None;
    }
    let each = |parts: Vec<&[Token]>| -> Option<Vec<Form>> {
        (parts.len() <= MAX_ITEMS).then(|| parts.into_iter().map(|part| form(part, depth + 1)).collect()).flatten()
    };
    let unions = outside(tokens, |token| *token == Token::Union);
    if !unions.is_empty() {
        return each(pieces(tokens, &unions)).map(Form::Set);
    }
    let relations = outside(tokens, |token| matches!(token, Token::Relation(_)));
    let commas = outside(tokens, |token| *token == Token::Comma);
    if !commas.is_empty() {
        return each(pieces(tokens, &commas)).map(|items| Form::List(' ', ' ', items));
    }
    if !relations.is_empty() {
        return chain(tokens, &relations);
    }
    if let [Token::Open(open), inner @ .., Token::Close(close)] = tokens
        && outside(inner, |_| true).len() + 2 <= tokens.len()
        && closes_last(tokens)
    {
        let commas = outside(inner, |token| *token == Token::Comma);
        if *open == 's' {
            return if *close == 's' { each(pieces(inner, &commas)).map(Form::Set) } else { None };
        }
        if !commas.is_empty() {
            return each(pieces(inner, &commas)).map(|items| Form::List(*open, *close, items));
        }
    }
    values(tokens).map(Form::Value)
}

/// Whether the first bracket is closed by the last one.
fn closes_last(tokens: &[Token]) -> bool {
    let mut depth = 0i32;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Open(_) => depth += 1,
            Token::Close(_) => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1 == tokens.len();
        }
    }
    false
}

fn chain(tokens: &[Token], relations: &[usize]) -> Option<Form> {
    let mut signs: Vec<&'static str> = relations
        .iter()
        .filter_map(|at| if let Some(Token::Relation(sign)) = tokens.get(*at) { Some(*sign) } else { None })
        .collect();
    let mut sides: Vec<Vec<f64>> = pieces(tokens, relations).into_iter().map(values).collect::<Option<_>>()?;
    if let (["="], [left, right]) = (signs.as_slice(), sides.as_slice()) {
        return Some(Form::Equation(left.iter().zip(right).map(|(a, b)| a - b).collect()));
    }
    if signs.iter().all(|sign| sign.starts_with('>')) {
        signs = signs.iter().rev().map(|sign| if *sign == ">" { "<" } else { "<=" }).collect();
        sides.reverse();
    }
    signs
        .iter()
        .all(|sign| sign.starts_with('<'))
        .then(|| Form::Chain(signs, sides.into_iter().map(Form::Value).collect()))
}

fn values(tokens: &[Token]) -> Option<Vec<f64>> {
    (0..POINTS)
        .map(|point| {
            let mut reader = Reader { tokens, at: 0, point };
            reader.sum(0).filter(|_| reader.at == tokens.len())
        })
        .collect()
}

/// A variable's value at a point: fixed, unlike any other's, and at the later half of the points of either sign.
fn value_at(name: &str, point: usize) -> f64 {
    // FNV-1a over the name and the point, then the finish of SplitMix64.
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in name.bytes().chain([point as u8]) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    let size = 0.3 + 2.4 * ((hash >> 11) as f64 / (1u64 << 53) as f64);
    if 2 * point >= POINTS && hash & 1 == 1 { -size } else { size }
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    point: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn eat(&mut self, wanted: &Token) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn sum(&mut self, depth: usize) -> Option<f64> {
        let negative = self.eat(&Token::Sign('-'));
        if !negative {
            self.eat(&Token::Sign('+'));
        }
        let first = self.product(depth)?;
        let mut total = if negative { -first } else { first };
        loop {
            if self.eat(&Token::Sign('+')) {
                total += self.product(depth)?;
            } else if self.eat(&Token::Sign('-')) {
                total -= self.product(depth)?;
            } else {
                return Some(total);
            }
        }
    }

    fn product(&mut self, depth: usize) -> Option<f64> {
        let mut whole = matches!(self.peek(), Some(Token::Number(_)));
        let mut total = self.power(depth)?;
        let mut divided = false;
        loop {
            if self.eat(&Token::Sign('*')) {
                total *= self.power(depth)?;
                divided = false;
            } else if self.eat(&Token::Sign('/')) {
                total /= self.power(depth)?;
                divided = true;
            } else if let Some(next) = self.peek()
                && matches!(
                    next,
                    Token::Number(_)
                        | Token::Name(_)
                        | Token::Function(_)
                        | Token::Root
                        | Token::Fraction
                        | Token::Open('(' | '{' | '[')
                )
            {
                // "1/2x" can be meant either way, and "2 3" is no product.
                let ambiguous = divided || matches!(next, Token::Number(n) if *n != std::f64::consts::PI);
                let mixed = whole && *next == Token::Fraction && self.plain_fraction();
                if ambiguous {
                    return None;
                }
                let factor = self.power(depth)?;
                total = if mixed { total + factor } else { total * factor };
            } else {
                return Some(total);
            }
            whole = false;
        }
    }

    /// Whether the fraction at hand is one of two numbers: "3\frac{1}{2}" is three and a half.
    fn plain_fraction(&self) -> bool {
        let ahead = self.tokens.get(self.at + 1..self.at + 7).unwrap_or_default();
        matches!(
            ahead,
            [
                Token::Open('{'),
                Token::Number(_),
                Token::Close('}'),
                Token::Open('{'),
                Token::Number(_),
                Token::Close('}')
            ]
        )
    }

    fn power(&mut self, depth: usize) -> Option<f64> {
        let base = self.atom(depth)?;
        if !self.eat(&Token::Sign('^')) {
            return Some(base);
        }
        let negative = self.eat(&Token::Sign('-'));
        let exponent = self.atom(depth)?;
        // "x^2^3" can be meant either way.
        (self.peek() != Some(&Token::Sign('^'))).then(|| base.powf(if negative { -exponent } else { exponent }))
    }

    fn atom(&mut self, depth: usize) -> Option<f64> {
        if depth > MAX_DEPTH {
            return None;
        }
        let token = self.peek()?.clone();
        self.at += 1;
        match token {
            Token::Number(value) => Some(value),
            Token::Name(name) if name == "e" => Some(std::f64::consts::E),
            Token::Name(name) => Some(value_at(&name, self.point)),
            Token::Open(open @ ('(' | '{' | '[')) => self.closed(open, depth),
            Token::Fraction => {
                let (above, below) = (self.group(depth)?, self.group(depth)?);
                Some(above / below)
            }
            Token::Root => {
                let mut order = 2.0;
                if self.eat(&Token::Open('[')) {
                    order = self.closed('[', depth)?;
                }
                let inside = self.atom(depth + 1)?;
                Some(if order == 2.0 { inside.sqrt() } else { inside.powf(1.0 / order) })
            }
            Token::Function(function) => {
                // Powers and bases of functions are written in too many ways.
                if matches!(self.peek(), Some(Token::Sign(_))) {
                    return None;
                }
                let bracketed = matches!(self.peek(), Some(Token::Open(_)));
                let argument = if bracketed { self.atom(depth + 1)? } else { self.term(depth + 1)? };
                Some(function.of(argument))
            }
            _ => None,
        }
    }

    /// What a function without brackets takes: "2x" of "sin 2x cos x".
    fn term(&mut self, depth: usize) -> Option<f64> {
        let mut total = self.power(depth)?;
        while matches!(self.peek(), Some(Token::Name(_) | Token::Root | Token::Fraction)) {
            total *= self.power(depth)?;
        }
        Some(total)
    }

    fn group(&mut self, depth: usize) -> Option<f64> {
        self.eat(&Token::Open('{')).then(|| self.closed('{', depth)).flatten()
    }

    fn closed(&mut self, open: char, depth: usize) -> Option<f64> {
        let value = self.sum(depth + 1)?;
        let close = match open {
            '(' => ')',
            '[' => ']',
            _ => '}',
        };
        self.eat(&Token::Close(close)).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn same(a: &str, b: &str) -> bool {
        read(a).zip(read(b)).is_some_and(|(a, b)| a.same(&b) && b.same(&a))
    }

    #[test]
    fn forms_of_one_formula_are_the_same() {
        for (a, b) in [
            ("(x+1)^2", "x^2+2x+1"),
            (r"\frac{1}{2}x", "x/2"),
            (r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt{2}}"),
            (r"2\sqrt{3}", r"\sqrt{12}"),
            (r"(3, \frac{\pi}{2})", r"\left( 3, \dfrac{\pi}{2} \right)"),
            (r"\{1, 2, 3\}", r"\{3,2,1\}"),
            ("[0, 1)", r"\left[0, 1\right)"),
            ("2x + 3y = 6", "6 = 3y + 2x"),
            ("x + y = 2", "2x + 2y = 4"),
            ("x > 3", "3 < x"),
            (r"1 \le x < 2", r"2 > x \geq 1"),
            (r"(-\infty, 0) \cup (1, \infty)", r"(1,\infty)\cup(-\infty,0)"),
            (r"3\frac{1}{2}", "7/2"),
            ("x_1 + x_2", "x_2 + x_1"),
            (r"\sin x \cdot 2", "2 sin(x)"),
            ("ab", "ba"),
            ("e^{2x}", "(e^x)^2"),
            ("n(n+1)/2", r"\frac{n^2+n}{2}"),
        ] {
            assert!(same(a, b), "{a} and {b}: {:?} {:?}", read(a), read(b));
        }
        assert_eq!(read(r"\sqrt{16}").and_then(|form| form.constant()), Some(4.0));
    }

    #[test]
    fn different_formulas_stay_apart() {
        for (a, b) in [
            ("(x+1)^2", "x^2+1"),
            ("x^2", "x^3"),
            ("x", "y"),
            (r"\sqrt{x^2}", "x"),
            (r"\ln(x^2)", r"2 \ln x"),
            ("(3, 4)", "(4, 3)"),
            ("[0, 1)", "(0, 1]"),
            ("1, 2", r"\{1, 2\}"),
            ("x > 3", r"x \ge 3"),
            ("x + y = 2", "x + y = 3"),
            ("x + y = 2", "x + y"),
            (r"\{1, 2\}", r"\{1, 3\}"),
            ("1/3", "0.333"),
        ] {
            assert!(!same(a, b), "{a} and {b}");
        }
    }

    #[test]
    fn what_is_not_understood_has_no_value() {
        for text in ["the sum", "1/2x", "x^2^3", "f(x", "2 3", r"\int x", "5!", "", "x +", r"\sin^2 x", "1,000 apples"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }

    fn polynomial(a: &[i32]) -> String {
        a.iter().enumerate().map(|(n, a)| format!("{a:+}x^{n}")).collect()
    }

    proptest! {
        #[test]
        fn polynomials_are_equal_exactly_if_their_coefficients_are(
            a in prop::collection::vec(-9i32..9, 4), b in prop::collection::vec(-9i32..9, 4),
        ) {
            prop_assert!(same(&polynomial(&a), &polynomial(&a)));
            prop_assert_eq!(same(&polynomial(&a), &polynomial(&b)), a == b);
            let turned: String = a.iter().enumerate().rev().map(|(n, a)| format!("{a:+}x^{n}")).collect();
            prop_assert!(same(&polynomial(&a), &turned));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,120}", like in r"(\\frac|\\sqrt|\\\{|\\\}|[0-9a-exyz(){}\[\],=<>+*/^._ -]){0,80}") {
            read(&text);
            if let Some(form) = read(&like) {
                form.same(&form);
                form.constant();
            }
        }
    }
}
