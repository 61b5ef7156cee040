//! The evidence queries, and checks of what a text says of them against what they returned.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

use crate::text::pattern;

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

/// Returns why the citations of a text are rejected; `None` if each query exists and returned
/// something, and the sentence that cites it states at least one value that it returned, and no
/// figure that it did not. If the sentence names a row, its figures are those of that row. Of the paths
/// that it names one must be returned, if the rows have paths.
pub fn objection(text: &str, evidence: &Value) -> Option<String> {
    let text = with_names(text);
    for sentence in sentences(&text) {
        let cited = words(sentence).filter(|word| is_query(word));
        let cited: Vec<String> = cited.map(str::to_uppercase).collect();
        let lower = sentence.to_ascii_lowercase();
        let is_insufficient = lower.contains("insufficient evidence");
        let mut known = vec![];
        for query in &cited {
            let Some((name, what)) = QUERIES.iter().find(|(name, _)| name == query) else {
                return Some(format!("Evidence query '{query}' does not exist"));
            };
            let denied = sentence.split_once("No evidence found for ");
            let mut denied = denied.into_iter().flat_map(|(_, names)| words(names));
            let is_denied = denied.any(|it| it.eq_ignore_ascii_case(query));
            if !is_empty(evidence, name) {
                if is_denied {
                    let why = "which returned rows";
                    return Some(format!("Response states no evidence for {query}, {why}"));
                }
                let rows = &evidence[name];
                if !values(rows).iter().any(|value| states(sentence, value)) {
                    let columns = columns(rows).join(", ");
                    return Some(format!(
                        "Response cites {query} without a value that it returned; its columns are {columns}"
                    ));
                }
                known.extend(rows_for(sentence, rows));
            } else if !is_denied && !is_insufficient {
                return Some(format!(
                    "Response references '{what}' but {query} returns empty results: insufficient evidence"
                ));
            }
        }
        let sentence = without_gaps(sentence, &known);
        if let (Some(part), false) = (unknown(&sentence, &known), known.is_empty()) {
            let cited = cited.join(" and ");
            return Some(format!(
                "Response states '{part}' with {cited}, which did not return it"
            ));
        }
    }
    None
}

/// Returns the first figure, code of a diagnostic or path of a sentence that is not in the rows.
fn unknown<'s>(sentence: &'s str, rows: &[&Value]) -> Option<&'s str> {
    static PATH: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"[\w.-]*(?:/[\w.-]+)*/[\w.-]*\w\.[a-zA-Z]\w*\b"));
    // The day and the time of a timestamp are figures of their own.
    static TIME: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\d)T(\d[\d:.]*)Z"));
    let text: String = rows.iter().map(ToString::to_string).collect();
    let text = TIME.replace_all(&text, "$1 $2");
    let mut figures = words(sentence).filter(|word| {
        let digits = word.trim_end_matches(|c: char| c.is_ascii_lowercase());
        let ordinal = matches!(word.get(digits.len()..), Some("st" | "nd" | "rd" | "th"));
        // Also a code such as E0425.
        let number = digits.strip_prefix(|c: char| c.is_ascii_uppercase());
        let number = number.filter(|number| number.len() >= 3).unwrap_or(digits);
        let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
        // An execution is the 4th after 3 recorded ones.
        let before = number.parse::<u64>().ok().and_then(|it| it.checked_sub(1));
        let follows = ordinal && before.is_some_and(|it| states(&text, &it.to_string()));
        let is_figure = is_number && (ordinal || digits == *word);
        is_figure && !states(&text, digits) && !follows
    });
    let has_paths = rows.iter().any(|row| row.get("file").is_some());
    let paths = PATH.find_iter(sentence).filter(|_| has_paths);
    let paths: Vec<&str> = paths.map(|path| path.as_str()).collect();
    let is_returned = paths.iter().any(|path| states(&text, path));
    let path = paths.first().filter(|_| !is_returned);
    figures.next().or(path.copied())
}

