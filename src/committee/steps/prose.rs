//! Plans in prose: what stands under the title of one.

use std::sync::LazyLock;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use regex::Regex;

use super::{BOLD_LEVEL, BoldParagraph, begins_with_action, begins_with_known_action, ends_with_infinitive, label};

/// What a plan is called.
const PLANS: &str = r"plans?|steps|road ?map|run ?book|procedure|instructions|roll-?out|check-?list|play ?book|schritte|ablauf|ablaufplan|étapes|pasos|hoja de ruta";

/// A title that is a plan's: it ends with its name ("Deployment plan"), or goes on with what the plan is for ("Steps to take").
static TITLE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let before = r"(?:[\w&/'’-]+\s+){0,4}";
    Regex::new(&format!(
        r"(?i)^[^\p{{L}}\p{{N}}]*(?:\d+[.)]\s*)?(?:{before}(?:[\p{{L}}-]*(?:{PLANS}))|(?:{PLANS})\s+(?:to|for)\s.{{1,60}})[^\p{{L}}\p{{N}}?]*$"
    ))
    .ok()
});

/// Words in a title that speak about a plan, or name another kind of it.
static ABOUT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let about = "of|about|why|without|behind|this|that|which|what|no|not|vs|versus|against|than|is|are|has|have";
    let kinds = "pric\\w+|payments?|subscription|insurance|billing|tariff|data|phone|mobile|floor|query|execution|health|pension|savings|family|free|pro|basic|premium|enterprise|team";
    Regex::new(&format!(r"(?i)\b(?:{about}|{kinds})\b")).ok()
});

/// What a plan is for, or how it is, in a title: then all that stands there is the plan, whatever it is written like. Under
/// another title ("The Marshall Plan") it has to read like one.
const KINDS: &str = "implementation deployment migration rollout action project work release launch recovery test testing \
    training study learning lesson development delivery upgrade installation setup backup restore rollback security \
    onboarding cleanup refactoring maintenance workout meal travel campaign hiring transition integration improvement \
    daily weekly monthly day week month short long term next first concrete detailed suggested recommended proposed \
    phased full rough the a an our your my step by and";

/// What sets a step of a plan in time.
static IN_TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^\W*(?:(?:q[1-4]|h[12]|(?:step|phase|day|week|month|year|stage|sprint|milestone|quarter)\s+\w+)\b|first\b|second\b|third\b|then\b|next\b|after that\b|finally\b|lastly\b)").ok()
});

/// Whether nothing but a plan to be carried out is called so.
fn is_plain_plan_title(text: &str) -> bool {
    let words: Vec<String> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase).collect();
    let known = |word: &String| {
        word.chars().all(|c| c.is_ascii_digit())
            || KINDS.split_whitespace().any(|kind| word == kind)
            || PLAN.as_ref().is_some_and(|re| re.is_match(word))
    };
    let name = words.iter().position(|word| PLAN.as_ref().is_some_and(|re| re.is_match(word)));
    name.is_some_and(|at| words.iter().take(at).all(known))
}

static PLAN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&format!(r"(?i)^[\p{{L}}-]*(?:{PLANS})$")).ok());

/// Where a sentence of a plan ends.
static END: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[.!;。；！]+(?:\s+|$)|[。；！]|\n").ok());

/// Whether a title says that what stands under it is a plan.
pub fn is_plan_title(text: &str) -> bool {
    let plain = text.replace(['*', '_', '`'], "");
    TITLE.as_ref().is_some_and(|re| re.is_match(plain.trim())) && !ABOUT.as_ref().is_some_and(|re| re.is_match(&plain))
}

/// The steps of what stands under a plan's title and is no list of steps by itself: the items of a list, else the sentences
/// that order something or say when, else the paragraphs.
pub fn prose_steps(markdown: &str) -> Vec<String> {
    let sections = sections(markdown);
    sections.iter().flat_map(Section::steps).map(|step| label(&step)).filter(|step| !step.is_empty()).collect()
}

/// What stands under one title.
#[derive(Default)]
struct Section {
    /// Whether the title leaves no doubt.
    plain: bool,
    paragraphs: Vec<String>,
    items: Vec<String>,
}

