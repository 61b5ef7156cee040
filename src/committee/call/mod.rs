//! Gets one output from a model: reserve, call, retry, fall back, parse, and repair once. It knows
//! neither the stages that ask nor what becomes of an answer.

pub(super) mod prompts;
mod prompt_files;
mod message;
mod attempt;
pub(super) mod output;
pub(super) mod clean;
pub(super) mod single_call;

use std::sync::Arc;
use std::time::Duration;

use conclave_lenient_json::{Parsed, Problem, Schema};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::committee::call::attempt::Attempts;
use crate::committee::call::message::{Answer, Repair};
use crate::committee::call::prompts::unquoted;
use crate::committee::failure::CallError;
use crate::committee::schemas::schema_of;
use crate::config::RoleModel;
use crate::domain::{BilledTokens, FailureCause, Obtained};
use crate::journal::{CallResult, CallStop};

pub use crate::committee::call::message::CallSpec;
pub use crate::committee::call::output::{CallFailure, Salvaged, Typed};

/// What a model can be asked to write as JSON.
pub trait Shape: DeserializeOwned + JsonSchema + Send + 'static {}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> Shape for T {}

/// Gets a JSON value of type `T`. The output is extracted defensively, checked against the schema
/// of `T`, and repaired by at most one further call.
///
/// # Errors
/// [`CallError`] says why there is no output, or stops the run.
pub async fn call_json<T: Shape>(ask: CallSpec<'_>) -> Result<Typed<T>, CallError> {
    call_checked(ask, |_| vec![]).await
}

/// Like [`call_json`], with a further check. Its problems are put to the model in the same repair
/// call. If problems remain after that, the value is still returned, and the caller handles them.
pub async fn call_checked<T: Shape>(
    ask: CallSpec<'_>,
    check: impl Fn(&T) -> Vec<Problem> + Sync,
) -> Result<Typed<T>, CallError> {
    call_salvaging(ask, check, |_| None).await
}

/// Like [`call_checked`]. `salvage` may make a value of the beginning of an answer that the output
/// limit cut. Then no repair is made, because it would be cut too.
pub async fn call_salvaging<T: Shape>(
    ask: CallSpec<'_>,
    check: impl Fn(&T) -> Vec<Problem> + Sync,
    salvage: impl Fn(&str) -> Option<(T, Salvaged)> + Sync,
) -> Result<Typed<T>, CallError> {
    call_with_schema(
        ask,
        &schema_of::<T>(),
        conclave_lenient_json::parse,
        check,
        salvage,
    )
    .await
}

/// Reads an answer as a value of a schema.
type Parse<T> = fn(&str, &Schema) -> Result<Parsed<T>, Vec<Problem>>;

/// Like [`call_salvaging`]. The request carries the schema `wanted`; `parse` checks the answer against
/// the schema of `T`.
async fn call_with_schema<T: Shape>(
    ask: CallSpec<'_>,
    wanted: &Arc<Schema>,
    parse: Parse<T>,
    check: impl Fn(&T) -> Vec<Problem> + Sync,
    salvage: impl Fn(&str) -> Option<(T, Salvaged)> + Sync,
) -> Result<Typed<T>, CallError> {
    let (run, schema) = (ask.run, schema_of::<T>());
    let first = run_attempts(Attempts::new(&ask, Some(wanted))).await?;
    let read = || parse_checked(&first, &schema, parse, &check);
    let (parsed, problems) = run.compute_text(read).await?;
    if parsed.is_err() && first.is_cut() {
        let read = || salvage(&first.text);
        if let Some((value, salvaged)) = run.compute(read).await? {
            let notes = vec!["the output limit cut it".to_owned()];
            return Ok(Typed {
                salvaged: Some(salvaged),
                ..first.typed(value, Obtained::Extracted, notes)
            });
        }
    }
    if problems.is_empty()
        && let Ok(parsed) = parsed
    {
        let obtained = if parsed.clean {
            Obtained::Clean
        } else {
            Obtained::Extracted
        };
        return Ok(first.typed(parsed.value, obtained, parsed.notes));
    }
    let (repaired, is_out_of_budget) = repaired(&ask, wanted, parse, (&first, &problems)).await?;
    let notes = problems.iter().map(ToString::to_string);
    let of_cause = |cause| CallFailure::of_problems(cause, &problems);
    let failure = match (repaired, parsed) {
        (Some(repaired), _) => {
            let notes = notes.collect();
            return Ok(Typed { notes, ..repaired });
        }
        // The repair gave nothing better, so the imperfect value is kept, with its problems as
        // notes.
        (None, Ok(parsed)) => {
            let notes = parsed.notes.into_iter().chain(notes).collect();
            return Ok(first.typed(parsed.value, Obtained::Extracted, notes));
        }
        (None, Err(_)) if first.is_blank() => CallFailure::empty(),
        (None, Err(_)) if first.is_cut() => of_cause(FailureCause::CutOff),
        (None, Err(_)) => of_cause(FailureCause::MalformedOutput),
    };
    Err(CallFailure {
        is_out_of_budget,
        ..failure
    }
    .into())
}

