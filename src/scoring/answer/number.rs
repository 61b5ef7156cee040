//! Numbers as answers. Two numbers are the same if they agree to the precision of the coarser one,
//! in any unit.

use super::decimals::DecimalSign;
use crate::domain::is_unspaced;
use crate::scoring::expr::{Amount, Measure, amount};
use crate::text::{Word, clip};

/// A number with its unit and precision.
#[derive(Debug, Clone, PartialEq)]
pub struct Number {
    pub value: f64,
    /// The value of one unit in its last digit; 0 for the value of a formula.
    step: f64,
    /// The factor to its value in languages with the other decimal sign, else 1.
    other: f64,
    /// True if both of its values are likely.
    is_open: bool,
    percent: bool,
    measure: Option<Measure>,
    unit: Option<String>,
    /// The words after it: "before" of "3 days before".
    words: Vec<String>,
    /// Those of them that the request has.
    asked: Vec<String>,
}

/// The share by which a number may be rounded.
const MAX_ROUNDING: f64 = 1e-3;
/// The share by which computed values differ from exact ones.
const NOISE: f64 = 1e-12;
/// The same after a conversion: sizes of units have few digits.
const CONVERTED: f64 = 1e-6;
/// Up to this step, rounding alone makes numbers equal: "0.33" and "0.333".
const FINE_STEP: f64 = 0.0101;

/// True if every word of the shorter list is in the longer one.
pub(super) fn within(a: &[String], b: &[String]) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    has_all(long, short)
}

/// True if a list has all of these words.
pub(super) fn has_all(list: &[String], words: &[String]) -> bool {
    words.iter().all(|word| list.contains(word))
}

/// Returns the words that a request has too.
pub(super) fn asked(words: &[String], request: &[Word]) -> Vec<String> {
    let is_asked = |word: &&String| request.iter().any(|asked| **asked == *word.to_lowercase());
    words.iter().filter(is_asked).cloned().collect()
}

impl Number {
    /// Returns the number for the exact value of a formula or number word.
    pub fn exact(value: f64) -> Self {
        Self {
            value,
            step: 0.0,
            other: 1.0,
            is_open: false,
            percent: false,
            measure: None,
            unit: None,
            words: vec![],
            asked: vec![],
        }
    }

    /// Returns the number of an amount, with the words after it.
    pub fn of(amount: Amount, words: Vec<String>) -> Self {
        let step = 10f64.powi(-i32::from(amount.decimals.min(12)));
        Self {
            value: amount.value * amount.scale,
            step: step * amount.scale,
            other: amount.other,
            is_open: amount.is_open,
            percent: amount.percent,
            measure: amount.measure,
            unit: amount.unit,
            words,
            asked: vec![],
        }
    }

    pub fn label(&self) -> String {
        let number = six_digits(self.value);
        let is_currency = |word: &&String| word.ends_with('$');
        let number = match self.words.iter().find(is_currency) {
            Some(currency) => format!("{}{number}", currency.to_uppercase()),
            None => number,
        };
        match (self.percent, &self.unit) {
            (true, _) => format!("{number}%"),
            (false, Some(unit)) => format!("{number} {unit}"),
            (false, None) => number,
        }
    }

    /// True if two numbers beside words are the same. Without a unit they may be versions, and 3.1
    /// is not version 3.10.
    pub fn same_version(&self, other: &Number) -> bool {
        let is_plain = |number: &Number| number.measure.is_none() && !number.percent;
        let is_other = is_plain(self)
            && is_plain(other)
            && self.step != other.step
            && self.step.max(other.step) < 1.0;
        !is_other && self.same(other)
    }

    /// Sets the value by the decimal sign of the texts around it, if that is known. A point may be
    /// that of a time or a version, so the other meaning stays possible beside it.
    pub fn read_decimals(&mut self, sign: Option<DecimalSign>) {
        let Some(sign) = sign else { return };
        if sign == DecimalSign::Comma {
            self.value *= self.other;
            self.step *= self.other;
            self.other = 1.0;
        }
        self.is_open = false;
    }

    /// Sets the value to the meaning that equals a known number, if one does.
    pub fn read_meaning(&mut self, known: &Number) {
        let mut plain = self.clone();
        plain.read_decimals(Some(DecimalSign::Point));
        let mut other = self.clone();
        other.read_decimals(Some(DecimalSign::Comma));
        if plain.matches(known) {
            *self = plain;
        } else if other.matches(known) {
            *self = other;
        }
    }

