//! Scores a run again from its journal under another policy, without any call. If the other policy
//! would need a call that the journal does not have, the call is named.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::committee::request_context::lineage;
use crate::committee::stages::confidence::{out_of_reach, settle};
use crate::committee::stages::cross_check::TURNED_OFF;
use crate::committee::stages::evidence::Evidence;
use crate::committee::stages::judge::{families_of, outputs};
use crate::committee::stages::open_claims::open;
use crate::config::Policy;
use crate::domain::{Agent, Confidence, Gate, Judgement, RunId, Status};
use crate::journal::{AgentOutcome, Entry, Event, Planned, Synthesized, Trimmed, views};
use crate::scoring;

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

/// Scores every round again under `policy`; `None` if no round of the run was scored.
///
/// `ancestors` are the journals of the runs that this run continues, the nearest first.
pub fn replay(
    entries: &[Entry],
    ancestors: &[(RunId, Vec<Entry>)],
    policy: &Policy,
) -> Option<Replayed> {
    let accepted = views::accepted(entries)?;
    let (message, mode) = (
        lineage(accepted, ancestors).full_text(),
        accepted.question.mode,
    );
    let mut tape = Tape::default();
    let mut recorded: Option<&Judgement> = None;
    let mut replayed: Option<Judgement> = None;
    let mut needs = vec![];
    for (at, entry) in entries.iter().enumerate() {
        match &entry.event {
            Event::Planned(planned) => tape.planned = Some(planned),
            Event::Trimmed(trimmed) => tape.trimmed = Some(trimmed),
            Event::AgentFinished(finished) => tape.take(finished.agent, &finished.outcome),
            Event::CrossChecked(checked)
                if policy.cross_check.covers(mode)
                    && checked.notes.iter().any(|note| note == TURNED_OFF) =>
            {
                let why = "under this policy the key claims are cross-checked".to_owned();
                needs.push(Need {
                    call: "cross-check".into(),
                    why,
                });
            }
            Event::Scored(scored) => {
                recorded = Some(&scored.judgement);
                let so_far = entries.get(..at).unwrap_or_default();
                tape.families = families(so_far, ancestors);
                let evidence =
                    Evidence::of(so_far.iter().map(|entry| &entry.event)).under(policy, mode);
                replayed = Some(tape.judge(&message, policy, &evidence));
                tape.first.get_or_insert_with(|| tape.latest.clone());
            }
            Event::RoundSkipped(skipped) if needs.is_empty() => {
                let (was, is) = (
                    tape.contested(recorded?),
                    tape.contested(replayed.as_ref()?),
                );
                // A round that was skipped for lack of time or money would be skipped again.
                if was.is_empty() {
                    needs.extend(is.into_iter().map(|agent| Need {
                        call: format!("r{}/{agent}", skipped.round),
                        why: "under this policy there is something left to settle".to_owned(),
                    }));
                }
            }
            Event::Synthesized(synthesized) => tape.synthesized = Some(synthesized),
            _ => {}
        }
    }
    let (recorded, replayed) = (recorded?, replayed?);
    let draft = tape.synthesized.and_then(|s| s.draft.as_ref());
    let confidence = settle(policy, &replayed, draft);
    let (was, is) = (shown(recorded), shown(&replayed));
    let only_question = out_of_reach(policy, &replayed);
    if draft.is_none() && !only_question {
        let why =
            "the threshold is within reach under this policy: a whole synthesis would be bought"
                .to_owned();
        needs.push(Need {
            call: "synthesis".into(),
            why,
        });
    } else if draft.is_some() && was != is {
        let why = format!(
            "the master would read {} instead of {}",
            listed(&is),
            listed(&was)
        );
        needs.push(Need {
            call: "synthesis".into(),
            why,
        });
    } else if draft.is_some() && only_question {
        let why = "no synthesis would be bought under this policy, only the question".to_owned();
        needs.push(Need {
            call: "question".into(),
            why,
        });
    }
    let gated = entries.iter().find_map(|e| {
        if let Event::Gated(gated) = &e.event {
            Some(gated)
        } else {
            None
        }
    });
    Some(Replayed {
        recorded: Verdict {
            scores: judged(recorded),
            confidence: gated.map(|gated| gated.confidence.clone()),
            gate: gated.map(|gated| gated.gate),
        },
        replayed: Verdict {
            scores: judged(&replayed),
            gate: Some(confidence.gate()),
            confidence: Some(confidence),
        },
        needs,
    })
}

