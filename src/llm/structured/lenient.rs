//! A tolerant JSON reader: what models write when they mean JSON.
//!
//! It reads one object or list at a given place, mends what has exactly one sensible meaning, and says what it mended.
//! Its work is bounded by fuel, its nesting by a limit; it never fails for good input, and gives up on prose.

mod text;

use std::cell::Cell;

use serde_json::{Map, Number, Value};

use super::MAX_NESTING;

/// What was read, up to where, and what had to be mended.
#[derive(Debug, PartialEq)]
pub(super) struct ParsedJson {
    pub value: Value,
    /// The place after the value.
    pub end: usize,
    /// What was mended, each kind once; empty for JSON as it should be.
    pub mended: Vec<&'static str>,
}

/// What to do with a number that the end of the text may have cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastNumber {
    Keep,
    /// `1` may have been `15`.
    Drop,
}

/// Why nothing was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GaveUp {
    NotJson,
    TooDeep,
    /// The text took more work than its length allows.
    OutOfFuel,
}

type Read<T> = Result<T, GaveUp>;

pub(super) const CUT_SHORT: &str = "the reply was cut short; what was open was closed";

/// Whether strings end where JSON says, or where the text suggests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Strict,
    Mending,
}

/// Reads one value at `start`: to the letter if that works, so that good JSON is never second-guessed.
pub(super) fn read(
    chars: &[char],
    start: usize,
    last_number: LastNumber,
    fuel: &Cell<usize>,
) -> Read<ParsedJson> {
    let attempt = |manner: Mode| {
        let mut reader = Reader {
            chars,
            at: start,
            manner,
            open: vec![],
            mended: vec![],
            last_number,
            fuel,
        };
        let value = reader.value()?.ok_or(GaveUp::NotJson)?;
        Ok(ParsedJson {
            value,
            end: reader.at,
            mended: reader.mended,
        })
    };
    match attempt(Mode::Strict) {
        Ok(reading) if reading.mended.is_empty() => Ok(reading),
        _ => attempt(Mode::Mending),
    }
}

