//! The screen for explanations of tool results.
//!
//! A model explains what tools returned. It may state evidence and order in time. The screen
//! rejects likelihood, causes, risk, policy, and tool errors in other words. It reads English
//! only, and it does not check that a stated fact is true.
//!
//! The patterns are in `screen.tsv`. They see the model's own words: code, names and quotations are
//! hidden first.

use std::cmp::Reverse;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use strum::{Display, EnumString};
use unicode_normalization::UnicodeNormalization as _;

use crate::domain::is_invisible;
use crate::text::{one_line, pattern};

/// What an explanation must not contain, as the table and messages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString)]
pub enum Disallowed {
    /// A figure or a word for how likely or certain something is.
    #[strum(serialize = "confidence", to_string = "confidence score")]
    Confidence,
    /// A claim that one thing made another happen. Order in time is allowed.
    #[strum(serialize = "causal", to_string = "causal language")]
    Causal,
    /// A judgement of danger or safety.
    #[strum(serialize = "risk", to_string = "risk assessment")]
    Risk,
    /// A rule, a ban or advice on how to work.
    #[strum(serialize = "policy", to_string = "policy statement")]
    Policy,
    /// A tool failed, and the text lacks the words of its error.
    #[strum(to_string = "reworded tool error (its exact words are missing)")]
    RewordedError,
}

/// A reason to reject a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub kind: Disallowed,
    /// The rejected words of the text. For [`Disallowed::RewordedError`], the missing tool error.
    pub quote: String,
}

impl Finding {
    /// The fixed rejection message.
    pub fn message(&self) -> String {
        format!(
            "Response contains disallowed element: {}\n\
             Permitted: evidence summaries, tool output, explanations\n\
             Rejected: '{}'\n\
             Correct format: 'Q1 shows 2/3 prior attempts succeeded'",
            self.kind, self.quote
        )
    }
}

/// Returns the first thing that `text` must not contain; missing tool errors come before the rest.
///
/// `errors` are the errors of failed tools; each must be in `text` up to whitespace. `verbatim` are
/// the outputs and errors of the tools, the user's request and file names: what a text quotes from
/// them is not the model's own words. If `verbatim` is empty, every quotation counts as one.
pub fn screen(text: &str, errors: &[&str], verbatim: &[&str]) -> Option<Finding> {
    let is_missing =
        |error: &&&str| !repetition(error).map_or(text.contains(**error), |it| it.is_match(text));
    if let Some(error) = errors.iter().find(is_missing) {
        let (kind, quote) = (Disallowed::RewordedError, one_line(error));
        return Some(Finding { kind, quote });
    }
    // A clause ends with its sentence or before "and", "but" and the like.
    static END: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"[.!?;](?:[ )\x22']|$)|\b(?:and|but|however|although|though|yet)\b")
    });
    let own = own_words(&without(text, errors), verbatim);
    let mut clauses = END.split(&own);
    clauses.find_map(|clause| {
        first_finding(clause.trim_start_matches(|c: char| !c.is_ascii_alphanumeric()))
    })
}

/// Returns a search for an error, up to whitespace.
fn repetition(error: &str) -> Option<Regex> {
    let words: Vec<String> = error.split_whitespace().map(regex::escape).collect();
    Regex::new(&words.join(r"(?-u:\s+)")).ok()
}

/// Returns a text with an `x` in place of each error that it repeats, up to whitespace.
pub(super) fn without(text: &str, errors: &[&str]) -> String {
    let repeated = errors.iter().filter_map(|error| repetition(error));
    repeated.fold(text.to_owned(), |text, error| {
        error.replace(&text, " x ").into_owned()
    })
}

/// Returns the model's own text, without emphasis marks. Code, quotations, names and lines copied
/// from `verbatim` are an `x` each.
pub(super) fn own_text(text: &str, verbatim: &[&str]) -> String {
    static FENCED: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?s)```(.*?)```"));
    static QUOTED: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"`[^`\n]+`|\x22[^\x22\n]+\x22|“[^“”\n]+”"));
    static EMPHASIS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b_+|_+\b"));
    static NAME: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"\b\S*?(?:_|::|\w\.[a-z]|/\S*[/.]|[a-z][A-Z])\S*\b"));
    static BLOCK: LazyLock<Regex> = LazyLock::new(|| pattern(r"\n[ \t\r]*(?:\n|[-*#|>])"));
    let verbatim = verbatim.join("\n");
    let said = one_line(&verbatim);
    // Marks alone do not make a quotation: its words occur in `verbatim`, or it is code. The code of
    // a diagnostic is part of the claim about it.
    let hide = |quoted: &str| {
        let content = one_line(quoted.trim_matches(['`', '"', '“', '”']));
        let signs = ['_', '(', '{', '[', '<', '=', ';', '/'];
        let looks_like_code = !content.contains(' ') || content.contains(signs);
        let is_code = quoted.starts_with('`') && looks_like_code;
        let is_said = || verbatim.is_empty() || has_words(&said, &content);
        if !is_diagnostic_code(&content) && (is_code || is_said()) {
            return " x ".to_owned();
        }
        content
    };
    let hide_lines = |found: &Captures<'_>| {
        let lines = found[1].lines().map(|line| hide(&format!("`{line}`")));
        lines.collect::<Vec<_>>().join("\n")
    };
    let mut lines: Vec<&str> = verbatim.lines().map(str::trim).collect();
    lines.retain(|line| line.split_whitespace().count() >= MIN_LINE_WORDS);
    lines.sort_by_key(|line| Reverse(line.len()));
    let mut text = text.to_owned();
    for line in lines {
        text = text.replace(line, " x ");
    }
    let text = FENCED.replace_all(&text, hide_lines);
    let text = QUOTED.replace_all(&text, |found: &Captures<'_>| hide(&found[0]));
    let text = EMPHASIS.replace_all(&text, "");
    let text = NAME.replace_all(&text, "x");
    BLOCK.replace_all(&text, ". ").into_owned()
}

