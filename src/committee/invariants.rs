//! What holds for every reply (SPEC 14): one function, called before a reply leaves and by every test that gets one.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::plan::OrchestrationPlan;
use super::reply::{ASSUMPTIONS, AUDIT, CONFIDENCE, ESTIMATE, TLDR, figure};
use super::steps::plan_steps;
use crate::domain::{AgentReport, Estimate, Mode, OPTION_LETTERS, Outcome, Pert, Reply, Status, Usd};
use crate::journal::{AgentOutcome, Broken, Draft, Event, views};

/// A rule that a reply breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub rule: &'static str,
    pub detail: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.rule, self.detail)
    }
}

/// A reply with everything it is held against.
pub struct Exhibit<'a> {
    pub reply: &'a Reply,
    pub mode: Mode,
    /// The run's journal, in order.
    pub events: &'a [Event],
    /// What became of the chain when it was proven.
    pub chain: Result<(), Broken>,
    pub threshold: f64,
    /// Secrets that must stand nowhere.
    pub secrets: &'a [&'a str],
}

/// Every rule that the reply breaks; empty is as it must be.
pub fn check(exhibit: &Exhibit<'_>) -> Vec<Violation> {
    let mut found = Findings(vec![]);
    found.gate(exhibit);
    if exhibit.reply.outcome == Outcome::Answered {
        found.sections(exhibit);
        found.estimate(exhibit);
    }
    found.discarded(exhibit);
    found.quarantined(exhibit);
    found.money(exhibit);
    found.schemas(exhibit);
    found.audit(exhibit);
    found.secrets(exhibit);
    if let Err(broken) = &exhibit.chain {
        found.add("the journal's chain verifies", broken.to_string());
    }
    found.0
}

struct Findings(Vec<Violation>);

impl Findings {
    fn add(&mut self, rule: &'static str, detail: impl Into<String>) {
        self.0.push(Violation { rule, detail: detail.into() });
    }

    fn gate(&mut self, x: &Exhibit<'_>) {
        let asks = x.reply.outcome == Outcome::Clarification;
        let below = x.reply.meta.c_final < x.threshold;
        if asks != below && x.reply.outcome != Outcome::Heuristic {
            let detail = format!("c_final {} with outcome {}", x.reply.meta.c_final, x.reply.outcome.as_str());
            self.add("c_final below the threshold means a question, else an answer", detail);
        }
        if !asks {
            return;
        }
        let text = &x.reply.text;
        let marks = text.matches('?').count();
        if marks != 1 {
            self.add("exactly one question", format!("{marks} question marks"));
        }
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let shaped = lines.len() == 4
            && lines.first().is_some_and(|line| line.ends_with('?'))
            && lines.iter().skip(1).zip(OPTION_LETTERS).all(|(line, letter)| line.starts_with(&format!("{letter}) ")));
        if !shaped {
            self.add("one question, three options, and nothing after them", text.clone());
        }
    }

    fn sections(&mut self, x: &Exhibit<'_>) {
        let mut from = 0;
        for heading in [TLDR, ASSUMPTIONS, CONFIDENCE] {
            match line_at(&x.reply.text, heading, from) {
                Some(at) => from = at,
                None => self.add("TL;DR, assumptions and confidence are present, in order", heading),
            }
        }
        if !x.reply.text.contains(&format!("{CONFIDENCE}\n\n{:.2}\n", x.reply.meta.c_final)) {
            self.add("the confidence shown is c_final with two decimals", x.reply.meta.c_final.to_string());
        }
    }

    fn estimate(&mut self, x: &Exhibit<'_>) {
        let Some(draft) = draft(x.events) else { return };
        let shown = line_at(&x.reply.text, ESTIMATE, 0).is_some();
        if !plan_steps(&draft.main).is_empty() && draft.estimate.is_none() {
            self.add("a plan has an estimate", "the main answer has a plan, the draft no estimate");
        }
        if shown != draft.estimate.is_some() {
            self.add("a plan has an estimate", "the estimate of the draft and the reply's section differ");
        }
        if let Some(estimate) = &draft.estimate {
            self.arithmetic(estimate, &x.reply.text);
        }
    }

    fn arithmetic(&mut self, estimate: &Estimate, text: &str) {
        for (i, step) in estimate.steps.iter().enumerate() {
            let t = step.time;
            if t != Pert::new(t.optimistic, t.likely, t.pessimistic) {
                self.add("0 <= O <= M <= P and E = (O + 4M + P) / 6", format!("step {}", i + 1));
            }
        }
        let t = estimate.total();
        let expected = [t.optimistic, t.likely, t.pessimistic, t.expected].map(figure);
        let shown = totals(text);
        if shown.as_deref() != Some(expected.as_slice()) {
            self.add("the totals are the sums of the steps", format!("{shown:?} instead of {expected:?}"));
        }
    }

    /// Before the appendix, which lists every agent by duty, nothing of a discarded output stands.
    fn discarded(&mut self, x: &Exhibit<'_>) {
        let body = x.reply.text.split(AUDIT).next().unwrap_or("").to_lowercase();
        let others: String = kept_texts(x.events).join("\n").to_lowercase();
        for agent in &x.reply.meta.invalidation.discarded {
            for report in reports(x.events).filter(|(name, _)| *name == agent.as_str()).map(|(_, report)| report) {
                for unit in &report.units {
                    if body.contains(&format!("{agent}:{}", unit.id).to_lowercase()) {
                        self.add("DISCARD is never referenced", format!("unit {agent}:{}", unit.id));
                    }
                }
                for sentence in report.texts().filter(|t| t.len() >= 80).map(str::to_lowercase) {
                    if body.contains(&sentence) && !others.contains(&sentence) {
                        self.add("DISCARD is never referenced", format!("a sentence of {agent}"));
                    }
                }
            }
        }
    }