    /// True if its digits are written, and by themselves read as this value.
    pub fn is_written_as(&self, read: &Number) -> bool {
        self.step > 0.0 && self.value == read.value && self.is_open == read.is_open
    }

    /// True if it states what it counts: a unit of measure, or words.
    pub fn is_measured(&self) -> bool {
        self.measure.is_some() || !self.words.is_empty()
    }

    /// Notes which of the words after it a request has: they are what is counted, and may be left
    /// out.
    pub fn read_request(&mut self, request: &[Word]) {
        self.asked = asked(&self.words, request);
    }

    /// The words after it, in lower case.
    pub fn words(&self) -> Vec<String> {
        self.words.iter().map(|word| word.to_lowercase()).collect()
    }

    /// True if a reply with `said` gives this number: it may have further words.
    pub fn is_given_by(&self, said: &Number) -> bool {
        has_all(&said.words, &self.words) && self.equals(said)
    }

    /// True if one of these numbers has its value, with any words and any sign.
    pub fn is_among(&self, numbers: &[Number]) -> bool {
        let own = Number {
            value: self.value.abs(),
            words: vec![],
            ..self.clone()
        };
        numbers.iter().any(|number| own.equals(number))
    }

    /// True if it is this value, by itself or in another unit of its quantity.
    pub fn may_be(&self, value: f64) -> bool {
        let known = Number::exact(value);
        let is_in = |own: &Measure, unit: &Measure| {
            let converted = Number {
                value: own.convert(self.value, unit)?,
                step: self.step * own.size / unit.size,
                ..Number::exact(value)
            };
            Some(converted.close(&known))
        };
        let in_another = |own: Measure| {
            let mut units = own.of_quantity();
            units.any(|unit| is_in(&own, unit).unwrap_or(false))
        };
        self.matches(&known) || self.measure.is_some_and(in_another)
    }

    /// True if two numbers are equal and count the same: one may leave out what the request asks for.
    pub fn same(&self, other: &Number) -> bool {
        let more = |a: &Number, b: &Number| {
            let mut more = a.words.iter().filter(|word| !b.words.contains(word));
            more.all(|word| a.asked.contains(word))
        };
        within(&self.words, &other.words)
            && more(self, other)
            && more(other, self)
            && self.equals(other)
    }

    /// True if two numbers of one quantity differ by more than the rounding of the coarser one.
    pub fn differs(&self, other: &Number) -> bool {
        let one_quantity = self.words == other.words
            && self.percent == other.percent
            && self.measure.is_some() == other.measure.is_some();
        let rounded = |a: &Number, b: &Number| {
            let converted = a.measure.zip(b.measure);
            let value = match converted {
                Some((from, to)) => from.convert(a.value, &to),
                None => Some(a.value),
            };
            value.is_some_and(|value| {
                let (gap, largest) = ((value - b.value).abs(), value.abs().max(b.value.abs()));
                gap <= 0.51 * b.step || a.step != b.step && gap <= MAX_ROUNDING * largest
            })
        };
        // "3.125" may be a "3125".
        let may_equal = self
            .meanings()
            .any(|a| other.meanings().any(|b| a.matches(&b)));
        one_quantity && !may_equal && !rounded(self, other) && !rounded(other, self)
    }

    fn equals(&self, other: &Number) -> bool {
        let likely = |number: &Number| {
            let count = if number.is_open { 2 } else { 1 };
            number.meanings().take(count).collect::<Vec<_>>()
        };
        let others = likely(other);
        likely(self)
            .iter()
            .any(|a| others.iter().any(|b| a.matches(b)))
    }

    /// Returns the number, and what it means in languages with the other decimal sign.
    fn meanings(&self) -> impl Iterator<Item = Number> {
        let with = |factor: f64| Number {
            value: self.value * factor,
            ..self.clone()
        };
        let other = Some(self.other).filter(|factor| *factor != 1.0);
        std::iter::once(1.0).chain(other).map(with)
    }

