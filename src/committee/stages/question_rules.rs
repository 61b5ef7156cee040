//! Checks a model's question to the user, and makes a question by fixed rules if no model gave one.

use std::collections::BTreeSet;

use crate::committee::output_shapes::FallbackQuestionOut;
use crate::committee::request_context::RequestContext;
use crate::committee::stages::option_parts::say_what_changes;
use crate::committee::stages::synthesis_input::SynthesisInput;
use crate::domain::{
    Agent, AgentName, Choice, Clarification, Position, is_question_mark, is_unspaced, search_terms,
};
use crate::scoring;
use crate::text::{MAX_BYTES, clip, excerpt};

/// Returns the model's question without references to discarded outputs, or why it cannot be asked:
/// it is malformed, or it would fit any request (SPEC 2). If positions are contested, the options must
/// name them, or say what each changes in words of the request or the reports. Else these words are
/// enough, or the options say what they change, and the question has a word of the request or a figure
/// of the reports, or the model says which reports would stay as they are.
pub(super) fn question_of(
    input: &SynthesisInput<'_>,
    out: &FallbackQuestionOut,
) -> Result<Clarification, &'static str> {
    let asked =
        written(input, out).ok_or("the master gave no question with three different options")?;
    let sides = positions(input);
    let content = content_of(input);
    let has_content = differ_by(&asked.options, &content);
    let says = say_what_changes(&asked.options);
    if sides.len() < 2 {
        let has_a_word = {
            let mut texts = asked.options.iter().chain([&asked.question]);
            let is_figure =
                |term: &String| term.contains(char::is_numeric) && content.contains(term);
            have_content_of(&input.request.question.message, texts.clone())
                || texts.any(|text| terms_of(text).iter().any(is_figure))
        };
        let lists = asked.agreeing.as_ref();
        let parts_reports = lists.is_some_and(|[a, b, c]| a != b || b != c);
        let is_about = has_content || says && (has_a_word || parts_reports);
        let problem = "the master's question would fit any request: its options do not say what each would change here";
        return is_about.then_some(asked).ok_or(problem);
    }
    let named = sides.iter().flat_map(|side| terms_of(&side.text)).collect();
    let names = differ_by(&asked.options, &named)
        || differ_by_positions(&asked.options, &sides)
        || says && has_content;
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

/// The least letters of a word that says something of a request. Shorter ones are often like "with".
/// In scripts without spaces two letters do.
const CONTENT_CHARS: usize = 5;

/// True if two options have one of these words that no other option has.
fn differ_by(options: &[String], words: &BTreeSet<String>) -> bool {
    let options: Vec<BTreeSet<String>> = options.iter().map(|option| terms_of(option)).collect();
    let is_telling = |term: &String| {
        let is_long = term.len() > 2 || term.contains(char::is_numeric);
        let having = options.iter().filter(|option| option.contains(term));
        is_long && words.contains(term) && having.count() == 1
    };
    let telling = options.iter().filter(|terms| terms.iter().any(is_telling));
    telling.count() > 1
}

/// True if two options have a position that no other option has, however it is written.
fn differ_by_positions(options: &[String], sides: &[Position]) -> bool {
    let option_of = |side: &Position| {
        let all = options.iter().enumerate();
        let mut having = all.filter(|(_, option)| scoring::states(option, &side.text));
        let (at, _) = having.next()?;
        having.next().is_none().then_some(at)
    };
    let telling: BTreeSet<usize> = sides.iter().filter_map(option_of).collect();
    telling.len() > 1
}

/// Returns the words of the request and of the reports that say something.
fn content_of(input: &SynthesisInput<'_>) -> BTreeSet<String> {
    let reports = input.reports().into_iter().flat_map(|(_, report)| {
        let units = report.units.iter();
        let lists = report.answer_summary.iter().chain(&report.assumptions);
        lists
            .chain([&report.reasoning])
            .chain(units.flat_map(|unit| [&unit.topic, &unit.text]))
    });
    let texts = std::iter::once(&input.request.question.message).chain(reports);
    let terms = texts.flat_map(|text| terms_of(text));
    let says = |term: &String| is_content(term) || term.contains(char::is_numeric);
    terms.filter(says).collect()
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

/// Makes a question by fixed rules (SPEC 2), in the user's language. It asks for the choice between
/// contested positions. If there are none, it says that there is too little confidence, and asks
/// how to continue.
pub fn by_rule(input: &SynthesisInput<'_>) -> Clarification {
    let texts = input.request.rule_texts();
    let sides = positions(input);
    let agreeing = [0, 1, 2].map(|at| agreeing_with(input, &sides, at));
    let option = |side: &Position| texts.note("position", &[("position", &side.text)]);
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

/// Returns the agents that hold the position with this number, or none of the positions.
fn agreeing_with(input: &SynthesisInput<'_>, sides: &[Position], at: usize) -> Vec<Agent> {
    let own = sides.get(at).map_or(&[][..], |side| &side.agents);
    let agents = input.reports().into_iter().map(|(agent, _)| agent);
    let agrees = |agent: &Agent| {
        let is_in = |agents: &[AgentName]| agents.iter().any(|it| it == agent);
        is_in(own) || !sides.iter().any(|side| is_in(&side.agents))
    };
    agents.filter(agrees).collect()
}

/// Returns the contested positions of the outputs that are not discarded, a line of text each, the
/// most supported first: their different final answers, or else the sides of the most severe
/// disagreement, or the final answers of round 1. Empty if nothing is contested.
fn positions(input: &SynthesisInput<'_>) -> Vec<Position> {
    let mut open = input.deliberation.visible_disagreements();
    // A final answer that an agent gave up without a proof is in doubt still.
    open.retain(|(disagreement, _)| !disagreement.settled || disagreement.on_final_answer);
    open.sort_by_key(|(disagreement, _)| disagreement.settled);
    let Some((disagreement, mut sides)) = open.into_iter().next() else {
        return vec![];
    };
    let most = if disagreement.on_final_answer {
        60
    } else {
        100
    };
    for side in &mut sides {
        side.text = excerpt(&side.text, most);
    }
    sides.retain(|side| !side.text.is_empty());
    sides.sort_by_key(|side| std::cmp::Reverse(side.agents.len()));
    sides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_name_positions_however_they_are_written() {
        for (sides, options, differ) in [
            (["1,000", "2,000"], ["1000 pages", "2000 pages"], true),
            (["1,000", "2,000"], ["1000 pages", "1 000 pages"], false),
            (
                ["March 5, 2024", "March 6, 2024"],
                ["on 2024-03-05", "on 2024-03-06"],
                true,
            ),
            (["61", "62"], ["٦١ صفحة", "٦٢ صفحة"], true),
            (["61", "62"], ["in short", "in full"], false),
        ] {
            let options = [options[0], options[1], "another"].map(str::to_owned);
            let sides = sides.map(|text| Position {
                text: text.to_owned(),
                agents: vec![],
                units: vec![],
            });
            assert_eq!(differ_by_positions(&options, &sides), differ, "{options:?}");
        }
    }
}
