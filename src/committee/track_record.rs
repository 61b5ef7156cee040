//! Statistics of models and of confidence over many journals. It makes no calls.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::committee::call_names::{is_cross_check, is_report};
use crate::committee::replayed::families;
use crate::committee::request_context::lineage;
use crate::committee::stages::confidence::settle;
use crate::committee::stages::evidence::Evidence;
use crate::committee::stages::judge::ScoringInput;
use crate::config::Policy;
use crate::domain::{Agent, Gate, Outcome, Role, RunId, Status, Usd};
use crate::journal::{
    AgentFinished, AgentOutcome, CallSent, CrossChecked, Ending, Entry, Transcript,
};

/// Bins of the reliability diagram over [0, 1].
const BINS: usize = 10;

/// The role of cross-checks in the record, for any role's model.
const CROSS_CHECK: &str = "cross-check";

/// How an output was obtained that was not valid.
const FAILED: &str = "failed";

/// The counts of a member's outcomes, and their cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    pub calls: u64,
    pub failed_calls: u64,
    /// Expected outputs: each agent's part in each round, or the master's plans and syntheses.
    pub outputs: u64,
    /// How the typed values of those outputs were obtained: clean, extracted, repaired, text,
    /// failed.
    pub obtained: BTreeMap<String, u64>,
    /// Counts over the last round of each run.
    pub valid: u64,
    pub quarantined: u64,
    pub discarded: u64,
    #[serde(rename = "costUsd", serialize_with = "dollars")]
    pub cost: Usd,
    /// Latencies of answered calls, in milliseconds.
    #[serde(skip)]
    latencies: Vec<u64>,
    /// The number of judged runs ([`TrackRecord::judged`]) in which the member took part, and in how
    /// many of them the reply would have been the same without it. Same means the same gate
    /// decision, the same leading answer, and nothing of the member's output used.
    pub replies: u64,
    pub influence: u64,
}

impl Member {
    /// Returns the share of expected outputs that were valid JSON, at once or after repair; `None`
    /// without any.
    pub fn valid_json(&self) -> Option<f64> {
        let got: u64 = ["clean", "extracted", "repaired"]
            .iter()
            .filter_map(|how| self.obtained.get(*how))
            .sum();
        let text = self.obtained.get("text").copied().unwrap_or(0);
        share(got, self.outputs.saturating_sub(text))
    }

    /// Returns the latency in milliseconds at the quantile, by nearest rank; `None` without any.
    pub fn latency_ms(&self, quantile: f64) -> Option<u64> {
        let rank = (quantile * self.latencies.len() as f64).ceil() as usize;
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        sorted.get(rank.saturating_sub(1)).copied()
    }

    pub fn dispensable_share(&self) -> Option<f64> {
        share(self.influence, self.replies)
    }
}

/// A bin of the reliability diagram: the replies whose c_final is in it, and how many of them
/// readers approved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bin {
    pub replies: u64,
    pub positive: u64,
    pub c_final_sum: f64,
}

/// Statistics over runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TrackRecord {
    pub runs: u64,
    /// The number of runs with a reply that were judged again without each of their agents.
    pub judged: u64,
    /// The number of runs by outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// By role, provider and model.
    #[serde(serialize_with = "members")]
    pub members: BTreeMap<(String, String, String), Member>,
    /// Replies with feedback, by their c_final in tenths.
    pub reliability: [Bin; BINS],
}

impl TrackRecord {
    /// Adds a run to all statistics but those of [`TrackRecord::judge`].
    pub fn add(&mut self, run: &Transcript<'_>) {
        let Some(finished) = run.finished else {
            return;
        };
        self.runs += 1;
        let outcome = match &finished.ending {
            Ending::Replied { reply } => reply.outcome.into_str(),
            Ending::Failed { cause, .. } => cause.into_str(),
            Ending::Cancelled => "cancelled",
            Ending::Acted { outcome, .. } => outcome.into_str(),
        };
        *self.outcomes.entry(outcome.to_owned()).or_default() += 1;
        self.add_calls(run);
        self.add_outputs(run);
        self.add_statuses(run);
        if let Ending::Replied { reply } = &finished.ending {
            let said = run.feedback.last();
            if let Some(said) = said.filter(|_| reply.outcome == Outcome::Answered) {
                let c_final = reply.meta.c_final;
                let at = ((c_final * BINS as f64) as usize).min(BINS - 1);
                if let Some(bin) = self.reliability.get_mut(at) {
                    bin.replies += 1;
                    bin.positive += u64::from(said.positive);
                    bin.c_final_sum += c_final;
                }
            }
        }
    }

