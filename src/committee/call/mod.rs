//! Gets one output from a model: reserve, call, retry, fall back, parse, and repair once. It knows
//! neither the stages that ask nor what becomes of an answer.

pub(super) mod prompts;
mod message;
mod attempt;
pub(super) mod output;
pub(super) mod clean;
pub(super) mod single_call;

use crate::committee::call::attempt::Attempts;
use conclave_lenient_json::Problem;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use crate::committee::call::message::CallSpec;
use crate::committee::call::message::{Answer, Repair};
pub use crate::committee::call::output::{CallFailure, Typed};
use crate::committee::deps::Deps;
use crate::committee::failure::Failure;
use crate::config::RoleModel;
use crate::domain::{BilledTokens, FailureCause, Obtained};
use crate::journal::{CallResult, CallStop, RunContext};

/// Gets a JSON value of type `T`. The output is extracted defensively, checked against the schema
/// of `T`, and repaired by at most one further call.
///
/// # Errors
/// The outer error stops the run. The inner error says why there is no output.
pub async fn call_json<T>(
    run: &RunContext,
    deps: &Deps,
    ask: CallSpec<'_>,
) -> Result<Result<Typed<T>, CallFailure>, Failure>
where
    T: DeserializeOwned + JsonSchema + Send,
{
    buy_checked(run, deps, ask, |_: &T| vec![]).await
}

/// Like [`call_json`], with a further check. Its problems are put to the model in the same repair
/// call. If problems remain after that, the value is still returned, and the caller handles them.
pub async fn buy_checked<T>(
    run: &RunContext,
    deps: &Deps,
    ask: CallSpec<'_>,
    check: impl Fn(&T) -> Vec<Problem> + Sync,
) -> Result<Result<Typed<T>, CallFailure>, Failure>
where
    T: DeserializeOwned + JsonSchema + Send,
{
    let schema = schemars::schema_for!(T).to_value();
    let first = match buy(run, deps, &ask, Some(&schema), None).await? {
        Ok(answer) => answer,
        Err(unbought) => return Ok(Err(unbought)),
    };
    let read = || {
        let parsed = if first.is_blank() {
            Err(vec![Problem {
                pointer: String::new(),
                detail: "the answer is empty".into(),
            }])
        } else {
            conclave_lenient_json::parse::<T>(&first.text, &schema)
        };
        let problems = match &parsed {
            Ok(parsed) => check(&parsed.value),
            Err(problems) => problems.clone(),
        };
        (parsed, problems)
    };
    let (parsed, problems) = run.compute(&format!("reading {}", ask.step), read).await?;
    if problems.is_empty()
        && let Ok(parsed) = parsed
    {
        let obtained = if parsed.clean {
            Obtained::Clean
        } else {
            Obtained::Extracted
        };
        let truncated = first.stop == CallStop::MaxTokens;
        return Ok(Ok(Typed {
            value: parsed.value,
            obtained,
            truncated,
            notes: parsed.notes,
            tokens: first.tokens,
        }));
    }
    let second = buy(run, deps, &ask, Some(&schema), Some((&first, &problems))).await?;
    let read = || {
        let answer = second.ok()?;
        let parsed = conclave_lenient_json::parse::<T>(&answer.text, &schema).ok()?;
        Some((parsed, answer.stop == CallStop::MaxTokens, answer.tokens))
    };
    let repaired = run
        .compute(&format!("reading {}/repair", ask.step), read)
        .await?;
    match (repaired, parsed) {
        (Some((value, truncated, tokens)), _) => Ok(Ok(Typed {
            value: value.value,
            obtained: Obtained::Repaired,
            truncated,
            notes: problems.iter().map(ToString::to_string).collect(),
            tokens,
        })),
        // The repair gave nothing better, so the imperfect value is kept, with its problems as
        // notes.
        (None, Ok(parsed)) => Ok(Ok(Typed {
            value: parsed.value,
            obtained: Obtained::Extracted,
            truncated: first.stop == CallStop::MaxTokens,
            notes: parsed
                .notes
                .into_iter()
                .chain(problems.iter().map(ToString::to_string))
                .collect(),
            tokens: first.tokens,
        })),
        (None, Err(_)) if first.is_blank() => Ok(Err(CallFailure::empty())),
        (None, Err(_)) => {
            let cut = if first.stop == CallStop::MaxTokens {
                FailureCause::CutOff
            } else {
                FailureCause::MalformedOutput
            };
            let detail = problems
                .iter()
                .take(3)
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; ");
            Ok(Err(CallFailure::new(cut, detail)))
        }
    }
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
    wanted: &Value,
) -> Result<Result<(T, bool), CallFailure>, Failure>
where
    T: DeserializeOwned + JsonSchema + Send,
{
    let Some(model) = deps.role(ask.role) else {
        return Ok(Err(CallFailure::new(
            FailureCause::NotConfigured,
            format!("no model is configured for {}", ask.role),
        )));
    };
    let purchase = Attempts {
        run,
        deps,
        ask,
        schema: Some(wanted),
        repair: None,
        step: ask.step.clone(),
        once: true,
    };
    let limit = ask.limit(model);
    let settled = match Box::pin(purchase.attempt((model, limit), 1)).await? {
        Ok(settled) => settled,
        Err(unbought) => return Ok(Err(unbought)),
    };
    let answer = match settled.result {
        CallResult::Answered { text, stop } if is_thought_away(&text, stop) => {
            return Ok(Err(CallFailure::thought_away(ask.role, settled.limit)));
        }
        CallResult::Answered { text, stop } => match accepted(text, stop, settled.usage) {
            Ok(answer) => answer,
            Err(unbought) => return Ok(Err(unbought)),
        },
        CallResult::InDoubt => return Ok(Err(CallFailure::no_time())),
        CallResult::Failed { cause, detail, .. } => {
            return Ok(Err(CallFailure::new(cause, detail)));
        }
    };
    if answer.is_blank() {
        return Ok(Err(CallFailure::empty()));
    }
    let schema = schemars::schema_for!(T).to_value();
    let cut = answer.stop == CallStop::MaxTokens;
    let read = || conclave_lenient_json::parse::<T>(&answer.text, &schema);
    let parsed = run.compute(&format!("reading {}", ask.step), read).await?;
    Ok(match parsed {
        Ok(parsed) => {
            // A surrounding code fence does not count as needing repair.
            let as_written = parsed.clean
                || (parsed.notes.len() == 1 && conclave_lenient_json::is_only_fenced(&answer.text));
            Ok((parsed.value, cut || !as_written))
        }
        Err(problems) => {
            let detail = problems
                .iter()
                .take(3)
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; ");
            Err(CallFailure::new(FailureCause::MalformedOutput, detail))
        }
    })
}