struct Reader<'a> {
    chars: &'a [char],
    at: usize,
    manner: Mode,
    /// The closers of what is open.
    open: Vec<char>,
    mended: Vec<&'static str>,
    last_number: LastNumber,
    /// Characters that may still be looked at, also ahead.
    fuel: &'a Cell<usize>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn ahead(&self, offset: usize) -> Option<char> {
        self.chars.get(self.at + offset).copied()
    }

    fn burn(&self, work: usize) -> Read<()> {
        self.fuel.set(self.fuel.get().saturating_sub(work + 1));
        if self.manner == Mode::Strict && !self.mended.is_empty() {
            return Err(GaveUp::NotJson);
        }
        if self.fuel.get() == 0 {
            Err(GaveUp::OutOfFuel)
        } else {
            Ok(())
        }
    }

    fn mend(&mut self, what: &'static str) {
        if !self.mended.contains(&what) {
            self.mended.push(what);
        }
    }

    /// The place of the first character at or after `at` that is neither white space, comment nor code fence, and what
    /// of the latter two was passed.
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
                    // Looking ahead is work too; who reads on will notice an empty tank.
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
            self.mend(what);
        }
        Ok(())
    }

    /// `None` for something that stands for no value: an ellipsis, a keyword cut by the end.
    fn value(&mut self) -> Read<Option<Value>> {
        self.skip_blank()?;
        match self.peek() {
            Some('{') => self.nested('}', Self::object),
            Some('[') => self.nested(']', Self::array),
            Some('(') => {
                self.mend("parentheses for a list");
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

    /// Whether a closer that does not fit here belongs to something further out.
    fn closes_outer(&self, closer: char) -> bool {
        self.open.iter().rev().skip(1).any(|open| *open == closer)
    }

    fn array(&mut self, closer: char) -> Read<Value> {
        let mut items = vec![];
        let mut separated = true;
        loop {
            self.skip_blank()?;
            self.burn(0)?;
            match self.peek() {
                None => {
                    self.mend(CUT_SHORT);
                    return Ok(items.into());
                }
                Some(',') => {
                    if separated {
                        self.mend("stray commas");
                    }
                    separated = true;
                    self.at += 1;
                }
                Some(c) if c == closer => {
                    if separated && !items.is_empty() {
                        self.mend("trailing commas");
                    }
                    self.at += 1;
                    return Ok(items.into());
                }
                Some(c @ ('}' | ']' | ')')) => {
                    self.mend("mismatched brackets");
                    if self.closes_outer(c) {
                        return Ok(items.into());
                    }
                    self.at += 1;
                }
                // A key where an item should be: the list was never closed.
                Some(':') => return Err(GaveUp::NotJson),
                Some(_) => {
                    if !separated {
                        self.mend("missing commas");
                    }
                    let before = self.at;
                    items.extend(self.value()?);
                    separated = false;
                    if self.at == before {
                        return Err(GaveUp::NotJson);
                    }
                }
            }
        }
    }

    fn object(&mut self, _closer: char) -> Read<Value> {
        let mut members = Map::new();
        let mut separated = true;
        loop {
            self.skip_blank()?;
            self.burn(0)?;
            match self.peek() {
                None => {
                    self.mend(CUT_SHORT);
                    return Ok(members.into());
                }
                Some(',') => {
                    if separated {
                        self.mend("stray commas");
                    }
                    separated = true;
                    self.at += 1;
                }
                Some('}') => {
                    if separated && !members.is_empty() {
                        self.mend("trailing commas");
                    }
                    self.at += 1;
                    return Ok(members.into());
                }
                Some(c @ (']' | ')')) => {
                    self.mend("mismatched brackets");
                    if self.closes_outer(c) {
                        return Ok(members.into());
                    }
                    self.at += 1;
                }
                Some('{') if members.is_empty() => return self.doubled(),
                // The next item of the list around: this object was never closed.
                Some('{') if self.closes_outer(']') => {
                    self.mend("missing closing braces");
                    return Ok(members.into());
                }
                Some(_) => {
                    if !separated {
                        self.mend("missing commas");
                    }
                    separated = false;
                    self.member(&mut members)?;
                }
            }
        }
    }

    /// `{{ ... }}`, as templates that escape braces leave behind.
    fn doubled(&mut self) -> Read<Value> {
        self.mend("doubled braces");
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
                self.mend("arrows for colons");
                self.at += 2;
            }
            None => {
                self.mend(CUT_SHORT);
                return Ok(());
            }
            Some(c) if text::closers(c).is_some() => self.mend("missing colons"),
            Some(_) => return Err(GaveUp::NotJson),
        }
        self.skip_blank()?;
        match self.peek() {
            None => self.mend(CUT_SHORT),
            Some(',' | '}' | ']') => self.mend("keys without a value"),
            Some(_) => {
                if let Some(value) = self.value()? {
                    if members.contains_key(&key) {
                        self.mend("repeated keys");
                    }
                    members.insert(key, value);
                }
            }
        }
        Ok(())
    }

    /// `None` for what stands between members and is none: an ellipsis, a key that the end cut.
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
        let key: String = self
            .chars
            .get(start..self.at)
            .unwrap_or_default()
            .iter()
            .collect();
        let key = key.trim();
        if matches!(key, "..." | "…") {
            self.mend("an ellipsis");
            return Ok(None);
        }
        if key.is_empty()
            || (self.peek() != Some(':') && self.peek().is_some() && key.contains(' '))
        {
            return Err(GaveUp::NotJson);
        }
        self.mend("keys without quotes");
        Ok(Some(key.to_owned()))
    }

    /// A value without quotes: number, keyword, or a string that lacks them.
    fn bare(&mut self) -> Read<Option<Value>> {
        let start = self.at;
        while let Some(c) = self.peek() {
            let spaced = self.at > start
                && self
                    .chars
                    .get(self.at - 1)
                    .is_some_and(|c| c.is_whitespace());
            let comment = c == '/' && matches!(self.ahead(1), Some('/' | '*'));
            let ends = match c {
                ',' | '}' | ']' | '\n' => true,
                ')' => self.open.last() == Some(&')'),
                '(' => {
                    self.burn(self.at - start)?;
                    return self.call(start);
                }
                '"' | '\'' | '“' | '{' | '[' => spaced,
                '/' => comment && (spaced || self.chars.get(self.at - 1) != Some(&':')),
                _ => false,
            };
            if ends {
                break;
            }
            self.at += 1;
        }
        self.burn(self.at - start)?;
        let token: String = self
            .chars
            .get(start..self.at)
            .unwrap_or_default()
            .iter()
            .collect();
        let token = token.trim();
        let cut = self.at >= self.chars.len() && !self.open.is_empty();
        if cut {
            self.mend(CUT_SHORT);
        }
        if let Some(number) = number(token) {
            if cut && self.last_number == LastNumber::Drop {
                return Ok(None);
            }
            if token.parse::<Number>().is_err() {
                self.mend("odd numbers");
            }
            return Ok(Some(number));
        }
        match token {
            "true" => return Ok(Some(true.into())),
            "false" => return Ok(Some(false.into())),
            "null" => return Ok(Some(Value::Null)),
            "..." | "…" => {
                self.mend("an ellipsis");
                return Ok(None);
            }
            "" => return Ok(None),
            _ => {}
        }
        let keyword = match token.to_ascii_lowercase().as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            "none" | "null" | "undefined" | "nan" | "nil" => Some(Value::Null),
            _ => None,
        };
        if keyword.is_some() {
            self.mend("keywords of other languages");
            return Ok(keyword);
        }
        if cut
            && ["true", "false", "null", "True", "False", "None"]
                .iter()
                .any(|word| word.starts_with(token))
        {
            return Ok(None);
        }
        if self.open.is_empty() {
            return Err(GaveUp::NotJson);
        }
        self.mend("strings without quotes");
        Ok(Some(token.trim_end_matches(['"', '\'', '”']).into()))
    }

    /// `ObjectId("123")` is its argument; anything else in parentheses is text.
    fn call(&mut self, start: usize) -> Read<Option<Value>> {
        let name = self.chars.get(start..self.at).unwrap_or_default();
        let is_name =
            !name.is_empty() && name.iter().all(|c| c.is_ascii_alphanumeric() || *c == '_');
        if !is_name {
            return Err(GaveUp::NotJson);
        }
        self.mend("a function call for a value");
        let value = self.nested(')', Self::array)?;
        match value {
            Some(Value::Array(mut items)) if items.len() == 1 => Ok(items.pop()),
            _ => Err(GaveUp::NotJson),
        }
    }
}

/// The number that a token means, also `+1`, `.5`, `2.` and `1_000`; not `05`, which may be a code.
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