/// Returns the words of [`own_text`]: lower-case ASCII with single spaces, and `percent` for `%`.
fn own_words(text: &str, verbatim: &[&str]) -> String {
    let text = own_text(text, verbatim).to_lowercase();
    let text = text.replace('%', " percent");
    let text = text.replace(['\u{2019}', '\u{2bc}'], "'");
    let text = text.replace(['\u{2013}', '\u{2014}'], " - ");
    let plain = text.nfkc().filter_map(|c| match c {
        '*' | '_' | '`' => None,
        _ if is_invisible(c) && !c.is_control() => None,
        _ if c.is_ascii() => Some(c),
        _ if c.is_alphabetic() => Some('x'),
        _ => Some(' '),
    });
    one_line(&plain.collect::<String>())
}

/// True for the code of a compiler's diagnostic: E0425.
fn is_diagnostic_code(text: &str) -> bool {
    let digits = text.strip_prefix('E').unwrap_or_default();
    digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// True if a text has these words, and not as parts of others.
fn has_words(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, _)| {
        let (before, after) = (text.get(..at), text.get(at + words.len()..));
        !before.is_some_and(|it| it.ends_with(char::is_alphanumeric))
            && !after.is_some_and(|it| it.starts_with(char::is_alphanumeric))
    })
}

/// A line of the outputs with fewer words is not told from grammar ("is caused by").
const MIN_LINE_WORDS: usize = 3;

/// Returns the first and longest match in a clause.
fn first_finding(clause: &str) -> Option<Finding> {
    // Parts that only decline a claim are hidden. Lengths stay the same.
    let hide = |found: &Captures<'_>| "x".repeat(found[0].len());
    let allowed = ROWS.iter().filter(|(kind, _)| kind.is_none());
    let words = allowed.fold(clause.to_owned(), |words, (_, allowed)| {
        allowed.replace_all(&words, hide).into_owned()
    });
    let hits = ROWS.iter().filter_map(|(kind, regex)| {
        let (kind, hit) = ((*kind)?, regex.find(&words)?);
        Some((hit.start(), hit.end(), kind))
    });
    let first = hits.min_by_key(|&(start, end, _)| (start, Reverse(end)));
    let (start, end, kind) = first?;
    let quote = clause.get(start..end)?.replace(" percent", "%");
    Some(Finding { kind, quote })
}

static TABLE: &str = include_str!("screen.tsv");

