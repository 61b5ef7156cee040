//! What a request asks for: its parts, the shape of answer that it expects, its options and countable constraints.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::constraint::{self, Constraint};
use super::pattern::pattern;
use super::puzzle::Puzzle;
use super::text::{self, clip, content, sentences, tidy, words};

/// The shape of answer that a request expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expect {
    /// A number or a formula.
    Value,
    YesNo,
    /// A letter of the options.
    Choice,
    /// A name, a place, a date: a few words.
    Short,
    Code,
    /// Ordered steps.
    Steps,
    List,
    /// An explanation, a text, anything longer.
    Open,
}

/// A request, read once per panel.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    pub text: String,
    pub expect: Expect,
    /// What it asks, one by one.
    pub parts: Vec<String>,
    pub part_stems: Vec<BTreeSet<String>>,
    /// The content words of the whole request.
    pub stems: BTreeSet<String>,
    /// The letters and texts of a multiple choice.
    pub options: Vec<(char, String)>,
    /// Countable demands on the form.
    pub limits: Vec<Constraint>,
    /// Whether what it asks for is short by nature.
    pub brief: bool,
    pub language: Option<&'static str>,
    /// Whether it is set in mathematical signs.
    pub notation: bool,
    pub puzzle: Option<Puzzle>,
    /// "how many X": the words for what is counted.
    pub counted: BTreeSet<String>,
}

const MAX_PARTS: usize = 8;

pub(super) fn read(message: &str) -> Request {
    let text = tidy(clip(message, text::MAX_BYTES)).into_owned();
    let options = options(&text);
    let without_options = match OPTION.find(&text) {
        Some(first) if !options.is_empty() && first.start() > 0 => {
            text.get(..first.start()).unwrap_or(&text).to_owned()
        }
        _ => text.clone(),
    };
    let parts = parts(&without_options);
    let asked = parts.join(" ");
    let puzzle = super::puzzle::read(&text);
    // The value of a puzzle is given; how to get there is asked.
    let expect = if puzzle.is_some() { Expect::Steps } else { expectation(&asked, &without_options, &options) };
    let limits = constraint::read(&asked, &without_options);
    let part_stems = parts.iter().map(|part| content(part)).collect();
    Request {
        expect,
        part_stems,
        stems: content(clip(&without_options, 4_000)),
        brief: constraint::is_brief(&asked, &limits),
        limits,
        language: wanted_language(&without_options),
        counted: counted(&asked),
        notation: SIGNS.is_match(&text),
        puzzle,
        parts,
        options,
        text,
    }
}

static OPTION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:^|[\s:;,])\(?([A-J])[).]\s+\S|(?:^|[\s:;,])\(([A-J])\)"));

/// The options of a multiple choice: at least (A) and (B), in order.
fn options(text: &str) -> Vec<(char, String)> {
    let mut found: Vec<(char, usize, usize)> = Vec::new();
    for captures in OPTION.captures_iter(text) {
        let Some(letter) = captures.get(1).or(captures.get(2)) else { continue };
        let Some(c) = letter.as_str().chars().next() else { continue };
        if usize::try_from(u32::from(c) - u32::from('A')).is_ok_and(|n| n == found.len())
            && !in_brackets(text, letter.start())
        {
            found.push((c, letter.start(), letter.end()));
        }
    }
    if found.len() < 2 {
        return vec![];
    }
    let ends = found.iter().skip(1).map(|(_, start, _)| *start).chain([text.len()]);
    found
        .iter()
        .zip(ends)
        .map(|((letter, _, start), end)| {
            let body = text.get(*start..end).unwrap_or_default().lines().next().unwrap_or_default();
            (
                *letter,
                body.trim_matches(|c: char| c.is_whitespace() || matches!(c, ')' | '(' | '.' | ',' | ';' | ':'))
                    .to_owned(),
            )
        })
        .collect()
}

/// Whether the letter at `at` closes a longer remark in brackets, as in "(group A)".
fn in_brackets(text: &str, at: usize) -> bool {
    let line = text.get(..at).unwrap_or_default().lines().last().unwrap_or_default();
    let head = line.strip_suffix('(').unwrap_or(line);
    head.matches('(').count() > head.matches(')').count()
}

