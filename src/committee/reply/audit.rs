//! The audit appendix (SPEC 7): a view of the journal, as data and as Markdown.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::committee::call_names::is_cross_check;
use crate::committee::reply::redaction::{Redactor, discarded_agents, last_reports};
use crate::domain::{Agent, AgentReport, CrossCheck, Judgement, RunId, UnitRef};
use crate::journal::views::{self, CallView};
use crate::journal::{
    Accepted, AgentFinished, AgentOutcome, CrossChecked, Event, Gated, Planned, Synthesized,
    Trimmed,
};

/// What the appendix is made from.
struct Facts<'a> {
    events: &'a [Event],
    accepted: &'a Accepted,
    calls: Vec<CallView<'a>>,
}

impl<'a> Facts<'a> {
    fn find<T>(&self, pick: impl Fn(&'a Event) -> Option<T>) -> Option<T> {
        self.events.iter().rev().find_map(pick)
    }

    fn planned(&self) -> Option<&'a Planned> {
        self.find(|e| {
            if let Event::Planned(p) = e {
                Some(p)
            } else {
                None
            }
        })
    }

    fn trimmed(&self) -> Option<&'a Trimmed> {
        self.find(|e| {
            if let Event::Trimmed(t) = e {
                Some(t)
            } else {
                None
            }
        })
    }

    fn synthesized(&self) -> Option<&'a Synthesized> {
        self.find(|e| {
            if let Event::Synthesized(s) = e {
                Some(&**s)
            } else {
                None
            }
        })
    }

    fn judgement(&self) -> Option<&'a Judgement> {
        self.find(|e| {
            if let Event::Scored(s) = e {
                Some(&s.judgement)
            } else {
                None
            }
        })
    }

    fn gated(&self) -> Option<&'a Gated> {
        self.find(|e| {
            if let Event::Gated(g) = e {
                Some(g)
            } else {
                None
            }
        })
    }

    fn cross_checked(&self) -> Option<&'a CrossChecked> {
        self.find(|e| {
            if let Event::CrossChecked(c) = e {
                Some(&**c)
            } else {
                None
            }
        })
    }

    /// What the cross-check found, or why there is none.
    fn cross_check(&self) -> Value {
        let Some(checked) = self.cross_checked() else {
            return Value::Null;
        };
        let (reports, discarded) = (last_reports(self.events), discarded_agents(self.events));
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
    fn resolutions(&self, round: u8) -> Value {
        let of_round = self.events.iter().filter_map(|event| match event {
            Event::AgentFinished(finished) if finished.round == round => Some(finished),
            _ => None,
        });
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

    /// Each agent's last outcome that counts, by agent.
    fn agents(&self) -> Vec<&'a AgentFinished> {
        let mut last: Vec<&AgentFinished> = vec![];
        for event in self.events {
            let Event::AgentFinished(finished) = event else {
                continue;
            };
            let improves = matches!(finished.outcome, AgentOutcome::Answered { .. })
                || !last.iter().any(|k| {
                    k.agent == finished.agent && matches!(k.outcome, AgentOutcome::Answered { .. })
                });
            if improves {
                last.retain(|known| known.agent != finished.agent);
                last.push(finished);
            }
        }
        last.sort_by_key(|finished| finished.agent);
        last
    }
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
        let report = reports.iter().find(|(name, _)| name.as_str() == agent);
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
pub fn view(run: RunId, events: &[Event]) -> Option<Value> {
    let accepted = events.iter().find_map(|e| {
        if let Event::Accepted(a) = e {
            Some(&**a)
        } else {
            None
        }
    })?;
    let facts = Facts {
        events,
        accepted,
        calls: views::calls(&events.iter()),
    };
    let discarded = discarded_agents(events);
    let planned = facts.planned();
    let synthesized = facts.synthesized();
    let draft = synthesized.and_then(|s| s.draft.as_ref());
    let mut audit = json!({
        "runId": run.to_string(),
        "continues": accepted.continues,
        "version": accepted.version,
        "configHash": accepted.config_hash,
        "promptsHash": accepted.prompts_hash,
        "hints": facts.find(|e| if let Event::Hinted(h) = e { Some(json!(h)) } else { None }),
        "plan": planned.map(|p| json!(p.plan)),
        "planObtained": planned.map(|p| p.obtained.clone()),
        "planCorrections": planned.map(|p| p.corrections.clone()).unwrap_or_default(),
        "leftOut": facts.trimmed().map(|t| t.left_out.clone()).unwrap_or_default(),
        "agents": agents(&facts),
        "rounds": rounds(&facts),
        "crossCheck": facts.cross_check(),
        "answerGroups": facts.judgement().map(|j| answer_groups(j, &discarded)),
        "disagreements": {
            "detected": facts.judgement().map(|j| disagreements(j, &discarded)),
            "summary": draft.map(|d| json!(d.disagreements)),
        },
        "coverage": facts.judgement().map(|j| json!({ "parts": j.parts, "covered": j.covered })),
        "confidence": facts.gated().map(|g| json!(g.confidence)),
        "gate": facts.gated().map(|g| json!(g.gate)),
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
        "budget": budget(&facts),
    });
    Redactor::of_discarded(events).redact_value(&mut audit);
    Some(audit)
}

fn agents(facts: &Facts<'_>) -> Vec<Value> {
    let rows = facts.agents();
    rows.iter().map(|finished| agent(facts, finished)).collect()
}

fn agent(facts: &Facts<'_>, finished: &AgentFinished) -> Value {
    let name = finished.agent.as_str();
    let own =
        |call: &&CallView<'_>| call.sent.role.as_str() == name && !is_cross_check(&call.sent.call);
    let calls: Vec<&CallView<'_>> = facts.calls.iter().filter(own).collect();
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
    let score = facts
        .judgement()
        .and_then(|j| j.scores.iter().find(|s| s.agent == name));
    let (outcome, obtained, cause, truncated) = match &finished.outcome {
        AgentOutcome::Answered {
            obtained,
            truncated,
            ..
        } => ("answered", Some(obtained.as_str()), None, *truncated),
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
        "status": score.map_or("DISCARD", |s| s.status.as_str()),
        "cred": score.map(|s| s.cred),
        "axes": score.map(|s| json!(s.axes)),
        "fromCode": score.map(|s| s.axes.iter().map(|(_, axis)| axis.from_code).sum::<f64>()),
        "fromPeers": score.map(|s| s.axes.iter().map(|(_, axis)| axis.points - axis.from_code).sum::<f64>()),
    })
}

