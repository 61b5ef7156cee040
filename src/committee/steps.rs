//! Whether a text has a plan: ordered steps, a roadmap, a runbook. Read from the Markdown, as a second look beside the
//! structured draft.

mod prose;

use std::borrow::Cow;
use std::sync::LazyLock;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use regex::Regex;

use super::sections::outline::Outline;
use prose::{is_plan_title, prose_steps};

/// First words of a step that someone is to carry out.
const ACTIONS: &str = "access add adjust allow analyze analyse apply approve arrange ask assemble assess assign attach \
    back backup bake begin boil book build buy calculate call change check choose clean clear click clone close collect \
    combine compare compile complete compute configure confirm connect consider contact convert cook copy create cut \
    define delete deploy design determine develop disable disconnect divide document download draft draw drive edit \
    enable ensure enter establish evaluate examine execute expose extract fetch fill find finish fix follow format \
    gather generate get give go grant heat hire identify implement import improve include initialize insert inspect \
    install integrate invite issue join keep label launch learn leave let list load locate log look maintain make map \
    mark measure merge migrate mix modify monitor mount move multiply navigate note notify obtain open order organize \
    pack pay perform pick place plan plug point pour practice prepare press print prune publish pull purchase push put \
    read reboot rebuild receive record reduce refactor register release reload remove rename repeat replace report \
    request reset resolve restart restore review rewrite roll rotate run save schedule scp search secure select send \
    set share ship sign simplify solve sort specify spread ssh start stop store subtract submit switch take talk tag \
    tell test track train transfer try turn type uninstall unpack unplug update upgrade upload use validate verify \
    visit wait wash watch wipe write";

/// Words that may stand before the action.
const LEADS: [&str; 14] = [
    "first",
    "second",
    "third",
    "then",
    "next",
    "finally",
    "now",
    "lastly",
    "please",
    "afterwards",
    "also",
    "and",
    "you",
    "to",
];

/// What an order is often done to.
const OBJECTS: [&str; 12] = ["the", "a", "an", "your", "all", "each", "every", "it", "them", "both", "any", "ssh"];

/// Words that begin a statement and not an order.
const OPENERS: [&str; 40] = [
    "the", "this", "that", "these", "those", "there", "here", "its", "his", "her", "their", "our", "some", "many",
    "most", "all", "each", "every", "both", "one", "two", "for", "with", "from", "about", "under", "over", "when",
    "where", "what", "who", "why", "how", "because", "since", "although", "while", "not", "they", "she",
];

/// Second words after which the first was what a statement is about.
const STATEMENTS: [&str; 32] = [
    "is", "are", "was", "were", "has", "have", "had", "can", "could", "will", "would", "may", "might", "must",
    "should", "does", "do", "did", "of", "or", "and", "in", "means", "needs", "gives", "costs", "takes", "makes",
    "uses", "per", "than", "at",
];

/// A heading with a number: the word before it, if it has one of these, and what follows.
static NUMBERED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^\s*(?:(step|phase|day|week|month|stage|sprint|milestone|schritt)\s+)?\d+\s*[.):\-–—]\s*(\S.*)$")
        .ok()
});

static PLAN_HEADING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(plan|steps?|roadmap|run ?book|procedure|implementation|migration|how to|instructions|milestones?|phases?|rollout|check-?list|schritte|ablauf|étapes|pasos)\b").ok()
});

static STEP_LINE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?im)^\s*(?:[-*]\s*)?(?:\*\*|#+\s*)?(?:step|phase|day|week|month|stage|sprint|milestone)\s+\d+\b[:.)\s*-]*(.*)$").ok()
});

/// "1. 1. Install": a model numbered an item twice. Markdown reads it as a list inside an item without words.
static TWICE_NUMBERED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?m)^([ \t]*\d+[.)][ \t]+)(?:\d+[.)][ \t]+)+").ok());

