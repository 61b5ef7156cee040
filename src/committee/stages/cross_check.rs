//! The cross-check (SPEC 5). After round 1 a model compares the key claims of all reports, one by
//! one, without knowing their authors. In `deep` a second model does the same with everything in
//! reverse order. This file makes the calls; `verdicts` selects what is shown and reads the
//! answers; `check_cost` selects the models and bounds the cost.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::json;
use tokio::time::Instant;

use crate::committee::call::output::why;
use crate::committee::call::{CallFailure, CallSpec, call_checked};
use crate::committee::failure::{CallError, Failure};
use crate::committee::money::check_cost::max_tokens;
use crate::committee::output_shapes::CrossCheckReply;
use crate::committee::stages::round_context::RoundContext;
use crate::committee::stages::verdicts::{self, AnsweredReport, LabelledReport};
use crate::domain::{Agent, CallName, CallStep, Choice, Earmark, Mode, Role};
use crate::journal::step;
use crate::journal::{
    AgentOutcome, CheckPass, CheckScope, CheckSize, CrossChecked, Event, RunContext, Transcript,
};

/// If later rounds follow, the cross-check takes at most this share of the time left for rounds.
const TIME_SHARE: f64 = 0.5;

/// The reason for no cross-check: the policy turns it off.
pub const TURNED_OFF: &str = "the config turns it off for this mode (policy.crossCheck)";
const NO_CHECKER: &str = "no other role than the solver writes JSON";
const NO_MONEY: &str = "it would exceed the cap";
const NO_TIME: &str = "no time was left for it";

/// One call of the cross-check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pass {
    role: Role,
    reversed: bool,
    /// True if it is shown the solver's report alone, before the others are asked.
    alone: bool,
}

/// Makes the cross-check and records its findings, once. Releases the money earmarked for it.
///
/// # Errors
/// Like every call.
pub async fn make(
    context: &RoundContext<'_>,
    latest: &BTreeMap<Agent, AgentOutcome>,
) -> Result<(), Failure> {
    let run = context.run;
    run.release(Earmark::CrossCheck);
    if run.recorded(&step::cross_check()).is_some() {
        return Ok(());
    }
    let judged = run
        .recorded(&step::solver())
        .filter(|it| it.others.is_empty());
    let known = judged.map(|judged| judged.check.clone());
    let known = known.or_else(|| inherited(context, latest));
    let checked = match (known, size(context)) {
        (Some(checked), _) => checked,
        (None, Err(why)) => CrossChecked {
            passes: vec![],
            notes: vec![why.to_owned()],
        },
        (None, Ok(size)) => passes(context, latest, size).await?,
    };
    run.record(Event::CrossChecked(Arc::new(checked)))?;
    Ok(())
}

/// Returns the cross-check of the run that this one continues, if the user chose the answer that there
/// was. Any other answer or correction is part of the request, which a verdict depends on.
fn inherited(
    context: &RoundContext<'_>,
    latest: &BTreeMap<Agent, AgentOutcome>,
) -> Option<CrossChecked> {
    let parent = context.request.parent.as_ref()?;
    let covered = &context.deps.policy.cross_check;
    let answered = latest.iter().filter(|(_, outcome)| outcome.is_answered());
    if context.request.choice() != Some(Choice::BestAnswer)
        || !covered.covers(context.request.question.mode)
        || !answered.eq(&parent.outcomes)
    {
        return None;
    }
    let mut checked = parent.cross_checked.clone()?;
    let note = "taken from the run that this one continues";
    checked.notes.push(note.to_owned());
    Some(checked)
}

/// Returns the size of the cross-check that the panel was fitted with.
///
/// # Errors
/// The reason for none.
pub(super) fn size(context: &RoundContext<'_>) -> Result<CheckSize, &'static str> {
    let mode = context.request.question.mode;
    if !context.deps.policy.cross_check.covers(mode) {
        return Err(TURNED_OFF);
    }
    if context.deps.checkers.is_empty() {
        return Err(NO_CHECKER);
    }
    context.trimmed.cross_check.ok_or(NO_MONEY)
}

async fn passes(
    context: &RoundContext<'_>,
    latest: &BTreeMap<Agent, AgentOutcome>,
    size: CheckSize,
) -> Result<CrossChecked, Failure> {
    let mut until = context.until;
    if context.plan.rounds > 1 {
        let now = Instant::now();
        until = now + until.saturating_duration_since(now).mul_f64(TIME_SHARE);
    }
    let reports = written(latest);
    let roles = context.deps.checkers.iter().copied();
    let roles = roles.take(usize::from(size.passes)).zip([false, true]);
    let passes = roles.map(|(role, reversed)| Pass {
        role,
        reversed,
        alone: false,
    });
    let asked = passes.map(|pass| run_pass(context, pass, &reports, size.scope, until));
    let mut checked = CrossChecked::default();
    for outcome in join_all(asked).await {
        let CrossChecked { passes, notes } = outcome?;
        checked.passes.extend(passes);
        checked.notes.extend(notes);
    }
    let is_deep = context.request.question.mode == Mode::Deep;
    if size.passes < 2 && is_deep && !checked.passes.is_empty() {
        let note = "one pass only: the cap or the config has no second one";
        checked.notes.push(note.to_owned());
    }
    Ok(checked)
}

/// Checks the solver's report alone, with the first model of the cross-check.
///
/// # Errors
/// Like every call.
pub(super) async fn of_solver(
    context: &RoundContext<'_>,
    latest: &BTreeMap<Agent, AgentOutcome>,
    until: Instant,
) -> Result<CrossChecked, Failure> {
    let Some(role) = context.deps.checkers.first().copied() else {
        return Ok(CrossChecked::default());
    };
    let pass = Pass {
        role,
        reversed: false,
        alone: true,
    };
    run_pass(context, pass, &written(latest), CheckScope::Key, until).await
}

/// True if a call of [`of_solver`] was made.
pub(super) fn has_solver_check(run: &RunContext) -> bool {
    let events = run.events();
    let calls = Transcript::of(&events).calls.into_iter();
    let mut steps = calls.filter_map(|call| call.sent.step());
    steps.any(|step| {
        matches!(
            step,
            CallStep::CrossCheck {
                of_solver: true,
                ..
            }
        )
    })
}

fn written(latest: &BTreeMap<Agent, AgentOutcome>) -> Vec<AnsweredReport<'_>> {
    let answered = latest.iter().filter_map(|(agent, outcome)| {
        Some(AnsweredReport {
            agent: *agent,
            tokens: outcome.tokens(),
            report: outcome.report()?,
        })
    });
    answered.collect()
}

