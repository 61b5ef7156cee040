//! The audit appendix (SPEC 7): a view of the journal, as data and as Markdown.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::cross_check::is_cross_check;
use super::reply::{AUDIT, figure};
use super::withheld::{WITHHELD, Withheld};
use crate::domain::{Judgement, RunId};
use crate::journal::views::{self, CallView};
use crate::journal::{
    Accepted, AgentFinished, AgentOutcome, CrossChecked, Event, Gated, Planned, Synthesized, Trimmed,
};

/// What the appendix is made from.
struct Facts<'a> {
    events: &'a [Event],
    accepted: &'a Accepted,
    calls: Vec<CallView<'a>>,
    withheld: Withheld<'a>,
}

impl<'a> Facts<'a> {
    fn find<T>(&self, pick: impl Fn(&'a Event) -> Option<T>) -> Option<T> {
        self.events.iter().rev().find_map(pick)
    }

    fn planned(&self) -> Option<&'a Planned> {
        self.find(|e| if let Event::Planned(p) = e { Some(p) } else { None })
    }

    fn trimmed(&self) -> Option<&'a Trimmed> {
        self.find(|e| if let Event::Trimmed(t) = e { Some(t) } else { None })
    }

    fn synthesized(&self) -> Option<&'a Synthesized> {
        self.find(|e| if let Event::Synthesized(s) = e { Some(&**s) } else { None })
    }

    fn judgement(&self) -> Option<&'a Judgement> {
        self.find(|e| if let Event::Scored(s) = e { Some(&s.judgement) } else { None })
    }

    fn gated(&self) -> Option<&'a Gated> {
        self.find(|e| if let Event::Gated(g) = e { Some(g) } else { None })
    }

    fn cross_checked(&self) -> Option<&'a CrossChecked> {
        self.find(|e| if let Event::CrossChecked(c) = e { Some(&**c) } else { None })
    }

    /// What the cross-check found, or why there is none.
    fn cross_check(&self) -> Value {
        let Some(checked) = self.cross_checked() else { return Value::Null };
        let passes: Vec<Value> = checked
            .passes
            .iter()
            .map(|pass| {
                let mut value = json!({
                    "role": pass.role, "model": pass.model, "reversed": pass.reversed, "scope": pass.scope,
                    "obtained": pass.obtained, "notes": pass.notes,
                });
                if let (Value::Object(all), Value::Object(found)) = (&mut value, self.withheld.cross_check(&pass.found))
                {
                    all.extend(found);
                }
                value
            })
            .collect();
        json!({ "passes": passes, "notes": checked.notes })
    }

    /// Why a round was held, or was not: it names topics.
    fn why(&self, why: &str) -> String {
        let judged =
            self.events.iter().filter_map(|e| if let Event::Scored(s) = e { Some(&s.judgement) } else { None });
        judged.fold(why.to_owned(), |why, judgement| self.withheld.without_topics(&why, &judgement.disagreements))
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
            let name = finished.agent.as_str();
            let resolved = finished.resolved.as_ref();
            let resolutions: Vec<Value> = resolved
                .into_iter()
                .flat_map(|resolved| &resolved.resolutions)
                .map(|r| {
                    json!({ "claim": r.claim, "decision": r.decision, "by": r.by,
                            "evidence": self.withheld.word_of(name, &r.evidence) })
                })
                .collect();
            let notes: Vec<String> =
                resolved.into_iter().flat_map(|resolved| &resolved.notes).map(|note| self.why(note)).collect();
            json!({ "agent": finished.agent, "resolutions": resolutions, "notes": notes, "failed": failed,
                    "anew": failed.is_none() && resolved.is_none() })
        });
        Value::Array(decided.collect())
    }

    /// Each agent's last outcome that counts, by agent.
    fn agents(&self) -> Vec<&'a AgentFinished> {
        let mut last: Vec<&AgentFinished> = vec![];
        for event in self.events {
            let Event::AgentFinished(finished) = event else { continue };
            let improves = matches!(finished.outcome, AgentOutcome::Answered { .. })
                || !last
                    .iter()
                    .any(|k| k.agent == finished.agent && matches!(k.outcome, AgentOutcome::Answered { .. }));
            if improves {
                last.retain(|known| known.agent != finished.agent);
                last.push(finished);
            }
        }
        last.sort_by_key(|finished| finished.agent);
        last
    }
}

