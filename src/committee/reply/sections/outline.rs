//! Finds the headings and the code of a Markdown text with a parser, because a search line by line
//! is not reliable.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// A heading outside lists and quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// The level, 1 to 6.
    pub level: usize,
    /// The text without emphasis. Code keeps its backticks.
    pub text: String,
    /// The bytes of the heading, its marks included.
    pub range: Range<usize>,
}

/// The headings and the code of a text. Ranges are in bytes and in ascending order.
#[derive(Debug, Default)]
pub struct Outline {
    pub headings: Vec<Heading>,
    /// Code blocks and HTML blocks.
    blocks: Vec<Range<usize>>,
}

impl Outline {
    /// Parses a text.
    pub fn of(markdown: &str) -> Self {
        let mut outline = Self::default();
        let mut heading: Option<String> = None;
        let mut depth = 0usize;
        for (event, range) in Parser::new_ext(markdown, Options::empty()).into_offset_iter() {
            match event {
                Event::Start(Tag::List(_) | Tag::Item | Tag::BlockQuote(_)) => depth += 1,
                Event::End(TagEnd::List(_) | TagEnd::Item | TagEnd::BlockQuote(_)) => {
                    depth = depth.saturating_sub(1);
                }
                Event::Start(Tag::CodeBlock(_) | Tag::HtmlBlock) => outline.blocks.push(range),
                Event::Start(Tag::Heading { .. }) if depth == 0 => heading = Some(String::new()),
                Event::End(TagEnd::Heading(level)) => {
                    if let Some(text) = heading.take() {
                        outline.headings.push(Heading {
                            level: level as usize,
                            text: text.trim().to_owned(),
                            range,
                        });
                    }
                }
                event => {
                    let Some(text) = &mut heading else { continue };
                    match event {
                        Event::Code(code) => text.push_str(&format!("`{code}`")),
                        Event::Text(piece) => text.push_str(&piece),
                        Event::SoftBreak | Event::HardBreak => text.push(' '),
                        _ => {}
                    }
                }
            }
        }
        outline
    }

    /// Returns true if the byte at `at` belongs to a code block or an HTML block.
    pub fn in_block(&self, at: usize) -> bool {
        let next = self.blocks.partition_point(|block| block.start <= at);
        let last = next.checked_sub(1).and_then(|last| self.blocks.get(last));
        last.is_some_and(|block| block.contains(&at))
    }

    /// Returns the first heading that starts in a range of bytes.
    pub fn heading_in(&self, range: &Range<usize>) -> Option<&Heading> {
        let headings = &self.headings;
        let at = headings.partition_point(|heading| heading.range.start < range.start);
        headings
            .get(at)
            .filter(|heading| heading.range.start < range.end)
    }

    /// Returns the byte offset of the first heading with this level and exactly this text that
    /// starts at or after `from`.
    pub fn section(&self, level: usize, text: &str, from: usize) -> Option<usize> {
        let exact = |h: &&Heading| h.level == level && h.text == text && h.range.start >= from;
        self.headings.iter().find(exact).map(|h| h.range.start)
    }
}

/// Returns the text with a terminator for a block that it leaves open, such as a code fence or an
/// HTML comment. Otherwise a text appended later would become part of that block. If no terminator
/// closes the block, escapes every `<`.
pub fn closed(markdown: &str) -> String {
    if !is_open(markdown) {
        return markdown.to_owned();
    }
    let outline = Outline::of(markdown);
    let block = outline
        .blocks
        .last()
        .and_then(|it| markdown.get(it.clone()));
    let block = block.unwrap_or_default().trim_start();
    let mark = if block.starts_with('~') { '~' } else { '`' };
    let fence = block.len() - block.trim_start_matches(mark).len();
    let fence = block.get(..fence).unwrap_or_default();
    let ends = [
        fence,
        "-->",
        "</pre>",
        "</script>",
        "</style>",
        "</textarea>",
        "?>",
        "]]>",
        ">",
    ];
    let ends = ends.iter().filter(|end| !end.is_empty());
    let mut closed = ends.map(|end| format!("{markdown}\n{end}"));
    let closed = closed.find(|text| !is_open(text));
    closed.unwrap_or_else(|| markdown.replace('<', "\\<"))
}

/// Returns true if a heading appended to the text would not be parsed as a heading.
fn is_open(markdown: &str) -> bool {
    let probe = format!("{markdown}\n\n## End\n");
    Outline::of(&probe)
        .section(2, "End", markdown.len())
        .is_none()
}

/// Returns the text with the headings that `which` selects as bold lines.
pub fn demoted(markdown: &str, which: impl Fn(&Heading) -> bool) -> String {
    let outline = Outline::of(markdown);
    let mut text = String::with_capacity(markdown.len());
    let mut written = 0;
    for heading in outline.headings.iter().filter(|heading| which(heading)) {
        let before = markdown.get(written..heading.range.start).unwrap_or("");
        text.push_str(before.trim_end());
        text.push_str(&format!("\n\n**{}**\n\n", heading.text.replace('*', "")));
        written = heading.range.end;
        let rest = markdown.get(written..).unwrap_or("");
        written += rest.len() - rest.trim_start_matches('\n').len();
    }
    text.push_str(markdown.get(written..).unwrap_or(""));
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headings(markdown: &str) -> Vec<String> {
        let headings = Outline::of(markdown).headings.into_iter();
        headings
            .map(|it| format!("{} {}", it.level, it.text))
            .collect()
    }

    #[test]
    fn headings_are_what_a_parser_takes_for_headings_and_demoted_ones_are_bold_lines() {
        let text =
            "## A **b** `c` ##\n\nD\n---\n\n```\n## E\n```\n\n    ## F\n\n> ## G\n\n- ## H\n\n#I\n";
        assert_eq!(headings(text), ["2 A b `c`", "2 D"]);
        let all = |text| demoted(text, |_| true);
        assert_eq!(all("# A\nx\n\nB\n---\ny"), "**A**\n\nx\n\n**B**\n\ny");
        assert_eq!(headings(&all("x\n## A\n---")), [""; 0]);
    }

    #[test]
    fn what_is_left_open_is_closed() {
        for text in [
            "```sh\nmake",
            "~~~~\nx\n~~~",
            "a\n\n<!-- b",
            "<pre>\nx",
            "<?php",
            "<![CDATA[ x",
            "<!X a",
        ] {
            let closed = closed(text);
            assert_ne!(closed, text);
            assert_eq!(
                headings(&format!("{closed}\n\n## End\n")),
                ["2 End"],
                "{closed}"
            );
        }
        for text in ["", "plain", "```\nx\n```", "- ```\n  x"] {
            assert_eq!(closed(text), text);
        }
    }
}
