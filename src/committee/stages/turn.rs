//! One agent's part in a round: it reports, or it keeps or concedes its contested claims.

use std::collections::BTreeMap;
use std::sync::Arc;

use conclave_lenient_json::Problem;
use serde_json::json;
use tokio::time::Instant;

use crate::committee::call::clean::clean;
use crate::committee::call::prompts::Rendered;
use crate::committee::call::{CallFailure, CallSpec, Typed, call_checked, call_json, call_text};
use crate::committee::failure::{CallError, Failure};
use crate::committee::output_shapes::Decisions;
use crate::committee::stages::open_claims::ContestedClaim;
use crate::committee::stages::resolve::{self, Held};
use crate::committee::stages::round_context::RoundContext;
use crate::config::{OutputForm, RoleModel};
use crate::domain::{Agent, AgentReport, CallStep, Earmark, Role};
use crate::journal::step;
use crate::journal::{AgentFinished, AgentOutcome, Resolved, RunContext};
use crate::scoring;

impl RoundContext<'_> {
    /// Makes or recalls an agent's part in a round in which it reports.
    pub(super) async fn turn(
        &self,
        round: u8,
        agent: Agent,
        share: f64,
        until: Instant,
    ) -> Result<AgentOutcome, Failure> {
        match self.report(round, agent, share, until).await {
            Ok(outcome) => Ok(outcome),
            Err(error) => {
                let outcome = failed(error.no_output()?);
                self.finish(round, agent, outcome, None)
            }
        }
    }

    /// Like [`Self::turn`] in round 1. `None` if the solver failed for lack of money. That is not
    /// recorded, because [`Self::last_resort`] may still get its report.
    pub(super) async fn first_turn(
        &self,
        agent: Agent,
        until: Instant,
    ) -> Result<Option<AgentOutcome>, Failure> {
        if agent != Agent::Solver {
            return self.turn(1, agent, 1.0, until).await.map(Some);
        }
        let outcome = match self.report(1, agent, 1.0, until).await {
            Ok(outcome) => return Ok(Some(outcome)),
            Err(error) => match error.no_output()? {
                failure if failure.is_out_of_budget => return Ok(None),
                failure => failed(failure),
            },
        };
        self.finish(1, agent, outcome, None).map(Some)
    }

    /// Calls the solver again after a lack of money. If no core agent has answered, the call may
    /// use the money of the later stages: its report is then the answer.
    pub(super) async fn last_resort(
        &self,
        latest: &BTreeMap<Agent, AgentOutcome>,
        until: Instant,
    ) -> Result<AgentOutcome, Failure> {
        let mut outcomes = latest.iter();
        if !outcomes.any(|(agent, outcome)| agent.is_core() && outcome.is_answered()) {
            self.run.release(Earmark::CrossCheck);
            self.run.release(Earmark::Synthesis);
        }
        self.turn(1, Agent::Solver, 1.0, until).await
    }

    /// Gets or recalls a report, and records it. Attempts that the journal has are recalled. A
    /// failure is not recorded.
    async fn report(
        &self,
        round: u8,
        agent: Agent,
        share: f64,
        until: Instant,
    ) -> Result<AgentOutcome, CallError> {
        if let Some(finished) = self.run.recorded(&step::agent(round, agent)) {
            return Ok(finished.outcome.clone());
        }
        let model = self.model(agent)?;
        let limit = self.may_write(agent, share);
        let render = || self.prompt(agent, model, limit);
        let ask = CallSpec {
            run: self.run,
            deps: self.deps,
            prompt: self.deps.rendered(self.run, render).await??,
            step: CallStep::Report { round, agent },
            role: Role::Agent(agent),
            images: self.images(agent),
            model_texts: vec![],
            max_tokens: limit,
            answer_tokens: None,
            until,
        };
        let typed = match model.output {
            OutputForm::Json => call_checked(ask, several_answers).await?,
            OutputForm::Text => {
                let typed = call_text(ask).await?;
                let message = self.request.full_text();
                let text = &typed.value;
                let read = || scoring::report_from_text(agent.into_str(), &message, text);
                let report = self.run.compute(read).await?;
                typed.map(|_| report)
            }
        };
        let outcome = AgentOutcome::Answered {
            report: Arc::new(clean(typed.value, self.deps.policy.llm_confidence_ceiling)),
            obtained: typed.obtained,
            truncated: typed.truncated,
            notes: typed.notes,
            tokens: typed.tokens,
        };
        Ok(self.finish(round, agent, outcome, None)?)
    }

    fn model(&self, agent: Agent) -> Result<&RoleModel, Failure> {
        let model = self.deps.role(Role::Agent(agent));
        model.ok_or_else(|| Failure::internal("an agent without a model is on the panel"))
    }

    /// Makes or recalls an agent's part in a round in which it keeps or concedes its contested
    /// claims.
    pub(super) async fn decide(
        &self,
        round: u8,
        agent: Agent,
        earlier: &AgentOutcome,
        claims: &[ContestedClaim],
    ) -> Result<AgentOutcome, Failure> {
        if let Some(finished) = self.run.recorded(&step::agent(round, agent)) {
            return Ok(finished.outcome.clone());
        }
        let model = self.model(agent)?;
        let held = resolve::held(self.request, round, agent, claims);
        let render = || self.resolve_prompt(model, &held);
        let ask = CallSpec {
            run: self.run,
            deps: self.deps,
            step: CallStep::Resolve { round, agent },
            role: Role::Agent(agent),
            prompt: self.run.compute(render).await??,
            images: &[],
            model_texts: vec![],
            max_tokens: model.max_tokens,
            answer_tokens: Some(resolve::max_tokens(&held)),
            until: self.until,
        };
        let (outcome, resolved) = match call_json::<Decisions>(ask).await {
            Ok(typed) => {
                let settle = || resolved(agent, earlier.clone(), &held, &typed);
                self.run.compute(settle).await?
            }
            Err(error) => (failed(error.no_output()?), None),
        };
        self.finish(round, agent, outcome, resolved)
    }

    fn finish(
        &self,
        round: u8,
        agent: Agent,
        outcome: AgentOutcome,
        resolved: Option<Resolved>,
    ) -> Result<AgentOutcome, Failure> {
        let done = AgentFinished {
            round,
            agent,
            outcome,
            reused_from: None,
            resolved,
        };
        finished(self.run, done)
    }

    pub(super) fn resolve_prompt(
        &self,
        model: &RoleModel,
        held: &[Held<'_>],
    ) -> Result<Rendered, Failure> {
        let own = json!({ "images": 0, "claims": resolve::shown(held) });
        let values = self.request.values(own);
        Ok(self.deps.prompts.render(model.prompts, "resolve", values)?)
    }
}