/// Questions and orders, one by one. A story before a question is no part; with neither, the whole message is one.
fn parts(text: &str) -> Vec<String> {
    static AND: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)(?:[,;]\s*(?:and\s+|then\s+|also\s+)*|\s+and\s+(?:also\s+|then\s+)?)(how|why|what|when|where|which|who|explain|describe|list|give|show|compare|write|suggest|name|estimate|recommend|include|provide)\b",
        )
    });
    let mut out: Vec<String> = Vec::new();
    for sentence in sentences(text) {
        let bare = sentence.trim_start_matches(|c: char| !c.is_alphabetic());
        if !(sentence.ends_with('?') || is_order(bare)) {
            continue;
        }
        let mut start = 0;
        for captures in AND.captures_iter(bare) {
            let (Some(whole), Some(verb)) = (captures.get(0), captures.get(1)) else { continue };
            let head = bare.get(start..whole.start()).unwrap_or_default().trim();
            if words(head).len() >= 3 {
                out.push(head.to_owned());
                start = verb.start();
            }
        }
        out.push(bare.get(start..).unwrap_or_default().trim().to_owned());
    }
    out.retain(|part| !content(part).is_empty());
    // The last ones are the likeliest to be the question; a pasted document comes before it.
    if out.len() > MAX_PARTS {
        out.drain(..out.len() - MAX_PARTS);
    }
    if out.is_empty() && !text.trim().is_empty() {
        let mut whole: String = sentences(text).last().copied().unwrap_or(text).to_owned();
        if content(text).len() <= 20 {
            whole = text.trim().to_owned();
        }
        out.push(clip(&whole, 400).to_owned());
    }
    out
}

/// Whether a sentence begins with a verb that tells someone to do something.
fn is_order(sentence: &str) -> bool {
    static ORDER: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)^(?:please\s+|can you\s+|could you\s+|now\s+|then\s+|also\s+)*(write|explain|describe|list|give|show|compare|find|calculate|compute|evaluate|solve|determine|name|tell|suggest|create|design|implement|fix|debug|deploy|translate|summari[sz]e|classify|rewrite|generate|provide|convert|prove|simplify|express|plan|draft|recommend|review|estimate|identify|discuss|outline|analy[sz]e|choose|pick|complete|edit|make|build|add|use|help|state|define|count|sort|answer|include|propose|refactor|set up|configure|migrate|optimi[sz]e|improve|brainstorm|come up)\b",
        )
    });
    ORDER.is_match(sentence)
}

fn expectation(asked: &str, whole: &str, options: &[(char, String)]) -> Expect {
    static CODE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\b(?:write|create|implement|generate|give me|show|provide|fix|complete|refactor|develop)\b[^.?!\n]{0,60}\b(?:function|program|script|code|class|method|query|regex|regular expression|sql|snippet|dockerfile|makefile|body of)\b",
        )
    });
    static VALUE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\bhow (?:many|much|old|far|tall|fast|heavy|deep|high|large|often)\b|\bhow long (?:does|did|will|would|is|was|until)|\b(?:calculate|compute|evaluate|simplify)\b|\b(?:what|find|determine|express|give)\b[^.?!]{0,40}\b(?:sum|product|probability|percentage|percent|average|mean|median|total|number|value|area|perimeter|volume|length|distance|remainder|ratio|cost|price|year|speed|degree measure|measure|greatest|least|smallest|largest integer|integer|fraction|sqrt|square root)\b|\bin (?:what|which) year\b|\bfind \$|\bwhat is (?:\$|[\d(\\-])|\bwhat (?:temperature|time|age|percent|fraction|amount)\b|\bhow do you round\b|\b(?:boiling|freezing|melting) point\b|\bwhat (?:is|are|was|were)\b[^.?!]{0,60}\bin (?:degrees|celsius|fahrenheit|kelvin|met(?:re|er)s|kilomet(?:re|er)s|miles|kilograms|pounds|seconds|minutes|hours|days|years|dollars|euros|percent|lit(?:re|er)s)\b|\bsolve (?:for|the equation|the inequality|\$)|\bin how many\b|\b(?:compute|find|evaluate|simplify|determine|express)\b[^.?!]{0,60}\$|\bwhat (?:is|are)\b[^.?!]{0,60}\$|\bwhat is the (?:greater|larger|smaller|lesser|final|remaining)\b|\b(?:what|find) (?:is|are) \$?[a-z]\$?\s*[?.]|\bwhat (?:common fraction|will the|would the|should the)\b|\b(?:decimal|fraction|nearest (?:tenth|hundredth|whole|integer))\b",
        )
    });
    static SHORT: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)^(?:who|whom|whose|where|when|which)\b|\bwhat(?:'s| is| was| are| were) the (?:[a-z'-]+ ){0,3}?(?:capital|name|title|largest|smallest|biggest|longest|tallest|highest|first|last|oldest|currency|symbol|author|president|color|colour|language|planet|country|city|date|birthday|formula|type|term|word)\b|\bwhat (?:country|city|planet|color|colour|language|animal|element|state|river|day|month|word|type|kind|currency|is your|nationality)\b|^name (?:the|a|an|one)\b|^(?:in|on|at|to|from|by) (?:what|which|whom)\b",
        )
    });
    static YES_NO: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)^(?:is|are|was|were|does|do|did|has|have|had|can|could|will|would|should|may|must|am)\s+(\w+)\b[^?]*\?$|\b(?:yes or no|true or false)\b",
        )
    });
    static STEPS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\bhow (?:do|can|to|would|should|could)\s+(?:i|you|we|one|to|someone)?\b|\b(?:steps?|runbook|roadmap|tutorial|instructions|procedure|step-by-step|plan for|migration plan)\b|^(?:deploy|configure|set up|plan|migrate)\b",
        )
    });
    static LIST: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)^(?:list|name|suggest|brainstorm|give|provide|recommend)\b[^.?!]{0,40}\b(?:\w+s)\b|\bwhat are (?:some|the)\b|\b(?:examples of|tips|ideas|bullet points)\b",
        )
    });
    let question = sentences(asked).last().copied().unwrap_or(asked).to_owned();
    let one_line = sentences(asked).into_iter().find(|s| s.ends_with('?')).unwrap_or(&question).to_owned();
    if options.len() >= 2 {
        Expect::Choice
    } else if CODE.is_match(asked) || (CODE.is_match(clip(whole, 600)) && !whole.contains("```")) {
        Expect::Code
    } else if YES_NO.is_match(&one_line)
        && !one_line.contains(" or ")
        && !is_request_for_text(&one_line)
        && words(&one_line).len() >= 3
    {
        Expect::YesNo
    } else if VALUE.is_match(asked) || is_sum(&question, whole) {
        Expect::Value
    } else if SHORT.is_match(&question) || SHORT.is_match(&one_line) {
        Expect::Short
    } else if STEPS.is_match(asked) {
        Expect::Steps
    } else if LIST.is_match(&question) {
        Expect::List
    } else {
        Expect::Open
    }
}

