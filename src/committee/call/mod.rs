//! Gets one output from a model: reserve, call, retry, fall back, parse, and repair once. It knows
//! neither the stages that ask nor what becomes of an answer.

pub(super) mod prompts;
mod prompt_checks;
mod prompt_files;
mod message;
mod attempt;
pub(super) mod output;
pub(super) mod clean;
pub(super) mod single_call;

use crate::committee::call::attempt::{Attempts, Settled};
use conclave_lenient_json::{Parsed, Problem, Schema};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::sync::Arc;

pub use crate::committee::call::message::CallSpec;
use crate::committee::call::message::{Answer, Repair};
pub use crate::committee::call::output::{CallFailure, Salvaged, Typed};
use crate::committee::deps::Deps;
use crate::committee::failure::CallError;
use crate::committee::schemas::schema_of;
use crate::config::RoleModel;
use crate::domain::{BilledTokens, FailureCause, Obtained, Role};
use crate::journal::{CallResult, CallStop, RunContext};

/// Gets a JSON value of type `T`. The output is extracted defensively, checked against the schema
/// of `T`, and repaired by at most one further call.
///
/// # Errors
/// [`CallError`] says why there is no output, or stops the run.
pub async fn call_json<T>(
    run: &RunContext,
    deps: &Deps,
    ask: CallSpec<'_>,
) -> Result<Typed<T>, CallError>
where
    T: DeserializeOwned + JsonSchema + Send + 'static,
{
    buy_checked(run, deps, ask, |_: &T| vec![], |_| None).await
}

/// Like [`call_json`], with a further check. Its problems are put to the model in the same repair
/// call. If problems remain after that, the value is still returned, and the caller handles them.
/// `salvage` may make a value of the beginning of an answer that the output limit cut. Then no
/// repair is made, because it would be cut too.
pub async fn buy_checked<T>(
    run: &RunContext,
    deps: &Deps,
    ask: CallSpec<'_>,
    check: impl Fn(&T) -> Vec<Problem> + Sync,
    salvage: impl Fn(&str) -> Option<(T, Salvaged)> + Sync,
) -> Result<Typed<T>, CallError>
where
    T: DeserializeOwned + JsonSchema + Send + 'static,
{
    buy_shaped(run, deps, ask, &schema_of::<T>(), (check, salvage)).await
}

