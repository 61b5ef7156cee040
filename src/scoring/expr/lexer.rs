//! Splits plain notation into tokens; [`super::latex`] turns LaTeX into it. Words keep their text,
//! and the parser decides their meaning.

use std::sync::LazyLock;

use regex::Regex;

use super::units::{self, Spelling, Unit};
use super::words::{self, shares_words_with_digits};
use crate::text::pattern;

/// The meaning of a comma and of a run of letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// "1,000" is a thousand, "3,5" three and a half, and "rate" a word.
    Prose,
    /// "1,000" is two items, and "ab" is a product.
    Formula,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Plus,
    Minus,
    Times,
    Over,
    Power,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    About,
    /// Less or greater.
    Order,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind<'a> {
    Number {
        value: f64,
        decimals: u8,
        grouping: Grouping,
    },
    /// A word, or a LaTeX name with its backslash.
    Word(&'a str),
    Currency(&'static Unit),
    Percent,
    Sign(Sign),
    Relation(Relation),
    Open(char),
    Close(char),
    Fraction,
    Root,
    /// Punctuation: an expression ends here.
    Break,
    /// A sign that makes its surroundings unreadable.
    Unknown,
}

/// Other possible meanings of the digits of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grouping {
    Clear,
    /// "1.000" is a thousand in some languages.
    Dot,
    /// "1,000" is one in some languages.
    Comma,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Token<'a> {
    pub kind: Kind<'a>,
    /// Byte offsets.
    pub start: usize,
    pub end: usize,
    /// True if there is white space before it.
    pub spaced: bool,
    /// The position of the other bracket of a pair.
    pub pair: Option<usize>,
}

pub(super) fn lex(text: &str, notation: Notation) -> Vec<Token<'_>> {
    let mut lexer = Lexer {
        text,
        at: 0,
        notation,
        out: Vec::new(),
        spaced: true,
    };
    while let Some(next) = lexer.rest().chars().next() {
        lexer.step(next);
    }
    let mut tokens = lexer.out;
    pair_brackets(&mut tokens);
    tokens
}