    fn quarantined(&mut self, x: &Exhibit<'_>) {
        let Some(draft) = draft(x.events) else { return };
        for agent in &x.reply.meta.invalidation.quarantined {
            let used = draft.units_used.iter().any(|id| id.starts_with(&format!("{agent}:")));
            let justified = draft.quarantine_justifications.iter().any(|j| j.agent == *agent && !j.why.is_empty());
            if used && !justified {
                self.add("QUARANTINE is justified", agent.as_str());
            }
        }
        for agent in &x.reply.meta.invalidation.discarded {
            if draft.units_used.iter().any(|id| id.starts_with(&format!("{agent}:"))) {
                self.add("DISCARD is never referenced", format!("a unit of {agent} is in unitsUsed"));
            }
        }
    }

    fn money(&mut self, x: &Exhibit<'_>) {
        let settled: Usd =
            views::calls(&x.events.iter()).iter().filter_map(|c| c.settled).map(|settled| settled.cost).sum();
        let budget = &x.reply.meta.budget;
        if settled != budget.spent {
            self.add("what is reported is what was settled", format!("{settled} settled, {} reported", budget.spent));
        }
        if budget.spent > budget.cap && !budget.exceeded {
            self.add("spending is at most the cap", format!("{} of {}", budget.spent, budget.cap));
        }
    }

    fn schemas(&mut self, x: &Exhibit<'_>) {
        for event in x.events {
            match event {
                Event::Planned(planned) => self.schema::<OrchestrationPlan>("the plan", &json!(planned.plan)),
                Event::AgentFinished(finished) => {
                    if let AgentOutcome::Answered { report, .. } = &finished.outcome {
                        self.schema::<AgentReport>("an agent's report", &json!(report));
                    }
                }
                _ => {}
            }
        }
    }

    fn schema<T: JsonSchema>(&mut self, what: &str, value: &Value) {
        let schema = schemars::schema_for!(T).to_value();
        if let Err(error) = jsonschema::validate(&schema, value) {
            self.add("plan and agent JSON are valid against their schemas", format!("{what}: {error}"));
        }
    }

    fn audit(&mut self, x: &Exhibit<'_>) {
        let rule = "the audit is present exactly in audit and deep";
        if x.reply.audit.is_some() != x.mode.has_audit() {
            self.add(rule, format!("in {}", x.mode.as_str()));
        }
        let appendix = line_at(&x.reply.text, AUDIT, 0).is_some();
        if appendix != (x.mode.has_audit() && x.reply.outcome == Outcome::Answered) {
            self.add(rule, "as Markdown");
        }
    }

    fn secrets(&mut self, x: &Exhibit<'_>) {
        let audit = x.reply.audit.as_ref().map(Value::to_string).unwrap_or_default();
        let leaks = |secret: &&&str| secret.len() >= 6 && (x.reply.text.contains(**secret) || audit.contains(**secret));
        if x.secrets.iter().any(|secret| leaks(&secret)) {
            self.add("no secret anywhere", "in the reply or its audit");
        }
    }
}

/// Where a line that is exactly `heading` begins, at or after `from`.
fn line_at(text: &str, heading: &str, from: usize) -> Option<usize> {
    let mut at = 0;
    for line in text.split('\n') {
        if at >= from && line.trim_end() == heading {
            return Some(at);
        }
        at += line.len() + 1;
    }
    None
}

static TOTALS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?m)^- Total: O_total=([0-9.]+), M_total=([0-9.]+), P_total=([0-9.]+), E_total=([0-9.]+)$").ok()
});

fn totals(text: &str) -> Option<Vec<String>> {
    let captures = TOTALS.as_ref()?.captures(text)?;
    Some(captures.iter().skip(1).flatten().map(|m| m.as_str().to_owned()).collect())
}

fn draft(events: &[Event]) -> Option<&Draft> {
    events.iter().find_map(|event| match event {
        Event::Synthesized(synthesized) => synthesized.draft.as_ref(),
        _ => None,
    })
}

fn reports(events: &[Event]) -> impl Iterator<Item = (&str, &AgentReport)> {
    events.iter().filter_map(|event| match event {
        Event::AgentFinished(finished) => match &finished.outcome {
            AgentOutcome::Answered { report, .. } => Some((finished.agent.as_str(), report)),
            AgentOutcome::Failed { .. } => None,
        },
        _ => None,
    })
}

/// The texts that a reply may quote: the question's and those of outputs that were not discarded.
fn kept_texts(events: &[Event]) -> Vec<String> {
    let discarded: BTreeSet<&str> = events
        .iter()
        .filter_map(|event| match event {
            Event::Scored(scored) => Some(&scored.judgement.scores),
            _ => None,
        })
        .flatten()
        .filter(|score| score.status == Status::Discard)
        .map(|score| score.agent.as_str())
        .collect();
    let question = events.iter().filter_map(|event| match event {
        Event::Accepted(accepted) => Some(accepted.question.message.clone()),
        _ => None,
    });
    let kept = reports(events).filter(|(agent, _)| !discarded.contains(agent));
    question.chain(kept.flat_map(|(_, report)| report.texts().map(str::to_owned).collect::<Vec<_>>())).collect()
}