/// Like [`buy_checked`]. The request carries the schema `wanted`; the answer is checked against the
/// schema of `T`.
async fn buy_shaped<T>(
    run: &RunContext,
    deps: &Deps,
    ask: CallSpec<'_>,
    wanted: &Arc<Schema>,
    (check, salvage): (
        impl Fn(&T) -> Vec<Problem> + Sync,
        impl Fn(&str) -> Option<(T, Salvaged)> + Sync,
    ),
) -> Result<Typed<T>, CallError>
where
    T: DeserializeOwned + JsonSchema + Send + 'static,
{
    let schema = schema_of::<T>();
    let first = buy(run, deps, &ask, Some(wanted), None).await?;
    let read = || parse_checked(&first, &schema, &check);
    let reading = format!("reading {}", ask.step);
    let (parsed, problems) = run.compute_text(&reading, read).await?;
    if parsed.is_err() && first.is_cut() {
        let read = || salvage(&first.text);
        if let Some((value, salvaged)) = run.compute("reading a cut answer", read).await? {
            return Ok(Typed {
                value,
                obtained: Obtained::Extracted,
                truncated: true,
                salvaged: Some(salvaged),
                notes: vec!["the output limit cut it".to_owned()],
                tokens: first.tokens,
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
        return Ok(typed(parsed, obtained, &first));
    }
    let broken = (&first, problems.as_slice());
    let (repaired, starved) = repaired(run, deps, &ask, wanted, broken).await?;
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
            let mut kept = typed(parsed, Obtained::Extracted, &first);
            kept.notes.extend(notes);
            return Ok(kept);
        }
        (None, Err(_)) if first.is_blank() => CallFailure::empty(),
        (None, Err(_)) if first.is_cut() => of_cause(FailureCause::CutOff),
        (None, Err(_)) => of_cause(FailureCause::MalformedOutput),
    };
    Err(CallFailure { starved, ..failure }.into())
}

/// Asks once for the repair of an answer. Returns the repaired value, if there is one, and whether
/// the repair failed for lack of money. Then the output may still be had later.
async fn repaired<T>(
    run: &RunContext,
    deps: &Deps,
    ask: &CallSpec<'_>,
    wanted: &Arc<Schema>,
    broken: Repair<'_>,
) -> Result<(Option<Typed<T>>, bool), CallError>
where
    T: DeserializeOwned + JsonSchema + Send + 'static,
{
    let answer = match buy(run, deps, ask, Some(wanted), Some(broken)).await {
        Ok(answer) => answer,
        Err(error) => return Ok((None, error.no_output()?.starved)),
    };
    let schema = schema_of::<T>();
    let read = || {
        let parsed = conclave_lenient_json::parse::<T>(&answer.text, &schema).ok()?;
        Some(typed(parsed, Obtained::Repaired, &answer))
    };
    let reading = format!("reading {}/repair", ask.step);
    Ok((run.compute_text(&reading, read).await?, false))
}

type Parse<T> = Result<Parsed<T>, Vec<Problem>>;

/// Parses an answer. Returns its value, and the problems with its form or its content.
fn parse_checked<T: DeserializeOwned>(
    answer: &Answer,
    schema: &Schema,
    check: impl Fn(&T) -> Vec<Problem>,
) -> (Parse<T>, Vec<Problem>) {
    let parsed = if answer.is_blank() {
        Err(vec![Problem {
            pointer: String::new(),
            detail: "the answer is empty".into(),
        }])
    } else {
        conclave_lenient_json::parse::<T>(&answer.text, schema)
    };
    let problems = match &parsed {
        Ok(parsed) => check(&parsed.value),
        Err(problems) => problems.clone(),
    };
    (parsed, problems)
}

fn typed<T>(parsed: Parsed<T>, obtained: Obtained, answer: &Answer) -> Typed<T> {
    Typed {
        value: parsed.value,
        obtained,
        truncated: answer.is_cut(),
        salvaged: None,
        notes: parsed.notes,
        tokens: answer.tokens,
    }
}

/// Like [`call_json`], with a schema `wanted` of its own for the request.
///
/// # Errors
/// Like [`call_json`].
pub async fn call_shaped<T>(
    run: &RunContext,
    deps: &Deps,
    ask: CallSpec<'_>,
    wanted: &Arc<Schema>,
) -> Result<T, CallError>
where
    T: DeserializeOwned + JsonSchema + Send + 'static,
{
    let asked = buy_shaped(run, deps, ask, wanted, (|_: &T| vec![], |_: &str| None));
    Ok(asked.await?.value)
}

/// Gets a JSON value of type `T` with exactly one call, which may use all the time until the stage
/// ends. The request carries the schema `wanted`; the answer is checked against the schema of `T`.
/// The returned flag is true if the JSON needed repair or was cut at the token limit.
///
/// # Errors
/// Like [`call_json`].
pub async fn call_once<T>(
    run: &RunContext,
    deps: &Deps,
    ask: &CallSpec<'_>,
    wanted: &Arc<Schema>,
) -> Result<(T, bool), CallError>
where
    T: DeserializeOwned + JsonSchema + Send + 'static,
{
    let Some(model) = deps.role(ask.role) else {
        return Err(CallFailure::not_configured(ask.role).into());
    };
    let attempts = Attempts {
        run,
        deps,
        ask,
        schema: Some(wanted),
        repair: None,
        step: ask.step.clone(),
        once: true,
    };
    let limit = attempts.limit(model);
    let mut number = 1;
    let settled = loop {
        let settled = Box::pin(attempts.attempt((model, limit), number)).await?;
        // A call that died with its process is made again.
        if !matches!(settled.result, CallResult::InDoubt) {
            break settled;
        }
        number += 1;
    };
    let answer = only_answer(settled, ask.role)?;
    let schema = schema_of::<T>();
    let read = || conclave_lenient_json::parse::<T>(&answer.text, &schema);
    let reading = format!("reading {}", attempts.step);
    let parsed = run.compute_text(&reading, read).await?;
    let parsed = parsed
        .map_err(|problems| CallFailure::of_problems(FailureCause::MalformedOutput, &problems))?;
    // A surrounding code fence does not count as needing repair.
    let is_fenced =
        || parsed.notes.len() == 1 && conclave_lenient_json::is_only_fenced(&answer.text);
    let is_damaged = answer.is_cut() || !(parsed.clean || is_fenced());
    Ok((parsed.value, is_damaged))
}

/// Returns the answer of an output's only attempt.
fn only_answer(settled: Settled, role: Role) -> Result<Answer, CallFailure> {
    match settled.result {
        CallResult::Answered { text, stop } if is_thought_away(&text, stop) => {
            Err(CallFailure::thought_away(role, settled.limit))
        }
        CallResult::Answered { text, stop } => {
            let answer = accepted(text, stop, settled.usage)?;
            let answer = Some(answer).filter(|answer| !answer.is_blank());
            answer.ok_or_else(CallFailure::empty)
        }
        CallResult::InDoubt => Err(CallFailure::no_time()),
        CallResult::Failed { cause, detail, .. } => Err(CallFailure::new(cause, detail)),
    }
}

/// Gets plain text.
///
/// # Errors
/// Like [`call_json`].
pub async fn buy_text(
    run: &RunContext,
    deps: &Deps,
    ask: CallSpec<'_>,
) -> Result<Typed<String>, CallError> {
    let answer = buy(run, deps, &ask, None, None).await?;
    if answer.is_blank() {
        return Err(CallFailure::empty().into());
    }
    Ok(Typed {
        truncated: answer.is_cut(),
        salvaged: None,
        value: answer.text,
        obtained: Obtained::Text,
        notes: vec![],
        tokens: answer.tokens,
    })
}

/// Gets one output: first the role's model with retries, then its fallbacks. Attempts that the
/// journal already has are followed first.
async fn buy(
    run: &RunContext,
    deps: &Deps,
    ask: &CallSpec<'_>,
    schema: Option<&Arc<Schema>>,
    repair: Option<Repair<'_>>,
) -> Result<Answer, CallError> {
    let Some(model) = deps.role(ask.role) else {
        return Err(CallFailure::not_configured(ask.role).into());
    };
    // A repair needs no further thinking.
    let repairing = repair.map(|_| model.with_least_effort());
    let step = match repair {
        Some(_) => format!("{}/repair", ask.step),
        None => ask.step.clone(),
    };
    let attempts = Attempts {
        run,
        deps,
        ask,
        schema,
        repair,
        step,
        once: false,
    };
    let progress = Progress {
        model: repairing.as_ref().unwrap_or(model),
        tries: 0,
        roomier: None,
        last: None,
    };
    retried(&attempts, progress).await
}

/// The outcome of the attempts so far.
struct Progress<'a> {
    model: &'a RoleModel,
    /// The failed attempts with this model.
    tries: u32,
    /// Set after an answer that was only thinking: the same model with less effort or a larger
    /// limit.
    roomier: Option<(RoleModel, u32)>,
    last: Option<CallFailure>,
}