    /// Returns the expected calibration error: the distance between mean c_final and the share of
    /// approval, weighted over the bins. `None` without feedback. (Naeini, Cooper and Hauskrecht
    /// 2015.)
    pub fn ece(&self) -> Option<f64> {
        let all: u64 = self.reliability.iter().map(|bin| bin.replies).sum();
        let distance: f64 = self
            .reliability
            .iter()
            .map(|bin| (bin.c_final_sum - bin.positive as f64).abs())
            .sum();
        (all > 0).then(|| distance / all as f64)
    }

    fn add_calls(&mut self, run: &Transcript<'_>) {
        for call in &run.calls {
            let role = if is_cross_check(&call.sent.call) {
                CROSS_CHECK
            } else {
                call.sent.role.as_str()
            };
            let member = self.member(role, &call.sent.provider, &call.sent.model);
            member.calls += 1;
            let Some(settled) = call.settled else {
                continue;
            };
            member.cost += settled.cost;
            if call.is_answered() {
                member.latencies.push(settled.latency_ms);
            } else {
                member.failed_calls += 1;
            }
        }
    }

    fn add_outputs(&mut self, run: &Transcript<'_>) {
        for finished in run
            .outcomes
            .iter()
            .filter(|finished| finished.reused_from.is_none())
        {
            let (how, step) = match (&finished.outcome, &finished.resolved) {
                (AgentOutcome::Answered { .. }, Some(resolved)) => {
                    (resolved.obtained.into_str(), "resolve/")
                }
                (AgentOutcome::Answered { obtained, .. }, None) => (obtained.into_str(), ""),
                (AgentOutcome::Failed { .. }, _) => (FAILED, ""),
            };
            let AgentFinished { round, agent, .. } = finished;
            self.add_output(
                run,
                agent.into_str(),
                &format!("r{round}/{step}{agent}"),
                how,
            );
        }
        let master = Role::Master.as_str();
        if let Some(planned) = run.planned {
            self.add_output(run, master, "plan", planned.obtained.as_str());
        }
        if let Some(checked) = run.cross_checked {
            self.add_cross_check(run, checked);
        }
        if let Some(synthesized) = run.synthesized {
            let step = if synthesized.draft.is_some() {
                "synthesis"
            } else {
                "question"
            };
            self.add_output(run, master, step, synthesized.obtained.as_str());
        }
    }

    /// Adds an output of a step. Without a call there was none to judge: the plan was reused, or
    /// there was no money.
    fn add_output(&mut self, run: &Transcript<'_>, role: &str, step: &str, how: &str) {
        let of_step = |call: &str| {
            call.strip_prefix(step)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['#', '/']))
        };
        let Some(call) = run.last_call(of_step) else {
            return;
        };
        let how = if matches!(how, "clean" | "extracted" | "repaired" | "text") {
            how
        } else {
            FAILED
        };
        let member = self.member(role, &call.provider, &call.model);
        member.outputs += 1;
        *member.obtained.entry(how.to_owned()).or_default() += 1;
    }

    /// Adds the cross-check. A pass that was called and is not among the results counts as failed.
    fn add_cross_check(&mut self, run: &Transcript<'_>, checked: &CrossChecked) {
        for reversed in [false, true] {
            let step = if reversed {
                "cross-check/reversed"
            } else {
                "cross-check"
            };
            let of_pass = |call: &str| {
                is_cross_check(call)
                    && call.starts_with(step)
                    && (reversed || !call.starts_with("cross-check/reversed"))
            };
            let Some(call) = run.last_call(of_pass) else {
                continue;
            };
            let pass = checked.passes.iter().find(|pass| pass.reversed == reversed);
            let how = pass.map_or(FAILED, |pass| pass.obtained.into_str());
            let member = self.member(CROSS_CHECK, &call.provider, &call.model);
            member.outputs += 1;
            *member.obtained.entry(how.to_owned()).or_default() += 1;
        }
    }

    fn add_statuses(&mut self, run: &Transcript<'_>) {
        let Some(judgement) = run.judgement() else {
            return;
        };
        for score in &judgement.scores {
            let Ok(agent) = score.agent.parse::<Agent>() else {
                continue;
            };
            let Some(call) = report_call(run, agent) else {
                continue;
            };
            let member = self.member(agent.into_str(), &call.provider, &call.model);
            match score.status {
                Status::Valid => member.valid += 1,
                Status::Quarantine => member.quarantined += 1,
                Status::Discard => member.discarded += 1,
            }
        }
    }

    /// Judges a run with a reply again without each agent of its panel. Counts for which agents the
    /// reply would have been the same. `ancestors` are the journals of the runs that it continues,
    /// the nearest first. This takes much longer than [`TrackRecord::add`].
    pub fn judge(
        &mut self,
        run: &Transcript<'_>,
        ancestors: &[(RunId, Vec<Entry>)],
        policy: &Policy,
    ) {
        let replied = run
            .finished
            .is_some_and(|finished| matches!(finished.ending, Ending::Replied { .. }));
        let Some(accepted) = run.accepted.filter(|_| replied) else {
            return;
        };
        self.judged += 1;
        let message = lineage(accepted, run.planned, run.ancestors(ancestors)).full_text();
        let latest = run.standing();
        let input = ScoringInput {
            run,
            message: &message,
            families: &families(run, ancestors),
            policy,
        };
        let draft = run.draft();
        let evidence = Evidence::of(run);
        let reply_of = |panel: &[Agent]| -> (Gate, Option<String>) {
            let absent = latest.keys().filter(|agent| !panel.contains(agent));
            let evidence = absent.fold(evidence.clone(), |evidence, agent| {
                evidence.without(agent.into_str())
            });
            let judgement = input.judge(panel, &evidence);
            let leading = judgement.answer_groups.first();
            (
                settle(policy, &judgement, draft).gate(true),
                leading.map(|group| group.answer.clone()),
            )
        };
        let panel = run.panel();
        let whole = reply_of(panel);
        let answered = |agent: &&Agent| {
            latest
                .get(agent)
                .is_some_and(|finished| finished.outcome.is_answered())
        };
        for agent in panel.iter().filter(answered) {
            let Some(call) = report_call(run, *agent) else {
                continue;
            };
            let is_own = |id: &String| id.split(':').next() == Some(agent.into_str());
            let used = draft.is_some_and(|draft| draft.units_used.iter().any(is_own));
            let others = panel.iter().copied().filter(|other| other != agent);
            let others: Vec<Agent> = others.collect();
            let same = !used && reply_of(&others) == whole;
            let agent = *agent;
            let member = self.member(agent.into_str(), &call.provider, &call.model);
            member.replies += 1;
            member.influence += u64::from(same);
        }
    }

    fn member(&mut self, role: &str, provider: &str, model: &str) -> &mut Member {
        self.members
            .entry((role.to_owned(), provider.to_owned(), model.to_owned()))
            .or_default()
    }
}

