//! The invariants of every reply (SPEC 14). [`check`] runs before a reply is returned and in every
//! test that receives a reply.

use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::committee::output_shapes::OrchestrationPlan;
use crate::committee::reply::headings::{ASSUMPTIONS, AUDIT, CONFIDENCE, ESTIMATE, TLDR, title};
use crate::committee::reply::plan_steps::plan_steps;
use crate::committee::reply::redaction::Redactor;
use crate::committee::reply::render::totals_line;
use crate::committee::reply::sections::outline::Outline;
use crate::committee::schemas::schema_of;
use crate::domain::{
    Agent, AgentReport, Mode, OPTION_LETTERS, Outcome, Pert, Reply, Usd, is_question_mark,
    shown_c_final,
};
use crate::journal::{AgentOutcome, ChainFault, Draft, Planned, Transcript};
use crate::llm::MIN_SECRET_CHARS;
use crate::scoring::repeats_instructions;

/// A rule that a reply breaks. It is logged, so it contains the rule and counts but no text of the
/// reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {detail}")]
pub struct Violation {
    pub rule: &'static str,
    pub detail: String,
}

/// A reply and the data that it is checked against.
pub struct InvariantInput<'a> {
    pub reply: &'a Reply,
    pub mode: Mode,
    pub run: &'a Transcript<'a>,
    /// Where the journal's hash chain is broken.
    pub chain_fault: Option<ChainFault>,
    /// The threshold that `c_final` is compared with, 0 to 1.
    pub threshold: f64,
    /// Secrets that must not occur in the reply or its audit.
    pub secrets: &'a [&'a str],
}

/// Returns every rule that the reply breaks. A correct reply breaks none.
pub fn check(input: &InvariantInput<'_>) -> Vec<Violation> {
    let mut found = Violations(check_text(input));
    found.schemas(input);
    if let Some(broken) = &input.chain_fault {
        found.add("the journal's chain verifies", broken.to_string());
    }
    found.0
}

/// As [`check`], without the rules that another synthesis would not change.
pub fn check_text(input: &InvariantInput<'_>) -> Vec<Violation> {
    let mut found = Violations(vec![]);
    let frame = Frame::of(&input.reply.text);
    found.gate(input);
    if input.reply.outcome != Outcome::Clarification {
        found.sections(input, &frame);
        found.estimate(input, &frame);
    }
    found.discarded(input);
    found.quarantined(input, &frame);
    found.money(input);
    found.audit(input, &frame);
    found.secrets(input);
    found.instructions(input);
    found.0
}

const NO_DISCARDED: &str = "DISCARD is never referenced";

struct Violations(Vec<Violation>);

impl Violations {
    fn add(&mut self, rule: &'static str, detail: impl Into<String>) {
        self.0.push(Violation {
            rule,
            detail: detail.into(),
        });
    }

    /// Checks the outcome against the threshold, and the form of a question.
    fn gate(&mut self, x: &InvariantInput<'_>) {
        let asks = x.reply.outcome == Outcome::Clarification;
        let below = x.reply.meta.c_final < x.threshold;
        let is_last = x.run.gated.is_some_and(|gated| gated.is_last);
        // A question that the master asks before any agent runs does not depend on the threshold.
        // After an answered question none is asked.
        let expected = if asked_first(x.run) {
            asks
        } else {
            asks == (below && !is_last)
        };
        if !expected && x.reply.outcome != Outcome::Heuristic {
            let (c_final, outcome) = (x.reply.meta.c_final, x.reply.outcome.into_str());
            let rule = "c_final below the threshold means a question, else an answer";
            self.add(rule, format!("c_final {c_final} with outcome {outcome}"));
        }
        if !asks {
            return;
        }
        let text = &x.reply.text;
        let marks = text.matches(is_question_mark).count();
        if marks != 1 {
            self.add("exactly one question", format!("{marks} question marks"));
        }
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let lines: Vec<&str> = lines.collect();
        let begins = |(line, letter): (&&str, char)| line.starts_with(&format!("{letter}) "));
        let is_shaped = lines.len() == 4
            && lines.first().is_some_and(|line| line.ends_with('?'))
            && lines.iter().skip(1).zip(OPTION_LETTERS).all(begins);
        if !is_shaped {
            let rule = "one question, three options, and nothing after them";
            self.add(rule, format!("{} lines", lines.len()));
        }
    }

