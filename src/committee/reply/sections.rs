//! Removes from a main answer the sections that the service renders and references to discarded
//! outputs. Reduces the other texts of a draft to plain lines.

pub mod outline;

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use crate::committee::reply::redaction::Redactor;
use crate::journal::Draft;
use outline::{Heading, Outline};

/// A section that the service renders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Own {
    Tldr,
    Assumptions,
    Confidence,
    Estimate,
    Acceptance,
    Audit,
}

/// The sections with figures that the service computes.
const COMPUTED: [Own; 3] = [Own::Confidence, Own::Estimate, Own::Audit];

/// The names of the sections. A heading matches only if it contains nothing else but a number and
/// signs.
const NAMES: &str = r"(tl;? ?dr|assumptions(?: ledger)?|confidence(?: score)?|execution time estimate|acceptance tests|audit appendix)";

/// Matches the text of a heading: a name, optionally with a number, signs and a colon.
static HEADING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(
        r"(?i)^[^\p{{L}}\p{{N}}]*(?:\d+[.)]\s*)?{NAMES}[^\p{{L}}\p{{N}}?]*$"
    ))
    .ok()
});

/// Matches a line that names a section, in bold or not, and captures the text after the colon.
static LABEL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(
        r"(?i)^ ?(\*\*|__)?{NAMES}(\*\*|__)?\s*(?:(:)\s*(\*\*|__)?\s*(.*))?$"
    ))
    .ok()
});

/// Matches a text that starts with a figure or a degree of confidence, such as `high`.
static DEGREE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^[~≈*]*(?:\d|(?:very |quite )?(?:high|medium|moderate|low)\b)").ok()
});

/// Matches a line that states totals of an estimate, in the service's notation or in prose.
static TOTALS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let figure = r"\b[OMPE]\s*[=:]?\s*\d";
    Regex::new(&format!(
        r"(?i)\b[OMPE]_?total\s*[=:]|\btotal\b.*{figure}.*{figure}"
    ))
    .ok()
});

/// Maximum number of non-blank lines of a TL;DR or Confidence section. A longer section is assumed
/// to contain part of the answer.
const SHORT_SECTION: usize = 6;

/// Matches a word of a request that refers to the parts of a text or to a kind of document.
static PARTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let parts = r"sections?|headings?|headed|headers?|chapters?|paragraphs?|parts|titled|template|outline|structure[ds]?|format";
    let texts = r"adrs?|rfcs?|documents?|reports?|readme|memos?|articles?|whitepapers?|specs?|specification|proposals?|paper";
    Regex::new(&format!(
        r"(?i)\b(?:{parts}|{texts}|abschnitte?n?|kapitel)\b"
    ))
    .ok()
});

static NAMED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!(r"(?i)\b{NAMES}")).ok());

/// Returns the sections that a request names as parts of the text that it wants. They belong to the
/// answer then. Computed sections are never returned.
fn asked_for(request: &str) -> Vec<Own> {
    let names = NAMED
        .as_ref()
        .into_iter()
        .flat_map(|re| re.captures_iter(request));
    let mut asked: Vec<Own> = names
        .filter_map(|c| own_named(c.get(1)?.as_str()))
        .collect();
    asked.dedup();
    let of_parts = PARTS.as_ref().is_some_and(|re| re.is_match(request));
    // Only the service states computed figures.
    asked.retain(|own| !COMPUTED.contains(own));
    if of_parts { asked } else { vec![] }
}

