//! Decides which outputs of an earlier run still hold after the user's answer or correction.

use std::collections::{BTreeMap, BTreeSet};

use crate::committee::request_context::{Parent, RequestContext};
use crate::domain::{
    Agent, AgentName, AgentReport, Assumption, Choice, OPTION_LETTERS, Position, Tag,
};
use crate::journal::{AgentOutcome, Continuation};
use crate::text::{self, Word};

/// The agents to call, and those whose stored output is reused.
#[derive(Default)]
pub struct ReuseDecision {
    pub asked: Vec<Agent>,
    pub reused: BTreeMap<Agent, AgentOutcome>,
}

/// The share of a text's words that must be changed words for the text to be about them.
const TOUCHED: f64 = 0.5;

/// Splits the panel. If the user chose the best answer that there is, every output is reused; if
/// the user chose to begin anew, none is. Otherwise an agent is called again in any of these cases:
///
/// - It has no usable stored output: it failed or was discarded.
/// - The master, which read the user's message, finds its report affected.
/// - It gave no answer, or the cross-check found that it lacks something, and the user answered.
/// - It does not agree with the option that the user chose, if the question says who does.
/// - It holds a position that the user's answer rejects, or its summary supports an option that the
///   user did not choose, if the question does not say who agrees.
/// - One of its claims or assumptions is about the point that the user settled, or about what the user
///   added to an option.
/// - It made the assumption that the user corrected, or uses a value of it.
/// - Its report was bought under an earlier correction of the same assumption.
/// - It sees images, and the user sent a new one.
///
/// If no agent is affected, the solver is called, because the answer must come from some agent.
pub fn decide(request: &RequestContext, panel: &[Agent]) -> ReuseDecision {
    let Some(parent) = &request.parent else {
        return ReuseDecision {
            asked: panel.to_vec(),
            ..ReuseDecision::default()
        };
    };
    let choice = request.choice();
    let change = Update::of(request, parent);
    let is_kept = |agent: Agent, report: &AgentReport| match choice {
        Some(Choice::Anew | Choice::Deeper) => false,
        Some(Choice::BestAnswer | Choice::Stop) => true,
        Some(Choice::Position) | None => !change.must_report_again(agent, report),
    };
    let mut decision = ReuseDecision::default();
    for agent in panel {
        let has_unseen_image = *agent == Agent::Visual && request.has_new_image();
        let kept = parent.outcomes.get(agent).filter(|outcome| {
            let report = outcome.report().filter(|_| !has_unseen_image);
            report.is_some_and(|report| is_kept(*agent, report))
        });
        match kept {
            Some(outcome) => {
                decision.reused.insert(*agent, outcome.clone());
            }
            // Why it has no output is said again.
            None if choice == Some(Choice::BestAnswer) => {
                let failed = parent.failed.get(agent);
                decision
                    .reused
                    .extend(failed.map(|it| (*agent, it.clone())));
            }
            None => decision.asked.push(*agent),
        }
    }
    let mut reused = decision.reused.values();
    let has_report = reused.any(AgentOutcome::is_answered);
    let needs_answer = choice != Some(Choice::BestAnswer) || !has_report;
    if decision.asked.is_empty() && needs_answer && panel.contains(&Agent::Solver) {
        decision.reused.remove(&Agent::Solver);
        decision.asked.push(Agent::Solver);
    }
    decision
}

/// What the user's answer or correction changes.
struct Update<'a> {
    request: &'a RequestContext,
    parent: &'a Parent,
    /// The agents that made the corrected assumption.
    corrected: BTreeSet<Agent>,
    /// Figures and names of the corrected assumption that the question does not have.
    values: BTreeSet<String>,
    /// The agents that agree with the option that the user chose, if the question says who does.
    agreeing: Option<&'a [Agent]>,
    /// The agents that hold a rejected position.
    disagreeing: BTreeSet<Agent>,
    /// The words of what the user settled or added.
    changed_words: BTreeSet<Word>,
    /// True if some report gives a final answer.
    has_answers: bool,
}

impl<'a> Update<'a> {
    fn of(request: &'a RequestContext, parent: &'a Parent) -> Self {
        let message = &request.question.message;
        let (mut corrected, mut values) = (BTreeSet::new(), BTreeSet::new());
        if let Some(Continuation::Correction { handle, wrong, .. }) = &request.latest {
            let is_corrected = |a: &&Assumption| handle.split(", ").any(|it| it == a.handle);
            let made = parent.assumptions.iter().filter(is_corrected);
            corrected.extend(made.flat_map(|a| a.agents.iter().copied()));
            values = values_of(wrong);
            values.retain(|value| !values_of(message).contains(value));
        }
        let reports = parent.outcomes.values().filter_map(AgentOutcome::report);
        Self {
            request,
            parent,
            corrected,
            values,
            agreeing: agreeing(request, parent),
            disagreeing: disagreeing(request, parent),
            changed_words: changed_words(request, parent),
            has_answers: reports.into_iter().any(gives_answer),
        }
    }