    fn sections(&mut self, x: &InvariantInput<'_>, frame: &Frame) {
        for (heading, at) in [
            (TLDR, frame.tldr),
            (ASSUMPTIONS, frame.assumptions),
            (CONFIDENCE, frame.confidence),
        ] {
            if at.is_none() {
                let rule = "TL;DR, assumptions and confidence are present, in order";
                self.add(rule, heading);
            }
        }
        let c_final = x.reply.meta.c_final;
        let figure = shown_c_final(c_final, x.threshold, 2);
        let shown = format!("{CONFIDENCE}\n\n{figure}\n");
        if !from(&x.reply.text, frame.confidence).starts_with(&shown) {
            let rule = "the confidence shown is c_final with two decimals";
            self.add(rule, c_final.to_string());
        }
    }

    fn estimate(&mut self, x: &InvariantInput<'_>, frame: &Frame) {
        let Some(draft) = x.run.draft() else { return };
        let rule = "a plan has an estimate";
        let estimated = draft.estimate.as_ref().map_or(0, |it| it.steps.len());
        if estimated == 0 && !plan_steps(&draft.main).is_empty() {
            self.add(rule, "no step of the main answer is estimated");
        }
        if frame.estimate.is_some() != draft.estimate.is_some() {
            let detail = "the estimate of the draft and the reply's section differ";
            self.add(rule, detail);
        }
        let Some(estimate) = &draft.estimate else {
            return;
        };
        for (i, step) in estimate.steps.iter().enumerate() {
            let t = step.time;
            if t != Pert::new(t.optimistic, t.likely, t.pessimistic) {
                let rule = "0 <= O <= M <= P and E = (O + 4M + P) / 6";
                self.add(rule, format!("step {}", i + 1));
            }
        }
        let (totals, section) = (totals_line(estimate), from(&x.reply.text, frame.estimate));
        if !section.lines().any(|line| line == totals) {
            let rule = "the totals are the sums of the steps";
            self.add(rule, format!("{estimated} steps"));
        }
    }

    /// Checks that the reply and its audit contain no reference to a unit of a discarded output.
    fn discarded(&mut self, x: &InvariantInput<'_>) {
        let redactor = Redactor::of_discarded(x.run);
        let in_text = redactor.references(&x.reply.text).len();
        let audit = x.reply.audit.as_ref();
        let in_audit = audit.map_or(0, |audit| redactor.count(audit));
        if in_text + in_audit > 0 {
            let detail = format!("{in_text} references in the text, {in_audit} in the audit");
            self.add(NO_DISCARDED, detail);
        }
    }

    /// Checks that the text before the audit appendix and the draft's `units_used` refer to no
    /// quarantined output whose use is not justified. Also checks that `units_used` contains no
    /// unit of a discarded output.
    fn quarantined(&mut self, x: &InvariantInput<'_>, frame: &Frame) {
        let Some(draft) = x.run.draft() else { return };
        let end = frame.audit.unwrap_or(x.reply.text.len());
        let body = x.reply.text.get(..end).unwrap_or(&x.reply.text);
        let invalidation = &x.reply.meta.invalidation;
        for agent in &invalidation.quarantined {
            let mut reasons = draft.quarantine_justifications.iter();
            if reasons.any(|j| j.agent == *agent && !j.why.is_empty()) {
                continue;
            }
            let own = Redactor::of(x.run, |it| it == *agent);
            let in_body = own.references(body).len();
            if in_body > 0 || uses_units_of(draft, *agent) {
                let detail = format!("{in_body} references to {agent}");
                self.add("QUARANTINE is justified", detail);
            }
        }
        for agent in &invalidation.discarded {
            if uses_units_of(draft, *agent) {
                self.add(NO_DISCARDED, format!("a unit of {agent} is in unitsUsed"));
            }
        }
    }