/// Returns the master's main answer to `request` without the service's sections, lines with totals,
/// and references that `redactor` finds. Appends one correction for each cut to `corrections`. If
/// nothing is left, keeps the text with all headings as bold lines.
pub fn main_answer(
    markdown: &str,
    request: &str,
    redactor: &Redactor,
    corrections: &mut Vec<String>,
) -> String {
    let mut told = vec![];
    let mut text = without_totals(
        &without_own_sections(markdown, &asked_for(request), &mut told),
        &mut told,
    );
    if text.trim().is_empty() && !markdown.trim().is_empty() {
        told =
            vec!["the main answer is nothing but sections of the service's own: it was kept as plain text".to_owned()];
        text = without_totals(&outline::demoted(markdown, |_| true), &mut told);
    }
    corrections.append(&mut told);
    let text = renderable(&text);
    let Cow::Owned(redacted) = redactor.redact(&text) else {
        return text;
    };
    corrections
        .push("a reference to an output that may not be used was cut from the main answer".into());
    renderable(&redacted)
}

/// Returns a main answer that can be placed between the service's sections. Headings with the name
/// of such a section become bold lines. Code blocks and HTML comments that are open are closed or
/// escaped.
pub fn renderable(main: &str) -> String {
    let closed = outline::closed(&outline::demoted(main, |heading| {
        own_heading(&heading.text).is_some()
    }));
    without_open_comment(&closed)
}

/// Escapes the last HTML comment if it is open, because it would hide all text after it.
fn without_open_comment(text: &str) -> String {
    let Some(at) = text.rfind("<!--") else {
        return text.to_owned();
    };
    let (before, after) = text.split_at(at);
    if after.contains("-->") || Outline::of(text).in_code(at) {
        return text.to_owned();
    }
    format!("{before}&lt;!--{}", after.trim_start_matches("<!--"))
}

struct Line<'a> {
    text: &'a str,
    /// True in a code block or an HTML block.
    code: bool,
    /// The heading that starts in this line.
    heading: Option<&'a Heading>,
    /// Byte offset of the line.
    at: usize,
}

fn lines<'a>(markdown: &'a str, outline: &'a Outline) -> Vec<Line<'a>> {
    let mut at = 0;
    let mut lines = vec![];
    for whole in markdown.split_inclusive('\n') {
        let text = whole.trim_end_matches(['\n', '\r']);
        let code = outline.in_block(at + (text.len() - text.trim_start().len()));
        let heading = outline.heading_in(&(at..at + whole.len()));
        lines.push(Line {
            text,
            code,
            heading,
            at,
        });
        at += whole.len();
    }
    lines
}

/// Removes the service's sections, except those in `asked`. Appends one note for each to `told`.
fn without_own_sections(markdown: &str, asked: &[Own], told: &mut Vec<String>) -> String {
    let outline = Outline::of(markdown);
    let lines = lines(markdown, &outline);
    let mut kept: Vec<&str> = vec![];
    let mut i = 0;
    while let Some(line) = lines.get(i) {
        let Some(Opening { own, name, end }) = own_section(&lines, i) else {
            kept.push(line.text);
            i += 1;
            continue;
        };
        if asked.contains(&own) {
            told.push(format!(
                "the section \"{name}\" is the answer's own, as the request wants it: it is set in bold"
            ));
            kept.push(line.text);
            i += 1;
            continue;
        }
        told.push(format!(
            "the section \"{name}\" was cut from the main answer: the service renders it"
        ));
        if kept.last().is_some_and(|last| !last.trim().is_empty()) {
            kept.push("");
        }
        i = end_of(&lines, i, own, end).max(i + 1);
    }
    kept.join("\n").trim().to_owned()
}

/// Removes lines with totals of an estimate outside code. Appends one note for each to `told`.
fn without_totals(markdown: &str, told: &mut Vec<String>) -> String {
    let outline = Outline::of(markdown);
    let mut kept: Vec<&str> = vec![];
    for line in lines(markdown, &outline) {
        let found = TOTALS.as_ref().and_then(|re| re.find(line.text));
        if found.is_some_and(|found| !outline.in_code(line.at + found.start())) {
            told.push(
                "a line with totals was cut from the main answer: the service computes them".into(),
            );
        } else {
            kept.push(line.text);
        }
    }
    kept.join("\n").trim().to_owned()
}