/// What each pattern of the table shows, `None` for `allow`, and the pattern with every `{name}`
/// replaced. Patterns see lower-case ASCII and match whole words.
static ROWS: LazyLock<Vec<(Option<Disallowed>, Regex)>> = LazyLock::new(|| {
    let mut names: Vec<(String, String)> = vec![];
    let mut rows = vec![];
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.splitn(3, '\t').collect();
        let [kind, second, third] = fields[..] else {
            continue;
        };
        let expanded = |pattern: &str| {
            let put =
                |pattern: String, (name, part): &(String, String)| pattern.replace(name, part);
            names.iter().fold(pattern.to_owned(), put)
        };
        if kind == "define" {
            let part = format!("(?:{})", expanded(third));
            names.push((format!("{{{second}}}"), part));
        } else {
            let whole_words = format!(r"(?-u)\b(?:{})\b", expanded(second));
            rows.push((kind.parse().ok(), pattern(&whole_words)));
        }
    }
    rows
});

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str, errors: &[&str], verbatim: &[&str]) -> Option<Disallowed> {
        screen(text, errors, verbatim).map(|finding| finding.kind)
    }

    #[test]
    fn every_line_of_the_table_is_read_and_decides_its_example() {
        let lines = TABLE.lines();
        let lines = lines.filter(|line| !line.starts_with('#') && !line.starts_with("define"));
        assert_eq!(ROWS.len(), lines.clone().count());
        for ((expected, _), line) in ROWS.iter().zip(lines) {
            let (_, example) = line.rsplit_once('\t').unwrap();
            assert_eq!(kind(example, &[], &[]), *expected, "{example}");
        }
    }

    #[test]
    fn quotations_of_the_tools_are_not_the_models_claims() {
        let stale = "note: this might be caused by a stale index\nhelp: see risk.rs";
        let error = "Symbol 'bar'\n  not found";
        let asked = "Is the patch safe to merge?\nerror: required because of `T`";
        let table = "stale | - | The tool says \"this might be caused by a stale index\".
            stale | - | It printed note: this might be caused by a stale index to stderr.
            stale | - | See risk.rs, `cause_of` and policy::risky.
            asked | confidence | In short: \"the change is probably fine\".
            asked | confidence | It `might be stale` now.
            asked | risk | The patch is safe to merge.
            asked | causal | It failed because of the index.
            none | - | Searching for \"because\" gave 9 matches.
            none | - | ```\\nthis might fail\\n```\\nis the output.
            none | causal | The log does not say what the cause is, but the rename caused it.
            none | causal | The log does not say what the cause is and the rename caused it.
            none | causal | There is no data in b.txt because the rename removed it.
            none | risk | No record was changed and it is safe to merge.
            none | policy | The user asked for a read and you should not edit this file.
            none | confidence | a.txt was read (confidence=0.9).
            none | confidence | Confidence (0.9).
            none | confidence | Confidence - 0.9
            none | causal | Replacing sid by side fixes the build.
            none | causal | The write removes E0425.
            none | causal | The error occurs since sid does not exist.
            none | causal | The step failed as the file is not indexed.
            none | causal | The earlier edits failed to fix the error.
            none | causal | The previous write did not help.
            none | - | lsp_check ended with an error, and the run ended without a failure.
            none | - | Q8 shows 2 prior fixes for E0425.
            none | - | The request was to fix the E0425 error.
            none | causal | Q8 shows this fix worked before.
            none | - | The step failed, as it did before.
            error | - | splice_patch failed: Symbol 'bar' not found
            error | reworded tool error (its exact words are missing) | The symbol wasn't found.";
        for row in table.lines().map(str::trim) {
            let (source, row) = row.split_once(" | ").unwrap();
            let (expected, text) = row.split_once(" | ").unwrap();
            let (text, expected) = (text.replace("\\n", "\n"), expected.parse().ok());
            let (errors, verbatim): (&[&str], &[&str]) = match source {
                "stale" => (&[], &[stale]),
                "asked" => (&[], &[asked]),
                "error" => (&[error], &[error]),
                _ => (&[], &[]),
            };
            assert_eq!(kind(&text, errors, verbatim), expected, "{text}");
        }
        assert_eq!(kind("Done.", &[" \n"], &[]), None);
    }

    #[test]
    fn the_message_quotes_the_words_of_the_text() {
        let quote = |text: &str| screen(text, &[], &[]).unwrap().quote;
        assert_eq!(quote("Naïve **PROBABLY**\n\nyes."), "probably");
        assert_eq!(quote("It isn’t\n  safe to merge."), "isn't safe to");
        assert_eq!(quote("This is ｐrobaｂly it."), "probably");
        let finding = screen("This is 90% likely to succeed.", &[], &[]).unwrap();
        let lines = [
            "Response contains disallowed element: confidence score",
            "Permitted: evidence summaries, tool output, explanations",
            "Rejected: '90% likely'",
            "Correct format: 'Q1 shows 2/3 prior attempts succeeded'",
        ];
        assert_eq!(finding.message(), lines.join("\n"));
    }

    /// The sentences were labelled by others than the author of the patterns.
    #[test]
    fn labelled_sentences_are_told_apart() {
        let corpus = include_str!("../../tests/fixtures/explanations.tsv");
        for set in ["seen", "unseen"] {
            let (mut caught, mut missed, mut wronged, mut good) = (0.0, 0.0, 0.0, 0.0);
            for line in corpus.lines().skip(1) {
                let columns: Vec<&str> = line.split('\t').collect();
                let [own, label, _, text] = columns[..] else {
                    panic!("{line}");
                };
                match (label, screen(text, &[], &[]).is_none()) {
                    _ if own != set => {}
                    ("bad", false) => caught += 1.0,
                    ("bad", true) => missed += 1.0,
                    (_, false) => wronged += 1.0,
                    (_, true) => good += 1.0,
                }
            }
            let (precision, recall) = (caught / (caught + wronged), caught / (caught + missed));
            let all = caught + missed + wronged + good;
            println!("{set}: {all} sentences, precision {precision:.3}, recall {recall:.3}");
            assert!(precision >= 0.9 && recall >= 0.8, "{set}");
        }
    }
}
