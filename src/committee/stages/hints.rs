//! Hints: cheap deterministic guesses of the task type. The master may override them.

use std::sync::LazyLock;

use regex::Regex;

use crate::domain::{Question, TaskType};
use crate::journal::Hinted;
use crate::text::listed;

/// Each rule's task type and its signal, whose pattern is in `hints.tsv`.
const RULES: [(TaskType, &str); 4] = [
    (TaskType::PromptEngineering, "words of prompts"),
    (TaskType::TechnicalExecution, "a code fence"),
    (
        TaskType::TechnicalExecution,
        "words of building and running",
    ),
    (TaskType::VisualAnalysis, "words of pictures"),
];

static PATTERNS: LazyLock<[Regex; 4]> =
    LazyLock::new(|| RULES.map(|(_, signal)| listed(include_str!("hints.tsv"), signal)));

/// Guesses the task types of a question.
pub fn hints_of(question: &Question) -> Hinted {
    let mut hints = Hinted::default();
    let mut add = |task_type, signal: &str| {
        if !hints.task_types.contains(&task_type) {
            hints.task_types.push(task_type);
        }
        hints.signals.push(signal.to_owned());
    };
    if question.has_image() {
        add(TaskType::VisualAnalysis, "an image is attached");
    }
    for ((task_type, signal), pattern) in RULES.into_iter().zip(&*PATTERNS) {
        if pattern.is_match(&question.message) {
            add(task_type, signal);
        }
    }
    hints
}

/// Returns the task type chosen from the hints alone.
pub fn task_type_of(hints: &Hinted) -> TaskType {
    match hints.task_types.as_slice() {
        [] => TaskType::VerbalReasoning,
        [one] => *one,
        _ => TaskType::Mixed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Attachment, Context, Mode, Source, User};

    fn hints(message: &str, attachments: Vec<Attachment>) -> Vec<TaskType> {
        let user = User {
            id: "u".into(),
            name: "n".into(),
        };
        let (source, mode, context) = (Source::Http, Mode::Ask, Context::default());
        hints_of(&Question {
            source,
            mode,
            user,
            context,
            message: message.into(),
            attachments,
            salience: Default::default(),
        })
        .task_types
    }

    #[test]
    fn each_kind_of_question_is_hinted() {
        assert_eq!(
            hints("Write a rubric for essays", vec![]),
            [TaskType::PromptEngineering]
        );
        assert_eq!(
            hints("Why does this fail?\n```\nx\n```", vec![]),
            [TaskType::TechnicalExecution]
        );
        assert_eq!(hints("What is the capital of France?", vec![]), []);
        let image = Attachment {
            filename: "a.PNG".into(),
            url: "https://x/a".into(),
            content_type: None,
        };
        assert_eq!(
            hints("What is this?", vec![image]),
            [TaskType::VisualAnalysis]
        );
    }
}
