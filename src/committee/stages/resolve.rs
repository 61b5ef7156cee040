//! Keep or concede (SPEC 3). In a later round, each agent that holds a contested claim sees the
//! contested positions without names and scores. It decides by evidence, and only conceded claims
//! change.

use rand::seq::SliceRandom;
use serde_json::{Value, json};

use crate::committee::output_shapes::{DecisionOut, Decisions};
use crate::committee::request_context::RequestContext;
use crate::committee::stages::open_claims::{Claim, is_held, own_units};
use crate::domain::{
    Agent, AgentReport, Decision, Obtained, Position, Resolution, Tag, UnitRef, counted,
};
use crate::journal::Resolved;
use crate::text::{excerpt, one_line};

/// Output tokens: this base, plus an amount for each claim.
const BASE_TOKENS: u32 = 120;
const TOKENS_PER_CLAIM: u32 = 120;

const EVIDENCE_CHARS: usize = 300;

/// A contested claim from the view of one of its holders.
pub struct Held<'a> {
    claim: &'a Claim,
    own: &'a Position,
    /// In the order in which they are shown, as A, B, ...
    others: Vec<&'a Position>,
}

/// Returns the contested claims that an agent holds, in an order seeded by the run, the round and
/// the agent.
pub fn held<'a>(
    request: &RequestContext,
    round: u8,
    agent: Agent,
    claims: &'a [Claim],
) -> Vec<Held<'a>> {
    let mut random = request.random(90_000 + u64::from(round) * 100 + agent as u64);
    let mut held: Vec<Held<'a>> = claims
        .iter()
        .filter_map(|claim| {
            let own = claim
                .positions
                .iter()
                .find(|position| is_held(claim, position, agent.into_str()))?;
            let mut others: Vec<&Position> = claim
                .positions
                .iter()
                .filter(|p| !std::ptr::eq(*p, own))
                .collect();
            others.shuffle(&mut random);
            (!others.is_empty()).then_some(Held { claim, own, others })
        })
        .collect();
    held.shuffle(&mut random);
    held
}

/// Returns the claims for the prompt.
pub fn shown(held: &[Held<'_>]) -> Value {
    let claim = |held: &Held<'_>| {
        let others: Vec<Value> = held
            .others
            .iter()
            .enumerate()
            .map(|(at, position)| json!({ "letter": letter(at), "text": one_line(&position.text) }))
            .collect();
        json!({ "id": held.claim.id, "topic": held.claim.topic, "own": one_line(&held.own.text), "others": others })
    };
    held.iter().map(claim).collect()
}

