//! Units of measure: what they measure, and how large they are. A table of the units that people write in prose, and no
//! library: those for types (`uom`, `dimensioned`) know no text, and those for calculators (`rink`, `fend`, GNU units)
//! know thousands of names, among them "are", "point", "hand" and "cup", and so find quantities all over ordinary prose.

/// Exponents of length, mass, time, temperature, electric current, data and money.
pub(super) type Dimensions = [i8; 7];

pub(super) const NONE: Dimensions = [0; 7];
const LENGTH: Dimensions = [1, 0, 0, 0, 0, 0, 0];
const AREA: Dimensions = [2, 0, 0, 0, 0, 0, 0];
const VOLUME: Dimensions = [3, 0, 0, 0, 0, 0, 0];
const MASS: Dimensions = [0, 1, 0, 0, 0, 0, 0];
const TIME: Dimensions = [0, 0, 1, 0, 0, 0, 0];
const TEMPERATURE: Dimensions = [0, 0, 0, 1, 0, 0, 0];
const CURRENT: Dimensions = [0, 0, 0, 0, 1, 0, 0];
const DATA: Dimensions = [0, 0, 0, 0, 0, 1, 0];
pub(super) const MONEY: Dimensions = [0, 0, 0, 0, 0, 0, 1];
const SPEED: Dimensions = [1, 0, -1, 0, 0, 0, 0];
const FREQUENCY: Dimensions = [0, 0, -1, 0, 0, 0, 0];
const DATA_RATE: Dimensions = [0, 0, -1, 0, 0, 1, 0];
const FORCE: Dimensions = [1, 1, -2, 0, 0, 0, 0];
const PRESSURE: Dimensions = [-1, 1, -2, 0, 0, 0, 0];
const ENERGY: Dimensions = [2, 1, -2, 0, 0, 0, 0];
const POWER: Dimensions = [2, 1, -3, 0, 0, 0, 0];
const VOLTAGE: Dimensions = [2, 1, -3, 0, -1, 0, 0];

/// A unit of measure.
#[derive(Debug, PartialEq)]
pub(super) struct Unit {
    /// As answers are labelled with it.
    pub name: &'static str,
    /// Written signs, as they stand: "m" is no "M".
    symbols: &'static [&'static str],
    /// Written words, lower case.
    words: &'static [&'static str],
    pub dimensions: Dimensions,
    /// In metres, kilograms, seconds, kelvins, amperes, bits and dollars.
    pub size: f64,
    /// What is added after multiplying: degrees do not begin at absolute zero.
    pub zero: f64,
    /// How far, as a share, statements may be off because the unit has more than one size.
    pub play: f64,
}

