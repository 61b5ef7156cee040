//! Removes from a main answer the sections that the service renders and references to discarded
//! outputs. Reduces the other texts of a draft to plain lines.

pub mod outline;

use std::borrow::Cow;

use crate::committee::reply::closing::without_closing_request;
use crate::committee::reply::headings::{AUDIT, COMPUTED, ESTIMATE, SECTIONS, title};
use crate::committee::reply::redaction::{Redactor, texts};
use crate::domain::is_question_mark;
use crate::journal::Draft;
use crate::text::{self, excerpt, one_line};
use outline::Outline;

/// The level of a bold line that stands alone: below all headings.
const BOLD_LINE: usize = 7;

/// Returns the master's main answer to `request` without the service's sections and without the
/// references that `redactor` finds. Appends one correction for each cut to `corrections`. If
/// nothing is left, keeps the text with the names of the sections as bold lines.
pub fn main_answer(
    markdown: &str,
    request: &str,
    redactor: &Redactor,
    corrections: &mut Vec<String>,
) -> String {
    let markdown = &*text::shallow(markdown);
    let mut notes = vec![];
    let mut text = without_own_sections(markdown, request, &mut notes);
    if text.is_empty() && !markdown.trim().is_empty() {
        let what = "the main answer is nothing but sections of the service's own";
        notes = vec![format!("{what}: it was kept as plain text")];
        text = markdown.to_owned();
    }
    corrections.append(&mut notes);
    if let Some(kept) = without_closing_request(&text) {
        corrections.push("a question or an offer to the user was cut from the end".into());
        text = kept;
    }
    let text = renderable(&text);
    let Cow::Owned(redacted) = redactor.redact(&text) else {
        return text;
    };
    corrections
        .push("a reference to an output that may not be used was cut from the main answer".into());
    renderable(&redacted)
}

/// Returns a text that was cut somewhere, up to its last whole paragraph, list item or table row.
/// If it has only one, returns it up to its last whole sentence.
pub fn to_last_paragraph(text: &str) -> String {
    let text = &*text::shallow(text);
    let outline = Outline::of(text);
    let begins_block = |line: &str, after_blank: bool| {
        after_blank || text::without_marker(line) != line.trim_start() || line.starts_with('|')
    };
    let (mut at, mut end, mut after_blank) = (0, 0, false);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let is_blank = line.trim().is_empty();
        if start > 0 && !outline.in_block(start) && (is_blank || begins_block(line, after_blank)) {
            end = start;
        }
        after_blank = is_blank;
    }
    let kept = text.get(..end).unwrap_or_default().trim_end();
    if !kept.is_empty() {
        return kept.to_owned();
    }
    let mut sentences = text::sentences(text);
    if sentences.len() > 1
        && let Some(last) = sentences.pop()
        && let Some(at) = text.rfind(last)
    {
        return text.get(..at).unwrap_or_default().trim_end().to_owned();
    }
    text.trim_end().to_owned()
}

/// Returns a main answer that can be placed between the service's sections. Headings with the name
/// of such a section become bold lines. A code block or HTML block that is open is closed.
pub fn renderable(main: &str) -> String {
    outline::closed(&outline::demoted(main, |heading| {
        own_section(&heading.text).is_some()
    }))
}

/// Removes the service's sections. An estimate or an appendix ends at the next heading that is not
/// below it. Any other section also ends after its first block, because what follows may be the
/// answer. A section that the request names belongs to the answer and stays, unless the service
/// computes its figures. Appends one note for each to `notes`.
fn without_own_sections(markdown: &str, request: &str, notes: &mut Vec<String>) -> String {
    let outline = Outline::of(markdown);
    let request = request.to_lowercase();
    let mut kept = String::with_capacity(markdown.len());
    let mut cut: Option<Cut> = None;
    let mut at = 0;
    for line in markdown.split_inclusive('\n') {
        let heading = outline.heading_in(&(at..at + line.len()));
        let begins = match heading {
            Some(heading) => Some((heading.level, heading.text.as_str())),
            None if outline.in_block(at) => None,
            None => bold_line(line).map(|text| (BOLD_LINE, text)),
        };
        at += line.len();
        if let Some((level, text)) = begins
            && cut.as_ref().is_none_or(|cut| level <= cut.level)
        {
            let own = own_section(text);
            let is_named = |own: &str| request.contains(&title(own).to_lowercase());
            let asked_for = own.filter(|own| !COMPUTED.contains(own) && is_named(own));
            cut = own
                .filter(|_| asked_for.is_none())
                .map(|own| Cut::new(own, level));
            let why = match asked_for {
                Some(_) => "is the answer's own, as the request wants it: it is set in bold",
                None => "was cut from the main answer: the service renders it",
            };
            if own.is_some() {
                notes.push(format!("the section \"{text}\" {why}"));
            }
        } else if cut.as_mut().is_some_and(|cut| cut.ends_before(line)) {
            cut = None;
        }
        if cut.is_none() {
            kept.push_str(line);
        }
    }
    kept.trim().to_owned()
}

/// A section that is being removed.
struct Cut {
    /// The level of its heading.
    level: usize,
    /// True if it has several blocks.
    is_long: bool,
    /// True if text of it was seen.
    has_text: bool,
    /// True if a blank line followed that text.
    is_past_block: bool,
}

