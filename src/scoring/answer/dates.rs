//! Normalizes dates in prose, and checks them against the proleptic Gregorian
//! calendar, as `jiff` has it. The names of months are in `months.tsv`.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use jiff::civil::Date;
use regex::Regex;

use crate::text::{any_of, clip, pattern, pattern_of_ascii_words, words};

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
struct Mention {
    day: Day,
    /// Byte offsets.
    start: usize,
    end: usize,
}

const MAX_BYTES: usize = 64_000;
/// The most dates of one text that are read.
const MAX_DATES: usize = 60;

/// Returns the names of the months with their numbers.
fn months() -> impl Iterator<Item = (i16, &'static str)> {
    let rows = include_str!("months.tsv")
        .lines()
        .filter(|row| !row.starts_with('#'));
    let names = (1..).zip(rows);
    names.flat_map(|(number, row)| row.split_whitespace().map(move |name| (number, name)))
}

static DATE: LazyLock<Regex> = LazyLock::new(|| pattern_of_ascii_words(&date()));
/// The same for texts with one of [`OTHER_NAMES`]: boundaries of words of all scripts are slow to find.
static DATE_OF_ANY_SCRIPT: LazyLock<Regex> = LazyLock::new(|| pattern(&date()));
static OTHER_NAMES: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let names = months().map(|(_, name)| name);
    any_of(&names.filter(|name| !name.is_ascii()).collect::<Vec<_>>())
});

/// Returns the pattern of a date.
fn date() -> String {
    let mut names: Vec<&str> = months().map(|(_, name)| name).collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let month = names.join("|");
    format!(
        r"(?x)
        (?:
            \b(?P<figures>\d{{4}}-\d{{2}}-\d{{2}}\b
                | [12]\d{{3}}/(?:0?[1-9]|1[0-2])/(?:0?[1-9]|[12]\d|3[01])\b
                | [12]\d{{3}}\.(?:0[1-9]|1[0-2])\.(?:0[1-9]|[12]\d|3[01])\b | \d{{4}}年\d{{1,2}}月\d{{1,2}}日
                | \d{{4}}년\s?\d{{1,2}}월\s?\d{{1,2}}일 | \d{{1,2}}/\d{{1,2}}/[12]\d{{3}}\b
                | \d{{1,2}}\.\s?\d{{1,2}}\.\s?[12]\d{{3}}\b)
            | \b(?P<month1>{month})\.?\s+(?P<day1>\d{{1,2}})(?:st|nd|rd|th)?\b
                (?:(?:\s*,\s*|\s+(?:\p{{L}}{{2}}\s+)?)(?P<year1>[12]\d{{3}})\b)?
            | \b(?P<day2>\d{{1,2}})(?:st|nd|rd|th|er|\.|º)?\s+(?:(?:of|de|di|del)\s+)?
                (?P<month2>{month})\b\.?(?:,?\s+(?:(?:of|de|del)\s+)?(?P<year2>[12]\d{{3}})\b)?
            | \b(?P<month3>{month})\.?,?\s+(?:(?:of|de|del)\s+)?(?P<year3>[12]\d{{3}})\b
        )"
    )
}

/// Returns the dates of a text, in order. All-numeric dates with slashes are left out if the country
/// decides whether "04/07" is in April or July.
fn mentions(text: &str) -> Vec<Mention> {
    let text = clip(text, MAX_BYTES);
    let date = if !text.is_ascii() && OTHER_NAMES.is_match(text) {
        &DATE_OF_ANY_SCRIPT
    } else {
        &DATE
    };
    let found = date.captures_iter(text).filter_map(|found| {
        let part = |name: &str| found.name(name).map(|part| part.as_str());
        let any = |names: [&str; 3]| names.into_iter().find_map(part);
        let number = |text: &str| text.parse::<i16>().ok();
        let figures = part("figures").unwrap_or_default();
        let has_slashes = figures.contains('/');
        let figures = figures
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(number);
        let (year, month, day) = match figures.collect::<Vec<_>>()[..] {
            [year, month, day] if year > 31 => (Some(year), month, Some(day)),
            [month, day, year] if has_slashes && month <= 12 && day > 12 => {
                (Some(year), month, Some(day))
            }
            [day, _, _] if has_slashes && day <= 12 => return None,
            [day, month, year] => (Some(year), month, Some(day)),
            _ => {
                let name = any(["month1", "month2", "month3"])?;
                let (month, _) = months().find(|(_, known)| *known == name)?;
                let year = any(["year1", "year2", "year3"]).and_then(number);
                (year, month, any(["day1", "day2", "-"]).and_then(number))
            }
        };
        let whole = found.get(0)?;
        Some(Mention {
            day: Day {
                year,
                month: i8::try_from(month).ok()?,
                day: day.and_then(|day| i8::try_from(day).ok()),
            },
            start: whole.start(),
            end: whole.end(),
        })
    });
    found.take(MAX_DATES).collect()
}

