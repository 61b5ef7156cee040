//! SignalDensity: how much does each token say?
//!
//! | feature | value | points |
//! | --- | --- | --- |
//! | `base` | | 20 |
//! | `novelty` | share of sentences that bring new content words | -8 (none) to +2 (nearly all) |
//! | `repetition` | share of three-word runs that were there before | 0 to -12 |
//! | `filler` | filler phrases per sentence | 0 to -6 |
//! | `hedging` | hedges per sentence beyond one in three | 0 to -4 |
//! | `boilerplate` | disclaimers and courtesies | -1 each, at most -3 |
//! | `unlike_prose` | 1 if longer prose lacks the small words of language | -10 |
//! | `copied` | share of its runs of six words that stand in the request | 0 to -15 |
//! | `very_short` | 1 if there are fewer than three words | -3 |
//! | `units_repeated` | share of units and summary lines that say again what an earlier one said, in reports of JSON | 0 to -8 |
//! | `units_distinct` | distinct topics among the units | +0.75 each, at most +3; a third of it for a short thing |

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::pattern::pattern;
use super::reading::Reading;
use super::request::Request;
use super::tally::{Tally, ramp};
use super::text::{content, is_function_word, ratio, words};
use crate::domain::{Axis, Obtained};

pub(super) fn measure(reading: &Reading<'_>, request: &Request) -> Tally {
    let mut tally = Tally::new(Axis::SignalDensity, 20.0);
    let prose = &reading.markdown.prose;
    let sentences = reading.sentences.len().max(2);
    let per_sentence = |regex: &Regex| ratio(regex.find_iter(prose).count(), sentences);
    let new = novelty(reading);
    tally.add("novelty", new, if new >= 0.75 { 2.0 * ramp(new, 0.75, 1.0) } else { -8.0 * ramp(new, 0.75, 0.2) });
    let repeated = repeated_runs(reading);
    tally.add("repetition", repeated, -12.0 * ramp(repeated, 0.12, 0.6));
    let filler = per_sentence(&FILLER);
    tally.add("filler", filler, -6.0 * ramp(filler, 0.1, 0.8));
    let hedges = per_sentence(&HEDGE);
    tally.add("hedging", hedges, -4.0 * ramp(hedges, 0.34, 1.2));
    let boilerplate = BOILERPLATE.find_iter(prose).count() as f64;
    tally.add("boilerplate", boilerplate, -boilerplate.min(3.0));
    let copied = copied(reading, request);
    tally.add("copied", copied, -15.0 * copied);
    if unlike_prose(reading) {
        tally.add("unlike_prose", 1.0, -10.0);
    }
    if reading.words.len() < 3 && reading.markdown.blocks.is_empty() {
        tally.add("very_short", 1.0, -3.0);
    }
    let again = units_repeated(reading);
    tally.add("units_repeated", again, -8.0 * ramp(again, 0.1, 0.6));
    let topics = reading.topics() as f64;
    // A short thing has one topic.
    tally.add(
        "units_distinct",
        topics,
        if request.brief { (0.25 * topics).min(1.0) } else { (0.75 * topics).min(3.0) },
    );
    tally
}

static FILLER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:it is (?:important|worth|crucial|essential) (?:to (?:note|mention|remember|understand)|noting|mentioning)(?: that)?|in (?:today's|this day and age)|at the end of the day|needless to say|as (?:mentioned|stated|noted) (?:above|earlier|before)|in order to|due to the fact that|a wide (?:range|variety) of|plays? an? (?:important|crucial|vital|key) role|in conclusion|basically|actually|literally|really|very very|when it comes to|first and foremost|last but not least|delve into|rest assured|various (?:factors|aspects)|and so on|stuff like that)\b",
    )
});
static HEDGE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(?:perhaps|maybe|might|possibly|probably|could be|i think|i believe|i guess|it seems|it depends|sort of|kind of|somewhat|more or less|not sure)\b",
    )
});
static BOILERPLATE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\bas an? (?:ai|artificial|large)(?: \w+){0,3} (?:model|assistant|ai)?|\bi hope (?:this|that) helps|\blet me know if|\bfeel free to|\b(?:great|good|excellent) question\b|\bi(?:'m| am) (?:just )?an? (?:ai|language model|assistant)|\bhappy to help\b|\bplease (?:consult|contact) (?:a|your) (?:professional|doctor|lawyer)|\bis there anything else\b|\[insert [^\]]*\]|\bknowledge cutoff\b",
    )
});

/// The share of sentences of which at least a third of the content words have not come up before.
fn novelty(reading: &Reading<'_>) -> f64 {
    let (mut seen, mut new, mut all) = (BTreeSet::new(), 0, 0);
    for sentence in reading.sentences.iter().take(400) {
        let stems = content(sentence);
        if stems.is_empty() {
            continue;
        }
        all += 1;
        let fresh = stems.iter().filter(|stem| !seen.contains(*stem)).count();
        // Calculations rightly repeat their words; their figures are what is new.
        if ratio(fresh, stems.len()) >= 0.2 {
            new += 1;
        }
        seen.extend(stems);
    }
    if all == 0 { 0.0 } else { ratio(new, all) }
}

/// Of prose the units are its own sentences, and `repetition` has counted them.
fn units_repeated(reading: &Reading<'_>) -> f64 {
    let output = &reading.output;
    if output.obtained == Obtained::Text {
        return 0.0;
    }
    let said = |text: &str| words(text).into_iter().map(|word| word.lower).collect::<Vec<_>>();
    let (mut all, mut again) = (0, 0);
    let lists = [
        output.report.units.iter().map(|unit| said(&unit.text)).collect::<Vec<_>>(),
        output.report.answer_summary.iter().map(|line| said(line)).collect(),
    ];
    for list in lists {
        let mut seen = BTreeSet::new();
        for line in list.into_iter().filter(|line| !line.is_empty()) {
            all += 1;
            again += usize::from(!seen.insert(line));
        }
    }
    if all == 0 { 0.0 } else { ratio(again, all) }
}

fn copied(reading: &Reading<'_>, request: &Request) -> f64 {
    let lower = |text: &str| words(text).into_iter().map(|word| word.lower).collect::<Vec<_>>();
    let (asked, said) = (lower(&request.text), lower(&reading.body));
    let known: BTreeSet<&[String]> = asked.windows(6).collect();
    ratio(said.windows(6).filter(|run| known.contains(run)).count(), said.len().saturating_sub(5))
}

fn repeated_runs(reading: &Reading<'_>) -> f64 {
    let mut seen = BTreeSet::new();
    let runs = reading.words.len().saturating_sub(2);
    let repeated = reading
        .words
        .windows(3)
        .filter(|run| !seen.insert(run.iter().map(|word| word.lower.as_str()).collect::<Vec<_>>()))
        .count();
    if runs < 12 { 0.0 } else { ratio(repeated, runs) }
}

/// Longer Latin-script prose of which hardly a word is a function word of English, and whose language is not plainly
/// another one: word salad, keyword lists.
fn unlike_prose(reading: &Reading<'_>) -> bool {
    let plain: Vec<_> =
        reading.words.iter().filter(|word| word.lower.chars().all(|c| c.is_ascii_alphabetic() || c == '\'')).collect();
    if plain.len() < 15 || !reading.markdown.blocks.is_empty() || reading.markdown.list_items > 3 {
        return false;
    }
    let function = plain.iter().filter(|word| is_function_word(&word.lower)).count();
    ratio(function, plain.len()) < 0.12
        && super::text::language(&reading.markdown.prose).is_none_or(|language| language == "lat")
}
