//! A tolerant JSON reader.
//!
//! It reads one object or list at a given place. It repairs what has exactly one sensible meaning,
//! and notes each repair. Fuel bounds its work, and a limit its nesting. It reads all valid JSON
//! within these limits and gives up on prose.

mod text;

use std::cell::Cell;

use serde_json::{Map, Number, Value};

use super::MAX_NESTING;

/// A value, where it ends, and what was repaired.
#[derive(Debug, PartialEq)]
pub(crate) struct ParsedJson {
    pub value: Value,
    /// The index of the character after the value.
    pub end: usize,
    /// The repairs, each kind once; empty for valid JSON.
    pub repaired: Vec<&'static str>,
}

/// What to do with a number at the end of the text, which may be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastNumber {
    Keep,
    /// `1` may have been `15`.
    Drop,
}

/// Why no value was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GaveUp {
    NotJson,
    TooDeep,
    /// The text took more work than allowed for its length.
    OutOfFuel,
}

type Read<T> = Result<T, GaveUp>;

pub(crate) const CUT_SHORT: &str = "the reply was cut short; what was open was closed";

/// Where strings end: by the rules of JSON, or where the following text suggests it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Strict,
    Lenient,
}

/// Reads one value at `start`, strictly first, so that valid JSON is never changed.
pub(crate) fn read(
    chars: &[char],
    start: usize,
    last_number: LastNumber,
    fuel: &Cell<usize>,
) -> Read<ParsedJson> {
    let attempt = |mode: Mode| {
        let mut reader = Reader {
            chars,
            at: start,
            mode,
            open: vec![],
            repaired: vec![],
            last_number,
            fuel,
        };
        let value = reader.value()?.ok_or(GaveUp::NotJson)?;
        Ok(ParsedJson {
            value,
            end: reader.at,
            repaired: reader.repaired,
        })
    };
    match attempt(Mode::Strict) {
        Ok(reading) if reading.repaired.is_empty() => Ok(reading),
        _ => attempt(Mode::Lenient),
    }
}

/// The most times that a character is looked at, on average.
const LOOKS_PER_CHAR: usize = 16;

/// Returns the work that is allowed for a text.
pub(crate) fn fuel(chars: &[char]) -> Cell<usize> {
    Cell::new(LOOKS_PER_CHAR * chars.len() + 1000)
}

/// Reads a text that is one value from its first character to its last.
pub(crate) fn read_whole(text: &str, last_number: LastNumber) -> Option<ParsedJson> {
    let chars: Vec<char> = text.chars().collect();
    let reading = read(&chars, 0, last_number, &fuel(&chars)).ok()?;
    (reading.end == chars.len()).then_some(reading)
}

