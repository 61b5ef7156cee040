//! The audit appendix (SPEC 7): a view of the journal, as data and as Markdown.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::committee::reply::redaction::{Redactor, discarded_agents};
use crate::domain::{
    Agent, AgentName, AgentReport, CORE_AGENTS, ClaimVerdict, FailureCause, Holds, Judgement, Role,
    RunId, Status, UnitRef, Usd,
};
use crate::journal::views::{self, CallView};
use crate::journal::{
    Accepted, AgentFinished, AgentOutcome, Planned, Round, RoundStarted, Transcript,
};

/// What the cross-check found, or why there is none.
fn cross_check(run: &Transcript<'_>, discarded: &BTreeSet<Agent>) -> Value {
    let Some(checked) = run.cross_checked else {
        return Value::Null;
    };
    let reports = checked_reports(run);
    let passes = checked.passes.iter().map(|pass| {
        let found = &pass.found;
        json!({
            "role": pass.role,
            "model": pass.model,
            "reversed": pass.reversed,
            "scope": pass.scope,
            "obtained": pass.obtained,
            "notes": pass.notes,
            "claims": verdicts(&found.claims, &reports, discarded),
            "sameAnswers": found.same_answers,
            "parts": found.parts,
            "reports": found.conduct,
        })
    });
    json!({ "passes": passes.collect::<Vec<_>>(), "notes": checked.notes })
}

/// Returns the reports that the cross-check read.
fn checked_reports<'a>(run: &Transcript<'a>) -> BTreeMap<Agent, &'a AgentReport> {
    let read = run.first_round().unwrap_or_else(|| run.standing());
    let report = |(agent, read): (Agent, &'a AgentFinished)| Some((agent, read.outcome.report()?));
    read.into_iter().filter_map(report).collect()
}

/// What the agents decided in a later round, and why. Decisions on claims of discarded outputs are
/// left out.
fn resolutions(run: &Transcript<'_>, round: u8) -> Vec<Value> {
    let discarded = discarded_agents(run);
    let of_round = run.outcomes.iter().filter(|it| it.round == round);
    let mut finished: Vec<_> = of_round.collect();
    finished.sort_by_key(|finished| finished.agent);
    let decided = finished.into_iter().map(|finished| {
        let failed = match &finished.outcome {
            AgentOutcome::Failed { cause, .. } => Some(cause),
            AgentOutcome::Answered { .. } => None,
        };
        let resolved = finished.resolved.as_ref();
        let shown = resolved.filter(|_| !discarded.contains(&finished.agent));
        json!({
            "agent": finished.agent,
            "resolutions": shown.map_or(&[][..], |it| &it.resolutions),
            "notes": resolved.map_or(&[][..], |it| &it.notes),
            "failed": failed,
            "anew": failed.is_none() && resolved.is_none(),
        })
    });
    decided.collect()
}

/// Returns an object with one more field.
fn with(mut value: Value, key: &str, field: Value) -> Value {
    if let Value::Object(fields) = &mut value {
        fields.insert(key.to_owned(), field);
    }
    value
}

/// What stands in place of a text that only discarded outputs have.
const NOT_SHOWN: &str = "not shown: the output was discarded";

fn is_in(agents: &BTreeSet<Agent>, name: &AgentName) -> bool {
    name.agent().is_some_and(|agent| agents.contains(&agent))
}

/// Replaces a text that only discarded outputs have.
fn hide(text: &mut String, agents: &[AgentName], discarded: &BTreeSet<Agent>) {
    if agents.iter().all(|agent| is_in(discarded, agent)) {
        NOT_SHOWN.clone_into(text);
    }
}

fn answer_groups(judgement: &Judgement, discarded: &BTreeSet<Agent>) -> Value {
    let mut groups = judgement.answer_groups.clone();
    for group in &mut groups {
        hide(&mut group.answer, &group.agents, discarded);
        // They may be those of a discarded output.
        group.wordings.clear();
    }
    json!(groups)
}

/// The disagreements in which an output that is not discarded takes part.
fn disagreements(judgement: &Judgement, discarded: &BTreeSet<Agent>) -> Value {
    let mut disagreements = judgement.disagreements.clone();
    disagreements.retain(|disagreement| {
        let mut agents = disagreement.positions.iter().flat_map(|it| &it.agents);
        agents.any(|agent| !is_in(discarded, agent))
    });
    for position in disagreements.iter_mut().flat_map(|d| &mut d.positions) {
        hide(&mut position.text, &position.agents, discarded);
        let units = &mut position.units;
        units.retain(|unit| !is_in(discarded, &unit.agent));
    }
    json!(disagreements)
}

/// The verdicts of a cross-check on claims of outputs that are not discarded. Each has the text of
/// its claim.
fn verdicts(
    claims: &[ClaimVerdict],
    reports: &BTreeMap<Agent, &AgentReport>,
    discarded: &BTreeSet<Agent>,
) -> Vec<Value> {
    let verdict = |verdict: &ClaimVerdict| {
        let UnitRef { agent, unit } = &verdict.claim;
        let report = agent.agent().and_then(|agent| reports.get(&agent));
        let claim = report.and_then(|report| report.units.iter().find(|u| u.id == *unit));
        with(
            json!(verdict),
            "text",
            json!(claim.map(|claim| &claim.text)),
        )
    };
    let shown = claims
        .iter()
        .filter(|it| !is_in(discarded, &it.claim.agent));
    shown.map(verdict).collect()
}