/// The steps of the plan in a Markdown text, in order; empty if it has none.
///
/// It has one if an ordered list of three or more items mostly begins with actions or shows commands, if a plan-like
/// heading (or a paragraph in bold) stands over a list of two or more items, or if two or more lines begin with "Step
/// N". All such lists make one plan. In a text that is not English any ordered list of three or more counts: no list of
/// verbs covers every language, and an estimate too many harms less than one that is missing. Where nothing of that is,
/// what stands under a plan's title is one, in prose too.
pub fn plan_steps(markdown: &str) -> Vec<String> {
    let once = TWICE_NUMBERED.as_ref().map_or(Cow::Borrowed(markdown), |twice| twice.replace_all(markdown, "$1"));
    let split = numbers_on_lines(once.as_ref());
    let markdown = split.as_ref();
    let english = whatlang::detect(markdown).is_none_or(|d| d.lang() == whatlang::Lang::Eng || !d.is_reliable());
    let plan = |list: &List| {
        let actions = list.items.iter().filter(|item| item.has_command || begins_with_action(&item.text)).count();
        let ordered_plan = list.ordered && list.items.len() >= 3 && (!english || actions * 2 >= list.items.len());
        let headed_plan =
            list.under_plan_heading && list.items.len() >= 2 && (list.ordered || actions * 2 >= list.items.len());
        ordered_plan || headed_plan
    };
    let lists = lists(markdown);
    let mut listed: Vec<String> = vec![];
    // Of each list, whether it or one around it is a plan. A list stands behind the one around it.
    let mut in_plan: Vec<bool> = Vec::with_capacity(lists.len());
    for list in &lists {
        // What stands inside a step is part of it.
        let inside = list.parent.and_then(|parent| in_plan.get(parent)).is_some_and(|known| *known);
        let is_plan = !inside && plan(list);
        if is_plan {
            listed.extend(list.items.iter().map(|item| label(&item.text)));
        }
        in_plan.push(inside || is_plan);
    }
    if !listed.is_empty() {
        return listed;
    }
    let headed = numbered_headings(markdown, english);
    if !headed.is_empty() {
        return headed;
    }
    let lines = step_lines(markdown);
    if lines.len() >= 2 { lines } else { prose_steps(markdown) }
}

/// "1. Install it 2. Run it 3. Check it": three or more numbered items on one line, outside code.
static NUMBERED_INLINE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?m)(?:^|[ \t:])(?<number>\d{1,2})[.)][ \t]+\p{L}").ok());

/// The text with items that are numbered within a line on lines of their own.
fn numbers_on_lines(markdown: &str) -> Cow<'_, str> {
    let Some(numbered) = NUMBERED_INLINE.as_ref() else { return Cow::Borrowed(markdown) };
    let outline = Outline::of(markdown);
    let mut breaks: Vec<usize> = vec![];
    let mut at = 0;
    for line in markdown.split_inclusive('\n') {
        let found: Vec<(usize, usize)> = numbered
            .captures_iter(line)
            .filter_map(|c| c.name("number"))
            .filter_map(|m| Some((at + m.start(), m.as_str().parse().ok()?)))
            .collect();
        let counts = found.len() >= 3 && found.iter().enumerate().all(|(i, (_, number))| *number == i + 1);
        if counts && !found.iter().any(|(start, _)| outline.in_code(*start)) {
            breaks.extend(found.iter().map(|(start, _)| *start));
        }
        at += line.len();
    }
    if breaks.is_empty() {
        return Cow::Borrowed(markdown);
    }
    let mut text = String::with_capacity(markdown.len() + breaks.len() + 1);
    let mut written = 0;
    for (number, start) in breaks.into_iter().enumerate() {
        text.push_str(markdown.get(written..start).unwrap_or(""));
        // A list begins after a blank line, and its items need none.
        text.push_str(if number == 0 { "\n\n" } else { "\n" });
        written = start;
    }
    text.push_str(markdown.get(written..).unwrap_or(""));
    Cow::Owned(text)
}

/// Headings that count the steps: "Step 2: Pull the image" (two or more), or "2. Pull the image" (three or more, mostly
/// beginning with actions).
fn numbered_headings(markdown: &str, english: bool) -> Vec<String> {
    let Some(numbered) = NUMBERED.as_ref() else { return vec![] };
    let mut named = 0;
    let mut steps = vec![];
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(markdown, Options::empty()) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let text = heading.take().unwrap_or_default();
                if let Some(captures) = numbered.captures(&text) {
                    named += usize::from(captures.get(1).is_some());
                    steps.push(captures.get(2).map_or("", |m| m.as_str()).to_owned());
                }
            }
            _ => {}
        }
    }
    let actions = steps.iter().filter(|step| begins_with_action(step)).count();
    let plan = named >= 2 || (steps.len() >= 3 && (!english || actions * 2 >= steps.len()));
    if plan { steps.iter().map(|step| label(step)).collect() } else { vec![] }
}

/// What the lines that begin with "Step N" say, outside code; one that says nothing more is named by its number.
fn step_lines(markdown: &str) -> Vec<String> {
    let Some(line) = STEP_LINE.as_ref() else { return vec![] };
    let outline = Outline::of(markdown);
    let whole = line.captures_iter(markdown).filter_map(|c| Some((c.get(0)?, c.get(1)?)));
    whole
        .filter(|(all, said)| !outline.in_code(all.start() + 1) && !outline.in_code(said.start()))
        .map(|(all, said)| Some(label(said.as_str())).filter(|l| !l.is_empty()).unwrap_or_else(|| label(all.as_str())))
        .collect()
}

