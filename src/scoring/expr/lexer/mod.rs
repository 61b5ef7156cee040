//! Splits plain and LaTeX notation into tokens. Words keep their text; the parser decides their
//! meaning.

mod latex;

use super::units::{self, Spelling, Unit};

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
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    /// "==", "!=" and others that code and logic use.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind<'a> {
    Number {
        value: f64,
        decimals: u8,
        grouping: Grouping,
    },
    Word(&'a str),
    /// A LaTeX command that is not an operator: a Greek letter, a function.
    Name(&'a str),
    /// The index of the name before it.
    Index(&'a str),
    Currency(&'static Unit),
    Percent,
    Sign(Sign),
    Relation(Relation),
    /// Brackets as written; the braces of a set are 's'.
    Open(char),
    Close(char),
    Fraction,
    Root,
    Union,
    Comma,
    /// Punctuation: an expression ends here.
    Break,
    /// A sign that makes its surroundings unreadable.
    Unknown,
}

/// Other possible meanings of the digits of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grouping {
    Clear,
    /// "1 000" may be two numbers.
    Blank,
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
        chars: text.char_indices().collect(),
        at: 0,
        notation,
        out: Vec::new(),
        braces: Vec::new(),
        dollar: None,
        single: 0,
        spaced: true,
    };
    while lexer.at < lexer.chars.len() {
        lexer.step();
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
    chars: Vec<(usize, char)>,
    at: usize,
    notation: Notation,
    out: Vec<Token<'a>>,
    /// For each open brace, whether it only groups text, as in `\text{km}`.
    braces: Vec<bool>,
    /// The dollar sign that ends the mathematics.
    dollar: Option<usize>,
    /// The count of next numbers that have only one digit: those after `\frac`.
    single: u8,
    spaced: bool,
}

impl<'a> Lexer<'a> {
    fn char(&self, at: usize) -> char {
        self.chars.get(at).map_or(' ', |(_, c)| *c)
    }

    fn before(&self, begin: usize) -> char {
        begin.checked_sub(1).map_or(' ', |at| self.char(at))
    }

    fn byte(&self, at: usize) -> usize {
        self.chars
            .get(at)
            .map_or(self.text.len(), |(byte, _)| *byte)
    }

    fn slice(&self, from: usize, to: usize) -> &'a str {
        self.text
            .get(self.byte(from)..self.byte(to))
            .unwrap_or_default()
    }

    /// Returns the number of consecutive characters of a kind at a position.
    fn run(&self, at: usize, kind: impl Fn(char) -> bool) -> usize {
        self.chars
            .get(at..)
            .unwrap_or_default()
            .iter()
            .take_while(|(_, c)| kind(*c))
            .count()
    }

    fn digits(&self, at: usize) -> usize {
        self.run(at, |c| c.is_ascii_digit())
    }

    fn push(&mut self, kind: Kind<'a>, begin: usize) {
        let spaced = std::mem::take(&mut self.spaced);
        self.out.push(Token {
            kind,
            start: self.byte(begin),
            end: self.byte(self.at),
            spaced,
            pair: None,
        });
    }

    fn last(&self) -> Option<Kind<'a>> {
        self.out.last().map(|token| token.kind)
    }

    fn after_figure(&self) -> bool {
        matches!(self.last(), Some(Kind::Number { .. } | Kind::Close(_)))
    }

    fn after_operand(&self) -> bool {
        self.after_figure()
            || matches!(
                self.last(),
                Some(Kind::Word(_) | Kind::Percent | Kind::Index(_))
            )
    }

    /// Reads one token. This function is long because it is one flat table of signs.
    fn step(&mut self) {
        let (begin, c) = (self.at, self.char(self.at));
        let next = self.char(begin + 1);
        let prose = self.notation == Notation::Prose;
        self.at += 1;
        let kind = match c {
            c if c.is_whitespace() => {
                self.spaced = true;
                return;
            }
            '0'..='9' => return self.number(begin),
            '.' if next.is_ascii_digit() && !self.before(begin).is_alphanumeric() => {
                return self.number(begin);
            }
            '\\' => return self.command(begin),
            '$' => return self.dollar(begin),
            '-' | '*' | '+' | '•' if prose && next.is_whitespace() && self.out.is_empty() => {
                Kind::Break
            }
            '-' | '=' if next == '>' => {
                self.at += 1;
                Kind::Break
            }
            // "**12**" is bold, "2**3" a power.
            '*' if next == '*' => {
                self.at += 1;
                let raised =
                    self.after_operand() && !self.spaced && !self.before(begin).is_alphabetic();
                if !raised || !(self.char(self.at).is_ascii_digit() || self.char(self.at) == '(') {
                    return;
                }
                Kind::Sign(Sign::Power)
            }
            '`' | '&' => return,
            '–' if next.is_whitespace() && self.spaced && self.char(begin + 2).is_alphabetic() => {
                Kind::Break
            }
            '+' => Kind::Sign(Sign::Plus),
            '-' | '−' | '–' => Kind::Sign(Sign::Minus),
            '*' | '×' | '·' | '∙' | '⋅' => Kind::Sign(Sign::Times),
            '/' | '÷' => Kind::Sign(Sign::Over),
            '^' => return self.raised(begin),
            '²' | '³' => {
                self.push(Kind::Sign(Sign::Power), begin);
                whole(if c == '²' { 2 } else { 3 })
            }
            '½' | '⅓' | '¼' | '⅔' | '¾' => return self.vulgar(c, begin),
            '%' => Kind::Percent,
            '€' | '£' | '¥' | '₹' => {
                units::written(self.slice(begin, self.at), Spelling::Strict)
                    .map_or(Kind::Unknown, Kind::Currency)
            }
            '(' | '[' | '{' => {
                if c == '{' {
                    self.single = 0;
                    self.braces.push(false);
                }
                Kind::Open(c)
            }
            '}' if self.braces.pop() == Some(true) => return,
            ')' | ']' | '}' => Kind::Close(c),
            '=' | '!' | '<' | '>' | ':' if next == '=' => {
                self.at += 1;
                Kind::Relation(match c {
                    '<' => Relation::LessEqual,
                    '>' => Relation::GreaterEqual,
                    _ => Relation::Other,
                })
            }
            '=' => Kind::Relation(Relation::Equal),
            '≈' | '≃' => Kind::Relation(Relation::About),
            '<' => Kind::Relation(Relation::Less),
            '>' => Kind::Relation(Relation::Greater),
            '≤' => Kind::Relation(Relation::LessEqual),
            '≥' => Kind::Relation(Relation::GreaterEqual),
            '≠' | '≡' => Kind::Relation(Relation::Other),
            '√' => Kind::Root,
            '∪' => Kind::Union,
            '∞' => Kind::Name("infty"),
            '°' => Kind::Word("°"),
            '_' => return self.index(begin),
            ',' | ';' if !prose => Kind::Comma,
            // "3:4" and "6 : 3" relate numbers; the colon of a sentence has a space after it only.
            ':' if self.after_figure() && self.spaced == next.is_whitespace() => Kind::Unknown,
            '!' if self.after_figure() && !self.spaced => Kind::Unknown,
            '±' | '∓' | '∑' | '∏' | '∫' | '∂' | '@' => Kind::Unknown,
            'x' | 'X' if prose && self.multiplies(begin) => Kind::Sign(Sign::Times),
            c if c.is_alphabetic() => return self.word(begin),
            _ if prose => Kind::Break,
            _ => Kind::Unknown,
        };
        self.push(kind, begin);
    }

    /// True if an "x" is between two operands, where it multiplies.
    fn multiplies(&self, begin: usize) -> bool {
        let blanks = self.run(begin + 1, |c| c == ' ' || c == '$');
        self.after_operand()
            && (self.char(begin + 1 + blanks).is_ascii_digit()
                || matches!(self.char(begin + 1 + blanks), '(' | '[' | '.'))
    }

    fn word(&mut self, begin: usize) {
        if self.notation == Notation::Formula {
            let length = self.run(begin, char::is_alphabetic);
            let word = self.slice(begin, begin + length);
            let blank = |at: usize| self.char(at).is_whitespace() && at < self.chars.len();
            // "ab" is a product; "is" between blanks is a word.
            if length == 2 && !matches!(word, "ln" | "pi") {
                let apart = self.spaced && self.after_operand()
                    || blank(begin + 2) && self.char(begin + 3).is_alphanumeric();
                self.push(
                    if apart {
                        Kind::Unknown
                    } else {
                        Kind::Word(self.slice(begin, begin + 1))
                    },
                    begin,
                );
                self.at = begin + 2;
                return self.push(Kind::Word(self.slice(begin + 1, begin + 2)), begin + 1);
            }
            self.at = begin + length;
            return self.push(Kind::Word(word), begin);
        }
        let part = |c: char| c.is_alphabetic() || c.is_ascii_digit();
        loop {
            self.at += self.run(self.at, part);
            let joined = matches!(self.char(self.at), '\'' | '’' | '-')
                && self.char(self.at + 1).is_alphabetic();
            if !joined {
                break;
            }
            self.at += 1;
        }
        self.push(Kind::Word(self.slice(begin, self.at)), begin);
    }

    /// Reads a number with its separators: "1,000.5", "1.234,5", "86 400", "3,5", `1{,}000`.
    fn number(&mut self, begin: usize) {
        let list_number = self.out.is_empty() && self.notation == Notation::Prose;
        let mut digits = String::new();
        if self.single > 0 {
            self.single -= 1;
            digits.push(self.char(begin));
            return self.finish(&digits, 0, Grouping::Clear, begin);
        }
        let whole = self.digits(begin);
        let (separator, mut at) = self.groups(begin, begin + whole);
        digits.extend(self.slice(begin, at).chars().filter(char::is_ascii_digit));
        let mut grouping = match separator {
            Some(' ') => Grouping::Blank,
            Some(',') if at == begin + whole + 4 => Grouping::Comma,
            _ => Grouping::Clear,
        };
        let mut decimals = 0;
        let width = if self.slice(at, at + 3) == "{,}" {
            3
        } else {
            1
        };
        let tail = self.digits(at + width);
        if tail > 0 && self.is_point(begin, (at, width), separator) {
            let after = self.char(at + width + tail);
            let more = (after == '.' || after == ',' && self.char(at) == ',')
                && self.digits(at + width + tail + 1) > 0;
            if more && after == '.' {
                // "3.11.2" is a version, "4.7.1776" a date.
                self.at = at + self.run(at, |c| c.is_ascii_digit() || c == '.');
                return self.push(Kind::Unknown, begin);
            }
            if !more {
                if self.char(at) == '.'
                    && tail == 3
                    && separator.is_none()
                    && (1..=3).contains(&whole)
                    && !digits.starts_with('0')
                {
                    grouping = Grouping::Dot;
                }
                digits.push('.');
                digits.push_str(self.slice(at + width, at + width + tail));
                decimals = u8::try_from(tail).unwrap_or(u8::MAX);
                at += width + tail;
            }
        }
        self.at = at + self.exponent(at);
        digits.push_str(self.slice(at, self.at));
        // "1. 5 + 3" and "1) 5 + 3" are items of a list.
        if list_number
            && decimals == 0
            && matches!(self.char(self.at), '.' | ')')
            && self.char(self.at + 1).is_whitespace()
        {
            return self.push(Kind::Break, begin);
        }
        self.finish(&digits, decimals, grouping, begin);
    }

    /// True if the sign of a number at a place and of a width is a decimal point.
    fn is_point(&self, begin: usize, (at, width): (usize, usize), separator: Option<char>) -> bool {
        match (self.char(at + width - 1), self.char(at)) {
            (_, '.') => separator != Some('.'),
            ('}', '{') => true,
            (_, ',') => {
                let listed = self.before(begin) == ','
                    && self.before(begin.saturating_sub(1)).is_ascii_digit();
                self.notation == Notation::Prose && separator != Some(',') && !listed
            }
            _ => false,
        }
    }

    /// Returns the length of the exponent at a place: 3 for "e-6".
    fn exponent(&self, at: usize) -> usize {
        let sign = usize::from(matches!(self.char(at + 1), '+' | '-'));
        let digits = self.digits(at + 1 + sign);
        let is_one =
            self.notation == Notation::Prose && matches!(self.char(at), 'e' | 'E') && digits > 0;
        if is_one { 1 + sign + digits } else { 0 }
    }

    fn finish(&mut self, digits: &str, decimals: u8, grouping: Grouping, begin: usize) {
        let value = digits.parse().unwrap_or(f64::NAN);
        self.push(
            Kind::Number {
                value,
                decimals,
                grouping,
            },
            begin,
        );
    }

    /// Returns the thousands separator and the end of the whole number.
    fn groups(&self, begin: usize, mut at: usize) -> (Option<char>, usize) {
        let mut separator = None;
        if !(1..=3).contains(&(at - begin)) || self.char(begin) == '0' {
            return (None, at);
        }
        let prose = self.notation == Notation::Prose;
        loop {
            let (sign, width) = match self.char(at) {
                '{' if self.slice(at, at + 3) == "{,}" => ('}', 3),
                ',' if self.slice(at, at + 3) == r",\!" => ('}', 3),
                '\\' if self.char(at + 1) == ',' => ('\\', 2),
                '\u{a0}' | '\u{2009}' | '\u{202f}' => ('\\', 1),
                '\'' | '’' => ('\'', 1),
                c @ (',' | ' ') if prose => (c, 1),
                // One dot is a decimal point unless a decimal comma follows.
                '.' if prose
                    && (separator.is_some()
                        || self.digits(at + 1) == 3
                            && (self.char(at + 4) == '.' && self.digits(at + 5) == 3
                                || self.char(at + 4) == ','
                                    && matches!(self.digits(at + 5), 1 | 2))) =>
                {
                    ('.', 1)
                }
                _ => break,
            };
            if self.digits(at + width) != 3 || separator.is_some_and(|before| before != sign) {
                break;
            }
            separator = Some(sign);
            at += width + 3;
        }
        (separator, at)
    }

    /// Reads a power, or the degree sign of LaTeX.
    fn raised(&mut self, begin: usize) {
        for degree in [r"^\circ", r"^{\circ}"] {
            if self
                .text
                .get(self.byte(begin)..)
                .is_some_and(|rest| rest.starts_with(degree))
            {
                self.at = begin + degree.len();
                return self.push(Kind::Word("°"), begin);
            }
        }
        self.push(Kind::Sign(Sign::Power), begin);
    }

    fn index(&mut self, begin: usize) {
        let named = matches!(self.last(), Some(Kind::Word(_) | Kind::Name(_)));
        let goes_on = self.char(self.at) == '{' || self.char(self.at).is_alphanumeric();
        if self.spaced || !(named || self.after_figure() && goes_on) {
            return;
        }
        let braced = usize::from(self.char(self.at) == '{');
        let from = self.at + braced;
        let length = self.run(from, |c| c.is_ascii_alphanumeric());
        let length = if braced == 1 { length } else { length.min(1) };
        if length == 0 || braced == 1 && self.char(from + length) != '}' {
            return self.push(Kind::Unknown, begin);
        }
        self.at = from + length + braced;
        self.push(Kind::Index(self.slice(from, from + length)), begin);
    }

    fn vulgar(&mut self, sign: char, begin: usize) {
        let (above, below) = match sign {
            '½' => (1, 2),
            '⅓' => (1, 3),
            '⅔' => (2, 3),
            '¼' => (1, 4),
            _ => (3, 4),
        };
        self.push(Kind::Fraction, begin);
        for part in [above, below] {
            self.push(Kind::Open('{'), begin);
            self.push(whole(part), begin);
            self.push(Kind::Close('}'), begin);
        }
    }
}

fn whole<'a>(value: u8) -> Kind<'a> {
    Kind::Number {
        value: f64::from(value),
        decimals: 0,
        grouping: Grouping::Clear,
    }
}

#[cfg(test)]
mod tests;