/// The appendix as data.
pub fn view(run: RunId, events: &[Event]) -> Option<Value> {
    let accepted = events.iter().find_map(|e| if let Event::Accepted(a) = e { Some(&**a) } else { None })?;
    let facts = Facts { events, accepted, calls: views::calls(&events.iter()), withheld: Withheld::of(events) };
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
        "answerGroups": facts.judgement().map(|j| facts.withheld.answer_groups(j)),
        "disagreements": {
            "detected": facts.judgement().map(|j| facts.withheld.disagreements(j)),
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
    facts.withheld.scrub(&mut audit);
    Some(audit)
}

fn agents(facts: &Facts<'_>) -> Vec<Value> {
    let rows = facts.agents();
    rows.iter().map(|finished| agent(facts, finished)).collect()
}

fn agent(facts: &Facts<'_>, finished: &AgentFinished) -> Value {
    let name = finished.agent.as_str();
    let own = |call: &&CallView<'_>| call.sent.role.as_str() == name && !is_cross_check(&call.sent.call);
    let calls: Vec<&CallView<'_>> = facts.calls.iter().filter(own).collect();
    let totals = calls.iter().fold(views::Totals::default(), |mut sum, call| {
        let one = views::totals(&[**call], &call.sent.call);
        sum.calls += one.calls;
        sum.input_tokens = sum.input_tokens.saturating_add(one.input_tokens);
        sum.output_tokens = sum.output_tokens.saturating_add(one.output_tokens);
        sum.thinking_tokens = sum.thinking_tokens.saturating_add(one.thinking_tokens);
        sum.latency_ms = sum.latency_ms.saturating_add(one.latency_ms);
        sum.cost += one.cost;
        sum
    });
    let score = facts.judgement().and_then(|j| j.scores.iter().find(|s| s.agent == name));
    let (outcome, obtained, cause, truncated) = match &finished.outcome {
        AgentOutcome::Answered { obtained, truncated, .. } => ("answered", Some(obtained.as_str()), None, *truncated),
        AgentOutcome::Failed { cause, detail, .. } => ("failed", None, Some(format!("{cause}: {detail}")), false),
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
            let mut value = json!({ "round": r.round, "state": "run", "agents": r.agents, "why": facts.why(&r.why) });
            if let Value::Object(map) = &mut value
                && r.round > 1
            {
                map.insert("resolutions".into(), facts.resolutions(r.round));
            }
            Some(value)
        }
        Event::RoundSkipped(r) => Some(json!({ "round": r.round, "state": "skipped", "why": facts.why(&r.why) })),
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
    let spent: crate::domain::Usd = facts.calls.iter().filter_map(|c| c.settled).map(|s| s.cost).sum();
    let exceeded = facts.calls.iter().any(|c| {
        let reserved = c.sent.reserved.as_ref().map_or(crate::domain::Usd::ZERO, |r| r.amount);
        c.settled.is_some_and(|s| s.cost > reserved)
    });
    json!({
        "capUsd": facts.accepted.cap.dollars(),
        "spentUsd": spent.dollars(),
        "modeCapExceeded": exceeded,
        "calls": calls,
    })
}

/// The appendix as Markdown, from the same data.
pub fn markdown(audit: &Value) -> String {
    let mut text = format!("{AUDIT}\n\n");
    let _ = writeln!(text, "- Run: {}", plain(&audit["runId"]));
    if let Some(parent) = audit.pointer("/continues/parent").and_then(Value::as_str) {
        let _ = writeln!(text, "- Continues: {parent}");
    }
    let _ = writeln!(text, "- Config: {}; prompts: {}", short(&audit["configHash"]), short(&audit["promptsHash"]));
    let _ = write!(text, "\n### Plan\n\n```json\n{}\n```\n\n", pretty(&audit["plan"]));
    let _ = writeln!(text, "- Obtained: {}", plain(&audit["planObtained"]));
    list(&mut text, "Corrected", &audit["planCorrections"]);
    list(&mut text, "Left out", &audit["leftOut"]);
    if let Some(agents) = audit["agents"].as_array().filter(|a| !a.is_empty()) {
        agents_section(&mut text, agents);
    }
    if let Some(rounds) = audit["rounds"].as_array().filter(|r| !r.is_empty()) {
        text.push_str("\n### Rounds\n\n");
        for round in rounds {
            let _ = writeln!(text, "- Round {}: {}. {}", round["round"], plain(&round["state"]), plain(&round["why"]));
            decisions(&mut text, round);
        }
    }
    cross_check_section(&mut text, &audit["crossCheck"]);
    disagreements_section(&mut text, &audit["disagreements"]);
    confidence_section(&mut text, &audit["confidence"]);
    let synthesis = &audit["synthesis"];
    if !synthesis.is_null() {
        text.push_str("\n### Synthesis\n\n");
        let _ = writeln!(text, "- Obtained: {}", plain(&synthesis["obtained"]));
        list(&mut text, "Units used", &synthesis["unitsUsed"]);
        list(&mut text, "Corrected", &synthesis["corrections"]);
        list(&mut text, "A rule that the master's reply would have broken", &synthesis["brokenRules"]);
    }
    if let Some(justified) = audit["quarantineJustifications"].as_array().filter(|j| !j.is_empty()) {
        text.push_str("\n### Why quarantined material was used\n\n");
        for j in justified {
            let _ = writeln!(text, "- {}: {}", plain(&j["agent"]), plain(&j["why"]));
        }
    }
    if !audit["executionEstimate"].is_null() {
        let _ = write!(text, "\n### Estimate object\n\n```json\n{}\n```\n", pretty(&audit["executionEstimate"]));
    }
    budget_section(&mut text, &audit["budget"]);
    text
}

/// What agents decided on their contested claims in a round.
fn decisions(text: &mut String, round: &Value) {
    for decided in round["resolutions"].as_array().into_iter().flatten() {
        let agent = plain(&decided["agent"]);
        for resolution in decided["resolutions"].as_array().into_iter().flatten() {
            let did = if resolution["decision"] == "concede" { "concedes" } else { "keeps" };
            let evidence = super::sections::excerpt(&plain(&resolution["evidence"]), 160);
            let (claim, by) = (plain(&resolution["claim"]), plain(&resolution["by"]));
            let _ = writeln!(text, "  - {agent} {did} {claim}, by {by}: {evidence}");
        }
        if let Some(cause) = decided["failed"].as_str() {
            let _ = writeln!(text, "  - {agent} gave nothing further ({cause}): its earlier report stands");
        } else if decided["anew"] == true {
            let _ = writeln!(text, "  - {agent} reported anew");
        }
        for note in decided["notes"].as_array().into_iter().flatten() {
            let _ = writeln!(text, "  - {agent}: {}", plain(note));
        }
    }
}

/// What the cross-check found, pass by pass.
fn cross_check_section(text: &mut String, check: &Value) {
    if check.is_null() {
        return;
    }
    text.push_str("\n### Cross-check\n\n");
    for pass in check["passes"].as_array().into_iter().flatten() {
        let order = if pass["reversed"] == true { ", in reverse order" } else { "" };
        let (role, model) = (plain(&pass["role"]), cell(&pass["model"]));
        let _ = writeln!(text, "- By the model of {role} ({model}){order}:");
        for verdict in pass["claims"].as_array().into_iter().flatten() {
            let said = super::sections::excerpt(&plain(&verdict["text"]), 80);
            let evidence = super::sections::excerpt(&plain(&verdict["evidence"]), 160);
            let named = |key: &str, what: &str| {
                let names = join(&verdict[key]);
                if names.is_empty() { String::new() } else { format!("; {what} {names}") }
            };
            let _ = writeln!(
                text,
                "  - {} \"{said}\" holds: {}, by {}: {}{}{}",
                plain(&verdict["claim"]),
                plain(&verdict["holds"]),
                plain(&verdict["by"]),
                if evidence.is_empty() { "no evidence" } else { &evidence },
                named("supportedBy", "supported by"),
                named("contradictedBy", "contradicted by"),
            );
        }
        for group in pass["sameAnswers"].as_array().into_iter().flatten() {
            let _ = writeln!(text, "  - the same final answer: {}", join(group));
        }
        for part in pass["parts"].as_array().into_iter().flatten() {
            let by = join(&part["answeredBy"]);
            let by = if by.is_empty() { "none" } else { &by };
            let _ = writeln!(text, "  - part \"{}\" is answered by {by}", plain(&part["part"]));
        }
        for report in pass["reports"].as_array().into_iter().flatten() {
            let (agent, kind) = (plain(&report["agent"]), plain(&report["kind"]));
            let why = super::sections::excerpt(&plain(&report["why"]), 160);
            let _ = writeln!(text, "  - {agent} is no answer ({kind}): {why}");
        }
        for note in pass["notes"].as_array().into_iter().flatten() {
            let _ = writeln!(text, "  - {}", plain(note));
        }
    }
    list(text, "Not made", &check["notes"]);
}

fn agents_section(text: &mut String, agents: &[Value]) {
    text.push_str(
        "\n### Agents\n\n| agent | status | Cred | model | served | latency | tokens in/out (thinking) | cost USD | attempts | JSON \
         |\n",
    );
    text.push_str("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for a in agents {
        let json = match (a["obtained"].as_str(), a["reusedFrom"].as_str()) {
            (Some(obtained), Some(_)) => format!("{obtained}, reused"),
            (Some(obtained), None) => obtained.to_owned(),
            (None, _) => format!("failed ({})", cell(&a["cause"])),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} ms | {}/{} ({}) | {:.5} | {} | {json} |",
            plain(&a["agent"]),
            plain(&a["status"]),
            a["cred"].as_f64().map_or("none".into(), |c| format!("{c:.3}")),
            cell(&a["model"]),
            served(a),
            a["latencyMs"],
            a["inputTokens"],
            a["outputTokens"],
            a["thinkingTokens"],
            a["costUsd"].as_f64().unwrap_or(0.0),
            a["attempts"],
        );
    }
    for a in agents.iter().filter(|a| a["cause"].is_string()) {
        let _ = writeln!(text, "\n{} failed: {}", plain(&a["agent"]), plain(&a["cause"]));
    }
    text.push_str("\n### Scores\n\n");
    for a in agents {
        let Some(axes) = a["axes"].as_object() else { continue };
        let _ = writeln!(text, "- {} ({}):", plain(&a["agent"]), plain(&a["status"]));
        for (name, axis) in axes {
            let features: Vec<String> = axis["features"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|f| {
                    let name = plain(&f["name"]);
                    let name = name.rsplit('.').next().unwrap_or_default().to_owned();
                    format!("{name} {} ({:+.1})", figure(number(&f["value"])), number(&f["points"]))
                })
                .collect();
            let _ = writeln!(
                text,
                "  - {name} {:.1}/25, {:.1} from code, {:.1} from peers: {}",
                number(&axis["points"]),
                number(&axis["fromCode"]),
                number(&axis["points"]) - number(&axis["fromCode"]),
                features.join(", ")
            );
        }
    }
}