    fn matches(&self, other: &Number) -> bool {
        // Another unit in the place of the missing one.
        let is_other = |it: &Number| it.percent || !it.words.is_empty();
        match (&self.measure, &other.measure) {
            (Some(a), Some(b)) if a.dimensions != b.dimensions => false,
            (Some(a), Some(b)) if (a.size, a.zero) != (b.size, b.zero) => {
                self.converts(other) || other.converts(self)
            }
            (Some(_), None) if is_other(other) => false,
            (None, Some(_)) if is_other(self) => false,
            // "50" is a short "50%", but "0.5" may be a share.
            _ if self.percent != other.percent => {
                let is_share = |it: &Number| !it.percent && it.value.abs() <= 1.0;
                self.share().close(&other.share())
                    || !is_share(self) && !is_share(other) && self.close(other)
            }
            _ => self.close(other),
        }
    }

    /// Returns the number without its percent sign.
    fn share(&self) -> Number {
        let factor = if self.percent { 0.01 } else { 1.0 };
        Number {
            value: self.value * factor,
            step: self.step * factor,
            ..self.clone()
        }
    }

    /// True if it equals the other number after conversion, to the other's precision.
    fn converts(&self, other: &Number) -> bool {
        let value = self
            .measure
            .zip(other.measure)
            .and_then(|(a, b)| a.convert(self.value, &b));
        value.is_some_and(|value| {
            let gap = (value - other.value).abs();
            let largest = value.abs().max(other.value.abs());
            gap <= CONVERTED * largest || gap <= 0.51 * other.step && gap <= MAX_ROUNDING * largest
        })
    }

    /// True if the numbers are equal, or equal after rounding to the coarser step. Whole numbers are
    /// not rounded.
    fn close(&self, other: &Number) -> bool {
        let (a, b) = (self.value, other.value);
        let (gap, largest) = ((a - b).abs(), a.abs().max(b.abs()));
        let coarser = self.step.max(other.step);
        let is_whole = |it: &Number| it.step >= 1.0 && it.value.fract() == 0.0;
        let noise = if is_whole(self) && is_whole(other) {
            0.0
        } else {
            NOISE
        };
        gap <= noise * largest.max(1e-3)
            || gap <= 0.51 * coarser && (coarser <= FINE_STEP || gap <= MAX_ROUNDING * largest)
    }
}

/// The most bytes of a text that are read for one of its numbers.
const MAX_AMOUNT: usize = 64;
/// The most numbers of a text. Each of a claim is compared with each of the request.
const MAX_NUMBERS: usize = 200;

/// Returns the numbers of a text, with their units.
pub fn numbers(text: &str, sign: Option<DecimalSign>) -> Vec<Number> {
    let found = places(text).filter_map(|at| read_at(text, at));
    found
        .map(|mut number| {
            number.read_decimals(sign);
            number
        })
        .collect()
}

/// As [`numbers`], with the sign of a currency in front of a number, and one by one: to read one takes
/// far longer than to find it.
pub fn each_amount(text: &str) -> impl Iterator<Item = Number> {
    places(text).filter_map(|at| {
        let number = read_at(text, at)?;
        let sign = text.get(..at).and_then(|before| before.chars().next_back());
        let sign = sign.filter(|_| number.measure.is_none());
        let priced = sign.and_then(|sign| read_at(text, at - sign.len_utf8()));
        Some(priced.filter(|it| it.measure.is_some()).unwrap_or(number))
    })
}

/// Returns where the numbers of a text begin.
fn places(text: &str) -> impl Iterator<Item = usize> {
    let mut before = ' ';
    let places = text.char_indices().filter(move |(_, c)| {
        let is_inside = before.is_alphanumeric() && !is_unspaced(before) || ".,".contains(before);
        before = *c;
        c.is_ascii_digit() && !is_inside
    });
    places.map(|(at, _)| at).take(MAX_NUMBERS)
}

/// Reads the number that begins at a place, with its unit.
fn read_at(text: &str, at: usize) -> Option<Number> {
    let rest = clip(text.get(at..).unwrap_or_default(), MAX_AMOUNT);
    let line = rest.split('\n').next().unwrap_or(rest);
    let rest = line.split(". ").next().unwrap_or(line);
    amount(rest).map(|amount| Number::of(amount, vec![]))
}

/// Formats a number with at most six significant digits and without trailing zeros.
pub fn six_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = usize::try_from(5 - magnitude).unwrap_or(0).min(12);
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}