/// Returns the output tokens of the decisions, without thinking.
pub fn max_tokens(held: &[Held<'_>]) -> u32 {
    let claims = u32::try_from(held.len()).unwrap_or(u32::MAX);
    BASE_TOKENS.saturating_add(TOKENS_PER_CLAIM.saturating_mul(claims))
}

fn letter(at: usize) -> String {
    u8::try_from(at)
        .ok()
        .filter(|at| *at < 26)
        .map_or_else(|| format!("P{at}"), |at| char::from(b'A' + at).to_string())
}

/// Returns the report with the agent's concessions applied, and its decisions. A concession without
/// evidence changes nothing.
pub fn settle(
    earlier: &AgentReport,
    agent: &str,
    held: &[Held<'_>],
    decisions: &Decisions,
    obtained: Obtained,
) -> (AgentReport, Resolved) {
    let mut report = earlier.clone();
    let mut resolved = Resolved {
        obtained,
        resolutions: vec![],
        notes: vec![],
    };
    for held in held {
        let (decision, target) = match decided(held, decisions) {
            Ok(decided) => decided,
            Err(note) => {
                resolved.notes.push(note);
                continue;
            }
        };
        let evidence = excerpt(&decision.evidence, EVIDENCE_CHARS);
        let units = units_of(held, &report, agent);
        let resolution = |unit: &String| Resolution {
            claim: UnitRef::new(agent, unit),
            decision: decision.decision,
            by: decision.by.into(),
            evidence: evidence.clone(),
        };
        resolved.resolutions.extend(units.iter().map(resolution));
        match target {
            Some(_) if evidence.is_empty() => resolved.notes.push(format!(
                "it concedes \"{}\" without evidence: it stays as it was",
                held.claim.topic
            )),
            Some(target) => concede(
                &mut report,
                &units,
                held.claim.on_final_answer,
                &target.text,
            ),
            None => {}
        }
    }
    let unknown = |d: &&DecisionOut| held.iter().all(|held| !is_about(d, held));
    let unknown = decisions.decisions.iter().filter(unknown).count();
    if unknown > 0 {
        resolved.notes.push(format!(
            "{} no claim that was shown",
            counted(unknown, "decision names", "decisions name")
        ));
    }
    (report, resolved)
}

fn is_about(decision: &DecisionOut, held: &Held<'_>) -> bool {
    decision.claim.trim().eq_ignore_ascii_case(&held.claim.id)
}

/// Returns the decision on a claim, and the position that it concedes to.
///
/// # Errors
/// A note, if there is no decision that can be applied.
fn decided<'a, 'd>(
    held: &Held<'a>,
    decisions: &'d Decisions,
) -> Result<(&'d DecisionOut, Option<&'a Position>), String> {
    let topic = &held.claim.topic;
    let mut of_claim = decisions.decisions.iter().filter(|d| is_about(d, held));
    let Some(decision) = of_claim.next() else {
        return Err(format!("it decided nothing on \"{topic}\""));
    };
    if of_claim.any(|other| other.decision != decision.decision) {
        return Err(format!(
            "it both keeps and concedes \"{topic}\": it stays as it was"
        ));
    }
    if decision.decision != Decision::Concede {
        return Ok((decision, None));
    }
    match position_of(held, &decision.to) {
        Some(target) => Ok((decision, Some(target))),
        None => Err(format!(
            "it concedes \"{topic}\" to no position that was shown"
        )),
    }
}

/// Returns the position named by a letter: "B", "b)", "position B". If there is only one other
/// position, returns that one.
fn position_of<'a>(held: &Held<'a>, to: &str) -> Option<&'a Position> {
    let words: Vec<&str> = to
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let named = words
        .last()
        .and_then(|word| (0..held.others.len()).find(|at| letter(*at).eq_ignore_ascii_case(word)));
    match (named, held.others.as_slice()) {
        (Some(at), others) => others.get(at).copied(),
        (None, [only]) if words.is_empty() => Some(*only),
        (None, _) => None,
    }
}

/// Returns the agent's units that state its position. If a final answer names no unit, returns the
/// unit tagged as the answer.
fn units_of(held: &Held<'_>, report: &AgentReport, agent: &str) -> Vec<String> {
    let named = own_units(held.own, agent);
    let known = |id: &String| report.units.iter().any(|unit| unit.id == *id);
    let mut units: Vec<String> = named.into_iter().filter(known).collect();
    if units.is_empty() {
        let answer = report
            .units
            .iter()
            .find(|unit| unit.tags.contains(&Tag::Answer))
            .or(report.units.first());
        units.extend(answer.map(|unit| unit.id.clone()));
    }
    units
}

fn concede(report: &mut AgentReport, units: &[String], on_final_answer: bool, text: &str) {
    for unit in report
        .units
        .iter_mut()
        .filter(|unit| units.contains(&unit.id))
    {
        text.clone_into(&mut unit.text);
    }
    if on_final_answer {
        // The summary states the conceded answer.
        report.answer_summary = vec![text.to_owned()];
        for unit in report
            .units
            .iter_mut()
            .filter(|unit| unit.tags.contains(&Tag::Answer))
        {
            text.clone_into(&mut unit.text);
        }
    }
}

#[cfg(test)]
mod tests;
