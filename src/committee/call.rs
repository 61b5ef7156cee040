//! Buying one output from a model: reserve, call, hedge, retry, fall back, parse, and repair once.

use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::budget::{self, InputBound};
use super::hedge::{self, OVERTAKEN};
pub use super::message::Ask;
use super::message::{Answer, Repair, input_bound, messages, schema_name, text_of};
pub use super::output::{OUT_OF_BUDGET, THOUGHT_AWAY, Typed, Unbought};
use super::{Committee, Failure};
use crate::config::RoleModel;
use crate::domain::{BilledTokens, Obtained};
use crate::journal::{Call, CallResult, CallSent, CallSettled, CallStop, Retryable, RunContext, views};
use crate::llm::{self, ChatReply, ChatRequest, Schema, structured};

/// Of the time that a stage has left, the first attempt at an output takes at most this share.
const FIRST_SHARE: f64 = 2.0 / 3.0;

/// An attempt that would get less time than this is not made.
const LEAST_TIME: Duration = Duration::from_millis(200);

/// Buys a JSON value of type `T`: checked against its schema, extracted defensively, repaired by one further call.
///
/// # Errors
/// The outer error stops the run; the inner one says why there is no output.
pub async fn buy_json<T>(
    run: &RunContext,
    house: &Committee,
    ask: Ask<'_>,
) -> Result<Result<Typed<T>, Unbought>, Failure>
where
    T: DeserializeOwned + JsonSchema + Send,
{
    buy_checked(run, house, ask, |_: &T| vec![]).await
}