/// The start of one of the service's sections.
#[derive(Clone, Copy)]
struct Opening<'a> {
    own: Own,
    name: &'a str,
    end: End<'a>,
}

/// How the end of a section is found.
#[derive(Clone, Copy)]
enum End<'a> {
    /// The section is only this line.
    Line,
    Section(&'a Heading),
    Block,
    Bullets,
}

/// Returns the start of the service's section that begins at line `i`, if any.
fn own_section<'a>(lines: &[Line<'a>], i: usize) -> Option<Opening<'a>> {
    let line = lines.get(i)?;
    if let Some(heading) = line.heading {
        if let Some(own) = own_heading(&heading.text) {
            return Some(Opening {
                own,
                name: heading.text.as_str(),
                end: End::Section(heading),
            });
        }
        // "## Confidence: 0.8" contains both the name and the content.
        let (own, _, said) = own_label(&heading.text)?;
        let stated = own == Own::Tldr || (own == Own::Confidence && is_degree(said));
        return stated.then_some(Opening {
            own,
            name: heading.text.as_str(),
            end: End::Line,
        });
    }
    if line.code {
        return None;
    }
    let (own, bold, said) = own_label(line.text)?;
    let name = line.text.trim();
    if said.is_empty() {
        // In the middle of a paragraph, the name is part of a sentence.
        let begins = i.checked_sub(1).and_then(|before| lines.get(before));
        let begins =
            begins.is_none_or(|before| before.text.trim().is_empty() || before.heading.is_some());
        return (begins || bold || name.contains(':')).then_some(Opening {
            own,
            name,
            end: End::Block,
        });
    }
    let stated = bold || own == Own::Tldr || (own == Own::Confidence && is_degree(said));
    stated.then_some(Opening {
        own,
        name,
        end: End::Bullets,
    })
}