fn disagreements_section(text: &mut String, disagreements: &Value) {
    text.push_str("\n### Disagreements\n\n");
    let detected = disagreements["detected"].as_array().cloned().unwrap_or_default();
    if detected.is_empty() {
        text.push_str("- none detected\n");
    }
    for d in &detected {
        let positions: Vec<String> = d["positions"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|p| match p["text"].as_str() {
                Some(WITHHELD) => format!("{} ({WITHHELD})", join(&p["agents"])),
                _ => format!("\"{}\" ({})", plain(&p["text"]), join(&p["agents"])),
            })
            .collect();
        let _ = writeln!(text, "- {}: {}", plain(&d["topic"]), positions.join(" against "));
    }
    for d in disagreements["summary"].as_array().into_iter().flatten() {
        let _ = writeln!(text, "- As the master saw it, {}: {}", plain(&d["topic"]), plain(&d["summary"]));
    }
}

fn confidence_section(text: &mut String, c: &Value) {
    if c.is_null() {
        return;
    }
    text.push_str("\n### Confidence\n\n");
    let term = |t: &Value| {
        let estimated = t["estimated"].as_f64().map_or("not estimated".into(), |e| format!("estimated {e:.3}"));
        format!("{:.3} ({estimated}, measured {:.3})", number(&t["applied"]), number(&t["measured"]))
    };
    let _ = writeln!(text, "- BaseScore: {:.3}", number(&c["baseScore"]));
    let _ = writeln!(text, "- Conflict penalty: {}", term(&c["conflictPenalty"]));
    let _ = writeln!(text, "- Coverage bonus: {}", term(&c["coverageBonus"]));
    let _ = writeln!(text, "- c_final: {:.4}; threshold {:.2}", number(&c["c_final"]), number(&c["threshold"]));
}