/// A story with figures that ends in "what is ..." or "find ...", or a task set in mathematical signs, asks for a value.
fn is_sum(question: &str, whole: &str) -> bool {
    static WHAT: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\b(?:what(?:'s| is| are| was| were| will| would| constant| number)|which (?:one )?of|find|how long)\b",
        )
    });
    let figures = words(whole).iter().filter(|word| word.lower.starts_with(|c: char| c.is_ascii_digit())).count();
    SIGNS.is_match(whole) || (figures >= 2 && WHAT.is_match(question) && !whole.contains("```"))
}

static SIGNS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\$[^$\n]*[\\^=+<>\d][^$\n]*\$|\\\[|\\frac|\\begin\{"));

/// "Can you explain ...?" is an order in the shape of a question.
fn is_request_for_text(question: &str) -> bool {
    static POLITE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)^(?:can|could|will|would) (?:you|we|i)\b"));
    POLITE.is_match(question)
}

/// The language to answer in: the request's own, unless it speaks of another.
fn wanted_language(text: &str) -> Option<&'static str> {
    static OTHER: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\btranslat|\b(?:in|into|to)\s+(?:english|german|french|spanish|italian|portuguese|dutch|russian|chinese|japanese|korean|arabic|hindi|latin|polish|turkish|swedish)\b",
        )
    });
    if OTHER.is_match(text) { None } else { text::language(text) }
}

fn counted(asked: &str) -> BTreeSet<String> {
    static COUNTED: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?i)\bhow (?:many|much)\s+(?:more\s+|fewer\s+|total\s+)?(\w+)"));
    COUNTED
        .captures_iter(asked)
        .filter_map(|found| found.get(1).map(|word| text::stem(&word.as_str().to_lowercase())))
        .filter(|word| text::is_content(word))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_of_the_answer_is_read_off_the_question() {
        for (message, expect) in [
            ("What is the capital of France?", Expect::Short),
            ("How many bolts does it take in total?", Expect::Value),
            ("Is 17 a prime number?", Expect::YesNo),
            ("Which is larger?\n(A) 1\n(B) 2", Expect::Choice),
            ("Write a Python function that reverses a list.", Expect::Code),
            ("How do I deploy a container on a VPS?", Expect::Steps),
            ("List three tips for staying healthy.", Expect::List),
            ("Explain why the sky is blue.", Expect::Open),
            ("What is 2 + 2?", Expect::Value),
            ("Who wrote Hamlet?", Expect::Short),
        ] {
            assert_eq!(read(message).expect, expect, "{message}");
        }
    }

    #[test]
    fn a_request_falls_into_its_parts() {
        assert_eq!(
            read("We run Postgres on a small VPS. Explain how replication works, and list three risks. What does it cost?").parts,
            ["Explain how replication works", "list three risks.", "What does it cost?"]
        );
        assert_eq!(read("A robe takes 2 bolts. How many bolts in total?").parts, ["How many bolts in total?"]);
        assert_eq!(read("docker compose networking").parts, ["docker compose networking"]);
        assert!(read("  ").parts.is_empty());
    }

    #[test]
    fn options_are_told_from_other_brackets() {
        assert_eq!(read("Pick: A) red, B) green").options, [('A', "red".to_owned()), ('B', "green".to_owned())]);
        assert!(read("Plan (B) failed, what now?").options.is_empty());
    }

    #[test]
    fn countable_limits_are_found() {
        assert_eq!(read("Give three tips for staying healthy.").limits, [Constraint::Items(3)]);
        assert_eq!(read("Explain DNS in one sentence.").limits, [Constraint::SentencesAtMost(1)]);
        assert_eq!(read("Summarise it in at most 50 words.").limits, [Constraint::WordsAtMost(50)]);
    }
}
