//! Parses tokens as an expression and evaluates it on the way. In prose a word after a number is
//! its unit or what it counts. In a formula it is a product of variables.

use super::lexer::{Kind, Notation, Sign, Token};
use super::units::{Measure, Spelling, Unit};
use super::value::{Factor, Figure, Interpretation, Quantity};
use super::words::{self, Role, shares_words_with_digits};

const MAX_DEPTH: usize = 16;

/// What an expression consists of.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub figures: Vec<Figure>,
    pub units: Vec<&'static Unit>,
    /// The last measure.
    pub measure: Option<Measure>,
    /// True if it calculates something.
    pub calculates: bool,
    /// True if it multiplies.
    pub multiplies: bool,
    /// True if it divides, raises to a power or takes a root: its result may be rounded.
    pub divides: bool,
}

pub(super) struct Parser<'t, 'a> {
    tokens: &'t [Token<'a>],
    pub at: usize,
    end: usize,
    notation: Notation,
    pub(super) spelling: Spelling,
    interpretation: Interpretation,
    pub parts: Parts,
}

impl<'t, 'a> Parser<'t, 'a> {
    /// Parses prose from a token up to another one.
    pub fn new(
        tokens: &'t [Token<'a>],
        from: usize,
        end: usize,
        interpretation: Interpretation,
    ) -> Self {
        Self {
            tokens,
            at: from,
            end,
            notation: Notation::Prose,
            spelling: Spelling::Strict,
            interpretation,
            parts: Parts::default(),
        }
    }

    /// Parses all tokens in a notation, with the spelling of answers.
    pub fn of(tokens: &'t [Token<'a>], notation: Notation, interpretation: Interpretation) -> Self {
        Self {
            notation,
            spelling: Spelling::Careless,
            ..Self::new(tokens, 0, tokens.len(), interpretation)
        }
    }

    pub(super) fn token(&self, at: usize) -> Option<&'t Token<'a>> {
        self.tokens.get(at).filter(|_| at < self.end)
    }

    pub(super) fn kind(&self, at: usize) -> Option<Kind<'a>> {
        self.token(at).map(|token| token.kind)
    }

    pub(super) fn word(&self, at: usize) -> Option<&'a str> {
        match self.kind(at) {
            Some(Kind::Word(word)) => Some(word),
            _ => None,
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

    pub(super) fn ends(&self, at: usize) -> bool {
        at >= self.end
    }

    pub(super) fn figure_at(&self, at: usize) -> bool {
        matches!(self.kind(at), Some(Kind::Number { .. }))
    }

    pub(super) fn value_of(&mut self, figure: Figure) -> Quantity {
        self.parts.figures.push(figure);
        Quantity::of(&figure, self.interpretation)
    }

    /// Parses exactly these tokens as an expression.
    pub fn whole(&mut self) -> Option<Quantity> {
        self.sum(0).filter(|_| self.ends(self.at))
    }

    /// True if an operand of prose begins here.
    pub fn starts(&self, at: usize) -> bool {
        match self.kind(at) {
            Some(Kind::Number { .. } | Kind::Fraction | Kind::Root) => true,
            Some(Kind::Currency(_)) => {
                self.figure_at(at + 1 + usize::from(self.is_sign(at + 1, Sign::Minus)))
            }
            Some(Kind::Open(_)) => {
                let before = at.checked_sub(1).and_then(|before| self.word(before));
                let pair = self.token(at).and_then(|token| token.pair);
                (self.spaced(at) || before.is_none()) && pair.is_some_and(|pair| pair < self.end)
            }
            Some(Kind::Word(word)) => matches!(word, "pi" | "π" | "sqrt"),
            _ => false,
        }
    }

    /// True if the token here makes its surroundings part of an unknown value.
    pub fn opaque(&self, at: usize) -> bool {
        let word = match self.kind(at) {
            Some(Kind::Unknown | Kind::Sign(_)) => return true,
            Some(Kind::Word(word)) => word,
            _ => return false,
        };
        let called = !self.spaced(at + 1) && matches!(self.kind(at + 1), Some(Kind::Open(_)));
        let letters = word.chars().count();
        let before = at.checked_sub(1);
        let behind_number = !self.spaced(at) && before.is_some_and(|it| self.figure_at(it));
        let may_be_variable = word.starts_with(shares_words_with_digits);
        let is_variable = may_be_variable
            && (letters == 1 && !self.lone_letter(at, word) || letters < 4 && behind_number);
        let is_raised = self.is_sign(at + 1, Sign::Power);
        (called || is_variable || is_raised) && !self.starts(at)
            || word.starts_with('\\')
            || words::is(word, Role::Opaque)
    }

    /// True for the letter of "5 a day" or "a 5 % share": between blanks and beside no operator, it
    /// is prose.
    fn lone_letter(&self, at: usize, letter: &str) -> bool {
        let next = self.word(at + 1);
        let is_word = next.is_some_and(|next| next.chars().count() > 1);
        let is_number = self.spaced(at + 1) && self.starts(at + 1);
        !matches!(letter, "x" | "X") && self.spaced(at) && (is_word || is_number)
    }

    /// True if the word here is an operator, because an operand follows it.
    pub(super) fn says_operator(&self, at: usize) -> bool {
        let is_operator = |word| words::is(word, Role::Operator);
        self.prose() && self.word(at).is_some_and(is_operator) && self.starts(at + 1)
    }

    /// Parses one number with its sign and unit, and nothing that continues it.
    pub fn amount(&mut self) -> Option<Quantity> {
        let negative = self.eat(Kind::Sign(Sign::Minus));
        self.at += usize::from(!negative && self.is_sign(self.at, Sign::Plus));
        let value = match self.kind(self.at)? {
            Kind::Currency(unit) => self.money(unit)?,
            _ => {
                let bare = self.figure()?;
                let behind = self.at;
                match self.unit() {
                    // "km/sa" is as a whole no unit of the table.
                    Some(_) if self.is_sign(self.at, Sign::Over) && self.noun(self.at + 1) => {
                        self.at = behind;
                        (self.parts.measure, self.parts.units) = (None, vec![]);
                        bare
                    }
                    Some(measure) => {
                        let whole = bare.measured(&measure, false);
                        self.with_smaller(whole)
                    }
                    None => bare,
                }
            }
        };
        let is_over = !self.opaque(self.at) && !self.figure_at(self.at) && !self.joins();
        is_over.then(|| if negative { value.negated() } else { value })
    }

    /// Returns a quantity with the amounts in smaller units behind it: 90 minutes for "1 h 30 min".
    fn with_smaller(&mut self, mut whole: Quantity) -> Quantity {
        while let (Some(larger), true) = (self.parts.measure, self.figure_at(self.at)) {
            let (start, known) = (self.at, self.parts.figures.len());
            let part = self.figure();
            let part = part.and_then(|it| Some((it, self.unit()?)));
            let part = part.filter(|(part, measure)| {
                measure.dimensions == larger.dimensions
                    && measure.size < larger.size
                    && measure.zero == 0.0
                    && part.plain * measure.size < larger.size
            });
            let Some((part, measure)) = part else {
                self.at = start;
                self.parts.figures.truncate(known);
                self.parts.measure = Some(larger);
                break;
            };
            let sum = whole.plus(&part.measured(&measure, false));
            whole = Quantity {
                plain: sum.base / measure.size,
                ..sum
            };
        }
        whole
    }

    pub fn sum(&mut self, depth: usize) -> Option<Quantity> {
        let mut sum = self.product(depth)?;
        loop {
            let is_less = self.is_sign(self.at, Sign::Minus);
            if !is_less && !self.is_sign(self.at, Sign::Plus) {
                break;
            }
            self.at += 1;
            self.parts.calculates = true;
            let mut next = self.product(depth)?;
            let is_percent = self.parts.figures.last().is_some_and(|it| it.percent);
            if self.interpretation.percent_of_sum && is_percent && next.share && !sum.share {
                next = sum.times(&next, Factor::Times);
            }
            sum = sum.plus(&if is_less { next.negated() } else { next });
        }
        let goes_on = self.opaque(self.at) || self.says_operator(self.at);
        (!(self.prose() && goes_on)).then_some(sum)
    }

    fn product(&mut self, depth: usize) -> Option<Quantity> {
        let mut is_figure = self.figure_at(self.at);
        let mut last = Factor::Times;
        let mut product = self.signed(depth)?;
        loop {
            if let Some(factor) = self.factor() {
                self.at += 1;
                self.parts.divides |= factor == Factor::Over;
                self.parts.multiplies |= factor == Factor::Times;
                product = product.times(&self.signed(depth)?, factor);
                last = factor;
            } else if self.joins() {
                // "1/2x" is ambiguous, and "2 3" is no product.
                if last == Factor::Over || self.figure_at(self.at) {
                    return None;
                }
                // "3\frac{1}{2}" is three and a half.
                let is_mixed = is_figure && self.plain_fraction();
                let next = self.power(depth)?;
                product = if is_mixed {
                    product.plus(&next)
                } else {
                    product.times(&next, Factor::Times)
                };
            } else {
                return Some(product);
            }
            self.parts.calculates = true;
            is_figure = false;
        }
    }

    fn factor(&self) -> Option<Factor> {
        match self.kind(self.at)? {
            Kind::Sign(Sign::Times) => Some(Factor::Times),
            Kind::Sign(Sign::Over) => Some(Factor::Over),
            _ => None,
        }
    }

    /// True if a factor follows without an operator.
    fn joins(&self) -> bool {
        let behind = self.at.checked_sub(1).and_then(|before| self.kind(before));
        match self.kind(self.at) {
            Some(Kind::Fraction | Kind::Root) => true,
            Some(Kind::Open(_)) if self.prose() => {
                self.starts(self.at)
                    && match behind {
                        Some(Kind::Close('}')) => true,
                        Some(Kind::Number { .. } | Kind::Close(')')) => !self.spaced(self.at),
                        _ => false,
                    }
            }
            // "14 pi", "2 sqrt(3)"
            Some(Kind::Word(_)) if self.prose() => {
                let is_factor =
                    matches!(behind, Some(Kind::Number { .. } | Kind::Close(')' | '}')));
                is_factor && self.starts(self.at)
            }
            Some(Kind::Open(_) | Kind::Number { .. } | Kind::Word(_)) => !self.prose(),
            _ => false,
        }
    }

    /// True if the fraction here consists of two numbers.
    fn plain_fraction(&self) -> bool {
        let group = |at: usize| {
            let braced = usize::from(self.kind(at) == Some(Kind::Open('{')));
            let is_plain = self.figure_at(at + braced)
                && (braced == 0 || self.kind(at + 2) == Some(Kind::Close('}')));
            is_plain.then_some(at + 1 + 2 * braced)
        };
        self.kind(self.at) == Some(Kind::Fraction) && group(self.at + 1).and_then(group).is_some()
    }

    fn signed(&mut self, depth: usize) -> Option<Quantity> {
        if self.eat(Kind::Sign(Sign::Minus)) {
            return self.power(depth).map(Quantity::negated);
        }
        self.eat(Kind::Sign(Sign::Plus));
        self.power(depth)
    }

    fn power(&mut self, depth: usize) -> Option<Quantity> {
        let base = self.operand(depth)?;
        if !self.eat(Kind::Sign(Sign::Power)) {
            return Some(base);
        }
        let negative = self.eat(Kind::Sign(Sign::Minus));
        let exponent = self.operand(depth)?.plain;
        let exponent = if negative { -exponent } else { exponent };
        (self.parts.calculates, self.parts.divides) = (true, true);
        // "x^2^3" is ambiguous.
        let is_xor = self.interpretation.xor;
        let power = |x: f64| {
            if is_xor {
                exclusive_or(x, exponent)
            } else {
                x.powf(exponent)
            }
        };
        (!self.is_sign(self.at, Sign::Power)).then(|| base.map(power))
    }

    fn operand(&mut self, depth: usize) -> Option<Quantity> {
        if depth > MAX_DEPTH {
            return None;
        }
        let bare = match self.kind(self.at)? {
            Kind::Currency(unit) => return self.money(unit),
            Kind::Number { .. } => self.figure()?,
            Kind::Open(open) => {
                self.at += 1;
                self.closed(open, depth)?
            }
            Kind::Fraction => {
                self.at += 1;
                let (above, below) = (self.group(depth)?, self.group(depth)?);
                (self.parts.calculates, self.parts.divides) = (true, true);
                above.times(&below, Factor::Over)
            }
            Kind::Root => {
                self.at += 1;
                self.root(depth)?
            }
            Kind::Word(name) => {
                self.at += 1;
                self.named(name, depth)?
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
    fn named(&mut self, name: &str, depth: usize) -> Option<Quantity> {
        match name {
            "pi" | "π" => Some(Quantity::bare(std::f64::consts::PI)),
            "sqrt" => self.root(depth),
            _ if self.prose() => None,
            "e" => Some(Quantity::bare(std::f64::consts::E)),
            _ => match function(name) {
                Some(function) => self.argument(depth + 1).map(|it| it.map(function)),
                None if name.chars().count() == 1 => {
                    Some(Quantity::variable(name, self.interpretation.point))
                }
                None => None,
            },
        }
    }

    /// Parses the argument of a function: "2x" of "sin 2x cos x".
    fn argument(&mut self, depth: usize) -> Option<Quantity> {
        // "cos(x)^2" is the square of the cosine.
        if matches!(self.kind(self.at), Some(Kind::Open(_))) {
            return self.operand(depth);
        }
        let mut argument = self.power(depth)?;
        while self
            .word(self.at)
            .is_some_and(|word| function(word).is_none())
        {
            argument = argument.times(&self.power(depth)?, Factor::Times);
        }
        Some(argument)
    }

    fn root(&mut self, depth: usize) -> Option<Quantity> {
        let mut order = 2.0;
        if self.eat(Kind::Open('[')) {
            order = self.figure()?.plain;
            if !self.eat(Kind::Close(']')) {
                return None;
            }
        }
        (self.parts.calculates, self.parts.divides) = (true, true);
        // In prose a root takes only its number: the unit belongs to the whole.
        let inside = if self.figure_at(self.at) {
            self.figure()?
        } else {
            self.operand(depth + 1)?
        };
        Some(inside.map(|x| {
            if order == 2.0 {
                x.sqrt()
            } else {
                x.powf(1.0 / order)
            }
        }))
    }

    fn group(&mut self, depth: usize) -> Option<Quantity> {
        if self.eat(Kind::Open('{')) {
            return self.closed('{', depth);
        }
        self.figure()
    }

    fn closed(&mut self, open: char, depth: usize) -> Option<Quantity> {
        let value = self.sum(depth + 1)?;
        let close = match open {
            '(' => ')',
            '[' => ']',
            _ => '}',
        };
        self.eat(Kind::Close(close)).then_some(value)
    }
}

fn function(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name.trim_start_matches('\\') {
        "sin" => f64::sin,
        "cos" => f64::cos,
        "tan" => f64::tan,
        "ln" => f64::ln,
        "log" => f64::log10,
        "exp" => f64::exp,
        _ => return None,
    })
}

/// Returns the exclusive or of two whole numbers of 32 bits; NaN for other numbers.
fn exclusive_or(a: f64, b: f64) -> f64 {
    let bits =
        |x: f64| (x.fract() == 0.0 && (0.0..4_294_967_296.0).contains(&x)).then_some(x as u32);
    let both = bits(a).zip(bits(b));
    both.map_or(f64::NAN, |(a, b)| f64::from(a ^ b))
}