    fn must_report_again(&self, agent: Agent, report: &AgentReport) -> bool {
        let is_answered = matches!(self.request.latest, Some(Continuation::Answer { .. }));
        let gives_none = self.has_answers && !gives_answer(report);
        let lacking = self.parent.lacking.contains(&agent) || gives_none;
        self.parent.is_discarded(agent)
            || self.request.affected.contains(&agent)
            || (is_answered && lacking)
            || self.corrected.contains(&agent)
            || self.parent.outdated.contains(&agent)
            || self.uses_value(report)
            || self.is_on_another_side(agent, report)
            || is_about(report, &self.changed_words)
    }

    fn is_on_another_side(&self, agent: Agent, report: &AgentReport) -> bool {
        match self.agreeing {
            Some(agreeing) => !agreeing.contains(&agent),
            None => {
                self.disagreeing.contains(&agent)
                    || speaks_for_another(self.request, self.parent, report)
            }
        }
    }

    /// True if the report has a figure or a name of the corrected assumption anywhere.
    fn uses_value(&self, report: &AgentReport) -> bool {
        let whole = report.for_models(str::to_owned);
        let words = text::words(&whole);
        let figures = text::figures(&whole);
        let mut values = self.values.iter();
        values.any(|value| words.iter().any(|word| word == value) || figures.contains(value))
    }
}

fn values_of(text: &str) -> BTreeSet<String> {
    let mut values = text::figures(text);
    values.extend(text::names(text));
    values
}

fn gives_answer(report: &AgentReport) -> bool {
    let mut units = report.units.iter();
    units.any(|unit| unit.tags.contains(&Tag::Answer))
}

/// Returns the agents that agree with the option that the user chose, if the question says who does.
fn agreeing<'a>(request: &RequestContext, parent: &'a Parent) -> Option<&'a [Agent]> {
    let letter = request.option()?;
    parent.question.as_ref()?.agreeing(letter)
}

/// Returns the agents that hold a different position than the one named in the user's answer, over
/// all disagreements in which the answer names one. If it names none of the final answers, all
/// holders of one are returned, because they answered without knowing the user's answer. So are all
/// holders of a position if the answer is none of the options.
fn disagreeing(request: &RequestContext, parent: &Parent) -> BTreeSet<Agent> {
    let (Some(Continuation::Answer { answer, .. }), Some(scored)) =
        (&request.latest, &parent.scored)
    else {
        return BTreeSet::new();
    };
    let said = words(answer);
    let is_named = |position: &Position| {
        let own = words(&position.text);
        !own.is_empty() && own.is_subset(&said)
    };
    let mut disagreeing = BTreeSet::new();
    for disagreement in scored.judgement.disagreements.iter().filter(|d| !d.settled) {
        let (named, others): (Vec<_>, Vec<_>) =
            disagreement.positions.iter().partition(|p| is_named(p));
        if !named.is_empty() || disagreement.on_final_answer || request.option().is_none() {
            let others = others.iter().flat_map(|position| &position.agents);
            disagreeing.extend(others.filter_map(AgentName::agent));
        }
    }
    disagreeing
}

/// True if the report's summary has words that only other options have, and none that only the
/// chosen option has ("100" where the user chose "95").
fn speaks_for_another(request: &RequestContext, parent: &Parent, report: &AgentReport) -> bool {
    let (Some(letter), Some(question)) = (request.option(), &parent.question) else {
        return false;
    };
    let shared = words(&request.question.message);
    let (mut chosen, mut others) = (BTreeSet::new(), BTreeSet::new());
    for (own, option) in OPTION_LETTERS.iter().zip(&question.options) {
        let of_option = words(option);
        let of_option = of_option.difference(&shared).cloned();
        if *own == letter {
            chosen.extend(of_option);
        } else {
            others.extend(of_option);
        }
    }
    let said = words(&report.answer_summary.join(" "));
    let for_chosen = chosen.difference(&others).any(|word| said.contains(word));
    let for_another = others.difference(&chosen).any(|word| said.contains(word));
    for_another && !for_chosen
}

