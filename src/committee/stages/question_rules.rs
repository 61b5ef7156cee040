//! Checks a model's question to the user, and makes a question by fixed rules if no model gave one.

use std::collections::BTreeSet;

use crate::committee::output_shapes::FallbackQuestionOut;
use crate::committee::request_context::RequestContext;
use crate::committee::stages::deliberation::ScoredReport;
use crate::committee::stages::option_parts::say_what_changes;
use crate::committee::stages::synthesis_input::SynthesisInput;
use crate::domain::{
    Agent, AgentReport, AnswerGroup, Choice, Clarification, is_question_mark, is_unspaced,
    search_terms,
};
use crate::text::{MAX_BYTES, clip, excerpt};

/// Returns the model's question without references to discarded outputs, or why it cannot be asked:
/// it is malformed, or its options would fit any request (SPEC 2). If positions are contested, the
/// options must name them, or say what each changes in words of the request or the reports; else one
/// of the two is enough.
pub(super) fn question_of(
    input: &SynthesisInput<'_>,
    out: &FallbackQuestionOut,
) -> Result<Clarification, &'static str> {
    let asked =
        written(input, out).ok_or("the master gave no question with three different options")?;
    let sides = positions(input);
    let has_content = || name_content(input, &asked.options, None);
    let says = say_what_changes(&asked.options);
    if sides.len() < 2 {
        let problem = "the options of the master's question do not say what each would change";
        return (says || has_content()).then_some(asked).ok_or(problem);
    }
    let names = name_content(input, &asked.options, Some(&sides)) || says && has_content();
    let problem = "the options of the master's question do not name the contested positions";
    names.then_some(asked).ok_or(problem)
}

/// Returns the model's question without references to discarded outputs; `None` if it is malformed.
pub(super) fn written(
    input: &SynthesisInput<'_>,
    out: &FallbackQuestionOut,
) -> Option<Clarification> {
    let discarded = input.discarded();
    let redacted = |text: &String| discarded.redact(text).into_owned();
    let options: Vec<String> = out.options.iter().map(redacted).collect();
    let asked = Clarification::new(&redacted(&out.question), &options)?;
    Some(Clarification {
        agreeing: agreeing(input, out),
        ..asked
    })
}

/// Returns the agents that agree with each option, by the model's words; `None` if it names none.
fn agreeing(input: &SynthesisInput<'_>, out: &FallbackQuestionOut) -> Option<[Vec<Agent>; 3]> {
    let usable = input.reports();
    let known = |name: &String| {
        let agent = name.trim().to_lowercase().parse::<Agent>().ok()?;
        usable.iter().any(|(own, _)| *own == agent).then_some(agent)
    };
    let lists = out.agreeing.iter();
    let lists = lists.map(|names| names.iter().filter_map(known).collect());
    let mut lists = <[Vec<Agent>; 3]>::try_from(lists.collect::<Vec<_>>()).ok()?;
    let named: BTreeSet<Agent> = lists.iter().flatten().copied().collect();
    // A report that agrees with none of the options says nothing of the point.
    let others = usable.iter().map(|(agent, _)| *agent);
    let others: Vec<Agent> = others.filter(|agent| !named.contains(agent)).collect();
    lists.iter_mut().for_each(|list| list.extend(&others));
    (!named.is_empty()).then_some(lists)
}

/// The least letters of a word that says something of a request although all reports have it. Shorter
/// ones are often like "with". In scripts without spaces two letters do.
const CONTENT_CHARS: usize = 5;

/// True if two options have a word that tells them from the others, and that the request or the
/// reports have. One report alone may have such a word by chance. Of contested positions, a word that
/// all reports have names none, unless a position has it.
fn name_content(input: &SynthesisInput<'_>, options: &[String], sides: Option<&[Side]>) -> bool {
    let request = terms_of(&input.request.question.message);
    let terms = |sides: &[Side]| sides.iter().flat_map(|side| terms_of(&side.text)).collect();
    let sides: Option<BTreeSet<String>> = sides.map(terms);
    let reports = input.reports().into_iter();
    let reports: Vec<BTreeSet<String>> = reports
        .map(|(_, report)| terms_of(&text_of(report)))
        .collect();
    let options: Vec<BTreeSet<String>> = options.iter().map(|option| terms_of(option)).collect();
    let is_telling = |term: &String| {
        let is_long = term.len() > 2 || term.contains(char::is_numeric);
        let shared = options
            .iter()
            .filter(|option| option.contains(term))
            .count()
            > 1;
        let having = reports
            .iter()
            .filter(|report| report.contains(term))
            .count();
        let is_known = having > 0 || request.contains(term);
        let is_of_some = reports.len() < 2 || having < reports.len();
        let is_content = sides
            .as_ref()
            .map_or(is_content(term), |sides| sides.contains(term));
        is_long && !shared && is_known && (is_of_some || is_content)
    };
    let telling = options.iter().filter(|terms| terms.iter().any(is_telling));
    telling.count() > 1
}

