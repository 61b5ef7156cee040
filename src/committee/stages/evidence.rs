//! The evidence in a run's journal beside the reports: cross-checks and resolutions. Only those
//! about the agents' latest reports are kept.

use crate::committee::stages::cross_check::TURNED_OFF;
use crate::committee::stages::verdicts::merged;
use crate::config::Policy;
use crate::domain::{
    Agent, AgentName, AgentReport, CrossCheck, Decision, Holds, Mode, ReportRef, Resolution,
};
use crate::journal::{CrossChecked, Transcript};
use crate::text::excerpt;

/// The most findings that the master is shown.
const MAX_FINDINGS: usize = 10;

/// The findings, in the order in which they were made.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    pub cross_checks: Vec<CrossCheck>,
    pub resolutions: Vec<Resolution>,
    /// The reason for no cross-check; `None` if there is one.
    pub why_unchecked: Option<String>,
}

impl Evidence {
    /// Collects the evidence of a run. When an agent submits a new report, the findings about the
    /// claims of its earlier report are removed.
    pub fn of(transcript: &Transcript<'_>) -> Self {
        let mut evidence = Self {
            why_unchecked: Some("the run has none".to_owned()),
            ..Self::default()
        };
        if let Some(checked) = transcript.cross_checked {
            evidence.take(checked);
        }
        // The cross-check comes before every later round.
        let later = transcript.outcomes.iter().filter(|it| it.round > 1);
        for finished in later.filter(|it| it.outcome.is_answered()) {
            let Some(resolved) = &finished.resolved else {
                evidence.remove_agent(finished.agent);
                continue;
            };
            for resolution in &resolved.resolutions {
                let known = &mut evidence.resolutions;
                known.retain(|known| known.claim != resolution.claim);
                known.push(resolution.clone());
            }
        }
        evidence
    }

    /// True if every cross-check found that an agent's report is no answer: it declines, lacks what
    /// it needs, or steers.
    pub fn is_no_answer(&self, agent: Agent) -> bool {
        let names = |check: &CrossCheck| check.conduct.iter().any(|it| it.agent == agent);
        !self.cross_checks.is_empty() && self.cross_checks.iter().all(names)
    }

    /// Takes a cross-check in the place of an earlier one.
    pub(super) fn take(&mut self, checked: &CrossChecked) {
        self.cross_checks = checked.passes.iter().map(|it| it.found.clone()).collect();
        let is_empty = checked.passes.is_empty();
        self.why_unchecked = is_empty.then(|| checked.notes.join("; "));
    }

    /// Removes the findings about an agent's report, but not that it was no answer: no cross-check
    /// reads the new report, so nothing shows that it is one.
    fn remove_agent(&mut self, agent: Agent) {
        let other = |it: &ReportRef| it.agent != agent;
        for check in &mut self.cross_checks {
            check.claims.retain(|verdict| verdict.claim.agent != agent);
            for verdict in &mut check.claims {
                verdict.supported_by.retain(other);
                verdict.contradicted_by.retain(other);
            }
            let answers = check.same_answers.iter_mut();
            let parts = check.parts.iter_mut().map(|part| &mut part.answered_by);
            answers.chain(parts).for_each(|names| {
                names.retain(|name| *name != agent);
            });
            check.same_answers.retain(|group| group.len() > 1);
        }
        let resolutions = &mut self.resolutions;
        resolutions.retain(|resolution| resolution.claim.agent != agent);
    }

    /// Returns the evidence, without cross-checks if the policy turns them off for the mode.
    pub fn applicable(mut self, policy: &Policy, mode: Mode) -> Self {
        if !policy.cross_check.covers(mode) {
            self.cross_checks.clear();
            self.why_unchecked = Some(TURNED_OFF.to_owned());
        }
        self
    }

