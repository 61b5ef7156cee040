//! Finds the plan in a Markdown text, as a second check beside the structured draft (SPEC 2). A
//! plan is an ordered list of three or more items, or the text under a heading that names a plan.

use std::borrow::Cow;
use std::sync::LazyLock;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use regex::{Captures, Regex};

use crate::domain::is_unspaced;
use crate::text::{self, excerpt, pattern};

/// Words for "plan" in several languages, one per line.
const NAMES: &str = include_str!("data/plan_names.txt");

/// An ordered list with at least this number of items is a plan.
const MIN_ITEMS: usize = 3;

/// Returns the steps of the plan in a Markdown text, in order; empty if it has none. Under a
/// heading that names a plan, the steps are the items of the lists and the rows of the tables, or
/// else the paragraphs. A list inside an item of a plan is part of that item.
pub fn plan_steps(markdown: &str) -> Vec<String> {
    let markdown = in_ascii_marks(markdown);
    let blocks = blocks(&text::shallow(&markdown));
    let mut steps: Vec<&String> = vec![];
    let mut rest = blocks.as_slice();
    while let Some((block, after)) = rest.split_first() {
        rest = after;
        match block.kind {
            Kind::Heading(level) if block.texts.iter().any(|text| names_a_plan(text)) => {
                let ends =
                    |block: &Block| matches!(block.kind, Kind::Heading(next) if next <= level);
                let end = after.iter().position(ends).unwrap_or(after.len());
                let (section, after) = after.split_at_checked(end).unwrap_or((after, &[]));
                rest = after;
                steps.extend(steps_of(section));
            }
            _ if block.is_plan() => steps.extend(&block.texts),
            _ => {}
        }
    }
    let labels = steps.into_iter().map(|step| label(step));
    labels.filter(|step| !step.is_empty()).collect()
}

/// Returns the text with the marks of ordered lists in ASCII, as Markdown has them: "１．" and "١."
/// are "1.".
fn in_ascii_marks(markdown: &str) -> Cow<'_, str> {
    static MARK: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?m)^([ \t]*)(\p{Nd}{1,9})(?:[.)][ \t]+|[．）、][ \t]*)"));
    MARK.replace_all(markdown, |found: &Captures<'_>| {
        let part = |at: usize| found.get(at).map_or("", |part| part.as_str());
        let number: String = part(2).chars().map(text::plain_sign).collect();
        format!("{}{number}. ", part(1))
    })
}

/// Returns the items and rows of a section's lists and tables, or else its paragraphs.
fn steps_of(section: &[Block]) -> Vec<&String> {
    let texts = |wanted: fn(&Kind) -> bool| {
        let blocks = section.iter().filter(|block| wanted(&block.kind));
        blocks.flat_map(|block| &block.texts).collect::<Vec<_>>()
    };
    let items = texts(|kind| matches!(kind, Kind::List(_) | Kind::Table));
    if items.is_empty() {
        return texts(|kind| *kind == Kind::Paragraph);
    }
    items
}

/// A part of a text.
struct Block {
    kind: Kind,
    /// The text of a heading or paragraph. Of a list: its items without nested lists. Of a table: the
    /// rows below its head, from the first cell that has a letter.
    texts: Vec<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// With its level.
    Heading(usize),
    Paragraph,
    /// With the first number of an ordered list.
    List(Option<u64>),
    Table,
}

impl Block {
    fn new(kind: Kind, texts: &[&str]) -> Self {
        Self {
            kind,
            texts: texts.iter().copied().map(str::to_owned).collect(),
        }
    }

    /// True for an ordered list of enough items.
    fn is_plan(&self) -> bool {
        matches!(self.kind, Kind::List(Some(_))) && self.texts.len() >= MIN_ITEMS
    }

    /// Begins a cell of a table. Cells before it without a letter, such as a step's number, are
    /// dropped.
    fn begin_cell(&mut self) {
        match self.texts.last_mut() {
            Some(row) if row.chars().any(char::is_alphabetic) => row.push_str(". "),
            Some(row) => row.clear(),
            None => {}
        }
    }
}

/// Returns the blocks of a text that are in no list, and plans in other lists, without code blocks.
fn blocks(markdown: &str) -> Vec<Block> {
    let (mut blocks, mut lists, mut in_code) = (vec![], Vec::<Block>::new(), false);
    let mut inner = vec![];
    let options = Options::ENABLE_TASKLISTS | Options::ENABLE_TABLES;
    for event in Parser::new_ext(markdown, options) {
        let is_outside = lists.is_empty();
        let block = lists.last_mut().or(blocks.last_mut());
        let text = block.and_then(|block| block.texts.last_mut());
        match event {
            Event::Start(Tag::Heading { level, .. }) if is_outside => {
                blocks.push(Block::new(Kind::Heading(level as usize), &[""]));
            }
            Event::Start(Tag::Paragraph) if is_outside => {
                blocks.push(Block::new(Kind::Paragraph, &[""]));
            }
            Event::Start(Tag::Table(_)) if is_outside => blocks.push(Block::new(Kind::Table, &[])),
            Event::Start(Tag::List(start)) => lists.push(Block::new(Kind::List(start), &[])),
            Event::End(TagEnd::List(_)) => {
                let ended = lists.pop();
                if !lists.is_empty() {
                    inner.extend(ended.filter(Block::is_plan));
                } else if let Some(ended) = ended {
                    let inner = std::mem::take(&mut inner);
                    let inner = if ended.is_plan() { vec![] } else { inner };
                    add_list(&mut blocks, ended);
                    blocks.extend(inner);
                }
            }
            Event::Start(Tag::TableRow) if is_outside => begin_text(blocks.last_mut()),
            Event::Start(Tag::Item) => begin_text(lists.last_mut()),
            Event::Start(Tag::TableCell) if is_outside => {
                if let Some(table) = blocks.last_mut() {
                    table.begin_cell();
                }
            }
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Text(more) | Event::Code(more) if !in_code => {
                text.into_iter().for_each(|text| text.push_str(&more));
            }
            Event::SoftBreak | Event::HardBreak | Event::Start(Tag::Paragraph) => {
                text.into_iter().for_each(|text| text.push(' '));
            }
            _ => {}
        }
    }
    blocks
}

