//! Finds the plan in a Markdown text, as a second check beside the structured draft (SPEC 2). A
//! plan is an ordered list of three or more items, or the text under a heading that names a plan.
//! Finer rules are not worth it: a missed borderline case costs less than a rule engine.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::committee::reply::assumptions::one_line;
use crate::text;

/// Words for "plan" in several languages, one per line.
const NAMES: &str = include_str!("data/plan_names.txt");

/// An ordered list with at least this number of items is a plan.
const MIN_ITEMS: usize = 3;

/// Returns the steps of the plan in a Markdown text, in order; empty if it has none. Under a
/// heading that names a plan, the steps are the items of the lists, or else the paragraphs. A list
/// inside an item is part of that item's step.
pub fn plan_steps(markdown: &str) -> Vec<String> {
    let mut reader = Reader::default();
    for event in Parser::new_ext(markdown, Options::ENABLE_TASKLISTS) {
        reader.read(event);
    }
    reader.steps()
}

/// A block whose texts may be the steps of a plan.
#[derive(Default)]
struct Block {
    is_ordered: bool,
    /// The items of a list, or the text of a paragraph.
    texts: Vec<String>,
    /// The block whose item contains this list.
    parent: Option<usize>,
    /// The number of the plan's heading above it.
    heading: Option<usize>,
    is_list: bool,
}

#[derive(Default)]
struct Reader {
    blocks: Vec<Block>,
    /// The open lists, the innermost last.
    open: Vec<usize>,
    /// The last list that is not inside another one.
    outermost: Option<usize>,
    /// The text of the open heading.
    heading: Option<String>,
    /// The level and number of the plan's heading that the current text is under.
    plan: Option<(usize, usize)>,
    headings: usize,
    in_code: bool,
}

impl Reader {
    fn read(&mut self, event: Event<'_>) {
        match event {
            Event::Start(Tag::Heading { .. }) => self.heading = Some(String::new()),
            Event::End(TagEnd::Heading(level)) => self.end_heading(level as usize),
            Event::Start(Tag::List(start)) => self.begin_list(start),
            Event::End(TagEnd::List(_)) => {
                self.open.pop();
            }
            Event::Start(Tag::Item) => self.push_text(),
            Event::Start(Tag::Paragraph) if self.open.is_empty() => {
                self.blocks.push(Block {
                    heading: self.plan.map(|(_, number)| number),
                    ..Block::default()
                });
                self.push_text();
            }
            Event::Start(Tag::CodeBlock(_)) => self.in_code = true,
            Event::End(TagEnd::CodeBlock) => self.in_code = false,
            Event::Text(text) | Event::Code(text) if !self.in_code => match &mut self.heading {
                Some(heading) => heading.push_str(&text),
                None => self.add(&text),
            },
            Event::SoftBreak | Event::HardBreak => self.add(" "),
            _ => {}
        }
    }

    fn end_heading(&mut self, level: usize) {
        let text = self.heading.take().unwrap_or_default();
        if names_a_plan(&text) {
            self.headings += 1;
            self.plan = Some((level, self.headings));
        } else {
            // A smaller heading inside a plan's section does not end the section.
            self.plan = self.plan.filter(|(plan, _)| level > *plan);
        }
    }

    /// Opens a list, or continues the last one. In Markdown, code between two items ends a list. A
    /// list that starts with the next number is treated as the same list.
    fn begin_list(&mut self, start: Option<u64>) {
        let goes_on = |at: &usize| {
            let before = self
                .blocks
                .get(*at)
                .filter(|list| list.is_ordered)
                .map(|list| list.texts.len() as u64);
            before.is_some_and(|items| items > 0 && start == Some(items + 1))
        };
        let continued = self
            .outermost
            .filter(|at| self.open.is_empty() && goes_on(at));
        let at = continued.unwrap_or_else(|| {
            self.blocks.push(Block {
                is_ordered: start.is_some(),
                is_list: true,
                parent: self.open.last().copied(),
                heading: self.plan.map(|(_, number)| number),
                texts: vec![],
            });
            self.blocks.len() - 1
        });
        if self.open.is_empty() {
            self.outermost = Some(at);
        }
        self.open.push(at);
    }

    /// Returns the block that receives text: the innermost open list, else the last paragraph.
    fn current(&mut self) -> Option<&mut Block> {
        match self.open.last() {
            Some(at) => self.blocks.get_mut(*at),
            None => self.blocks.last_mut().filter(|block| !block.is_list),
        }
    }

    fn push_text(&mut self) {
        if let Some(block) = self.current() {
            block.texts.push(String::new());
        }
    }

    fn add(&mut self, text: &str) {
        if let Some(last) = self.current().and_then(|block| block.texts.last_mut()) {
            last.push_str(text);
        }
    }

