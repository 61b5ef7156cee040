//! The model's own words in a text, in a plain form for patterns.
//!
//! Quotations, code and names are hidden: each character becomes an `x`, so that the sentence
//! around them keeps its grammar. The rest becomes lower-case ASCII with single spaces, without
//! emphasis marks, and with `percent` for `%`.

use regex::Regex;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

/// Words copied from `verbatim` without quotation marks count as a quotation from this length on,
/// or if they are a whole line. Shorter runs are grammar ("is caused by", "safe to merge").
const MIN_COPIED_WORDS: usize = 6;
const MIN_LINE_WORDS: usize = 3;
/// Runs of words are looked up in overlapping parts of this length.
const PART_WORDS: usize = 3;

pub struct OwnWords {
    plain: String,
    /// For every byte of `plain`, the byte range in the text it stands for.
    origins: Vec<Range<usize>>,
}

impl OwnWords {
    pub fn of(text: &str, verbatim: &[&str]) -> Self {
        let sources: Vec<Vec<&str>> = verbatim.iter().map(|source| words(source)).collect();
        let lines: Vec<Vec<&str>> = verbatim
            .iter()
            .flat_map(|source| source.lines())
            .map(words)
            .collect();
        let known = Known::of(&sources, &lines);
        let mut hidden = vec![false; text.len()];
        for range in quotations(text, &known)
            .into_iter()
            .chain(names_and_copies(text, &known))
        {
            mark(&mut hidden, range);
        }
        Self::plain(text, &hidden)
    }

    /// The plain text of one clause.
    pub fn clause_text(&self, (start, end): (usize, usize)) -> &str {
        self.plain.get(start..end).unwrap_or_default()
    }

    /// Start and end of every clause. A clause ends with its sentence or before "but" and the like.
    pub fn clauses(&self) -> Vec<(usize, usize)> {
        static END: LazyLock<Option<Regex>> = LazyLock::new(|| {
            Regex::new(r"[.!?;](?:[ )\x22']|$)|\b(?:but|however|although|though|yet)\b").ok()
        });
        let ends = END.iter().flat_map(|end| end.find_iter(&self.plain));
        let mut start = 0;
        let mut clauses = Vec::new();
        for (end, next) in ends
            .map(|end| (end.start(), end.end()))
            .chain([(self.plain.len(), self.plain.len())])
        {
            let clause = self.clause_text((start, end));
            let lead = clause.len() - clause.trim_start_matches(|c| !is_word(c)).len();
            if start + lead < end {
                clauses.push((start + lead, end));
            }
            start = next;
        }
        clauses
    }

    /// The part of `text` that the bytes `start..end` of the plain form stand for.
    pub fn original<'t>(&self, text: &'t str, start: usize, end: usize) -> &'t str {
        let range = || {
            let first = self.origins.get(start)?;
            let last = self.origins.get(end.checked_sub(1)?)?;
            text.get(first.start..last.end)
        };
        range().unwrap_or_default()
    }

    fn plain(text: &str, hidden: &[bool]) -> Self {
        let mut own = Self {
            plain: String::new(),
            origins: Vec::new(),
        };
        for (at, c) in text.char_indices() {
            let here = at..at + c.len_utf8();
            if hidden.get(at) == Some(&true) {
                own.push("x", here);
                continue;
            }
            match c {
                '\n' if starts_block(text.get(here.end..).unwrap_or_default()) => {
                    own.push(". ", here);
                }
                ' ' if own.plain.ends_with(' ') => {}
                _ if c.is_whitespace() => {
                    if !own.plain.ends_with(' ') {
                        own.push(" ", here);
                    }
                }
                '%' if own.plain.ends_with(' ') => own.push("percent", here),
                '%' => own.push(" percent", here),
                '\u{2019}' | '\u{2bc}' => own.push("'", here),
                '\u{2013}' | '\u{2014}' => own.push(" - ", here),
                '*' | '_' | '`' | '\u{200b}'..='\u{200d}' | '\u{feff}' => {}
                _ if c.is_ascii() => {
                    own.push(c.to_ascii_lowercase().encode_utf8(&mut [0; 4]), here);
                }
                _ if c.is_alphabetic() => own.push("x", here),
                _ => own.push(" ", here),
            }
        }
        own
    }

    fn push(&mut self, plain: &str, origin: Range<usize>) {
        self.plain.push_str(plain);
        self.origins
            .extend(std::iter::repeat_n(origin, plain.len()));
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric()
}

/// Whether a line break before `rest` ends a sentence: a blank line, a list item, a heading.
fn starts_block(rest: &str) -> bool {
    rest.trim_start_matches([' ', '\t', '\r'])
        .starts_with(['\n', '-', '*', '#', '|', '>'])
}

fn mark(flags: &mut [bool], range: Range<usize>) {
    if let Some(part) = flags.get_mut(range) {
        part.fill(true);
    }
}