struct Reader<'a> {
    chars: &'a [char],
    at: usize,
    mode: Mode,
    /// The closing brackets of the open objects and lists.
    open: Vec<char>,
    repaired: Vec<&'static str>,
    last_number: LastNumber,
    /// The number of characters that may still be looked at, lookahead included.
    fuel: &'a Cell<usize>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn ahead(&self, offset: usize) -> Option<char> {
        self.chars.get(self.at + offset).copied()
    }

    /// Returns the characters from `start` to the current one.
    fn since(&self, start: usize) -> &[char] {
        self.chars.get(start..self.at).unwrap_or_default()
    }

    fn burn(&self, work: usize) -> Read<()> {
        self.fuel.set(self.fuel.get().saturating_sub(work + 1));
        if self.mode == Mode::Strict && !self.repaired.is_empty() {
            return Err(GaveUp::NotJson);
        }
        if self.fuel.get() == 0 {
            Err(GaveUp::OutOfFuel)
        } else {
            Ok(())
        }
    }

    fn note(&mut self, what: &'static str) {
        if !self.repaired.contains(&what) {
            self.repaired.push(what);
        }
    }

    /// Returns the index of the first character at or after `at` that is no white space, comment or
    /// code fence, and what was skipped besides plain white space.
    fn after_blank(&self, mut at: usize) -> (usize, Option<&'static str>) {
        let get = |at: usize| self.chars.get(at).copied();
        let start = at;
        let mut passed = None;
        loop {
            match (get(at), get(at + 1), get(at + 2)) {
                (Some(' ' | '\t' | '\n' | '\r'), ..) => at += 1,
                (Some(c), ..) if c.is_whitespace() || c == '\u{feff}' || c == '\u{200b}' => {
                    passed = passed.or(Some("unusual white space"));
                    at += 1;
                }
                (Some('/'), Some('/'), _) | (Some('#'), ..) => {
                    passed = Some("comments");
                    at += 1;
                    while get(at).is_some_and(|c| c != '\n') {
                        at += 1;
                    }
                }
                (Some('/'), Some('*'), _) => {
                    passed = Some("comments");
                    at += 2;
                    while at < self.chars.len()
                        && !(get(at) == Some('*') && get(at + 1) == Some('/'))
                    {
                        at += 1;
                    }
                    at = (at + 2).min(self.chars.len());
                }
                (Some('`'), Some('`'), Some('`')) => {
                    passed = Some("code fences");
                    at += 3;
                    while get(at).is_some_and(|c| c.is_ascii_alphanumeric()) {
                        at += 1;
                    }
                }
                _ => {
                    // Lookahead costs fuel too; the next `burn` fails if none is left.
                    self.fuel.set(self.fuel.get().saturating_sub(at - start));
                    return (at, passed);
                }
            }
        }
    }

    fn skip_blank(&mut self) -> Read<()> {
        let (at, passed) = self.after_blank(self.at);
        self.burn(0)?;
        self.at = at;
        if let Some(what) = passed {
            self.note(what);
        }
        Ok(())
    }

    /// Reads a value. `None`: an ellipsis, or a keyword that the end of the text cut.
    fn value(&mut self) -> Read<Option<Value>> {
        self.skip_blank()?;
        match self.peek() {
            Some('{') => self.nested('}', Self::object),
            Some('[') => self.nested(']', Self::array),
            Some('(') => {
                self.note("parentheses for a list");
                self.nested(')', Self::array)
            }
            Some(c) if text::closers(c).is_some() => {
                self.string(text::Role::Value).map(|text| Some(text.into()))
            }
            Some(_) => self.bare(),
            None => Ok(None),
        }
    }

    fn nested(
        &mut self,
        closer: char,
        inside: fn(&mut Self, char) -> Read<Value>,
    ) -> Read<Option<Value>> {
        if self.open.len() >= MAX_NESTING {
            return Err(GaveUp::TooDeep);
        }
        self.at += 1;
        self.open.push(closer);
        let value = inside(self, closer);
        self.open.pop();
        value.map(Some)
    }

    /// True if a closing bracket belongs to an outer object or list.
    fn closes_outer(&self, closer: char) -> bool {
        self.open.iter().rev().skip(1).any(|open| *open == closer)
    }

    /// Reads up to the next item of an object or list, and returns its first character. `None` if
    /// the object or list ends.
    fn next_item(&mut self, closer: char, separated: &mut bool, first: bool) -> Read<Option<char>> {
        loop {
            self.skip_blank()?;
            self.burn(0)?;
            match self.peek() {
                None => {
                    self.note(CUT_SHORT);
                    return Ok(None);
                }
                Some(',') => {
                    if *separated {
                        self.note("stray commas");
                    }
                    *separated = true;
                    self.at += 1;
                }
                Some(c) if c == closer => {
                    if *separated && !first {
                        self.note("trailing commas");
                    }
                    self.at += 1;
                    return Ok(None);
                }
                Some(c @ ('}' | ']' | ')')) => {
                    self.note("mismatched brackets");
                    if self.closes_outer(c) {
                        return Ok(None);
                    }
                    self.at += 1;
                }
                next => return Ok(next),
            }
        }
    }

    fn array(&mut self, closer: char) -> Read<Value> {
        let mut items = vec![];
        let mut separated = true;
        while let Some(next) = self.next_item(closer, &mut separated, items.is_empty())? {
            // A key in place of an item: the list was never closed.
            if next == ':' {
                return Err(GaveUp::NotJson);
            }
            if !separated {
                self.note("missing commas");
            }
            let before = self.at;
            items.extend(self.value()?);
            separated = false;
            if self.at == before {
                return Err(GaveUp::NotJson);
            }
        }
        Ok(items.into())
    }

    fn object(&mut self, closer: char) -> Read<Value> {
        let mut members = Map::new();
        let mut separated = true;
        while let Some(next) = self.next_item(closer, &mut separated, members.is_empty())? {
            if next == '{' && members.is_empty() {
                return self.doubled();
            }
            // The next item of the outer list: this object was never closed.
            if next == '{' && self.closes_outer(']') {
                self.note("missing closing braces");
                break;
            }
            if !separated {
                self.note("missing commas");
            }
            separated = false;
            self.member(&mut members)?;
        }
        Ok(members.into())
    }

    /// Reads `{{ ... }}`, which templates that escape braces produce.
    fn doubled(&mut self) -> Read<Value> {
        self.note("doubled braces");
        let value = self.value()?.ok_or(GaveUp::NotJson)?;
        self.skip_blank()?;
        match self.peek() {
            Some('}') => self.at += 1,
            Some(',') => return Err(GaveUp::NotJson),
            _ => {}
        }
        Ok(value)
    }

    fn member(&mut self, members: &mut Map<String, Value>) -> Read<()> {
        let Some(key) = self.key()? else {
            return Ok(());
        };
        self.skip_blank()?;
        match self.peek() {
            Some(':') => self.at += 1,
            Some('=') if self.ahead(1) == Some('>') => {
                self.note("arrows for colons");
                self.at += 2;
            }
            None => {
                self.note(CUT_SHORT);
                return Ok(());
            }
            Some(c) if text::closers(c).is_some() => self.note("missing colons"),
            Some(_) => return Err(GaveUp::NotJson),
        }
        self.skip_blank()?;
        match self.peek() {
            None => self.note(CUT_SHORT),
            Some(',' | '}' | ']') => self.note("keys without a value"),
            Some(_) => {
                if let Some(value) = self.value()? {
                    if members.contains_key(&key) {
                        self.note("repeated keys");
                    }
                    members.insert(key, value);
                }
            }
        }
        Ok(())
    }

    /// Reads a key. `None`: an ellipsis.
    fn key(&mut self) -> Read<Option<String>> {
        if self.peek().is_some_and(|c| text::closers(c).is_some()) {
            return self.string(text::Role::Key).map(Some);
        }
        let start = self.at;
        while self.peek().is_some_and(|c| {
            !matches!(
                c,
                ':' | ',' | '{' | '}' | '[' | ']' | '"' | '“' | '\n' | '='
            )
        }) {
            self.at += 1;
            if self.at - start > text::MAX_BARE_KEY {
                return Err(GaveUp::NotJson);
            }
        }
        self.burn(self.at - start)?;
        let key: String = self.since(start).iter().collect();
        let key = key.trim();
        if matches!(key, "..." | "…") {
            self.note("an ellipsis");
            return Ok(None);
        }
        if key.is_empty()
            || (self.peek() != Some(':') && self.peek().is_some() && key.contains(' '))
        {
            return Err(GaveUp::NotJson);
        }
        self.note("keys without quotes");
        Ok(Some(key.to_owned()))
    }

    /// Reads a value without quotes: a number, a keyword, or a string whose quotes are missing.
    fn bare(&mut self) -> Read<Option<Value>> {
        let start = self.at;
        if self.skip_bare() {
            self.burn(self.at - start)?;
            return self.call(start);
        }
        self.burn(self.at - start)?;
        let token: String = self.since(start).iter().collect();
        let token = token.trim();
        let cut = self.at >= self.chars.len() && !self.open.is_empty();
        if cut {
            self.note(CUT_SHORT);
        }
        if let Some(number) = number(token) {
            if cut && self.last_number == LastNumber::Drop {
                return Ok(None);
            }
            if token.parse::<Number>().is_err() {
                self.note("odd numbers");
            }
            return Ok(Some(number));
        }
        if token.is_empty() {
            return Ok(None);
        }
        if matches!(token, "..." | "…") {
            self.note("an ellipsis");
            return Ok(None);
        }
        if let Some(value) = keyword(token) {
            if !matches!(token, "true" | "false" | "null") {
                self.note("keywords of other languages");
            }
            return Ok(Some(value));
        }
        let begins = |word: &&str| word.starts_with(token);
        if cut && KEYWORDS.iter().any(begins) {
            return Ok(None);
        }
        if self.open.is_empty() {
            return Err(GaveUp::NotJson);
        }
        self.note("strings without quotes");
        Ok(Some(token.trim_end_matches(['"', '\'', '”']).into()))
    }

    /// Skips a value without quotes. Returns true if it stops at the bracket of a function call.
    fn skip_bare(&mut self) -> bool {
        let start = self.at;
        while let Some(c) = self.peek() {
            let before = self.at.checked_sub(1).and_then(|at| self.chars.get(at));
            let spaced = self.at > start && before.is_some_and(|c| c.is_whitespace());
            let comment = c == '/' && matches!(self.ahead(1), Some('/' | '*'));
            let ends = match c {
                ',' | '}' | ']' | '\n' => true,
                ')' => self.open.last() == Some(&')'),
                '(' => return true,
                '"' | '\'' | '“' | '{' | '[' => spaced,
                '/' => comment && (spaced || before != Some(&':')),
                _ => false,
            };
            if ends {
                break;
            }
            self.at += 1;
        }
        false
    }

    /// Reads a function call with one argument, such as `ObjectId("123")`, as its argument.
    fn call(&mut self, start: usize) -> Read<Option<Value>> {
        let name = self.since(start);
        let is_name =
            !name.is_empty() && name.iter().all(|c| c.is_ascii_alphanumeric() || *c == '_');
        if !is_name {
            return Err(GaveUp::NotJson);
        }
        self.note("a function call for a value");
        let value = self.nested(')', Self::array)?;
        match value {
            Some(Value::Array(mut items)) if items.len() == 1 => Ok(items.pop()),
            _ => Err(GaveUp::NotJson),
        }
    }
}