/// Returns whether the dates of a text have this day: as a date, or as a number beside another day of
/// its month, as in "9 to 10 November 1989". `None` if the text has no dates.
pub fn have(text: &str, day: &Day) -> Option<bool> {
    let text = clip(text, MAX_BYTES);
    let is_month_of = |it: &Day| Day { day: None, ..*it }.same(day);
    let mut found = mentions(text);
    found.retain(|it| it.day.exists());
    let numbers = text.split(|c: char| !c.is_numeric());
    let mut numbers = numbers.filter_map(|number| number.parse::<i8>().ok());
    let mut is_beside =
        || found.iter().any(|it| is_month_of(&it.day)) && numbers.any(|it| Some(it) == day.day);
    let is_it = |it: &Mention| it.day.same(day);
    (!found.is_empty()).then(|| found.iter().any(is_it) || is_beside())
}

/// Returns the only date of a text with at most two words around it: "on July 4th, 1776".
fn only(text: &str) -> Option<(Mention, Vec<String>)> {
    let [one] = mentions(text)[..] else {
        return None;
    };
    let around = [words(text.get(..one.start)?), words(text.get(one.end..)?)].concat();
    let around: Vec<String> = around.into_iter().map(String::from).collect();
    (around.len() <= 2).then_some((one, around))
}

/// Returns the date that a text consists of, with the words around it.
pub fn alone(text: &str) -> Option<(Day, Vec<String>)> {
    let (one, around) = only(text)?;
    one.day.exists().then_some((one.day, around))
}

/// True if the text is a date that does not exist: a day of a month and year in words or in ISO 8601
/// form. Before 1583 calendars differ.
pub fn is_impossible(text: &str) -> bool {
    only(text).is_some_and(|(one, _)| {
        let figures = text.get(one.start..one.end).unwrap_or_default();
        let is_real = one.day.year.is_some_and(|year| year >= 1583);
        is_real && !figures.contains(['.', '/']) && !one.day.exists()
    })
}

/// Returns the number of dates of a text that do not exist.
pub fn faulty(text: &str) -> usize {
    let mentions = mentions(text);
    mentions.iter().filter(|it| !it.day.exists()).count()
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
            "the 4th of July, 1776",
            "4.7.1776",
            "am 4. Juli 1776",
            "le 4 juillet 1776",
            "4 de julio de 1776",
            "1776年7月4日",
            "1776년 7월 4일",
            "Thursday, July 4, 1776",
            "Donnerstag, den 4. Juli 1776",
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
        for text in ["18/06/1815", "06/18/1815"] {
            assert_eq!(label(text).as_deref(), Some("1815-06-18"), "{text}");
        }
    }

    #[test]
    fn a_part_of_a_date_is_the_date_and_another_date_is_not() {
        let same = |a, b| alone(a).unwrap().0.same(&alone(b).unwrap().0);
        assert!(same("July 1776", "July 4, 1776") && same("4 July", "1776-07-04"));
        assert!(!same("July 4, 1776", "July 5, 1776"));
        // Each states a part that the other does not.
        assert!(!same("July 1776", "July 4"));
    }

    #[test]
    fn dates_are_held_against_the_calendar() {
        for (text, expected) in [
            (
                "On 2023-02-29. On February 30. On 2024-13-01. Am 31. April 2020.",
                4,
            ),
            ("On 2024-02-29, March 31 and May 5, 2020.", 0),
        ] {
            assert_eq!(faulty(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_day_is_found_however_it_is_written(
            year in 1800i16..2100, month in 1i8..=12, day in 1i8..=28
        ) {
            let date = Date::new(year, month, day).unwrap();
            for form in ["%Y-%m-%d", "%B %-d, %Y", "%-d %b %Y", "%A, %-d %B %Y"] {
                let text = date.strftime(form).to_string();
                prop_assert_eq!(label(&text), Some(date.to_string()), "{}", text);
                prop_assert_eq!(faulty(&text), 0);
            }
        }

        #[test]
        fn no_text_makes_it_panic(
            text in ".{0,120}",
            like in "(am |[0-9]{1,4}| |-|\\.|,|May|Juli|th|Monday|年){0,40}",
        ) {
            for text in [text, like] {
                faulty(&text);
                alone(&text);
            }
        }
    }
}