    fn steps(&self) -> Vec<String> {
        let mut steps: Vec<&String> = vec![];
        // For each block, whether it or an enclosing block is a plan. A nested list comes after its
        // parent.
        let mut in_plan: Vec<bool> = Vec::with_capacity(self.blocks.len());
        let has_list = self.headings_with_lists();
        for block in &self.blocks {
            let inside = block
                .parent
                .and_then(|parent| in_plan.get(parent))
                .is_some_and(|known| *known);
            let listed = block.is_list
                && (block.heading.is_some()
                    || (block.is_ordered && block.texts.len() >= MIN_ITEMS));
            let told = !block.is_list
                && block
                    .heading
                    .is_some_and(|heading| has_list.get(heading) == Some(&false));
            let is_plan = !inside && (listed || told);
            if is_plan {
                steps.extend(&block.texts);
            }
            in_plan.push(inside || is_plan);
        }
        steps
            .into_iter()
            .map(|step| label(step))
            .filter(|step| !step.is_empty())
            .collect()
    }

    /// Returns for each plan heading, by its number, whether there is a list under it.
    fn headings_with_lists(&self) -> Vec<bool> {
        let mut has_list = vec![false; self.headings + 1];
        for heading in self
            .blocks
            .iter()
            .filter(|block| block.is_list)
            .filter_map(|block| block.heading)
        {
            if let Some(has) = has_list.get_mut(heading) {
                *has = true;
            }
        }
        has_list
    }
}

fn names_a_plan(heading: &str) -> bool {
    let words = text::words(heading);
    let names = || {
        NAMES
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
    };
    // A script without spaces has no separate words, so the name may be anywhere in the heading.
    let heading = heading.to_lowercase();
    names().any(|name| {
        words.iter().any(|word| word.ends_with(name))
            || (!name.is_ascii() && heading.contains(name))
    })
}

/// Returns a step's name: its first sentence, at most 80 characters.
pub fn label(text: &str) -> String {
    let line = one_line(text);
    let line = line.trim_matches(['*', ':', ' ', '#']);
    let sentence = line.split_once(". ").map_or(line, |(first, _)| first);
    let sentence = sentence.trim_end_matches(['.', ':', ';']);
    if sentence.chars().count() <= 80 {
        return sentence.to_owned();
    }
    let cut: String = sentence.chars().take(79).collect();
    format!("{}…", cut.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordered_list_of_three_items_is_a_plan_in_any_language() {
        let plan = "Do this:\n\n1. Install Docker.\n2. Copy the image over. It is large.\n3. `docker run -d app`\n";
        assert_eq!(
            plan_steps(plan),
            ["Install Docker", "Copy the image over", "docker run -d app"]
        );
        assert_eq!(
            plan_steps("1. サーバーを止める\n2. 移行する\n3. 再開する").len(),
            3
        );
        for none in [
            "1. Canary\n2. Everyone\n",
            "- One\n- Two\n- Three\n",
            "It costs 3. 4. 5.",
            "```\n1. a\n2. b\n3. c\n```",
        ] {
            assert_eq!(plan_steps(none), Vec::<String>::new(), "{none}");
        }
    }

    #[test]
    fn a_heading_that_names_a_plan_makes_one_of_what_stands_under_it() {
        for (text, count) in [
            ("## Rollout plan\n\n1. Canary\n2. Everyone\n", 2),
            (
                "## Umzugsplan\n\n- Daten sichern\n- Umziehen\n\n## Risiken\n\n- Zeit\n",
                2,
            ),
            ("## 移行計画\n\n- 止める\n- 移す\n", 2),
            (
                "# Plan\n\n### Backend\n\nBuild the API.\n\n### Frontend\n\nBuild the pages.\n\n# Cost\n\nLittle.",
                2,
            ),
            (
                "## Checklist\n\nBefore you begin:\n\n- [ ] Install it\n- [ ] Test it",
                2,
            ),
            ("## Notes\n\n- Canary\n- Everyone\n", 0),
            ("The implementation plan has cost and risk.", 0),
            ("## Plan\n", 0),
        ] {
            assert_eq!(plan_steps(text).len(), count, "{text}");
        }
    }

    #[test]
    fn steps_between_code_blocks_are_one_list_and_sub_steps_belong_to_their_step() {
        let text = "1. Build it:\n\n```sh\nmake\n```\n\n2. Test it\n\n```sh\nmake test\n```\n\n3. Ship it\n";
        assert_eq!(plan_steps(text), ["Build it", "Test it", "Ship it"]);
        let nested =
            "1. Install it\n   1. run the script\n   2. check\n   3. log\n2. Test it\n3. Ship it\n";
        assert_eq!(plan_steps(nested), ["Install it", "Test it", "Ship it"]);
        let inner = "- Setup\n  1. Install Docker\n  2. Pull the image\n  3. Run it\n";
        assert_eq!(
            plan_steps(inner),
            ["Install Docker", "Pull the image", "Run it"]
        );
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
