//! Expressions and their values. A value has the number as written, and the amount in base units
//! with its dimensions. Variables have fixed values at a few points, so that formulas can be
//! compared by evaluating them.

use super::units::{Dimensions, Measure, NONE, Unit, plus};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expr {
    Number(Figure),
    Measured {
        of: Box<Expr>,
        measure: Measure,
        units: Vec<&'static Unit>,
        /// Words follow the unit: "2 hours of work".
        vague: bool,
    },
    Variable(String),
    Negative(Box<Expr>),
    Sum(Vec<(Term, Expr)>),
    Product(Vec<(Factor, Expr)>),
    Power(Box<Expr>, Box<Expr>),
    /// The order of the root, and its operand.
    Root(f64, Box<Expr>),
    Function(Function, Box<Expr>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figure {
    pub value: f64,
    pub decimals: u8,
    pub percent: bool,
    /// A million, if that word follows.
    pub scale: f64,
    /// The factor in languages with the other decimal sign: 1000 for "1.234", a thousandth for
    /// "1,234".
    pub other: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Term {
    Plus,
    Minus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Factor {
    Times,
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Sin,
    Cos,
    Tan,
    Ln,
    Log,
    Exp,
}

impl Function {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "sin" => Function::Sin,
            "cos" => Function::Cos,
            "tan" => Function::Tan,
            "ln" => Function::Ln,
            "log" => Function::Log,
            "exp" => Function::Exp,
            _ => return None,
        })
    }

    fn of(self, x: f64) -> f64 {
        match self {
            Function::Sin => x.sin(),
            Function::Cos => x.cos(),
            Function::Tan => x.tan(),
            Function::Ln => x.ln(),
            Function::Log => x.log10(),
            Function::Exp => x.exp(),
        }
    }
}

/// The interpretation of percentages, words such as "million" and decimal signs. A text that says
/// "in millions" omits the word elsewhere. A text in German writes "1.000" for a thousand.
#[derive(Debug, Clone, Copy)]
pub(super) struct ParsedValue {
    pub percent: f64,
    pub scaled: bool,
    pub other_signs: bool,
}

impl ParsedValue {
    pub const LITERAL: ParsedValue = ParsedValue {
        percent: 0.01,
        scaled: true,
        other_signs: false,
    };
}

/// The number of points with values for the variables.
pub(super) const POINTS: usize = 6;

/// An amount with its dimensions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quantity {
    /// As written, without its unit.
    pub plain: f64,
    /// In base units; meaningless if `bare`.
    pub base: f64,
    /// The value of one unit in its last decimal, in base units; 0 for a whole number.
    pub step: f64,
    pub dimensions: Dimensions,
    pub play: f64,
    /// True if a number without a unit is involved, so the dimensions are unknown.
    pub bare: bool,
    /// True if two terms of a sum have different dimensions.
    pub mixed: bool,
}

impl Quantity {
    fn bare(plain: f64, step: f64) -> Self {
        Self {
            plain,
            base: plain,
            step,
            dimensions: NONE,
            play: 0.0,
            bare: true,
            mixed: false,
        }
    }

    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        Self {
            plain: f(self.plain),
            base: f(self.base),
            ..self
        }
    }

    fn plus(self, other: &Quantity, term: Term) -> Self {
        let sign = if term == Term::Plus { 1.0 } else { -1.0 };
        let differ = self.dimensions != other.dimensions;
        Self {
            plain: self.plain + sign * other.plain,
            base: self.base + sign * other.base,
            step: self.step.max(other.step),
            play: self.play.max(other.play),
            bare: self.bare || other.bare || differ,
            mixed: self.mixed || other.mixed || differ && !self.bare && !other.bare,
            ..self
        }
    }

    fn times(self, other: &Quantity, factor: Factor) -> Self {
        let of = |a: f64, b: f64| match factor {
            Factor::Times => a * b,
            Factor::Over => a / b,
        };
        let power = match factor {
            Factor::Times => 1,
            Factor::Over => -1,
        };
        Self {
            plain: of(self.plain, other.plain),
            base: of(self.base, other.base),
            step: 0.0,
            dimensions: plus(self.dimensions, other.dimensions, power),
            play: self.play.max(other.play),
            bare: self.bare || other.bare,
            mixed: self.mixed || other.mixed,
        }
    }
}

impl Figure {
    fn quantity(self, reading: ParsedValue) -> Quantity {
        let factors = [
            (self.percent, reading.percent),
            (reading.scaled, self.scale),
            (reading.other_signs, self.other),
        ];
        let applied = factors.into_iter().filter(|(applies, _)| *applies);
        let factor: f64 = applied.map(|(_, factor)| factor).product();
        let step = if self.decimals > 0 {
            10f64.powi(-i32::from(self.decimals.min(12)))
        } else {
            0.0
        };
        Quantity::bare(self.value * factor, step * factor)
    }
}