    fn money(&mut self, x: &InvariantInput<'_>) {
        let settled = x.run.calls.iter().filter_map(|call| call.settled);
        let settled: Usd = settled.map(|settled| settled.cost).sum();
        let budget = &x.reply.meta.budget;
        if settled != budget.spent {
            let detail = format!("{settled} settled, {} reported", budget.spent);
            self.add("what is reported is what was settled", detail);
        }
        if budget.spent > budget.cap && !budget.exceeded {
            let detail = format!("{} of {}", budget.spent, budget.cap);
            self.add("spending is at most the cap", detail);
        }
    }

    fn schemas(&mut self, x: &InvariantInput<'_>) {
        if let Some(planned) = x.run.planned {
            self.schema::<OrchestrationPlan>("the plan", &json!(planned.plan));
        }
        for finished in &x.run.outcomes {
            if let AgentOutcome::Answered { report, .. } = &finished.outcome {
                self.schema::<AgentReport>("an agent's report", &json!(report));
            }
        }
    }

    fn schema<T: JsonSchema + 'static>(&mut self, what: &str, value: &Value) {
        if !schema_of::<T>().accepts(value) {
            self.add("plan and agent JSON are valid against their schemas", what);
        }
    }

    fn audit(&mut self, x: &InvariantInput<'_>, frame: &Frame) {
        let rule = "the audit is present exactly in audit and deep";
        if x.reply.audit.is_some() != x.mode.has_audit() {
            self.add(rule, format!("in {}", x.mode.into_str()));
        }
        if frame.audit.is_some() != (x.mode.has_audit() && x.reply.outcome == Outcome::Answered) {
            self.add(rule, "as Markdown");
        }
    }

    fn secrets(&mut self, x: &InvariantInput<'_>) {
        let audit = x.reply.audit.as_ref().map(Value::to_string);
        let audit = audit.unwrap_or_default();
        let stands = |secret: &str| x.reply.text.contains(secret) || audit.contains(secret);
        let is_long = |secret: &str| secret.chars().count() >= MIN_SECRET_CHARS;
        let mut leaks = x.secrets.to_vec();
        leaks.retain(|secret| is_long(secret) && stands(secret));
        if !leaks.is_empty() {
            let detail = format!("{} in the reply or its audit", leaks.len());
            self.add("no secret anywhere", detail);
        }
    }

    fn instructions(&mut self, x: &InvariantInput<'_>) {
        let request = x.run.accepted.map(|accepted| &*accepted.question.message);
        let draft = x.run.synthesized.and_then(|it| it.draft.as_ref());
        if let (Some(request), Some(draft)) = (request, draft)
            && x.reply.outcome == Outcome::Answered
            && repeats_instructions(request, &draft.main)
        {
            self.add("no instruction of the prompts is repeated", "main answer");
        }
    }
}

/// The byte offsets of the service's sections. Each section is searched for after the one before
/// it. Estimate and Audit are searched for after Confidence. The main answer comes before
/// Confidence, so its headings cannot be mistaken for these two.
struct Frame {
    tldr: Option<usize>,
    assumptions: Option<usize>,
    confidence: Option<usize>,
    estimate: Option<usize>,
    audit: Option<usize>,
}

impl Frame {
    fn of(text: &str) -> Self {
        let outline = Outline::of(text);
        let after = |heading: &'static str, from: Option<usize>| {
            let level = heading.len() - heading.trim_start_matches('#').len();
            outline.section(level, title(heading), from.unwrap_or(0))
        };
        let tldr = after(TLDR, None);
        let assumptions = after(ASSUMPTIONS, tldr);
        let confidence = after(CONFIDENCE, assumptions);
        let estimate = after(ESTIMATE, confidence);
        Self {
            tldr,
            assumptions,
            confidence,
            estimate,
            audit: after(AUDIT, confidence),
        }
    }
}

/// Returns the text from a section on; empty without the section.
fn from(text: &str, section: Option<usize>) -> &str {
    section.and_then(|at| text.get(at..)).unwrap_or_default()
}

/// Returns true if the draft names a unit of the agent as a source.
fn uses_units_of(draft: &Draft, agent: Agent) -> bool {
    let prefix = format!("{agent}:");
    draft.units_used.iter().any(|id| id.starts_with(&prefix))
}

/// Returns true if the master asks its own question before any answer is judged.
fn asked_first(run: &Transcript<'_>) -> bool {
    run.planned.is_some_and(Planned::asks_user) && run.scored.is_empty()
}

#[cfg(test)]
mod tests;
