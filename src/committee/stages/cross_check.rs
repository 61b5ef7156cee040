//! The cross-check (SPEC 5). After round 1 a model compares the key claims of all reports, one by
//! one, without knowing their authors. In `deep` a second model does the same with everything in
//! reverse order. This file makes the calls; `verdicts` selects what is shown and reads the
//! answers.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use futures_util::future::join_all;
use serde_json::json;
use tokio::time::Instant;

use crate::committee::call::prompts::set;
use crate::committee::call::{CallFailure, CallSpec, buy_checked};
use crate::committee::money::budget::{self, CheckCost, InputBound, ModelText, WantedCheck};
use crate::committee::stages::round_context::{RoundContext, SCAFFOLDING_TOKENS};
use crate::committee::stages::verdicts::{self, CrossCheckReply, Shown, Written};
use crate::committee::{Deps, Failure};
use crate::config::{OutputForm, PromptSet, RoleModel};
use crate::domain::{Agent, Mode, Role, Usd};
use crate::journal::step::CrossCheckStep;
use crate::journal::{
    AgentOutcome, CheckPass, CheckScope, CheckSize, CrossChecked, Event, RunContext, views,
};
use crate::scoring;

/// Output tokens of a pass: this base, plus an amount for each report and for each claim.
const BASE_TOKENS: u32 = 160;
const TOKENS_PER_REPORT: u32 = 60;
const TOKENS_PER_CLAIM: u32 = 80;

/// The most output tokens of a pass, for any number of claims.
pub const MAX_TOKENS: u32 = 2400;

/// The most tokens that labels, tags and fences of one report take in the prompt.
const LABEL_TOKENS: u64 = 260;

static SCHEMA_BYTES: LazyLock<usize> = LazyLock::new(|| {
    schemars::schema_for!(CrossCheckReply)
        .to_value()
        .to_string()
        .len()
});

/// If later rounds follow, the cross-check takes at most this share of the time left for rounds.
const TIME_SHARE: f64 = 0.5;

/// The reason for no cross-check: the policy turns it off.
pub const TURNED_OFF: &str = "the config turns it off for this mode (policy.crossCheck)";
const NO_CHECKER: &str = "no other role than the solver writes JSON";
const NO_MONEY: &str = "the cap has no room for it";
const NO_TIME: &str = "no time was left for it";

/// One call of the cross-check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pass {
    role: Role,
    reversed: bool,
}

/// Returns the roles whose models check, in the order of the passes. The first is the verifier,
/// unless its model is of the solver's family and another role's is not. The second prefers a model
/// that differs from the first.
fn checkers(deps: &Deps) -> Vec<Role> {
    let candidates = [
        Agent::Verifier,
        Agent::Critic,
        Agent::Editor,
        Agent::Implementer,
        Agent::Visual,
    ];
    let able: Vec<(Role, &RoleModel)> = candidates
        .into_iter()
        .map(Role::Agent)
        .chain([Role::Master])
        .filter_map(|role| Some((role, deps.role(role)?)))
        .filter(|(_, model)| model.output == OutputForm::Json && model.prompts != PromptSet::Text)
        .collect();
    let family = |model: &RoleModel| scoring::family(&model.shown());
    let solver = deps.role(Role::Agent(Agent::Solver)).map(family);
    let foreign = |model: &RoleModel| {
        solver
            .as_ref()
            .is_none_or(|solver| *solver != family(model))
    };
    // The master writes the reply, so it checks only if it adds a foreign family.
    let able = || {
        able.iter()
            .filter(|(role, model)| *role != Role::Master || foreign(model))
    };
    let first = able()
        .find(|(_, model)| foreign(model))
        .or_else(|| able().next());
    let Some((first, first_model)) = first else {
        return vec![];
    };
    let other = |model: &RoleModel| {
        (&model.provider, &model.model) != (&first_model.provider, &first_model.model)
    };
    let rank = |model: &RoleModel| (u8::from(foreign(model)) * 2) + u8::from(other(model));
    // `rev` makes `max_by_key` return the first of equals.
    let second = able()
        .filter(|(role, _)| role != first)
        .rev()
        .max_by_key(|(_, model)| rank(model));
    std::iter::once(*first)
        .chain(second.map(|(role, _)| *role))
        .collect()
}

/// Returns the sizes in which a run's cross-check may be made, the largest first; empty if none is.
pub fn sizes(deps: &Deps, mode: Mode) -> Vec<CheckSize> {
    if !deps.policy.cross_check.covers(mode) {
        return vec![];
    }
    let most = if mode == Mode::Deep { 2 } else { 1 };
    let passes = u8::try_from(checkers(deps).len()).unwrap_or(most).min(most);
    let keys = (1..=passes).rev().map(|passes| CheckSize {
        passes,
        scope: CheckScope::Key,
    });
    let first = (passes > 0).then_some(CheckSize {
        passes: 1,
        scope: CheckScope::First,
    });
    keys.chain(first).collect()
}

