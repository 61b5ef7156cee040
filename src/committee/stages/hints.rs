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
    use serde_json::{Value, json};

    use super::*;

    fn hints(message: &str, attachments: &Value) -> Vec<TaskType> {
        let question = json!({
            "source": "http", "mode": "ask", "user": { "id": "u", "name": "n" },
            "message": message, "attachments": attachments,
        });
        hints_of(&serde_json::from_value(question).unwrap()).task_types
    }

    #[test]
    fn each_kind_of_question_is_hinted() {
        let image = json!([{ "filename": "a.PNG", "url": "https://x/a" }]);
        for (message, attachments, expected) in [
            (
                "Write a rubric for essays",
                json!([]),
                &[TaskType::PromptEngineering][..],
            ),
            (
                "Why does this fail?\n```\nx\n```",
                json!([]),
                &[TaskType::TechnicalExecution],
            ),
            ("What is the capital of France?", json!([]), &[]),
            ("What is this?", image, &[TaskType::VisualAnalysis]),
        ] {
            assert_eq!(hints(message, &attachments), expected, "{message}");
        }
    }
}
