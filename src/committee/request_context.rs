//! The request: the question, with everything that it continues from earlier runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use rand::SeedableRng as _;
use rand::rngs::ChaCha12Rng;
use serde::Serialize;
use serde_json::{Value, json};

use crate::committee::deps::{Deps, fence};
use crate::committee::failure::Failure;
use crate::committee::rule_texts::RuleTexts;
use crate::config::RoleModel;
use crate::domain::{
    Agent, AskedFirst, Assumption, Choice, Clarification, ConductKind, Question, Role, RunId,
    ShownAnswer, Status, UnseenImage,
};
use crate::journal::{
    Accepted, AgentOutcome, Continuation, Continues, CrossChecked, Entry, Planned, Reading,
    RunContext, Scored, Transcript, step,
};
use crate::llm::Image;

/// Characters of a long question that the master reads for planning: from its beginning and its
/// end.
const HEAD_CHARS: usize = 3000;
const TAIL_CHARS: usize = 1000;

/// The most characters of a question that the master reads for planning.
pub const PLANNED_CHARS: usize = HEAD_CHARS + TAIL_CHARS + 200;

/// A run with what every stage of it needs.
#[derive(Clone, Copy)]
pub struct Stage<'a> {
    pub run: &'a RunContext,
    pub deps: &'a Deps,
    pub request: &'a RequestContext,
}

impl<'a> Stage<'a> {
    pub fn new(run: &'a RunContext, deps: &'a Deps, request: &'a RequestContext) -> Self {
        Self { run, deps, request }
    }

    /// Returns the master's model.
    ///
    /// # Errors
    /// If none is configured.
    pub fn master(self) -> Result<&'a RoleModel, Failure> {
        let master = self.deps.role(Role::Master);
        master.ok_or_else(|| Failure::internal("no master is configured"))
    }
}

/// The request that the committee works on.
pub struct RequestContext {
    /// The original question. Its mode, user and context are those of the newest request.
    pub question: Question,
    /// True if the run narrates an action. Narrations never ask the user.
    pub is_narration: bool,
    /// The message of this run itself.
    pub message: String,
    /// Questions that the user has answered, oldest first.
    pub answers: Vec<Answered>,
    pub corrections: Vec<Corrected>,
    /// What this run adds to its parent.
    pub latest: Option<Continuation>,
    pub parent: Option<Parent>,
    /// The assumptions of the replies that this run continues, the nearest reply first.
    pub earlier_assumptions: Vec<Assumption>,
    /// The agents whose stored reports no longer hold, as the master reads the message.
    pub affected: Vec<Agent>,
    pub images: Vec<Image>,
    /// Attached images that could not be read.
    pub unseen: Vec<UnseenImage>,
    pub inherited: Inherited,
    /// Learned answers to similar questions, which the master sees.
    pub learned: Vec<ShownAnswer>,
    pub asked_first: AskedFirst,
    /// Fences untrusted text in prompts. It is new in every run and occurs in none of the run's
    /// texts.
    pub fence: String,
    pub seed: u64,
    /// What the agents answered, which tells the language of the texts of fixed rules.
    pub answered: OnceLock<String>,
    /// In the language that the plan names. Without one it is detected, once because that is slow.
    pub rule_texts: OnceLock<&'static RuleTexts>,
}

/// How many of the first images and unseen images come from the runs that this one continues.
#[derive(Debug, Clone, Copy, Default)]
pub struct Inherited {
    pub images: usize,
    pub unseen: usize,
}

