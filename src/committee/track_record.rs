//! Statistics of models and of confidence over many journals. It makes no calls.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::domain::{CallStep, Obtained, Outcome, Role, Status, Usd};
use crate::journal::{
    AgentFinished, AgentOutcome, CallSent, Ending, PlanSource, SynthesisSource, Transcript,
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
    /// Outputs that a model gave: each agent's part in each round, or the master's plans and
    /// syntheses.
    pub outputs: u64,
    /// How the typed values of those outputs were obtained: clean, extracted, repaired, text,
    /// failed.
    pub obtained: BTreeMap<&'static str, u64>,
    /// Counts over the last round of each run.
    pub valid: u64,
    pub quarantined: u64,
    pub discarded: u64,
    #[serde(rename = "costUsd", serialize_with = "dollars")]
    pub cost: Usd,
    /// Latencies of answered calls, in milliseconds.
    #[serde(skip)]
    latencies: Vec<u64>,
}

impl Member {
    /// Returns the share of outputs that were valid JSON, at once or after repair; `None`
    /// without any.
    pub fn valid_json(&self) -> Option<f64> {
        let count = |how: Obtained| self.obtained.get(how.into_str()).copied().unwrap_or(0);
        let json = [Obtained::Clean, Obtained::Extracted, Obtained::Repaired];
        let got: u64 = json.map(count).iter().sum();
        let of = self.outputs.saturating_sub(count(Obtained::Text));
        (of > 0).then(|| got as f64 / of as f64)
    }

    /// Returns the latency in milliseconds at the quantile, by nearest rank; `None` without any.
    pub fn latency_ms(&self, quantile: f64) -> Option<u64> {
        let rank = (quantile * self.latencies.len() as f64).ceil() as usize;
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        sorted.get(rank.saturating_sub(1)).copied()
    }
}

/// What the counts of a member are grouped by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct MemberKey {
    /// The role, or "cross-check" for the cross-checks of any role's model.
    pub role: &'static str,
    pub provider: String,
    pub model: String,
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
    /// The number of runs by outcome.
    pub outcomes: BTreeMap<String, u64>,
    #[serde(serialize_with = "members")]
    pub members: BTreeMap<MemberKey, Member>,
    /// Replies with feedback, by their c_final in tenths.
    pub reliability: [Bin; BINS],
}

impl TrackRecord {
    /// Adds a run.
    pub fn add(&mut self, run: &Transcript<'_>) {
        let Some(finished) = run.finished else {
            return;
        };
        self.runs += 1;
        let outcome = finished.ending.label().to_owned();
        *self.outcomes.entry(outcome).or_default() += 1;
        self.add_calls(run);
        self.add_outputs(run);
        self.add_statuses(run);
        if let Ending::Replied { reply } = &finished.ending {
            let said = run.feedback.last();
            let c_final = reply.meta.c_final;
            let at = ((c_final * BINS as f64) as usize).min(BINS - 1);
            if let Some(said) = said.filter(|_| reply.outcome == Outcome::Answered)
                && let Some(bin) = self.reliability.get_mut(at)
            {
                bin.replies += 1;
                bin.positive += u64::from(said.positive);
                bin.c_final_sum += c_final;
            }
        }
    }

    /// Returns the expected calibration error: the distance between mean c_final and the share of
    /// approval, weighted over the bins. `None` without feedback. (Naeini, Cooper and Hauskrecht
    /// 2015.)
    pub fn ece(&self) -> Option<f64> {
        let all: u64 = self.reliability.iter().map(|bin| bin.replies).sum();
        let distance = |bin: &Bin| (bin.c_final_sum - bin.positive as f64).abs();
        let distance: f64 = self.reliability.iter().map(distance).sum();
        (all > 0).then(|| distance / all as f64)
    }