fn pair_brackets(tokens: &mut [Token<'_>]) {
    let mut open = Vec::new();
    for at in 0..tokens.len() {
        match tokens.get(at).map(|token| token.kind) {
            Some(Kind::Open(_)) => open.push(at),
            Some(Kind::Close(_)) => {
                let Some(other) = open.pop() else { continue };
                for (one, partner) in [(at, other), (other, at)] {
                    if let Some(token) = tokens.get_mut(one) {
                        token.pair = Some(partner);
                    }
                }
            }
            _ => {}
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    notation: Notation,
    out: Vec<Token<'a>>,
    spaced: bool,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn push(&mut self, kind: Kind<'a>, length: usize) {
        // "よって17" and "418個" are as good as spaced.
        let head = self.text.get(..self.at).unwrap_or_default();
        let ends = head.ends_with(|c| !shares_words_with_digits(c) && c.is_alphabetic());
        let begins =
            matches!(kind, Kind::Word(word) if !word.starts_with(shares_words_with_digits));
        self.spaced |= ends || begins && self.after_figure();
        self.out.push(Token {
            kind,
            start: self.at,
            end: self.at + length,
            spaced: std::mem::take(&mut self.spaced),
            pair: None,
        });
        self.at += length;
    }

    fn after_figure(&self) -> bool {
        let last = self.out.last().map(|token| token.kind);
        matches!(last, Some(Kind::Number { .. } | Kind::Close(_)))
    }

    fn after_operand(&self) -> bool {
        let last = self.out.last().map(|token| token.kind);
        self.after_figure() || matches!(last, Some(Kind::Word(_) | Kind::Percent))
    }

    /// Reads one token that begins with this character, or skips it.
    fn step(&mut self, c: char) {
        let head = self.text.get(..self.at).unwrap_or_default();
        let before = head.chars().next_back().unwrap_or(' ');
        let rest = self.rest();
        let is_point = c == '.' && !before.is_alphanumeric();
        let behind = rest.get(c.len_utf8()..).unwrap_or_default();
        if c.is_ascii_digit() || is_point && behind.starts_with(|c: char| c.is_ascii_digit()) {
            let (kind, length) = self.number(rest);
            return self.push(kind, length);
        }
        if c.is_alphabetic() && !self.multiplies(c, behind) {
            return self.word(rest);
        }
        if let '²' | '³' = c {
            self.push(Kind::Sign(Sign::Power), 0);
            let value = if c == '²' { 2.0 } else { 3.0 };
            let grouping = Grouping::Clear;
            let exponent = Kind::Number {
                value,
                decimals: 0,
                grouping,
            };
            return self.push(exponent, c.len_utf8());
        }
        if c == '\\' {
            let letters = behind.chars().take_while(char::is_ascii_alphabetic).count();
            let kind = match rest.get(..=letters).unwrap_or_default() {
                r"\frac" => Kind::Fraction,
                r"\sqrt" => Kind::Root,
                "\\" => Kind::Unknown,
                name => Kind::Word(name),
            };
            return self.push(kind, 1 + letters);
        }
        let (kind, length) = self.sign(c, behind);
        match kind {
            Some(kind) => self.push(kind, length),
            None => {
                self.spaced |= c.is_whitespace();
                self.at += length;
            }
        }
    }

    /// Reads the word that `rest` begins with, or the currency of an amount.
    fn word(&mut self, rest: &'a str) {
        let mut length = self.word_length(rest);
        if self.after_figure() && !self.spaced {
            // "5000万円" is a scale and a unit.
            let word = rest.get(..length).unwrap_or_default();
            length = words::leading_scale(word).unwrap_or(length);
        }
        let (word, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
        let is_code = word.len() <= 3 && word.chars().all(|c| c.is_ascii_uppercase());
        if is_code && self.notation == Notation::Prose {
            if !self.after_figure()
                && begins_figure(behind.trim_start())
                && let Some(unit) = units::currency(word)
            {
                return self.push(Kind::Currency(unit), length);
            }
            // "R$", "HK$": another currency than "$".
            let amount = behind.strip_prefix('$');
            if amount.is_some_and(|it| begins_figure(it.trim_start())) {
                return match units::currency("USD").filter(|_| word == "US") {
                    Some(unit) => self.push(Kind::Currency(unit), length + 1),
                    None => self.at += length + 1,
                };
            }
        }
        self.push(Kind::Word(word), length);
    }

    /// True if an "x" is between two operands, where it multiplies.
    fn multiplies(&self, c: char, behind: &str) -> bool {
        let operand = |c: char| c.is_ascii_digit() || matches!(c, '(' | '[' | '.');
        self.notation == Notation::Prose
            && matches!(c, 'x' | 'X')
            && self.after_operand()
            && behind.trim_start_matches([' ', '$']).starts_with(operand)
    }

    fn word_length(&self, rest: &str) -> usize {
        let first = rest.chars().next().map_or(1, char::len_utf8);
        if self.notation == Notation::Prose {
            return prose_word(rest);
        }
        let run = rest
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(rest.len());
        let letters = rest.get(..run).unwrap_or_default();
        let is_product = letters.chars().count() == 2 && letters != "pi";
        if is_product { first } else { run }
    }

    /// Returns the meaning of a sign and its length; `None` if it has none.
    fn sign(&self, c: char, behind: &str) -> (Option<Kind<'a>>, usize) {
        let next = behind.chars().next().unwrap_or(' ');
        let prose = self.notation == Notation::Prose;
        let with = |kind| (Some(kind), c.len_utf8());
        match (c, next) {
            ('`' | '&', _) => (None, 1),
            (c, _) if c.is_whitespace() => (None, c.len_utf8()),
            ('<' | '>', '=') => (Some(Kind::Relation(Relation::Order)), 2),
            // "**12**" is bold.
            ('*', '*') => (None, 2),
            ('+', _) => with(Kind::Sign(Sign::Plus)),
            ('-' | '−' | '–', _) => with(Kind::Sign(Sign::Minus)),
            ('*' | '×' | '·' | '∙' | '⋅' | 'x' | 'X', _) => with(Kind::Sign(Sign::Times)),
            ('/' | '÷', _) => with(Kind::Sign(Sign::Over)),
            ('^', _) => with(Kind::Sign(Sign::Power)),
            ('%', _) => with(Kind::Percent),
            ('$' | '€' | '£' | '¥' | '₹' | '₩' | '₽' | '₺' | '₴', _) => {
                let unit = units::written(c.encode_utf8(&mut [0; 4]), Spelling::Strict);
                with(unit.map_or(Kind::Unknown, Kind::Currency))
            }
            ('(' | '[' | '{', _) => with(Kind::Open(c)),
            (')' | ']' | '}', _) => with(Kind::Close(c)),
            ('=', _) => with(Kind::Relation(Relation::Equal)),
            ('≈' | '≃', _) => with(Kind::Relation(Relation::About)),
            ('<' | '>' | '≤' | '≥', _) => with(Kind::Relation(Relation::Order)),
            ('√', _) => with(Kind::Root),
            ('°', _) => with(Kind::Word("°")),
            // An index, and emphasis.
            ('_', next) if self.after_operand() && !self.spaced => {
                let is_index = next == '{' || next.is_alphanumeric();
                (is_index.then_some(Kind::Unknown), 1)
            }
            ('_', _) => (None, 1),
            // A currency that the table lacks: "₫20,400".
            _ if prose && is_currency(c) => (None, c.len_utf8()),
            // "144 : 12 = 12" is a division, and so are both sides of "2 : 3 = 4 : 6".
            (':', ' ') if self.spaced && self.divides(behind) => with(Kind::Sign(Sign::Over)),
            // "3:4" and "6 : 3" relate numbers; the colon of a sentence has a space after it only.
            (':', next) if self.after_figure() && self.spaced == next.is_whitespace() => {
                with(Kind::Unknown)
            }
            ('±' | '∓' | '∑' | '∏' | '∫' | '∂' | '@' | '∞' | '∪', _) => {
                with(Kind::Unknown)
            }
            _ if prose => with(Kind::Break),
            _ => with(Kind::Unknown),
        }
    }

    /// True if a colon between two numbers divides: an equals sign is behind the second number or in
    /// front of the first one.
    fn divides(&self, behind: &str) -> bool {
        static DIVISOR: LazyLock<Regex> = LazyLock::new(|| pattern(r"^ \d[\d.,]*(\s*=)?"));
        let equals = |token: &Token<'_>| token.kind == Kind::Relation(Relation::Equal);
        let mut before = self.out.iter().rev();
        // "Step 2 : 12 = 3 * 4" has a label in front.
        let has_number = before.next().is_some_and(|token| {
            let head = self.text.get(..token.start).unwrap_or_default().trim_end();
            matches!(token.kind, Kind::Number { .. }) && !head.ends_with(char::is_alphabetic)
        });
        let found = DIVISOR.captures(behind).filter(|_| has_number);
        found.is_some_and(|found| found.get(1).is_some() || before.next().is_some_and(equals))
    }

    /// Reads a number with its separators: "1,000.5", "1.234,5", "86 400", "3,5".
    fn number(&self, rest: &str) -> (Kind<'a>, usize) {
        let prose = self.notation == Notation::Prose;
        if let Some(found) = grouped(rest).filter(|_| prose) {
            return found;
        }
        let (mut digits, mut exponent) = single(rest);
        let behind = rest.get(digits.len()..).unwrap_or_default();
        let before = self
            .text
            .get(..self.at)
            .and_then(|head| head.strip_suffix(','));
        let is_listed = before.is_some_and(|it| it.ends_with(|c: char| c.is_ascii_digit()))
            || behind.strip_prefix(',').is_some_and(begins_figure);
        if !prose || is_listed {
            digits = digits.split(',').next().unwrap_or_default();
            exponent = "";
        }
        let point = digits.find(['.', ',']).unwrap_or(digits.len());
        let (whole, decimals) = digits.split_at_checked(point).unwrap_or_default();
        let length = digits.len() + exponent.len();
        // "1. 5 + 3" and "1) 5 + 3" are items of a list.
        let mark = rest
            .get(length..)
            .and_then(|after| after.strip_prefix(['.', ')']));
        let is_item = mark.is_some_and(|it| it.starts_with(char::is_whitespace));
        if is_item && prose && self.out.is_empty() && decimals.is_empty() {
            return (Kind::Break, length);
        }
        let may_group = decimals.starts_with('.')
            && decimals.len() == 4
            && (1..=3).contains(&whole.len())
            && !whole.starts_with('0');
        let grouping = if may_group {
            Grouping::Dot
        } else {
            Grouping::Clear
        };
        (number_of(whole, decimals, exponent, grouping), length)
    }
}

fn is_currency(c: char) -> bool {
    static CURRENCY: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\p{Sc}$"));
    // Cents are a part of another unit.
    !c.is_ascii() && c != '¢' && CURRENCY.is_match(c.encode_utf8(&mut [0; 4]))
}

/// Returns the length of a word: letters and digits, also behind an apostrophe or a hyphen inside it.
fn prose_word(rest: &str) -> usize {
    let has_digits = rest.starts_with(shares_words_with_digits);
    let is_inner = |c: char| c.is_alphabetic() || has_digits && c.is_ascii_digit();
    let run = |text: &str| text.find(|c| !is_inner(c)).unwrap_or(text.len());
    let mut length = run(rest);
    loop {
        let behind = rest.get(length..).unwrap_or_default();
        let Some(more) = behind.strip_prefix(['\'', '’', '-']) else {
            return length;
        };
        if !more.starts_with(char::is_alphabetic) {
            return length;
        }
        length += behind.len() - more.len() + run(more);
    }
}

/// Splits the number at the start of a text into its digits with one separator, and its exponent:
/// "3.5" and "e-4".
fn single(rest: &str) -> (&str, &str) {
    static NUMBER: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^([0-9]*(?:[.,][0-9]+)?)([eE][+-]?[0-9]+)?"));
    let found = NUMBER.captures(rest);
    let part = |at: usize| Some(found.as_ref()?.get(at)?.as_str());
    (part(1).unwrap_or_default(), part(2).unwrap_or_default())
}

/// Reads a number whose digits are grouped by thousands; `None` if they are not.
fn grouped<'a>(rest: &str) -> Option<(Kind<'a>, usize)> {
    static GROUPED: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"^(?:\d{1,3}(?:\.\d{3})+,\d{1,2}|\d{1,3}(?:\.\d{3}){2,}|[1-9]\d?(?:,\d{2})+,\d{3}(?:\.\d+)?|[1-9]\d{0,2}(?:(?:,\d{3})+(?:\.\d+)?|(?:(?:[ \x{a0}\x{2009}\x{202f}]\d{3})+|(?:['’]\d{3})+)(?:[.,]\d+)?))",
        )
    });
    let found = GROUPED.find(rest)?.as_str();
    if rest.get(found.len()..).is_some_and(begins_figure) {
        return None;
    }
    let signs: Vec<(usize, char)> = found
        .char_indices()
        .filter(|(_, c)| !c.is_ascii_digit())
        .collect();
    let (&(_, first), &(at, last)) = (signs.first()?, signs.last()?);
    // Another sign than that of the groups is the decimal one.
    let point = if first == last { found.len() } else { at };
    let (whole, decimals) = found.split_at_checked(point)?;
    let is_single = whole.matches(first).count() == 1;
    let grouping = match first {
        ',' if is_single => Grouping::Comma,
        _ => Grouping::Clear,
    };
    Some((number_of(whole, decimals, "", grouping), found.len()))
}