/// The words of `verbatim`, for look-ups in constant time.
struct Known<'v> {
    is_empty: bool,
    /// All runs of one to [`PART_WORDS`] words.
    runs: HashSet<&'v [&'v str]>,
    lines: HashSet<&'v [&'v str]>,
}

impl<'v> Known<'v> {
    fn of(sources: &'v [Vec<&'v str>], lines: &'v [Vec<&'v str>]) -> Self {
        let runs = |source: &'v Vec<&'v str>| (1..=PART_WORDS).flat_map(|n| source.windows(n));
        Self {
            is_empty: sources.is_empty(),
            runs: sources.iter().flat_map(runs).collect(),
            lines: lines.iter().map(Vec::as_slice).collect(),
        }
    }

    fn has(&self, words: &[&str]) -> bool {
        let part = words.len().clamp(1, PART_WORDS);
        words.windows(part).all(|run| self.runs.contains(run))
    }
}

/// The words of a text without the punctuation around them.
fn words(text: &str) -> Vec<&str> {
    spans(text).into_iter().map(|(_, word)| word).collect()
}

/// Words with their byte offsets.
fn spans(text: &str) -> Vec<(usize, &str)> {
    let mut offset = 0;
    let mut spans = Vec::new();
    for piece in text.split(char::is_whitespace) {
        let tail = piece.trim_start_matches(|c: char| !c.is_alphanumeric());
        let word = tail.trim_end_matches(|c: char| !c.is_alphanumeric());
        if !word.is_empty() {
            spans.push((offset + piece.len() - tail.len(), word));
        }
        // A separator may be longer than one byte, so the offset comes from the text itself.
        offset += piece.len();
        offset += text
            .get(offset..)
            .and_then(|rest| rest.chars().next())
            .map_or(0, char::len_utf8);
    }
    spans
}

/// Fences, code spans and quotation marks whose content counts as a quotation.
fn quotations(text: &str, known: &Known<'_>) -> Vec<Range<usize>> {
    static MARKS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let fence = r"(?s:```(?P<fence>.*?)```)";
        let code = r"``(?P<code2>[^`\n]+)``|`(?P<code>[^`\n]+)`";
        let double = r"\x22(?P<double>[^\x22\n]+)\x22|“(?P<curly>[^“”\n]+)”";
        let single = r"(?:^|[\s(\[:,])'(?P<single>[^'\n]+)'(?:$|[\s)\].,:;!?])";
        Regex::new(&[fence, code, double, single].join("|")).ok()
    });
    let mut ranges = Vec::new();
    let marks = MARKS.iter().flat_map(|marks| marks.captures_iter(text));
    for found in marks {
        let content = found.iter().flatten().nth(1);
        let is_code = ["fence", "code", "code2"]
            .iter()
            .any(|name| found.name(name).is_some());
        let Some(content) = content else { continue };
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
    static DIAGNOSTIC: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^E\d{4}$").ok());
    if DIAGNOSTIC
        .as_ref()
        .is_some_and(|code| code.is_match(content))
    {
        return false;
    }
    let code_like = !content.contains(char::is_whitespace)
        || content.contains(['_', '(', '{', '[', '<', '=', ';', '/', ':']);
    known.is_empty
        || is_code && code_like
        || content
            .replace('…', "...")
            .split("...")
            .all(|part| known.has(&words(part)))
}

/// Identifiers, paths and flags, and runs of words copied from `verbatim`.
fn names_and_copies(text: &str, known: &Known<'_>) -> Vec<Range<usize>> {
    let spans = spans(text);
    let words: Vec<&str> = spans.iter().map(|&(_, word)| word).collect();
    let mut copied = vec![false; words.len()];
    for length in MIN_LINE_WORDS..MIN_COPIED_WORDS {
        for (start, run) in words.windows(length).enumerate() {
            if known.lines.contains(run) {
                mark(&mut copied, start..start + length);
            }
        }
    }
    let mut parts = 0;
    for (start, run) in words.windows(PART_WORDS).enumerate() {
        parts = if known.runs.contains(run) {
            parts + 1
        } else {
            0
        };
        let length = parts + PART_WORDS - 1;
        if parts > 0 && length >= MIN_COPIED_WORDS {
            let end = start + PART_WORDS;
            mark(&mut copied, end.saturating_sub(MIN_COPIED_WORDS)..end);
        }
    }
    spans
        .iter()
        .zip(copied)
        .filter(|((_, word), copied)| *copied || is_name(word))
        .map(|((start, word), _)| *start..start + word.len())
        .collect()
}

fn is_name(word: &str) -> bool {
    static NAME: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"_|::|\w\.[a-z]|/\S*[/.]|[a-z][A-Z]").ok());
    NAME.as_ref().is_some_and(|name| name.is_match(word))
}
