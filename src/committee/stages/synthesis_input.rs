//! Builds the input and the messages of the synthesis call, and cleans the draft that comes of it.

use serde_json::{Value, json};

use crate::committee::call::CallSpec;
use crate::committee::call::prompts::set;
use crate::committee::deps::Deps;
use crate::committee::failure::Failure;
use crate::committee::money::budget::ModelText;
use crate::committee::reply::assumptions::one_line;
use crate::committee::reply::redaction::Redactor;
use crate::committee::reply::sections;
use crate::committee::request_context::RequestContext;
use crate::committee::stages::deliberation::Deliberation;
use crate::domain::{Agent, AgentReport, Disagreement, Plan, Position, Role, Status, Tag};
use crate::journal::{DisagreementNote, Justification, RunContext, Synthesized};

/// The most disagreements that the master is shown.
const MAX_DISAGREEMENTS: usize = 6;

/// What the master is to work from.
pub struct SynthesisInput<'a> {
    pub run: &'a RunContext,
    pub deps: &'a Deps,
    pub request: &'a RequestContext,
    pub plan: &'a Plan,
    pub deliberation: &'a Deliberation,
}

impl<'a> SynthesisInput<'a> {
    /// The outputs that are not discarded: agent, report, score, tokens; the best first.
    pub fn usable(&self) -> Vec<(Agent, &'a AgentReport, &'a crate::domain::Score, u64)> {
        let mut usable: Vec<_> = self
            .deliberation
            .answered()
            .filter(|(_, _, score, _)| score.status != Status::Discard)
            .collect();
        usable.sort_by(|a, b| b.2.cred.total_cmp(&a.2.cred));
        usable
    }

    /// Removes references to discarded outputs.
    pub fn discarded(&self) -> Redactor {
        let reports = self.deliberation.answered();
        let discarded = reports.filter(|(_, _, score, _)| score.status == Status::Discard);
        Redactor::new(discarded.map(|(agent, report, ..)| (agent.as_str(), report)))
    }

    /// Removes references to discarded outputs and to quarantined ones whose use nothing justifies.
    pub fn barred(&self, justified: &[Justification]) -> Redactor {
        let unjustified = self.without_reason(justified);
        let reports = self.deliberation.answered();
        let barred = reports.filter(|(agent, _, score, _)| {
            score.status == Status::Discard || unjustified.contains(agent)
        });
        Redactor::new(barred.map(|(agent, report, ..)| (agent.as_str(), report)))
    }

    /// Finds references to one agent's output.
    pub fn units_of(&self, agent: Agent) -> Redactor {
        let reports = self.deliberation.answered();
        let own = reports.filter(|(name, ..)| *name == agent);
        Redactor::new(own.map(|(agent, report, ..)| (agent.as_str(), report)))
    }

    /// The quarantined agents of whom it is not said why their outputs are used.
    pub fn without_reason(&self, justified: &[Justification]) -> Vec<Agent> {
        let quarantined = self.deliberation.with_status(Status::Quarantine);
        quarantined
            .into_iter()
            .filter(|agent| !justified.iter().any(|j| j.agent == *agent))
            .collect()
    }

    /// The units, as "agent:unit id", that some texts name.
    pub fn units_named(&self, texts: &[&str]) -> Vec<String> {
        let usable = self.usable();
        let names = Redactor::new(
            usable
                .iter()
                .map(|(agent, report, ..)| (agent.as_str(), *report)),
        );
        let units = usable
            .iter()
            .flat_map(|(agent, r, ..)| r.units.iter().map(move |u| format!("{agent}:{}", u.id)));
        let units: Vec<String> = units.collect();
        let named = texts.iter().flat_map(|text| names.references(text));
        named
            .filter_map(|name| {
                units
                    .iter()
                    .find(|unit| unit.eq_ignore_ascii_case(name))
                    .cloned()
            })
            .collect()
    }