/// Begins an item or a row.
fn begin_text(block: Option<&mut Block>) {
    block
        .into_iter()
        .for_each(|block| block.texts.push(String::new()));
}

/// Adds a list. In Markdown, code or a paragraph between two items ends a list. A list that starts
/// with the next number continues the list before them.
fn add_list(blocks: &mut Vec<Block>, mut list: Block) {
    let is_other = |block: &Block| block.kind != Kind::Paragraph;
    if let Some(at) = blocks.iter().rposition(is_other)
        && let Some(last) = blocks.get_mut(at)
        && matches!(last.kind, Kind::List(Some(_)))
        && list.kind == Kind::List(Some(last.texts.len() as u64 + 1))
    {
        last.texts.append(&mut list.texts);
        blocks.truncate(at + 1);
    } else {
        blocks.push(list);
    }
}

fn names_a_plan(heading: &str) -> bool {
    let words = text::words(heading);
    let mut names = NAMES
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    // Chinese and Japanese have no spaces between words, so the name may be anywhere in the heading,
    // and so may a name of several words.
    let heading = heading.to_lowercase();
    names.any(|name| {
        words.iter().any(|word| word.ends_with(name))
            || (name.contains(|c| is_unspaced(c) || c == ' ') && heading.contains(name))
    })
}

/// Returns a step's name: its first sentence, at most 80 characters.
pub fn label(step: &str) -> String {
    let line = text::one_line(step);
    let line = line.trim_matches(['*', ':', ' ', '#']);
    let sentence = line.split_once(". ").map_or(line, |(first, _)| first);
    excerpt(sentence.trim_end_matches(['.', ':', ';']), 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_a_list_a_table_and_a_plans_section_are_found() {
        let table = "| # | Step | Owner |\n| - | - | - |\n| 1 | Stop the pump | Ada |\n| 2 | Swap the seal | Bo |\n";
        for (text, steps) in [
            (
                "Do this:\n\n1. Install Docker.\n2. Copy the image over. It is large.\n3. `docker run -d app`\n",
                &["Install Docker", "Copy the image over", "docker run -d app"][..],
            ),
            // Code blocks between items do not end the list, and sub-steps belong to their step.
            (
                "1. Build it:\n\n```sh\nmake\n```\n\n2. Test it\n\n```sh\nmake test\n```\n\n3. Ship it\n",
                &["Build it", "Test it", "Ship it"],
            ),
            (
                "1. Install it\n   1. run the script\n   2. check\n   3. log\n2. Test it\n3. Ship it\n",
                &["Install it", "Test it", "Ship it"],
            ),
            (
                &format!("## Migration plan\n\n{table}"),
                &["Stop the pump", "Swap the seal"],
            ),
            ("## 移行計画\n\n- 止める\n- 移す\n", &["止める", "移す"]),
        ] {
            assert_eq!(plan_steps(text), steps, "{text}");
        }
        assert_eq!(plan_steps(&format!("## Prices\n\n{table}")), [""; 0]);
    }

    #[test]
    fn what_makes_a_plan_is_counted_in_any_language() {
        for (text, count) in [
            ("1. サーバーを止める\n2. 移行する\n3. 再開する", 3),
            ("１．打开页面\n２．阅读\n３．写下来", 3),
            ("١. افتح الصفحة\n٢. اقرأ\n٣. اكتب", 3),
            ("1.5 is more.\n2.75倍", 0),
            ("1. Canary\n2. Everyone\n", 0),
            (
                "- On the host:\n  1. Install\n  2. Edit\n  3. Start\n- Tell the users\n",
                3,
            ),
            (
                "- On the host:\n  1. Install\n  2. Edit\n- Tell the users\n",
                0,
            ),
            ("- One\n- Two\n- Three\n", 0),
            ("It costs 3. 4. 5.", 0),
            ("```\n1. a\n2. b\n3. c\n```", 0),
            ("## Rollout plan\n\n1. Canary\n2. Everyone\n", 2),
            (
                "## Umzugsplan\n\n- Daten sichern\n- Umziehen\n\n## Risiken\n\n- Zeit\n",
                2,
            ),
            (
                "# Plan\n\n### Backend\n\nBuild the API.\n\n### Frontend\n\nBuild the pages.\n\n# Cost\n\nLittle.",
                2,
            ),
            (
                "## Checklist\n\nBefore you begin:\n\n- [ ] Install it\n- [ ] Test it",
                2,
            ),
            ("## План\n\n- Остановить\n- Перенести\n", 2),
            ("## Планеты\n\n- Марс\n- Венера\n", 0),
            ("## Notes\n\n- Canary\n- Everyone\n", 0),
            ("The implementation plan has cost and risk.", 0),
            ("## Plan\n", 0),
        ] {
            assert_eq!(plan_steps(text).len(), count, "{text}");
        }
    }

    #[test]
    fn a_label_is_a_short_first_sentence() {
        assert_eq!(
            label("**Build** the\nimage. It takes long."),
            "Build** the image"
        );
        assert_eq!(label(&"x".repeat(90)).chars().count(), 80);
    }
}
