//! Live progress on standard error: one line for each event, and a line with the current activity.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::colour::Tone;
use super::printable::without_controls;
use crate::domain::{Agent, Role, Score};
use crate::journal::{
    AgentFinished, AgentOutcome, CallResult, CallSettled, CrossChecked, Entry, Event, Planned,
    Scored, Synthesized, Transcript, views,
};

/// A progress display. It receives journal entries and draws them.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    silent: bool,
    events: Vec<Event>,
    /// Agents that are working.
    busy: Vec<String>,
}

impl Progress {
    pub fn new(silent: bool) -> Self {
        let bar = (!silent && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self {
            bar,
            silent,
            events: vec![],
            busy: vec![],
        }
    }

    /// Shows an entry of a run that this process executes.
    pub fn entry(&mut self, entry: &Entry) {
        self.events.push(entry.event.clone());
        match &entry.event {
            Event::CallSent(sent) => self.working(&label(sent.role, &sent.call)),
            Event::CallSettled(settled) => self.settled(settled),
            Event::Planned(planned) => self.planned(planned),
            Event::Trimmed(trimmed) => {
                for left_out in &trimmed.left_out {
                    self.line(&format!("cap        {left_out}"));
                }
            }
            Event::RoundStarted(round) if round.round > 1 => {
                self.line(&format!("round {}    {}", round.round, round.why));
            }
            Event::RoundSkipped(round) => {
                self.line(&format!("round {}    skipped: {}", round.round, round.why));
            }
            Event::CrossChecked(checked) => self.cross_checked(checked),
            Event::AgentFinished(finished) => self.agent_finished(finished),
            Event::Scored(scored) => self.scored(scored),
            Event::Synthesized(synthesized) => self.synthesized(synthesized),
            Event::Gated(gated) => {
                let c = &gated.confidence;
                let c_final = Tone::from(gated.gate).on_stderr(format!("c_final {:.2}", c.c_final));
                let threshold = c.threshold;
                self.print(&format!("gate       {c_final}, threshold {threshold:.2}"));
            }
            Event::Accepted(_)
            | Event::Claimed(_)
            | Event::ComputeStarted(_)
            | Event::Hinted(_)
            | Event::RoundStarted(_)
            | Event::Reviewed(_)
            | Event::Finished(_)
            | Event::Feedback(_)
            | Event::Parsed(_)
            | Event::Proposed(_)
            | Event::GateChecked(_)
            | Event::Executed(_) => {}
        }
    }

    fn settled(&self, settled: &CallSettled) {
        if let CallResult::Failed { cause, said, .. } = &settled.result {
            let (call, said) = (&settled.call, said.as_ref());
            let said = said.map(|said| format!(": {said}")).unwrap_or_default();
            self.line(&format!("  {call}: attempt failed ({cause}){said}"));
        }
    }

    fn planned(&self, planned: &Planned) {
        let plan = &planned.plan;
        let agents: Vec<&str> = plan.agents_to_run.iter().map(Agent::into_str).collect();
        let agents = agents.join(", ");
        let (task, rounds, totals) = (plan.task_type.into_str(), plan.rounds, self.totals("plan"));
        let plural = if rounds == 1 { "round" } else { "rounds" };
        self.line(&format!(
            "plan       {task}, {rounds} {plural}: {agents}{totals}"
        ));
    }

    fn cross_checked(&self, checked: &CrossChecked) {
        let totals = self.totals("cross-check");
        let verdicts = checked.passes.iter().flat_map(|pass| &pass.found.claims);
        let contradicted = verdicts
            .clone()
            .filter(|verdict| !verdict.contradicted_by.is_empty())
            .count();
        let found = if checked.passes.is_empty() {
            format!("none: {}", checked.notes.join("; "))
        } else {
            format!("{} verdicts, {contradicted} contradicted", verdicts.count())
        };
        self.line(&format!("check      {found}{totals}"));
    }

    fn agent_finished(&mut self, finished: &AgentFinished) {
        let what = match (&finished.outcome, finished.reused_from) {
            (AgentOutcome::Answered { .. }, Some(_)) => "reused".to_owned(),
            (AgentOutcome::Answered { .. }, None) => "answered".to_owned(),
            (AgentOutcome::Failed { cause, .. }, _) => format!("failed: {cause}"),
        };
        let agent = finished.agent.into_str();
        let totals = self.totals(&format!("r{}/{agent}", finished.round));
        self.line(&format!("{agent:<10} {what}{totals}"));
        self.done(agent);
    }

    fn scored(&self, scored: &Scored) {
        let shown = |s: &Score| {
            let status = Tone::from(s.status).on_stderr(s.status.into_str());
            format!("{} {:.2} {status}", s.agent, s.cred)
        };
        let scores: Vec<String> = scored.judgement.scores.iter().map(shown).collect();
        self.print(&format!("scores     {}", scores.join(", ")));
    }

    fn synthesized(&mut self, synthesized: &Synthesized) {
        let (what, step) = if synthesized.draft.is_some() {
            ("written", "synthesis")
        } else {
            ("a question instead of an answer", "question")
        };
        self.line(&format!("synthesis  {what}{}", self.totals(step)));
        self.done("master");
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
            None if !self.silent => eprintln!("{line}"),
            None => {}
        }
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    pub fn working(&mut self, who: &str) {
        if !self.busy.iter().any(|known| known == who) {
            self.busy.push(who.to_owned());
        }
        self.say();
    }

    pub fn done(&mut self, who: &str) {
        self.busy.retain(|known| !known.starts_with(who));
        self.say();
    }

    fn say(&self) {
        if let Some(bar) = &self.bar {
            bar.set_message(without_controls(&self.busy.join(", ")).into_owned());
        }
    }

    fn totals(&self, step: &str) -> String {
        let calls = Transcript::of(&self.events).calls;
        let totals = views::totals(&calls, step);
        if totals.calls == 0 {
            return String::new();
        }
        let seconds = totals.latency_ms as f64 / 1000.0;
        let repeated = if totals.calls > 1 {
            format!(", {} calls", totals.calls)
        } else {
            String::new()
        };
        let tokens = format!(
            "{} in / {} out tokens",
            totals.input_tokens, totals.output_tokens
        );
        format!(
            " in {seconds:.1} s, {tokens}, ${:.5}{repeated}",
            totals.cost.dollars()
        )
    }
}

fn label(role: Role, call: &str) -> String {
    match role {
        Role::Master => format!("master ({})", call.split(['#', '/']).next().unwrap_or(call)),
        Role::Agent(_) | Role::Proposer => role.as_str().to_owned(),
    }
}
