//! Builds the input of the master's calls after the rounds, and cleans the draft that results.

use serde_json::{Value, json};

use crate::committee::call::CallSpec;
use crate::committee::deps::{Deps, StageEnd};
use crate::committee::failure::Failure;
use crate::committee::money::budget::{self, ModelText};
use crate::committee::reply::assumptions;
use crate::committee::reply::redaction::Redactor;
use crate::committee::reply::sections;
use crate::committee::request_context::{RequestContext, Stage};
use crate::committee::stages::deliberation::{Deliberation, ScoredReport};
use crate::config::RoleModel;
use crate::domain::{
    Agent, AgentReport, CallStep, Disagreement, Obtained, Plan, Position, Role, Status,
};
use crate::journal::{DisagreementNote, Draft, Justification, RunContext, Synthesized, Transcript};
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
    pub fn stage(&self) -> Stage<'a> {
        Stage::new(self.run, self.deps, self.request)
    }

    /// Returns the outputs that are not discarded, the highest `Cred` first.
    pub fn usable(&self) -> Vec<ScoredReport<'a>> {
        let mut usable = self.deliberation.usable();
        usable.sort_by(|a, b| b.score.cred.total_cmp(&a.score.cred));
        usable
    }

    /// Returns the reports of the usable outputs.
    pub fn reports(&self) -> Vec<(Agent, &'a AgentReport)> {
        let usable = self.usable().into_iter();
        usable.map(|it| (it.agent, it.report)).collect()
    }

    /// Returns the redactor for references to the outputs that `which` selects, and to those of
    /// agents that failed.
    fn redactor(&self, which: impl Fn(Agent, Status) -> bool) -> Redactor {
        let judgement = &self.deliberation.judgement;
        let events = self.run.events();
        Redactor::of(&Transcript::of(&events), |agent| {
            let status = judgement.status_of(agent);
            status.is_none_or(|status| which(agent, status))
        })
    }

    /// Returns the redactor for references to discarded outputs.
    pub fn discarded(&self) -> Redactor {
        self.redactor(|_, status| status == Status::Discard)
    }

    /// Returns the redactor for references to discarded outputs and to quarantined outputs whose
    /// use is not justified.
    pub fn redactor_for(&self, justified: &[Justification]) -> Redactor {
        let unjustified = self.without_reason(justified);
        self.redactor(|agent, status| status == Status::Discard || unjustified.contains(&agent))
    }

    /// Returns the redactor for references to one agent's output.
    pub fn units_of(&self, agent: Agent) -> Redactor {
        let events = self.run.events();
        Redactor::of(&Transcript::of(&events), |it| it == agent)
    }

    /// Returns the quarantined agents without a justification for the use of their outputs.
    pub fn without_reason(&self, justified: &[Justification]) -> Vec<Agent> {
        let mut quarantined = self.deliberation.with_status(Status::Quarantine);
        quarantined.retain(|agent| justified.iter().all(|it| it.agent != *agent));
        quarantined
    }

    /// Returns the units that a text refers to, as "agent:unit id", in order and with repetitions.
    pub fn units_named(&self, text: &str) -> Vec<String> {
        let reports = self.reports().into_iter();
        let qualified = |(agent, report): (Agent, &AgentReport)| -> Vec<String> {
            let units = report.units.iter();
            units.map(|unit| format!("{agent}:{}", unit.id)).collect()
        };
        let units: Vec<String> = reports.flat_map(qualified).collect();
        let named = self.redactor(|_, status| status != Status::Discard);
        let known = |name: &&str| units.iter().find(|unit| unit.eq_ignore_ascii_case(name));
        let references = named.references(text);
        references.iter().filter_map(known).cloned().collect()
    }

    /// Returns the values of the master's prompts, with the main answer so far, and those parts of
    /// them that models wrote.
    pub fn values(&self, max_words: u32, written: &str) -> (Value, Vec<ModelText>) {
        let mut texts = vec![];
        let output = |it: ScoredReport<'_>| {
            let named = |id: &str| format!("{}:{id}", it.agent);
            let report_json = match it.obtained {
                Obtained::Text => it.report.text_for_models(named),
                _ => it.report.for_models(named),
            };
            texts.push(ModelText::of(&report_json, it.tokens));
            let axes = it.score.axes.iter();
            let axes = axes.map(|(axis, it)| format!("{} {:.0}", axis.into_str(), it.points));
            json!({
                "agent": it.agent.into_str(),
                "status": it.score.status.into_str(),
                "cred": format!("{:.2}", it.score.cred),
                "axes": axes.collect::<Vec<_>>().join(", "),
                "report_json": report_json,
            })
        };
        let outputs: Vec<Value> = self.usable().into_iter().map(output).collect();
        let disagreements = self.visible_disagreements().into_iter();
        let disagreements = disagreements
            .map(|(topic, positions)| json!({ "topic": topic, "positions": positions }));
        let failed = self.deliberation.failed();
        let missing = failed.map(|(agent, cause, _)| format!("{agent}: {cause}"));
        let values = self.request.values(json!({
            "task_type": self.plan.task_type,
            "outputs": outputs,
            "disagreements": disagreements.collect::<Vec<_>>(),
            "findings": self.deliberation.evidence.findings(&self.reports()),
            "missing": missing.collect::<Vec<_>>(),
            "max_words": max_words,
            "written": written,
        }));
        (values, texts)
    }

    /// Returns the topic and the positions of the disagreements between outputs that are not
    /// discarded. Each position names its units, or else its agents. The final answer comes first,
    /// then the disagreements by severity. At most [`MAX_DISAGREEMENTS`] with 3 positions each,
    /// because the money earmarked for the synthesis is limited.
    fn visible_disagreements(&self) -> Vec<(String, Vec<String>)> {
        let reports = self.reports();
        let topic = |topic: &str| {
            let mut units = reports.iter().flat_map(|(_, report)| &report.units);
            let is_known = ["final answer", "claims"].contains(&topic)
                || units.any(|unit| unit.topic.trim().eq_ignore_ascii_case(topic));
            // The topic may come from a discarded output, which the master must not see.
            let shown = if is_known { topic } else { "a contested point" };
            shown.to_owned()
        };
        let position = |position: Position| {
            let text = excerpt(&position.text, 160);
            let mut named: Vec<String> = position.units.iter().map(ToString::to_string).collect();
            if named.is_empty() {
                named = position.agents.iter().map(ToString::to_string).collect();
            }
            named.truncate(6);
            if named.is_empty() {
                text
            } else {
                format!("{text} ({})", named.join(", "))
            }
        };
        let with_texts = |(disagreement, positions): (&Disagreement, Vec<Position>)| {
            let positions = positions.into_iter().take(3).map(position);
            (topic(&disagreement.topic), positions.collect())
        };
        let visible = self.deliberation.visible_disagreements().into_iter();
        visible.take(MAX_DISAGREEMENTS).map(with_texts).collect()
    }

    /// Returns the specification of a call to the master for this step.
    ///
    /// # Errors
    /// If no master is configured or the prompt cannot be rendered.
    pub fn ask(
        &self,
        step: CallStep,
        values: Value,
        model_texts: Vec<ModelText>,
    ) -> Result<CallSpec<'a>, Failure> {
        let master = self.stage().master()?;
        Ok(CallSpec {
            run: self.run,
            deps: self.deps,
            step,
            role: Role::Master,
            prompt: self
                .deps
                .prompts
                .render(master.prompts, &step.to_string(), values)?,
            images: &[],
            model_texts,
            max_tokens: self.max_tokens(master),
            answer_tokens: None,
            until: self.deps.stage_end(self.run, StageEnd::Synthesis),
        })
    }

    /// Returns the output limit of the master's synthesis.
    pub fn max_tokens(&self, master: &RoleModel) -> u32 {
        let given = budget::given(&self.deliberation.trimmed.max_tokens, Role::Master);
        given.unwrap_or(master.limit_in(self.request.question.mode))
    }

    /// Returns a draft that the service itself completes: its main answer, and nothing that only a
    /// structured synthesis states. The assumptions are those of the given reports.
    pub fn draft(&self, main: String, reports: &[(Agent, &AgentReport)]) -> Draft {
        let stated = assumptions::of_reports(reports);
        let (assumptions, left_out) = assumptions::ledger(&stated, reports, self.request);
        Draft {
            assumptions,
            assumptions_left_out: left_out,
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

/// Returns the text of the first unit that a report tags as its answer, on one line.
pub(super) fn answer_of(report: &AgentReport) -> Option<String> {
    Some(one_line(&report.answers().next()?.text)).filter(|answer| !answer.is_empty())
}

/// Reduces the texts of the draft to plain lines and removes references that it must not contain.
pub(super) fn clean(input: &SynthesisInput<'_>, synthesized: &mut Synthesized) {
    let Some(draft) = &mut synthesized.draft else {
        return;
    };
    sections::plain_draft(draft);
    let redactor = input.redactor_for(&draft.quarantine_justifications);
    let correction =
        "references to discarded or unjustified quarantined outputs were removed from the draft";
    redactor.redact_draft(synthesized, correction);
}