/// Removes the times that are gaps of the rows, rounded to as many decimals as they have.
fn without_gaps<'s>(sentence: &'s str, rows: &[&Value]) -> Cow<'s, str> {
    static TIME: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"\b(\d+)(?:\.(\d+))?[ -]?(s|seconds?|min|minutes?|h|hours?|days?)\b")
    });
    let gaps = rows
        .iter()
        .filter_map(|row| row["temporal_gaps"].as_array());
    let gaps: Vec<f64> = gaps.flatten().filter_map(Value::as_f64).collect();
    TIME.replace_all(sentence, |found: &Captures<'_>| {
        let (whole, decimals) = (&found[1], found.get(2).map_or("", |it| it.as_str()));
        let unit = match &found[3] {
            "s" | "second" | "seconds" => 1e3,
            "min" | "minute" | "minutes" => 60e3,
            "h" | "hour" | "hours" => 3_600e3,
            _ => 86_400e3,
        };
        let shown = format!("{whole}.{decimals}");
        let is_gap =
            |gap: &f64| format!("{:.*}", decimals.len(), gap / unit) == shown.trim_end_matches('.');
        if gaps.iter().any(is_gap) {
            String::new()
        } else {
            found[0].to_owned()
        }
    })
}

/// Returns the rows that a sentence may take its figures from: those of which it names the most texts,
/// such as a tool and a file, or all rows if it names none.
fn rows_for<'v>(sentence: &str, rows: &'v Value) -> impl Iterator<Item = &'v Value> {
    let named = |row: &Value| {
        let values = row.as_object().into_iter().flatten();
        let texts = values.filter_map(|(_, value)| value.as_str());
        texts.filter(|text| states(sentence, text)).count()
    };
    let rows = rows.as_array().into_iter().flatten();
    let most = rows.clone().map(named).max();
    rows.filter(move |row| Some(named(row)) == most)
}

/// True if a query returned nothing.
pub fn is_empty(evidence: &Value, query: &str) -> bool {
    evidence[query].as_array().is_none_or(Vec::is_empty)
}

/// Returns the names of the queries that a text mentions.
pub fn queries_of(text: &str) -> Vec<String> {
    // Not the file "src/q1.rs".
    static NAMED: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"(?:^|[\s(\x22'])(?:Q|[Qq]uery )([1-8])(?:[\s,;:)\x22']|\.\s|\.?$)")
    });
    let found = NAMED.captures_iter(text);
    let digits = found.filter_map(|found| Some(found.get(1)?.as_str()));
    digits.map(|digit| format!("Q{digit}")).collect()
}

/// Writes the names of queries in one way: `Q4` for "query 4", "Q 4" and a digit of full width.
fn with_names(text: &str) -> String {
    static NAME: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?i)\bq(?:uery)?(?: |-|\x20?#|\x20?no\. ?)?([0-9]+)\b"));
    // Letters and digits of full width.
    let plain = |c: char| match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        _ => c,
    };
    let text: String = text.chars().map(plain).collect();
    NAME.replace_all(&text, "Q$1").into_owned()
}

/// The values in the rows of a query, without the truth values, which no sentence spells out.
fn values(rows: &Value) -> Vec<String> {
    let rows = rows.as_array().into_iter().flatten();
    let rows = rows.filter_map(Value::as_object);
    let values = rows.flat_map(|row| row.values());
    let values = values.flat_map(|value| match value {
        Value::Array(values) => values.as_slice(),
        value => std::slice::from_ref(value),
    });
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    values.filter_map(text).collect()
}

fn columns(rows: &Value) -> Vec<&str> {
    let row = rows.get(0).and_then(Value::as_object);
    row.into_iter().flatten().map(|(name, _)| &**name).collect()
}

/// True if a sentence has the words of a value, one behind the other.
fn states(sentence: &str, value: &str) -> bool {
    let (sentence, value): (Vec<_>, Vec<_>) = (words(sentence).collect(), words(value).collect());
    !value.is_empty() && sentence.windows(value.len()).any(|part| part == value)
}

/// Splits a text after full stops and line breaks.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.split_inclusive(". "))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
}

