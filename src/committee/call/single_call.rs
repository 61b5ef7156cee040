//! Gets one typed answer of one model, for code outside the committee. The run's journal has its
//! intent, reservation and settlement, as for every call.

use conclave_lenient_json::Schema;
use rand::rngs::ChaCha12Rng;
use rand::{Rng as _, SeedableRng as _};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::time::Instant;

use crate::committee::call::{CallSpec, call_once, call_shaped, message};
use crate::committee::deps::Deps;
use crate::committee::failure::{CallError, Failure};
use crate::committee::money::price::{Length, priced};
use crate::config::PromptSet;
use crate::domain::{Mode, Role, Usd};
use crate::journal::RunContext;

/// The specification of a single call.
pub struct Consultation<'a> {
    pub step: &'static str,
    pub role: Role,
    /// The prompt file.
    pub prompt: &'static str,
    /// Appended to the stable part of the prompt; the same for many runs.
    pub appendix: String,
    /// The user's text, which is fenced as data.
    pub question: &'a str,
    /// The schema sent to the model. It may be narrower than the schema of the answer's type.
    pub schema: Value,
    /// Output tokens, without thinking.
    pub max_tokens: u32,
    pub until: Instant,
}

/// Makes the call once: no retry and no fallback, because a client waits. Returns the answer, and
/// true if its JSON needed repair or was cut at the token limit.
///
/// # Errors
/// [`CallError`] says why there is no answer, or stops the run.
pub async fn consult<T>(
    run: &RunContext,
    deps: &Deps,
    asked: Consultation<'_>,
) -> Result<(T, bool), CallError>
where
    T: DeserializeOwned + JsonSchema + Send + 'static,
{
    let schema = Arc::new(Schema::new(asked.schema.clone()));
    let spec = spec(deps, asked, run.accepted().seed)?;
    call_once::<T>(run, deps, &spec, &schema).await
}

/// As [`consult`], but as an agent of the committee is called: with retries, the role's fallback, and
/// one further call for the repair of a malformed answer.
///
/// # Errors
/// As [`consult`].
pub async fn consult_persistently<T>(
    run: &RunContext,
    deps: &Deps,
    asked: Consultation<'_>,
) -> Result<T, CallError>
where
    T: DeserializeOwned + JsonSchema + Send + 'static,
{
    let schema = Arc::new(Schema::new(asked.schema.clone()));
    let spec = spec(deps, asked, run.accepted().seed)?;
    call_shaped::<T>(run, deps, spec, &schema).await
}

/// Prices a call that is not made.
///
/// # Errors
/// [`Failure`] if the prompt cannot be rendered.
pub fn consultation_price(
    deps: &Deps,
    asked: Consultation<'_>,
    length: Length,
) -> Result<Usd, Failure> {
    let schema = Schema::new(asked.schema.clone());
    let spec = spec(deps, asked, 0)?;
    let Some(model) = deps.role(spec.role) else {
        return Ok(Usd::ZERO);
    };
    let messages = message::messages(deps, &spec, model, None)?;
    let input = message::input_bound(&spec, &messages, Some(&schema), None);
    Ok(priced(model, input, spec.limit(model, Mode::Ask), length))
}

/// Returns the specification of the call, with the rendered prompt.
fn spec<'a>(deps: &Deps, asked: Consultation<'a>, seed: u64) -> Result<CallSpec<'a>, Failure> {
    let Consultation {
        step,
        role,
        prompt,
        appendix,
        question,
        schema: _,
        max_tokens,
        until,
    } = asked;
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let fence = loop {
        let tag = format!("{:016x}", random.next_u64());
        if !question.contains(&tag) {
            break tag;
        }
    };
    // The answer is always JSON, so a plain-text role gets the prompts of small models.
    let set = match deps.role(role).map(|model| model.prompts) {
        Some(PromptSet::Text | PromptSet::Compact) => PromptSet::Compact,
        Some(PromptSet::Full) | None => PromptSet::Full,
    };
    let mut prompt =
        deps.prompts
            .render(set, prompt, json!({ "fence": fence, "question": question }))?;
    prompt.system = format!("{}\n{appendix}", &*prompt.system).into();
    Ok(CallSpec {
        step: step.to_owned(),
        role,
        prompt,
        images: &[],
        model_texts: vec![],
        max_tokens: u32::MAX,
        answer_tokens: Some(max_tokens),
        until,
    })
}