/// Returns the words of the user's latest answer or correction; of an answer whose question says who
/// agrees with it, those that the user added to the option. The words of the original question are
/// left out, because every report shares them, and so are those of the fixed rules.
fn changed_words(request: &RequestContext, parent: &Parent) -> BTreeSet<Word> {
    let asked = parent.question.as_ref();
    let settled = match &request.latest {
        Some(Continuation::Answer {
            question, answer, ..
        }) => {
            let options = asked.into_iter().flat_map(|asked| &asked.options);
            if agreeing(request, parent).is_some() {
                let added = options.filter_map(|option| answer.strip_prefix(option.as_str()));
                added
                    .min_by_key(|added| added.len())
                    .unwrap_or(answer)
                    .to_owned()
            } else if asked.is_some_and(|asked| asked.choices.is_some()) {
                answer.clone()
            } else {
                format!("{question} {answer}")
            }
        }
        Some(Continuation::Correction {
            wrong, correction, ..
        }) => format!("{wrong} {correction}"),
        None => String::new(),
    };
    let shared = words(&request.question.message);
    words(&settled).difference(&shared).cloned().collect()
}

fn is_about(report: &AgentReport, changed_words: &BTreeSet<Word>) -> bool {
    if changed_words.is_empty() {
        return false;
    }
    let units = report.units.iter();
    let claims = units.map(|unit| format!("{} {}", unit.topic, unit.text));
    let assumptions = report.assumptions.iter().cloned();
    claims.chain(assumptions).any(|text| {
        let own = words(&text);
        let common = own.intersection(changed_words).count();
        let least = own.len().min(changed_words.len()).max(1);
        common >= 2 && common as f64 / least as f64 >= TOUCHED
    })
}

/// Returns the words that can carry a meaning: those with a digit, those of more than three letters,
/// and in scripts without spaces every word.
fn words(text: &str) -> BTreeSet<Word> {
    let carries = |word: &Word| {
        word.chars().count() > 3 || word.chars().any(|c| c.is_ascii_digit() || c > '\u{2e7f}')
    };
    text::words(text).into_iter().filter(carries).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Clarification, Disagreement, Judgement};
    use crate::journal::Scored;

    /// A parent whose solver says yes and whose critic says no.
    fn contested(request: &RequestContext) -> Parent {
        let position = |text: &str, agent: Agent| Position {
            text: text.into(),
            agents: vec![agent.into()],
            units: vec![],
        };
        let texts = request.rule_texts();
        let disagreement = Disagreement {
            topic: "final answer".into(),
            on_final_answer: true,
            settled: false,
            severity: 0.5,
            positions: vec![
                position("yes", Agent::Solver),
                position("no", Agent::Critic),
            ],
        };
        let judgement = Judgement {
            disagreements: vec![disagreement],
            ..Judgement::default()
        };
        let [yes, no] = ["yes", "no"].map(|it| texts.note("position", &[("position", it)]));
        let question = Clarification {
            question: texts.contested.clone(),
            options: [yes, no, texts.none_fits.clone()],
            choices: Some([Choice::Position, Choice::Position, Choice::Anew]),
            agreeing: Some([vec![Agent::Solver], vec![Agent::Critic], vec![]]),
        };
        Parent {
            run: crate::domain::RunId::from_uuid(uuid::Uuid::nil()),
            planned: None,
            outcomes: BTreeMap::new(),
            failed: BTreeMap::new(),
            scored: Some(Scored {
                round: 1,
                judgement: judgement.into(),
            }),
            cross_checked: None,
            lacking: vec![],
            assumptions: vec![],
            question: Some(question),
            outdated: BTreeSet::new(),
        }
    }

    fn answered(answer: &str, option: Option<char>) -> (RequestContext, Parent) {
        let question = serde_json::json!({
            "source": "http", "mode": "ask", "user": { "id": "u", "name": "u" },
            "message": "Is 91 a prime number, and how do you know that?",
        });
        let mut request = RequestContext::alone(serde_json::from_value(question).unwrap());
        let parent = contested(&request);
        let asked = parent.question.clone().unwrap();
        request.latest = Some(Continuation::Answer {
            question: asked.question,
            answer: answer.replace("{B}", &asked.options[1]),
            option,
        });
        (request, parent)
    }

    #[test]
    fn who_agrees_is_known_of_a_letter_and_not_of_free_text() {
        let (request, parent) = answered("{B}", Some('B'));
        assert_eq!(agreeing(&request, &parent), Some(&[Agent::Critic][..]));
        let (request, parent) = answered("no idea", None);
        assert_eq!(agreeing(&request, &parent), None);
        let all = BTreeSet::from([Agent::Critic, Agent::Solver]);
        assert_eq!(disagreeing(&request, &parent), all);
    }

    #[test]
    fn the_changed_words_have_none_of_the_words_of_the_fixed_rules() {
        let (request, parent) = answered("{B} (because seven divides it)", Some('B'));
        let expected = ["because", "seven", "divides"].map(Word::from);
        assert_eq!(changed_words(&request, &parent), BTreeSet::from(expected));
        let (request, parent) = answered("{B}", Some('B'));
        assert_eq!(changed_words(&request, &parent), BTreeSet::new());
    }
}
