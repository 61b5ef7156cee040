//! Normalizes dates and times of day in prose, and checks dates against the proleptic Gregorian
//! calendar, as `jiff` has it. The names of months and weekdays are in `calendar.tsv`.

use std::sync::LazyLock;

use jiff::civil::{Date, Weekday};
use regex::{Captures, Regex};

use super::phrase;
use crate::text::{clip, pattern};

/// A day, or a part of one: a month of a year, or a day of every year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day {
    pub year: Option<i16>,
    pub month: i8,
    pub day: Option<i8>,
}

impl Day {
    /// True if two dates can be the same: they agree where both are known, and one states all that
    /// the other does.
    pub fn same(&self, other: &Day) -> bool {
        let nested = |a: &Day, b: &Day| {
            (a.year.is_none() || a.year == b.year) && (a.day.is_none() || a.day == b.day)
        };
        self.month == other.month && (nested(self, other) || nested(other, self))
    }

    /// Returns the known parts in ISO 8601 form: "1776-07-04", "1776-07", "--07-04".
    pub fn label(&self) -> String {
        let year = self
            .year
            .map_or_else(|| "-".to_owned(), |year| format!("{year:04}"));
        let day = self
            .day
            .map_or_else(String::new, |day| format!("-{day:02}"));
        format!("{year}-{:02}{day}", self.month)
    }

    fn date(&self) -> Option<Date> {
        Date::new(self.year?, self.month, self.day?).ok()
    }

    /// True if the date exists in the calendar. February 29 without a year does.
    fn exists(&self) -> bool {
        (1..=12).contains(&self.month)
            && self
                .day
                .is_none_or(|day| Date::new(self.year.unwrap_or(2_000), self.month, day).is_ok())
    }
}

/// A date in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mention {
    pub day: Day,
    weekday: Option<i8>,
    /// Byte offsets.
    pub start: usize,
    pub end: usize,
}

const MAX_BYTES: usize = 64_000;
/// The most dates of one text that are read.
const MAX_DATES: usize = 60;
/// Weekdays before this year may be those of another calendar (Britain changed in 1752).
const GREGORIAN: i16 = 1753;
/// The bytes around a date that are searched for a negation.
const DENIAL_BYTES: usize = 60;

/// Returns the rows of a kind: number and names.
fn names(kind: &str) -> impl Iterator<Item = (i8, Vec<&'static str>)> {
    include_str!("calendar.tsv")
        .lines()
        .filter_map(move |line| {
            let (number, names) = line
                .strip_prefix(kind)?
                .strip_prefix('\t')?
                .split_once('\t')?;
            Some((number.parse().ok()?, names.split_whitespace().collect()))
        })
}

fn number_of(kind: &str, name: &str) -> Option<i8> {
    let name = name.trim_end_matches('.');
    names(kind)
        .find(|(_, names)| {
            names
                .iter()
                .any(|known| known.trim_end_matches('.') == name)
        })
        .map(|(number, _)| number)
}

fn alternatives(kind: &str) -> String {
    let mut all: Vec<String> = names(kind)
        .flat_map(|(_, names)| names)
        .map(regex::escape)
        .collect();
    all.sort_by_key(|name| std::cmp::Reverse(name.len()));
    all.join("|")
}

static DATE: LazyLock<Regex> = LazyLock::new(|| {
    let month = format!(r"(?:{})\b\.?", alternatives("month"));
    let weekday = format!(
        r"(?:(?P<weekday>{})\b\.?,?\s+(?:\p{{L}}{{2,3}}\s+)?)?",
        alternatives("weekday")
    );
    pattern(&format!(
        r"\b{weekday}(?:(?P<iso>\d{{4}}-\d{{2}}-\d{{2}})\b|(?P<month1>{month})\s+(?P<day1>\d{{1,2}})(?:st|nd|rd|th)?\b(?:(?:\s*,\s*|\s+(?:\p{{L}}{{2}}\s+)?)(?P<year1>[12]\d{{3}})\b)?|(?P<day2>\d{{1,2}})(?:st|nd|rd|th|er|\.|º)?\s+(?:(?:of|de|di|del)\s+)?(?P<month2>{month})(?:(?:,?\s+(?:(?:of|de|del)\s+)?)(?P<year2>[12]\d{{3}})\b)?|(?P<month3>{month}),?\s+(?:(?:of|de|del)\s+)?(?P<year3>[12]\d{{3}})\b|(?P<dotted>\d{{1,2}}\.\s?\d{{1,2}}\.\s?[12]\d{{3}})\b)"
    ))
});