    /// Returns what was found about the claims of some reports, and what their agents conceded, one
    /// line each: contradictions first.
    pub fn findings(&self, reports: &[(Agent, &AgentReport)]) -> Vec<String> {
        let is_shown = |agent: &AgentName| reports.iter().any(|(known, _)| agent == known);
        let resolutions = self.resolutions.iter();
        let conceded = resolutions
            .filter(|it| is_shown(&it.claim.agent))
            .map(|it| {
                let did = match it.decision {
                    Decision::Concede => "gave up",
                    Decision::Keep => "keeps",
                };
                let why = why(&it.evidence, "without evidence");
                let (claim, by) = (&it.claim, it.by.into_str());
                format!("{} {did} {claim}, by {by}: {why}", claim.agent)
            });
        let named = |all: &[ReportRef], what: &str| {
            let shown = all.iter().filter(|it| is_shown(&it.agent));
            let names: Vec<String> = shown.map(ToString::to_string).collect();
            if names.is_empty() {
                String::new()
            } else {
                format!("; {what} {}", names.join(", "))
            }
        };
        let mut verdicts = merged(self.cross_checks.iter().flat_map(|check| &check.claims));
        verdicts.retain(|verdict| is_shown(&verdict.claim.agent));
        verdicts.sort_by_key(|it| {
            let is_unopposed = it.contradicted_by.is_empty() && it.holds != Holds::No;
            (is_unopposed, it.holds == Holds::Yes)
        });
        let found = verdicts.iter().map(|it| {
            let why = why(&it.evidence, "no evidence");
            let holds = match it.holds {
                Holds::Yes => "holds",
                Holds::No => "does not hold",
                Holds::Unknown => "is undecided",
            };
            let contradicted = named(&it.contradicted_by, "contradicted by");
            let supported = named(&it.supported_by, "supported by");
            let (claim, by) = (&it.claim, it.by.into_str());
            format!("{claim} {holds}, by {by}: {why}{contradicted}{supported}")
        });
        conceded.chain(found).take(MAX_FINDINGS).collect()
    }
}

fn why(evidence: &str, none: &str) -> String {
    match excerpt(evidence, 200) {
        evidence if evidence.is_empty() => none.to_owned(),
        evidence => evidence,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::{Basis, ClaimVerdict, Obtained, Role};
    use crate::journal::{AgentFinished, AgentOutcome, CheckPass, CheckScope, Event, Resolved};

    fn verdict(
        claim: &str,
        holds: Holds,
        supported: &[&str],
        contradicted: &[&str],
    ) -> ClaimVerdict {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned().into()).collect();
        ClaimVerdict {
            claim: claim.parse().unwrap(),
            supported_by: owned(supported),
            contradicted_by: owned(contradicted),
            holds,
            by: Basis::Calculation,
            evidence: "31 + 30 = 61".into(),
        }
    }

    fn checked(claims: &[ClaimVerdict]) -> Event {
        let found = CrossCheck {
            claims: claims.to_vec(),
            same_answers: vec![vec![Agent::Solver.into(), Agent::Critic.into()]],
            ..CrossCheck::default()
        };
        let pass = CheckPass {
            role: Role::Agent(Agent::Verifier),
            model: "m".into(),
            reversed: false,
            scope: CheckScope::Key,
            obtained: Obtained::Clean,
            found,
            notes: vec![],
        };
        Event::CrossChecked(Arc::new(CrossChecked {
            passes: vec![pass],
            notes: vec![],
        }))
    }

    #[test]
    fn verdicts_on_a_report_that_was_handed_in_anew_no_longer_count() {
        let claims = [
            verdict("solver:u1", Holds::Yes, &["critic:u1", "verifier"], &[]),
            verdict("critic:u1", Holds::Yes, &["solver"], &[]),
        ];
        let evidence = |resolved| {
            let outcome = AgentOutcome::Answered {
                report: AgentReport::default().into(),
                obtained: Obtained::Clean,
                truncated: false,
                notes: vec![],
                tokens: 1,
            };
            let finished = Event::AgentFinished(Arc::new(AgentFinished {
                round: 2,
                agent: Agent::Critic,
                outcome,
                reused_from: None,
                resolved,
            }));
            Evidence::of(&Transcript::of(&[checked(&claims), finished]))
        };
        let anew = evidence(None);
        let left = verdict("solver:u1", Holds::Yes, &["verifier"], &[]);
        assert_eq!(anew.cross_checks[0].claims, [left]);
        assert!(anew.cross_checks[0].same_answers.is_empty() && anew.why_unchecked.is_none());
        let kept = evidence(Some(Resolved {
            obtained: Obtained::Clean,
            resolutions: vec![],
            notes: vec![],
        }));
        assert_eq!(kept.cross_checks[0].claims, claims);
    }

    #[test]
    fn the_master_reads_contradictions_first_and_nothing_of_outputs_that_it_is_not_shown() {
        let events = [checked(&[
            verdict("solver:u1", Holds::Yes, &["verifier"], &[]),
            verdict("solver:u2", Holds::No, &[], &["critic:u2", "verifier:u2"]),
            verdict("critic:u1", Holds::Yes, &["solver"], &[]),
        ])];
        let empty = AgentReport::default();
        let reports = [Agent::Solver, Agent::Verifier].map(|agent| (agent, &empty));
        let told = Evidence::of(&Transcript::of(&events)).findings(&reports);
        assert_eq!(
            told,
            [
                "solver:u2 does not hold, by calculation: 31 + 30 = 61; contradicted by verifier:u2",
                "solver:u1 holds, by calculation: 31 + 30 = 61; supported by verifier",
            ]
        );
    }
}
