//! The audit appendix (SPEC 7): a view of the journal, as data and as Markdown.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::committee::call_names::is_cross_check;
use crate::committee::reply::redaction::{Redactor, discarded_agents};
use crate::domain::{Agent, AgentReport, CrossCheck, Judgement, RunId, UnitRef, Usd};
use crate::journal::views::{self, CallView};
use crate::journal::{
    Accepted, AgentFinished, AgentOutcome, Planned, Round, RoundStarted, Transcript,
};

/// What the cross-check found, or why there is none.
fn cross_check(run: &Transcript<'_>) -> Value {
    let Some(checked) = run.cross_checked else {
        return Value::Null;
    };
    let (reports, discarded) = (run.reports(), discarded_agents(run));
    let passes: Vec<Value> = checked
        .passes
        .iter()
        .map(|pass| {
            let mut value = json!({
                "role": pass.role, "model": pass.model, "reversed": pass.reversed, "scope": pass.scope,
                "obtained": pass.obtained, "notes": pass.notes,
            });
            if let (Value::Object(all), Value::Object(found)) = (&mut value, verdicts(&pass.found, &reports, &discarded)) {
                all.extend(found);
            }
            value
        })
        .collect();
    json!({ "passes": passes, "notes": checked.notes })
}

/// What the agents decided in a later round, and why.
fn resolutions(run: &Transcript<'_>, round: u8) -> Value {
    let of_round = run
        .outcomes
        .iter()
        .filter(|finished| finished.round == round);
    let mut finished: Vec<_> = of_round.collect();
    finished.sort_by_key(|finished| finished.agent);
    let decided = finished.into_iter().map(|finished| {
        let failed = match &finished.outcome {
            AgentOutcome::Failed { cause, .. } => Some(cause),
            AgentOutcome::Answered { .. } => None,
        };
        let resolved = finished.resolved.as_ref();
        let resolutions: Vec<Value> = resolved
            .into_iter()
            .flat_map(|resolved| &resolved.resolutions)
            .map(|r| {
                json!({ "claim": r.claim, "decision": r.decision, "by": r.by,
                        "evidence": r.evidence })
            })
            .collect();
        let notes: Vec<String> =
            resolved.into_iter().flat_map(|resolved| &resolved.notes).cloned().collect();
        json!({ "agent": finished.agent, "resolutions": resolutions, "notes": notes, "failed": failed,
                "anew": failed.is_none() && resolved.is_none() })
    });
    Value::Array(decided.collect())
}

/// What stands in place of a text that only discarded outputs have.
const NOT_SHOWN: &str = "not shown: the output was discarded";

/// The answer groups. The answer of a group of discarded outputs only is not shown.
fn answer_groups(judgement: &Judgement, discarded: &BTreeSet<&str>) -> Value {
    let mut groups = judgement.answer_groups.clone();
    for group in &mut groups {
        if group
            .agents
            .iter()
            .all(|agent| discarded.contains(agent.as_str()))
        {
            NOT_SHOWN.clone_into(&mut group.answer);
        }
    }
    json!(groups)
}

/// The disagreements. The text of a position that only discarded outputs hold is not shown.
fn disagreements(judgement: &Judgement, discarded: &BTreeSet<&str>) -> Value {
    let mut disagreements = judgement.disagreements.clone();
    for position in disagreements.iter_mut().flat_map(|d| &mut d.positions) {
        if position
            .agents
            .iter()
            .all(|agent| discarded.contains(agent.as_str()))
        {
            NOT_SHOWN.clone_into(&mut position.text);
        }
    }
    json!(disagreements)
}

/// The verdicts of a cross-check, each with the text of its claim.
fn verdicts(
    found: &CrossCheck,
    reports: &BTreeMap<Agent, &AgentReport>,
    discarded: &BTreeSet<&str>,
) -> Value {
    let claims = found.claims.iter().map(|verdict| {
        let UnitRef { agent, unit } = &verdict.claim;
        let report = reports.iter().find(|(name, _)| name.into_str() == agent);
        let report = report.filter(|_| !discarded.contains(agent.as_str()));
        let claim = report.and_then(|(_, report)| report.units.iter().find(|u| u.id == *unit));
        json!({
            "claim": verdict.claim.to_string(), "text": claim.map(|claim| &claim.text),
            "holds": verdict.holds, "by": verdict.by, "supportedBy": verdict.supported_by,
            "contradictedBy": verdict.contradicted_by, "evidence": verdict.evidence,
        })
    });
    json!({
        "claims": claims.collect::<Vec<_>>(), "sameAnswers": found.same_answers, "parts": found.parts,
        "reports": found.conduct,
    })
}

