//! Makes the attempts at one output of a model: reserve, call, retry, fall back.

use crate::committee::call::message::{
    CallSpec, Repair, input_bound, messages, schema_name, text_of,
};
use crate::committee::call::output::CallFailure;
use crate::committee::deps::Deps;
use crate::committee::failure::{CallError, Failure};
use crate::committee::money::budget::{self, InputBound};
use crate::config::RoleModel;
use crate::domain::{BilledTokens, CallName, FailureCause, Retryable, Usd};
use crate::journal::{Call, CallResult, CallSent, RunContext, step};
use crate::llm::{self, ChatReply, ChatRequest, MIN_TIME, Message, Schema};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The first attempt at an output takes at most this share of the time that its stage has left.
const FIRST_SHARE: f64 = 2.0 / 3.0;

/// The most attempts at a model that refuses calls for its rate and answers others, and how long ago its
/// last answer may be.
const MAX_RATE_LIMITED: u32 = 30;
const ANSWERED_WITHIN: Duration = Duration::from_secs(20);

pub(super) struct Settled {
    pub result: CallResult,
    pub usage: Option<BilledTokens>,
    /// True if this process made the call just now; false if it was read from the journal.
    pub fresh: bool,
    /// True if the run's remaining time gave the call less than the usual call timeout.
    pub clipped: bool,
    /// The output limit of the call, in tokens.
    pub limit: u32,
}

/// The attempts at one output.
pub(super) struct Attempts<'a> {
    pub ask: &'a CallSpec<'a>,
    pub schema: Option<&'a Arc<conclave_lenient_json::Schema>>,
    pub repair: Option<Repair<'a>>,
    /// True if there will be no other attempt.
    pub once: bool,
}

impl<'a> Attempts<'a> {
    /// Returns the attempts at the first output of a call.
    pub(super) fn new(
        ask: &'a CallSpec<'a>,
        schema: Option<&'a Arc<conclave_lenient_json::Schema>>,
    ) -> Self {
        Self {
            ask,
            schema,
            repair: None,
            once: false,
        }
    }

    /// Returns the name of an attempt.
    pub(super) fn call(&self, number: u32) -> String {
        let name = CallName {
            step: self.ask.step,
            is_repair: self.repair.is_some(),
            attempt: number,
        };
        name.to_string()
    }

    /// True if the journal has the attempt as settled.
    pub(super) fn is_known(&self, number: u32) -> bool {
        let settled = step::settled(&self.call(number));
        self.ask.run.recorded(&settled).is_some()
    }

    /// Returns how long to wait before the same model is called again; `None` if it is not. It is not
    /// if the pause would outlast the stage, or is much longer than the policy's longest pause. Then
    /// the fallback is called at once. A model without a fallback may refuse some calls for its rate
    /// and answer others. It is called again while the stage lasts, because that costs nothing.
    pub(super) fn pause(
        &self,
        (cause, retry): (&FailureCause, Retryable),
        model: &RoleModel,
        tries: u32,
    ) -> Option<Duration> {
        let Retryable::AfterMs(least) = retry else {
            return None;
        };
        let CallSpec { run, deps, .. } = self.ask;
        let policy = &deps.policy;
        let pause = deps.backoff(tries, least, run.accepted().seed);
        let end = Instant::now().checked_add(pause);
        let is_in_time = end.is_some_and(|end| end <= self.ask.until);
        let is_short = pause <= policy.retry_max.saturating_mul(4);
        let waits = *cause == FailureCause::RateLimited
            && model.fallback.is_none()
            && (deps.models).has_answered_within(&model.provider, &model.model, ANSWERED_WITHIN);
        let most = match policy.retry_attempts {
            several @ 2.. if waits => several.max(MAX_RATE_LIMITED),
            most => most,
        };
        let is_left = !self.once && tries < most;
        (is_left && is_short && is_in_time).then_some(pause)
    }

    /// Returns how to call a model again, as attempt `number`, after it spent its whole limit on
    /// thinking: at its least effort and up to twice the limit. `None` if the cap does not allow more
    /// (SPEC 4), or after the first time. Journals of earlier releases may have a second one.
    pub(super) fn with_larger_limit(
        &self,
        (model, limit): (&RoleModel, u32),
        number: u32,
        is_first: bool,
    ) -> Result<Option<(RoleModel, u32)>, Failure> {
        if self.once || !(is_first || self.is_known(number)) {
            return Ok(None);
        }
        let least_effort = model.with_least_effort();
        let most = least_effort.traits.max_output.unwrap_or(u32::MAX);
        let wanted = limit.saturating_mul(2).min(most);
        let (_, bound) = self.messages(&least_effort)?;
        let limit = match affordable(self.ask.run, &least_effort, bound, wanted) {
            Some(affordable_limit) if affordable_limit > limit => affordable_limit,
            // The decision made before a crash stands, because the money looks different now.
            _ if self.is_known(number) => wanted,
            _ => return Ok(None),
        };
        let model = RoleModel {
            max_tokens: least_effort.max_tokens.max(limit),
            ..least_effort
        };
        Ok(Some((model, limit)))
    }

    /// Returns the messages of a call to this model, with the bound of its input.
    fn messages(&self, model: &RoleModel) -> Result<(Vec<Message>, InputBound), Failure> {
        let messages = messages(self.ask, model, self.repair)?;
        let schema = self.schema.map(|schema| &**schema);
        let bound = input_bound(self.ask, &messages, schema, self.repair);
        Ok((messages, bound))
    }

