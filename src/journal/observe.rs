//! Log lines and `/metrics` counters of a run, made while its entries are written: one log line per
//! step. They never contain text of a user or model, or details of an error.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError, RwLock};

use metrics::{Counter, Histogram, Label, SharedString, counter, histogram};
use tokio::time::Instant;

use super::event::sent_key;
use super::step::{RoundStep, Step as _};
use super::{
    Accepted, AgentFinished, AgentOutcome, CallResult, CallSent, CallSettled, Converged,
    CrossChecked, Ending, Event, Finished, Gated, Planned, Scored, Synthesized,
};
use crate::domain::RunKind;

/// The metrics and log lines of one run in one process.
pub(super) struct Observer {
    kind: RunKind,
    mode: &'static str,
    started: Instant,
    stage_since: Mutex<Instant>,
}

impl Observer {
    pub(super) fn new(accepted: &Accepted, started: Instant) -> Self {
        Self {
            kind: accepted.kind(),
            mode: accepted.label(),
            started,
            stage_since: Mutex::new(started),
        }
    }

    /// Reports an event that was written. `seen` has the run's events by key, including this one.
    pub(super) fn written(&self, event: &Event, seen: &BTreeMap<String, Arc<Event>>) {
        match event {
            // Feedback is written after a run's end, without an observer. Reviews are only in
            // journals of earlier versions.
            Event::Accepted(_)
            | Event::Claimed(_)
            | Event::ComputeStarted(_)
            | Event::Feedback(_)
            | Event::Learned(_)
            | Event::Reviewed(_) => {}
            Event::Hinted(hinted) => {
                let (task_types, unseen) = (&hinted.task_types, hinted.unseen.len());
                self.stage("hints");
                tracing::info!(?task_types, unseen, "step: hints");
            }
            Event::Planned(planned) => self.planned(planned, seen),
            Event::Trimmed(trimmed) => {
                let (agents, left_out) = (trimmed.agents.len(), trimmed.left_out.len());
                if trimmed.wave.is_none() {
                    counter!("conclave_left_out_total").increment(left_out as u64);
                }
                tracing::info!(agents, left_out, "step: what fits under the cap");
            }
            Event::RoundStarted(started) => {
                let (round, agents) = (started.round, started.agents.len());
                tracing::info!(round, agents, "step: a round begins");
            }
            Event::SolverJudged(judged) => {
                let others = judged.others.len();
                tracing::info!(others, "step: the solver's report is judged");
            }
            Event::RoundSkipped(skipped) => {
                tracing::info!(round = skipped.round, "step: a round is skipped");
            }
            Event::CallSent(sent) => self.sent(sent),
            Event::CallSettled(settled) => self.settled(settled, seen),
            Event::CrossChecked(checked) => self.cross_checked(checked),
            Event::AgentFinished(finished) => agent_finished(finished),
            Event::Scored(scored) => self.scored(scored),
            Event::Synthesized(synthesized) => self.synthesized(synthesized),
            Event::Gated(gated) => self.gated(gated),
            Event::Finished(finished) => self.finished(finished),
            Event::Decided(_)
            | Event::Converged(_)
            | Event::Parsed(_)
            | Event::Proposed(_)
            | Event::GateChecked(_)
            | Event::Executed(_) => decision(event),
            Event::ToolPlanned(_)
            | Event::StepStarted(_)
            | Event::StepFinished(_)
            | Event::Explained(_) => self.tools(event),
        }
    }

    /// Reports an event of a plan of tool calls.
    fn tools(&self, event: &Event) {
        match event {
            Event::ToolPlanned(planned) => {
                let (steps, rejected) = (planned.plan.steps.len(), planned.rejection.is_some());
                let took_ms = self.stage("tool plan");
                tracing::info!(steps, rejected, took_ms, "step: a plan of tool calls");
            }
            Event::StepStarted(started) => {
                let tool = &started.tool;
                tracing::info!(tool, "step: a tool begins");
            }
            Event::StepFinished(finished) => {
                let (tool, ok) = (&finished.tool, finished.ok);
                let outcome = if ok { "ok" } else { "failed" };
                counter!("conclave_tool_steps_total", "tool" => tool.clone(), "outcome" => outcome)
                    .increment(1);
                let took_ms = self.stage("tool");
                tracing::info!(tool, ok, took_ms, "step: a tool ended");
            }
            Event::Explained(explained) => {
                let (source, rejected) = (explained.source, explained.rejected.len());
                tracing::info!(?source, rejected, "step: the explanation");
            }
            _ => {}
        }
    }

    fn planned(&self, planned: &Planned, seen: &BTreeMap<String, Arc<Event>>) {
        obtained("plan", planned.obtained.as_str().to_owned());
        let (plan, corrections) = (&planned.plan, planned.corrections.len());
        let (task, rounds) = (plan.task_type.into_str(), plan.rounds);
        let agents = plan.agents_to_run.len();
        let took_ms = self.stage("plan");
        tracing::info!(task, agents, rounds, corrections, took_ms, "step: plan");
        let begun = seen.get(&RoundStep { round: 1 }.key());
        if begun.is_some_and(|event| matches!(**event, Event::RoundStarted(_))) {
            let outcome = if planned.asks_user() {
                "wasted"
            } else {
                "used"
            };
            counter!("conclave_speculations_total", "outcome" => outcome).increment(1);
        }
    }

