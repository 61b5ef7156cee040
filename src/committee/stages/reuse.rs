//! Decides which outputs of an earlier run still hold after the user's answer or correction.

use std::collections::{BTreeMap, BTreeSet};

use crate::committee::request_context::{Parent, RequestContext};
use crate::domain::{Agent, AgentReport, OPTION_LETTERS, Status};
use crate::journal::{AgentOutcome, Continuation};

/// The agents to call, and those whose stored output is reused.
pub struct Split {
    pub asked: Vec<Agent>,
    pub reused: BTreeMap<Agent, AgentOutcome>,
}

/// Share of a text's words that must occur in the user's point for the text to be about it.
const TOUCHED: f64 = 0.5;

/// Splits the panel. An agent is called again in any of these cases:
///
/// - It has no usable stored output: it failed or was discarded.
/// - It holds a position that the user's answer rejects.
/// - Its summary supports an option that the user did not choose.
/// - One of its claims or assumptions is about the point that the user settled.
/// - It made the assumption that the user corrected.
///
/// If no agent is affected, the solver is called, because the answer must come from some agent.
pub fn split(request: &RequestContext, panel: &[Agent]) -> Split {
    let Some(parent) = &request.parent else {
        return Split {
            asked: panel.to_vec(),
            reused: BTreeMap::new(),
        };
    };
    let corrected: BTreeSet<Agent> = match &request.latest {
        Some(Continuation::Correction { handle, .. }) => parent
            .assumptions
            .iter()
            .filter(|a| a.handle == *handle)
            .flat_map(|a| a.agents.iter().copied())
            .collect(),
        Some(Continuation::Answer { .. }) | None => BTreeSet::new(),
    };
    let overruled = overruled(request, parent);
    let point = point(request);
    let touched = |agent: Agent, report: &AgentReport| {
        let discarded = status_of(parent, agent).is_none_or(|s| s == Status::Discard);
        discarded
            || speaks_for_another(request, parent, report)
            || corrected.contains(&agent)
            || overruled.contains(agent.into_str())
            || is_about(report, &point)
    };
    let mut split = Split {
        asked: vec![],
        reused: BTreeMap::new(),
    };
    for agent in panel {
        let kept = parent.outcomes.get(agent).filter(|outcome| {
            let report = outcome.report();
            report.is_some_and(|report| !touched(*agent, report))
        });
        match kept {
            Some(outcome) => {
                split.reused.insert(*agent, outcome.clone());
            }
            None => split.asked.push(*agent),
        }
    }
    if split.asked.is_empty() && panel.contains(&Agent::Solver) {
        split.reused.remove(&Agent::Solver);
        split.asked.push(Agent::Solver);
    }
    split
}

fn status_of(parent: &Parent, agent: Agent) -> Option<Status> {
    parent.scored.as_ref()?.judgement.status_of(agent)
}

/// Returns the agents that hold a different position than the one named in the user's answer, over
/// all disagreements in which the answer names one. If it names none of the final answers, all
/// holders of one are returned, because they answered without knowing the user's answer.
fn overruled<'a>(request: &RequestContext, parent: &'a Parent) -> BTreeSet<&'a str> {
    let Some(Continuation::Answer { answer, .. }) = &request.latest else {
        return BTreeSet::new();
    };
    let Some(scored) = &parent.scored else {
        return BTreeSet::new();
    };
    let said: BTreeSet<String> = words(answer).collect();
    let mut overruled = BTreeSet::new();
    for disagreement in scored.judgement.disagreements.iter().filter(|d| !d.settled) {
        let (named, others): (Vec<_>, Vec<_>) =
            disagreement.positions.iter().partition(|position| {
                let own: BTreeSet<String> = words(&position.text).collect();
                !own.is_empty() && own.is_subset(&said)
            });
        if !named.is_empty() || disagreement.on_final_answer {
            overruled.extend(
                others
                    .iter()
                    .flat_map(|position| &position.agents)
                    .map(String::as_str),
            );
        }
    }
    overruled
}

/// True if the report's summary has words that only other options have, and none that only the
/// chosen option has ("100" where the user chose "95").
fn speaks_for_another(request: &RequestContext, parent: &Parent, report: &AgentReport) -> bool {
    let Some(Continuation::Answer {
        option: Some(letter),
        ..
    }) = &request.latest
    else {
        return false;
    };
    let Some(question) = &parent.question else {
        return false;
    };
    let shared: BTreeSet<String> = words(&request.question.message).collect();
    let (mut chosen, mut others) = (BTreeSet::new(), BTreeSet::new());
    for (own, option) in OPTION_LETTERS.iter().zip(&question.options) {
        let of_option = words(option).filter(|word| !shared.contains(word));
        if own == letter {
            chosen.extend(of_option);
        } else {
            others.extend(of_option);
        }
    }
    let said: BTreeSet<String> = words(&report.answer_summary.join(" ")).collect();
    let for_chosen = chosen.difference(&others).any(|word| said.contains(word));
    let for_another = others.difference(&chosen).any(|word| said.contains(word));
    for_another && !for_chosen
}

/// Returns the content words of the user's latest answer or correction. The words of the original
/// question are left out, because every report shares them.
fn point(request: &RequestContext) -> BTreeSet<String> {
    let mut settled = BTreeSet::new();
    match &request.latest {
        Some(Continuation::Answer {
            question, answer, ..
        }) => {
            settled.extend(words(question));
            settled.extend(words(answer));
        }
        Some(Continuation::Correction {
            wrong, correction, ..
        }) => {
            settled.extend(words(wrong));
            settled.extend(words(correction));
        }
        None => {}
    }
    let shared: BTreeSet<String> = words(&request.question.message).collect();
    settled.difference(&shared).cloned().collect()
}

fn is_about(report: &AgentReport, point: &BTreeSet<String>) -> bool {
    if point.is_empty() {
        return false;
    }
    let claims = report
        .units
        .iter()
        .map(|u| format!("{} {}", u.topic, u.text));
    let assumptions = report.assumptions.iter().cloned();
    claims.chain(assumptions).any(|text| {
        let own: BTreeSet<String> = words(&text).collect();
        let common = own.intersection(point).count();
        let least = own.len().min(point.len()).max(1);
        common >= 2 && common as f64 / least as f64 >= TOUCHED
    })
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let is_stop_word = |word: &str| {
        let mut words = include_str!("stop_words.txt").lines();
        words.any(|known| known == word)
    };
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|w| w.chars().count() >= 3 || w.chars().any(|c| c.is_ascii_digit()))
        .map(str::to_lowercase)
        .filter(move |w| !is_stop_word(w))
}