/// Returns what the terms of c_final rest on:
///
/// - the units that contradict each other, and those that every cross-check refutes;
/// - the core outputs that are not VALID, and the agents that failed;
/// - the parts of the request that have a checked answer.
fn rests_on(run: &Transcript<'_>, discarded: &BTreeSet<Agent>) -> Value {
    let judgement = run.judgement();
    let open = judgement.into_iter().flat_map(|it| &it.disagreements);
    let positions = open.filter(|it| !it.settled).flat_map(|it| &it.positions);
    let contested = positions.flat_map(|it| &it.units);
    let passes = run.cross_checked.map_or(&[][..], |it| &it.passes);
    let is_refuted = |unit: &&UnitRef| {
        let no = |it: &ClaimVerdict| it.claim == **unit && it.holds == Holds::No;
        passes.iter().all(|pass| pass.found.claims.iter().any(no))
    };
    let asked = passes.iter().flat_map(|pass| &pass.found.claims);
    let refuted = asked.map(|it| &it.claim).filter(is_refuted);
    let claims = contested.chain(refuted);
    let shown = claims.filter(|unit| !is_in(discarded, &unit.agent));
    let claims: BTreeSet<String> = shown.map(ToString::to_string).collect();
    let status = |agent: Agent| judgement.and_then(|it| it.status_of(agent));
    let core = CORE_AGENTS.iter().copied();
    let core = core.filter(|agent| status(*agent) != Some(Status::Valid));
    let failed = run.standing().into_keys();
    let failed = failed.filter(|agent| status(*agent).is_none());
    let not_valid: BTreeSet<Agent> = core.chain(failed).collect();
    let parts = judgement.map(|it| it.parts.iter().zip(&it.covered));
    let parts = parts
        .into_iter()
        .flatten()
        .filter(|(_, is_covered)| **is_covered);
    let parts: Vec<&String> = parts.map(|(part, _)| part).collect();
    json!({ "claims": claims, "notValid": not_valid, "parts": parts })
}

/// The appendix as data.
pub fn view(id: RunId, run: &Transcript<'_>) -> Option<Value> {
    let accepted = run.accepted?;
    let discarded = discarded_agents(run);
    let (planned, judgement, draft) = (run.planned, run.judgement(), run.draft());
    let agents = run.standing().into_values().map(|it| agent(run, it));
    let estimate = draft.and_then(|draft| draft.estimate.as_ref());
    let estimate = estimate.map(|estimate| with(json!(estimate), "total", json!(estimate.total())));
    let mut audit = json!({
        "runId": id.to_string(),
        "continues": run.continues(),
        "version": accepted.version,
        "configHash": accepted.config_hash,
        "promptsHash": accepted.prompts_hash,
        "hints": run.hinted,
        "plan": planned.map(|it| &it.plan),
        "planObtained": planned.map(|it| it.obtained),
        "planCorrections": planned.map_or(&[][..], |it| &it.corrections),
        "leftOut": run.trimmed.map_or(&[][..], |it| &it.left_out),
        "agents": agents.collect::<Vec<_>>(),
        "rounds": rounds(run),
        "crossCheck": cross_check(run, &discarded),
        "answerGroups": judgement.map(|it| answer_groups(it, &discarded)),
        "disagreements": {
            "detected": judgement.map(|it| disagreements(it, &discarded)),
            "summary": draft.map(|it| &it.disagreements),
        },
        "coverage": judgement.map(|it| json!({ "parts": it.parts, "covered": it.covered })),
        "confidence": run.gated.map(|it| with(json!(it.confidence), "restsOn", rests_on(run, &discarded))),
        "gate": run.gated.map(|it| it.gate),
        "synthesis": run.synthesized.map(|it| json!({
            "obtained": it.obtained,
            "corrections": it.corrections,
            "brokenRules": it.broken_rules,
            "unitsUsed": it.draft.as_ref().map_or(&[][..], |draft| &draft.units_used),
        })),
        "quarantineJustifications": draft.map_or(&[][..], |it| &it.quarantine_justifications),
        "executionEstimate": estimate,
        "budget": budget(accepted, &run.calls),
    });
    Redactor::of_discarded(run).redact_value(&mut audit);
    Some(audit)
}

