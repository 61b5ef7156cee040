//! The model's own words in a text, in a plain form for patterns.
//!
//! Quotations, code and names are hidden: each character becomes an `x`, so that the sentence
//! around them keeps its grammar. The rest becomes lower-case ASCII with single spaces, without
//! emphasis marks, and with `percent` for `%`.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::text::pattern;

/// Words copied from `verbatim` without quotation marks count as a quotation from this length on,
/// or if they are a whole line. Shorter runs are grammar ("is caused by", "safe to merge").
const MIN_COPIED_WORDS: usize = 6;
const MIN_LINE_WORDS: usize = 3;

pub struct OwnWords {
    /// The text as it is, with spaces for what is hidden.
    pub shown: String,
    plain: String,
    /// For every byte of `plain`, the byte range in the text it stands for.
    origins: Vec<Range<usize>>,
}

impl OwnWords {
    pub fn of(text: &str, verbatim: &[&str]) -> Self {
        let sources: Vec<Vec<&str>> = verbatim.iter().map(|source| words(source)).collect();
        let lines = verbatim.iter().flat_map(|source| source.lines());
        let lines: Vec<Vec<&str>> = lines.map(words).collect();
        let known = Known::of(&sources, &lines);
        let mut hidden = vec![false; text.len()];
        let quoted = quotations(text, &known).into_iter();
        for range in quoted.chain(names_and_copies(text, &known)) {
            if let Some(part) = hidden.get_mut(range) {
                part.fill(true);
            }
        }
        let mut own = Self {
            shown: String::new(),
            plain: String::new(),
            origins: vec![],
        };
        for (at, c) in text.char_indices() {
            let here = at..at + c.len_utf8();
            let rest = text.get(here.end..).unwrap_or_default();
            let is_hidden = hidden.get(at) == Some(&true);
            own.shown.push(if is_hidden { ' ' } else { c });
            let lower;
            let plain = match c {
                _ if is_hidden => "x",
                '\n' if starts_block(rest) => ". ",
                _ if c.is_whitespace() && own.plain.ends_with(' ') => "",
                _ if c.is_whitespace() => " ",
                '%' if own.plain.ends_with(' ') => "percent",
                '%' => " percent",
                '\u{2019}' | '\u{2bc}' => "'",
                '\u{2013}' | '\u{2014}' => " - ",
                '*' | '_' | '`' | '\u{200b}'..='\u{200d}' | '\u{feff}' => "",
                _ if c.is_ascii() => {
                    lower = c.to_ascii_lowercase().to_string();
                    &lower
                }
                _ if c.is_alphabetic() => "x",
                _ => " ",
            };
            own.plain.push_str(plain);
            own.origins.extend(std::iter::repeat_n(here, plain.len()));
        }
        own
    }

    /// A part of the plain form.
    pub fn plain(&self, start: usize, end: usize) -> &str {
        self.plain.get(start..end).unwrap_or_default()
    }

    /// Start and end of every clause. A clause ends with its sentence or before "but" and the like.
    pub fn clauses(&self) -> Vec<(usize, usize)> {
        static END: LazyLock<Regex> = LazyLock::new(|| {
            pattern(r"[.!?;](?:[ )\x22']|$)|\b(?:but|however|although|though|yet)\b")
        });
        let all = self.plain.len();
        let ends = END.find_iter(&self.plain);
        let ends = ends.map(|end| (end.start(), end.end()));
        let (mut start, mut clauses) = (0, vec![]);
        for (end, next) in ends.chain([(all, all)]) {
            let clause = self.plain(start, end);
            let words = clause.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
            if !words.is_empty() {
                clauses.push((end - words.len(), end));
            }
            start = next;
        }
        clauses
    }

    /// The part of `text` that the bytes `start..end` of the plain form stand for.
    pub fn original<'t>(&self, text: &'t str, start: usize, end: usize) -> &'t str {
        let first = self.origins.get(start);
        let last = self.origins.get(end.saturating_sub(1));
        let part = first.zip(last).map(|(first, last)| first.start..last.end);
        part.and_then(|part| text.get(part)).unwrap_or_default()
    }
}

/// Whether a line break before `rest` ends a sentence: a blank line, a list item, a heading.
fn starts_block(rest: &str) -> bool {
    let rest = rest.trim_start_matches([' ', '\t', '\r']);
    rest.starts_with(['\n', '-', '*', '#', '|', '>'])
}

