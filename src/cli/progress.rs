//! Live progress on standard error: a line for the begin and the end of each stage, and a moving
//! line with the current activity. It shows the events of `GET /api/runs/{id}/events`, of a run in
//! this process too.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::colour::Tone;
use super::printable::without_controls;
use crate::domain::{CallName, CallStep, Gate, RunId, Status, counted, shown_bound, shown_c_final};
use crate::http::progress_event;
use crate::journal::{CallResult, Entry, Event};

const PLAN: &str = "plan";

/// A progress display. It receives the events of a run and draws them.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    silent: bool,
    begun: Instant,
    /// What is under way, for the moving line.
    busy: Vec<String>,
    /// The stages under way. Round 1 may begin while the plan is made.
    stages: BTreeMap<String, Stage>,
    agents: BTreeMap<String, Stage>,
    /// The agents that fit under the cap so far.
    fitted: Vec<String>,
    /// Of all calls of the run.
    sums: Sums,
}

/// A stage of the run, or an agent's part of a round.
#[derive(Default)]
struct Stage {
    began: Option<Timestamp>,
    sums: Sums,
}

impl Stage {
    /// Returns "after 1.2 s", the time on the clock. Empty if a time is missing.
    fn elapsed(&self, data: &Value) -> String {
        let Some((from, to)) = self.began.zip(time(data)) else {
            return String::new();
        };
        let seconds = to.duration_since(from).as_secs_f64().max(0.0);
        format!(" after {seconds:.1} s")
    }
}

/// Sums over calls.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    calls: u64,
    latency_ms: u64,
    input_tokens: u64,
    output_tokens: u64,
    cost_usd: f64,
}

impl Sums {
    fn add(&mut self, call: &Value) {
        let count = |key: &str| call[key].as_u64().unwrap_or(0);
        self.calls += 1;
        self.latency_ms = self.latency_ms.saturating_add(count("latencyMs"));
        self.input_tokens = self.input_tokens.saturating_add(count("inputTokens"));
        self.output_tokens = self.output_tokens.saturating_add(count("outputTokens"));
        self.cost_usd += call["costUsd"].as_f64().unwrap_or(0.0);
    }

    /// Returns the end of a line. The latencies of several calls are marked as a sum, because calls
    /// overlap.
    fn shown(self) -> String {
        if self.calls == 0 {
            return String::new();
        }
        let calls = counted(self.calls, "call", "calls");
        let seconds = self.latency_ms as f64 / 1000.0;
        let summed = (self.calls > 1).then(|| format!(" ({seconds:.1} s in sum)"));
        let summed = summed.unwrap_or_default();
        let (input, output, cost) = (self.input_tokens, self.output_tokens, self.cost_usd);
        format!("; {calls}{summed}, {input} in / {output} out tokens, ${cost:.5}")
    }
}

/// Returns a spinner on a terminal; elsewhere none.
pub(super) fn spinner(template: &str) -> Option<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    Some(bar)
}

impl Progress {
    pub fn new(silent: bool) -> Self {
        let bar = (!silent).then(|| spinner("{spinner} {msg} {elapsed}"));
        Self {
            bar: bar.flatten(),
            silent,
            begun: Instant::now(),
            busy: vec![],
            stages: BTreeMap::new(),
            agents: BTreeMap::new(),
            fitted: vec![],
            sums: Sums::default(),
        }
    }

    /// Shows an entry of a run that this process executes, with the provider's words on a failed
    /// call, which the service gives only in the journal.
    pub fn entry(&mut self, run: RunId, entry: &Entry) {
        let Some((name, mut data)) = progress_event(run, entry) else {
            return;
        };
        if let Event::CallSettled(settled) = &entry.event
            && let CallResult::Failed {
                said: Some(said), ..
            } = &settled.result
            && let Value::Object(data) = &mut data
        {
            data.insert("said".into(), json!(said));
        }
        self.event(name, &data);
    }

    /// Shows an event of the stream.
    pub fn event(&mut self, name: &str, data: &Value) {
        match name {
            "run" => self.accepted(data),
            "plan.started" => self.begin(PLAN, "begins", data),
            "plan" => self.end(PLAN, &planned(&data["plan"]), data),
            "fit" => self.fitted(data),
            "call" => self.call_ended(data),
            "round" => self.round(data),
            "agent.started" => {
                let agent = text(data, "agent");
                self.agents.entry(agent.clone()).or_default().began = time(data);
                self.working(&agent);
            }
            "agent.finished" => self.agent_finished(data),
            "cross_check.started" => {
                let what = "begins: the key claims of all reports are compared";
                self.begin("check", what, data);
            }
            "cross_check" => {
                self.close_round(data);
                self.end("check", &cross_checked(data), data);
            }
            "score" => self.scored(data),
            "synthesis" => self.begin("synthesis", "begins", data),
            "synthesis.finished" => self.end("synthesis", synthesized(data), data),
            "gate" => self.gated(data),
            "reply" | "error" => self.ended(),
            _ => {}
        }
    }

