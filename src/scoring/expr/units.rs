//! Units of measure: their dimensions and sizes. The table `units.tsv` has the units that people
//! write in prose. Libraries of units know thousands of names, among them "are", "point" and "cup".
//! They would find quantities all over ordinary prose.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The base units, in the order of `Dimensions`. Money is last, with one axis per currency.
const BASE: [&str; 12] = [
    "m", "kg", "s", "K", "A", "bit", "USD", "EUR", "GBP", "JPY", "CHF", "INR",
];

/// Exponents of the base units.
pub type Dimensions = [i8; BASE.len()];

pub(super) const NONE: Dimensions = [0; BASE.len()];

/// A unit of measure.
#[derive(Debug)]
pub struct Unit {
    /// The name shown in answer labels.
    pub name: &'static str,
    pub dimensions: Dimensions,
    /// In base units.
    pub size: f64,
    /// Added after multiplying: degrees Celsius do not begin at absolute zero.
    pub zero: f64,
    /// The share by which statements may be off, because the unit has more than one size.
    pub play: f64,
}

impl PartialEq for Unit {
    fn eq(&self, other: &Unit) -> bool {
        self.name == other.name
    }
}

#[derive(Default)]
struct Table {
    units: Vec<Unit>,
    symbols: HashMap<&'static str, usize>,
    careless: HashMap<&'static str, usize>,
    words: HashMap<&'static str, usize>,
    /// Words of languages that group digits by dots.
    dotted: HashMap<&'static str, usize>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table::default();
    for row in include_str!("units.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let mut columns = row.split('\t');
        let mut next = || columns.next().unwrap_or_default();
        let (name, symbols, careless, words, dotted) = (next(), next(), next(), next(), next());
        let (Some(dimensions), Some(size), Some(zero), Some(play)) = (
            dimensions(next()),
            next().parse().ok(),
            next().parse().ok(),
            next().parse().ok(),
        ) else {
            continue;
        };
        let at = table.units.len();
        table.units.push(Unit {
            name,
            dimensions,
            size,
            zero,
            play,
        });
        for (list, column) in [
            (&mut table.symbols, symbols),
            (&mut table.careless, careless),
            (&mut table.words, words),
            (&mut table.dotted, dotted),
        ] {
            list.extend(column.split_whitespace().map(|word| (word, at)));
        }
    }
    table
});

/// Parses "m kg s-2".
fn dimensions(text: &str) -> Option<Dimensions> {
    let mut out = NONE;
    for factor in text.split_whitespace() {
        let digits = factor
            .find(|c: char| c.is_ascii_digit() || c == '-')
            .unwrap_or(factor.len());
        let (base, power) = factor.split_at_checked(digits)?;
        let axis = BASE.iter().position(|name| *name == base)?;
        *out.get_mut(axis)? = if power.is_empty() {
            1
        } else {
            power.parse().ok()?
        };
    }
    Some(out)
}

/// How strictly a unit must be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// "m" is not "M".
    Strict,
    /// After the number of an answer.
    Careless,
}

/// Returns the unit of a symbol or word.
pub(super) fn written(word: &str, spelling: Spelling) -> Option<&'static Unit> {
    let table = &*TABLE;
    let lower = || word.to_lowercase();
    let exact = table.symbols.get(word).or_else(|| {
        let lower = lower();
        table
            .words
            .get(lower.as_str())
            .or_else(|| table.dotted.get(lower.as_str()))
    });
    let careless = || {
        let symbol = || {
            table
                .symbols
                .get(lower().as_str())
                .filter(|_| word.len() > 1)
        };
        table.careless.get(word).or_else(symbol)
    };
    let at = exact.or_else(|| {
        if spelling == Spelling::Careless {
            careless()
        } else {
            None
        }
    })?;
    table.units.get(*at)
}

/// True if a unit word belongs to a language that writes "1.000" for a thousand.
pub(super) fn groups_by_dots(word: &str) -> bool {
    TABLE.dotted.contains_key(word.to_lowercase().as_str())
}

/// Returns the name of the unit of that size, if it has one.
pub(super) fn named(measure: &Measure) -> Option<&'static str> {
    let alike = |unit: &&Unit| {
        unit.dimensions == measure.dimensions
            && (unit.size / measure.size - 1.0).abs() < 1e-9
            && unit.zero == measure.zero
    };
    TABLE.units.iter().find(alike).map(|unit| unit.name)
}

/// The measure of a number: a unit, or a product of units such as km/h.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measure {
    pub dimensions: Dimensions,
    pub size: f64,
    pub zero: f64,
    pub play: f64,
}

impl Measure {
    pub(super) fn of(unit: &Unit) -> Self {
        Self {
            dimensions: unit.dimensions,
            size: unit.size,
            zero: unit.zero,
            play: unit.play,
        }
    }

    /// Returns this measure times a power of a unit.
    pub(super) fn times(self, unit: &Unit, power: i8) -> Self {
        Self {
            dimensions: plus(self.dimensions, unit.dimensions, power),
            size: self.size * unit.size.powi(i32::from(power)),
            zero: 0.0,
            play: self.play.max(unit.play),
        }
    }

    /// Converts a value of this measure to another one; `None` if their dimensions differ.
    pub fn convert(&self, value: f64, to: &Measure) -> Option<f64> {
        (self.dimensions == to.dimensions)
            .then(|| (value * self.size + self.zero - to.zero) / to.size)
    }
}

pub(super) fn plus(a: Dimensions, b: Dimensions, times: i8) -> Dimensions {
    let mut out = a;
    for (own, other) in out.iter_mut().zip(b) {
        *own = own.saturating_add(other.saturating_mul(times));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_convert_into_units_of_the_same_thing() {
        let measure = |word: &str| Measure::of(written(word, Spelling::Strict).unwrap());
        let to = |value: f64, from: &str, to: &str| measure(from).convert(value, &measure(to));
        for (value, from, into, expected) in [
            (5.0, "km", "meters", 5_000.0),
            (90.0, "min", "hours", 1.5),
            (100.0, "°C", "°F", 212.0),
            (0.0, "kelvin", "°C", -273.15),
            (1.0, "mile", "feet", 5_280.0),
            (1.0, "lb", "oz", 16.0),
            (36.0, "kph", "mph", 22.369_362_920_544),
            (2.0, "Stunden", "Minuten", 120.0),
            (2.0, "heures", "horas", 2.0),
        ] {
            assert!(
                (to(value, from, into).unwrap() - expected).abs() < 1e-6,
                "{value} {from}"
            );
        }
        assert_eq!(
            (to(5.0, "km", "kg"), to(5.0, "euros", "dollars")),
            (None, None)
        );
    }

    #[test]
    fn every_row_is_read_and_every_spelling_is_unique() {
        let rows = include_str!("units.tsv")
            .lines()
            .filter(|line| !line.starts_with('#'));
        assert_eq!(rows.clone().count(), TABLE.units.len());
        let mut all: Vec<&str> = rows
            .flat_map(|row| row.split('\t').skip(1).take(4))
            .flat_map(str::split_whitespace)
            .collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn symbols_keep_their_case_except_in_answers() {
        assert_eq!(
            (
                written("M", Spelling::Strict),
                written("KG", Spelling::Strict)
            ),
            (None, None)
        );
        assert_eq!(
            written("KG", Spelling::Careless).map(|unit| unit.name),
            Some("kg")
        );
        assert_eq!(
            written("Km", Spelling::Careless).map(|unit| unit.name),
            Some("km")
        );
    }
}
