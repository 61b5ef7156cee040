//! Units of measure: their dimensions and sizes. The table `units.tsv` has the units that people
//! write in prose. Libraries of units know thousands of names, among them "are", "point" and "cup".
//! They would find quantities all over ordinary prose.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

/// The base units, in the order of `Dimensions`. Money is last, with one axis per currency.
const BASE: [&str; 18] = [
    "m", "kg", "s", "K", "A", "bit", "USD", "EUR", "GBP", "JPY", "CHF", "INR", "CNY", "KRW", "PLN",
    "RUB", "TRY", "UAH",
];

/// The first axis of money.
const FIRST_CURRENCY: usize = 6;

/// Exponents of the base units.
pub(super) type Dimensions = [i8; BASE.len()];

pub(super) const NONE: Dimensions = [0; BASE.len()];

/// A unit of measure.
#[derive(Debug)]
pub(super) struct Unit {
    /// The name shown in answer labels.
    pub name: &'static str,
    pub measure: Measure,
}

impl Unit {
    /// True for a currency.
    pub fn is_money(&self) -> bool {
        let own = self.measure.dimensions.iter().skip(FIRST_CURRENCY);
        own.into_iter().any(|power| *power != 0)
    }
}

impl PartialEq for Unit {
    fn eq(&self, other: &Unit) -> bool {
        self.name == other.name
    }
}

/// The measure of a number: a unit, or a product of units such as km/h.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measure {
    pub dimensions: Dimensions,
    /// In base units.
    pub size: f64,
    /// Added after multiplying: degrees Celsius do not begin at absolute zero.
    pub zero: f64,
    /// The share by which statements may be off, because the unit has more than one size.
    pub tolerance: f64,
}

impl Measure {
    pub(super) const NONE: Measure = Measure {
        dimensions: NONE,
        size: 1.0,
        zero: 0.0,
        tolerance: 0.0,
    };

    /// Returns this measure times a power of a unit.
    pub(super) fn times(self, unit: &Unit, power: i8) -> Self {
        Self {
            dimensions: plus(self.dimensions, unit.measure.dimensions, power),
            size: self.size * unit.measure.size.powi(i32::from(power)),
            zero: 0.0,
            tolerance: self.tolerance.max(unit.measure.tolerance),
        }
    }

    /// Converts a value of this measure to another one; `None` if their dimensions differ.
    pub fn convert(&self, value: f64, to: &Measure) -> Option<f64> {
        (self.dimensions == to.dimensions)
            .then(|| (value * self.size + self.zero - to.zero) / to.size)
    }

    /// Returns the named units of its quantity.
    pub fn of_quantity(&self) -> impl Iterator<Item = &'static Measure> + use<> {
        let dimensions = self.dimensions;
        let all = TABLE.units.iter().map(|unit| &unit.measure);
        all.filter(move |unit| unit.dimensions == dimensions)
    }
}

pub(super) fn plus(a: Dimensions, b: Dimensions, times: i8) -> Dimensions {
    let mut out = a;
    for (own, other) in out.iter_mut().zip(b) {
        *own = own.saturating_add(other.saturating_mul(times));
    }
    out
}

#[derive(Default)]
struct Table {
    units: Vec<Unit>,
    symbols: FxHashMap<&'static str, usize>,
    careless: FxHashMap<&'static str, usize>,
    words: FxHashMap<&'static str, usize>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table::default();
    let rows = include_str!("units.tsv").lines();
    for row in rows.filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = row.split('\t').collect();
        let [name, symbols, careless, words, dimensions, numbers @ ..] = columns.as_slice() else {
            continue;
        };
        let numbers: Vec<f64> = numbers.iter().filter_map(|it| it.parse().ok()).collect();
        let (Some(dimensions), &[size, zero, tolerance]) = (parsed(dimensions), &numbers[..])
        else {
            continue;
        };
        let at = table.units.len();
        let measure = Measure {
            dimensions,
            size,
            zero,
            tolerance,
        };
        table.units.push(Unit { name, measure });
        for (list, column) in [
            (&mut table.symbols, symbols),
            (&mut table.careless, careless),
            (&mut table.words, words),
        ] {
            list.extend(column.split_whitespace().map(|word| (word, at)));
        }
    }
    table
});

/// Parses "m kg s-2".
fn parsed(text: &str) -> Option<Dimensions> {
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

/// Returns the currency with an ISO 4217 code.
pub(super) fn currency(code: &str) -> Option<&'static Unit> {
    let is_known = BASE
        .get(FIRST_CURRENCY..)
        .is_some_and(|it| it.contains(&code));
    written(code, Spelling::Strict).filter(|_| is_known)
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
    let is_careless = spelling == Spelling::Careless;
    let exact = table
        .symbols
        .get(word)
        .or_else(|| table.words.get(word.to_lowercase().as_str()));
    let careless = || table.careless.get(word).filter(|_| is_careless);
    let at = exact.or_else(careless)?;
    table.units.get(*at)
}

/// Returns the scale of temperature of the "C" in "degrees C".
pub(super) fn of_temperature(word: &str) -> Option<&'static Unit> {
    let degrees = written(&format!("°{word}"), Spelling::Strict);
    let unit = degrees.or_else(|| written(word, Spelling::Strict))?;
    (unit.measure.zero != 0.0).then_some(unit)
}

/// Returns the name of the unit of that size, if it has one.
pub(super) fn named(measure: &Measure) -> Option<&'static str> {
    let alike = |unit: &&Unit| {
        unit.measure.dimensions == measure.dimensions
            && (unit.measure.size / measure.size - 1.0).abs() < 1e-9
            && unit.measure.zero == measure.zero
    };
    TABLE.units.iter().find(alike).map(|unit| unit.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_convert_into_units_of_the_same_quantity() {
        let measure = |word: &str| written(word, Spelling::Strict).unwrap().measure;
        let to = |value: f64, from: &str, to: &str| measure(from).convert(value, &measure(to));
        for (value, from, into, expected) in [
            (5.0, "km", "meters", 5_000.0),
            (100.0, "°C", "°F", 212.0),
            (0.0, "kelvin", "°C", -273.15),
            (1.0, "mile", "feet", 5_280.0),
            (36.0, "kph", "mph", 22.369_362_920_544),
            (2.0, "heures", "Minuten", 120.0),
        ] {
            let found = to(value, from, into).unwrap();
            assert!((found - expected).abs() < 1e-6, "{value} {from}");
        }
        assert_eq!(to(5.0, "km", "kg").or(to(5.0, "euros", "dollars")), None);
    }

    #[test]
    fn every_row_is_read_and_every_spelling_is_unique() {
        let rows = include_str!("units.tsv")
            .lines()
            .filter(|line| !line.starts_with('#'));
        assert_eq!(rows.clone().count(), TABLE.units.len());
        let mut seen = std::collections::BTreeSet::new();
        let spellings = rows.flat_map(|row| row.split('\t').skip(1).take(3));
        for word in spellings.flat_map(str::split_whitespace) {
            assert!(seen.insert(word), "{word}");
        }
    }

    #[test]
    fn symbols_keep_their_case_except_in_answers() {
        let name = |word, spelling| written(word, spelling).map(|unit| unit.name);
        assert_eq!(
            name("M", Spelling::Strict).or(name("KG", Spelling::Strict)),
            None
        );
        assert_eq!(name("KG", Spelling::Careless), Some("kg"));
    }
}
