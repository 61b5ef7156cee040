//! Builds the input of the master's calls after the rounds, and cleans the draft that results.

use serde_json::{Value, json};

use crate::committee::call::CallSpec;
use crate::committee::call::prompts::set;
use crate::committee::deps::Deps;
use crate::committee::failure::Failure;
use crate::committee::money::budget::{self, ModelText};
use crate::committee::reply::assumptions;
use crate::committee::reply::redaction::Redactor;
use crate::committee::reply::sections;
use crate::committee::request_context::RequestContext;
use crate::committee::stages::deliberation::Deliberation;
use crate::domain::{Agent, AgentReport, Disagreement, Plan, Position, Role, Status, Tag};
use crate::journal::{DisagreementNote, Draft, Justification, RunContext, Synthesized};
use crate::text::{excerpt, one_line};

/// Maximum number of disagreements shown to the master.
const MAX_DISAGREEMENTS: usize = 6;

/// The data that the master's calls after the rounds use.
pub struct SynthesisInput<'a> {
    pub run: &'a RunContext,
    pub deps: &'a Deps,
    pub request: &'a RequestContext,
    pub plan: &'a Plan,
    pub deliberation: &'a Deliberation,
}

impl<'a> SynthesisInput<'a> {
    /// Returns the outputs that are not discarded, with agent, report, score and tokens, the
    /// highest `Cred` first.
    pub fn usable(&self) -> Vec<(Agent, &'a AgentReport, &'a crate::domain::Score, u64)> {
        let mut usable: Vec<_> = self
            .deliberation
            .answered()
            .filter(|(_, _, score, _)| score.status != Status::Discard)
            .collect();
        usable.sort_by(|a, b| b.2.cred.total_cmp(&a.2.cred));
        usable
    }

    /// Returns the redactor for references to the outputs that `which` selects.
    fn redactor(&self, which: impl Fn(Agent, Status) -> bool) -> Redactor {
        let answered = self.deliberation.answered();
        let selected = answered.filter(|(agent, _, score, _)| which(*agent, score.status));
        Redactor::new(selected.map(|(agent, report, ..)| (agent.into_str(), report)))
    }

    /// Returns the redactor for references to discarded outputs.
    pub fn discarded(&self) -> Redactor {
        self.redactor(|_, status| status == Status::Discard)
    }

    /// Returns the redactor for references to discarded outputs and to quarantined outputs whose
    /// use is not justified.
    pub fn barred(&self, justified: &[Justification]) -> Redactor {
        let unjustified = self.without_reason(justified);
        self.redactor(|agent, status| status == Status::Discard || unjustified.contains(&agent))
    }

    /// Returns the redactor for references to one agent's output.
    pub fn units_of(&self, agent: Agent) -> Redactor {
        self.redactor(|own, _| own == agent)
    }

    /// Returns the quarantined agents without a justification for the use of their outputs.
    pub fn without_reason(&self, justified: &[Justification]) -> Vec<Agent> {
        let quarantined = self.deliberation.with_status(Status::Quarantine);
        quarantined
            .into_iter()
            .filter(|agent| !justified.iter().any(|j| j.agent == *agent))
            .collect()
    }

    /// Returns the units that a text refers to, as "agent:unit id", in order and with repetitions.
    pub fn units_named(&self, text: &str) -> Vec<String> {
        let usable = self.usable().into_iter();
        let units: Vec<String> = usable
            .flat_map(|(agent, r, ..)| r.units.iter().map(move |u| format!("{agent}:{}", u.id)))
            .collect();
        let named = self.redactor(|_, status| status != Status::Discard);
        let known = |name: &&str| units.iter().find(|unit| unit.eq_ignore_ascii_case(name));
        let references = named.references(text).into_iter();
        references
            .filter_map(|name| known(&name).cloned())
            .collect()
    }

