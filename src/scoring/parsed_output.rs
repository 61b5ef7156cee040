//! One output, read once. All measures of agreement and axes come from here.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Deref;

use super::Output;
use super::answer::{
    Answer, DecimalSign, Number, Options, dates, final_answer, letter_of, numbers, parse, undress,
};
use super::checks::{Path, Screening, Soundness, path_to, screen_answer, soundness};
use super::expr::{Recomputed, equations, names_base};
use crate::domain::{AgentName, ConductKind, Obtained, Unit};
use crate::text::{
    self, Block, Markdown, Word, WordRuns, capitalizes_nouns, clip, collapse_whitespace,
    each_sentence, figures, one_line, ratio, read_markdown, words,
};

/// The most units of a report that are read.
pub(super) const MAX_UNITS: usize = 24;

/// The words of a run that makes a quotation of the request.
const QUOTED_WORDS: usize = 4;

/// The most code blocks of a report that are parsed.
const MAX_BLOCKS: usize = 10;

/// A request, read once per panel.
#[derive(Debug)]
pub(super) struct Request {
    pub text: String,
    pub words: Vec<Word>,
    pub pairs: WordRuns,
    /// Runs of six words, which no text has in common with it by chance.
    pub sixes: WordRuns,
    pub figures: BTreeSet<String>,
    /// Its figures and words: everything that a report can copy from it.
    pub stated: BTreeSet<String>,
    pub options: Options,
    /// The decimal sign of the request and of the answers to it.
    pub decimal_sign: Option<DecimalSign>,
    numbers: OnceCell<Vec<Number>>,
    capitalizes_nouns: OnceCell<bool>,
}

impl Request {
    pub fn read<'a>(message: &'a str, answers: impl Iterator<Item = &'a str>) -> Self {
        let message = clip(message, text::MAX_BYTES);
        let text = collapse_whitespace(message).into_owned();
        let words = words(&text);
        let figures = figures(&text);
        let stated = figures
            .iter()
            .cloned()
            .chain(words.iter().map(Word::to_string))
            .collect();
        Self {
            pairs: WordRuns::of(&words, 2),
            sixes: WordRuns::of(&words, 6),
            figures,
            stated,
            options: Options::read(&text),
            decimal_sign: DecimalSign::of([message]).or_else(|| {
                // Beside "1,5 km", "1.500 km" is 1500 km. Beside "1.5 km", it may be either.
                DecimalSign::of(answers).filter(|sign| *sign == DecimalSign::Comma)
            }),
            numbers: OnceCell::new(),
            capitalizes_nouns: OnceCell::new(),
            words,
            text,
        }
    }

    /// True if capitals do not tell the names of its language.
    pub fn capitalizes_nouns(&self) -> bool {
        let detect = || capitalizes_nouns(&self.text);
        *self.capitalizes_nouns.get_or_init(detect)
    }

    /// True if a text has a run of words of the request.
    pub fn is_quoted_in(&self, text: &str) -> bool {
        WordRuns::of(&self.words, QUOTED_WORDS).count_in(&words(text)) > 0
    }

    /// Returns the share of a text's numbers that the request has, in any unit; `None` if the text
    /// has no number.
    pub fn stated_numbers(&self, text: &str) -> Option<f64> {
        let own = numbers(text, self.decimal_sign);
        let known = self
            .numbers
            .get_or_init(|| numbers(&self.text, self.decimal_sign));
        let stated = own.iter().filter(|own| known.iter().any(|it| it.same(own)));
        (!own.is_empty()).then(|| ratio(stated.count(), own.len()))
    }
}

/// The final answer of an output.
#[derive(Debug)]
pub(super) struct Given {
    pub normal: Answer,
    /// The text that it was read from.
    pub text: String,
    /// True if it was found in a plain text, false if its agent tagged it.
    pub is_found: bool,
}

impl Given {
    /// Returns the answer as it is shown. A number is shown as it was written, if that is read as
    /// the same number without the texts around it.
    pub fn label(&self) -> String {
        let written = undress(&self.text);
        match (&self.normal, parse(&written)) {
            (Answer::Number(own), Some(Answer::Number(read))) if own.is_written_as(&read) => {
                written
            }
            (normal, _) => normal.label(),
        }
    }
}