/// Gets plain text.
///
/// # Errors
/// Like [`call_json`].
pub async fn buy_text(
    run: &RunContext,
    deps: &Deps,
    ask: CallSpec<'_>,
) -> Result<Result<Typed<String>, CallFailure>, Failure> {
    let answer = match buy(run, deps, &ask, None, None).await? {
        Ok(answer) if answer.is_blank() => return Ok(Err(CallFailure::empty())),
        Ok(answer) => answer,
        Err(unbought) => return Ok(Err(unbought)),
    };
    Ok(Ok(Typed {
        value: answer.text,
        obtained: Obtained::Text,
        truncated: answer.stop == CallStop::MaxTokens,
        notes: vec![],
        tokens: answer.tokens,
    }))
}

/// Gets one output: first the role's model with retries, then its fallbacks. Attempts that the
/// journal already has are followed first.
async fn buy(
    run: &RunContext,
    deps: &Deps,
    ask: &CallSpec<'_>,
    schema: Option<&Value>,
    repair: Option<Repair<'_>>,
) -> Result<Result<Answer, CallFailure>, Failure> {
    let Some(mut model) = deps.role(ask.role) else {
        return Ok(Err(CallFailure::new(
            FailureCause::NotConfigured,
            format!("no model is configured for {}", ask.role),
        )));
    };
    // A repair needs no further thinking.
    let repairing;
    if repair.is_some() {
        repairing = model.with_least_effort();
        model = &repairing;
    }
    let step = if repair.is_some() {
        format!("{}/repair", ask.step)
    } else {
        ask.step.clone()
    };
    let purchase = Attempts {
        run,
        deps,
        ask,
        schema,
        repair,
        step,
        once: false,
    };
    let mut last: Option<CallFailure> = None;
    let (mut number, mut tries) = (1u32, 0);
    // Set after an answer that was only thinking: the same model with less effort or a larger
    // limit.
    let mut roomier: Option<(RoleModel, u32)> = None;
    loop {
        let (asked, limit) = match &roomier {
            Some((model, limit)) => (model, *limit),
            None => (model, ask.limit(model)),
        };
        let tried = Box::pin(purchase.attempt((asked, limit), number)).await?;
        let settled = match (tried, &model.fallback) {
            (Ok(settled), _) => settled,
            // A cheaper model may still fit.
            (Err(unbought), Some(fallback)) if unbought.starved => {
                (model, tries, roomier) = (fallback, 0, None);
                last.get_or_insert(unbought);
                continue;
            }
            // Out of time or money. An earlier failure says more about the reason.
            (Err(unbought), _) => {
                let starved = unbought.starved;
                return Ok(Err(
                    last.map_or(unbought, |last| CallFailure { starved, ..last })
                ));
            }
        };
        number += 1;
        match settled.result {
            CallResult::Answered { text, stop } if is_thought_away(&text, stop) => {
                let cause = CallFailure::thought_away(ask.role, settled.limit);
                let Some(next) = purchase.roomier(asked, settled.limit, number)? else {
                    return Ok(Err(cause));
                };
                roomier = Some(next);
                last = Some(cause);
            }
            CallResult::Answered { text, stop, .. } => {
                return Ok(accepted(text, stop, settled.usage));
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
                tries += 1;
                let by_deadline = settled.clipped && cause == FailureCause::TimedOut;
                last = Some(CallFailure {
                    by_deadline,
                    ..CallFailure::new(cause, detail)
                });
                let pause = purchase.pause(retry, tries);
                match (pause, &model.fallback) {
                    (Some(pause), _) if settled.fresh => tokio::time::sleep(pause).await,
                    (Some(_), _) => {}
                    (None, Some(fallback)) => (model, tries, roomier) = (fallback, 0, None),
                    // The journal already has the next attempt: that decision stands.
                    (None, None) if purchase.is_known(number) => {}
                    (None, None) => return Ok(Err(last.unwrap_or_else(CallFailure::no_time))),
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
        return Err(CallFailure::new(
            FailureCause::Refused,
            "the model declined to answer",
        ));
    }
    let tokens = usage.map_or(text.len() as u64, |usage| {
        usage.output.min(text.len() as u64)
    });
    Ok(Answer { text, stop, tokens })
}
