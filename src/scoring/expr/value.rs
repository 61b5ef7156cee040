//! Values of expressions: the number as written, and the amount in base units with its dimensions.
//! Variables have fixed values at a few points, so that formulas can be compared by evaluating them.

use std::hash::BuildHasher as _;

use rustc_hash::FxBuildHasher;

use super::lexer::Grouping;
use super::units::{Dimensions, Measure, NONE, plus};

/// A number as written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figure {
    pub value: f64,
    pub decimals: u8,
    pub grouping: Grouping,
    pub percent: bool,
    /// A million, if that word follows; else 1.
    pub scale: f64,
}

impl Figure {
    /// Returns the factor in languages with the other decimal sign: 1000 for "1.234", a thousandth
    /// for "1,234".
    pub fn other(&self) -> f64 {
        match self.grouping {
            Grouping::Dot => 1e3,
            Grouping::Comma => 1e-3,
            Grouping::Clear => 1.0,
        }
    }

    /// True if it is a whole number without a percent sign or scale.
    pub fn is_whole(&self) -> bool {
        self.decimals == 0 && self.scale == 1.0 && !self.percent
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Factor {
    Times,
    Over,
}

/// The interpretation of decimal signs and variables. A text in German writes "1.000" for a
/// thousand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interpretation {
    pub other_signs: bool,
    /// "80 + 15%" is 15 % more than 80.
    pub percent_of_sum: bool,
    /// "6 ^ 3" is the exclusive or of bits, as in most programming languages.
    pub xor: bool,
    /// Variables have the values of this point.
    pub point: usize,
}

impl Interpretation {
    pub const LITERAL: Interpretation = Interpretation {
        other_signs: false,
        percent_of_sum: false,
        xor: false,
        point: 0,
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
    /// The share by which it may be off: see [`Measure`].
    pub tolerance: f64,
    /// True if a number without a unit is involved, so the dimensions are unknown.
    pub bare: bool,
    /// True if two terms of a sum have different dimensions.
    pub mixed: bool,
    /// True for a percentage or a fraction, which "of" multiplies.
    pub share: bool,
}

impl Quantity {
    pub fn bare(plain: f64) -> Self {
        Self {
            plain,
            base: plain,
            step: 0.0,
            dimensions: NONE,
            tolerance: 0.0,
            bare: true,
            mixed: false,
            share: false,
        }
    }

    pub fn of(figure: &Figure, interpretation: Interpretation) -> Self {
        let mut factor = figure.scale * if figure.percent { 0.01 } else { 1.0 };
        if interpretation.other_signs {
            factor *= figure.other();
        }
        let step = match figure.decimals {
            0 => 0.0,
            decimals => 10f64.powi(-i32::from(decimals.min(12))),
        };
        Self {
            step: step * factor,
            share: figure.percent,
            ..Self::bare(figure.value * factor)
        }
    }

    /// Returns the value of a variable at a point. It differs from that of any other variable. At
    /// the later half of the points its sign varies.
    pub fn variable(name: &str, point: usize) -> Self {
        let hash = FxBuildHasher.hash_one((name, point));
        let size = 0.3 + 2.4 * ((hash >> 11) as f64 / (1u64 << 53) as f64);
        let is_negative = 2 * point >= POINTS && hash & 1 == 1;
        Self::bare(if is_negative { -size } else { size })
    }

    /// Returns a number with this unit; `vague` if words follow the unit.
    pub fn measured(self, measure: &Measure, vague: bool) -> Self {
        Self {
            base: self.plain * measure.size + measure.zero,
            step: self.step * measure.size,
            dimensions: measure.dimensions,
            tolerance: measure.tolerance,
            bare: vague || !self.bare,
            ..self
        }
    }

    pub fn negated(self) -> Self {
        Self {
            plain: -self.plain,
            base: -self.base,
            ..self
        }
    }

    /// Returns the value of a power, root or function. Its unit is unknown.
    pub fn map(self, f: impl Fn(f64) -> f64) -> Self {
        Self {
            mixed: self.mixed,
            ..Self::bare(f(self.plain))
        }
    }

    pub fn plus(self, other: &Quantity) -> Self {
        let differ = self.dimensions != other.dimensions;
        Self {
            plain: self.plain + other.plain,
            base: self.base + other.base,
            step: self.step.max(other.step),
            dimensions: self.dimensions,
            tolerance: self.tolerance.max(other.tolerance),
            bare: self.bare || other.bare || differ,
            mixed: self.mixed || other.mixed || differ && !self.bare && !other.bare,
            share: false,
        }
    }

    pub fn times(self, other: &Quantity, factor: Factor) -> Self {
        let (power, of): (i8, fn(f64, f64) -> f64) = match factor {
            Factor::Times => (1, |a, b| a * b),
            Factor::Over => (-1, |a, b| a / b),
        };
        Self {
            plain: of(self.plain, other.plain),
            base: of(self.base, other.base),
            step: 0.0,
            dimensions: plus(self.dimensions, other.dimensions, power),
            tolerance: self.tolerance.max(other.tolerance),
            bare: self.bare || other.bare,
            mixed: self.mixed || other.mixed,
            share: factor == Factor::Over,
        }
    }
}