/// Headings down to this level end a plan's section.
const LARGE_LEVEL: usize = 3;

/// A bold paragraph is smaller than any heading.
const BOLD_LEVEL: usize = 7;

struct List {
    ordered: bool,
    under_plan_heading: bool,
    /// The list in whose item this one stands.
    parent: Option<usize>,
    items: Vec<Item>,
}

#[derive(Default)]
struct Item {
    text: String,
    has_command: bool,
}

/// All lists, with the heading (or the bold line) that they stand under; a table under a plan's heading is a list of its
/// rows. Ordered lists that other blocks interrupt (a code block between two steps) are one list.
fn lists(markdown: &str) -> Vec<List> {
    let mut lists: Vec<List> = vec![];
    // The last list that stands in no other one.
    let mut outermost: Option<usize> = None;
    // The lists that are open, the innermost last.
    let mut open: Vec<usize> = vec![];
    let mut heading: Option<String> = None;
    let mut bold = BoldParagraph::default();
    let mut label = LabelParagraph::default();
    // How deep the heading is that a plan stands under.
    let mut plan_level: Option<usize> = None;
    let mut code = false;
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS) {
        if open.is_empty()
            && let Some(text) = bold.read(&event)
        {
            plan_level = under_heading(plan_level, &text, BOLD_LEVEL);
        }
        // "Steps:" stands over the list that follows, and over nothing else.
        let labelled = open.is_empty() && label.read(&event);
        let item = open.last().and_then(|at| lists.get_mut(*at)).and_then(|list| list.items.last_mut());
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(level)) => {
                let text = heading.take().unwrap_or_default();
                plan_level = under_heading(plan_level, &text, level as usize);
            }
            Event::Start(Tag::List(start)) => {
                let list = |parent| List {
                    ordered: start.is_some(),
                    under_plan_heading: plan_level.is_some() || labelled,
                    parent,
                    items: vec![],
                };
                let before = outermost.filter(|_| open.is_empty());
                let continued = before.filter(|at| {
                    let next = lists.get(*at).filter(|l| l.ordered).map(|l| l.items.len() as u64 + 1);
                    start.is_some_and(|n| n > 1 && Some(n) == next)
                });
                if continued.is_none() {
                    if open.is_empty() {
                        outermost = Some(lists.len());
                    }
                    lists.push(list(open.last().copied()));
                }
                open.push(continued.unwrap_or(lists.len().saturating_sub(1)));
            }
            Event::Start(Tag::Table(_)) if plan_level.is_some() => {
                outermost = Some(lists.len());
                lists.push(List { ordered: true, under_plan_heading: true, parent: None, items: vec![] });
                open.push(lists.len() - 1);
            }
            Event::End(TagEnd::List(_)) => {
                open.pop();
            }
            Event::End(TagEnd::Table) if plan_level.is_some() => {
                open.pop();
            }
            Event::Start(Tag::Item | Tag::TableRow) => {
                if let Some(list) = open.last().and_then(|at| lists.get_mut(*at)) {
                    list.items.push(Item::default());
                }
            }
            Event::Start(Tag::CodeBlock(_)) => {
                code = true;
                if let Some(item) = item {
                    item.has_command = true;
                }
            }
            Event::End(TagEnd::CodeBlock) => code = false,
            Event::Text(text) if !code => match (&mut heading, item) {
                (Some(heading), _) => heading.push_str(&text),
                (None, Some(item)) => item.text.push_str(&text),
                (None, None) => {}
            },
            Event::Code(text) => {
                if let Some(item) = item {
                    item.has_command |= text.contains(' ');
                    item.text.push_str(&text);
                }
            }
            Event::SoftBreak | Event::HardBreak | Event::End(TagEnd::TableCell) => {
                if let Some(item) = item {
                    item.text.push(' ');
                }
            }
            _ => {}
        }
    }
    lists
}

/// The level of the plan's heading after a heading of this text and level.
fn under_heading(plan: Option<usize>, text: &str, level: usize) -> Option<usize> {
    if PLAN_HEADING.as_ref().is_some_and(|re| re.is_match(text)) {
        return Some(level);
    }
    // A smaller heading inside a plan's section does not end it.
    plan.filter(|opened| level > LARGE_LEVEL && level > *opened)
}