/// The word pairs of a text that says something: about a sentence.
const INFORMATIVE: f64 = 20.0;

/// What code can find in an output. It depends only on the output and the request.
#[derive(Debug)]
pub(super) struct Reading {
    /// The texts of the report in reading order, each with new sentences.
    pub body: String,
    pub words: Vec<Word>,
    pub pairs: WordRuns,
    /// How much it says beside the request, 0 to 1: the word pairs that the request lacks, as a share
    /// of [`INFORMATIVE`].
    pub news: f64,
    pub figures: BTreeSet<String>,
    /// The parser's verdicts on fenced code blocks. Blocks that the request has too are left out.
    pub code: Vec<Soundness>,
    /// None too if its units tagged as the answer give different ones.
    pub answer: Option<Given>,
    /// True if its units tagged as the answer give different ones.
    pub several_answers: bool,
    /// The id of the unit that is the final answer.
    pub answer_unit: Option<String>,
    pub path: Path,
    /// The number of dates that do not exist.
    pub bad_dates: usize,
    pub screening: Screening,
}

/// An output with what was found in it by code and by the cross-check.
#[derive(Debug)]
pub(super) struct ParsedOutput<'a> {
    pub output: &'a Output<'a>,
    pub reading: &'a Reading,
    /// The role's weight in the config.
    pub weight: f64,
    /// That of the reading, without what the cross-check cleared.
    pub screening: Screening,
    /// The misconduct of the report that every cross-check names.
    pub conduct: Option<ConductKind>,
    /// True if every cross-check read the report and names no misconduct.
    pub is_cleared: bool,
}

impl Deref for ParsedOutput<'_> {
    type Target = Reading;

    fn deref(&self) -> &Reading {
        self.reading
    }
}

impl Reading {
    /// Reads an output.
    pub fn of(output: &Output<'_>, request: &Request) -> Self {
        let failures = &output.report.failure_modes;
        let body = body_with(output, failures);
        let Markdown { prose, blocks, .. } = read_markdown(&body);
        let words = words(&body);
        let answers = answers(output, request);
        let answer_unit = answers.first().map(|(_, unit)| (*unit).to_owned());
        let mut given: Vec<Given> = answers.into_iter().filter_map(|(given, _)| given).collect();
        let differ = |[a, b]: &[Given; 2]| !a.normal.same(&b.normal);
        let several_answers = given.array_windows().any(differ);
        let answer = (!given.is_empty() && !several_answers).then(|| given.swap_remove(0));
        let number = match answer.as_ref().map(|given: &Given| &given.normal) {
            Some(Answer::Number(number)) => Some(number.value),
            _ => None,
        };
        let without_failures = || (!failures.is_empty()).then(|| body_with(output, &[]));
        let (asked, said) = ((&*request.text, &*request.words), (&*body, &*words));
        let figures = figures(&prose);
        let mut steps = equations(&prose);
        if names_base(&request.words) {
            steps.retain(|step| step.recomputed != Recomputed::Wrong);
        }
        let own_code = blocks
            .iter()
            .filter(|block| !request.text.contains(block.code.trim()));
        let pairs = WordRuns::of(&words, 2);
        let own_pairs = pairs.distinct() - pairs.shared(&request.pairs);
        Self {
            news: (own_pairs as f64 / INFORMATIVE).min(1.0),
            pairs,
            figures,
            code: parsed(own_code.take(MAX_BLOCKS)),
            path: path_to(number, &steps),
            bad_dates: dates::faulty(&prose),
            screening: screen_answer(asked, said, without_failures),
            answer,
            several_answers,
            answer_unit,
            words,
            body,
        }
    }
}

impl<'a> ParsedOutput<'a> {
    pub fn agent(&self) -> &'a AgentName {
        &self.output.agent
    }

    /// True if the output takes part in the comparison. Attacks, refusals and degenerate texts do
    /// not.
    pub fn counts(&self) -> bool {
        self.conduct.is_none() && !self.screening.disqualifies()
    }

    /// Returns the claims that the answer depends on.
    pub fn key_units(&self) -> impl Iterator<Item = &'a Unit> {
        self.output.report.key_units().into_iter().take(MAX_UNITS)
    }
}

