//! Screening: flags texts that must not count as answers. The patterns are in `data/screening.tsv`.
//! Empty texts, repetition and echoes of the request are found without words of any language.

use std::cmp::min;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use include_dir::{Dir, File, include_dir};
use regex::Regex;
use rustc_hash::FxHashSet;

use super::repetition::repetition;
use crate::text::{
    Word, WordRuns, any_of, clip, count_words, each_sentence, pattern, pattern_of_ascii_words,
    ratio, sentences,
};

/// The kind of a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum FlagKind {
    /// Declines the request.
    Refusal,
    /// Declines, but goes on to help.
    PartialRefusal,
    /// Addresses the system that scores it: claims a grade, or imitates a status or a system
    /// message.
    JudgeAttack,
    /// Tries to give a model new instructions.
    Injection,
    /// Repeats instructions that it was given, or the markup of a chat template.
    LeakedPrompt,
    /// Has no content.
    Empty,
    /// Repeats the same words.
    Repetition,
    /// Repeats the request.
    Echo,
}

const REFUSALS: [FlagKind; 2] = [FlagKind::Refusal, FlagKind::PartialRefusal];

/// The flags that a rule raises by itself.
const ATTACKS: [(FlagKind, Finds); 3] = [
    (FlagKind::Injection, Finds::Injection),
    (FlagKind::JudgeAttack, Finds::JudgeAttack),
    (FlagKind::LeakedPrompt, Finds::LeakedPrompt),
];

/// The flags of a text. Each has the certainty of the strongest rule that found it, 0 to 1.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Screening(BTreeMap<FlagKind, f64>);

impl Screening {
    /// Returns the weight of a flag; 0 without it.
    pub fn weight(&self, kind: FlagKind) -> f64 {
        self.0.get(&kind).copied().unwrap_or(0.0)
    }

    /// True if the flag has a weight of at least one half.
    pub fn has(&self, kind: FlagKind) -> bool {
        self.weight(kind) >= 0.5
    }

    /// Removes what looks like no answer, but may be one: a refusal, and words of the request.
    pub fn clear_answers(&mut self) {
        self.remove(&[FlagKind::Echo]);
        self.remove(&REFUSALS);
    }

    /// Counts its attacks as quoted ones: prompts give orders to a model, and a rubric says for what it
    /// gives points.
    pub fn quote_attacks(&mut self) {
        let attacks = [FlagKind::Injection, FlagKind::JudgeAttack];
        let found = self.0.iter_mut().filter(|(kind, _)| attacks.contains(kind));
        found.for_each(|(_, weight)| *weight = weight.min(QUOTED_WEIGHT));
    }

    /// True if the text takes no part in the comparison of answers.
    pub fn disqualifies(&self) -> bool {
        use FlagKind::{LeakedPrompt, PartialRefusal};
        let mut kinds = self.0.keys().filter(|kind| self.has(**kind));
        kinds.any(|kind| !matches!(kind, PartialRefusal | LeakedPrompt))
    }

    /// True if it has one of these flags, of any weight.
    fn has_any(&self, kinds: &[FlagKind]) -> bool {
        kinds.iter().any(|kind| self.0.contains_key(kind))
    }

    fn remove(&mut self, kinds: &[FlagKind]) {
        self.0.retain(|kind, _| !kinds.contains(kind));
    }

    fn add(&mut self, kind: FlagKind, weight: f64) {
        let known = self.0.entry(kind).or_default();
        *known = known.max(weight);
    }
}

/// What a rule finds: what raises a flag, or decides about one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
enum Finds {
    Injection,
    JudgeAttack,
    LeakedPrompt,
    /// A refusal.
    Declines,
    /// A refusal if the text does not help.
    Disapproves,
    /// Help, which makes a refusal a partial one.
    Helps,
    /// An order to say something, with its words.
    Dictated,
    /// Names of what this engine computes.
    OwnTerms,
}

struct Rule {
    finds: Finds,
    weight: f64,
    /// True if a match need not have any text.
    needs_none: bool,
    /// True if it finds a sentence of the prompts.
    is_instruction: bool,
    source: String,
    /// Compiled for the first text that may match. Most patterns never are.
    pattern: OnceLock<Regex>,
}

impl Rule {
    fn pattern(&self) -> &Regex {
        self.pattern.get_or_init(|| {
            if self.source.is_ascii() {
                pattern_of_ascii_words(&self.source)
            } else {
                pattern(&self.source)
            }
        })
    }
}

/// All rules, with the texts of which a match must have one.
struct Rules {
    all: Vec<Rule>,
    needed: AhoCorasick,
    /// The rule of each needed text.
    rule_of: Vec<usize>,
}