    fn add_calls(&mut self, run: &Transcript<'_>) {
        for call in &run.calls {
            let role = if call.sent.is_cross_check() {
                CROSS_CHECK
            } else {
                call.sent.role.as_str()
            };
            let member = self.member(role, call.sent);
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
        let outcomes = run.outcomes.iter();
        for finished in outcomes.filter(|it| it.reused_from.is_none()) {
            let AgentFinished { round, agent, .. } = **finished;
            let report = CallStep::Report { round, agent };
            let (how, step) = match (&finished.outcome, &finished.resolved) {
                (AgentOutcome::Answered { .. }, Some(resolved)) => {
                    (Some(resolved.obtained), CallStep::Resolve { round, agent })
                }
                (AgentOutcome::Answered { obtained, .. }, None) => (Some(*obtained), report),
                (AgentOutcome::Failed { .. }, _) => (None, report),
            };
            self.add_output(agent.into_str(), last_of(run, &[step]), how);
        }
        let master = Role::Master.as_str();
        if let Some(planned) = run.planned {
            let how = match planned.obtained {
                PlanSource::Model(obtained) => Some(obtained),
                PlanSource::Reused | PlanSource::Hints => None,
            };
            self.add_output(master, last_of(run, &[CallStep::Plan]), how);
        }
        if let Some(synthesized) = run.synthesized {
            let steps = match synthesized.draft {
                Some(_) => &[CallStep::Synthesis, CallStep::SynthesisRest][..],
                None => &[CallStep::Question],
            };
            let how = match synthesized.obtained {
                SynthesisSource::Model(obtained) => Some(obtained),
                _ => None,
            };
            self.add_output(master, last_of(run, steps), how);
        }
        // A pass that was answered and is not among the results counts as failed.
        let passes = run.cross_checked.map(|checked| &checked.passes);
        for (passes, reversed) in passes.into_iter().flat_map(|it| [(it, false), (it, true)]) {
            let pass = passes.iter().find(|pass| pass.reversed == reversed);
            let call = run.last_answered(|call| {
                matches!(call.step, CallStep::CrossCheck { reversed: own, .. } if own == reversed)
            });
            self.add_output(CROSS_CHECK, call, pass.map(|pass| pass.obtained));
        }
    }

    /// Adds the output of a step, given its last answered call. Without one there was no output to
    /// judge: the plan was reused, there was no money, or the provider failed.
    fn add_output(&mut self, role: &'static str, call: Option<&CallSent>, how: Option<Obtained>) {
        let Some(call) = call else {
            return;
        };
        let member = self.member(role, call);
        member.outputs += 1;
        let how = how.map_or(FAILED, |how| how.into_str());
        *member.obtained.entry(how).or_default() += 1;
    }

    fn add_statuses(&mut self, run: &Transcript<'_>) {
        let judgement = run.judgement();
        for score in judgement.into_iter().flat_map(|it| &it.scores) {
            let Some(agent) = score.agent.agent() else {
                continue;
            };
            // A report that was reused from an earlier run has no call.
            let Some(call) = run.last_answered(|call| call.step.is_report_of(agent)) else {
                continue;
            };
            let member = self.member(agent.into_str(), call);
            match score.status {
                Status::Valid => member.valid += 1,
                Status::Quarantine => member.quarantined += 1,
                Status::Discard => member.discarded += 1,
            }
        }
    }

    fn member(&mut self, role: &'static str, call: &CallSent) -> &mut Member {
        let key = MemberKey {
            role,
            provider: call.provider.clone(),
            model: call.model.clone(),
        };
        self.members.entry(key).or_default()
    }
}

/// Returns the last call of these steps that a model answered.
fn last_of<'a>(run: &Transcript<'a>, steps: &[CallStep]) -> Option<&'a CallSent> {
    run.last_answered(|call| steps.contains(&call.step))
}

fn dollars<S: serde::Serializer>(amount: &Usd, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(amount.dollars())
}

/// Serializes the members as a list, because a JSON object has only texts as keys. Each has its derived
/// figures.
fn members<S: serde::Serializer>(
    members: &BTreeMap<MemberKey, Member>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(members.iter().map(|(key, member)| Row {
        key,
        valid_json: member.valid_json(),
        latency_ms_p50: member.latency_ms(0.5),
        latency_ms_p95: member.latency_ms(0.95),
        member,
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    #[serde(flatten)]
    key: &'a MemberKey,
    valid_json: Option<f64>,
    latency_ms_p50: Option<u64>,
    latency_ms_p95: Option<u64>,
    #[serde(flatten)]
    member: &'a Member,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_by_nearest_rank_and_shares_need_something_to_share() {
        let member = |outputs, obtained: &[(Obtained, u64)]| Member {
            outputs,
            obtained: obtained
                .iter()
                .map(|(how, n)| (how.into_str(), *n))
                .collect(),
            latencies: vec![10, 20, 30, 40],
            ..Member::default()
        };
        let quantiles = [0.5, 0.95].map(|quantile| member(0, &[]).latency_ms(quantile));
        assert_eq!(quantiles, [Some(20), Some(40)]);
        assert_eq!(Member::default().latency_ms(0.5), None);
        assert_eq!(member(0, &[]).valid_json(), None);
        // Plain text is not bad JSON.
        assert_eq!(member(3, &[(Obtained::Text, 3)]).valid_json(), None);
        // The fourth has failed.
        let mixed = member(4, &[(Obtained::Clean, 2), (Obtained::Repaired, 1)]);
        assert_eq!(mixed.valid_json(), Some(0.75));
    }

    #[test]
    fn the_calibration_error_weighs_the_bins_by_their_replies() {
        let mut record = TrackRecord::default();
        assert_eq!(record.ece(), None);
        for (at, replies, positive, c_final_sum) in [(9, 3, 3, 2.7), (7, 1, 0, 0.7)] {
            record.reliability[at] = Bin {
                replies,
                positive,
                c_final_sum,
            };
        }
        assert!((record.ece().unwrap() - 0.25).abs() < 1e-12);
    }
}