/// A paragraph that is nothing but bold text, with or without a colon: a heading to whoever reads it.
#[derive(Default)]
struct BoldParagraph {
    /// What it says so far; `None` outside a paragraph, and as soon as something else stands in it.
    text: Option<String>,
    strong: bool,
}

impl BoldParagraph {
    fn read(&mut self, event: &Event<'_>) -> Option<String> {
        match event {
            Event::Start(Tag::Paragraph) => self.text = Some(String::new()),
            Event::End(TagEnd::Paragraph) => return self.text.take().filter(|text| !text.trim().is_empty()),
            Event::Start(Tag::Strong) => self.strong = true,
            Event::End(TagEnd::Strong) => self.strong = false,
            Event::Text(piece) if self.strong => {
                if let Some(text) = &mut self.text {
                    text.push_str(piece);
                }
            }
            Event::Text(piece) if piece.trim().trim_end_matches(':').is_empty() => {}
            Event::Code(_) | Event::Start(Tag::Emphasis) | Event::End(TagEnd::Emphasis) if self.strong => {}
            _ => self.text = None,
        }
        None
    }
}

/// A paragraph that is nothing but a plan's title and a colon, directly before a list.
#[derive(Default)]
struct LabelParagraph {
    text: String,
    over: bool,
}

impl LabelParagraph {
    /// Whether the event begins a list that stands under such a paragraph.
    fn read(&mut self, event: &Event<'_>) -> bool {
        match event {
            Event::Start(Tag::Paragraph) => (self.text, self.over) = (String::new(), false),
            Event::Text(piece) | Event::Code(piece) => self.text.push_str(piece),
            Event::SoftBreak | Event::HardBreak => self.text.push('\n'),
            Event::End(TagEnd::Paragraph) => {
                let last = self.text.rsplit('\n').next().unwrap_or_default();
                self.over = last.trim_end().strip_suffix(':').is_some_and(is_plan_title);
            }
            Event::Start(Tag::List(_)) => return std::mem::take(&mut self.over),
            Event::Start(_) | Event::End(_) => self.over = false,
            _ => {}
        }
        false
    }
}

fn begins_with_action(item: &str) -> bool {
    begins_with_known_action(item) || reads_like_an_order(item) || ends_with_infinitive(item)
}

fn begins_with_known_action(item: &str) -> bool {
    let words = item.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase);
    let mut words = words.skip_while(|w| LEADS.contains(&w.as_str()));
    let Some(first) = words.next() else { return false };
    ACTIONS.split_whitespace().any(|action| {
        let plain = first == action;
        let gerund = first
            .strip_suffix("ing")
            .is_some_and(|stem| stem == action || Some(stem) == action.strip_suffix('e') || is_doubled(stem, action));
        plain || gerund
    })
}

/// "Docker installieren": German puts the verb last and writes it small, as no noun is.
fn ends_with_infinitive(item: &str) -> bool {
    let mut words = item.trim_end_matches(['.', ';', ',', '!', ' ']).split_whitespace();
    let (Some(last), Some(_)) = (words.next_back(), words.next()) else { return false };
    let verb =
        ["ieren", "igen", "gen", "hen", "ten", "ren", "len", "nen", "sen", "ben", "fen", "zen", "cken", "eln", "ern"];
    let english =
        ["children", "written", "chosen", "broken", "often", "listen", "eleven", "modern", "pattern", "concern"];
    last.chars().all(char::is_lowercase)
        && last.chars().count() >= 6
        && verb.iter().any(|end| last.ends_with(end))
        && !english.contains(&last)
}

/// No list has every verb: a sentence that begins with one plain word, followed by what it is done to, is read as an order.
fn reads_like_an_order(item: &str) -> bool {
    let words: Vec<&str> = item.split_whitespace().collect();
    let (Some(first), Some(second), true) = (words.first(), words.get(1), words.len() >= 3) else { return false };
    let plain = first.chars().all(char::is_alphabetic) && first.len() >= 3;
    let first = first.to_lowercase();
    let object = OBJECTS.contains(&second.to_lowercase().as_str())
        || (second.chars().next().is_some_and(char::is_lowercase) && !second.ends_with([',', ':', '.']));
    plain && object && !OPENERS.contains(&first.as_str()) && !STATEMENTS.contains(&second.to_lowercase().as_str())
}

/// "runn" of "run".
fn is_doubled(stem: &str, action: &str) -> bool {
    stem.strip_prefix(action).is_some_and(|rest| action.ends_with(rest) && rest.len() == 1)
}

/// A step's name: its first sentence, at most 80 characters.
pub(super) fn label(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
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
mod tests;