    /// Returns the values of the master's prompts, and those parts of them that models wrote.
    pub fn values(&self) -> (Value, Vec<ModelText>) {
        let mut values = self
            .request
            .values(Some(self.plan.task_type.into_str()), &[]);
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
                    .map(|(axis, s)| format!("{} {:.0}", axis.into_str(), s.points))
                    .collect();
                json!({
                    "agent": agent.into_str(),
                    "status": score.status.into_str(),
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

    /// Returns the topic and the positions of the disagreements between outputs that are not
    /// discarded. Each position names its units, or else its agents. The final answer comes first,
    /// then the disagreements by severity. At most [`MAX_DISAGREEMENTS`] with 3 positions each,
    /// because the money earmarked for the synthesis is limited.
    fn visible_disagreements(&self) -> Vec<(String, Vec<String>)> {
        let usable = self.usable();
        let topic = |topic: &str| {
            let mut units = usable.iter().flat_map(|(_, report, ..)| &report.units);
            let known = ["final answer", "claims"].contains(&topic)
                || units.any(|unit| unit.topic.trim().eq_ignore_ascii_case(topic));
            // The topic may come from a discarded output, which the master must not see.
            if known {
                topic.to_owned()
            } else {
                "a contested point".to_owned()
            }
        };
        let told = |(d, positions): (&Disagreement, Vec<Position>)| {
            let shown = positions.into_iter().map(|p| {
                let text = excerpt(&p.text, 160);
                let mut named: Vec<String> = p.units.iter().map(ToString::to_string).collect();
                if named.is_empty() {
                    named = p.agents;
                }
                named.truncate(6);
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

    /// Returns the specification of a call to the master for this step.
    ///
    /// # Errors
    /// If no master is configured or the prompt cannot be rendered.
    pub fn ask(
        &self,
        step: &str,
        values: Value,
        model_texts: Vec<ModelText>,
    ) -> Result<CallSpec<'static>, Failure> {
        let Some(master) = self.deps.role(Role::Master) else {
            return Err(Failure::internal("no master is configured"));
        };
        let given = budget::given(&self.deliberation.trimmed.max_tokens, Role::Master);
        Ok(CallSpec {
            step: step.to_owned(),
            role: Role::Master,
            prompt: self.deps.prompts.render(master.prompts, step, values)?,
            images: &[],
            model_texts,
            max_tokens: given.unwrap_or(master.limit_in(self.request.question.mode)),
            answer_tokens: None,
            // The estimate comes after the synthesis. Some time must be left for finishing the run.
            until: self
                .deps
                .stage_end(self.run, if step == "estimate" { 0.98 } else { 0.93 }),
        })
    }

    /// Returns a draft that the service itself completes: its main answer, and nothing that only a
    /// structured synthesis states. The assumptions are those of the given reports.
    pub fn draft(&self, main: String, reports: &[(Agent, &AgentReport)]) -> Draft {
        let stated = assumptions::of_reports(reports);
        let (assumptions, assumptions_left_out) =
            assumptions::ledger(&stated, reports, self.request);
        Draft {
            tldr: vec![sections::first_sentence(&main)],
            assumptions,
            assumptions_left_out,
            disagreements: self.detected(),
            ..Draft::new(self.plan.task_type, main)
        }
    }

    /// Returns the detected disagreements as notes.
    pub fn detected(&self) -> Vec<DisagreementNote> {
        let note = |(topic, positions): (String, Vec<String>)| DisagreementNote {
            topic,
            summary: positions.join(" / "),
        };
        self.visible_disagreements().into_iter().map(note).collect()
    }
}

/// Returns the report with unit ids that start with the agent.
fn qualified(agent: Agent, report: &AgentReport) -> AgentReport {
    let mut report = report.clone();
    for unit in &mut report.units {
        unit.id = format!("{agent}:{}", unit.id);
    }
    report
}

/// Returns the text of the first unit that a report tags as its answer, on one line.
pub(super) fn answer_of(report: &AgentReport) -> Option<String> {
    let unit = report
        .units
        .iter()
        .find(|unit| unit.tags.contains(&Tag::Answer))?;
    Some(one_line(&unit.text)).filter(|answer| !answer.is_empty())
}

/// Reduces the texts of the draft to plain lines and removes references that it must not contain.
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