/// Returns the worst-case cost of a cross-check of this size. `reports` are the most tokens of each
/// report; `read` bounds the tokens of the request.
pub fn worst_case(deps: &Deps, read: u64, reports: &[u64], size: CheckSize) -> Usd {
    let cost = |role: Role| {
        let Some(model) = deps.role(role) else {
            return Usd::ZERO;
        };
        let texts: Vec<ModelText> = reports
            .iter()
            .map(|tokens| ModelText::planned((*tokens).min(verdicts::text_bytes(size.scope))))
            .collect();
        let trusted = deps.prompts.system_bytes(model.prompts, "cross_check") + *SCHEMA_BYTES;
        let read = read + SCAFFOLDING_TOKENS + LABEL_TOKENS * reports.len() as u64;
        let input = InputBound::new(trusted, read, &texts, 0);
        let output = model.limit_for(max_tokens(reports.len(), size.scope));
        budget::worst_case(model, input, output).map_or(Usd::ZERO, |worst| worst.amount)
    };
    checkers(deps)
        .into_iter()
        .take(usize::from(size.passes))
        .map(cost)
        .sum()
}

/// Returns the cross-check as input of [`crate::committee::money::budget::fit`].
pub fn wanted<'a>(deps: &Deps, mode: Mode, cost: &'a CheckCost<'a>) -> WantedCheck<'a> {
    WantedCheck {
        sizes: sizes(deps, mode),
        cost,
    }
}

fn max_tokens(reports: usize, scope: CheckScope) -> u32 {
    let reports = u32::try_from(reports).unwrap_or(u32::MAX);
    let claims = u32::try_from(verdicts::claims_of(scope)).unwrap_or(u32::MAX);
    let each = TOKENS_PER_REPORT.saturating_add(TOKENS_PER_CLAIM.saturating_mul(claims));
    BASE_TOKENS
        .saturating_add(reports.saturating_mul(each))
        .min(MAX_TOKENS)
}

/// Makes the cross-check and records its findings, once. `held` is the money earmarked for it.
///
/// # Errors
/// Like every call.
pub async fn make(
    context: &RoundContext<'_>,
    latest: &BTreeMap<Agent, AgentOutcome>,
    held: Usd,
) -> Result<(), Failure> {
    let run = context.run;
    run.hold(run.ledger().held() - held);
    if run.recorded(&CrossCheckStep).is_some() {
        return Ok(());
    }
    let checked = match refusal(context) {
        Some(why) => CrossChecked {
            passes: vec![],
            notes: vec![why.to_owned()],
        },
        None => passes(context, latest).await?,
    };
    run.record(Event::CrossChecked(Box::new(checked))).await?;
    Ok(())
}