/// The keywords that the end of a text may cut.
const KEYWORDS: [&str; 6] = ["true", "false", "null", "True", "False", "None"];

/// Returns the value of a keyword of JSON or of another language.
fn keyword(token: &str) -> Option<Value> {
    match token.to_ascii_lowercase().as_str() {
        "true" => Some(true.into()),
        "false" => Some(false.into()),
        "none" | "null" | "undefined" | "nan" | "nil" => Some(Value::Null),
        _ => None,
    }
}

/// Returns the number that a token stands for, also `+1`, `.5`, `2.` and `1_000`; not `05`, which
/// may be a code.
fn number(token: &str) -> Option<Value> {
    let parsed = |text: &str| text.parse::<Number>().ok().map(Value::Number);
    if let Some(number) = parsed(token) {
        return Some(number);
    }
    let digits = token.strip_prefix('+').unwrap_or(token).replace('_', "");
    let digits = digits.trim_end_matches(['e', 'E', '+', '-', '.']);
    if !token.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return None;
    }
    let (sign, digits) = digits
        .strip_prefix('-')
        .map_or(("", digits), |digits| ("-", digits));
    let padded = if digits.starts_with('.') {
        format!("{sign}0{digits}")
    } else {
        format!("{sign}{digits}")
    };
    parsed(&padded)
}