/// Matches every text with a date, and others. It has no word boundaries, so it is fast.
static MAY_BE_DATE: LazyLock<Regex> = LazyLock::new(|| {
    let month = alternatives("month");
    pattern(&format!(
        r"\d{{4}}-\d{{2}}-\d{{2}}|(?:{month})\.?,?\s+(?:(?:of|de|del)\s+)?\d|\d(?:st|nd|rd|th|er|\.|º)?\s+(?:(?:of|de|di|del)\s+)?(?:{month})|\d\.\s?\d{{1,2}}\.\s?[12]\d{{3}}"
    ))
});

/// Returns the dates of a text, in order. All-numeric dates with slashes are left out: whether
/// "04/07" is in April or July depends on the country.
pub fn mentions(text: &str) -> Vec<Mention> {
    let text = clip(text, MAX_BYTES);
    if !MAY_BE_DATE.is_match(text) {
        return vec![];
    }
    DATE.captures_iter(text)
        .filter_map(|found| {
            let part = |name: &str| found.name(name).map(|part| part.as_str());
            let number = |text: &str| text.trim().parse::<i16>().ok();
            let numbers =
                |text: &str, sign: char| text.split(sign).filter_map(number).collect::<Vec<_>>();
            let (year, month, day) = if let Some(iso) = part("iso") {
                let [year, month, day] = numbers(iso, '-').try_into().ok()?;
                (Some(year), i8::try_from(month).ok()?, Some(day))
            } else if let Some(dotted) = part("dotted") {
                let [day, month, year] = numbers(dotted, '.').try_into().ok()?;
                (Some(year), i8::try_from(month).ok()?, Some(day))
            } else {
                let name = part("month1").or(part("month2")).or(part("month3"))?;
                let year = part("year1")
                    .or(part("year2"))
                    .or(part("year3"))
                    .and_then(number);
                (
                    year,
                    number_of("month", name)?,
                    part("day1").or(part("day2")).and_then(number),
                )
            };
            let whole = found.get(0)?;
            Some(Mention {
                day: Day {
                    year,
                    month,
                    day: day.and_then(|day| i8::try_from(day).ok()),
                },
                weekday: part("weekday").and_then(|name| number_of("weekday", name)),
                start: whole.start(),
                end: whole.end(),
            })
        })
        .take(MAX_DATES)
        .collect()
}

/// Rewrites Japanese and Chinese dates and times as plain figures: "2024年3月4日", "午後3時".
pub fn in_figures(text: &str) -> String {
    static DATE: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(\d{4})年(?:(\d{1,2})月)?(?:(\d{1,2})日)?"));
    static TIME: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"(午前|午後|上午|下午)?\s*(\d{1,2})\s*[時点时](?:\s*(\d{1,2})分)?")
    });
    if !text.contains(['年', '時', '点', '时']) {
        return text.to_owned();
    }
    let part = |found: &Captures<'_>, n: usize| found.get(n).map(|part| part.as_str().to_owned());
    let date = |found: &Captures<'_>| {
        let parts = (1..=3).filter_map(|n| part(found, n));
        parts
            .map(|digits| format!("{digits:0>2}"))
            .collect::<Vec<_>>()
            .join("-")
    };
    let time = |found: &Captures<'_>| {
        let half = match part(found, 1).as_deref() {
            Some("午前" | "上午") => " am",
            Some(_) => " pm",
            None => "",
        };
        format!(
            "{}:{:0>2}{half}",
            part(found, 2).unwrap_or_default(),
            part(found, 3).unwrap_or_default()
        )
    };
    TIME.replace_all(&DATE.replace_all(text, date), time)
        .into_owned()
}

