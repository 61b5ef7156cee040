//! Parses figures with units, money and counted things.

use super::lexer::{Grouping, Kind, Sign};
use super::parser::{MAX_NOUNS, Parser};
use super::units::{self, Measure, NONE, Spelling, Unit};
use super::value::{Expr, Figure, Term};
use super::words::{self, Role};

impl<'a> Parser<'_, 'a> {
    /// Parses a number with its percent sign and scale.
    pub(super) fn figure(&mut self) -> Option<Figure> {
        let Some(Kind::Number {
            value,
            decimals,
            grouping,
        }) = self.kind(self.at)
        else {
            return None;
        };
        self.at += 1;
        let other = match grouping {
            Grouping::Dot => 1e3,
            Grouping::Comma => 1e-3,
            Grouping::Clear | Grouping::Blank => 1.0,
        };
        let mut figure = Figure {
            value,
            decimals,
            percent: false,
            scale: 1.0,
            other,
        };
        let word = self.word(self.at).filter(|_| self.prose());
        if self.kind(self.at) == Some(Kind::Percent)
            || word.is_some_and(|word| words::is(word, Role::Percent))
        {
            self.at += 1;
            figure.percent = true;
        } else if let Some(scale) = word.filter(|word| self.scales(word)).and_then(words::scale) {
            self.at += 1;
            figure.scale = scale;
        }
        Some(figure)
    }

    /// True if a word is a scale such as "million". "5M" and "5k" have no space.
    pub(super) fn scales(&self, word: &str) -> bool {
        (word.chars().count() > 1 || !self.spaced(self.at))
            && units::written(word, self.spelling).is_none()
    }

    /// Parses a number of prose: "3 1/2", "5 km".
    pub(super) fn counted(&mut self, whole: Figure) -> Expr {
        let mut bare = Expr::Number(whole);
        if let Some(share) = self.share_behind(whole) {
            self.at += 3;
            bare = Expr::Sum(vec![
                (Term::Plus, bare),
                (Term::Plus, Expr::constant(share)),
            ]);
        }
        self.measured(bare)
    }

    /// Returns the fraction of a mixed number: 0.5 after the 3 of "3 1/2".
    fn share_behind(&self, whole: Figure) -> Option<f64> {
        let digits = |at: usize| match self.kind(at)? {
            Kind::Number {
                value, decimals: 0, ..
            } => Some(value),
            _ => None,
        };
        let (above, below) = (digits(self.at)?, digits(self.at + 2)?);
        let slash = self.is_sign(self.at + 1, Sign::Over) && !self.spaced(self.at + 1);
        (slash && whole.decimals == 0 && 0.0 < above && above < below).then(|| above / below)
    }

    pub(super) fn money(&mut self, unit: &'static Unit) -> Option<Expr> {
        self.at += 1;
        let negative = self.eat(Kind::Sign(Sign::Minus));
        let figure = self.figure()?;
        // "$10/hour", "$10 per hour"
        let (measure, units) = self.product_of_units(Measure::of(unit), unit);
        let vague = self.nouns(1);
        let money = Expr::Measured {
            of: Box::new(Expr::Number(figure)),
            measure,
            units,
            vague,
        };
        Some(if negative {
            Expr::Negative(Box::new(money))
        } else {
            money
        })
    }

    /// Parses the unit and the words after an operand.
    pub(super) fn measured(&mut self, bare: Expr) -> Expr {
        let unit = self.unit();
        let vague = self.nouns(usize::from(unit.is_some()));
        match unit {
            Some((measure, units)) => Expr::Measured {
                of: Box::new(bare),
                measure,
                units,
                vague,
            },
            None => bare,
        }
    }

    /// Parses one unit with its power: "km", "m^2", "square metres", "°" and "C".
    pub(super) fn one_unit(&mut self) -> Option<(&'static Unit, i8)> {
        let start = self.at;
        let mut power = 1;
        if let Some(Kind::Currency(unit)) = self.kind(self.at) {
            self.at += 1;
            return (!self.figure_at(self.at)).then_some((unit, 1)).or_else(|| {
                self.at = start;
                None
            });
        }
        let word = self.word(self.at)?;
        let raised = words::roles(word).iter().find_map(|role| {
            if let Role::Power(n) = role {
                Some(*n)
            } else {
                None
            }
        });
        self.at += usize::from(raised.is_some());
        power *= raised.unwrap_or(1);
        let Some(unit) = self
            .word(self.at)
            .and_then(|word| units::written(word, self.spelling))
        else {
            self.at = start;
            return None;
        };
        self.at += 1;
        if unit.name == "degrees"
            && let Some(scale) = self.word(self.at).and_then(|word| {
                units::written(&format!("°{word}"), Spelling::Strict)
                    .or_else(|| units::written(word, Spelling::Strict))
            })
            && scale.zero != 0.0
        {
            self.at += 1;
            return Some((scale, 1));
        }
        let negative = usize::from(self.is_sign(self.at + 1, Sign::Minus));
        let braced = usize::from(self.kind(self.at + 1) == Some(Kind::Open('{')));
        if self.is_sign(self.at, Sign::Power)
            && let Some(Kind::Number {
                value, decimals: 0, ..
            }) = self.kind(self.at + 1 + negative + braced)
        {
            self.at += 2 + negative + 2 * braced;
            power *= if negative == 1 {
                -(value.min(9.0) as i8)
            } else {
                value.min(9.0) as i8
            };
        }
        Some((unit, power))
    }

    /// Parses the units after an operand: "km", "m/s^2", "miles per hour", "kW h".
    pub(super) fn unit(&mut self) -> Option<(Measure, Vec<&'static Unit>)> {
        let (unit, power) = self.one_unit()?;
        let none = Measure {
            dimensions: NONE,
            size: 1.0,
            zero: 0.0,
            play: 0.0,
        };
        let measure = if power == 1 {
            Measure::of(unit)
        } else {
            none.times(unit, power)
        };
        Some(self.product_of_units(measure, unit))
    }

    /// Parses the units that continue a first one: "/s^2", "per hour", "h".
    pub(super) fn product_of_units(
        &mut self,
        mut measure: Measure,
        first: &'static Unit,
    ) -> (Measure, Vec<&'static Unit>) {
        let mut units = vec![first];
        loop {
            let start = self.at;
            let said = self
                .word(start)
                .is_some_and(|word| words::is(word, Role::Per));
            let over = said || self.is_sign(start, Sign::Over);
            let signed = over || self.is_sign(start, Sign::Times);
            self.at += usize::from(signed);
            match self.one_unit() {
                Some((unit, power)) if signed || unit.name.chars().count() < 4 => {
                    measure = measure.times(unit, if over { -power } else { power });
                    units.push(unit);
                }
                _ => {
                    self.at = start;
                    return (measure, units);
                }
            }
        }
    }

    /// Skips the words that say what was counted, up to the next operator; `units` is the number of
    /// units before them. Returns true if there are any.
    pub(super) fn nouns(&mut self, units: usize) -> bool {
        let (mut at, mut count) = (self.at, 0);
        loop {
            let rate =
                self.is_sign(at, Sign::Over) || self.is_sign(at, Sign::Minus) && !self.spaced(at);
            let joint = usize::from(rate && count + units > 0 && self.noun(at + 1));
            if !self.noun(at + joint) {
                break;
            }
            count += usize::from(joint == 0 || count == 0);
            at += 1 + joint;
        }
        let ends = at == self.end
            || self.says(at, Role::Plus)
            || self.says(at, Role::Minus)
            || self.says(at, Role::Times);
        let ends = ends || matches!(self.kind(at), Some(Kind::Sign(sign)) if sign != Sign::Power);
        let ends = ends || matches!(self.kind(at), Some(Kind::Close(_)));
        if count == 0 || count > MAX_NOUNS || !ends {
            return false;
        }
        self.at = at;
        true
    }

    pub(super) fn noun(&self, at: usize) -> bool {
        let signs = [Role::Plus, Role::Minus, Role::Times];
        self.word(at).is_some()
            && !self.opaque(at)
            && !self.starts(at)
            && !signs.iter().any(|role| self.says(at, *role))
    }
}
