//! Scores the outputs of a round and records the judgement.

use crate::committee::call_names::is_report;
use crate::committee::failure::Failure;
use crate::committee::stages::evidence::Evidence;
use crate::committee::stages::round_context::RoundContext;
use crate::domain::{Agent, Judgement, Role};
use crate::journal::step::ScoreStep;
use crate::journal::{AgentFinished, AgentOutcome, Scored, Transcript};
use crate::scoring;
use std::collections::BTreeMap;

/// The agents' outcomes in round 1 and the latest ones. `first` is `None` while both are the same.
pub(super) struct Answers<'a> {
    pub first: Option<&'a BTreeMap<Agent, AgentOutcome>>,
    pub latest: &'a BTreeMap<Agent, AgentOutcome>,
}

/// Returns the outcomes alone.
pub fn outcomes(finished: BTreeMap<Agent, &AgentFinished>) -> BTreeMap<Agent, AgentOutcome> {
    let outcome = |(agent, finished): (Agent, &AgentFinished)| (agent, finished.outcome.clone());
    finished.into_iter().map(outcome).collect()
}

/// Returns the panel's outputs as input of the scoring engine.
pub fn outputs<'a>(
    panel: &[Agent],
    outcomes: &'a BTreeMap<Agent, AgentOutcome>,
    families: &'a BTreeMap<Agent, String>,
) -> Vec<scoring::Output<'a>> {
    let read = |agent: &Agent| {
        output(
            *agent,
            outcomes.get(agent)?,
            families.get(agent).map(String::as_str),
        )
    };
    panel.iter().filter_map(read).collect()
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

pub(super) async fn judge(
    context: &RoundContext<'_>,
    answers: &Answers<'_>,
    round: u8,
) -> Result<Judgement, Failure> {
    let run = context.run;
    let score = async {
        let judge = || judgement(context, answers);
        let judgement = run
            .compute(&format!("scoring round {round}"), judge)
            .await?;
        Ok::<_, Failure>(Box::new(Scored { round, judgement }))
    };
    Ok(run.step(ScoreStep { round }, score).await?.judgement)
}

pub(super) fn judgement(context: &RoundContext<'_>, answers: &Answers<'_>) -> Judgement {
    let RoundContext {
        run,
        deps,
        request,
        plan,
        trimmed,
        ..
    } = *context;
    let panel = &trimmed.agents;
    // A reused report counts as written by the family of the role's current model.
    let mut families: BTreeMap<Agent, String> = panel
        .iter()
        .filter_map(|agent| {
            Some((
                *agent,
                scoring::family(&deps.role(Role::Agent(*agent))?.shown()),
            ))
        })
        .collect();
    let events = run.events();
    let transcript = Transcript::of(&events);
    families.extend(families_of(&transcript));
    let message = request.full_text();
    let evidence = Evidence::of(&transcript);
    let panel = scoring::Panel {
        message: &message,
        task_type: Some(plan.task_type),
        demands: &plan.demands,
        outputs: outputs(panel, answers.latest, &families),
        first_round: answers
            .first
            .map(|first| outputs(panel, first, &families))
            .unwrap_or_default(),
        cross_checks: &evidence.cross_checks,
        resolutions: &evidence.resolutions,
    };
    scoring::judge(&panel, &scoring::Policy::from(&deps.policy))
}

/// Returns the scoring input for an outcome; `None` for an agent that failed.
pub(super) fn output<'a>(
    agent: Agent,
    outcome: &'a AgentOutcome,
    family: Option<&'a str>,
) -> Option<scoring::Output<'a>> {
    let AgentOutcome::Answered {
        report,
        obtained,
        truncated,
        ..
    } = outcome
    else {
        return None;
    };
    Some(scoring::Output {
        agent: agent.into_str(),
        report,
        obtained: *obtained,
        truncated: *truncated,
        role_matches: report.agent == agent.into_str(),
        family,
    })
}
