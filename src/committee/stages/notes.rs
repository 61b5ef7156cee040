//! The restrictions that the Confidence section states, in the language of the question.

use std::collections::BTreeSet;

use crate::committee::call::output::why;
use crate::committee::call_names::is_report;
use crate::committee::money::budget;
use crate::committee::request_context::RequestContext;
use crate::committee::rule_texts::RuleTexts;
use crate::committee::stages::deliberation::Deliberation;
use crate::committee::stages::fallback_answer;
use crate::domain::{Agent, FailureCause, Status};
use crate::journal::{
    AgentFinished, AgentOutcome, CheckScope, Continuation, Cut, Gated, Round, RoundSkipped,
    SynthesisSource, Synthesized, Transcript,
};

/// A run whose reply is about to be rendered.
pub(super) struct Noted<'a> {
    pub request: &'a RequestContext,
    /// `None` if no agent ran.
    pub deliberation: Option<&'a Deliberation>,
    pub transcript: &'a Transcript<'a>,
    pub synthesized: &'a Synthesized,
    pub gated: &'a Gated,
}

impl Noted<'_> {
    /// Returns the notes, the weightiest first.
    pub fn notes(&self) -> Vec<String> {
        let texts = self.request.rule_texts();
        let mut notes: Vec<String> = vec![];
        if self.synthesized.obtained == SynthesisSource::Fallback {
            let mut lines = self.synthesized.corrections.iter();
            let why = lines.find(|line| line.starts_with(fallback_answer::WHY));
            let why = why.map(|line| format!(" ({line})")).unwrap_or_default();
            notes.push(texts.note("no_synthesis", &[("why", &why)]));
        }
        if self.deliberation.is_some() && self.gated.confidence.is_low() {
            notes.push(texts.below(self.gated.confidence.threshold));
        }
        notes.extend(self.deliberation.iter().flat_map(|d| self.panel(d, texts)));
        notes.extend(self.cut_outputs(texts));
        notes.extend(self.taken(texts));
        match self.synthesized.draft.as_ref().and_then(|draft| draft.cut) {
            Some(Cut::EndMissing) => notes.push(texts.cut.clone()),
            Some(Cut::Continued) => notes.push(texts.continued.clone()),
            None => {}
        }
        let hinted = self.transcript.hinted.into_iter();
        let unseen = hinted.flat_map(|hinted| &hinted.unseen);
        notes.extend(unseen.map(|image| texts.unseen(image)));
        notes.extend(self.replaced(texts));
        notes
    }

    /// Says which agents are missing and why, what the cap left out, and how few outputs remained.
    fn panel(&self, deliberation: &Deliberation, texts: &RuleTexts) -> Vec<String> {
        let mut notes: Vec<String> = vec![];
        for (agent, cause, detail) in deliberation.failed() {
            let why = cause_in(texts, cause, detail);
            notes.push(texts.note("no_output", &[("agent", agent.into_str()), ("why", &why)]));
        }
        let discarded = deliberation.with_status(Status::Discard).len();
        let number = discarded.to_string();
        match discarded {
            0 => {}
            1 => notes.push(texts.note("low_score", &[])),
            _ => notes.push(texts.note("low_scores", &[("number", &number)])),
        }
        for agent in budget::left_out(&deliberation.trimmed) {
            notes.push(texts.note("not_run", &[("agent", agent.into_str())]));
        }
        let size = deliberation.trimmed.cross_check;
        if size.is_some_and(|size| size.scope == CheckScope::First) {
            notes.push(texts.note("one_claim", &[]));
        }
        notes.extend(self.missed(texts));
        if let Some(why) = &deliberation.evidence.unchecked {
            notes.push(texts.note("not_checked", &[("why", why)]));
        }
        let usable: Vec<Agent> = deliberation
            .answered()
            .filter(|(_, _, score, _)| score.status != Status::Discard)
            .map(|(agent, ..)| agent)
            .collect();
        if let [only] = usable.as_slice() {
            notes.push(texts.note("alone", &[("agent", only.into_str())]));
        }
        notes
    }

    /// Returns what later rounds failed to give, one line each, by round.
    fn missed(&self, texts: &RuleTexts) -> Vec<String> {
        let mut missed: Vec<(u8, String)> = vec![];
        for round in &self.transcript.rounds {
            if let Round::Skipped(RoundSkipped { round, why }) = round
                && why.is_loss()
            {
                let (number, why) = (round.to_string(), why.to_string());
                let values = [("round", number.as_str()), ("why", why.as_str())];
                missed.push((*round, texts.note("round_skipped", &values)));
            }
        }
        let mut answered = BTreeSet::new();
        for finished in &self.transcript.outcomes {
            let AgentFinished { agent, round, .. } = finished;
            match &finished.outcome {
                AgentOutcome::Answered { .. } => {
                    answered.insert(*agent);
                }
                AgentOutcome::Failed { cause, detail, .. } if answered.contains(agent) => {
                    let (number, why) = (round.to_string(), cause_in(texts, cause, detail));
                    let values = [
                        ("agent", agent.into_str()),
                        ("round", &number),
                        ("why", &why),
                    ];
                    missed.push((*round, texts.note("nothing_in_round", &values)));
                }
                AgentOutcome::Failed { .. } => {}
            }
        }
        missed.sort_by_key(|(round, _)| *round);
        missed.into_iter().map(|(_, line)| line).collect()
    }

    /// Names the agents whose report was cut at its output limit.
    fn cut_outputs(&self, texts: &RuleTexts) -> Vec<String> {
        let panel = self.deliberation.iter().flat_map(|d| &d.panel);
        panel
            .filter_map(|(agent, outcome)| {
                let AgentOutcome::Answered {
                    truncated: true,
                    tokens,
                    ..
                } = outcome
                else {
                    return None;
                };
                let mut calls = self.transcript.calls.iter().rev();
                let call = calls.find(|c| c.is_answered() && is_report(&c.sent.call, *agent));
                // A reused report has no call in this run.
                let limit = call.map_or(*tokens, |call| u64::from(call.sent.max_tokens));
                let values = [("call", agent.into_str()), ("limit", &limit.to_string())];
                Some(texts.note("cut_output", &values))
            })
            .collect()
    }

    /// Says that a message in other words than an option was taken as the answer to the question.
    fn taken(&self, texts: &RuleTexts) -> Option<String> {
        let Some(Continuation::Answer {
            question,
            option: None,
            ..
        }) = &self.request.latest
        else {
            return None;
        };
        let parent = self.request.parent.as_ref();
        let asked = parent.and_then(|parent| parent.question.as_ref());
        let asked = asked.map_or(question, |asked| &asked.question);
        Some(texts.taken(asked))
    }

    /// Names the models that answered in the place of others, once for each role and pair.
    fn replaced(&self, texts: &RuleTexts) -> BTreeSet<String> {
        let calls = self.transcript.calls.iter();
        calls
            .filter(|call| call.is_replaced())
            .filter_map(|call| {
                let role = call.sent.role.to_string();
                let values = [
                    ("role", role.as_str()),
                    ("served", call.served()?),
                    ("model", &call.sent.model),
                ];
                Some(texts.note("replaced", &values))
            })
            .collect()
    }
}

/// Returns the cause of a failure in the language of the texts. English has the detail too, where
/// the reader can act on it.
fn cause_in(texts: &RuleTexts, cause: &FailureCause, detail: &str) -> String {
    texts
        .cause(cause)
        .map_or_else(|| why(cause, detail), str::to_owned)
}
