//! One typed answer of one model, for those outside the committee who need one: with its intent, reservation and settlement
//! in the run's journal like every call, and without retry, repair, hedge or fallback, since somebody waits.

use rand::rngs::ChaCha12Rng;
use rand::{Rng as _, SeedableRng as _};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::call::{CallSpec, call_once};
use super::hedge::Hedge;
use super::{Deps, Failure};
use crate::config::PromptSet;
use crate::domain::Role;
use crate::journal::RunContext;

/// What is to be asked.
pub struct Consultation<'a> {
    pub step: &'static str,
    pub role: Role,
    /// The prompt file.
    pub prompt: &'static str,
    /// Follows the stable part of the prompt; the same for many runs.
    pub appendix: String,
    /// What a user wrote: it is fenced as data.
    pub question: &'a str,
    /// What the model is held to. It may be narrower than what is read.
    pub schema: Value,
    /// Thinking not counted.
    pub max_tokens: u32,
    pub until: Instant,
}

/// What was answered.
pub struct SingleAnswer<T> {
    pub value: T,
    /// The JSON was not as it should be, or it was cut at the token limit.
    pub mended: bool,
}

/// Why there is no answer.
pub struct SingleCallFailure {
    /// Short and bounded, such as "timed out" or "malformed output".
    pub cause: String,
    pub detail: String,
}

/// Asks.
///
/// # Errors
/// The outer error stops the run.
pub async fn consult<T>(
    run: &RunContext,
    deps: &Deps,
    asked: Consultation<'_>,
) -> Result<Result<SingleAnswer<T>, SingleCallFailure>, Failure>
where
    T: DeserializeOwned + JsonSchema + Send,
{
    let Consultation {
        step,
        role,
        prompt,
        appendix,
        question,
        schema,
        max_tokens,
        until,
    } = asked;
    let mut random = ChaCha12Rng::seed_from_u64(run.accepted().seed);
    let fence = loop {
        let tag = format!("{:016x}", random.next_u64());
        if !question.contains(&tag) {
            break tag;
        }
    };
    // What is consulted answers with JSON: a role that speaks in plain text is asked as small models are.
    let set = match deps.role(role).map(|model| model.prompts) {
        Some(PromptSet::Text | PromptSet::Compact) => PromptSet::Compact,
        Some(PromptSet::Full) | None => PromptSet::Full,
    };
    let mut prompt =
        deps.prompts
            .render(set, prompt, json!({ "fence": fence, "question": question }))?;
    prompt.system = format!("{}\n{appendix}", prompt.system);
    let ask = CallSpec {
        step: step.to_owned(),
        role,
        prompt,
        images: &[],
        model_texts: vec![],
        max_tokens: u32::MAX,
        answer_tokens: Some(max_tokens),
        until,
        hedge: Hedge::Never,
    };
    let bought = call_once::<T>(run, deps, &ask, &schema).await?;
    Ok(match bought {
        Ok((value, mended)) => Ok(SingleAnswer { value, mended }),
        Err(unbought) => Err(SingleCallFailure {
            cause: unbought.cause,
            detail: unbought.detail,
        }),
    })
}