    fn cross_checked(&self, checked: &CrossChecked) {
        let (passes, notes) = (checked.passes.len(), checked.notes.len());
        counter!("conclave_cross_checks_total", "passes" => passes.to_string()).increment(1);
        let verdicts = checked.passes.iter().flat_map(|pass| &pass.found.claims);
        for verdict in verdicts.clone() {
            counter!("conclave_cross_check_verdicts_total", "holds" => verdict.holds.into_str())
                .increment(1);
        }
        let (verdicts, took_ms) = (verdicts.count(), self.stage("cross_check"));
        tracing::info!(
            passes,
            verdicts,
            notes,
            took_ms,
            "step: key claims are cross-checked"
        );
    }

    fn scored(&self, scored: &Scored) {
        let (round, judgement) = (scored.round, &scored.judgement);
        for score in &judgement.scores {
            let (agent, status) = (score.agent.clone(), score.status.into_str());
            counter!("conclave_statuses_total", "agent" => agent, "status" => status).increment(1);
        }
        let (disagreements, scores) = (judgement.disagreements.len(), judgement.scores.len());
        let took_ms = self.stage("round");
        tracing::info!(
            round,
            scores,
            disagreements,
            took_ms,
            "step: the panel is scored"
        );
    }

    fn synthesized(&self, synthesized: &Synthesized) {
        obtained("synthesis", synthesized.obtained.as_str().to_owned());
        let (draft, corrections) = (synthesized.draft.is_some(), synthesized.corrections.len());
        let took_ms = self.stage("synthesis");
        tracing::info!(draft, corrections, took_ms, "step: synthesis");
        for rule in &synthesized.broken_rules {
            counter!("conclave_broken_rules_total", "rule" => rule.clone()).increment(1);
            tracing::error!(
                rule,
                "the master's reply would break a rule of the service: another stands in"
            );
        }
    }

    fn gated(&self, gated: &Gated) {
        let (c_final, gate) = (gated.confidence.c_final, gated.gate.into_str());
        histogram!("conclave_c_final", "mode" => self.mode).record(c_final);
        counter!("conclave_gate_total", "mode" => self.mode, "gate" => gate).increment(1);
        tracing::info!(c_final, gate, "step: gate");
    }

    /// Reports that the cap had no room for a call.
    pub(super) fn refused(&self, call: &str) {
        counter!("conclave_budget_refusals_total", "mode" => self.mode).increment(1);
        tracing::info!(call, "step: no money is left for a call");
    }

    fn sent(&self, sent: &CallSent) {
        let (provider, model) = (sent.provider.clone(), sent.model.clone());
        if sent.call.contains('#') {
            counter!("conclave_retries_total", "provider" => provider.clone(), "model" => model.clone()).increment(1);
        }
        let reserved = sent.reserved_amount().dollars();
        tracing::info!(call = %sent.call, provider, model, reserved_usd = reserved, "step: a call is made");
    }

    fn finished(&self, finished: &Finished) {
        let outcome = match &finished.ending {
            Ending::Replied { reply } => reply.outcome.into_str(),
            Ending::Failed { cause, .. } => cause.into_str(),
            Ending::Cancelled => "cancelled",
            Ending::Acted { outcome, .. } => outcome.into_str(),
        };
        // Actions have metrics of their own.
        if self.kind == RunKind::Action {
            return;
        }
        counter!("conclave_runs_total", "mode" => self.mode, "outcome" => outcome).increment(1);
        histogram!("conclave_run_seconds", "mode" => self.mode)
            .record(self.started.elapsed().as_secs_f64());
    }

    fn settled(&self, settled: &CallSettled, seen: &BTreeMap<String, Arc<Event>>) {
        let Some(Event::CallSent(sent)) = seen.get(&sent_key(&settled.call)).map(|sent| &**sent)
        else {
            return;
        };
        settle(sent, settled);
        let reserved = sent.reserved_amount();
        if settled.cost > reserved {
            counter!("conclave_cap_exceeded_total", "mode" => self.mode).increment(1);
            let (call, cost_usd, reserved_usd) =
                (&settled.call, settled.cost.dollars(), reserved.dollars());
            tracing::warn!(
                call,
                cost_usd,
                reserved_usd,
                "the provider billed more than was reserved"
            );
        }
    }

    /// Reports the end of a stage. Returns the milliseconds since the previous stage ended.
    fn stage(&self, stage: &'static str) -> u64 {
        let now = Instant::now();
        let since = std::mem::replace(
            &mut *self
                .stage_since
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
            now,
        );
        let took = now.saturating_duration_since(since);
        histogram!("conclave_stage_seconds", "stage" => stage, "mode" => self.mode)
            .record(took.as_secs_f64());
        u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
    }
}

