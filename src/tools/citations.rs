//! The evidence queries, and checks of what a text says of them against what they returned.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;

use crate::domain::number_named;
use crate::text::{pattern, plain_sign};

/// The evidence queries, with the words for what they count.
pub const QUERIES: [(&str, &str); 8] = [
    ("Q1", "tool executions"),
    ("Q2", "failures"),
    ("Q3", "diagnostic executions"),
    ("Q4", "file executions"),
    ("Q5", "execution details"),
    ("Q6", "latest outcome"),
    ("Q7", "recurring diagnostics"),
    ("Q8", "prior fixes"),
];

/// The name of a query. With more letters after it, it is the name of a file or a function: "Q3.md", "q1()".
static QUERY: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)(?:^|[^\w/.-])q(?:uery)?[ -]?([0-9]+)\b(\.\w|[(:]\S)?"));

/// A number, with what follows it. A time or an ordinal is computed from the rows.
static FIGURE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\b([0-9]+)(\.[0-9]+|st|nd|rd|th|[ -]?(?:m?s|seconds?|min|minutes?|h|hours?|days?))?\b",
    )
});

/// A number word, as in `ninety-nine` or `three`.
static NUMBER_WORD: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\b[a-z]{3,9}(?:-[a-z]{3,5})?\b"));

/// A path, a file name, or the code of a diagnostic. The abbreviations "e.g." and "i.e." are none.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"[\w.-]*/[\w./-]*\w|\b[\w-]{2,}\.[A-Za-z]{1,5}\b|\b[A-Z][0-9]{3,5}\b")
});

/// Returns why the citations of a text are rejected; `None` if each query exists and returned what
/// its sentence says: something or nothing, every figure, path and code. Times and ordinals are not
/// looked up.
pub fn objection(text: &str, evidence: &Value) -> Option<String> {
    let text: String = text.nfkc().collect();
    let sentences = text.split('\n').flat_map(|line| line.split_inclusive(". "));
    for sentence in sentences {
        let cited = queries_of(sentence);
        let lower = sentence.to_lowercase();
        let is_denied =
            lower.contains("no evidence found") || lower.contains("insufficient evidence");
        let mut rows = String::new();
        for query in &cited {
            let Some((name, what)) = QUERIES.iter().find(|(name, _)| name == query) else {
                return Some(format!("Evidence query '{query}' does not exist"));
            };
            if !is_empty(evidence, name) {
                rows += &evidence[name].to_string();
            } else if !is_denied {
                return Some(format!(
                    "Response references '{what}' but {query} returns empty results: insufficient evidence"
                ));
            }
        }
        if is_denied && !cited.is_empty() && cited.iter().all(|query| !is_empty(evidence, query)) {
            let cited = cited.join(" and ");
            return Some(format!(
                "Response states no evidence for {cited}, which returned it"
            ));
        }
        if let (Some(unknown), false) = (not_returned(sentence, &rows), rows.is_empty()) {
            let what = format!("Response states '{unknown}' with {}", cited.join(" and "));
            return Some(what + ", which did not return it");
        }
    }
    None
}

/// Returns a figure, a path or a code of a sentence that the rows of its queries lack.
fn not_returned(sentence: &str, rows: &str) -> Option<String> {
    let plain: String = sentence.chars().map(plain_sign).collect();
    let own = QUERY.replace_all(&plain, " ");
    let mut names = NAMED.find_iter(&own).map(|name| name.as_str());
    let has_letters = |text: &&str| text.chars().any(char::is_alphabetic);
    if let Some(name) = names.find(|name| has_letters(name) && !rows.contains(name)) {
        return Some(name.to_owned());
    }
    let known: Vec<&str> = rows.split(|c: char| !c.is_ascii_digit()).collect();
    // "One" and "zero" are words of prose.
    let in_digits = |word: &Captures<'_>| match number_named(&word[0].to_lowercase()) {
        Some(number) if number > 1 => number.to_string(),
        _ => word[0].to_owned(),
    };
    let own = NAMED.replace_all(&own, " ");
    let own = NUMBER_WORD.replace_all(&own, in_digits);
    let mut figures = FIGURE.captures_iter(&own).filter(|it| it.get(2).is_none());
    let unknown = figures.find(|it| !known.contains(&&it[1]))?;
    Some(unknown[1].to_owned())
}

/// True if a query returned nothing.
pub fn is_empty(evidence: &Value, query: &str) -> bool {
    evidence[query].as_array().is_none_or(Vec::is_empty)
}

/// Returns the names of the queries that a text mentions.
pub fn queries_of(text: &str) -> Vec<String> {
    let found = QUERY.captures_iter(text);
    let found = found.filter(|query| query.get(2).is_none());
    found.map(|query| format!("Q{}", &query[1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_and_queries_must_be_in_the_evidence() {
        let evidence = json!({
            "Q1": [{ "tool": "file_read", "count": 3, "successes": 2, "last_success": true }],
            "Q6": [{ "file": "src/lib.rs", "timestamp": "2026-11-26T21:47:41.123Z" }],
            "Q8": [{ "code": "E0425", "fix_attempts": 2, "temporal_gaps": [299_800, 5_100] }],
            "Q2": [],
        });
        let table = "Q1 shows 2/3 prior attempts succeeded. Then 7 lines were read.
            No evidence found for Q2.
            Insufficient evidence: Q2 returned no rows, beside 3 of Q1.
            The request is the query: 4 files, in src/q7.rs.
            Q8 shows 2 prior fix attempts for E0425, 5 minutes and 5.1 s before.
            Q6 shows src/lib.rs was last executed on 2026-11-26 at 21:47.
            Q1: This is the 4th execution of file_read.
            Q1 shows two of three executions, and one row.
            Q8 shows E0425, five minutes before, e.g. in two attempts.
            Q6 shows the file src/lib.rs.
            The file Q3.md has 1 line, and q9() calls Q9::new.
            Q1 shows 99 executions. -> states '99' with Q1, which did not return it
            Query 1 shows 99 executions. -> states '99' with Q1, which did not return it
            Q 1 shows 99 executions. -> states '99' with Q1, which did not return it
            Query-1 shows 99 executions. -> states '99' with Q1, which did not return it
            Q1 shows Ninety-Nine executions. -> states '99' with Q1, which did not return it
            Q1 shows ٩٩ executions. -> states '99' with Q1, which did not return it
            Q6 shows src/other.rs failed. -> states 'src/other.rs' with Q6, which did not return it
            Q6 shows src/lib.rs and lib2.rs. -> states 'lib2.rs' with Q6, which did not return it
            Q8 shows E0999 with 2 fix attempts. -> states 'E0999' with Q8, which did not return it
            No evidence found for Q1. -> states no evidence for Q1, which returned it
            Q9 shows 1 row. -> Evidence query 'Q9' does not exist
            Q2 shows 2 failures. -> references 'failures' but Q2 returns empty results: insufficient evidence";
        for row in table.lines().map(str::trim) {
            let (text, expected) = row.split_once(" -> ").unwrap_or((row, ""));
            let found = objection(text, &evidence).unwrap_or_default();
            assert_eq!(found.trim_start_matches("Response "), expected, "{text}");
        }
    }
}
