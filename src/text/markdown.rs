//! Splits the Markdown of a text into code, prose and lists.

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

pub fn read(text: &str) -> Markdown {
    let text = clip(text, MAX_BYTES);
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