/// Returns the date if the text is a date with at most two words around it: "on July 4th, 1776".
pub fn alone(text: &str) -> Option<(Day, Vec<String>)> {
    let found = mentions(text);
    let [one] = found.as_slice() else { return None };
    let words = |text: &str| crate::text::words(text);
    let around = [words(text.get(..one.start)?), words(text.get(one.end..)?)].concat();
    (around.len() <= 2 && one.day.exists()).then_some((one.day, around))
}

/// Returns the time of day if the text is one, in seconds from midnight, and its zone: "20:00", "8
/// pm", "20 Uhr", "20h30".
pub fn time(text: &str) -> Option<(u32, Option<String>)> {
    static TIME: LazyLock<Regex> = LazyLock::new(|| {
        let clock = alternatives("clock");
        pattern(&format!(
            r"(?i)^(?:[\p{{L}}à]{{1,7}}\s+){{0,2}}(\d{{1,2}})(?:(?:[:.]|\s?h\s?)(\d{{2}}))?(?::(\d{{2}}))?\s?({clock})?(?:\s+(\p{{L}}+))?$"
        ))
    });
    let undotted = text
        .replace("p.m", "pm")
        .replace("a.m", "am")
        .replace("P.M", "pm")
        .replace("A.M", "am");
    let text = undotted.trim_end_matches('.');
    let found = TIME.captures(text)?;
    let part = |n: usize| found.get(n).map(|part| part.as_str());
    let number = |n: usize| part(n).map_or(Some(0), |digits| digits.parse::<u32>().ok());
    // "20 h" and "20 hours" may be durations, and are compared as durations.
    let word = part(4).map(str::to_lowercase);
    let minutes = found.get(2).and_then(|minutes| text.get(..minutes.start()));
    if word.is_none() && !minutes.is_some_and(|head| head.trim_end().ends_with([':', 'h', 'H'])) {
        return None;
    }
    let (hour, minute, second) = (number(1)?, number(2)?, number(3)?);
    let half = word.filter(|word| word.trim_end_matches('.').ends_with('m'));
    let hour = match half {
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(word) => hour % 12 + if word.starts_with('p') { 12 } else { 0 },
        None => hour,
    };
    let zone = part(5).map(str::to_lowercase);
    (hour <= 24 && minute < 60 && second < 60)
        .then_some((hour * 3_600 + minute * 60 + second, zone))
}

/// The counts of faulty dates of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checked {
    /// Dates that do not exist.
    pub impossible: usize,
    /// Full dates with the wrong day of the week.
    pub misnamed: usize,
}

