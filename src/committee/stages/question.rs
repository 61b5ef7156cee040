//! Gets the question that the gate asks when confidence is too low.

use std::sync::Arc;

use conclave_lenient_json::Problem;

use crate::committee::call::call_checked;
use crate::committee::failure::{CallError, Failure};
use crate::committee::output_shapes::FallbackQuestionOut;
use crate::committee::request_context::RequestContext;
use crate::committee::stages::finish;
use crate::committee::stages::question_rules::{by_rule, question_of, unsure};
use crate::committee::stages::synthesis_input::SynthesisInput;
use crate::config::OutputForm;
use crate::domain::{CallStep, Choice, Clarification, Earmark, Gate, Obtained, Plan};
use crate::journal::step;
use crate::journal::{Draft, SynthesisSource, Synthesized};

/// The longest question, in tokens.
const QUESTION_TOKENS: u32 = 500;

/// What a model is told that wrote a question which cannot be asked.
pub(super) const WANTED_OPTIONS: &str = "give one question about what is contested or missing here, and three options, each \"A <meaning>: <how the answer then differs>\"";

/// Returns the problem of a question that cannot be asked.
pub(super) fn unusable(pointer: &str, why: &str) -> Problem {
    Problem {
        pointer: pointer.into(),
        detail: format!(
            "it is asked, because the confidence is too low, but {why}: {WANTED_OPTIONS}"
        ),
    }
}

/// Gets the question alone, without a synthesis.
///
/// # Errors
/// If the run must stop, for example because the database fails.
pub async fn ask_only(input: &SynthesisInput<'_>) -> Result<Arc<Synthesized>, Failure> {
    if let Some(synthesized) = input.run.recorded(&step::synthesis()) {
        return Ok(synthesized);
    }
    input.run.release(Earmark::Synthesis);
    let mut corrections = vec![
        "the synthesis was skipped: even the largest bonus could not reach the threshold"
            .to_owned(),
    ];
    let (question, obtained) = asked(input, &mut corrections).await?;
    let synthesized = Synthesized::new(None, question, obtained, corrections);
    let synthesized = finish::enforce_invariants(input, synthesized).await?;
    let done = Arc::new(synthesized);
    Ok(input.run.record_output(&step::synthesis(), done)?)
}

/// Gets a question that can be asked, and its source: the master, or else fixed rules. A master that
/// writes plain text is not asked: rules make the options, so they make the question too.
///
/// # Errors
/// If the run must stop, for example because the database fails.
pub(super) async fn asked(
    input: &SynthesisInput<'_>,
    corrections: &mut Vec<String>,
) -> Result<(Clarification, SynthesisSource), Failure> {
    let (question, obtained) = match input.stage().master()?.output {
        OutputForm::Text => {
            let why = "the master writes plain text".to_owned();
            (Err(why), SynthesisSource::Model(Obtained::Text))
        }
        OutputForm::Json => match call_master(input).await {
            Ok((question, obtained)) => (question, SynthesisSource::Model(obtained)),
            // The reports are there and paid for: their contested positions make a question.
            Err(error) => {
                let cause = error.no_output()?.cause;
                let why = format!("the call for it gave nothing ({cause})");
                (Err(why), SynthesisSource::Failed(cause))
            }
        },
    };
    let question = question.unwrap_or_else(|why| {
        corrections.push(format!("rules made the question: {why}"));
        by_rule(input)
    });
    Ok((question, obtained))
}

/// Calls the master for the question alone. A question that cannot be asked is repaired once. Returns
/// it, or why it cannot be asked.
async fn call_master(
    input: &SynthesisInput<'_>,
) -> Result<(Result<Clarification, String>, Obtained), CallError> {
    let run = input.run;
    let (values, texts) = run.compute(|| input.values(0, "")).await?;
    let mut ask = input.ask(CallStep::Question, values, texts)?;
    ask.answer_tokens = Some(QUESTION_TOKENS);
    let check = |out: &FallbackQuestionOut| {
        let problem = question_of(input, out).err();
        Vec::from_iter(problem.map(|why| unusable("/question", why)))
    };
    let typed = call_checked(ask, check).await?;
    let read = || question_of(input, &typed.value).map_err(str::to_owned);
    Ok((run.compute(read).await?, typed.obtained))
}

/// Returns the outcome of a run in which no agent is called: the plan's own question, or the user's
/// choice to stop.
pub fn without_agents(request: &RequestContext, plan: &Plan) -> Option<(Synthesized, Gate)> {
    let (draft, question, why, gate) = if let Some(question) = &plan.clarification_question {
        let why = "the master asked at once: no report of an agent was used";
        (None, question.clone(), why, Gate::Ask)
    } else if request.choice() == Some(Choice::Stop) {
        let stopped = &request.rule_texts().stopped;
        let draft = Draft::of_sentence(plan.task_type, stopped);
        let parent = request.parent.as_ref();
        // It is not asked again.
        let asked = parent.and_then(|parent| parent.question.clone());
        let question = asked.unwrap_or_else(|| unsure(request));
        let why = "the user chose to stop: no model was called";
        (Some(draft), question, why, Gate::Ship)
    } else {
        return None;
    };
    let source = SynthesisSource::Plan;
    let synthesized = Synthesized::new(draft, question, source, vec![why.to_owned()]);
    Some((synthesized, gate))
}