/// The words of `verbatim`, for look-ups in constant time.
struct Known<'v> {
    is_empty: bool,
    /// All runs of one to three words.
    runs: HashSet<&'v [&'v str]>,
    /// What counts as a quotation without marks: runs of [`MIN_COPIED_WORDS`], and whole lines.
    copies: HashSet<&'v [&'v str]>,
}

impl<'v> Known<'v> {
    fn of(sources: &'v [Vec<&'v str>], lines: &'v [Vec<&'v str>]) -> Self {
        let runs = (1..=3).flat_map(|n| sources.iter().flat_map(move |it| it.windows(n)));
        let lines = lines.iter().filter(|line| line.len() >= MIN_LINE_WORDS);
        let lines = lines.map(Vec::as_slice);
        let copies = sources.iter().flat_map(|it| it.windows(MIN_COPIED_WORDS));
        Self {
            is_empty: sources.is_empty(),
            runs: runs.collect(),
            copies: copies.chain(lines).collect(),
        }
    }

    fn has(&self, words: &[&str]) -> bool {
        let part = words.len().clamp(1, 3);
        words.windows(part).all(|run| self.runs.contains(run))
    }
}

/// Words without the punctuation around them, with their places.
fn spans(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    static WORD: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"[\p{Alphabetic}\p{N}](?:\S*[\p{Alphabetic}\p{N}])?"));
    WORD.find_iter(text)
        .map(|word| (word.range(), word.as_str()))
}

fn words(text: &str) -> Vec<&str> {
    spans(text).map(|(_, word)| word).collect()
}

/// Fences, code spans and quotation marks whose content counts as a quotation.
fn quotations(text: &str, known: &Known<'_>) -> Vec<Range<usize>> {
    static MARKS: LazyLock<Regex> = LazyLock::new(|| {
        let code = r"(?s:```(?P<fence>.*?)```)|``(?P<code2>[^`\n]+)``|`(?P<code>[^`\n]+)`";
        let double = r"\x22(?P<double>[^\x22\n]+)\x22|“(?P<curly>[^“”\n]+)”";
        let single = r"(?:^|[\s(\[:,])'(?P<single>[^'\n]+)'(?:$|[\s)\].,:;!?])";
        pattern(&[code, double, single].join("|"))
    });
    let mut ranges = vec![];
    for found in MARKS.captures_iter(text) {
        let is_code = (found.get(0)).is_some_and(|all| all.as_str().starts_with('`'));
        let Some(content) = found.iter().flatten().nth(1) else {
            continue;
        };
        let mut start = content.start();
        for line in content.as_str().split_inclusive('\n') {
            if is_quotation(line.trim(), is_code, known) {
                ranges.push(start..start + line.trim_end().len());
            }
            start += line.len();
        }
    }
    ranges
}

/// Without `verbatim` the marks decide. With it, marks alone do not make a quotation: the content
/// has to occur there, or to be code. Parts cut out with an ellipsis are looked up one by one.
fn is_quotation(content: &str, is_code: bool, known: &Known<'_>) -> bool {
    // The code of a diagnostic is part of the claim about it.
    let is_number =
        |digits: &str| digits.len() == 4 && digits.bytes().all(|it| it.is_ascii_digit());
    if content.strip_prefix('E').is_some_and(is_number) {
        return false;
    }
    let signs = ['_', '(', '{', '[', '<', '=', ';', '/', ':'];
    let looks_like_code = !content.contains(char::is_whitespace) || content.contains(signs);
    let dotted = content.replace('…', "...");
    known.is_empty
        || is_code && looks_like_code
        || dotted.split("...").all(|part| known.has(&words(part)))
}

/// Identifiers, paths and flags, and runs of words copied from `verbatim`.
fn names_and_copies(text: &str, known: &Known<'_>) -> Vec<Range<usize>> {
    static NAME: LazyLock<Regex> = LazyLock::new(|| pattern(r"_|::|\w\.[a-z]|/\S*[/.]|[a-z][A-Z]"));
    let (places, words): (Vec<_>, Vec<_>) = spans(text).unzip();
    let mut hidden: Vec<bool> = words.iter().map(|word| NAME.is_match(word)).collect();
    for length in MIN_LINE_WORDS..=MIN_COPIED_WORDS {
        for (start, run) in words.windows(length).enumerate() {
            if known.copies.contains(run) {
                let copied = hidden.iter_mut().skip(start).take(length);
                copied.for_each(|it| *it = true);
            }
        }
    }
    let hidden = places.into_iter().zip(hidden).filter(|(_, hidden)| *hidden);
    hidden.map(|(place, _)| place).collect()
}