/// The appendix as data.
pub fn view(id: RunId, run: &Transcript<'_>) -> Option<Value> {
    let accepted = run.accepted?;
    let discarded = discarded_agents(run);
    let (planned, synthesized, draft) = (run.planned, run.synthesized, run.draft());
    let mut audit = json!({
        "runId": id.to_string(),
        "continues": accepted.continues,
        "version": accepted.version,
        "configHash": accepted.config_hash,
        "promptsHash": accepted.prompts_hash,
        "hints": run.hinted.map(|h| json!(h)),
        "plan": planned.map(|p| json!(p.plan)),
        "planObtained": planned.map(|p| p.obtained),
        "planCorrections": planned.map(|p| p.corrections.clone()).unwrap_or_default(),
        "leftOut": run.trimmed.map(|t| t.left_out.clone()).unwrap_or_default(),
        "agents": agents(run),
        "rounds": rounds(run),
        "crossCheck": cross_check(run),
        "answerGroups": run.judgement().map(|j| answer_groups(j, &discarded)),
        "disagreements": {
            "detected": run.judgement().map(|j| disagreements(j, &discarded)),
            "summary": draft.map(|d| json!(d.disagreements)),
        },
        "coverage": run.judgement().map(|j| json!({ "parts": j.parts, "covered": j.covered })),
        "confidence": run.gated.map(|g| json!(g.confidence)),
        "gate": run.gated.map(|g| json!(g.gate)),
        "synthesis": synthesized.map(|s| json!({
            "obtained": s.obtained,
            "corrections": s.corrections,
            "brokenRules": s.broken_rules,
            "unitsUsed": s.draft.as_ref().map(|d| d.units_used.clone()).unwrap_or_default(),
        })),
        "quarantineJustifications": draft.map(|d| json!(d.quarantine_justifications)).unwrap_or_else(|| json!([])),
        "executionEstimate": draft.and_then(|d| d.estimate.as_ref()).map(|e| {
            let mut value = json!(e);
            if let Value::Object(map) = &mut value {
                map.insert("total".into(), json!(e.total()));
            }
            value
        }),
        "budget": budget(accepted, &run.calls),
    });
    Redactor::of_discarded(run).redact_value(&mut audit);
    Some(audit)
}

fn agents(run: &Transcript<'_>) -> Vec<Value> {
    let finished = run.standing().into_values();
    finished.map(|finished| agent(run, finished)).collect()
}

fn agent(run: &Transcript<'_>, finished: &AgentFinished) -> Value {
    let name = finished.agent.into_str();
    let own =
        |call: &&CallView<'_>| call.sent.role.as_str() == name && !is_cross_check(&call.sent.call);
    let calls: Vec<&CallView<'_>> = run.calls.iter().filter(own).collect();
    let totals = calls
        .iter()
        .fold(views::Totals::default(), |mut sum, call| {
            let one = views::totals(&[**call], &call.sent.call);
            sum.calls += one.calls;
            sum.input_tokens = sum.input_tokens.saturating_add(one.input_tokens);
            sum.output_tokens = sum.output_tokens.saturating_add(one.output_tokens);
            sum.thinking_tokens = sum.thinking_tokens.saturating_add(one.thinking_tokens);
            sum.latency_ms = sum.latency_ms.saturating_add(one.latency_ms);
            sum.cost += one.cost;
            sum
        });
    let score = run.judgement().and_then(|j| j.score_of(finished.agent));
    let (outcome, obtained, cause, truncated) = match &finished.outcome {
        AgentOutcome::Answered {
            obtained,
            truncated,
            ..
        } => ("answered", Some(obtained.into_str()), None, *truncated),
        AgentOutcome::Failed { cause, detail, .. } => {
            ("failed", None, Some(format!("{cause}: {detail}")), false)
        }
    };
    json!({
        "agent": name,
        "outcome": outcome,
        "cause": cause,
        "round": finished.round,
        "provider": calls.last().map(|c| c.sent.provider.clone()),
        "model": calls.last().map(|c| c.sent.model.clone()),
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
        "reusedFrom": finished.reused_from.map(|id| id.to_string()),
        "status": score.map_or("DISCARD", |s| s.status.into_str()),
        "cred": score.map(|s| s.cred),
        "axes": score.map(|s| json!(s.axes)),
        "fromCode": score.map(|s| s.axes.iter().map(|(_, axis)| axis.from_code).sum::<f64>()),
        "fromPeers": score.map(|s| s.axes.iter().map(|(_, axis)| axis.points - axis.from_code).sum::<f64>()),
    })
}

/// Returns the agents that were called in a round: those that it began with, and those that the
/// cap had room for later.
fn called_in(run: &Transcript<'_>, started: &RoundStarted) -> Vec<Agent> {
    let in_round = run.outcomes.iter().filter(|o| o.round == started.round);
    let called = in_round.filter(|o| o.reused_from.is_none());
    let mut agents = started.agents.clone();
    for finished in called {
        if !agents.contains(&finished.agent) {
            agents.push(finished.agent);
        }
    }
    agents
}

fn rounds(run: &Transcript<'_>) -> Vec<Value> {
    let round = |round: &Round<'_>| match round {
        Round::Started(r) => {
            let agents = called_in(run, r);
            let judged = run.solver_judged.filter(|_| r.round == 1);
            let judged = judged.map(|judged| judged.why.as_str());
            let wasted = wasted(run, r);
            let whys = [Some(r.why.as_str()), judged, wasted.as_deref()];
            let why = whys.into_iter().flatten().collect::<Vec<_>>().join("; ");
            let mut value =
                json!({ "round": r.round, "state": "run", "agents": agents, "why": why });
            if let Value::Object(map) = &mut value
                && r.round > 1
            {
                map.insert("resolutions".into(), resolutions(run, r.round));
            }
            value
        }
        Round::Skipped(r) => json!({ "round": r.round, "state": "skipped", "why": r.why }),
    };
    run.rounds.iter().map(round).collect()
}

/// Returns what a round cost in vain: one that began before the plan, if the master asks the user.
fn wasted(run: &Transcript<'_>, started: &RoundStarted) -> Option<String> {
    let is_wasted = started.ahead && run.planned.is_some_and(Planned::asks_user);
    let of_round = run
        .calls
        .iter()
        .filter(|call| call.sent.call.starts_with("r1/"));
    let costs = of_round.filter_map(|call| Some(call.settled?.cost));
    let cost = |_| {
        let cost: Usd = costs.sum();
        format!("not used, because the master asks the user first: its calls cost {cost}")
    };
    is_wasted.then_some(()).map(cost)
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
                "latencyMs": settled.map(|s| s.latency_ms),
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
