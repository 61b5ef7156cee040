//! Log lines and `/metrics` counters of a run, made while its entries are written: one log line per
//! step. They never contain text of a user or model, or details of an error.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use metrics::{Counter, Histogram, Label, SharedString, counter, histogram};
use tokio::time::Instant;

use super::event::sent_key;
use super::step;
use super::{
    Accepted, AgentFinished, AgentOutcome, CallResult, CallSent, CallSettled, CrossChecked, Event,
    Finished, Gated, Planned, Scored, Synthesized,
};
use crate::domain::RunKind;

/// The metrics and log lines of one run in one process.
pub(super) struct Observer {
    kind: RunKind,
    mode: &'static str,
    started: Instant,
    /// When each stage began.
    stages: Mutex<BTreeMap<&'static str, Instant>>,
}

impl Observer {
    pub(super) fn new(accepted: &Accepted, started: Instant) -> Self {
        Self {
            kind: accepted.kind(),
            mode: accepted.label(),
            started,
            stages: Mutex::default(),
        }
    }

    /// Reports an event that was written. `seen` has the run's events by key, including this one.
    pub(super) fn written(&self, event: &Event, seen: &BTreeMap<String, Arc<Event>>) {
        log(event);
        match event {
            Event::Hinted(_) => {
                self.end("hints");
                self.begin("plan");
            }
            Event::Planned(planned) => self.planned(planned, seen),
            Event::Trimmed(trimmed) if trimmed.refit.is_none() && trimmed.epoch.is_none() => {
                let left_out = trimmed.left_out.len() as u64;
                counter!("conclave_left_out_total").increment(left_out);
            }
            Event::CallSent(sent) if sent.name().is_some_and(|name| name.attempt > 1) => {
                let (provider, model) = (sent.provider.clone(), sent.model.clone());
                counter!("conclave_retries_total", "provider" => provider, "model" => model)
                    .increment(1);
            }
            Event::CallSettled(settled) => self.settled(settled, seen),
            Event::CrossChecked(checked) => self.cross_checked(checked),
            Event::RoundStarted(_) => self.begin("round"),
            Event::AgentFinished(finished) => {
                obtained("report", how_obtained(finished).to_owned());
                self.begin("cross_check");
            }
            Event::Scored(scored) => self.scored(scored),
            Event::Synthesized(synthesized) => self.synthesized(synthesized),
            Event::Gated(gated) => self.gated(gated),
            Event::Finished(finished) => self.finished(finished),
            Event::Decided(decided) => {
                let path = decided.path.into_str();
                counter!("conclave_decisions_total", "path" => path).increment(1);
            }
            Event::ToolPlanned(_) => self.end("tool plan"),
            Event::StepStarted(_) => self.begin("tool"),
            Event::StepFinished(finished) => {
                let outcome = if finished.ok { "ok" } else { "failed" };
                let tool = finished.tool.clone();
                counter!("conclave_tool_steps_total", "tool" => tool, "outcome" => outcome)
                    .increment(1);
                self.end("tool");
            }
            _ => {}
        }
    }

    fn planned(&self, planned: &Planned, seen: &BTreeMap<String, Arc<Event>>) {
        obtained("plan", planned.obtained.as_str().to_owned());
        self.end("plan");
        let begun = seen.get(&step::round(1).key);
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
        let passes = checked.passes.len().to_string();
        counter!("conclave_cross_checks_total", "passes" => passes).increment(1);
        for verdict in checked.passes.iter().flat_map(|pass| &pass.found.claims) {
            counter!("conclave_cross_check_verdicts_total", "holds" => verdict.holds.into_str())
                .increment(1);
        }
        self.end("cross_check");
    }

    fn scored(&self, scored: &Scored) {
        for score in &scored.judgement.scores {
            let (agent, status) = (score.agent.to_string(), score.status.into_str());
            counter!("conclave_statuses_total", "agent" => agent, "status" => status).increment(1);
        }
        self.end("round");
        self.begin("synthesis");
    }

    fn synthesized(&self, synthesized: &Synthesized) {
        obtained("synthesis", synthesized.obtained.as_str().to_owned());
        self.end("synthesis");
        for rule in &synthesized.broken_rules {
            counter!("conclave_broken_rules_total", "rule" => rule.clone()).increment(1);
            tracing::error!(
                rule,
                "the master's reply would break a rule of the service: the fallback answer is used"
            );
        }
    }

