//! Keep or concede (SPEC 3). In a later round, each agent that holds a contested claim sees the
//! contested positions without names and scores. It decides by evidence, and only conceded claims
//! change.

use rand::seq::SliceRandom;
use serde_json::{Value, json};

use crate::committee::output_shapes::{DecisionOut, Decisions, Ground};
use crate::committee::request_context::{Purpose, RequestContext};
use crate::committee::stages::open_claims::{ContestedClaim, own_units};
use crate::domain::{
    Agent, AgentReport, Basis, Decision, Obtained, Position, Resolution, UnitRef, counted,
};
use crate::journal::Resolved;
use crate::scoring::{Calculation, calculation};
use crate::text::{excerpt, one_line};

/// Output tokens: this base, plus an amount for each claim.
const BASE_TOKENS: u32 = 120;
const TOKENS_PER_CLAIM: u32 = 120;

const EVIDENCE_CHARS: usize = 300;

/// The letters of the positions that are shown. There are fewer positions than agents.
const LETTERS: std::ops::RangeInclusive<char> = 'A'..='Z';

/// A contested claim from the view of one of its holders.
pub struct Held<'a> {
    claim: &'a ContestedClaim,
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
    claims: &'a [ContestedClaim],
) -> Vec<Held<'a>> {
    let mut random = request.random(Purpose::Claims { round, agent });
    let mut view = |claim: &'a ContestedClaim| {
        let own = claim.position_of(agent)?;
        let others = claim.positions.iter();
        let mut others: Vec<&Position> = others.filter(|p| !std::ptr::eq(*p, own)).collect();
        others.shuffle(&mut random);
        (!others.is_empty()).then_some(Held { claim, own, others })
    };
    let mut held: Vec<Held<'a>> = claims.iter().filter_map(&mut view).collect();
    held.shuffle(&mut random);
    held
}

/// Returns the claims for the prompt.
pub fn shown(held: &[Held<'_>]) -> Value {
    let claim = |held: &Held<'_>| {
        let others = held.others.iter().zip(LETTERS);
        let other = |(it, letter): (&&Position, char)| json!({ "letter": letter, "text": one_line(&it.text) });
        let others: Vec<Value> = others.map(other).collect();
        json!({ "id": held.claim.id, "topic": held.claim.topic, "own": one_line(&held.own.text), "others": others })
    };
    held.iter().map(claim).collect()
}