/// Returns the reason for no cross-check, if there is one.
fn refusal(context: &RoundContext<'_>) -> Option<&'static str> {
    let mode = context.request.question.mode;
    if !context.deps.policy.cross_check.covers(mode) {
        Some(TURNED_OFF)
    } else if checkers(context.deps).is_empty() {
        Some(NO_CHECKER)
    } else if context.trimmed.cross_check.is_none() {
        Some(NO_MONEY)
    } else {
        None
    }
}

async fn passes(
    context: &RoundContext<'_>,
    latest: &BTreeMap<Agent, AgentOutcome>,
) -> Result<CrossChecked, Failure> {
    let size = context.trimmed.cross_check.unwrap_or(CheckSize {
        passes: 1,
        scope: CheckScope::First,
    });
    let now = Instant::now();
    let left = context.until.saturating_duration_since(now);
    let until = if context.plan.rounds > 1 {
        now + left.mul_f64(TIME_SHARE)
    } else {
        context.until
    };
    let reports: Vec<Written<'_>> = latest
        .iter()
        .filter_map(|(agent, outcome)| match outcome {
            AgentOutcome::Answered { report, tokens, .. } => Some(Written {
                agent: *agent,
                report,
                tokens: *tokens,
            }),
            AgentOutcome::Failed { .. } => None,
        })
        .collect();
    let roles = checkers(context.deps)
        .into_iter()
        .take(usize::from(size.passes));
    let made = roles
        .zip([false, true])
        .map(|(role, reversed)| Pass { role, reversed });
    let outcomes =
        join_all(made.map(|pass| ask_smaller(context, pass, &reports, size.scope, until))).await;
    let mut checked = CrossChecked::default();
    for outcome in outcomes {
        match outcome? {
            Ok(pass) => checked.passes.push(pass),
            Err(why) => checked.notes.push(why),
        }
    }
    if size.passes < 2 && context.request.question.mode == Mode::Deep && !checked.passes.is_empty()
    {
        checked
            .notes
            .push("one pass only: the cap or the config has no second one".to_owned());
    }
    Ok(checked)
}

/// Makes one pass. If the money left does not suffice, makes a smaller one, with only the first
/// claim of each report. The inner error says why there is none.
async fn ask_smaller(
    context: &RoundContext<'_>,
    pass: Pass,
    reports: &[Written<'_>],
    scope: CheckScope,
    until: Instant,
) -> Result<Result<CheckPass, String>, Failure> {
    let smaller = (scope == CheckScope::Key).then_some(CheckScope::First);
    let mut last = None;
    for scope in std::iter::once(scope).chain(smaller) {
        match ask(context, pass, reports, scope, until).await? {
            Ok(found) => return Ok(Ok(found)),
            Err(unbought) if unbought.starved => last = Some(unbought),
            Err(unbought) => return Ok(Err(told(context, pass, &unbought))),
        }
    }
    Ok(Err(last.map_or_else(
        || NO_MONEY.to_owned(),
        |unbought| told(context, pass, &unbought),
    )))
}

fn told(context: &RoundContext<'_>, pass: Pass, unbought: &CallFailure) -> String {
    if unbought.by_deadline
        && context
            .until
            .saturating_duration_since(Instant::now())
            .is_zero()
    {
        return NO_TIME.to_owned();
    }
    if unbought.starved {
        return NO_MONEY.to_owned();
    }
    let second = if pass.reversed { " a second time" } else { "" };
    format!(
        "the model of {} did not check{second}: {}",
        pass.role, unbought.cause
    )
}

async fn ask(
    context: &RoundContext<'_>,
    pass: Pass,
    reports: &[Written<'_>],
    scope: CheckScope,
    until: Instant,
) -> Result<Result<CheckPass, CallFailure>, Failure> {
    let Some(model) = context.deps.role(pass.role) else {
        return Err(Failure::internal(
            "a role without a model is to cross-check",
        ));
    };
    let step = step(pass, scope);
    let render = || -> Result<_, Failure> {
        let shown = verdicts::shown(context.request, reports, scope, pass.reversed);
        let mut values = context
            .request
            .values(Some(context.plan.task_type.as_str()), &[]);
        set(&mut values, "images", json!(0));
        set(
            &mut values,
            "reports",
            shown.iter().map(Shown::value).collect(),
        );
        let texts = shown
            .iter()
            .map(|shown| ModelText::of(&shown.text(), shown.tokens))
            .collect();
        Ok((
            context
                .deps
                .prompts
                .render(model.prompts, "cross_check", values)?,
            texts,
            shown,
        ))
    };
    let (prompt, model_texts, shown) = context
        .run
        .compute(&format!("asking for {step}"), render)
        .await??;
    let ask = CallSpec {
        step: step.clone(),
        role: pass.role,
        prompt,
        images: &[],
        model_texts,
        max_tokens: model.max_tokens,
        answer_tokens: Some(max_tokens(reports.len(), scope)),
        until,
    };
    let check = |reply: &CrossCheckReply| verdicts::problems(reply, &shown);
    let bought = buy_checked::<CrossCheckReply>(context.run, context.deps, ask, check).await?;
    let typed = match bought {
        Ok(typed) => typed,
        Err(unbought) => return Ok(Err(unbought)),
    };
    let read = || {
        if !verdicts::problems(&typed.value, &shown).is_empty() {
            return Err(CallFailure::unusable("it gave no verdict on any claim"));
        }
        let (found, mut notes) = verdicts::read(&typed.value, &shown);
        if typed.truncated {
            notes.push("its answer was cut at its token limit".to_owned());
        }
        Ok(CheckPass {
            role: pass.role,
            model: model_of(context.run, &step).unwrap_or_else(|| model.shown()),
            reversed: pass.reversed,
            scope,
            obtained: typed.obtained,
            found,
            notes,
        })
    };
    Ok(context
        .run
        .compute(&format!("reading {step}"), read)
        .await?)
}

/// Returns the step's name. It includes what was shown, so that a resumed run never reads the
/// answer to a different prompt.
fn step(pass: Pass, scope: CheckScope) -> String {
    let reversed = if pass.reversed { "/reversed" } else { "" };
    let first = if scope == CheckScope::First {
        "/first"
    } else {
        ""
    };
    format!("cross-check{reversed}{first}")
}

/// True if a call belongs to the cross-check.
pub fn is_cross_check(call: &str) -> bool {
    call.strip_prefix("cross-check")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '#']))
}

/// Returns the model that answered a step: the role's own model or a fallback.
fn model_of(run: &RunContext, step: &str) -> Option<String> {
    let events = run.events();
    let calls = views::calls(&events.iter());
    let of_step = |call: &str| {
        call.strip_prefix(step)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
    };
    let answered = calls
        .iter()
        .rev()
        .find(|call| of_step(&call.sent.call) && call.state() == "answered");
    answered.map(|call| call.sent.model.clone())
}
