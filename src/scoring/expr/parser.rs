//! Parses tokens as an expression. In prose a word after a number is its unit or what it counts. In
//! a formula it is a product of variables.

use super::lexer::{Kind, Notation, Sign, Token};
use super::units::Spelling;
use super::value::{Expr, Factor, Function, Term};
use super::words::{self, Role};

const MAX_DEPTH: usize = 16;
/// The most words between a number and the next operator ("5 legs of each × 4").
pub(super) const MAX_NOUNS: usize = 3;

pub(super) struct Parser<'t, 'a> {
    tokens: &'t [Token<'a>],
    pub at: usize,
    pub end: usize,
    notation: Notation,
    pub spelling: Spelling,
}

impl<'t, 'a> Parser<'t, 'a> {
    pub fn new(tokens: &'t [Token<'a>], from: usize, end: usize, notation: Notation) -> Self {
        Self {
            tokens,
            at: from,
            end,
            notation,
            spelling: Spelling::Strict,
        }
    }

    pub fn careless(self) -> Self {
        Self {
            spelling: Spelling::Careless,
            ..self
        }
    }

    fn token(&self, at: usize) -> Option<&'t Token<'a>> {
        self.tokens.get(at).filter(|_| at < self.end)
    }

    pub(super) fn kind(&self, at: usize) -> Option<Kind<'a>> {
        self.token(at).map(|token| token.kind)
    }

    pub(super) fn word(&self, at: usize) -> Option<&'a str> {
        if let Some(Kind::Word(word)) = self.kind(at) {
            Some(word)
        } else {
            None
        }
    }

    pub(super) fn spaced(&self, at: usize) -> bool {
        self.token(at).is_none_or(|token| token.spaced)
    }

    pub(super) fn is_sign(&self, at: usize, sign: Sign) -> bool {
        self.kind(at) == Some(Kind::Sign(sign))
    }

    pub(super) fn eat(&mut self, kind: Kind<'a>) -> bool {
        let found = self.kind(self.at) == Some(kind);
        self.at += usize::from(found);
        found
    }

    pub(super) fn prose(&self) -> bool {
        self.notation == Notation::Prose
    }

    /// Parses exactly these tokens as an expression.
    pub fn whole(mut self) -> Option<Expr> {
        self.sum(0).filter(|_| self.at == self.end)
    }

    /// True if an operand of prose begins here.
    pub fn starts(&self, at: usize) -> bool {
        match self.kind(at) {
            Some(Kind::Number { .. } | Kind::Fraction | Kind::Root) => true,
            Some(Kind::Currency(_)) => {
                self.figure_at(at + 1 + usize::from(self.is_sign(at + 1, Sign::Minus)))
            }
            Some(Kind::Open(open)) => {
                let called = at.checked_sub(1).is_some_and(|before| {
                    !self.spaced(at)
                        && matches!(self.kind(before), Some(Kind::Word(_) | Kind::Name(_)))
                });
                open != 's'
                    && !called
                    && self
                        .token(at)
                        .and_then(|token| token.pair)
                        .is_some_and(|pair| pair < self.end)
            }
            Some(Kind::Word(word) | Kind::Name(word)) => matches!(word, "pi" | "π" | "sqrt"),
            _ => false,
        }
    }

    /// True if the token here makes its surroundings part of an unknown value.
    pub fn opaque(&self, at: usize) -> bool {
        match self.kind(at) {
            Some(Kind::Unknown | Kind::Index(_) | Kind::Sign(_)) => true,
            Some(Kind::Name(name)) => name != "pi",
            Some(Kind::Word(word)) => {
                let called =
                    !self.spaced(at + 1) && matches!(self.kind(at + 1), Some(Kind::Open(_)));
                let letters = word.chars().count();
                let behind_number = !self.spaced(at)
                    && at
                        .checked_sub(1)
                        .is_some_and(|before| self.figure_at(before));
                let variable =
                    letters == 1 && !self.lone_letter(at, word) || letters < 4 && behind_number;
                let raised = self.is_sign(at + 1, Sign::Power);
                (called || variable || raised) && !self.starts(at) || words::is(word, Role::Opaque)
            }
            _ => false,
        }
    }

    /// True for the letter of "5 a day" or "a 5 % share": between blanks and beside no operator, it
    /// is prose.
    fn lone_letter(&self, at: usize, letter: &str) -> bool {
        let word = self
            .word(at + 1)
            .is_some_and(|next| next.chars().count() > 1);
        let number = self.spaced(at + 1) && self.starts(at + 1);
        !matches!(letter, "x" | "X") && self.spaced(at) && (word || number)
    }

    pub(super) fn figure_at(&self, at: usize) -> bool {
        matches!(self.kind(at), Some(Kind::Number { .. }))
    }

    /// True if the word here is an operator, because an operand follows it.
    pub(super) fn says(&self, at: usize, role: Role) -> bool {
        self.prose()
            && self.word(at).is_some_and(|word| words::is(word, role))
            && self.starts(at + 1)
    }

    /// Parses one number with its sign and unit, and nothing that continues it.
    pub fn amount(&mut self) -> Option<Expr> {
        let negative = self.is_sign(self.at, Sign::Minus);
        self.at += usize::from(negative || self.is_sign(self.at, Sign::Plus));
        let expr = match self.kind(self.at)? {
            Kind::Currency(unit) => self.money(unit)?,
            Kind::Number { .. } => {
                let bare = Expr::Number(self.figure()?);
                match self.unit() {
                    Some((measure, units)) => Expr::Measured {
                        of: Box::new(bare),
                        measure,
                        units,
                        vague: false,
                    },
                    None => bare,
                }
            }
            _ => return None,
        };
        let ends = !self.opaque(self.at) && !self.figure_at(self.at) && !self.joins();
        ends.then(|| {
            if negative {
                Expr::Negative(Box::new(expr))
            } else {
                expr
            }
        })
    }

    pub fn sum(&mut self, depth: usize) -> Option<Expr> {
        let mut terms = vec![(Term::Plus, self.product(depth)?)];
        loop {
            let term = if self.is_sign(self.at, Sign::Plus) || self.says(self.at, Role::Plus) {
                Term::Plus
            } else if self.is_sign(self.at, Sign::Minus) || self.says(self.at, Role::Minus) {
                Term::Minus
            } else {
                break;
            };
            self.at += 1;
            terms.push((term, self.product(depth)?));
        }
        if self.prose() && self.opaque(self.at) {
            return None;
        }
        Some(if terms.len() == 1 {
            terms.pop()?.1
        } else {
            Expr::Sum(terms)
        })
    }

    fn product(&mut self, depth: usize) -> Option<Expr> {
        let mut mixed = self.figure_at(self.at);
        let mut factors = vec![(Factor::Times, self.signed(depth)?)];
        loop {
            if let Some(factor) = self.factor(&factors) {
                self.at += 1;
                factors.push((factor, self.signed(depth)?));
            } else if self.joins() {
                // "1/2x" is ambiguous, and "2 3" is no product.
                let divided = matches!(factors.last(), Some((Factor::Over, _)));
                if divided || self.figure_at(self.at) {
                    return None;
                }
                let fraction = mixed && self.plain_fraction();
                let next = self.power(depth)?;
                match factors.pop() {
                    // "3\frac{1}{2}" is three and a half.
                    Some((factor, whole)) if fraction => {
                        factors.push((
                            factor,
                            Expr::Sum(vec![(Term::Plus, whole), (Term::Plus, next)]),
                        ));
                    }
                    last => factors.extend(last.into_iter().chain([(Factor::Times, next)])),
                }
            } else {
                break;
            }
            mixed = false;
        }
        Some(if factors.len() == 1 {
            factors.pop()?.1
        } else {
            Expr::Product(factors)
        })
    }

    fn factor(&self, before: &[(Factor, Expr)]) -> Option<Factor> {
        let at = self.at;
        let share = || match before.last() {
            Some((Factor::Over, _)) => true,
            Some((_, Expr::Number(figure))) => figure.percent,
            Some((_, expr)) => {
                matches!(expr, Expr::Product(parts) if matches!(parts.last(), Some((Factor::Over, _))))
            }
            None => false,
        };
        match self.kind(at)? {
            Kind::Sign(Sign::Times) => Some(Factor::Times),
            Kind::Sign(Sign::Over) => Some(Factor::Over),
            Kind::Word(_) if self.says(at, Role::Times) || self.says(at, Role::Of) && share() => {
                Some(Factor::Times)
            }
            _ => None,
        }
    }

    /// True if a factor follows without an operator.
    fn joins(&self) -> bool {
        let Some(kind) = self.kind(self.at) else {
            return false;
        };
        if self.prose() {
            return match kind {
                Kind::Open(open) => {
                    let behind = self.at.checked_sub(1).and_then(|before| self.kind(before));
                    open != 's'
                        && self.starts(self.at)
                        && match behind {
                            Some(Kind::Close('}')) => true,
                            Some(Kind::Number { .. } | Kind::Close(')')) => !self.spaced(self.at),
                            _ => false,
                        }
                }
                Kind::Fraction | Kind::Root => true,
                _ => false,
            };
        }
        matches!(
            kind,
            Kind::Number { .. }
                | Kind::Word(_)
                | Kind::Name(_)
                | Kind::Fraction
                | Kind::Root
                | Kind::Open('(' | '[' | '{')
        )
    }

    /// True if the fraction here consists of two numbers.
    fn plain_fraction(&self) -> bool {
        let mut at = self.at + 1;
        for _ in 0..2 {
            let braced = self.kind(at) == Some(Kind::Open('{'));
            let end = at + if braced { 3 } else { 1 };
            if !self.figure_at(at + usize::from(braced))
                || braced && self.kind(end - 1) != Some(Kind::Close('}'))
            {
                return false;
            }
            at = end;
        }
        self.kind(self.at) == Some(Kind::Fraction)
    }

    fn signed(&mut self, depth: usize) -> Option<Expr> {
        if self.eat(Kind::Sign(Sign::Plus)) {
            return self.power(depth);
        }
        if self.eat(Kind::Sign(Sign::Minus)) {
            return self.power(depth).map(|expr| Expr::Negative(Box::new(expr)));
        }
        self.power(depth)
    }

    fn power(&mut self, depth: usize) -> Option<Expr> {
        let base = self.operand(depth)?;
        let exponent = if self.eat(Kind::Sign(Sign::Power)) {
            let negative = self.eat(Kind::Sign(Sign::Minus));
            let exponent = self.operand(depth)?;
            if negative {
                Expr::Negative(Box::new(exponent))
            } else {
                exponent
            }
        } else {
            return Some(base);
        };
        // "x^2^3" is ambiguous.
        (!self.is_sign(self.at, Sign::Power))
            .then(|| Expr::Power(Box::new(base), Box::new(exponent)))
    }

    fn operand(&mut self, depth: usize) -> Option<Expr> {
        if depth > MAX_DEPTH {
            return None;
        }
        let token = *self.token(self.at)?;
        let bare = match token.kind {
            Kind::Currency(unit) => return self.money(unit),
            Kind::Number { .. } => {
                let figure = self.figure()?;
                return Some(if self.prose() {
                    self.counted(figure)
                } else {
                    Expr::Number(figure)
                });
            }
            Kind::Open(open) if open != 's' => {
                self.at += 1;
                self.closed(open, depth)?
            }
            Kind::Fraction => {
                self.at += 1;
                let (above, below) = (self.group(depth)?, self.group(depth)?);
                Expr::Product(vec![(Factor::Times, above), (Factor::Over, below)])
            }
            Kind::Root => {
                self.at += 1;
                self.root(depth)?
            }
            Kind::Word(name) | Kind::Name(name) => {
                self.at += 1;
                self.named(name, matches!(token.kind, Kind::Name(_)), depth)?
            }
            _ => return None,
        };
        Some(if self.prose() {
            self.measured(bare)
        } else {
            bare
        })
    }

    /// Parses a constant, a function or a variable.
    fn named(&mut self, name: &str, command: bool, depth: usize) -> Option<Expr> {
        match name {
            "pi" | "π" => return Some(Expr::constant(std::f64::consts::PI)),
            "sqrt" => return self.root(depth),
            _ if self.prose() => return None,
            "e" => return Some(Expr::constant(std::f64::consts::E)),
            _ => {}
        }
        if let Some(function) = Function::named(name) {
            // Powers and bases of functions have too many notations.
            if matches!(self.kind(self.at)?, Kind::Sign(_) | Kind::Index(_)) {
                return None;
            }
            let bracketed = matches!(self.kind(self.at)?, Kind::Open(_));
            let argument = if bracketed {
                self.operand(depth + 1)?
            } else {
                self.argument(depth + 1)?
            };
            return Some(Expr::Function(function, Box::new(argument)));
        }
        if !command && name.chars().count() > 1 {
            return None;
        }
        let mut name = name.to_owned();
        if let Some(Kind::Index(index)) = self.kind(self.at) {
            self.at += 1;
            name = format!("{name}_{index}");
        }
        Some(Expr::Variable(name))
    }

    /// Parses the argument of a function without brackets: "2x" of "sin 2x cos x".
    fn argument(&mut self, depth: usize) -> Option<Expr> {
        let mut factors = vec![(Factor::Times, self.power(depth)?)];
        while match self.kind(self.at) {
            Some(Kind::Word(name) | Kind::Name(name)) => Function::named(name).is_none(),
            Some(Kind::Root | Kind::Fraction) => true,
            _ => false,
        } {
            factors.push((Factor::Times, self.power(depth)?));
        }
        Some(Expr::Product(factors))
    }

    fn root(&mut self, depth: usize) -> Option<Expr> {
        let mut order = 2.0;
        if self.eat(Kind::Open('[')) {
            let Some(Kind::Number { value, .. }) = self.kind(self.at) else {
                return None;
            };
            self.at += 1;
            order = value;
            if !self.eat(Kind::Close(']')) {
                return None;
            }
        }
        // In prose a root takes only its number: the unit belongs to the whole.
        let inside = if let Some(Kind::Number { .. }) = self.kind(self.at) {
            Expr::Number(self.figure()?)
        } else {
            self.operand(depth + 1)?
        };
        Some(Expr::Root(order, Box::new(inside)))
    }

    fn group(&mut self, depth: usize) -> Option<Expr> {
        if self.eat(Kind::Open('{')) {
            return self.closed('{', depth);
        }
        if self.figure_at(self.at) {
            self.figure().map(Expr::Number)
        } else {
            None
        }
    }

    fn closed(&mut self, open: char, depth: usize) -> Option<Expr> {
        let value = self.sum(depth + 1)?;
        let close = match open {
            '(' => ')',
            '[' => ']',
            _ => '}',
        };
        self.eat(Kind::Close(close)).then_some(value)
    }
}