    /// The values of the master's prompts, and what of them models wrote.
    pub fn values(&self) -> (Value, Vec<ModelText>) {
        let mut values = self.request.values(Some(self.plan.task_type.as_str()), &[]);
        let mut texts = vec![];
        let outputs: Vec<Value> = self
            .usable()
            .into_iter()
            .map(|(agent, report, score, tokens)| {
                let report_json = qualified(agent, report).for_models();
                texts.push(ModelText::of(&report_json, tokens));
                let axes: Vec<String> = score
                    .axes
                    .iter()
                    .map(|(axis, s)| format!("{} {:.0}", axis.as_str(), s.points))
                    .collect();
                json!({
                    "agent": agent.as_str(),
                    "status": score.status.as_str(),
                    "cred": format!("{:.2}", score.cred),
                    "axes": axes.join(", "),
                    "report_json": report_json,
                })
            })
            .collect();
        set(&mut values, "outputs", json!(outputs));
        let disagreements: Vec<Value> = self
            .visible_disagreements()
            .into_iter()
            .map(|(topic, positions)| json!({ "topic": topic, "positions": positions }))
            .collect();
        set(&mut values, "disagreements", json!(disagreements));
        let reports: Vec<(Agent, &AgentReport)> =
            self.usable().iter().map(|(a, r, ..)| (*a, *r)).collect();
        set(
            &mut values,
            "findings",
            json!(self.deliberation.evidence.findings(&reports)),
        );
        let missing: Vec<String> = self
            .deliberation
            .failed()
            .map(|(agent, cause, _)| format!("{agent}: {cause}"))
            .collect();
        set(&mut values, "missing", json!(missing));
        (values, texts)
    }

    /// Disagreements between outputs that are not discarded, with the units that state each position; the gravest first,
    /// and as many as the money that is held for the synthesis has room for.
    fn visible_disagreements(&self) -> Vec<(String, Vec<String>)> {
        let usable = self.usable();
        let topic = |topic: &str| {
            let mut units = usable.iter().flat_map(|(_, report, ..)| &report.units);
            let known = ["final answer", "claims"].contains(&topic)
                || units.any(|unit| unit.topic.trim().eq_ignore_ascii_case(topic));
            // The topic may be that of a discarded output, which the master must not see.
            if known {
                topic.to_owned()
            } else {
                "a contested point".to_owned()
            }
        };
        let told = |(d, positions): (&Disagreement, Vec<Position>)| {
            let shown = positions.into_iter().map(|p| {
                let named = if p.units.is_empty() {
                    &p.agents
                } else {
                    &p.units
                };
                let text = sections::excerpt(&p.text, 160);
                let named: Vec<&str> = named.iter().take(6).map(String::as_str).collect();
                if named.is_empty() {
                    text
                } else {
                    format!("{text} ({})", named.join(", "))
                }
            });
            (topic(&d.topic), shown.take(3).collect())
        };
        self.deliberation
            .visible_disagreements()
            .into_iter()
            .take(MAX_DISAGREEMENTS)
            .map(told)
            .collect()
    }

    pub fn ask(
        &self,
        step: &str,
        values: Value,
        model_texts: Vec<ModelText>,
    ) -> Result<CallSpec<'static>, Failure> {
        let Some(master) = self.deps.role(Role::Master) else {
            return Err(Failure::internal("no master is configured"));
        };
        let planned = self
            .deliberation
            .trimmed
            .max_tokens
            .iter()
            .find(|(role, _)| *role == Role::Master);
        Ok(CallSpec {
            step: step.to_owned(),
            role: Role::Master,
            prompt: self.deps.prompts.render(master.prompts, step, values)?,
            images: &[],
            model_texts,
            max_tokens: planned.map_or(master.max_tokens, |(_, tokens)| *tokens),
            answer_tokens: None,
            // The estimate comes after the synthesis, and a little must be left for the end.
            until: self
                .deps
                .stage_end(self.run, if step == "estimate" { 0.98 } else { 0.93 }),
        })
    }

    /// The detected disagreements as notes.
    pub fn detected(&self) -> Vec<DisagreementNote> {
        let note = |(topic, positions): (String, Vec<String>)| DisagreementNote {
            topic,
            summary: positions.join(" / "),
        };
        self.visible_disagreements().into_iter().map(note).collect()
    }
}

/// The report with unit ids that say whose they are.
fn qualified(agent: Agent, report: &AgentReport) -> AgentReport {
    let mut report = report.clone();
    for unit in &mut report.units {
        unit.id = format!("{agent}:{}", unit.id);
    }
    report
}

/// Returns the answer that a report tags as final.
pub(super) fn answer_of(report: &AgentReport) -> Option<String> {
    let unit = report
        .units
        .iter()
        .find(|unit| unit.tags.contains(&Tag::Answer))?;
    Some(one_line(&unit.text)).filter(|answer| !answer.is_empty())
}

/// Puts the draft into the form in which it is shown, and removes references that it must not have.
pub(super) fn clean(input: &SynthesisInput<'_>, synthesized: &mut Synthesized) {
    let Some(draft) = &mut synthesized.draft else {
        return;
    };
    sections::plain_draft(draft);
    let barred = input.barred(&draft.quarantine_justifications);
    barred.redact_draft(
        synthesized,
        "references to discarded or unjustified quarantined outputs were removed from the draft",
    );
}