impl Section {
    fn steps(&self) -> Vec<String> {
        if !self.items.is_empty() {
            let actions = self.items.iter().filter(|item| begins_with_action(item)).count();
            return if self.plain || actions * 2 >= self.items.len() { self.items.clone() } else { vec![] };
        }
        let sentences: Vec<&str> = self
            .paragraphs
            .iter()
            .flat_map(|text| END.as_ref().map_or_else(|| vec![text.as_str()], |end| end.split(text).collect()))
            .map(str::trim)
            .filter(|sentence| !sentence.is_empty() && !sentence.ends_with([':', '?']))
            .collect();
        // In prose a sentence that only looks like an order may be a statement.
        let orders = |sentence: &&&str| {
            begins_with_known_action(sentence)
                || ends_with_infinitive(sentence)
                || IN_TIME.as_ref().is_some_and(|re| re.is_match(sentence))
        };
        let steps: Vec<String> = sentences.iter().filter(orders).map(|s| (**s).to_owned()).collect();
        let none = |text: &String| {
            let first = text.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default().to_lowercase();
            ["no", "none", "not", "nothing", "keine", "keiner"].contains(&first.as_str())
        };
        if !steps.is_empty() || !self.plain || self.paragraphs.iter().any(none) {
            return steps;
        }
        self.paragraphs.iter().filter(|text| !text.trim_end().ends_with([':', '?'])).cloned().collect()
    }
}

/// What stands under each plan's title, up to the next heading that is not below it.
fn sections(markdown: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = vec![];
    // How deep the title is that is open.
    let mut open: Option<usize> = None;
    let mut heading: Option<String> = None;
    let mut bold = BoldParagraph::default();
    let mut text: Option<String> = None;
    let (mut depth, mut code) = (0usize, false);
    for event in Parser::new_ext(markdown, Options::ENABLE_TASKLISTS) {
        let title = if depth == 0 { bold.read(&event) } else { None };
        if let Some(title) = title {
            // It is no paragraph of the section.
            text = None;
            open = opened(open, &title, BOLD_LEVEL, &mut sections);
        }
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(level)) => {
                let title = heading.take().unwrap_or_default();
                open = opened(open, &title, level as usize, &mut sections);
            }
            Event::Start(Tag::List(_)) => depth += 1,
            Event::End(TagEnd::List(_)) => depth = depth.saturating_sub(1),
            Event::Start(Tag::Item) if depth == 1 => text = Some(String::new()),
            Event::Start(Tag::Paragraph) if depth == 0 => text = Some(String::new()),
            Event::End(TagEnd::Item) if depth == 1 => {
                let item = text.take().filter(|text| !text.trim().is_empty());
                if let (Some(item), Some(section), true) = (item, sections.last_mut(), open.is_some()) {
                    section.items.push(item);
                }
            }
            Event::End(TagEnd::Paragraph) if depth == 0 => {
                let paragraph = text.take().filter(|text| !text.trim().is_empty());
                if let (Some(paragraph), Some(section), true) = (paragraph, sections.last_mut(), open.is_some()) {
                    section.paragraphs.push(paragraph);
                }
            }
            Event::Start(Tag::CodeBlock(_)) => code = true,
            Event::End(TagEnd::CodeBlock) => code = false,
            Event::Text(piece) | Event::Code(piece) if !code => {
                if let Some(place) = heading.as_mut().or(text.as_mut()) {
                    place.push_str(&piece);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some(place) = heading.as_mut().or(text.as_mut()) {
                    place.push(' ');
                }
            }
            _ => {}
        }
    }
    sections
}

/// The level of the title that is open after a heading.
fn opened(before: Option<usize>, title: &str, level: usize, sections: &mut Vec<Section>) -> Option<usize> {
    if is_plan_title(title) {
        sections.push(Section { plain: is_plain_plan_title(title), ..Section::default() });
        return Some(level);
    }
    // A document's title stands over more than the plan.
    before.filter(|opened| level > *opened && *opened > 1)
}