    fn gated(&self, gated: &Gated) {
        let (c_final, gate) = (gated.confidence.c_final, gated.gate.into_str());
        histogram!("conclave_c_final", "mode" => self.mode).record(c_final);
        counter!("conclave_gate_total", "mode" => self.mode, "gate" => gate).increment(1);
    }

    /// Reports that the cap had no room for a call.
    pub(super) fn refused(&self, call: &str) {
        counter!("conclave_budget_refusals_total", "mode" => self.mode).increment(1);
        tracing::info!(call, "step: no money is left for a call");
    }

    fn finished(&self, finished: &Finished) {
        // Actions have metrics of their own.
        if self.kind == RunKind::Action {
            return;
        }
        let outcome = finished.ending.label();
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

    fn begin(&self, stage: &'static str) {
        self.stages().insert(stage, Instant::now());
    }

    /// Records the time since a stage began, here or when this process took the run.
    fn end(&self, stage: &'static str) {
        let since = self.stages().remove(stage).unwrap_or(self.started);
        histogram!("conclave_stage_seconds", "stage" => stage, "mode" => self.mode)
            .record(since.elapsed().as_secs_f64());
    }

    fn stages(&self) -> MutexGuard<'_, BTreeMap<&'static str, Instant>> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the line of an event: its key, with what an operator looks for. The id of a tool's step is
/// a model's text.
fn log(event: &Event) {
    let key = || event.key();
    match event {
        Event::Planned(Planned { plan, .. }) => {
            let (task, agents) = (plan.task_type.into_str(), plan.agents_to_run.len());
            tracing::info!(task, agents, rounds = plan.rounds, "step: {}", key());
        }
        Event::CallSent(sent) => {
            let (provider, model) = (&sent.provider, &sent.model);
            let reserved_usd = sent.reserved_amount().dollars();
            tracing::info!(provider, model, reserved_usd, "step: {}", key());
        }
        Event::CallSettled(settled) => {
            let (result, cost_usd) = (result(settled), settled.cost.dollars());
            let latency_ms = settled.latency_ms;
            tracing::info!(result, cost_usd, latency_ms, "step: {}", key());
        }
        Event::Gated(gated) => {
            let (c_final, gate) = (gated.confidence.c_final, gated.gate.into_str());
            tracing::info!(c_final, gate, "step: {}", key());
        }
        Event::Decided(decided) => {
            let (path, why) = (decided.path.into_str(), &decided.why);
            tracing::info!(path, why, "step: {}", key());
        }
        Event::StepStarted(started) => {
            tracing::info!(tool = started.tool, "step: a tool begins");
        }
        Event::StepFinished(finished) => {
            let (tool, ok) = (&finished.tool, finished.ok);
            tracing::info!(tool, ok, "step: a tool ended");
        }
        _ => tracing::info!("step: {}", key()),
    }
}

/// Counts how a typed value was obtained from a model's text. The labels are fixed words of the
/// service, never a model's.
fn obtained(what: &'static str, how: String) {
    counter!("conclave_obtained_total", "what" => what, "how" => how).increment(1);
}

fn how_obtained(finished: &AgentFinished) -> &'static str {
    match (&finished.outcome, &finished.resolved) {
        _ if finished.reused_from.is_some() => "reused",
        (AgentOutcome::Answered { .. }, Some(resolved)) => resolved.obtained.into_str(),
        (AgentOutcome::Answered { obtained, .. }, None) => obtained.into_str(),
        (AgentOutcome::Failed { .. }, _) => "failed",
    }
}

/// Returns how a call ended: a fixed word.
fn result(settled: &CallSettled) -> String {
    match &settled.result {
        CallResult::Answered { .. } => "answered".to_owned(),
        CallResult::Failed { cause, .. } => cause.to_string(),
        CallResult::InDoubt => "in doubt".to_owned(),
    }
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
    let metrics = CallMetrics::of(sent);
    let mut labels = metrics.labels.to_vec();
    labels.push(Label::new("result", result(settled)));
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
}
