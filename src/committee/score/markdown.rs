//! The Markdown of a text: what is code, what is prose, what is a list; and cheap checks that code can pass or fail.

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

/// What a check of a code block found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Soundness {
    /// Parsed, or balanced where there is no parser.
    Sound,
    /// Does not parse, or brackets or quotes do not pair.
    Broken,
    /// Nothing to check: empty, or output rather than code.
    Unknown,
}

/// Checks a block as far as its language allows: JSON is parsed; brackets are paired, outside strings and comments, in
/// languages that pair them; shell quotes are paired.
pub(super) fn soundness(block: &Block) -> Soundness {
    let code = block.code.trim();
    if code.is_empty() {
        return Soundness::Unknown;
    }
    match block.language.as_str() {
        "json" => match serde_json::from_str::<serde::de::IgnoredAny>(code) {
            // "..." stands for what was left out; such a block is an illustration.
            Err(_) if code.contains("...") || code.contains("//") => Soundness::Unknown,
            Err(_) => Soundness::Broken,
            Ok(_) => Soundness::Sound,
        },
        "bash" | "sh" | "shell" | "zsh" | "console" => shell(code),
        "" | "text" | "txt" | "output" | "plaintext" | "md" | "markdown" | "diff" | "latex" | "tex" => {
            Soundness::Unknown
        }
        language => balance(code, language),
    }
}

/// Whether round, square and curly brackets pair, outside strings and comments.
fn balance(code: &str, language: &str) -> Soundness {
    let hash_comments = matches!(
        language,
        "python" | "py" | "ruby" | "rb" | "yaml" | "yml" | "toml" | "r" | "perl" | "dockerfile" | "make"
    );
    let slash_comments = !hash_comments && !matches!(language, "html" | "xml" | "sql" | "css");
    let double_only = matches!(language, "rust" | "rs" | "haskell" | "html" | "xml" | "lisp" | "clojure" | "ocaml");
    let mut stack = Vec::new();
    for line in code.replace("\"\"\"", "\"").replace("'''", "'").lines() {
        let mut quote: Option<char> = None;
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            if let Some(open) = quote {
                match c {
                    '\\' => _ = chars.next(),
                    c if c == open => quote = None,
                    _ => {}
                }
                continue;
            }
            match c {
                '"' | '`' => quote = Some(c),
                '\'' if !double_only => quote = Some(c),
                '#' if hash_comments => break,
                '/' if slash_comments && chars.peek() == Some(&'/') => break,
                '-' if language == "sql" && chars.peek() == Some(&'-') => break,
                '(' => stack.push(')'),
                '[' => stack.push(']'),
                '{' => stack.push('}'),
                ')' | ']' | '}' if stack.pop() != Some(c) => return Soundness::Broken,
                _ => {}
            }
        }
    }
    if stack.is_empty() { Soundness::Sound } else { Soundness::Broken }
}

/// Unpaired quotes break a command line; so does a placeholder that the shell would read as a redirection.
fn shell(code: &str) -> Soundness {
    let mut quote: Option<char> = None;
    let mut chars = code.chars().peekable();
    let mut previous = '\n';
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some('\''), '\'') => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => _ = chars.next(),
            (Some('"'), '"') => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '#') if previous.is_whitespace() => {
                while chars.peek().is_some_and(|c| *c != '\n') {
                    chars.next();
                }
            }
            _ => {}
        }
        previous = c;
    }
    if quote.is_some() { Soundness::Broken } else { Soundness::Sound }
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
    fn sound_code_is_told_from_broken_code() {
        for (language, code) in [
            ("json", r#"{"a": [1, 2]}"#),
            ("python", "print('(')  # :)"),
            ("rust", "fn f<'a>(x: &'a str) {}"),
            ("bash", "echo \"it's\" # don't"),
            ("sql", "SELECT count(*) FROM t"),
        ] {
            assert_eq!(soundness(&block(language, code)), Soundness::Sound, "{language}");
        }
        for (language, code) in
            [("json", r#"{"a": [1, 2}"#), ("python", "print((1)"), ("bash", "echo \"hi"), ("rust", "fn f( {}")]
        {
            assert_eq!(soundness(&block(language, code)), Soundness::Broken, "{language}");
        }
        assert_eq!(soundness(&block("json", "{ ... }")), Soundness::Unknown);
    }

    #[test]
    fn dangerous_commands_are_counted() {
        assert_eq!(dangerous_commands(&block("sh", "rm -rf $DIR/*\nrm -rf /")), 2);
        assert_eq!(dangerous_commands(&block("sh", "rm -rf ./target")), 0);
    }
}