/// Counts how a typed value was obtained from a model's text. The labels are fixed words of the
/// service, never a model's.
fn obtained(what: &'static str, how: String) {
    counter!("conclave_obtained_total", "what" => what, "how" => how).increment(1);
}

/// Reports a decision on how to answer, or a step of an action.
fn decision(event: &Event) {
    match event {
        Event::Decided(decided) => {
            let (path, why) = (decided.path.into_str(), &decided.why);
            counter!("conclave_decisions_total", "path" => path).increment(1);
            tracing::info!(path, why, "step: decision");
        }
        Event::Converged(Converged { id, similarity }) => {
            tracing::info!(%id, similarity, "step: the answer is compared with learned ones");
        }
        Event::Parsed(parsed) => {
            let (command, mode) = (parsed.command.into_str(), parsed.mode.into_str());
            tracing::info!(command, mode, "step: the text is understood");
        }
        Event::Proposed(proposed) => {
            let (ok, confidence) = (proposed.ok, proposed.confidence);
            let reused = proposed.reused_from.is_some();
            tracing::info!(ok, confidence, reused, "step: a proposal");
        }
        Event::GateChecked(checked) => {
            let (gate, passed) = (checked.gate.into_str(), checked.passed);
            tracing::info!(gate, passed, "step: a gate");
        }
        Event::Executed(executed) => {
            let command = executed.command.into_str();
            tracing::info!(command, "step: the command is executed");
        }
        _ => {}
    }
}

fn agent_finished(finished: &AgentFinished) {
    let (round, agent) = (finished.round, finished.agent.into_str());
    let how = match (&finished.outcome, &finished.resolved) {
        _ if finished.reused_from.is_some() => "reused",
        (AgentOutcome::Answered { .. }, Some(resolved)) => resolved.obtained.into_str(),
        (AgentOutcome::Answered { obtained, .. }, None) => obtained.into_str(),
        (AgentOutcome::Failed { .. }, _) => "failed",
    };
    obtained("report", how.to_owned());
    tracing::info!(round, agent, obtained = how, "step: an agent is done");
}

/// The metrics of the calls of one role to one model. Looking them up by their labels is slow.
struct CallMetrics {
    labels: [Label; 3],
    seconds: Histogram,
    /// In whole nano-dollars, so that the sum is exact.
    cost: Counter,
    /// Input, read from the cache, written to the cache, output.
    tokens: [Counter; 4],
}

/// The metrics of all models that were called. They are few, because the config names them.
static CALLS: RwLock<Vec<Arc<CallMetrics>>> = RwLock::new(vec![]);

impl CallMetrics {
    fn new(sent: &CallSent) -> Self {
        let shared = |text: &str| SharedString::from(Arc::<str>::from(text));
        let provider = Label::new("provider", shared(&sent.provider));
        let model = Label::new("model", shared(&sent.model));
        let role = Label::new("role", shared(sent.role.as_str()));
        let labels = [provider.clone(), model.clone(), role];
        let of_kind = |kind| {
            let mut labels = labels.to_vec();
            labels.push(Label::from_static_parts("kind", kind));
            counter!("conclave_tokens_total", labels)
        };
        Self {
            seconds: histogram!("conclave_call_seconds", vec![provider, model]),
            cost: counter!("conclave_cost_nanodollars_total", labels.to_vec()),
            tokens: ["input", "cache_read", "cache_write", "output"].map(of_kind),
            labels,
        }
    }

    fn of(sent: &CallSent) -> Arc<Self> {
        let is_own = |known: &&Arc<Self>| {
            let names = [&*sent.provider, &sent.model, sent.role.as_str()];
            known.labels.each_ref().map(Label::value) == names
        };
        let calls = CALLS.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = calls.iter().find(is_own) {
            return Arc::clone(known);
        }
        drop(calls);
        let new = Arc::new(Self::new(sent));
        let mut calls = CALLS.write().unwrap_or_else(PoisonError::into_inner);
        calls.push(Arc::clone(&new));
        new
    }
}

fn settle(sent: &CallSent, settled: &CallSettled) {
    let result = match &settled.result {
        CallResult::Answered { .. } => "answered".to_owned(),
        CallResult::Failed { cause, .. } => cause.to_string(),
        CallResult::InDoubt => "in doubt".to_owned(),
    };
    let metrics = CallMetrics::of(sent);
    let mut labels = metrics.labels.to_vec();
    labels.push(Label::new("result", result.clone()));
    counter!("conclave_calls_total", labels).increment(1);
    metrics.seconds.record(settled.latency_ms as f64 / 1000.0);
    metrics.cost.increment(settled.cost.nanos());
    if let Some(usage) = settled.usage {
        let billed = [
            usage.input,
            usage.cache_read,
            usage.cache_write,
            usage.output,
        ];
        for (counter, tokens) in metrics.tokens.iter().zip(billed) {
            counter.increment(tokens);
        }
    }
    let (cost_usd, latency_ms) = (settled.cost.dollars(), settled.latency_ms);
    tracing::info!(call = %settled.call, result, cost_usd, latency_ms, "step: a call is settled");
}
