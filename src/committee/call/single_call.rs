//! Gets one typed answer of one model, for code outside the committee. The run's journal has its
//! intent, reservation and settlement, as for every call.

use std::sync::Arc;

use conclave_lenient_json::Schema;
use serde_json::json;
use tokio::time::Instant;

use crate::committee::call::attempt::Attempts;
use crate::committee::call::prompts::Rendered;
use crate::committee::call::{CallFailure, CallSpec, Shape, call_with_schema, run_attempts};
use crate::committee::deps::{Deps, fence};
use crate::committee::failure::{CallError, Failure};
use crate::committee::money::budget::{InputBound, text_bound, trusted_bytes};
use crate::committee::money::price::{Length, priced};
use crate::committee::schemas::schema_of;
use crate::config::PromptSet;
use crate::domain::{CallStep, FailureCause, Mode, Role, Usd};
use crate::journal::RunContext;

/// The specification of a single call.
pub struct SingleCall<'a> {
    pub step: CallStep,
    pub role: Role,
    /// The prompt file.
    pub prompt: &'static str,
    /// Appended to the stable part of the prompt; the same for many runs.
    pub appendix: String,
    /// The user's text, which is fenced as data.
    pub question: &'a str,
    /// The schema sent to the model. It may be narrower than the schema of the answer's type.
    pub schema: Arc<Schema>,
    /// Output tokens, without thinking.
    pub max_tokens: u32,
    pub until: Instant,
}

/// The answer to a single call.
pub struct SingleAnswer<T> {
    pub value: T,
    /// True if its JSON needed repair, or was cut at the token limit.
    pub is_damaged: bool,
}

/// Makes the call once: no retry and no fallback, because a client waits. The answer is checked
/// against the schema of `T`.
///
/// # Errors
/// [`CallError`] says why there is no answer, or stops the run.
pub async fn call_once<T: Shape>(
    run: &RunContext,
    deps: &Deps,
    asked: SingleCall<'_>,
) -> Result<SingleAnswer<T>, CallError> {
    let spec = spec(run, deps, &asked)?;
    let attempts = Attempts {
        once: true,
        ..Attempts::new(&spec, Some(&asked.schema))
    };
    let answer = run_attempts(attempts).await?;
    if answer.is_blank() {
        return Err(CallFailure::empty().into());
    }
    let schema = schema_of::<T>();
    let read = || conclave_lenient_json::parse::<T>(&answer.text, &schema);
    let parsed = run.compute_text(read).await?;
    let parsed = parsed
        .map_err(|problems| CallFailure::of_problems(FailureCause::MalformedOutput, &problems))?;
    // A surrounding code fence does not count as needing repair.
    let is_fenced =
        || parsed.notes.len() == 1 && conclave_lenient_json::is_only_fenced(&answer.text);
    let is_damaged = answer.is_cut() || !(parsed.clean || is_fenced());
    Ok(SingleAnswer {
        value: parsed.value,
        is_damaged,
    })
}

/// As [`call_once`], but as an agent of the committee is called: with retries, the role's fallback, and
/// one further call for the repair of a malformed answer. An answer that was cut is malformed.
///
/// # Errors
/// As [`call_once`].
pub async fn call_with_retries<T: Shape>(
    run: &RunContext,
    deps: &Deps,
    asked: SingleCall<'_>,
) -> Result<T, CallError> {
    let spec = spec(run, deps, &asked)?;
    let parse = conclave_lenient_json::parse_whole::<T>;
    let typed = call_with_schema(spec, &asked.schema, parse, |_| vec![], |_| None).await?;
    Ok(typed.value)
}

/// Prices a call that is not made.
///
/// # Errors
/// [`Failure`] if the prompt cannot be rendered.
pub fn single_call_price(
    deps: &Deps,
    asked: &SingleCall<'_>,
    length: Length,
) -> Result<Usd, Failure> {
    let Rendered { system, user } = prompt(deps, asked, 0)?;
    let Some(model) = deps.role(asked.role) else {
        return Ok(Usd::ZERO);
    };
    let trusted = trusted_bytes(&system) + asked.schema.bytes();
    let input = InputBound::new(trusted, text_bound(&user), &[], 0);
    let limit = model
        .limit_in(Mode::Ask)
        .min(model.limit_for(asked.max_tokens));
    Ok(priced(model, input, limit, length))
}

/// Returns the specification of the call.
fn spec<'a>(
    run: &'a RunContext,
    deps: &'a Deps,
    asked: &SingleCall<'_>,
) -> Result<CallSpec<'a>, Failure> {
    Ok(CallSpec {
        run,
        deps,
        step: asked.step,
        role: asked.role,
        prompt: prompt(deps, asked, run.accepted().seed)?,
        images: &[],
        model_texts: vec![],
        max_tokens: u32::MAX,
        answer_tokens: Some(asked.max_tokens),
        until: asked.until,
    })
}

fn prompt(deps: &Deps, asked: &SingleCall<'_>, seed: u64) -> Result<Rendered, Failure> {
    // The answer is always JSON, so a plain-text role gets the prompts of small models.
    let set = match deps.role(asked.role).map(|model| model.prompts) {
        Some(PromptSet::Text | PromptSet::Compact) => PromptSet::Compact,
        Some(PromptSet::Full) | None => PromptSet::Full,
    };
    let fence = fence(seed, &[asked.question]);
    let values = json!({ "fence": fence, "question": asked.question });
    let mut prompt = deps.prompts.render(set, asked.prompt, values)?;
    prompt.system = format!("{}\n{}", &*prompt.system, asked.appendix).into();
    Ok(prompt)
}