    fn accepted(&self, data: &Value) {
        if let Some(parent) = data["continues"].as_str() {
            let hint = "(begin with \"new:\" for a new request)";
            self.line(&format!("continuing run {parent} {hint}"));
        }
    }

    fn begin(&mut self, label: &str, what: &str, data: &Value) {
        if label != PLAN {
            self.close_round(data);
        }
        self.line(&format!("{label:<10} {what}"));
        let (began, sums) = (time(data), Sums::default());
        self.stages.insert(label.to_owned(), Stage { began, sums });
        self.working(label);
    }

    /// Prints the end of a stage. Without a begin, as of a plan that is used again, there is only
    /// its result.
    fn end(&mut self, label: &str, result: &str, data: &Value) {
        let what = match self.stages.remove(label) {
            Some(stage) => {
                let (elapsed, sums) = (stage.elapsed(data), stage.sums.shown());
                let colon = if result.is_empty() { "" } else { ": " };
                format!("ended{elapsed}{colon}{result}{sums}")
            }
            None => result.to_owned(),
        };
        self.line(&format!("{label:<10} {what}"));
        self.done(label);
    }

    /// Prints what the cap leaves out at first, and what it has room for after all.
    fn fitted(&mut self, data: &Value) {
        let agents = texts(&data["agents"]);
        if data["again"] == true {
            let mut added = agents.clone();
            added.retain(|agent| !self.fitted.contains(agent));
            if !added.is_empty() {
                let added = added.join(", ");
                let why = "the calls so far cost less than they might have";
                self.line(&format!("cap        {added} can run after all: {why}"));
            }
        } else {
            for left_out in texts(&data["leftOut"]) {
                self.line(&format!("cap        {left_out}"));
            }
        }
        self.fitted = agents;
    }

    fn round(&mut self, data: &Value) {
        let label = format!("round {}", data["round"]);
        let why = text(data, "why");
        if data["state"] == "skipped" {
            self.close_round(data);
            self.line(&format!("{label:<10} skipped: {why}"));
            return;
        }
        self.begin(&label, &format!("begins: {why}"), data);
        self.done(&label);
        self.agents.clear();
    }

    /// Ends the round under way, when the next stage begins. Agents may be added to round 1 after
    /// others have finished.
    fn close_round(&mut self, data: &Value) {
        let mut labels = self.stages.keys();
        if let Some(label) = labels.find(|label| label.starts_with("round ")).cloned() {
            self.end(&label, "", data);
        }
    }

    fn call_ended(&mut self, data: &Value) {
        let call = text(data, "call");
        self.sums.add(data);
        if let Some(stage) = self.stages.get_mut(&label_of(&call)) {
            stage.sums.add(data);
        }
        for part in call.split(['/', '#']) {
            if let Some(agent) = self.agents.get_mut(part) {
                agent.sums.add(data);
            }
        }
        if data["outcome"] == "failed" {
            let said = data["said"].as_str().or(data["detail"].as_str());
            let (cause, said) = (text(data, "cause"), said.unwrap_or_default());
            self.line(&format!("  {call}: attempt failed ({cause}): {said}"));
        }
    }

    fn agent_finished(&mut self, data: &Value) {
        let agent = text(data, "agent");
        let part = self.agents.remove(&agent).unwrap_or_default();
        let claims = |count: u64| counted(count, "claim", "claims");
        let count = |key: &str| data[key].as_u64();
        let what = match (data["cause"].as_str(), count("kept"), count("conceded")) {
            (Some("circuit open"), ..) => format!("failed: {}", text(data, "detail")),
            (Some(cause), ..) => format!("failed: {cause}"),
            (None, ..) if data["reusedFrom"].is_string() => "reused".to_owned(),
            (None, Some(kept), Some(conceded)) => {
                format!("keeps {}, concedes {conceded}", claims(kept))
            }
            (None, ..) => text(data, "outcome"),
        };
        let (elapsed, sums) = (part.elapsed(data), part.sums.shown());
        self.line(&format!("{agent:<10} {what}{elapsed}{sums}"));
        self.done(&agent);
    }

    fn scored(&mut self, data: &Value) {
        self.close_round(data);
        let shown = |score: &Value| {
            let (agent, status) = (text(score, "agent"), text(score, "status"));
            let (agent, status) = (without_controls(&agent), without_controls(&status));
            let tone = read::<Status>(&score["status"]).map_or(Tone::Neutral, Tone::from);
            let cred = score["cred"].as_f64().unwrap_or(0.0);
            format!("{agent} {cred:.2} {}", tone.on_stderr(status))
        };
        let scores = data["scores"].as_array().into_iter().flatten();
        let scores: Vec<String> = scores.map(shown).collect();
        self.print(&format!("scores     {}", scores.join(", ")));
    }

