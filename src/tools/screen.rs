//! The screen for explanations of tool results.
//!
//! A model explains what tools returned. It may state evidence and order in time. The screen
//! rejects likelihood, causes, risk, policy, and tool errors in other words. It reads English
//! only, and it does not check that a stated fact is true.
//!
//! The patterns are in `screen.tsv`. They see the model's own words: `screen/own_words.rs` hides
//! code, names and quotations first.

mod own_words;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod tests;

use own_words::OwnWords;
use regex::{Captures, Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use std::borrow::Cow;
use std::sync::LazyLock;

/// What an explanation must not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Disallowed {
    /// A figure or a word for how likely or certain something is.
    Confidence,
    /// A claim that one thing made another happen. Order in time is allowed.
    Causal,
    /// A judgement of danger or safety.
    Risk,
    /// A rule, a ban or advice on how to work.
    Policy,
    /// A tool failed, and the text lacks the words of its error.
    RewordedError,
}

impl Disallowed {
    /// The name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Confidence => "confidence score",
            Self::Causal => "causal language",
            Self::Risk => "risk assessment",
            Self::Policy => "policy statement",
            Self::RewordedError => "reworded tool error (its exact words are missing)",
        }
    }
}

/// One reason to reject a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub kind: Disallowed,
    /// The rejected words of the text. For [`Disallowed::RewordedError`], the missing tool error.
    pub quote: String,
}

/// Returns what `text` must not contain: first missing tool errors, then the rest in text order.
///
/// `errors` are the errors of failed tools; each must be in `text` up to whitespace. `verbatim` are
/// the outputs and errors of the tools, the user's request and file names: what a text quotes from
/// them is not the model's own words. If `verbatim` is empty, every quotation counts as one.
pub fn screen(text: &str, errors: &[&str], verbatim: &[&str]) -> Vec<Finding> {
    let mut findings = missing_errors(text, errors);
    let own = OwnWords::of(text, verbatim);
    for clause in own.clauses() {
        findings.extend(PATTERNS.findings(text, &own, clause));
    }
    findings
}

/// The fixed rejection message, with the kind and quote of the first finding. It is empty if
/// there is none.
pub fn message(findings: &[Finding]) -> String {
    let Some(first) = findings.first() else {
        return String::new();
    };
    format!(
        "Response contains disallowed element: {}\n\
         Permitted: evidence summaries, tool output, explanations\n\
         Rejected: '{}'\n\
         Correct format: 'Q1 shows 2/3 prior attempts succeeded'",
        first.kind.name(),
        first.quote
    )
}

fn missing_errors(text: &str, errors: &[&str]) -> Vec<Finding> {
    let text = one_spaced(text);
    errors
        .iter()
        .map(|error| one_spaced(error))
        .filter(|error| !text.contains(error.as_str()))
        .map(|quote| Finding {
            kind: Disallowed::RewordedError,
            quote,
        })
        .collect()
}

fn one_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The compiled lines of `screen.tsv`.
struct Patterns {
    /// One set for a first pass over a clause; its indexes are those of `rejected`.
    set: RegexSet,
    rejected: Vec<(Disallowed, Regex)>,
    /// All `allow` patterns in one.
    allowed: Option<Regex>,
}

impl Patterns {
    /// Skips a line that does not compile; a test holds that all do.
    fn of(rows: &[Row]) -> Self {
        let rejected: Vec<(Disallowed, Regex)> = rows
            .iter()
            .filter_map(|row| Some((row.kind?, compile(&row.pattern).ok()?)))
            .collect();
        let allowed: Vec<&str> = rows
            .iter()
            .filter(|row| row.kind.is_none())
            .map(|row| row.pattern.as_str())
            .collect();
        let set = RegexSetBuilder::new(rejected.iter().map(|(_, regex)| regex.as_str()))
            .unicode(false)
            .size_limit(MAX_SET_BYTES)
            .dfa_size_limit(MAX_SET_BYTES)
            .build();
        Self {
            set: set.unwrap_or_default(),
            rejected,
            allowed: compile(&allowed.join("|")).ok(),
        }
    }

    /// Findings in one clause, in text order. Of overlapping findings the first is kept.
    fn findings(&self, text: &str, own: &OwnWords, clause: (usize, usize)) -> Vec<Finding> {
        let words = self.hide_allowed(own.clause_text(clause));
        let mut hits: Vec<(usize, usize, Disallowed)> = self
            .set
            .matches(&words)
            .iter()
            .filter_map(|index| self.rejected.get(index))
            .filter_map(|(kind, regex)| {
                regex
                    .find(&words)
                    .map(|hit| (hit.start(), hit.end(), *kind))
            })
            .collect();
        hits.sort_by_key(|&(start, end, _)| (start, std::cmp::Reverse(end)));
        let mut kept_to = 0;
        hits.retain(|&(start, end, _)| {
            let keep = start >= kept_to;
            if keep {
                kept_to = end;
            }
            keep
        });
        let (offset, _) = clause;
        hits.into_iter()
            .map(|(start, end, kind)| Finding {
                kind,
                quote: own.original(text, offset + start, offset + end).to_owned(),
            })
            .collect()
    }

    /// Hides the parts that only decline a claim. Lengths stay the same.
    fn hide_allowed<'t>(&self, words: &'t str) -> Cow<'t, str> {
        let hide = |found: &Captures<'_>| "x".repeat(found.get(0).map_or(0, |part| part.len()));
        self.allowed
            .as_ref()
            .map_or(Cow::Borrowed(words), |allow| allow.replace_all(words, hide))
    }
}

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| Patterns::of(&rows(TABLE)));
static TABLE: &str = include_str!("screen.tsv");
const MAX_SET_BYTES: usize = 32 << 20;

/// One pattern line of `screen.tsv`.
struct Row {
    /// `None` for `allow`.
    kind: Option<Disallowed>,
    /// With every `{name}` replaced.
    pattern: String,
    #[cfg_attr(not(test), expect(dead_code, reason = "the tests read it"))]
    example: &'static str,
}

fn rows(table: &'static str) -> Vec<Row> {
    let mut names: Vec<(String, String)> = Vec::new();
    let mut rows = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split('\t');
        let (Some(kind), Some(second), Some(third)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let kind = match kind {
            "define" => {
                names.push((
                    format!("{{{second}}}"),
                    format!("(?:{})", expand(third, &names)),
                ));
                continue;
            }
            "allow" => None,
            "confidence" => Some(Disallowed::Confidence),
            "causal" => Some(Disallowed::Causal),
            "risk" => Some(Disallowed::Risk),
            "policy" => Some(Disallowed::Policy),
            _ => continue,
        };
        rows.push(Row {
            kind,
            pattern: expand(second, &names),
            example: third,
        });
    }
    rows
}

fn expand(pattern: &str, names: &[(String, String)]) -> String {
    names
        .iter()
        .fold(pattern.to_owned(), |pattern, (name, part)| {
            pattern.replace(name, part)
        })
}

/// Patterns see lower-case ASCII and match whole words.
fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(&format!(r"\b(?:{pattern})\b"))
        .unicode(false)
        .build()
}