fn agent(run: &Transcript<'_>, finished: &AgentFinished) -> Value {
    let role = Role::Agent(finished.agent);
    let is_own = |call: &&CallView<'_>| call.sent.role == role && !call.sent.is_cross_check();
    let calls: Vec<&CallView<'_>> = run.calls.iter().filter(is_own).collect();
    let totals = views::totals(&calls);
    let score = run.judgement().and_then(|j| j.score_of(finished.agent));
    let (outcome, obtained, cause, truncated) = match &finished.outcome {
        AgentOutcome::Answered {
            obtained,
            truncated,
            ..
        } => ("answered", Some(obtained.into_str()), None, *truncated),
        AgentOutcome::Failed { cause, detail, .. } => {
            let why = format!("{cause}: {detail}");
            ("failed", None, Some(why), *cause == FailureCause::CutOff)
        }
    };
    json!({
        "agent": finished.agent,
        "outcome": outcome,
        "cause": cause,
        "round": finished.round,
        "provider": calls.last().map(|c| &c.sent.provider),
        "model": calls.last().map(|c| &c.sent.model),
        "servedModel": calls.iter().rev().find_map(|c| c.served()),
        "modelReplaced": calls.iter().any(|c| c.is_replaced()),
        "attempts": totals.calls,
        "latencyMs": totals.latency_ms,
        "inputTokens": totals.input_tokens,
        "outputTokens": totals.output_tokens,
        "thinkingTokens": totals.thinking_tokens,
        "costUsd": totals.cost.dollars(),
        "obtained": obtained,
        "truncated": truncated,
        "reusedFrom": finished.reused_from,
        "status": score.map_or("DISCARD", |s| s.status.into_str()),
        "cred": score.map(|s| s.cred),
        "axes": score.map(|s| &s.axes),
        "fromCode": score.map(|s| s.axes.iter().map(|(_, axis)| axis.from_code).sum::<f64>()),
        "fromPeers": score.map(|s| s.axes.iter().map(|(_, axis)| axis.points - axis.from_code).sum::<f64>()),
    })
}

/// Returns the agents that were called in a round: those that it began with, and those that the
/// cap had room for later.
fn called_in(run: &Transcript<'_>, started: &RoundStarted) -> Vec<Agent> {
    let mut agents = started.agents.clone();
    for finished in &run.outcomes {
        let is_called = finished.round == started.round && finished.reused_from.is_none();
        if is_called && !agents.contains(&finished.agent) {
            agents.push(finished.agent);
        }
    }
    agents
}

fn rounds(run: &Transcript<'_>) -> Vec<Value> {
    let round = |round: &Round<'_>| match round {
        Round::Started(r) => {
            let judged = run.solver_judged.filter(|_| r.round == 1);
            let judged = judged.map(|judged| judged.why.as_str());
            let wasted = wasted(run, r);
            let whys = [Some(r.why.as_str()), judged, wasted.as_deref()];
            let why = whys.into_iter().flatten().collect::<Vec<_>>().join("; ");
            let agents = called_in(run, r);
            let value = json!({ "round": r.round, "state": "run", "agents": agents, "why": why });
            if r.round > 1 {
                with(value, "resolutions", json!(resolutions(run, r.round)))
            } else {
                value
            }
        }
        Round::Skipped(r) => json!({ "round": r.round, "state": "skipped", "why": r.why }),
    };
    run.rounds.iter().map(round).collect()
}

/// Returns what a round cost in vain: one that began before the plan, if the master asks the user.
fn wasted(run: &Transcript<'_>, started: &RoundStarted) -> Option<String> {
    if !(started.ahead && run.planned.is_some_and(Planned::asks_user)) {
        return None;
    }
    let calls = run.calls.iter();
    let of_round = calls.filter(|call| call.sent.is_of_round(1));
    let cost: Usd = of_round.filter_map(|call| Some(call.settled?.cost)).sum();
    let why = "not used, because the master asks the user first";
    Some(format!("{why}: its calls cost {cost}"))
}

fn budget(accepted: &Accepted, calls: &[CallView<'_>]) -> Value {
    let rows: Vec<Value> = calls
        .iter()
        .map(|call| {
            let settled = call.settled;
            let usage = settled.and_then(|s| s.usage);
            json!({
                "call": call.sent.call,
                "role": call.sent.role,
                "provider": call.sent.provider,
                "model": call.sent.model,
                "servedModel": call.served(),
                "modelReplaced": call.is_replaced(),
                "effort": call.sent.effort,
                "state": call.state(),
                "reservedUsd": call.sent.reserved.as_ref().map(|r| r.amount.dollars()),
                "reservedInputTokens": call.sent.reserved.as_ref().map(|r| r.input_tokens),
                "maxTokens": call.sent.max_tokens,
                "costUsd": settled.map(|s| s.cost.dollars()),
                "inputTokens": usage.map(|u| u.all_input()),
                "outputTokens": usage.map(|u| u.output),
                "thinkingTokens": usage.map(|u| u.thinking),
                "latencyMs": call.latency_ms(),
                "promptHash": call.sent.prompt_hash,
            })
        })
        .collect();
    let spent: Usd = calls.iter().filter_map(|c| c.settled).map(|s| s.cost).sum();
    let exceeded = calls.iter().any(|call| {
        let reserved = call.sent.reserved.as_ref();
        let reserved = reserved.map_or(Usd::ZERO, |reserved| reserved.amount);
        call.settled.is_some_and(|settled| settled.cost > reserved)
    });
    json!({
        "capUsd": accepted.cap.dollars(),
        "spentUsd": spent.dollars(),
        "modeCapExceeded": exceeded,
        "calls": rows,
    })
}