/// Asks once for the repair of an answer. Returns the repaired value, if there is one, and whether
/// the repair failed for lack of money. Then the output may still be had later.
async fn repaired<T: Shape>(
    ask: &CallSpec<'_>,
    wanted: &Arc<Schema>,
    parse: Parse<T>,
    broken: Repair<'_>,
) -> Result<(Option<Typed<T>>, bool), CallError> {
    let attempts = Attempts {
        repair: Some(broken),
        ..Attempts::new(ask, Some(wanted))
    };
    let answer = match run_attempts(attempts).await {
        Ok(answer) => answer,
        Err(error) => return Ok((None, error.no_output()?.is_out_of_budget)),
    };
    let schema = schema_of::<T>();
    let read = || {
        let parsed = parse(&answer.text, &schema).ok()?;
        Some(answer.typed(parsed.value, Obtained::Repaired, parsed.notes))
    };
    Ok((ask.run.compute_text(read).await?, false))
}

/// Parses an answer. Returns its value, and the problems with its form or its content.
fn parse_checked<T: DeserializeOwned>(
    answer: &Answer,
    schema: &Schema,
    parse: Parse<T>,
    check: impl Fn(&T) -> Vec<Problem>,
) -> (Result<Parsed<T>, Vec<Problem>>, Vec<Problem>) {
    let parsed = if answer.is_blank() {
        Err(vec![Problem {
            pointer: String::new(),
            detail: "the answer is empty".into(),
        }])
    } else {
        parse(&answer.text, schema)
    };
    let problems = match &parsed {
        Ok(parsed) => check(&parsed.value),
        Err(problems) => problems.clone(),
    };
    (parsed, problems)
}

/// Gets plain text. The fence of the prompt's data, which small models repeat, is removed from it.
///
/// # Errors
/// Like [`call_json`].
pub async fn call_text(ask: CallSpec<'_>) -> Result<Typed<String>, CallError> {
    let answer = run_attempts(Attempts::new(&ask, None)).await?;
    if answer.is_blank() {
        return Err(CallFailure::empty().into());
    }
    Ok(answer.typed(unquoted(&answer.text), Obtained::Text, vec![]))
}

/// The outcome of the attempts so far.
struct Progress<'a> {
    model: &'a RoleModel,
    /// The failed attempts with this model.
    tries: u32,
    /// Set after an answer that was only thinking: the same model with its least effort, and a
    /// larger limit.
    larger_limit: Option<(RoleModel, u32)>,
    last: Option<CallFailure>,
}

impl<'a> Progress<'a> {
    fn with(model: &'a RoleModel) -> Self {
        Self {
            model,
            tries: 0,
            larger_limit: None,
            last: None,
        }
    }

    /// Returns the model to call next, and its output limit.
    fn next(&self, ask: &CallSpec<'_>) -> (&RoleModel, u32) {
        match &self.larger_limit {
            Some((model, limit)) => (model, *limit),
            None => (self.model, ask.limit(self.model)),
        }
    }

    /// Continues with the model's fallback. Returns false if it has none.
    fn fall_back(&mut self) -> bool {
        let Some(fallback) = &self.model.fallback else {
            return false;
        };
        (self.model, self.tries, self.larger_limit) = (fallback, 0, None);
        true
    }

