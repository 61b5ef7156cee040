//! Splits the Markdown of a text into code, prose and lists.

use std::borrow::Cow;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

use super::{MAX_BYTES, clip};

/// The parts of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Markdown {
    /// The source without its fenced code blocks.
    pub prose: String,
    pub blocks: Vec<Block>,
    /// The first line of each list item.
    pub items: Vec<String>,
}

/// A fenced code block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The language named after the fence, lower case, or empty.
    pub language: String,
    pub code: String,
}

/// The most list and quotation markers at the start of a line that are kept. No author nests as
/// deep, and a parser's time grows with the depth times the lines.
const MAX_DEPTH: usize = 32;

/// Returns a text whose lines begin with at most 32 markers of lists and quotations. The
/// further ones of a line are left out.
pub fn shallow(text: &str) -> Cow<'_, str> {
    let is_deep = |line: &str| excess(line).is_some();
    if !text.lines().any(is_deep) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match excess(line) {
            Some((head, tail)) => {
                out.push_str(head);
                out.push_str(tail);
            }
            None => out.push_str(line),
        }
    }
    Cow::Owned(out)
}

/// Returns the first markers of a line and what follows its last one, if it has too many.
fn excess(line: &str) -> Option<(&str, &str)> {
    let (mut rest, mut head) = (line, None);
    for depth in 0.. {
        let bare = rest.trim_start_matches([' ', '\t']);
        let digits = bare.trim_start_matches(|c: char| c.is_ascii_digit());
        let after = if digits.len() < bare.len() {
            digits.strip_prefix(['.', ')'])
        } else {
            bare.strip_prefix(['>', '*', '-', '+'])
        };
        let Some(after) = after.filter(|after| {
            bare.starts_with('>') || after.is_empty() || after.starts_with([' ', '\t', '\n'])
        }) else {
            break;
        };
        if depth == MAX_DEPTH {
            head = line.get(..line.len() - rest.len());
        }
        rest = after;
    }
    Some((head?, rest))
}

pub fn read(text: &str) -> Markdown {
    let text = &*shallow(clip(text, MAX_BYTES));
    let mut out = Markdown::default();
    let (mut open, mut kept) = (None::<Block>, 0);
    for (event, range) in Parser::new(text).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                let language = info
                    .split([' ', ',', '{'])
                    .next()
                    .unwrap_or_default()
                    .to_lowercase();
                out.prose
                    .push_str(text.get(kept..range.start).unwrap_or_default());
                out.prose.push('\n');
                kept = range.end.max(kept);
                open = Some(Block {
                    language,
                    code: String::new(),
                });
            }
            Event::Text(piece) => {
                if let Some(block) = &mut open {
                    block.code.push_str(&piece);
                }
            }
            Event::End(TagEnd::CodeBlock) => out.blocks.extend(open.take()),
            Event::Start(Tag::Item) => {
                let first = text
                    .get(range)
                    .unwrap_or_default()
                    .lines()
                    .next()
                    .unwrap_or_default();
                out.items
                    .push(super::without_marker(first.trim()).to_owned());
            }
            _ => {}
        }
    }
    out.prose.push_str(text.get(kept..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absurdly_nested_lines_lose_markers() {
        let ordinary = "- a\n  - b\n\n> > c\n\n1. d\n\n---\n* * *\n2024. A year\n-5 is less\n";
        assert!(matches!(shallow(ordinary), Cow::Borrowed(same) if same == ordinary));
        for marker in ["* ", "> ", ">", "1. ", "- > "] {
            let deep = format!("first\n{}end\nlast", marker.repeat(1000));
            let kept = shallow(&deep);
            assert!(
                kept.len() < 200 && kept.ends_with("end\nlast"),
                "{marker:?}: {kept}"
            );
            assert!(kept.starts_with("first\n"), "{kept}");
        }
    }

    fn block(language: &str, code: &str) -> Block {
        Block {
            language: language.into(),
            code: code.into(),
        }
    }

    #[test]
    fn code_is_taken_out_of_the_prose() {
        let found = read("Run `ls`:\n\n```sh\nls -l\n```\n\n- one\n- two\n");
        assert_eq!(found.blocks, [block("sh", "ls -l\n")]);
        assert!(!found.prose.contains("ls -l") && found.prose.contains("one"));
        assert_eq!(found.items, ["one", "two"]);
    }
}