/// True for a name such as `Q4`.
fn is_query(word: &str) -> bool {
    let number = word.strip_prefix(['Q', 'q']).unwrap_or_default();
    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_and_queries_must_be_in_the_evidence() {
        let evidence = json!({
            "Q1": [
                { "tool": "file_read", "count": 3, "successes": 2, "last_success": true },
                { "tool": "file_glob", "count": 8, "successes": 8, "last_success": true },
            ],
            "Q3": [{ "code": "E0425", "occurrences": 7 }],
            "Q4": [{ "file": "src/lib.rs", "executions": 2, "last": "failure" }],
            "Q6": [{ "file": "src/lib.rs", "success": true, "timestamp": "2026-11-26T21:47:41.123Z" }],
            "Q7": [
                { "code": "E0425", "file": "src/lib.rs", "occurrences": 7 },
                { "code": "E0308", "file": "src/lib.rs", "occurrences": 3 },
            ],
            "Q8": [{ "code": "E0425", "fix_attempts": 2, "temporal_gaps": [299_800, 5_100, 7_200_000], "tools": ["splice_patch"] }],
            "Q2": [],
        });
        let hold = |expected: &str, texts: &str| {
            for text in texts.lines().map(str::trim) {
                let found = objection(text, &evidence).unwrap_or_default();
                assert_eq!(found, expected, "{text}");
            }
        };
        hold(
            "",
            "Q1 shows 3 executions of file_read. Then 7 lines were read.
            Q4 shows 2 executions on src/lib.rs, and Q1 shows 3.
            No evidence found for Q2.
            Insufficient evidence: Q2 returned no rows.
            7 lines were read.
            Q1 shows file_read succeeded last.
            Q1 shows 2/3 prior attempts succeeded.
            The request is the query: 4 files.
            Q3 shows E0425 occurred 7 times in src/price.rs.
            Q8 shows 2 prior fix attempts for E0425.
            Q8 shows splice_patch 5 minutes before E0425, and another change after 5 s.
            Q8: the gap was 299800 ms.
            Q8: the gaps were 5.1 s and 2 hours.
            Q6 shows src/lib.rs was last executed on 2026-11-26 at 21:47.
            Q7 shows E0425 7 times in src/lib.rs, at self.side.
            Q4 shows 2 executions on src/lib.rs, and src/price.rs was created.
            Q4: This is the 3rd execution on `src/lib.rs`.",
        );
        hold(
            "Response states '99' with Q4, which did not return it",
            "Q4 shows 99 executions on src/lib.rs.
            q4 shows 99 executions on src/lib.rs.
            Query 4 shows 99 executions on src/lib.rs.
            Q 4 shows 99 executions on src/lib.rs.
            Ｑ４ shows 99 executions on src/lib.rs.",
        );
        for (text, expected) in [
            (
                "Q1 shows file_read succeeded 8/8 times.",
                "Response states '8' with Q1, which did not return it",
            ),
            (
                "Q7 shows E0425 occurred 3 times in src/lib.rs.",
                "Response states '3' with Q7, which did not return it",
            ),
            (
                "No evidence found for Q4 and Q2.",
                "Response states no evidence for Q4, which returned rows",
            ),
            (
                "Q4 shows this fix worked before.",
                "Response cites Q4 without a value that it returned; its columns are file, executions, last",
            ),
            (
                "Q4 shows E9999 in src/lib.rs.",
                "Response states 'E9999' with Q4, which did not return it",
            ),
            (
                "Q4 shows this is the 4th execution on src/lib.rs.",
                "Response states '4th' with Q4, which did not return it",
            ),
            (
                "Q7 shows E0425 occurred 7 times in src/price.rs.",
                "Response states 'src/price.rs' with Q7, which did not return it",
            ),
            (
                "Q8 shows splice_patch 5 hours before E0425.",
                "Response states '5' with Q8, which did not return it",
            ),
            ("Q9 shows 1 row.", "Evidence query 'Q9' does not exist"),
            (
                "Q2 shows 2 failures.",
                "Response references 'failures' but Q2 returns empty results: insufficient evidence",
            ),
        ] {
            hold(expected, text);
        }
    }
}