fn rounds(facts: &Facts<'_>) -> Vec<Value> {
    let round = |event: &Event| match event {
        Event::RoundStarted(r) => {
            let mut value = json!({ "round": r.round, "state": "run", "agents": r.agents, "why": &r.why.clone() });
            if let Value::Object(map) = &mut value
                && r.round > 1
            {
                map.insert("resolutions".into(), facts.resolutions(r.round));
            }
            Some(value)
        }
        Event::RoundSkipped(r) => {
            Some(json!({ "round": r.round, "state": "skipped", "why": &r.why.clone() }))
        }
        _ => None,
    };
    facts.events.iter().filter_map(round).collect()
}

fn budget(facts: &Facts<'_>) -> Value {
    let calls: Vec<Value> = facts
        .calls
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
    let spent: crate::domain::Usd = facts
        .calls
        .iter()
        .filter_map(|c| c.settled)
        .map(|s| s.cost)
        .sum();
    let exceeded = facts.calls.iter().any(|c| {
        let reserved = c
            .sent
            .reserved
            .as_ref()
            .map_or(crate::domain::Usd::ZERO, |r| r.amount);
        c.settled.is_some_and(|s| s.cost > reserved)
    });
    json!({
        "capUsd": facts.accepted.cap.dollars(),
        "spentUsd": spent.dollars(),
        "modeCapExceeded": exceeded,
        "calls": calls,
    })
}