/// True if one of the texts has a word of the request that says something.
pub(super) fn have_content_of<'a>(
    request: &str,
    mut texts: impl Iterator<Item = &'a String>,
) -> bool {
    let request = terms_of(request);
    let is_shared = |term: &String| is_content(term) && request.contains(term);
    texts.any(|text| terms_of(text).iter().any(is_shared))
}

fn terms_of(text: &str) -> BTreeSet<String> {
    search_terms(clip(text, MAX_BYTES)).into_iter().collect()
}

fn is_content(term: &str) -> bool {
    term.chars().count() >= CONTENT_CHARS || term.contains(is_unspaced)
}

/// Returns all texts of a report.
fn text_of(report: &AgentReport) -> String {
    let units = report.units.iter();
    let units = units.flat_map(|unit| [unit.topic.as_str(), &unit.text]);
    let lists = [
        &report.answer_summary,
        &report.assumptions,
        &report.steps_or_deliverables,
        &report.failure_modes,
    ];
    let lists = lists.into_iter().flatten().map(String::as_str);
    let texts: Vec<&str> = lists
        .chain([report.reasoning.as_str()])
        .chain(units)
        .collect();
    texts.join("\n")
}

/// Makes a question by fixed rules (SPEC 2), in the user's language. It asks for the choice between
/// contested positions. If there are none, it says that there is too little confidence, and asks
/// how to continue.
pub fn by_rule(input: &SynthesisInput<'_>) -> Clarification {
    let texts = input.request.rule_texts();
    let sides = positions(input);
    let agreeing = [0, 1, 2].map(|at| agreeing_with(input, &sides, at));
    let option = |side: &Side| texts.note("position", &[("position", &side.text)]);
    let mut options: Vec<String> = sides.iter().take(3).map(option).collect();
    let mut last = Choice::Position;
    if options.len() == 2 {
        options.push(texts.none_fits.clone());
        last = Choice::Anew;
    }
    match Clarification::new(&texts.contested, &options) {
        Some(contested) => Clarification {
            choices: Some([Choice::Position, Choice::Position, last]),
            agreeing: Some(agreeing),
            ..contested
        },
        None => unsure(input.request),
    }
}

/// Returns the question how to continue without enough confidence. It names an image that was not
/// seen, because another answer would need it.
pub(super) fn unsure(request: &RequestContext) -> Clarification {
    let texts = request.rule_texts();
    let unseen = request.unseen.first().map(|image| texts.unseen(image));
    // A question mark in the name of the image would end the question.
    let unseen = unseen.filter(|note| !note.contains(is_question_mark));
    Clarification {
        question: match unseen {
            Some(note) => format!("{}. {}", capitalized(&note), texts.unsure),
            None => texts.unsure.clone(),
        },
        options: [&texts.best_answer, &texts.deeper, &texts.stop].map(String::clone),
        choices: Some([Choice::BestAnswer, Choice::Deeper, Choice::Stop]),
        agreeing: None,
    }
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.chain(chars).collect()
}

/// A contested position, and the agents that hold it.
struct Side {
    text: String,
    agents: Vec<String>,
}

/// Returns the agents that hold the position with this number, or none of the positions.
fn agreeing_with(input: &SynthesisInput<'_>, sides: &[Side], at: usize) -> Vec<Agent> {
    let own = sides.get(at).map_or(&[][..], |side| &side.agents);
    let agents = input.reports().into_iter().map(|(agent, _)| agent);
    let agrees = |agent: &Agent| {
        let is_in = |agents: &[String]| agents.iter().any(|it| it == agent.into_str());
        is_in(own) || !sides.iter().any(|side| is_in(&side.agents))
    };
    agents.filter(agrees).collect()
}

/// Returns the contested positions of the outputs that are not discarded, a line of text each: their
/// different final answers, the most supported first, or else the sides of the most severe
/// disagreement, or the final answers of round 1. Fewer than two if nothing is contested.
fn positions(input: &SynthesisInput<'_>) -> Vec<Side> {
    let usable = input.usable();
    let support = |group: &&AnswerGroup| {
        let is_in = |it: &&ScoredReport<'_>| group.agents.contains(&it.score.agent);
        usable.iter().filter(is_in).count()
    };
    let groups = input.deliberation.judgement.answer_groups.iter();
    let mut groups: Vec<&AnswerGroup> = groups.filter(|group| support(group) > 0).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(support(group)));
    let answers = groups.into_iter().map(|group| Side {
        text: excerpt(group.shown(), 60),
        agents: group.agents.clone(),
    });
    let answers: Vec<Side> = answers.filter(|side| !side.text.is_empty()).collect();
    if answers.len() >= 2 {
        return answers;
    }
    let mut open = input.deliberation.visible_disagreements();
    // A final answer that an agent gave up without a proof is in doubt still.
    open.retain(|(disagreement, _)| !disagreement.settled || disagreement.on_final_answer);
    open.sort_by_key(|(disagreement, _)| disagreement.settled);
    let first = open.into_iter().next();
    let sides = first.map(|(_, sides)| sides).unwrap_or_default();
    let sides = sides.into_iter().map(|it| Side {
        text: excerpt(&it.text, 100),
        agents: it.agents,
    });
    sides.filter(|side| !side.text.is_empty()).collect()
}