/// Returns the earlier outcome with the agent's concessions applied, and its decisions.
fn resolved(
    agent: Agent,
    mut outcome: AgentOutcome,
    held: &[Held<'_>],
    typed: &Typed<Decisions>,
) -> (AgentOutcome, Option<Resolved>) {
    let mut resolved = None;
    if let AgentOutcome::Answered { report, .. } = &mut outcome {
        resolved = Some(resolve::settle(
            Arc::make_mut(report),
            agent,
            held,
            &typed.value,
            typed.obtained,
        ));
    }
    (outcome, resolved)
}

pub(super) fn finished(run: &RunContext, finished: AgentFinished) -> Result<AgentOutcome, Failure> {
    let step = step::agent(finished.round, finished.agent);
    let recorded = run.record_output(&step, Arc::new(finished))?;
    Ok(recorded.outcome.clone())
}

fn failed(failure: CallFailure) -> AgentOutcome {
    AgentOutcome::Failed {
        cause: failure.cause,
        detail: failure.detail,
        by_deadline: failure.by_deadline,
    }
}

/// Finds more than one final answer in a report (SPEC 3.4). The same one may be tagged again.
fn several_answers(report: &AgentReport) -> Vec<Problem> {
    let answers: Vec<&str> = report.answers().map(|unit| unit.text.trim()).collect();
    let differ = answers.array_windows().any(|[a, b]| a != b);
    let problem = || Problem {
        pointer: "/units".into(),
        detail: format!(
            "only one unit may have the tag \"answer\", but {} with different texts have it",
            answers.len()
        ),
    };
    differ.then(problem).into_iter().collect()
}
