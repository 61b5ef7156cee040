//! Finds learned answers that resemble a request.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::learning;
use super::strategy::Candidate;
use crate::clock::Clock;
use crate::domain::{Question, ShownAnswer};
use crate::journal::{Error, LearnedRow, Store, learned_scope};
use crate::text;

/// The most learned answers that the full-text search gives.
const MAX_FOUND: u32 = 50;

/// The most words of a request that are searched for.
const MAX_TERMS: usize = 64;

/// Two questions with less similarity than this have nothing to do with each other. On 640 pairs of
/// questions in English and German, 0.2 kept 84 % of those with the same meaning.
const MIN_SIMILARITY: f64 = 0.2;

/// The most bytes of a question and of its answer that a model is shown.
const MAX_CONDITION_BYTES: usize = 300;
const MAX_ACTION_BYTES: usize = 1000;

/// The learned answers of a service.
#[derive(Clone)]
pub struct Memory {
    store: Arc<dyn Store>,
    clock: Clock,
}

impl Memory {
    pub fn new(store: Arc<dyn Store>, clock: Clock) -> Self {
        Self { store, clock }
    }

    /// Returns learned answers of the place of a question that share a word with it.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn found(&self, question: &Question) -> Result<Vec<LearnedRow>, Error> {
        let mut terms: Vec<String> = vec![];
        for word in text::words(text::clip(&question.message, text::MAX_BYTES)) {
            if terms.len() < MAX_TERMS && !terms.contains(&word) {
                terms.push(word);
            }
        }
        let scope = learned_scope(question);
        self.store.learned_like(&scope, &terms, MAX_FOUND).await
    }

    /// Returns those of the found answers that resemble a question, the most similar first.
    pub fn ranked(&self, found: Vec<LearnedRow>, question: &str) -> Vec<Candidate> {
        let now = self.clock.now();
        let asked = trigrams(question);
        let mut candidates: Vec<Candidate> = found
            .into_iter()
            .filter_map(|row| candidate(row, (question, &asked), now))
            .collect();
        candidates.sort_by(|a, b| {
            let by_similarity = b.similarity.total_cmp(&a.similarity);
            by_similarity.then(b.confidence.total_cmp(&a.confidence))
        });
        candidates
    }
}

fn candidate(
    row: LearnedRow,
    (question, asked): (&str, &BTreeSet<[char; 3]>),
    now: Timestamp,
) -> Option<Candidate> {
    let confidence = learning::confidence_at(&row, now)?;
    let is_same = wording(&row.condition).eq(wording(question));
    let similarity = if is_same {
        1.0
    } else {
        similarity(&trigrams(&row.condition), asked)
    };
    (similarity >= MIN_SIMILARITY).then(|| Candidate {
        is_same,
        shown: ShownAnswer {
            id: row.run,
            condition: text::clip(&row.condition, MAX_CONDITION_BYTES).to_owned(),
            action: text::clip(&row.answer.main, MAX_ACTION_BYTES).to_owned(),
        },
        condition: row.condition,
        answer: row.answer,
        similarity,
        confidence,
    })
}

/// Returns the words of a question in lower case, without the punctuation that ends them. Signs
/// within and before a word stay: "C++" is not "C#", and "-5" is not "5".
fn wording(question: &str) -> impl Iterator<Item = String> {
    let ends = |c: char| ".,;:!?…。、，；：！？".contains(c);
    let words = question
        .split_whitespace()
        .map(move |word| word.trim_end_matches(ends).to_lowercase());
    words.filter(|word| !word.is_empty())
}

/// Returns how much two texts resemble each other, 0 to 1: the share of common trigrams of
/// characters (Jaccard index). It holds for inflected and misspelt words of any language. It cannot
/// tell opposites apart.
fn similarity(known: &BTreeSet<[char; 3]>, asked: &BTreeSet<[char; 3]>) -> f64 {
    text::ratio(
        known.intersection(asked).count(),
        known.union(asked).count(),
    )
}

fn trigrams(question: &str) -> BTreeSet<[char; 3]> {
    let words = text::words(text::clip(question, text::MAX_BYTES)).join(" ");
    let chars: Vec<char> = format!(" {words} ").chars().collect();
    chars.array_windows().copied().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::heuristic_first::has_same_figures;
    use super::*;
    use crate::domain::{RunId, Source, TaskType};
    use crate::journal::{Draft, Owner};

    /// A pair of questions. `same`: the answer of the one answers the other.
    #[derive(serde::Deserialize)]
    struct Pair {
        set: String,
        known: String,
        asked: String,
        same: bool,
    }

    /// Prints how many of 640 pairs of questions, written by others than the author of the search,
    /// reach the model that compares them. The others ask the committee. No pair fires without that
    /// model.
    #[test]
    fn most_questions_with_one_meaning_reach_the_comparison_and_none_fires_without_it() {
        let mut counts: BTreeMap<(String, bool), [usize; 2]> = BTreeMap::new();
        for line in include_str!("data/question_pairs.jsonl").lines() {
            let Pair {
                set,
                known,
                asked,
                same,
            } = serde_json::from_str(line).unwrap();
            let row = LearnedRow {
                run: RunId::from_uuid(uuid::Uuid::nil()),
                scope: Owner {
                    source: Source::Http,
                    user_id: String::new(),
                    guild_id: Some("g".to_owned()),
                },
                condition: known.clone(),
                answer: Draft::new(TaskType::Mixed, "An answer.".to_owned()),
                confidence: 0.9,
                learned_at: Timestamp::UNIX_EPOCH,
                changed_at: Timestamp::UNIX_EPOCH,
                is_revoked: false,
            };
            let found = candidate(row, (&asked, &trigrams(&asked)), Timestamp::UNIX_EPOCH);
            assert!(
                found.as_ref().is_none_or(|it| !it.is_same),
                "{known} {asked}"
            );
            let [reached, all] = counts.entry((set, same)).or_default();
            *all += 1;
            *reached += usize::from(found.is_some() && has_same_figures(&known, &asked));
        }
        for ((set, same), [reached, all]) in counts {
            println!("{set}, same meaning {same}: {reached} of {all} are compared");
            if same {
                assert!(
                    reached as f64 >= 0.6 * all as f64,
                    "{set}: {reached} of {all}"
                );
            }
        }
    }

    #[test]
    fn only_case_and_ending_punctuation_may_differ_in_the_same_question() {
        let same = |a: &str, b: &str| wording(a).eq(wording(b));
        assert!(same("What is C++?", "what is  c++"));
        for (a, b) in [
            ("How do I install C++?", "How do I install C#?"),
            ("Is it -5 outside?", "Is it 5 outside?"),
            ("What is .NET?", "What is NET?"),
            ("Is it on?", "Is it not on?"),
        ] {
            assert!(!same(a, b), "{a} {b}");
        }
    }

    #[test]
    fn inflected_and_misspelt_questions_resemble_each_other() {
        let similarity = |a: &str, b: &str| similarity(&trigrams(a), &trigrams(b));
        let known = "Wie sichere ich die Datenbank unseres Ladens?";
        for asked in [
            "datenbank von unserem laden sichern wie",
            "Wie sicher ich die Datenbnk unsres Ladens",
        ] {
            assert!(similarity(known, asked) >= MIN_SIMILARITY, "{asked}");
        }
        let other = "Wann beginnt das Turnier am Samstag?";
        assert!(similarity(known, other) < MIN_SIMILARITY);
        assert!(similarity("", "").abs() < 1e-9);
    }
}
