//! Scores the outputs of a round and records the judgement.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use crate::committee::failure::Failure;
use crate::committee::stages::evidence::Evidence;
use crate::committee::stages::round_context::RoundContext;
use crate::config::Policy;
use crate::domain::{Agent, Judgement, Role};
use crate::journal::step;
use crate::journal::{AgentFinished, AgentOutcome, CrossChecked, Scored, Transcript};
use crate::scoring::{self, Readings};

/// What the scoring engine reads of a run.
pub struct ScoringInput<'a> {
    pub run: &'a Transcript<'a>,
    pub message: &'a str,
    pub families: &'a BTreeMap<Agent, String>,
    pub policy: &'a Policy,
}

impl<'a> ScoringInput<'a> {
    /// Scores the outputs of these agents with this evidence.
    pub fn judge(&self, panel: &[Agent], evidence: &Evidence) -> Judgement {
        let panel = self.panel(panel, evidence);
        self.judge_read(&panel, Readings::of(&panel))
    }

    /// Scores a panel of which some outputs are read.
    fn judge_read(&self, panel: &scoring::Panel<'_>, read: Readings) -> Judgement {
        Judgement {
            rests_on_unseen: self.run.rests_on_unseen(),
            ..scoring::judge_read(panel, read, &self.policy.scoring)
        }
    }

    fn panel(&self, agents: &[Agent], evidence: &'a Evidence) -> scoring::Panel<'a> {
        let plan = self.run.planned.map(|planned| &planned.plan);
        let outputs = |finished: BTreeMap<Agent, _>| {
            let outputs = agents.iter().filter_map(|agent| {
                let family = self.families.get(agent).map(String::as_str);
                output(finished.get(agent).copied()?, family)
            });
            outputs.collect::<Vec<_>>()
        };
        let standing = self.run.standing();
        let failed = |agent: &&Agent| {
            let finished = standing.get(*agent);
            finished.is_some_and(|it| !it.outcome.is_answered())
        };
        // An agent that was not asked, because the solver's report is enough, is not lost.
        let lost = agents.iter().filter(failed).count();
        scoring::Panel {
            message: self.message,
            task_type: plan.map(|plan| plan.task_type),
            demands: plan.map_or(&[], |plan| &plan.demands),
            lost,
            outputs: outputs(standing),
            first_round: self.run.first_round().map(outputs).unwrap_or_default(),
            cross_checks: &evidence.cross_checks,
            resolutions: &evidence.resolutions,
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
    Some(scoring::Output {
        agent: finished.agent.into(),
        report,
        obtained: *obtained,
        truncated: *truncated,
        role_matches: report.agent == finished.agent.into_str(),
        family,
    })
}

/// Returns the model family behind each agent's latest report. The family is that of the call that
/// was answered, by the role's own model or a fallback. Decisions on contested claims are no
/// reports.
pub fn families_of(transcript: &Transcript<'_>) -> BTreeMap<Agent, String> {
    let answered = transcript.calls.iter().filter(|call| call.is_answered());
    let reports = answered.filter_map(|call| match call.sent.role {
        Role::Agent(agent) if call.sent.is_report_of(agent) => {
            Some((agent, scoring::family(&call.sent.model)))
        }
        _ => None,
    });
    reports.collect()
}

/// Does `work` and, while its first call is under way, reads the reports of round 1 for [`judge`].
/// Returns what was read until the work was done.
///
/// # Errors
/// If the lease is lost or the database fails.
pub(super) async fn read_beside<T>(
    context: &RoundContext<'_>,
    work: impl Future<Output = T>,
) -> Result<(T, Option<Readings>), Failure> {
    let (mut work, mut read) = (pin!(work), None);
    let done = tokio::select! {
        biased;
        done = &mut work => done,
        reading = read_reports(context, &mut read) => {
            reading?;
            work.await
        }
    };
    Ok((done, read))
}

/// Reads the reports of round 1, one at a time, so that other parts of the run go on between them.
async fn read_reports(
    context: &RoundContext<'_>,
    read: &mut Option<Readings>,
) -> Result<(), Failure> {
    let run = context.run;
    run.call_sent().await;
    let (events, message) = (run.events(), context.request.full_text());
    let transcript = Transcript::of(&events);
    let families = families(context, &transcript);
    let input = ScoringInput {
        run: &transcript,
        message: &message,
        families: &families,
        policy: &context.deps.policy,
    };
    let evidence = Evidence::default();
    let panel = input.panel(&context.trimmed.agents, &evidence);
    let mut read_next = || {
        read.get_or_insert_with(|| Readings::of(&panel))
            .read_next(&panel)
    };
    while run.compute_text(&mut read_next).await? {
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Scores the outputs up to this round, once. `read` are the readings of its panel, if they were
/// made before.
pub(super) async fn judge(
    context: &RoundContext<'_>,
    round: u8,
    read: Option<Readings>,
) -> Result<Arc<Judgement>, Failure> {
    let run = context.run;
    let score = async {
        let judge = || judgement(context, None, read);
        let judgement = run.compute_text(judge).await?;
        Ok::<_, Failure>(Arc::new(Scored {
            round,
            judgement: Arc::new(judgement),
        }))
    };
    let scored = run.step(step::score(round), score).await?;
    Ok(Arc::clone(&scored.judgement))
}

/// Scores the outputs so far, with a cross-check that the journal does not have yet.
pub(super) fn judgement(
    context: &RoundContext<'_>,
    check: Option<&CrossChecked>,
    read: Option<Readings>,
) -> Judgement {
    let RoundContext { deps, trimmed, .. } = context;
    let events = context.run.events();
    let run = Transcript::of(&events);
    let families = families(context, &run);
    let input = ScoringInput {
        run: &run,
        message: &context.request.full_text(),
        families: &families,
        policy: &deps.policy,
    };
    let mut evidence = Evidence::of(&run);
    check.iter().for_each(|check| evidence.take(check));
    let panel = input.panel(&trimmed.agents, &evidence);
    let read = read.unwrap_or_else(|| Readings::of(&panel));
    input.judge_read(&panel, read)
}

/// Returns the model family behind each agent's latest report. A reused report counts as written by
/// the family of the role's current model.
fn families(context: &RoundContext<'_>, run: &Transcript<'_>) -> BTreeMap<Agent, String> {
    let current = context.trimmed.agents.iter().filter_map(|agent| {
        let model = context.deps.role(Role::Agent(*agent))?;
        Some((*agent, scoring::family(&model.shown())))
    });
    let mut families: BTreeMap<Agent, String> = current.collect();
    families.extend(families_of(run));
    families
}