    /// Returns why there is no answer when time or money is out. An earlier failure says more about
    /// the reason.
    fn reason(self, out: CallFailure) -> CallFailure {
        let is_out_of_budget = out.is_out_of_budget;
        self.last.map_or(out, |last| CallFailure {
            is_out_of_budget,
            ..last
        })
    }
}

/// Gets one output: first the role's model with retries, then its fallbacks. Attempts that the
/// journal already has are followed first.
async fn run_attempts(attempts: Attempts<'_>) -> Result<Answer, CallError> {
    let Attempts { ask, once, .. } = attempts;
    let Some(model) = ask.deps.role(ask.role) else {
        let detail = format!("no model is configured for {}", ask.role);
        return Err(CallFailure::new(FailureCause::NotConfigured, detail).into());
    };
    // A repair needs no further thinking.
    let repairing = attempts.repair.map(|_| model.with_least_effort());
    let mut progress = Progress::with(repairing.as_ref().unwrap_or(model));
    let mut number = 1u32;
    loop {
        let (asked, limit) = progress.next(ask);
        let settled = match Box::pin(attempts.attempt((asked, limit), number)).await {
            Ok(settled) => settled,
            // A cheaper model may still fit.
            Err(CallError::NoOutput(out))
                if out.is_out_of_budget && !once && progress.fall_back() =>
            {
                progress.last.get_or_insert(out);
                continue;
            }
            Err(error) => return Err(progress.reason(error.no_output()?).into()),
        };
        number += 1;
        match settled.result {
            CallResult::Answered { text, stop } if spent_limit_on_thinking(&text, stop) => {
                let cause = CallFailure::limit_spent_on_thinking(ask.role, settled.limit);
                let is_first = progress.larger_limit.is_none();
                let next = attempts.with_larger_limit((asked, settled.limit), number, is_first)?;
                progress.larger_limit = Some(next.ok_or_else(|| cause.clone())?);
                progress.last = Some(cause);
            }
            CallResult::Answered { text, stop } => {
                return Ok(accepted(text, stop, settled.usage)?);
            }
            // The call died with its process, or a second call of an earlier release was faster.
            // Neither counts against the model.
            CallResult::InDoubt
            | CallResult::Failed {
                cause: FailureCause::Superseded,
                ..
            } => {}
            CallResult::Failed {
                cause,
                detail,
                said,
                retry,
            } => {
                // A time-out of the provider's own has its words.
                let is_ours = cause == FailureCause::TimedOut && said.is_none();
                // A pause before an attempt that the journal has is not waited for again.
                let pause = attempts.pause((&cause, retry), asked, progress.tries + 1);
                let pause = pause.map(|it| if settled.fresh { it } else { Duration::ZERO });
                progress.tries += 1;
                progress.last = Some(CallFailure {
                    by_deadline: settled.clipped && is_ours,
                    ..CallFailure::new(cause, detail)
                });
                prepare(&attempts, &mut progress, pause, number).await?;
            }
        }
    }
}

/// Waits before attempt `number` if it is to be of the same model. Without a `pause`, turns to the
/// model's fallback.
///
/// # Errors
/// The last failure, if no attempt is left.
async fn prepare(
    attempts: &Attempts<'_>,
    progress: &mut Progress<'_>,
    pause: Option<Duration>,
    number: u32,
) -> Result<(), CallFailure> {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None if !attempts.once && progress.fall_back() => {}
        // The journal already has the next attempt: that decision stands.
        None if attempts.is_known(number) => {}
        None => return Err(progress.last.take().unwrap_or_else(CallFailure::no_time)),
    }
    Ok(())
}

/// True if the answer is empty because the whole output limit went into thinking.
fn spent_limit_on_thinking(text: &str, stop: CallStop) -> bool {
    stop == CallStop::MaxTokens && text.trim().is_empty()
}

fn accepted(
    text: String,
    stop: CallStop,
    usage: Option<BilledTokens>,
) -> Result<Answer, CallFailure> {
    if stop == CallStop::Refusal {
        let detail = "the model declined to answer";
        return Err(CallFailure::new(FailureCause::Refused, detail));
    }
    let bytes = text.len() as u64;
    let tokens = usage.map_or(bytes, |usage| usage.output.min(bytes));
    Ok(Answer { text, stop, tokens })
}