fn budget_section(text: &mut String, budget: &Value) {
    text.push_str(
        "\n### Budget\n\n| call | model | served | effort | state | reserved USD | cost USD | tokens in/out (thinking) | \
         latency | prompt |\n",
    );
    text.push_str("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for call in budget["calls"].as_array().into_iter().flatten() {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {}/{} ({}) | {} ms | {} |",
            plain(&call["call"]),
            cell(&call["model"]),
            served(call),
            call["effort"].as_str().unwrap_or("-"),
            cell(&call["state"]),
            dollars(&call["reservedUsd"]),
            dollars(&call["costUsd"]),
            call["inputTokens"],
            call["outputTokens"],
            call["thinkingTokens"],
            call["latencyMs"],
            short(&call["promptHash"])
        );
    }
    let exceeded = if budget["modeCapExceeded"] == true { "; A PROVIDER BILLED MORE THAN WAS RESERVED" } else { "" };
    let _ =
        writeln!(text, "\nSpent {:.5} of {:.2} USD{exceeded}.", number(&budget["spentUsd"]), number(&budget["capUsd"]));
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |s| s.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The model that answered, with a flag if it is another one than was asked for.
fn served(row: &Value) -> String {
    match row["servedModel"].as_str() {
        None => "not said".to_owned(),
        Some(_) if row["modelReplaced"] == true => format!("{} **(another model)**", cell(&row["servedModel"])),
        Some(_) => cell(&row["servedModel"]),
    }
}

/// For a table: at most 60 characters, without the sign that ends a cell.
fn cell(value: &Value) -> String {
    let text = plain(value).replace('|', "/");
    let text = text.rsplit('/').next().filter(|_| text.contains(".gguf")).unwrap_or(&text);
    super::sections::excerpt(text, 60)
}

fn short(value: &Value) -> String {
    plain(value).chars().take(12).collect()
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

fn dollars(value: &Value) -> String {
    value.as_f64().map_or("free".into(), |d| format!("{d:.5}"))
}

fn join(values: &Value) -> String {
    values.as_array().into_iter().flatten().map(plain).collect::<Vec<_>>().join(", ")
}

fn list(text: &mut String, title: &str, values: &Value) {
    for value in values.as_array().into_iter().flatten() {
        let _ = writeln!(text, "- {title}: {}", plain(value));
    }
}