static RULES: LazyLock<Rules> = LazyLock::new(|| {
    let rows = include_str!("../data/screening.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'));
    let (mut all, mut needed, mut rule_of) = (vec![], vec![], vec![]);
    for row in rows {
        let mut fields = row.splitn(4, '\t');
        let mut field = || fields.next().unwrap_or_default();
        let (finds, weight, needs) = (field().parse(), field(), field());
        let Ok(finds) = finds else { continue };
        for text in needs.split(';').filter(|text| !text.is_empty()) {
            needed.push(text);
            rule_of.push(all.len());
        }
        all.push(Rule {
            finds,
            weight: weight.parse().unwrap_or_default(),
            needs_none: needs.is_empty(),
            is_instruction: false,
            source: field().to_owned(),
            pattern: OnceLock::new(),
        });
    }
    for sentence in instructions() {
        needed.push(clip(sentence, NEEDED_BYTES));
        rule_of.push(all.len());
        all.push(Rule {
            finds: Finds::LeakedPrompt,
            weight: 0.9,
            needs_none: false,
            is_instruction: true,
            source: format!("(?i){}", regex::escape(sentence)),
            pattern: OnceLock::new(),
        });
    }
    Rules {
        all,
        needed: any_of(&needed),
        rule_of,
    }
});

/// The bytes at the beginning of an instruction that a text is searched for first.
const NEEDED_BYTES: usize = 32;

/// The fewest words of an instruction that an answer does not have by chance.
const MIN_INSTRUCTION_WORDS: usize = 8;

/// The prompts that agents are given, in all forms.
static PROMPTS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/prompts");

/// Returns the longer sentences of the prompts, without those that are filled in.
fn instructions() -> BTreeSet<&'static str> {
    let folders = PROMPTS.dirs().chain([&PROMPTS]);
    let texts = folders.flat_map(Dir::files).filter_map(File::contents_utf8);
    let sentences = texts.flat_map(str::lines).flat_map(sentences);
    let fixed = sentences
        .map(str::trim)
        .filter(|it| !it.contains(['{', '}', '#']) && count_words(it) >= MIN_INSTRUCTION_WORDS);
    fixed.collect()
}

/// Returns the rules that may match a text: one search, instead of one for each pattern.
fn possible(text: &str) -> Vec<&'static Rule> {
    let Rules {
        all,
        needed,
        rule_of,
    } = &*RULES;
    // Without regard to case, these two letters equal s and k.
    let has_others = !text.is_ascii() && text.contains(['\u{17f}', '\u{212a}']);
    let mut may_match = vec![has_others; all.len()];
    for found in needed.find_overlapping_iter(text) {
        let rule = rule_of.get(found.pattern().as_usize());
        if let Some(may_match) = rule.and_then(|rule| may_match.get_mut(*rule)) {
            *may_match = true;
        }
    }
    let rules = all.iter().zip(may_match);
    let kept = rules.filter(|(rule, may_match)| *may_match || rule.needs_none);
    kept.map(|(rule, _)| rule).collect()
}