/// Returns the last call for the agent's report in the run; `None` if the report was reused from an
/// earlier run.
fn report_call<'a>(run: &Transcript<'a>, agent: Agent) -> Option<&'a CallSent> {
    run.last_call(|call| is_report(call, agent))
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn dollars<S: serde::Serializer>(amount: &Usd, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(amount.dollars())
}

/// Serializes the members as a list, because JSON has no keys of three parts. Each has its derived
/// figures.
fn members<S: serde::Serializer>(
    members: &BTreeMap<(String, String, String), Member>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(members.iter().map(|((role, provider, model), member)| Row {
        role,
        provider,
        model,
        valid_json: member.valid_json(),
        latency_ms_p50: member.latency_ms(0.5),
        latency_ms_p95: member.latency_ms(0.95),
        dispensable_share: member.dispensable_share(),
        member,
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    role: &'a str,
    provider: &'a str,
    model: &'a str,
    valid_json: Option<f64>,
    latency_ms_p50: Option<u64>,
    latency_ms_p95: Option<u64>,
    dispensable_share: Option<f64>,
    #[serde(flatten)]
    member: &'a Member,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_by_nearest_rank_and_shares_need_something_to_share() {
        let member = Member {
            latencies: vec![10, 20, 30, 40],
            ..Member::default()
        };
        assert_eq!(
            (member.latency_ms(0.5), member.latency_ms(0.95)),
            (Some(20), Some(40))
        );
        assert_eq!(
            (
                Member::default().latency_ms(0.5),
                Member::default().valid_json()
            ),
            (None, None)
        );
        let text = Member {
            outputs: 3,
            obtained: BTreeMap::from([("text".into(), 3)]),
            ..Member::default()
        };
        assert_eq!(text.valid_json(), None, "plain text is not bad JSON");
        let mixed = Member {
            outputs: 4,
            obtained: BTreeMap::from([
                ("clean".into(), 2),
                ("repaired".into(), 1),
                ("failed".into(), 1),
            ]),
            ..Member::default()
        };
        assert_eq!(mixed.valid_json(), Some(0.75));
    }

    #[test]
    fn the_calibration_error_weighs_the_bins_by_their_replies() {
        let mut record = TrackRecord::default();
        assert_eq!(record.ece(), None);
        record.reliability[9] = Bin {
            replies: 3,
            positive: 3,
            c_final_sum: 2.7,
        };
        record.reliability[7] = Bin {
            replies: 1,
            positive: 0,
            c_final_sum: 0.7,
        };
        assert!((record.ece().unwrap() - 0.25).abs() < 1e-12);
    }
}