    /// Makes or recalls one attempt with an output limit.
    pub(super) async fn attempt(
        &self,
        (model, limit): (&RoleModel, u32),
        number: u32,
    ) -> Result<Settled, CallError> {
        let CallSpec { run, deps, .. } = *self.ask;
        let (call, known) = (self.call(number), self.is_known(number));
        let time = self.ask.until.saturating_duration_since(Instant::now());
        if !known && time < MIN_TIME {
            return Err(CallFailure::no_time().into());
        }
        // A hanging call must leave time for another attempt.
        let patience = if number == 1 && !self.once && time.mul_f64(1.0 - FIRST_SHARE) > MIN_TIME {
            time.mul_f64(FIRST_SHARE)
        } else {
            time
        };
        let (messages, bound) = self.messages(model)?;
        let max_tokens = match affordable(run, model, bound, limit) {
            Some(max_tokens) => max_tokens,
            None if known => limit,
            None => {
                run.refused(&call);
                let detail = "the call would exceed the cap";
                return Err(CallFailure::out_of_budget(detail).into());
            }
        };
        let fallback = model.fallback.as_deref().filter(|_| !self.once);
        let has_fallback =
            fallback.is_some_and(|model| affordable(run, model, bound, max_tokens).is_some());
        let request = ChatRequest {
            key: format!("{}/{call}", run.id()),
            model: model.model.clone(),
            system: self.ask.prompt.system.clone(),
            messages,
            schema: self.schema.map(|value| Schema {
                name: schema_name(self.ask.step).to_owned(),
                value: Arc::clone(value),
            }),
            max_tokens,
            settings: model.settings(),
            seed: run.accepted().seed,
            timeout: patience.min(deps.policy.call_timeout),
            has_fallback,
        };
        let sent = self.sent(&call, model, bound, &request);
        let settled = run.call(sent, perform(deps, model, &request)).await?;
        Ok(Settled {
            result: settled.result,
            usage: settled.usage,
            fresh: !known,
            clipped: patience < deps.policy.call_timeout,
            // For a recalled call the journal has the limit.
            limit: run.sent(&call).map_or(max_tokens, |sent| sent.max_tokens),
        })
    }

    /// Returns what the journal records of a request.
    fn sent(
        &self,
        call: &str,
        model: &RoleModel,
        bound: InputBound,
        request: &ChatRequest,
    ) -> CallSent {
        let parts = request.messages.iter().flat_map(|m| &m.parts);
        let user: Vec<_> = parts.filter_map(text_of).collect();
        CallSent {
            call: call.to_owned(),
            role: self.ask.role,
            provider: model.provider.clone(),
            model: model.shown(),
            reserved: budget::worst_case(model, bound, request.max_tokens),
            max_tokens: request.max_tokens,
            effort: model.effort,
            prompt_hash: request.system.prompt_hash(&user.join("\n")),
        }
    }
}

/// Performs a call and converts its outcome to the journal's types.
async fn perform(deps: &Deps, model: &RoleModel, request: &ChatRequest) -> Call {
    let reply = match deps.models.model(&model.provider) {
        Some(chat) => chat.chat(request).await,
        None => {
            let kind = llm::ErrorKind::Unfit;
            Err(llm::Error::new(&model.provider, kind, "it is not running"))
        }
    };
    reply.map_or_else(
        |error| failed(&error),
        |reply| answered(model, request, reply),
    )
}

fn answered(model: &RoleModel, request: &ChatRequest, reply: ChatReply) -> Call {
    let ChatReply {
        text, usage, stop, ..
    } = reply;
    let (input, output) = request.most_tokens();
    let most = model.price.map(|price| price.worst(input, 0, output));
    let most = most.unwrap_or_default();
    let stated = reply.stated_cost.unwrap_or_default();
    if stated > most {
        metrics::counter!("conclave_usage_bounded_total").increment(1);
        tracing::warn!(model = request.model, %stated, booked = %most, "an impossible cost");
    }
    let stated = stated.min(most);
    // Zero tokens for an answer with text mean that the provider did not count.
    let counted = usage
        .as_ref()
        .filter(|usage| text.is_empty() || **usage != BilledTokens::default());
    let cost = counted.map(|usage| budget::cost(model, usage, stated));
    Call {
        result: CallResult::Answered { text, stop },
        usage,
        cost,
        served: reply.model,
    }
}

fn failed(error: &llm::Error) -> Call {
    Call {
        result: CallResult::Failed {
            cause: error.cause().to_owned(),
            detail: error.outline(),
            said: error.said().map(str::to_owned),
            retry: error.retry(),
        },
        usage: None,
        cost: (!error.may_be_billed()).then_some(Usd::ZERO),
        served: None,
    }
}

/// Returns the most output tokens, up to `wanted`, whose worst case fits the money that is left.
/// Takes a quarter off until it fits.
pub(super) fn affordable(
    run: &RunContext,
    model: &RoleModel,
    input: InputBound,
    wanted: u32,
) -> Option<u32> {
    let left = run.ledger().left();
    let fits =
        |tokens: u32| budget::worst_case(model, input, tokens).is_none_or(|r| r.amount <= left);
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