/// What an order is drawn for. The number of each purpose is part of the seed, so journals are
/// replayed alike only as long as it stays.
#[derive(Debug, Clone, Copy)]
pub enum Purpose {
    /// The labels of the reports in the cross-check.
    Labels,
    /// The contested claims that an agent is shown.
    Claims { round: u8, agent: Agent },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answered {
    pub question: String,
    #[serde(rename = "chosen")]
    pub answer: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Corrected {
    #[serde(skip)]
    pub handle: String,
    #[serde(rename = "assumption")]
    pub wrong: String,
    pub correction: String,
}

/// The data of an earlier run that may be reused.
pub struct Parent {
    pub run: RunId,
    pub planned: Option<Planned>,
    /// The last outcome of each agent that answered.
    pub outcomes: BTreeMap<Agent, AgentOutcome>,
    /// The outcomes of the agents that gave no report.
    pub failed: BTreeMap<Agent, AgentOutcome>,
    pub scored: Option<Scored>,
    /// The cross-check of its reports, if there is one and no later round changed them.
    pub cross_checked: Option<CrossChecked>,
    /// The agents that lack what they need, as the cross-check found.
    pub lacking: Vec<Agent>,
    pub assumptions: Vec<Assumption>,
    /// The question that the run asked, if any.
    pub question: Option<Clarification>,
    /// The agents whose stored report was bought under a correction that the newest one replaces.
    pub outdated: BTreeSet<Agent>,
}

impl Parent {
    /// True if an agent's output is DISCARD, or has no score.
    pub fn is_discarded(&self, agent: Agent) -> bool {
        let scored = self.scored.as_ref();
        let status = scored.and_then(|scored| scored.judgement.status_of(agent));
        status.is_none_or(|status| status == Status::Discard)
    }
}

/// Builds the request from the run's own journal and those of the runs that it continues.
///
/// # Errors
/// If the database fails.
pub async fn open(run: &RunContext, deps: &Deps) -> Result<RequestContext, Failure> {
    let accepted = run.accepted();
    let mut request = lineage(accepted, None, &run.ancestors().await?);
    request.is_narration = accepted.narrates.is_some();
    request.latest = accepted.continues.as_ref().map(|it| it.by.clone());
    request.seed = accepted.seed;
    if let Some(decided) = run.recorded(&step::decision()) {
        (request.learned, request.asked_first) = (decided.shown, decided.first);
    }
    // The attachments of earlier runs come first.
    let all = request.question.attachments.as_slice();
    let own = accepted.question.attachments.len();
    let (earlier, own) = all.split_at(all.len().saturating_sub(own));
    let attachments = &deps.attachments;
    let both = futures_util::future::join(attachments.images(earlier), attachments.images(own));
    let ((mut images, mut unseen), mut own) = both.await;
    request.inherited = Inherited {
        images: images.len(),
        unseen: unseen.len(),
    };
    images.append(&mut own.0);
    unseen.append(&mut own.1);
    (request.images, request.unseen) = (images, unseen);
    let mut fenced = vec![&*request.question.message];
    fenced.extend(request.answers.iter().map(|it| &*it.answer));
    fenced.extend(request.corrections.iter().map(|it| &*it.correction));
    for shown in &request.learned {
        fenced.extend([&*shown.condition, &shown.action]);
    }
    request.fence = fence(request.seed, &fenced);
    Ok(request)
}

/// Builds a run's question with all that it continues. Reads its `accepted` event, its plan if there
/// is one already, and the journals of its ancestors, the nearest first.
pub fn lineage(
    accepted: &Accepted,
    planned: Option<&Planned>,
    ancestors: &[(RunId, Vec<Entry>)],
) -> RequestContext {
    let mut request = RequestContext::alone(accepted.question.clone());
    let mut continues = accepted.continues.clone();
    let mut reading = planned.and_then(|planned| planned.reading.as_ref());
    // The agents whose stored report was bought in an ancestor so far.
    let mut reported = BTreeSet::new();
    for (id, entries) in ancestors {
        match continues.take().map(|continues| continues.by) {
            Some(Continuation::Answer {
                question, answer, ..
            }) => request.answers.push(Answered { question, answer }),
            Some(Continuation::Correction {
                handle,
                wrong,
                correction,
            }) => request.corrections.push(Corrected {
                handle,
                wrong,
                correction: read_correction(reading).unwrap_or(correction),
            }),
            None => break,
        }
        let transcript = Transcript::of_entries(entries);
        let Some(earlier) = transcript.accepted else {
            break;
        };
        let listed = transcript.assumptions().iter();
        request.earlier_assumptions.extend(listed.cloned());
        let question = &mut request.question;
        question.message.clone_from(&earlier.question.message);
        let mut attachments = earlier.question.attachments.clone();
        attachments.append(&mut question.attachments);
        question.attachments = attachments;
        let asked_new = transcript.planned.is_some_and(Planned::is_new_request);
        continues = earlier.continues.clone().filter(|_| !asked_new);
        reading = transcript
            .planned
            .and_then(|planned| planned.reading.as_ref());
        let parent = request
            .parent
            .get_or_insert_with(|| reuse_from(*id, &transcript));
        reported.extend(reported_in(&transcript));
        if correct_the_same(accepted.continues.as_ref(), continues.as_ref()) {
            parent.outdated.extend(&reported);
        }
    }
    request.answers.reverse();
    request.corrections.reverse();
    request
}

/// Returns the agents whose last outcome is of this run itself.
fn reported_in(run: &Transcript<'_>) -> impl Iterator<Item = Agent> {
    let standing = run.standing().into_iter();
    let own = standing.filter(|(_, finished)| finished.reused_from.is_none());
    own.map(|(agent, _)| agent)
}

/// True if both correct an assumption with the same handle.
fn correct_the_same(newest: Option<&Continues>, earlier: Option<&Continues>) -> bool {
    let (
        Some(Continuation::Correction { handle: newest, .. }),
        Some(Continuation::Correction { handle, .. }),
    ) = (newest.map(|it| &it.by), earlier.map(|it| &it.by))
    else {
        return false;
    };
    let mut newest = newest.split(", ");
    newest.any(|it| handle.split(", ").any(|earlier| earlier == it))
}

/// Returns what holds instead of the corrected assumption, as the master read the message.
fn read_correction(reading: Option<&Reading>) -> Option<String> {
    let said = reading.map(|reading| reading.correction.clone());
    said.filter(|said| !said.is_empty())
}

fn reuse_from(run: RunId, transcript: &Transcript<'_>) -> Parent {
    let standing = transcript.standing().into_iter();
    let standing = standing.map(|(agent, finished)| (agent, finished.outcome.clone()));
    let (outcomes, failed) = standing.partition(|(_, outcome)| outcome.is_answered());
    let passes = transcript.cross_checked.iter().flat_map(|it| &it.passes);
    let conduct = passes.flat_map(|pass| &pass.found.conduct);
    let lacking = conduct.filter(|conduct| conduct.kind == ConductKind::Lacks);
    let mut later = transcript.outcomes.iter().filter(|it| it.round > 1);
    let is_changed = later.any(|it| it.outcome.is_answered());
    let checked = transcript
        .cross_checked
        .filter(|it| !it.passes.is_empty() && !is_changed);
    let assumptions = transcript.draft().map(|draft| draft.assumptions.clone());
    let synthesized = transcript.synthesized;
    Parent {
        run,
        planned: transcript.planned.cloned(),
        outcomes,
        failed,
        scored: transcript.scored.last().copied().cloned(),
        cross_checked: checked.cloned(),
        lacking: lacking.filter_map(|it| it.agent.agent()).collect(),
        assumptions: assumptions.unwrap_or_default(),
        question: synthesized.map(|synthesized| synthesized.question.clone()),
        outdated: BTreeSet::new(),
    }
}

impl RequestContext {
    /// Returns a request that continues nothing and has no images.
    pub fn alone(question: Question) -> Self {
        Self {
            message: question.message.clone(),
            question,
            is_narration: false,
            answers: vec![],
            corrections: vec![],
            latest: None,
            parent: None,
            earlier_assumptions: vec![],
            affected: vec![],
            images: vec![],
            unseen: vec![],
            inherited: Inherited::default(),
            learned: vec![],
            asked_first: AskedFirst::Panel,
            fence: String::new(),
            seed: 0,
            answered: OnceLock::new(),
            rule_texts: OnceLock::new(),
        }
    }

    /// Returns the values that every prompt is given, and those that one prompt has of its own.
    pub fn values(&self, own: Value) -> Value {
        let attachments = self.question.attachments.iter();
        let attachments = attachments
            .map(|it| json!({ "filename": it.filename, "contentType": it.content_type }));
        let mut values = json!({
            "fence": self.fence,
            "question": self.question.message,
            "mode": self.question.mode.into_str(),
            "task_type": null,
            "hints": [],
            "attachments": attachments.collect::<Vec<_>>(),
            "images": self.images.len(),
            "unseen": self.unseen.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "answers": self.answers,
            "corrections": self.corrections,
            "learned": self.learned,
        });
        if let (Value::Object(values), Value::Object(own)) = (&mut values, own) {
            values.extend(own);
        }
        values
    }

    /// Applies the master's reading of the message: its language, and whether it continues a reply. A
    /// message that asks something new is a request of its own.
    #[must_use]
    pub fn read_as(mut self, planned: &Planned, accepted: &Accepted) -> Self {
        if let Some(code) = &planned.plan.language {
            self.rule_texts = RuleTexts::of_language(code).into();
        }
        let Some(reading) = &planned.reading else {
            return self;
        };
        if !reading.continues {
            self.question = accepted.question.clone();
            self.answers.clear();
            self.corrections.clear();
            (self.latest, self.parent) = (None, None);
            self.earlier_assumptions.clear();
            let Inherited { images, unseen } = std::mem::take(&mut self.inherited);
            self.images.drain(..images.min(self.images.len()));
            self.unseen.drain(..unseen.min(self.unseen.len()));
            return self;
        }
        self.affected.clone_from(&reading.affected);
        if let (Some(Continuation::Correction { correction, .. }), Some(last), Some(said)) = (
            &mut self.latest,
            self.corrections.last_mut(),
            read_correction(Some(reading)),
        ) {
            correction.clone_from(&said);
            last.correction = said;
        }
        self
    }

    /// True if the user's answer or correction came with an image.
    pub fn has_new_image(&self) -> bool {
        self.images.len() > self.inherited.images
    }

    /// True if the gate may ask. After one answered question it asks no other, and a narration asks
    /// none: the reply is given with its confidence.
    pub fn may_ask(&self) -> bool {
        self.answers.is_empty() && !self.is_narration
    }

    /// Returns the letter of the option that the user chose.
    pub fn option(&self) -> Option<char> {
        match self.latest {
            Some(Continuation::Answer { option, .. }) => option,
            Some(Continuation::Correction { .. }) | None => None,
        }
    }

    /// Returns what the user chose, if fixed rules made the parent's question.
    pub fn choice(&self) -> Option<Choice> {
        let asked = self.parent.as_ref()?.question.as_ref()?;
        asked.choice(self.option()?)
    }

    /// Returns the texts of fixed rules in the language of the question and of what was answered
    /// and asked so far.
    pub fn rule_texts(&self) -> &'static RuleTexts {
        let asked = self.parent.as_ref().and_then(|it| it.question.as_ref());
        let asked = asked.map(|it| it.question.as_str());
        let answered = self.answered.get().map(String::as_str);
        let texts = [Some(self.question.message.as_str()), asked, answered];
        let detect = || RuleTexts::in_language_of(texts.into_iter().flatten());
        self.rule_texts.get_or_init(detect)
    }

    /// Returns the request as the engine judges it: the question, with the user's later answers and
    /// corrections.
    pub fn full_text(&self) -> String {
        let answers = self.answers.iter();
        let answers = answers.map(|it| format!("\n{} {}", it.question, it.answer));
        let corrections = self.corrections.iter();
        let corrections = corrections.map(|it| format!("\n{}", it.correction));
        std::iter::once(self.question.message.clone())
            .chain(answers)
            .chain(corrections)
            .collect()
    }

    /// Returns a generator for one purpose, the same in every replay of the run.
    pub fn random(&self, purpose: Purpose) -> ChaCha12Rng {
        let number = match purpose {
            Purpose::Labels => 70_000,
            Purpose::Claims { round, agent } => 90_000 + u64::from(round) * 100 + agent as u64,
        };
        ChaCha12Rng::seed_from_u64(self.seed.wrapping_add(number))
    }
}

/// Shortens a long question to its beginning and its end. They suffice for planning, and the rest
/// would cost money.
pub fn for_planning(message: &str) -> String {
    let chars: Vec<char> = message.chars().collect();
    if chars.len() <= PLANNED_CHARS {
        return message.to_owned();
    }
    let left_out = chars.len() - HEAD_CHARS - TAIL_CHARS;
    let head: String = chars.iter().take(HEAD_CHARS).collect();
    let tail: String = chars.iter().skip(HEAD_CHARS + left_out).collect();
    format!("{head}\n[... {left_out} characters are left out here, for planning only ...]\n{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Event;

    fn accepted(message: &str, correction: Option<(&str, &str)>) -> Accepted {
        let continues = correction.map(|(handle, correction)| {
            let by = json!({ "type": "correction", "handle": handle, "wrong": "w", "correction": correction });
            json!({ "parent": RunId::from_uuid(uuid::Uuid::nil()), "by": by })
        });
        let user = json!({ "id": "u", "name": "u" });
        let question = json!({ "source": "http", "mode": "ask", "user": user, "message": message });
        let accepted = json!({
            "question": question, "continues": continues, "cap": 0, "seed": 1, "configHash": "",
            "promptsHash": "", "version": "",
        });
        serde_json::from_value(accepted).unwrap()
    }

    fn planned(continues: bool, correction: &str) -> Planned {
        let plan = json!({ "taskType": "MIXED", "agentsToRun": [], "rounds": 1,
                           "needsClarification": false, "outputShape": "ask" });
        let reading = json!({ "continues": continues, "correction": correction, "affected": [] });
        let planned =
            json!({ "plan": plan, "obtained": "reused", "corrections": [], "reading": reading });
        serde_json::from_value(planned).unwrap()
    }

    fn journal(events: Vec<Event>) -> (RunId, Vec<Entry>) {
        let entry = |event| Entry {
            seq: 1,
            at: jiff::Timestamp::UNIX_EPOCH,
            key: String::new(),
            body: String::new(),
            prev: String::new(),
            hash: String::new(),
            event,
        };
        let entries = events.into_iter().map(entry).collect();
        (RunId::from_uuid(uuid::Uuid::nil()), entries)
    }

    #[test]
    fn each_correction_is_what_the_master_of_its_run_read() {
        let ancestors = [
            journal(vec![
                Event::Accepted(Box::new(accepted("A1 is 4.5", Some(("A1", "A1 is 4.5"))))),
                Event::Planned(planned(true, "the load is 4.5")),
            ]),
            journal(vec![Event::Accepted(Box::new(accepted("How many?", None)))]),
        ];
        let latest = accepted("A2 is 7", Some(("A2", "A2 is 7")));
        let read = planned(true, "the rate is 7");
        for (planned, last) in [(Some(&read), "the rate is 7"), (None, "A2 is 7")] {
            let text = lineage(&latest, planned, &ancestors).full_text();
            assert_eq!(text, format!("How many?\nthe load is 4.5\n{last}"));
        }
    }

    #[test]
    fn a_message_that_asks_something_new_keeps_only_its_own_images() {
        let image = |name: &str| Image {
            media_type: "image/png".into(),
            base64: name.into(),
        };
        let mut request = RequestContext::alone(accepted("What does it read?", None).question);
        request.images = vec![image("earlier"), image("own")];
        request.inherited.images = 1;
        let anew = planned(false, "");
        let read = request.read_as(&anew, &accepted("And this one?", None));
        let images: Vec<&str> = read.images.iter().map(|it| &*it.base64).collect();
        assert_eq!(images, ["own"]);
    }
}