/// Returns the index of the first line after the section that begins at line `i`.
fn end_of(lines: &[Line<'_>], i: usize, own: Own, end: End<'_>) -> usize {
    match end {
        End::Line => i + 1,
        End::Section(heading) => end_of_section(lines, i, own, heading),
        End::Block => end_of_block(lines, i + 1, own),
        End::Bullets => end_of_bullets(lines, i + 1),
    }
}

/// Returns the service's section with this heading text, if any.
fn own_heading(text: &str) -> Option<Own> {
    own_named(HEADING.as_ref()?.captures(text)?.get(1)?.as_str())
}

/// Returns the section that a line names, true if the name is in bold, and the text after the
/// colon.
fn own_label(line: &str) -> Option<(Own, bool, &str)> {
    let captures = LABEL.as_ref()?.captures(line)?;
    let own = own_named(captures.get(2)?.as_str())?;
    let said = captures.get(6).map_or("", |m| m.as_str()).trim();
    let said = if said.chars().all(|c| matches!(c, '*' | '_')) {
        ""
    } else {
        said
    };
    Some((own, captures.get(1).is_some(), said))
}

fn own_named(name: &str) -> Option<Own> {
    let name = name.to_lowercase();
    let starts = [
        ("tl", Own::Tldr),
        ("assumptions", Own::Assumptions),
        ("confidence", Own::Confidence),
        ("execution", Own::Estimate),
        ("acceptance", Own::Acceptance),
        ("audit", Own::Audit),
    ];
    starts
        .into_iter()
        .find(|(start, _)| name.starts_with(start))
        .map(|(_, own)| own)
}

fn is_degree(said: &str) -> bool {
    DEGREE.as_ref().is_some_and(|re| re.is_match(said))
}

/// Returns the index of the first line after the section of a heading.
///
/// A TL;DR or Confidence section ends at any next heading. If it is longer than [`SHORT_SECTION`]
/// or no heading follows, it ends with its first block. Another section ends at the next heading
/// that is not below it or that is the service's. Without such a heading, Assumptions end with
/// their first block, the others with the text.
fn end_of_section(lines: &[Line<'_>], i: usize, own: Own, heading: &Heading) -> usize {
    let first = lines
        .partition_point(|line| line.at < heading.range.end)
        .max(i + 1);
    let brief = matches!(own, Own::Tldr | Own::Confidence);
    let next = lines.iter().enumerate().skip(first).find(|(_, line)| {
        line.heading.is_some_and(|next| {
            brief || next.level <= heading.level || own_heading(&next.text).is_some()
        })
    });
    let written = |end: usize| {
        let section = lines.get(first..end).unwrap_or_default();
        section
            .iter()
            .filter(|line| !line.text.trim().is_empty())
            .take(SHORT_SECTION + 1)
            .count()
    };
    match next {
        Some((next, _)) if !brief || written(next) <= SHORT_SECTION => next,
        None if matches!(own, Own::Estimate | Own::Acceptance | Own::Audit) => lines.len(),
        _ => end_of_block(lines, first, own),
    }
}

/// Returns the index of the first line after a block. A block ends before a heading, or at a blank
/// line. Lists, quotes and continuations of list items after a blank line still belong to it.
fn end_of_block(lines: &[Line<'_>], from: usize, own: Own) -> usize {
    let mut end = from;
    let mut blank = false;
    let mut last: Option<Kind> = None;
    for (n, line) in lines.iter().enumerate().skip(from) {
        if line.heading.is_some() {
            break;
        }
        if line.text.trim().is_empty() && !line.code {
            blank = true;
            continue;
        }
        let kind = Kind::of(line);
        // A numbered list after the sentences of a TL;DR belongs to the answer.
        let belongs = match kind {
            Kind::Number => own != Own::Tldr || last == Some(Kind::Number),
            Kind::Bullet | Kind::Quote => true,
            Kind::Indented => last != Some(Kind::Text),
            Kind::Text => false,
        };
        if blank && last.is_some() && !belongs {
            break;
        }
        blank = false;
        end = n + 1;
        if kind != Kind::Indented || last.is_none() {
            last = Some(kind);
        }
    }
    end
}

/// Returns the index of the first line after the bullets that start at line `from`.
fn end_of_bullets(lines: &[Line<'_>], from: usize) -> usize {
    let mut end = from;
    for line in lines.iter().skip(from) {
        let kind = Kind::of(line);
        let belongs = kind == Kind::Bullet || (kind == Kind::Indented && end > from);
        if !belongs || line.heading.is_some() {
            break;
        }
        end += 1;
    }
    end
}

/// How a line begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bullet,
    Number,
    Quote,
    Indented,
    Text,
}

impl Kind {
    fn of(line: &Line<'_>) -> Self {
        let text = line.text.trim_start();
        let digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
        if ["- ", "* ", "+ ", "• "]
            .iter()
            .any(|mark| text.starts_with(mark))
        {
            Kind::Bullet
        } else if digits.len() < text.len()
            && (digits.starts_with(". ") || digits.starts_with(") "))
        {
            Kind::Number
        } else if text.starts_with('>') {
            Kind::Quote
        } else if !text.is_empty() && line.text.len() > text.len() + 1 {
            Kind::Indented
        } else {
            Kind::Text
        }
    }
}

/// Returns a text as one line that opens no Markdown block. Removes the marks of headings, lists,
/// quotes and code fences at its start.
pub fn plain_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut rest = line.as_str();
    while let Some(bare) = without_mark(rest) {
        rest = bare;
    }
    if line.starts_with("```") || line.starts_with("~~~") {
        rest = rest.trim_end_matches("```").trim_end_matches("~~~");
    }
    let is_mark = |c: char| "-=*_+#>`~ ".contains(c);
    if rest.chars().all(is_mark) {
        // One or two signs can be an answer ("+"). A longer row of signs is a rule or an underline.
        return if line.is_empty() || line.len() > 2 {
            String::new()
        } else {
            format!("\\{line}")
        };
    }
    if rest.starts_with(['<', '>']) {
        format!("\\{}", rest.trim_end())
    } else {
        rest.trim_end().to_owned()
    }
}

/// Returns the line without the mark at its start, or `None` if it has no mark.
fn without_mark(line: &str) -> Option<&str> {
    let hashes = line.trim_start_matches('#');
    let level = line.len() - hashes.len();
    if level > 1 || (level == 1 && (hashes.is_empty() || hashes.starts_with(' '))) {
        return Some(hashes.trim_start());
    }
    if let Some(mark) = ['`', '~']
        .into_iter()
        .find(|mark| line.starts_with(&mark.to_string().repeat(3)))
    {
        return Some(line.trim_start_matches(mark).trim_start());
    }
    if let Some(quoted) = line.strip_prefix('>') {
        // ">= 5" and ">5" are comparisons.
        let compares = quoted.starts_with(|c: char| c == '=' || c.is_ascii_digit());
        return (!compares).then(|| quoted.trim_start());
    }
    let item = line.strip_prefix(['-', '*', '+', '•'])?;
    (item.is_empty() || item.starts_with(' ')).then(|| item.trim_start())
}

/// Reduces the texts of a draft, except its main answer, to plain lines and removes empty ones.
/// Fills an empty TL;DR from the main answer and numbers the assumptions from `A1`.
pub fn plain_draft(draft: &mut Draft) {
    let plain = |lines: &mut Vec<String>| {
        for line in lines.iter_mut() {
            *line = plain_line(line);
        }
        lines.retain(|line| !line.is_empty());
    };
    plain(&mut draft.tldr);
    if draft.tldr.is_empty() {
        let first = first_sentence(&draft.main);
        draft.tldr.push(if first.is_empty() {
            "See below.".to_owned()
        } else {
            first
        });
    }
    plain(&mut draft.acceptance_tests);
    for assumption in &mut draft.assumptions {
        assumption.text = plain_line(&assumption.text);
    }
    draft
        .assumptions
        .retain(|assumption| !assumption.text.is_empty());
    for (i, assumption) in draft.assumptions.iter_mut().enumerate() {
        assumption.handle = format!("A{}", i + 1);
    }
    if let Some(estimate) = &mut draft.estimate {
        for step in &mut estimate.steps {
            step.step = plain_line(&step.step);
        }
        plain(&mut estimate.assumptions);
        plain(&mut estimate.risks);
    }
    for note in &mut draft.disagreements {
        note.topic = plain_line(&note.topic);
        note.summary = plain_line(&note.summary);
    }
    for justification in &mut draft.quarantine_justifications {
        justification.why = plain_line(&justification.why);
    }
}

/// Returns the first sentence of a text as one plain line of at most 240 characters.
pub fn first_sentence(markdown: &str) -> String {
    let fenced = |line: &&str| {
        !["```", "~~~"]
            .iter()
            .any(|fence| line.trim_start().starts_with(fence))
    };
    let line = markdown
        .lines()
        .filter(fenced)
        .map(plain_line)
        .find(|line| !line.is_empty());
    let line = line.unwrap_or_default().replace("**", "");
    let mut end = line.len();
    let mut chars = line.char_indices().peekable();
    while let Some((i, c)) = chars.next() {
        let ends = matches!(c, '.' | '!' | '?' | '。')
            && chars.peek().is_none_or(|(_, next)| next.is_whitespace());
        if ends && i > 2 {
            end = i + c.len_utf8();
            break;
        }
    }
    excerpt(line.get(..end).unwrap_or(&line), 240)
}

/// Returns a text as one line of at most `most` characters. A longer text is cut and ends with `…`.
pub fn excerpt(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    let cut: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end())
}

#[cfg(test)]
mod tests;
