//! One output, read once: everything that the axes measure is taken from here.

use std::collections::BTreeSet;

use super::Output;
use super::answer::{self, conclusive_sentence};
use super::arithmetic::{self, Equation, Verdict};
use super::claims::{self, Claim};
use super::dates;
use super::markdown::{self, Markdown};
use super::normal::Answer;
use super::quantity::{self, Checked};
use super::request::Request;
use super::screen::{Screening, screen_answer};
use super::text::{self, Word, clip, is_content, sentences, stem, tidy, words};
use crate::domain::Obtained;

/// At most this many claims of a report are compared with others.
const MAX_CLAIMS: usize = 24;

#[derive(Debug)]
pub(super) struct Reading<'a> {
    pub output: &'a Output<'a>,
    /// The role's weight in the config.
    pub weight: f64,
    /// Every sentence of the report once: units that restate the reasoning do not count twice.
    pub body: String,
    pub markdown: Markdown,
    pub sentences: Vec<String>,
    pub words: Vec<Word>,
    pub stems: BTreeSet<String>,
    pub claims: Vec<Claim>,
    pub answer: Option<Answer>,
    /// What the reasoning by itself concludes, when the summary gave the answer.
    pub reasoned: Option<Answer>,
    pub equations: Vec<Equation>,
    /// Stated quantities, held against their units.
    pub quantities: Checked,
    /// Dates, held against the calendar.
    pub dates: dates::Checked,
    pub screening: Screening,
}

impl<'a> Reading<'a> {
    pub fn new(output: &'a Output<'a>, request: &Request, weight: f64) -> Self {
        let report = output.report;
        let body = body(output);
        let markdown = markdown::read(&body);
        let words = words(&markdown.prose);
        let reasoning = tidy(clip(&report.reasoning, text::MAX_BYTES)).into_owned();
        let in_summary = answer::in_summary(&report.answer_summary, request);
        let in_reasoning = answer::in_text(&reasoning, request);
        // Prose is read as it stands; its summary is only an excerpt of it.
        let prose = in_reasoning.clone().filter(|_| output.obtained == Obtained::Text);
        let stated = prose.or_else(|| in_summary.clone()).or_else(|| in_reasoning.clone()).or_else(|| {
            report.units.iter().rev().take(MAX_CLAIMS).find_map(|unit| answer::in_text(&unit.text, request))
        });
        Self {
            output,
            weight,
            sentences: sentences(&markdown.prose).into_iter().map(str::to_owned).collect(),
            stems: words
                .iter()
                .filter(|word| is_content(&word.lower))
                .map(|word| stem(&word.lower))
                .chain(code_stems(&markdown))
                .collect(),
            words,
            claims: read_claims(output),
            answer: stated,
            reasoned: in_summary.and(in_reasoning).filter(|_| conclusive_sentence(&reasoning).is_some()),
            equations: arithmetic::equations(&markdown.prose),
            quantities: quantity::checked(&markdown.prose),
            dates: dates::checked(&markdown.prose),
            screening: screen_answer(&request.text, &body),
            body,
            markdown,
        }
    }

    pub fn agent(&self) -> &'a str {
        self.output.agent
    }

    pub fn wrong_equations(&self) -> usize {
        self.equations.iter().filter(|equation| equation.verdict == Verdict::Wrong).count()
    }

    pub fn right_equations(&self) -> usize {
        self.equations.len() - self.wrong_equations()
    }

    /// Sums that hold, with units or without; that an amount is put in two units shows no work.
    pub fn holding(&self) -> usize {
        self.right_equations() + self.quantities.right
    }

    /// Sums and conversions that do not hold, and mixtures of what cannot be mixed.
    pub fn failing(&self) -> usize {
        self.wrong_equations() + self.quantities.wrong + self.quantities.mixed
    }

    /// How many topics its claims are about.
    pub fn topics(&self) -> usize {
        let topics = self.output.report.units.iter().take(MAX_CLAIMS).map(|unit| unit.topic.to_lowercase());
        topics.filter(|topic| !topic.is_empty()).collect::<BTreeSet<String>>().len()
    }

    /// Whether the output takes part in the committee's view at all: attacks, refusals and degenerate texts do not.
    pub fn counts(&self) -> bool {
        use super::screen::FlagKind::{Boilerplate, Echo, Empty, Injection, JudgeAttack, Refusal, Repetition};
        ![Boilerplate, Echo, Empty, Injection, JudgeAttack, Refusal, Repetition]
            .into_iter()
            .any(|kind| self.screening.has(kind))
    }
}

/// The report's texts in reading order, each sentence from the first field that has it.
fn body(output: &Output<'_>) -> String {
    let report = output.report;
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut out = String::new();
    let reasoning = std::iter::once(report.reasoning.as_str());
    let rest = report
        .answer_summary
        .iter()
        .chain(&report.assumptions)
        .chain(&report.steps_or_deliverables)
        .chain(&report.failure_modes)
        .map(String::as_str);
    // The reasoning keeps its form, with code and lists; of the other fields only what is new is added.
    for field in reasoning.chain(rest).chain(report.units.iter().map(|unit| unit.text.as_str())) {
        if out.len() >= text::MAX_BYTES {
            break;
        }
        let field = tidy(clip(field, text::MAX_BYTES - out.len().min(text::MAX_BYTES)));
        let keys: Vec<String> = sentences(&field).into_iter().map(key).collect();
        if !keys.iter().all(|key| seen.contains(key) || key.is_empty()) || (out.is_empty() && !field.trim().is_empty())
        {
            if !out.is_empty() {
                out.push_str("\n\n");
            }
            out.push_str(field.trim());
        }
        seen.extend(keys);
    }
    out
}

/// A sentence without its dress, to recognise it in another field.
fn key(sentence: &str) -> String {
    let plain: String = sentence.chars().filter(|c| c.is_alphanumeric() || *c == ' ').collect();
    plain.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ').trim().to_lowercase()
}

fn code_stems(markdown: &Markdown) -> Vec<String> {
    markdown
        .blocks
        .iter()
        .flat_map(|block| words(&block.code.replace('_', " ")))
        .filter(|word| is_content(&word.lower))
        .map(|word| stem(&word.lower))
        .collect()
}

fn read_claims(output: &Output<'_>) -> Vec<Claim> {
    output
        .report
        .units
        .iter()
        .take(MAX_CLAIMS)
        .map(|unit| claims::read(&unit.id, clip(&unit.topic, 80), clip(&unit.text, 400)))
        .collect()
}