type Row = (&'static str, &'static [&'static str], &'static [&'static str], Dimensions, f64);

/// Sizes by definition: the SI brochure (2019) and NIST SP 811 for the others; data units by powers of ten (IEC 80000-13).
const ROWS: &[Row] = &[
    ("km", &["km"], &["kilometer", "kilometers", "kilometre", "kilometres", "kms"], LENGTH, 1e3),
    ("m", &["m"], &["meter", "meters", "metre", "metres"], LENGTH, 1.0),
    ("cm", &["cm"], &["centimeter", "centimeters", "centimetre", "centimetres"], LENGTH, 1e-2),
    ("mm", &["mm"], &["millimeter", "millimeters", "millimetre", "millimetres"], LENGTH, 1e-3),
    ("µm", &["µm", "μm"], &["micrometer", "micrometers", "micrometre", "micrometres"], LENGTH, 1e-6),
    ("nm", &["nm"], &["nanometer", "nanometers", "nanometre", "nanometres"], LENGTH, 1e-9),
    ("miles", &["mi"], &["mile", "miles"], LENGTH, 1_609.344),
    ("yards", &["yd", "yds"], &["yard", "yards"], LENGTH, 0.9144),
    ("feet", &["ft"], &["foot", "feet"], LENGTH, 0.3048),
    ("inches", &[], &["inch", "inches"], LENGTH, 0.0254),
    ("ha", &["ha"], &["hectare", "hectares"], AREA, 1e4),
    ("acres", &[], &["acre", "acres"], AREA, 4_046.856_422_4),
    ("litres", &["L", "l"], &["liter", "liters", "litre", "litres"], VOLUME, 1e-3),
    ("ml", &["ml", "mL"], &["milliliter", "milliliters", "millilitre", "millilitres"], VOLUME, 1e-6),
    ("gallons", &["gal"], &["gallon", "gallons"], VOLUME, 3.785_411_784e-3),
    ("quarts", &["qt"], &["quart", "quarts"], VOLUME, 9.463_529_46e-4),
    ("pints", &[], &["pint", "pints"], VOLUME, 4.731_764_73e-4),
    ("kg", &["kg"], &["kilogram", "kilograms", "kilo", "kilos", "kgs"], MASS, 1.0),
    ("g", &["g"], &["gram", "grams"], MASS, 1e-3),
    ("mg", &["mg"], &["milligram", "milligrams"], MASS, 1e-6),
    ("tonnes", &[], &["tonne", "tonnes"], MASS, 1e3),
    ("pounds", &["lb", "lbs"], &["pound", "pounds"], MASS, 0.453_592_37),
    ("ounces", &["oz"], &["ounce", "ounces"], MASS, 0.028_349_523_125),
    ("seconds", &["s", "sec", "secs"], &["second", "seconds"], TIME, 1.0),
    ("ms", &["ms"], &["millisecond", "milliseconds"], TIME, 1e-3),
    ("µs", &["µs", "μs", "us"], &["microsecond", "microseconds"], TIME, 1e-6),
    ("ns", &["ns"], &["nanosecond", "nanoseconds"], TIME, 1e-9),
    ("minutes", &["min", "mins"], &["minute", "minutes"], TIME, 60.0),
    ("hours", &["h", "hr", "hrs"], &["hour", "hours"], TIME, 3_600.0),
    ("days", &["d"], &["day", "days"], TIME, 86_400.0),
    ("weeks", &[], &["week", "weeks"], TIME, 604_800.0),
    ("months", &[], &["month", "months"], TIME, 2_629_746.0),
    ("years", &["yr", "yrs"], &["year", "years"], TIME, 31_556_952.0),
    ("bits", &[], &["bit", "bits"], DATA, 1.0),
    ("bytes", &[], &["byte", "bytes"], DATA, 8.0),
    ("KB", &["KB", "kB", "KiB"], &["kilobyte", "kilobytes", "kibibyte", "kibibytes"], DATA, 8e3),
    ("MB", &["MB", "MiB"], &["megabyte", "megabytes", "mebibyte", "mebibytes"], DATA, 8e6),
    ("GB", &["GB", "GiB"], &["gigabyte", "gigabytes", "gibibyte", "gibibytes"], DATA, 8e9),
    ("TB", &["TB", "TiB"], &["terabyte", "terabytes", "tebibyte", "tebibytes"], DATA, 8e12),
    ("Mbit", &["Mb", "Mbit"], &["megabit", "megabits"], DATA, 1e6),
    ("Gbit", &["Gb", "Gbit"], &["gigabit", "gigabits"], DATA, 1e9),
    ("Mbps", &["Mbps"], &[], DATA_RATE, 1e6),
    ("Gbps", &["Gbps"], &[], DATA_RATE, 1e9),
    ("mph", &["mph"], &[], SPEED, 0.447_04),
    ("km/h", &["kph", "kmh", "kmph", "km/h"], &[], SPEED, 1.0 / 3.6),
    ("m/s", &["m/s"], &[], SPEED, 1.0),
    ("knots", &[], &["knot", "knots"], SPEED, 0.514_444_444_444),
    ("Hz", &["Hz"], &["hertz"], FREQUENCY, 1.0),
    ("kHz", &["kHz"], &["kilohertz"], FREQUENCY, 1e3),
    ("MHz", &["MHz"], &["megahertz"], FREQUENCY, 1e6),
    ("GHz", &["GHz"], &["gigahertz"], FREQUENCY, 1e9),
    ("N", &["N"], &["newton", "newtons"], FORCE, 1.0),
    ("kN", &["kN"], &["kilonewton", "kilonewtons"], FORCE, 1e3),
    ("Pa", &["Pa"], &["pascal", "pascals"], PRESSURE, 1.0),
    ("kPa", &["kPa"], &["kilopascal", "kilopascals"], PRESSURE, 1e3),
    ("psi", &["psi"], &[], PRESSURE, 6_894.757_293_168),
    ("J", &["J"], &["joule", "joules"], ENERGY, 1.0),
    ("kJ", &["kJ"], &["kilojoule", "kilojoules"], ENERGY, 1e3),
    ("kcal", &["kcal"], &["kilocalorie", "kilocalories"], ENERGY, 4_184.0),
    ("Wh", &["Wh"], &[], ENERGY, 3_600.0),
    ("kWh", &["kWh"], &[], ENERGY, 3.6e6),
    ("W", &["W"], &["watt", "watts"], POWER, 1.0),
    ("kW", &["kW"], &["kilowatt", "kilowatts"], POWER, 1e3),
    ("MW", &["MW"], &["megawatt", "megawatts"], POWER, 1e6),
    ("V", &["V"], &["volt", "volts"], VOLTAGE, 1.0),
    ("A", &["A"], &["ampere", "amperes", "amps"], CURRENT, 1.0),
    ("mA", &["mA"], &["milliampere", "milliamperes", "milliamps"], CURRENT, 1e-3),
    ("°C", &["°C"], &["celsius"], TEMPERATURE, 1.0),
    ("°F", &["°F"], &["fahrenheit"], TEMPERATURE, 5.0 / 9.0),
    ("K", &[], &["kelvin", "kelvins"], TEMPERATURE, 1.0),
    ("dollars", &["USD"], &["dollar", "dollars"], MONEY, 1.0),
    ("cents", &[], &["cent", "cents"], MONEY, 1e-2),
];

const fn zero_of(name: &str) -> f64 {
    match name.as_bytes() {
        [0xC2, 0xB0, b'C'] => 273.15,
        [0xC2, 0xB0, b'F'] => 273.15 - 32.0 * 5.0 / 9.0,
        _ => 0.0,
    }
}

/// Months and years differ in length, gallons between countries, and megabytes between powers of ten and of two.
fn play_of(name: &str) -> f64 {
    match name {
        "months" | "years" => 0.09,
        "gallons" | "quarts" | "pints" => 0.21,
        "KB" | "MB" | "GB" | "TB" => 0.10,
        _ => 0.0,
    }
}

static UNITS: std::sync::LazyLock<Vec<Unit>> = std::sync::LazyLock::new(|| {
    ROWS.iter()
        .map(|(name, symbols, words, dimensions, size)| Unit {
            name,
            symbols,
            words,
            dimensions: *dimensions,
            size: *size,
            zero: zero_of(name),
            play: play_of(name),
        })
        .collect()
});

/// The unit that a word in prose is, by its sign or name.
pub(super) fn in_prose(word: &str) -> Option<&'static Unit> {
    let lower = word.to_lowercase();
    UNITS.iter().find(|unit| unit.symbols.contains(&word) || unit.words.contains(&lower.as_str()))
}

/// The unit behind the number of an answer, where case and dots are often careless.
pub(super) fn behind_number(word: &str) -> Option<&'static Unit> {
    let lower = word.to_lowercase();
    let careless = match lower.as_str() {
        "c" | "°c" => "°C",
        "f" | "°f" => "°F",
        "k" => "kelvin",
        "kb" => "KB",
        "mb" => "MB",
        "gb" => "GB",
        "tb" => "TB",
        _ => "",
    };
    in_prose(careless).or_else(|| in_prose(word)).or_else(|| in_prose(&lower)).filter(|unit| unit.name != "dollars")
}

/// The unit of that name.
pub(super) fn named(name: &str) -> Option<&'static Unit> {
    UNITS.iter().find(|unit| unit.name == name)
}

