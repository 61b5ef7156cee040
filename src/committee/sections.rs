//! The main answer's own text: without the sections that the service renders itself, and without discarded references.

use std::sync::LazyLock;

use regex::Regex;

use crate::domain::Agent;

/// Headings of sections that the service renders.
static OWN_SECTION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^\s*(?:(#{1,6})\s*|\*\*)?\s*(tl;?\s?dr|assumptions(?: ledger)?|confidence(?: score)?|execution time estimate|acceptance tests|audit(?: appendix)?)\s*(?:\*\*)?\s*:?\s*(?:\*\*)?\s*(.*)$",
    )
    .ok()
});

/// A line that states totals of an estimate, in the service's notation or in prose.
static TOTALS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let figure = r"\b[OMPE]\s*[=:]?\s*\d";
    Regex::new(&format!(r"(?i)\b[OMPE]_?total\s*[=:]|\btotal\b.*{figure}.*{figure}")).ok()
});

/// What a master wrote as its main answer, less what is not its business; every cut is told.
pub fn main_answer(markdown: &str, discarded: &[Agent], corrections: &mut Vec<String>) -> String {
    let mut kept: Vec<&str> = vec![];
    // The level of the own section being skipped.
    let mut skipping: Option<usize> = None;
    let mut fence: Option<&str> = None;
    for line in markdown.lines() {
        let mark = line.trim_start();
        let toggles = ["```", "~~~"].into_iter().find(|f| mark.starts_with(f));
        if let Some(mark) = toggles {
            fence = match fence {
                Some(open) if open == mark => None,
                Some(open) => Some(open),
                None => Some(mark),
            };
        }
        if fence.is_none() && toggles.is_none() {
            if let Some((level, name)) = own_heading(line) {
                skipping = Some(level);
                corrections
                    .push(format!("the section \"{name}\" was cut from the main answer: the service renders it"));
                continue;
            }
            if let (Some(level), Some(heading)) = (skipping, heading_level(line))
                && heading <= level
            {
                skipping = None;
            }
            if skipping.is_none() && TOTALS.as_ref().is_some_and(|re| re.is_match(line)) {
                corrections.push("a line with totals was cut from the main answer: the service computes them".into());
                continue;
            }
        }
        if skipping.is_none() {
            kept.push(line);
        }
    }
    let mut text = kept.join("\n").trim().to_owned();
    for agent in discarded {
        if let Ok(reference) = Regex::new(&format!(r"(?i)\s*[\[(]?\b{agent}:[a-z0-9-]+[\])]?")) {
            let cleaned = reference.replace_all(&text, "").into_owned();
            if cleaned != text {
                corrections.push("a reference to a discarded unit was cut from the main answer".into());
                text = cleaned;
            }
        }
    }
    text
}

/// A heading (or a bold line, or a bare "TL;DR:" line) of a section of the service's own, with its level.
fn own_heading(line: &str) -> Option<(usize, String)> {
    let captures = OWN_SECTION.as_ref()?.captures(line)?;
    let hashes = captures.get(1).map_or(0, |m| m.as_str().len());
    let bold = line.trim_start().starts_with("**");
    let rest = captures.get(3).map_or("", |m| m.as_str()).trim();
    let bare = hashes == 0 && !bold;
    // "Assumptions are the mother of ..." is a sentence, not a heading.
    let name = captures.get(2)?.as_str();
    let colon = line.contains(':') || rest.is_empty();
    let shouted = name.to_lowercase().starts_with("tl");
    let heads = rest.is_empty() || (colon && (shouted || !bare));
    if !heads {
        return None;
    }
    Some((if hashes == 0 { 6 } else { hashes }, name.to_owned()))
}

/// Level of a Markdown heading; a bold line by itself counts as the lowest.
fn heading_level(line: &str) -> Option<usize> {
    let line = line.trim();
    let hashes = line.chars().take_while(|c| *c == '#').count();
    if (1..=6).contains(&hashes) && line.chars().nth(hashes) == Some(' ') {
        return Some(hashes);
    }
    (line.len() > 4 && line.starts_with("**") && line.trim_end_matches(':').ends_with("**")).then_some(6)
}

/// The first sentence of a text as one line without Markdown signs, at most 240 characters.
pub fn first_sentence(markdown: &str) -> String {
    let line = markdown.lines().map(|l| l.trim_start_matches(['#', '-', '*', '>', ' '])).find(|l| !l.trim().is_empty());
    let line = line.unwrap_or("").replace("**", "");
    let mut end = line.len();
    let mut chars = line.char_indices().peekable();
    while let Some((i, c)) = chars.next() {
        let ends = matches!(c, '.' | '!' | '?' | '。') && chars.peek().is_none_or(|(_, next)| next.is_whitespace());
        if ends && i > 2 {
            end = i + c.len_utf8();
            break;
        }
    }
    excerpt(line.get(..end).unwrap_or(&line), 240)
}

/// At most `most` characters of a text on one line.
pub fn excerpt(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    let cut: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_services_own_sections_are_cut_with_all_they_hold() {
        let mut told = vec![];
        let text =
            "Use Docker.\n\n## Execution time estimate\n- Total: E_total=99\n\n### Confidence\n0.99\n\n## Next\nMore.";
        assert_eq!(main_answer(text, &[], &mut told), "Use Docker.\n\n## Next\nMore.");
        assert_eq!(told.len(), 2);
    }

    #[test]
    fn sentences_and_code_that_look_like_headings_stay() {
        let text = "Assumptions matter here.\n\n```\n# Confidence\n```\nConfidence in the supplier is low.";
        assert_eq!(main_answer(text, &[], &mut vec![]), text);
    }

    #[test]
    fn references_to_discarded_units_are_cut() {
        let mut told = vec![];
        assert_eq!(
            main_answer("It is 4 [critic:u1], see solver:u2.", &[Agent::Critic], &mut told),
            "It is 4, see solver:u2."
        );
        assert_eq!(told.len(), 1);
    }

    #[test]
    fn the_first_sentence_is_one_line() {
        assert_eq!(first_sentence("## It is 3.5 **km**. Next."), "It is 3.5 km.");
        assert_eq!(first_sentence(""), "");
    }
}