/// The state of a run after the events read so far.
#[derive(Default)]
struct Tape<'a> {
    planned: Option<&'a Planned>,
    trimmed: Option<&'a Trimmed>,
    families: BTreeMap<Agent, String>,
    /// The outcomes of round 1, once a later round has begun.
    first: Option<BTreeMap<Agent, AgentOutcome>>,
    latest: BTreeMap<Agent, AgentOutcome>,
    synthesized: Option<&'a Synthesized>,
}

impl Tape<'_> {
    /// Stores an outcome. As in the rounds, a later failure does not replace an earlier report.
    fn take(&mut self, agent: Agent, outcome: &AgentOutcome) {
        let answered = matches!(outcome, AgentOutcome::Answered { .. });
        if answered || !matches!(self.latest.get(&agent), Some(AgentOutcome::Answered { .. })) {
            self.latest.insert(agent, outcome.clone());
        }
    }

    fn panel(&self) -> Vec<Agent> {
        self.trimmed
            .map(|trimmed| trimmed.agents.clone())
            .unwrap_or_default()
    }

    fn judge(&self, message: &str, policy: &Policy, evidence: &Evidence) -> Judgement {
        let panel = self.panel();
        let read = |outcomes| outputs(&panel, outcomes, &self.families);
        let panel = scoring::Panel {
            message,
            task_type: self.planned.map(|planned| planned.plan.task_type),
            demands: self.planned.map_or(&[], |planned| &planned.plan.demands),
            outputs: read(&self.latest),
            first_round: self.first.as_ref().map(read).unwrap_or_default(),
            cross_checks: &evidence.cross_checks,
            resolutions: &evidence.resolutions,
        };
        scoring::judge(&panel, &scoring::Policy::from(policy))
    }

    fn contested(&self, judgement: &Judgement) -> Vec<Agent> {
        open(judgement, &self.latest, &self.panel()).agents()
    }
}

/// Returns the model family of each agent's report, from this run or the nearest ancestor.
pub fn families(entries: &[Entry], ancestors: &[(RunId, Vec<Entry>)]) -> BTreeMap<Agent, String> {
    let mut families = BTreeMap::new();
    for entries in
        std::iter::once(entries).chain(ancestors.iter().map(|(_, entries)| entries.as_slice()))
    {
        for (agent, family) in families_of(entries.iter().map(|entry| &entry.event)) {
            families.entry(agent).or_insert(family);
        }
    }
    families
}

/// Returns the agents whose outputs the master reads, each with its status.
fn shown(judgement: &Judgement) -> Vec<(&str, Status)> {
    let kept = judgement
        .scores
        .iter()
        .filter(|score| score.status != Status::Discard);
    kept.map(|score| (score.agent.as_str(), score.status))
        .collect()
}

fn listed(shown: &[(&str, Status)]) -> String {
    let names: Vec<String> = shown
        .iter()
        .map(|(agent, status)| format!("{agent} ({})", status.as_str()))
        .collect();
    if names.is_empty() {
        "nothing".to_owned()
    } else {
        names.join(", ")
    }
}

fn judged(judgement: &Judgement) -> Vec<Judged> {
    let judged = |score: &crate::domain::Score| Judged {
        agent: score.agent.clone(),
        cred: score.cred,
        status: score.status,
    };
    judgement.scores.iter().map(judged).collect()
}