/// Returns the output tokens of the decisions, without thinking.
pub fn max_tokens(held: &[Held<'_>]) -> u32 {
    let claims = u32::try_from(held.len()).unwrap_or(u32::MAX);
    BASE_TOKENS.saturating_add(TOKENS_PER_CLAIM.saturating_mul(claims))
}

/// Applies the agent's concessions to its report, and returns its decisions. A concession without
/// evidence changes nothing.
pub fn settle(
    report: &mut AgentReport,
    agent: Agent,
    held: &[Held<'_>],
    decisions: &Decisions,
    obtained: Obtained,
) -> Resolved {
    let mut resolved = Resolved {
        obtained,
        resolutions: vec![],
        notes: vec![],
    };
    for held in held {
        let (decision, by, target) = match decided(held, decisions) {
            Ok(decided) => decided,
            Err(note) => {
                resolved.notes.push(note);
                continue;
            }
        };
        let evidence = excerpt(&decision.evidence, EVIDENCE_CHARS);
        let says = evidence.contains(char::is_alphanumeric);
        let evidence = if says { evidence } else { String::new() };
        let units = units_of(held, report, agent);
        let resolution = |unit: &String| Resolution {
            claim: UnitRef::new(agent, unit),
            decision: decision.decision,
            by,
            evidence: evidence.clone(),
        };
        // A unit may be in several claims.
        for resolution in units.iter().map(resolution) {
            if !resolved.resolutions.contains(&resolution) {
                resolved.resolutions.push(resolution);
            }
        }
        match target {
            Some(_) if evidence.is_empty() => resolved.notes.push(format!(
                "it concedes \"{}\" without evidence: it stays as it was",
                held.claim.topic
            )),
            Some(target) => concede(report, &units, held.claim, &target.text),
            None => {}
        }
    }
    let is_unknown = |d: &&DecisionOut| held.iter().all(|held| !is_about(d, held));
    let unknown = decisions.decisions.iter().filter(is_unknown).count();
    if unknown > 0 {
        let unknown = counted(unknown, "decision names", "decisions name");
        resolved
            .notes
            .push(format!("{unknown} no claim that was shown"));
    }
    resolved
}

fn is_about(decision: &DecisionOut, held: &Held<'_>) -> bool {
    decision.claim.trim().eq_ignore_ascii_case(&held.claim.id)
}

/// Returns the decision on a claim, what it rests on, and the position that it concedes to. A
/// calculation that cannot be recomputed counts as memory.
///
/// # Errors
/// A note, if there is no decision that can be applied.
fn decided<'a, 'd>(
    held: &Held<'a>,
    decisions: &'d Decisions,
) -> Result<(&'d DecisionOut, Basis, Option<&'a Position>), String> {
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
    let by = decision.by.into();
    if decision.decision != Decision::Concede {
        return Ok((decision, by, None));
    }
    let Some(target) = position_of(held, &decision.to) else {
        return Err(format!(
            "it concedes \"{topic}\" to no position that was shown"
        ));
    };
    if decision.by != Ground::Calculation || decision.evidence.trim().is_empty() {
        return Ok((decision, by, Some(target)));
    }
    // A machine can judge this evidence, so it does.
    match calculation(&decision.evidence, &target.text) {
        Calculation::Gives => Ok((decision, by, Some(target))),
        Calculation::Unknown => Ok((decision, Basis::Memory, Some(target))),
        Calculation::Fails => Err(format!(
            "it concedes \"{topic}\" by a calculation that does not give the position: it stays as it was"
        )),
    }
}

/// Returns the position named by a letter: "B", "b)", "position B". If there is only one other
/// position, returns that one.
fn position_of<'a>(held: &Held<'a>, to: &str) -> Option<&'a Position> {
    let mut words = to.split(|c: char| !c.is_alphanumeric());
    let last = words.rfind(|word| !word.is_empty());
    match (last, held.others.as_slice()) {
        (Some(last), others) => {
            let is_named =
                |letter: char| last.eq_ignore_ascii_case(letter.encode_utf8(&mut [0; 4]));
            let mut lettered = others.iter().zip(LETTERS);
            let named = lettered.find(|(_, letter)| is_named(*letter));
            named.map(|(position, _)| *position)
        }
        (None, [only]) => Some(*only),
        (None, _) => None,
    }
}

/// Returns the agent's units that state its position. If a final answer names no unit, returns the
/// unit tagged as the answer.
fn units_of(held: &Held<'_>, report: &AgentReport, agent: Agent) -> Vec<String> {
    let mut units = own_units(held.own, agent);
    units.retain(|id| report.units.iter().any(|unit| unit.id == *id));
    if units.is_empty() {
        let answer = report.answers().next().or(report.units.first());
        units.extend(answer.map(|unit| unit.id.clone()));
    }
    units
}

/// States the conceded text in these units. If it is the final answer, the summary and the unit
/// tagged as the answer state it too.
fn concede(report: &mut AgentReport, units: &[String], claim: &ContestedClaim, text: &str) {
    for unit in &mut report.units {
        let is_answer = claim.on_final_answer && unit.is_answer();
        if is_answer || units.contains(&unit.id) {
            text.clone_into(&mut unit.text);
        }
    }
    if claim.on_final_answer {
        report.answer_summary = vec![text.to_owned()];
    }
}

#[cfg(test)]
mod tests;