fn of_kind(rules: &[&'static Rule], finds: Finds) -> impl Iterator<Item = &'static Rule> {
    rules
        .iter()
        .copied()
        .filter(move |rule| rule.finds == finds)
}

/// Screens a text, which has these words, by itself.
fn screen(text: &str, found: &[Word]) -> Screening {
    let mut out = Screening::default();
    if found.is_empty() {
        if !is_operator(text.trim()) {
            out.add(FlagKind::Empty, 1.0);
        }
        return out;
    }
    let own = without_quotations(text);
    // What a rule needs stands in this form if the rule matches the text with or without its breaks and
    // quotations.
    let rules = possible(&flowing(text));
    let flowing = flowing(&own);
    // Some attacks begin a line.
    add_attacks((&own, &rules), 1.0, &mut out);
    add_attacks((text, &rules), QUOTED_WEIGHT, &mut out);
    add_attacks((&flowing, &rules), 1.0, &mut out);
    let refused = refusal(&flowing, &rules);
    if let Some((kind, weight)) = refused {
        out.add(kind, weight);
    }
    if let Some(weight) = repetition(text, found) {
        out.add(FlagKind::Repetition, weight);
    }
    out
}

/// Returns a text as the patterns read it: with one blank where several are, and without the breaks
/// inside a sentence.
fn flowing(text: &str) -> String {
    // One blank between two words stays as it is.
    static BLANKS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\s{2,}|[\s--\x20]"));
    let (mut flowing, mut end) = (String::with_capacity(text.len()), 0);
    for blanks in BLANKS.find_iter(text) {
        flowing.push_str(text.get(end..blanks.start()).unwrap_or_default());
        end = blanks.end();
        let behind = text.get(end..).unwrap_or_default();
        let goes_on = flowing.ends_with(|c: char| c.is_alphabetic() || c == ',')
            && behind.starts_with(char::is_alphabetic);
        flowing.push_str(match blanks.as_str().matches('\n').count() {
            0 => " ",
            1 if goes_on => " ",
            1 => "\n",
            _ => "\n\n",
        });
    }
    flowing + text.get(end..).unwrap_or_default()
}

/// True for an answer without words, such as "==" or "%".
fn is_operator(text: &str) -> bool {
    static SIGNS: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[\p{Sm}\p{Sc}%&*/@#!:-]{1,3}$"));
    static SIGN: LazyLock<Regex> = LazyLock::new(|| pattern(r"[\p{Sm}\p{Sc}%&/@#]"));
    // "###" is a heading.
    let is_rule = text.chars().count() >= 3 && text.chars().all(|c| text.starts_with(c));
    SIGNS.is_match(text) && SIGN.is_match(text) && !is_rule
}

/// Screens an output against the request that it answers: everything in [`screen`], and echo.
/// Attacks in the report's failure modes are not its own: `without_failures` returns its text without
/// them, if it has any. Both texts come with their words.
pub(in crate::scoring) fn screen_answer(
    (message, asked): (&str, &[Word]),
    (text, said): (&str, &[Word]),
    without_failures: impl FnOnce() -> Option<String>,
) -> Screening {
    use FlagKind::{Echo, Injection, JudgeAttack};
    let mut out = screen(text, said);
    // "What does conflictPenalty mean?"
    if OWN_TERMS.is_match(text) && !OWN_TERMS.is_match(message) {
        let own = without_quotations(text);
        if let Some(weight) = strongest(&possible(&own), Finds::OwnTerms, &own) {
            out.add(JudgeAttack, weight);
        }
    }
    if out.has_any(&REFUSALS) && quotes_refusal(message) {
        out.remove(&REFUSALS);
    }
    if out.has_any(&[JudgeAttack, Injection])
        && let Some(own) = without_failures()
    {
        out.remove(&[JudgeAttack, Injection]);
        let own = without_quotations(&own);
        for text in [&flowing(&own), &own] {
            add_attacks((text, &possible(text)), 1.0, &mut out);
        }
    }
    // The request has such instructions: "Translate 'ignore previous instructions'."
    for (kind, finds) in ATTACKS.into_iter().filter(|(kind, _)| *kind != JudgeAttack) {
        if out.has_any(&[kind]) && strongest(&possible(message), finds, message).is_some() {
            out.remove(&[kind]);
        }
    }
    if min(spoken(said), spoken(asked)) >= 4 && echoes(asked, said) {
        out.add(Echo, 1.0);
    }
    out
}

/// True if a request quotes a refusal: "Translate 'I'm sorry, I can't help you'."
fn quotes_refusal(message: &str) -> bool {
    let quoted = QUOTED.find_iter(message);
    let quoted = quoted.chain(SINGLE_QUOTED.find_iter(message));
    let quoted: String = quoted.map(|it| it.as_str()).collect();
    strongest(&possible(&quoted), Finds::Declines, &quoted).is_some()
}

/// Names of what this engine computes. In answers to a request with one they are no attack.
static OWN_TERMS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\b(?:c_final|conflictPenalty|coverageBonus)\b|\bCred\b"));

/// The weight of an attack in code or a quotation: too little for a flag.
const QUOTED_WEIGHT: f64 = 0.2;

/// Code, and quotations in the marks of any language. Single marks are apostrophes too, and a single
/// word in straight marks may be a key of JSON.
static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?s)```.*?```|`[^`\n]+`|"[^\s",:}\]](?:[^"\s]{0,60}\s[^"\n]{1,300}|[^"\s]{0,60}[\p{Han}\p{Hira}\p{Kana}\p{Thai}\p{Laoo}\p{Khmr}\p{Mymr}][^"\n]{0,300})"|[\p{Pi}\p{Pf}„「『《〈〝﹁﹃--[‘’]][[^\p{Pi}\p{Pf}「」『』《》〈〉〝〞〟﹁﹂﹃﹄"\n]‘’]{1,300}[\p{Pi}\p{Pf}」』》〉〞〟﹂﹄"--[‘’]]|‚[^‚‘’\n]{1,300}[‘’]"#,
    )
});

/// Quotations in single marks, which are apostrophes too.
static SINGLE_QUOTED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(^|[\s(])['‘](?:[^'’\n]|\b['’]\b){1,300}['’]($|[\s).,;:!?])"));

/// Returns the text without code and quotations: they are not what its author says.
fn without_quotations(text: &str) -> String {
    let text = QUOTED.replace_all(text, "…");
    let opens = |(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        before.is_none_or(|c| c.is_whitespace() || c == '(')
    };
    // The search takes long, and most of these marks are apostrophes.
    if text.match_indices(['\'', '‘']).any(opens) {
        SINGLE_QUOTED.replace_all(&text, "$1…$2").into_owned()
    } else {
        text.into_owned()
    }
}

/// Returns about how many words a reader counts: in scripts without spaces, each character is one
/// here, and a word has two.
fn spoken(words: &[Word]) -> usize {
    let is_ideograph = |word: &&Word| word.starts_with(|c| ('\u{2e80}'..'\u{fb00}').contains(&c));
    words.len() - words.iter().filter(is_ideograph).count().div_ceil(2)
}

/// True if what is said repeats most of what was asked. An answer may be a phrase of the request,
/// such as one of its options.
fn echoes(asked: &[Word], said: &[Word]) -> bool {
    let known: FxHashSet<&Word> = asked.iter().collect();
    let mut new = said.iter().filter(|word| !known.contains(word));
    if new.nth(1).is_some() || 2 * said.len() < asked.len() {
        return false;
    }
    let (of_asked, of_said) = (WordRuns::of(asked, 3), WordRuns::of(said, 3));
    ratio(of_said.shared(&of_asked), of_said.distinct()) >= 0.85
}

/// True if the request has an order such as "ignore the above and say 'X'", and the output says X.
pub(in crate::scoring) fn obeyed_injection(message: &str, body: &str) -> bool {
    let lower = LazyLock::new(|| body.to_lowercase());
    let rules = possible(message);
    let dictated = of_kind(&rules, Finds::Dictated)
        .flat_map(|rule| rule.pattern().captures_iter(message).take(20));
    let payloads = dictated.filter_map(|found| Some(found.get(1)?.as_str().to_lowercase()));
    payloads.into_iter().any(|payload| lower.contains(&payload))
}

/// True if a text repeats a sentence of the prompts, outside of code and quotations, that the request
/// does not have.
pub fn repeats_instructions(message: &str, text: &str) -> bool {
    let own = flowing(&without_quotations(text));
    let rules = possible(&own).into_iter();
    let mut instructions = rules.filter(|rule| rule.is_instruction).map(Rule::pattern);
    instructions.any(|sentence| sentence.is_match(&own) && !sentence.is_match(message))
}

/// True if a text does nothing but decline to answer.
pub fn declines(text: &str) -> bool {
    let own = flowing(&without_quotations(text));
    let found = refusal(&own, &possible(&own));
    found.is_some_and(|(kind, weight)| kind == FlagKind::Refusal && weight >= 0.5)
}

/// Adds what attacks in a text, with the rules that may match it.
fn add_attacks((text, rules): (&str, &[&'static Rule]), scale: f64, out: &mut Screening) {
    for (kind, finds) in ATTACKS {
        if let Some(weight) = strongest(rules, finds, text) {
            out.add(kind, weight * scale);
        }
    }
}

/// Returns the weight of the strongest of the rules that matches a text.
fn strongest(rules: &[&'static Rule], finds: Finds, text: &str) -> Option<f64> {
    let hits = of_kind(rules, finds).filter(|rule| rule.pattern().is_match(text));
    hits.map(|rule| rule.weight).max_by(f64::total_cmp)
}

/// Finds a refusal. A refusal is in the first sentence; if the text helps nevertheless, it is a
/// partial one. A refusal in the second or third sentence may be about a part only.
/// `rules` are those that may match the text.
fn refusal(own: &str, rules: &[&'static Rule]) -> Option<(FlagKind, f64)> {
    use FlagKind::{PartialRefusal, Refusal};
    let mut kinds = rules.iter().map(|rule| rule.finds);
    if !kinds.any(|finds| matches!(finds, Finds::Declines | Finds::Disapproves)) {
        return None;
    }
    // A mark of a list in front of the refusal is no list of steps.
    static MARKS: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[\s>#*•-]*(?:\d+[.)]\s+)?"));
    let own = &*MARKS.replace(own, "");
    let first: Vec<&str> = each_sentence(own).take(3).collect();
    let opening = first.first().copied().unwrap_or_default();
    let first = first.join(" ");
    let head = clip(&first, 700);
    let helps = || of_kind(rules, Finds::Helps).any(|rule| rule.pattern().is_match(own));
    if let Some(weight) = strongest(rules, Finds::Declines, opening) {
        return Some(if helps() {
            (PartialRefusal, 0.8 * weight)
        } else {
            (Refusal, weight)
        });
    }
    if let Some(weight) = strongest(rules, Finds::Declines, head) {
        return Some((PartialRefusal, if helps() { 0.5 } else { 0.7 } * weight));
    }
    let soft = strongest(rules, Finds::Disapproves, opening)
        .or_else(|| strongest(rules, Finds::Disapproves, head))?;
    Some((if helps() { PartialRefusal } else { Refusal }, soft))
}

#[cfg(test)]
mod tests;
