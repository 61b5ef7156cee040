//! Parses figures with units, money and counted things.

use super::lexer::{Kind, Sign};
use super::parser::Parser;
use super::units::{self, Measure, Unit};
use super::value::{Figure, Quantity};
use super::words::{self, Role};

/// The most words between a number and the next operator ("5 legs of each × 4").
const MAX_NOUNS: usize = 3;

impl Parser<'_, '_> {
    /// Parses a number with its percent sign and scale.
    pub(super) fn figure(&mut self) -> Option<Quantity> {
        let Some(Kind::Number {
            value,
            decimals,
            grouping,
        }) = self.kind(self.at)
        else {
            return None;
        };
        self.at += 1;
        let word = self.word(self.at).filter(|_| self.prose());
        let is_percent = |word: &str| words::is(word, Role::Percent);
        // "por ciento" is two words.
        let second = word.filter(|word| words::is(word, Role::Per));
        let in_two = second.is_some() && self.word(self.at + 1).is_some_and(is_percent);
        let percent =
            in_two || self.kind(self.at) == Some(Kind::Percent) || word.is_some_and(is_percent);
        // A scale such as "million". "5M" and "5k" have no space.
        let is_scale = |word: &&str| {
            (word.len() > 1 || !self.spaced(self.at))
                && units::written(word, self.spelling).is_none()
        };
        let scale = word
            .filter(|word| !percent && is_scale(word))
            .and_then(words::scale);
        self.at += usize::from(in_two) + usize::from(percent || scale.is_some());
        let mut figure = Figure {
            value,
            decimals,
            grouping,
            percent,
            scale: scale.unwrap_or(1.0),
        };
        while let Some((added, decimals, scale)) = self.scaled_at(self.at, figure.scale) {
            let value = figure.value * figure.scale / scale + added;
            figure = Figure {
                value,
                decimals,
                scale,
                ..figure
            };
            self.at += 2;
        }
        Some(self.value_of(figure))
    }

    /// Returns the number at a position that adds to one of a larger scale, its decimals and its own
    /// scale: the "2千万" of "1億2千万".
    fn scaled_at(&self, at: usize, larger: f64) -> Option<(f64, u8, f64)> {
        let Some(Kind::Number {
            value, decimals, ..
        }) = self.kind(at)
        else {
            return None;
        };
        let is_one_word = self.token(at)?.end == self.token(at + 1)?.start;
        let word = self.word(at + 1).filter(|_| is_one_word)?;
        let scale = words::scale(word).filter(|scale| *scale < larger)?;
        Some((value, decimals, scale))
    }

    pub(super) fn money(&mut self, unit: &'static Unit) -> Option<Quantity> {
        self.at += 1;
        let negative = self.eat(Kind::Sign(Sign::Minus));
        let figure = self.figure()?;
        // "$10/hour", "$10 per hour"
        let measure = self.product_of_units(unit.measure, unit);
        let vague = self.nouns(1);
        let money = figure.measured(&measure, vague);
        Some(if negative { money.negated() } else { money })
    }

    /// Parses the unit and the words after an operand.
    pub(super) fn measured(&mut self, bare: Quantity) -> Quantity {
        let unit = self.unit();
        let vague = self.nouns(usize::from(unit.is_some()));
        unit.map_or(bare, |measure| bare.measured(&measure, vague))
    }

    /// Parses one unit with its power: "km", "m^2", "square metres", "°" and "C".
    fn one_unit(&mut self) -> Option<(&'static Unit, i8)> {
        let start = self.at;
        if let Some(Kind::Currency(unit)) = self.kind(start) {
            let is_unit = !self.figure_at(start + 1);
            self.at += usize::from(is_unit);
            return is_unit.then_some((unit, 1));
        }
        let raised = words::power(self.word(start)?);
        self.at += usize::from(raised.is_some());
        let mut power = raised.unwrap_or(1);
        let word = self.word(self.at);
        let Some(unit) = word.and_then(|word| units::written(word, self.spelling)) else {
            self.at = start;
            return None;
        };
        self.at += 1;
        if unit.name == "degrees"
            && let Some(scale) = self.word(self.at).and_then(units::of_temperature)
        {
            self.at += 1;
            return Some((scale, 1));
        }
        let is_negative = self.is_sign(self.at + 1, Sign::Minus);
        let braced = usize::from(self.kind(self.at + 1) == Some(Kind::Open('{')));
        let exponent = self.kind(self.at + 1 + usize::from(is_negative) + braced);
        if self.is_sign(self.at, Sign::Power)
            && let Some(Kind::Number {
                value, decimals: 0, ..
            }) = exponent
        {
            self.at += 2 + usize::from(is_negative) + 2 * braced;
            let size = value.min(9.0) as i8;
            power *= if is_negative { -size } else { size };
        }
        Some((unit, power))
    }

    /// Parses the units after an operand: "km", "m/s^2", "miles per hour", "kW h".
    pub(super) fn unit(&mut self) -> Option<Measure> {
        let (unit, power) = self.one_unit()?;
        let measure = match power {
            1 => unit.measure,
            power => Measure::NONE.times(unit, power),
        };
        Some(self.product_of_units(measure, unit))
    }

    /// Parses the units that continue a first one: "/s^2", "per hour", "h".
    fn product_of_units(&mut self, mut measure: Measure, first: &'static Unit) -> Measure {
        self.parts.units.push(first);
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
                    self.parts.units.push(unit);
                }
                _ => {
                    self.at = start;
                    self.parts.measure = Some(measure);
                    return measure;
                }
            }
        }
    }

    /// Skips the words that say what was counted, up to the next operator; `units` is the number of
    /// units before them. Returns true if there are any.
    fn nouns(&mut self, units: usize) -> bool {
        let (mut at, mut count) = (self.at, 0);
        loop {
            let rate =
                self.is_sign(at, Sign::Over) || self.is_sign(at, Sign::Minus) && !self.spaced(at);
            // "bottles/h": a unit of one letter is a noun there.
            let is_unit = |word| units::written(word, self.spelling).is_some();
            let is_rate = self.noun(at + 1) || self.word(at + 1).is_some_and(is_unit);
            let joint = usize::from(rate && count + units > 0 && is_rate);
            if joint == 0 && !self.noun(at) {
                break;
            }
            count += usize::from(joint == 0 || count == 0);
            at += 1 + joint;
        }
        let is_operator = match self.kind(at) {
            Some(Kind::Sign(sign)) => sign != Sign::Power,
            kind => matches!(kind, Some(Kind::Close(_))),
        };
        let found = (1..=MAX_NOUNS).contains(&count)
            && (self.ends(at) || is_operator || self.says_operator(at));
        if found {
            self.at = at;
        }
        found
    }

    pub(super) fn noun(&self, at: usize) -> bool {
        self.word(at).is_some() && !self.opaque(at) && !self.starts(at) && !self.says_operator(at)
    }
}