/// Makes one pass. If the money left does not suffice, makes a smaller one, with only the first claim
/// of each report. If there is none, the notes say why.
async fn run_pass(
    context: &RoundContext<'_>,
    pass: Pass,
    reports: &[AnsweredReport<'_>],
    scope: CheckScope,
    until: Instant,
) -> Result<CrossChecked, Failure> {
    let found = match ask(context, pass, reports, scope, until).await {
        Err(CallError::NoOutput(failure))
            if failure.is_out_of_budget && scope == CheckScope::Key =>
        {
            ask(context, pass, reports, CheckScope::First, until).await
        }
        found => found,
    };
    let mut checked = CrossChecked::default();
    match found {
        Ok(found) => checked.passes.push(found),
        Err(error) => checked
            .notes
            .push(failure_note(context, pass, &error.no_output()?)),
    }
    Ok(checked)
}

fn failure_note(context: &RoundContext<'_>, pass: Pass, failure: &CallFailure) -> String {
    if failure.by_deadline && context.until <= Instant::now() {
        return NO_TIME.to_owned();
    }
    if failure.is_out_of_budget {
        return NO_MONEY.to_owned();
    }
    let second = if pass.reversed { " a second time" } else { "" };
    let why = why(&failure.cause, &failure.detail);
    format!("the model of {} did not check{second}: {why}", pass.role)
}

async fn ask(
    context: &RoundContext<'_>,
    pass: Pass,
    reports: &[AnsweredReport<'_>],
    scope: CheckScope,
    until: Instant,
) -> Result<CheckPass, CallError> {
    let deps = context.deps;
    let Some(model) = deps.role(pass.role) else {
        return Err(Failure::internal("a role without a model is to cross-check").into());
    };
    let step = step(pass, scope);
    let render = || -> Result<_, Failure> {
        let shown = verdicts::shown(context.request, reports, scope, pass.reversed);
        let values = context.request.values(json!({
            "task_type": context.plan.task_type,
            "images": 0,
            "reports": shown.iter().map(LabelledReport::value).collect::<Vec<_>>(),
        }));
        let prompt = deps.prompts.render(model.prompts, "cross_check", values)?;
        Ok((prompt, shown))
    };
    let (prompt, shown) = deps.rendered(context.run, render).await??;
    let ask = CallSpec {
        run: context.run,
        deps,
        step,
        role: pass.role,
        prompt,
        images: &[],
        model_texts: shown.iter().map(LabelledReport::model_text).collect(),
        max_tokens: model.max_tokens,
        answer_tokens: Some(max_tokens(reports.len(), scope)),
        until,
    };
    let check = |reply: &CrossCheckReply| verdicts::problems(reply, &shown);
    let typed = call_checked(ask, check).await?;
    let read = || {
        if !verdicts::problems(&typed.value, &shown).is_empty() {
            return Err(CallFailure::unusable("it gave no verdict on any claim"));
        }
        let found = verdicts::read(&typed.value, &shown);
        let cut = "its answer was cut at its token limit".to_owned();
        Ok(CheckPass {
            role: pass.role,
            model: model_of(context.run, step).unwrap_or_else(|| model.shown()),
            reversed: pass.reversed,
            scope,
            obtained: typed.obtained,
            found,
            notes: Vec::from_iter(typed.truncated.then_some(cut)),
        })
    };
    Ok(context.run.compute_text(read).await??)
}

/// Returns the step. It includes what is shown, so that a resumed run never reads the answer to a
/// different prompt.
fn step(pass: Pass, scope: CheckScope) -> CallStep {
    CallStep::CrossCheck {
        of_solver: pass.alone,
        reversed: pass.reversed,
        first_claims: scope == CheckScope::First,
    }
}

/// Returns the model that answered a step: the role's own model or a fallback.
fn model_of(run: &RunContext, step: CallStep) -> Option<String> {
    let events = run.events();
    let is_own = |name: CallName| name.step == step && !name.is_repair;
    let answered = Transcript::of(&events).last_answered(is_own);
    answered.map(|call| call.model.clone())
}