    fn gated(&self, data: &Value) {
        let figure = |key: &str| data[key].as_f64().unwrap_or(0.0);
        let tone = read::<Gate>(&data["gate"]).map_or(Tone::Neutral, Tone::from);
        let threshold = figure("threshold");
        let c_final = shown_c_final(figure("c_final"), threshold, 2);
        let c_final = tone.on_stderr(format!("c_final {c_final}"));
        let meaning = "(confidence in the reply)";
        let threshold = shown_bound(threshold);
        self.print(&format!(
            "gate       {c_final} {meaning}, threshold {threshold}"
        ));
    }

    /// Prints the end of the run. The time is that on the clock since the command began to wait.
    fn ended(&self) {
        let seconds = self.begun.elapsed().as_secs_f64();
        let sums = self.sums.shown();
        self.line(&format!("run        ended after {seconds:.1} s{sums}"));
    }

    /// Prints a line above the moving one, without control characters, which a model may have
    /// written.
    pub fn line(&self, line: &str) {
        self.print(&without_controls(line));
    }

    /// Prints a line that has only the program's own words and colours.
    fn print(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None if !self.silent => tell!("{line}"),
            None => {}
        }
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn working(&mut self, who: &str) {
        if !self.busy.iter().any(|known| known == who) {
            self.busy.push(who.to_owned());
        }
        self.say();
    }

    fn done(&mut self, who: &str) {
        self.busy.retain(|known| known != who);
        self.say();
    }

    fn say(&self) {
        if let Some(bar) = &self.bar {
            bar.set_message(without_controls(&self.busy.join(", ")).into_owned());
        }
    }
}

/// Returns the label of the stage that a call belongs to. What is asked besides plan, rounds and
/// cross-check belongs to the synthesis.
fn label_of(call: &str) -> String {
    match call.parse::<CallName>().map(|name| name.step) {
        Ok(CallStep::Report { round, .. } | CallStep::Resolve { round, .. }) => {
            format!("round {round}")
        }
        Ok(CallStep::Plan) => PLAN.to_owned(),
        Ok(CallStep::CrossCheck { .. }) => "check".to_owned(),
        _ => "synthesis".to_owned(),
    }
}

fn planned(plan: &Value) -> String {
    let agents = texts(&plan["agentsToRun"]).join(", ");
    let rounds = counted(plan["rounds"].as_u64().unwrap_or(1), "round", "rounds");
    format!("{}, {rounds}: {agents}", text(plan, "taskType"))
}

fn cross_checked(data: &Value) -> String {
    if data["passes"] == 0 {
        return format!("none: {}", texts(&data["notes"]).join("; "));
    }
    let count = |key: &str| data[key].as_u64().unwrap_or(0);
    let verdicts = counted(count("verdicts"), "verdict", "verdicts");
    format!("{verdicts}, {} contradicted", count("contradicted"))
}

fn synthesized(data: &Value) -> &'static str {
    match (data["wrote"].as_str(), data["obtained"].as_str()) {
        (Some("question"), _) => "a question instead of an answer",
        (_, Some("no synthesis")) => "the best single report, unchanged",
        _ => "written",
    }
}

fn text(data: &Value, key: &str) -> String {
    data[key].as_str().unwrap_or_default().to_owned()
}

fn texts(values: &Value) -> Vec<String> {
    let texts = values.as_array().into_iter().flatten();
    let texts = texts.filter_map(Value::as_str).map(str::to_owned);
    texts.collect()
}

/// Returns when the event happened.
fn time(data: &Value) -> Option<Timestamp> {
    data["at"].as_str()?.parse().ok()
}

fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_what_passed_and_latencies_of_several_calls_are_a_sum() {
        let stage = Stage {
            began: "2026-01-05T10:00:00Z".parse().ok(),
            ..Stage::default()
        };
        let end = json!({ "at": "2026-01-05T10:00:03.25Z" });
        assert_eq!(stage.elapsed(&end), " after 3.2 s");
        let call =
            json!({ "latencyMs": 2000, "inputTokens": 10, "outputTokens": 5, "costUsd": 0.1 });
        let mut sums = Sums::default();
        sums.add(&call);
        assert_eq!(sums.shown(), "; 1 call, 10 in / 5 out tokens, $0.10000");
        sums.add(&call);
        let expected = "; 2 calls (4.0 s in sum), 20 in / 10 out tokens, $0.20000";
        assert_eq!(sums.shown(), expected);
    }
}