impl Progress<'_> {
    /// Continues with the model's fallback. Returns false if it has none.
    fn fall_back(&mut self) -> bool {
        let Some(fallback) = &self.model.fallback else {
            return false;
        };
        (self.model, self.tries, self.roomier) = (fallback, 0, None);
        true
    }

    /// Returns why there is no answer when time or money is out. An earlier failure says more about
    /// the reason.
    fn reason(self, out: CallFailure) -> CallFailure {
        let starved = out.starved;
        self.last
            .map_or(out, |last| CallFailure { starved, ..last })
    }
}

/// Makes attempts until there is an answer or no further attempt is possible.
async fn retried(attempts: &Attempts<'_>, mut progress: Progress<'_>) -> Result<Answer, CallError> {
    let mut number = 1u32;
    loop {
        let usual = || (progress.model, attempts.limit(progress.model));
        let roomier = progress.roomier.as_ref();
        let (asked, limit) = roomier.map_or_else(usual, |(model, limit)| (model, *limit));
        let settled = match Box::pin(attempts.attempt((asked, limit), number)).await {
            Ok(settled) => settled,
            // A cheaper model may still fit.
            Err(CallError::NoOutput(out)) if out.starved && progress.fall_back() => {
                progress.last.get_or_insert(out);
                continue;
            }
            Err(error) => return Err(progress.reason(error.no_output()?).into()),
        };
        number += 1;
        match settled.result {
            CallResult::Answered { text, stop } if is_thought_away(&text, stop) => {
                let cause = CallFailure::thought_away(attempts.ask.role, settled.limit);
                let Some(next) = attempts.roomier(asked, settled.limit, number)? else {
                    return Err(cause.into());
                };
                (progress.roomier, progress.last) = (Some(next), Some(cause));
            }
            CallResult::Answered { text, stop } => {
                return Ok(accepted(text, stop, settled.usage)?);
            }
            // The call died with its process, or a second call of an earlier release was faster.
            // Neither counts against the model.
            CallResult::InDoubt => {}
            CallResult::Failed {
                cause: FailureCause::Superseded,
                ..
            } => {}
            CallResult::Failed {
                cause,
                detail,
                retry,
                ..
            } => {
                let by_deadline = settled.clipped && cause == FailureCause::TimedOut;
                let failure = CallFailure::new(cause, detail);
                progress.tries += 1;
                progress.last = Some(CallFailure {
                    by_deadline,
                    ..failure
                });
                match attempts.pause(retry, progress.tries) {
                    Some(pause) if settled.fresh => tokio::time::sleep(pause).await,
                    Some(_) => {}
                    None if progress.fall_back() => {}
                    // The journal already has the next attempt: that decision stands.
                    None if attempts.is_known(number) => {}
                    None => return Err(progress.last.unwrap_or_else(CallFailure::no_time).into()),
                }
            }
        }
    }
}

/// True if the answer is empty because the whole output limit went into thinking.
pub(super) fn is_thought_away(text: &str, stop: CallStop) -> bool {
    stop == CallStop::MaxTokens && text.trim().is_empty()
}

pub(super) fn accepted(
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