impl Cut {
    fn new(section: &str, level: usize) -> Self {
        Self {
            level,
            is_long: [ESTIMATE, AUDIT].contains(&section),
            has_text: false,
            is_past_block: false,
        }
    }

    /// True if the line does not belong to the section's first block. A list with blank lines
    /// between its items is one block.
    fn ends_before(&mut self, line: &str) -> bool {
        let is_item =
            line.starts_with([' ', '\t']) || text::without_marker(line) != line.trim_start();
        if line.trim().is_empty() {
            self.is_past_block = self.has_text;
        } else {
            self.has_text = true;
        }
        let is_next = self.is_past_block && !line.trim().is_empty() && !is_item;
        !self.is_long && is_next
    }
}

/// Returns the text of a line that is bold as a whole.
fn bold_line(line: &str) -> Option<&str> {
    ["**", "__"].into_iter().find_map(|mark| {
        let line = line.trim();
        line.strip_prefix(mark)?.strip_suffix(mark)
    })
}

/// Returns the heading of the service's section with this name. Only letters and digits count.
fn own_section(name: &str) -> Option<&'static str> {
    let plain = |text: &str| -> String {
        let letters = text.chars().filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let name = plain(name);
    SECTIONS.into_iter().find(|heading| plain(heading) == name)
}

/// Returns a text as one line that opens no Markdown block. Removes the marks of headings, lists,
/// quotes and code fences at its start.
pub fn plain_line(text: &str) -> String {
    let line = one_line(text);
    let mut rest = line.as_str();
    while let Some(bare) = without_mark(rest) {
        rest = bare.trim_start();
    }
    if rest.chars().all(|c| "-=*_+#>`~ ".contains(c)) {
        // One or two signs can be an answer ("+"). A longer row of signs is a rule or an underline.
        return match line.len() {
            1 | 2 => format!("\\{line}"),
            _ => String::new(),
        };
    }
    if rest.starts_with(['<', '>']) {
        return format!("\\{rest}");
    }
    rest.to_owned()
}

/// Returns the texts as plain lines, without empty ones.
pub fn plain_lines(texts: &[String]) -> Vec<String> {
    let lines = texts.iter().map(|text| plain_line(text));
    lines.filter(|line| !line.is_empty()).collect()
}

/// Returns the line without the mark at its start, or `None` if it has no mark.
fn without_mark(line: &str) -> Option<&str> {
    let fence = ["```", "~~~"]
        .into_iter()
        .find_map(|fence| line.strip_prefix(fence));
    fence.or_else(|| {
        let marks = line.trim_start_matches('#');
        let rest = if marks.len() < line.len() {
            marks
        } else {
            line.strip_prefix(['>', '-', '*', '+', '•'])?
        };
        (rest.is_empty() || rest.starts_with(' ')).then_some(rest)
    })
}

/// Reduces the texts of a draft, except its main answer, to plain lines and removes empty ones.
/// Fills an empty TL;DR from the main answer.
pub fn plain_draft(draft: &mut Draft) {
    let main = std::mem::take(&mut draft.main);
    texts(draft).for_each(|text| *text = plain_line(text));
    draft.main = main;
    let estimate = draft.estimate.iter_mut();
    let of_estimate = estimate.flat_map(|it| [&mut it.assumptions, &mut it.risks]);
    let lists = [&mut draft.tldr, &mut draft.acceptance_tests].into_iter();
    lists
        .chain(of_estimate)
        .for_each(|list| list.retain(|line| !line.is_empty()));
    draft.assumptions.retain(|it| !it.text.is_empty());
    if draft.tldr.is_empty() {
        let first = Some(first_sentence(&draft.main)).filter(|it| !it.is_empty());
        let first = first.unwrap_or_else(|| "See below.".to_owned());
        draft.tldr.push(first);
    }
}

/// Returns the first sentence that states something, as one plain line of at most 240 characters: no
/// question, exclamation ("Sure!"), announcement ("Steps:") or heading, unless there is nothing else.
pub fn first_sentence(markdown: &str) -> String {
    let fenced = |line: &&str| {
        let line = line.trim_start();
        line.starts_with("```") || line.starts_with("~~~")
    };
    let lines = markdown.lines().filter(|line| !fenced(line));
    let is_heading = |line: &str| {
        let line = line.trim();
        line.starts_with('#') || line.len() > 4 && line.starts_with("**") && line.ends_with("**")
    };
    let (titles, texts): (Vec<&str>, Vec<&str>) = lines.partition(|line| is_heading(line));
    let sentences = texts.into_iter().chain(titles);
    let sentences: Vec<&str> = sentences.flat_map(text::each_sentence).take(20).collect();
    let asks_or_calls = |c: char| is_question_mark(c) || matches!(c, '!' | '！' | ':' | '：');
    let states = |sentence: &&&str| !sentence.ends_with(asks_or_calls);
    let sentence = sentences.iter().find(states).or(sentences.first());
    let sentence = sentence.copied().unwrap_or_default();
    excerpt(&plain_line(&sentence.replace("**", "")), 240)
}

#[cfg(test)]
mod tests;