/// Joins the values of the parts of a sum or a product.
fn folded<T: Copy>(
    parts: &[(T, Expr)],
    of: impl Fn(&Expr) -> Quantity,
    join: impl Fn(Quantity, &Quantity, T) -> Quantity,
) -> Quantity {
    let mut parts = parts.iter();
    let first = parts.next().map(|(_, expr)| of(expr));
    parts.fold(
        first.unwrap_or(Quantity::bare(f64::NAN, 0.0)),
        |whole, (part, expr)| join(whole, &of(expr), *part),
    )
}

impl Expr {
    pub fn constant(value: f64) -> Self {
        Expr::Number(Figure {
            value,
            decimals: 12,
            percent: false,
            scale: 1.0,
            other: 1.0,
        })
    }

    /// Returns the value at a point; infinite or NaN if it has none.
    pub fn quantity(&self, point: usize, reading: ParsedValue) -> Quantity {
        let of = |expr: &Expr| expr.quantity(point, reading);
        match self {
            Expr::Number(figure) => figure.quantity(reading),
            Expr::Measured {
                of: inner,
                measure,
                vague,
                ..
            } => {
                let inner = of(inner);
                Quantity {
                    base: inner.plain * measure.size + measure.zero,
                    step: inner.step * measure.size,
                    dimensions: measure.dimensions,
                    play: measure.play,
                    bare: *vague || !inner.bare,
                    ..inner
                }
            }
            Expr::Variable(name) => Quantity::bare(value_at(name, point), 0.0),
            Expr::Negative(inner) => of(inner).map(|x| -x),
            Expr::Sum(terms) => folded(terms, of, Quantity::plus),
            Expr::Product(factors) => folded(factors, of, Quantity::times),
            Expr::Power(base, exponent) => {
                let (base, exponent) = (of(base), of(exponent).plain);
                Quantity {
                    bare: true,
                    ..base.map(|x| x.powf(exponent))
                }
            }
            Expr::Root(order, inner) => {
                let root = |x: f64| {
                    if *order == 2.0 {
                        x.sqrt()
                    } else {
                        x.powf(1.0 / order)
                    }
                };
                Quantity {
                    bare: true,
                    ..of(inner).map(root)
                }
            }
            Expr::Function(function, inner) => Quantity {
                bare: true,
                ..of(inner).map(|x| function.of(x))
            },
        }
    }

    /// Returns the direct parts of the expression.
    fn parts(&self) -> Vec<&Expr> {
        match self {
            Expr::Number(_) | Expr::Variable(_) => vec![],
            Expr::Measured { of, .. }
            | Expr::Negative(of)
            | Expr::Root(_, of)
            | Expr::Function(_, of) => vec![of],
            Expr::Power(base, exponent) => vec![base, exponent],
            Expr::Sum(terms) => terms.iter().map(|(_, expr)| expr).collect(),
            Expr::Product(factors) => factors.iter().map(|(_, expr)| expr).collect(),
        }
    }

    /// Returns the expression and all its parts, in order.
    pub fn walk(&self) -> Vec<&Expr> {
        let mut out = vec![];
        let mut open = vec![self];
        while let Some(expr) = open.pop() {
            out.push(expr);
            open.extend(expr.parts().into_iter().rev());
        }
        out
    }

    /// True if the expression calculates something.
    pub fn calculates(&self) -> bool {
        self.walk().iter().any(|expr| {
            matches!(
                expr,
                Expr::Sum(_)
                    | Expr::Product(_)
                    | Expr::Power(..)
                    | Expr::Root(..)
                    | Expr::Function(..)
            )
        })
    }

    /// True if it is one number, perhaps with a sign and a unit.
    pub fn is_single(&self) -> bool {
        match self {
            Expr::Number(_) => true,
            Expr::Measured { of, .. } | Expr::Negative(of) => of.is_single(),
            _ => false,
        }
    }
}

/// Returns a variable's value at a point. It is fixed and differs from that of any other variable.
/// At the later half of the points its sign varies.
fn value_at(name: &str, point: usize) -> f64 {
    // FNV-1a over the name and the point, then the finalizer of SplitMix64.
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in name.bytes().chain([point as u8]) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    let size = 0.3 + 2.4 * ((hash >> 11) as f64 / (1u64 << 53) as f64);
    if 2 * point >= POINTS && hash & 1 == 1 {
        -size
    } else {
        size
    }
}
