//! The Markdown of a text: what is code, what is prose, what is a list; and commands that nobody should paste.

use std::sync::LazyLock;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use regex::Regex;

use super::pattern::pattern;
use super::text::{MAX_BYTES, clip};

/// What a text is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Markdown {
    /// The source without its fenced code blocks.
    pub prose: String,
    pub blocks: Vec<Block>,
    /// Inline code that looks like a command, a path or an identifier.
    pub inline_code: usize,
    pub list_items: usize,
    pub links: usize,
    pub headings: usize,
}

/// A fenced code block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// The language named after the fence, lower case, or empty.
    pub language: String,
    pub code: String,
}

pub(super) fn read(text: &str) -> Markdown {
    let text = clip(text, MAX_BYTES);
    let mut out = Markdown::default();
    let (mut open, mut kept) = (None::<Block>, 0);
    for (event, range) in Parser::new(text).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                let language = info.split([' ', ',', '{']).next().unwrap_or_default().to_lowercase();
                out.prose.push_str(text.get(kept..range.start).unwrap_or_default());
                out.prose.push('\n');
                kept = range.end.max(kept);
                open = Some(Block { language, code: String::new() });
            }
            Event::Text(piece) => {
                if let Some(block) = &mut open {
                    block.code.push_str(&piece);
                }
            }
            Event::End(TagEnd::CodeBlock) => out.blocks.extend(open.take()),
            Event::Code(_) => out.inline_code += 1,
            Event::Start(Tag::Item) => out.list_items += 1,
            Event::Start(Tag::Link { .. } | Tag::Image { .. }) => out.links += 1,
            Event::Start(Tag::Heading { .. }) => out.headings += 1,
            _ => {}
        }
    }
    out.prose.push_str(text.get(kept..).unwrap_or_default());
    out
}

/// Shell lines that destroy data when pasted with a placeholder or an empty variable in them.
pub(super) fn dangerous_commands(block: &Block) -> usize {
    static DANGER: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?m)\brm\s+-[a-z]*[rf][a-z]*\s+(?:/(?:\s|$|\*)|~/?(?:\s|$)|\$\w+/?\*?\s*$|<[^>]+>)|\bdd\s+[^\n]*\bof=/dev/sd|\bmkfs\.\w+\s+/dev/|:\(\)\s*\{\s*:\|:|curl[^\n|]*\|\s*sudo\s+(?:ba)?sh|\bchmod\s+-R\s+777\s+/(?:\s|$)",
        )
    });
    if matches!(block.language.as_str(), "bash" | "sh" | "shell" | "zsh" | "console" | "") {
        DANGER.find_iter(&block.code).count()
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(language: &str, code: &str) -> Block {
        Block { language: language.into(), code: code.into() }
    }

    #[test]
    fn code_is_taken_out_of_the_prose() {
        let found = read("Run `ls`:\n\n```sh\nls -l\n```\n\n- one\n- two\n");
        assert_eq!(found.blocks, [block("sh", "ls -l\n")]);
        assert!(!found.prose.contains("ls -l") && found.prose.contains("one"));
        assert_eq!((found.inline_code, found.list_items), (1, 2));
    }

    #[test]
    fn dangerous_commands_are_counted() {
        assert_eq!(dangerous_commands(&block("sh", "rm -rf $DIR/*\nrm -rf /")), 2);
        assert_eq!(dangerous_commands(&block("sh", "rm -rf ./target")), 0);
    }
}