/// Counts the faulty dates of a text. A date beside a negation ("February 30 does not exist") is
/// left out.
pub fn checked(text: &str) -> Checked {
    let mut out = Checked::default();
    for mention in mentions(text) {
        let from = text.floor_char_boundary(mention.start.saturating_sub(DENIAL_BYTES));
        let to = text.ceil_char_boundary((mention.end + DENIAL_BYTES).min(text.len()));
        let impossible = !mention.day.exists();
        let date = mention.day.date().filter(|date| date.year() >= GREGORIAN);
        let weekday = mention
            .weekday
            .and_then(|number| Weekday::from_monday_one_offset(number).ok());
        let misnamed = weekday
            .zip(date)
            .is_some_and(|(weekday, date)| date.weekday() != weekday);
        if (impossible || misnamed) && !text.get(from..to).is_some_and(phrase::denies) {
            out.impossible += usize::from(impossible);
            out.misnamed += usize::from(misnamed);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn label(text: &str) -> Option<String> {
        alone(text).map(|(day, _)| day.label())
    }

    #[test]
    fn the_usual_notations_are_one_date() {
        for text in [
            "1776-07-04",
            "July 4, 1776",
            "July 4th, 1776",
            "4 July 1776",
            "the 4th of July, 1776",
            "4.7.1776",
            "4. Juli 1776",
            "am 4. Juli 1776",
            "4 juillet 1776",
            "le 4 juillet 1776",
            "4 de julio de 1776",
            "Thursday, July 4, 1776",
            "Donnerstag, den 4. Juli 1776",
            "jeudi 4 juillet 1776",
            "on Jul. 4 1776",
        ] {
            assert_eq!(label(text).as_deref(), Some("1776-07-04"), "{text}");
        }
        assert_eq!(label("July 1776").as_deref(), Some("1776-07"));
        assert_eq!(label("julio de 1776").as_deref(), Some("1776-07"));
        assert_eq!(label("July 4").as_deref(), Some("--07-04"));
        for text in [
            "1776",
            "04/07/1776",
            "May I ask",
            "in 4 years",
            "July 4 and July 5",
            "version 1.2.2024a",
            "40 Junior officers",
        ] {
            assert_eq!(label(text), None, "{text}");
        }
    }

    #[test]
    fn times_of_day_are_read_in_their_notations() {
        for text in [
            "20:00",
            "8 pm",
            "8:00 p.m.",
            "8pm",
            "20 Uhr",
            "20h00",
            "20.00 Uhr",
            "at 8 pm",
            "um 20 Uhr",
            "20:00 UTC",
        ] {
            assert_eq!(time(text).map(|(time, _)| time), Some(20 * 3_600), "{text}");
        }
        let of = |text: &str| time(text).unwrap();
        assert_eq!(
            (of("12 am"), of("12 pm"), of("20:30:15")),
            ((0, None), (43_200, None), (73_815, None))
        );
        assert_eq!(of("10:00 CET"), (36_000, Some("cet".to_owned())));
        for text in ["20", "3:4", "25:00", "13 pm", "8 hours", "20.00", "20:75"] {
            assert_eq!(time(text), None, "{text}");
        }
    }

    #[test]
    fn a_part_of_a_date_is_the_date_and_another_date_is_not() {
        let day = |text| alone(text).unwrap().0;
        assert!(
            day("July 1776").same(&day("July 4, 1776")) && day("4 July").same(&day("1776-07-04"))
        );
        assert!(!day("July 4, 1776").same(&day("July 5, 1776")));
        // Each states a part that the other does not.
        assert!(!day("July 1776").same(&day("July 4")));
    }

    #[test]
    fn dates_are_held_against_the_calendar() {
        let of = |text: &str| {
            let found = checked(text);
            (found.impossible, found.misnamed)
        };
        assert_eq!(
            of("On 2023-02-29. On February 30. On 2024-13-01. Am 31. April 2020."),
            (4, 0)
        );
        assert_eq!(of("On 2024-02-29, March 31 and May 5, 2020."), (0, 0));
        assert_eq!(of("February 30 does not exist."), (0, 0));
        assert_eq!(of("Den 30. Februar gibt es nicht."), (0, 0));
        assert_eq!(of("It begins on Monday, 4 July 2022."), (0, 0));
        assert_eq!(of("It begins on Tuesday, 4 July 2022."), (0, 1));
        assert_eq!(of("Es beginnt am Dienstag, dem 4. Juli 2022."), (0, 1));
    }

    proptest! {
        #[test]
        fn every_day_is_found_however_it_is_written(year in 1800i16..2100, month in 1i8..=12, day in 1i8..=28) {
            let date = Date::new(year, month, day).unwrap();
            for form in ["%Y-%m-%d", "%B %-d, %Y", "%-d %b %Y", "%A, %-d %B %Y"] {
                let text = date.strftime(form).to_string();
                prop_assert_eq!(label(&text), Some(date.to_string()), "{}", text);
                prop_assert_eq!(checked(&text), Checked::default());
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,120}", like in "(am |[0-9]{1,4}| |-|:|\\.|,|May|Juli|th|Monday|pm| h){0,40}") {
            for text in [text, like] {
                checked(&text);
                alone(&text);
                time(&text);
            }
        }
    }

    proptest! {
        #[test]
        fn no_text_with_a_date_is_passed_over(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "July", "juillet", "Mar.", "May", "Juli", "4", "17", "1776", "2024-03-04", "4.7.1776", "th", "º",
                    ".", ",", " ", "  ", "of", "de", "del", "am", "Monday", "x", "-",
                ]),
                0..9,
            ),
            gap in prop::sample::select(vec!["", " ", "\u{a0}"]),
        ) {
            let text = pieces.join(gap);
            prop_assert!(!DATE.is_match(&text) || MAY_BE_DATE.is_match(&text), "{text:?}");
        }
    }
}
