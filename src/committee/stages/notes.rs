//! The restrictions that the Confidence section states, in the language of the question.

use std::collections::BTreeSet;

use crate::committee::call::output::why;
use crate::committee::money::budget;
use crate::committee::request_context::RequestContext;
use crate::committee::rule_texts::RuleTexts;
use crate::committee::stages::deliberation::{Deliberation, ScoredReport};
use crate::committee::stages::fallback_answer;
use crate::committee::stages::synthesis_input::answer_of;
use crate::domain::{Agent, AgentName, FailureCause, Status, is_question_mark, shown_bound};
use crate::journal::{
    AgentOutcome, CallView, CheckScope, Continuation, Cut, Gated, PlanSource, Round, RoundSkipped,
    SynthesisSource, Synthesized, Transcript,
};
use crate::scoring;
use crate::text::excerpt;

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
    /// Returns the texts in the language of the question. Most replies need none, and detecting a
    /// language is slow.
    fn texts(&self) -> &'static RuleTexts {
        self.request.rule_texts()
    }

    /// Returns the notes, the weightiest first.
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = vec![];
        if self.synthesized.obtained == SynthesisSource::Fallback {
            let mut lines = self.synthesized.corrections.iter();
            let why = lines.find(|line| line.starts_with(fallback_answer::WHY));
            let why = why.map(|line| format!(" ({line})")).unwrap_or_default();
            notes.push(self.texts().note("no_synthesis", &[("why", &why)]));
        }
        if self.deliberation.is_some() && self.gated.confidence.is_low() {
            let threshold = shown_bound(self.gated.confidence.threshold);
            notes.push(self.texts().note("below", &[("threshold", &threshold)]));
        }
        notes.extend(self.deliberation.iter().flat_map(|it| self.panel(it)));
        notes.extend(self.cut_outputs());
        notes.extend(self.assumed_answer_note());
        match self.synthesized.draft.as_ref().and_then(|draft| draft.cut) {
            Some(Cut::EndMissing) => notes.push(self.texts().cut.clone()),
            Some(Cut::Continued) => notes.push(self.texts().continued.clone()),
            None => {}
        }
        if self.looked_at_no_image() {
            notes.push(self.texts().note("not_looked_at", &[]));
        }
        let hinted = self.transcript.hinted.into_iter();
        let unseen = hinted.flat_map(|hinted| &hinted.unseen);
        notes.extend(unseen.map(|image| self.texts().unseen(image)));
        notes.extend(self.replaced());
        notes
    }

    /// True if an image could be seen, and the plan has no agent that sees images.
    fn looked_at_no_image(&self) -> bool {
        let has_images = self
            .transcript
            .hinted
            .is_some_and(|hinted| hinted.images > 0);
        let planned = self.transcript.planned.filter(|_| has_images);
        planned.is_some_and(|planned| !planned.plan.agents_to_run.contains(&Agent::Visual))
            && self.deliberation.is_some()
    }

    /// Says which agents are missing and why, what the cap left out, and how few outputs remained.
    fn panel(&self, deliberation: &Deliberation) -> Vec<String> {
        let note = |name: &str, values: &[(&str, &str)]| self.texts().note(name, values);
        let of_agent = |name: &str, agent: Agent| note(name, &[("agent", agent.into_str())]);
        let mut notes: Vec<String> = vec![];
        let planned = self.transcript.planned;
        if planned.is_some_and(|planned| planned.obtained == PlanSource::Hints) {
            notes.push(note("no_plan", &[]));
        }
        for (agent, cause, detail) in deliberation.failed() {
            let why = self.cause(cause, detail);
            notes.push(note(
                "no_output",
                &[("agent", agent.into_str()), ("why", &why)],
            ));
        }
        let is_no_answer = |it: &ScoredReport<'_>| {
            it.score.status != Status::Valid && deliberation.evidence.is_no_answer(it.agent)
        };
        let (no_answers, answers): (Vec<_>, Vec<_>) =
            deliberation.usable().into_iter().partition(is_no_answer);
        match deliberation.with_status(Status::Discard).len() + no_answers.len() {
            0 => {}
            1 => notes.push(note("low_score", &[])),
            number => notes.push(note("low_scores", &[("number", &number.to_string())])),
        }
        let left_out = budget::left_out(&deliberation.trimmed);
        notes.extend(left_out.map(|agent| of_agent("not_run", agent)));
        let size = deliberation.trimmed.cross_check;
        if size.is_some_and(|size| size.scope == CheckScope::First) {
            notes.push(note("one_claim", &[]));
        }
        notes.extend(self.missing_from_rounds());
        if let Some(why) = &deliberation.evidence.why_unchecked {
            notes.push(note("not_checked", &[("why", why)]));
        }
        if let [only] = answers[..] {
            notes.push(of_agent("alone", only.agent));
        }
        notes.extend(self.dissents(deliberation));
        notes
    }

    /// Names the agents whose final answer is another one than the reply's.
    fn dissents(&self, deliberation: &Deliberation) -> Vec<String> {
        let draft = self.synthesized.draft.as_ref();
        let given = draft.and_then(|draft| draft.final_answer.as_deref());
        let groups = &deliberation.judgement.answer_groups;
        let Some(own) = given.and_then(|given| scoring::answer_group(groups, given)) else {
            return vec![];
        };
        let others = groups.iter().enumerate().filter(|(at, _)| *at != own);
        let others: Vec<&AgentName> = others.flat_map(|(_, group)| &group.agents).collect();
        let mut notes = vec![];
        for it in deliberation.usable() {
            let differs = others.iter().any(|other| **other == it.agent);
            let answer = answer_of(it.report).map(|answer| excerpt(&answer, 60));
            // A question mark would ask the user something.
            let answer = answer.filter(|answer| !answer.contains(is_question_mark));
            if let (true, Some(answer)) = (differs, answer) {
                let values = [("agent", it.agent.into_str()), ("answer", answer.as_str())];
                notes.push(self.texts().note("other_answer", &values));
            }
        }
        notes
    }

    /// Returns what later rounds failed to give, one line each, by round.
    fn missing_from_rounds(&self) -> Vec<String> {
        let mut missed: Vec<(u8, String)> = vec![];
        for round in &self.transcript.rounds {
            if let Round::Skipped(RoundSkipped { round, why }) = round
                && why.is_loss()
            {
                let (number, why) = (round.to_string(), why.to_string());
                let values = [("round", number.as_str()), ("why", why.as_str())];
                missed.push((*round, self.texts().note("round_skipped", &values)));
            }
        }
        let mut answered = BTreeSet::new();
        for finished in &self.transcript.outcomes {
            match &finished.outcome {
                AgentOutcome::Failed { cause, detail, .. } => {
                    if answered.contains(&finished.agent) {
                        let (agent, round) = (finished.agent.into_str(), finished.round);
                        let (number, why) = (round.to_string(), self.cause(cause, detail));
                        let values = [("agent", agent), ("round", &number), ("why", &why)];
                        missed.push((round, self.texts().note("nothing_in_round", &values)));
                    }
                }
                AgentOutcome::Answered { .. } => drop(answered.insert(finished.agent)),
            }
        }
        missed.sort_by_key(|(round, _)| *round);
        missed.into_iter().map(|(_, line)| line).collect()
    }

    /// Names the agents whose report was cut at its output limit.
    fn cut_outputs(&self) -> Vec<String> {
        let panel = self.deliberation.iter().flat_map(|it| &it.panel);
        let note = |(agent, outcome): &(Agent, AgentOutcome)| {
            let AgentOutcome::Answered {
                truncated: true,
                tokens,
                ..
            } = outcome
            else {
                return None;
            };
            let call = self
                .transcript
                .last_answered(|call| call.step.is_report_of(*agent));
            // A reused report has no call in this run.
            let limit = call.map_or(*tokens, |call| u64::from(call.max_tokens));
            let values = [("call", agent.into_str()), ("limit", &limit.to_string())];
            Some(self.texts().note("cut_output", &values))
        };
        panel.filter_map(note).collect()
    }

    /// Says that a message in other words than an option was taken as the answer to the question, or
    /// one that no model read as a correction.
    fn assumed_answer_note(&self) -> Option<String> {
        let question = match self.request.latest.as_ref()? {
            Continuation::Answer {
                question,
                option: None,
                ..
            } => question,
            Continuation::Correction { handle, .. } => {
                let planned = self.transcript.planned?;
                let corrected = || self.texts().note("corrected", &[("handle", handle)]);
                return planned.reading.is_none().then(corrected);
            }
            Continuation::Answer { .. } => return None,
        };
        let parent = self.request.parent.as_ref();
        let asked = parent.and_then(|parent| parent.question.as_ref());
        let asked = asked.map_or(question, |asked| &asked.question);
        Some(self.texts().note("taken", &[("question", asked)]))
    }

    /// Names the models that answered in the place of others, once for each role and pair.
    fn replaced(&self) -> BTreeSet<String> {
        let calls = self.transcript.calls.iter().filter(|it| it.is_replaced());
        let note = |call: &CallView<'_>| {
            let role = call.sent.role.as_str();
            // The provider's own text, which is no Markdown of the reply.
            let served = format!("`{}`", call.served()?.replace('`', "'"));
            let model = format!("`{}`", call.sent.model);
            let values = [("role", role), ("served", &served), ("model", &model)];
            Some(self.texts().note("replaced", &values))
        };
        calls.filter_map(note).collect()
    }

    /// Returns the cause of a failure in the language of the texts. English has the detail too, where
    /// the reader can act on it.
    fn cause(&self, cause: &FailureCause, detail: &str) -> String {
        let own = self.texts().cause(cause).map(str::to_owned);
        own.unwrap_or_else(|| why(cause, detail))
    }
}
