//! Finding a text in another one word for word: whatever its case, its white space and its emphasis.

use std::ops::Range;

/// Marks that only set a text off.
fn is_emphasis(c: char) -> bool {
    matches!(c, '*' | '`' | '_')
}

/// A text in small letters, with single spaces and without emphasis.
pub struct NormalizedText {
    pub text: String,
    /// For each byte of `text`, which bytes of the original it comes from.
    origin: Vec<Range<usize>>,
}

impl NormalizedText {
    pub fn of(original: &str) -> Self {
        let mut folded = Self {
            text: String::with_capacity(original.len()),
            origin: vec![],
        };
        let mut gap: Option<usize> = None;
        for (at, c) in original.char_indices() {
            if c.is_whitespace() {
                gap.get_or_insert(at);
            } else if !is_emphasis(c) {
                if let Some(since) = gap.take()
                    && !folded.text.is_empty()
                {
                    folded.push(' ', since..at);
                }
                for small in c.to_lowercase() {
                    folded.push(small, at..at + c.len_utf8());
                }
            }
        }
        folded
    }

    fn push(&mut self, c: char, origin: Range<usize>) {
        self.text.push(c);
        self.origin
            .extend(std::iter::repeat_n(origin, c.len_utf8()));
    }

    /// Whether another folded text stands in this one.
    pub fn has(&self, folded: &str) -> bool {
        folded.len() <= self.text.len() && self.text.contains(folded)
    }

    /// Where in the original another folded text stands.
    pub fn find(&self, folded: &str) -> Vec<Range<usize>> {
        // A search begins with a look at all of what is searched for, however short the text is.
        if folded.len() > self.text.len() {
            return vec![];
        }
        let found = self
            .text
            .match_indices(folded)
            .filter(|(_, text)| !text.is_empty());
        let origin = |at: usize| self.origin.get(at).cloned();
        found
            .filter_map(|(at, text)| Some(origin(at)?.start..origin(at + text.len() - 1)?.end))
            .collect()
    }
}

/// The range of a text that is to be cut, with what would be left of it alone: emphasis around it, a full stop and the space
/// beside it, the mark of a list item that says nothing else, the fences of a code block that holds nothing else.
pub fn expand_range(text: &str, range: Range<usize>) -> Range<usize> {
    let lead = text
        .get(..range.start)
        .unwrap_or("")
        .trim_end_matches(is_emphasis);
    let tail = text
        .get(range.end..)
        .unwrap_or("")
        .trim_start_matches(is_emphasis);
    let tail = tail.strip_prefix('.').unwrap_or(tail);
    let start_of_line = lead.rfind('\n').map_or(0, |at| at + 1);
    let (own_line, rest) = (
        lead.get(start_of_line..).unwrap_or(""),
        tail.split('\n').next().unwrap_or(""),
    );
    let at_end = |tail: &str| text.len() - tail.len();
    if !rest.trim().is_empty() || !is_list_mark(own_line) {
        let spaced = lead.trim_end_matches([' ', '\t']);
        // One space is kept between what stands before and what stands after.
        let tail = if spaced.is_empty() || spaced.ends_with('\n') {
            tail.trim_start_matches([' ', '\t'])
        } else {
            tail
        };
        return spaced.len()..at_end(tail);
    }
    let (before, after) = (
        lead.get(..start_of_line).unwrap_or(""),
        tail.get(rest.len()..).unwrap_or(""),
    );
    let above = before
        .trim_end()
        .rsplit('\n')
        .next()
        .unwrap_or("")
        .trim_start();
    let below = after.trim_start().split('\n').next().unwrap_or("").trim();
    let fenced = ["```", "~~~"]
        .iter()
        .any(|fence| above.starts_with(fence) && below.starts_with(fence))
        && below.chars().all(|c| matches!(c, '`' | '~'));
    if fenced {
        let start = before.trim_end().len() - above.len();
        let tail = after.trim_start();
        let tail = tail
            .get(tail.find(below).unwrap_or(0) + below.len()..)
            .unwrap_or("");
        return before.get(..start).unwrap_or("").trim_end().len()..at_end(tail);
    }
    // The whole line goes, and a blank one with it if there is one on both sides.
    let before_line = before.strip_suffix('\n').unwrap_or(before);
    let blank = before_line.trim_end().len() < before_line.trim_end_matches([' ', '\t']).len()
        || before_line.trim().is_empty();
    let tail = if blank {
        after.trim_start_matches(['\n', '\r'])
    } else {
        after
    };
    let start = if blank {
        before.len()
    } else {
        before_line.len()
    };
    let start = if tail.is_empty() {
        before.trim_end().len()
    } else {
        start
    };
    start..at_end(tail)
}

/// Nothing, or what stands before the text of a list item or a quote.
fn is_list_mark(line: &str) -> bool {
    let line = line.trim();
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = digits.len() < line.len() && matches!(digits, "." | ")");
    numbered
        || line
            .chars()
            .all(|c| matches!(c, '-' | '*' | '+' | '>' | '•' | ' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_where_it_stands() {
        let text = "Über **all   THE**\n_world_.";
        let found = NormalizedText::of(text).find(&NormalizedText::of("all the world").text);
        assert_eq!(
            found
                .iter()
                .map(|range| text.get(range.clone()))
                .collect::<Vec<_>>(),
            [Some("all   THE**\n_world")]
        );
        assert!(NormalizedText::of(text).find("").is_empty());
        assert_eq!(NormalizedText::of("  \n").text, "");
        // One letter that becomes two.
        assert_eq!(NormalizedText::of("xİy").find("y").len(), 1);
    }
}
