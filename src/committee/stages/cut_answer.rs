//! Keeps a main answer that the output limit cut, and lets one more call continue it.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::committee::call::{Salvaged, Typed, call_salvaging};
use crate::committee::failure::Failure;
use crate::committee::money::budget::ModelText;
use crate::committee::output_shapes::{FinalSynthesis, SynthesisMeta};
use crate::committee::reply::sections::to_last_paragraph;
use crate::committee::stages::synthesis_input::SynthesisInput;
use crate::domain::{CallStep, TaskType};
use crate::journal::Cut;

/// Returns what a cut synthesis has of its main answer: all of it, or up to the last whole
/// paragraph. `meta` and `audit` are kept if they are whole, else they are empty.
pub(super) fn salvaged(task_type: TaskType, text: &str) -> Option<(FinalSynthesis, Salvaged)> {
    let value = conclave_lenient_json::extract_any(text)?;
    let written = value.get("replyMarkdown")?.as_str()?;
    let (reply_markdown, salvaged) = if value.get("meta").is_some() {
        (written.to_owned(), Salvaged::MainPart)
    } else {
        (to_last_paragraph(written), Salvaged::Beginning)
    };
    if reply_markdown.trim().is_empty() {
        return None;
    }
    let synthesis = FinalSynthesis {
        reply_markdown,
        meta: part(&value, "meta").unwrap_or(SynthesisMeta {
            task_type,
            ..SynthesisMeta::default()
        }),
        audit: part(&value, "audit").unwrap_or_default(),
    };
    Some((synthesis, salvaged))
}

fn part<T: DeserializeOwned>(value: &Value, key: &str) -> Option<T> {
    serde_json::from_value(value.get(key)?.clone()).ok()
}

/// Continues a salvaged synthesis by one call, if the money suffices. Returns the whole, and how its
/// main answer was cut. If the main answer was whole, only `meta` and `audit` are taken from the
/// call.
///
/// # Errors
/// If the run must stop, for example because the database fails.
pub(super) async fn continued(
    input: &SynthesisInput<'_>,
    first: Typed<FinalSynthesis>,
    max_words: u32,
) -> Result<(Typed<FinalSynthesis>, Option<Cut>), Failure> {
    let is_whole = first.salvaged == Some(Salvaged::MainPart);
    let written = first.value.reply_markdown.trim_end();
    let values = || input.values(max_words, written);
    let (values, mut texts) = input.run.compute(values).await?;
    texts.push(ModelText::of(written, first.tokens));
    let mut ask = input.ask(CallStep::Synthesis, values, texts)?;
    ask.step = CallStep::SynthesisRest;
    let salvage = |text: &str| salvaged(input.plan.task_type, text);
    let rest = call_salvaging(ask, |_| vec![], salvage).await;
    let mut rest: Typed<FinalSynthesis> = match rest {
        // The second call is cut too, so it may have less of the other parts than the first.
        Ok(rest) if is_whole && rest.salvaged.is_some() => return Ok((first, None)),
        Ok(rest) => rest,
        Err(error) => {
            error.no_output()?;
            return Ok((first, (!is_whole).then_some(Cut::EndMissing)));
        }
    };
    let mut cut = None;
    let mut reply_markdown = written.to_owned();
    if !is_whole {
        let added = added(written, &rest.value.reply_markdown);
        let is_cut = added.is_empty() || rest.salvaged == Some(Salvaged::Beginning);
        cut = Some(if is_cut {
            Cut::EndMissing
        } else {
            Cut::Continued
        });
        reply_markdown = joined(written, added);
    }
    rest.value.reply_markdown = reply_markdown;
    let whole = Typed {
        value: rest.value,
        salvaged: rest.salvaged,
        ..first
    };
    Ok((whole, cut))
}

/// Returns what a continuation adds. A model that begins anew first repeats what was written,
/// paragraph by paragraph.
fn added<'a>(written: &str, rest: &'a str) -> &'a str {
    let paragraphs = rest.split_inclusive("\n\n").zip(written.split("\n\n"));
    let repeated: usize = paragraphs
        .take_while(|(own, known)| own.trim() == known.trim())
        .map(|(own, _)| own.len())
        .sum();
    rest.get(repeated..).unwrap_or_default()
}

/// Joins the two parts of a main answer. A table that was cut between two rows continues.
fn joined(written: &str, rest: &str) -> String {
    let rest = rest.trim_start();
    let is_row = |line: Option<&str>| line.is_some_and(|line| line.starts_with('|'));
    let is_table = is_row(written.lines().last()) && is_row(rest.lines().next());
    let between = if is_table { "\n" } else { "\n\n" };
    format!("{written}{between}{rest}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_continuation_that_begins_anew_adds_only_what_is_new() {
        let written = "One.\n\nTwo.";
        assert_eq!(added(written, "One.\n\nTwo.\n\nThree."), "Three.");
        assert_eq!(added(written, "Three.\n\nOne."), "Three.\n\nOne.");
        assert_eq!(added(written, "One.\n\nTwo.\n\nTwo."), "Two.");
        assert_eq!(added(written, "One.\n\nTwo."), "");
        assert_eq!(joined(written, ""), written);
    }

    #[test]
    fn a_table_cut_between_two_rows_stays_one_table() {
        let table = "| a | b |\n|---|---|\n| 1 | 2 |";
        assert_eq!(joined(table, "\n| 3 | 4 |"), format!("{table}\n| 3 | 4 |"));
        assert_eq!(joined(table, "Done."), format!("{table}\n\nDone."));
        assert_eq!(joined("First.", "| 3 |"), "First.\n\n| 3 |");
    }
}
