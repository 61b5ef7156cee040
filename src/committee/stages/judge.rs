//! Scores the outputs of a round and records the judgement.

use std::sync::Arc;

use crate::committee::call_names::is_report;
use crate::committee::failure::Failure;
use crate::committee::stages::evidence::Evidence;
use crate::committee::stages::round_context::RoundContext;
use crate::config::Policy;
use crate::domain::{Agent, Judgement, Role};
use crate::journal::step::ScoreStep;
use crate::journal::{AgentFinished, AgentOutcome, CrossChecked, Scored, Transcript};
use crate::scoring;
use std::collections::BTreeMap;

/// What the scoring engine reads of a run.
pub struct ScoringInput<'a> {
    pub run: &'a Transcript<'a>,
    pub message: &'a str,
    pub families: &'a BTreeMap<Agent, String>,
    pub policy: &'a Policy,
}

impl ScoringInput<'_> {
    /// Scores the outputs of these agents with this evidence.
    pub fn judge(&self, panel: &[Agent], evidence: &Evidence) -> Judgement {
        let plan = self.run.planned.map(|planned| &planned.plan);
        let outputs = |finished: BTreeMap<Agent, _>| {
            let outputs = panel.iter().filter_map(|agent| {
                let family = self.families.get(agent).map(String::as_str);
                output(finished.get(agent).copied()?, family)
            });
            outputs.collect()
        };
        let panel = scoring::Panel {
            message: self.message,
            task_type: plan.map(|plan| plan.task_type),
            demands: plan.map_or(&[], |plan| &plan.demands),
            outputs: outputs(self.run.standing()),
            first_round: self.run.first_round().map(outputs).unwrap_or_default(),
            cross_checks: &evidence.cross_checks,
            resolutions: &evidence.resolutions,
        };
        Judgement {
            rests_on_unseen: self.run.rests_on_unseen(),
            ..scoring::judge(&panel, &scoring::Policy::from(self.policy))
        }
    }
}

/// Returns the scoring input for an outcome; `None` for an agent that failed.
fn output<'a>(finished: &'a AgentFinished, family: Option<&'a str>) -> Option<scoring::Output<'a>> {
    let AgentOutcome::Answered {
        report,
        obtained,
        truncated,
        ..
    } = &finished.outcome
    else {
        return None;
    };
    let agent = finished.agent.into_str();
    Some(scoring::Output {
        agent,
        report,
        obtained: *obtained,
        truncated: *truncated,
        role_matches: report.agent == agent,
        family,
    })
}

/// Returns the model family behind each agent's latest report. The family is that of the call that
/// was answered, by the role's own model or a fallback. Decisions on contested claims are no
/// reports.
pub fn families_of(transcript: &Transcript<'_>) -> BTreeMap<Agent, String> {
    let answered = transcript.calls.iter().filter(|call| call.is_answered());
    let reports = answered.filter_map(|call| match call.sent.role {
        Role::Agent(agent) if is_report(&call.sent.call, agent) => {
            Some((agent, scoring::family(&call.sent.model)))
        }
        _ => None,
    });
    reports.collect()
}

/// Scores the outputs up to this round, once.
pub(super) async fn judge(
    context: &RoundContext<'_>,
    round: u8,
) -> Result<Arc<Judgement>, Failure> {
    let run = context.run;
    let score = async {
        let judge = || judgement(context, None);
        let judgement = run
            .compute_text(&format!("scoring round {round}"), judge)
            .await?;
        Ok::<_, Failure>(Arc::new(Scored {
            round,
            judgement: Arc::new(judgement),
        }))
    };
    let scored = run.step(ScoreStep { round }, score).await?;
    Ok(Arc::clone(&scored.judgement))
}

/// Scores the outputs so far, with a cross-check that the journal does not have yet.
pub(super) fn judgement(context: &RoundContext<'_>, check: Option<&CrossChecked>) -> Judgement {
    let RoundContext { deps, trimmed, .. } = context;
    // A reused report counts as written by the family of the role's current model.
    let current = trimmed.agents.iter().filter_map(|agent| {
        let model = deps.role(Role::Agent(*agent))?;
        Some((*agent, scoring::family(&model.shown())))
    });
    let mut families: BTreeMap<Agent, String> = current.collect();
    let events = context.run.events();
    let run = Transcript::of(&events);
    families.extend(families_of(&run));
    let input = ScoringInput {
        run: &run,
        message: &context.request.full_text(),
        families: &families,
        policy: &deps.policy,
    };
    let mut evidence = Evidence::of(&run);
    check.iter().for_each(|check| evidence.take(check));
    input.judge(&trimmed.agents, &evidence)
}
