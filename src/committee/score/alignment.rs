//! Alignment: does the output answer what was asked, in the shape, number, language and parts that were asked for?
//!
//! | feature | value | points |
//! | --- | --- | --- |
//! | `base` | | 6 |
//! | `shape` | 1 if the expected shape of answer is there, 0.5 in part, 0 if missing | -4 to +8 |
//! | `parts` | share of the request's parts that are covered | 0 to +7 |
//! | `words` | share of the request's content words that come up | 0 to +4 |
//! | `limit_kept`, `limit_broken` | countable demands on the form (`constraint`), kept or broken | +3 each, at most +6; -8 each, at most -16 |
//! | `language` | 1 if written in another language than the request | -10 |
//! | `task_type` | 1 if the output has what its task type calls for | +1 |
//! | `only_asks` | 1 if it gives back a question instead of an answer | -8 |
//! | `refusal` | how sure screening is of a (partial) refusal | 0 to -10 |

use super::kept;
use super::reading::Reading;
use super::request::{Expect, Request};
use super::screen::FlagKind;
use super::tally::{Tally, ramp};
use super::text::{self, covered_share};
use crate::domain::{Axis, TaskType};

pub(super) fn measure(reading: &Reading<'_>, request: &Request, task: Option<TaskType>) -> Tally {
    let mut tally = Tally::new(Axis::Alignment, 6.0);
    let shape = shape(reading, request);
    tally.add("shape", shape, if shape > 0.0 { 8.0 * shape } else { -4.0 });
    let parts = covered(reading, request);
    let share = text::ratio(parts.iter().filter(|covered| **covered).count(), parts.len());
    tally.add("parts", share, 7.0 * share);
    let words = covered_share(&request.stems, &reading.stems);
    // Long requests tell a story that no answer repeats.
    let enough = if request.stems.len() > 20 { 0.3 } else { 0.5 };
    tally.add("words", words, 4.0 * ramp(words, 0.0, enough));
    let kept = request.limits.iter().filter(|limit| kept::keeps(reading, limit)).count();
    let broken = request.limits.len() - kept;
    tally.add("limit_kept", kept as f64, (3.0 * kept as f64).min(6.0));
    tally.add("limit_broken", broken as f64, -(8.0 * broken as f64).min(16.0));
    if let (Some(wanted), Some(used)) = (request.language, text::language(&reading.markdown.prose))
        && wanted != used
    {
        tally.add("language", 1.0, -10.0);
    }
    if task.is_some_and(|task| suits(reading, task)) {
        tally.add("task_type", 1.0, 1.0);
    }
    if reading.answer.is_none()
        && !reading.sentences.is_empty()
        && reading.sentences.len() <= 3
        && reading.sentences.iter().all(|s| s.ends_with('?'))
    {
        tally.add("only_asks", 1.0, -8.0);
    }
    let refused =
        reading.screening.weight(FlagKind::Refusal).max(0.8 * reading.screening.weight(FlagKind::PartialRefusal));
    tally.add("refusal", refused, -10.0 * refused);
    tally
}

/// Which of the request's parts the output covers: it has most of a part's content words, or it is the expected
/// answer to the only part.
pub(super) fn covered(reading: &Reading<'_>, request: &Request) -> Vec<bool> {
    let direct = request.parts.len() == 1 && shape(reading, request) >= 1.0 && reading.answer.is_some();
    request.part_stems.iter().map(|part| direct || covered_share(part, &reading.stems) >= 0.5).collect()
}

/// Whether the expected shape of answer is there: 1 yes, 0.5 in part, 0 no.
fn shape(reading: &Reading<'_>, request: &Request) -> f64 {
    let items = items(reading);
    let words = reading.words.len();
    let related = covered_share(&request.stems, &reading.stems) >= 0.2 || request.stems.len() <= 2 && words >= 3;
    let partly = |full: bool, half: bool| {
        if full {
            1.0
        } else if half {
            0.5
        } else {
            0.0
        }
    };
    match request.expect {
        Expect::Value | Expect::YesNo | Expect::Choice => partly(reading.answer.is_some(), false),
        Expect::Short => partly(reading.answer.is_some(), related),
        Expect::Code => partly(!reading.markdown.blocks.is_empty() || looks_like_code(&reading.body), false),
        Expect::Steps => partly(related && items >= 2, related && words >= 15),
        Expect::List => partly(related && items >= 2, related && words >= 8),
        Expect::Open => partly(related && words >= 15, related && words >= 4),
    }
}

fn items(reading: &Reading<'_>) -> usize {
    let report = reading.output.report;
    reading.markdown.list_items.max(report.steps_or_deliverables.len())
}

fn looks_like_code(body: &str) -> bool {
    let marks =
        ["def ", "fn ", "return ", "function ", "import ", "#include", "SELECT ", "class ", "const ", "=> {", "for ("];
    marks.iter().filter(|mark| body.contains(**mark)).count() >= 1 && body.contains(['(', ';', '='])
}

fn suits(reading: &Reading<'_>, task: TaskType) -> bool {
    match task {
        TaskType::TechnicalExecution => {
            !reading.markdown.blocks.is_empty() || reading.markdown.inline_code > 0 || items(reading) >= 2
        }
        TaskType::PromptEngineering => reading.body.to_lowercase().contains("prompt") || items(reading) >= 2,
        TaskType::VerbalReasoning => reading.sentences.len() >= 2 || reading.answer.is_some(),
        TaskType::VisualAnalysis => ["image", "picture", "shows", "screenshot", "photo"]
            .iter()
            .any(|word| reading.body.to_lowercase().contains(word)),
        TaskType::Mixed => reading.sentences.len() >= 3,
    }
}
