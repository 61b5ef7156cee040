//! Keeps a main answer that the output limit cut, and lets one more call continue it.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::committee::call::prompts::set;
use crate::committee::call::{Typed, buy_checked};
use crate::committee::failure::Failure;
use crate::committee::money::budget::ModelText;
use crate::committee::output_shapes::{FinalSynthesis, QuestionOut, SynthesisAudit, SynthesisMeta};
use crate::committee::reply::sections::to_last_paragraph;
use crate::committee::stages::synthesis_input::SynthesisInput;
use crate::domain::{TaskType, TimeUnit};
use crate::journal::Cut;

/// Returns what a cut synthesis has of its main answer, up to the last whole paragraph. `meta` and
/// `audit` are kept if they are whole, else they are empty.
pub(super) fn salvaged(task_type: TaskType, text: &str) -> Option<FinalSynthesis> {
    let value = conclave_lenient_json::extract_any(text)?;
    let written = value.get("replyMarkdown")?.as_str()?;
    let is_whole = value.get("meta").is_some();
    let reply_markdown = if is_whole {
        written.to_owned()
    } else {
        to_last_paragraph(written)
    };
    let has_text = !reply_markdown.trim().is_empty();
    has_text.then(|| FinalSynthesis {
        reply_markdown,
        meta: part(&value, "meta").unwrap_or_else(|| empty_meta(task_type)),
        audit: part(&value, "audit").unwrap_or_else(empty_audit),
    })
}

fn part<T: DeserializeOwned>(value: &Value, key: &str) -> Option<T> {
    serde_json::from_value(value.get(key)?.clone()).ok()
}

fn empty_meta(task_type: TaskType) -> SynthesisMeta {
    SynthesisMeta {
        task_type,
        tldr: vec![],
        final_answer: String::new(),
        assumptions: vec![],
        acceptance_tests: vec![],
        plan_unit: TimeUnit::Hours,
        plan_steps: vec![],
        plan_assumptions: vec![],
        plan_risks: vec![],
        plan_confidence: 0.0,
    }
}

fn empty_audit() -> SynthesisAudit {
    SynthesisAudit {
        units_used: vec![],
        disagreements: vec![],
        answer_justification: String::new(),
        conflict_penalty: 0.0,
        coverage_bonus: 0.0,
        quarantine_justifications: vec![],
        fallback_question: QuestionOut {
            question: String::new(),
            options: vec![],
        },
    }
}

/// Continues a salvaged synthesis by one call, if the money suffices. Returns the whole, and how it
/// was cut.
///
/// # Errors
/// If the run must stop, for example because the database fails.
pub(super) async fn continued(
    input: &SynthesisInput<'_>,
    first: Typed<FinalSynthesis>,
    max_words: u32,
) -> Result<(Typed<FinalSynthesis>, Cut), Failure> {
    let (mut values, mut texts) = input
        .run
        .compute("asking for the rest of the answer", || input.values())
        .await?;
    let written = first.value.reply_markdown.trim_end();
    texts.push(ModelText::of(written, first.tokens));
    set(&mut values, "max_words", json!(max_words));
    set(&mut values, "written", json!(written));
    let mut ask = input.ask("synthesis", values, texts)?;
    ask.step = "synthesis/rest".to_owned();
    let salvage = |text: &str| salvaged(input.plan.task_type, text);
    let rest = buy_checked(input.run, input.deps, ask, |_| vec![], salvage).await;
    let rest: Typed<FinalSynthesis> = match rest {
        Ok(rest) => rest,
        Err(error) => {
            error.no_output()?;
            return Ok((first, Cut::EndMissing));
        }
    };
    let cut = if rest.is_salvaged {
        Cut::EndMissing
    } else {
        Cut::Continued
    };
    let reply_markdown = format!("{written}\n\n{}", rest.value.reply_markdown.trim_start());
    let value = FinalSynthesis {
        reply_markdown,
        ..rest.value
    };
    let is_salvaged = rest.is_salvaged;
    Ok((
        Typed {
            value,
            is_salvaged,
            ..first
        },
        cut,
    ))
}
