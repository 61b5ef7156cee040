//! Scores a run again from its journal under another policy, without any call.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::committee::request_context::lineage;
use crate::committee::stages::confidence::settle;
use crate::committee::stages::evidence::Evidence;
use crate::committee::stages::judge::{ScoringInput, families_of};
use crate::config::Policy;
use crate::domain::{Agent, AgentName, Confidence, Gate, Judgement, RunId, Score, Status};
use crate::journal::{Entry, Event, Transcript};

/// The outcome of a run under a policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayResult {
    /// The scores of the last round that was scored.
    pub scores: Vec<Judged>,
    pub confidence: Option<Confidence>,
    pub gate: Option<Gate>,
}

/// An agent's score in a [`ReplayResult`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    pub agent: AgentName,
    pub cred: f64,
    pub status: Status,
}

/// A run under its recorded policy and under the other one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replayed {
    pub recorded: ReplayResult,
    pub replayed: ReplayResult,
}

/// Scores the last round again under `policy`; `None` if no round of the run was scored.
///
/// `ancestors` are the journals of the runs that this run continues, the nearest first.
pub fn replay(
    entries: &[Entry],
    ancestors: &[(RunId, Vec<Entry>)],
    policy: &Policy,
) -> Option<Replayed> {
    let whole = Transcript::of_entries(entries);
    let accepted = whole.accepted?;
    let message = lineage(accepted, whole.planned, whole.ancestors(ancestors)).full_text();
    let mode = accepted.question.mode;
    let is_scored = |entry: &Entry| matches!(entry.event, Event::Scored(_));
    let (before, _) = entries.split_at_checked(entries.iter().rposition(is_scored)?)?;
    let so_far = Transcript::of_entries(before);
    let input = ScoringInput {
        run: &so_far,
        message: &message,
        families: &families(&so_far, ancestors),
        policy,
    };
    let evidence = Evidence::of(&so_far).applicable(policy, mode);
    let (recorded, replayed) = (whole.judgement()?, input.judge(so_far.panel(), &evidence));
    let confidence = settle(policy, &replayed, whole.draft());
    let gated = whole.gated;
    let may_ask = gated.is_none_or(|gated| !gated.is_last);
    Some(Replayed {
        recorded: ReplayResult {
            scores: judged(recorded),
            confidence: gated.map(|gated| gated.confidence.clone()),
            gate: gated.map(|gated| gated.gate),
        },
        replayed: ReplayResult {
            scores: judged(&replayed),
            gate: Some(confidence.gate(may_ask)),
            confidence: Some(confidence),
        },
    })
}

/// Returns the model family of each agent's report, from this run or the nearest ancestor.
fn families(run: &Transcript<'_>, ancestors: &[(RunId, Vec<Entry>)]) -> BTreeMap<Agent, String> {
    let mut families = families_of(run);
    for (_, entries) in ancestors {
        for (agent, family) in families_of(&Transcript::of_entries(entries)) {
            families.entry(agent).or_insert(family);
        }
    }
    families
}

fn judged(judgement: &Judgement) -> Vec<Judged> {
    let judged = |score: &Score| Judged {
        agent: score.agent.clone(),
        cred: score.cred,
        status: score.status,
    };
    judgement.scores.iter().map(judged).collect()
}
