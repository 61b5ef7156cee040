//! Dates in prose: found in the usual notations, brought to one form, and held against the calendar (the proleptic
//! Gregorian one, as `jiff` has it).

use std::sync::LazyLock;

use jiff::civil::{Date, Weekday};
use regex::Regex;

use super::pattern::pattern;
use super::text::{MAX_BYTES, clip, sentences};

/// A day, or a part of one: a month of a year, or a day of every year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Day {
    pub year: Option<i16>,
    pub month: i8,
    pub day: Option<i8>,
}

impl Day {
    /// Whether two dates can be one: what both tell is the same, and one tells all that the other does.
    pub fn same(&self, other: &Day) -> bool {
        let nested = |a: &Day, b: &Day| (a.year.is_none() || a.year == b.year) && (a.day.is_none() || a.day == b.day);
        self.month == other.month && (nested(self, other) || nested(other, self))
    }

    /// Whether two dates cannot be one: they differ in something that both tell.
    pub fn differs(&self, other: &Day) -> bool {
        let apart = |a: Option<i16>, b: Option<i16>| a.zip(b).is_some_and(|(a, b)| a != b);
        self.month != other.month
            || apart(self.year, other.year)
            || apart(self.day.map(i16::from), other.day.map(i16::from))
    }

    /// As ISO 8601 writes it, as far as it is known: "1776-07-04", "1776-07", "--07-04".
    pub fn label(&self) -> String {
        let year = self.year.map_or_else(|| "-".to_owned(), |year| format!("{year:04}"));
        let day = self.day.map_or_else(String::new, |day| format!("-{day:02}"));
        format!("{year}-{:02}{day}", self.month)
    }

    fn date(&self) -> Option<Date> {
        Date::new(self.year?, self.month, self.day?).ok()
    }

    /// Whether some calendar page has it: February 29 of no named year counts.
    fn exists(&self) -> bool {
        self.day.is_none_or(|day| Date::new(self.year.unwrap_or(2_000), self.month, day).is_ok())
    }
}

/// A date as it stands in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mention {
    pub day: Day,
    weekday: Option<Weekday>,
    /// Byte offsets.
    pub start: usize,
    pub end: usize,
}

/// More dates of one text than these are not looked at.
const MAX_DATES: usize = 60;
/// Weekdays before this year may be those of another calendar (Britain changed in 1752).
const GREGORIAN: i16 = 1753;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

const WEEKDAYS: [(&str, Weekday); 7] = [
    ("mon", Weekday::Monday),
    ("tue", Weekday::Tuesday),
    ("wed", Weekday::Wednesday),
    ("thu", Weekday::Thursday),
    ("fri", Weekday::Friday),
    ("sat", Weekday::Saturday),
    ("sun", Weekday::Sunday),
];

static DATE: LazyLock<Regex> = LazyLock::new(|| {
    let month = r"(?:(?:January|February|March|April|May|June|July|August|September|October|November|December)\b|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)";
    let weekday = r"(?:(?P<weekday>Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day|\.)?,?\s+(?:the\s+)?)?";
    pattern(&format!(
        r"\b{weekday}(?:(?P<iso>\d{{4}}-\d{{2}}-\d{{2}})\b|(?P<month1>{month})\s+(?P<day1>\d{{1,2}})(?:st|nd|rd|th)?\b(?:(?:\s*,\s*|\s+(?:of\s+|in\s+)?)(?P<year1>[12]\d{{3}})\b)?|(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month2>{month})(?:\b(?:,?\s+(?:of\s+)?)(?P<year2>[12]\d{{3}})\b)?|(?P<month3>{month}),?\s+(?:of\s+)?(?P<year3>[12]\d{{3}})\b|(?P<dotted>\d{{1,2}}\.\s?\d{{1,2}}\.\s?[12]\d{{3}})\b)"
    ))
});

/// The dates of a text, in order. Days and months in bare figures with strokes are left out: whether "04/07" is in April
/// or July depends on where it was written.
pub(super) fn mentions(text: &str) -> Vec<Mention> {
    let text = clip(text, MAX_BYTES);
    DATE.captures_iter(text)
        .filter_map(|found| {
            let part = |name: &str| found.name(name).map(|part| part.as_str());
            let number = |text: &str| text.trim().parse::<i16>().ok();
            let numbers = |text: &str, sign: char| text.split(sign).filter_map(number).collect::<Vec<_>>();
            let (year, month, day) = if let Some(iso) = part("iso") {
                let [year, month, day] = numbers(iso, '-').try_into().ok()?;
                (Some(year), month, Some(day))
            } else if let Some(dotted) = part("dotted") {
                let [day, month, year] = numbers(dotted, '.').try_into().ok()?;
                (Some(year), month, Some(day))
            } else {
                let name = part("month1").or(part("month2")).or(part("month3"))?.to_lowercase();
                let month = MONTHS.iter().position(|month| name.starts_with(month))? as i16 + 1;
                let year = part("year1").or(part("year2")).or(part("year3")).and_then(number);
                (year, month, part("day1").or(part("day2")).and_then(number))
            };
            let weekday = part("weekday").map(str::to_lowercase);
            let weekday = weekday.and_then(|name| WEEKDAYS.iter().find(|(head, _)| name.starts_with(head)));
            let whole = found.get(0)?;
            Some(Mention {
                day: Day { year, month: i8::try_from(month).ok()?, day: day.and_then(|day| i8::try_from(day).ok()) },
                weekday: weekday.map(|(_, weekday)| *weekday),
                start: whole.start(),
                end: whole.end(),
            })
        })
        .take(MAX_DATES)
        .collect()
}

