//! Scores a run again from its journal under another policy, without any call. If the other policy
//! would need a call that the journal does not have, the call is named.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::committee::request_context::lineage;
use crate::committee::stages::confidence::{out_of_reach, settle};
use crate::committee::stages::cross_check::TURNED_OFF;
use crate::committee::stages::evidence::Evidence;
use crate::committee::stages::judge::{ScoringInput, families_of};
use crate::committee::stages::open_claims::open;
use crate::config::Policy;
use crate::domain::{Agent, Confidence, Gate, Judgement, RunId, Status};
use crate::journal::{AgentFinished, Entry, Event, Transcript};

/// The outcome of a run under a policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// The scores of the last round that was scored.
    pub scores: Vec<Judged>,
    pub confidence: Option<Confidence>,
    pub gate: Option<Gate>,
}

/// An agent's score in a [`Verdict`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    pub agent: String,
    pub cred: f64,
    pub status: Status,
}

/// A run under its recorded policy and under the other one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replayed {
    pub recorded: Verdict,
    pub replayed: Verdict,
    /// Calls that the journal does not have, in the order in which they would be made.
    pub needs: Vec<Need>,
}

impl Replayed {
    /// True if the policy leads to the same reply, apart from the figures in it.
    pub fn same_reply(&self) -> bool {
        self.needs.is_empty() && self.recorded.gate == self.replayed.gate
    }
}

/// A call that the other policy would need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Need {
    /// The step, such as `r2/solver`.
    pub call: String,
    pub why: String,
}

impl Need {
    fn new(call: impl Into<String>, why: impl Into<String>) -> Self {
        let (call, why) = (call.into(), why.into());
        Self { call, why }
    }
}

/// Scores every round again under `policy`; `None` if no round of the run was scored.
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
    let mut judged_again: Option<Judgement> = None;
    let mut needs = vec![];
    if let Some(checked) = whole.cross_checked
        && policy.cross_check.covers(mode)
        && checked.notes.iter().any(|note| note == TURNED_OFF)
    {
        let why = "under this policy the key claims are cross-checked";
        needs.push(Need::new("cross-check", why));
    }
    for (at, entry) in entries.iter().enumerate() {
        let so_far = || Transcript::of_entries(entries.get(..at).unwrap_or_default());
        match &entry.event {
            Event::Scored(_) => {
                let so_far = so_far();
                let input = ScoringInput {
                    run: &so_far,
                    message: &message,
                    families: &families(&so_far, ancestors),
                    policy,
                };
                let evidence = Evidence::of(&so_far).under(policy, mode);
                judged_again = Some(input.judge(so_far.panel(), &evidence));
            }
            Event::RoundSkipped(skipped) if needs.is_empty() => {
                let round = skipped.round;
                needs.extend(needs_of_round(&so_far(), judged_again.as_ref()?, round)?);
            }
            _ => {}
        }
    }
    let (recorded, replayed) = (whole.judgement()?, judged_again?);
    let confidence = settle(policy, &replayed, whole.draft());
    let gated = whole.gated;
    let may_ask = gated.is_none_or(|gated| !gated.is_last);
    let out_of_reach = may_ask && out_of_reach(policy, &replayed);
    needs.extend(need_of_master(&whole, recorded, &replayed, out_of_reach));
    Some(Replayed {
        recorded: Verdict {
            scores: judged(recorded),
            confidence: gated.map(|gated| gated.confidence.clone()),
            gate: gated.map(|gated| gated.gate),
        },
        replayed: Verdict {
            scores: judged(&replayed),
            gate: Some(confidence.gate(may_ask)),
            confidence: Some(confidence),
        },
        needs,
    })
}

/// Returns the calls of a skipped round that another judgement would need. `None` if the round has
/// no judgement before it.
fn needs_of_round(so_far: &Transcript<'_>, judged: &Judgement, round: u8) -> Option<Vec<Need>> {
    // A round that was skipped for lack of time or money would be skipped again.
    if !contested(so_far, so_far.judgement()?).is_empty() {
        return Some(vec![]);
    }
    let why = "under this policy there is something left to settle";
    let agents = contested(so_far, judged).into_iter();
    let need = |agent| Need::new(format!("r{round}/{agent}"), why);
    Some(agents.map(need).collect())
}

/// Returns the call of the master that the policy would need. Out of reach of the threshold, only a
/// question is asked.
fn need_of_master(
    run: &Transcript<'_>,
    recorded: &Judgement,
    replayed: &Judgement,
    out_of_reach: bool,
) -> Option<Need> {
    let (was, is) = (shown(recorded), shown(replayed));
    match (run.draft(), out_of_reach) {
        (None, true) => None,
        (None, false) => {
            let why = "the threshold is within reach under this policy: a whole synthesis would be \
                       bought";
            Some(Need::new("synthesis", why))
        }
        (Some(_), _) if was != is => {
            let why = format!("the master would read {is} instead of {was}");
            Some(Need::new("synthesis", why))
        }
        (Some(_), true) => {
            let why = "no synthesis would be bought under this policy, only the question";
            Some(Need::new("question", why))
        }
        (Some(_), false) => None,
    }
}

fn contested(so_far: &Transcript<'_>, judgement: &Judgement) -> Vec<Agent> {
    let outcome = |(agent, finished): (_, &AgentFinished)| (agent, finished.outcome.clone());
    let latest = so_far.standing().into_iter().map(outcome).collect();
    open(judgement, &latest, so_far.panel()).1.agents()
}

/// Returns the model family of each agent's report, from this run or the nearest ancestor.
pub fn families(
    run: &Transcript<'_>,
    ancestors: &[(RunId, Vec<Entry>)],
) -> BTreeMap<Agent, String> {
    let mut families = families_of(run);
    for (_, entries) in ancestors {
        for (agent, family) in families_of(&Transcript::of_entries(entries)) {
            families.entry(agent).or_insert(family);
        }
    }
    families
}

/// Lists the agents whose outputs the master reads, each with its status.
fn shown(judgement: &Judgement) -> String {
    let scores = judgement.scores.iter();
    let kept = scores.filter(|score| score.status != Status::Discard);
    let names = kept.map(|it| format!("{} ({})", it.agent, it.status.into_str()));
    let names: Vec<String> = names.collect();
    if names.is_empty() {
        return "nothing".to_owned();
    }
    names.join(", ")
}

fn judged(judgement: &Judgement) -> Vec<Judged> {
    let judged = |score: &crate::domain::Score| Judged {
        agent: score.agent.clone(),
        cred: score.cred,
        status: score.status,
    };
    judgement.scores.iter().map(judged).collect()
}
