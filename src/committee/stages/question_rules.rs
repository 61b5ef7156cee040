//! Checks a model's question to the user, and makes a question by fixed rules if no model gave one.

use crate::committee::output_shapes::QuestionOut;
use crate::committee::request_context::RequestContext;
use crate::committee::stages::synthesis_input::SynthesisInput;
use crate::domain::{AnswerGroup, Choice, Clarification, is_question_mark};
use crate::text::excerpt;

/// Returns the model's question without references to discarded outputs; `None` if it is malformed.
pub(super) fn question_of(input: &SynthesisInput<'_>, out: &QuestionOut) -> Option<Clarification> {
    let discarded = input.discarded();
    let options: Vec<String> = out
        .options
        .iter()
        .map(|option| discarded.redact(option).into_owned())
        .collect();
    Clarification::new(&discarded.redact(&out.question), &options)
}

/// Builds a question from the master's plain text. The question is the text up to the first
/// question mark, and fixed rules make the options. The rules also make the question if the agents'
/// answers differ, or if that text is missing or longer than 200 characters.
pub(super) fn of_text(input: &SynthesisInput<'_>, text: &str) -> Clarification {
    let ruled = by_rule(input);
    let words = text
        .split_inclusive(is_question_mark)
        .next()
        .map(str::trim)
        .filter(|q| q.ends_with(is_question_mark));
    let words = words.filter(|q| q.chars().count() <= 200 && positions(input).len() < 2);
    let asked = words.and_then(|words| {
        let words = input.discarded().redact(words).into_owned();
        Clarification::new(&words, &ruled.options)
    });
    match asked {
        Some(asked) => Clarification {
            choices: ruled.choices,
            ..asked
        },
        None => ruled,
    }
}

/// Makes a question by fixed rules (SPEC 2), in the user's language. It asks for the choice between
/// contested positions. If there are none, it says that there is too little confidence, and asks
/// how to continue.
pub fn by_rule(input: &SynthesisInput<'_>) -> Clarification {
    let texts = input.request.rule_texts();
    let positions = positions(input);
    let mut options: Vec<String> = positions
        .iter()
        .take(3)
        .map(|p| texts.position(p))
        .collect();
    let mut choices = [Choice::Position; 3];
    if let ([_, _], [.., last]) = (options.as_slice(), &mut choices) {
        options.push(texts.none_fits.clone());
        *last = Choice::Anew;
    }
    let contested = Clarification::new(&texts.contested, &options);
    let contested = contested.map(|question| Clarification {
        choices: Some(choices),
        ..question
    });
    contested.unwrap_or_else(|| unsure(input.request))
}

/// Returns the question how to continue without enough confidence.
pub(super) fn unsure(request: &RequestContext) -> Clarification {
    let texts = request.rule_texts();
    Clarification {
        question: texts.unsure.clone(),
        options: [&texts.best_answer, &texts.deeper, &texts.stop].map(String::clone),
        choices: Some([Choice::BestAnswer, Choice::Deeper, Choice::Stop]),
    }
}

/// Returns the contested positions of the outputs that are not discarded, one line each: their
/// different final answers, the most supported first, or else the sides of the most severe
/// disagreement. Fewer than two if nothing is contested.
fn positions(input: &SynthesisInput<'_>) -> Vec<String> {
    let usable: Vec<&str> = input
        .usable()
        .iter()
        .map(|(agent, ..)| agent.into_str())
        .collect();
    let support = |group: &AnswerGroup| {
        let agents = group.agents.iter();
        agents
            .filter(|agent| usable.contains(&agent.as_str()))
            .count()
    };
    let groups = input.deliberation.judgement.answer_groups.iter();
    let mut groups: Vec<&AnswerGroup> = groups.filter(|group| support(group) > 0).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(support(group)));
    let mut positions: Vec<String> = groups
        .iter()
        .map(|group| excerpt(&group.answer, 60))
        .collect();
    positions.retain(|answer| !answer.is_empty());
    if positions.len() < 2 {
        let mut open = input.deliberation.visible_disagreements().into_iter();
        let sides = open.find(|(disagreement, _)| !disagreement.settled);
        let sides = sides.into_iter().flat_map(|(_, sides)| sides);
        positions = sides.map(|side| excerpt(&side.text, 100)).collect();
    }
    positions
}
