//! Strings with any quotation marks, with quotes and raw line breaks inside, or without an end.

use super::{CUT_SHORT, Mode, Read, Reader};

/// The longest key without quotes, in characters.
pub(super) const MAX_BARE_KEY: usize = 100;

/// Whether a string is a key or a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Key,
    Value,
}

/// Returns the characters that may end a string that begins with this one.
pub(super) fn closers(quote: char) -> Option<&'static [char]> {
    match quote {
        '"' => Some(&['"']),
        '\'' => Some(&['\'']),
        '“' | '”' | '„' | '«' => Some(&['”', '“', '"', '»']),
        '‘' | '’' | '`' | '´' => Some(&['’', '‘', '\'', '`', '´']),
        _ => None,
    }
}

impl Reader<'_> {
    /// Reads a string that begins with a quote at the current character.
    pub(super) fn string(&mut self, role: Role) -> Read<String> {
        let Some(quote) = self.peek() else {
            return Ok(String::new());
        };
        let closers = closers(quote).unwrap_or_default();
        if quote != '"' {
            self.note("quotes other than \"");
        }
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        // The last comma before an inner quote. If the string runs into a colon, it should have
        // ended before that comma.
        let mut missed_end: Option<(usize, usize)> = None;
        while let Some(c) = self.peek() {
            if closers.contains(&c) {
                if self.ends_string(role)? {
                    self.at += 1;
                    return Ok(text);
                }
                if let Some((place, length)) = missed_end.filter(|_| self.runs_into_colon(role)) {
                    self.note("missing closing quotes");
                    text.truncate(length);
                    self.at = place;
                    return Ok(text);
                }
                self.note("quotes inside a string");
                let trimmed = text.trim_end();
                if let Some(before) = trimmed.strip_suffix(',') {
                    let comma = self.since(start).iter().rposition(|c| *c == ',');
                    missed_end = comma.map(|comma| (start + comma, before.len()));
                }
                text.push(c);
                self.at += 1;
            } else if c == '\\' {
                self.escape(&mut text);
            } else {
                if c.is_control() {
                    self.note("raw control characters");
                }
                text.push(c);
                self.at += 1;
            }
        }
        self.burn(self.at - start)?;
        self.note(CUT_SHORT);
        if role == Role::Value {
            self.give_back_closers(&mut text);
        }
        Ok(text)
    }

    /// True if the current quote ends its string, by what follows it.
    fn ends_string(&mut self, role: Role) -> Read<bool> {
        if self.mode == Mode::Strict {
            return Ok(true);
        }
        let (next, _) = self.after_blank(self.at + 1);
        self.burn(0)?;
        let follows = self.chars.get(next).copied();
        let spaced = next > self.at + 1;
        Ok(match (role, follows) {
            (_, None) => true,
            (Role::Key, Some(c)) => {
                c == ':' || c == '=' || c == '}' || (spaced && closers(c).is_some())
            }
            (Role::Value, Some(']')) => self.open.contains(&']'),
            (Role::Value, Some(')')) => self.open.contains(&')'),
            (Role::Value, Some('}')) => true,
            (Role::Value, Some(',')) => self.goes_on_after_comma(next + 1),
            (Role::Value, Some(c)) if closers(c).is_some() => {
                if self.open.last() == Some(&'}') {
                    self.is_key(next)
                } else {
                    spaced
                }
            }
            (Role::Value, Some(_)) => {
                self.open.is_empty()
                    || (spaced && self.open.last() == Some(&']') && self.is_scalar(next))
            }
        })
    }

    /// True if the text after a comma can be the next member or item.
    fn goes_on_after_comma(&self, at: usize) -> bool {
        let (at, _) = self.after_blank(at);
        let Some(c) = self.chars.get(at).copied() else {
            return true;
        };
        match self.open.last() {
            Some('}') => {
                matches!(c, '}' | ',' | '.')
                    || (closers(c).is_some() && self.is_key(at))
                    || self.is_bare_key(at)
            }
            _ => {
                matches!(c, '{' | '[' | ']' | ',' | '.')
                    || closers(c).is_some()
                    || self.is_scalar(at)
            }
        }
    }

    /// True if a quoted key begins at `at`, or a part of one that the end of the text cut.
    fn is_key(&self, at: usize) -> bool {
        let Some(quote) = self.chars.get(at).copied() else {
            return true;
        };
        let closers = closers(quote).unwrap_or_default();
        let mut escaped = false;
        let mut rest = self
            .chars
            .iter()
            .enumerate()
            .skip(at + 1)
            .take(2 * MAX_BARE_KEY);
        let end = rest.find(|(_, c)| {
            let ends = !escaped && (closers.contains(c) || **c == '\n');
            escaped = !escaped && **c == '\\';
            ends
        });
        match end {
            Some((end, c)) if *c != '\n' => {
                let (next, _) = self.after_blank(end + 1);
                self.chars
                    .get(next)
                    .is_none_or(|c| *c == ':' || super::text::closers(*c).is_some())
            }
            Some(_) => false,
            None => self.chars.len() <= at + 1 + 2 * MAX_BARE_KEY,
        }
    }

    fn is_bare_key(&self, at: usize) -> bool {
        let word = self.chars.iter().skip(at).take(MAX_BARE_KEY);
        let length = word
            .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
            .count();
        let (next, _) = self.after_blank(at + length);
        length > 0 && self.chars.get(next).is_none_or(|c| *c == ':')
    }

    /// True if a number, a keyword or a single word begins at `at`, followed by a delimiter or the
    /// end.
    fn is_scalar(&self, at: usize) -> bool {
        let word = self.chars.iter().skip(at).take(MAX_BARE_KEY);
        let length = word
            .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '.'))
            .count();
        let (next, _) = self.after_blank(at + length);
        length > 0
            && self
                .chars
                .get(next)
                .is_none_or(|c| matches!(c, ',' | ']' | '}'))
    }

    /// True if the current quote of a value is followed by a colon, so that it must end the next
    /// key.
    fn runs_into_colon(&self, role: Role) -> bool {
        let (next, _) = self.after_blank(self.at + 1);
        role == Role::Value && self.chars.get(next) == Some(&':')
    }

    /// Removes the closing brackets at the end of a string that was never closed: they were
    /// probably not part of it.
    fn give_back_closers(&mut self, text: &mut String) {
        for count in (1..=self.open.len()).rev() {
            let mut rest = text.trim_end();
            // The outermost bracket comes last in the text.
            let closers = self.open.iter().skip(self.open.len() - count);
            let all = closers
                .copied()
                .all(|closer| match rest.strip_suffix(closer) {
                    Some(before) => {
                        rest = before.trim_end();
                        true
                    }
                    None => false,
                });
            if all {
                let length = rest.len();
                text.truncate(length);
                return;
            }
        }
    }

    fn escape(&mut self, text: &mut String) {
        self.at += 1;
        let Some(c) = self.peek() else { return };
        self.at += 1;
        match c {
            '"' | '\\' | '/' => text.push(c),
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{c}'),
            'u' => self.unicode(text),
            // A path, a formula or a pattern with backslashes that were not escaped.
            c if c.is_ascii_alphanumeric() => {
                self.note("unknown escapes");
                text.extend(['\\', c]);
            }
            c => {
                self.note("unknown escapes");
                text.push(c);
            }
        }
    }

    fn unicode(&mut self, text: &mut String) {
        let Some(unit) = self.hex(self.at) else {
            self.note("unknown escapes");
            // The end of the text cut it, or it is no escape.
            let rest = self.chars.get(self.at..).unwrap_or_default();
            if rest.len() < 4 && rest.iter().all(char::is_ascii_hexdigit) {
                self.at = self.chars.len();
            } else {
                text.push_str("\\u");
            }
            return;
        };
        self.at += 4;
        let low = || {
            (self.ahead(0) == Some('\\') && self.ahead(1) == Some('u'))
                .then(|| self.hex(self.at + 2))
                .flatten()
        };
        match (unit, low()) {
            (0xd800..0xdc00, Some(low @ 0xdc00..0xe000)) => {
                self.at += 6;
                text.extend(char::from_u32(
                    0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00),
                ));
            }
            _ => text.push(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)),
        }
    }

    fn hex(&self, at: usize) -> Option<u32> {
        let digits = self.chars.get(at..at + 4)?;
        digits
            .iter()
            .try_fold(0, |value, digit| Some(value * 16 + digit.to_digit(16)?))
    }
}