/// The first of two amounts in the unit of the second; `None` if they measure different things.
pub(super) fn convert(value: f64, from: &Unit, to: &Unit) -> Option<f64> {
    (from.dimensions == to.dimensions).then(|| (value * from.size + from.zero - to.zero) / to.size)
}

/// What a noun such as "speed" can be measured in; empty for a noun that is not known.
pub(super) fn measured_by(noun: &str) -> &'static [Dimensions] {
    match noun {
        "speed" | "velocity" => &[SPEED, FREQUENCY, DATA_RATE],
        "distance" => &[LENGTH, TIME],
        "length" => &[LENGTH, TIME, DATA],
        "height" | "width" | "depth" | "radius" | "diameter" | "altitude" | "perimeter" | "circumference" => &[LENGTH],
        "area" => &[AREA, LENGTH],
        "mass" | "weight" => &[MASS, FORCE],
        "duration" => &[TIME],
        "temperature" => &[TEMPERATURE],
        "voltage" => &[VOLTAGE],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_convert_into_units_of_the_same_thing() {
        let to = |value: f64, from: &str, to: &str| convert(value, in_prose(from).unwrap(), in_prose(to).unwrap());
        for (value, from, into, expected) in [
            (5.0, "km", "meters", 5_000.0),
            (90.0, "min", "hours", 1.5),
            (100.0, "°C", "°F", 212.0),
            (0.0, "kelvin", "°C", -273.15),
            (1.0, "mile", "feet", 5_280.0),
            (1.0, "lb", "oz", 16.0),
            (36.0, "kph", "mph", 22.369_362_920_544),
        ] {
            assert!((to(value, from, into).unwrap() - expected).abs() < 1e-6, "{value} {from}");
        }
        assert_eq!(to(5.0, "km", "kg"), None);
    }

    #[test]
    fn signs_keep_their_case_and_names_are_unique() {
        assert_eq!((in_prose("M"), in_prose("S")), (None, None));
        assert_eq!(behind_number("KM").map(|unit| unit.name), Some("km"));
        let mut all: Vec<&str> = UNITS.iter().flat_map(|unit| unit.symbols.iter().chain(unit.words)).copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
