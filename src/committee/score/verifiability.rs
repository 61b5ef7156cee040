//! Verifiability: can a reader check what the output says, and does what can be checked by machine hold?
//!
//! | feature | value | points |
//! | --- | --- | --- |
//! | `base` | | 9 |
//! | `figures` | distinct numbers | +0.75 each, at most +3 |
//! | `names` | distinct names of things | +0.75 each, at most +2.5 |
//! | `reasoning` | sentences that show how (because, so, first, =) or explain further | +1 each, at most +3 |
//! | `arithmetic_right` | equations that hold | +1.5 each, at most +4 |
//! | `arithmetic_wrong` | equations that do not | -6 each, at most -12 |
//! | `units_right` | stated conversions and results with units that hold | +0.75 each, at most +1.5 |
//! | `units_wrong` | those that do not | -5 each, at most -10 |
//! | `units_mixed` | sums and equations of what cannot be mixed, such as km and kg | -5 each, at most -10 |
//! | `code_parsed` | code blocks that the parser of their language takes | +3 each, at most +4 |
//! | `code_broken` | code blocks that it does not take, or whose brackets do not pair where there is none | -5 each, at most -10 |
//! | `commands` | inline code and commands | +0.75 each, at most +2 |
//! | `dangerous_command` | shell lines that destroy data | -4 each, at most -8 |
//! | `sources` | links, documents, "according to NAME" | +1.5 each, at most +3 |
//! | `assumptions`, `failure_modes` | stated ones; assumptions in reports only, not in prose | +1 each, at most +2 each |
//! | `tests` | ways to test or check the result | +1 each, at most +2 |
//! | `detail` | words, on a scale of logarithms with 40 in the middle and 200 at the end, where the request asks for more than a short answer | -6 to +6 |
//! | `puzzle_solved` | 1 if it solves the number puzzle that the request sets, 0 if not | +15, -15 |
//! | `sweeping` | unconditional certainty per sentence, "Certainly!" at the start left out | 0 to -6 |
//! | `vague_source` | "studies show", "experts say" | -1.5 each, at most -4 |
//! | `bad_date` | dates that no calendar has | -3 each, at most -6 |
//! | `bad_weekday` | full dates that fall on another day of the week than the one named | -3 each, at most -6 |
//! | `span_right`, `span_wrong` | stated numbers of days between two dates that hold, or do not | +1.5 each, at most +3; -4 each, at most -8 |
//!
//! `figures`, `names`, `reasoning` and `detail` count three tenths where a short thing is asked for: a title, one sentence.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::answer::is_opener;
use super::markdown::{Block, dangerous_commands};
use super::pattern::pattern;
use super::reading::Reading;
use super::request::{Expect, Request};
use super::snippet::{self, Soundness};
use super::tally::{Tally, ramp};
use super::text::{is_content, ratio, words};
use crate::domain::{Axis, Obtained};