/// Returns the tagged answers, each with the id of its unit.
fn answers<'a>(output: &Output<'a>, request: &Request) -> Vec<(Option<Given>, &'a str)> {
    let units = output.report.units.iter().take(MAX_UNITS);
    units
        .filter(|unit| unit.is_answer())
        .map(|unit| (answer(output, &unit.text, request), unit.id.as_str()))
        .collect()
}

/// Returns the final answer that a unit states.
fn answer(output: &Output<'_>, text: &str, request: &Request) -> Option<Given> {
    let is_found = output.obtained == Obtained::Text;
    let read = |text: &str| {
        let letter = letter_of(text, &request.options).map(Answer::Choice);
        let mut normal = letter.or_else(|| parse(text))?;
        // A sentence has words around its number that say nothing.
        let own = is_found.then(|| words(text));
        normal.read_request(own.as_deref().unwrap_or(&request.words));
        normal.read_decimals(request.decimal_sign);
        let text = one_line(text);
        Some(Given {
            normal,
            text,
            is_found,
        })
    };
    let tidied = collapse_whitespace(clip(text, text::MAX_BYTES));
    let bare = read(&tidied).or_else(|| read(&final_answer(&tidied, &request.options)?));
    // A plain text often answers in a sentence that repeats the request. Only the new words of it
    // are the answer.
    let in_words = matches!(&bare, Some(given) if matches!(given.normal, Answer::Words(_)));
    let new = || read(&new_words(&tidied, request)?);
    (is_found && in_words).then(new).flatten().or(bare)
}

/// Returns the parsers' verdicts on the blocks. Parsing stops after a block that used up its steps.
fn parsed<'a>(blocks: impl Iterator<Item = &'a Block>) -> Vec<Soundness> {
    let mut out = Vec::new();
    for block in blocks {
        out.push(soundness(block));
        if out.last() == Some(&Soundness::Costly) {
            break;
        }
    }
    out
}

/// Returns the words of a text that the request does not have; `None` if there are none, or if
/// more than half of the words are new.
fn new_words(text: &str, request: &Request) -> Option<String> {
    let all = words(text);
    let is_new = |word: &&Word| !request.words.contains(word);
    let new: Vec<&str> = all.iter().filter(is_new).map(Word::as_str).collect();
    (!new.is_empty() && 2 * new.len() <= all.len()).then(|| new.join(" "))
}

/// Returns the report's texts in reading order, with these failure modes. A field whose sentences are
/// all in earlier ones, by their [`key`], is left out.
fn body_with(output: &Output<'_>, failures: &[String]) -> String {
    let report = output.report;
    let mut known = BTreeSet::new();
    let mut out = String::new();
    // The reasoning keeps its form, with code and lists. Of the other fields only new text is
    // added.
    let lists = [
        report.answer_summary.as_slice(),
        &report.assumptions,
        &report.steps_or_deliverables,
        failures,
    ];
    let fields = std::iter::once(&report.reasoning).chain(lists.into_iter().flatten());
    for field in fields.chain(report.units.iter().map(|unit| &unit.text)) {
        if out.len() >= text::MAX_BYTES {
            break;
        }
        let field = collapse_whitespace(clip(field, text::MAX_BYTES - out.len()));
        let mut keys: Vec<String> = each_sentence(&field).map(key).collect();
        if keys.iter().all(String::is_empty) {
            // It has no words, such as "==".
            keys = vec![field.trim().to_owned()];
        }
        let is_new = |key: &String| !key.is_empty() && !known.contains(key);
        if !keys.iter().any(is_new) {
            continue;
        }
        if !out.is_empty() {
            out.push_str("\n\n");
        }
        out.push_str(field.trim());
        known.extend(keys);
    }
    out
}

/// Returns a sentence without its punctuation, to recognize it in another field.
fn key(sentence: &str) -> String {
    let mut key = String::with_capacity(sentence.len());
    key.extend(
        sentence
            .chars()
            .filter(|c| c.is_alphanumeric() || *c == ' '),
    );
    if key.is_ascii() {
        key.make_ascii_lowercase();
        return key;
    }
    key.to_lowercase()
}