/// Returns the number of a whole part with separators, decimals with their sign, and an exponent.
fn number_of<'a>(whole: &str, decimals: &str, exponent: &str, grouping: Grouping) -> Kind<'a> {
    let mut digits: String = whole.chars().filter(char::is_ascii_digit).collect();
    let decimals = decimals.trim_start_matches(['.', ',']);
    for part in [".", decimals, exponent] {
        digits.push_str(part);
    }
    Kind::Number {
        value: digits.parse().unwrap_or(f64::NAN),
        decimals: u8::try_from(decimals.len()).unwrap_or(u8::MAX),
        grouping,
    }
}

fn begins_figure(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_of_thousands_and_decimals_are_told_apart() {
        for (text, expected) in [
            ("86,400", &[86_400.0][..]),
            ("86 400", &[86_400.0]),
            ("86\u{202f}400", &[86_400.0]),
            ("86'400", &[86_400.0]),
            ("1,50,000", &[150_000.0]),
            ("12,34,567.5", &[1_234_567.5]),
            ("1.234.567", &[1_234_567.0]),
            ("1.234,5", &[1_234.5]),
            ("1,234.5", &[1_234.5]),
            ("3,5", &[3.5]),
            ("0,125", &[0.125]),
            ("1.5e3", &[1_500.0]),
            (".5", &[0.5]),
            ("1,2,3", &[1.0, 2.0, 3.0]),
            ("2020 100", &[2020.0, 100.0]),
        ] {
            let value = |token: Token<'_>| match token.kind {
                Kind::Number { value, .. } => Some(value),
                _ => None,
            };
            let tokens = lex(text, Notation::Prose).into_iter();
            assert_eq!(
                tokens.filter_map(value).collect::<Vec<_>>(),
                expected,
                "{text}"
            );
        }
    }
}