pub(super) fn measure(reading: &Reading<'_>, request: &Request) -> Tally {
    let mut tally = Tally::new(Axis::Verifiability, 9.0);
    let prose = &reading.markdown.prose;
    let report = reading.output.report;
    let mut up_to = |name: &str, count: usize, each: f64, most: f64| {
        let points = if each < 0.0 { (each * count as f64).max(most) } else { (each * count as f64).min(most) };
        tally.add(name, count as f64, points);
    };
    let counted = |regex: &Regex| regex.find_iter(prose).count();
    let figures: BTreeSet<&str> = reading
        .words
        .iter()
        .map(|w| w.lower.as_str())
        .filter(|w| w.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    // A title or a sentence is no better for the figures, names and reasons in it.
    let called_for = if request.brief { 0.3 } else { 1.0 };
    up_to("figures", figures.len(), 0.75 * called_for, 3.0 * called_for);
    up_to("names", names(reading), 0.75 * called_for, 2.5 * called_for);
    up_to("reasoning", explanations(reading), called_for, 3.0 * called_for);
    up_to("arithmetic_right", reading.right_equations(), 1.5, 4.0);
    up_to("arithmetic_wrong", reading.wrong_equations(), -6.0, -12.0);
    up_to("units_right", reading.quantities.right + reading.quantities.converted, 0.75, 1.5);
    up_to("units_wrong", reading.quantities.wrong, -5.0, -10.0);
    up_to("units_mixed", reading.quantities.mixed, -5.0, -10.0);
    let checks = checked_code(reading, request);
    let found = |wanted| checks.iter().filter(|check| **check == wanted).count();
    up_to("code_parsed", found(Soundness::Parsed), 3.0, 4.0);
    up_to("code_broken", found(Soundness::Broken), -5.0, -10.0);
    up_to("commands", reading.markdown.inline_code, 0.75, 2.0);
    up_to("dangerous_command", reading.markdown.blocks.iter().map(dangerous_commands).sum(), -4.0, -8.0);
    up_to("sources", counted(&SOURCE) + reading.markdown.links, 1.5, 3.0);
    // In prose the words of an assumption are those of any argument.
    if reading.output.obtained != Obtained::Text {
        up_to("assumptions", telling(&report.assumptions), 1.0, 2.0);
    }
    up_to("failure_modes", telling(&report.failure_modes), 1.0, 2.0);
    up_to("tests", counted(&TEST), 1.0, 2.0);
    up_to("vague_source", counted(&VAGUE), -1.5, -4.0);
    up_to("bad_date", reading.dates.impossible, -3.0, -6.0);
    up_to("bad_weekday", reading.dates.misnamed, -3.0, -6.0);
    up_to("span_right", reading.dates.right, 1.5, 3.0);
    up_to("span_wrong", reading.dates.wrong, -4.0, -8.0);
    if !matches!(request.expect, Expect::Value | Expect::YesNo | Expect::Choice | Expect::Short) {
        let words = reading.words.len()
            + reading.markdown.blocks.iter().map(|b| b.code.split_whitespace().count()).sum::<usize>();
        let scale = ((words.max(1) as f64) / 40.0).ln() / 5f64.ln();
        tally.add("detail", words as f64, 6.0 * called_for * scale.clamp(-1.0, 1.0));
    }
    if let Some(puzzle) = &request.puzzle {
        let solved = super::puzzle::solves(puzzle, &reading.body);
        tally.add("puzzle_solved", f64::from(u8::from(solved)), if solved { 15.0 } else { -15.0 });
    }
    let sure = reading.sentences.iter().filter(|sentence| !is_opener(sentence));
    let sweeping = sure.map(|sentence| SWEEPING.find_iter(sentence).count()).sum::<usize>();
    let sweeping = ratio(sweeping, reading.sentences.len().max(3));
    tally.add("sweeping", sweeping, -6.0 * ramp(sweeping, 0.0, 0.6));
    tally
}

/// More code blocks of one output than these are not parsed.
const MAX_BLOCKS: usize = 10;

/// What the parsers say of each code block; of the whole reply where code was asked for and none is fenced.
fn checked_code(reading: &Reading<'_>, request: &Request) -> Vec<Soundness> {
    let blocks: &[Block] = &reading.markdown.blocks;
    if blocks.is_empty() && request.expect == Expect::Code {
        return snippet::bare(&reading.output.report.reasoning).iter().map(snippet::soundness).collect();
    }
    // A block that took all there is for one is rarely written for readers: those behind it are not parsed.
    blocks.iter().take(MAX_BLOCKS).map(snippet::soundness).take_while(|found| *found != Soundness::Costly).collect()
}

static SOURCE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"https?://\S+|\b(?:RFC|ISO|IEEE|CVE|SPEC|POSIX)[- ]?\d+|\b[Aa]ccording to (?:the )?[A-Z]\w+|\b(?:the )?(?:official )?(?:documentation|man page|changelog|release notes)\b|\btheorem\b|\bformula\b",
    )
});
static TEST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:to (?:verify|check|confirm|test)|unit tests?|acceptance tests?|assert(?:s|ion)?|smoke test|can be (?:verified|checked|tested)|verify (?:that|by|with)|double-check|check(?:ing)?:)\b",
    )
});
static VAGUE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:(?:many|some|most|several) (?:experts|people|studies|researchers|scientists)|studies (?:show|have shown|suggest)|research (?:shows|suggests)|it is (?:widely|well|generally) (?:known|believed|accepted)|experts (?:say|agree))\b",
    )
});
static SWEEPING: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:definitely|undoubtedly|without (?:a |any )?doubt|guaranteed|absolutely|certainly|obviously|clearly the best|always works|never fails|everyone knows|100% (?:sure|certain|correct|safe)|trust me|there is no way|the best in the world|of course|impossible to fail)\b",
    )
});

/// Distinct capitalised words other than those that begin a sentence.
fn names(reading: &Reading<'_>) -> usize {
    let starts: BTreeSet<String> =
        reading.sentences.iter().filter_map(|s| words(s).into_iter().next()).map(|word| word.lower).collect();
    let found: BTreeSet<&str> = reading
        .words
        .iter()
        .filter(|word| word.capital && is_content(&word.lower) && word.lower.len() > 1 && !starts.contains(&word.lower))
        .map(|word| word.lower.as_str())
        .collect();
    found.len()
}

/// Sentences that say why or how; half of the others count too as soon as there is more than one.
fn explanations(reading: &Reading<'_>) -> usize {
    static HOW: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\b(?:because|since|therefore|thus|hence|so that|which means|due to|first|then|next|for example|such as|in order to|step|consists|based on|is called|defined as)\b|[=≈→]",
        )
    });
    let how = reading.sentences.iter().filter(|s| HOW.is_match(s)).count();
    how + (reading.sentences.len() - how) / 2
}

/// Entries with three words or more, other than "none".
fn telling(entries: &[String]) -> usize {
    entries.iter().filter(|entry| entry.split_whitespace().count() >= 3).count()
}