/// As [`buy_json`], with a further check whose problems are put to the model in the same repair call. Problems that
/// are left after it do not stop the value: the caller deals with them.
pub async fn buy_checked<T>(
    run: &RunContext,
    house: &Committee,
    ask: Ask<'_>,
    check: impl Fn(&T) -> Vec<structured::Problem> + Sync,
) -> Result<Result<Typed<T>, Unbought>, Failure>
where
    T: DeserializeOwned + JsonSchema + Send,
{
    let schema = schemars::schema_for!(T).to_value();
    let first = match buy(run, house, &ask, Some(&schema), None).await? {
        Ok(answer) => answer,
        Err(unbought) => return Ok(Err(unbought)),
    };
    let read = || {
        let parsed = if first.is_blank() {
            Err(vec![structured::Problem { pointer: String::new(), detail: "the answer is empty".into() }])
        } else {
            structured::parse::<T>(&first.text, &schema)
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
        let obtained = if parsed.clean { Obtained::Clean } else { Obtained::Extracted };
        let truncated = first.stop == CallStop::MaxTokens;
        return Ok(Ok(Typed { value: parsed.value, obtained, truncated, notes: parsed.notes, tokens: first.tokens }));
    }
    let second = buy(run, house, &ask, Some(&schema), Some((&first, &problems))).await?;
    let read = || {
        let answer = second.ok()?;
        let parsed = structured::parse::<T>(&answer.text, &schema).ok()?;
        Some((parsed, answer.stop == CallStop::MaxTokens, answer.tokens))
    };
    let repaired = run.compute(&format!("reading {}/repair", ask.step), read).await?;
    match (repaired, parsed) {
        (Some((value, truncated, tokens)), _) => Ok(Ok(Typed {
            value: value.value,
            obtained: Obtained::Repaired,
            truncated,
            notes: problems.iter().map(ToString::to_string).collect(),
            tokens,
        })),
        // The repair gave nothing better: what was only imperfect is kept, with its problems as notes.
        (None, Ok(parsed)) => Ok(Ok(Typed {
            value: parsed.value,
            obtained: Obtained::Extracted,
            truncated: first.stop == CallStop::MaxTokens,
            notes: parsed.notes.into_iter().chain(problems.iter().map(ToString::to_string)).collect(),
            tokens: first.tokens,
        })),
        (None, Err(_)) if first.is_blank() => Ok(Err(Unbought::empty())),
        (None, Err(_)) => {
            let cut = if first.stop == CallStop::MaxTokens { "cut off" } else { "malformed output" };
            let detail = problems.iter().take(3).map(ToString::to_string).collect::<Vec<_>>().join("; ");
            Ok(Err(Unbought::new(cut, detail)))
        }
    }
}

/// Buys a JSON value of type `T` with exactly one call, for which all the time there is may be used. The model is held
/// to the schema `wanted`, and its answer to that of `T`.
///
/// # Errors
/// As [`buy_json`].
pub async fn buy_once<T>(
    run: &RunContext,
    house: &Committee,
    ask: &Ask<'_>,
    wanted: &Value,
) -> Result<Result<(T, bool), Unbought>, Failure>
where
    T: DeserializeOwned + JsonSchema + Send,
{
    let Some(model) = house.role(ask.role) else {
        return Ok(Err(Unbought::new("not configured", format!("no model is configured for {}", ask.role))));
    };
    let purchase = Purchase { run, house, ask, schema: Some(wanted), repair: None, step: ask.step.clone(), once: true };
    let limit = ask.limit(model);
    let settled = match Box::pin(purchase.attempt((model, limit), 1, &CancellationToken::new())).await? {
        Ok(settled) => settled,
        Err(unbought) => return Ok(Err(unbought)),
    };
    let answer = match settled.result {
        CallResult::Answered { text, stop } if is_thought_away(&text, stop) => {
            return Ok(Err(Unbought::thought_away(ask.role, settled.limit)));
        }
        CallResult::Answered { text, stop } => match accepted(text, stop, settled.usage) {
            Ok(answer) => answer,
            Err(unbought) => return Ok(Err(unbought)),
        },
        CallResult::InDoubt => return Ok(Err(Unbought::no_time())),
        CallResult::Failed { cause, detail, .. } => return Ok(Err(Unbought::new(&cause, detail))),
    };
    if answer.is_blank() {
        return Ok(Err(Unbought::empty()));
    }
    let schema = schemars::schema_for!(T).to_value();
    let cut = answer.stop == CallStop::MaxTokens;
    let read = || structured::parse::<T>(&answer.text, &schema);
    let parsed = run.compute(&format!("reading {}", ask.step), read).await?;
    Ok(match parsed {
        Ok(parsed) => {
            // A fence around it is the one thing that needs no mending.
            let as_written = parsed.clean || (parsed.notes.len() == 1 && structured::is_only_fenced(&answer.text));
            Ok((parsed.value, cut || !as_written))
        }
        Err(problems) => {
            let detail = problems.iter().take(3).map(ToString::to_string).collect::<Vec<_>>().join("; ");
            Err(Unbought::new("malformed output", detail))
        }
    })
}

/// Buys plain text.
///
/// # Errors
/// As [`buy_json`].
pub async fn buy_text(
    run: &RunContext,
    house: &Committee,
    ask: Ask<'_>,
) -> Result<Result<Typed<String>, Unbought>, Failure> {
    let answer = match buy(run, house, &ask, None, None).await? {
        Ok(answer) if answer.is_blank() => return Ok(Err(Unbought::empty())),
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

/// One output: the role's model with retries, then its fallbacks. What the journal has of it is followed first.
async fn buy(
    run: &RunContext,
    house: &Committee,
    ask: &Ask<'_>,
    schema: Option<&Value>,
    repair: Option<Repair<'_>>,
) -> Result<Result<Answer, Unbought>, Failure> {
    let Some(mut model) = house.role(ask.role) else {
        return Ok(Err(Unbought::new("not configured", format!("no model is configured for {}", ask.role))));
    };
    // What a repair has to think about was thought about before.
    let repairing;
    if repair.is_some() {
        repairing = model.with_least_effort();
        model = &repairing;
    }
    let step = if repair.is_some() { format!("{}/repair", ask.step) } else { ask.step.clone() };
    let purchase = Purchase { run, house, ask, schema, repair, step, once: false };
    let mut last: Option<Unbought> = None;
    let (mut number, mut tries) = (1u32, 0);
    // After an answer that was all thinking: the same model with less effort, and another limit.
    let mut roomier: Option<(RoleModel, u32)> = None;
    loop {
        let (asked, limit) = match &roomier {
            Some((model, limit)) => (model, *limit),
            None => (model, ask.limit(model)),
        };
        let hedged = number == 1 && repair.is_none() && !purchase.is_known(1);
        let (tried, calls) = if hedged {
            Box::pin(purchase.race(asked, limit)).await?
        } else {
            (Box::pin(purchase.attempt((asked, limit), number, &CancellationToken::new())).await?, 1)
        };
        let settled = match (tried, &model.fallback) {
            (Ok(settled), _) => settled,
            // A cheaper model may still fit.
            (Err(unbought), Some(fallback)) if unbought.starved => {
                (model, tries, roomier) = (fallback, 0, None);
                last.get_or_insert(unbought);
                continue;
            }
            // Out of time or of money: an earlier failure says more about why.
            (Err(unbought), _) => {
                let starved = unbought.starved;
                return Ok(Err(last.map_or(unbought, |last| Unbought { starved, ..last })));
            }
        };
        number += calls;
        match settled.result {
            CallResult::Answered { text, stop } if is_thought_away(&text, stop) => {
                let cause = Unbought::thought_away(ask.role, settled.limit);
                let Some(next) = purchase.roomier(asked, settled.limit, number)? else { return Ok(Err(cause)) };
                roomier = Some(next);
                last = Some(cause);
            }
            CallResult::Answered { text, stop, .. } => return Ok(accepted(text, stop, settled.usage)),
            // It died with its process, or its twin was faster, which says nothing against the model.
            CallResult::InDoubt => {}
            CallResult::Failed { cause, .. } if cause == OVERTAKEN => {}
            CallResult::Failed { cause, detail, retry, .. } => {
                tries += calls;
                let by_deadline = settled.clipped && cause == "timed out";
                last = Some(Unbought { by_deadline, ..Unbought::new(&cause, detail) });
                let pause = purchase.pause(retry, tries);
                match (pause, &model.fallback) {
                    (Some(pause), _) if settled.fresh => tokio::time::sleep(pause).await,
                    (Some(_), _) => {}
                    (None, Some(fallback)) => (model, tries, roomier) = (fallback, 0, None),
                    // A twin of the call that failed may have answered.
                    (None, None) if purchase.is_known(number) => {}
                    (None, None) => return Ok(Err(last.unwrap_or_else(Unbought::no_time))),
                }
            }
        }
    }
}

/// Whether an answer is no answer: the whole output limit went into thinking.
fn is_thought_away(text: &str, stop: CallStop) -> bool {
    stop == CallStop::MaxTokens && text.trim().is_empty()
}

fn accepted(text: String, stop: CallStop, usage: Option<BilledTokens>) -> Result<Answer, Unbought> {
    if stop == CallStop::Refusal {
        return Err(Unbought::new("refused", "the model declined to answer"));
    }
    let tokens = usage.map_or(text.len() as u64, |usage| usage.output.min(text.len() as u64));
    Ok(Answer { text, stop, tokens })
}

struct Settled {
    result: CallResult,
    usage: Option<BilledTokens>,
    /// Made by this process just now, not read from the journal.
    fresh: bool,
    /// The run's own time left the call less than a call may take.
    clipped: bool,
    /// The output limit that the call had, in tokens.
    limit: u32,
}

/// One output that is being bought.
struct Purchase<'a> {
    run: &'a RunContext,
    house: &'a Committee,
    ask: &'a Ask<'a>,
    schema: Option<&'a Value>,
    repair: Option<Repair<'a>>,
    step: String,
    /// There will be no other attempt.
    once: bool,
}

impl Purchase<'_> {
    /// The name of an attempt: `r1/solver`, `r1/solver#2`.
    fn call(&self, number: u32) -> String {
        if number == 1 { self.step.clone() } else { format!("{}#{number}", self.step) }
    }

    /// Whether the journal has the attempt as settled.
    fn is_known(&self, number: u32) -> bool {
        self.run.recall(&crate::journal::settled_key(&self.call(number))).is_some()
    }

    /// How long to wait before the same model is asked again; `None` if it is not. Nobody sleeps through what is left of
    /// the stage, or much longer than the policy's longest pause: then the fallback is asked at once.
    fn pause(&self, retry: Retryable, tries: u32) -> Option<Duration> {
        let Retryable::AfterMs(least) = retry else { return None };
        let policy = &self.house.policy;
        let pause = self.house.backoff(tries, least, self.run.accepted().seed);
        let in_time = Instant::now().checked_add(pause).is_some_and(|end| end <= self.ask.until);
        (tries < policy.retry_attempts && pause <= policy.retry_max.saturating_mul(4) && in_time).then_some(pause)
    }

    /// The first attempt, and beside it a second one if the first takes unusually long and the money allows. Returns how
    /// many attempts were made. A loser is dropped only when the winner's answer is in the journal.
    async fn race(&self, model: &RoleModel, limit: u32) -> Result<(Result<Settled, Unbought>, u32), Failure> {
        let (ended, overtaken) = (CancellationToken::new(), [CancellationToken::new(), CancellationToken::new()]);
        let [stop_first, stop_second] = &overtaken;
        let answered = |tried: &Result<Settled, Unbought>| {
            matches!(tried, Ok(Settled { result: CallResult::Answered { .. }, .. }))
        };
        let first = async {
            let tried = self.attempt((model, limit), 1, stop_first).await?;
            ended.cancel();
            if answered(&tried) {
                stop_second.cancel();
            }
            Ok::<_, Failure>(tried)
        };
        let second = async {
            tokio::select! {
                biased;
                () = ended.cancelled() => return Ok(None),
                () = hedge::due(self.house, model, self.ask.hedge) => {}
            }
            let twin = model.fallback.as_deref().unwrap_or(model);
            if !self.can_spare(twin)? {
                return Ok(None);
            }
            tracing::info!(step = self.step, model = twin.model, "the call takes unusually long: a second one is made");
            let tried = self.attempt((twin, self.ask.limit(twin)), 2, stop_second).await?;
            if answered(&tried) {
                stop_first.cancel();
            }
            Ok(Some(tried))
        };
        let (first, second) = tokio::try_join!(first, second)?;
        let made = if matches!(second, Some(Ok(_))) { 2 } else { 1 };
        Ok(match second {
            Some(second) if !answered(&first) && answered(&second) => (second, made),
            _ => (first, made),
        })
    }

    /// Whether a second call takes at most half of what is left: it must not starve what comes after it.
    fn can_spare(&self, model: &RoleModel) -> Result<bool, Failure> {
        let messages = messages(self.house, self.ask, model, None)?;
        let bound = input_bound(self.ask, &messages, self.schema, None);
        let worst = budget::worst_case(model, bound, self.ask.limit(model));
        let left = self.run.ledger().left();
        Ok(worst.is_none_or(|reservation| reservation.amount + reservation.amount <= left))
    }

    /// How a model that thought its limit away is asked again, as attempt `number`: with its least effort at the same limit;
    /// if that is what it had, at twice the limit as far as the cap carries it. `None`: there is no better way to ask.
    fn roomier(&self, model: &RoleModel, limit: u32, number: u32) -> Result<Option<(RoleModel, u32)>, Failure> {
        let calmer = model.with_least_effort();
        if calmer.effort != model.effort {
            return Ok(Some((calmer, limit)));
        }
        if limit > self.ask.limit(model) {
            return Ok(None);
        }
        let wanted = limit.saturating_mul(2).min(model.traits.max_output.unwrap_or(u32::MAX));
        let messages = messages(self.house, self.ask, model, self.repair)?;
        let bound = input_bound(self.ask, &messages, self.schema, self.repair);
        let limit = match affordable(self.run, model, bound, wanted) {
            Some(carried) if carried > limit => carried,
            // What was decided before a crash stands: the money looks different now.
            _ if self.is_known(number) => wanted,
            _ => return Ok(None),
        };
        Ok(Some((RoleModel { max_tokens: model.max_tokens.max(limit), ..calmer }, limit)))
    }

    /// One attempt with an output limit, made or recalled. `overtaken` drops it.
    async fn attempt(
        &self,
        (model, limit): (&RoleModel, u32),
        number: u32,
        overtaken: &CancellationToken,
    ) -> Result<Result<Settled, Unbought>, Failure> {
        let Self { run, house, ask, schema, repair, .. } = *self;
        let (call, known) = (self.call(number), self.is_known(number));
        let time = ask.until.saturating_duration_since(Instant::now());
        if !known && time < LEAST_TIME {
            return Ok(Err(Unbought::no_time()));
        }
        // A call that hangs must leave time for another attempt.
        let patience = if number == 1 && !self.once && time.mul_f64(1.0 - FIRST_SHARE) > LEAST_TIME {
            time.mul_f64(FIRST_SHARE)
        } else {
            time
        };
        let messages = messages(house, ask, model, repair)?;
        let bound = input_bound(ask, &messages, schema, repair);
        let max_tokens = match affordable(run, model, bound, limit) {
            Some(max_tokens) => max_tokens,
            None if known => limit,
            None => {
                run.refused(&call);
                return Ok(Err(Unbought::no_money("the cap has no room for the call")));
            }
        };
        let user = messages.iter().flat_map(|m| &m.parts).filter_map(text_of).collect::<Vec<_>>().join("\n");
        let sent = CallSent {
            call: call.clone(),
            role: ask.role,
            provider: model.provider.clone(),
            model: model.shown(),
            reserved: budget::worst_case(model, bound, max_tokens),
            max_tokens,
            effort: model.effort,
            prompt_hash: views::prompt_hash(&ask.prompt.system, &user),
        };
        let request = ChatRequest {
            key: format!("{}/{call}", run.id()),
            model: model.model.clone(),
            system: ask.prompt.system.clone(),
            messages,
            schema: schema.map(|value| Schema { name: schema_name(&ask.step), value: value.clone() }),
            max_tokens,
            settings: model.settings(),
            seed: run.accepted().seed,
            timeout: patience.min(house.policy.call_timeout),
        };
        let outcome = run.call(sent, perform(house, model, &request, overtaken)).await?;
        Ok(match outcome {
            Ok(CallSettled { result, usage, .. }) => {
                let clipped = patience < house.policy.call_timeout;
                // Of a recalled call the journal knows the limit.
                let limit = run.sent(&call).map_or(max_tokens, |sent| sent.max_tokens);
                Ok(Settled { result, usage, fresh: !known, clipped, limit })
            }
            Err(refused) => Err(Unbought::no_money(refused.to_string())),
        })
    }
}

/// The effect itself, in the journal's terms.
async fn perform(house: &Committee, model: &RoleModel, request: &ChatRequest, overtaken: &CancellationToken) -> Call {
    let dropped = |detail: &str, cost| {
        let (cause, detail) = (OVERTAKEN.to_owned(), detail.to_owned());
        let result = CallResult::Failed { cause, detail, said: None, retry: Retryable::No };
        Call { result, usage: None, cost, served: None }
    };
    if overtaken.is_cancelled() {
        return dropped("its twin answered before it was sent", Some(crate::domain::Usd::ZERO));
    }
    let reply = match house.models.model(&model.provider) {
        Some(chat) => tokio::select! {
            biased;
            reply = chat.chat(request) => reply,
            () = overtaken.cancelled() => return dropped("its twin answered first; it may be billed", None),
        },
        None => Err(llm::Error::Unfit { provider: model.provider.clone(), detail: "it is not running".into() }),
    };
    match reply {
        Ok(ChatReply { text, stop, usage, model: served, .. }) => {
            let stop = match stop {
                llm::Stop::End => CallStop::End,
                llm::Stop::MaxTokens => CallStop::MaxTokens,
                llm::Stop::Refusal => CallStop::Refusal,
                llm::Stop::Other => CallStop::Other,
            };
            // An answer of no tokens at all says that nobody counted.
            let counted = usage.as_ref().filter(|usage| text.is_empty() || **usage != BilledTokens::default());
            let cost = counted.map(|usage| budget::cost(model, usage));
            Call { result: CallResult::Answered { text, stop }, usage, cost, served }
        }
        Err(error) => {
            let retry = match error.retry() {
                llm::Retry::Never => Retryable::No,
                llm::Retry::After(least) => {
                    Retryable::AfterMs(least.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)))
                }
            };
            let cost = if error.may_be_billed() { None } else { Some(crate::domain::Usd::ZERO) };
            let (cause, detail, said) = (error.cause().to_owned(), error.outline(), error.said().map(str::to_owned));
            Call { result: CallResult::Failed { cause, detail, said, retry }, usage: None, cost, served: None }
        }
    }
}

/// The most output tokens, up to `wanted`, whose worst case the money that is left carries.
fn affordable(run: &RunContext, model: &RoleModel, input: InputBound, wanted: u32) -> Option<u32> {
    let left = run.ledger().left();
    let fits = |tokens: u32| budget::worst_case(model, input, tokens).is_none_or(|r| r.amount <= left);
    let mut tokens = wanted;
    while !fits(tokens) {
        let least = model.least_tokens();
        if tokens <= least {
            return None;
        }
        tokens = (tokens / 4 * 3).max(least);
    }
    Some(tokens)
}
