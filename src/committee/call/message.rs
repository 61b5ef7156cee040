//! Builds the messages of a call: the prompt, and for a repair the model's answer and its problems.

use std::sync::Arc;

use conclave_lenient_json::{Problem, Schema};
use serde_json::json;
use tokio::time::Instant;

use crate::committee::call::output::Typed;
use crate::committee::call::prompts::Rendered;
use crate::committee::deps::Deps;
use crate::committee::failure::Failure;
use crate::committee::money::budget::{self, InputBound, ModelText};
use crate::config::RoleModel;
use crate::domain::{CallStep, Obtained, Role};
use crate::journal::{CallStop, RunContext};
use crate::llm::{Author, Image, Message, Part};

/// The specification of a call.
pub struct CallSpec<'a> {
    pub run: &'a RunContext,
    pub deps: &'a Deps,
    pub step: CallStep,
    pub role: Role,
    pub prompt: Rendered,
    pub images: &'a [Image],
    /// The model-written texts inside the prompt.
    pub model_texts: Vec<ModelText>,
    /// The output limit, thinking included.
    pub max_tokens: u32,
    /// The most tokens of the answer itself. If set, the limit is lowered to this plus room for
    /// thinking.
    pub answer_tokens: Option<u32>,
    /// When the stage must be over, retries and repair included.
    pub until: Instant,
}

/// The output of a call.
pub struct Answer {
    pub text: String,
    pub stop: CallStop,
    pub tokens: u64,
}

impl CallSpec<'_> {
    /// Returns the output limit of a call to this model, before the budget is considered.
    pub fn limit(&self, model: &RoleModel) -> u32 {
        let mode = self.run.accepted().question.mode;
        let limit = self.max_tokens.min(model.limit_in(mode));
        self.answer_tokens
            .map_or(limit, |visible| limit.min(model.limit_for(visible)))
    }
}

impl Answer {
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// True if the output limit cut it.
    pub fn is_cut(&self) -> bool {
        self.stop == CallStop::MaxTokens
    }

    /// Returns a value that was read from the answer.
    pub fn typed<T>(&self, value: T, obtained: Obtained, notes: Vec<String>) -> Typed<T> {
        Typed {
            value,
            obtained,
            truncated: self.is_cut(),
            salvaged: None,
            notes,
            tokens: self.tokens,
        }
    }
}

/// An answer to repair, with its problems.
pub type Repair<'a> = (&'a Answer, &'a [Problem]);

/// Builds the messages of a call, or of its repair.
///
/// # Errors
/// If the repair's prompt cannot be rendered.
pub fn messages(
    ask: &CallSpec<'_>,
    model: &RoleModel,
    repair: Option<Repair<'_>>,
) -> Result<Vec<Message>, Failure> {
    let by = |author, parts| Message { author, parts };
    let mut parts: Vec<Part> = ask.images.iter().cloned().map(Part::Image).collect();
    parts.push(Part::Text(Arc::clone(&ask.prompt.user)));
    let Some((answer, problems)) = repair else {
        return Ok(vec![by(Author::User, parts)]);
    };
    let problems = problems.iter();
    let problems = problems.map(|it| json!({ "pointer": it.pointer, "detail": it.detail }));
    let values = json!({ "problems": problems.collect::<Vec<_>>() });
    let correction = Part::Text(ask.deps.prompts.repair(model.prompts, values)?.into());
    if answer.is_blank() {
        // No provider accepts an empty message of the assistant.
        parts.push(correction);
        return Ok(vec![by(Author::User, parts)]);
    }
    let written = Part::Text(answer.text.as_str().into());
    Ok(vec![
        by(Author::User, parts),
        by(Author::Assistant, vec![written]),
        by(Author::User, vec![correction]),
    ])
}

/// Returns an upper bound of the input tokens of the messages and the schema.
pub fn input_bound(
    ask: &CallSpec<'_>,
    messages: &[Message],
    schema: Option<&Schema>,
    repair: Option<Repair<'_>>,
) -> InputBound {
    let trusted = budget::trusted_bytes(&ask.prompt.system) + schema.map_or(0, Schema::bytes);
    let parts = messages.iter().flat_map(|message| &message.parts);
    let user = parts.filter_map(text_of).map(budget::text_bound).sum();
    let mut texts = ask.model_texts.clone();
    texts.extend(repair.map(|(answer, _)| ModelText::of(&answer.text, answer.tokens)));
    InputBound::new(trusted, user, &texts, ask.images.len())
}

pub fn text_of(part: &Part) -> Option<&str> {
    match part {
        Part::Text(text) => Some(text),
        Part::Image(_) => None,
    }
}

/// Returns the schema's name on the wire: letters, digits and underscores.
pub fn schema_name(step: CallStep) -> &'static str {
    match step {
        CallStep::Plan => "orchestration_plan",
        CallStep::Report { .. } => "agent_report",
        CallStep::Resolve { .. } => "decisions",
        CallStep::CrossCheck { .. } => "cross_check",
        CallStep::Synthesis | CallStep::SynthesisRest => "final_synthesis",
        CallStep::Question => "clarification_question",
        CallStep::Estimate => "execution_estimate",
        CallStep::Proposal => "action_proposal",
        CallStep::ToolPlan => "tool_plan",
        CallStep::ToolExplanation | CallStep::ToolRestatement => "tool_explanation",
        CallStep::SameQuestion => "same_question",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_synthesis_has_the_schema_of_a_synthesis() {
        let names = [CallStep::Synthesis, CallStep::SynthesisRest].map(schema_name);
        assert_eq!(names, ["final_synthesis"; 2]);
    }
}