/// The date that a text is, with no more than a word or two around it: "on July 4th, 1776".
pub(super) fn alone(text: &str) -> Option<Day> {
    let found = mentions(text);
    let [one] = found.as_slice() else { return None };
    let around = text.get(..one.start)?.split_whitespace().count()
        + text.get(one.end..)?.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).count();
    (around <= 1 && one.day.exists()).then_some(one.day)
}

/// What holding a text's dates against the calendar gave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Checked {
    /// Dates that no calendar has.
    pub impossible: usize,
    /// Full dates that fall on another day of the week than the one named.
    pub misnamed: usize,
    /// Stated numbers of days or weeks between two dates.
    pub right: usize,
    pub wrong: usize,
}

pub(super) fn checked(text: &str) -> Checked {
    static DENIED: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\b(?:not|n't|no such|never|invalid|impossible|non-?existent|error|fails?|rejects?|wrong|incorrect)\b",
        )
    });
    let mut out = Checked::default();
    for sentence in sentences(clip(text, MAX_BYTES)) {
        let found = mentions(sentence);
        if found.is_empty() || DENIED.is_match(sentence) {
            continue;
        }
        for mention in &found {
            let named = mention.weekday.zip(mention.day.date().filter(|date| date.year() >= GREGORIAN));
            out.impossible += usize::from(!mention.day.exists());
            out.misnamed += usize::from(named.is_some_and(|(weekday, date)| date.weekday() != weekday));
        }
        match span(sentence, &found) {
            Some(true) => out.right += 1,
            Some(false) => out.wrong += 1,
            None => {}
        }
    }
    out
}

/// "From 3 March to 10 March is 7 days": whether the number holds, both ends counted or not.
fn span(sentence: &str, found: &[Mention]) -> Option<bool> {
    static SPAN: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)^[\s,]*(?:inclusive(?:ly)?,?\s*)?(?:is|are|there are|makes?|=|spans?|lasts?|covers?|takes?|amounts? to)\s+(?:exactly |a total of )?(\d{1,5})\s+(days?|weeks?)\b",
        )
    });
    static FROM: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\b(?:from|between)\s*$"));
    static TO: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)^\s*(?:to|until|till|and|through|–|-)\s*$"));
    let [a, b] = found else { return None };
    let stands = FROM.is_match(sentence.get(..a.start)?) && TO.is_match(sentence.get(a.end..b.start)?);
    let stated = SPAN.captures(sentence.get(b.end..)?).filter(|_| stands)?;
    let days: i64 = stated.get(1)?.as_str().parse().ok()?;
    let days = if stated.get(2)?.as_str().to_lowercase().starts_with('w') { days * 7 } else { days };
    // A year stated once goes for both; without one, any year will do, but not every year has a February 29.
    let year = a.day.year.or(b.day.year);
    let years = year.map_or_else(|| vec![2_023, 2_024], |year| vec![year]);
    let gaps: Vec<i64> = years
        .into_iter()
        .filter_map(|year| {
            let from = Day { year: a.day.year.or(Some(year)), ..a.day }.date()?;
            let to = Day { year: b.day.year.or(Some(year)), ..b.day }.date()?;
            // Into the next year, where none is named.
            let to = if to < from && b.day.year.is_none() { Day { year: Some(year + 1), ..b.day }.date()? } else { to };
            Some(i64::from(from.until(to).ok()?.get_days()))
        })
        .collect();
    (!gaps.is_empty()).then(|| gaps.iter().any(|gap| [gap - 1, *gap, gap + 1].contains(&days)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn label(text: &str) -> Option<String> {
        alone(text).map(|day| day.label())
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
            "Thursday, July 4, 1776",
            "on Jul. 4 1776",
        ] {
            assert_eq!(label(text).as_deref(), Some("1776-07-04"), "{text}");
        }
        assert_eq!(label("July 1776").as_deref(), Some("1776-07"));
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
    fn a_part_of_a_date_is_the_date_and_another_date_is_not() {
        let day = |text| alone(text).unwrap();
        assert!(day("July 1776").same(&day("July 4, 1776")) && day("4 July").same(&day("1776-07-04")));
        assert!(!day("July 4, 1776").same(&day("July 5, 1776")) && day("July 4, 1776").differs(&day("July 4, 1777")));
        // Each tells what the other does not.
        assert!(!day("July 1776").same(&day("July 4")) && !day("July 1776").differs(&day("July 4")));
    }

    #[test]
    fn dates_are_held_against_the_calendar() {
        let of = |text: &str| {
            let found = checked(text);
            (found.impossible, found.misnamed, found.right, found.wrong)
        };
        assert_eq!(of("On 2023-02-29. On February 30. On 2024-13-01. On 31 April 2020."), (4, 0, 0, 0));
        assert_eq!(of("On 2024-02-29, March 31 and May 5, 2020."), (0, 0, 0, 0));
        assert_eq!(of("February 30 does not exist."), (0, 0, 0, 0));
        assert_eq!(of("It begins on Monday, 4 July 2022."), (0, 0, 0, 0));
        assert_eq!(of("It begins on Tuesday, 4 July 2022."), (0, 1, 0, 0));
        assert_eq!(of("From 3 March to 10 March is 7 days."), (0, 0, 1, 0));
        assert_eq!(of("From 3 March to 10 March is 12 days."), (0, 0, 0, 1));
        assert_eq!(of("Between 20 December 2023 and 3 January 2024 there are 2 weeks."), (0, 0, 1, 0));
        assert_eq!(of("From 3 March to 10 March it rained on 2 days."), (0, 0, 0, 0));
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
        fn no_text_makes_it_panic(text in ".{0,120}", like in "(from |to |is |[0-9]{1,4}| |-|\\.|,|May|July|th|Monday| days){0,40}") {
            checked(&text);
            checked(&like);
            alone(&like);
        }
    }
}
